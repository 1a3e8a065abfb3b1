"""Caches of keys and values that do not grow: TensorScatter writes new steps into them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.types import DYNAMIC, numpy_dtype, tensor_type
from irkit.frontends.onnx.node import Handler, Node, Value


def _along(node: Node, array: np.ndarray, axis: int, rank: int) -> SSAValue:
    """A constant of one dimension, along `axis` of so many."""
    return node.tensor(array.reshape([-1 if d == axis else 1 for d in range(rank)]))


def _tensor_scatter(node: Node) -> Sequence[Value]:
    """Inputs a cache, steps to write, and from which place on for each of the batch.

    Each element of the result is chosen between the cache's own and one of the update, so it can be made
    where the cache is.
    """
    cache, update = node.operand(0), node.operand(1)
    shape, new = (list(tensor_type(v).get_shape()) for v in (cache, update))
    rank = len(shape)
    axis = node.axis(int(node.attribute("axis", -2)), rank)
    mode = node.attribute("mode", "linear")
    if mode not in ("linear", "circular"):
        node.refuse(f"mode = {mode}", "only 'linear' and 'circular' are known")
    if not 0 < axis < rank or DYNAMIC in (shape[axis], new[axis]):
        node.refuse(f"axis = {axis}", "it must be behind the batch and of known extent")
    if new[:axis] + new[axis + 1 :] != shape[:axis] + shape[axis + 1 :] or new[axis] > shape[axis]:
        node.refuse("update", f"{new} does not fit into a cache of {shape}")
    steps = _along(node, np.arange(shape[axis]), axis, rank)
    if node.given(2) is not None:
        first = node.emit(graph.ReshapeOp, node.operand(2), shape=[shape[0], *(1,) * (rank - 1)])
        steps = node.emit(graph.SubOp, steps, first)
    if mode == "circular":
        steps = node.emit(graph.ModOp, steps, node.tensor(np.array(shape[axis])))
    return [written(node, cache, update, steps, axis)]


def written(node: Node, cache: SSAValue, update: SSAValue, steps: SSAValue, axis: int) -> SSAValue:
    """The cache, but of the update where `steps` says which of its own a place is, counted along `axis`."""
    kind = numpy_dtype(tensor_type(steps).element_type)
    zero = node.tensor(np.array(0, kind))
    count = tensor_type(update).get_shape()[axis]
    if count == 1:
        here = node.emit(graph.CompareOp, steps, zero, predicate="eq")
        return node.emit(graph.WhereOp, here, update, cache)
    last = node.tensor(np.array(count - 1, kind))
    inside = node.emit(graph.MaxOp, steps, zero)
    inside = node.emit(graph.MinOp, inside, last)
    here = node.emit(graph.CompareOp, inside, steps, predicate="eq")
    shape = list(tensor_type(cache).get_shape())
    if DYNAMIC in shape:
        node.refuse("past_cache", "several steps are written into a cache of known extents only")
    every = node.emit(graph.ExpandOp, inside, shape=shape)
    picked = node.emit(graph.GatherElementsOp, update, every, axis=axis)
    return node.emit(graph.WhereOp, here, picked, cache)


HANDLERS: dict[str, Handler] = {"TensorScatter": _tensor_scatter}
