"""The graph interpreter against NumPy and ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper
from xdsl.dialects.builtin import f32, f64, i64

from irkit.dialects import graph
from irkit.dialects.graph.semantics import SEMANTICS
from irkit.dialects.types import DYNAMIC, tensor, tensor_of
from irkit.errors import InvalidInputError, InvalidModelError, UnsupportedError
from irkit.frontends.module import GraphBuilder, ModelInfo
from irkit.interp.graph import run_graph
from irkit.weights import WeightStore

RNG = np.random.default_rng(7)
INFO = ModelInfo("network", ("x",), ("y",))


def floats(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def run(op, *arrays, constants=(), **props):
    """`op` on `arrays` as inputs; operands that follow are `constants`."""
    b = GraphBuilder([(f"x{i}", tensor_of(a)) for i, a in enumerate(arrays)])
    results = b.ops(op, *b.inputs, *(b.constant(c) for c in constants), **props)
    model = b.finish([(f"y{i}", r) for i, r in enumerate(results)], INFO)
    outputs = run_graph(model.module, model.weights, arrays)
    for result, output in zip(results, outputs, strict=True):
        assert tensor_of(output) == result.type
    return outputs[0] if len(outputs) == 1 else outputs


def onnx_run(op_type, inputs, outputs=1, **attributes):
    """One ONNX node on float32 arrays; an input of None is left out."""
    names = ["" if a is None else f"x{i}" for i, a in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op_type, names, results, **attributes)
    feeds = {n: a for n, a in zip(names, inputs, strict=True) if n}
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in feeds.items()]
    outs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in results]
    opset = [helper.make_opsetid("", 17)]
    proto = helper.make_model(
        helper.make_graph([node], "g", infos, outs), opset_imports=opset, ir_version=8
    )
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    values = session.run(None, feeds)
    return values[0] if outputs == 1 else values


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-6)


def test_every_op_has_a_meaning():
    assert set(SEMANTICS) == set(graph.Graph.operations)


@pytest.mark.parametrize(
    ("op", "function"),
    [
        (graph.AbsOp, np.abs),
        (graph.ExpOp, np.exp),
        (graph.FloorOp, np.floor),
        (graph.IsNanOp, np.isnan),
        (graph.NegOp, np.negative),
        (graph.TanhOp, np.tanh),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_unary(op, function, dtype):
    x = np.append(floats(5, dtype=dtype), [np.nan, np.inf, -0.0]).astype(dtype)
    np.testing.assert_array_equal(run(op, x), function(x))


def test_unary_with_a_domain():
    x = np.abs(floats(9))
    np.testing.assert_array_equal(run(graph.LogOp, x), np.log(x))
    np.testing.assert_array_equal(run(graph.SqrtOp, x), np.sqrt(x))


@pytest.mark.parametrize("op_type", ["Erf", "Sigmoid", "Relu"])
def test_unary_like_onnx(op_type):
    op = {"Erf": graph.ErfOp, "Sigmoid": graph.SigmoidOp, "Relu": graph.ReluOp}[op_type]
    x = np.concatenate([floats(3, 4), [[0.0, -200.0, 200.0, 1e-30]]]).astype(np.float32)
    close(run(op, x), onnx_run(op_type, [x]))


def test_relu_and_clip_keep_nan():
    x = np.array([np.nan, -1.0, 9.0], np.float32)
    np.testing.assert_array_equal(run(graph.ReluOp, x), [np.nan, 0, 9])
    np.testing.assert_array_equal(run(graph.ClipOp, x, min=0.0, max=6.0), [np.nan, 0, 6])


@pytest.mark.parametrize(
    ("op", "function"),
    [
        (graph.AddOp, np.add),
        (graph.SubOp, np.subtract),
        (graph.MulOp, np.multiply),
        (graph.DivOp, np.divide),
        (graph.MaxOp, np.maximum),
        (graph.MinOp, np.minimum),
    ],
)
def test_binary_broadcasts(op, function):
    x, y = floats(3, 1, 4), floats(5, 1)
    np.testing.assert_array_equal(run(op, x, y), function(x, y))


def test_power():
    x, y = np.abs(floats(4)), floats(4)
    np.testing.assert_array_equal(run(graph.PowOp, x, y), np.power(x, y))


def test_integer_division_truncates_towards_zero():
    x, y = np.array([7, -7, 7, -7, 6]), np.array([2, 2, -2, -2, 3])
    np.testing.assert_array_equal(run(graph.DivOp, x, y), [3, -3, -3, 3, 2])


def test_a_fused_multiply_add_rounds_once():
    x = np.array([1 + 2.0**-52, 1e300, 1e300, 2.0**-1060, 3.0])
    y = np.array([1 + 2.0**-52, 1e300, 1e300, 2.0**-30, 4.0])
    z = np.array([-1 - 2.0**-51, -np.inf, 1.0, 2.0**-1074, 5.0])
    want = np.array([2.0**-104, -np.inf, np.inf, 2.0**-1074, 17.0])
    np.testing.assert_array_equal(run(graph.FmaOp, x, y, z), want)
    x, z = np.array([1 + 2.0**-23], np.float32), np.array([-1 - 2.0**-22], np.float32)
    np.testing.assert_array_equal(run(graph.FmaOp, x, x, z), np.array([2.0**-46], np.float32))


def test_logical_compare_where():
    p, q = np.array([True, True, False]), np.array([True, False, False])
    np.testing.assert_array_equal(run(graph.AndOp, p, q), p & q)
    np.testing.assert_array_equal(run(graph.OrOp, p, q), p | q)
    x, y = np.array([1.0, np.nan, 3.0]), np.array([2.0, 2.0, 3.0])
    wants = {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}
    for predicate, want in wants.items():
        np.testing.assert_array_equal(run(graph.CompareOp, x, y, predicate=predicate), want)
    np.testing.assert_array_equal(run(graph.WhereOp, p, x, y), np.where(p, x, y))


def test_cast():
    x = np.array([1.9, -1.9, 2.0**53 + 1])
    assert run(graph.CastOp, x, to=i64).tolist() == [1, -1, 2**53]
    assert run(graph.CastOp, x, to=f32).tolist() == x.astype(np.float32).tolist()


def test_gemm_like_onnx():
    a, b, c = floats(5, 3), floats(4, 5), floats(4)
    got = run(graph.GemmOp, a, b, c, trans_a=True, trans_b=True, alpha=0.5, beta=2.0)
    close(got, onnx_run("Gemm", [a, b, c], transA=1, transB=1, alpha=0.5, beta=2.0))
    plain = run(graph.GemmOp, a.T.copy(), b, trans_a=False, trans_b=True, alpha=1.0, beta=1.0)
    close(plain, a.T @ b.T)


def test_matmul_broadcasts():
    a, b = floats(2, 1, 3, 4), floats(5, 4, 6)
    np.testing.assert_array_equal(run(graph.MatmulOp, a, b), a @ b)


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("bias", [False, True])
def test_conv_like_onnx(group, bias):
    x, w, b = floats(2, 4, 9, 8), floats(6, 4 // group, 3, 2), floats(6)
    where = {"strides": [2, 1], "pads": [1, 0, 2, 1], "dilations": [2, 3], "group": group}
    operands = [x, w, b] if bias else [x, w]
    close(run(graph.ConvOp, *operands, **where), onnx_run("Conv", operands, **where))


@pytest.mark.parametrize("include", [False, True])
def test_pools_like_onnx(include):
    x = floats(2, 3, 7, 8)
    where = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 2, 1]}
    close(run(graph.MaxPoolOp, x, **where), onnx_run("MaxPool", [x], **where))
    close(
        run(graph.AveragePoolOp, x, count_include_pad=include, **where),
        onnx_run("AveragePool", [x], count_include_pad=int(include), **where),
    )
    close(run(graph.GlobalAveragePoolOp, x), onnx_run("GlobalAveragePool", [x]))


def test_batch_norm_like_onnx():
    x, scale, bias, mean = floats(2, 3, 4, 5), floats(3), floats(3), floats(3)
    variance = np.abs(floats(3))
    operands = [x, scale, bias, mean, variance]
    got = run(graph.BatchNormOp, *operands, epsilon=1e-3)
    close(got, onnx_run("BatchNormalization", operands, epsilon=1e-3))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_softmax_like_onnx(axis):
    x = 50 * floats(3, 4, 5)
    close(run(graph.SoftmaxOp, x, axis=axis), onnx_run("Softmax", [x], axis=axis))


@pytest.mark.parametrize("shape", [(1000,), (3, 400), (400, 3), (2, 3, 4)])
def test_sums_run_in_index_order(shape):
    x = floats(*shape)
    total = np.float32(0)
    for v in x.ravel():
        total = total + v
    axes = list(range(len(shape)))
    assert run(graph.ReduceOp, x, kind="sum", axes=axes, keepdims=False) == total
    last = x.reshape(-1, shape[-1])
    sums = np.zeros(len(last), np.float32)
    for column in last.T:
        sums = sums + column
    got = run(graph.ReduceOp, x, kind="sum", axes=[len(shape) - 1], keepdims=True)
    np.testing.assert_array_equal(got.ravel(), sums)


def test_reduce_kinds():
    x = floats(3, 4, 5, dtype=np.float64)
    for kind in ("sum", "mean", "max", "min", "prod"):
        got = run(graph.ReduceOp, x, kind=kind, axes=[0, 2], keepdims=True)
        np.testing.assert_allclose(got, getattr(x, kind)(axis=(0, 2), keepdims=True))


def test_argmax_takes_the_first_of_equals():
    x = np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 0.0]])
    assert run(graph.ArgmaxOp, x, axis=1, keepdims=False).tolist() == [1, 0]
    assert run(graph.ArgmaxOp, x, axis=0, keepdims=True).tolist() == [[1, 0, 0]]


def test_shape_ops():
    x, y = floats(4, 6), floats(4, 2)
    np.testing.assert_array_equal(run(graph.ConcatOp, x, y, axis=1), np.hstack([x, y]))
    np.testing.assert_array_equal(run(graph.ReshapeOp, x, shape=[3, 8]), x.reshape(3, 8))
    np.testing.assert_array_equal(run(graph.TransposeOp, x, permutation=[1, 0]), x.T)
    got = run(graph.SliceOp, x, offsets=[3, 1], sizes=[3, 2], strides=[-1, 3])
    np.testing.assert_array_equal(got, x[3:0:-1, 1:5:3])
    got = run(graph.ExpandOp, floats(1, 6), shape=[2, 4, 6])
    assert got.shape == (2, 4, 6)
    assert (got == got[0, 0]).all()


def test_gathers():
    x, which = floats(4, 6), np.array([[5, 0], [2, 2]], np.int32)
    np.testing.assert_array_equal(run(graph.GatherOp, x, which, axis=1), np.take(x, which, axis=1))
    rows = np.array([[1, 0, 3, 2, 2, 1]])
    np.testing.assert_array_equal(
        run(graph.GatherElementsOp, x, rows, axis=0), np.take_along_axis(x, rows, 0)
    )
    outside = run(graph.GatherOp, x, np.array([-1, 4]), axis=0)
    np.testing.assert_array_equal(outside, x[[0, 3]])


def test_lstm_like_onnx_and_like_its_cells():
    steps, batch, inputs, hidden = 4, 2, 3, 5
    x, h, c = floats(steps, batch, inputs), floats(batch, hidden), floats(batch, hidden)
    w, r = floats(4 * hidden, inputs), floats(4 * hidden, hidden)
    wb, rb = floats(4 * hidden), floats(4 * hidden)
    y, h_last, c_last = run(graph.LstmOp, x, h, c, w, r, wb + rb)
    bias = np.concatenate([wb, rb])[None]
    given = [x, w[None], r[None], bias, None, h[None], c[None]]
    want = onnx_run("LSTM", given, outputs=3, hidden_size=hidden)
    close(y, want[0][:, 0])
    close(h_last, want[1][0])
    close(c_last, want[2][0])
    for step in range(steps):
        h, c = run(graph.LstmCellOp, x[step], h, c, w, r, wb + rb)
        np.testing.assert_array_equal(h, y[step])
    np.testing.assert_array_equal(c, c_last)


FOREST = {
    "feature": np.array([1, 0, 0, 0, 0, 0, 0, 0], np.int32),
    "threshold": np.array([0.5, -1.0, 0, 0, 0, 0.0, 0, 0], np.float32),
    "left": np.array([1, 3, 2, 3, 4, 6, 6, 7], np.int32),
    "right": np.array([2, 4, 2, 3, 4, 7, 6, 7], np.int32),
    "nan_left": np.array([False, True, False, False, False, False, False, False]),
    "value": np.array([[0], [0], [10], [20], [30], [0], [0.1], [0.2]]),
    "root": np.array([0, 5], np.int32),
    "output": np.array([1, 0], np.int32),
    "base": np.array([0.5, 100.0]),
}


@pytest.mark.parametrize("comparison", ["le", "lt"])
def test_forest_walks_like_a_loop(comparison):
    x = np.array([[-1, 0.5], [-2, 0], [0, 0.6], [np.nan, np.nan], [np.nan, 0.1]], np.float32)
    got = run(
        graph.ForestOp, x, constants=FOREST.values(), comparison=comparison, depth=2,
        strategy="auto",
    )  # fmt: skip
    want = np.tile(FOREST["base"], (len(x), 1))
    for i, row in enumerate(x):
        for root, output in zip(FOREST["root"], FOREST["output"], strict=True):
            want[i, output] += FOREST["value"][leaf(row, root, comparison), 0]
    np.testing.assert_array_equal(got, want)
    assert len({tuple(r) for r in got}) > 2


def leaf(row, node, comparison):
    while FOREST["left"][node] != FOREST["right"][node]:
        v, threshold = row[FOREST["feature"][node]], FOREST["threshold"][node]
        holds = v <= threshold if comparison == "le" else v < threshold
        if np.isnan(v):
            holds = FOREST["nan_left"][node]
        node = FOREST["left" if holds else "right"][node]
    return node


def test_forest_with_whole_rows_at_the_leaves():
    arrays = dict(FOREST, output=np.zeros(2, np.int32), value=floats(8, 2, dtype=np.float64))
    x = floats(6, 2)
    got = run(
        graph.ForestOp, x, constants=arrays.values(), comparison="le", depth=2, strategy="auto"
    )
    leaves = [[leaf(row, root, "le") for root in FOREST["root"]] for row in x]
    want = [(arrays["base"] + arrays["value"][a]) + arrays["value"][b] for a, b in leaves]
    np.testing.assert_array_equal(got, want)


def dynamic_add():
    b = GraphBuilder([(n, tensor(f32, (DYNAMIC, 2))) for n in ("x", "z")])
    y = b(graph.ReshapeOp, b(graph.AddOp, *b.inputs), shape=[DYNAMIC, 2, 1])
    return b.finish([("y", y)], INFO)


def test_a_dynamic_batch_is_any_size():
    model = dynamic_add()
    for rows in (0, 1, 5):
        x = floats(rows, 2)
        (y,) = run_graph(model.module, model.weights, [x, x])
        np.testing.assert_array_equal(y, (x + x)[:, :, None])


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([floats(3, 2)], "expected 2 inputs, got 1"),
        ([floats(3, 2), floats(4, 2)], "input 'z': expected 3 rows, got 4"),
        ([floats(3, 2), floats(3, 3)], "input 'z': expected shape ?x2, got 3x3"),
        ([floats(3, 2), floats(2)], "input 'z': expected shape ?x2, got 2"),
        ([floats(3, 2, dtype=np.float64)] * 2, "input 'x': expected dtype float32, got float64"),
        ([[[1.0, 2.0]]] * 2, "input 'x': expected a NumPy array, got list"),
    ],
)
def test_wrong_inputs_are_refused(inputs, message):
    model = dynamic_add()
    with pytest.raises(InvalidInputError) as caught:
        run_graph(model.module, model.weights, inputs)
    assert str(caught.value) == message


def test_missing_function_weights_and_foreign_ops():
    model = dynamic_add()
    with pytest.raises(InvalidModelError, match="no function '@other'"):
        run_graph(model.module, model.weights, [], function="other")
    b = GraphBuilder([("x", tensor(f64, (20,)))])
    y = b(graph.AddOp, b.inputs[0], b.constant(np.arange(20.0)))
    with_weights = b.finish([("y", y)], INFO)
    with pytest.raises(InvalidModelError, match="no bytes"):
        run_graph(with_weights.module, WeightStore(), [np.arange(20.0)])


def test_an_op_of_another_level_is_refused():
    from xdsl.dialects.arith import Arith
    from xdsl.dialects.builtin import Builtin
    from xdsl.dialects.func import Func
    from xdsl.parser import Parser

    from irkit.context import IrkitContext

    ctx = IrkitContext()
    for dialect in (Arith, Builtin, Func):
        ctx.load_dialect(dialect)
    text = """
    func.func @main(%x: tensor<2xi32>) -> tensor<2xi32> {
      %y = arith.addi %x, %x : tensor<2xi32>
      func.return %y : tensor<2xi32>
    }
    """
    with pytest.raises(UnsupportedError, match=r"does not know 'arith\.addi'"):
        run_graph(Parser(ctx, text).parse_module(), ctx.weights, [np.ones(2, np.int32)])
