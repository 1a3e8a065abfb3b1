"""Contractions as blocked matrix products, compiled for a CPU, against the interpreter."""

# pyright: basic, reportGeneralTypeIssues=false, reportAttributeAccessIssue=false
# pyright: reportArgumentType=false, reportOptionalMemberAccess=false

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from family_programs import choose_first

from irkit.context import IrkitContext
from irkit.dialects import graph
from irkit.dialects.products import as_product, columns_run_on, windows
from irkit.dialects.roperator_body import find_root
from irkit.dialects.types import DYNAMIC, element_type, tensor
from irkit.driver.compiler.artifacts import build_artifact
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.frontends.module import GraphBuilder, ModelInfo
from irkit.interp import run_module
from irkit.rkernels import registry
from irkit.rkernels.cpu.product import LARGE, fitted_tile
from irkit.rkernels.families.depthwise import Depthwise
from irkit.rkernels.families.panel_product import PanelProduct
from irkit.rkernels.families.planes import PlaneProduct
from irkit.runtime.variant import Variant
from irkit.schedule.devices import device as find_device


@pytest.fixture(autouse=True)
def by_panels(monkeypatch):
    """Convolutions go by panels of columns here; test_planes.py, test_depthwise.py and test_panel_product.py
    have other ways."""
    for family in (PlaneProduct, Depthwise, PanelProduct):
        monkeypatch.setattr(family, "refuses", lambda *_: "not here")


RNG = np.random.default_rng(3)


def array(*shape, dtype="float32"):
    return RNG.standard_normal(shape).astype(dtype)


class Net:
    """A graph module under construction, on one input."""

    def __init__(self, shape, dtype="float32"):
        self.builder = GraphBuilder([("x", tensor(element_type(np.dtype(dtype)), shape))])
        self.x = self.builder.inputs[0]

    def conv(self, w, b=None, x=None, relu=False, **attributes):
        given = {"strides": [1, 1], "pads": [0] * 4, "dilations": [1, 1], "group": 1} | attributes
        operands = [self.x if x is None else x, self.builder.constant(w)]
        operands += [] if b is None else [self.builder.constant(b)]
        y = self.builder(graph.ConvOp, *operands, **given)
        return self.builder(graph.ReluOp, y) if relu else y

    def model(self, *outputs):
        named = [(f"y{i}", v) for i, v in enumerate(outputs)]
        info = ModelInfo("network", self.builder.names, tuple(n for n, _ in named), source="test")
        return self.builder.finish(named, info)


def roperators(model, device="cpu2"):
    """The rOperators of a model, partitioned, each the fastest alone."""
    ctx = IrkitContext(weights=model.weights)
    register_dialects(ctx)
    for level in ("graph", "tensor", "task"):
        run_level(ctx, model.module, level, device)
    return list(choose_first(model.module).values())


def planned():
    """A CPU on which terms that are found one by one take long, and index arithmetic next to nothing."""
    device = find_device("cpu")
    return replace(
        device,
        name="cpu-panels",
        rates={**device.rates, "index": 1e-3, "stride": 99.0, "term": 99.0},
    )


def check(net, *outputs, inputs=(), kernels=None):
    """Compiled in two modes as interpreted; `kernels` is how many product rOperators there are."""
    model = net.model(*outputs)
    wanted = [run_module(model.module, model.weights, [x]) for x in inputs]
    artifact = build_artifact(model, planned(), cache=False)
    if kernels is not None:
        assert len(re.findall(r"rKernel product\.(?:blocked|wide)", artifact.source)) == kernels
    for mode in ("serial", "persistent"):
        program = Variant(artifact, mode)
        for x, want in zip(inputs, wanted, strict=True):
            for y, w in zip(program.run([x]), want, strict=True):
                scale = float(np.abs(w).max(initial=1))
                np.testing.assert_allclose(y / scale, w / scale, atol=2e-6)


@pytest.fixture
def products_alone(monkeypatch):
    """Convolutions that have another rKernel are products too."""
    registry.find("cpu", "pixels.wide")
    monkeypatch.setitem(registry._REGISTERED, ("cpu", "pixels"), [])


@pytest.mark.usefixtures("products_alone")
def test_convolutions_of_every_window():
    net = Net((1, 5, 13, 11))
    outputs = [
        net.conv(array(8, 5, 3, 3), array(8), pads=[1, 1, 1, 1], relu=True),
        net.conv(array(7, 5, 3, 3), strides=[2, 2], pads=[1, 0, 1, 2]),
        net.conv(array(8, 5, 3, 2), dilations=[2, 3], pads=[2, 3, 2, 0]),
        net.conv(array(9, 5, 1, 1), array(9)),
        net.conv(array(8, 5, 1, 1), strides=[3, 2]),
        net.conv(array(6, 5, 13, 4), pads=[0, 9, 0, 9]),
    ]
    check(net, *outputs, inputs=[array(1, 5, 13, 11)], kernels=6)


@pytest.mark.usefixtures("products_alone")
def test_residual_and_images_of_a_batch():
    net = Net((3, 4, 6, 6))
    b = net.builder
    y = net.conv(array(4, 4, 3, 3), array(4), pads=[1] * 4)
    y = b(graph.ReluOp, b(graph.AddOp, y, net.x))
    # A bias that differs along the columns cannot be counted through.
    z = b(graph.AddOp, net.conv(array(5, 4, 1, 1)), b.constant(array(6, 1)))
    check(net, y, z, inputs=[array(3, 4, 6, 6)], kernels=2)


@pytest.mark.usefixtures("products_alone")
def test_dynamic_batch():
    net = Net((DYNAMIC, 3, 5, 5))
    y = net.conv(array(6, 3, 3, 3), array(6), pads=[1] * 4, relu=True)
    check(net, y, inputs=[array(n, 3, 5, 5) for n in (1, 2, 7)], kernels=1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_matrix_products_of_every_layout(dtype):
    net = Net((37, 24), dtype)
    b = net.builder
    outputs = [
        b(graph.MatmulOp, net.x, b.constant(array(24, 50, dtype=dtype))),
        b(graph.GemmOp, net.x, b.constant(array(50, 24, dtype=dtype)),
          b.constant(array(50, dtype=dtype)), trans_a=False, trans_b=True, alpha=1.0, beta=1.0),
    ]  # fmt: skip
    check(net, *outputs, inputs=[array(37, 24, dtype=dtype)])


def test_rows_of_a_batch_times_weights():
    net = Net((DYNAMIC, 20))
    b = net.builder
    y = b(graph.MatmulOp, net.x, b.constant(array(20, 33)))
    z = b(graph.MatmulOp, b(graph.ReluOp, y), b.constant(array(33, 18)))
    check(net, z, inputs=[array(n, 20) for n in (1, 3, 64)])


@pytest.mark.usefixtures("products_alone")
def test_a_convolution_as_a_product():
    net = Net((1, 4, 8, 8))
    model = net.model(net.conv(array(6, 4, 3, 3), pads=[1] * 4, strides=[2, 2], relu=True))
    (op,) = roperators(model)
    root = find_root(op.body.block)
    product = as_product(root)
    assert (product.batch, product.m, product.lead) == ((), (1,), (0,))
    assert (product.columns, product.k) == ((2, 3), (4, 5, 6))
    assert not product.transposed
    assert columns_run_on(product, root, op.body.block)
    source, (_, channel, row, column) = windows(product)
    assert source.index == op.body.block.args.index(source)
    assert (channel.factors, channel.guarded) == ({4: 1}, False)
    assert (row.factors, row.offset, row.size, row.guarded) == ({2: 2, 5: 1}, -1, 8, True)
    assert (column.factors, column.offset) == ({3: 2, 6: 1}, -1)


@pytest.mark.parametrize("seed", range(6))
def test_rows_times_few_columns(seed):
    """Tiles are as wide as the columns, of float64 half as many as of float32."""
    rng = np.random.default_rng(seed)
    dtype = str(rng.choice(["float32", "float64"]))
    terms, *columns = (int(n) for n in (rng.integers(1, 100), *rng.integers(2, 40, 4)))
    net = Net((DYNAMIC, terms), dtype)
    b = net.builder
    outputs = [b(graph.MatmulOp, net.x, b.constant(array(terms, n, dtype=dtype))) for n in columns]
    rows = rng.integers(1, 70, 3)
    check(net, *outputs, inputs=[array(n, terms, dtype=dtype) for n in rows])


@pytest.mark.parametrize(
    ("dtype", "columns", "tile"),
    [
        ("float32", 3, (1, 4)),
        ("float32", 8, (1, 8)),
        ("float32", 10, (1, 16)),
        ("float32", 17, (2, 16)),
        ("float64", 2, (1, 4)),
        ("float64", 8, (1, 8)),
        ("float64", 10, (2, 8)),
        ("float64", 100, (2, 8)),
    ],
)
def test_tiles_fit_columns(dtype, columns, tile):
    net = Net((DYNAMIC, 24), dtype)
    y = net.builder(graph.MatmulOp, net.x, net.builder.constant(array(24, columns, dtype=dtype)))
    (op,) = roperators(net.model(y))
    fitted = fitted_tile(find_root(op.body.block), LARGE)
    assert (fitted.rows, fitted.across, fitted.lanes) == (8, *tile)


def test_one_filter_is_no_product():
    net = Net((1, 4, 8, 8))
    model = net.model(net.conv(array(1, 4, 3, 3)))
    (op,) = roperators(model)
    assert not op.rkernel.data.startswith("product.")
