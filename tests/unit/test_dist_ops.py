"""Collective ops over a simulated group, and the passes of functions that have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from irkit.context import IrkitContext
from irkit.driver.files.parsing import parse_module
from irkit.driver.pipelines.runner import PipelineRunner
from irkit.driver.pipelines.specification import build_pipeline
from irkit.driver.registry import all_passes, register_dialects
from irkit.errors import InvalidInputError, UnsupportedError
from irkit.interp import run_module
from irkit.interp.group import run_group

GRADIENTS = """
func.func @main(%w: tensor<8xf64>, %v: tensor<2x3xf64>, %x: tensor<8xf64>)
    -> (tensor<f64>, tensor<i64>, tensor<8xf64>, tensor<2x3xf64>)
    attributes {irkit.state = array<i64: 0, 2, 1, 3>} {
  %y = graph.mul %w, %x : (tensor<8xf64>, tensor<8xf64>) -> tensor<8xf64>
  %l = graph.reduce %y {kind = "sum", axes = array<i64: 0>, keepdims = false} : (tensor<8xf64>) -> tensor<f64>
  %gv = graph.mul %v, %l : (tensor<2x3xf64>, tensor<f64>) -> tensor<2x3xf64>
  %gw = graph.tanh %y : (tensor<8xf64>) -> tensor<8xf64>
  %a = dist.all_reduce %gw {kind = "mean"} : (tensor<8xf64>) -> tensor<8xf64>
  %b = dist.all_reduce %gv {kind = "mean"} : (tensor<2x3xf64>) -> tensor<2x3xf64>
  %m = dist.all_reduce %l {kind = "max"} : (tensor<f64>) -> tensor<f64>
  %n = dist.rank : tensor<i64>
  %w2 = graph.sub %w, %a : (tensor<8xf64>, tensor<8xf64>) -> tensor<8xf64>
  %v2 = graph.sub %v, %b : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  func.return %m, %n, %w2, %v2 : tensor<f64>, tensor<i64>, tensor<8xf64>, tensor<2x3xf64>
}
"""


def parsed(text: str) -> tuple[IrkitContext, ModuleOp]:
    ctx = IrkitContext()
    register_dialects(ctx)
    return ctx, parse_module(ctx, text, "test")


def one(op: str, result: str) -> str:
    return (
        f"func.func @main(%x: tensor<3xf32>) -> {result} {{\n"
        f"  %y = {op} : (tensor<3xf32>) -> {result}\n  func.return %y : {result}\n}}"
    )


def group(text: str, *inputs: Any) -> list[Any]:
    ctx, module = parsed(text)
    return [found for (found,) in run_group(module, ctx.weights, [[x] for x in inputs])]


def ranks(count: int) -> list[Any]:
    rng = np.random.default_rng(count)
    return [rng.standard_normal(3).astype(np.float32) for _ in range(count)]


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("kind", ["sum", "mean", "max", "min"])
def test_reductions(count: int, kind: str) -> None:
    given = ranks(count)
    found = group(one(f'dist.all_reduce %x {{kind = "{kind}"}}', "tensor<3xf32>"), *given)
    wanted = getattr(np.stack(given), kind)(axis=0)
    for array in found:
        assert array.tobytes() == found[0].tobytes()
        np.testing.assert_allclose(array, wanted, rtol=1e-6, atol=1e-6)


def test_what_is_gathered_and_broadcast() -> None:
    given = ranks(3)
    for array in group(one("dist.all_gather %x {size = 3 : i64}", "tensor<3x3xf32>"), *given):
        np.testing.assert_array_equal(array, np.stack(given))
    for array in group(one("dist.broadcast %x {root = 2 : i64}", "tensor<3xf32>"), *given):
        np.testing.assert_array_equal(array, given[2])


def test_a_rank_alone_is_a_group_of_one() -> None:
    ctx, module = parsed(one('dist.all_reduce %x {kind = "mean"}', "tensor<3xf32>"))
    (x,) = ranks(1)
    np.testing.assert_array_equal(run_module(module, ctx.weights, [x])[0], x)


@pytest.mark.parametrize(
    ("op", "result", "text"),
    [
        ("dist.all_gather %x {size = 3 : i64}", "tensor<3x3xf32>", "of 3 ranks in a group of 2"),
        ("dist.broadcast %x {root = 2 : i64}", "tensor<3xf32>", "from rank 2 in a group of 2"),
    ],
)
def test_another_number_of_ranks_is_refused(op: str, result: str, text: str) -> None:
    with pytest.raises(InvalidInputError, match=text):
        group(one(op, result), *ranks(2))


def test_shapes_that_differ_are_refused() -> None:
    ctx, module = parsed(
        one('dist.all_reduce %x {kind = "sum"}', "tensor<3xf32>").replace("3xf32", "?xf32")
    )
    inputs = [[np.ones(n, np.float32)] for n in (3, 4)]
    with pytest.raises(InvalidInputError, match=r"rank 0: float32\[3\], rank 1: float32\[4\]"):
        run_group(module, ctx.weights, inputs)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("nbytes", [1, 100, 1000])
def test_passes_keep_what_a_group_computes(size: int, nbytes: int) -> None:
    rng = np.random.default_rng(size)
    shared = [rng.standard_normal(8), rng.standard_normal((2, 3))]
    inputs = [[*shared, rng.standard_normal(8)] for _ in range(size)]
    ctx, module = parsed(GRADIENTS)
    before = run_group(module, ctx.weights, inputs)
    for rank in range(size):
        ctx, module = parsed(GRADIENTS)
        text = (
            f"place-in-group{{rank={rank} size={size}}},canonicalize,cse,"
            f"bucket-all-reduces{{bytes={nbytes}}},split-at-collectives,canonicalize"
        )
        PipelineRunner(ctx).run(module, build_pipeline(text, all_passes()))
        after = run_group(module, ctx.weights, inputs)
        for mine, wanted in zip(after[rank], before[rank], strict=True):
            np.testing.assert_allclose(mine, wanted, rtol=1e-14)


def test_other_levels_refuse_them_by_name() -> None:
    import irkit

    with pytest.raises(UnsupportedError, match=r"dist\.all_reduce"):
        irkit.compile(
            irkit.parse(one('dist.all_reduce %x {kind = "sum"}', "tensor<3xf32>")), target="cpu"
        )
