"""Operators that lay elements out anew: tiles, padding, blocks, triangles."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from onnx import helper, numpy_helper
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.types import DYNAMIC, numpy_dtype, tensor_type
from irkit.frontends.onnx.folding import MAX_ELEMENTS
from irkit.frontends.onnx.handlers.arithmetic import scalar
from irkit.frontends.onnx.handlers.gather import slice_along
from irkit.frontends.onnx.handlers.shape import expanded
from irkit.frontends.onnx.node import Handler, Node, Value
from irkit.weights import Array


def _tile(node: Node) -> Sequence[Value]:
    """Each dimension becomes (repeats, size), the first broadcast."""
    shape, repeats = list(node.type_of(0).get_shape()), node.array(1).tolist()
    if len(repeats) != len(shape):
        node.refuse("repeats", f"expected {len(shape)} numbers, got {len(repeats)}")
    if 0 in repeats:
        node.refuse("repeats", "empty tensors are not supported")
    grown: list[int] = []
    tiled: list[int] = []
    for size, times in zip(shape, repeats, strict=True):
        if size == DYNAMIC and times != 1:
            node.refuse("repeats", "it mixes the rows of a dynamic batch")
        grown += [size] if times == 1 else [1, size]
        tiled += [size] if times == 1 else [times, size]
    y = node.emit(graph.ReshapeOp, node.operand(0), shape=grown)
    y = node.emit(graph.ExpandOp, y, shape=tiled)
    final = [s if s == DYNAMIC else s * t for s, t in zip(shape, repeats, strict=True)]
    return [node.emit(graph.ReshapeOp, y, shape=final)]


def _pads(node: Node, rank: int) -> list[tuple[int, int]]:
    """(before, after) of each axis."""
    pads: list[int] = node.attribute("pads", None) if node.opset < 11 else node.array(1).tolist()
    axes = list(range(rank))
    if node.opset >= 18 and node.given(3) is not None:
        axes = [node.axis(a, rank) for a in node.array(3).tolist()]
    widths = [(0, 0)] * rank
    for number, axis in enumerate(axes):
        widths[axis] = (pads[number], pads[number + len(axes)])
    return widths


def _pad_value(node: Node) -> float:
    if node.opset < 11:
        return float(node.attribute("value", 0.0))
    value = None if node.given(2) is None else node.array(2).item()
    if isinstance(value, int) and abs(value) > 1 << 53:
        node.refuse("constant_value", f"{value} is larger than 2^53")
    return float(value or 0)


def _picked(mode: str, size: int, before: int, after: int) -> Array:
    """Which element of an axis stands where once it is padded. What wraps is what negative pads leave, as in
    ONNX Runtime."""
    at = np.arange(-before, size + after)
    if mode == "wrap":
        first, kept = max(-before, 0), size + min(before, 0) + min(after, 0)
        return (at - first) % kept + first
    if mode == "edge" or size == 1:
        return np.clip(at, 0, size - 1)
    period = 2 * (size - 1)
    return (size - 1) - np.abs(at % period - (size - 1))


def _pad(node: Node) -> Sequence[Value]:
    x, shape = node.operand(0), list(node.type_of(0).get_shape())
    mode, widths = str(node.attribute("mode", "constant")), _pads(node, len(shape))
    if mode not in ("constant", "edge", "reflect", "wrap"):
        node.refuse(f"mode = {mode!r}", "it is not defined")
    value = _pad_value(node)
    for axis, (before, after) in enumerate(widths):
        if (before or after) and shape[axis] == DYNAMIC:
            node.refuse(f"pads of axis {axis}", "it mixes the rows of a dynamic batch")
        if min(before, after) < 0 or (mode != "constant" and (before or after)):
            x = _cut_or_extend(node, x, axis, (before, after), mode)
            widths[axis] = (max(before, 0), max(after, 0)) if mode == "constant" else (0, 0)
    low, high = [list(side) for side in zip(*widths, strict=True)] or [[], []]
    if any(low) or any(high):
        x = node.emit(graph.PadOp, x, low=low, high=high, value=value)
    return [x]


def _cut_or_extend(
    node: Node, x: SSAValue, axis: int, widths: tuple[int, int], mode: str
) -> SSAValue:
    size = tensor_type(x).get_shape()[axis]
    before, after = widths
    kept = size + min(before, 0) + min(after, 0)
    if kept < 1:
        node.refuse("pads", "nothing is left: empty tensors are not supported")
    if mode == "constant":
        return slice_along(node, x, axis, max(-before, 0), kept)
    picked = node.tensor(_picked(mode, size, before, after).astype(np.int64))
    return node.emit(graph.GatherOp, x, picked, axis=axis)


def _blocks(node: Node) -> tuple[int, int, int, int, int]:
    """Batch, channels, height and width of the operand, and the size of a block."""
    shape = node.type_of(0).get_shape()
    if len(shape) != 4:
        node.refuse("input", f"it must have 4 dimensions, got {len(shape)}")
    n, c, h, w = shape
    return n, c, h, w, int(node.attribute("blocksize", 0))


def _depth_to_space(node: Node) -> Sequence[Value]:
    n, c, h, w, b = _blocks(node)
    columns_first = str(node.attribute("mode", "DCR")) == "CRD"
    split = [n, c // (b * b), b, b, h, w] if columns_first else [n, b, b, c // (b * b), h, w]
    order = [0, 1, 4, 2, 5, 3] if columns_first else [0, 3, 4, 1, 5, 2]
    y = node.emit(graph.ReshapeOp, node.operand(0), shape=split)
    y = node.emit(graph.TransposeOp, y, permutation=order)
    return [node.emit(graph.ReshapeOp, y, shape=[n, c // (b * b), h * b, w * b])]


def _space_to_depth(node: Node) -> Sequence[Value]:
    n, c, h, w, b = _blocks(node)
    columns_first = str(node.attribute("mode", "DCR")) == "CRD"
    y = node.emit(graph.ReshapeOp, node.operand(0), shape=[n, c, h // b, b, w // b, b])
    order = [0, 1, 3, 5, 2, 4] if columns_first else [0, 3, 5, 1, 2, 4]
    y = node.emit(graph.TransposeOp, y, permutation=order)
    return [node.emit(graph.ReshapeOp, y, shape=[n, c * b * b, h // b, w // b])]


def _trilu(node: Node) -> Sequence[Value]:
    x = node.operand(0)
    rows, columns = tensor_type(x).get_shape()[-2:]
    if rows == DYNAMIC:
        node.refuse("input", "it mixes the rows of a dynamic batch")
    k = 0 if node.given(1) is None else int(node.array(1).item())
    distance = np.arange(columns)[None, :] - np.arange(rows)[:, None]
    kept = distance >= k if node.attribute("upper", 1) else distance <= k
    return [node.emit(graph.WhereOp, node.tensor(kept), x, scalar(node, 0, x))]


def _eye_like(node: Node) -> Sequence[Value]:
    t = node.type_of(0)
    shape, k = t.get_shape(), int(node.attribute("k", 0))
    dtype = numpy_dtype(t.element_type)
    if node.has("dtype"):
        dtype = helper.tensor_dtype_to_np_dtype(int(node.attribute("dtype", 0)))
    if DYNAMIC in shape or len(shape) != 2:
        node.refuse("input", f"it must be a matrix of known size, got {t}")
    return [np.eye(*shape, k=k, dtype=dtype)]


def _range(node: Node) -> Sequence[Value]:
    start, limit, delta = (node.array(i).item() for i in range(3))
    count = (limit - start) / delta if delta else math.nan
    if not 0 < count <= MAX_ELEMENTS:
        node.refuse("", f"{count:g} elements: 1 to {MAX_ELEMENTS} are supported")
    elements = math.ceil(count)
    dtype = node.array(0).dtype
    return [(start + delta * np.arange(elements)).astype(dtype)]


def _constant_of_shape(node: Node) -> Sequence[Value]:
    shape, value = node.shape_array(0).tolist(), node.attribute("value", None)
    filler = np.zeros(1, np.float32) if value is None else numpy_helper.to_array(value)
    if node.symbolic[0]:
        return [expanded(node, node.tensor(filler.reshape(())), [1] * len(shape), shape)]
    if math.prod(shape) > MAX_ELEMENTS:
        node.refuse("", f"a constant of more than {MAX_ELEMENTS} elements")
    filled: Array = np.broadcast_to(filler.reshape(()), shape)
    return [filled.copy()]


def _cum_prod(node: Node) -> Sequence[Value]:
    """Each round multiplies by what stands so many places before, twice as many as the last time."""
    x, axis = node.operand(0), node.axis(int(node.array(1).item()), node.type_of(0).get_num_dims())
    size = tensor_type(x).get_shape()[axis]
    if size == DYNAMIC:
        node.refuse(f"axis = {axis}", "it mixes the rows of a dynamic batch")
    backward = bool(node.attribute("reverse", 0))
    if node.attribute("exclusive", 0):
        if size == 1:
            node.refuse("exclusive = 1", "of one element nothing is left")
        x = _moved(node, x, axis, 1, backward)
    places = 1
    while places < size:
        x = node.emit(graph.MulOp, x, _moved(node, x, axis, places, backward))
        places *= 2
    return [x]


def _moved(node: Node, x: SSAValue, axis: int, places: int, backward: bool) -> SSAValue:
    """`x` moved along an axis, with ones where nothing comes from."""
    shape = tensor_type(x).get_shape()
    kept = shape[axis] - places
    ones = [0] * len(shape)
    ones[axis] = places
    none = [0] * len(shape)
    part = slice_along(node, x, axis, places if backward else 0, kept)
    low, high = (none, ones) if backward else (ones, none)
    return node.emit(graph.PadOp, part, low=low, high=high, value=1.0)


def _size(node: Node) -> Sequence[Value]:
    shape = node.type_of(0).get_shape()
    if DYNAMIC in shape:
        node.refuse("", "it computes with the dynamic batch size")
    return [np.array(math.prod(shape), np.int64)]


HANDLERS: dict[str, Handler] = {
    "ConstantOfShape": _constant_of_shape,
    "CumProd": _cum_prod,
    "DepthToSpace": _depth_to_space,
    "EyeLike": _eye_like,
    "Pad": _pad,
    "Range": _range,
    "Size": _size,
    "SpaceToDepth": _space_to_depth,
    "Tile": _tile,
    "Trilu": _trilu,
}
