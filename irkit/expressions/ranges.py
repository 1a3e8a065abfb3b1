"""Over which ranges the indices of a statement run: said by it, or inferred from the tensors that it reads.

As in Tensor Comprehensions, in rounds: in each, an index gets the largest range over which all reads that
have no other index without a range stay within their tensors. A read under a condition says nothing of the
indices that this is about, and must be proved to stay within its tensor where the condition holds. Nothing
is guessed: what hangs on several such indices at once is ambiguous, and what may lie outside is refused,
or, where that hangs on values of tensors, noted to be checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from irkit.expressions.affine import Bounds, Linear, bounds_of, conditions, linear
from irkit.expressions.syntax import (
    Apply,
    Expr,
    ExpressionError,
    Name,
    Read,
    Statement,
    names_of,
    walk,
)

Shape = tuple[int, ...]
LARGEST = 2**63 - 1
"""The last address, and the largest index."""


@dataclass(frozen=True)
class Loop:
    """An index, from `low` to below `high`."""

    name: str
    low: int
    high: int

    @property
    def size(self) -> int:
        """How many values it has."""
        return self.high - self.low

    def __str__(self) -> str:
        return f"{self.name} in {self.low}:{self.high}"


@dataclass(frozen=True)
class Checked:
    """Index `number` of a read must be from 0 to below `size` where all of `conditions` hold."""

    read: Read
    number: int
    size: int
    conditions: tuple[Expr, ...]


@dataclass(frozen=True)
class Domain:
    """What a statement runs over: loops of the result's indices, in order, then those that are reduced."""

    parallel: tuple[Loop, ...]
    reduced: tuple[Loop, ...]
    checked: tuple[Checked, ...] = ()
    """Indices that hang on values, and are to be checked in a run."""

    @property
    def loops(self) -> tuple[Loop, ...]:
        """All of them."""
        return (*self.parallel, *self.reduced)

    @property
    def shape(self) -> Shape:
        """The result's."""
        return tuple(loop.size for loop in self.parallel)

    @property
    def bounds(self) -> dict[str, Bounds]:
        """The first and last value of each index."""
        return {loop.name: (loop.low, loop.high - 1) for loop in self.loops}

    def __str__(self) -> str:
        return ", ".join(map(str, self.loops))


@dataclass(frozen=True)
class Guarded:
    """A read, and the conditions that it stands under."""

    read: Read
    conditions: tuple[Expr, ...] = ()

    @property
    def held(self) -> list[Linear]:
        """What is at least 0 where it counts."""
        return [one for c in self.conditions for one in conditions(c)]

    def concerns(self, index: Linear) -> bool:
        """Whether a condition is about what is in `index`, which then says nothing of ranges."""
        return any(name in names_of(c) for c in self.conditions for name in index.names)


def guarded_reads(expr: Expr, under: tuple[Expr, ...] = ()) -> Iterator[Guarded]:
    """All reads of a value, with the conditions that they stand under."""
    if isinstance(expr, Read):
        yield Guarded(expr, under)
        for inner in expr.indices:
            yield from guarded_reads(inner, under)
        return
    if not isinstance(expr, Apply):
        return
    first, *rest = expr.arguments
    yield from guarded_reads(first, under)
    if expr.function == "select":
        yield from guarded_reads(rest[0], (*under, first))
        yield from guarded_reads(rest[1], (*under, Apply("!", (first,), place=first.place)))
    elif expr.function != "like":
        for inner in rest:
            yield from guarded_reads(inner, under)


def infer(statement: Statement, shapes: Mapping[str, Shape]) -> Domain:
    """The ranges of all indices of a statement whose sizes are numbers. Raises ExpressionError, at its
    place, for what is ambiguous or may lie out of bounds."""
    _check_ranks(statement, shapes)
    names = _names(statement)
    known = _said(statement)
    reads = list(guarded_reads(statement.value))
    reads += [Guarded(read) for read in statement.exists]
    if not statement.fresh:
        own = tuple(Name(n) for n in statement.indices)
        reads.append(Guarded(Read(statement.target, own, place=statement.place)))
    _resolve(known, reads, shapes)
    _check_all(statement, names, known)
    domain = _domain(statement, names, known)
    checked = _check_bounds(statement, domain, shapes, reads[-1:] if not statement.fresh else [])
    return Domain(domain.parallel, domain.reduced, tuple(checked))


def _names(statement: Statement) -> list[str]:
    """All indices: those of the result first."""
    found = list(statement.indices)
    for read in statement.exists:
        found += names_of(read)
    found += names_of(statement.value)
    found += [r.name for r in statement.ranges]
    return list(dict.fromkeys(found))


def _check_ranks(statement: Statement, shapes: Mapping[str, Shape]) -> None:
    every = [e for value in (statement.value, *statement.exists) for e in walk(value)]
    for read in (e for e in every if isinstance(e, Read)):
        rank = len(shapes[read.tensor])
        if rank != len(read.indices):
            raise ExpressionError(
                f"'{read.tensor}' has {rank} dimension(s), and {len(read.indices)} index(es) here",
                read.place,
            )


def _said(statement: Statement) -> dict[str, Bounds]:
    known: dict[str, Bounds] = {}
    for one in statement.ranges:
        low, high = linear(one.low), linear(one.high)
        if low is None or high is None or low.terms or high.terms:
            raise ExpressionError(f"the range of '{one.name}' is of numbers and sizes", one.place)
        if one.name in known:
            raise ExpressionError(f"'{one.name}' has two ranges", one.place)
        if low.constant >= high.constant:
            shown = f"{low.constant}:{high.constant}"
            raise ExpressionError(f"the range {shown} of '{one.name}' is empty", one.place)
        known[one.name] = (low.constant, high.constant - 1)
    return known


def _resolve(
    known: dict[str, Bounds],
    reads: Sequence[Guarded],
    shapes: Mapping[str, Shape],
) -> None:
    """Round after round, ranges of indices that reads say, into `known`."""
    accesses = [
        (index, size)
        for one in reads
        for expr, size in zip(one.read.indices, shapes[one.read.tensor], strict=True)
        if (index := linear(expr)) is not None and not one.concerns(index)
    ]
    while True:
        found: dict[str, Bounds] = {}
        for index, size in accesses:
            left = [n for n in index.names if n not in known]
            if len(left) == 1:
                limits = _solved(index, left[0], size, known)
                low, high = found.get(left[0], limits)
                found[left[0]] = max(low, limits[0]), min(high, limits[1])
        for name, (low, high) in found.items():
            if low > high:
                raise ExpressionError(
                    f"'{name}' has no value for which all reads are within their tensors",
                    next(g.read.place for g in reads if name in names_of(g.read)),
                )
        if not found:
            return
        known.update(found)


def _solved(index: Linear, name: str, size: int, known: Mapping[str, Bounds]) -> Bounds:
    """The largest range of `name` over which `index` is from 0 to below `size`, whatever the other indices
    in it are."""
    factor = index.factor(name)
    low, high = (index - Linear(0, ((name, factor),))).bounds(known)
    # low + factor * i >= 0 and high + factor * i <= size - 1, rounded inwards.
    least, most = -low, size - 1 - high
    if factor < 0:
        factor, least, most = -factor, -most, -least
    return -(-least // factor), most // factor


def _check_all(statement: Statement, names: Sequence[str], known: Mapping[str, Bounds]) -> None:
    """Every index has a range."""
    left = [n for n in names if n not in known]
    if not left:
        return
    shown = ", ".join(f"'{n}'" for n in left)
    every = [e for e in walk(statement.value) if isinstance(e, Name) and e.name == left[0]]
    place = every[0].place if every else statement.place
    raise ExpressionError(
        f"ambiguous: no read says alone over which range {shown} runs; write `where {left[0]} in 0:SIZE`",
        place,
    )


def _domain(statement: Statement, names: Sequence[str], known: Mapping[str, Bounds]) -> Domain:
    loops = {n: Loop(n, known[n][0], known[n][1] + 1) for n in names}
    for name in statement.indices:
        if loops[name].low != 0:
            raise ExpressionError(
                f"'{name}' starts at {loops[name].low}, so that '{statement.target}' had no first element: "
                "shift the index, or say its range",
                statement.place,
            )
    parallel = tuple(loops[n] for n in statement.indices)
    reduced = tuple(loops[n] for n in names if n not in statement.indices)
    if reduced and not statement.operator:
        raise ExpressionError(
            f"'{reduced[0].name}' is no index of '{statement.target}': reduce over it, with +=! or max=!",
            statement.place,
        )
    return Domain(parallel, reduced)


def _check_bounds(
    statement: Statement, domain: Domain, shapes: Mapping[str, Shape], extra: Sequence[Guarded]
) -> list[Checked]:
    """Reads whose indices hang on values. Raises ExpressionError for one that may be out of bounds."""
    checked: list[Checked] = []
    for guarded in [*guarded_reads(statement.value), *extra]:
        read = guarded.read
        for number, (expr, size) in enumerate(zip(read.indices, shapes[read.tensor], strict=True)):
            _check_wrapping(expr, domain)
            bounds = bounds_of(expr, domain.bounds, guarded.held)
            if bounds is None:
                checked.append(Checked(read, number, size, guarded.conditions))
            elif bounds[0] > bounds[1]:
                continue  # Under a condition that never holds.
            elif bounds[0] < 0 or bounds[1] >= size:
                raise ExpressionError(
                    f"index {number} of '{read.tensor}' may be from {bounds[0]} to {bounds[1]}, and its "
                    f"size is {size} ({domain})",
                    expr.place if expr.place.line else read.place,
                )
    return checked


def _check_wrapping(expr: Expr, domain: Domain) -> None:
    """Raises ExpressionError where a part of an index may be none of the int64s that it is computed in."""
    for part in walk(expr):
        known = bounds_of(part, domain.bounds, ())
        if known is not None and not -(2**63) <= known[0] <= known[1] < 2**63:
            raise ExpressionError(
                f"part of an index may be from {known[0]} to {known[1]}, which no int64 is ({domain})",
                part.place,
            )


def check_whole(statement: Statement, domain: Domain, shape: Shape) -> None:
    """Raises ExpressionError for what adds to a part of a tensor of `shape`: only that would be left."""
    if domain.shape != shape:
        raise ExpressionError(
            f"'{statement.target}' has shape {list(shape)}, and this is added to {list(domain.shape)} of it: "
            "add to all of it, or give the sum another name",
            statement.place,
        )


def check_size(statement: Statement, domain: Domain, itemsize: int) -> None:
    """Raises ExpressionError for more turns than an int64 counts, and results beyond what has addresses."""
    turns = prod(loop.size for loop in domain.loops)
    if turns * itemsize > LARGEST or any(x.high > LARGEST for x in domain.loops):
        raise ExpressionError(
            f"'{statement.target}' over {domain}: more elements of {itemsize} bytes than there are addresses",
            statement.place,
        )
