"""Graph passes on whole networks: the meaning stays, and large stacks take little time."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from xdsl.dialects.builtin import f32
from xdsl.transforms.canonicalize import CanonicalizePass

from benchmarks.models import lstm_stack, mlp, small_cnn
from irkit.context import IrkitContext
from irkit.dialects import graph
from irkit.dialects.graph import Graph
from irkit.dialects.types import DYNAMIC, tensor, tensor_type
from irkit.frontends.module import GraphBuilder, ModelInfo
from irkit.frontends.onnx import import_onnx
from irkit.interp.graph import run_graph
from irkit.passes import PASSES
from irkit.passes.graph.fold_batch_norm import FoldBatchNorm
from irkit.passes.graph.fold_constants import FoldConstants
from irkit.passes.graph.unroll_recurrence import UnrollRecurrence


def main_of(imported):
    return next(iter(imported.module.body.block.ops))


def counts(imported):
    return Counter(op.name for op in main_of(imported).body.block.ops)


def apply(imported, *passes):
    ctx = IrkitContext()
    ctx.weights = imported.weights
    ctx.load_dialect(Graph)
    for each in passes:
        each().apply(ctx, imported.module)
        imported.module.verify()


def run(imported):
    rng = np.random.default_rng(5)
    shapes = [tensor_type(a).get_shape() for a in main_of(imported).body.block.args]
    inputs = [rng.standard_normal([3 if s == DYNAMIC else s for s in shape]) for shape in shapes]
    return run_graph(imported.module, imported.weights, [x.astype(np.float32) for x in inputs])


ALL = (FoldConstants, FoldBatchNorm, UnrollRecurrence, CanonicalizePass)


@pytest.mark.parametrize(
    "proto",
    [mlp(), small_cnn(), small_cnn(None), lstm_stack(3, 8, 5, 4, 2), lstm_stack(2, 4, 4, 6)],
    ids=lambda p: p.graph.name,
)
def test_passes_keep_the_meaning(proto):
    imported = import_onnx(proto)
    before = run(imported)
    apply(imported, *ALL)
    for got, want in zip(run(imported), before, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    text = str(imported.module)
    apply(imported, *ALL)
    assert str(imported.module) == text


def test_batch_norms_of_the_cnn_vanish():
    imported = import_onnx(small_cnn())
    convolutions = counts(imported)["graph.conv"]
    apply(imported, FoldBatchNorm)
    after = counts(imported)
    assert after["graph.batch_norm"] == 0
    assert after["graph.conv"] == convolutions
    assert after["graph.mul"] == 0


def test_batch_norms_of_other_ranks_are_folded():
    rng = np.random.default_rng(5)
    for rank in (1, 3):
        b = GraphBuilder([("x", tensor(f32, (2, 3, *(5,) * rank)))])
        w = b.constant(rng.standard_normal((4, 3, *(2,) * rank)).astype(np.float32))
        sizes = {"strides": [1] * rank, "pads": [0] * (2 * rank), "dilations": [1] * rank}
        y = b(graph.ConvOp, b.inputs[0], w, group=1, **sizes)
        four = [b.constant(rng.uniform(0.5, 2, 4).astype(np.float32)) for _ in range(4)]
        y = b(graph.BatchNormOp, y, *four, epsilon=1e-5)
        imported = b.finish([("y", y)], ModelInfo("network", ("x",), ("y",)))
        before = run(imported)
        apply(imported, FoldBatchNorm)
        assert counts(imported)["graph.batch_norm"] == 0
        for got, want in zip(run(imported), before, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch_first", [False, True])
def test_unrolled_layers_meet_cell_to_cell(batch_first):
    imported = import_onnx(lstm_stack(2, 4, 3, 5, batch_first=batch_first))
    before = run(imported)
    apply(imported, UnrollRecurrence, CanonicalizePass)
    after = counts(imported)
    assert after["graph.lstm_cell"] == 10
    assert after["graph.slice"] == 5  # of the input only
    assert after["graph.concat"] == 3  # the three outputs
    for got, want in zip(run(imported), before, strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_large_stack_is_unrolled():
    imported = import_onnx(lstm_stack(10, 256, 256, 100))
    apply(imported, UnrollRecurrence, CanonicalizePass)
    after = counts(imported)
    assert after["graph.lstm_cell"] == 1000
    assert after["graph.slice"] == 100


def test_registered_names():
    for each in ALL[:3]:
        assert PASSES[each.name]() is each
