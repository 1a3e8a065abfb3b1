"""Derivatives of statements, as statements: of what they reduce over, and which index of a read comes from
where.

In reverse mode, of `out(i) +=! f(A(e(i, k)), ...)`, the cotangent of A at p is the sum, over all i and k
with e(i, k) = p, of the cotangent of out at i times the slope of f. An index that e has is solved for: it
is p less the rest, divided by what it is multiplied by. Where that is an index of out outside of its range,
or between two, the cotangent counts as 0: it is spread out and padded, so that a product's gradient is a
product again, a convolution's a convolution. What cannot be solved for is compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from irkit.expressions.affine import Linear, bounds_of, linear
from irkit.expressions.binding import Step
from irkit.expressions.ranges import Domain, Loop, infer
from irkit.expressions.slopes import ONE, ZERO, slope, times
from irkit.expressions.syntax import (
    Apply,
    Expr,
    ExpressionError,
    Name,
    Number,
    Range,
    Read,
    Statement,
    names_of,
    reads_of,
    rebuilt,
)

CHANGE, RESULT, SHARE, OTHERS = "change_", "result_", "share_", "others_"
"""Names of tensors in derivatives: the cotangent or tangent, the statement's result, how many elements are
the largest of each, products of all others."""


@dataclass(frozen=True)
class Spread:
    """A dimension of the cotangent: its elements `step` apart, and zeros around: `low` before them, and
    behind until there are `size`."""

    step: int
    low: int
    size: int


@dataclass(frozen=True)
class Reverse:
    """A statement that gives (a part of) the cotangent of an operand, of a cotangent that is spread out
    first."""

    statement: Statement
    spread: tuple[Spread, ...]


def canonical(step: Step) -> Step:
    """The same statement under other names, which are none of those that derivatives have beside them."""
    tensors = {name: f"T{n}" for n, name in enumerate(step.operands)}
    indices = {loop.name: f"i{n}" for n, loop in enumerate(step.domain.loops)}

    def named(expr: Expr) -> Expr | None:
        if isinstance(expr, Name):
            return Name(indices[expr.name])
        if isinstance(expr, Read):
            return Read(tensors[expr.tensor], tuple(rebuilt(e, named) for e in expr.indices))
        return None

    loops = [Loop(indices[x.name], x.low, x.high) for x in step.domain.loops]
    count = len(step.domain.parallel)
    statement = Statement(
        "O",
        tuple(indices[i] for i in step.statement.indices),
        step.statement.operator,
        True,
        rebuilt(step.statement.value, named),
        _ranges(loops),
    )
    domain = Domain(tuple(loops[:count]), tuple(loops[count:]))
    shapes = {tensors[name]: step.shapes[name] for name in step.operands}
    return Step(statement, domain, step.dtype, tuple(tensors.values()), shapes)


def value_slope(step: Step, read: Read, change: Expr = ONE) -> Expr | None:
    """How an element of the result changes by a `change` of an element that a term reads, for values of all
    indices.

    None if it is 0."""
    statement = step.statement
    own = slope(statement.value, read, change)
    if own is None:
        return None
    indices = tuple(Name(i) for i in statement.indices)
    if statement.operator in ("max", "min"):
        largest = Apply("==", (statement.value, Read(RESULT, indices)))
        share = Apply("/", (own, Read(SHARE, indices)))
        return Apply("select", (largest, share, ZERO))
    if statement.operator == "*":
        inner = tuple(_shifted(loop.name, -loop.low) for loop in step.domain.reduced)
        return times(Read(OTHERS, (*indices, *inner)), own)
    return own


def _shifted(name: str, by: int) -> Expr:
    return _expr(Linear(by, ((name, 1),)))


def helpers(step: Step) -> dict[str, Statement]:
    """Statements that slopes read the results of, by name."""
    statement, domain = step.statement, step.domain
    ranges = _ranges(domain.loops)
    indices = tuple(Name(i) for i in statement.indices)
    if statement.operator in ("max", "min"):
        own = Read(RESULT, indices)
        one = Apply("like", (ONE, own))
        value = Apply("select", (Apply("==", (statement.value, own)), one, ZERO))
        return {SHARE: Statement(SHARE, statement.indices, "+", True, value, ranges)}
    if statement.operator != "*":
        return {}
    places = {loop.name: f"{loop.name}_place" for loop in domain.reduced}
    same: Expr | None = None
    for loop in domain.reduced:
        equal = Apply("==", (Name(loop.name), _shifted(places[loop.name], loop.low)))
        same = equal if same is None else Apply("&&", (same, equal))
    one = Apply("like", (ONE, statement.value))
    value = statement.value if same is None else Apply("select", (same, one, statement.value))
    if same is None:
        value = one
    places_ranges = tuple(Range(places[x.name], Number(0), Number(x.size)) for x in domain.reduced)
    names = (*statement.indices, *places.values())
    return {OTHERS: Statement(OTHERS, names, "*", True, value, (*ranges, *places_ranges))}


def forward(step: Step, tensor: str) -> list[Statement]:
    """Statements whose results add up to the change of the result that a change of one operand makes."""
    found: list[Statement] = []
    for read in _reads(step, tensor):
        value = value_slope(step, read, replace(read, tensor=CHANGE))
        if value is not None:
            found.append(_summed(step, step.statement.indices, value, step.domain.loops))
    return found


def _reads(step: Step, tensor: str) -> list[Read]:
    every = reads_of(step.statement.value)
    return list(dict.fromkeys(r for r in every if r.tensor == tensor))


def _ranges(loops: Sequence[Loop]) -> tuple[Range, ...]:
    return tuple(Range(x.name, Number(x.low), Number(x.high)) for x in loops)


def _summed(step: Step, indices: Sequence[str], value: Expr, loops: Sequence[Loop]) -> Statement:
    reduced = any(loop.name not in indices for loop in loops)
    return Statement("d", tuple(indices), "+" if reduced else "", True, value, _ranges(loops))


def reverse(step: Step, tensor: str) -> list[Reverse]:
    """Statements whose results add up to the cotangent of one operand."""
    shape = step.shapes[tensor]
    found: list[Reverse] = []
    for read in _reads(step, tensor):
        own = value_slope(step, read)
        if own is None:
            continue
        one = _Transposition(step, shape).reversed(read, own)
        if not _is_proved(step, one):
            one = _Transposition(step, shape, solving=False).reversed(read, own)
        found.append(one)
    return found


def _is_proved(step: Step, one: Reverse) -> bool:
    """Whether all that a statement reads is seen to be in bounds."""
    domain = step.domain
    others = (*domain.shape, *(loop.size for loop in domain.reduced))
    shapes = {**step.shapes, RESULT: domain.shape, SHARE: domain.shape, OTHERS: others}
    try:
        infer(one.statement, {**shapes, CHANGE: tuple(s.size for s in one.spread)})
    except ExpressionError:
        return False
    return True


@dataclass
class _Transposition:
    """From the indices of a read to the indices that it is read at. Without `solving` all are compared."""

    step: Step
    shape: tuple[int, ...]
    solving: bool = True
    loops: dict[str, Loop] = field(default_factory=dict[str, Loop])
    solved: dict[str, Expr] = field(default_factory=dict[str, Expr])
    conditions: list[Expr] = field(default_factory=list[Expr])

    def reversed(self, read: Read, own: Expr) -> Reverse:
        """The statement for one read."""
        domain = self.step.domain
        places = [f"p{d}_" for d in range(len(self.shape))]
        self.loops = {
            name: Loop(name, 0, size) for name, size in zip(places, self.shape, strict=True)
        }
        self.loops |= {loop.name: loop for loop in domain.loops}
        spread = [Spread(1, 0, loop.size) for loop in domain.parallel]
        change: list[Expr] = [Name(loop.name) for loop in domain.parallel]
        for d, (place, expr) in enumerate(zip(places, read.indices, strict=True)):
            name = self._candidate(expr)
            if name is None:
                self._compare(expr, place, self.shape[d])
                continue
            number = next((n for n, x in enumerate(domain.parallel) if x.name == name), None)
            rest, factor = self._solve(expr, name, place)
            loop = self.loops.pop(name)
            elsewhere = [own, *(e for n, e in enumerate(read.indices) if n != d)]
            if number is not None and not any(name in names_of(e) for e in elsewhere):
                spread[number] = self._spread(rest, factor, loop)
                change[number] = _expr(rest + Linear(spread[number].low))
            else:
                self.solved[name] = self._within(rest, factor, loop)
        value = times(Read(CHANGE, tuple(map(self._filled, change))), self._filled(own))
        for condition in map(self._filled, reversed(self.conditions)):
            value = Apply("select", (condition, value, ZERO))
        loops = list(self.loops.values())
        return Reverse(_summed(self.step, places, value, loops), tuple(spread))

    def _candidate(self, expr: Expr) -> str | None:
        """The index to solve for, of those not solved for yet: of the largest range."""
        known = linear(self._filled(expr)) if self.solving else None
        names = [] if known is None else [n for n in known.names if n in self._own]
        return max(names, key=lambda n: self.loops[n].size, default=None)

    @property
    def _own(self) -> set[str]:
        return {x.name for x in self.step.domain.loops if x.name in self.loops}

    def _solve(self, expr: Expr, name: str, place: str) -> tuple[Linear, int]:
        """What the index is times `factor`, which is positive."""
        known = linear(self._filled(expr))
        assert known is not None
        factor = known.factor(name)
        rest = Linear(0, ((place, 1),)) - (known - Linear(0, ((name, factor),)))
        return (rest, factor) if factor > 0 else (rest.times(-1), -factor)

    def _bounds(self) -> Mapping[str, tuple[int, int]]:
        return {n: (x.low, x.high - 1) for n, x in self.loops.items()}

    def _spread(self, rest: Linear, factor: int, loop: Loop) -> Spread:
        low, high = rest.bounds(self._bounds())
        before = max(0, -low)
        return Spread(factor, before, max(high + 1, factor * loop.size) + before)

    def _within(self, rest: Linear, factor: int, loop: Loop) -> Expr:
        """The index; where it is none of its loop's, that is a condition."""
        low, high = rest.bounds(self._bounds())
        shown = _expr(rest)
        if low < factor * loop.low:
            self.conditions.append(Apply(">=", (shown, Number(factor * loop.low))))
        if high > factor * (loop.high - 1):
            self.conditions.append(Apply("<=", (shown, Number(factor * (loop.high - 1)))))
        if factor == 1:
            return shown
        self.conditions.append(Apply("==", (Apply("%", (shown, Number(factor))), Number(0))))
        return Apply("/", (shown, Number(factor)))

    def _compare(self, expr: Expr, place: str, size: int) -> None:
        """Only terms that read at `place` count; what hangs on values is taken into its dimension, as it is
        read."""
        shown = self._filled(expr)
        if bounds_of(shown, self._bounds(), []) is None:
            inside = Apply("max", (Apply("int64", (shown,)), Number(0)))
            shown = Apply("min", (inside, Number(size - 1)))
        self.conditions.append(Apply("==", (shown, Name(place))))

    def _filled(self, expr: Expr) -> Expr:
        """With what was solved for in the place of its index."""

        def fill(part: Expr) -> Expr | None:
            found = self.solved.get(part.name) if isinstance(part, Name) else None
            return None if found is None else rebuilt(found, fill)

        return rebuilt(expr, fill)


def _expr(one: Linear) -> Expr:
    """A sum of multiples as an expression."""
    result: Expr | None = None
    for name, factor in sorted(one.terms, key=lambda t: t[1] < 0):
        term: Expr = Name(name)
        if abs(factor) != 1:
            term = Apply("*", (Number(abs(factor)), term))
        if result is None:
            result = term if factor > 0 else Apply("neg", (term,))
        else:
            result = Apply("+" if factor > 0 else "-", (result, term))
    if result is None:
        return Number(one.constant)
    if not one.constant:
        return result
    sign = "+" if one.constant > 0 else "-"
    return Apply(sign, (result, Number(abs(one.constant))))
