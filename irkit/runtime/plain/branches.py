"""Branches of a unit's text whose tests are numbers: they are settled before Numba looks at them.

A template is written for all its parameters, so that a unit has branches that are never taken. Numba leaves
them out as well, but only after it has put nested functions in all places where these are called.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence

_NUMBERS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: lambda one, other: one // other,
    ast.Mod: operator.mod,
}
_COMPARED: Mapping[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def settled(module: ast.Module) -> ast.Module:
    """The module without branches that are never taken; the tree is changed."""
    return _Settled().visit(module)


def known(test: ast.expr) -> bool | None:
    """Whether a test holds that has numbers alone; None for every other."""
    match test:
        case ast.UnaryOp(ast.Not(), operand):
            holds = known(operand)
            return None if holds is None else not holds
        case ast.Compare(left, [comparison], [right]) if type(comparison) in _COMPARED:
            one, other = _number(left), _number(right)
            if one is None or other is None:
                return None
            return _COMPARED[type(comparison)](one, other)
        case ast.BoolOp(connective, operands):
            return _joined(connective, [known(operand) for operand in operands])
        case _:
            number = _number(test)
            return None if number is None else bool(number)


def _joined(connective: ast.boolop, operands: Sequence[bool | None]) -> bool | None:
    """Of what stands behind an operand that is not known nothing can be said: it may decide first."""
    decides = isinstance(connective, ast.Or)
    for holds in operands:
        if holds is None or holds is decides:
            return holds
    return not decides


def _number(node: ast.expr) -> int | None:
    match node:
        case ast.Constant(value=int() as value):
            return int(value)
        case ast.UnaryOp(ast.USub(), operand):
            value = _number(operand)
            return None if value is None else -value
        case ast.BinOp(left, computed, right) if type(computed) in _NUMBERS:
            one, other = _number(left), _number(right)
            if one is None or other is None:
                return None
            divides = isinstance(computed, ast.FloorDiv | ast.Mod)
            return None if divides and not other else _NUMBERS[type(computed)](one, other)
        case _:
            return None


class _Settled(ast.NodeTransformer):
    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        """The branch that is taken, in the statement's place."""
        holds = known(node.test)
        if holds is None:
            return self.generic_visit(node)
        taken = ast.Module(node.body if holds else node.orelse, [])
        self.generic_visit(taken)
        # A block may not become empty.
        return taken.body or ast.Pass()

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """The value that is taken."""
        holds = known(node.test)
        if holds is None:
            return self.generic_visit(node)
        return self.visit(node.body if holds else node.orelse)
