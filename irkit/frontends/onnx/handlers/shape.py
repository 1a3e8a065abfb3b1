"""Operators that move elements, and those that read shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.types import DYNAMIC
from irkit.frontends.onnx.extents import factor_of
from irkit.frontends.onnx.folding import axes_of
from irkit.frontends.onnx.handlers.gather import slice_along
from irkit.frontends.onnx.node import Handler, Node, Value


def _shape_of(node: Node, index: int = 0) -> list[int]:
    return list(node.type_of(index).get_shape())


def _axis_attribute(node: Node, default: int, rank: int) -> int:
    return node.axis(int(node.attribute("axis", default)), rank)


def _reject_batch_axis(node: Node, axis: int, shape: Sequence[int]) -> None:
    if shape[axis] == DYNAMIC:
        node.refuse(f"axis = {axis}", "it mixes the rows of a dynamic batch")


def _concat(node: Node) -> Sequence[Value]:
    axis = _axis_attribute(node, 0, len(_shape_of(node)))
    return [node.emit(graph.ConcatOp, *node.operands(), axis=axis)]


def _expand(node: Node) -> Sequence[Value]:
    have, want = node.sizes(0), node.shape_array(1).tolist()
    rank = max(len(have), len(want))
    have, want = [1] * (rank - len(have)) + have, [1] * (rank - len(want)) + want
    shape = [h if w == 1 else w for h, w in zip(have, want, strict=True)]
    return [expanded(node, node.operand(0), have, shape)]


def expanded(node: Node, x: SSAValue, have: Sequence[int], want: Sequence[int]) -> SSAValue:
    """`x`, of shape `have` behind as many ones as lack, broadcast to `want`; both may hold marks."""
    new = [factor_of(w) for h, w in zip(have, want, strict=True) if factor_of(w) and h == 1]
    if any(factor_of(h) and h != w for h, w in zip(have, want, strict=True)):
        node.refuse("shape", "it is none that the dynamic batch broadcasts to at every size")
    if len(new) > 1 or any(f != 1 for f in new):
        node.refuse("shape", "it has a multiple of the dynamic batch size")
    shape = [DYNAMIC if factor_of(w) else w for w in want]
    like = [node.batch_source()] if new else []
    return node.emit(graph.ExpandOp, x, *like, shape=shape)


def _flatten(node: Node) -> Sequence[Value]:
    shape = _shape_of(node)
    axis = _axis_attribute(node, 1, len(shape))
    flat = [DYNAMIC if DYNAMIC in s else math.prod(s) for s in (shape[:axis], shape[axis:])]
    return [node.emit(graph.ReshapeOp, node.operand(0), shape=flat)]


def _reshape(node: Node) -> Sequence[Value]:
    have, want = node.sizes(0), [int(s) for s in node.shape_array(1)]
    if 0 in want and node.attribute("allowzero", 0):
        node.refuse("allowzero = 1", "empty tensors are not supported")
    node.ignore("allowzero")
    if any(w == 0 and i >= len(have) for i, w in enumerate(want)):
        node.refuse("shape", f"{want} copies a dimension that {have} lacks")
    want = [have[i] if w == 0 else w for i, w in enumerate(want)]
    if any(map(factor_of, [*have, *want])):
        return [node.emit(graph.ReshapeOp, node.operand(0), shape=_reshape_rows(node, have, want))]
    return [node.emit(graph.ReshapeOp, node.operand(0), shape=_fill(want, math.prod(have)))]


def _fill(want: list[int], elements: int) -> list[int]:
    """`want` with its -1 worked out."""
    known = math.prod(s for s in want if s != -1)
    return [elements // known if s == -1 and known else s for s in want]


def _reshape_rows(node: Node, have: list[int], want: list[int]) -> list[int]:
    """One dimension holds the batch: the one that is a multiple of it, or else the -1."""
    elements, known = _elements(have), _elements([s for s in want if s != -1])
    batch, rest = [i for i, s in enumerate(want) if factor_of(s)], want.count(-1)
    if elements[0] != 1 or len(batch) > 1 or len(batch) + rest == 0 or rest > 1:
        node.refuse("shape", f"{_shown(want)} is none of {_shown(have)} at every size of the batch")
    if elements[1] % known[1] or (not rest and elements[1] != known[1]):
        node.refuse("shape", f"{_shown(want)} is none of {_shown(have)} at every size of the batch")
    left = elements[1] // known[1] if batch else DYNAMIC
    return [DYNAMIC if factor_of(s) else left if s == -1 else s for s in want]


def _elements(sizes: Sequence[int]) -> tuple[int, int]:
    """(power of the batch, factor) of a product of sizes."""
    factors = [factor_of(s) for s in sizes]
    return sum(f > 0 for f in factors), math.prod(
        f or s for f, s in zip(factors, sizes, strict=True)
    )


def _shown(sizes: Sequence[int]) -> str:
    """Sizes as messages show them."""
    factors = [factor_of(s) for s in sizes]
    names = {0: "", 1: "batch"}
    return str([names.get(f, f"{f}*batch") or s for f, s in zip(factors, sizes, strict=True)])


def _shape(node: Node) -> Sequence[Value]:
    shape = np.array(node.sizes(0), dtype=np.int64)
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
        outputs.append(slice_along(node, node.operand(0), axis, offset, size))
        offset += size
    return outputs


def _squeeze(node: Node) -> Sequence[Value]:
    shape = _shape_of(node)
    axes = axes_of(node)
    if axes is None:
        axes = [d for d, s in enumerate(shape) if s == 1]
    axes = [node.axis(a, len(shape)) for a in axes]
    if any(shape[a] != 1 for a in axes):
        sizes = ["?" if s == DYNAMIC else s for s in shape]
        node.refuse(f"axes = {axes}", f"not all are of size 1 in {sizes}".replace("'", ""))
    kept = [s for d, s in enumerate(shape) if d not in axes]
    return [node.emit(graph.ReshapeOp, node.operand(0), shape=kept)]


def _unsqueeze(node: Node) -> Sequence[Value]:
    shape = _shape_of(node)
    axes = axes_of(node) or []
    rank = len(shape) + len(axes)
    ones = {node.axis(a, rank) for a in axes}
    if len(ones) < len(axes):
        node.refuse(f"axes = {list(axes)}", "one dimension is named twice")
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
