"""Every graph op, lowered, computes what the graph interpreter says."""

from __future__ import annotations

import numpy as np
import pytest

from irkit.context import IrkitContext
from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.types import DYNAMIC, element_type, tensor, tensor_of
from irkit.errors import UnsupportedError
from irkit.frontends.module import GraphBuilder, ModelInfo
from irkit.interp.graph import run_graph
from irkit.interp.tensor import run_tensor
from irkit.lower.graph_to_tensor.convert import RULES, ConvertGraphToTensor

RNG = np.random.default_rng(11)
INFO = ModelInfo("network", ("x",), ("y",))


def floats(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def whole(*shape, dtype=np.int32):
    return RNG.integers(-9, 9, shape).astype(dtype)


def flags(*shape):
    return RNG.integers(0, 2, shape).astype(bool)


def lower(model):
    """Lower `model` in place; all that is left belongs to the tensor level."""
    ConvertGraphToTensor().apply(IrkitContext(weights=model.weights), model.module)
    model.module.verify()
    for op in model.module.walk():
        assert not isinstance(op, GraphOp)
    return model.module


def build(op, arrays, constants=(), batch=(), **props):
    """One op on inputs `arrays`, then `constants`; inputs named in `batch` lead with `?`."""
    types = [
        tensor(element_type(a.dtype), (DYNAMIC, *a.shape[1:])) if i in batch else tensor_of(a)
        for i, a in enumerate(arrays)
    ]
    b = GraphBuilder([(f"x{i}", t) for i, t in enumerate(types)])
    results = b.ops(op, *b.inputs, *(b.constant(c, "w") for c in constants), **props)
    return b.finish([(f"y{i}", r) for i, r in enumerate(results)], INFO)


def check(op, *arrays, constants=(), batch=(), exact=True, **props):
    """The lowered op against the graph op. Returns the lowered module."""
    model = build(op, arrays, constants, batch, **props)
    expected = run_graph(model.module, model.weights, arrays)
    module = lower(model)
    actual = run_tensor(module, model.weights, arrays)
    for want, got in zip(expected, actual, strict=True):
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        if exact:
            np.testing.assert_array_equal(got, want)
        else:
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)
    return module


def names(module):
    return [op.name for op in module.walk()]


def test_every_graph_op_has_a_rule():
    layers = {graph.GruOp, graph.LstmOp, graph.RnnOp}
    assert set(graph.Graph.operations) - set(RULES) == layers


# Elementwise


@pytest.mark.parametrize(
    "op",
    [graph.AbsOp, graph.ErfOp, graph.ExpOp, graph.FloorOp, graph.IsNanOp, graph.LogOp,
     graph.NegOp, graph.ReluOp, graph.SigmoidOp, graph.SqrtOp, graph.TanhOp],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_unary(op, dtype):
    x = floats(3, 4, dtype=dtype)
    x[0, 0], x[1, 1], x[2, 2] = np.nan, np.inf, -0.0
    check(op, x, batch=[0])
    check(op, x[0, 1:2].reshape(()))


@pytest.mark.parametrize("op", [graph.AbsOp, graph.NegOp])
def test_unary_integer(op):
    check(op, whole(5))


@pytest.mark.parametrize(
    "op",
    [graph.AddOp, graph.SubOp, graph.MulOp, graph.DivOp, graph.MaxOp, graph.MinOp, graph.PowOp],
)
def test_binary(op):
    check(op, np.abs(floats(3, 1, 4)), floats(5, 1), batch=[0])
    check(op, np.abs(floats(3, 4)), constants=[floats(4)], batch=[0])
    check(op, np.abs(floats(3, 4)), constants=[floats(1)], batch=[0])
    check(op, np.abs(floats(4)), constants=[floats()])


@pytest.mark.parametrize(
    "op", [graph.AddOp, graph.SubOp, graph.MulOp, graph.DivOp, graph.MaxOp, graph.MinOp]
)
def test_binary_integer(op):
    y = whole(3, 4)
    check(op, whole(3, 4), np.where(y == 0, 1, y).astype(np.int32))


@pytest.mark.parametrize(
    "op", [graph.AddOp, graph.MulOp, graph.MaxOp, graph.MinOp, graph.AndOp, graph.OrOp]
)
def test_binary_boolean(op):
    check(op, flags(4, 4), flags(4))


@pytest.mark.parametrize("predicate", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_compare(predicate):
    x, y = whole(30), whole(30)
    check(graph.CompareOp, x, y, predicate=predicate)
    x, y = x.astype(np.float32), y.astype(np.float32)
    x[0], y[1], x[2], y[2] = np.nan, np.nan, np.nan, np.nan
    check(graph.CompareOp, x, y, predicate=predicate)
    check(graph.CompareOp, flags(9), flags(9), predicate=predicate)


@pytest.mark.parametrize(
    "to", [np.float32, np.float64, np.float16, np.int32, np.int64, np.int8, np.bool_]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.bool_])
def test_cast(dtype, to):
    check(graph.CastOp, (floats(3, 4) * 9).astype(dtype), batch=[0], to=element_type(to))


def test_clip_keeps_nan():
    check(graph.ClipOp, np.array([np.nan, -1, 3, 9], np.float32), min=0.0, max=6.0)


def test_fma():
    check(graph.FmaOp, floats(3, 4), floats(4), floats(1), batch=[0])


def test_where():
    check(graph.WhereOp, flags(3, 4), floats(4), floats(3, 1))


def test_single_constants_move_into_the_body():
    module = check(graph.AddOp, floats(3), constants=[np.array([2.0], np.float32)])
    assert "dense<" not in str(module)


# Linear


@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("scale", [(1.0, 1.0), (2.0, 0.5)])
@pytest.mark.parametrize("c", [None, (), (1,), (5,), (3, 1), (3, 5)])
def test_gemm(trans_a, trans_b, scale, c):
    a, b = floats(*((4, 3) if trans_a else (3, 4))), floats(*((5, 4) if trans_b else (4, 5)))
    props = {"trans_a": trans_a, "trans_b": trans_b, "alpha": scale[0], "beta": scale[1]}
    biases = [] if c is None else [floats(*c)]
    check(graph.GemmOp, a, b, *biases, exact=False, **props)
    module = check(graph.GemmOp, a, constants=[b, *biases], exact=False, **props)
    assert "tensor.expand_shape" not in names(module)
    assert str(module).count('"reduction"') == 1


def test_gemm_of_a_batch():
    props = {"trans_a": False, "trans_b": True, "alpha": 1.0, "beta": 1.0}
    check(
        graph.GemmOp,
        floats(6, 4),
        constants=[floats(5, 4), floats(5)],
        batch=[0],
        exact=False,
        **props,
    )


@pytest.mark.parametrize(
    "shapes",
    [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((2, 1, 3, 4), (6, 4, 5)),
     ((1, 3, 4), (1, 4, 5)), ((1, 4), (4, 1))],
)  # fmt: skip
def test_matmul(shapes):
    check(graph.MatmulOp, *(floats(*s) for s in shapes), exact=False)


def test_matmul_of_a_batch():
    check(graph.MatmulOp, floats(2, 3, 4), constants=[floats(4, 5)], batch=[0], exact=False)


# Windows


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batch", [(), (0,)])
@pytest.mark.parametrize(
    ("channels", "outputs", "group"), [(3, 4, 1), (4, 6, 2), (3, 3, 3), (1, 1, 1)]
)
@pytest.mark.parametrize(
    ("kernel", "strides", "pads", "dilations"),
    [((1, 1), (1, 1), (0, 0, 0, 0), (1, 1)), ((3, 2), (2, 1), (1, 0, 2, 1), (1, 2))],
)
def test_conv(channels, outputs, group, kernel, strides, pads, dilations, bias, batch):
    w = floats(outputs, channels // group, *kernel)
    constants = [w, floats(outputs)] if bias else [w]
    module = check(
        graph.ConvOp, floats(2, channels, 7, 6), constants=constants, batch=batch, exact=False,
        strides=strides, pads=pads, dilations=dilations, group=group,
    )  # fmt: skip
    assert ("tensor.pad" in names(module)) == any(pads)


@pytest.mark.parametrize("pads", [(0, 0, 0, 0), (1, 0, 1, 1)])
@pytest.mark.parametrize("strides", [(1, 1), (2, 3)])
def test_pool(pads, strides):
    x = floats(2, 3, 7, 6)
    window = {"kernel_shape": (3, 2), "strides": strides, "pads": pads}
    check(graph.MaxPoolOp, x, batch=[0], **window)
    for include in (True, False):
        check(graph.AveragePoolOp, x, batch=[0], count_include_pad=include, **window)


def test_global_average_pool():
    check(graph.GlobalAveragePoolOp, floats(2, 3, 4, 5), batch=[0])


# Reduction and normalisation


@pytest.mark.parametrize("kind", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("axes", [(1,), (2, 1), (1, 2, 3), (3,), ()])
@pytest.mark.parametrize("keepdims", [True, False])
def test_reduce(kind, axes, keepdims):
    check(graph.ReduceOp, floats(2, 3, 4, 5), batch=[0], kind=kind, axes=axes, keepdims=keepdims)


@pytest.mark.parametrize("kind", ["sum", "mean", "max", "min", "prod"])
def test_reduce_integers_and_all(kind):
    check(graph.ReduceOp, whole(3, 4), kind=kind, axes=(0,), keepdims=False)
    check(graph.ReduceOp, floats(3, 4), kind=kind, axes=(0, 1), keepdims=False)
    check(graph.ReduceOp, floats(3, 4), kind=kind, axes=(0, 1), keepdims=True)


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("keepdims", [True, False])
def test_argmax(axis, keepdims):
    check(graph.ArgmaxOp, whole(4, 5, 6), batch=[0], axis=axis, keepdims=keepdims)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmax(axis):
    check(graph.SoftmaxOp, floats(4, 5, 6), batch=[0] if axis else [], axis=axis)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4, 5), (2, 1, 4)])
def test_batch_norm(shape):
    c = shape[1]
    parameters = [floats(c), floats(c), floats(c), np.abs(floats(c)) + 1]
    check(graph.BatchNormOp, floats(*shape), constants=parameters, batch=[0], epsilon=1e-5)


# Shape


@pytest.mark.parametrize(
    ("have", "want"),
    [((4, 6), (24,)), ((24,), (2, 3, 4)), ((4, 6), (6, 4)), ((4, 6), (2, 2, 6)), ((2, 1, 3), (2, 3)),
     ((2, 3), (1, 2, 3, 1)), ((), (1, 1)), ((1, 1), ()), ((1,), (1, 1)), ((2, 1), (1, 2)),
     ((4, 6), (4, 6)), ((2, 3, 4), (6, 2, 2)), ((1, 1, 4), (1, 4))],
)  # fmt: skip
def test_reshape(have, want):
    check(graph.ReshapeOp, floats(*have), shape=want)


@pytest.mark.parametrize(
    ("have", "want"),
    [((5, 4, 6), (24,)), ((5, 24), (4, 6)), ((5,), (1,)), ((5, 1), ()), ((5, 4, 3), (2, 6))],
)
def test_reshape_of_a_batch(have, want):
    check(graph.ReshapeOp, floats(*have), batch=[0], shape=(DYNAMIC, *want))


def test_slice():
    check(graph.SliceOp, floats(3, 8), offsets=(1, 2), sizes=(2, 3), strides=(1, 2))
    module = check(graph.SliceOp, floats(3, 8), offsets=(2, 7), sizes=(2, 3), strides=(-1, -2))
    assert "tensor.extract_slice" not in names(module)
    check(graph.SliceOp, floats(3, 8), offsets=(1, 7), sizes=(2, 3), strides=(1, -2))
    check(graph.SliceOp, floats(3, 8), offsets=(0, 0), sizes=(3, 8), strides=(1, 1))
    check(
        graph.SliceOp, floats(3, 8), batch=[0], offsets=(0, 2), sizes=(DYNAMIC, 3), strides=(1, 2)
    )


def test_concat():
    check(graph.ConcatOp, floats(3, 2), floats(3, 5), batch=[0, 1], axis=1)
    check(graph.ConcatOp, floats(3, 2), floats(1, 2), axis=0)


def test_expand():
    check(graph.ExpandOp, floats(3, 1), shape=(2, 3, 4))
    check(graph.ExpandOp, floats(3, 1), batch=[0], shape=(DYNAMIC, 4))


@pytest.mark.parametrize("permutation", [(0, 1, 2), (0, 2, 1), (2, 0, 1), (1, 2, 0)])
def test_transpose(permutation):
    check(graph.TransposeOp, floats(2, 3, 4), permutation=permutation)
    if permutation[0] == 0:
        check(graph.TransposeOp, floats(2, 3, 4), batch=[0], permutation=permutation)


def test_gather():
    indices = np.array([[0, 2], [1, 1]])
    check(graph.GatherOp, floats(3, 4), indices, batch=[0], axis=1)
    check(graph.GatherElementsOp, floats(2, 4), indices, batch=[0, 1], axis=1)


# Recurrence


@pytest.mark.parametrize("hidden", [4, 1])
@pytest.mark.parametrize("batch", [(), (0, 1, 2)])
def test_lstm_cell(hidden, batch):
    state = [floats(2, 3), floats(2, hidden), floats(2, hidden)]
    weights = [floats(4 * hidden, 3), floats(4 * hidden, hidden), floats(4 * hidden)]
    module = check(graph.LstmCellOp, *state, constants=weights, batch=batch, exact=False)
    assert names(module).count("linalg.generic") == 4
    check(graph.LstmCellOp, *state, *weights, batch=batch, exact=False)


def test_lstm_steps_share_weights():
    b = GraphBuilder([("x", tensor_of(floats(1, 3))), ("h", tensor_of(floats(1, 4)))])
    x, h = b.inputs
    c = h
    weights = [
        b.constant(a, n) for n, a in (("W", floats(16, 3)), ("R", floats(16, 4)), ("B", floats(16)))
    ]
    for _ in range(3):
        h, c = b.ops(graph.LstmCellOp, x, h, c, *weights)
    model = b.finish([("y", h)], INFO)
    inputs = [floats(1, 3), floats(1, 4)]
    expected = run_graph(model.module, model.weights, inputs)
    module = lower(model)
    np.testing.assert_allclose(run_tensor(module, model.weights, inputs), expected, rtol=1e-5)
    text = str(module)
    assert text.count("= arith.constant dense") == 3
    assert all(f"dense_resource<{name}_" in text for name in "WR")


def test_lstm_must_be_unrolled_first():
    model = build(
        graph.LstmOp, [floats(5, 1, 3), floats(1, 4), floats(1, 4)],
        [floats(16, 3), floats(16, 4), floats(16)],
    )  # fmt: skip
    with pytest.raises(UnsupportedError, match=r"graph\.lstm.*unroll-recurrence"):
        lower(model)


# Forests


def random_tree(depth, features, start):
    """Nodes of a random tree of at most `depth`: (feature, threshold, left, right, nan_left) each."""
    nodes = []

    def grow(level):
        number = start + len(nodes)
        nodes.append(None)
        if level == 0 or (level < depth and RNG.random() < 0.3):
            nodes[number - start] = (int(RNG.integers(-5, 99)), np.nan, number, number, True)
        else:
            left = grow(level - 1)
            right = grow(level - 1)
            row = (int(RNG.integers(features)), float(RNG.standard_normal()), left, right)
            nodes[number - start] = (*row, bool(RNG.random() < 0.5))
        return number

    grow(depth)
    return nodes


def random_forest(depths, features=4, columns=3, width=1):
    nodes, roots = [], []
    for depth in depths:
        roots.append(len(nodes))
        nodes += random_tree(depth, features, len(nodes))
    feature, threshold, left, right, nan_left = zip(*nodes, strict=True)
    output = RNG.integers(0, columns, len(roots)) if width == 1 else np.zeros(len(roots))
    return [
        np.array(feature, np.int32), np.array(threshold, np.float32), np.array(left, np.int32),
        np.array(right, np.int32), np.array(nan_left), floats(len(nodes), width, dtype=np.float64),
        np.array(roots, np.int32), output.astype(np.int32), floats(columns, dtype=np.float64),
    ]  # fmt: skip


def forest_input():
    x = floats(50, 4)
    x[RNG.random(x.shape) < 0.1] = np.nan
    return x


@pytest.mark.parametrize("comparison", ["le", "lt"])
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize(
    ("depths", "op"),
    [
        ((3, 0, 2, 5), "te.perfect_forest"),
        ((0,), "te.perfect_forest"),
        ((11, 0), "te.packed_forest"),
    ],
)
def test_forest(depths, op, width, comparison):
    module = check(
        graph.ForestOp, forest_input(), constants=random_forest(depths, width=width), batch=[0],
        comparison=comparison, depth=max(depths), strategy="auto",
    )  # fmt: skip
    assert op in names(module)


def test_forest_of_unknown_arrays():
    arrays = random_forest((2, 3))
    # Leaves that are no constants must name a feature themselves.
    arrays[0] = np.clip(arrays[0], 0, 3)
    module = check(
        graph.ForestOp,
        forest_input(),
        *arrays,
        batch=[0],
        comparison="le",
        depth=3,
        strategy="walk",
    )
    assert "te.forest" in names(module)


def test_forest_with_a_strategy_left():
    model = build(
        graph.ForestOp, [forest_input()], random_forest((2,)), comparison="le", depth=2,
        strategy="gemm",
    )  # fmt: skip
    with pytest.raises(UnsupportedError, match=r"graph\.forest.*strategy = gemm"):
        lower(model)


# Refusals


def test_what_mixes_rows_is_refused():
    model = build(graph.ReduceOp, [floats(3, 4)], batch=[0], kind="mean", axes=(0,), keepdims=False)
    with pytest.raises(
        UnsupportedError, match="mean over dimension 0, which is the batch"
    ) as caught:
        lower(model)
    assert "irkit.compile(..., batch=N)" in str(caught.value)


def test_a_batch_that_does_not_lead_is_refused():
    model = build(graph.TransposeOp, [floats(3, 4)], batch=[0], permutation=(1, 0))
    with pytest.raises(UnsupportedError, match="the batch does not lead in all values") as caught:
        lower(model)
    assert "'graph.transpose': its result is tensor<4x?xf32>" in str(caught.value)
