"""Values on which levels once disagreed, or failed where they should have refused."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import f32, f128, i1
from xdsl.ir import Block
from xdsl.utils.exceptions import VerifyException

from irkit.context import IrkitContext
from irkit.dialects import graph
from irkit.dialects.types import DYNAMIC, tensor, tensor_of
from irkit.errors import InvalidInputError
from irkit.frontends.module import GraphBuilder, ModelInfo, attribute
from irkit.interp.graph import run_graph
from irkit.interp.tensor import run_tensor
from irkit.lower.graph_to_tensor.convert import ConvertGraphToTensor

POOL = {"kernel_shape": [2, 2], "strides": [1, 1], "pads": [0, 0, 0, 0]}


def both_levels(make, *arrays):
    """The results of `make(builder, *inputs)` on `arrays`: as graph, and as tensor ops."""
    b = GraphBuilder([(f"x{i}", tensor_of(x)) for i, x in enumerate(arrays)])
    model = b.finish([("y", make(b, *b.inputs))], ModelInfo("network", b.names, ("y",)))
    (by_graph,) = run_graph(model.module, model.weights, list(arrays))
    ConvertGraphToTensor().apply(IrkitContext(weights=model.weights), model.module)
    model.module.verify()
    (by_tensor,) = run_tensor(model.module, model.weights, list(arrays))
    return by_graph, by_tensor


def agree(make, want, *arrays):
    for got in both_levels(make, *arrays):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
        if want.dtype.kind == "f":
            known = ~np.isnan(want)
            np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(want[known]))


def binary(op, want, x, y):
    agree(lambda b, p, q: b(op, p, q), want, x, y)


@pytest.mark.parametrize(("column_major", "position"), [(False, 1), (True, 2)])
def test_the_first_of_equal_elements_in_rows_is_the_maximum(column_major, position):
    # After the clip, positions 1 (row 0) and 2 (row 1) are equal; by columns they are 2 and 1.
    x = np.array([[[[1, 7], [9, 0]]]], np.float32)

    def make(b, x):
        x = b(graph.ClipOp, x, min=0.0, max=6.0)
        return b(graph.MaxPoolIndicesOp, x, column_major=column_major, **POOL)

    agree(make, np.array([[[[position]]]]), x)


@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3, 7), (1, 2, 3, 4, 5)])
def test_positions_by_columns(shape):
    rank = len(shape) - 2
    window = {"kernel_shape": [2] * rank, "strides": [1] * rank, "pads": [1] * 2 * rank}
    x = np.random.default_rng(0).integers(0, 4, shape).astype(np.float32)

    def make(b, x):
        return b(graph.MaxPoolIndicesOp, x, column_major=True, **window)

    by_graph, by_tensor = both_levels(make, x)
    np.testing.assert_array_equal(by_tensor, by_graph)


@pytest.mark.parametrize("op", [graph.MaxPoolOp, graph.AveragePoolOp, graph.LpPoolOp])
@pytest.mark.parametrize("ceil", [False, True])
def test_windows_over_a_dimension_that_is_not_known(op, ceil):
    """Run at the graph level, where the batch is: its extent is that of the array."""
    windows = {"kernel_shape": [3], "strides": [2], "pads": [1, 1], "ceil_mode": ceil}
    more = {"count_include_pad": False} if op is graph.AveragePoolOp else {}
    more = {"p": 2} if op is graph.LpPoolOp else more

    def pooled(extent, x):
        b = GraphBuilder([("x", tensor(f32, (1, 2, extent)))])
        model = b.finish(
            [("y", b(op, b.inputs[0], **windows, **more))], ModelInfo("network", ("x",), ("y",))
        )
        return run_graph(model.module, model.weights, [x])[0]

    for extent in (1, 2, 4, 5, 6):
        x = np.random.default_rng(extent).standard_normal((1, 2, extent)).astype(np.float32)
        np.testing.assert_array_equal(pooled(DYNAMIC, x), pooled(extent, x))
    windows["pads"] = [0, 0]
    with pytest.raises(InvalidInputError, match=r"a window of \[3\] does not fit .* of \[1\]"):
        pooled(DYNAMIC, np.zeros((1, 2, 1), np.float32))


@pytest.mark.parametrize(("dtype", "count"), [(np.int8, 175), (np.uint8, 300), (np.int16, 40000)])
def test_the_mean_of_many_narrow_integers(dtype, count):
    x = np.full(count, np.iinfo(dtype).max, dtype)
    x[:3] = 0
    want = np.array(int(x.astype(np.int64).sum()) // count, dtype)
    agree(lambda b, x: b(graph.ReduceOp, x, kind="mean", axes=[0], keepdims=False), want, x)


def test_integers_to_negative_powers():
    x = np.array([2, 1, -1, -1, 0, 3, -2], np.int32)
    y = np.array([-1, -3, -3, -2, -1, 5, 31], np.int32)
    binary(graph.PowOp, np.array([0, 1, -1, 1, 0, 243, -(2**31)], np.int32), x, y)


def test_unsigned_powers_beyond_the_highest_bit():
    x, y = np.array([2, 3, 3, 255], np.uint8), np.array([200, 200, 7, 129], np.uint8)
    want = [pow(int(p), int(q), 256) for p, q in zip(x, y, strict=True)]
    binary(graph.PowOp, np.array(want, np.uint8), x, y)


def test_quotients_of_the_least_integer():
    x = np.array([-128, -128, -128, 5, -7], np.int8)
    y = np.array([3, -1, -128, 0, 0], np.int8)
    binary(graph.DivOp, np.array([-42, -128, 1, 0, 0], np.int8), x, y)
    binary(graph.RemOp, np.array([-2, 0, 0, 0, 0], np.int8), x, y)
    binary(graph.ModOp, np.array([1, 0, 0, 0, 0], np.int8), x, y)


@pytest.mark.parametrize(
    ("op", "want"), [(graph.MaxOp, [-0.0, 0.0, 1.0]), (graph.MinOp, [-0.0, 0.0, 0.0])]
)
def test_the_second_of_two_zeros(op, want):
    x, y = np.array([0.0, -0.0, 1.0], np.float32), np.array([-0.0, 0.0, 0.0], np.float32)
    binary(op, np.array(want, np.float32), x, y)


def test_floats_that_are_out_of_range():
    x = np.array([np.nan, np.inf, -np.inf, 3e9, -1.5, 300.0, 1e19, 1e20], np.float32)
    top, bottom = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    wide = np.array([0, top, bottom, 3_000_000_000, -1, 300, top, top])
    for dtype in (np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64):
        to = tensor_of(np.zeros(1, dtype)).element_type
        agree(lambda b, x, to=to: b(graph.CastOp, x, to=to), wide.astype(dtype), x)
    high = wide.astype(np.uint64)
    high[[1, 6, 7]] = 2**64 - 1, int(np.float32(1e19)), 2**64 - 1
    agree(lambda b, x: b(graph.CastOp, x, to=tensor_of(high).element_type), high, x)


@pytest.mark.parametrize("kind", ["sum", "max", "min", "prod", "mean"])
def test_unsigned_reductions(kind):
    x = np.array([[200, 100, 7], [3, 255, 130]], np.uint8)
    y = {
        "sum": x.sum(1),
        "max": x.max(1),
        "min": x.min(1),
        "prod": x.prod(1),
        "mean": x.sum(1) // 3,
    }
    want = y[kind].astype(np.uint8)
    agree(lambda b, x: b(graph.ReduceOp, x, kind=kind, axes=[1], keepdims=False), want, x)


def test_no_sum_is_a_negative_zero():
    x = np.full((2, 1), -0.0, np.float32)
    zeros = np.zeros(2, np.float32)
    agree(lambda b, x: b(graph.ReduceOp, x, kind="sum", axes=[1], keepdims=False), zeros, x)


@pytest.mark.parametrize("extent", [1, 5, 90])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_of_negative_zeros_alone_are_negative(extent, reverse):
    x = np.full((2, extent), -0.0, np.float32)
    x[1, extent // 2] = 0
    turned = x[:, ::-1] if reverse else x
    want = np.add.accumulate(turned, 1)[:, :: -1 if reverse else 1]
    running = {"axis": 1, "exclusive": False, "reverse": reverse}
    agree(lambda b, x: b(graph.CumSumOp, x, **running), want, x)
    # Without the element itself the first sum is one of nothing, 0.0.
    agree(lambda b, x: b(graph.CumSumOp, x, **{**running, "exclusive": True}), np.zeros_like(x), x)


@pytest.mark.parametrize(
    ("dtype", "kind", "want"),
    [
        *((d, "sum", 0) for d in (np.float32, np.int16, np.uint8)),
        *((d, "prod", 1) for d in (np.float32, np.int16, np.uint8)),
        *((np.float32, "max", -np.inf), (np.float32, "min", np.inf), (np.float32, "mean", np.nan)),
        *((np.int16, "max", -32768), (np.int16, "min", 32767)),
        *((np.uint8, "max", 0), (np.uint8, "min", 255)),
    ],
)
def test_reductions_of_no_elements(dtype, kind, want):
    x, y = np.zeros((3, 0), dtype), np.full(3, want, dtype)
    agree(lambda b, x: b(graph.ReduceOp, x, kind=kind, axes=[1], keepdims=False), y, x)


def operand(t):
    return Block(arg_types=[t]).args[0]


@pytest.mark.parametrize(
    ("op", "props"),
    [
        (graph.NegOp, {}),
        (graph.AbsOp, {}),
        (graph.MaxPoolOp, POOL),
        (graph.ReduceOp, {"kind": "sum", "axes": [0], "keepdims": False}),
        (graph.CumSumOp, {"axis": 0, "exclusive": False, "reverse": False}),
    ],
)
def test_arithmetic_of_booleans_is_refused(op, props):
    x = operand(tensor(i1, (1, 1, 4, 4)))
    with pytest.raises(VerifyException, match=rf"'{op.name}' expects elements of .*, got tensor"):
        op.make([x], {k: attribute(v) for k, v in props.items()})


@pytest.mark.parametrize("op", [graph.SubOp, graph.PowOp, graph.DivOp, graph.MatmulOp])
def test_arithmetic_of_two_booleans_is_refused(op):
    x = operand(tensor(i1, (2, 2)))
    with pytest.raises(VerifyException, match=f"'{op.name}' expects elements of"):
        op.make([x, x])


@pytest.mark.parametrize("op", [graph.AddOp, graph.CompareOp, graph.ConcatOp])
def test_elements_without_a_numpy_type_are_refused(op):
    x = operand(tensor(f128, (2,)))
    with pytest.raises(VerifyException, match=f"'{op.name}' expects elements of .*f128"):
        op.make([x, x], {"predicate": attribute("eq"), "axis": attribute(0)})


@pytest.mark.parametrize(
    ("op", "dtype", "props"),
    [
        (graph.ReduceOp, np.int32, {"kind": "mean", "axes": [1], "keepdims": False}),
        (graph.ArgmaxOp, np.float32, {"axis": 1, "keepdims": False}),
        (graph.SoftmaxOp, np.float32, {"axis": 1}),
    ],
)
def test_what_has_no_value_of_no_elements_is_refused(op, dtype, props):
    x = operand(tensor_of(np.zeros((3, 0), dtype)))
    with pytest.raises(VerifyException, match=f"'{op.name}' expects .*one element or more"):
        op.make([x], {k: attribute(v) for k, v in props.items()})


def test_indices_outside_pick_the_nearest_element():
    x = np.array([[1, 2, 3], [4, 5, 6]], np.int8)
    rows, cells = np.array([-1, 5]), np.array([[9, -9], [0, 2]])
    agree(lambda b, x, i: b(graph.GatherOp, x, i, axis=0), x, x, rows)
    want = np.array([[3, 1], [4, 6]], np.int8)
    agree(lambda b, x, i: b(graph.GatherElementsOp, x, i, axis=1), want, x, cells)


def test_a_window_in_padding_alone_has_no_position():
    x = operand(tensor_of(np.zeros((1, 1, 1), np.float32)))
    props = {"kernel_shape": [2], "strides": [1], "pads": [1, 1], "dilations": [2]}
    with pytest.raises(VerifyException, match="windows with an element each"):
        graph.MaxPoolIndicesOp.make(
            [x], {k: attribute(v) for k, v in {**props, "column_major": False}.items()}
        )


@pytest.mark.parametrize("value", [0.5, 300.0, float("nan")])
def test_numbers_that_are_no_integers_are_refused(value):
    x = operand(tensor_of(np.zeros((2, 2), np.int8)))
    with pytest.raises(VerifyException, match="a value of i8"):
        graph.PadOp.make(
            [x], {k: attribute(v) for k, v in _PAD.items()} | {"value": attribute(value)}
        )
    props = {"trans_a": False, "trans_b": False, "alpha": value, "beta": 1.0}
    with pytest.raises(VerifyException, match="alpha to be a number of i8"):
        graph.GemmOp.make([x, x], {k: attribute(v) for k, v in props.items()})


_PAD = {"low": [1, 0], "high": [0, 1]}
