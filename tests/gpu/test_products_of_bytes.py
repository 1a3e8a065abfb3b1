"""Products and convolutions of bytes on a GPU: every rKernel at random shapes, bit by bit."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from benchmarks.byte_products import Case, built
from irkit.model_info import ModelInfo
from irkit.rkernels import registry
from irkit.runtime.cuda.availability import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

RKERNELS = [k.name for k in registry.registered("cuda") if k.family == "integer_product"]
KINDS = [("ui8", "i8"), ("i8", "i8"), ("ui8", "ui8"), ("i8", "ui8")]


def any_case(number: int, rkernel: str) -> Case:
    """A product, laid out either way, of few rows for those that are for few, or a convolution."""
    draw = random.Random(number)
    kinds = KINDS[number % 4]
    if rkernel.endswith("dots"):
        k = 16 * draw.randint(1, 90)
        return Case("few", (draw.randint(1, 8), k), (draw.randint(9, 300), k), kinds, by_k=True)
    if number % 3 < 2:
        m, k, n = (draw.choice([draw.randint(1, 40), draw.randint(40, 300)]) for _ in range(3))
        if number % 2:
            k, n = 16 * -(-k // 16), 16 * -(-n // 16)
        by_k = number % 3 == 1
        return Case("product", (m, k), (n, k) if by_k else (k, n), kinds, by_k=by_k)
    channels, size, kernel = draw.randint(1, 40), draw.randint(5, 20), draw.choice([1, 3, 5])
    shape = draw.randint(1, 3), channels, size, size
    filters = draw.randint(4, 70), channels, kernel, kernel
    return Case("conv", shape, filters, kinds, stride=draw.randint(1, 2), zero=draw.randint(0, 99))


def bytes_of(rng: Any, kind: str, shape: tuple[int, ...]) -> Any:
    low = -128 if kind == "i8" else 0
    return rng.integers(low, low + 256, shape).astype(np.int8 if kind == "i8" else np.uint8)


@pytest.mark.parametrize("number", range(9))
@pytest.mark.parametrize("rkernel", RKERNELS)
def test_sums_are_exact(rkernel: str, number: int) -> None:
    from irkit.runtime.cuda.executor import CudaExecutor

    case, rng = any_case(number, rkernel), np.random.default_rng(number)
    made = built(case, "cuda", rkernel)
    if made is None:
        pytest.skip("the rKernel takes no such product")
    artifact, _ = made
    x, w = bytes_of(rng, case.kinds[0], case.x), bytes_of(rng, case.kinds[1], case.w)
    executor = CudaExecutor.from_artifact(artifact, ModelInfo.from_json(artifact.info), "per-op")
    (y,) = executor.run([x, w])
    np.testing.assert_array_equal(y, case.exact(x, w))
