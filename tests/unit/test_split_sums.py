"""float32 products of parts keep float32's own exactness, though tensor cores truncate where they add.

The emulator cuts every sum towards zero, as tensor cores do (`emulated_wgmma.multiplied`). What is cut off is
always of the sum's sign, so it does not cancel: over a network's layers it adds up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from packed_products import Case, product, roperators, run

from irkit.rkernels import registry
from irkit.rkernels.cuda import product_packed, product_wgmma

MOST_BIAS = 4.3e-8
"""What cutting one sum to 24 bits leaves out of it on average; all products of parts, one after another added
to the same sum, leave out 1.3e-7."""


def rectified(random: Any, shape: tuple[int, int]) -> Any:
    return np.maximum(random.standard_normal(shape), 0)


def wide(random: Any, shape: tuple[int, int]) -> Any:
    return random.standard_normal(shape) * np.exp(2 * random.standard_normal(shape))


def positive(random: Any, shape: tuple[int, int]) -> Any:
    return random.random(shape)


DATA = {f.__name__: f for f in (rectified, wide, positive)}


def summed_plainly(x: Any, w: Any) -> Any:
    """float32, one term after another, each product unrounded."""
    sums = np.zeros((len(x), w.shape[1]), np.float32)
    for k in range(x.shape[1]):
        term = x[:, k : k + 1].astype(np.float64) * w[k : k + 1].astype(np.float64)
        sums = (sums + term).astype(np.float32)
    return sums.astype(np.float64)


def errors(y: Any, want: Any) -> tuple[float, float]:
    """(in the 2-norm, along the result: what all sums are off by together), relative."""
    off, size = y.astype(np.float64) - want, np.linalg.norm(want)
    return float(np.linalg.norm(off) / size), float((off * want).sum() / size**2)


def unpacked(case: Case, x: Any, w: Any, variant: str) -> Any:
    """What an rKernel makes of a case that splits its operands itself."""
    op, rkernel = roperators(case)["gemm_0"], registry.find("cuda", f"product.{variant}")
    y, bias = np.full((case.m, case.n), np.nan, np.float32), np.zeros(case.n, np.float32)
    known = {a.shape: a for a in (x, w, bias)}
    arrays = [known[tuple(a.type.get_shape())] for a in op.body.block.args]
    run(op, rkernel.name, rkernel.literals, [*arrays, y], 1)
    return y


def packed(case: Case, x: Any, w: Any, variant: str) -> Any:
    """What one makes of packed terms."""
    return product(case, x, w, 1, variant.removeprefix("packed"))


KERNELS = {
    "wgmma64x64": (unpacked, Case(48, 320, 40, relu=False)),
    "wgmma128x128": (unpacked, Case(120, 96, 112, relu=False)),
    "packed64x64": (packed, Case(48, 320, 40, relu=False)),
    "packed64x64_sliced": (packed, Case(48, 320, 40, relu=False)),
    "packed128x128": (packed, Case(120, 96, 112, relu=False)),
}


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("variant", KERNELS)
def test_sums_of_parts_are_not_drawn_towards_zero(variant: str, data: str) -> None:
    computed, case = KERNELS[variant]
    random = np.random.default_rng(len(variant) + len(data))
    x, w = (DATA[data](random, s).astype(np.float32) for s in case.shapes)
    if data == "rectified":
        w = random.standard_normal(w.shape).astype(np.float32)
    want = x.astype(np.float64) @ w.astype(np.float64)
    whole, bias = errors(computed(case, x, w, variant), want)
    plain, _ = errors(summed_plainly(x, w), want)
    assert whole <= plain
    # Of wide data a few results are as good as all.
    assert abs(bias) <= (plain if data == "wide" else MOST_BIAS)


ROUNDS = {
    "wgmma64x64": (product_wgmma, "TOGETHER"),
    "packed64x64": (product_packed, "_LONG"),
    "packed64x64_sliced": (product_packed, "_LONG"),
}


@pytest.mark.parametrize("sizes", [(48, 320, 40), (48, 288, 40), (128, 96, 64)])
@pytest.mark.parametrize("variant", ROUNDS)
def test_sums_of_several_stages_meet(
    variant: str, sizes: tuple[int, int, int], monkeypatch: Any
) -> None:
    """As they do where there are hundreds of stages: none is left out, none is added twice, in one tile or in
    several that are whole, of which the next is copied before the last is stored."""
    computed, case = KERNELS[variant][0], Case(*sizes, relu=False)
    monkeypatch.setattr(*ROUNDS[variant], 2)
    random = np.random.default_rng(sizes)
    x, w = (random.standard_normal(s).astype(np.float32) for s in case.shapes)
    want = x.astype(np.float64) @ w.astype(np.float64)
    assert errors(computed(case, x, w, variant), want)[0] <= 3e-7
