"""Elements of rows and sums along them as one op: on both targets, and what of them stays apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulated_op import roperator, run_by
from row_programs import row_program

import irkit
from irkit.context import IrkitContext
from irkit.dialects import te
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.interp.tensor import run_tensor
from irkit.passes.tensor.fuse_rows import fuse_block
from irkit.rkernels import registry
from irkit.rkernels.legality import root_of
from irkit.weights import WeightStore

VARIANTS = ("thread", "lanes", "warp", "block", "long")


def tensor_level(text: str, device: str = "h200") -> Any:
    """A graph at the tensor level."""
    ctx, module = IrkitContext(), irkit.parse(text)
    register_dialects(ctx)
    for level in ("graph", "tensor"):
        run_level(ctx, module, level, device)
    return module


def rows_of(module: Any) -> list[te.RowwiseOp]:
    return [op for op in module.walk() if isinstance(op, te.RowwiseOp)]


@pytest.mark.parametrize("seed", range(16))
def test_random_rows_on_a_gpu(seed: int) -> None:
    """By every rKernel that may compute them."""
    kind = "float64" if seed % 6 == 5 else "float32"
    columns = (300, 1100, 3, 64)[seed % 4] if seed % 3 == 0 else None
    program = row_program(seed, columns, kind)
    op, order = roperator(program.text)
    assert root_of(op).family == "rowwise"
    arrays, tried = [program.inputs[n] for n in order], 0
    for variant in VARIANTS:
        rkernel = registry.find("cuda", f"rowwise.{variant}")
        if variant != "long" and not rkernel.legal(root_of(op)):
            continue
        threads = rkernel.threads or 64
        for blocks, vector, tasks in ((1, True, 1), (2, False, 2)):
            got = np.full(program.want.shape, 77, kind)
            run_by(op, rkernel.name, arrays, [got], tasks, blocks, vector, threads)
            np.testing.assert_allclose(got, program.want, rtol=3e-5)
            tried += 1
    assert tried >= 4


@pytest.mark.parametrize("many", [2, 4])
def test_warps_with_several_rows(many: int) -> None:
    for seed in (3, 4):
        program = row_program(seed, 64)
        op, order = roperator(program.text)
        got = np.full(program.want.shape, 77, np.float32)
        arrays = [program.inputs[n] for n in order]
        run_by(op, "rowwise.warp", arrays, [got], 2, ROWS=many)
        np.testing.assert_allclose(got, program.want, rtol=3e-5)


@pytest.mark.parametrize("columns", [5, 12, 16, 20, 64])
def test_lanes_of_a_warp_have_rows_of_their_own(columns: int) -> None:
    """Some of which end before the others'."""
    program = row_program(columns, columns)
    op, order = roperator(program.text)
    lanes = registry.find("cuda", "rowwise.lanes").literals(root_of(op))["LANES"]
    assert lanes in (4, 8, 16)
    arrays = [program.inputs[n] for n in order]
    for tasks, many in ((1, 1), (2, 2), (3, 3)):
        got = np.full(program.want.shape, 77, np.float32)
        run_by(op, "rowwise.lanes", arrays, [got], tasks, ROWS=many)
        np.testing.assert_allclose(got, program.want, rtol=3e-5)


@pytest.mark.parametrize("seed", range(40))
def test_random_rows_mean_the_same_and_run_on_a_cpu(seed: int) -> None:
    """What the interpreter and a CPU have of the op that a GPU's plan makes."""
    kind = "float64" if seed % 4 == 3 else "float32"
    program = row_program(100 + seed, kind=kind)
    module = tensor_level(program.text)
    assert len(rows_of(module)) >= 1
    (got,) = run_tensor(module, WeightStore(), program.inputs)
    np.testing.assert_allclose(got, program.want, rtol=3e-5)
    if seed % 4 == 0:
        (got,) = irkit.compile(module, target="cpu", cache=False).run(program.inputs)
        np.testing.assert_allclose(got, program.want, rtol=3e-5)


@pytest.mark.parametrize("variant", ["lanes", "warp", "thread", "block", "long"])
def test_a_nan_reaches_its_row_alone(variant: str) -> None:
    """By a largest number, by a smallest one, and by a sum."""
    for kind in ("max", "min", "sum"):
        op, _ = roperator(f"""func.func @main(%x: tensor<6x30xf32>) -> tensor<6x30xf32> {{
          %s = graph.reduce %x {{kind = "{kind}", axes = array<i64: 1>, keepdims = true}}
            : (tensor<6x30xf32>) -> tensor<6x1xf32>
          %y = graph.sub %x, %s : (tensor<6x30xf32>, tensor<6x1xf32>) -> tensor<6x30xf32>
          func.return %y : tensor<6x30xf32>
        }}""")
        x = np.random.default_rng(0).standard_normal((6, 30)).astype(np.float32)
        x[2, 17], x[4, 0] = np.nan, np.inf
        function = {"max": np.max, "min": np.min, "sum": np.sum}[kind]
        with np.errstate(invalid="ignore"):
            want = x - function(x, axis=1, keepdims=True)
        got, threads = np.full_like(x, 77), 256 if variant in ("block", "long") else 64
        run_by(op, f"rowwise.{variant}", [x], [got], threads=threads)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
        assert np.isnan(got[2]).all()
        assert not np.isnan(got[[0, 1, 3, 5]]).any()


@pytest.mark.parametrize("variant", ["lanes", "warp", "thread", "block", "long"])
def test_a_number_for_each_row(variant: str) -> None:
    """The variance of a row: two sums, of which one needs the other."""
    op, _ = roperator("""func.func @main(%x: tensor<5x28xf64>) -> tensor<5xf64> {
      %m = graph.reduce %x {kind = "mean", axes = array<i64: 1>, keepdims = true}
        : (tensor<5x28xf64>) -> tensor<5x1xf64>
      %d = graph.sub %x, %m : (tensor<5x28xf64>, tensor<5x1xf64>) -> tensor<5x28xf64>
      %s = graph.mul %d, %d : (tensor<5x28xf64>, tensor<5x28xf64>) -> tensor<5x28xf64>
      %y = graph.reduce %s {kind = "mean", axes = array<i64: 1>, keepdims = false}
        : (tensor<5x28xf64>) -> tensor<5xf64>
      func.return %y : tensor<5xf64>
    }""")
    assert root_of(op).family == "row_sums"
    x = np.random.default_rng(0).standard_normal((5, 28))
    for tasks, blocks in ((1, 1), (3, 2)):
        got, threads = np.full(5, 77.0), 256 if variant in ("block", "long") else 64
        run_by(op, f"row_sums.{variant}", [x], [got], tasks, blocks, threads=threads)
        np.testing.assert_allclose(got, x.var(axis=1))


def test_rows_of_any_batch() -> None:
    """A number of rows that is known when the program runs."""
    module = tensor_level("""func.func @main(%x: tensor<?x12xf32>) -> tensor<?x12xf32> {
      %s = graph.reduce %x {kind = "sum", axes = array<i64: 1>, keepdims = true}
        : (tensor<?x12xf32>) -> tensor<?x1xf32>
      %y = graph.div %x, %s : (tensor<?x12xf32>, tensor<?x1xf32>) -> tensor<?x12xf32>
      func.return %y : tensor<?x12xf32>
    }""")
    assert len(rows_of(module)) == 1
    program = irkit.compile(module, target="cpu", cache=False)
    for rows in (1, 7, 100):
        x = np.random.default_rng(rows).uniform(1, 2, (rows, 12)).astype(np.float32)
        (got,) = program.run([x])
        np.testing.assert_allclose(got, x / x.sum(1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("variant", ["lanes", "warp", "thread", "block", "long"])
def test_results_of_other_elements(variant: str) -> None:
    """Truths, whole numbers, and 16-bit floats, whose sums are of float32."""
    x = np.random.default_rng(0).uniform(0.5, 1.5, (6, 20)).astype(np.float32)
    half = x.astype(np.float16)
    wide = half.astype(np.float32)
    cases = {
        ("f32", "i1"): (
            x,
            '%y = graph.compare %x, %s {predicate = "gt"}',
            x > x.sum(1)[:, None] / 20,
        ),
        ("f16", "f16"): (half, "%y = graph.div %x, %s", wide / wide.sum(1)[:, None]),
    }
    for (given, made), (rows, text, want) in cases.items():
        kind, of, over = (
            ("mean" if made == "i1" else "sum"),
            f"tensor<6x20x{given}>",
            f"tensor<6x1x{given}>",
        )
        op, _ = roperator(f"""func.func @main(%x: {of}) -> tensor<6x20x{made}> {{
          %s = graph.reduce %x {{kind = "{kind}", axes = array<i64: 1>, keepdims = true}} : ({of}) -> {over}
          {text} : ({of}, {over}) -> tensor<6x20x{made}>
          func.return %y : tensor<6x20x{made}>
        }}""")
        threads = 256 if variant in ("block", "long") else 64
        for vector in (True, False):
            got = np.full((6, 20), 77, np.uint8 if made == "i1" else rows.dtype)
            run_by(op, f"rowwise.{variant}", [rows], [got], 2, 1, vector, threads)
            np.testing.assert_allclose(got, want, rtol=2e-3)


def test_what_is_read_of_other_rows_is_no_part_of_a_row() -> None:
    """A sum that is read by row and by column, and elements that are read in their place and in another's."""
    text = """
#all = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>
#row = affine_map<(d0, d1) -> (d0)>
#column = affine_map<(d0, d1) -> (d1)>
func.func @main(%x: tensor<6x6xf64>) -> tensor<6x6xf64> {
  %zero = arith.constant 0.0 : f64
  %e = tensor.empty() : tensor<6xf64>
  %f = tensor.empty() : tensor<6x6xf64>
  %p = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<6x6xf64>) outs(%f : tensor<6x6xf64>) {
  ^bb0(%a: f64, %o: f64):
    %t = math.exp %a : f64
    linalg.yield %t : f64
  } -> tensor<6x6xf64>
  %z = linalg.fill ins(%zero : f64) outs(%e : tensor<6xf64>) -> tensor<6xf64>
  %s = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "reduction"]}
      ins(%p : tensor<6x6xf64>) outs(%z : tensor<6xf64>) {
  ^bb0(%a: f64, %o: f64):
    %t = arith.addf %o, %a : f64
    linalg.yield %t : f64
  } -> tensor<6xf64>
  %y = linalg.generic {indexing_maps = [#all, #turned, #row, #column, #all],
        iterator_types = ["parallel", "parallel"]}
      ins(%p, %p, %s, %s : tensor<6x6xf64>, tensor<6x6xf64>, tensor<6xf64>, tensor<6xf64>)
      outs(%f : tensor<6x6xf64>) {
  ^bb0(%a: f64, %b: f64, %c: f64, %d: f64, %o: f64):
    %t = arith.divf %a, %c : f64
    %u = arith.divf %b, %d : f64
    %v = arith.subf %t, %u : f64
    %w = arith.addf %v, %d : f64
    linalg.yield %w : f64
  } -> tensor<6x6xf64>
  return %y : tensor<6x6xf64>
}
"""
    module = irkit.parse(text)
    (function,) = (op for op in module.ops if op.name == "func.func")
    fuse_block(function.body.block)
    assert len(rows_of(module)) == 1
    x = np.random.default_rng(0).standard_normal((6, 6))
    p = np.exp(x)
    s = p.sum(1)
    (got,) = run_tensor(module, WeightStore(), [x])
    np.testing.assert_allclose(got, p / s[:, None] - p.T / s + s)
