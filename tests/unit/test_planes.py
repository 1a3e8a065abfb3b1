"""Convolutions as products over padded planes, compiled for a CPU and in emulation, as interpreted."""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import replace

import cpu_emulator
import numpy as np
import pytest
from cpu_emulator import run as emulate
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from test_product import Net, array, roperators
from xdsl.ir.affine import AffineMap

from irkit.dialects import graph
from irkit.dialects.products import as_packed_product, packed_layout
from irkit.dialects.roperator_body import find_root
from irkit.dialects.tensor_ops.loop_nest import affine_index
from irkit.dialects.types import DYNAMIC
from irkit.driver.compiler.artifacts import build_artifact
from irkit.interp import run_module
from irkit.passes.task import pack_filters
from irkit.rkernels import registry
from irkit.rkernels.bind import bind
from irkit.rkernels.families import find
from irkit.runtime.variant import Variant
from irkit.schedule.devices import device as find_device
from irkit.schedule.devices import device_names, register_device


def planned(name, kind):
    """A CPU on which tiles of one kind, `wide` or `fma`, are all but free, and copies take long."""
    device = find_device(name)
    rates = {"wide": 9.0, "fma": 9.0, "pack": 99.0, "term": 99.0, "dot": 99.0} | {kind: 1e-6}
    return replace(device, name=f"{name}-{kind}", rates={**device.rates, **rates})


@contextmanager
def only(variant):
    """Of the rKernels of planes there is this one, and nothing else is as fast; filters may stay unpacked."""
    variant, _, unpacked = variant.partition(" ")
    kind = "wide" if "wide" in variant else "fma"
    with pytest.MonkeyPatch.context() as patch:
        kernel = registry.find("cpu", variant)
        for family in ("planes", "pixels"):
            found = [kernel] if kernel.family == family else []
            patch.setitem(registry._REGISTERED, ("cpu", family), found)
        if unpacked:
            patch.setattr(pack_filters, "packable", lambda op: "it stays as it is")
        yield kind


def judged(net, *outputs, inputs, variant="planes.wide", device="cpu2", kernels=None):
    """Compiled as interpreted, in mode serial."""
    model = net.model(*outputs)
    wanted = [run_module(model.module, model.weights, [x]) for x in inputs]
    with only(variant) as kind:
        artifact = build_artifact(model, planned(device, kind), cache=False)
    if kernels is not None:
        assert artifact.source.count(f"rKernel {variant.split()[0]}") == kernels
    for mode in ("serial", "persistent"):
        program = Variant(artifact, mode)
        for x, want in zip(inputs, wanted, strict=True):
            for y, w in zip(program.run([x]), want, strict=True):
                scale = float(np.abs(w).max(initial=1))
                np.testing.assert_allclose(y / scale, w / scale, atol=3e-6)


VARIANTS = [
    "planes.blocked", "planes.wide", "pixels.blocked", "pixels.wide", "pixels.blocked unpacked",
    "pixels.wide unpacked",
]  # fmt: skip
VARIED = pytest.mark.parametrize("variant", VARIANTS)
WIDE = pytest.mark.parametrize("variant", ["planes.wide", "pixels.wide"])


@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_phases_of_transposed_convolutions_look_at_one_plane(data):
    """Groups of filters, for each phase of the stride, that begin elsewhere in the same planes."""
    draw, variant = data.draw, data.draw(st.sampled_from(["planes.blocked", "planes.wide"]))
    channels, filters, rows = (
        draw(st.integers(1, 5)),
        draw(st.integers(2, 9)),
        draw(st.integers(1, 3)),
    )
    strides = [draw(st.integers(1, 3)) for _ in range(2)]
    assume(max(strides) > 1)
    kernel = [s * draw(st.integers(2, 3)) for s in strides]
    pads = [draw(st.integers(0, k - s)) for k, s in zip(kernel, strides, strict=True)] * 2
    shape = (rows, channels, *(draw(st.integers(2, 9)) for _ in strides))
    net = Net(shape)
    w = net.builder.constant(array(channels, filters, *kernel))
    y = net.builder(
        graph.ConvTransposeOp, net.x, w, strides=strides, pads=pads, dilations=[1, 1], group=1,
        output_padding=[0, 0],
    )  # fmt: skip
    judged(net, y, inputs=[array(*shape)], variant=variant)


@VARIED
def test_windows_as_wide_as_the_image(variant):
    """One output a row, or one row of outputs: a dimension of one is read and written at 0."""
    for size, window in (((11, 3), (2, 3)), ((3, 11), (3, 2)), ((9, 1), (3, 1)), ((4, 4), (4, 4))):
        net = Net((1, 4, *size))
        outputs = [
            net.conv(array(6, 4, *window), array(6), relu=True),
            net.conv(array(5, 4, *window), strides=[2, 2]),
            net.conv(array(5, 4, *window), strides=[1, 2], pads=[1, 0, 0, 0]),
        ]
        judged(net, *outputs, inputs=[array(1, 4, *size)], variant=variant)


@VARIED
def test_windows_of_networks(variant):
    net = Net((1, 6, 15, 14))
    b = net.builder
    first = net.conv(array(16, 6, 3, 3), array(16), pads=[1] * 4, relu=True)
    outputs = [
        b(graph.ReluOp, b(graph.AddOp, first, net.conv(array(16, 6, 3, 3), pads=[1] * 4))),
        net.conv(array(11, 6, 3, 3), array(11), strides=[2, 2], pads=[1] * 4),
        net.conv(array(8, 6, 7, 5), strides=[2, 3], pads=[3, 0, 2, 4]),
        net.conv(array(9, 6, 3, 2), dilations=[2, 3], pads=[2, 3, 2, 0]),
        net.conv(array(3, 6, 1, 1), array(3), strides=[3, 2]),
    ]
    judged(net, *outputs, inputs=[array(1, 6, 15, 14)], variant=variant)


@VARIED
def test_groups_and_several_images(variant):
    net = Net((2, 8, 9, 9))
    y = net.conv(array(12, 4, 3, 3), array(12), pads=[1, 0, 1, 0], group=2)
    judged(net, y, inputs=[array(2, 8, 9, 9)], variant=variant, kernels=1)


@VARIED
def test_an_open_batch(variant):
    net = Net((DYNAMIC, 5, 8, 8))
    y = net.conv(array(10, 5, 3, 3), array(10), pads=[1] * 4, relu=True)
    inputs = [array(n, 5, 8, 8) for n in (0, 1, 3, 8)]
    judged(net, y, inputs=inputs, variant=variant, kernels=1)


def test_float64():
    net = Net((1, 3, 9, 9), "float64")
    y = net.conv(array(5, 3, 3, 3, dtype="float64"), strides=[2, 1])
    judged(net, y, inputs=[array(1, 3, 9, 9, dtype="float64")], kernels=1)


@WIDE
@pytest.mark.parametrize(("size", "window"), [((40,), (5,)), ((6, 7, 5), (3, 2, 3))])
def test_signals_and_volumes(size, window, variant):
    rank = len(size)
    net = Net((1, 4, *size))
    y = net.conv(
        array(9, 4, *window),
        array(9),
        strides=[2] * rank,
        pads=[1] * 2 * rank,
        dilations=[1] * rank,
    )
    judged(net, y, inputs=[array(1, 4, *size)], variant=variant, kernels=1)


@pytest.mark.parametrize("device", ["cpu1", "cpu3", "cpu7"])
@pytest.mark.parametrize("rows", [2, 40])
@WIDE
def test_parts(device, rows, variant):
    net = Net((1, 3, 13, 9))
    y = net.conv(array(rows, 3, 3, 3), array(rows), pads=[1] * 4)
    judged(net, y, inputs=[array(1, 3, 13, 9)], variant=variant, device=device, kernels=1)


def test_what_is_no_window_over_planes_is_refused():
    net = Net((1, 4, 6, 6))
    planes = find("planes")
    (op,) = roperators(net.model(net.conv(array(8, 4, 3, 3))))
    assert planes.refuses(find_root(op.body.block)) is None
    net = Net((37, 24))
    (op,) = roperators(
        net.model(net.builder(graph.MatmulOp, net.x, net.builder.constant(array(24, 50))))
    )
    assert "no convolution over planes" in planes.refuses(find_root(op.body.block))
    # A plane that no cache holds; an input that needs no planes.
    kernel = registry.find("cpu", "planes.wide")
    net = Net((1, 64, 9, 9))
    for window, strides, takes in ((1, [1, 1], False), (1, [2, 1], True), (3, [1, 1], True)):
        with only("planes.wide"):
            (op,) = roperators(net.model(net.conv(array(8, 64, window, window), strides=strides)))
        assert kernel.legal(find_root(op.body.block)) == takes
        net = Net((1, 64, 9, 9))
    net = Net((1, 64, 300, 300))
    (op,) = roperators(net.model(net.conv(array(8, 64, 3, 3), pads=[1] * 4)))
    assert not kernel.legal(find_root(op.body.block))


def in_order(op, x, w):
    """The input and the filters as the rOperator has them."""
    product = as_packed_product(find_root(op.body.block))
    if product is not None:
        lead = product.extents(product.batch)
        packed = pack_filters.packed_filters(w.reshape(*lead, -1, *w.shape[1:]), len(lead))
        return [packed if v is product.in_place else x for v in op.body.block.args]
    known = {x.size: x, w.size: w}
    sizes = [math.prod(v.type.get_shape()) for v in op.body.block.args]
    return [known[size] for size in sizes]


@pytest.mark.parametrize("variant", ["pixels.wide", "pixels.wide unpacked"])
def test_parts_that_begin_within_a_block_of_filters(variant):
    net = Net((1, 3, 3, 3))
    y = net.conv(array(72, 3, 3, 3), array(72), pads=[1] * 4)
    judged(net, y, inputs=[array(1, 3, 3, 3)], variant=variant, device="cpu5", kernels=1)


@pytest.mark.parametrize("batch", [0, 1, 2])
@pytest.mark.parametrize("rows", [1, 16, 21, 48])
def test_packed_filters_are_where_the_layout_says(batch, rows):
    lead, terms = (2, 3)[:batch], (3, 2, 2)
    filters = array(*lead, rows, *terms)
    packed = pack_filters.packed_filters(filters, batch)
    loops = np.meshgrid(*map(np.arange, filters.shape), indexing="ij")
    layout = packed_layout(range(batch), batch, range(batch + 1, filters.ndim))
    index = affine_index(AffineMap(filters.ndim, 0, tuple(layout)), loops)
    np.testing.assert_array_equal(packed[index], filters)
    assert np.count_nonzero(packed) == np.count_nonzero(filters)


@pytest.mark.parametrize(
    ("rows", "size"), [(33, (7, 7)), (5, (1, 1)), (16, (1, 1)), (19, (9, 3)), (33, (5, 31))]
)
def test_whole_images_in_tiles_of_pixels(rows, size):
    """Products of matrices too; rows of outputs that fill a tile, that share one and that take several."""
    net = Net((2, 20, *size))
    y = net.conv(array(rows, 20, 1, 1), array(rows), relu=True)
    kernels = None if size == (1, 1) else 1
    judged(net, y, inputs=[array(2, 20, *size)], variant="pixels.wide", kernels=kernels)


def test_the_last_tiles_ask_for_all_filters_that_are_next(monkeypatch):
    """Each vector of them in packed order, none behind the last; of 40 filters two blocks, then one."""
    net, asked, own, terms = Net((1, 20, 7, 7)), set[int](), cpu_emulator.multiply_pixels, 20
    w, x = array(40, 20, 1, 1), array(1, 20, 7, 7)
    model = net.model(net.conv(w))

    def noted(*arguments):
        ahead, filters = arguments[-1], arguments[6]
        if ahead > filters:
            asked.update(range(ahead // 16, ahead // 16 + terms))
        own(*arguments)

    monkeypatch.setattr(cpu_emulator, "multiply_pixels", noted)
    with only("pixels.wide") as kind:
        device = planned("cpu1", kind)
        if device.name not in device_names():
            register_device(device.name, device)
        (op,) = roperators(model, device.name)
    kernel, got = registry.find("cpu", op.rkernel.data), np.zeros(40 * 49, np.float32)
    binding = bind(op, find_root(op.body.block), kernel, 1)
    emulate(kernel, binding, [*in_order(op, x, w), got], 0, 1, 1)
    assert asked == set(range(2 * terms, 3 * terms))
    np.testing.assert_allclose(got, (w.reshape(40, 20) @ x.reshape(20, 49)).ravel(), 1e-5, 1e-5)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_windows_in_emulation(data):
    """Every rTask of a grid; no access outside of operands and scratch."""
    draw = data.draw
    groups, inputs = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    outputs = groups * draw(st.integers(2, 18))
    window = [draw(st.integers(1, 3)) for _ in range(2)]
    dilations = [draw(st.integers(1, 2)) for _ in range(2)]
    strides = [draw(st.integers(1, 3)) for _ in range(2)]
    pads = [draw(st.integers(0, 3)) for _ in range(4)]
    reach = [(w - 1) * d + 1 for w, d in zip(window, dilations, strict=True)]
    size = [r + draw(st.integers(0, 8)) for r in reach]
    net = Net((1, groups * inputs, *size))
    w = array(outputs, inputs, *window)
    y = net.conv(w, strides=strides, pads=pads, dilations=dilations, group=groups)
    model = net.model(y)
    x = array(1, groups * inputs, *size)
    assume(x.size != w.size)
    (want,) = run_module(model.module, model.weights, [x])
    variant, tasks = draw(st.sampled_from(VARIANTS)), draw(st.integers(1, 5))
    with only(variant) as kind:
        device = planned(f"cpu{tasks}", kind)
        if device.name not in device_names():
            register_device(device.name, device)
        (op,) = roperators(model, device.name)
    # Some are products of matrices.
    assume(op.rkernel.data == variant.split()[0])
    kernel = registry.find("cpu", op.rkernel.data)
    got = np.full(want.size, np.nan, np.float32)
    binding = bind(op, find_root(op.body.block), kernel, 1)
    for task in range(op.tasks):
        emulate(kernel, binding, [*in_order(op, x, w), got], task, op.tasks, 1)
    np.testing.assert_allclose(got.reshape(want.shape), want, atol=2e-5)
