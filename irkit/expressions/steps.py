"""Schedules as text, by lark: steps, each a rewrite of a nest of loops.

    for m, n, k of A, B       # names of the loops and of the operands, in order; `irkit.te.op` adds it
    bind m to veu in 2
    split n by 16 as no, ni
    reorder no, m, k, ni
    cache B at no
    vectorize ni

`rule` alone leaves the steps to irkit's rule. What each step does, and where it may not, is `nest.py`'s.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from irkit.expressions.grammar import unexpected, whole_number
from irkit.expressions.syntax import NOWHERE, ExpressionError, Place

_WORDS = (
    "rule|for|of|to|in|by|as|at|veu|thread|bind|split|fuse|reorder|unroll|vectorize|tensorise|cache"
)
GRAMMAR = r"""
start: header? step*
header: "for" names ["of" names] ";"?
names: NAME ("," NAME)*
step: (RULE | bind | split | fuse | reorder | unroll | vectorize | tensorise | cache) ";"?
bind: BIND NAME "to" ("veu" "in" INT | THREAD)
split: SPLIT NAME "by" INT ["as" NAME "," NAME]
fuse: FUSE NAME "," NAME ["as" NAME]
reorder: REORDER NAME ("," NAME)+
unroll: UNROLL NAME
vectorize: VECTORIZE NAME
tensorise: TENSORISE NAME "," NAME "," NAME
cache: CACHE NAME ["at" NAME] ["in" INT]
RULE.2: "rule"
BIND.2: "bind"
SPLIT.2: "split"
FUSE.2: "fuse"
REORDER.2: "reorder"
UNROLL.2: "unroll"
VECTORIZE.2: "vectorize"
TENSORISE.2: "tensorise"
CACHE.2: "cache"
THREAD.2: "thread"
INT: /\d+/
NAME: /(?!(WORDS)\b)[^\W\d]\w*/
%ignore /[ \t\r\n]+/
%ignore /(#|\/\/)[^\n]*/
""".replace("WORDS", _WORDS)


@dataclass(frozen=True)
class Step:
    """One step: what `kind` does to the loops of `names` (of `cache`, the operand and perhaps a loop), with a
    `number` where it takes one. To bind to threads is of kind `thread`. `places` are those of the names,
    `place` that of the step."""

    kind: str
    names: tuple[str, ...]
    number: int = 0
    place: Place = field(default=NOWHERE, compare=False, repr=False)
    places: tuple[Place, ...] = field(default=(), compare=False, repr=False)

    def at(self, number: int) -> Place:
        """Where a name stands."""
        return self.places[number] if number < len(self.places) else self.place

    @property
    def word(self) -> str:
        """What it begins with."""
        return "bind" if self.kind == "thread" else self.kind

    def __str__(self) -> str:
        if not self.names:
            return self.kind
        first, rest = self.names[0], self.names[1:]
        if self.kind == "bind":
            return f"bind {first} to veu in {self.number}"
        if self.kind == "thread":
            return f"bind {first} to thread"
        if self.kind == "split":
            return f"split {first} by {self.number} as {', '.join(rest)}"
        if self.kind == "fuse":
            return f"fuse {first}, {rest[0]} as {rest[1]}"
        if self.kind == "cache":
            buffers = f" in {self.number}" if self.number else ""
            return f"cache {' at '.join(self.names)}{buffers}"
        return f"{self.kind} {', '.join(self.names)}"


@dataclass(frozen=True)
class Schedule:
    """Steps, and the names of the loops and operands that they are about, in order; none where the text does
    not say them."""

    loops: tuple[str, ...]
    operands: tuple[str, ...]
    steps: tuple[Step, ...]

    @property
    def by_rule(self) -> bool:
        """Whether irkit's rule says the steps."""
        return any(step.kind == "rule" for step in self.steps)

    def __str__(self) -> str:
        of = f" of {', '.join(self.operands)}" if self.operands else ""
        head = [f"for {', '.join(self.loops)}{of}"] if self.loops else []
        return "; ".join([*head, *map(str, self.steps)])


@lru_cache(maxsize=1)
def _parser() -> Lark:
    return Lark(GRAMMAR, parser="lalr", propagate_positions=True, maybe_placeholders=False)


@lru_cache(maxsize=512)
def schedule_of(text: str) -> Schedule:
    """The schedule that a text says.

    Raises ExpressionError, with the line, the column and what was expected there.
    """
    try:
        tree = cast("Any", _parser()).parse(text)
    except UnexpectedInput as error:
        raise unexpected(text, error, _parser().terminals, "schedule") from None
    heads = [list(t.find_data("names")) for t in tree.find_data("header")]
    named = [tuple(str(n) for n in names.children) for names in (heads[0] if heads else [])]
    loops, operands = (*named, (), ())[:2]
    steps = [_step(text, t.children[0]) for t in tree.find_data("step")]
    # Found from inside out; the text's order is that of places.
    steps.sort(key=lambda s: (s.place.line, s.place.column))
    return Schedule(loops, operands, tuple(steps))


def _step(text: str, tree: Tree[Token] | Token) -> Step:
    tokens = [tree] if isinstance(tree, Token) else cast("list[Token]", tree.children)
    kind, *tokens = tokens
    if any(t.type == "THREAD" for t in tokens):
        kind = Token("THREAD", "thread", line=kind.line, column=kind.column)
    names = [t for t in tokens if t.type == "NAME"]
    whole = [whole_number(t, _place(text, t)) for t in tokens if t.type == "INT"]
    number = whole[0] if whole else 0
    written = [str(t) for t in names]
    if kind == "cache" and whole == [0]:
        raise ExpressionError(f"0 buffers of '{written[0]}'", _place(text, names[0]))
    if kind == "split" and len(written) == 1:
        written += [f"{written[0]}o", f"{written[0]}i"]
    if kind == "fuse" and len(written) == 2:
        written.append("".join(written))
    if kind in ("reorder", "fuse", "tensorise") and len(set(written)) < len(written):
        raise ExpressionError(f"a loop twice in '{kind}'", _place(text, names[0]))
    return Step(
        str(kind), tuple(written), number, _place(text, kind), tuple(_place(text, t) for t in names)
    )


def _place(text: str, token: Token) -> Place:
    return Place(text, token.line or 1, token.column or 1, "schedule")
