"""Gradients of attention on a GPU's tensor cores: random shapes, masks and data of any magnitude."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

import irkit
from benchmarks.rtask_times import Prepared
from irkit.dialects.task import AlternativeAttr
from irkit.model_info import ModelInfo
from irkit.passes.task.partition_rtasks import grid_for
from irkit.rkernels import registry
from irkit.rkernels.legality import root_of, why_illegal
from irkit.runtime.cuda.availability import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

NAMES = {"float32": "f32", "bool": "i1"}
UNIT = {"float32": 0.0, "tf32": 2.0**-11, "bf16": 2.0**-8, "f16": 2.0**-11}
GRADIENTS = [
    k.name for k in registry.registered("cuda") if k.name.startswith("attention_gradient.mma")
]


def kind(a: Any) -> str:
    return f"tensor<{'x'.join(map(str, a.shape))}x{NAMES[a.dtype.name]}>"


def close(got: Any, want: Any, unit: float) -> None:
    got, size = got.astype(np.float64), max(1.0, abs(want).max())
    assert (abs(got - want) <= unit * size).all(), abs(got - want).max() / size


def pulled(
    name: str, arrays: list[Any], mask: Any, scale: float, causal: int | None, precision: str
) -> list[Any]:
    """Gradients of queries, and of keys and values, by an rKernel; None where it cannot compute one."""
    from irkit.runtime.cuda.executor import CudaExecutor

    given, names = [*arrays], ["%q", "%k", "%v", "%c"]
    if mask is not None:
        given, names = [*given, mask], [*names, "%m"]
    (*lead, rows, size), (*_, keys, _), (*_, columns), _ = (a.shape for a in arrays)
    limit = "" if causal is None else f", causal = {causal} : i64"
    found: list[Any] = []
    for what in ("query", "key"):
        y = (*lead, rows, size + 2) if what == "query" else (*lead, keys, size + columns)
        if what == "key":
            # What a plain rKernel says of the rows, if this one says nothing.
            sums = found[0] if found[0] is not None else of_rows(arrays, mask, scale, causal)
            given, names = [*given[:4], sums, *given[4:]], [*names[:4], "%s", *names[4:]]
        arguments = ", ".join(f"{n}: {kind(a)}" for n, a in zip(names, given, strict=True))
        shape = kind(np.empty(y, np.float32))
        made = Prepared.of(
            "gradient",
            irkit.parse(
                f"func.func @main({arguments}) -> {shape} attributes "
                f'{{irkit.precision = "{precision}"}} {{'
                f"%y = graph.attention_{what}_gradient {', '.join(names)} {{scale = {scale!r} : f64{limit}}} "
                f": ({', '.join(map(kind, given))}) -> {shape} func.return %y : {shape} }}"
            ),
            "cuda",
            whole=True,
        )
        (op,) = (o for o in made.roperators() if root_of(o).family == "attention_gradient")
        root, rkernel = root_of(op), registry.find("cuda", name)
        if rkernel not in registry.candidates("cuda", root):
            found.append(None)
            continue
        literals = rkernel.literals(root)
        grid, scratch = grid_for(root, made.device.veus, rkernel), rkernel.scratch(root, literals)
        op.choose(
            AlternativeAttr.of(rkernel.name, grid, 1.0, dict(literals), scratch, rkernel.fastmath)
        )
        if why_illegal(op, made.device) is not None:
            found.append(None)
            continue
        made.schedule()
        artifact = made.built()
        info = ModelInfo.from_json(artifact.info)
        found.append(CudaExecutor.from_artifact(artifact, info, "per-op").run(given)[0])
    return found


def gradients_of(
    arrays: list[Any], mask: Any, scale: float, causal: int | None, dtype: Any = np.float64
) -> list[Any]:
    """Their meaning."""
    q, k, v, c = (a.astype(dtype) for a in arrays)
    with np.errstate(all="ignore"):
        s = dtype(scale) * q @ np.swapaxes(k, -1, -2)
        if mask is not None:
            s = np.where(mask, s, -np.inf) if mask.dtype == bool else s + mask.astype(dtype)
        if causal is not None:
            s = np.where(np.tri(*s.shape[-2:], k=causal, dtype=bool), s, -np.inf)
        top = s.max(-1, keepdims=True)
        p = np.exp(s - top)
        total = p.sum(-1, keepdims=True)
        p = p / total
        t = c @ np.swapaxes(v, -1, -2)
        d = (p * t).sum(-1, keepdims=True)
        slopes = p * (t - d)
        of_queries = np.concatenate([dtype(scale) * slopes @ k, top + np.log(total), d], -1)
        of_keys = [dtype(scale) * np.swapaxes(slopes, -1, -2) @ q, np.swapaxes(p, -1, -2) @ c]
        return [of_queries, np.concatenate(of_keys, -1)]


def of_rows(arrays: list[Any], mask: Any, scale: float, causal: int | None) -> Any:
    """The gradient of queries in float32."""
    return gradients_of(arrays, mask, scale, causal)[0].astype(np.float32)


def gradient_case(seed: int) -> tuple[list[Any], Any, float, int | None]:
    """Each row sees its first key."""
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    rows, keys = (
        draw.choice([1, 64, draw.randint(2, 90), draw.randint(90, 400)]) for _ in range(2)
    )
    size, columns = (draw.choice([32, 64, 128, draw.randint(1, 128)]) for _ in range(2))
    lead, heads = draw.randint(1, 3), draw.randint(1, 4)
    shapes = [
        (lead, heads, rows, size),
        (draw.choice([1, lead]), heads, keys, size),
        (lead, draw.choice([1, heads]), keys, columns),
        (lead, heads, rows, columns),
    ]
    arrays: list[Any] = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    mask: Any = None
    if seed % 3 == 1:
        mask = rng.standard_normal((rows, keys)).astype(np.float32)
    if seed % 3 == 2:
        mask = rng.random((lead, 1, 1, keys)) < 0.7
        mask[..., 0] = True
    return arrays, mask, size**-0.5, draw.randint(0, 6) if seed % 2 else None


@pytest.mark.parametrize("precision", list(UNIT))
@pytest.mark.parametrize("seed", range(6))
def test_gradients_on_tensor_cores(seed: int, precision: str) -> None:
    arrays, mask, scale, causal = gradient_case(seed + 6 * list(UNIT).index(precision))
    want = gradients_of(arrays, mask, scale, causal)
    unit = 1e-5 + 60 * UNIT[precision]
    for name in GRADIENTS:
        got = pulled(name, arrays, mask, scale, causal, precision)
        for a, b in zip(got, want, strict=True):
            if a is not None:
                close(a, b, unit)


@pytest.mark.parametrize("name", GRADIENTS)
def test_strict_gradients_are_no_less_exact_than_plain_sums(name: str) -> None:
    rng = np.random.default_rng(9)
    for rows, keys, size, spread in ((64, 64, 32, 1.0), (130, 300, 32, 4.0), (40, 500, 16, 0.01)):
        arrays = [
            rng.standard_normal((2, 2, n, size)).astype(np.float32)
            for n in (rows, keys, keys, rows)
        ]
        arrays[0] *= np.float32(spread)
        want = gradients_of(arrays, None, 1.0, None)
        got = pulled(name, arrays, None, 1.0, None, "float32")
        plain = pulled("attention_gradient.rows2", arrays, None, 1.0, None, "ieee")
        for a, b, c in zip(got, want, plain, strict=True):
            if a is None:
                continue
            error, other = (math.sqrt(float(((x - b) ** 2).mean())) for x in (a, c))
            assert error <= 1.2 * other + 1e-8, (name, rows, keys, error, other)


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_what_cannot_be_split(name: str) -> None:
    """A NaN where a row sees one, the largest and the least factors."""
    rng = np.random.default_rng(3)
    for number, place, value in (
        (0, (0, 0, 1, 2), np.inf), (0, (0, 0, 2, 0), np.nan), (1, (0, 0, 7, 3), -np.inf),
        (2, (0, 0, 5, 1), np.inf), (3, (0, 0, 5, 1), np.nan), (3, ..., 1e-37), (2, ..., 1e-38),
    ):  # fmt: skip
        shapes = [(1, 1, n, 32) for n in (70, 90, 90, 70)]
        arrays: list[Any] = [rng.standard_normal(s).astype(np.float32) for s in shapes]
        arrays[number][place] = value if place is not ... else arrays[number] * np.float32(value)
        got = pulled(name, arrays, None, 0.2, None, "float32")
        for a, b in zip(got, gradients_of(arrays, None, 0.2, None), strict=True):
            if a is None:
                continue
            seen = np.isfinite(b).all(-1)
            np.testing.assert_array_equal(np.isfinite(a).all(-1), seen)
            for x, y in zip(a[seen], b[seen], strict=True):
                np.testing.assert_allclose(x, y, rtol=5e-5, atol=5e-5 * abs(y).max())
