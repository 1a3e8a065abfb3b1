"""Operators on quantised tensors, judged by ONNX Runtime: at two levels and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from onnx_nodes import lowered

import irkit
from irkit.driver.compiler.artifacts import build_artifact
from irkit.errors import UnsupportedError
from irkit.frontends.onnx import import_onnx
from irkit.interp.graph import run_graph
from irkit.interp.tensor import run_tensor

RUNTIME: Any = onnxruntime
RNG = np.random.default_rng(23)
U8, I8, F32 = np.uint8, np.int8, np.float32


def some(dtype, *shape):
    """Random elements over the whole range of `dtype`."""
    limits = np.iinfo(dtype)
    return RNG.integers(limits.min, limits.max + 1, shape).astype(dtype)


def model(op, x, constants, domain="", version=17, **attributes):
    """One node: input 'x', and `constants` by position (None is left out)."""
    names = [f"c{i}" if c is not None else "" for i, c in enumerate(constants)]
    names = ["x" if isinstance(c, str) else n for c, n in zip(constants, names, strict=True)]
    node = helper.make_node(op, names, ["y"], domain=domain, **attributes)
    weights = [
        numpy_helper.from_array(np.asarray(c), n)
        for c, n in zip(constants, names, strict=True)
        if c is not None and n != "x"
    ]
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    declared = helper.make_tensor_value_info("x", kind, x.shape)
    result = onnx.ValueInfoProto(name="y")
    graph = helper.make_graph([node], "g", [declared], [result], weights)
    opsets = [helper.make_opsetid("", version), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def judged(proto, x):
    """What ONNX Runtime computes, and the model with its results' types."""
    session = RUNTIME.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    want = session.run(None, {"x": x})
    for value, array in zip(proto.graph.output, want, strict=True):
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        value.CopyFrom(helper.make_tensor_value_info(value.name, kind, array.shape))
    return want


def answers(proto, x):
    """The results of graph and tensor level, and of the program."""
    imported = import_onnx(proto)
    yield run_graph(imported.module, imported.weights, [x])
    yield run_tensor(lowered(imported), imported.weights, [x])
    yield irkit.compile(proto, device="cpu1").run([x])


def check(proto, x, apart=0):
    """Every level gives ONNX Runtime's integers, or is `apart` from them."""
    want = judged(proto, x)
    for got in answers(proto, x):
        for mine, theirs in zip(got, want, strict=True):
            assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
            if theirs.dtype.kind == "f":
                np.testing.assert_array_equal(mine, theirs)
            else:
                assert np.abs(mine.astype(np.int64) - theirs.astype(np.int64)).max() <= apart


def close(proto, x):
    """Every level gives ONNX Runtime's floats, which may add a bias in one rounding."""
    (want,) = judged(proto, x)
    for (got,) in answers(proto, x):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("kind", [U8, I8])
@pytest.mark.parametrize("zero", [None, 5])
def test_matmul_integer(kind, zero):
    x = some(U8, 7, 45)
    points = [None, None] if zero is None else [U8(131), kind(zero)]
    check(model("MatMulInteger", x, ["x", some(kind, 45, 19), *points]), x)


def test_matmul_integer_of_columns_and_batches():
    x = some(U8, 3, 5, 12)
    check(model("MatMulInteger", x, ["x", some(I8, 12, 9), U8(3), some(I8, 9)]), x)


@pytest.mark.parametrize(
    ("left", "right"),
    [((12,), (12, 9)), ((5, 12), (12,)), ((2, 5, 12), (12,)), ((12,), (2, 12, 9))],
)
def test_products_of_vectors(left, right):
    """A vector is a row or a column, which the result has not."""
    x, b = some(U8, *left), some(I8, *right)
    check(model("MatMulInteger", x, ["x", b, U8(3), I8(-7)]), x)
    scales = F32(0.013), F32(0.021), F32(0.9)
    parts = ["x", scales[0], U8(120), b, scales[1], I8(2), scales[2], U8(128)]
    check(model("QLinearMatMul", x, parts), x)


@pytest.mark.parametrize("kind", [U8, I8])
def test_qlinear_matmul(kind):
    x = some(U8, 9, 60)
    scales = F32(0.013), F32(0.021), F32(0.9)
    parts = ["x", scales[0], U8(120), some(kind, 60, 17), scales[1], kind(2), scales[2], U8(128)]
    check(model("QLinearMatMul", x, parts), x)


def test_qlinear_matmul_of_columns():
    x = some(U8, 9, 60)
    scales = RNG.uniform(0.01, 0.03, 17).astype(F32)
    parts = ["x", F32(0.02), U8(9), some(I8, 60, 17), scales, np.zeros(17, I8), F32(1.1), U8(77)]
    check(model("QLinearMatMul", x, parts), x)


CONVOLUTIONS = {
    "padded": (8, (6, 8, 3, 3), {"pads": [1, 1, 1, 1]}),
    "strided": (8, (5, 8, 3, 2), {"strides": [2, 1], "pads": [2, 0, 1, 1]}),
    "pointwise": (8, (12, 8, 1, 1), {}),
    "depthwise": (8, (8, 1, 3, 3), {"group": 8, "pads": [1, 1, 1, 1]}),
    "groups": (8, (6, 4, 3, 3), {"group": 2, "dilations": [2, 1]}),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
@pytest.mark.parametrize("kind", [U8, I8])
def test_qlinear_conv(name, kind):
    channels, shape, attributes = CONVOLUTIONS[name]
    x, outputs = some(U8, 1, channels, 11, 10), shape[0]
    zeros = np.zeros(outputs, kind) if kind is I8 else np.uint8(113)
    scales = RNG.uniform(0.001, 0.01, outputs).astype(F32) if kind is I8 else F32(0.004)
    bias = RNG.integers(-2000, 2000, outputs).astype(np.int32)
    parts = ["x", F32(0.03), U8(101), some(kind, *shape), scales, zeros, F32(0.2), U8(120), bias]
    check(model("QLinearConv", x, parts, **attributes), x)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_conv_integer(name):
    channels, shape, attributes = CONVOLUTIONS[name]
    x = some(U8, 2, channels, 9, 12)
    check(model("ConvInteger", x, ["x", some(U8, *shape), U8(77), U8(130)], **attributes), x)


@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("scaled", [False, True])
def test_q_gemm(turned, scaled):
    x, b = some(U8, 6, 40), some(I8, 40, 11)
    scales, bias = RNG.uniform(0.01, 0.03, 11).astype(F32), some(np.int16, 11).astype(np.int32)
    parts = ["x", F32(0.02), U8(9), b.T.copy() if turned else b, scales, np.zeros(11, I8), bias]
    parts += [F32(1.1), U8(77)] if scaled else []
    check(model("QGemm", x, parts, "com.microsoft", transB=turned, alpha=0.75), x)


def test_q_gemm_without_a_zero_point_of_the_result_is_of_floats():
    x, b = some(U8, 6, 40), some(I8, 40, 11)
    parts = ["x", F32(0.02), U8(9), b, F32(0.03), I8(0), None, F32(1.1)]
    check(model("QGemm", x, parts, "com.microsoft"), x)


@pytest.mark.parametrize("kind", [U8, I8])
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_products_of_floats_and_integers(kind, columns, biased):
    """As ONNX Runtime's optimiser writes them into what its quantiser has made."""
    b = some(kind, 40, 11)
    scale = RNG.uniform(0.01, 0.03, 11).astype(F32) if columns else F32(0.02)
    zero = some(kind, 11) if columns else kind(3)
    bias = RNG.standard_normal(11).astype(F32) if biased else None
    x = RNG.standard_normal((2, 6, 40)).astype(F32)
    close(model("DynamicQuantizeMatMul", x, ["x", b, scale, zero, bias], "com.microsoft"), x)
    x = some(U8, 2, 6, 40)
    parts = ["x", b, F32(0.1), scale, U8(200), zero, bias]
    close(model("MatMulIntegerToFloat", x, parts, "com.microsoft"), x)


@pytest.mark.parametrize("kind", [U8, I8])
def test_where(kind):
    x, y = some(kind, 5, 33), some(kind, 33)
    parts = [x > 9, "x", F32(0.03), kind(7), y, F32(0.05), kind(100), F32(0.04), kind(3)]
    check(model("QLinearWhere", x, parts, "com.microsoft"), x)


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("kind", [U8, I8])
def test_binary(op, kind):
    """Half of the results that are half-way between two numbers go the other way without the zero point."""
    x = some(kind, 16, 33)
    for scales in ((0.03, 0.011, 0.05), (0.05, 0.1, 0.2), (0.05, 0.05, 0.2)):
        first, second, third = map(F32, scales)
        parts = ["x", first, kind(7), some(kind, 33), second, kind(4), third, kind(3)]
        check(model(op, x, parts, "com.microsoft"), x)


@pytest.mark.parametrize("opset", [21, 23])
@pytest.mark.parametrize("kind", [U8, I8, np.uint16, np.int16])
def test_quantisation_of_halves(opset, kind):
    """Of 16 bits, float16 holds few of the integers; since operator set 23 the quotient is one of them."""
    x = np.concatenate([RNG.standard_normal(500) * s for s in (1, 100, 1e4)]).astype(np.float16)
    x[:4] = np.inf, -np.inf, 65504, -65504
    for scale in (0.01, 7):
        parts = ["x", np.float16(scale), kind(77)]
        proto = model("QuantizeLinear", x, parts, version=opset)
        check(proto, x)
        q = judged(proto, x)[0]
        parts = ["x", np.float16(scale), kind(77)]
        check(model("DequantizeLinear", q, parts, version=opset), q)


@pytest.mark.parametrize("op", ["QLinearSigmoid", "QLinearLeakyRelu"])
@pytest.mark.parametrize("kind", [U8, I8])
def test_unary(op, kind):
    x = np.arange(256).astype(kind).reshape(4, 64)
    attributes = {"alpha": 0.2} if op == "QLinearLeakyRelu" else {}
    parts = ["x", F32(0.03), kind(7), F32(1 / 256), None if kind is U8 else kind(-128)]
    check(model(op, x, parts, "com.microsoft", **attributes), x)


def test_concat():
    x = some(U8, 2, 3, 5)
    parts = [F32(0.04), U8(12), "x", F32(0.03), U8(7), some(U8, 2, 4, 5), F32(0.05), U8(100)]
    check(model("QLinearConcat", x, parts, "com.microsoft", axis=1), x)


@pytest.mark.parametrize("kind", [U8, I8])
def test_pools(kind):
    x = some(kind, 2, 5, 7, 9)
    parts = ["x", F32(0.03), kind(7), F32(0.01), kind(4)]
    check(model("QLinearGlobalAveragePool", x, parts, "com.microsoft"), x)
    windows = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    check(model("QLinearAveragePool", x, parts, "com.microsoft", **windows), x, apart=1)


def test_softmax():
    x = some(U8, 6, 40)
    parts = ["x", F32(0.03), U8(7), F32(1 / 256), U8(0)]
    check(model("QLinearSoftmax", x, parts, "com.microsoft", opset=13, axis=-1), x, apart=1)


@pytest.mark.parametrize("scale", [0.0, 1.0, 300.0])
def test_dynamic_quantisation(scale):
    x = (RNG.standard_normal((5, 31)) * scale).astype(F32)
    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "s", "z"])
    declared = helper.make_tensor_value_info("x", 1, x.shape)
    results = [onnx.ValueInfoProto(name=n) for n in "ysz"]
    graph = helper.make_graph([node], "g", [declared], results)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    check(proto, x)


REFUSED = {
    "a scale per column": ("QLinearAdd", [F32(0.1), U8(1), some(U8, 4), np.ones(4, F32), U8(0)],
                           {}, "only one for the whole tensor is supported"),
    "an operator unknown": ("QLinearReduceMean", [F32(0.1), U8(0)], {},
                            "this operator of domain 'com.microsoft' is not supported"),
    "channels last": ("QLinearGlobalAveragePool", [F32(0.1), U8(1), F32(0.1), U8(1)],
                      {"channels_last": 1}, "channels_last = 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_done_is_named(name):
    op, parts, attributes, message = REFUSED[name]
    proto = model(
        op, some(U8, 2, 4, 4, 4), ["x", *parts, *[F32(0.1), U8(0)]], "com.microsoft", **attributes
    )
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", 2, None))
    with pytest.raises(UnsupportedError, match=message):
        import_onnx(proto)


def test_a_gpu_has_the_same_integers_in_its_program():
    x = some(U8, 16, 64)
    proto = model("MatMulInteger", x, ["x", some(I8, 64, 32), U8(131), I8(5)])
    judged(proto, x)
    artifact = build_artifact(import_onnx(proto), "h200", cache=False)
    assert "linalg.generic" in artifact.ir["task"]
    assert "arith.muli" in artifact.ir["task"]
    assert artifact.cubin[:4] == b"\x7fELF"
