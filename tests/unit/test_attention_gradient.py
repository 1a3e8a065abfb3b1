"""Gradients of attention against float64: compiled for a CPU, and a GPU's templates thread by thread."""

from __future__ import annotations

from typing import Any

import cuda_emulator
import numpy as np
import pytest
from test_attention import kind

import irkit
from irkit.context import IrkitContext
from irkit.dialects.precision import NAMES, Precision
from irkit.dialects.task import ROperatorOp
from irkit.dialects.types import int_array
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.interp import run_module
from irkit.rkernels import families, registry
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.legality import root_of
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.templates import specialise, template_source


def expected(
    q: Any, k: Any, v: Any, c: Any, mask: Any, scale: float, causal: int | None
) -> tuple[Any, Any]:
    """Both gradients in float64."""
    q, k, v, c = (a.astype(np.float64) for a in (q, k, v, c))
    s = scale * q @ np.swapaxes(k, -1, -2)
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == bool else s + mask
    if causal is not None:
        s = np.where(np.tri(*s.shape[-2:], k=causal, dtype=bool), s, -np.inf)
    top = s.max(-1, keepdims=True)
    p = np.exp(s - top)
    total = p.sum(-1, keepdims=True)
    p = p / total
    t = c @ np.swapaxes(v, -1, -2)
    d = (p * t).sum(-1, keepdims=True)
    slopes = p * (t - d)
    of_queries = np.concatenate([scale * slopes @ k, top + np.log(total), d], -1)
    of_keys = [scale * np.swapaxes(slopes, -1, -2) @ q, np.swapaxes(p, -1, -2) @ c]
    return of_queries, np.concatenate(of_keys, -1)


def expected_of(dtype: Any, arrays: list[Any], scale: float) -> tuple[Any, Any]:
    """Both gradients in plain sums of `dtype`."""
    q, k, v, c = (a.astype(dtype) for a in arrays)
    s = dtype(scale) * q @ np.swapaxes(k, -1, -2)
    top = s.max(-1, keepdims=True)
    p = np.exp(s - top)
    total = p.sum(-1, keepdims=True)
    t, sums = c @ np.swapaxes(v, -1, -2), top + np.log(total)
    d = (p * t).sum(-1, keepdims=True) / total
    left = (p * t) @ k - d * (p @ k)
    of_queries = np.concatenate([dtype(scale) * left / total, sums, d], -1)
    p = np.exp(s - sums)
    of_keys = [dtype(scale) * np.swapaxes(p * (t - d), -1, -2) @ q, np.swapaxes(p, -1, -2) @ c]
    return of_queries, np.concatenate(of_keys, -1)


def drawn(
    seed: int, heads: int, most: int, largest: int
) -> tuple[list[Any], Any, float, int | None]:
    """Queries, keys, values and a cotangent; a mask, scale and `causal`. Each row sees its first key."""
    rng = np.random.default_rng(seed)
    dtype = np.float64 if seed % 5 == 4 else np.float32
    rows, keys = (int(n) for n in rng.integers(1, most, 2))
    size, columns = (int(n) for n in rng.integers(1, largest, 2))
    lead = (2, heads)
    shapes = [
        (*lead, rows, size),
        (2, 1, keys, size),
        (1, heads, keys, columns),
        (*lead, rows, columns),
    ]
    arrays: list[Any] = [rng.standard_normal(s).astype(dtype) for s in shapes]
    mask: Any = None
    if seed % 3 == 1:
        mask = rng.standard_normal((rows, keys)).astype(dtype)
    if seed % 3 == 2:
        mask = rng.random((2, 1, 1, keys)) < 0.7
        mask[..., 0] = True
    return arrays, mask, float(size**-0.5), int(rng.integers(0, 6)) if seed % 2 else None


def program(arrays: list[Any], mask: Any, scale: float, causal: int | None) -> str:
    """A function of both gradients."""
    (*lead, rows, size), (*_, keys, _), (*_, columns), _ = (a.shape for a in arrays)
    given, names = [*arrays], ["%q", "%k", "%v", "%c"]
    if mask is not None:
        given, names = [*given, mask], [*names, "%m"]
    sums = kind(np.empty((*lead, rows, size + 2), arrays[0].dtype))
    y = kind(np.empty((*lead, keys, size + columns), arrays[0].dtype))
    limit = "" if causal is None else f", causal = {causal} : i64"
    types, more = list(map(kind, given)), ", ".join(["%s", *names[4:]])
    arguments = ", ".join(f"{n}: {t}" for n, t in zip(names, types, strict=True))
    return f"""func.func @main({arguments}) -> ({sums}, {y}) {{
      %s = graph.attention_query_gradient {", ".join(names)} {{scale = {scale!r} : f64{limit}}}
        : ({", ".join(types)}) -> {sums}
      %y = graph.attention_key_gradient {", ".join(names[:4])}, {more} {{scale = {scale!r} : f64{limit}}}
        : ({", ".join([*types[:4], sums, *types[4:]])}) -> {y}
      func.return %s, %y : {sums}, {y}
    }}"""


def close(got: Any, want: Any) -> None:
    tolerance = 1e-12 if got.dtype == np.float64 else 1e-5
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * max(1.0, abs(want).max()))


@pytest.mark.parametrize("seed", range(6))
def test_random_sizes(seed: int) -> None:
    arrays, mask, scale, causal = drawn(seed, 3, 100, 70)
    text = program(arrays, mask, scale, causal)
    compiled = irkit.compile(irkit.parse(text), device="cpu2" if seed % 2 else "cpu1")
    got = compiled.run([*arrays, *([] if mask is None else [mask])])
    for a, b in zip(got, expected(*arrays, mask, scale, causal), strict=True):
        close(a, b)


VARIANTS = [
    r
    for r in registry.registered("cuda")
    if r.family == "attention_gradient" and not r.variant.startswith("mma")
]


def _emulated(op: ROperatorOp, rkernel: RKernel, arrays: list[Any], shape: Any, grid: Any) -> Any:
    root = root_of(op)
    op.grid = int_array(grid)
    binder = Binder(op, root, "cuda")
    families.find("attention_gradient").bind(binder)
    assert callable(rkernel.parameters)
    assert callable(rkernel.scratch_bytes)
    # Two warps are quicker to emulate than eight.
    given = rkernel.parameters(root)
    given = {**given, "HEIGHT": given["HELD"] * 2}
    names = {**binder.binding.names, **{k: str(v) for k, v in given.items()}}
    names |= {"THREADS": "64", "VECTOR": "1"}
    body = specialise(template_source(rkernel), rkernel.function, "kernel", names)
    y = np.full(shape, 77, arrays[0].dtype)
    text = "\n".join([*binder.binding.functions, *binder.binding.parts.values(), body])
    scratch = rkernel.scratch_bytes(root, given)
    cuda_emulator.run_text(text, "kernel", [*arrays, y], int(np.prod(grid)), 1, 64, scratch)
    return y


@pytest.mark.parametrize("number", range(len(VARIANTS)))
def test_templates_thread_by_thread(number: int) -> None:
    rkernel, seed = VARIANTS[number], 1 + number % 2
    arrays, mask, scale, causal = drawn(seed, 1, 40, 4)
    ctx = IrkitContext()
    register_dialects(ctx)
    module = irkit.parse(program(arrays, mask, scale, causal))
    for level in ("graph", "tensor", "task"):
        run_level(ctx, module, level, "h200")
    query, key = (o for o in module.ops if isinstance(o, ROperatorOp))
    masks = [] if mask is None else [mask]
    want = expected(*arrays, mask, scale, causal)
    sums = _emulated(query, rkernel, [*arrays, *masks], want[0].shape, [2, 1, 1, 1])
    close(sums, want[0])
    rows = want[1].shape[2]
    grid = [1, 1, 1, 1] if seed % 2 else [2, 1, min(rows, 2), 1]
    close(_emulated(key, rkernel, [*arrays, sums, *masks], want[1].shape, grid), want[1])


@pytest.mark.parametrize("name", NAMES)
def test_every_level_rounds_alike(name: str) -> None:
    arrays, _, scale, causal = drawn(3, 2, 20, 10)
    head, body = program(arrays, None, scale, causal).split("{\n", 1)
    found = list[list[Any]]()
    for precision in ("float32", name):
        ctx = IrkitContext()
        register_dialects(ctx)
        module: Any = irkit.parse(
            f'{head} attributes {{irkit.precision = "{precision}"}} {{\n{body}'
        )
        run_level(ctx, module, "graph", "h200")
        found.append(list(run_module(module, ctx.weights, arrays)))
        for level in ("tensor", "task"):
            run_level(ctx, module, level, "h200")
            for a, b in zip(run_module(module, ctx.weights, arrays), found[-1], strict=True):
                np.testing.assert_allclose(a, b, rtol=0, atol=1e-6)
    # Rounding shows, and is of the size that the format has.
    roundoff = Precision(name).unit_roundoff
    for plain, got in zip(found[0], found[1], strict=True):
        error = float(abs(got - plain).max() / max(1.0, abs(plain).max()))
        assert (error == 0) == (roundoff == 0)
        assert error <= 40 * roundoff
