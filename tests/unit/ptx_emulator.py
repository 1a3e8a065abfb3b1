"""Runs straight PTX of one entry thread by thread: integers, branches, shuffles, barriers, memory."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

WARP = 32
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "setp.ge.u64": operator.ge,
    "setp.gt.u64": operator.gt,
    "setp.gt.u32": operator.gt,
    "setp.ne.u32": operator.ne,
    "setp.ne.u64": operator.ne,
}
_COMPUTE: dict[str, Callable[..., int]] = {
    "mov.u32": lambda a: a,
    "mov.u64": lambda a: a,
    "mov.b64": lambda a: a,
    "cvt.u64.u32": lambda a: a,
    "cvt.u32.u64": lambda a: a % 2**32,
    "cvta.to.global.u64": lambda a: a,
    "add.u64": lambda a, b: (a + b) % 2**64,
    "sub.u64": lambda a, b: (a - b) % 2**64,
    "sub.u32": lambda a, b: (a - b) % 2**32,
    "and.b64": lambda a, b: a & b,
    "and.b32": lambda a, b: a & b,
    "max.u64": max,
    "max.u32": max,
    "mov.b32": lambda a: a,
    "mul.lo.u64": lambda a, b: a * b % 2**64,
    "shr.u64": lambda a, b: a >> b,
    "shl.b64": lambda a, b: (a << b) % 2**64,
    "mul.wide.u32": lambda a, b: a * b,
    "mad.wide.u32": lambda a, b, c: (a * b + c) % 2**64,
}


class Entry:
    """The entry `name` of a PTX module."""

    def __init__(self, ptx: str, name: str) -> None:
        found = re.search(rf"\.visible \.entry {name}\((.*?)\)\s*\{{(.*?)\n\}}", ptx, re.S)
        assert found is not None
        self.parameters = re.findall(r"\.param \.u64 (\w+)", found.group(1))
        self.code: list[str] = []
        self.labels: dict[str, int] = {}
        for line in map(str.strip, found.group(2).splitlines()):
            if line.endswith(":"):
                self.labels[line[:-1]] = len(self.code)
            elif line and not line.startswith(".reg"):
                assert line.endswith(";"), line
                self.code.append(line[:-1])

    def run(self, blocks: int, threads: int, arguments: list[int], memory: bytearray) -> None:
        """All blocks, one after another; addresses are places in `memory`."""
        given = dict(zip(self.parameters, arguments, strict=True))
        for block in range(blocks):
            warps = [
                [
                    Thread(self, given, memory, block, first + lane, (threads, blocks))
                    for lane in range(WARP)
                ]
                for first in range(0, threads, WARP)
            ]
            while any(not t.over for warp in warps for t in warp):
                for warp in warps:
                    run_to_barrier(warp)
                pass_barrier([t for warp in warps for t in warp if not t.over])


class Thread:
    """Registers and place of one thread."""

    def __init__(
        self,
        entry: Entry,
        given: dict[str, int],
        memory: bytearray,
        block: int,
        number: int,
        size: tuple[int, int],
    ) -> None:
        self.entry, self.given, self.memory = entry, given, memory
        self.at, self.over = 0, False
        self.registers: dict[str, int] = {
            "%ctaid.x": block,
            "%tid.x": number,
            "%ntid.x": size[0],
            "%nctaid.x": size[1],
            "%laneid": number % WARP,
        }

    def value(self, text: str) -> int:
        return self.registers[text] if text.startswith("%") else int(text, 0)

    def place(self, text: str) -> int:
        register, _, offset = text.strip("[]").partition("+")
        return self.value(register) + int(offset or 0)

    def waits(self, what: str) -> bool:
        return not self.over and what in self.entry.code[self.at]

    def run_to_meeting(self) -> None:
        while not (self.over or self.waits("shfl.sync") or self.waits("bar.sync")):
            line = self.entry.code[self.at]
            self.at += 1
            guard = re.match(r"@(!?)(%\w+) (.*)", line)
            if guard is not None:
                wanted = 0 if guard.group(1) else 1
                if self.registers[guard.group(2)] != wanted:
                    continue
                line = guard.group(3)
            self.step(line)

    def step(self, line: str) -> None:
        name, _, rest = line.partition(" ")
        operands: list[str] = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^\s,]+", rest)
        if name == "ret":
            self.over = True
        elif name == "bra":
            self.at = self.entry.labels[operands[0]]
        elif name.startswith("ld.param"):
            self.registers[operands[0]] = self.given[operands[1].strip("[]")]
        elif ".global." in name and not name.startswith("cvta"):
            self.in_memory(name, operands)
        elif name.startswith("fence"):
            pass
        elif name in _COMPARE:
            a, b = map(self.value, operands[1:])
            self.registers[operands[0]] = int(_COMPARE[name](a, b))
        elif operands[0].startswith("{"):
            low, high = operands[0].strip("{}").split(", ")
            value = self.value(operands[1])
            self.registers |= {low: value % 2**32, high: value >> 32}
        elif operands[1].startswith("{"):
            low, high = map(self.value, operands[1].strip("{}").split(", "))
            self.registers[operands[0]] = low | high << 32
        else:
            self.registers[operands[0]] = _COMPUTE[name](*map(self.value, operands[1:]))

    def in_memory(self, name: str, operands: list[str]) -> None:
        if name.startswith("ld.global."):
            targets = operands[0].strip("{}").split(", ")
            size, at = int(name[-2:]) // 8, self.place(operands[1])
            assert at % (size * len(targets)) == 0, "a vector lies at a multiple of its size"
            assert at + size * len(targets) <= len(self.memory), "nothing is read behind the end"
            for number, target in enumerate(targets):
                first = at + number * size
                self.registers[target] = int.from_bytes(self.memory[first : first + size], "little")
        elif name == "red.relaxed.gpu.global.max.u64":
            self.changed(self.place(operands[0]), max, operands[1])
        elif name == "atom.relaxed.gpu.global.add.u64":
            old = self.changed(self.place(operands[1]), operator.add, operands[2])
            self.registers[operands[0]] = old
        elif name == "ld.relaxed.gpu.global.b64":
            at = self.place(operands[1])
            self.registers[operands[0]] = int.from_bytes(self.memory[at : at + 8], "little")
        elif name in ("st.global.b64", "st.relaxed.sys.global.b64"):
            at = self.place(operands[0])
            self.memory[at : at + 8] = self.value(operands[1]).to_bytes(8, "little")
        else:
            raise AssertionError(name)

    def changed(self, at: int, by: Callable[[int, int], int], operand: str) -> int:
        """What a word of global memory was before it became another."""
        old = int.from_bytes(self.memory[at : at + 8], "little")
        self.memory[at : at + 8] = by(old, self.value(operand)).to_bytes(8, "little")
        return old


def run_to_barrier(warp: list[Thread]) -> None:
    """As far as a warp comes without the rest of its block."""
    while True:
        for thread in warp:
            thread.run_to_meeting()
        if not any(t.waits("shfl.sync") for t in warp):
            return
        shuffle(warp)


def pass_barrier(threads: list[Thread]) -> None:
    """The barrier that all threads of a block which have not ended have come to."""
    assert all(t.waits("bar.sync 0") for t in threads)
    assert len({t.at for t in threads}) <= 1, "a block must come to a barrier together"
    for thread in threads:
        thread.at += 1


def shuffle(warp: list[Thread]) -> None:
    """The exchange that all threads of a warp have come to."""
    if all(t.over for t in warp):
        return
    assert len({t.at for t in warp}) == 1, "a warp must come to a shuffle together"
    line = warp[0].entry.code[warp[0].at]
    name, _, rest = line.partition(" ")
    assert name == "shfl.sync.bfly.b32", name
    target, source, distance, clamp, mask = rest.split(", ")
    assert (int(clamp, 0), int(mask, 0)) == (31, 0xFFFFFFFF)
    values: list[Any] = [t.registers[source] for t in warp]
    for lane, thread in enumerate(warp):
        thread.registers[target] = values[lane ^ int(distance)]
        thread.at += 1
