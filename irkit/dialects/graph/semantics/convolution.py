"""Meaning of convolution and pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from irkit.dialects import graph
from irkit.dialects.graph.semantics.reduction import fold
from irkit.dialects.graph.semantics.rule import Rules
from irkit.dialects.types import ints
from irkit.weights import Array


def _windows(
    x: Array, kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int], fill: float,
    dilations: Sequence[int] = (1, 1),
) -> Array:  # fmt: skip
    """batch x channels x out_height x out_width x kernel_height x kernel_width, padded by `fill`."""
    top, left, bottom, right = pads
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)
    extent = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
    views = sliding_window_view(x, extent, axis=(2, 3))
    return views[:, :, :: strides[0], :: strides[1], :: dilations[0], :: dilations[1]]


def _conv(op: graph.ConvOp, x: Array, w: Array, b: Array | None = None) -> Array:
    group = op.group.value.data
    outputs, channels, *kernel = w.shape
    views = _windows(x, kernel, ints(op.strides), ints(op.pads), 0.0, ints(op.dilations))
    batch, _, height, width = views.shape[:4]
    # Per group: (outputs x taps) @ (taps x positions).
    taps = channels * kernel[0] * kernel[1]
    patches = views.reshape(batch, group, channels, height, width, *kernel)
    patches = patches.transpose(0, 1, 2, 5, 6, 3, 4).reshape(batch, group, taps, height * width)
    y = w.reshape(group, outputs // group, taps) @ patches
    y = y.reshape(batch, outputs, height, width)
    return y if b is None else y + b.reshape(-1, 1, 1)


def _pool_windows(op: graph.AveragePoolOp | graph.MaxPoolOp, x: Array, fill: float) -> Array:
    return _windows(x, ints(op.kernel_shape), ints(op.strides), ints(op.pads), fill)


def _max_pool(op: graph.MaxPoolOp, x: Array) -> Array:
    return _pool_windows(op, x, -np.inf).max(axis=(4, 5))


def _average_pool(op: graph.AveragePoolOp, x: Array) -> Array:
    total = fold(np.add, _pool_windows(op, x, 0.0), (4, 5))
    if op.count_include_pad.value.data:
        return total / x.dtype.type(math.prod(ints(op.kernel_shape)))
    inside = np.ones((1, 1, *x.shape[2:]), dtype=x.dtype)
    return total / _pool_windows(op, inside, 0.0).sum(axis=(4, 5), dtype=x.dtype)


def _global_average_pool(op: graph.GlobalAveragePoolOp, x: Array) -> Array:
    mean = fold(np.add, x, (2, 3)) / x.dtype.type(math.prod(x.shape[2:]))
    return mean[:, :, None, None]


RULES: Rules = {
    graph.AveragePoolOp: _average_pool,
    graph.ConvOp: _conv,
    graph.GlobalAveragePoolOp: _global_average_pool,
    graph.MaxPoolOp: _max_pool,
}
