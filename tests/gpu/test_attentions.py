"""Attention on a GPU: random shapes, masks and data of any magnitude; a decoder's step, its keys in parts."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

import irkit
from benchmarks.rtask_times import Prepared
from irkit.bfloat16 import dtype_of
from irkit.dialects.task import AlternativeAttr
from irkit.model_info import ModelInfo
from irkit.passes.task.partition_rtasks import grid_for
from irkit.rkernels import registry
from irkit.rkernels.legality import root_of, why_illegal
from irkit.runtime.cuda.availability import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

TENSOR_CORES = [
    k.name
    for k in registry.registered("cuda")
    if k.name.startswith(("attention.mma", "attention.wgmma"))
]
PLAIN = ["attention.tile32x64", "attention.warp"]
BFLOAT16 = dtype_of("bfloat16")
NAMES = {"float32": "f32", "bool": "i1", "bfloat16": "bf16", "float16": "f16"}


def attended(
    q: Any, k: Any, v: Any, mask: Any = None, scale: float = 1.0, causal: int | None = None
) -> tuple[Any, Any]:
    """The meaning in float64, and how large what is summed is."""
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    with np.errstate(all="ignore"):
        scores = scale * q @ np.swapaxes(k, -1, -2)
        if mask is not None:
            seen = mask.dtype == bool
            scores = np.where(mask, scores, -np.inf) if seen else scores + mask.astype(np.float64)
        if causal is not None:
            scores = np.where(np.tri(*scores.shape[-2:], k=causal, dtype=bool), scores, -np.inf)
        power = np.exp(scores - scores.max(-1, keepdims=True))
        total = power.sum(-1, keepdims=True)
        return (power @ v) / total, (power @ abs(v)) / total


def of_case(arrays: list[Any], scale: float, causal: int | None = None) -> tuple[Any, Any]:
    """The same of operands, the last of which may be a mask."""
    mask = arrays[3] if len(arrays) > 3 else None
    return attended(arrays[0], arrays[1], arrays[2], mask, scale, causal)


def kind(a: Any) -> str:
    return f"tensor<{'x'.join(map(str, a.shape))}x{NAMES[a.dtype.name]}>"


def ran(
    rkernel_name: str, arrays: list[Any], precision: str, scale: float, causal: int | None = None,
    parts: int | None = None,
) -> Any:  # fmt: skip
    """What an rKernel makes of it; None if it cannot compute the case."""
    from irkit.runtime.cuda.executor import CudaExecutor

    q, k, v = arrays[:3]
    lead = np.broadcast_shapes(*(a.shape[:-2] for a in (q, k, v)))
    columns = v.shape[-1] + (parts is not None)
    lead = lead if parts is None else (*lead, parts)
    y = kind(np.empty((*lead, q.shape[-2], columns), q.dtype))
    names = ["%q", "%k", "%v", "%m"][: len(arrays)]
    arguments = ", ".join(f"{n}: {kind(a)}" for n, a in zip(names, arrays, strict=True))
    cut = "" if parts is None else f", parts = {parts} : i64"
    limit = "" if causal is None else f", causal = {causal} : i64"
    made = Prepared.of(
        "attention",
        irkit.parse(
            f"func.func @main({arguments}) -> {y} attributes "
            f'{{irkit.precision = "{precision}", irkit.fastmath = #arith.fastmath<afn>}} {{'
            f"%y = graph.attention {', '.join(names)} {{scale = {scale!r} : f64{limit}{cut}}} "
            f": ({', '.join(map(kind, arrays))}) -> {y} func.return %y : {y} }}"
        ),
        "cuda",
        whole=True,
    )
    (op,) = (o for o in made.roperators() if root_of(o).family == "attention")
    root, rkernel = root_of(op), registry.find("cuda", rkernel_name)
    if rkernel not in registry.candidates("cuda", root):
        return None
    literals = rkernel.literals(root)
    grid, scratch = grid_for(root, made.device.veus, rkernel), rkernel.scratch(root, literals)
    op.choose(
        AlternativeAttr.of(rkernel.name, grid, 1.0, dict(literals), scratch, rkernel.fastmath)
    )
    if why_illegal(op, made.device) is not None:
        return None
    made.schedule()
    artifact = made.built()
    info = ModelInfo.from_json(artifact.info)
    return CudaExecutor.from_artifact(artifact, info, "per-op").run(arrays)[0]


def random_case(seed: int, element: Any) -> tuple[list[Any], float, int | None]:
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    heads = draw.randint(1, 5)
    rows, keys = (draw.choice([1, draw.randint(2, 90), draw.randint(90, 700)]) for _ in range(2))
    size, columns = (draw.choice([64, 128, draw.randint(1, 128)]) for _ in range(2))
    if element != np.float32:
        size, columns = 8 * -(-size // 8), 8 * -(-columns // 8)
    shapes = [(heads, rows, size), (draw.choice([1, heads]), keys, size), (heads, keys, columns)]
    arrays: list[Any] = [rng.standard_normal(s).astype(np.float32).astype(element) for s in shapes]
    if seed % 3 == 1:
        arrays.append(rng.standard_normal((rows, keys)).astype(np.float32).astype(element))
    if seed % 3 == 2:
        arrays.append(rng.random((heads, 1, keys)) < 0.7)
    scale = draw.choice([1.0, 4.0]) * size**-0.5
    return arrays, scale, draw.randint(-2, 6) if seed % 2 else None


UNIT = {"float32": 0.0, "tf32": 2.0**-11, "bf16": 2.0**-8, "f16": 2.0**-11}


def close(got: Any, want: Any, size: Any, unit: float) -> None:
    got = got.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    seen = ~np.isnan(want)
    assert (abs(got - want)[seen] <= unit * size[seen]).all(), abs(got - want)[seen].max()


@pytest.mark.parametrize("precision", list(UNIT))
@pytest.mark.parametrize("number", range(len(TENSOR_CORES)))
def test_tensor_cores_are_as_exact_as_they_say(number: int, precision: str) -> None:
    arrays, scale, causal = random_case(
        number + 10 * list(UNIT).index(precision), np.dtype(np.float32)
    )
    want, size = of_case(arrays, scale, causal)
    # A score is off by a few units of its own size, which is at most some ten; so is a weight.
    unit = 1e-5 + 60 * UNIT[precision]
    for name in (TENSOR_CORES[number], TENSOR_CORES[number - 3]):
        y = ran(name, arrays, precision, scale, causal)
        if y is not None:
            close(y, want, size, unit)


@pytest.mark.parametrize("number", range(2 * len(TENSOR_CORES)))
def test_16_bit_floats(number: int) -> None:
    element = BFLOAT16 if number % 2 else np.dtype(np.float16)
    precision = "f16" if not number % 2 else "float32" if number % 4 == 1 else "bf16"
    arrays, scale, causal = random_case(number, element)
    want, size = of_case(arrays, scale, causal)
    rounding = 2.0**-8 if number % 2 else 2.0**-11
    unit = rounding + 1e-5 + (rounding if precision != "float32" else 0)
    y = ran(TENSOR_CORES[number // 2], arrays, precision, scale, causal)
    if y is not None:
        close(y, want, size, unit)


@pytest.mark.parametrize("name", TENSOR_CORES)
def test_strict_float32_is_no_less_exact_than_plain_sums(name: str) -> None:
    """Scores of any size, long sums: the error is that of the plain rKernels, or less."""
    rng = np.random.default_rng(7)
    for rows, keys, size, spread in ((40, 3000, 64, 1.0), (130, 200, 64, 6.0), (20, 500, 16, 0.01)):
        q, k = (rng.standard_normal((2, n, size)).astype(np.float32) * spread for n in (rows, keys))
        v = (
            rng.standard_normal((2, keys, 64)) * np.exp(3 * rng.standard_normal((2, keys, 1)))
        ).astype(np.float32)
        want, magnitude = attended(q, k, v, None, size**-0.5)
        y = ran(name, [q, k, v], "float32", size**-0.5)
        if y is None:
            continue
        plain = ran(PLAIN[0], [q, k, v], "float32", size**-0.5)
        error, other = (
            math.sqrt(float((((found - want) / magnitude) ** 2).mean())) for found in (y, plain)
        )
        assert error <= 1.2 * other + 1e-8, (name, rows, keys, error, other)


@pytest.mark.parametrize("element", [np.dtype(np.float32), BFLOAT16], ids=str)
@pytest.mark.parametrize("name", TENSOR_CORES)
def test_what_cannot_be_split_comes_out_as_of_plain_sums(name: str, element: Any) -> None:
    rng = np.random.default_rng(3)
    q, k, v = (
        rng.standard_normal(s).astype(np.float32) for s in ((1, 70, 64), (1, 150, 64), (1, 150, 64))
    )
    q[0, 1, 2], q[0, 2, 0], q[0, 3], q[0, 4] = np.inf, np.nan, 1e-38, 0
    q[0, 5] *= 1e4
    k[0, 7, 3] = -np.inf
    v[0, 5, 1], v[0, 6, 2], v[0, :, 4], v[0, :, 5] = np.inf, 3e38, 1e-41, 1e-36
    mask = np.ones((70, 150), bool)
    mask[6] = False
    given = [*(a.astype(element) for a in (q, k, v)), mask]
    y = ran(name, given, "float32", 1.0)
    if y is None:
        return
    plain = ran("attention.warp", given, "ieee", 1.0).astype(np.float64)
    y = y.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(y), np.isnan(plain))
    np.testing.assert_array_equal(np.isinf(y), np.isinf(plain))
    finite = np.isfinite(plain)
    assert finite.sum() > 1000
    unit = 2e-5 if element == np.float32 else 2.0**-7
    np.testing.assert_allclose(y[finite], plain[finite], rtol=unit, atol=unit)


@pytest.mark.parametrize("name", TENSOR_CORES)
def test_blocks_that_are_larger_than_all_before(name: str) -> None:
    """And one key, and one value, that are far larger than what is beside them."""
    rng = np.random.default_rng(11)
    q, k, v = (
        rng.standard_normal(s).astype(np.float32) for s in ((2, 90, 64), (2, 500, 64), (2, 500, 64))
    )
    grown = np.exp2(np.arange(500) // 50).astype(np.float32)[:, None]
    given = [[q, k / 512 * grown, v * grown], [q, k.copy(), v.copy()]]
    given[1][1][0, 300, 3], given[1][2][1, 400, 5] = 1e3, 1e15
    for arrays in given:
        want, size = attended(*arrays, None, 0.125)
        y = ran(name, arrays, "float32", 0.125)
        if y is not None:
            close(y, want, size, 1e-5)


# A decoder's step: few rows, many keys


def decoding(seed: int) -> tuple[list[Any], float]:
    """Few rows of few heads, which may share keys; many keys, of any number."""
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    heads, rows = draw.choice([1, 2, 8]), draw.choice([1, 4, draw.randint(1, 20)])
    keys = draw.choice([4096, 8192, draw.randint(2000, 20000)])
    size, columns = (draw.choice([64, 128, draw.randint(1, 128)]) for _ in range(2))
    shapes = [(heads, rows, size), (draw.choice([1, heads]), keys, size), (heads, keys, columns)]
    arrays: list[Any] = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    if seed % 3 == 1:
        # Most of a cache is not filled yet: some parts see no key.
        arrays.append(np.arange(keys) < draw.randint(1, keys // 3))
    if seed % 3 == 2:
        arrays.append(rng.standard_normal((rows, keys)).astype(np.float32))
    return arrays, size**-0.5


@pytest.mark.parametrize("mode", ["per-op", "per-wave", "persistent"])
@pytest.mark.parametrize("seed", range(12))
def test_keys_in_parts(seed: int, mode: str) -> None:
    arrays, scale = decoding(seed)
    q, v = arrays[0], arrays[2]
    y = kind(np.empty((*q.shape[:-1], v.shape[-1]), q.dtype))
    names = ["%q", "%k", "%v", "%m"][: len(arrays)]
    arguments = ", ".join(f"{n}: {kind(a)}" for n, a in zip(names, arrays, strict=True))
    program = irkit.compile(
        irkit.parse(
            f"func.func @main({arguments}) -> {y} attributes {{irkit.fastmath = #arith.fastmath<afn>}} {{"
            f"%y = graph.attention {', '.join(names)} {{scale = {scale!r} : f64}} "
            f": ({', '.join(map(kind, arrays))}) -> {y} func.return %y : {y} }}"
        ),
        "cuda",
        mode=mode,
    )
    assert "parts = " in program.ir("graph")
    want, size = of_case(arrays, scale)
    got: Any = program(*arrays)
    close(got, want, size, 2e-5)
    np.testing.assert_array_equal(program(*arrays), got)


@pytest.mark.parametrize("seed", range(6))
def test_parts_by_each_rkernel(seed: int) -> None:
    """What a part gives: its own attention, and the logarithm of its weights."""
    arrays, scale = decoding(3 * seed)
    q, k, v = (a[..., : 4 * max(1, a.shape[-1] // 4)] for a in arrays)
    size = min(q.shape[-1], k.shape[-1])
    q, k = np.ascontiguousarray(q[..., :size]), np.ascontiguousarray(k[..., :size])
    v, parts = np.ascontiguousarray(v), 2 + seed
    span = -(-k.shape[-2] // parts)
    if seed % 2:
        span = k.shape[-2] // parts
        k, v = (np.ascontiguousarray(a[:, : parts * span]) for a in (k, v))
    for name in (*PLAIN, "attention.mma16x128", "attention.mma32x64"):
        y = ran(name, [q, k, v], "float32", scale, parts=parts)
        if y is None:
            continue
        for n in range(parts):
            own = slice(n * span, (n + 1) * span)
            want, magnitude = attended(q, k[:, own], v[:, own], None, scale)
            close(y[:, n, :, :-1], want, magnitude, 2e-5)
            scores = (
                scale * q.astype(np.float64) @ np.swapaxes(k[:, own], -1, -2).astype(np.float64)
            )
            weights = np.logaddexp.reduce(scores, axis=-1)
            np.testing.assert_allclose(y[:, n, :, -1], weights, rtol=2e-6, atol=2e-5)


@pytest.mark.parametrize("seed", range(6))
def test_steps_of_grouped_heads(seed: int) -> None:
    """com.microsoft's GroupQueryAttention as a CPU runs it, which ONNX Runtime judges."""
    pytest.importorskip("onnxruntime")
    from tests.unit.test_onnx_grouped_attention import Step, compare

    draw = random.Random(seed)
    room, steps = draw.randint(40, 3000), draw.choice([1, 1, draw.randint(2, 40)])
    lens = [draw.randint(steps, room) for _ in range(3 if steps == 1 else 1)]
    step = Step(
        lens, steps, 8, draw.choice([1, 2, 8]), draw.choice([64, 128]), room, draw.choice([0, 32]),
        seed=seed, known=("total",) if seed % 2 else (),
    )  # fmt: skip
    proto, given = step.model(step.arrays())
    want: Any = irkit.compile(proto, "cpu")(*given.values())
    compare(step, irkit.compile(proto, "cuda")(*given.values()), want)
