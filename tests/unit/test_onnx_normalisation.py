"""Normalisation, reductions, running sums and the largest k against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx.reference
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx_nodes import floats, judged, model, node, run

import irkit
from irkit.errors import UnsupportedError
from irkit.frontends.onnx import import_onnx

REDUCTIONS = ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"]


@pytest.mark.parametrize("kind", REDUCTIONS)
@pytest.mark.parametrize("opset", [12, 18])
@pytest.mark.parametrize(("axes", "keep"), [(None, 1), ([1], 0), ([-1, 0], 1), ([2, 1], 0)])
def test_reductions(kind, opset, axes, keep):
    x = {"x": np.abs(floats(2, 3, 4)) + 0.1}
    weights = {"a": np.array(axes or [], np.int64)}
    if opset == 12:
        one = node(f"Reduce{kind}", "x", keepdims=keep, **({"axes": axes} if axes else {}))
        weights = {}
    else:
        one = node(f"Reduce{kind}", "x a", keepdims=keep)
    judged(model([one], x, weights, opset=opset), x)


@pytest.mark.parametrize("kind", ["L1", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"])
def test_integer_reductions(kind):
    x = {"x": np.random.default_rng(2).integers(-9, 9, (2, 3, 4)).astype(np.int32)}
    judged(model([node(f"Reduce{kind}", "x a")], x, {"a": np.array([1])}), x)


def test_no_axes_may_mean_none():
    x = {"x": floats(2, 3)}
    one = node("ReduceSum", "x a", noop_with_empty_axes=1)
    judged(model([one], x, {"a": np.zeros(0, np.int64)}), x)


def test_booleans():
    x = {"x": np.random.default_rng(2).random((3, 4)) > 0.5}
    for kind, want in (("Max", x["x"].any(1)), ("Min", x["x"].all(1))):
        one = node(f"Reduce{kind}", "x a", keepdims=0)
        (y,) = run(model([one], x, {"a": np.array([1])}, opset=20), x)
        np.testing.assert_array_equal(y, want)


def test_log_sum_exp_of_what_overflows():
    x = {"x": np.array([[1e4, 1e4], [-np.inf, -np.inf], [np.inf, 0], [-1e4, -2e4]], np.float32)}
    (y,) = run(model([node("ReduceLogSumExp", "x a", keepdims=0)], x, {"a": np.array([1])}), x)
    np.testing.assert_allclose(y, [1e4 + np.log(2), -np.inf, np.inf, -1e4], rtol=1e-6)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8, np.int32])
def test_positions(op, last, dtype):
    kind = np.dtype(dtype)
    x = np.random.default_rng(4).integers(0, 3, (5, 6)).astype(dtype)
    if kind.kind == "i":
        x[0, 1], x[1, 2] = np.iinfo(dtype).min, np.iinfo(dtype).max
    for axis in (0, -1):
        one = node(op, "x", axis=axis, keepdims=last, select_last_index=last)
        proto = model([one], {"x": x})
        (want,) = onnx.reference.ReferenceEvaluator(proto).run(None, {"x": x})
        np.testing.assert_array_equal(run(proto, {"x": x})[0], want)


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.int64])
@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize(("shape", "axis"), [((7,), 0), ((3, 1, 9), -1), ((5, 4), 0)])
def test_running_sums(dtype, exclusive, reverse, shape, axis):
    x = {"x": (10 * floats(*shape)).astype(dtype)}
    one = node("CumSum", "x a", exclusive=exclusive, reverse=reverse)
    judged(model([one], x, {"a": np.array(axis)}), x)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(1, 9), st.data(), st.booleans(), st.sampled_from([np.float32, np.int64]))
def test_top_k(size, data, largest, dtype):
    k, axis = data.draw(st.integers(1, size)), data.draw(st.integers(0, 1))
    shape = (size, 3) if axis == 0 else (3, size)
    values = data.draw(st.lists(st.integers(-3, 3), min_size=3 * size, max_size=3 * size))
    x = {"x": np.array(values, dtype).reshape(shape)}
    one = node("TopK", "x k", "y i", axis=axis, largest=int(largest))
    judged(model([one], x, {"k": np.array([k])}, outputs=("y", "i")), x)


@pytest.mark.parametrize("largest", [0, 1])
def test_top_k_of_nan(largest):
    x = {"x": np.array([1, np.nan, -np.inf, np.nan, np.inf], np.float32)}
    one = node("TopK", "x k", "y i", largest=largest)
    y, i = run(model([one], x, {"k": np.array([5])}, outputs=("y", "i")), x)
    assert i.tolist() == ([1, 3, 4, 0, 2] if largest else [2, 0, 4, 1, 3])
    np.testing.assert_array_equal(y, x["x"][i])


@pytest.mark.parametrize("size", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("batch", [False, True])
def test_local_response_normalisation(size, batch):
    x = {"x": floats(2, 6, 3, 2)}
    # ONNX Runtime takes odd sizes only.
    one = node("LRN", "x", size=size, alpha=0.5, beta=0.6, bias=1.5)
    proto = model([one], x, batch=batch)
    if size % 2:
        judged(proto, x)
    else:
        # One neighbour less before than after.
        squares = np.pad(x["x"] ** 2, ((0, 0), (0, 1), (0, 0), (0, 0)))
        total = squares[:, :-1] + squares[:, 1:]
        want = x["x"] / (1.5 + 0.5 / size * total) ** 0.6
        np.testing.assert_allclose(run(proto, x)[0], want, rtol=1e-5)


@pytest.mark.parametrize("op", ["Hardmax", "LogSoftmax", "Softmax"])
@pytest.mark.parametrize("opset", [11, 13])
def test_softmax_and_its_kin(op, opset):
    x = {"x": 30 * floats(2, 3, 4)}
    for axis in (0, 1, -1):
        judged(model([node(op, "x", axis=axis)], x, opset=opset), x)
    judged(model([node(op, "x")], x, opset=opset), x)
    judged(model([node(op, "x", axis=1)], x, opset=opset, batch=True), x)


def test_log_softmax_of_what_underflows():
    x = {"x": np.array([[0, 500]], np.float32)}
    (y,) = run(model([node("LogSoftmax", "x")], x), x)
    assert y.tolist() == [[-500, 0]]


def test_instance_and_group_normalisation():
    x, weights = {"x": floats(2, 6, 4, 3)}, {"s": floats(6), "b": floats(6, seed=8)}
    judged(model([node("InstanceNormalization", "x s b", epsilon=1e-2)], x, weights, batch=True), x)
    group = node("GroupNormalization", "x s b", num_groups=3)
    judged(model([group], x, weights, opset=21), x)


def test_batch_normalisation_in_training():
    x = {"x": floats(4, 3, 2)}
    weights = {n: np.abs(floats(3, seed=i)) for i, n in enumerate("sbmv")}
    one = node("BatchNormalization", "x s b m v", "y rm rv", training_mode=1, momentum=0.7)
    proto = model([one], x, weights, outputs=("y", "rm", "rv"))
    wanted = onnx.reference.ReferenceEvaluator(proto).run(None, x)
    for got, want in zip(run(proto, x), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    program = irkit.compile(
        model([one], x, weights, outputs=("y", "rm", "rv"), batch=True), target="cpu"
    )
    for got, want in zip(program(x["x"]), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    assert "mean over dimension 0" in program.report()["batch"]["rows mix"][0]


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_layer_normalisation(axis):
    x = {"x": floats(2, 3, 4)}
    shape = x["x"].shape[axis:]
    weights = {"s": floats(*shape), "b": floats(*shape, seed=8)}
    one = node("LayerNormalization", "x s b", "y m d", axis=axis)
    judged(model([one], x, weights, outputs=("y", "m", "d")), x)
    rms = node("RMSNormalization", "x s", axis=axis, epsilon=1e-2)
    proto = model([rms], x, {"s": weights["s"]}, opset=23)
    (want,) = onnx.reference.ReferenceEvaluator(proto).run(None, x)
    np.testing.assert_allclose(run(proto, x)[0], want, rtol=1e-5)


@pytest.mark.parametrize("p", [1, 2])
def test_lp_normalisation(p):
    x = {"x": floats(2, 3, 4)}
    judged(model([node("LpNormalization", "x", p=p, axis=1)], x), x)
    nothing = {"x": np.zeros((2, 2), np.float32)}
    (y,) = run(model([node("LpNormalization", "x", p=p)], nothing), nothing)
    assert not y.any()


def test_mean_variance_normalisation():
    x = {"x": floats(2, 3, 4, 5)}
    judged(model([node("MeanVarianceNormalization", "x")], x, opset=13), x)
    judged(model([node("MeanVarianceNormalization", "x", axes=[1, 2])], x, opset=13), x)


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (node("LRN", "x", size=0), "a size of 1 or more"),
        (node("LpNormalization", "x", p=3), "p = 3: only 1 and 2 are norms"),
        (node("InstanceNormalization", "x s s"), "input of rank 2: 3 dimensions or more"),
        (node("CumSum", "x z"), "axis = 0: it mixes the rows of a dynamic batch"),
        (node("Softmax", "x", axis=0), "axis = 0: it mixes the rows of a dynamic batch"),
    ],
)
def test_refusals(one, reason):
    x, weights = {"x": floats(2, 3)}, {"s": floats(3), "z": np.array(0)}
    with pytest.raises(UnsupportedError, match=reason):
        import_onnx(model([one], x, weights, batch=True))
