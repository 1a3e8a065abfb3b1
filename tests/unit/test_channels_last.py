"""Images with their channels side by side: networks as they were, and products that read runs of channels."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportOptionalMemberAccess=false

from __future__ import annotations

import random
from functools import partial

import cuda_emulator
import numpy as np
import pytest
from xdsl.dialects.builtin import StringAttr

from irkit.context import IrkitContext
from irkit.dialects import graph
from irkit.dialects.access_boxes import grid_of
from irkit.dialects.precision import PRECISION
from irkit.dialects.product_memory import run_of_b
from irkit.dialects.products import as_product
from irkit.dialects.roperator_body import find_root
from irkit.dialects.task import ROperatorOp
from irkit.dialects.types import element_type, int_array, numpy_dtype, tensor
from irkit.driver.pipelines.runner import PipelineRunner
from irkit.driver.pipelines.specification import build_pipeline
from irkit.driver.pipelines.standard import level_pipeline
from irkit.driver.registry import all_passes, register_dialects
from irkit.frontends.module import GraphBuilder, ModelInfo
from irkit.interp import run_module
from irkit.interp.task import evaluate_body
from irkit.rkernels import families, registry
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.cuda import (
    product_mma,
    product_wgmma,
    product_wgmma_halves,
    product_wgmma_words,
)
from irkit.rkernels.templates import specialise, template_source

RNG = np.random.default_rng(5)


class Net:
    """A graph module under construction, on images."""

    def __init__(self, shape, dtype="float32"):
        self.dtype = dtype
        self.builder = GraphBuilder([("x", tensor(element_type(np.dtype(dtype)), shape))])
        self.x = self.builder.inputs[0]

    def channels(self, x):
        return x.type.get_shape()[1]

    def conv(self, x, outputs, kernel, group=1, bias=True, **attributes):
        given = {
            "strides": [1, 1],
            "pads": [0] * 4,
            "dilations": [1, 1],
            "group": group,
        } | attributes
        w = RNG.standard_normal((outputs, self.channels(x) // group, *kernel))
        constants = [w, RNG.standard_normal(outputs)][: 1 + bias]
        made = [self.builder.constant(c.astype(self.dtype)) for c in constants]
        return self.builder(graph.ConvOp, x, *made, **given)

    def model(self, *outputs):
        named = [(f"y{i}", v) for i, v in enumerate(outputs)]
        info = ModelInfo("network", self.builder.names, tuple(n for n, _ in named), source="test")
        return self.builder.finish(named, info)


def lowered(model, images, levels=("graph", "tensor")):
    """The module for a GPU, images of so many and more with their channels side by side."""
    ctx = IrkitContext(weights=model.weights)
    register_dialects(ctx)
    module = model.module.clone()
    for level in levels:
        text = level_pipeline(level, "h200")
        own = 'put-channels-last{device="h200"}'
        text = text.replace(own, f"{own[:-1]} images={images}}}")
        PipelineRunner(ctx).run(module, build_pipeline(text, all_passes()))
    return module, ctx


def some_net(number):
    """Convolutions of all kinds, and what follows them, in some order."""
    draw = random.Random(number)
    net = Net((2, draw.choice([2, 3, 4, 8]), draw.randint(7, 12), draw.randint(7, 12)))
    b, values = net.builder, [net.x]
    for step in range(draw.randint(3, 7)):
        x = draw.choice(values)
        height, width = x.type.get_shape()[2:]
        kind = draw.choice(["conv", "conv", "grouped", "relu", "pool", "concat", "add", "mean"])
        if kind == "conv" or step == 0:
            kernel = [draw.randint(1, min(3, n)) for n in (height, width)]
            how = {
                "strides": [draw.randint(1, 2)] * 2,
                "pads": [draw.randint(0, 1) for _ in range(4)],
            }
            values.append(
                net.conv(x, draw.choice([5, 8, 12]), kernel, bias=draw.random() < 0.7, **how)
            )
        elif kind == "grouped" and net.channels(x) == 8:
            values.append(
                net.conv(x, 8, [3, 3] if min(height, width) > 2 else [1, 1], 2, pads=[1] * 4)
            )
        elif kind == "relu":
            values.append(b(graph.ReluOp, x))
        elif kind == "pool" and min(height, width) > 2:
            how = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
            values.append(b(graph.MaxPoolOp, x, **how))
        elif kind == "concat":
            values.append(b(graph.ConcatOp, x, b(graph.ReluOp, x), axis=1))
        elif kind == "add":
            values.append(
                b(graph.AddOp, x, b.constant(np.float32(RNG.standard_normal((1, 1, width)))))
            )
        elif kind == "mean":
            scale = b(graph.ReduceOp, x, kind="mean", axes=[2, 3], keepdims=True)
            values.append(b(graph.MulOp, x, scale))
    return net.model(*values[-2:])


@pytest.mark.parametrize("number", range(12))
def test_networks_compute_what_they_did(number):
    model = some_net(number)
    shape = model.module.body.block.first_op.function_type.inputs.data[0].get_shape()
    x = RNG.standard_normal(shape).astype(np.float32)
    own, ctx = lowered(model, 10**6)
    turned, turned_ctx = lowered(model, 1)
    want = run_module(own, ctx.weights, [x])
    for y, w in zip(run_module(turned, turned_ctx.weights, [x]), want, strict=True):
        np.testing.assert_allclose(y, w, rtol=1e-5, atol=1e-5 * abs(w).max())


def test_few_channels_a_group_and_plain_float32_stay():
    net = Net((9, 8, 6, 6))
    depthwise = net.model(net.conv(net.x, 8, [3, 3], 8))
    assert "2x3x3" not in str(lowered(depthwise, 1)[0])
    net = Net((9, 8, 6, 6))
    strict = net.model(net.conv(net.x, 8, [3, 3]))
    function = strict.module.body.block.first_op
    function.attributes[PRECISION] = StringAttr("ieee")
    assert "tensor<8x3x3x8xf32>" not in str(lowered(strict, 1)[0])
    function.attributes.pop(PRECISION)
    assert "tensor<8x3x3x8xf32>" in str(lowered(strict, 1)[0])


@pytest.mark.parametrize("precision", ["tf32", "bf16", "f16"])
def test_one_image_is_turned_where_factors_are_rounded(precision):
    net = Net((1, 8, 6, 6))
    model = net.model(net.conv(net.x, 8, [3, 3]))
    function = model.module.body.block.first_op
    assert "tensor<8x3x3x8xf32>" not in str(lowered(model, 8)[0])
    function.attributes[PRECISION] = StringAttr(precision)
    assert "tensor<8x3x3x8xf32>" in str(lowered(model, 8)[0])


# (input, filters, what more the convolution is told)
CASES = {
    "padded": ((2, 8, 5, 6), 12, (3, 3), {"pads": [1, 1, 1, 1]}),
    "strided": ((3, 16, 7, 9), 20, (3, 2), {"strides": [2, 3], "pads": [1, 0, 2, 1]}),
    "dilated": ((2, 8, 9, 9), 16, (3, 3), {"dilations": [2, 2], "pads": [2, 2, 2, 2]}),
    "grouped": ((2, 32, 5, 5), 32, (3, 3), {"group": 2, "pads": [1, 1, 1, 1]}),
    "one by one": ((2, 24, 3, 5), 36, (1, 1), {}),
    "odd channels": ((2, 7, 6, 5), 11, (3, 3), {"pads": [0, 1, 1, 0]}),
}
MMA = {"BM": 32, "BN": 32, "BK": 16, "WM": 16, "WN": 16, "STAGES": 3}
GROUPS = {"BM": 64, "BN": 64, "BK": 32, "WN": 32, "STAGES": 2}
KERNELS = {
    "product.mma32x32": (partial(product_mma.parameters_of, MMA), "float32", 128, 1e-5),
    "product.wgmma64x64": (partial(product_wgmma.parameters_of, GROUPS), "tf32", 256, 1e-2),
    "product.wgmma64x64_halves": (
        partial(product_wgmma_halves.parameters_of, {**GROUPS, "BK": 64, "STAGES": 4}),
        "float32", 256, 2e-3,
    ),
    "product.wgmma64x64_words": (
        partial(product_wgmma_words.parameters_of, {**GROUPS, "STAGES": 4}), "tf32", 256, 1e-2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("rkernel", KERNELS)
@pytest.mark.parametrize("name", CASES)
def test_products_read_runs_of_channels(name, rkernel):
    shape, outputs, kernel, how = CASES[name]
    parameters_of, precision, threads, tolerance = KERNELS[rkernel]
    half = rkernel.endswith("halves")
    if name == "odd channels" and rkernel.endswith(("halves", "words")):
        pytest.skip("what is read 16 bytes at once alone")
    dtype = "float16" if half else "float32"
    net = Net(shape, dtype)
    # A convolution before it, so that the input has the order already.
    first = net.conv(net.x, shape[1], [1, 1])
    model = net.model(net.conv(first, outputs, kernel, **how))
    module, _ = lowered(model, 1, ("graph", "tensor", "task"))
    ops = [op for op in module.ops if isinstance(op, ROperatorOp)]
    convs = [op for op in ops if find_root(op.body.block).family == "conv"]
    op = convs[-1]
    root = find_root(op.body.block)
    root.op.attributes[PRECISION] = StringAttr(precision)
    product = as_product(root)
    assert product.transposed
    if name != "odd channels":
        assert run_of_b(product).by_k
        assert run_of_b(product).together >= (8 if half else 4)
    kernel_ = registry.find("cuda", rkernel)
    assert kernel_.legal(root)
    arrays = [some(a.type) for a in op.body.block.args]
    want = interpreted(op, arrays)
    # Several tiles in one rTask, or parts that end within tiles.
    for tasks in (1, 5) if name == "dilated" else (3,):
        op.grid = int_array(kernel_.grid(root, tasks))
        assert np.prod(grid_of(op, root)) <= tasks
        binder = Binder(op, root, "cuda")
        families.find("product").bind(binder)
        given = {"THREADS": threads, "VECTOR": 1, **parameters_of(root)}
        names = {**binder.binding.names, **{k: str(v) for k, v in given.items()}}
        body = specialise(template_source(kernel_), kernel_.function, "kernel", names)
        text = "\n".join([*binder.binding.functions, *binder.binding.parts.values(), body])
        y = np.full(want.shape, 77, want.dtype)
        cuda_emulator.run_text(text, "kernel", [*arrays, y], op.tasks, 1, threads, 1 << 18)
        off = abs(y.astype(np.float64) - want.astype(np.float64)).max()
        assert off <= tolerance * abs(want.astype(np.float64)).max()


def some(t):
    return RNG.standard_normal(t.get_shape()).astype(numpy_dtype(t.element_type))


def interpreted(op, arrays):
    """What the interpreter makes of an rOperator."""
    return evaluate_body(op, arrays, {})[0]


@pytest.mark.parametrize("tile", ["64x32", "128x128"])
def test_products_overlap_with_rounding_in_registers(tile):
    pytest.importorskip("numba_cuda")
    from benchmarks.products import Case as Product
    from benchmarks.products import Job, program
    from irkit.runtime.cuda import compiling, ptx
    from irkit.runtime.cuda.facts import read_facts

    case = Product("test", (256, 512), (512, 512), transposed=True)
    made = program(Job(case, "tf32", "h200", f"product.wgmma{tile}_words"))
    assert made is not None
    source = made.artifact.source
    _, facts = read_facts(source)
    compiled = compiling.compile_module_with_ptx(source, facts.entries, facts.threads, "sm_90a")
    assert ptx.warnings(compiled.ptx) == []
    assert "cvt.rn.tf32.f32" in compiled.ptx
    assert "C75" not in compiled.log
    for name in [n for n in facts.entries if n.startswith("op_")]:
        resources = compiled.resources()[name]
        assert resources["stack"] == resources["spill_stores"] == 0, name
