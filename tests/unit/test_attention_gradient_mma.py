"""Gradients of attention on tensor cores: run thread by thread on a CPU, and built for a GPU."""

from __future__ import annotations

import random
from typing import Any

import cuda_emulator
import numpy as np
import pytest
import test_attention_gradient as gradients
from test_attention import kind
from xdsl.dialects.builtin import StringAttr

import irkit
from irkit.context import IrkitContext
from irkit.dialects.precision import PRECISION, precision_of
from irkit.dialects.task import AlternativeAttr, ROperatorOp
from irkit.dialects.types import int_array
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.lower.task_to_numba.emit import emit_module
from irkit.rkernels import families, registry
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.cuda import attention_gradient_mma
from irkit.rkernels.families.attention_gradient import Sides
from irkit.rkernels.legality import root_of, why_illegal
from irkit.rkernels.templates import specialise, template_source
from irkit.schedule.devices import device

expected: Any = gradients.expected
expected_of: Any = gradients.expected_of
TILES: dict[str, dict[str, int]] = {
    "alone": {"BM": 16, "WM": 16, "BN": 16, "KG": 1},
    "inner rows in groups": {"BM": 16, "WM": 16, "BN": 32, "KG": 2},
    "outer rows in groups": {"BM": 32, "WM": 16, "BN": 16, "KG": 1},
    "both in groups": {"BM": 32, "WM": 16, "BN": 32, "KG": 2},
}
TOLERANCE = {"float32": 2e-6, "tf32": 4e-3, "bf16": 4e-2, "f16": 4e-3}


def scheduled(text: str) -> tuple[list[ROperatorOp], Any]:
    """Both rOperators, of queries and of keys, and their module."""
    ctx = IrkitContext()
    register_dialects(ctx)
    module = irkit.parse(text)
    for level in ("graph", "tensor", "task"):
        run_level(ctx, module, level, "h200")
    ops = [o for o in module.ops if isinstance(o, ROperatorOp)]
    return [o for o in ops if root_of(o).family == "attention_gradient"], module


def emulated(
    op: ROperatorOp, arrays: list[Any], shape: Any, precision: str, tile: str, tasks: int,
    vector: int = 1,
) -> Any:  # fmt: skip
    """What the template with small tiles makes of it."""
    root = root_of(op)
    assert root.op is not None
    root.op.attributes[PRECISION] = StringAttr(precision)
    rkernel = registry.find("cuda", "attention_gradient.mma64x64")
    op.grid = int_array(attention_gradient_mma.grid_of(TILES[tile])(root, tasks))
    binder = Binder(op, root, "cuda")
    families.find("attention_gradient").bind(binder)
    given = attention_gradient_mma.parameters_of(TILES[tile], root)
    threads = given["BM"] // given["WM"] * given["KG"] * 32
    names = {**binder.binding.names, **{k: str(v) for k, v in given.items()}}
    names |= {"THREADS": str(threads), "VECTOR": str(vector)}
    body = specialise(template_source(rkernel), rkernel.function, "kernel", names)
    y = np.full(shape, 77, arrays[0].dtype)
    text = "\n".join([*binder.binding.functions, *binder.binding.parts.values(), body])
    grid = int(np.prod(list(op.grid.get_values())))
    cuda_emulator.run_text(
        text, "kernel", [*arrays, y], grid, 1, threads, attention_gradient_mma.scratch(root, given)
    )
    return y


def both(
    arrays: list[Any], mask: Any, scale: float, causal: int | None, precision: str, tile: str,
    tasks: int = 2, vector: int = 1,
) -> tuple[Any, Any]:  # fmt: skip
    """Both gradients, that of keys of what that of queries says."""
    q, k, v, c = arrays
    (query, key), _module = scheduled(gradients.program(arrays, mask, scale, causal))
    masks = [] if mask is None else [mask]
    sums = (*c.shape[:-1], q.shape[-1] + 2)
    found = emulated(query, [*arrays, *masks], sums, precision, tile, tasks, vector)
    y = (*c.shape[:2], k.shape[2], q.shape[-1] + v.shape[-1])
    return found, emulated(key, [*arrays, found, *masks], y, precision, tile, tasks, vector)


def drawn(seed: int) -> tuple[list[Any], Any, float, int | None]:
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    rows, keys = (draw.choice([1, 16, draw.randint(2, 40)]) for _ in range(2))
    size, columns = (draw.choice([4 * draw.randint(1, 6), draw.randint(1, 20)]) for _ in range(2))
    lead = (draw.randint(1, 2), 1)
    shapes = [
        (*lead, rows, size),
        (1, 1, keys, size),
        (*lead, keys, columns),
        (*lead, rows, columns),
    ]
    arrays: list[Any] = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    mask: Any = None
    if seed % 3 == 1:
        mask = rng.standard_normal((rows, keys)).astype(np.float32)
    if seed % 3 == 2:
        mask = rng.random((lead[0], 1, 1, keys)) < 0.7
        mask[..., 0] = True
    return arrays, mask, size**-0.5, draw.randint(0, 6) if seed % 2 else None


def check(got: Any, want: Any, tolerance: float) -> None:
    got = got.astype(np.float64)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    seen = want[~np.isnan(want)]
    size = max(1.0, float(abs(seen).max())) if seen.size else 0.0
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * size)


@pytest.mark.parametrize("seed", range(12))
def test_random_sizes(seed: int) -> None:
    arrays, mask, scale, causal = drawn(seed)
    precision = list(TOLERANCE)[seed % 4 if seed % 3 == 0 else 0]
    got = both(
        arrays, mask, scale, causal, precision, list(TILES)[seed % len(TILES)],
        tasks=(1, 3)[seed % 2], vector=seed % 2,
    )  # fmt: skip
    for a, b in zip(got, expected(*arrays, mask, scale, causal), strict=True):
        check(a, b, TOLERANCE[precision])


@pytest.mark.parametrize("tile", ["alone", "both in groups"])
@pytest.mark.parametrize("causal", [0, 16])
def test_the_last_inner_rows_end_a_block(tile: str, causal: int) -> None:
    """And not all outer rows see them."""
    rng = np.random.default_rng(6)
    arrays: list[Any] = [rng.standard_normal((1, 1, 32, 4)).astype(np.float32) for _ in range(4)]
    got = both(arrays, None, 0.5, causal, "float32", tile)
    for a, b in zip(got, expected(*arrays, None, 0.5, causal), strict=True):
        check(a, b, TOLERANCE["float32"])


ORDERS = {"tokens": "transpose", "columns": "slice", "computed": "neg"}


def lying(a: Any, order: str) -> Any:
    """What is in memory for an operand."""
    if order == "columns":
        return np.pad(a, ((0, 0), (0, 0), (0, 0), (4, 8)), constant_values=np.nan)
    return -a if order == "computed" else np.ascontiguousarray(a.transpose(0, 2, 1, 3))


def read_from(arrays: list[Any], of_keys: bool, order: str) -> ROperatorOp:
    """One gradient of what lies in memory heads behind tokens, is some columns of what does, or is computed
    where it is read."""
    shapes = [a.shape for a in arrays]
    (*lead, rows, size), (*_, keys, _), (*_, columns), _, *_ = shapes
    y = (*lead, keys, size + columns) if of_keys else (*lead, rows, size + 2)
    names, lines, given = "qkvcs"[: len(arrays)], list[str](), list[str]()
    for name, a in zip(names, arrays, strict=True):
        read, how = kind(lying(a, order)), ""
        if order == "tokens":
            how = "{permutation = array<i64: 0, 2, 1, 3>}"
        if order == "columns":
            sizes = ", ".join(map(str, a.shape))
            how = (
                f"{{offsets = array<i64: 0, 0, 0, 4>, sizes = array<i64: {sizes}>, "
                "strides = array<i64: 1, 1, 1, 1>}"
            )
        given.append(f"%{name}0: {read}")
        lines.append(f"%{name} = graph.{ORDERS[order]} %{name}0 {how} : ({read}) -> {kind(a)}")
    what, y = "key" if of_keys else "query", kind(np.empty(y, np.float32))
    types = ", ".join(map(kind, arrays))
    (op,), _module = scheduled(
        f"func.func @main({', '.join(given)}) -> {y} {{ {' '.join(lines)} "
        f"%y = graph.attention_{what}_gradient {', '.join(f'%{n}' for n in names)} "
        f"{{scale = 0.3 : f64, causal = 2 : i64}} : ({types}) -> {y} func.return %y : {y} }}"
    )
    return op


@pytest.mark.parametrize("vector", [0, 1])
@pytest.mark.parametrize("order", list(ORDERS))
def test_where_operands_come_from(order: str, vector: int) -> None:
    rng = np.random.default_rng(5)
    shapes = [(1, 2, 19, 12), (1, 2, 33, 12), (1, 2, 33, 8), (1, 2, 19, 8)]
    arrays: list[Any] = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    want = expected(*arrays, None, 0.3, 2)

    sums = np.float32(want[0])
    for of_keys, given in enumerate((arrays, [*arrays, sums])):
        op = read_from(given, bool(of_keys), order)
        copied = attention_gradient_mma.copied(Sides.of(root_of(op)))
        assert len(copied) == (0 if order == "computed" else 4)
        tile = ("inner rows in groups", "outer rows in groups")[of_keys]
        shape = want[of_keys].shape
        memory = [lying(a, order) for a in given]
        got = emulated(op, memory, shape, "float32", tile, 3, vector)
        check(got, want[of_keys], TOLERANCE["float32"])


def test_one_sum_is_made_where_all_weights_of_a_query_are_known() -> None:
    """And it does not lose what two sums cancel: keys that lie far from zero, all much alike."""
    rng, errors = np.random.default_rng(1), list[float]()
    arrays = [rng.standard_normal((1, 1, n, 8)).astype(np.float32) for n in (16, 32, 32, 16)]
    arrays[1] += np.float32(1000)
    arrays[0] *= np.float32(1e-3)
    (query, _), _module = scheduled(gradients.program(arrays, None, 0.3, None))
    want, _ = expected(*arrays, None, 0.3, None)
    for tile, once in (("inner rows in groups", 1), ("alone", 0)):
        p = attention_gradient_mma.parameters_of(TILES[tile], root_of(query))
        assert (p["ONCE"], p["SECOND_WIDTH"]) == (once, 0 if once else 16)
        got = emulated(query, arrays, want.shape, "float32", tile, 1)
        errors.append(float(abs(got - want)[..., :8].max() / abs(want[..., :8]).max()))
    assert errors[0] < 1e-4
    assert errors[0] < errors[1]


STRANGE = {
    "an infinite query": (0, (1, 2), np.inf),
    "a query that is NaN": (0, (2, 0), np.nan),
    "an infinite key": (1, (7, 3), -np.inf),
    "an infinite value": (2, (5, 1), np.inf),
    "a cotangent that is NaN": (3, (5, 1), np.nan),
    "the largest cotangent": (3, (5, 1), 3e38),
    "least cotangents": (3, ..., 1e-37),
    "least values": (2, ..., 1e-38),
    "least keys": (1, ..., 1e-38),
}


@pytest.mark.parametrize("name", STRANGE)
def test_what_cannot_be_split_comes_out_as_of_plain_sums(name: str) -> None:
    """A NaN where a row sees one, and no less exact than plain float32 elsewhere."""
    number, place, value = STRANGE[name]
    rng = np.random.default_rng(3)
    shapes = [(1, 1, n, 5) for n in (8, 17, 17, 8)]
    arrays: list[Any] = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    if place is ...:
        arrays[number] *= np.float32(value)
    else:
        arrays[number][0, 0][place] = value
    with np.errstate(all="ignore"):
        got = both(arrays, None, 1.0, None, "float32", "both in groups")
        want = expected(*arrays, None, 1.0, None)
        plain = expected_of(np.float32, arrays, 1.0)
    for a, b, c in zip(got, want, plain, strict=True):
        sees = np.isfinite(c).all(-1)
        np.testing.assert_array_equal(np.isfinite(a).all(-1), sees)
        for x, y in zip(a[sees], b[sees], strict=True):
            np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-5 * abs(y).max())


def test_queries_that_see_nothing_are_nan_and_add_nothing() -> None:
    rng = np.random.default_rng(4)
    arrays = [rng.standard_normal((1, 1, n, 8)).astype(np.float32) for n in (20, 24, 24, 20)]
    sums, got = both(arrays, None, 0.3, -3, "float32", "both in groups")
    assert np.isnan(sums[0, 0, :3, :8]).all()
    assert (sums[0, 0, :3, 8] == -np.inf).all()
    cut = [a[..., 3:, :] if n in (0, 3) else a for n, a in enumerate(arrays)]
    want = expected(*cut, None, 0.3, 0)
    check(sums[..., 3:, :], want[0], TOLERANCE["float32"])
    check(got, want[1], TOLERANCE["float32"])


@pytest.mark.parametrize("size", [32, 64])
def test_errors_are_those_of_float32_sums(size: int) -> None:
    """Of the sums that the hardware makes of parts, as NumPy makes them."""
    rng = np.random.default_rng(size)
    arrays: list[Any] = [
        rng.standard_normal((1, 1, n, size)).astype(np.float32) for n in (16, 64, 64, 16)
    ]
    got = both(arrays, None, size**-0.5, None, "float32", "inner rows in groups", 1)
    want = expected(*arrays, None, size**-0.5, None)
    plain = expected_of(np.float32, arrays, size**-0.5)
    for a, b, c in zip(got, want, plain, strict=True):
        error, other = (np.sqrt(((x - b) ** 2).mean()) for x in (a, c))
        assert error <= 1.5 * other


# Which rKernels take what, and what becomes of them


def roots(size: int, columns: int, keys: int = 64) -> list[Any]:
    shapes = [(2, 3, 64, size), (2, 3, keys, size), (2, 3, keys, columns), (2, 3, 64, columns)]
    ops, _module = scheduled(
        gradients.program([np.empty(s, np.float32) for s in shapes], None, 1.0, 0)
    )
    return [root_of(op) for op in ops]


def offered(root: Any, precision: str) -> set[str]:
    root.op.attributes[PRECISION] = StringAttr(precision)
    names = [r.variant for r in registry.candidates("cuda", root) if "gradient" in r.family]
    return {n for n in names if n.startswith("mma")}


def test_what_tensor_cores_take() -> None:
    for root in roots(32, 32):
        assert offered(root, "ieee") == set()
        assert {"mma16x64", "mma32x64", "mma64x64", "mma64x32"} <= offered(root, "float32")
        # Two bytes a factor: sixteen terms an instruction.
        assert "mma16x64" not in offered(root, "bf16")
        assert "mma64x64" in offered(root, "bf16")
    for root in roots(128, 128, 512):
        assert offered(root, "float32") == set()
        assert "mma64x32" in offered(root, "tf32")
    for root in roots(300, 32):
        assert offered(root, "tf32") == set()


def test_gradients_are_computed_in_the_precision_of_the_attention() -> None:
    shape = "tensor<2x8x4xf32>"
    for precision in ("tf32", "ieee"):
        module = irkit.parse(
            f"func.func @main(%q: {shape}, %c: {shape}) -> tensor<2x8x6xf32> attributes "
            f'{{irkit.precision = "{precision}"}} {{ %y = graph.attention_query_gradient '
            f"%q, %q, %q, %c {{scale = 1.0 : f64}} : ({', '.join([shape] * 4)}) -> tensor<2x8x6xf32> "
            "func.return %y : tensor<2x8x6xf32> }"
        )
        ctx = IrkitContext()
        register_dialects(ctx)
        for level in ("graph", "tensor", "task"):
            run_level(ctx, module, level, "h200")
        (op,) = (o for o in module.ops if isinstance(o, ROperatorOp))
        root = root_of(op).op
        assert root is not None
        assert precision_of(root).value == precision


@pytest.mark.parametrize(
    ("variant", "rows", "size", "precision"),
    [
        ("mma64x64", 64, 32, "float32"),
        ("mma64x32", 64, 64, "float32"),
        ("mma16x64", 64, 64, "float32"),
        ("mma32x64", 256, 64, "float32"),
        ("mma128x32", 256, 32, "float32"),
        ("mma16x64", 64, 64, "tf32"),
        ("mma64x32", 256, 128, "tf32"),
        ("mma64x32", 256, 64, "bf16"),
    ],
)
def test_it_becomes_a_cubin_without_spills(
    variant: str, rows: int, size: int, precision: str
) -> None:
    pytest.importorskip("numba_cuda")
    from irkit.runtime.cuda import compiling, ptx

    arrays = [np.empty((12, 4, rows, size), np.float32)] * 4
    ops, module = scheduled(gradients.program(arrays, None, size**-0.5, 0))
    rkernel = registry.find("cuda", f"attention_gradient.{variant}")
    for op in ops:
        root = root_of(op)
        assert root.op is not None
        root.op.attributes[PRECISION] = StringAttr(precision)
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
    source = emit_module(module, ctx.weights, "cuda")
    compiled = compiling.compile_module_with_ptx(source, ["op_0", "op_1"], 256, "sm_90a")
    for name in ("op_0", "op_1"):
        resources = compiled.resources()[name]
        assert resources["spill_stores"] == resources["spill_loads"] == 0, name
    assert ptx.warnings(compiled.ptx) == ptx.forbidden_forms(compiled.ptx) == []
    word = "m16n8k16.row.col.f32.bf16" if precision == "bf16" else "m16n8k8.row.col.f32.tf32"
    assert f"mma.sync.aligned.{word}" in compiled.ptx
    assert "cp.async.cg.shared.global" in compiled.ptx


@pytest.mark.parametrize("batch", [8, 128])
def test_they_are_chosen_for_a_decoder(batch: int) -> None:
    arrays = [np.empty((batch, 4, 64, 32), np.float32)] * 4
    ops, module = scheduled(gradients.program(arrays, None, 0.2, 0))
    ctx = IrkitContext()
    register_dialects(ctx)
    run_level(ctx, module, "schedule", "h200")
    assert len(ops) == 2
    for op in ops:
        assert op.rkernel is not None
        assert op.rkernel.data.startswith("attention_gradient.mma")
        assert op.vector_bytes is not None
