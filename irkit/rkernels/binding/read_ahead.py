"""What an epilogue reads of memory, whatever the sums are: read before them, it does not wait behind them."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass

_ASSIGNED = re.compile(r"(v\d+) = (.*)")
_WITHIN = re.compile(r"\s+(v\d+) = ")
_LOADED = re.compile(r"(?:load_four\()?\b(p\d+)(?:\[[^\]]*\]|, [^()]*\))")
_NAMES = re.compile(r"\b(?:v\d+|p\d+|acc|a[0-3])\b")


@dataclass(frozen=True)
class ReadAhead:
    """The statements of an epilogue in two: `before`, which loads what `names` are, by which pointer each
    (`pointers`), and `after`, which takes these as known."""

    before: list[str]
    after: list[str]
    names: list[str]
    pointers: list[str]


def read_ahead(lines: Sequence[str], pointers: Container[str]) -> ReadAhead:
    """`lines` of an epilogue, with the loads by `pointers` that hang on no sum and on no branch read ahead.

    A load is a statement of its own, `v0 = p1[...]` or `v0 = load_four(p1, ...)`. What its index is made of,
    other loads too, is computed before, and after too where it is needed there.
    """
    known: dict[str, list[str]] = {}
    found = ReadAhead([], [], [], [])
    for line in lines:
        assigned = _ASSIGNED.fullmatch(line)
        needed = _NAMES.findall(assigned[2]) if assigned is not None else []
        loaded = _LOADED.fullmatch(assigned[2]) if assigned is not None else None
        if loaded is not None:
            needed.remove(loaded[1])
        if assigned is None or not all(name in known for name in needed):
            found.after.append(line)
            if (within := _WITHIN.match(line)) is not None:
                # It hangs on a branch from here on.
                known.pop(within[1], None)
            continue
        index = list(dict.fromkeys(text for name in needed for text in known[name]))
        if loaded is None:
            known[assigned[1]] = [*index, line]
            found.after.append(line)
        elif loaded[1] in pointers:
            known[assigned[1]] = [*index, line]
            found.before.extend(text for text in (*index, line) if text not in found.before)
            found.names.append(assigned[1])
            found.pointers.append(loaded[1])
        else:
            found.after.append(line)
    return found
