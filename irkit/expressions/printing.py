"""Statements as text, with no more brackets than their meaning needs; what is read of it is the same
again."""

from __future__ import annotations

from irkit.expressions.syntax import Apply, Expr, Name, Number, Read, Statement

_LEVELS = (("||",), ("&&",), ("<", "<=", ">", ">=", "==", "!="), ("+", "-"), ("*", "/", "%"))
_LEVEL = {sign: level for level, signs in enumerate(_LEVELS, start=1) for sign in signs}
_UNARY, _ATOM = len(_LEVELS) + 1, len(_LEVELS) + 2


def text_of(statement: Statement) -> str:
    """A statement on one line."""
    target = f"{statement.target}({', '.join(statement.indices)})"
    sign = f"{statement.operator}={'!' if statement.fresh and statement.operator else ''}"
    clauses = [f"{r.name} in {_shown(r.low, 4)}:{_shown(r.high, 4)}" for r in statement.ranges]
    clauses += [f"exists {_shown(r, 0)}" for r in statement.exists]
    where = f" where {', '.join(clauses)}" if clauses else ""
    return f"{target} {sign} {_shown(statement.value, 0)}{where}"


def _shown(expr: Expr, level: int) -> str:
    """`expr` where what binds less than `level` needs brackets."""
    text, own = _text(expr)
    return f"({text})" if own < level else text


def _text(expr: Expr) -> tuple[str, int]:
    if isinstance(expr, Number):
        return repr(expr.value), _ATOM if expr.value >= 0 else _UNARY
    if isinstance(expr, Name):
        return expr.name, _ATOM
    if isinstance(expr, Read):
        return f"{expr.tensor}({', '.join(_shown(e, 0) for e in expr.indices)})", _ATOM
    assert isinstance(expr, Apply)
    name, parts = expr.function, expr.arguments
    if name == "select":
        return f"{_shown(parts[0], 1)} ? {_shown(parts[1], 0)} : {_shown(parts[2], 0)}", 0
    if name in ("neg", "!"):
        sign = "-" if name == "neg" else "!"
        return f"{sign}{_shown(parts[0], _UNARY)}", _UNARY
    if name not in _LEVEL:
        return f"{name}({', '.join(_shown(e, 0) for e in parts)})", _ATOM
    own = _LEVEL[name]
    left = own + (own == 3)
    return f"{_shown(parts[0], left)} {name} {_shown(parts[1], own + 1)}", own
