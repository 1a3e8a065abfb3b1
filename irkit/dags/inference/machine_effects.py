"""Which parameters of a kernel its PTX reads and writes through: what really runs.

Registers are followed from parameters to the addresses of loads and stores, in any order (a taint
analysis). It is the judge of what is inferred from typed code, and sees what that cannot: addresses
made of whole numbers.
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass, field
from typing import Final

_PARAMETER: Final = re.compile(r"_param_(\d+)(?:\+\d+)?\]")
_REGISTER: Final = re.compile(r"%[A-Za-z_][\w$]*(?:\.[xyzw])?")
_ADDRESS: Final = re.compile(r"\[([^\]]*)\]")
_OWN: Final = -1
"""Stands for memory of a thread's or a block's own."""

Sources = frozenset[int]


@dataclass
class MachineEffects:
    """Loads and stores, as text, and the numbers of the parameters that their addresses may come from;
    `given` are those that functions are handed which were not inlined."""

    parameters: int = 0
    given: Sources = frozenset()
    loads: dict[str, Sources] = field(default_factory=dict[str, Sources])
    stores: dict[str, Sources] = field(default_factory=dict[str, Sources])

    @property
    def reads(self) -> Sources:
        """Parameters through which memory may be read."""
        return frozenset[int]().union(self.given, *self.loads.values())

    @property
    def writes(self) -> Sources:
        """Parameters through which memory may be written."""
        return frozenset[int]().union(self.given, *self.stores.values())

    def unbounded(self, pointers: Set[int]) -> list[str]:
        """Stores to addresses that come of none of the parameters `pointers`, nor of a thread's own
        memory."""
        return [text for text, roots in self.stores.items() if not roots & (pointers | {_OWN})]


def machine_effects(ptx: str, entry: str = "") -> MachineEffects:
    """What the kernel called `entry` does, or the only one in a text of PTX.

    A called function that is not inlined reads and writes through all that it is given.
    """
    parameters, code = _body(ptx, entry)
    flow = _Flow(MachineEffects(parameters))
    before = -1
    while before != (before := flow.size()):
        for instruction in code:
            flow.follow(instruction)
    return flow.effects


def _body(ptx: str, entry: str) -> tuple[int, list[str]]:
    """How many parameters a kernel has, and its instructions."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", ptx, flags=re.S)
    name = re.escape(entry) if entry else r"[\w$]+"
    found = re.search(rf"\.entry\s+{name}\s*\((.*?)\)[^{{;]*\{{", text, re.S)
    if found is None:
        raise ValueError(f"no kernel '{entry}' in this PTX")
    depth, at = 1, found.end()
    while depth:
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    inside = text[found.end() : at - 1]
    # Braces that hold registers of a vector stay; those of a call's block go.
    inside = re.sub(r"\{\s*\.reg", ".reg", inside)
    lines = [" ".join(line.split()) for line in inside.split(";") if line.strip()]
    return found.group(1).count(".param"), lines


class _Flow:
    """What registers may come from. Memory of a thread's own is one place."""

    def __init__(self, effects: MachineEffects) -> None:
        self.effects = effects
        self._of: dict[str, Sources] = {}
        self._kept: Sources = frozenset()
        self._call: Sources = frozenset()

    def size(self) -> int:
        """Grows as long as something new is found."""
        found = [*self._of.values(), *self.effects.loads.values(), *self.effects.stores.values()]
        return sum(map(len, found)) + len(found) + len(self._kept) + len(self._call)

    def follow(self, instruction: str) -> None:
        """Take note of what one instruction does."""
        text = re.sub(r"^(?:\$?\w+:\s*)*(?:@!?%\w+\s+)?", "", instruction.strip("{} "))
        code, _, operands = text.partition(" ")
        if code.startswith((".", "bra", "ret", "bar", "barrier", "prefetch")) or not operands:
            return
        if code.startswith(("ld.param", "st.param", "call")):
            self._parameter(code, operands)
        elif "[" in operands:
            self._memory(code, operands, instruction)
        else:
            self._move(operands)

    def _sources(self, text: str) -> Sources:
        own: Sources = (
            frozenset([_OWN]) if re.search(r"__local_depot|%SPL?\b", text) else frozenset()
        )
        return own.union(*(self._of.get(name, frozenset()) for name in _REGISTER.findall(text)))

    def _set(self, registers: str, sources: Sources) -> None:
        for name in _REGISTER.findall(registers):
            self._of[name] = self._of.get(name, frozenset()) | sources

    def _move(self, operands: str) -> None:
        """The result is the first operand, two of them for `a|p`, or a vector in braces."""
        vector = re.match(r"\{[^}]*\}", operands)
        target = vector.group(0) if vector else operands.split(",")[0]
        self._set(target, self._sources(operands[len(target) :]))

    def _parameter(self, code: str, operands: str) -> None:
        number = _PARAMETER.search(operands)
        if code.startswith("ld.param"):
            found = frozenset([int(number.group(1))]) if number else self._call
            self._set(operands.partition("[")[0], found)
            return
        # What is handed to a function may be read, written and come back.
        given = self._sources(
            operands.partition("]")[2] if code.startswith("st.param") else operands
        )
        self._call |= given
        self.effects.given = self._call

    @staticmethod
    def _note(into: dict[str, Sources], text: str, roots: Sources) -> None:
        into[text] = into.get(text, frozenset()) | roots

    def _memory(self, code: str, operands: str, instruction: str) -> None:
        addresses = _ADDRESS.findall(operands)
        others = _ADDRESS.sub("", operands)
        if re.search(r"\.(shared|local|const)\b", code) and len(addresses) == 1:
            roots: Sources = frozenset([_OWN])
        else:
            roots = frozenset[int]().union(*(self._sources(address) for address in addresses))
        reads, writes = not code.startswith("st"), not code.startswith("ld")
        if reads:
            self._note(self.effects.loads, instruction, roots)
            self._set(others, self._kept)
        if not writes:
            return
        self._kept |= self._sources(others)
        self._note(self.effects.stores, instruction, roots)
