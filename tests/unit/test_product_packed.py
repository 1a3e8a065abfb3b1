"""Packed terms of products, and the products of them: the pass, and its rKernels emitted and emulated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from packed_products import (
    PACK,
    SCALE,
    SMALL,
    Case,
    pack,
    product,
    roperators,
    run,
    shape,
)
from xdsl.dialects.builtin import IntegerAttr

import irkit
from irkit.context import IrkitContext
from irkit.dialects.packed_terms import SCALED, packed
from irkit.driver.compiler.models import read_model
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.pipelines.runner import PipelineRunner
from irkit.driver.pipelines.specification import build_pipeline
from irkit.driver.registry import all_passes, register_dialects
from irkit.errors import InvalidModelError
from irkit.interp import run_module
from irkit.rkernels import families
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.cuda import product_packed
from irkit.rkernels.legality import root_of


@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize(
    "case",
    [
        Case(70, 100, 90),
        Case(64, 40, 130, True),
        Case(19, 33, 71, precision="tf32"),
        Case(66, 70, 20, True, "bf16"),
        Case(12, 200, 68, precision="f16"),
        Case(20, 136, 72, False, "float32", "bf16"),
        Case(65, 72, 24, True, "float32", "f16"),
        Case(70, 100, 90, terms=SCALED),
        Case(35, 300, 130, True, terms=SCALED),
    ],
    ids=str,
)
def test_packed_products_are_those_of_float64(case: Case, tasks: int) -> None:
    x, w = case.arrays(tasks)
    tolerance = {"float32": 1e-6, "tf32": 2e-3, "bf16": 1e-2, "f16": 2e-3}[case.precision]
    tolerance = max(tolerance, {"f32": 0.0, "f16": 1e-3, "bf16": 8e-3}[case.element])
    y, want = product(case, x, w, tasks).astype(np.float64), case.want(x, w)
    assert np.abs(y - want).max() <= tolerance * np.abs(want).max()


@pytest.mark.parametrize("variant", ["64x64_sliced", "64x32_sliced", "64x128_fed"])
@pytest.mark.parametrize(
    "case",
    [
        Case(70, 225, 90),
        Case(65, 40, 130, True),
        # Of one stage a group has none.
        Case(9, 30, 20),
        Case(19, 33, 71, precision="tf32"),
        Case(66, 330, 20, True, "bf16"),
        Case(20, 264, 72, False, "float32", "bf16"),
        Case(70, 225, 90, terms=SCALED),
        Case(9, 64, 20, True, terms=SCALED),
    ],
    ids=str,
)
def test_groups_that_share_a_tile_have_all_its_stages(case: Case, variant: str) -> None:
    x, w = case.arrays(7)
    tolerance = {"float32": 1e-6, "tf32": 2e-3, "bf16": 1e-2}[case.precision]
    tolerance = max(tolerance, {"f32": 0.0, "bf16": 8e-3}[case.element])
    y, want = product(case, x, w, 2, variant).astype(np.float64), case.want(x, w)
    assert np.abs(y - want).max() <= tolerance * np.abs(want).max()


@pytest.mark.parametrize(
    ("variant", "case", "ranks"),
    [
        # Two tiles, one behind the other; an odd number of stages.
        ("64x64_by2", Case(70, 140, 20), 2),
        ("64x64_by2", Case(19, 170, 35, True), 2),
        ("64x64_by4", Case(20, 400, 30), 4),
        ("64x64_by4", Case(9, 780, 20, True, "bf16"), 4),
        ("64x32_by2", Case(19, 270, 40, False, "float32", "bf16"), 2),
        ("64x64_by2", Case(70, 270, 20, terms=SCALED), 2),
        ("64x64_by4", Case(20, 900, 30, True, terms=SCALED), 4),
        # In the persistent kernel a block has a tile of its own.
        ("64x64_by4", Case(20, 400, 30), 1),
    ],
    ids=str,
)
def test_blocks_of_a_cluster_share_a_tile(variant: str, case: Case, ranks: int) -> None:
    x, w = case.arrays(8)
    tolerance = {"float32": 1e-6, "bf16": 1e-2}[case.precision]
    tolerance = max(tolerance, {"f32": 0.0, "bf16": 8e-3}[case.element])
    y = product(case, x, w, 1, variant, ranks).astype(np.float64)
    want = case.want(x, w)
    assert np.abs(y - want).max() <= tolerance * np.abs(want).max()


@pytest.mark.parametrize("grid", [[3, 1], [1, 3]], ids=str)
@pytest.mark.parametrize("vector", [0, 1])
def test_an_rtask_stores_its_own_elements_alone(grid: list[int], vector: int) -> None:
    """Tiles begin at multiples of eight, rTasks anywhere."""
    case = Case(28, 32, 44, precision="bf16")
    ops, (x, w) = roperators(case, PACK), case.arrays(2)
    known = {a.shape: a for a in (x, w, np.zeros(case.n, np.float32))}
    for name in ("pack_0", "pack_1"):
        made = pack(ops[name], known[shape(ops[name].body.block.args[0])], 1)
        known[made.shape] = made
    stored = np.zeros((case.m, case.n), np.int64)
    for task in range(3):
        y = np.full((case.m, case.n), np.nan, np.float32)
        arrays = [known[shape(a)] for a in ops["gemm_0"].body.block.args]

        def parameters(root: Any) -> Any:
            return {**product_packed.parameters_of(SMALL, root), "VECTOR": vector}

        run(ops["gemm_0"], "product.packed64x64", parameters, [*arrays, y], grid, task)
        stored += ~np.isnan(y)
    assert (stored == 1).all()


@pytest.mark.parametrize(
    ("variant", "case", "ranks"),
    [
        ("64x64", Case(24, 40, 32), 1),
        ("64x64_sliced", Case(24, 40, 32), 1),
        ("64x64_by2", Case(24, 140, 32), 2),
        ("64x128_fed", Case(24, 140, 32), 1),
        ("64x128_fed", Case(24, 300, 32, terms=SCALED), 1),
        ("64x64", Case(24, 100, 32, terms=SCALED), 1),
        ("64x64_sliced", Case(24, 100, 32, terms=SCALED), 1),
        ("64x64_by2", Case(24, 300, 32, terms=SCALED), 2),
    ],
    ids=str,
)
def test_what_parts_do_not_hold_is_summed_from_the_operands(
    variant: str, case: Case, ranks: int
) -> None:
    x, w = case.arrays(0)
    x[3, 5], x[7, 1], x[9, 2], x[11, 3] = np.inf, -np.inf, np.nan, np.finfo(np.float32).max
    x[13], w[:, 17] = 1e-42, 1e30
    y = product(case, x, w, 1, variant, ranks)
    with np.errstate(all="ignore"):
        want = np.maximum(x.astype(np.float64) @ w.astype(np.float64), 0).astype(np.float32)
    np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-4)


WEIGHTS = np.random.default_rng(5).standard_normal((40, 24)).astype(np.float32)


def two_products(shape: tuple[int, ...], weights: Any) -> Any:
    """x times constants, and their result times others."""
    more = np.random.default_rng(6).standard_normal((weights.shape[1], 17)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("MatMul", ["h", "v"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    ends.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, (*shape[:-1], 17)))
    arrays = [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(more, "v")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], arrays)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("shape", [(19, 40), (3, 5, 40)])
def test_constants_are_packed_by_the_pass_and_no_value_changes(shape: tuple[int, ...]) -> None:
    imported = read_model(two_products(shape, WEIGHTS), "float32")
    ctx = IrkitContext(weights=imported.weights)
    register_dialects(ctx)
    for level in ("graph", "tensor"):
        run_level(ctx, imported.module, level, "h200")
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    text = 'form-roperators,pack-products{device="h200" always=true}'
    want = run_module(imported.module, imported.weights, [x])
    PipelineRunner(ctx).run(imported.module, build_pipeline(text, all_passes()))
    # Both products, by the terms of x and of what the first one gives.
    assert str(imported.module).count("task.launch @pack_") == 2
    assert str(imported.module).count("te.prepacked") == 4
    # The interpreter holds packed terms to their operands.
    np.testing.assert_array_equal(run_module(imported.module, imported.weights, [x])[0], want[0])


@pytest.mark.parametrize("by_k", [True, False])
def test_a_part_of_an_operand_is_held_to_its_packed_terms(by_k: bool) -> None:
    """As a task reads them: rows that are read, terms that are read, and all that is packed."""
    shape = (20, 40) if by_k else (40, 20)
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    right = packed(x, "float32", 40, by_k)
    terms, types = f"terms = {int(by_k)} : i64", f"tensor<{shape[0]}x{shape[1]}xf32>"
    module = irkit.parse(
        f"""func.func @main(%x: {types}, %p: tensor<2x3x3x8x32xbf16>) -> {types} {{
      %y = te.prepacked %x, %p {{precision = "float32", {terms}, depth = 40 : i64}}
        : ({types}, tensor<2x3x3x8x32xbf16>) -> {types}
      func.return %y : {types}
    }}"""
    )
    read = np.zeros_like(x)
    read[5:11, 8:17] = x[5:11, 8:17]
    np.testing.assert_array_equal(run_module(module, {}, [read, right])[0], read)
    for line in (read[:, 9], read[7]):
        kept = line.copy()
        line *= 1.5
        with pytest.raises(InvalidModelError, match="packed terms are not those of its operand"):
            run_module(module, {}, [read, right])
        line[:] = kept


def test_packed_terms_of_something_else_are_refused() -> None:
    text = """func.func @main(%x: tensor<8x32xf32>, %p: tensor<1x1x1x8x32xf32>) -> tensor<8x32xf32> {
      %y = te.prepacked %x, %p {precision = "tf32", terms = 1 : i64, depth = 32 : i64}
        : (tensor<8x32xf32>, tensor<1x1x1x8x32xf32>) -> tensor<8x32xf32>
      func.return %y : tensor<8x32xf32>
    }"""
    x = np.arange(256, dtype=np.float32).reshape(8, 32)
    right = packed(x, "tf32", 32, True)
    module = irkit.parse(text)
    np.testing.assert_array_equal(run_module(module, {}, [x, right])[0], x)
    wrong = right.copy()
    wrong[0, 0, 0, 3, 7] += 1
    with pytest.raises(InvalidModelError, match="packed terms are not those of its operand"):
        run_module(module, {}, [x, wrong])


@pytest.mark.parametrize(("how", "terms"), [(PACK, 44), (SCALE, 84)])
def test_vectors_are_packed_like_elements(how: str, terms: int) -> None:
    case = Case(20, terms, 24, True)
    x, _ = case.arrays(0)
    ops = roperators(case, how)
    op = next(o for o in ops.values() if shape(o.body.block.args[0]) == x.shape)
    op.vector_bytes = IntegerAttr(16, 64)
    binder = Binder(op, root_of(op), "cuda")
    families.find("pack").bind(binder)
    assert any("load4" in text for text in binder.binding.functions)
    pack(op, x, 2)


@pytest.mark.parametrize("precision", ["float32", SCALED, "tf32", "bf16"])
@pytest.mark.parametrize(
    "variant",
    ["64x32", "64x32_sliced", "64x64_by4", "128x128", "128x256", "64x128_fed"],
)
def test_packed_products_become_cubins_without_spills(variant: str, precision: str) -> None:
    pytest.importorskip("numba_cuda")
    from benchmarks.products import Case as Product
    from benchmarks.products import Job, program
    from irkit.runtime.cuda import compiling, ptx
    from irkit.runtime.cuda.facts import read_facts

    terms = precision if precision == SCALED else ""
    asked = "float32" if terms else precision
    case = Product("test", (256, 1024), (1024, 512))
    made = program(Job(case, asked, "h200", f"product.packed{variant}", terms))
    if made is None:
        # Its sums of one stage would not fit the registers.
        assert (variant, asked) == ("128x256", "float32")
        return
    _, facts = read_facts(made.artifact.source)
    compiled = compiling.compile_module_with_ptx(
        made.artifact.source, facts.entries, facts.threads, "sm_90a"
    )
    assert ptx.warnings(compiled.ptx) == []
    assert "C75" not in compiled.log
    assert "wgmma.mma_async" in compiled.ptx
    # The persistent kernel walks a schedule beside: a few words of that go to memory.
    for name in [n for n in facts.entries if n.startswith("op_")]:
        resources = compiled.resources()[name]
        assert resources["stack"] == resources["spill_stores"] == 0, name
