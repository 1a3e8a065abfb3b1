"""Attention and its gradients as tensor expressions: products, a softmax of their rows, and sums of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from xdsl.ir import Operation, SSAValue

from irkit.dialects import te
from irkit.dialects.precision import precision_of
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.errors import UnsupportedError

if TYPE_CHECKING:
    from irkit.lower.tensor_to_expression import Printed

AttentionOp = te.AttentionOp | te.AttentionQueryGradientOp | te.AttentionKeyGradientOp
INFINITE: Final = "-1.0 / 0.0"


@dataclass(frozen=True)
class Score:
    """What is read of queries and keys: a loop for each leading dimension, one over rows, one over keys."""

    p: Printed
    op: AttentionOp
    lead: tuple[int, ...]

    @staticmethod
    def of(p: Printed, op: AttentionOp) -> Score:
        """Of an op, whose leading dimensions are those that all of its operands have together."""
        shapes = [tensor_type(v).get_shape()[:-2] for v in (op.query, op.key, op.value)]
        return Score(p, op, tuple(max(sizes) for sizes in zip(*shapes, strict=True)))

    @property
    def leading(self) -> list[str]:
        """Loops over leading dimensions."""
        return [f"i{d}" for d in range(len(self.lead))]

    @property
    def row(self) -> str:
        """The loop over queries."""
        return f"i{len(self.lead)}"

    @property
    def key(self) -> str:
        """The loop over keys."""
        return f"i{len(self.lead) + 1}"

    @property
    def column(self) -> str:
        """The loop over columns of a query, a key or a value."""
        return f"i{len(self.lead) + 2}"

    def read(self, value: SSAValue, *last: str) -> str:
        """An element of an operand, whose dimensions may be 1 where others are not."""
        shape = tensor_type(value).get_shape()
        every = [*self.leading, *last][-len(shape) :]
        return self.p.read(value, ["0" if s == 1 else i for i, s in zip(every, shape, strict=True)])

    def ranges(self, *last: tuple[str, int]) -> str:
        """Of leading dimensions, and of other loops."""
        own = [*zip(self.leading, self.lead, strict=True), *last]
        return ", ".join(f"{i} in 0:{size}" for i, size in own)

    def made(
        self, name: str, value: str, sign: str, over: dict[str, int], summed: dict[str, int]
    ) -> str:
        """A tensor of leading dimensions and `over`; how it is read at these loops."""
        indices = [*self.leading, *over]
        ranges = self.ranges(*over.items(), *summed.items())
        return f"{self.p.helper(name, indices, value, sign, ranges)}({', '.join(indices)})"

    @property
    def sizes(self) -> dict[str, int]:
        """Loops over queries and keys."""
        rows, keys = (tensor_type(v).get_shape()[-2] for v in (self.op.query, self.op.key))
        return {self.row: rows, self.key: keys}

    @property
    def of_rows(self) -> dict[str, int]:
        """The loop over queries."""
        return {self.row: self.sizes[self.row]}

    @property
    def of_keys(self) -> dict[str, int]:
        """The loop over keys."""
        return {self.key: self.sizes[self.key]}

    def columns(self, value: SSAValue) -> dict[str, int]:
        """The loop over the columns of an operand."""
        return {self.column: tensor_type(value).get_shape()[-1]}

    @property
    def factor(self) -> str:
        """What products are scaled by."""
        return f"{numpy_dtype(tensor_type(self.op.query).element_type)}({self.op.factor!r})"

    def scores(self) -> str:
        """Products of queries and keys, as a mask lets them."""
        op = self.op
        query = self.read(op.query, self.row, self.column)
        term = f"{query} * {self.factor} * {self.read(op.key, self.key, self.column)}"
        found = self.made("Scores", term, "+=!", self.sizes, self.columns(op.query))
        shown = found
        if op.mask is not None:
            mask = self.read(op.mask, self.row, self.key)
            truth = numpy_dtype(tensor_type(op.mask).element_type).kind == "b"
            shown = f"{mask} ? {found} : {INFINITE}" if truth else f"{found} + {mask}"
        if op.diagonal is not None:
            seen = f"{self.key} <= {self.row} + {op.diagonal}"
            shown = f"{seen} ? ({shown}) : {INFINITE}"
        return found if shown == found else self.made("Seen", shown, "=", self.sizes, {})


def _attention(p: Printed, op: te.AttentionOp) -> None:
    if op.count is not None or not precision_of(op).strict:
        raise _refused(op, "keys in parts, or factors that are rounded")
    s = Score.of(p, op)
    scores = s.scores()
    largest = s.made("Largest", scores, "max=!", s.of_rows, s.of_keys)
    powers = s.made("Powers", f"exp({scores} - {largest})", "=", s.sizes, {})
    total = s.made("Sum", powers, "+=!", s.of_rows, s.of_keys)
    over = {**s.of_rows, **s.columns(op.value)}
    term = f"{powers} * {s.read(op.value, s.key, s.column)}"
    y = s.made("Weighted", term, "+=!", over, s.of_keys)
    loops = [*s.leading, *over]
    p.statement(op.y, f"{y} / {total}", [loops[d] for d in op.order])


def _slopes(s: Score, op: te.AttentionQueryGradientOp | te.AttentionKeyGradientOp) -> str:
    """Cotangents of weights."""
    term = f"{s.read(op.cotangent, s.row, s.column)} * {s.read(op.value, s.key, s.column)}"
    return s.made("Slopes", term, "+=!", s.sizes, s.columns(op.value))


def _query_gradient(p: Printed, op: te.AttentionQueryGradientOp) -> None:
    s = Score.of(p, op)
    scores = s.scores()
    largest = s.made("Largest", scores, "max=!", s.of_rows, s.of_keys)
    powers = s.made("Powers", f"exp({scores} - {largest})", "=", s.sizes, {})
    total = s.made("Sum", powers, "+=!", s.of_rows, s.of_keys)
    weights, slopes = f"({powers} / {total})", _slopes(s, op)
    along = s.made("Along", f"{weights} * {slopes}", "+=!", s.of_rows, s.of_keys)
    term = f"{s.factor} * ({weights} * ({slopes} - {along}))"
    term = f"{term} * {s.read(op.key, s.key, s.column)}"
    over = {**s.of_rows, **s.columns(op.query)}
    gradient = s.made("Gradient", term, "+=!", over, s.of_keys)
    size = over[s.column]
    behind = f"{s.column} == {size} ? {largest} + log({total}) : {along}"
    value = f"{s.column} < {size} ? {gradient} : {behind}"
    p.statement(op.y, value, [*s.leading, s.row, s.column])


def _key_gradient(p: Printed, op: te.AttentionKeyGradientOp) -> None:
    s = Score.of(p, op)
    size = tensor_type(op.query).get_shape()[-1]
    logarithm, along = (s.read(op.sums, s.row, str(size + n)) for n in (0, 1))
    weights = s.made("Weights", f"exp({s.scores()} - {logarithm})", "=", s.sizes, {})
    term = f"{s.factor} * ({weights} * ({_slopes(s, op)} - {along}))"
    term = f"{term} * {s.read(op.query, s.row, s.column)}"
    of_keys = s.made("OfKeys", term, "+=!", {**s.of_keys, **s.columns(op.query)}, s.of_rows)
    term = f"{weights} * {s.read(op.cotangent, s.row, s.column)}"
    of_values = s.made("OfValues", term, "+=!", {**s.of_keys, **s.columns(op.value)}, s.of_rows)
    behind = f"{of_values.partition('(')[0]}({', '.join([*s.leading, s.key])}, {s.column} - {size})"
    value = f"{s.column} < {size} ? {of_keys} : {behind}"
    p.statement(op.y, value, [*s.leading, s.key, s.column])


def _refused(op: Operation, reason: str) -> UnsupportedError:
    return UnsupportedError(f"'{op.name}' as a tensor expression: {reason}")


RULES: dict[type[Operation], Callable[..., None]] = {
    te.AttentionOp: _attention,
    te.AttentionQueryGradientOp: _query_gradient,
    te.AttentionKeyGradientOp: _key_gradient,
}
"""What prints each of them."""
