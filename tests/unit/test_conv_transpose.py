"""Transposed convolutions by phases of the stride and as products: against ONNX Runtime and one another."""

from __future__ import annotations

import math
import re

import numpy as np
import onnxruntime
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from onnx_nodes import lowered, model, node
from xdsl.dialects.builtin import StringAttr

import irkit
from irkit.dialects import graph
from irkit.frontends.onnx import import_onnx
from irkit.interp.tensor import run_tensor


def array(*shape):
    rng = np.random.default_rng(math.prod(shape))
    return rng.standard_normal(shape, dtype=np.float32)


def transposed(x, w, b=None, **attributes):
    """A model of one node, and ONNX Runtime's answer."""
    weights = {"w": w} if b is None else {"w": w, "b": b}
    inputs = "x w" if b is None else "x w b"
    proto = model([node("ConvTranspose", inputs, **attributes)], {"x": x}, weights)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    return proto, session.run(None, {"x": x})[0]


def at_tensor_level(proto, *inputs, product=False):
    imported = import_onnx(proto)
    for op in imported.module.walk():
        if product and isinstance(op, graph.ConvTransposeOp):
            op.properties["form"] = StringAttr("product")
    return run_tensor(lowered(imported), imported.weights, list(inputs))[0]


def loops(proto):
    """Loops of the contraction: with phases one more for each dimension of the image."""
    module = lowered(import_onnx(proto))
    ranks = [len(op.iterator_types) for op in module.walk() if hasattr(op, "iterator_types")]
    return max(ranks)


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_windows(data):
    draw = data.draw
    rank, group = draw(st.integers(1, 3)), draw(st.integers(1, 2))

    def each(least, most):
        return [draw(st.integers(least, most)) for _ in range(rank)]

    strides, sizes = each(1, 4), each(1, 5)
    kernel = [s * n for s, n in zip(strides, each(1, 3), strict=True)]
    if draw(st.booleans()):
        kernel = each(1, 5)
    pads = [draw(st.integers(0, k - 1)) for k in 2 * kernel]
    longer = [draw(st.integers(0, s - 1)) for s in strides]
    whole = [(n - 1) * s + k + e for n, s, k, e in zip(sizes, strides, kernel, longer, strict=True)]
    assume(all(n > a + b for n, a, b in zip(whole, pads[:rank], pads[rank:], strict=True)))
    channels, outputs = group * draw(st.integers(1, 3)), draw(st.integers(1, 3))
    x, w = array(2, channels, *sizes), array(channels, outputs, *kernel)
    proto, want = transposed(
        x, w, array(group * outputs), strides=strides, pads=pads, output_padding=longer, group=group
    )
    np.testing.assert_allclose(at_tensor_level(proto, x), want, atol=1e-4)
    np.testing.assert_allclose(at_tensor_level(proto, x, product=True), want, atol=1e-4)


@pytest.mark.parametrize(
    ("kernel", "stride", "pads", "phases"),
    [
        (4, 2, [1, 1, 1, 1], True),
        (2, 2, [0, 0, 0, 0], True),
        (4, 2, [2, 0, 3, 1], True),
        (6, 3, [3, 0, 1, 2], True),
        # The first phase would begin in the middle of a step.
        (6, 3, [1, 1, 1, 1], False),
        # One phase has two taps, the other one.
        (3, 2, [1, 1, 1, 1], False),
        (3, 1, [1, 1, 1, 1], False),
    ],
)
def test_compiled(kernel, stride, pads, phases):
    x, w = array(1, 5, 7, 6), array(5, 4, kernel, kernel)
    proto, want = transposed(x, w, array(4), strides=[stride] * 2, pads=pads)
    assert (loops(proto) == 9) == phases
    got = irkit.compile(proto, device="cpu2")(x)
    np.testing.assert_allclose(got, want, atol=1e-4)


@pytest.mark.parametrize(
    ("kernel", "strides", "contractions"),
    [
        ((3, 3), [2, 2], 4),
        ((3, 2), [2, 1], 2),
        ((5, 7), [2, 4], 8),
        # More phases than contractions are worth, or one that has no taps: with zeros between the elements.
        ((5, 5), [3, 3], 1),
        ((1, 3), [2, 2], 1),
    ],
)
@pytest.mark.parametrize("group", [1, 2])
def test_a_contraction_for_each_uneven_phase(kernel, strides, contractions, group):
    x, w = array(2, 6, 4, 5), array(6, 3, *kernel)
    longer = [s - 1 for s in strides]
    how = {"strides": strides, "pads": [0, 1, 0, 1], "output_padding": longer, "group": group}
    proto, want = transposed(x, w, array(3 * group), **how)
    module = lowered(import_onnx(proto))
    sums = [
        op
        for op in module.walk()
        if hasattr(op, "iterator_types") and "reduction" in str(op.iterator_types)
    ]
    assert len(sums) == contractions
    got = irkit.compile(proto, device="cpu2")(x)
    np.testing.assert_allclose(got, want, atol=1e-5)


@pytest.mark.parametrize("kernel", [3, 4])
@pytest.mark.parametrize("outputs", [2, 3, 5])
def test_an_open_batch_and_few_outputs(outputs, kernel):
    w = array(4, outputs, kernel, kernel)
    proto = model([node("ConvTranspose", "x w", strides=[2, 2])], {"x": array(1, 4, 3, 3)}, {"w": w},
                  batch=True)  # fmt: skip
    program = irkit.compile(proto, device="cpu2")
    for batch in (0, 1, 3, 8):
        x = array(batch, 4, 3, 3) if batch else np.zeros((0, 4, 3, 3), np.float32)
        got = program(x)
        if batch:
            _, want = transposed(x, w, strides=[2, 2])
            np.testing.assert_allclose(got, want, atol=1e-5)
        assert got.shape == (batch, outputs, 4 + kernel, 4 + kernel)


@pytest.mark.parametrize("kernel", [3, 4])
def test_an_infinite_element_reaches_its_own_outputs_alone(kernel):
    x, w = array(1, 1, 5), np.ones((1, 1, kernel), np.float32)
    x[0, 0, 2] = np.inf
    proto, _ = transposed(x, w, strides=[2])
    # ONNX Runtime's own answer, but for those that it multiplies by zero.
    want = np.zeros(8 + kernel, np.float32)
    for i, value in enumerate(x[0, 0]):
        want[2 * i : 2 * i + kernel] += value
    np.testing.assert_allclose(at_tensor_level(proto, x)[0, 0], want, atol=1e-6)
    np.testing.assert_allclose(at_tensor_level(proto, x, product=True)[0, 0], want, atol=1e-6)


def test_filters_that_come_as_an_input():
    x, w = array(1, 3, 4), array(3, 2, 4)
    proto = model([node("ConvTranspose", "x w", strides=[2])], {"x": x, "w": w})
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    want = session.run(None, {"x": x, "w": w})[0]
    np.testing.assert_allclose(irkit.compile(proto, device="cpu1")(x, w), want, atol=1e-5)
    np.testing.assert_allclose(at_tensor_level(proto, x, w, product=True), want, atol=1e-5)


def rkernels(proto, **how):
    program = irkit.compile(proto, target="cuda", device="h200", cache=False, **how)
    return re.findall(r'rkernel = "([^"]*)"', str(program.ir("schedule")))


@pytest.mark.parametrize(
    ("kernel", "stride", "pads", "ops"),
    [
        (4, 2, [1, 1, 1, 1], 2),
        (3, 3, [0, 0, 0, 0], 2),
        (8, 4, [4, 4, 4, 4], 2),
        # What lies before the first element that is kept is cut.
        (5, 3, [1, 1, 1, 1], 3),
    ],
)
def test_a_gpu_has_a_product_and_a_sum(kernel, stride, pads, ops):
    x, w = array(2, 16, 12, 12), array(16, 8, kernel, kernel)
    proto, _ = transposed(x, w, array(8), strides=[stride] * 2, pads=pads)
    found = rkernels(proto)
    assert sum(name.startswith("pool.") for name in found) == 1
    assert len(found) == ops


def test_a_gpu_has_phases_of_few_channels():
    x, w = array(2, 4, 12, 12), array(4, 8, 4, 4)
    proto, _ = transposed(x, w, strides=[2, 2])
    program = irkit.compile(proto, target="cuda", device="h200", cache=False)
    assert "form" not in str(program.ir("graph"))
