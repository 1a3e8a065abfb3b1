"""The text of the language, by lark: what it may look like, and the tree of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from math import isinf
from typing import Any, cast

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken
from lark.lexer import TerminalDef

from irkit.expressions.syntax import (
    Apply,
    Call,
    Expr,
    ExpressionError,
    Function,
    Name,
    Number,
    Parameter,
    Place,
    Range,
    Read,
    Statement,
)

GRAMMAR = r"""
start: function+ | line+
function: "def" NAME "(" [parameter ("," parameter)*] ")" "->" "(" NAME ("," NAME)* ")" "{" line* "}"
parameter: NAME sizes? NAME
sizes: "(" [size ("," size)*] ")"
?size: NAME | INT
?line: (statement | calls) ";"?
statement: target ASSIGN value where?
target: NAME ["(" [NAME ("," NAME)*] ")"]
calls: NAME ("," NAME)+ ASSIGN NAME "(" [value ("," value)*] ")"
where: "where" clause ("," clause)*
?clause: NAME "in" sum ":" sum -> range
       | "exists" read -> exists
?value: either | either "?" value ":" value -> select
?either: both | either OR both -> binary
?both: comparison | both AND comparison -> binary
?comparison: sum | sum COMPARE sum -> binary
?sum: term | sum ADD term -> binary
?term: factor | term MUL factor -> binary
?factor: atom | SUB factor -> unary | NOT factor -> unary
?atom: "(" value ")" | FLOAT -> real | INT -> integer | NAME -> name | read
read: NAME "(" [value ("," value)*] ")"
ASSIGN.3: /(\+|\*|max|min)=!?|=(?!=)/
COMPARE: "<=" | ">=" | "==" | "!=" | "<" | ">"
OR: "||"
AND: "&&"
ADD: "+" | "-"
SUB: "-"
MUL: "*" | "/" | "%"
NOT: "!"
FLOAT.2: /(\d+\.\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|\d+[eE][+-]?\d+)/
INT: /\d+/
NAME: /(?!(def|where|in|exists)\b)[A-Za-z_]\w*/
%ignore /[ \t\r\n]+/
%ignore /(#|\/\/)[^\n]*/
"""

_SHOWN = {
    "ASSIGN": "'=' or an assignment such as '+=!'",
    "NAME": "a name",
    "INT": "a number",
    "FLOAT": "a number",
    "COMPARE": "a comparison",
    "ADD": "'+'",
    "SUB": "'-'",
    "MUL": "'*'",
    "OR": "'||'",
    "AND": "'&&'",
    "NOT": "'!'",
    "$END": "the end",
}


NESTED = 150
"""How deep values may stand in one another; what reads them goes down as deep."""


@lru_cache(maxsize=1)
def _parser() -> Lark:
    return Lark(GRAMMAR, parser="lalr", propagate_positions=True, maybe_placeholders=False)


def parse(text: str) -> list[Function] | list[Statement | Call]:
    """The functions of a text, or its statements where it has no function.

    Raises ExpressionError, with the line, the column and what was expected there.
    """
    try:
        tree = cast("Any", _parser()).parse(text)
    except UnexpectedInput as error:
        raise unexpected(text, error, _parser().terminals) from None
    _check_depth(text, tree)
    found = [_Reader(text).line(cast("Tree[Token]", t)) for t in tree.children]
    return cast("list[Function] | list[Statement | Call]", found)


def _check_depth(text: str, tree: Tree[Token]) -> None:
    """Raises ExpressionError for a value that is nested deeper than `NESTED`, at that value."""
    level, depth = tree.children, 0
    while level:
        trees = [one for one in level if isinstance(one, Tree)]
        if depth > NESTED and trees:
            place = Place(text, *_start(trees[0]))
            raise ExpressionError(
                f"nested more than {NESTED} deep here: give a part a name, in a statement of its own",
                place,
            )
        level, depth = [c for one in trees for c in one.children], depth + 1


def unexpected(
    text: str,
    error: UnexpectedInput,
    terminals: Collection[TerminalDef],
    called: str = "expression",
) -> ExpressionError:
    """What lark says of a text, as an error of this language; `called` is what the text is called."""
    wanted: set[str] = set()
    at_end = isinstance(error, UnexpectedEOF)
    got = "the end of the text"
    if isinstance(error, UnexpectedToken):
        wanted = set(error.accepts or error.expected)
        token = cast("Token", cast("Any", error).token)
        at_end = token.type == "$END"
        got = got if at_end else f"'{token}'"
    elif isinstance(error, UnexpectedCharacters):
        wanted = set(error.allowed or ())
        got = f"'{cast('Any', error).char}'"
    lines = text.splitlines() or [""]
    place = Place(text, error.line, error.column, called)
    if at_end or error.line < 1:
        place = Place(text, len(lines), len(lines[-1]) + 1, called)
    shown = sorted({_SHOWN.get(w) or _literal(w, terminals) for w in wanted})
    hint = f"; expected {', '.join(shown[:6])}" if shown else ""
    return ExpressionError(f"{got} does not belong here{hint}", place)


def _literal(terminal: str, terminals: Collection[TerminalDef]) -> str:
    for known in terminals:
        if known.name == terminal:
            return f"'{known.pattern.value}'"
    return terminal.lower()


_DIGITS = 100
"""A number of more is larger than any that a type has."""


def whole_number(digits: str, place: Place) -> int:
    """What digits say. Raises ExpressionError for more of them than any type has."""
    if len(digits) > _DIGITS:
        raise ExpressionError(f"a whole number of {len(digits)} digits, which no type has", place)
    return int(digits)


class _Reader:
    """From lark's tree to what it says."""

    def __init__(self, text: str) -> None:
        self._text = text

    def _place(self, tree: Tree[Token] | Token) -> Place:
        line, column = (tree.line, tree.column) if isinstance(tree, Token) else _start(tree)
        return Place(self._text, line or 1, column or 1)

    def line(self, tree: Tree[Token]) -> Function | Statement | Call:
        """A function, a statement or a call."""
        known: dict[str, Callable[[Tree[Token]], Function | Statement | Call]] = {
            "function": self._function,
            "statement": self._statement,
            "calls": self._calls,
        }
        if tree.data == "line":
            tree = cast("Tree[Token]", tree.children[0])
        return known[str(tree.data)](tree)

    def _function(self, tree: Tree[Token]) -> Function:
        name, *rest = tree.children
        parameters = [self._parameter(t) for t in rest if _is(t, "parameter")]
        results = [str(t) for t in rest if isinstance(t, Token)]
        lines = [t for t in rest if isinstance(t, Tree) and t.data != "parameter"]
        body = [cast("Statement | Call", self.line(t)) for t in lines]
        return Function(
            str(name),
            tuple(parameters),
            tuple(results),
            tuple(body),
            self._place(cast(Token, name)),
        )

    def _parameter(self, tree: Any) -> Parameter:
        kind, *middle, name = tree.children
        sizes: list[int | str] = []
        for token in middle[0].children if middle else ():
            whole = token.type == "INT"
            sizes.append(whole_number(token, self._place(token)) if whole else str(token))
        return Parameter(str(name), str(kind), tuple(sizes), self._place(name))

    def _statement(self, tree: Tree[Token]) -> Statement | Call:
        target, assign, value, *where = cast("list[Any]", tree.children)
        name, *indices = target.children
        clauses = cast("list[Any]", where[0].children if where else [])
        ranges = [self._range(t) for t in clauses if t.data == "range"]
        exists = [cast(Read, self.value(t.children[0])) for t in clauses if t.data == "exists"]
        place = self._place(name)
        written = tuple(str(i) for i in indices)
        operator, fresh = str(assign).rstrip("!=").rstrip("="), str(assign).endswith("!")
        return Statement(
            str(name), written, operator, fresh or not operator, self.value(value),
            tuple(ranges), tuple(exists), place,
        )  # fmt: skip

    def _range(self, tree: Any) -> Range:
        name, low, high = tree.children
        return Range(str(name), self.value(low), self.value(high), self._place(name))

    def _calls(self, tree: Tree[Token]) -> Call:
        tokens = [t for t in tree.children if isinstance(t, Token)]
        place = self._place(tokens[0])
        at = next(n for n, t in enumerate(tokens) if t.type == "ASSIGN")
        if tokens[at] != "=":
            raise ExpressionError("several results are assigned by '='", self._place(tokens[at]))
        names = tuple(str(t) for t in tokens[:at])
        arguments = cast("Sequence[Any]", tree.children[at + 2 :])
        return Call(names, str(tokens[at + 1]), tuple(map(self.value, arguments)), place)

    def value(self, tree: Any) -> Expr:
        """A value."""
        kind, children, place = str(tree.data), cast("list[Any]", tree.children), self._place(tree)
        if kind == "real":
            if isinf(number := float(children[0])):
                raise ExpressionError(f"{children[0]} is larger than any float64", place)
            return Number(number, place=place)
        if kind == "integer":
            return Number(whole_number(children[0], place), place=place)
        if kind == "name":
            return Name(str(children[0]), place=place)
        if kind == "read":
            return Read(str(children[0]), tuple(map(self.value, children[1:])), place=place)
        if kind == "select":
            return Apply("select", tuple(map(self.value, children)), place=place)
        if kind == "unary":
            name = "neg" if children[0] == "-" else "!"
            inner = self.value(children[1])
            if name == "neg" and isinstance(inner, Number):
                return Number(-inner.value, place=place)
            return Apply(name, (inner,), place=place)
        left, sign, right = children
        return Apply(str(sign), (self.value(left), self.value(right)), place=self._place(sign))


def _start(tree: Tree[Token]) -> tuple[int, int]:
    meta = tree.meta
    return (meta.line, meta.column) if not meta.empty else (1, 1)


def _is(tree: object, kind: str) -> bool:
    return isinstance(tree, Tree) and cast("Tree[Token]", tree).data == kind
