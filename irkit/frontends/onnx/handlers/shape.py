"""Operators that move elements, and those that read shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.types import DYNAMIC
from irkit.frontends.onnx.node import Handler, Node, Value


def _shape_of(node: Node, index: int = 0) -> list[int]:
    return list(node.type_of(index).get_shape())


def _axis_attribute(node: Node, default: int, rank: int) -> int:
    return node.axis(int(node.attribute("axis", default)), rank)


def _reject_batch_axis(node: Node, axis: int, shape: Sequence[int]) -> None:
    if shape[axis] == DYNAMIC:
        node.refuse(f"axis = {axis}", "it mixes the rows of a dynamic batch")


def _concat(node: Node) -> Sequence[Value]:
    shape = _shape_of(node)
    axis = _axis_attribute(node, 0, len(shape))
    for i in range(len(node.inputs)):
        _reject_batch_axis(node, axis, _shape_of(node, i))
    return [node.emit(graph.ConcatOp, *node.operands(), axis=axis)]


def _expand(node: Node) -> Sequence[Value]:
    have, want = _shape_of(node), node.shape_array(1).tolist()
    rank = max(len(have), len(want))
    pairs = zip([1] * (rank - len(have)) + have, [1] * (rank - len(want)) + want, strict=True)
    shape = [h if w == 1 else w for h, w in pairs]
    return [node.emit(graph.ExpandOp, node.operand(0), shape=shape)]


def _flatten(node: Node) -> Sequence[Value]:
    shape = _shape_of(node)
    axis = _axis_attribute(node, 1, len(shape))
    if shape[:1] != [DYNAMIC]:
        flat = [math.prod(shape[:axis]), math.prod(shape[axis:])]
    elif axis == 1:
        flat = [DYNAMIC, math.prod(shape[1:])]
    else:
        node.refuse(f"axis = {axis}", "only 1 is supported with a dynamic batch")
    return [node.emit(graph.ReshapeOp, node.operand(0), shape=flat)]


def _slice_along(node: Node, axis: int, offset: int, size: int) -> SSAValue:
    """Elements offset..offset + size of one axis of input 0."""
    sizes = _shape_of(node)
    offsets = [0] * len(sizes)
    offsets[axis], sizes[axis] = offset, size
    return node.emit(
        graph.SliceOp, node.operand(0), offsets=offsets, sizes=sizes, strides=[1] * len(sizes)
    )


def _reshape(node: Node) -> Sequence[Value]:
    have, want = _shape_of(node), [int(s) for s in node.shape_array(1)]
    if 0 in want and node.attribute("allowzero", 0):
        node.refuse("allowzero = 1", "empty tensors are not supported")
    node.ignore("allowzero")
    if any(w == 0 and i >= len(have) for i, w in enumerate(want)):
        node.refuse("shape", f"{want} copies a dimension that {have} lacks")
    want = [have[i] if w == 0 else w for i, w in enumerate(want)]
    if have[:1] == [DYNAMIC]:
        return [node.emit(graph.ReshapeOp, node.operand(0), shape=_reshape_rows(node, have, want))]
    return [node.emit(graph.ReshapeOp, node.operand(0), shape=_fill(want, math.prod(have)))]


def _fill(want: list[int], elements: int) -> list[int]:
    """`want` with its -1 worked out."""
    known = math.prod(s for s in want if s != -1)
    return [elements // known if s == -1 and known else s for s in want]


def _reshape_rows(node: Node, have: list[int], want: list[int]) -> list[int]:
    """The batch stays first; a leading -1 is the batch if the rest makes up one row."""
    row = math.prod(have[1:])
    batch_is_rest = want[:1] == [-1] and math.prod(want[1:]) == row
    if want[:1] != [DYNAMIC] and not batch_is_rest:
        node.refuse("shape", f"{want} does not keep the dynamic batch first")
    return [DYNAMIC, *_fill(want[1:], row)]


def _shape(node: Node) -> Sequence[Value]:
    shape = np.array(_shape_of(node), dtype=np.int64)
    start, end = node.attribute("start", 0), node.attribute("end", len(shape))
    return [shape[start:end]]


def _bounds(node: Node, rank: int) -> list[tuple[int, int, int, int]]:
    """(axis, start, end, step) as given: attributes in operator set 9, inputs since 10."""
    if node.opset < 10:
        starts, ends = node.attribute("starts", []), node.attribute("ends", [])
        axes = node.attribute("axes", list(range(len(starts))))
        steps = [1] * len(starts)
    else:
        starts, ends = node.array(1).tolist(), node.array(2).tolist()
        axes = list(range(len(starts))) if node.given(3) is None else node.array(3).tolist()
        steps = [1] * len(starts) if node.given(4) is None else node.array(4).tolist()
    axes = [node.axis(a, rank) for a in axes]
    return list(zip(axes, starts, ends, steps, strict=True))


def _slice(node: Node) -> Sequence[Value]:
    sizes = _shape_of(node)
    offsets, strides = [0] * len(sizes), [1] * len(sizes)
    for axis, start, end, step in _bounds(node, len(sizes)):
        whole = (start, step) == (0, 1) and end >= 2**31 - 1
        if sizes[axis] == DYNAMIC and whole:
            continue
        _reject_batch_axis(node, axis, sizes)
        picked = range(sizes[axis])[start:end:step]
        if not picked:
            node.refuse("starts, ends", f"nothing is left of axis {axis}")
        offsets[axis], sizes[axis], strides[axis] = picked.start, len(picked), step
    return [
        node.emit(graph.SliceOp, node.operand(0), offsets=offsets, sizes=sizes, strides=strides)
    ]


def _split_sizes(node: Node, size: int) -> list[int]:
    parts = len(node.proto.output)
    node.ignore("num_outputs")
    if node.opset < 13:
        given = node.attribute("split", None)
    else:
        given = None if node.given(1) is None else node.array(1).tolist()
    if given is not None:
        return given
    chunk = -(-size // parts)
    return [min(chunk, size - i * chunk) for i in range(parts)]


def _split(node: Node) -> Sequence[Value]:
    shape = _shape_of(node)
    axis = _axis_attribute(node, 0, len(shape))
    _reject_batch_axis(node, axis, shape)
    outputs: list[Value] = []
    offset = 0
    for size in _split_sizes(node, shape[axis]):
        outputs.append(_slice_along(node, axis, offset, size))
        offset += size
    return outputs


def _axes(node: Node) -> list[int] | None:
    """Axes of Squeeze and Unsqueeze: an attribute up to operator set 12, an input since."""
    if node.opset < 13:
        return node.attribute("axes", None)
    return None if node.given(1) is None else node.array(1).ravel().tolist()


def _squeeze(node: Node) -> Sequence[Value]:
    shape = _shape_of(node)
    axes = _axes(node)
    if axes is None:
        axes = [d for d, s in enumerate(shape) if s == 1]
    axes = [node.axis(a, len(shape)) for a in axes]
    if any(shape[a] != 1 for a in axes):
        node.refuse(f"axes = {axes}", f"not all are of size 1 in {shape}")
    kept = [s for d, s in enumerate(shape) if d not in axes]
    return [node.emit(graph.ReshapeOp, node.operand(0), shape=kept)]


def _unsqueeze(node: Node) -> Sequence[Value]:
    shape = _shape_of(node)
    axes = _axes(node) or []
    rank = len(shape) + len(axes)
    ones = {node.axis(a, rank) for a in axes}
    sizes = iter(shape)
    grown = [1 if d in ones else next(sizes) for d in range(rank)]
    return [node.emit(graph.ReshapeOp, node.operand(0), shape=grown)]


def _transpose(node: Node) -> Sequence[Value]:
    rank = node.type_of(0).get_num_dims()
    permutation = node.attribute("perm", list(range(rank))[::-1])
    return [node.emit(graph.TransposeOp, node.operand(0), permutation=permutation)]


HANDLERS: dict[str, Handler] = {
    "Concat": _concat,
    "Expand": _expand,
    "Flatten": _flatten,
    "Reshape": _reshape,
    "Shape": _shape,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
