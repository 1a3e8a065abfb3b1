"""Print how the threads of a block copy what a turn of a loop reads: `FILL(OPERANDS, place, turn)`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from irkit.dialects.linalg_generic import maps
from irkit.dialects.types import tensor_type
from irkit.expressions.loops import Axis
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import linear
from irkit.rkernels.binding.scalars import numba_type
from irkit.rkernels.scheduled.block_layout import FOUR, THREADS, BlockLayout
from irkit.rkernels.scheduled.loop_text import Known, LoopPrinter
from irkit.rkernels.scheduled.shared_copy import SharedCopy


class FillPrinter(LoopPrinter):
    """Prints the statements that fill one copy; the loops `outer` and the one of its turns are at hand.

    What lies beyond the end of a shorter part is zero.
    """

    def __init__(
        self,
        binder: Binder,
        layout: BlockLayout,
        copy: SharedCopy,
        outer: Sequence[str],
        low: Mapping[str, str],
        lengths: Mapping[str, str],
    ) -> None:
        super().__init__(binder, layout)
        self.block, self.copy = layout, copy
        values = {name: f"at_{name}" for name in outer}
        if copy.at >= 0:
            values[self.nest.order[copy.at].name] = "turn"
        self._known = Known(values, {}, dict(lengths))
        self._low = dict(low)
        self._width = FOUR if layout.in_fours(copy) and binder.op.vector_bytes is not None else 1

    def _divide(self, outer: str, inner: str, made: str, over: int) -> None:
        self.line(f"{outer}, {inner} = divide({made}, {over})")

    def print(self) -> None:
        """One element, or four, for each thread and turn."""
        kind = numba_type(tensor_type(self.layout.op.inputs[self.copy.number]).element_type)
        self.line(f"copy = shared_of({kind}(0), place)")
        self.line("thread = thread_index()")
        self._settle()
        count = math.prod(a.extent for a in self.copy.axes) // self._width
        self.line(f"for number in range({math.ceil(count / THREADS)}):")
        self._indent += 1
        self.line(f"left = thread + number * {THREADS}")
        if count % THREADS:
            self.line(f"if left < {count}:")
            self._indent += 1
        raw = self._raw()
        self.line("inside = True")
        for axis in self.copy.axes:
            self._enter(axis, raw[axis.name])
        self._move(raw, kind)

    def _raw(self) -> dict[str, str]:
        """Turns of the copy's loops, those fastest over the threads that are nearest in memory."""
        copy, found = self.copy, dict[str, str]()
        steps = {a.name: abs(self.block.step(copy.number, a)) for a in copy.axes}
        order = sorted(copy.axes, key=lambda a: (steps[a.name] == 0, steps[a.name]))
        for number, axis in enumerate(order):
            fours = self._width > 1 and axis is copy.axes[-1]
            extent = axis.extent // FOUR if fours else axis.extent
            name = found[axis.name] = f"raw_{axis.name}"
            if number == len(order) - 1:
                self.line(f"{name} = left")
            else:
                self.line(f"left, {name} = divide(left, {extent})")
            if fours:
                self.line(f"{name} = {name} * {FOUR}")
        return found

    def _enter(self, axis: Axis, raw: str) -> None:
        """A loop's number, which stays within its turns."""
        if axis.whole:
            self._known.values[axis.name] = raw
        else:
            self._settle()
            turns = self._known.lengths[axis.name]
            self.line(f"inside = inside and {raw} < {turns}")
            self.line(f"in_{axis.name} = min({raw}, {turns} - 1)")
            self._known.values[axis.name] = f"in_{axis.name}"
        self._settle()

    def _move(self, raw: Mapping[str, str], kind: str) -> None:
        copy, value = self.copy, self.layout.op.inputs[self.copy.number]
        terms = [
            raw[a.name] if stride == 1 else f"{raw[a.name]} * {stride}"
            for a, stride in zip(copy.axes, copy.strides, strict=True)
            if a.extent > 1
        ]
        place = " + ".join(terms) or "0"
        printer = self._printer()
        index = self._index(printer)
        where = [printer.affine(e, index) for e in maps(self.layout.op)[copy.number].results]
        if self.block.is_async(copy):
            at = linear(where, tensor_type(value).get_shape())
            source = self.binder.pointer(value)
            self.line(f"copy_async(copy, {place}, {source}, {at}, {self._width}, inside)")
            return
        self.line(
            f"copy[{place}] = {printer.element(value, tuple(where))} if inside else {kind}(0)"
        )
