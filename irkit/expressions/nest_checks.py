"""What holds of a nest whose steps are all taken: who may stand where."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NoReturn

from irkit.expressions.loops import TENSOR, Axis, Nest, Split
from irkit.expressions.steps import Step
from irkit.expressions.syntax import NOWHERE, ExpressionError, Place

MOST_UNROLLED = 256
"""Copies of the innermost statement."""
MOST_SUMS = 64
"""Sums that are under way together: more fill no registers."""


def refuse(message: str, place: Place) -> NoReturn:
    """Raises ExpressionError."""
    raise ExpressionError(message, place)


def check(nest: Nest, steps: Sequence[Step]) -> None:
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
            refuse(reason, place(axis.name))
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
    if axis.mark == TENSOR and any(a.mark != TENSOR for a in order[number + 1 :]):
        other = next(a.name for a in order[number + 1 :] if a.mark != TENSOR)
        return f"'{other}' inside of '{axis.name}', which is tensorised"
    if nest.tensor is not None and axis.mark in ("unroll", "vectorize"):
        return f"'{axis.mark}' of '{axis.name}' beside 'tensorise'"
    if number > first and not axis.reduced and not axis.mark:
        over = order[first].name
        return f"'{axis.name}' inside of '{over}', which is reduced: put it outside, or unroll it"
    if reduces and number < first and axis.mark in ("unroll", "vectorize"):
        hint = "put it inside of what is reduced"
        return f"'{axis.mark}' of '{axis.name}' writes whole loops out: {hint}"
    following = next((a for a in order[number + 1 :] if not a.mark), None)
    if axis.mark == "unroll" and following is not None:
        return f"'{axis.name}' is unrolled and '{following.name}' inside of it is not"
    return None


def _check_parts(nest: Nest, split: Split, place: Callable[[str], Place]) -> None:
    """The loop over a part that may be shorter stands inside of all that say which part it is."""
    outside = [nest.position(n) for n in nest.made_of(split.outer)]
    for inner in nest.made_of(split.inner):
        if nest.position(inner) < max(outside):
            reason = f"'{inner}' outside of '{split.outer}', of whose parts the last is shorter"
            refuse(reason, place(inner))


def _check_text(nest: Nest, place: Callable[[str], Place]) -> None:
    """Neither too many sums nor too much text."""
    unrolled = [a for a in nest.order if a.mark == "unroll"]
    copies = math.prod(a.extent for a in unrolled)
    sums = math.prod(a.extent for a in unrolled if not a.reduced)
    if copies > MOST_UNROLLED or sums > MOST_SUMS:
        what = f"{sums} sums and {copies} copies of the statement"
        limits = f"of {MOST_SUMS} and {MOST_UNROLLED} at most"
        refuse(f"{what} are unrolled, {limits}", place(unrolled[-1].name))


def _check_places_of_copies(nest: Nest) -> None:
    """Copies are made in the turns of loops that are run."""
    for operand, (loop, where) in nest.caches.items():
        if not loop:
            continue
        if loop not in {a.name for a in nest.order}:
            refuse(f"'cache' of '{operand}' at '{loop}', which is no loop any more", where)
        if nest.order[nest.position(loop)].mark:
            refuse(f"'cache' of '{operand}' at '{loop}', which is no loop that is run", where)
