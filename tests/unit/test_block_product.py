"""Products of constant factors in blocks of columns, compiled for a CPU, against sums in float64."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cpu_emulator import run as emulate
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from test_product import roperators

import irkit
from irkit.dialects.products import packed_layout
from irkit.dialects.roperator_body import find_root
from irkit.frontends.onnx import import_onnx
from irkit.passes.task.pack_factors import in_blocks
from irkit.rkernels import registry
from irkit.rkernels.bind import bind
from irkit.rkernels.cpu.block_product import LARGE, SMALL, Registers
from irkit.rkernels.work import Work

VARIANTS = ["block_product.blocked", "block_product.wide"]
ELEMENTS = {"f32": np.float32, "f64": np.float64}
OPEN = -1


@contextmanager
def cheap(variant: str, copied: bool = False) -> Generator[None]:
    """Of the family there is this one rKernel, nothing takes less time, and every factor is laid out for
    it."""
    kernel = replace(registry.find("cpu", variant), work=lambda part: Work({"op": 1e-9}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(registry._REGISTERED, ("cpu", kernel.family), [kernel])
        patch.setattr("irkit.passes.task.pack_factors.blocks_ns", lambda *_: 0.0)
        for module in ("families", "cpu") if copied else ():
            patch.setattr(f"irkit.rkernels.{module}.block_product.rows_in_place", lambda _: None)
        yield


def array(rng: np.random.Generator, *shape: int, element: str = "f32") -> Any:
    return rng.standard_normal(shape).astype(ELEMENTS[element])


def model(nodes: list[Any], x: Any, rows: int, weights: dict[str, Any], rank: int = 2) -> Any:
    """One input `x`, whose first dimension is open if `rows` are; `y` is the output."""
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    shape = ["n" if rows == OPEN else x.shape[0], *x.shape[1:]]
    graph = helper.make_graph(
        nodes,
        "product",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info("y", kind, [None] * rank)],
        [numpy_helper.from_array(w, name) for name, w in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def judge(
    made: Any, variant: str, x: Any, want: Any, device: str = "cpu2", copied: bool = False
) -> None:
    with cheap(variant, copied):
        program = irkit.compile(made, target="cpu", device=device, cache=False)
    assert variant in program.ir("schedule")
    got = program(x)
    assert got.dtype == x.dtype
    limit = 3e-6 if x.dtype == np.float32 else 1e-13
    scale = float(np.abs(want).max(initial=1))
    np.testing.assert_allclose(got / scale, want / scale, atol=limit)


@pytest.mark.parametrize("variant", VARIANTS)
@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_random_sizes(variant: str, data: st.DataObject):
    """However the factor lies; rows that are read in place, and others that are computed on the way or lie
    column by column; in one part, and in parts that begin within a block."""
    rows, units, terms = (
        data.draw(st.integers(low, most)) for low, most in ((2, 41), (1, 90), (1, 300))
    )
    by_k = data.draw(st.booleans())
    before = data.draw(st.sampled_from(["", "Exp", "Transpose"]))
    element, device = (
        data.draw(st.sampled_from(["f32", "f64"])),
        data.draw(st.sampled_from(["cpu1", "cpu3"])),
    )
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    x, b = array(rng, rows, terms, element=element), array(rng, units, element=element)
    w = array(rng, *((units, terms) if by_k else (terms, units)), element=element)
    wide = (np.exp(x.astype(np.float64)) if before == "Exp" else x.astype(np.float64)) @ (
        w.T if by_k else w
    ).astype(np.float64)
    want = np.maximum(wide + b, 0)
    given_x = np.ascontiguousarray(x.T) if before == "Transpose" else x
    nodes = [helper.make_node(before, ["x"], ["a"])] if before else []
    nodes += [
        helper.make_node("Gemm", ["a" if before else "x", "w", "b"], ["z"], transB=int(by_k)),
        helper.make_node("Relu", ["z"], ["y"]),
    ]
    made = model(nodes, given_x, rows, {"w": w, "b": b})
    judge(made, variant, given_x, want, device, data.draw(st.booleans()))


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(("rows", "terms"), [(200, 700), (67, 3000), (9, 5000)])
def test_more_rows_and_terms_than_are_held(variant: str, rows: int, terms: int):
    rng = np.random.default_rng(0)
    x, w = array(rng, rows, terms), array(rng, terms, 130)
    made = model([helper.make_node("MatMul", ["x", "w"], ["y"])], x, rows, {"w": w})
    for copied in (False, True):
        judge(made, variant, x, x.astype(np.float64) @ w, copied=copied)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_factor_for_each_of_a_batch(variant: str):
    rng = np.random.default_rng(0)
    x, w = array(rng, 3, 7, 50), array(rng, 3, 50, 37)
    made = model([helper.make_node("MatMul", ["x", "w"], ["y"])], x, 3, {"w": w}, rank=3)
    judge(made, variant, x, x.astype(np.float64) @ w)


@pytest.mark.parametrize("variant", VARIANTS)
def test_rows_of_several_dimensions(variant: str):
    rng = np.random.default_rng(0)
    x, w = array(rng, 3, 7, 50), array(rng, 50, 37)
    made = model([helper.make_node("MatMul", ["x", "w"], ["y"])], x, 3, {"w": w}, rank=3)
    judge(made, variant, x, x.astype(np.float64) @ w)


def test_of_an_open_number_of_rows_a_factor_stays_as_it_lies():
    """Plans for few rows and for many read it with rKernels of their own."""
    rng = np.random.default_rng(0)
    x, w = array(rng, 4, 30), array(rng, 30, 20)
    made = model([helper.make_node("MatMul", ["x", "w"], ["y"])], x, OPEN, {"w": w})
    with cheap(VARIANTS[0]):
        ir = irkit.compile(made, target="cpu", device="cpu2", cache=False).ir("schedule")
    assert "block_product" not in ir


@pytest.mark.parametrize("by_k", [True, False])
@pytest.mark.parametrize("batch", [0, 1, 2])
@pytest.mark.parametrize("columns", [1, 16, 21])
def test_factors_are_where_the_layout_says(by_k: bool, batch: int, columns: int):
    lead, rng = (2, 3)[:batch], np.random.default_rng(0)
    w = array(rng, *lead, columns, 5)
    laid_out = in_blocks(w if by_k else np.moveaxis(w, -2, -1), batch, by_k)
    layout = packed_layout(range(batch), batch, [batch + 1])
    for where in np.ndindex(*w.shape):
        assert laid_out[tuple(e.eval(list(where), []) for e in layout)] == w[where]
    assert np.count_nonzero(laid_out) == w.size


@pytest.mark.parametrize("registers", [SMALL, LARGE])
@pytest.mark.parametrize("size", [4, 8])
def test_tiles_stay_in_registers(registers: Registers, size: int):
    """Their sums, a vector of each block and one number; and no more tiles than rows ask for."""
    for rows in range(50):
        high, across = registers.tile(rows, size)
        vectors = 16 * size // registers.nbytes
        assert (high + 1) * across * vectors + 1 <= registers.count
        assert high >= 1
        assert across >= 1


def test_a_constant_that_a_vector_alone_is_multiplied_with_stays():
    rng = np.random.default_rng(0)
    x, w = array(rng, 1, 256), array(rng, 256, 512)
    made = model([helper.make_node("MatMul", ["x", "w"], ["y"])], x, 1, {"w": w})
    assert "block_product" not in irkit.compile(made, device="cpu2", cache=False).ir("schedule")


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_products_in_emulation(data: st.DataObject):
    """Nothing is read or written outside of what there is."""
    rows, units, terms = (data.draw(st.integers(2, most)) for most in (20, 40, 12))
    tasks, variant = data.draw(st.integers(1, 3)), data.draw(st.sampled_from(VARIANTS))
    rng = np.random.default_rng(0)
    x, w = array(rng, rows, terms), array(rng, terms, units)
    copied = data.draw(st.booleans())
    imported = import_onnx(
        model([helper.make_node("MatMul", ["x", "w"], ["y"])], x, rows, {"w": w})
    )
    got = np.full((rows, units), np.nan, np.float32)
    with cheap(variant, copied):
        (op,) = roperators(imported, f"cpu{tasks}")
        binding = bind(op, find_root(op.body.block), registry.find("cpu", variant), 1)
    assert op.rkernel.data == variant
    assert binding.names["IN_PLACE"] == str(int(not copied))
    for task in range(op.tasks):
        operands = [x, in_blocks(w, 0, False), got]
        emulate(registry.find("cpu", variant), binding, operands, task, op.tasks, 1)
    np.testing.assert_allclose(got, x @ w, rtol=1e-4, atol=1e-4)
