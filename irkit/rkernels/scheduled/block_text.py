"""Print a scheduled nest for a block of threads as Numba-CUDA statements: `NEST(OPERANDS, task, scratch)`.

Every thread runs the nest at its own turns of the loops that are bound to threads. Copies go to shared
memory, all threads filling them together (`FILL0`, ...), in the order in which they lie in memory; with
several buffers a copy is on its way while those before are read. Sums start from nothing, in registers;
what threads have of one sum meets, by shuffles of a warp or in shared memory, and only then is what was
there before added.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from irkit.dialects.tensor_ops.interface import Index
from irkit.dialects.types import tensor_type
from irkit.expressions.loops import Axis
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import ElementPrinter, linear
from irkit.rkernels.binding.scalars import numba_type
from irkit.rkernels.scheduled.block_layout import FOUR, THREADS, BlockLayout
from irkit.rkernels.scheduled.fill_text import FillPrinter
from irkit.rkernels.scheduled.loop_text import Known, LoopPrinter

_NAMES = re.compile(r"\b(?:low|turns|at)_\w+")


class BlockPrinter(LoopPrinter):
    """Prints the nest of one rOperator for a block of a GPU."""

    marks = ("unroll", "vectorize")

    def __init__(self, binder: Binder, layout: BlockLayout) -> None:
        super().__init__(binder, layout)
        self.block = layout
        self._plain: dict[str, str] = {}
        self._fills: dict[int, list[str]] = {}
        self._buffer: dict[int, str] = {}
        self._reads: dict[str, str] = {}
        self._head_lengths: dict[str, str] = {}
        self._sums = [f"total{n}" for n in range(len(self._unrolled(reduced=False)))]

    def print(self) -> None:
        """All statements, and the functions that they call."""
        self._bind()
        self._head()
        for number, copy in self.block.shared.items():
            self._buffer[number] = "0"
            if copy.at == -1:
                self._fill(number, "0", "0")
                self._arrived([number])
        self._outer(0)

    def _divide(self, outer: str, inner: str, made: str, over: int) -> None:
        self.line(f"{outer}, {inner} = divide({made}, {over})")

    # Threads

    def _head(self) -> None:
        self._parts()
        self._head_lengths = dict(self._known.lengths)
        self.line("thread = thread_index()")
        left, threads = "thread", self.nest.threads
        if self.block.fragment is not None:
            self.line("warp, lane = divide(thread, 32)")
            left = "warp"
        for number, axis in reversed(list(enumerate(threads))):
            name = self._known.values[axis.name] = f"at_{axis.name}"
            if number:
                self.line(f"over_{axis.name}, {name} = divide({left}, {axis.extent})")
                left = f"over_{axis.name}"
            elif self.block.working < THREADS:
                self.line(f"{name} = min({left}, {axis.extent - 1})")
            else:
                self.line(f"{name} = {left}")
        idle = self.block.working < THREADS
        self._writes = [f"thread < {self.block.working}"] if idle else []
        if self.block.lanes > 1:
            self.line(f"bundle, lane = divide(thread, {self.block.lanes})")
            self._writes.append("lane == 0")
        self.line(f"staged = shared_of({self._float}(0), scratch)")
        for number, copy in self.block.shared.items():
            kind = numba_type(tensor_type(self.layout.op.inputs[number]).element_type)
            self.line(f"copy{number} = shared_of({kind}(0), scratch + {copy.offset})")
        self._settle()

    # Loops

    def _within(self, line: str, then: Callable[[], None]) -> None:
        """A block of statements; what is known in it is forgotten behind it."""
        self.line(line)
        depth, known = self._indent, self._known
        self._indent, self._known = depth + 1, known.copy()
        then()
        self._indent, self._known = depth, known

    def _outer(self, at: int) -> None:
        """Loops over tiles of sums."""
        if at == self.nest.first_reduced:
            self._tile()
        elif self.nest.order[at].mark:
            self._outer(at + 1)
        else:
            self._loop(at, lambda: self._outer(at + 1))

    def _inner(self, at: int) -> None:
        """Loops over the terms of a tile."""
        if at == len(self.nest.order):
            self._statements()
            return
        axis = self.nest.order[at]
        if axis.mark == "thread" and axis.reduced and not axis.whole:
            self._settle()
            turns = self._known.lengths[axis.name]
            self._within(f"if at_{axis.name} < {turns}:", lambda: self._inner(at + 1))
        elif axis.mark or axis == self.block.together():
            self._inner(at + 1)
        else:
            self._loop(at, lambda: self._inner(at + 1))

    def _loop(self, at: int, then: Callable[[], None]) -> None:
        """One loop, and the copies that are made in its turns."""
        axis = self.nest.order[at]
        copies = [n for n, c in self.block.shared.items() if c.at == at]
        buffers = max((self.block.shared[n].buffers for n in copies), default=1)
        turns = self._known.lengths[axis.name]
        if buffers > 1:
            self._first_copies(axis, copies, buffers, turns)

        def inside() -> None:
            self._known.values[axis.name] = f"at_{axis.name}"
            self._settle()
            if buffers > 1:
                self._next_copies(axis, copies, buffers, turns)
            elif copies:
                self.line("cuda.syncthreads()")
                for number in copies:
                    self._fill(number, f"at_{axis.name}", "0")
                self._arrived(copies)
            self._plain[axis.name] = f"at_{axis.name}"
            then()
            del self._plain[axis.name]

        self._within(f"for at_{axis.name} in range({turns}):", inside)

    # Copies

    def _arrived(self, copies: list[int]) -> None:
        if any(self.block.is_async(self.block.shared[n]) for n in copies):
            self.line("commit_copies()")
            self.line("await_copies(0)")
        self.line("cuda.syncthreads()")

    def _first_copies(self, axis: Axis, copies: list[int], buffers: int, turns: str) -> None:
        """All buffers but one are on their way before the first turn."""
        self.line("cuda.syncthreads()")

        def inside() -> None:
            self._fill_ahead(copies, turns, "ahead")

        self._within(f"for ahead in range({buffers - 1}):", inside)

    def _fill_ahead(self, copies: list[int], turns: str, slot: str) -> None:
        def fill() -> None:
            for number in copies:
                self._fill(number, "ahead", slot)

        self._within(f"if ahead < {turns}:", fill)
        self.line("commit_copies()")

    def _next_copies(self, axis: Axis, copies: list[int], buffers: int, turns: str) -> None:
        """One more is on its way; what this turn reads is there."""
        self.line(f"await_copies({buffers - 2})")
        self.line("cuda.syncthreads()")
        self.line(f"ahead = at_{axis.name} + {buffers - 1}")
        self.line(f"round, slot = divide(ahead, {buffers})")
        self._fill_ahead(copies, turns, "slot")
        self.line(f"round, slot_{axis.name} = divide(at_{axis.name}, {buffers})")
        for number in copies:
            elements = self.block.shared[number].elements
            self._buffer[number] = f"slot_{axis.name} * {elements}"

    def _fill(self, number: int, turn: str, slot: str) -> None:
        """A call of what all threads do together to copy an input, for a turn of its loop."""
        copy, kind = (
            self.block.shared[number],
            tensor_type(self.layout.op.inputs[number]).element_type,
        )
        if number not in self._fills:
            outer = [a for a in self._plain if copy.at < 0 or a != self.nest.order[copy.at].name]
            printer = FillPrinter(
                self.binder, self.block, copy, outer, self._low, self._head_lengths
            )
            printer.print()
            used = {n for line in printer.lines for n in _NAMES.findall(line)}
            known = {*self._low.values(), *self._head_lengths.values(), *(f"at_{a}" for a in outer)}
            self._fills[number] = sorted(used & {k for k in known if _NAMES.fullmatch(k)})
            given = ", ".join([self.operands, "place", "turn", *self._fills[number]])
            self.binder.binding.function(f"FILL{number}", given, printer.lines)
        place = f"scratch + {copy.offset}"
        if slot != "0":
            size = copy.elements * (8 if "64" in numba_type(kind) else 4)
            place = f"{place} + {slot} * {size}"
        name = self.binder.binding.names[f"FILL{number}"]
        given = ", ".join([self.operands, place, turn, *self._fills[number]])
        self.line(f"{name}({given})")

    # Sums

    def _tile(self) -> None:
        """The sums of a tile, from nothing to where they are stored."""
        tile, depth, known = self.block.tile, self._indent, self._known
        self._known = known.copy()
        fragment = self.block.fragment
        if fragment is not None:
            self.line(f"sums = zeros_like(staged, {fragment.held})")
        elif tile is not None:
            self.line(f"sums = zeros_like(staged, {tile.height * tile.width})")
        else:
            for name in self._sums:
                self.line(f"{name} = {self._float}({self._neutral()})")
        self._inner(self.nest.first_reduced)
        self._indent, self._known = depth, known.copy()
        self._shuffle()
        if self.block.meets:
            self._meet()
        else:
            self._guarded(self._store)
        self._known = known

    def _guarded(self, then: Callable[[], None]) -> None:
        """What the threads do that have sums of their own."""
        if self._writes:
            self._within(f"if {' and '.join(self._writes)}:", then)
        else:
            then()

    def _shuffle(self) -> None:
        distance = self.block.lanes // 2
        while distance:
            for name in self._sums:
                other = f"cuda.shfl_xor_sync(0xFFFFFFFF, {name}, {distance})"
                self.line(f"{name} = COMBINE_({name}, {other})")
            distance //= 2

    def _store(self) -> None:
        known = self._known
        for name, values in zip(self._sums, self._unrolled(reduced=False), strict=True):
            self._known = known.copy(values)
            self._settle()
            self._store_one(name)
        self._known = known

    def _store_one(self, total: str) -> None:
        where = self._call()
        self.line(f"STORE_({where}, COMBINE_(INIT_({where}), {total}))")

    def _meet(self) -> None:
        """Sums go to shared memory and leave it in the order of the result."""
        layout, cells = self.block, self.block.cells
        self.line("cuda.syncthreads()")
        self.line(f"meeting = shared_of({self._float}(0), scratch + {layout.meeting})")
        self._guarded(self._to_meeting)
        self.line("cuda.syncthreads()")

        def one() -> None:
            self.line(f"cell = thread + turn * {THREADS}")
            if layout.sums % THREADS:
                self._within(f"if cell < {layout.sums}:", leave)
            else:
                leave()

        def leave() -> None:
            left, values = "cell", dict[str, str]()
            for axis in reversed(cells[1:]):
                name = values[axis.name] = self._fresh(f"to_{axis.name}")
                over = self._fresh(f"over_{axis.name}")
                self.line(f"{over}, {name} = divide({left}, {axis.extent})")
                left = over
            values |= {cells[0].name: left} if cells else {}
            self._known = self._state(values)
            self._settle()
            self.line("total = meeting[cell]")
            if layout.groups > 1:
                other = f"meeting[cell + group * {layout.sums}]"
                self._within(
                    f"for group in range(1, {layout.groups}):",
                    lambda: self.line(f"total = COMBINE_(total, {other})"),
                )
            self._store_one("total")

        self._within(f"for turn in range({math.ceil(layout.sums / THREADS)}):", one)
        self.line("cuda.syncthreads()")

    def _to_meeting(self) -> None:
        layout, tile = self.block, self.block.tile
        group, extents = list[str](), list[int]()
        for axis in (a for a in self.nest.threads if a.reduced):
            group.append(self._known.values[axis.name])
            extents.append(axis.extent)
        number = linear(group, extents)
        if layout.lanes > 1 and number != "0":
            self.line(f"group, rest = divide({number}, {layout.lanes})")
        elif layout.groups > 1:
            self.line(f"group = {number}")
        first = f"group * {layout.sums} + " if layout.groups > 1 else ""
        if layout.fragment is not None:
            zero = {a.name: "0" for a in layout.fragment.sums}
            self.line(layout.fragment.stored(self._cell(zero), layout.cells))
            return
        if tile is None:
            for name, values in zip(self._sums, self._unrolled(reduced=False), strict=True):
                self.line(f"meeting[{first}{self._cell(values)}] = {name}")
            return
        zero = {a.name: "0" for a in (*tile.rows, *tile.columns)}
        at = layout.cells.index(tile.rows[-1])
        step = math.prod(a.extent for a in layout.cells[at + 1 :])
        self.line(f"tile_store(meeting, {first}{self._cell(zero)}, {step}, sums, {tile.width})")

    def _cell(self, values: Mapping[str, str]) -> str:
        cells = self.block.cells
        known = {**self._known.values, **values}
        return linear([known[a.name] for a in cells], [a.extent for a in cells])

    def _state(self, values: Mapping[str, str]) -> Known:
        """What is known of loops where those bound to threads are at other turns than this thread's."""
        return Known({**self._plain, **values}, {}, dict(self._head_lengths))

    # The statement

    def _statements(self) -> None:
        tile = self.block.tile
        self._settle()
        fragment = self.block.fragment
        if fragment is not None:
            zero = {a.name: "0" for a in (*fragment.sums, fragment.terms)}
            known = {**self._known.values, **zero}
            self.line(fragment.added(self.block.shared, lambda n: self._place(n, known)))
            return
        if tile is not None:
            self._tile_sums()
            return
        self._reads.clear()
        outside = self._known
        printer = self._printer()
        sums = self._unrolled(reduced=False)
        for values in self._unrolled(reduced=True):
            self._known = outside.copy(values)
            self._settle()
            number = sums.index({k: v for k, v in values.items() if k in sums[0]})
            self._scalar(printer, self._index(printer), self._sums[number])
        self._known = outside

    def _read(self, printer: ElementPrinter, number: int, index: Index) -> str:
        if number not in self.block.shared:
            return super()._read(printer, number, index)
        text = f"copy{number}[{self._place(number, self._known.values)}]"
        if text not in self._reads:
            self._reads[text] = printer.name(text)
        return self._reads[text]

    def _place(self, number: int, values: Mapping[str, str]) -> str:
        """Which element of a copy belongs to these turns."""
        copy = self.block.shared[number]
        terms = [
            values[a.name] if stride == 1 else f"{values[a.name]} * {stride}"
            for a, stride in zip(copy.axes, copy.strides, strict=True)
            if values[a.name] != "0" and a.extent > 1
        ]
        if self._buffer[number] != "0":
            terms.insert(0, self._buffer[number])
        return " + ".join(terms) or "0"

    def _tile_sums(self) -> None:
        tile, together = self.block.tile, self.block.together()
        assert tile is not None
        zero = {a.name: "0" for a in (*tile.rows, *tile.columns)}
        if together is not None:
            zero[together.name] = "0"
        size, places, steps = self.block.element_bytes, list[str](), list[str]()
        for number in (tile.left, tile.right):
            copy = self.block.shared[number]
            place = self._place(number, {**self._known.values, **zero})
            places.append(f"{copy.offset // size} + {place}")
            step = copy.strides[copy.axes.index(together)] if together is not None else FOUR
            steps.append(str(step))
        count = together.extent if together is not None else 1
        given = ", ".join([*places, *steps, str(tile.height), str(tile.width), str(count)])
        self.line(f"sums = tile_sums(sums, staged, {given})")


def body_of_block(binder: Binder, layout: BlockLayout) -> list[str]:
    """The statements of `NEST`; what they call is bound."""
    printer = BlockPrinter(binder, layout)
    printer.print()
    for number, name in enumerate(("FIRST", "SECOND")):
        fours = number in layout.shared and layout.in_fours(layout.shared[number])
        binder.binding.names[name] = binder.pointer(layout.op.inputs[number]) if fours else ""
    return printer.body()
