"""share-convolutions: the parts of convolutions, and their sum, are the convolution."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

import random

import numpy as np
import pytest
from xdsl.dialects.builtin import StringAttr

from irkit.context import IrkitContext
from irkit.dialects import graph
from irkit.dialects.precision import PRECISION
from irkit.dialects.types import element_type, tensor
from irkit.frontends.module import GraphBuilder, ModelInfo
from irkit.interp.graph import run_graph
from irkit.passes.graph.share_convolutions import Extents, ShareConvolutions

RNG = np.random.default_rng(8)


def convolution(shape, outputs, kernel, group=1, bias=True, precision="tf32", **how):
    """A module of one convolution, and its input."""
    rank = len(kernel)
    given = {"strides": [1] * rank, "pads": [0] * 2 * rank, "dilations": [1] * rank} | how
    builder = GraphBuilder([("x", tensor(element_type(np.dtype("float32")), shape))])
    w = RNG.standard_normal((outputs, shape[1] // group, *kernel)).astype(np.float32)
    constants = [w, RNG.standard_normal(outputs).astype(np.float32)][: 1 + bias]
    made = [builder.constant(c) for c in constants]
    y = builder(graph.ConvOp, builder.inputs[0], *made, group=group, **given)
    y.owner.attributes[PRECISION] = StringAttr(precision)
    model = builder.finish([("y", y)], ModelInfo("network", ("x",), ("y",), source="test"))
    return model, RNG.standard_normal(shape).astype(np.float32)


def shared(model):
    ctx = IrkitContext(weights=model.weights)
    ShareConvolutions(device="h200").apply(ctx, model.module)
    model.module.verify()
    return [op for op in model.module.walk() if isinstance(op, graph.ConvOp)]


def some_convolution(number):
    draw = random.Random(number)
    rank, group, parts = draw.randint(1, 3), draw.choice([1, 1, 2, 3]), draw.choice([2, 3, 5])
    channels, filters = parts * draw.choice([1, 4]), draw.randint(1, 5)
    sides = [draw.randint(4, 7) for _ in range(rank)]
    how = {
        "strides": [draw.randint(1, 2) for _ in range(rank)],
        "pads": [draw.randint(0, 2) for _ in range(2 * rank)],
        "dilations": [draw.randint(1, 2) for _ in range(rank)],
        "bias": draw.random() < 0.6,
    }
    kernel = [draw.randint(1, 2) for _ in range(rank)]
    shape = (draw.randint(1, 3), group * channels, *sides)
    return parts, convolution(shape, group * filters, kernel, group, **how)


@pytest.mark.parametrize("number", range(16))
def test_parts_are_the_whole(number, monkeypatch):
    parts, (model, x) = some_convolution(number)
    (before,) = run_graph(model.module, model.weights, [x])
    (whole,) = [op for op in model.module.walk() if isinstance(op, graph.ConvOp)]
    group = whole.group.value.data
    # Once: what is made is looked at again.
    monkeypatch.setattr(Extents, "parts", lambda own, _: parts if own.groups == group else 1)
    (made,) = shared(model)
    assert made.group.value.data == group * parts
    assert made.attributes[PRECISION].data == "tf32"
    (after,) = run_graph(model.module, model.weights, [x])
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-4)


def test_it_is_done_once():
    model, _ = convolution((1, 512, 7, 7), 512, (3, 3), pads=[1] * 4)
    (first,) = shared(model)
    assert first.group.value.data > 1
    text = str(model.module)
    shared(model)
    assert str(model.module) == text


@pytest.mark.parametrize("precision", ["float32", "ieee"])
def test_the_precision_of_float32_stays(precision):
    model, _ = convolution((1, 512, 7, 7), 512, (3, 3), precision=precision)
    text = str(model.module)
    shared(model)
    assert str(model.module) == text


def test_parts_are_whole_runs_of_channels():
    draw = random.Random(3)
    for _ in range(200):
        sizes = [draw.randint(1, most) for most in (4, 600, 4000, 600, 25)]
        extents = Extents(*sizes)
        parts = extents.parts(132)
        assert parts == 1 or extents.channels % (8 * parts) == 0


def test_more_results_need_fewer_parts():
    found = [Extents(1, 512, side * side, 512, 9).parts(132) for side in (7, 14, 28, 112)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 1
    assert found[-1] == 1
