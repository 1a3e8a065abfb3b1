"""Convolutions of bytes over padded planes: exact modulo 2^32, compiled for a CPU and in emulation."""

from __future__ import annotations

import numpy as np
import pytest
from cpu_emulator import run as emulate
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from test_byte_products import PAIRS, convolution

import irkit
from irkit.context import IrkitContext
from irkit.dialects.constants import constant_array
from irkit.dialects.roperator_body import find_root
from irkit.dialects.task import LaunchOp, ROperatorOp
from irkit.driver.compiler.artifacts import build_artifact
from irkit.driver.compiler.models import read_model
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.rkernels import registry
from irkit.rkernels.bind import bind
from irkit.runtime.variant import Variant
from irkit.schedule.devices import device as find_device


@pytest.fixture(params=["blocked", "wide"])
def variant(request, monkeypatch):
    """The one rKernel of products of bytes that there is."""
    found = registry.find("cpu", f"byte_planes.{request.param}")
    monkeypatch.setitem(registry._REGISTERED, ("cpu", "byte_planes"), [found])
    monkeypatch.setitem(registry._REGISTERED, ("cpu", "integer_product"), [])
    return found


@pytest.mark.parametrize("kinds", PAIRS)
def test_programs(kinds, variant):
    """Few and many filters, one element between outputs and none, in one part and in several."""
    for seed, (c, o, h, stride, device, zeros) in enumerate(
        [
            (3, 20, 12, 1, "cpu1", "image"),
            (5, 9, 11, 2, "cpu3", "filters"),
            (2, 2, 3, 1, "cpu2", "both"),
        ]
    ):
        text, x, want = convolution(seed, c, o, h, stride, kinds, zeros)
        artifact = build_artifact(
            read_model(irkit.parse(text), "float32"), find_device(device), cache=False
        )
        assert f"rKernel {variant.name}" in artifact.source
        np.testing.assert_array_equal(Variant(artifact, "serial").run([x])[0], want)


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.integers(0, 999), st.integers(1, 2), st.integers(2, 9), st.integers(3, 5), st.integers(1, 2),
    st.sampled_from(PAIRS), st.integers(1, 5),
)  # fmt: skip
def test_parts_in_emulation(variant, seed, c, o, h, stride, kinds, tasks):
    """Every rTask of a grid; no access outside of operands and scratch."""
    text, x, want = convolution(seed, c, o, h, stride, kinds, "image")
    module, ctx = irkit.parse(text), IrkitContext()
    register_dialects(ctx)
    for level in ("graph", "tensor", "task"):
        run_level(ctx, module, level, f"cpu{tasks}")
    (op,) = (op for op in module.ops if isinstance(op, ROperatorOp))
    (launch,) = (op for op in module.walk() if isinstance(op, LaunchOp))
    offered = [a for a in op.alternatives if a.rkernel == variant.name]
    assume(offered)
    op.choose(offered[-1])
    known = [constant_array(v, ctx.weights) for v in launch.arguments]
    got = np.full(want.size, 12345, np.int32)
    binding = bind(op, find_root(op.body.block), variant, 1)
    arrays = [x.reshape(-1) if a is None else a.reshape(-1) for a in known]
    with np.errstate(over="ignore"):
        for task in range(op.tasks):
            emulate(variant, binding, [*arrays, got], task, op.tasks, 1)
    np.testing.assert_array_equal(got.reshape(want.shape), want)
