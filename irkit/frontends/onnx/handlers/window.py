"""Convolution and pooling over two spatial dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from irkit.dialects import graph
from irkit.dialects.types import DYNAMIC
from irkit.frontends.onnx.node import Handler, Node, Value


def _check_rank(node: Node) -> None:
    rank = node.type_of(0).get_num_dims()
    if rank != 4:
        node.refuse(f"input of rank {rank}", "only two spatial dimensions are supported")


def _pads(
    node: Node, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[int]:
    """[top, left, bottom, right] from `pads` or `auto_pad`."""
    auto = node.attribute("auto_pad", "NOTSET")
    pads = list(node.attribute("pads", [0, 0, 0, 0]))
    if auto == "NOTSET":
        return pads
    if auto == "VALID":
        return [0, 0, 0, 0]
    before: list[int] = []
    after: list[int] = []
    sizes = node.type_of(0).get_shape()[2:]
    for size, k, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        outputs = -(-size // stride)
        total = max((outputs - 1) * stride + dilation * (k - 1) + 1 - size, 0)
        small, large = total // 2, total - total // 2
        before.append(large if auto == "SAME_LOWER" else small)
        after.append(small if auto == "SAME_LOWER" else large)
    return before + after


def _conv(node: Node) -> Sequence[Value]:
    _check_rank(node)
    kernel = list(node.type_of(1).get_shape()[2:])
    if list(node.attribute("kernel_shape", kernel)) != kernel:
        node.refuse("kernel_shape", f"the weights are {kernel}")
    strides = list(node.attribute("strides", [1, 1]))
    dilations = list(node.attribute("dilations", [1, 1]))
    operands = [node.operand(i) for i in range(3) if node.given(i) is not None]
    y = node.emit(
        graph.ConvOp,
        *operands,
        strides=strides,
        pads=_pads(node, kernel, strides, dilations),
        dilations=dilations,
        group=int(node.attribute("group", 1)),
    )
    return [y]


def _ceil_excess(node: Node, where: dict[str, list[int]]) -> list[int]:
    """How much padding at the end makes floor mode give ceil mode's outputs, per dimension."""
    excess: list[int] = []
    for d, size in enumerate(node.type_of(0).get_shape()[2:]):
        kernel, stride = where["kernel_shape"][d], where["strides"][d]
        before, after = where["pads"][d], where["pads"][2 + d]
        last = -(-(size + before + after - kernel) // stride)
        if last * stride >= size + before:
            # ONNX changed its mind about such windows; runtimes differ.
            node.refuse("ceil_mode = 1", "the last window starts behind the input")
        excess.append(max(last * stride + kernel - (size + before + after), 0))
    return excess


def _pool_parameters(node: Node) -> dict[str, list[int]]:
    _check_rank(node)
    if DYNAMIC in node.type_of(0).get_shape()[2:]:
        node.refuse("input", "its spatial dimensions must be static")
    kernel = list(node.attribute("kernel_shape", []))
    strides = list(node.attribute("strides", [1, 1]))
    node.require("dilations", [1, 1])
    pads = _pads(node, kernel, strides, [1, 1])
    return {"kernel_shape": kernel, "strides": strides, "pads": pads}


def _max_pool(node: Node) -> Sequence[Value]:
    node.require("storage_order", 0)
    where = _pool_parameters(node)
    if node.attribute("ceil_mode", 0):
        bottom, right = _ceil_excess(node, where)
        top_pad, left_pad, bottom_pad, right_pad = where["pads"]
        where["pads"] = [top_pad, left_pad, bottom_pad + bottom, right_pad + right]
    return [node.emit(graph.MaxPoolOp, node.operand(0), **where)]


def _average_pool(node: Node) -> Sequence[Value]:
    where = _pool_parameters(node)
    if node.attribute("ceil_mode", 0) and any(_ceil_excess(node, where)):
        node.refuse("ceil_mode = 1", "only where it makes no difference")
    include = bool(node.attribute("count_include_pad", 0))
    return [node.emit(graph.AveragePoolOp, node.operand(0), count_include_pad=include, **where)]


def _global_average_pool(node: Node) -> Sequence[Value]:
    _check_rank(node)
    return [node.emit(graph.GlobalAveragePoolOp, node.operand(0))]


def _global_max_pool(node: Node) -> Sequence[Value]:
    _check_rank(node)
    x = node.operand(0)
    return [node.emit(graph.ReduceOp, x, kind="max", axes=[2, 3], keepdims=True)]


HANDLERS: dict[str, Handler] = {
    "AveragePool": _average_pool,
    "Conv": _conv,
    "GlobalAveragePool": _global_average_pool,
    "GlobalMaxPool": _global_max_pool,
    "MaxPool": _max_pool,
}
