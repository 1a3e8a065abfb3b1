"""A nest of loops, and what the steps of a schedule do to it: who may stand where, and what each index is.

Plain data: the interpreter runs a nest point by point, emission prints it. A step that may not be taken is
refused where it is written. Loops begin as the indices of a statement, those of the result first, then those
that are reduced; what a step makes of them is kept in `origins`, from which every index follows.

Where the factor of a split does not divide an index of the result, the last part begins earlier, so that all
parts are whole: some elements are computed twice, alike. The last part of a reduced index is shorter.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from irkit.expressions.loops import TENSOR, Axis, Fused, Nest, Split
from irkit.expressions.nest_checks import MOST_UNROLLED, check, refuse
from irkit.expressions.steps import Schedule, Step
from irkit.expressions.syntax import ExpressionError

MOST_LANES = 64
MOST_BUFFERS = 8


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
            refuse("'rule' beside other steps", step.place)
        TAKEN[step.kind](nest, step)
    check(nest, schedule.steps)
    return nest


def _axis(nest: Nest, step: Step, number: int) -> Axis:
    """The loop that a step names, which no step has taken away or marked."""
    name, known = step.names[number], [a.name for a in nest.order]
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        hint = f"; did you mean '{near[0]}'?" if near else f"; there are {', '.join(known)}"
        refuse(f"'{step.word}' of '{name}', which is no loop here{hint}", step.at(number))
    return nest.order[known.index(name)]


def _unmarked(nest: Nest, step: Step, number: int) -> Axis:
    axis = _axis(nest, step, number)
    if axis.mark:
        refuse(f"'{step.word}' of '{axis.name}' after '{axis.mark}' of it", step.at(number))
    return axis


def _fresh(nest: Nest, step: Step, names: Sequence[str]) -> None:
    taken = {a.name for a in nest.indices} | {a.name for a in nest.order}
    for origin in nest.origins:
        split = isinstance(origin, Split)
        taken |= {origin.outer, origin.inner} if split else {origin.made}
    for name in names:
        if name in taken:
            refuse(f"there is a loop '{name}' already", step.at(step.names.index(name)))
        taken.add(name)


def _bind(nest: Nest, step: Step) -> None:
    """Cut an index into even parts, one for each vEU; its name is then the part's. Parts of a reduced one are
    summed by vEUs of their own, and then together: as many terms in each."""
    axis = _unmarked(nest, step, 0)
    if axis not in nest.indices:
        refuse(f"'bind' of '{axis.name}', which is no index of the statement", step.at(0))
    if not 1 <= step.number <= axis.extent:
        refuse(f"{step.number} parts of '{axis.name}', which has {axis.extent}", step.at(0))
    if axis.reduced and axis.extent % step.number:
        reason = f"{step.number} parts of '{axis.name}', which is reduced and has {axis.extent}"
        refuse(f"{reason}: parts of a sum have as many terms each", step.at(0))
    most, least = -(-axis.extent // step.number), axis.extent // step.number
    nest.order[nest.position(axis.name)] = Axis(axis.name, most, axis.reduced, least)
    nest.parts[axis.name] = step.number


def _split(nest: Nest, step: Step) -> None:
    """One loop as two, the inner of so many turns."""
    axis = _unmarked(nest, step, 0)
    if not 1 <= step.number <= axis.least:
        refuse(
            f"'split' of '{axis.name}' by {step.number}: expected 1 to {axis.least}, its turns",
            step.at(0),
        )
    if not _of_full_length(nest, axis):
        refuse(f"'split' of '{axis.name}', whose last part is shorter", step.at(0))
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
        refuse(
            f"'fuse' of '{outer.name}' and '{inner.name}', which are not side by side", step.at(1)
        )
    if outer.reduced != inner.reduced:
        refuse(f"'fuse' of '{outer.name}' and '{inner.name}', of which one is reduced", step.at(1))
    for number, axis in enumerate((outer, inner)):
        if not axis.whole:
            refuse(f"'fuse' of '{axis.name}', whose parts differ in length", step.at(number))
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
            refuse(f"'{origin.inner}' outside of '{origin.outer}', whose parts it runs over", where)


def _mark(nest: Nest, axis: Axis, step: Step) -> None:
    kind = step.kind
    nest.marks[axis.name] = step.at(0)
    marked = Axis(axis.name, axis.extent, axis.reduced, axis.least, kind)
    nest.order[nest.position(axis.name)] = marked


def _unroll(nest: Nest, step: Step) -> None:
    """The statement written out for every turn."""
    axis = _unmarked(nest, step, 0)
    if not axis.whole:
        refuse(
            f"'unroll' of '{axis.name}', which has {axis.least} to {axis.extent} turns", step.at(0)
        )
    if axis.extent > MOST_UNROLLED:
        refuse(
            f"'unroll' of '{axis.name}': {axis.extent} turns, of {MOST_UNROLLED} at most",
            step.at(0),
        )
    _mark(nest, axis, step)


def _vectorize(nest: Nest, step: Step) -> None:
    """All turns at once, in vector registers."""
    axis = _unmarked(nest, step, 0)
    if nest.vector is not None:
        refuse(f"'vectorize' of '{axis.name}' after that of '{nest.vector.name}'", step.at(0))
    if axis.reduced:
        refuse(f"'vectorize' of '{axis.name}', which is reduced: lanes are elements", step.at(0))
    lanes = axis.extent
    if not axis.whole or lanes & (lanes - 1) or not 2 <= lanes <= MOST_LANES:
        turns = lanes if axis.whole else f"{axis.least} to {lanes}"
        wanted = f"expected a power of two from 2 to {MOST_LANES}; split it"
        refuse(f"'vectorize' of '{axis.name}' of {turns} turns: {wanted}", step.at(0))
    _mark(nest, axis, step)


def _tensorise(nest: Nest, step: Step) -> None:
    """Rows, columns and terms of a product, by one operation of the hardware."""
    axes = [_unmarked(nest, step, n) for n in range(3)]
    if nest.tensor is not None:
        refuse("'tensorise' after another", step.place)
    for number, (axis, what) in enumerate(zip(axes, ("rows", "columns", "terms"), strict=True)):
        if axis.reduced != (number == 2):
            kind = "reduced" if axis.reduced else "an index of the result"
            refuse(f"'tensorise' of '{axis.name}' as {what}, which is {kind}", step.at(number))
        if not axis.whole and number < 2:
            turns = f"{axis.least} to {axis.extent} turns"
            refuse(f"'tensorise' of '{axis.name}' of {turns}: split it", step.at(number))
        nest.marks[axis.name] = step.at(number)
        marked = Axis(axis.name, axis.extent, axis.reduced, axis.least, TENSOR)
        nest.order[nest.position(axis.name)] = marked
    nest.tensor = (axes[0].name, axes[1].name, axes[2].name)


def _thread(nest: Nest, step: Step) -> None:
    """A turn of the loop for each thread of a block."""
    axis = _unmarked(nest, step, 0)
    if not axis.whole and not axis.reduced:
        refuse(
            f"threads of '{axis.name}', which has {axis.least} to {axis.extent} turns: split it",
            step.at(0),
        )
    _mark(nest, axis, step)


def _cache(nest: Nest, step: Step) -> None:
    """Copy what a turn of a loop reads of an operand, in the order in which it is read."""
    name = step.names[0]
    if name not in nest.operands:
        known = ", ".join(nest.operands) or "none"
        refuse(f"'cache' of '{name}', which is no operand; there are {known}", step.at(0))
    if name in nest.caches:
        refuse(f"'{name}' is cached already", step.at(0))
    if len(step.names) > 1:
        _unmarked(nest, step, 1)
    if step.number:
        _buffers(nest, step)
    nest.caches[name] = (step.names[1] if len(step.names) > 1 else "", step.at(0))


def _buffers(nest: Nest, step: Step) -> None:
    """Copies that go into so many buffers by turns: one is filled while another is read."""
    name, *loops = step.names
    if not loops:
        refuse(f"{step.number} buffers of '{name}', which is copied once", step.at(0))
    if not 1 <= step.number <= MOST_BUFFERS:
        reason = f"expected 1 to {MOST_BUFFERS}"
        refuse(f"{step.number} buffers of '{name}': {reason}", step.at(0))
    nest.buffers[name] = step.number


def _rule(nest: Nest, step: Step) -> None:
    """irkit's rule says the steps, once it is known what is fused around the nest."""


TAKEN = {
    "rule": _rule,
    "bind": _bind,
    "thread": _thread,
    "split": _split,
    "fuse": _fuse,
    "reorder": _reorder,
    "unroll": _unroll,
    "vectorize": _vectorize,
    "tensorise": _tensorise,
    "cache": _cache,
}
"""What each step does to a nest, or refuses to."""
