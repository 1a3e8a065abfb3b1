"""Convolutions of few terms as sums over padded planes, compiled for a CPU, against the interpreter."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_product import Net, array, roperators

from irkit.dialects.types import DYNAMIC
from irkit.driver.compiler.artifacts import build_artifact
from irkit.interp import run_module
from irkit.runtime.variant import Variant
from irkit.schedule.devices import device as find_device


def planned(name):
    """A CPU on which every other way takes long."""
    device = find_device(name)
    return replace(
        device, name=f"{name}-slow", rates={**device.rates, "term": 99.0, "fma": 99.0, "wide": 99.0}
    )


def judged(net, *outputs, inputs, kernels=1):
    """Compiled in two modes as interpreted; `kernels` is how many depthwise rOperators there are."""
    model = net.model(*outputs)
    wanted = [run_module(model.module, model.weights, [x]) for x in inputs]
    artifact = build_artifact(model, planned("cpu2"), cache=False)
    assert artifact.source.count("rKernel depthwise.planes") == kernels
    for mode in ("serial", "persistent"):
        program = Variant(artifact, mode)
        for x, want in zip(inputs, wanted, strict=True):
            for y, w in zip(program.run([x]), want, strict=True):
                scale = float(np.abs(w).max(initial=1))
                np.testing.assert_allclose(y / scale, w / scale, atol=2e-6)


def test_windows_of_a_mobile_network():
    net = Net((1, 6, 15, 14))
    outputs = [
        net.conv(array(6, 1, 3, 3), array(6), pads=[1, 1, 1, 1], group=6, relu=True),
        net.conv(array(6, 1, 3, 3), array(6), pads=[1, 1, 1, 1], strides=[2, 2], group=6),
        net.conv(array(6, 1, 5, 5), pads=[2, 2, 2, 2], strides=[2, 2], group=6),
        net.conv(array(6, 1, 7, 3), pads=[3, 0, 2, 1], strides=[1, 3], group=6),
        net.conv(array(6, 1, 3, 3), pads=[2, 4, 2, 4], dilations=[2, 4], group=6),
    ]
    judged(net, *outputs, inputs=[array(1, 6, 15, 14)], kernels=5)


def test_several_outputs_and_channels_of_a_group():
    net = Net((2, 8, 9, 9))
    twice = net.conv(array(16, 1, 3, 3), array(16), pads=[1, 1, 1, 1], group=8)
    pairs = net.conv(array(8, 2, 3, 3), array(8), pads=[1, 0, 1, 0], group=4)
    judged(net, twice, pairs, inputs=[array(2, 8, 9, 9)], kernels=2)


def test_an_open_batch():
    net = Net((DYNAMIC, 5, 8, 8))
    y = net.conv(array(5, 1, 3, 3), array(5), pads=[1, 1, 1, 1], group=5, relu=True)
    judged(net, y, inputs=[array(n, 5, 8, 8) for n in (0, 1, 3, 8)])


def test_float64():
    net = Net((1, 3, 9, 9), "float64")
    y = net.conv(array(3, 1, 3, 3, dtype="float64"), pads=[0, 0, 0, 0], group=3, strides=[2, 1])
    judged(net, y, inputs=[array(1, 3, 9, 9, dtype="float64")])


def test_signals_and_volumes():
    for size, window in (((40,), (5,)), ((6, 7, 5), (3, 2, 3))):
        net = Net((1, 4, *size))
        rank = len(size)
        y = net.conv(
            array(4, 1, *window),
            array(4),
            strides=[2] * rank,
            pads=[1] * 2 * rank,
            dilations=[1] * rank,
            group=4,
        )
        judged(net, y, inputs=[array(1, 4, *size)])


def test_many_terms_are_a_product():
    net = Net((1, 64, 6, 6))
    (op,) = roperators(net.model(net.conv(array(8, 64, 3, 3))))
    assert op.rkernel.data.partition(".")[0] in ("pixels", "planes", "product")


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_windows(data):
    draw = data.draw
    groups, rank = draw(st.integers(1, 5)), 2
    window = [draw(st.integers(1, 4)) for _ in range(rank)]
    dilations = [draw(st.integers(1, 3)) for _ in range(rank)]
    strides = [draw(st.integers(1, 4)) for _ in range(rank)]
    pads = [draw(st.integers(0, 3)) for _ in range(2 * rank)]
    reach = [(w - 1) * d + 1 for w, d in zip(window, dilations, strict=True)]
    size = [r + draw(st.integers(0, 9)) for r in reach]
    net = Net((1, groups, *size))
    y = net.conv(
        array(groups, 1, *window),
        array(groups),
        strides=strides,
        pads=pads,
        dilations=dilations,
        group=groups,
    )
    expected = math.prod(y.type.get_shape()) > 0
    model = net.model(y)
    x = array(1, groups, *size)
    (want,) = run_module(model.module, model.weights, [x])
    got = Variant(build_artifact(model, planned("cpu1"), cache=False), "serial").run([x])[0]
    assert expected
    np.testing.assert_allclose(got, want, atol=2e-5)


@pytest.mark.parametrize("device", ["cpu1", "cpu3", "cpu7"])
def test_parts_of_planes(device):
    net = Net((1, 1, 13, 9))
    y = net.conv(array(1, 1, 3, 3), array(1), pads=[1, 1, 1, 1])
    model = net.model(y)
    x = array(1, 1, 13, 9)
    (want,) = run_module(model.module, model.weights, [x])
    got = Variant(build_artifact(model, planned(device), cache=False), "serial").run([x])[0]
    np.testing.assert_allclose(got, want, atol=2e-6)
