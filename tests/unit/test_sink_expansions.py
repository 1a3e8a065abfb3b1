"""sink-expansions: work behind a product under another shape gives the same bits before that reshape."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.tensor import ExpandShapeOp

import irkit
from irkit.context import IrkitContext
from irkit.dialects.task import ROperatorOp
from irkit.dialects.types import DYNAMIC
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.interp.graph import run_graph
from irkit.interp.schedule import run_schedule
from irkit.interp.tensor import run_tensor
from irkit.lower.graph_to_tensor.convert import ConvertGraphToTensor
from irkit.passes.tensor.sink_expansions import SinkExpansions
from irkit.weights import WeightStore

OPS = ("add", "sub", "mul", "max")


def tensor(shape: list[int]) -> str:
    return f"tensor<{''.join(f'{s}x' for s in shape)}f32>"


def program(seed: int) -> tuple[str, list[list[int]], bool]:
    """A product whose rows are split, and ops with operands that spread, some of them by part of a split
    dimension; the shapes of its arguments; whether any does that."""
    draw = random.Random(seed)
    split = [draw.choice([1, 2, 3, 5]) for _ in range(draw.randint(2, 3))]
    rows, terms, columns = math.prod(split), draw.randint(2, 6), draw.randint(2, 7)
    shape, product = [*split, columns], tensor([rows, columns])
    shapes = [[rows, terms], [terms, columns]]
    lines = [
        f"%p = graph.matmul %x0, %x1 : ({tensor(shapes[0])}, {tensor(shapes[1])}) -> {product}",
        f"%s = graph.reshape %p {{shape = array<i64: {str(shape)[1:-1]}>}} : ({product}) -> {tensor(shape)}",
    ]
    value, parts = "%s", False
    for n in range(draw.randint(1, 3)):
        other = draw.choice(
            [shape, [columns], [1], [1] * len(split) + [columns], [*split[1:], columns]]
        )
        parts |= math.prod(other) not in (math.prod(shape), columns, 1)
        shapes.append(other)
        operands = draw.sample([(value, shape), (f"%x{len(shapes) - 1}", other)], 2)
        names, types = (
            ", ".join(p) for p in zip(*((v, tensor(t)) for v, t in operands), strict=True)
        )
        lines.append(f"%v{n} = graph.{draw.choice(OPS)} {names} : ({types}) -> {tensor(shape)}")
        value = f"%v{n}"
    arguments = ", ".join(f"%x{n}: {tensor(s)}" for n, s in enumerate(shapes))
    lines.append(f"func.return {value} : {tensor(shape)}")
    text = f"func.func @main({arguments}) -> {tensor(shape)} {{ {' '.join(lines)} }}"
    return text, shapes, parts


def lowered(text: str) -> tuple[IrkitContext, ModuleOp]:
    """The program as ops of the tensor level."""
    ctx, module = IrkitContext(weights=WeightStore()), irkit.parse(text)
    ConvertGraphToTensor().apply(ctx, module)
    return ctx, module


def expansions_before_work(module: ModuleOp) -> int:
    """Reshapes that something is computed of."""
    users = (
        use.operation
        for op in module.walk()
        if isinstance(op, ExpandShapeOp) and isinstance(op.src.owner, linalg.GenericOp)
        for use in op.result.uses
    )
    return sum(isinstance(user, linalg.GenericOp) for user in users)


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed: int) -> None:
    text, shapes, parts = program(seed)
    arrays = [np.random.default_rng(seed).standard_normal(s, np.float32) for s in shapes]
    ctx, module = lowered(text)
    (before,) = run_tensor(module, ctx.weights, arrays)
    SinkExpansions().apply(ctx, module)
    module.verify()
    (after,) = run_tensor(module, ctx.weights, arrays)
    np.testing.assert_array_equal(after, before)
    assert parts or not expansions_before_work(module)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("device", ["test4", "h200"])
def test_whole_programs(seed: int, device: str) -> None:
    """One rOperator does what is not read by parts; the schedule gives the graph's answer."""
    text, shapes, parts = program(seed)
    arrays = [np.random.default_rng(seed).standard_normal(s, np.float32) for s in shapes]
    module = irkit.parse(text)
    (wanted,) = run_graph(module, WeightStore(), arrays)
    ctx, module = IrkitContext(weights=WeightStore()), irkit.parse(text)
    register_dialects(ctx)
    for level in ("graph", "tensor", "task", "schedule"):
        run_level(ctx, module, level, device)
    (got,) = run_schedule(module, ctx.weights, arrays)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
    assert parts or sum(isinstance(op, ROperatorOp) for op in module.walk()) == 1


@pytest.mark.parametrize("rows", [1, 3, 8])
def test_columns_are_split_of_an_open_batch(rows: int) -> None:
    arguments = "%x: tensor<?x4xf32>, %w: tensor<4x6xf32>, %o: tensor<?x2x3xf32>"
    text = f"""func.func @main({arguments}) -> tensor<?x2x3xf32> {{
      %p = graph.matmul %x, %w : (tensor<?x4xf32>, tensor<4x6xf32>) -> tensor<?x6xf32>
      %s = graph.reshape %p {{shape = array<i64: {DYNAMIC}, 2, 3>}} : (tensor<?x6xf32>) -> tensor<?x2x3xf32>
      %y = graph.mul %s, %o : (tensor<?x2x3xf32>, tensor<?x2x3xf32>) -> tensor<?x2x3xf32>
      func.return %y : tensor<?x2x3xf32>
    }}"""
    shapes = [[rows, 4], [4, 6], [rows, 2, 3]]
    arrays = [np.random.default_rng(rows).standard_normal(s, np.float32) for s in shapes]
    ctx, module = lowered(text)
    (before,) = run_tensor(module, ctx.weights, arrays)
    SinkExpansions().apply(ctx, module)
    module.verify()
    assert not expansions_before_work(module)
    (after,) = run_tensor(module, ctx.weights, arrays)
    np.testing.assert_array_equal(after, before)
