"""A nest of loops, and what the steps of a schedule do to it: who may stand where, and what each index is.

Plain data: the interpreter runs a nest point by point, emission prints it. A step that may not be taken is
refused where it is written. Loops begin as the indices of a statement, those of the result first, then those
that are reduced; what a step makes of them is kept in `origins`, from which every index follows.

Where the factor of a split does not divide an index of the result, the last part begins earlier, so that all
parts are whole: some elements are computed twice, alike. The last part of a reduced index is shorter.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from irkit.expressions.steps import Schedule, Step
from irkit.expressions.syntax import NOWHERE, ExpressionError, Place

MOST_UNROLLED = 256
"""Copies of the innermost statement."""
MOST_SUMS = 64
"""Sums that are under way together: more fill no registers."""
MOST_LANES = 64


@dataclass(frozen=True)
class Axis:
    """A loop: at most `extent` turns, of which a part of a bound index may have one fewer (`least`)."""

    name: str
    extent: int
    reduced: bool
    least: int
    mark: str = ""

    @property
    def whole(self) -> bool:
        """Whether it always has the same number of turns."""
        return self.least == self.extent


@dataclass(frozen=True)
class Split:
    """Index `of` is `outer` times `by`, and `inner`."""

    of: Axis
    outer: str
    inner: str
    by: int

    @property
    def exact(self) -> bool:
        """Whether all parts are whole, and none begins earlier."""
        return self.of.whole and self.of.extent % self.by == 0


@dataclass(frozen=True)
class Fused:
    """Indices `outer` and `inner` are the quotient and the remainder of `made` by the extent of `inner`."""

    outer: Axis
    inner: Axis
    made: str


@dataclass
class Nest:
    """Loops in order, outermost first. `indices` are the statement's, `operands` what it reads by name;
    `parts`: into how many an index is cut over the vEUs; `caches`: operand, the loop in each of whose turns
    it is copied ("": once), and where the step stands; `marks`: where a loop is marked."""

    indices: tuple[Axis, ...]
    operands: tuple[str, ...] = ()
    order: list[Axis] = field(default_factory=list[Axis])
    origins: list[Split | Fused] = field(default_factory=list[Split | Fused])
    parts: dict[str, int] = field(default_factory=dict[str, int])
    caches: dict[str, tuple[str, Place]] = field(default_factory=dict[str, tuple[str, Place]])
    marks: dict[str, Place] = field(default_factory=dict[str, Place])

    @property
    def grid(self) -> list[int]:
        """Into how many parts each index of the result is cut."""
        return [self.parts.get(a.name, 1) for a in self.indices if not a.reduced]

    @property
    def first_reduced(self) -> int:
        """The place of the outermost reduced loop, the number of loops where there is none."""
        return next((n for n, a in enumerate(self.order) if a.reduced), len(self.order))

    @property
    def vector(self) -> Axis | None:
        """The loop that is computed in vectors."""
        return next((a for a in self.order if a.mark == "vectorize"), None)

    def position(self, name: str) -> int:
        """The place of a loop."""
        return next(n for n, a in enumerate(self.order) if a.name == name)

    def sources(self, axis: str) -> set[str]:
        """The statement's indices that a loop moves."""
        found = {axis}
        for origin in reversed(self.origins):
            if isinstance(origin, Split) and found & {origin.outer, origin.inner}:
                found.add(origin.of.name)
            if isinstance(origin, Fused) and origin.made in found:
                found |= {origin.outer.name, origin.inner.name}
        return found & {a.name for a in self.indices}


def nest_of(
    schedule: Schedule,
    sizes: Sequence[int],
    parallel: int,
    loops: Sequence[str] = (),
    operands: Sequence[str] = (),
) -> Nest:
    """The nest that a schedule makes of loops of these `sizes`, the first `parallel` those of the result.

    `loops` and `operands` are their names where the schedule's text does not say them. Raises ExpressionError
    for a step that may not be taken.
    """
    names = schedule.loops or tuple(loops)
    if len(names) != len(sizes):
        raise ExpressionError(f"a schedule of {len(names)} loops for a nest of {len(sizes)}")
    axes = tuple(
        Axis(name, size, n >= parallel, size)
        for n, (name, size) in enumerate(zip(names, sizes, strict=True))
    )
    nest = Nest(axes, schedule.operands or tuple(operands), list(axes))
    for step in schedule.steps:
        if schedule.by_rule and len(schedule.steps) > 1:
            _refuse("'rule' beside other steps", step.place)
        TAKEN[step.kind](nest, step)
    _check(nest, schedule.steps)
    return nest


def _refuse(message: str, place: Place) -> NoReturn:
    raise ExpressionError(message, place)


def _axis(nest: Nest, step: Step, number: int) -> Axis:
    """The loop that a step names, which no step has taken away or marked."""
    name, known = step.names[number], [a.name for a in nest.order]
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        hint = f"; did you mean '{near[0]}'?" if near else f"; there are {', '.join(known)}"
        _refuse(f"'{step.kind}' of '{name}', which is no loop here{hint}", step.at(number))
    return nest.order[known.index(name)]


def _unmarked(nest: Nest, step: Step, number: int) -> Axis:
    axis = _axis(nest, step, number)
    if axis.mark:
        _refuse(f"'{step.kind}' of '{axis.name}' after '{axis.mark}' of it", step.at(number))
    return axis


def _fresh(nest: Nest, step: Step, names: Sequence[str]) -> None:
    taken = {a.name for a in nest.indices} | {a.name for a in nest.order}
    for origin in nest.origins:
        split = isinstance(origin, Split)
        taken |= {origin.outer, origin.inner} if split else {origin.made}
    for name in names:
        if name in taken:
            _refuse(f"there is a loop '{name}' already", step.at(step.names.index(name)))
        taken.add(name)


def _bind(nest: Nest, step: Step) -> None:
    """Cut an index of the result into even parts, one for each vEU; its name is then the part's."""
    axis = _unmarked(nest, step, 0)
    if axis not in nest.indices:
        _refuse(f"'bind' of '{axis.name}', which is no index of the statement", step.at(0))
    if axis.reduced:
        _refuse(f"'bind' of '{axis.name}', which is reduced: vEUs share no sums", step.at(0))
    if not 1 <= step.number <= axis.extent:
        _refuse(f"{step.number} parts of '{axis.name}', which has {axis.extent}", step.at(0))
    most, least = -(-axis.extent // step.number), axis.extent // step.number
    nest.order[nest.position(axis.name)] = Axis(axis.name, most, False, least)
    nest.parts[axis.name] = step.number


def _split(nest: Nest, step: Step) -> None:
    """One loop as two, the inner of so many turns."""
    axis = _unmarked(nest, step, 0)
    if not 1 <= step.number <= axis.least:
        _refuse(
            f"'split' of '{axis.name}' by {step.number}: expected 1 to {axis.least}, its turns",
            step.at(0),
        )
    if not _of_full_length(nest, axis):
        _refuse(f"'split' of '{axis.name}', whose last part is shorter", step.at(0))
    _fresh(nest, step, step.names[1:])
    by, at = step.number, nest.position(axis.name)
    split = Split(axis, step.names[1], step.names[2], by)
    most, least = -(-axis.extent // by), -(-axis.least // by)
    shorter = axis.reduced and not split.exact
    nest.order[at : at + 1] = [
        Axis(split.outer, most, axis.reduced, least),
        Axis(split.inner, by, axis.reduced, (axis.extent % by or by) if shorter else by),
    ]
    nest.origins.append(split)


def _of_full_length(nest: Nest, axis: Axis) -> bool:
    """Whether a loop is no shorter in some turns of another."""
    return axis.whole or not axis.reduced


def _fuse(nest: Nest, step: Step) -> None:
    """Two loops as one."""
    outer, inner = _unmarked(nest, step, 0), _unmarked(nest, step, 1)
    if nest.position(inner.name) != nest.position(outer.name) + 1:
        _refuse(
            f"'fuse' of '{outer.name}' and '{inner.name}', which are not side by side", step.at(1)
        )
    if outer.reduced != inner.reduced:
        _refuse(f"'fuse' of '{outer.name}' and '{inner.name}', of which one is reduced", step.at(1))
    for number, axis in enumerate((outer, inner)):
        if not axis.whole:
            _refuse(f"'fuse' of '{axis.name}', whose parts differ in length", step.at(number))
    _fresh(nest, step, step.names[2:])
    extent, at = outer.extent * inner.extent, nest.position(outer.name)
    nest.order[at : at + 2] = [Axis(step.names[2], extent, outer.reduced, extent)]
    nest.origins.append(Fused(outer, inner, step.names[2]))


def _reorder(nest: Nest, step: Step) -> None:
    """These loops in this order, at the places that they have together."""
    axes = [_axis(nest, step, n) for n in range(len(step.names))]
    places = sorted(nest.position(a.name) for a in axes)
    for place, axis in zip(places, axes, strict=True):
        nest.order[place] = axis
    for origin in nest.origins:
        names = [a.name for a in nest.order]
        if not isinstance(origin, Split) or not {origin.outer, origin.inner} <= set(names):
            continue
        if names.index(origin.inner) < names.index(origin.outer):
            moved = origin.inner if origin.inner in step.names else origin.outer
            where = step.at(step.names.index(moved))
            _refuse(
                f"'{origin.inner}' outside of '{origin.outer}', whose parts it runs over", where
            )


def _mark(nest: Nest, axis: Axis, step: Step) -> None:
    kind = step.kind
    nest.marks[axis.name] = step.at(0)
    marked = Axis(axis.name, axis.extent, axis.reduced, axis.least, kind)
    nest.order[nest.position(axis.name)] = marked


def _unroll(nest: Nest, step: Step) -> None:
    """The statement written out for every turn."""
    axis = _unmarked(nest, step, 0)
    if not axis.whole:
        _refuse(
            f"'unroll' of '{axis.name}', which has {axis.least} to {axis.extent} turns", step.at(0)
        )
    if axis.extent > MOST_UNROLLED:
        _refuse(
            f"'unroll' of '{axis.name}': {axis.extent} turns, of {MOST_UNROLLED} at most",
            step.at(0),
        )
    _mark(nest, axis, step)


def _vectorize(nest: Nest, step: Step) -> None:
    """All turns at once, in vector registers."""
    axis = _unmarked(nest, step, 0)
    if nest.vector is not None:
        _refuse(f"'vectorize' of '{axis.name}' after that of '{nest.vector.name}'", step.at(0))
    if axis.reduced:
        _refuse(f"'vectorize' of '{axis.name}', which is reduced: lanes are elements", step.at(0))
    lanes = axis.extent
    if not axis.whole or lanes & (lanes - 1) or not 2 <= lanes <= MOST_LANES:
        turns = lanes if axis.whole else f"{axis.least} to {lanes}"
        wanted = f"expected a power of two from 2 to {MOST_LANES}; split it"
        _refuse(f"'vectorize' of '{axis.name}' of {turns} turns: {wanted}", step.at(0))
    _mark(nest, axis, step)


def _cache(nest: Nest, step: Step) -> None:
    """Copy what a turn of a loop reads of an operand, in the order in which it is read."""
    name = step.names[0]
    if name not in nest.operands:
        known = ", ".join(nest.operands) or "none"
        _refuse(f"'cache' of '{name}', which is no operand; there are {known}", step.at(0))
    if name in nest.caches:
        _refuse(f"'{name}' is cached already", step.at(0))
    if len(step.names) > 1:
        _unmarked(nest, step, 1)
    nest.caches[name] = (step.names[1] if len(step.names) > 1 else "", step.at(0))


def _rule(nest: Nest, step: Step) -> None:
    """irkit's rule says the steps, once it is known what is fused around the nest."""


TAKEN = {
    "rule": _rule,
    "bind": _bind,
    "split": _split,
    "fuse": _fuse,
    "reorder": _reorder,
    "unroll": _unroll,
    "vectorize": _vectorize,
    "cache": _cache,
}
"""What each step does to a nest, or refuses to."""


def _check(nest: Nest, steps: Sequence[Step]) -> None:
    """What holds of a nest whose steps are all taken."""
    named = {name: step for step in steps for name in step.names}

    def place(axis: str) -> Place:
        step = named.get(axis)
        if step is None:
            return steps[-1].place if steps else NOWHERE
        return step.at(step.names.index(axis))

    reduces = any(a.reduced for a in nest.indices)
    for number, axis in enumerate(nest.order):
        reason = _misplaced(nest, number, axis, reduces)
        if reason is not None:
            _refuse(reason, place(axis.name))
    for split in nest.origins:
        if isinstance(split, Split) and split.of.reduced and not split.exact:
            _check_parts(nest, split, place)
    _check_text(nest, place)
    _check_places_of_copies(nest)


def _misplaced(nest: Nest, number: int, axis: Axis, reduces: bool) -> str | None:
    """Why a loop cannot stand where it does."""
    order, first = nest.order, nest.first_reduced
    if axis.mark == "vectorize" and number != len(order) - 1:
        return f"'{order[-1].name}' inside of '{axis.name}', which is a vector"
    if number > first and not axis.reduced and not axis.mark:
        over = order[first].name
        return f"'{axis.name}' inside of '{over}', which is reduced: put it outside, or unroll it"
    if reduces and number < first and axis.mark:
        hint = "put it inside of what is reduced"
        return f"'{axis.mark}' of '{axis.name}' writes whole loops out: {hint}"
    following = next((a for a in order[number + 1 :] if not a.mark), None)
    if axis.mark == "unroll" and following is not None:
        return f"'{axis.name}' is unrolled and '{following.name}' inside of it is not"
    return None


def _check_parts(nest: Nest, split: Split, place: Callable[[str], Place]) -> None:
    """The loop over a part that may be shorter stands inside of all that say which part it is."""
    outside = [nest.position(n) for n in _made_of(nest, split.outer)]
    for inner in _made_of(nest, split.inner):
        if nest.position(inner) < max(outside):
            reason = f"'{inner}' outside of '{split.outer}', of whose parts the last is shorter"
            _refuse(reason, place(inner))


def _made_of(nest: Nest, name: str) -> list[str]:
    """The loops that there are of one."""
    if any(a.name == name for a in nest.order):
        return [name]
    for origin in nest.origins:
        if isinstance(origin, Split) and origin.of.name == name:
            return [*_made_of(nest, origin.outer), *_made_of(nest, origin.inner)]
        if isinstance(origin, Fused) and name in (origin.outer.name, origin.inner.name):
            return _made_of(nest, origin.made)
    return []


def _check_text(nest: Nest, place: Callable[[str], Place]) -> None:
    """Neither too many sums nor too much text."""
    unrolled = [a for a in nest.order if a.mark == "unroll"]
    copies = math.prod(a.extent for a in unrolled)
    sums = math.prod(a.extent for a in unrolled if not a.reduced)
    if copies > MOST_UNROLLED or sums > MOST_SUMS:
        what = f"{sums} sums and {copies} copies of the statement"
        limits = f"of {MOST_SUMS} and {MOST_UNROLLED} at most"
        _refuse(f"{what} are unrolled, {limits}", place(unrolled[-1].name))


def _check_places_of_copies(nest: Nest) -> None:
    """Copies are made in the turns of loops that are run."""
    for operand, (loop, where) in nest.caches.items():
        if not loop:
            continue
        if loop not in {a.name for a in nest.order}:
            _refuse(f"'cache' of '{operand}' at '{loop}', which is no loop any more", where)
        if nest.order[nest.position(loop)].mark:
            _refuse(f"'cache' of '{operand}' at '{loop}', which is no loop that is run", where)
