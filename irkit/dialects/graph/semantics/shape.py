"""Meaning of ops that move elements."""

from __future__ import annotations

import math

import numpy as np

from irkit.dialects import graph
from irkit.dialects.gather_base import gathered, gathered_elements
from irkit.dialects.graph.semantics.rule import Rules
from irkit.dialects.scatter_base import scatter_added
from irkit.dialects.types import DYNAMIC, ints, tensor_type
from irkit.weights import Array


def _concat(op: graph.ConcatOp, *inputs: Array) -> Array:
    return np.concatenate(inputs, axis=op.axis.value.data)


def _expand(op: graph.ExpandOp, x: Array, like: Array | None = None) -> Array:
    """A dynamic dimension is that of the operand, or else as long as that of `like`."""
    want = ints(op.shape)
    have = [1] * (len(want) - x.ndim) + list(x.shape)
    if like is not None and op.like is not None:
        rows = like.shape[tensor_type(op.like).get_shape().index(DYNAMIC)]
        have = [rows if s == DYNAMIC else h for h, s in zip(have, want, strict=True)]
    return np.broadcast_to(x, [h if s == DYNAMIC else s for h, s in zip(have, want, strict=True)])


def _pad(op: graph.PadOp, x: Array) -> Array:
    if not x.ndim:
        return x
    widths = list(zip(ints(op.low), ints(op.high), strict=True))
    return np.pad(x, widths, constant_values=x.dtype.type(op.value.value.data))


def _reshape(op: graph.ReshapeOp, x: Array) -> Array:
    want = ints(op.shape)
    if DYNAMIC not in want:
        return x.reshape(want)
    known = math.prod(s for s in want if s != DYNAMIC)
    # Of no elements nothing says how large it is: it stays as it was.
    left = x.size // known if known else x.shape[tensor_type(op.x).get_shape().index(DYNAMIC)]
    return x.reshape([left if s == DYNAMIC else s for s in want])


def _slice(op: graph.SliceOp, x: Array) -> Array:
    for axis, (start, size, step) in enumerate(
        zip(ints(op.offsets), ints(op.sizes), ints(op.strides), strict=True)
    ):
        if size != DYNAMIC:
            x = np.take(x, start + step * np.arange(size), axis=axis)
    return x


def _transpose(op: graph.TransposeOp, x: Array) -> Array:
    return x.transpose(ints(op.permutation))


RULES: Rules = {
    graph.ConcatOp: _concat,
    graph.ExpandOp: _expand,
    graph.GatherElementsOp: gathered_elements,
    graph.GatherOp: gathered,
    graph.PadOp: _pad,
    graph.ReshapeOp: _reshape,
    graph.ScatterAddOp: scatter_added,
    graph.SliceOp: _slice,
    graph.TransposeOp: _transpose,
}
