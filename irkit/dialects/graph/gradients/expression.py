"""Gradients of tensor expressions: expressions again (`irkit/expressions/derivative.py` derives them)."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.gradients.rule import (
    Builder,
    Maybe,
    Rule,
    Rules,
    has_gradient,
    total,
    zeros,
)
from irkit.dialects.graph.gradients.shape import padded
from irkit.expressions.binding import operands_of, program_of
from irkit.expressions.derivative import (
    CHANGE,
    RESULT,
    Spread,
    canonical,
    forward,
    helpers,
    reverse,
)
from irkit.expressions.printing import text_of
from irkit.expressions.syntax import Statement


class _Values(dict[str, SSAValue]):
    """Tensors of derivatives by name; helpers are made where they are first read."""

    def __init__(self, o: Builder, op: graph.ExpressionOp) -> None:
        self.step = canonical(op.step)
        super().__init__(zip(self.step.operands, op.operands, strict=True))
        self._o, self._helpers = o, helpers(self.step)
        self[RESULT] = op.y

    def made(self, statement: Statement) -> SSAValue:
        """The result of a statement."""
        operands = [self._found(name) for name in operands_of(statement)]
        text = text_of(statement)
        program_of(text)  # A derivative may be nested deeper than a text may be: UnsupportedError.
        return self._o(graph.ExpressionOp, *operands, text=text)

    def _found(self, name: str) -> SSAValue:
        if name not in self:
            self[name] = self.made(self._helpers[name])
        return self[name]


class _Expression(Rule):
    """Each element that is read has a slope."""

    def jvp(self, o: Builder, op: GraphOp, tangents: Sequence[Maybe]) -> list[Maybe]:
        assert isinstance(op, graph.ExpressionOp)
        values, result = _Values(o, op), None
        step = values.step
        for name, tangent in zip(step.operands, tangents, strict=True):
            if tangent is None:
                continue
            values[CHANGE] = tangent
            for statement in forward(step, name):
                result = total(o, result, values.made(statement))
        return [result]

    def vjp(
        self, o: Builder, op: GraphOp, cotangents: Sequence[Maybe], wanted: Sequence[bool]
    ) -> list[Maybe]:
        assert isinstance(op, graph.ExpressionOp)
        (cotangent,) = cotangents
        if cotangent is None:
            return [None] * len(wanted)
        values = _Values(o, op)
        return [
            self._operand(o, op, values, number, cotangent) if asked and has_gradient(v) else None
            for number, (v, asked) in enumerate(zip(op.operands, wanted, strict=True))
        ]

    def _operand(
        self,
        o: Builder,
        op: graph.ExpressionOp,
        values: _Values,
        number: int,
        cotangent: SSAValue,
    ) -> SSAValue:
        result: Maybe = None
        for one in reverse(values.step, values.step.operands[number]):
            values[CHANGE] = _spread(o, cotangent, one.spread)
            part = values.made(one.statement)
            result = total(o, result, o.cast(part, o.dtype(op.operands[number])))
        return zeros(o, op.operands[number]) if result is None else result


def _spread(o: Builder, x: SSAValue, spread: Sequence[Spread]) -> SSAValue:
    """The cotangent with zeros between and around its elements."""
    for d, one in enumerate(spread):
        if one.step == 1:
            continue
        shape = list(o.shape(x))
        apart = o.reshape(x, [*shape[: d + 1], 1, *shape[d + 1 :]])
        behind = [0] * (len(shape) + 1)
        behind[d + 1] = one.step - 1
        apart = padded(o, apart, [0] * len(behind), behind)
        shape[d] *= one.step
        x = o.reshape(apart, shape)
    low = [one.low for one in spread]
    high = [one.size - one.low - n for one, n in zip(spread, o.shape(x), strict=True)]
    return padded(o, x, low, high)


RULES: Rules = {graph.ExpressionOp: _Expression()}
