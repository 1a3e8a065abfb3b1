"""Convolution and pooling: random windows, with ONNX Runtime as the judge."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx_nodes import floats, judged, model, node, run

from irkit.dialects.graph.pooling import Windows
from irkit.errors import UnsupportedError
from irkit.frontends.onnx import import_onnx

FEW = settings(max_examples=25, deadline=None, derandomize=True)


@st.composite
def windows(draw, largest_stride=3):
    """Kernel, strides, dilations, pads and an input size that fits them, per dimension."""
    rank = draw(st.integers(1, 3))
    parts = {n: [] for n in ("kernel_shape", "strides", "dilations", "before", "after", "size")}
    for _ in range(rank):
        kernel, dilation = draw(st.integers(1, 3)), draw(st.integers(1, 2))
        extent = dilation * (kernel - 1) + 1
        # ONNX Runtime wants pads smaller than the kernel.
        pads = [draw(st.integers(0, kernel - 1)) for _ in range(2)]
        size = max(extent, draw(st.integers(1, 7)))
        stride = draw(st.integers(1, largest_stride))
        for name, value in zip(parts, (kernel, stride, dilation, *pads, size), strict=True):
            parts[name].append(value)
    return parts


def attributes(w, *names):
    return {n: w[n] for n in names} | {"pads": w["before"] + w["after"]}


@FEW
@given(windows(), st.sampled_from([(1, 2, 3), (2, 4, 4), (3, 3, 6)]), st.booleans())
def test_conv(w, groups, biased):
    group, channels, outputs = groups
    x = {"x": floats(2, channels, *w["size"])}
    weights = {"w": floats(outputs, channels // group, *w["kernel_shape"]), "b": floats(outputs)}
    conv = node("Conv", "x w b" if biased else "x w", group=group,
                **attributes(w, "strides", "dilations"))  # fmt: skip
    judged(model([conv], x, weights), x)


@FEW
@given(windows(), st.sampled_from([(1, 2, 3), (2, 4, 2)]), st.booleans(), st.data())
def test_conv_transpose(w, groups, constant, data):
    group, channels, outputs = groups
    longer = [data.draw(st.integers(0, s - 1)) for s in w["strides"]]
    x = {"x": floats(1, channels, *w["size"])}
    weights = {"w": floats(channels, outputs, *w["kernel_shape"]), "b": floats(outputs * group)}
    conv = node("ConvTranspose", "x w b", group=group, output_padding=longer,
                **attributes(w, "strides", "dilations"))  # fmt: skip
    sizes = [
        (n - 1) * s + d * (k - 1) + 1 + o - a - b
        for n, s, d, k, o, a, b in zip(
            w["size"], w["strides"], w["dilations"], w["kernel_shape"], longer, w["before"],
            w["after"], strict=True,
        )
    ]  # fmt: skip
    if min(sizes) < 1:
        return
    if not constant:
        x, weights = {**x, "w": weights["w"]}, {"b": weights["b"]}
    judged(model([conv], x, weights), x)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
def test_conv_transpose_auto_pad(auto_pad):
    x = {"x": floats(1, 2, 5, 4)}
    conv = node("ConvTranspose", "x w", auto_pad=auto_pad, strides=[2, 3])
    judged(model([conv], x, {"w": floats(2, 3, 3, 4)}), x)


def test_conv_transpose_output_shape():
    x = {"x": floats(1, 2, 5, 4)}
    conv = node("ConvTranspose", "x w", output_shape=[10, 11], strides=[2, 3])
    judged(model([conv], x, {"w": floats(2, 3, 3, 4)}), x)
    conv = node("ConvTranspose", "x w", output_shape=[14, 11], strides=[2, 3])
    with pytest.raises(UnsupportedError, match=r"output_shape = \[14, 11\]: no padding makes"):
        import_onnx(model([conv], x, {"w": floats(2, 3, 3, 4)}))


def unsized(proto):
    """Without the shapes of outputs: before operator set 22 ONNX's own inference counts windows that start
    behind the input, which no runtime has."""
    for output in proto.graph.output:
        output.type.tensor_type.ClearField("shape")
    return proto


@FEW
@given(windows(), st.booleans(), st.booleans(), st.booleans())
def test_average_pool(w, ceil, include, batch):
    x = {"x": floats(2, 2, *w["size"])}
    pool = node("AveragePool", "x", ceil_mode=int(ceil), count_include_pad=int(include),
                **attributes(w, "kernel_shape", "strides", "dilations"))  # fmt: skip
    judged(unsized(model([pool], x, opset=19, batch=batch)), x)


@FEW
@given(windows(), st.booleans(), st.booleans(), st.booleans())
def test_max_pool(w, ceil, indices, flat):
    x = {"x": floats(2, 2, *w["size"])}
    if flat:
        # Many equal elements: the first must win, and padding never.
        x["x"] = np.sign(x["x"]) - 1
    outputs = ("y", "i") if indices else ("y",)
    pool = node("MaxPool", "x", " ".join(outputs), ceil_mode=int(ceil),
                **attributes(w, "kernel_shape", "strides", "dilations"))  # fmt: skip
    judged(unsized(model([pool], x, outputs=outputs)), x)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_max_pool_of_bytes(dtype):
    info = np.iinfo(dtype)
    x = {"x": np.random.default_rng(1).integers(info.min, info.max, (1, 2, 5, 6)).astype(dtype)}
    x["x"][0, 0] = info.min
    pool = node("MaxPool", "x", kernel_shape=[2, 2], pads=[1, 1, 1, 1])
    judged(model([pool], x), x)


def test_column_major_indices():
    x = {"x": floats(2, 2, 4, 5)}
    pool = node("MaxPool", "x", "y i", kernel_shape=[2, 2], storage_order=1)
    judged(model([pool], x, outputs=("y", "i")), x)


def test_indices_of_infinities_and_nan():
    x = np.full((1, 1, 4), -np.inf, np.float32)
    x[0, 0, 3] = np.nan
    pool = node("MaxPool", "x", "y i", kernel_shape=[2], pads=[1, 1])
    y, i = run(model([pool], {"x": x}, outputs=("y", "i")), {"x": x})
    assert i.tolist() == [[[0, 0, 1, 3, 3]]]
    assert np.isnan(y[0, 0, 3:]).all()


@FEW
@given(windows(), st.integers(1, 3))
def test_lp_pool(w, p):
    x = {"x": floats(2, 2, *w["size"])}
    pool = node("LpPool", "x", p=p, **attributes(w, "kernel_shape", "strides"))
    judged(model([pool], x, opset=11), x)


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_global_pools(op, rank):
    x = {"x": floats(2, 3, *(4,) * rank)}
    judged(model([node(op, "x")], x, batch=True), x)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize("auto_pad", ["VALID", "SAME_UPPER", "SAME_LOWER"])
def test_sizes_are_rounded_up_without_padding_too(op, auto_pad):
    x = {"x": floats(1, 2, 7, 8)}
    how = {"kernel_shape": [2, 4], "strides": [3, 3], "ceil_mode": 1, "auto_pad": auto_pad}
    judged(model([node(op, "x", **how)], x, opset=22), x)


def test_windows_that_start_behind_the_input_are_dropped():
    """As operator set 22 says; the size is that of ONNX's own test."""
    x = {"x": floats(1, 1, 2, 2)}
    pool = node("MaxPool", "x", kernel_shape=[1, 1], strides=[2, 2], ceil_mode=1)
    (y,) = run(model([pool], x, opset=22), x)
    assert y.tolist() == [[[[x["x"][0, 0, 0, 0]]]]]


@pytest.mark.parametrize(
    ("one", "shape", "reason"),
    [
        (node("MaxPool", "x", kernel_shape=[1] * 4), (1, 1, 2, 2, 2, 2), "1 to 3 spatial"),
        (node("MaxPool", "x", kernel_shape=[2], pads=[2, 0]), (1, 1, 5), "pads smaller"),
        (
            node("AveragePool", "x", kernel_shape=[2**62], auto_pad="SAME_UPPER"),
            (1, 1, 5),
            r"auto_pad = 'SAME_UPPER' of kernel_shape = \[4611686018427387904\]: padding of up to 16777216",
        ),
        (
            node("MaxPool", "x", kernel_shape=[2**30], pads=[2**30 - 1] * 2),
            (1, 1, 5),
            "pads: padding of up to 16777216 elements is supported",
        ),
    ],
)
def test_refusals(one, shape, reason):
    x = {"x": floats(*shape)}
    with pytest.raises(UnsupportedError, match=reason):
        import_onnx(model([one], x))


@pytest.mark.parametrize(
    ("op", "attributes", "reason"),
    [
        ("Conv", {"pads": [2**62, 0]}, "pads: padding of up to 16777216 elements"),
        ("ConvTranspose", {"strides": [2**40]}, r"they make \[4398046511107\] of \[5\] elements"),
        ("ConvTranspose", {"dilations": [2**40]}, r"they make \[2199023255557\] of \[5\]"),
    ],
)
def test_convolutions_that_are_too_large_are_refused_at_once(op, attributes, reason):
    weights = {"w": floats(2, 2, 3)}
    with pytest.raises(UnsupportedError, match=reason):
        import_onnx(model([node(op, "x w", **attributes)], {"x": floats(1, 2, 5)}, weights))


@pytest.mark.parametrize("stride", [7, 2**31, 2**62])
def test_strides_longer_than_the_input(stride):
    x = {"x": floats(1, 2, 5)}
    conv = node("Conv", "x w", strides=[stride])
    judged(model([conv], x, {"w": floats(3, 2, 3)}), x)


@pytest.mark.parametrize("padding", [True, False])
def test_elements_of_windows_are_counted(padding):
    """As one by one, of windows that reach over what they count."""
    where = Windows((3,), (2,), (2,), (4,), (1,), (7,), (8,))
    places = np.arange(7)[:, None] * 2 - 4 + np.arange(3) * 2
    low, high = (-4, 6) if padding else (0, 5)
    want = ((places >= low) & (places < high)).sum(axis=1)
    assert where.counts((5,), padding=padding).tolist() == want.tolist()


def test_windows_far_longer_than_the_input_are_counted():
    where = Windows((2**62,), (1,), (1,), (2**61,), (2**61,), (2,), (2**61,))
    assert where.counts((5,), padding=False).tolist() == [5, 5]
