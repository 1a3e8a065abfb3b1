"""What an epilogue reads of memory, whatever the sums are: read before them, it does not wait behind them."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_ASSIGNED = re.compile(r"\s*(v\d+) = (.*)")
_TYPED = re.compile(r"v\d+ = (\w+)\(.*\)")
_TEST = re.compile(r"\s*(?:(?:el)?if (.*)|else):")
_LOADED = re.compile(r"(?:load_four\()?\b(p\d+)(?:\[[^\]]*\]|, [^()]*\))")
_MOVED = re.compile(r"v\d+(?:\[\d\])?")
_NAMES = re.compile(r"\b(?:v\d+|p\d+|acc|a[0-3])\b")


@dataclass(frozen=True)
class ReadAhead:
    """The statements of an epilogue in two: `before`, which loads what `names` are, by which pointer each
    (`pointers`), and `after`, which takes these as known. What branches assign to is of the type that `types`
    names."""

    before: list[str]
    after: list[str]
    names: list[str]
    pointers: list[str]
    types: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class _Branches:
    """What tests and branches of some lines read: names of before, and by which pointers; and which of these
    names they assign to. `plain`: what is loaded is handed on as it is, so that nothing waits for it."""

    needed: list[str]
    pointers: list[str]
    assigned: list[str]
    plain: bool


def read_ahead(lines: Sequence[str], pointers: Container[str]) -> ReadAhead:
    """`lines` of an epilogue, with the loads by `pointers` that hang on no sum read ahead.

    A load is a statement of its own, `v0 = p1[...]` or `v0 = load_four(p1, ...)`. What its index is made of,
    other loads too, is computed before, and after too where it is needed there. Branches that hang on no sum,
    and compute nothing of what they load, are read ahead whole if all of that can be.
    """
    known: dict[str, list[str]] = {}
    found = ReadAhead([], [], [], [])
    for block in _blocks(lines):
        if len(block) > 1:
            _take_branches(block, pointers, known, found)
        else:
            _take_line(block[0], pointers, known, found)
    # A block is one text until here: its lines have no sense apart.
    found.before[:] = [line for text in found.before for line in text.split("\n")]
    return found


def _blocks(lines: Sequence[str]) -> Iterator[list[str]]:
    """Statements: lines, and tests with their branches."""
    block: list[str] = []
    for line in lines:
        if block and not line.startswith((" ", "elif ", "else:")):
            yield block
            block = []
        block.append(line)
    if block:
        yield block


def _take_line(
    line: str, pointers: Container[str], known: dict[str, list[str]], found: ReadAhead
) -> None:
    assigned = _ASSIGNED.fullmatch(line)
    needed = _NAMES.findall(assigned[2]) if assigned is not None else []
    loaded = _LOADED.fullmatch(assigned[2]) if assigned is not None else None
    if loaded is not None:
        needed.remove(loaded[1])
    if assigned is None or not all(name in known for name in needed):
        found.after.append(line)
        return
    texts = [*_texts(needed, known), line]
    if loaded is None:
        known[assigned[1]] = texts
        found.after.append(line)
    elif loaded[1] in pointers:
        known[assigned[1]] = texts
        _put_before(texts, found)
        found.names.append(assigned[1])
        found.pointers.append(loaded[1])
    else:
        found.after.append(line)


def _take_branches(
    block: Sequence[str], pointers: Container[str], known: dict[str, list[str]], found: ReadAhead
) -> None:
    read = _read_by(block, known)
    starts = {name: known[name][-1] for name in read.assigned}
    types = {name: _TYPED.fullmatch(line) for name, line in starts.items()}
    ahead = read.plain and all(types.values()) and all(p in pointers for p in read.pointers)
    # Where nothing is loaded there is nothing to wait for.
    if not ahead or not read.pointers or any(line not in found.after for line in starts.values()):
        found.after.extend(block)
        for name in read.assigned:
            # It hangs on a branch from here on.
            known.pop(name)
        return
    texts = [*_texts([*read.needed, *read.assigned], known), "\n".join(block)]
    _put_before(texts, found)
    for name, line in starts.items():
        known[name] = texts
        found.after.remove(line)
        found.names.append(name)
        found.pointers.append(read.pointers[0])
        if (typed := types[name]) is not None:
            found.types[name] = typed[1]


def _read_by(block: Sequence[str], known: Mapping[str, list[str]]) -> _Branches:
    own, late, needed = set[str](), set[str](), list[str]()
    pointers, assigned, plain = list[str](), list[str](), True
    for line in block:
        to, test = _ASSIGNED.fullmatch(line), _TEST.fullmatch(line)
        text = (to[2] if to is not None else test[1] if test is not None else None) or ""
        loaded = _LOADED.fullmatch(text) if to is not None else None
        names = _NAMES.findall(text)
        if loaded is not None:
            names.remove(loaded[1])
            pointers.append(loaded[1])
        needed += [name for name in names if name not in own]
        waits = not late.isdisjoint(names)
        if to is not None and (loaded is not None or waits):
            late.add(to[1])
        if to is not None and to[1] in known:
            assigned += [to[1]] if to[1] not in assigned else []
        elif to is not None:
            own.add(to[1])
        moved = to is not None and (not waits or _MOVED.fullmatch(text) is not None)
        plain = plain and (moved or (test is not None and not waits))
    plain = plain and all(name in known for name in needed)
    return _Branches(needed, pointers, assigned, plain)


def _texts(names: Sequence[str], known: Mapping[str, list[str]]) -> list[str]:
    """What the names are made of, in order."""
    return list(dict.fromkeys(text for name in names for text in known[name]))


def _put_before(texts: Sequence[str], found: ReadAhead) -> None:
    found.before.extend(text for text in texts if text not in found.before)
