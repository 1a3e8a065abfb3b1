"""Elementwise ops: one `linalg.generic` each, of the arith and math ops that say it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import i1, i64
from xdsl.ir import Attribute, Operation, SSAValue

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.types import is_float, is_unsigned, numpy_dtype, signless, tensor_type, ui64
from irkit.lower.graph_to_tensor.builder import TensorBuilder
from irkit.lower.graph_to_tensor.guarded import power, quotient, truncated, truncated_unsigned
from irkit.lower.graph_to_tensor.scalars import Scalars

Binary = Callable[[SSAValue, SSAValue], Operation]
Rule = Callable[[TensorBuilder, GraphOp], list[SSAValue]]
Expression = Callable[[Scalars, Sequence[SSAValue]], SSAValue]


def elementwise_rule(expression: Callable[[GraphOp], Expression]) -> Rule:
    """The rule of an op whose operands broadcast; `expression(op)` is the body's meaning."""

    def rule(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
        t = tensor_type(op.results[0])
        return [b.elementwise(t.get_shape(), t.element_type, op.operands, expression(op))]

    return rule


def element_of(op: GraphOp) -> Attribute:
    """Element type of the last operand."""
    return tensor_type(op.operands[-1]).element_type


# Arithmetic

_FLOAT: dict[type[GraphOp], Binary] = {
    graph.AddOp: arith.AddfOp,
    graph.SubOp: arith.SubfOp,
    graph.MulOp: arith.MulfOp,
    graph.DivOp: arith.DivfOp,
    graph.MaxOp: arith.MaximumfOp,
    graph.MinOp: arith.MinimumfOp,
    graph.PowOp: math.PowFOp,
}
_INTEGER: dict[type[GraphOp], Binary] = {
    graph.AddOp: arith.AddiOp,
    graph.SubOp: arith.SubiOp,
    graph.MulOp: arith.MuliOp,
    graph.MaxOp: arith.MaxSIOp,
    graph.MinOp: arith.MinSIOp,
    graph.AndOp: arith.AndIOp,
    graph.OrOp: arith.OrIOp,
}
_UNSIGNED: dict[type[GraphOp], Binary] = {
    **_INTEGER,
    graph.MaxOp: arith.MaxUIOp,
    graph.MinOp: arith.MinUIOp,
}
_BOOLEAN: dict[type[GraphOp], Binary] = {
    graph.AddOp: arith.OrIOp,
    graph.MulOp: arith.AndIOp,
    graph.MaxOp: arith.OrIOp,
    graph.MinOp: arith.AndIOp,
    graph.AndOp: arith.AndIOp,
    graph.OrOp: arith.OrIOp,
}


def _table(element: Attribute) -> dict[type[GraphOp], Binary]:
    if is_float(element):
        return _FLOAT
    if element == i1:
        return _BOOLEAN
    return _UNSIGNED if is_unsigned(element) else _INTEGER


Guarded = Callable[[Scalars, SSAValue, SSAValue, bool], SSAValue]
_GUARDED: dict[type[GraphOp], Guarded] = {graph.DivOp: quotient, graph.PowOp: power}


def _binary(op: GraphOp) -> Expression:
    element = element_of(op)
    guarded = None if is_float(element) else _GUARDED.get(type(op))
    if guarded is not None:
        unsigned = is_unsigned(element)
        return lambda s, v: guarded(s, v[0], v[1], unsigned)
    made = _table(element)[type(op)]
    return lambda s, v: s(made(v[0], v[1]))


_UNARY: dict[type[GraphOp], Callable[[SSAValue], Operation]] = {
    graph.ErfOp: math.ErfOp,
    graph.ExpOp: math.ExpOp,
    graph.FloorOp: math.FloorOp,
    graph.LogOp: math.LogOp,
    graph.SqrtOp: math.SqrtOp,
    graph.TanhOp: math.TanhOp,
    graph.IsNanOp: lambda x: arith.CmpfOp(x, x, "uno"),
}


def _unary(op: GraphOp) -> Expression:
    made = _UNARY[type(op)]
    return lambda s, v: s(made(v[0]))


def _abs(op: GraphOp) -> Expression:
    element = element_of(op)
    if is_unsigned(element):
        return lambda s, v: v[0]
    made = math.AbsFOp if is_float(element) else math.AbsIOp
    return lambda s, v: s(made(v[0]))


def _neg(op: GraphOp) -> Expression:
    element = element_of(op)
    if is_float(element):
        return lambda s, v: s(arith.NegfOp(v[0]))
    return lambda s, v: s(arith.SubiOp(s.constant(0, element), v[0]))


def _relu(op: GraphOp) -> Expression:
    element = element_of(op)
    return lambda s, v: s(arith.MaximumfOp(v[0], s.constant(0.0, element)))


def _clip(op: GraphOp) -> Expression:
    assert isinstance(op, graph.ClipOp)
    element, low, high = element_of(op), op.min.value.data, op.max.value.data

    def clip(s: Scalars, v: Sequence[SSAValue]) -> SSAValue:
        found = v[0]
        if low > -float("inf"):
            found = s(arith.MaximumfOp(s.constant(low, element), found))
        if high < float("inf"):
            found = s(arith.MinimumfOp(s.constant(high, element), found))
        return found

    return clip


def sigmoid(s: Scalars, x: SSAValue) -> SSAValue:
    """1 / (1 + exp(-x))"""
    one = s.constant(1.0, x.type)
    return s(arith.DivfOp(one, s(arith.AddfOp(one, s(math.ExpOp(s(arith.NegfOp(x))))))))


# Comparison and choice

_FLOAT_PREDICATES = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}
_SIGNED_PREDICATES = {"eq": "eq", "ne": "ne", "lt": "slt", "le": "sle", "gt": "sgt", "ge": "sge"}


def _compare(op: GraphOp) -> Expression:
    assert isinstance(op, graph.CompareOp)
    element, name = element_of(op), op.predicate.data
    if is_float(element):
        return lambda s, v: s(arith.CmpfOp(v[0], v[1], _FLOAT_PREDICATES[name]))
    if element == i1 and name not in ("eq", "ne"):
        return lambda s, v: _compare_booleans(s, name, v[0], v[1])
    predicate = _SIGNED_PREDICATES[name]
    if is_unsigned(element):
        predicate = predicate.replace("s", "u")
    return lambda s, v: s(arith.CmpiOp(v[0], v[1], predicate))


def _compare_booleans(s: Scalars, name: str, x: SSAValue, y: SSAValue) -> SSAValue:
    """Order of booleans by logic, since a signed i1 would be 0 or -1."""
    low, high = (x, y) if name in ("lt", "le") else (y, x)
    not_low = s(arith.XOrIOp(low, s.constant(1, i1)))
    return s((arith.AndIOp if name in ("lt", "gt") else arith.OrIOp)(not_low, high))


def _where(op: GraphOp) -> Expression:
    return lambda s, v: s(arith.SelectOp(v[0], v[1], v[2]))


# Conversion


def _bits(element: Attribute) -> int:
    return 1 if element == i1 else numpy_dtype(element).itemsize * 8


def convert(s: Scalars, x: SSAValue, to: Attribute, have: Attribute) -> SSAValue:
    """`x` of type `have`, which its own signless type does not tell, as type `to`; signless again."""
    if signless(have) == signless(to):
        return x
    if to == i1:
        zero = s.constant(0, have)
        return s(arith.CmpfOp(x, zero, "une") if is_float(have) else arith.CmpiOp(x, zero, "ne"))
    if not is_float(have) or is_float(to):
        return s(_conversion(have, to)(x, signless(to)))
    if to == ui64:
        return truncated_unsigned(s, x)
    wide = truncated(s, x)
    return wide if _bits(to) == 64 else s(_conversion(i64, to)(wide, signless(to)))


def _conversion(have: Attribute, to: Attribute) -> Callable[..., Operation]:
    """The arith op from one type to another of other bits; not to i1, nor from a float to an integer."""
    unsigned = have == i1 or is_unsigned(have)
    longer = _bits(to) > _bits(have)
    if is_float(have) and is_float(to):
        return arith.ExtFOp if longer else arith.TruncFOp
    if is_float(to):
        return arith.UIToFPOp if unsigned else arith.SIToFPOp
    if not longer:
        return arith.TruncIOp
    return arith.ExtUIOp if unsigned else arith.ExtSIOp


def _cast(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    assert isinstance(op, graph.CastOp)
    have = tensor_type(op.x).element_type
    if have == op.to:
        return [op.x]
    shape = tensor_type(op.x).get_shape()
    return [b.elementwise(shape, op.to, [op.x], lambda s, v: convert(s, v[0], op.to, have))]


RULES: dict[type[GraphOp], Rule] = {
    **{op: elementwise_rule(_binary) for op in (*_FLOAT, graph.AndOp, graph.OrOp)},
    **{op: elementwise_rule(_unary) for op in _UNARY},
    graph.AbsOp: elementwise_rule(_abs),
    graph.CastOp: _cast,
    graph.ClipOp: elementwise_rule(_clip),
    graph.CompareOp: elementwise_rule(_compare),
    graph.FmaOp: elementwise_rule(lambda _: lambda s, v: s(math.FmaOp(v[0], v[1], v[2]))),
    graph.NegOp: elementwise_rule(_neg),
    graph.ReluOp: elementwise_rule(_relu),
    graph.SigmoidOp: elementwise_rule(lambda _: lambda s, v: sigmoid(s, v[0])),
    graph.WhereOp: elementwise_rule(_where),
}
