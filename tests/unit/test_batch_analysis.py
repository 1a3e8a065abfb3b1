"""The batch followed through programs: what the analysis says of rows holds when one row is changed."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import f32, i64

import irkit
from irkit.dialects import graph as g
from irkit.dialects.graph.batch import UNKNOWN, BatchDim, analyse
from irkit.dialects.graph.batch.rules import RULES
from irkit.dialects.graph.semantics import SEMANTICS
from irkit.dialects.types import DYNAMIC, numpy_dtype, tensor, tensor_type
from irkit.frontends.module import GraphBuilder, ModelInfo
from irkit.interp.graph import run_graph
from irkit.weights import WeightStore


def test_every_op_has_a_rule():
    assert RULES.keys() == SEMANTICS.keys()


N = DYNAMIC
FALSE = {"trans_a": False, "trans_b": False}
SCALE = {"alpha": 1.0, "beta": 1.0}
WINDOW = {"strides": [1], "pads": [1, 1], "dilations": [1], "group": 1}


def function(shapes, body):
    """A module of one function that returns all that `body(emit, *arguments)` emits."""
    types = [tensor(i64 if s[:1] == ("i64",) else f32, s[s[:1] == ("i64",) :]) for s in shapes]
    builder = GraphBuilder([(f"x{i}", t) for i, t in enumerate(types)])
    made = []

    def emit(op, *operands, **props):
        results = builder.ops(op, *operands, **props)
        made.extend((f"y{len(made) + i}", r) for i, r in enumerate(results))
        return results[0]

    body(emit, *builder.inputs)
    info = ModelInfo("network", builder.names, tuple(n for n, _ in made))
    module = builder.finish(made, info).module
    return module, next(iter(module.ops))


def _heads(emit, x):
    a = emit(g.ReshapeOp, x, shape=[6, N, 4])
    b = emit(g.TransposeOp, a, permutation=[1, 0, 2])
    c = emit(g.TransposeOp, b, permutation=[0, 2, 1])
    d = emit(g.MatmulOp, b, c)
    e = emit(g.SoftmaxOp, d, axis=2)
    emit(g.ReshapeOp, e, shape=[N, 2, 36])


def _steps(emit, x, w):
    a = emit(g.ReshapeOp, x, shape=[N, 4])
    b = emit(g.GemmOp, a, w, **FALSE, **SCALE)
    c = emit(g.ReshapeOp, b, shape=[5, N, 3])
    emit(g.ReduceOp, c, kind="sum", axes=[0], keepdims=False)
    emit(g.SliceOp, c, offsets=[1, 0, 0], sizes=[2, N, 3], strides=[2, 1, 1])
    emit(g.CumSumOp, c, axis=0, exclusive=False, reverse=False)
    emit(g.ArgmaxOp, c, axis=0, keepdims=True)


def _windows(emit, x, y):
    a = emit(g.ReshapeOp, x, shape=[N, 2, 2, 2, 2, 3])
    b = emit(g.TransposeOp, a, permutation=[0, 1, 3, 2, 4, 5])
    c = emit(g.ReshapeOp, b, shape=[N, 4, 3])
    d = emit(g.ReshapeOp, c, shape=[N, 4, 4, 3])
    emit(g.AddOp, d, y)


def _token(emit, x, t):
    a = emit(g.ExpandOp, t, x, shape=[N, 1, 4])
    b = emit(g.ConcatOp, a, x, axis=1)
    c = emit(g.TransposeOp, b, permutation=[1, 2, 0])
    emit(g.ConcatOp, c, c, axis=2)
    emit(g.ExpandOp, c, shape=[2, 4, 4, N])


def _looked_up(emit, i, t, x, j):
    emit(g.GatherOp, t, i, axis=0)
    emit(g.GatherOp, x, j, axis=0)
    emit(g.GatherOp, x, j, axis=2)


# Programs in which no rows mix, with where the batch is in each result.
APART = {
    "heads folded into the batch": (
        [(6, N, 8)],
        _heads,
        [(1, 1, 2), (0, 1, 2), (0, 1, 2), (0, 1, 2), (0, 1, 2), (0, 1, 1)],
    ),
    "steps before the batch": (
        [(5, N, 4), (4, 3)],
        _steps,
        [(0, 5, 1), (0, 5, 1), (1, 1, 1), (0, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1)],
    ),
    "windows of an image": (
        [(N, 4, 4, 3), (4, 4, 3)],
        _windows,
        [(0, 1, 1), (0, 1, 1), (0, 1, 4), (0, 1, 1), (0, 1, 1)],
    ),
    "a class token": (
        [(N, 3, 4), (1, 1, 4)],
        _token,
        [(0, 1, 1), (0, 1, 1), (2, 1, 1), (2, 2, 1), (3, 1, 1)],
    ),
    "what is looked up": (
        [("i64", 5, N), (7, 4), (3, N, 6), ("i64", 2, 2)],
        _looked_up,
        [(1, 1, 1), (2, 1, 1), (1, 1, 1)],
    ),
    "a layer of cells": (
        [(3, N, 2), (N, 2), (2, 2), (2,)],
        lambda emit, x, h, w, b: emit(g.RnnOp, x, h, w, w, b),
        [(1, 1, 1), (0, 1, 1)],
    ),
}


def inputs_of(main, rows, seed=0):
    generator = np.random.default_rng(seed)
    found = []
    for argument in main.body.block.args:
        t = tensor_type(argument)
        shape = [rows if s == DYNAMIC else s for s in t.get_shape()]
        dtype = numpy_dtype(t.element_type)
        numbers = (
            generator.integers(0, 3, shape) if dtype.kind == "i" else generator.normal(size=shape)
        )
        found.append(numbers.astype(dtype))
    return found


def with_other_row(main, inputs, row, seed=9):
    """The inputs with other numbers in one row."""
    others = inputs_of(main, 3, seed)
    changed = [x.copy() for x in inputs]
    for argument, array, other in zip(main.body.block.args, changed, others, strict=True):
        shape = tensor_type(argument).get_shape()
        if DYNAMIC in shape:
            at = (slice(None),) * shape.index(DYNAMIC) + (row,)
            array[at] = other[at]
    return changed


def rows_of(array, dim, rows):
    """Row by row, what a result holds."""
    before, behind = array.shape[: dim.axis], array.shape[dim.axis + 1 :]
    split = array.reshape(*before, dim.outer, rows, dim.inner, *behind)
    return np.moveaxis(split, dim.axis + 1, 0)


@pytest.mark.parametrize("name", APART)
def test_where_the_batch_is(name):
    shapes, body, places = APART[name]
    module, main = function(shapes, body)
    found = analyse(main)
    assert not found.mixing
    results = [r for op in main.body.block.ops for r in op.results]
    dims = [found.of(r) for r in results]
    assert dims == [BatchDim(*place) for place in places]
    inputs = inputs_of(main, 3)
    before = run_graph(module, WeightStore(), inputs)
    after = run_graph(module, WeightStore(), with_other_row(main, inputs, 1))
    for x, y, dim in zip(before, after, dims, strict=True):
        same = [
            np.array_equal(p, q)
            for p, q in zip(rows_of(x, dim, 3), rows_of(y, dim, 3), strict=True)
        ]
        assert same[::2] == [True, True]


# Ops at which rows mix: operand number and reason.
MIXED = {
    "sum": (
        [(N, 4)],
        lambda emit, x: emit(g.ReduceOp, x, kind="sum", axes=[0], keepdims=True),
        0,
        "sum over dimension 0, which is the batch",
    ),
    "gradient of weights": (
        [(N, 4), (N, 3)],
        lambda emit, x, d: emit(g.GemmOp, x, d, trans_a=True, trans_b=False, **SCALE),
        0,
        "it sums over dimension 0, which is the batch",
    ),
    "similarity of rows": (
        [(N, 4), (4, N)],
        lambda emit, x, d: emit(g.MatmulOp, x, d),
        1,
        "its operands have the batch in different dimensions, or in other groups",
    ),
    "softmax": (
        [(N, 4)],
        lambda emit, x: emit(g.SoftmaxOp, x, axis=0),
        0,
        "it works along dimension 0, which is the batch",
    ),
    "keys of the batch": (
        [(3, 4), (N, 4), (N, 2)],
        lambda emit, q, k, v: emit(g.AttentionOp, q, k, v, scale=0.5),
        1,
        "it sums over dimension 0, which is the batch",
    ),
    "steps of the batch": (
        [(N, 4), (5, 4), (5, 2)],
        lambda emit, q, k, v: emit(g.AttentionOp, q, k, v, scale=0.5, causal=0),
        0,
        "it is causal along its rows, which is the batch",
    ),
    "argmax": (
        [(N, 4)],
        lambda emit, x: emit(g.ArgmaxOp, x, axis=0, keepdims=False),
        0,
        "it works along dimension 0, which is the batch",
    ),
    "picking rows": (
        [(N, 4), ("i64", 2)],
        lambda emit, x, i: emit(g.GatherOp, x, i, axis=0),
        0,
        "it picks from dimension 0, which is the batch",
    ),
    "half of the rows": (
        [(N, 4)],
        lambda emit, x: emit(g.ReshapeOp, x, shape=[2, N]),
        0,
        "what lies before or behind the batch is not a whole number of rows",
    ),
    "a convolution over rows": (
        [(1, 1, N), (1, 1, 3)],
        lambda emit, x, w: emit(g.ConvOp, x, w, **WINDOW),
        0,
        "it combines dimension 2, which is the batch",
    ),
    "weights of the batch": (
        [(1, 1, 5), (N, 1, 3)],
        lambda emit, x, w: emit(g.ConvOp, x, w, **WINDOW),
        1,
        "a parameter of the layer has the batch",
    ),
    "steps that are the batch": (
        [(N, 1, 2), (1, 2), (2, 2), (2,)],
        lambda emit, x, h, w, b: emit(g.RnnOp, x, h, w, w, b),
        0,
        "the batch is dimension 0, which are its steps or features",
    ),
}


@pytest.mark.parametrize("name", MIXED)
def test_where_rows_mix(name):
    shapes, body, operand, reason = MIXED[name]
    _, main = function(shapes, body)
    found = analyse(main)
    (mixing,) = found.mixing
    assert (mixing.operand, mixing.reason) == (operand, reason)
    assert str(mixing) == f"'{mixing.op.name}': {reason}"
    (result, *_) = mixing.op.results
    dynamic = DYNAMIC in tensor_type(result).get_shape()
    assert found.of(result) is (UNKNOWN if dynamic else None)


def test_behind_an_op_that_mixes_only_it_is_named():
    def body(emit, x):
        y = emit(g.SoftmaxOp, x, axis=0)
        emit(g.SoftmaxOp, emit(g.AddOp, x, y), axis=0)

    _, main = function([(N, 4)], body)
    (mixing,) = analyse(main).mixing
    assert mixing.op is next(iter(main.body.block.ops))


def test_symbols_stand_in_the_text():
    text = 'func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> attributes {irkit.dims = [["n"]]} {\n'
    text += "  func.return %x : tensor<?x4xf32>\n}"
    assert 'irkit.dims = [["n"]]' in str(irkit.parse(text))
    for broken in ('["n"]', "[]", '[["n", "n"]]', '[[""]]', "3 : i64"):
        with pytest.raises(irkit.InvalidModelError, match=r"irkit\.dims"):
            irkit.parse(text.replace('[["n"]]', broken))
