"""Derivatives of values by the elements that they read, as values again.

Where there is none the choice is PyTorch's, as in all of irkit: `relu` and `abs` have 0 at 0, of two equal
numbers `max` and `min` one half each, roundings 0.
"""

from __future__ import annotations

from functools import lru_cache

from irkit.expressions.grammar import parse
from irkit.expressions.syntax import Apply, Expr, Name, Number, Read, Statement, rebuilt
from irkit.expressions.typing import CASTS, COMPARISONS, FUNCTIONS

# Partial derivatives by each argument, of x and y; None: it is 0 wherever there is one.
_SLOPES: dict[str, tuple[str | None, ...]] = {
    "abs": ("sign(x)",),
    "acos": ("-1.0 / sqrt(1.0 - x * x)",),
    "acosh": ("1.0 / (sqrt(x - 1.0) * sqrt(x + 1.0))",),
    "asin": ("1.0 / sqrt(1.0 - x * x)",),
    "asinh": ("1.0 / sqrt(x * x + 1.0)",),
    "atan": ("1.0 / (1.0 + x * x)",),
    "atanh": ("1.0 / (1.0 - x * x)",),
    "cbrt": ("1.0 / (3.0 * cbrt(x) * cbrt(x))",),
    "cos": ("-sin(x)",),
    "cosh": ("sinh(x)",),
    "erf": ("1.1283791670955126 * exp(-x * x)",),
    "exp": ("exp(x)",),
    "exp2": ("0.6931471805599453 * exp2(x)",),
    "expm1": ("exp(x)",),
    "log": ("1.0 / x",),
    "log10": ("0.4342944819032518 / x",),
    "log1p": ("1.0 / (1.0 + x)",),
    "log2": ("1.4426950408889634 / x",),
    "relu": ("x > 0 ? 1.0 : 0.0",),
    "sigmoid": ("sigmoid(x) * (1.0 - sigmoid(x))",),
    "sin": ("cos(x)",),
    "sinh": ("cosh(x)",),
    "sqrt": ("0.5 / sqrt(x)",),
    "tan": ("1.0 + tan(x) * tan(x)",),
    "tanh": ("1.0 - tanh(x) * tanh(x)",),
    "neg": ("-1.0",),
    "+": ("1.0", "1.0"),
    "-": ("1.0", "-1.0"),
    "*": ("y", "x"),
    "/": ("1.0 / y", "-x / (y * y)"),
    "max": ("x > y ? 1.0 : x == y ? 0.5 : 0.0", "y > x ? 1.0 : x == y ? 0.5 : 0.0"),
    "min": ("x < y ? 1.0 : x == y ? 0.5 : 0.0", "y < x ? 1.0 : x == y ? 0.5 : 0.0"),
    "pow": ("y == 0 ? 0.0 : y * pow(x, y - 1.0)", "x == 0 ? 0.0 : log(x) * pow(x, y)"),
    "atan2": ("y / (x * x + y * y)", "-x / (x * x + y * y)"),
    "copysign": ("(x >= 0) == (copysign(1.0 + 0.0 * x, y) >= 0) ? 1.0 : -1.0", None),
    **dict.fromkeys(("ceil", "floor", "round", "sign", "!"), (None,)),
    **dict.fromkeys((*COMPARISONS, "&&", "||", "%"), (None, None)),
}
ZERO, ONE = Number(0.0), Number(1.0)


@lru_cache(maxsize=128)
def _template(text: str) -> Expr:
    (statement,) = parse(f"s() = {text}")
    assert isinstance(statement, Statement)

    def called(expr: Expr) -> Expr | None:
        if isinstance(expr, Read) and expr.tensor in FUNCTIONS:
            return Apply(expr.tensor, tuple(rebuilt(e, called) for e in expr.indices))
        return None

    return rebuilt(statement.value, called)


def times(left: Expr, right: Expr) -> Expr:
    """A product; one with 1 is the other."""
    if ONE in (left, right):
        return right if left == ONE else left
    return Apply("*", (left, right))


def slope(expr: Expr, read: Read, change: Expr = ONE) -> Expr | None:
    """How `expr` changes by a `change` of an element that it reads, wherever that stands in it; None if
    not."""
    if isinstance(expr, Read):
        return change if expr == read else None
    if not isinstance(expr, Apply):
        return None
    name, parts = expr.function, expr.arguments
    if name == "select":
        return _chosen(expr, read, change)
    if name in CASTS or name == "like":
        inner = slope(parts[0], read, change)
        return None if inner is None else Apply(name, (inner, *parts[1:]))
    total: Expr | None = None
    for text, part in zip(_SLOPES[name], parts, strict=True):
        inner = None if text is None else slope(part, read, change)
        if text is None or inner is None:
            continue
        term = times(_filled(text, parts), inner)
        total = term if total is None else Apply("+", (total, term))
    return total


def _chosen(expr: Apply, read: Read, change: Expr) -> Expr | None:
    condition, *both = expr.arguments
    found = [slope(part, read, change) for part in both]
    if found == [None, None]:
        return None
    return Apply("select", (condition, *(ZERO if f is None else f for f in found)))


def _filled(text: str, parts: tuple[Expr, ...]) -> Expr:
    known = dict(zip("xy", parts, strict=False))

    def fill(expr: Expr) -> Expr | None:
        return known.get(expr.name) if isinstance(expr, Name) else None

    return rebuilt(_template(text), fill)
