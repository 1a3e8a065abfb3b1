"""Operators that pick elements by index, and those that put elements at an index."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.frontends.array_ops import Ops, moving
from irkit.frontends.onnx.handlers.arithmetic import cast, scalar
from irkit.frontends.onnx.indexed import note_indices
from irkit.frontends.onnx.node import Handler, Node, Value
from irkit.frontends.onnx.provenance import known_array
from irkit.weights import Array

_MAX_ROUNDS = 64
"""So many updates of one element at known indices are taken one after another; more are compared with all."""


def _shape_of(value: SSAValue) -> list[int]:
    return list(tensor_type(value).get_shape())


def _static_shape(node: Node, index: int) -> list[int]:
    shape = list(node.type_of(index).get_shape())
    if DYNAMIC in shape:
        node.refuse(
            node.name_of(index), "it mixes the rows of a dynamic batch (fix the batch size)"
        )
    return shape


def in_range(node: Node, index: int, size: int) -> SSAValue:
    """Input `index` as indices in [0, size): negative ones count from the end."""
    value = node.given(index)
    if isinstance(value, np.ndarray):
        if (value < -size).any() or (value >= size).any():
            node.refuse("indices", f"some lie outside an axis of {size}")
        return node.tensor(np.where(value < 0, value + size, value).astype(np.int64))
    note_indices(node.builder, node.operand(index), size)
    return _counted(node, cast(node, node.operand(index), i64), size)


def _counted(node: Node, indices: SSAValue, size: int) -> SSAValue:
    below = node.emit(graph.CompareOp, indices, scalar(node, 0, indices), predicate="lt")
    from_end = node.emit(graph.AddOp, indices, scalar(node, size, indices))
    return node.emit(graph.WhereOp, below, from_end, indices)


def _axis(node: Node, index: int = 0, default: int = 0) -> int:
    shape = node.type_of(index).get_shape()
    axis = node.axis(int(node.attribute("axis", default)), len(shape))
    if shape[axis] == DYNAMIC:
        node.refuse(f"axis = {axis}", "it mixes the rows of a dynamic batch")
    return axis


def _gather(node: Node) -> Sequence[Value]:
    axis, shape = _axis(node), list(node.type_of(0).get_shape())
    value = node.given(1)
    if not isinstance(value, np.ndarray) or value.ndim:
        indices = in_range(node, 1, shape[axis])
        return [node.emit(graph.GatherOp, node.operand(0), indices, axis=axis)]
    offset = int(value)
    if not -shape[axis] <= offset < shape[axis]:
        node.refuse("indices", f"some lie outside an axis of {shape[axis]}")
    one = slice_along(node, node.operand(0), axis, offset % shape[axis], 1)
    return [node.emit(graph.ReshapeOp, one, shape=shape[:axis] + shape[axis + 1 :])]


def slice_along(node: Node, x: SSAValue, axis: int, offset: int, size: int) -> SSAValue:
    """Elements offset..offset + size of one axis."""
    sizes = _shape_of(x)
    offsets = [0] * len(sizes)
    offsets[axis], sizes[axis] = offset, size
    return node.emit(graph.SliceOp, x, offsets=offsets, sizes=sizes, strides=[1] * len(sizes))


def _gather_elements(node: Node) -> Sequence[Value]:
    axis, data = _axis(node), node.operand(0)
    wanted = node.type_of(1).get_shape()
    for d, size in enumerate(wanted):
        # Indices may be fewer than the data outside the axis too.
        if d != axis and size != _shape_of(data)[d]:
            data = slice_along(node, data, d, 0, size)
    indices = in_range(node, 1, _shape_of(data)[axis])
    return [node.emit(graph.GatherElementsOp, data, indices, axis=axis)]


def _linear(node: Node, indices: SSAValue, extents: Sequence[int]) -> SSAValue:
    """Row-major positions of index tuples, which lie along the last dimension of `indices`."""
    last = len(_shape_of(indices)) - 1
    total: SSAValue | None = None
    for d, extent in enumerate(extents):
        part = slice_along(node, indices, last, d, 1)
        part = node.emit(graph.ReshapeOp, part, shape=_shape_of(part)[:-1])
        part = _counted(node, part, extent)
        stride = math.prod(extents[d + 1 :])
        part = node.emit(graph.MulOp, part, scalar(node, stride, part))
        total = part if total is None else node.emit(graph.AddOp, total, part)
    assert total is not None
    return total


def _gather_nd(node: Node) -> Sequence[Value]:
    """A gather along one axis: batch dimensions and indexed ones together."""
    data, indices = _static_shape(node, 0), _static_shape(node, 1)
    batch, depth = int(node.attribute("batch_dims", 0)), indices[-1]
    extents, rest = data[batch : batch + depth], data[batch + depth :]
    known = _known_indices(node)
    if known is None:
        if depth == 1:
            note_indices(node.builder, node.operand(1), extents[0])
        positions = _linear(node, cast(node, node.operand(1), i64), extents)
    else:
        positions = node.tensor(_positions(node, known, extents))
    if batch:
        size = math.prod(extents)
        starts = size * np.arange(math.prod(data[:batch]), dtype=np.int64)
        starts = starts.reshape([*data[:batch], *[1] * (len(indices) - 1 - batch)])
        positions = node.emit(graph.AddOp, positions, node.tensor(starts))
    flat = [math.prod(data[: batch + depth]), *rest]
    x = node.emit(graph.ReshapeOp, node.operand(0), shape=flat)
    return [node.emit(graph.GatherOp, x, positions, axis=0)]


_COMBINE = {
    "add": graph.AddOp,
    "mul": graph.MulOp,
    "max": graph.MaxOp,
    "min": graph.MinOp,
}
_NUMPY = {"add": "add", "mul": "multiply", "max": "maximum", "min": "minimum"}


def _scatter_known(
    node: Node, data: SSAValue, updates: SSAValue, rounds: Sequence[Array], reduction: str
) -> SSAValue:
    """Flat `data` with elements of flat `updates` put where `rounds` say, (numbers of updates, places) of one
    after another.

    Each round gives every element of the data at most one update.
    """
    for round_, where in rounds:
        source = np.zeros(_shape_of(data), np.int64)
        hit = np.zeros(_shape_of(data), np.bool_)
        source[where], hit[where] = round_, True
        new = node.emit(graph.GatherOp, updates, node.tensor(source), axis=0)
        if reduction != "none":
            new = node.emit(_COMBINE[reduction], data, new)
        data = node.emit(graph.WhereOp, node.tensor(hit), new, data)
    return data


def _rounds(where: Array, reduction: str) -> list[Array] | None:
    """Numbers of updates and their places, such that no two of a round meet; of plain ones only the last
    counts. None if there are too many."""
    if reduction == "none":
        last = {int(at): i for i, at in enumerate(where.tolist())}
        found = np.array(list(last.values()), np.int64)
        return [np.stack([found, where[found]])] if last else []
    seen: dict[int, int] = {}
    rounds: list[list[int]] = []
    for i, at in enumerate(where.tolist()):
        number = seen[at] = seen.get(at, -1) + 1
        if number == _MAX_ROUNDS:
            return None
        if number == len(rounds):
            rounds.append([])
        rounds[number].append(i)
    return [np.array([r, where[r]], np.int64) for r in rounds]


def _scatter(
    node: Node, data: SSAValue, updates: SSAValue, where: SSAValue | Array, reduction: str
) -> SSAValue:
    """`data` with slice i of `updates` put at slice `where[i]`, or combined with it, in order of i; `where`
    has one dimension, and is known or computed."""
    if reduction != "none" and reduction not in _COMBINE:
        node.refuse(f"reduction = {reduction!r}", "it is not defined")
    shape = _shape_of(data)
    if isinstance(where, np.ndarray):
        slab = math.prod(shape[1:])
        places = (where[:, None] * slab + np.arange(slab)).ravel()
        rounds = _rounds(places, reduction)
        if rounds is not None:
            flat = [
                node.emit(graph.ReshapeOp, x, shape=[math.prod(_shape_of(x))])
                for x in (data, updates)
            ]
            return _scatter_known(node, flat[0], flat[1], rounds, reduction)
        where = node.tensor(where)
    ops = Ops[SSAValue](node.emit_all, node.tensor)
    if reduction == "none":
        return moving.put(ops, data, where, updates)
    return moving.combine(ops, _NUMPY[reduction], data, where, updates)


def _flat(node: Node, index: int) -> SSAValue:
    shape = _static_shape(node, index)
    return node.emit(graph.ReshapeOp, node.operand(index), shape=[math.prod(shape)])


def _positions(node: Node, indices: Array, extents: Sequence[int]) -> Array:
    """Known index tuples as row-major positions."""
    sizes = np.array(extents, np.int64)
    if (indices < -sizes).any() or (indices >= sizes).any():
        node.refuse("indices", f"some lie outside {list(extents)}")
    wrapped = np.where(indices < 0, indices + sizes, indices)
    strides = [math.prod(extents[d + 1 :]) for d in range(len(extents))]
    return (wrapped * np.array(strides, np.int64)).sum(axis=-1)


def _known_indices(node: Node) -> Array | None:
    """Input 1 as int64, None where it is computed."""
    value = node.given(1)
    computed = isinstance(value, SSAValue) and known_array(value, node.builder.weights) is None
    return None if computed else node.array(1).astype(np.int64)


def _scatter_elements(node: Node) -> Sequence[Value]:
    shape, axis = _static_shape(node, 0), _axis(node)
    indices = _known_indices(node)
    if indices is not None:
        grid = np.moveaxis(np.indices(indices.shape), 0, -1).astype(np.int64)
        grid[..., axis] = indices
        where = _positions(node, grid, shape).ravel()
    else:
        where = _computed_places(node, shape, axis)
    reduction = str(node.attribute("reduction", "none"))
    y = _scatter(node, _flat(node, 0), _flat(node, 2), where, reduction)
    return [node.emit(graph.ReshapeOp, y, shape=shape)]


def _computed_places(node: Node, shape: Sequence[int], axis: int) -> SSAValue:
    """Row-major positions of what computed indices along an axis name."""
    extents = _static_shape(node, 1)
    grid = np.indices(extents).astype(np.int64)
    strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    others = sum(grid[d] * strides[d] for d in range(len(shape)) if d != axis)
    indices = in_range(node, 1, shape[axis])
    along = node.emit(graph.MulOp, indices, scalar(node, strides[axis], indices))
    starts = np.broadcast_to(np.asarray(others, np.int64), extents)
    places = node.emit(graph.AddOp, along, node.tensor(np.ascontiguousarray(starts)))
    return node.emit(graph.ReshapeOp, places, shape=[math.prod(extents)])


def _scatter_nd(node: Node) -> Sequence[Value]:
    shape, indices = _static_shape(node, 0), _known_indices(node)
    wanted = _static_shape(node, 1)
    extents, rest = shape[: wanted[-1]], shape[wanted[-1] :]
    count = math.prod(wanted[:-1])
    if indices is not None:
        where = _positions(node, indices, extents).ravel()
    else:
        if len(extents) == 1:
            note_indices(node.builder, node.operand(1), extents[0])
        positions = _linear(node, cast(node, node.operand(1), i64), extents)
        where = node.emit(graph.ReshapeOp, positions, shape=[count])
    data = node.emit(graph.ReshapeOp, node.operand(0), shape=[math.prod(extents), *rest])
    updates = node.emit(graph.ReshapeOp, node.operand(2), shape=[count, *rest])
    y = _scatter(node, data, updates, where, str(node.attribute("reduction", "none")))
    return [node.emit(graph.ReshapeOp, y, shape=shape)]


def _one_hot(node: Node) -> Sequence[Value]:
    indices, depth = node.operand(0), int(node.array(1).item())
    shape = _shape_of(indices)
    axis = node.axis(int(node.attribute("axis", -1)), len(shape) + 1)
    if DYNAMIC in shape[axis:]:
        node.refuse(f"axis = {axis}", "it moves the dynamic batch")
    values = node.operand(2)
    off, on = (
        node.emit(graph.ReshapeOp, slice_along(node, values, 0, i, 1), shape=[]) for i in (0, 1)
    )
    # Indices may be of any type of number; those out of range are hot nowhere.
    grown = node.emit(graph.ReshapeOp, indices, shape=[*shape[:axis], 1, *shape[axis:]])
    classes = np.arange(depth).reshape([depth] + [1] * (len(shape) - axis))
    index = cast(node, grown, i64)
    hot = node.emit(
        graph.CompareOp, _counted(node, index, depth), node.tensor(classes), predicate="eq"
    )
    return [node.emit(graph.WhereOp, hot, on, off)]


def _compress(node: Node) -> Sequence[Value]:
    picked = np.flatnonzero(node.array(1)).astype(np.int64)
    if not picked.size:
        node.refuse("condition", "nothing is picked: empty tensors are not supported")
    if not node.has("axis"):
        return [node.emit(graph.GatherOp, _flat(node, 0), node.tensor(picked), axis=0)]
    return [node.emit(graph.GatherOp, node.operand(0), node.tensor(picked), axis=_axis(node))]


def _reverse_sequence(node: Node) -> Sequence[Value]:
    shape = _static_shape(node, 0)
    time = int(node.attribute("time_axis", 0))
    batch = int(node.attribute("batch_axis", 1))
    if sorted((time, batch)) != [0, 1]:
        node.refuse(f"time_axis = {time}, batch_axis = {batch}", "they must be 0 and 1")
    lengths = cast(node, node.operand(1), i64)
    row = [shape[0], 1] if batch == 0 else [1, shape[1]]
    lengths = node.emit(graph.ReshapeOp, lengths, shape=row)
    steps = np.arange(shape[time], dtype=np.int64)
    step = node.tensor(steps.reshape((1, -1) if time == 1 else (-1, 1)))
    inside = node.emit(graph.CompareOp, step, lengths, predicate="lt")
    last = node.emit(graph.SubOp, lengths, scalar(node, 1, lengths))
    index = node.emit(graph.WhereOp, inside, node.emit(graph.SubOp, last, step), step)
    index = node.emit(graph.ReshapeOp, index, shape=[*shape[:2], *[1] * (len(shape) - 2)])
    index = node.emit(graph.ExpandOp, index, shape=shape)
    return [node.emit(graph.GatherElementsOp, node.operand(0), index, axis=time)]


HANDLERS: dict[str, Handler] = {
    "Compress": _compress,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "OneHot": _one_hot,
    "ReverseSequence": _reverse_sequence,
    "Scatter": _scatter_elements,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
}
