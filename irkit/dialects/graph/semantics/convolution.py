"""Meaning of convolution."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from irkit.dialects import graph
from irkit.dialects.graph.semantics.rule import Rules, factors
from irkit.dialects.types import ints
from irkit.errors import InvalidInputError
from irkit.weights import Array


def sliding(
    x: Array, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int],
    before: Sequence[int], after: Sequence[int], fill: float,
) -> Array:  # fmt: skip
    """batch×channels×outputs×kernel: the windows of an N×C×spatial array padded by `fill`.

    Raises InvalidInputError where an extent that is not known before is too small for a window.
    """
    rank = len(kernel)
    x = np.pad(
        x, ((0, 0), (0, 0), *zip(before, after, strict=True)), constant_values=x.dtype.type(fill)
    )
    extent = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
    if any(size < e for size, e in zip(x.shape[2:], extent, strict=True)):
        raise InvalidInputError(
            f"a window of {extent} does not fit the padded input of {list(x.shape[2:])}"
        )
    views = sliding_window_view(x, extent, axis=tuple(range(2, 2 + rank)))
    steps = [slice(None, None, s) for s in (*strides, *dilations)]
    return views[(slice(None), slice(None), *steps)]


def _with_bias(y: Array, bias: Array | None) -> Array:
    return y if bias is None else y + bias.reshape(-1, *(1,) * (y.ndim - 2))


def _conv(op: graph.ConvOp, x: Array, w: Array, b: Array | None = None) -> Array:
    group, pads = op.group.value.data, ints(op.pads)
    x, w = factors(op, x, w)
    outputs, channels, *kernel = w.shape
    rank = len(kernel)
    views = sliding(
        x, kernel, ints(op.strides), ints(op.dilations), pads[:rank], pads[rank:], 0.0
    )  # fmt: skip
    batch, sizes = len(x), views.shape[2 : 2 + rank]
    # Per group: (outputs x taps) @ (taps x positions).
    patches = views.reshape(batch, group, channels, *sizes, *kernel)
    order = [0, 1, 2, *range(3 + rank, 3 + 2 * rank), *range(3, 3 + rank)]
    taps = channels * math.prod(kernel)
    patches = patches.transpose(order).reshape(batch, group, taps, math.prod(sizes))
    # In twice the precision: else a product of equal channels may round some of them otherwise, as the
    # blocks fall that a processor's matrix product is cut into.
    wide = np.float64 if x.dtype.kind == "f" else x.dtype
    product = w.reshape(group, outputs // group, taps).astype(wide) @ patches.astype(wide)
    y: Array = product.astype(x.dtype)
    return _with_bias(y.reshape(batch, outputs, *sizes), b)


def _conv_transpose(op: graph.ConvTransposeOp, x: Array, w: Array, b: Array | None = None) -> Array:
    group, strides, dilations = op.group.value.data, ints(op.strides), ints(op.dilations)
    x, w = factors(op, x, w)
    batch, channels, *sizes = x.shape
    _, outputs, *kernel = w.shape
    rank, pads = len(kernel), ints(op.pads)
    parts = x.reshape(batch, group, channels // group, math.prod(sizes))
    filters = w.reshape(group, channels // group, outputs, *kernel)
    longer = ints(op.output_padding)
    full = [
        (sizes[d] - 1) * strides[d] + dilations[d] * (kernel[d] - 1) + 1 + longer[d]
        for d in range(rank)
    ]
    y = np.zeros((batch, group * outputs, *full), dtype=x.dtype)
    for tap in itertools.product(*map(range, kernel)):
        # Per group: (outputs x channels) @ (channels x positions).
        term = filters[(..., *tap)].swapaxes(1, 2) @ parts
        where = [
            slice(t * d, t * d + (n - 1) * s + 1, s)
            for t, d, n, s in zip(tap, dilations, sizes, strides, strict=True)
        ]
        y[(slice(None), slice(None), *where)] += term.reshape(batch, group * outputs, *sizes)
    inside = [slice(pads[d], full[d] - pads[rank + d]) for d in range(rank)]
    return _with_bias(y[(slice(None), slice(None), *inside)], b)


RULES: Rules = {graph.ConvOp: _conv, graph.ConvTransposeOp: _conv_transpose}
