"""As few options of an rOperator as do about as well: each is an rKernel to compile."""

from __future__ import annotations

import math
from collections.abc import Sequence

from irkit.schedule.allotments import Allotment
from irkit.schedule.model import Launch, Option
from irkit.schedule.waves import duration

AS_GOOD = 1.1
"""How many times as long another option may take on the same vEUs."""


def with_few_options(
    launches: Sequence[Launch], allotments: Sequence[Allotment]
) -> list[Allotment]:
    """`allotments`, where launches of one rOperator share options that do about as well for each.

    A greedy cover: first the option that does for the most launches, then the one that does for the most of
    those left (V. Chvátal, A Greedy Heuristic for the Set-Covering Problem, 1979). Equal launches keep equal
    allotments.
    """
    result = list(allotments)
    uses: dict[str, dict[Allotment, list[int]]] = {}
    for n, launch in enumerate(launches):
        if launch.options:
            uses.setdefault(launch.symbol, {}).setdefault(allotments[n], []).append(n)
    for found in uses.values():
        options = launches[next(iter(found.values()))[0]].options
        for old, new in _cover(found, options).items():
            for n in found[old]:
                result[n] = new
    return result


def _cover(
    found: dict[Allotment, list[int]], options: Sequence[Option]
) -> dict[Allotment, Allotment]:
    """For each allotment, of so many launches, the one to take instead."""
    does = {
        number: {old: new for old in found if (new := _instead(old, number, options)) is not None}
        for number in sorted({old.option for old in found})
    }
    chosen: dict[Allotment, Allotment] = {}
    while len(chosen) < len(found):
        left = {old: len(uses) for old, uses in found.items() if old not in chosen}
        best = max(does, key=lambda number: sum(left.get(old, 0) for old in does[number]))
        chosen.update((old, new) for old, new in does[best].items() if old in left)
    return chosen


def _instead(old: Allotment, number: int, options: Sequence[Option]) -> Allotment | None:
    """Option `number` on the vEUs of `old`, on no more than it needs; None if it takes much longer."""
    option = options[number]
    time, before = duration(option, old.veus), duration(options[old.option], old.veus)
    if time > AS_GOOD * before:
        return None
    turns = math.ceil(option.tasks / old.veus)
    return Allotment(number, math.ceil(option.tasks / turns), old.time + time - before)
