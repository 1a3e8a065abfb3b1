"""What a text of the language says: functions of statements, each an index expression.

Every node knows its place in the text, a line and a column from 1 on, for messages; equality does not look
at it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from irkit.errors import UnsupportedError


@dataclass(frozen=True)
class Place:
    """A place in a text; `called` is what messages call the text."""

    text: str = ""
    line: int = 0
    column: int = 0
    called: str = "expression"


NOWHERE = Place()


class ExpressionError(UnsupportedError):
    """What is wrong with a tensor expression; `line` and `column` from 1 on, 0 where there is no place."""

    def __init__(self, message: str, place: Place = NOWHERE) -> None:
        self.line, self.column = place.line, place.column
        self.message, self.place = message, place
        super().__init__(_shown(message, place))


def _shown(message: str, place: Place) -> str:
    """The message, with the line that it is about and a caret."""
    if not place.line:
        return message
    lines = place.text.splitlines() or [""]
    line, at = _window(lines[min(place.line, len(lines)) - 1], place.column - 1)
    caret = " " * at + "^"
    return f"{place.called}:{place.line}:{place.column}: {message}\n  {line}\n  {caret}"


WIDTH = 160
"""Characters of a line that are shown."""


def _window(line: str, at: int) -> tuple[str, int]:
    """What is shown of a line, and where the place `at` is in that: of a long line what is around it."""
    if len(line) <= WIDTH:
        return line, at
    low = max(0, min(at - WIDTH // 2, len(line) - WIDTH))
    high = low + WIDTH
    before, after = "…" * (low > 0), "…" * (high < len(line))
    return f"{before}{line[low:high]}{after}", at - low + len(before)


@dataclass(frozen=True)
class Expr:
    """A value: of a statement, or of an index."""

    place: Place = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Number(Expr):
    """A number as it is written."""

    value: int | float


@dataclass(frozen=True)
class Name(Expr):
    """An index or a size."""

    name: str


@dataclass(frozen=True)
class Read(Expr):
    """An element of a tensor."""

    tensor: str
    indices: tuple[Expr, ...]


@dataclass(frozen=True)
class Apply(Expr):
    """An operator, function or cast of values. `function` is its sign or name, `neg` and `select` for `-x`
    and `c ? x : y`."""

    function: str
    arguments: tuple[Expr, ...]


@dataclass(frozen=True)
class Range:
    """An index that is said to run from `low` to below `high`."""

    name: str
    low: Expr
    high: Expr
    place: Place = field(default=NOWHERE, compare=False, repr=False)


REDUCTIONS = {"+": "+", "*": "*", "max": "max", "min": "min"}
"""Operators of reductions, and the binary function that each is."""


@dataclass(frozen=True)
class Statement:
    """`target(indices) operator= value`. `operator` is empty where nothing is reduced; `fresh`: what was
    there does not count (`=`, `+=!`). `exists`: reads that only say over which ranges their indices run."""

    target: str
    indices: tuple[str, ...]
    operator: str
    fresh: bool
    value: Expr
    ranges: tuple[Range, ...] = ()
    exists: tuple[Read, ...] = ()
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Call:
    """`targets = function(arguments)`, of whole tensors."""

    targets: tuple[str, ...]
    function: str
    arguments: tuple[Expr, ...]
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Parameter:
    """A tensor that is given. `type` is the name of an element type, or of a type that may be any; `sizes`
    are numbers or names; None: of any shape."""

    name: str
    type: str
    sizes: tuple[int | str, ...] | None
    place: Place = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True)
class Function:
    """Statements in order: what they assign may be read by those that follow, and returned."""

    name: str
    parameters: tuple[Parameter, ...]
    results: tuple[str, ...]
    body: tuple[Statement | Call, ...]
    place: Place = field(default=NOWHERE, compare=False, repr=False)


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and all in it, indices of reads among it, in the order of the text."""
    yield expr
    inner: tuple[Expr, ...] = ()
    if isinstance(expr, Read):
        inner = expr.indices
    elif isinstance(expr, Apply):
        inner = expr.arguments
    for one in inner:
        yield from walk(one)


def reads_of(expr: Expr) -> list[Read]:
    """All reads, those in indices too."""
    return [e for e in walk(expr) if isinstance(e, Read)]


def names_of(expr: Expr) -> list[str]:
    """Indices and sizes, each once, in the order of the text."""
    return list(dict.fromkeys(e.name for e in walk(expr) if isinstance(e, Name)))


def rebuilt(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """The expression with every part for which `change` gives another replaced by that, from outside in."""
    found = change(expr)
    if found is not None:
        return found
    if isinstance(expr, Read):
        return replace(expr, indices=tuple(rebuilt(e, change) for e in expr.indices))
    if isinstance(expr, Apply):
        return replace(expr, arguments=tuple(rebuilt(e, change) for e in expr.arguments))
    return expr
