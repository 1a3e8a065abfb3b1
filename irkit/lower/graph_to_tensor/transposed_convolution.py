"""Transposed convolution: by phases of the stride, each a plain convolution of the input, without zeros.

Output j of the whole, uncropped row is the sum over taps k of x[(j - k) / s] * w[k], for the k that leave no
remainder. So all outputs of one phase, j modulo s, use every s-th tap, and read the input side by side. Where
all have as many taps, the phases are one more loop of the contraction; else each is a contraction. After
V. Dumoulin and F. Visin, A guide to convolution arithmetic for deep learning, 2016.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from operator import lt

import numpy as np
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.types import DYNAMIC, ints, tensor_type
from irkit.lower.graph_to_tensor.builder import TensorBuilder
from irkit.lower.graph_to_tensor.convolution import bias_of, in_groups, padded, slide
from irkit.lower.graph_to_tensor.elementwise import Rule
from irkit.lower.graph_to_tensor.nests import Index
from irkit.lower.graph_to_tensor.transposed_by_products import by_products


@dataclass(frozen=True)
class _Phase:
    """A spatial dimension. Phase r of the output, elements r, r + stride, ..., of which there are `outputs`:
    element q is the sum over t < `taps` of x[q + shift * r + t + origin] * w[(r + pad) % stride +
    stride * (taps - 1 - t)], x being zero outside of its extent."""

    stride: int
    pad: int
    taps: int
    shift: int
    origin: int
    outputs: int


def _phases(op: graph.ConvTransposeOp) -> list[_Phase] | None:
    """One for each dimension; None unless each phase has as many taps and follows the one before evenly.

    A tap that some phases lack would have to be a weight of zero, which is not nothing: times infinity it
    is NaN.
    """
    kernel, sizes = tensor_type(op.w).get_shape()[2:], tensor_type(op.y).get_shape()[2:]
    rank, found = len(kernel), list[_Phase]()
    strides, pads, dilations = ints(op.strides), ints(op.pads), ints(op.dilations)
    if math.prod(strides) == 1 or DYNAMIC in sizes:
        return None
    for d in range(rank):
        stride, pad = strides[d], pads[d]
        even = pad % stride == 0 or stride == 2
        if kernel[d] % stride or dilations[d] != 1 or not even:
            return None
        taps, shift = kernel[d] // stride, int(pad % stride != 0)
        origin = pad // stride - (taps - 1)
        found.append(_Phase(stride, pad, taps, shift, origin, -(-sizes[d] // stride)))
    return found


def _by_phase(
    b: TensorBuilder, op: graph.ConvTransposeOp, phases: Sequence[_Phase]
) -> SSAValue | None:  # fmt: skip
    """Filters as (group×)phases×outputs×inputs×taps; None where they are no constant."""
    group, rank = op.group.value.data, len(phases)
    channels, outputs, *_ = tensor_type(op.w).get_shape()

    def pack(w: np.ndarray) -> np.ndarray:
        w = w.reshape(group, channels // group, outputs, *w.shape[2:])
        for d, phase in enumerate(phases):
            taps = np.arange(phase.taps)[::-1] * phase.stride
            first = (np.arange(phase.stride) + phase.pad) % phase.stride
            # Dimension 3 + d becomes two: the phase at the end of those before, and the taps.
            w = np.take(w, first[:, None] + taps, axis=3 + 2 * d)
        order = [0, *(3 + 2 * d for d in range(rank)), 2, 1, *(4 + 2 * d for d in range(rank))]
        w = np.ascontiguousarray(w.transpose(order))
        return w if group > 1 else w[0]

    return b.packed(op.w, ("by phase", group, tuple(phases)), pack)


def _interleaved(
    b: TensorBuilder, op: graph.ConvTransposeOp, phases: Sequence[_Phase], w: SSAValue
) -> SSAValue:  # fmt: skip
    """The phases as one contraction, then side by side."""
    t, group, rank = tensor_type(op.y), op.group.value.data, len(phases)
    batch, outputs, *_ = t.get_shape()
    before = [-p.origin for p in phases]
    extents = tensor_type(op.x).get_shape()[2:]
    after = [
        p.outputs - 1 + p.shift * (p.stride - 1) + p.taps - size - low
        for p, size, low in zip(phases, extents, before, strict=True)
    ]
    x = _cropped(b, op.x, before, after)
    x = in_groups(b, op, x)
    x = padded(b, op, x, [max(n, 0) for n in before], [max(n, 0) for n in after], 0)
    # Loops: n, (g,) phase..., oc, out..., ic, tap...
    lead = [group, outputs // group] if group > 1 else [outputs]
    of_group = [1] if group > 1 else []
    turns = list(range(1 + len(of_group), 1 + len(of_group) + rank))
    oc = turns[-1] + 1
    out, ic = list(range(oc + 1, oc + 1 + rank)), oc + 1 + rank
    taps = list(range(ic + 1, ic + 1 + rank))
    slides = [_read(p, *loops) for p, *loops in zip(phases, out, turns, taps, strict=True)]
    x_index: Index = [0, *of_group, ic, *slides]
    shape = [batch, *lead[:-1], *(p.stride for p in phases), lead[-1], *(p.outputs for p in phases)]
    bias = op.b if op.b is None or group == 1 else b.reshape(op.b, lead)
    init = bias_of(b, t, shape, bias, [*of_group, oc], x)
    parallel = [0, *of_group, *turns, oc, *out]
    y = b.contract(
        (x, x_index), (w, [*of_group, *turns, oc, ic, *taps]), (init, parallel), 1 + rank
    )
    return _side_by_side(b, op, y, [p.stride for p in phases], [p.outputs for p in phases])


def _side_by_side(
    b: TensorBuilder, op: graph.ConvTransposeOp, y: SSAValue, strides: Sequence[int],
    counts: Sequence[int],
) -> SSAValue:  # fmt: skip
    """The result from its phases, batch×(group×)phases×channels×image, of `counts` outputs each."""
    group, rank = op.group.value.data, len(strides)
    batch, outputs, *sizes = tensor_type(op.y).get_shape()
    lead = [group, outputs // group] if group > 1 else [outputs]
    channels = len(lead)
    # Dimensions of the result: batch, (group,) channel, and for each spatial one outputs and phases.
    images = [1 + channels + 2 * d for d in range(rank)]
    index: Index = [*range(channels), *(d + 1 for d in images), channels, *images]
    whole = [n for pair in zip(counts, strides, strict=True) for n in pair]
    y = b.broadcast(y, index, (batch, *lead, *whole), [y])
    full = [n * s for n, s in zip(counts, strides, strict=True)]
    y = b.reshape(y, (batch, outputs, *full))
    return b.cut(y, [0] * (2 + rank), [batch, outputs, *sizes])


@dataclass(frozen=True)
class _Row:
    """One phase of a spatial dimension: element q is the sum over t of x[q + t + origin] * w[taps[t]]."""

    taps: tuple[int, ...]
    origin: int


_MOST_PHASES = 8
"""More contractions than these take longer to compile than they are worth."""


def _uneven_rows(op: graph.ConvTransposeOp) -> list[list[_Row]] | None:
    """The phases of each dimension; None where one would have no taps, or there are too many."""
    kernel, sizes = tensor_type(op.w).get_shape()[2:], tensor_type(op.y).get_shape()[2:]
    strides, pads = ints(op.strides), ints(op.pads)
    apart = any(d != 1 for d in ints(op.dilations)) or any(map(lt, kernel, strides))
    if not 1 < math.prod(strides) <= _MOST_PHASES or apart or DYNAMIC in sizes:
        return None
    found: list[list[_Row]] = []
    for k, stride, pad in zip(kernel, strides, pads, strict=False):
        rows: list[_Row] = []
        for phase in range(stride):
            first = (phase + pad) % stride
            taps = tuple(reversed(range(first, k, stride)))
            rows.append(_Row(taps, (phase + pad) // stride - (len(taps) - 1)))
        found.append(rows)
    return found


def _by_rows(
    b: TensorBuilder, op: graph.ConvTransposeOp, dims: Sequence[Sequence[_Row]]
) -> SSAValue | None:  # fmt: skip
    """A contraction for each phase, then side by side; None where filters are no constant."""
    group, strides = op.group.value.data, [len(rows) for rows in dims]
    batch, outputs, *sizes = tensor_type(op.y).get_shape()
    counts = [-(-n // s) for n, s in zip(sizes, strides, strict=True)]
    lead = [group, outputs // group] if group > 1 else [outputs]
    parts: list[SSAValue] = []
    for rows in product(*dims):
        w = b.packed(op.w, ("of a phase", group, rows), partial(_filters, group, rows))
        if w is None:
            return None
        before = [-r.origin for r in rows]
        extents = tensor_type(op.x).get_shape()[2:]
        after = [
            n - 1 + len(r.taps) - 1 + r.origin - (size - 1)
            for n, r, size in zip(counts, rows, extents, strict=True)
        ]
        x = in_groups(b, op, _cropped(b, op.x, before, after))
        x = padded(b, op, x, [max(n, 0) for n in before], [max(n, 0) for n in after], 0)
        y = slide(b, op, x, w, [1] * len(rows), counts)
        parts.append(b.reshape(y, (batch, *lead[:-1], 1, lead[-1], *counts)))
    axis = len(lead)
    y = b.concatenate(parts, axis)
    y = b.reshape(y, (batch, *lead[:-1], *strides, lead[-1], *counts))
    return _side_by_side(b, op, y, strides, counts)


def _filters(group: int, rows: Sequence[_Row], w: np.ndarray) -> np.ndarray:
    """C×(O/group)×kernel filters as O×(C/group)×taps of one phase."""
    channels, outputs, *kernel = w.shape
    w = w.reshape(group, channels // group, outputs, *kernel).swapaxes(1, 2)
    w = w.reshape(group * outputs, channels // group, *kernel)
    return np.ascontiguousarray(w[np.ix_(*map(range, w.shape[:2]), *(r.taps for r in rows))])


def _read(phase: _Phase, out: int, turn: int, tap: int) -> AffineExpr:
    """Where tap `tap` of output `out` of phase `turn`, all loops, reads the padded input."""
    place = AffineDimExpr(out) + AffineDimExpr(tap)
    return place + AffineDimExpr(turn) if phase.shift else place


def _conv_transpose(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    """In the form that it asks for; else by phases of the stride, or, where filters are computed or some
    phase has no taps, with zeros between the elements."""
    assert isinstance(op, graph.ConvTransposeOp)
    if op.form is not None:
        return [by_products(b, op)]
    phases = _phases(op)
    if phases is not None and (w := _by_phase(b, op, phases)) is not None:
        return [_interleaved(b, op, phases, w)]
    rows = None if phases is not None else _uneven_rows(op)
    if rows is not None and (y := _by_rows(b, op, rows)) is not None:
        return [y]
    return [_among_zeros(b, op)]


def _among_zeros(b: TensorBuilder, op: graph.ConvTransposeOp) -> SSAValue:
    """A convolution of stride 1 with the filters mirrored, over an input whose elements stand `stride`
    apart with zeros between them."""
    strides, pads, dilations = ints(op.strides), ints(op.pads), ints(op.dilations)
    kernel, sizes = tensor_type(op.w).get_shape()[2:], tensor_type(op.y).get_shape()[2:]
    rank = len(kernel)
    x = _spread(b, op.x, strides)
    before: list[int] = []
    after: list[int] = []
    for d, size in enumerate(tensor_type(x).get_shape()[2:]):
        reach = dilations[d] * (kernel[d] - 1)
        before.append(reach - pads[d])
        after.append(sizes[d] + reach - size - before[d])
    x = _cropped(b, x, before, after)
    x = padded(b, op, x, [max(n, 0) for n in before], [max(n, 0) for n in after], 0)
    return slide(b, op, in_groups(b, op, x), _mirrored(b, op), [1] * rank)


def _spread(b: TensorBuilder, x: SSAValue, strides: Sequence[int]) -> SSAValue:
    """`x` with `stride - 1` zeros behind each element of each spatial dimension."""
    batch, channels, *sizes = tensor_type(x).get_shape()
    if all(s == 1 for s in strides):
        return x
    split = [n for size in sizes for n in (size, 1)]
    high = [n for s in strides for n in (0, s - 1)]
    x = b.reshape(x, (batch, channels, *split))
    x = b.pad(x, [0] * (2 + len(split)), [0, 0, *high], 0)
    return b.reshape(x, (batch, channels, *(n * s for n, s in zip(sizes, strides, strict=True))))


def _cropped(
    b: TensorBuilder, x: SSAValue, before: Sequence[int], after: Sequence[int]
) -> SSAValue:
    """`x` without the elements that a negative padding takes away."""
    shape = tensor_type(x).get_shape()
    cut = [max(-n, 0) for n in before]
    sizes = [
        s - c - max(-n, 0) for s, c, n in zip(shape[2:], cut, after, strict=True)
    ]  # fmt: skip
    return b.cut(x, [0, 0, *cut], [*shape[:2], *sizes])


def _mirrored(b: TensorBuilder, op: graph.ConvTransposeOp) -> SSAValue:
    """C×(O/group)×kernel filters as O×(C/group)×kernel, last tap first."""
    group = op.group.value.data
    channels, outputs, *kernel = tensor_type(op.w).get_shape()
    rank = len(kernel)

    def pack(w: np.ndarray) -> np.ndarray:
        w = np.flip(w, tuple(range(2, 2 + rank)))
        w = w.reshape(group, channels // group, outputs, *kernel).swapaxes(1, 2)
        return w.reshape(group * outputs, channels // group, *kernel)

    known = b.packed(op.w, ("mirrored", group), pack)
    if known is not None:
        return known
    w = b.reshape(op.w, (group, channels // group, outputs, *kernel))
    last: list[AffineExpr] = [AffineDimExpr(3 + d) * -1 + (k - 1) for d, k in enumerate(kernel)]
    shape = (group, outputs, channels // group, *kernel)
    w = b.broadcast(w, [0, 2, 1, *last], shape, [w])
    return b.reshape(w, (group * outputs, channels // group, *kernel))


RULES: dict[type[GraphOp], Rule] = {graph.ConvTransposeOp: _conv_transpose}
