"""Convolution and pooling over one to three spatial dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.graph.convolution import SPATIAL
from irkit.dialects.types import DYNAMIC
from irkit.frontends.onnx.handlers.reduction import reduce, widened
from irkit.frontends.onnx.node import Handler, Node, Value

# No network has longer padding, which windows would go through for nothing.
_MOST_PADDING = 2**24
_LONGEST = 2**31 - 1


def spatial(node: Node) -> list[int]:
    """Extents of the spatial dimensions of input 0."""
    rank = node.type_of(0).get_num_dims()
    if rank - 2 not in SPATIAL:
        node.refuse(f"input of rank {rank}", "only 1 to 3 spatial dimensions are supported")
    sizes = list(node.type_of(0).get_shape()[2:])
    if DYNAMIC in sizes:
        node.refuse("input", "its spatial dimensions must be static")
    return sizes


@dataclass
class Sliding:
    """How a window slides; `pads` is all that come before, then all after."""

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    pads: list[int]


def sliding(node: Node, kernel: list[int], sizes: Sequence[int]) -> Sliding:
    """How a node's window of extents `kernel` goes over `sizes`; refuses attributes that have no meaning."""
    rank = len(sizes)
    strides = list(node.attribute("strides", [1] * rank))
    dilations = list(node.attribute("dilations", [1] * rank))
    for name, values in (("kernel_shape", kernel), ("strides", strides), ("dilations", dilations)):
        if len(values) != rank or min(values) < 1:
            node.refuse(f"{name} = {values}", f"{rank} values of 1 or more are needed")
    pads = list(node.attribute("pads", [0] * (2 * rank)))
    match auto := node.attribute("auto_pad", "NOTSET"):
        case "VALID":
            pads = [0] * (2 * rank)
        case "SAME_UPPER" | "SAME_LOWER" as side:
            pads = _same(side, kernel, strides, dilations, sizes)
        case "NOTSET":
            pass
        case other:
            node.refuse(f"auto_pad = {other!r}", "there is no such padding")
    if len(pads) != 2 * rank or min(pads) < 0:
        node.refuse(f"pads = {pads}", f"{2 * rank} values of 0 or more are needed")
    if max(pads) > _MOST_PADDING:
        asked = "pads" if auto == "NOTSET" else f"auto_pad = {auto!r} of kernel_shape = {kernel}"
        node.refuse(asked, f"padding of up to {_MOST_PADDING} elements is supported, got {pads}")
    return Sliding(kernel, strides, dilations, pads)


def _same(
    side: str, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int],
    sizes: Sequence[int],
) -> list[int]:  # fmt: skip
    """Padding that gives ceil(size / stride) outputs; an odd element goes to `side`."""
    totals: list[int] = []
    for size, k, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        outputs = -(-size // stride)
        totals.append(max((outputs - 1) * stride + dilation * (k - 1) + 1 - size, 0))
    return _split(side, totals)


def _split(side: str, totals: Sequence[int]) -> list[int]:
    small, large = [t // 2 for t in totals], [t - t // 2 for t in totals]
    return large + small if side == "SAME_LOWER" else small + large


def filters(node: Node, sizes: Sequence[int], weights: int = 1) -> list[int]:
    """Kernel extents, from the weights, input `weights`; the attribute must agree."""
    shape = node.type_of(weights).get_shape()
    if len(shape) != len(sizes) + 2:
        node.refuse(node.name_of(weights), f"{len(sizes) + 2} dimensions are needed, got {shape}")
    kernel = list(shape[2:])
    if list(node.attribute("kernel_shape", kernel)) != kernel:
        node.refuse("kernel_shape", f"the weights are {kernel}")
    return kernel


def _operands(node: Node) -> list[SSAValue]:
    return [node.operand(i) for i in range(3) if node.given(i) is not None]


def _conv(node: Node) -> Sequence[Value]:
    sizes = spatial(node)
    where = sliding(node, filters(node, sizes), sizes)
    y = node.emit(
        graph.ConvOp,
        *_operands(node),
        strides=where.strides,
        pads=where.pads,
        dilations=where.dilations,
        group=int(node.attribute("group", 1)),
    )
    return [y]


def _conv_transpose(node: Node) -> Sequence[Value]:
    sizes = spatial(node)
    rank, auto = len(sizes), node.attribute("auto_pad", "NOTSET")
    kernel = filters(node, sizes)
    strides = list(node.attribute("strides", [1] * rank))
    where = sliding(node, kernel, [s * n for s, n in zip(strides, sizes, strict=False)])
    longer = list(node.attribute("output_padding", [0] * rank))
    full = [
        (n - 1) * s + d * (k - 1) + 1 + o
        for n, s, d, k, o in zip(sizes, where.strides, where.dilations, kernel, longer, strict=True)
    ]
    if max(full) > _LONGEST:
        node.refuse("strides, dilations, output_padding", f"they make {full} of {sizes} elements")
    wanted = list(node.attribute("output_shape", []))[-rank:]
    if auto.startswith("SAME") and not wanted:
        wanted = [n * s for n, s in zip(sizes, where.strides, strict=True)]
    if wanted:
        totals = [f - w for f, w in zip(full, wanted, strict=True)]
        # Which end a longer output grows at is clear for one element only.
        if min(totals) < (0 if auto == "SAME_UPPER" else -1):
            node.refuse(f"output_shape = {wanted}", f"no padding makes {full} that long")
        longer = [o + max(-t, 0) for o, t in zip(longer, totals, strict=True)]
        # Unlike Conv, the odd element goes before unless the padding is SAME_UPPER.
        side = "SAME_UPPER" if auto == "SAME_UPPER" else "SAME_LOWER"
        where.pads = _split(side, [max(t, 0) for t in totals])
    y = node.emit(
        graph.ConvTransposeOp,
        *_operands(node),
        strides=where.strides,
        pads=where.pads,
        dilations=where.dilations,
        group=int(node.attribute("group", 1)),
        output_padding=longer,
    )
    return [y]


# Pooling


def pool(node: Node) -> dict[str, list[int] | bool]:
    """Properties that all pools share."""
    sizes = spatial(node)
    where = sliding(node, list(node.attribute("kernel_shape", [])), sizes)
    ceil = bool(node.attribute("ceil_mode", 0))
    props: dict[str, list[int] | bool] = {
        "kernel_shape": where.kernel,
        "strides": where.strides,
        "pads": where.pads,
    }
    if any(d != 1 for d in where.dilations):
        props["dilations"] = where.dilations
    # With auto_pad = SAME, the padding alone says how many outputs there are; with VALID, ONNX's shape
    # inference and ONNX Runtime round up too. A window that would start behind the input is none: since
    # operator set 22 by ONNX's text, and at every one by ONNX Runtime and PyTorch.
    if ceil and not node.attribute("auto_pad", "NOTSET").startswith("SAME"):
        props["ceil_mode"] = True
    return props


def _max_pool(node: Node) -> Sequence[Value]:
    column_major = bool(node.attribute("storage_order", 0))
    props = pool(node)
    x, back = widened(node, node.operand(0))
    y = back(node.emit(graph.MaxPoolOp, x, **props))
    if len(node.proto.output) < 2 or not node.proto.output[1]:
        return [y]
    return [y, node.emit(graph.MaxPoolIndicesOp, x, column_major=column_major, **props)]


def _average_pool(node: Node) -> Sequence[Value]:
    include = bool(node.attribute("count_include_pad", 0))
    props = pool(node)
    return [node.emit(graph.AveragePoolOp, node.operand(0), count_include_pad=include, **props)]


def _lp_pool(node: Node) -> Sequence[Value]:
    p = int(node.attribute("p", 2))
    return [node.emit(graph.LpPoolOp, node.operand(0), p=p, **pool(node))]


def _global_average_pool(node: Node) -> Sequence[Value]:
    spatial(node)
    return [node.emit(graph.GlobalAveragePoolOp, node.operand(0))]


def _global_max_pool(node: Node) -> Sequence[Value]:
    axes = list(range(2, 2 + len(spatial(node))))
    return [reduce(node, node.operand(0), "max", axes, True)]


def _global_lp_pool(node: Node) -> Sequence[Value]:
    sizes = spatial(node)
    p = int(node.attribute("p", 2))
    windows = {
        "kernel_shape": sizes,
        "strides": [1] * len(sizes),
        "pads": [0] * (2 * len(sizes)),
    }
    return [node.emit(graph.LpPoolOp, node.operand(0), p=p, **windows)]


HANDLERS: dict[str, Handler] = {
    "AveragePool": _average_pool,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "GlobalAveragePool": _global_average_pool,
    "GlobalLpPool": _global_lp_pool,
    "GlobalMaxPool": _global_max_pool,
    "LpPool": _lp_pool,
    "MaxPool": _max_pool,
}
