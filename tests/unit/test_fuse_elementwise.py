"""Fusion keeps the meaning, and leaves as few loop nests as it can."""

from __future__ import annotations

import numpy as np
import pytest
from test_lower_graph_to_tensor import INFO, floats, lower, names
from xdsl.dialects.builtin import f32

from irkit.context import IrkitContext
from irkit.dialects import graph
from irkit.dialects.types import DYNAMIC, tensor
from irkit.frontends.module import GraphBuilder
from irkit.interp.tensor import run_tensor
from irkit.passes.tensor.fuse_elementwise import FuseElementwise


def fuse(b, outputs, inputs):
    """Lower and fuse what `b` built; returns how often each op is left."""
    model = b.finish([(f"y{i}", v) for i, v in enumerate(outputs)], INFO)
    module = lower(model)
    expected = run_tensor(module, model.weights, inputs)
    FuseElementwise().apply(IrkitContext(weights=model.weights), module)
    module.verify()
    for want, got in zip(expected, run_tensor(module, model.weights, inputs), strict=True):
        np.testing.assert_array_equal(got, want)
    once = str(module)
    FuseElementwise().apply(IrkitContext(weights=model.weights), module)
    assert str(module) == once
    found = names(module)
    return {name: found.count(name) for name in found}


def batch(*shapes):
    return GraphBuilder([(f"x{i}", tensor(f32, (DYNAMIC, *s))) for i, s in enumerate(shapes)])


def test_chain_becomes_one():
    b = batch((4,))
    x = b(graph.AddOp, b.inputs[0], b.constant(floats(4)))
    x = b(graph.MulOp, b(graph.ReluOp, x), b.inputs[0])
    x = b(graph.SubOp, b(graph.ExpOp, x), b.constant(floats(1)))
    left = fuse(b, [x], [floats(3, 4)])
    assert left["linalg.generic"] == 1
    assert left["tensor.empty"] == left["tensor.dim"] == 1


def test_second_user_keeps_the_producer():
    b = batch((4,))
    x = b(graph.ExpOp, b.inputs[0])
    assert fuse(b, [b(graph.ReluOp, x), b(graph.NegOp, x)], [floats(3, 4)])["linalg.generic"] == 3


def test_result_keeps_the_producer():
    b = batch((4,))
    x = b(graph.ExpOp, b.inputs[0])
    assert fuse(b, [x, b(graph.NegOp, x)], [floats(3, 4)])["linalg.generic"] == 2


def test_used_twice_by_one():
    b = batch((4,))
    x = b(graph.ExpOp, b.inputs[0])
    assert fuse(b, [b(graph.MulOp, x, x)], [floats(3, 4)])["linalg.generic"] == 1


def test_diamond():
    b = batch((4,))
    x = b(graph.ExpOp, b.inputs[0])
    left = fuse(b, [b(graph.MulOp, b(graph.NegOp, x), b(graph.TanhOp, x))], [floats(3, 4)])
    assert left["linalg.generic"] == 1
    assert left["math.exp"] == 1


def test_arithmetic_is_not_repeated():
    b = batch((1,), (4,))
    x = b(graph.ExpOp, b.inputs[0])
    left = fuse(b, [b(graph.AddOp, x, b.inputs[1])], [floats(3, 1), floats(3, 4)])
    assert left["linalg.generic"] == 2


@pytest.mark.parametrize("users", [1, 2])
def test_copies_go_into_every_user(users):
    b = batch((1, 4), (2, 4))
    x = b(graph.ExpandOp, b.inputs[0], shape=(DYNAMIC, 2, 4))
    x = b(graph.TransposeOp, x, permutation=(0, 2, 1))
    y = b(graph.TransposeOp, b.inputs[1], permutation=(0, 2, 1))
    outputs = [b(op, x, y) for op in (graph.AddOp, graph.SubOp)[:users]]
    left = fuse(b, outputs, [floats(3, 1, 4), floats(3, 2, 4)])
    assert left["linalg.generic"] == users


def test_constant_splat():
    b = batch((4,))
    half = b.constant(np.full((4,), 0.5, np.float32))
    left = fuse(b, [b(graph.MulOp, b.inputs[0], half)], [floats(3, 4)])
    assert left["linalg.generic"] == 1
    assert left["arith.constant"] == 2  # the half, and the number of the batch's dimension


def test_contractions_stay_as_they_are():
    b = batch((4,))
    x = b(graph.ExpOp, b.inputs[0])
    x = b(graph.MatmulOp, x, b.constant(floats(4, 5)))
    x = b(graph.AddOp, x, b.constant(floats(5)))
    assert fuse(b, [b(graph.ReluOp, x)], [floats(3, 4)])["linalg.generic"] == 3


def test_several_results():
    b = batch((3,), (4,), (4,))
    weights = [b.constant(a) for a in (floats(16, 3), floats(16, 4), floats(16))]
    x, h, c = b.inputs
    h, c = b.ops(graph.LstmCellOp, x, h, b(graph.ReluOp, c), *weights)
    left = fuse(b, [b(graph.NegOp, h), c], [floats(2, 3), floats(2, 4), floats(2, 4)])
    # The initial bias, two contractions, the update with the relu, and the negation of h'.
    assert left["linalg.generic"] == 5


def test_reshapes_cancel():
    b = batch((6,))
    x = b(graph.ReshapeOp, b.inputs[0], shape=(DYNAMIC, 2, 3))
    x = b(graph.ReshapeOp, x, shape=(DYNAMIC, 6))
    left = fuse(b, [b(graph.ReluOp, x)], [floats(3, 6)])
    assert not {"tensor.expand_shape", "tensor.collapse_shape"} & set(left)


def test_reshape_that_changes_the_shape_stays():
    b = batch((6,))
    x = b(graph.ReshapeOp, b.inputs[0], shape=(DYNAMIC, 2, 3))
    x = b(graph.ReshapeOp, x, shape=(DYNAMIC, 3, 2))
    assert "tensor.expand_shape" in fuse(b, [x], [floats(3, 6)])


def test_bodies_end_somewhere():
    """A chain of hundreds of ops is cut: each body is made anew with each op that it takes."""
    b = batch((4,))
    x = b.inputs[0]
    for _ in range(600):
        x = b(graph.ExpOp, b(graph.NegOp, x))
    assert 4 < fuse(b, [x], [floats(3, 4)])["linalg.generic"] < 9
