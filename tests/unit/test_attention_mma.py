"""Attention on tensor cores: run thread by thread on a CPU, and built for a GPU."""

from __future__ import annotations

import random
from typing import Any

import cuda_emulator
import ml_dtypes
import numpy as np
import pytest
import test_attention
from xdsl.dialects.builtin import StringAttr

import irkit
from irkit.context import IrkitContext
from irkit.dialects.precision import PRECISION
from irkit.dialects.task import AlternativeAttr, ROperatorOp
from irkit.dialects.types import int_array
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.lower.task_to_numba.emit import emit_module
from irkit.rkernels import families, registry
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.cuda import attention_mma
from irkit.rkernels.legality import root_of, why_illegal
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.templates import specialise, template_source
from irkit.schedule.devices import device

attended: Any = test_attention.attended
NAMES = {"float32": "f32", "bool": "i1", "bfloat16": "bf16", "float16": "f16"}
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
SMALL: dict[str, dict[str, int]] = {
    "alone": {"BM": 16, "WM": 16, "BN": 16, "KG": 1},
    "keys in groups": {"BM": 16, "WM": 16, "BN": 32, "KG": 2},
    "rows in groups": {"BM": 32, "WM": 16, "BN": 32, "KG": 2},
    "wide": {"BM": 32, "WM": 32, "BN": 32, "KG": 2},
}
PARTS = {f"{name}, in parts": {**tile, "CUT": 1} for name, tile in SMALL.items()}
TILES = {**SMALL, **PARTS}


def kind(a: Any) -> str:
    return f"tensor<{'x'.join(map(str, a.shape))}x{NAMES[a.dtype.name]}>"


def program(arrays: list[Any], scale: float, causal: int | None, order: str) -> tuple[str, Any]:
    """A function of one attention, and the shape of its result. Its operands lie as `order` says: heads or
    tokens first, or scaled where they are read."""
    q, k, v = arrays[:3]
    lines, names = list[str](), ["%q", "%k", "%v", "%m"][: len(arrays)]
    arguments = ", ".join(f"{n}: {kind(a)}" for n, a in zip(names, arrays, strict=True))
    if order == "tokens":
        moved = [a.transpose(1, 0, 2) for a in (q, k, v)]
        for n, (a, b) in enumerate(zip((q, k, v), moved, strict=True)):
            lines.append(
                f"{names[n]}t = graph.transpose {names[n]} {{permutation = array<i64: 1, 0, 2>}} "
                f": ({kind(a)}) -> {kind(b)}"
            )
            names[n] += "t"
        arrays = [*moved, *arrays[3:]]
    if order == "computed":
        for n, a in enumerate((q, k, v)):
            lines.append(f"{names[n]}t = graph.neg {names[n]} : ({kind(a)}) -> {kind(a)}")
            names[n] += "t"
    q, _, v = arrays[:3]
    shape = (*q.shape[:2], v.shape[2])
    y = kind(np.empty(shape, q.dtype))
    limit = "" if causal is None else f", causal = {causal} : i64"
    lines.append(
        f"%y = graph.attention {', '.join(names)} {{scale = {scale!r} : f64{limit}}} "
        f": ({', '.join(map(kind, arrays))}) -> {y}"
    )
    return f"func.func @main({arguments}) -> {y} {{{' '.join(lines)} func.return %y : {y}}}", shape


def scheduled(text: str) -> tuple[ROperatorOp, Any]:
    """The one rOperator that is an attention, and its module."""
    ctx = IrkitContext()
    register_dialects(ctx)
    module = irkit.parse(text)
    for level in ("graph", "tensor", "task"):
        run_level(ctx, module, level, "h200")
    (op,) = (
        o for o in module.ops if isinstance(o, ROperatorOp) and root_of(o).family == "attention"
    )
    return op, module


def emulated(
    arrays: list[Any], scale: float, causal: int | None, order: str, precision: str,
    tile: str, tasks: int, vector: int = 1, single: str = "",
) -> Any:  # fmt: skip
    """What a template with small tiles makes of it."""
    text, shape = program(arrays, scale, causal, order)
    return of_program(arrays, text, shape, precision, tile, tasks, vector, single)


def of_program(
    arrays: list[Any], text: str, shape: Any, precision: str,
    tile: str, tasks: int, vector: int = 1, single: str = "",
) -> Any:  # fmt: skip
    """The same of a program, whose result has a shape."""
    op, _module = scheduled(text)
    root = root_of(op)
    assert root.op is not None
    root.op.attributes[PRECISION] = StringAttr(precision)
    rkernel = registry.find("cuda", "attention.mma128x64")
    op.grid = int_array(attention_mma.grid_of(TILES[tile])(root, tasks))
    binder = Binder(op, root, "cuda")
    families.find("attention").bind(binder)
    given = attention_mma.parameters_of(TILES[tile], root)
    threads = given["BM"] // given["WM"] * given["KG"] * 32
    names = {**binder.binding.names, **{k: str(v) for k, v in given.items()}}
    names |= {single: "1"} if single else {}
    names |= {"THREADS": str(threads), "VECTOR": str(vector)}
    body = specialise(template_source(rkernel), rkernel.function, "kernel", names)
    y = np.full(shape, 77, arrays[0].dtype)
    cuda_emulator.run_text(
        "\n".join([*binder.binding.functions, *binder.binding.parts.values(), body]), "kernel", [*arrays, y],
        int(np.prod(list(op.grid.get_values()))), 1, threads, attention_mma.scratch(root, given),
    )  # fmt: skip
    return y


def random_case(seed: int, halves: bool) -> tuple[list[Any], float, int | None]:
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    heads, rows, keys = draw.randint(1, 2), draw.choice([1, 17, 40]), draw.randint(1, 70)
    size, columns = draw.randint(1, 35), draw.randint(1, 35)
    element = np.dtype(np.float32)
    if halves:
        size, columns = 8 * draw.randint(1, 4), 8 * draw.randint(1, 4)
        element = BFLOAT16 if seed % 2 else np.dtype(np.float16)
    shapes = [(heads, rows, size), (draw.choice([1, heads]), keys, size), (heads, keys, columns)]
    arrays: list[Any] = [rng.standard_normal(s).astype(np.float32).astype(element) for s in shapes]
    if seed % 3 == 1:
        arrays.append(rng.standard_normal((rows, keys)).astype(np.float32).astype(element))
    if seed % 3 == 2:
        arrays.append(rng.random((heads, 1, keys)) < 0.7)
    return arrays, size**-0.5, draw.randint(-2, 6) if seed % 2 else None


def check(got: Any, want: Any, tolerance: float) -> None:
    got = got.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    seen = want[~np.isnan(want)]
    size = float(abs(seen).max()) if seen.size else 0.0
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * max(size, 1e-30))


TOLERANCE = {"float32": 2e-6, "tf32": 4e-3, "bf16": 3e-2, "f16": 4e-3}


@pytest.mark.parametrize("seed", range(12))
def test_random_sizes(seed: int) -> None:
    arrays, scale, causal = random_case(seed, halves=False)
    precision = list(TOLERANCE)[seed % 4 if seed % 2 else 0]
    tile = list(SMALL)[seed % len(SMALL)]
    got = emulated(
        arrays, scale, causal, "heads", precision, tile, tasks=(1, 3)[seed % 2], vector=seed % 2
    )
    want = attended(*arrays[:3], *(arrays[3:] or [None]), scale, causal)
    check(got, want, TOLERANCE[precision])


@pytest.mark.parametrize("element", [np.dtype(np.float32), BFLOAT16])
@pytest.mark.parametrize("more", [0, 1])
def test_values_of_the_only_block_arrive_behind_its_keys(more: int, element: Any) -> None:
    rng, tile = np.random.default_rng(7), "keys in groups"
    keys = TILES[tile]["BN"] + more
    arrays = [rng.standard_normal((2, n, 16)).astype(element) for n in (19, keys, keys)]
    op, _module = scheduled(program(arrays, 0.3, 0, "heads")[0])
    assert attention_mma.parameters_of(TILES[tile], root_of(op))["ONCE"] == 1 - more
    precision = "float32" if element == np.float32 else "bf16"
    got = emulated(arrays, 0.3, 0, "heads", precision, tile, 2)
    want = attended(*(a.astype(np.float32) for a in arrays), None, 0.3, 0)
    check(got, want, TOLERANCE[precision])


@pytest.mark.parametrize("seed", range(8))
def test_factors_in_parts(seed: int) -> None:
    arrays, scale, causal = random_case(seed, halves=False)
    q, k, v = (np.resize(a, (*a.shape[:2], -(-a.shape[2] // 4) * 4)) for a in arrays[:3])
    arrays[:3] = q, k, v
    tile = list(PARTS)[seed % len(PARTS)]
    single = "BUFFERS" if seed % 3 == 1 else ""
    got = emulated(arrays, scale, causal, "heads", "float32", tile, (1, 3)[seed % 2], single=single)
    want = attended(*arrays[:3], *(arrays[3:] or [None]), scale, causal)
    check(got, want, TOLERANCE["float32"])


@pytest.mark.parametrize("order", ["tokens", "computed"])
def test_where_operands_come_from(order: str) -> None:
    rng = np.random.default_rng(5)
    shapes = [(2, 19, 12), (2, 33, 12), (2, 33, 20)]
    arrays: list[Any] = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    own = (
        [np.ascontiguousarray(a.transpose(1, 0, 2)) for a in arrays]
        if order == "tokens"
        else arrays
    )
    got = emulated(own, 0.3, None, order, "float32", "keys in groups", 2)
    given = arrays if order == "tokens" else [-a for a in arrays]
    check(got, attended(*given, None, 0.3), TOLERANCE["float32"])


@pytest.mark.parametrize("seed", range(8))
def test_16_bit_floats(seed: int) -> None:
    arrays, scale, causal = random_case(seed, halves=True)
    precision = "float32" if seed % 4 == 1 else "bf16" if seed % 2 else "f16"
    got = emulated(arrays, scale, causal, "heads", precision, list(SMALL)[seed % 4], 1)
    arrays = [a if a.dtype == bool else a.astype(np.float32) for a in arrays]
    want = attended(*arrays[:3], *(arrays[3:] or [None]), scale, causal)
    # The result is rounded to the type of the operands.
    unit = 2.0**-8 if seed % 2 else 2.0**-11
    check(got, want, unit + (0 if precision == "float32" else unit))


def test_16_bit_floats_that_are_not_aligned() -> None:
    rng = np.random.default_rng(3)
    arrays = [rng.standard_normal((1, n, 8)).astype(np.float16) for n in (3, 5, 5)]
    got = emulated(arrays, 0.4, 2, "heads", "f16", "alone", 1, vector=0)
    check(got, attended(*arrays, None, 0.4, 2), 2.0**-10)


@pytest.mark.parametrize("tile", ["keys in groups", "keys in groups, in parts"])
@pytest.mark.parametrize("element", [np.dtype(np.float32), BFLOAT16])
def test_what_cannot_be_split_comes_out_as_of_plain_sums(element: Any, tile: str) -> None:
    """Infinities, NaN, the largest and the least values, and rows that see nothing."""
    rng = np.random.default_rng(3)
    q, k, v = (
        rng.standard_normal(s).astype(np.float32) for s in ((1, 9, 8), (1, 20, 8), (1, 20, 8))
    )
    q[0, 1, 2], q[0, 2, 0], q[0, 3] = np.inf, np.nan, 1e-38
    q[0, 4] = 0
    k[0, 7, 3] = -np.inf
    v[0, 5, 1], v[0, 6, 2], v[0, :, 4], v[0, :, 5] = np.inf, 3e38, 1e-41, 1e-36
    q, k, v = (a.astype(element) for a in (q, k, v))
    mask = np.ones((9, 20), bool)
    mask[6] = False
    given = [q, k, v, mask]
    if element == BFLOAT16:
        tile = tile.removesuffix(", in parts")
    got = emulated(given, 1.0, None, "heads", "float32", tile, 1).astype(np.float64)
    with np.errstate(all="ignore"):
        want = attended(*(a.astype(np.float32) for a in given[:3]), mask, 1.0)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want))
    finite = np.isfinite(want)
    assert finite.sum() > 20
    unit = 1e-5 if element == np.float32 else 2.0**-8
    np.testing.assert_allclose(got[finite], want[finite], rtol=unit, atol=2e-45)


def chosen(text: str, rkernel: RKernel) -> str:
    """The module of a program that an rKernel computes."""
    op, module = scheduled(text)
    root = root_of(op)
    literals = rkernel.literals(root)
    assert rkernel.grid is not None
    grid, scratch = rkernel.grid(root, 132), rkernel.scratch(root, literals)
    op.choose(
        AlternativeAttr.of(rkernel.name, grid, 1.0, dict(literals), scratch, rkernel.fastmath)
    )
    assert why_illegal(op, device("h200")) is None
    ctx = IrkitContext()
    register_dialects(ctx)
    run_level(ctx, module, "schedule", "h200")
    return emit_module(module, ctx.weights, "cuda")


@pytest.mark.parametrize("size", [64, 128])
@pytest.mark.parametrize(
    ("element", "variant"), [(np.float32, "mma128x32"), (BFLOAT16, "mma128x64_wide")]
)
def test_it_becomes_a_cubin_without_spills(element: Any, variant: str, size: int) -> None:
    pytest.importorskip("numba_cuda")
    from irkit.runtime.cuda import compiling, ptx

    arrays = [np.empty((12, 512, size), np.dtype(element))] * 3
    text, _ = program(arrays, size**-0.5, 0, "heads")
    if element is BFLOAT16:
        text = text.replace("> {", '> attributes {irkit.precision = "bf16"} {', 1)
    source = chosen(text, registry.find("cuda", f"attention.{variant}"))
    compiled = compiling.compile_module_with_ptx(source, ["op_0"], 256, "sm_90a")
    resources = compiled.resources()["op_0"]
    # CUDA 13.5's assembler keeps six words of the widest in memory.
    most = 24 if (variant, size) == ("mma128x64_wide", 128) else 0
    assert max(resources["spill_stores"], resources["spill_loads"]) <= most
    assert ptx.warnings(compiled.ptx) == ptx.forbidden_forms(compiled.ptx) == []
    instruction = (
        "m16n8k8.row.col.f32.tf32" if element is np.float32 else "m16n8k16.row.col.f32.bf16"
    )
    assert f"mma.sync.aligned.{instruction}" in compiled.ptx
    assert "cp.async.cg.shared.global" in compiled.ptx
