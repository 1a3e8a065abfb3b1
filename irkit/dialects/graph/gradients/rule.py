"""What a rule of differentiation is.

A rule says, in graph ops, what an op does to a small change of its operands (`jvp`, forward mode), and the transpose of
that linear map (`vjp`, reverse mode). Most kinds here are stated once and give both: where the map is its own transpose,
where the op is linear in each operand, or where the op is a composition of others. Both modes give graph ops, so that
what they give can be differentiated again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.composition import Ops
from irkit.dialects.graph.elementwise import AddOp
from irkit.dialects.types import is_float, tensor_type

Builder = Ops[SSAValue]
Maybe = SSAValue | None
"""A tangent or cotangent; None is zero."""


class Rule(ABC):
    """How an op is differentiated. `op` stands in the program that is made: its operands and results may be read."""

    @abstractmethod
    def jvp(self, o: Builder, op: GraphOp, tangents: Sequence[Maybe]) -> list[Maybe]:
        """Tangents of the results, of those of the operands, each of its value's type."""

    @abstractmethod
    def vjp(
        self, o: Builder, op: GraphOp, cotangents: Sequence[Maybe], wanted: Sequence[bool]
    ) -> list[Maybe]:
        """Cotangents of the operands that are `wanted`, of those of the results, each of its value's type."""


def total(o: Builder, first: Maybe, second: Maybe) -> Maybe:
    """The sum of two that may be zero."""
    if first is None or second is None:
        return second if first is None else first
    return o(AddOp, first, second)


def zeros(o: Builder, like: SSAValue) -> SSAValue:
    """Zeros of a value's type."""
    return o.expand(o.like(0, like), o.shape(like))


def made_good(o: Builder, value: Maybe, like: SSAValue) -> SSAValue:
    """`value`, zeros where it is None."""
    return zeros(o, like) if value is None else value


def unbroadcast(o: Builder, x: SSAValue, shape: Sequence[int]) -> SSAValue:
    """The transpose of broadcasting from `shape`: sums over what was repeated."""
    have = o.shape(x)
    lead = len(have) - len(shape)
    axes = [d for d in range(len(have)) if d < lead or (shape[d - lead] == 1 and have[d] != 1)]
    return o.reshape(o.reduce(x, "sum", axes) if axes else x, shape)


def has_gradient(value: SSAValue) -> bool:
    """Whether a value is of floats: integers and booleans have none."""
    return is_float(tensor_type(value).element_type)


Scale = Callable[[Builder, GraphOp, SSAValue], Maybe]
"""A change of one operand, or of the result, times the partial derivative; None if that is zero."""


@dataclass(frozen=True)
class Elementwise(Rule):
    """One result, each element of which hangs on one element of each operand: a factor for each operand. Operands
    broadcast."""

    scales: tuple[Scale | None, ...]

    def jvp(self, o: Builder, op: GraphOp, tangents: Sequence[Maybe]) -> list[Maybe]:
        result: Maybe = None
        for scale, tangent in zip(self.scales, tangents, strict=True):
            if scale is not None and tangent is not None:
                result = total(o, result, scale(o, op, tangent))
        return [None if result is None else o.expand(result, o.shape(op.results[0]))]

    def vjp(
        self, o: Builder, op: GraphOp, cotangents: Sequence[Maybe], wanted: Sequence[bool]
    ) -> list[Maybe]:
        (cotangent,) = cotangents
        if cotangent is None:
            return [None] * len(wanted)
        found: list[Maybe] = []
        for scale, asked, operand in zip(self.scales, wanted, op.operands, strict=True):
            scaled = scale(o, op, cotangent) if scale is not None and asked else None
            if scaled is not None:
                scaled = unbroadcast(o, scaled, o.shape(operand))
            found.append(scaled)
        return found


@dataclass(frozen=True)
class SelfAdjoint(Rule):
    """One operand that is differentiated, the first, and one result; the derivative is a symmetric map."""

    apply: Callable[[Builder, GraphOp, SSAValue], SSAValue]

    def jvp(self, o: Builder, op: GraphOp, tangents: Sequence[Maybe]) -> list[Maybe]:
        return [None if tangents[0] is None else self.apply(o, op, tangents[0])]

    def vjp(
        self, o: Builder, op: GraphOp, cotangents: Sequence[Maybe], wanted: Sequence[bool]
    ) -> list[Maybe]:
        (cotangent,) = cotangents
        rest: list[Maybe] = [None] * (len(wanted) - 1)
        return [None if cotangent is None else self.apply(o, op, cotangent), *rest]


Map = Callable[[Builder, GraphOp, SSAValue], SSAValue]


@dataclass(frozen=True)
class Linear(Rule):
    """Linear in each operand of `transposes` with the others held: there are products, and ops that move elements.

    A change of operand i goes through `applies[i]`, by default through the op itself in operand i's place. Its transpose
    is `transposes[i]`. An operand without a transpose is none that is differentiated.
    """

    transposes: Mapping[int, Map]
    applies: Mapping[int, Map] = field(default_factory=dict[int, Map])

    def jvp(self, o: Builder, op: GraphOp, tangents: Sequence[Maybe]) -> list[Maybe]:
        result: Maybe = None
        for number, tangent in enumerate(tangents):
            if tangent is not None and number in self.transposes:
                apply = self.applies.get(number, _again(number))
                result = total(o, result, apply(o, op, tangent))
        return [result]

    def vjp(
        self, o: Builder, op: GraphOp, cotangents: Sequence[Maybe], wanted: Sequence[bool]
    ) -> list[Maybe]:
        (cotangent,) = cotangents
        return [
            self.transposes[number](o, op, cotangent)
            if cotangent is not None and asked and number in self.transposes
            else None
            for number, asked in enumerate(wanted)
        ]


def _again(number: int) -> Map:
    """The op itself, with another operand `number`."""

    def apply(o: Builder, op: GraphOp, tangent: SSAValue) -> SSAValue:
        operands = [tangent if n == number else v for n, v in enumerate(op.operands)]
        return o(type(op), *operands, **op.properties)

    return apply


@dataclass(frozen=True)
class Composed(Rule):
    """The op as others: they are differentiated instead of it, and stand in its place."""

    expand: Callable[[Builder, GraphOp], Sequence[SSAValue]]

    def jvp(self, o: Builder, op: GraphOp, tangents: Sequence[Maybe]) -> list[Maybe]:
        raise NotImplementedError("a composition is differentiated in parts")

    def vjp(
        self, o: Builder, op: GraphOp, cotangents: Sequence[Maybe], wanted: Sequence[bool]
    ) -> list[Maybe]:
        raise NotImplementedError("a composition is differentiated in parts")


@dataclass(frozen=True)
class Flat(Rule):
    """A step function: its derivative is zero wherever it has one, and is taken for zero elsewhere too."""

    def jvp(self, o: Builder, op: GraphOp, tangents: Sequence[Maybe]) -> list[Maybe]:
        return [None] * len(op.results)

    def vjp(
        self, o: Builder, op: GraphOp, cotangents: Sequence[Maybe], wanted: Sequence[bool]
    ) -> list[Maybe]:
        return [
            zeros(o, v) if asked else None for v, asked in zip(op.operands, wanted, strict=True)
        ]


Rules = Mapping[type[GraphOp], Rule]
