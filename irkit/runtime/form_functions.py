"""The functions of a form by names that say what is in them: equal ones of two forms are one function.

The fused functions of two forms are often the same: how padded planes are filled, what a bias and an
activation do to a sum. Numba's front end, which takes most of the time that compiling takes, types and
lowers each once in a process. The slots of a function (`intrinsics/slots.py`) are numbered by its name and
where they stand in it, and go by the form's numbers again in its IR.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_FUNCTION = re.compile(r"@\w+\([^\n]*\)\ndef (\w+)\((?:[^\n]*\n)(?:[ \t][^\n]*\n|\n)*\Z")
_SLOT = re.compile(r"\b(number|real)_slot\((\d+)\)")
_SLOT_BITS = 16
_NUMBER_DIGITS = 10
"""A slot's number is some digits, in hexadecimal, of its function's digest, and bits for where it stands."""


class Function(NamedTuple):
    """A function by a name that no other has, and the slots of its text: number there -> in the form."""

    name: str
    text: str
    slots: Mapping[int, int]


class Functions(NamedTuple):
    """What a form's text begins with, and its functions in their order, callees first."""

    header: str
    functions: Sequence[Function]

    def slots(self) -> dict[int, int]:
        """Of all functions: number of a slot -> in the form."""
        return {own: n for function in self.functions for own, n in function.slots.items()}


def functions_of_form(text: str) -> Functions | None:
    """The functions of a form's text; None where it has other statements between them."""
    header, *pieces = re.split(r"^(?=@)", text, flags=re.MULTILINE)
    heads = [_FUNCTION.match(piece.rstrip("\n") + "\n") for piece in pieces]
    if not heads or not all(heads):
        return None
    own = [head[1] for head in heads if head is not None]
    if len(set(own)) < len(own):
        return None
    names: dict[str, str] = {}
    found: list[Function] = []
    for name, piece in zip(own, pieces, strict=True):
        known = re.compile(r"\b(?:" + "|".join(map(re.escape, own)) + r")\b")
        called = set(known.findall(piece)) - {name}
        if not called <= names.keys() or len(_SLOT.findall(piece)) >> _SLOT_BITS:
            return None
        made = _named(header, name, piece.strip("\n"), names, found)
        names[name] = made.name
        found.append(made)
    return Functions(header, found)


def _named(
    header: str, name: str, piece: str, names: Mapping[str, str], others: Sequence[Function]
) -> Function:
    """A function of a form, those that it calls having `names`; another of the same text has another name."""
    numbers = [int(n) for _, n in _SLOT.findall(piece)]
    # By numbers and a name that are none, so that they are the same in every form.
    plain = _renamed(_SLOT.sub(r"\1_slot(_)", piece), {**names, name: "_"})
    taken = {n for other in others for n in (other.name, *other.slots)}

    def marked(again: int) -> tuple[str, int]:
        digest = hashlib.sha256(f"{header}\0{plain}\0{again}".encode()).hexdigest()
        return f"f_{digest}", int(digest[:_NUMBER_DIGITS], 16) << _SLOT_BITS

    made, base = next(mark for mark in map(marked, itertools.count()) if taken.isdisjoint(mark))
    slots = dict(zip(itertools.count(base), numbers, strict=False))
    left = iter(slots)
    text = _SLOT.sub(lambda found: f"{found[1]}_slot({next(left)})", piece)
    return Function(made, _renamed(text, {**names, name: made}), slots)


def _renamed(text: str, names: Mapping[str, str]) -> str:
    pattern = re.compile(r"\b(?:" + "|".join(map(re.escape, names)) + r")\b")
    return pattern.sub(lambda found: names[found[0]], text)
