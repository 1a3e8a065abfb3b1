"""Ops on rows as tensor expressions: what is normalised, found or ordered along the last dimension, and rows
that are added where indices say."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from xdsl.ir import Operation, SSAValue

from irkit.dialects import te
from irkit.dialects.types import numpy_dtype, tensor_type

if TYPE_CHECKING:
    from irkit.lower.tensor_to_expression import Printed


def _rows(value: SSAValue) -> tuple[list[str], list[str], str]:
    """Indices of a value, those of its rows, and all ranges."""
    shape = tensor_type(value).get_shape()
    every = [f"i{d}" for d in range(len(shape))]
    return every, every[:-1], ", ".join(f"{i} in 0:{s}" for i, s in zip(every, shape, strict=True))


def _softmax(p: Printed, op: te.SoftmaxOp) -> None:
    every, rows, ranges = _rows(op.x)
    at, row = f"({', '.join(every)})", f"({', '.join(rows)})"
    x = p.read(op.x, every)
    largest = p.helper("Largest", rows, x, "max=!", ranges)
    powers = p.helper("Powers", every, f"exp({x} - {largest}{row})", "=", ranges)
    total = p.helper("Sum", rows, f"{powers}{at}", "+=!", ranges)
    p.statement(op.y, f"{powers}{at} / {total}{row}")


def _layer_norm(p: Printed, op: te.LayerNormOp) -> None:
    every, rows, ranges = _rows(op.x)
    at, row, x = f"({', '.join(every)})", f"({', '.join(rows)})", p.read(op.x, every)
    n = float(tensor_type(op.x).get_shape()[-1])
    if op.centred.value.data:
        total = p.helper("Sum", rows, x, "+=!", ranges)
        x = f"{p.helper('Centred', every, f'{x} - {total}{row} / {n}', '=', ranges)}{at}"
    squares = p.helper("Squares", rows, f"{x} * {x}", "+=!", ranges)
    p.statement(op.y, f"{x} / sqrt({squares}{row} / {n} + {op.epsilon.value.data!r})")


def _argmax(p: Printed, op: te.ArgmaxOp) -> None:
    every, rows, ranges = _rows(op.x)
    x, last = p.read(op.x, every), every[-1]
    if numpy_dtype(tensor_type(op.x).element_type).kind == "b":
        x = f"int64({x})"
    largest = p.helper("Largest", rows, x, "max=!", ranges)
    found = f"{x} == {largest}({', '.join(rows)}) || {x} != {x}"
    size = tensor_type(op.x).get_shape()[-1]
    p.statement(op.y, f"{found} ? {last} : {size}", rows, f"{last} in 0:{size}", "min=!")


def _top_k(p: Printed, op: te.TopKOp) -> None:
    (every, rows, ranges), size = _rows(op.x), tensor_type(op.x).get_shape()[-1]
    last, other = every[-1], f"i{len(every)}"
    x, y = p.read(op.x, every), p.read(op.x, [*rows, other])
    more, less = (y, x) if op.largest.value.data else (x, y)
    sooner = f"{more} > {less} || {more} != {more} && {less} == {less}"
    alike = f"({y} == {x} || {y} != {y} && {x} != {x}) && {other} < {last}"
    ranges = f"{ranges}, {other} in 0:{size}"
    place = p.helper("Place", every, f"({sooner} || {alike}) ? 1 : 0", "+=!", ranges)
    here = f"{place}({', '.join([*rows, other])}) == {last} ? {other} : 0"
    p.statement(op.indices, here, every, f"{other} in 0:{size}", "+=!")


def _scatter_add(p: Printed, op: te.ScatterAddOp) -> None:
    shape, counted = (tensor_type(v).get_shape() for v in (op.x, op.indices))
    own = [f"i{d}" for d in range(len(shape))]
    over = [f"i{len(shape) + d}" for d in range(len(counted))]
    place, last = p.read(op.indices, over), shape[0] - 1
    here = f"{place} == i0 || i0 == 0 && {place} < 0 || i0 == {last} && {place} > {last}"
    term = f"({here}) ? {p.read(op.updates, [*over, *own[1:]])} : 0"
    ranges = ", ".join(f"{i} in 0:{s}" for i, s in zip(over, counted, strict=True))
    p.statement(op.y, p.read(op.x, own), own)
    p.statement(op.y, term, own, ranges, "+=")


RULES: dict[type[Operation], Callable[..., None]] = {
    te.ArgmaxOp: _argmax,
    te.LayerNormOp: _layer_norm,
    te.ScatterAddOp: _scatter_add,
    te.SoftmaxOp: _softmax,
    te.TopKOp: _top_k,
}
"""What prints each of them."""
