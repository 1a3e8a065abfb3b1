"""Random bits: words of 32 bits, added, rotated and mixed, in one body."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.random import GROUPS, PARITY, ROTATIONS
from irkit.lower.graph_to_tensor.elementwise import Expression, Rule, elementwise_rule
from irkit.lower.graph_to_tensor.scalars import Scalars


def _words(s: Scalars, value: SSAValue) -> tuple[SSAValue, SSAValue]:
    high = s(arith.ShRUIOp(value, s.constant(32, i64)))
    return s(arith.TruncIOp(value, i32)), s(arith.TruncIOp(high, i32))


def _rotated(s: Scalars, value: SSAValue, bits: int) -> SSAValue:
    left = s(arith.ShLIOp(value, s.constant(bits, i32)))
    return s(arith.OrIOp(left, s(arith.ShRUIOp(value, s.constant(32 - bits, i32)))))


def _threefry(s: Scalars, operands: Sequence[SSAValue]) -> SSAValue:
    first, second = _words(s, operands[0])
    parity = s(arith.XOrIOp(first, s.constant(PARITY, i32)))
    keys = (first, second, s(arith.XOrIOp(parity, second)))
    x, y = _words(s, operands[1])
    x, y = s(arith.AddiOp(x, first)), s(arith.AddiOp(y, second))
    for group in range(GROUPS):
        for bits in ROTATIONS[group % 2]:
            x = s(arith.AddiOp(x, y))
            y = s(arith.XOrIOp(_rotated(s, y, bits), x))
        x = s(arith.AddiOp(x, keys[(group + 1) % 3]))
        y = s(arith.AddiOp(y, keys[(group + 2) % 3]))
        y = s(arith.AddiOp(y, s.constant(group + 1, i32)))
    high = s(arith.ShLIOp(s(arith.ExtUIOp(y, i64)), s.constant(32, i64)))
    return s(arith.OrIOp(s(arith.ExtUIOp(x, i64)), high))


def _rule(op: GraphOp) -> Expression:
    return _threefry


RULES: dict[type[GraphOp], Rule] = {graph.ThreefryOp: elementwise_rule(_rule)}
