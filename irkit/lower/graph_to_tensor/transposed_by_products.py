"""Transposed convolution as a matrix product and a sum: elements times all filters, added where they meet.

Every tap of every filter is a row of the product, every place of the input a column. Tap k of input element i
is part of element i * s + k of the whole, uncropped row. So element q * s + r of that sums taps r + s * t of
input elements q - t: what lies outside, of taps or of the input, is a zero behind the product, which no
weight is multiplied by. Libraries call it a GEMM and `col2im`; no element is multiplied more often than there
are weights for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr

from irkit.dialects import graph
from irkit.dialects.types import ints, tensor_type
from irkit.lower.graph_to_tensor.builder import TensorBuilder
from irkit.lower.graph_to_tensor.convolution import bias_of, in_groups
from irkit.lower.graph_to_tensor.nests import Index
from irkit.lower.graph_to_tensor.reduction import add
from irkit.lower.graph_to_tensor.scalars import Scalars


@dataclass(frozen=True)
class _Row:
    """A spatial dimension: `size` elements and `kernel` taps, whose results stand `stride` apart; `outputs`
    elements of them are kept, behind the first `pad`."""

    size: int
    kernel: int
    stride: int
    pad: int
    outputs: int

    @property
    def taps(self) -> int:
        """How many input elements an output element sums at most."""
        return -(-self.kernel // self.stride)

    @property
    def turned(self) -> bool:
        """Whether what is kept begins with the second of two taps, r = 0 and 1 then being its elements.

        Of more than two, which input element the kept r reads is no sum of multiples of loops.
        """
        return self.stride == 2 and self.pad % 2 == 1

    @property
    def first(self) -> int:
        """The first q of which something is kept."""
        return self.pad // self.stride

    @property
    def cut(self) -> int:
        """What of that is not."""
        return 0 if self.turned else self.pad % self.stride

    @property
    def count(self) -> int:
        """The values of q from there on."""
        return -(-(self.cut + self.outputs) // self.stride)

    @property
    def before(self) -> int:
        """Zeros in front of the input elements."""
        return max(self.taps - 1 - self.first, 0)

    @property
    def after(self) -> int:
        """Zeros behind them."""
        return max(self.first + self.count + self.turned - self.size, 0)

    def place(self, q: int, r: int, t: int) -> AffineExpr:
        """Which of the padded input elements that of loops `q`, `r` and `t` is."""
        place = AffineDimExpr(q) - AffineDimExpr(t) + (self.first + self.before)
        return place + AffineDimExpr(r) if self.turned else place

    def tap(self, r: int, t: int) -> AffineExpr:
        """Its tap."""
        taps = AffineDimExpr(t) * self.stride
        return taps - AffineDimExpr(r) + 1 if self.turned else taps + AffineDimExpr(r)


def _rows(op: graph.ConvTransposeOp) -> list[_Row]:
    sizes, kernel = tensor_type(op.x).get_shape()[2:], tensor_type(op.w).get_shape()[2:]
    strides, pads, outputs = ints(op.strides), ints(op.pads), tensor_type(op.y).get_shape()[2:]
    return [
        _Row(*each) for each in zip(sizes, kernel, strides, pads, outputs, strict=False)
    ]  # fmt: skip


def by_products(b: TensorBuilder, op: graph.ConvTransposeOp) -> SSAValue:
    """`op`, of dilations 1."""
    rows, group = _rows(op), op.group.value.data
    batch, outputs, *sizes = tensor_type(op.y).get_shape()
    lead = [group, outputs // group] if group > 1 else [outputs]
    y = _product(b, op)
    y = b.reshape(y, (batch, *lead, *(r.kernel for r in rows), *(r.size for r in rows)))
    still = [0] * (1 + len(lead))
    y = b.pad(
        y,
        [*still, *[0] * len(rows), *(r.before for r in rows)],
        [*still, *(r.taps * r.stride - r.kernel for r in rows), *(r.after for r in rows)],
        0,
    )
    y = _summed(b, op, y, rows, lead)
    y = b.reshape(y, (batch, outputs, *(r.count * r.stride for r in rows)))
    return b.cut(y, [0, 0, *(r.cut for r in rows)], [batch, outputs, *sizes])


def _product(b: TensorBuilder, op: graph.ConvTransposeOp) -> SSAValue:
    """n×(group×)filters and their taps×image: a convolution whose window is one element."""
    group, t = op.group.value.data, tensor_type(op.y)
    batch, _, *image = tensor_type(op.x).get_shape()
    rank, terms = len(image), math.prod(tensor_type(op.w).get_shape()[1:])
    x = in_groups(b, op, op.x)
    # Loops: n, (g,) filter and tap, place..., ic
    of_group = [1] if group > 1 else []
    row = 1 + len(of_group)
    places = list(range(row + 1, row + 1 + rank))
    ic = places[-1] + 1
    init = b.fill(0, (batch, *[group] * len(of_group), terms, *image), t.element_type, [x])
    return b.contract(
        (x, [0, *of_group, ic, *places]),
        _filters(b, op, of_group, row, ic),
        (init, [0, *of_group, row, *places]),
        1,
    )


def _filters(
    b: TensorBuilder, op: graph.ConvTransposeOp, of_group: list[int], row: int, ic: int
) -> tuple[SSAValue, Index]:
    """Filters as a matrix for each group, with the loops that it is read at: a row for every tap of a filter
    where they are constant, else as they lie, a row for every channel."""
    group = op.group.value.data
    channels, *each = tensor_type(op.w).get_shape()
    lies = [*[group] * len(of_group), channels // group, math.prod(each)]

    def pack(w: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(w.reshape(lies).swapaxes(-1, -2))

    known = b.packed(op.w, ("by tap", group), pack)
    if known is not None:
        return known, [*of_group, row, ic]
    return b.reshape(op.w, lies), [*of_group, ic, row]


def _summed(
    b: TensorBuilder, op: graph.ConvTransposeOp, y: SSAValue, rows: Sequence[_Row],
    lead: Sequence[int],
) -> SSAValue:  # fmt: skip
    """n×(group×)channels×(q×r of each dimension), from the bias on."""
    t, rank = tensor_type(op.y), len(rows)
    channels = list(range(1, 1 + len(lead)))
    first = 1 + len(lead)
    q, r = list(range(first, first + 2 * rank, 2)), list(range(first + 1, first + 2 * rank, 2))
    taps = list(range(first + 2 * rank, first + 3 * rank))
    shape = [t.get_shape()[0], *lead, *(n for row in rows for n in (row.count, row.stride))]
    bias = op.b if op.b is None or len(lead) == 1 else b.reshape(op.b, lead)
    init = bias_of(b, t, shape, bias, channels, y)
    # Read by no one: it says how many taps there are.
    extent = b.empty([row.taps for row in rows], t.element_type, [])
    index: list[int | AffineExpr] = [0, *channels]
    index += [row.tap(*loops) for row, *loops in zip(rows, r, taps, strict=True)]
    index += [row.place(*loops) for row, *loops in zip(rows, q, r, taps, strict=True)]
    combine = add(t.element_type)

    def body(s: Scalars, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
        value, _, acc = args
        return [s(combine(acc, value))]

    out: Index = list(range(first + 2 * rank))
    return b.generic([(y, index), (extent, taps)], [(init, out)], len(out), rank, body)[0]
