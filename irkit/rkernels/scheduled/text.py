"""Print a scheduled nest as Numba statements: `NEST(OPERANDS, task, scratch)`.

Loops outside of what is reduced run over tiles of sums, which are in registers (`total0`, ...) while the
reduced loops run; then they are stored through the epilogue. `INIT` and `STORE` take every index of the
result (docs/emission.md).
"""

from __future__ import annotations

from functools import cached_property

from xdsl.dialects.linalg import ops as linalg

from irkit.dialects.linalg_generic import is_contraction, maps
from irkit.dialects.tensor_ops.interface import Index
from irkit.dialects.types import tensor_type
from irkit.expressions.loops import Axis
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import ElementPrinter, linear
from irkit.rkernels.binding.scalars import numba_type
from irkit.rkernels.scheduled.layout import Copy, Layout
from irkit.rkernels.scheduled.loop_text import LoopPrinter

_VECTORS = {
    "add": "add_vectors",
    "mul": "multiply_vectors",
    "max": "greater_vectors",
    "min": "smaller_vectors",
}


class NestPrinter(LoopPrinter):
    """Prints the nest of one rOperator for a vEU of a CPU."""

    def __init__(self, binder: Binder, layout: Layout) -> None:
        super().__init__(binder, layout)
        self._copies = layout.copies

    def print(self) -> None:
        """All statements, and the functions that they call."""
        self._bind()
        self._head()
        first = self.nest.first_reduced
        self._fill(-1)
        for at, axis in enumerate(self.nest.order[:first]):
            self._open(axis, at)
        combinations = self._unrolled(reduced=False)
        inside, kept = self._indent, self._known
        for number, values in enumerate(combinations):
            self._known = kept.copy(values)
            self._settle()
            self.line(f"total{number} = {self._start()}")
        self._known = kept.copy()
        for at, axis in enumerate(self.nest.order[first:], first):
            if not axis.mark:
                self._open(axis, at)
        self._statements(combinations)
        self._indent = inside
        for number, values in enumerate(combinations):
            self._known = kept.copy(values)
            self._settle()
            self._store(number)

    def _head(self) -> None:
        """This rTask's part of each index, and how many turns loops have."""
        known = self._known
        self._parts()
        if self.nest.vector is not None:
            known.values[self.nest.vector.name] = "0"
        for number, copy in self._copies.items():
            kind = numba_type(tensor_type(self.layout.op.inputs[number]).element_type)
            self.line(f"copy{number} = {kind}p(scratch + {copy.offset})")
        if self.nest.vector is not None and not self._stored_whole:
            self.line(f"spilt = {self._float}p(scratch + {self.layout.spill})")
        self._settle()

    # Loops and indices

    def _open(self, axis: Axis, at: int, fill: bool = True) -> None:
        """A loop, and what is known inside of it."""
        self.line(f"for at_{axis.name} in range({self._known.lengths[axis.name]}):")
        self._indent += 1
        self._known.values[axis.name] = f"at_{axis.name}"
        self._settle()
        if fill:
            self._fill(at)

    # Copies

    def _fill(self, at: int) -> None:
        """The copies that are made in each turn of loop number `at`."""
        for copy in self._copies.values():
            if copy.at == at:
                self._fill_one(copy)

    def _fill_one(self, copy: Copy) -> None:
        depth, known = self._indent, self._known
        self._known = known.copy()
        for axis in copy.axes:
            self._known.values.pop(axis.name, None)
        whole = self.layout.copied_whole(copy)
        for axis in copy.axes:
            if whole and axis is copy.axes[-1]:
                self._known.values[axis.name] = "0"
            else:
                self._open(axis, -1, fill=False)
        printer, amap = self._printer(), maps(self.layout.op)[copy.number]
        index = self._index(printer)
        where = tuple(printer.affine(e, index) for e in amap.results)
        value, place = self.layout.op.inputs[copy.number], self._place(copy)
        if whole:
            source, at = self.binder.pointer(value), linear(where, tensor_type(value).get_shape())
            lanes = f"load_vector({copy.axes[-1].extent}, {source}, {at})"
            self.line(f"store_vector(copy{copy.number}, {place}, {lanes})")
        else:
            self.line(f"copy{copy.number}[{place}] = {printer.element(value, where)}")
        self._indent, self._known = depth, known

    def _place(self, copy: Copy) -> str:
        """Which element of a copy belongs to the turns at hand."""
        values = [self._known.values[a.name] for a in copy.axes]
        return linear(values, [a.extent for a in copy.axes])

    # The statement

    def _start(self) -> str:
        """What a sum starts from; what is not one number for all lanes is added when it is stored."""
        vector = self.nest.vector
        if vector is None:
            return f"INIT_({self._call()})"
        if self._uniform:
            return f"spread_vector({vector.extent}, INIT_({self._call()}))"
        return f"spread_vector({vector.extent}, {self._float}({self._neutral()}))"

    @cached_property
    def _uniform(self) -> bool:
        """Whether all sums start from one number."""
        return isinstance(self.layout.op.outputs[0].owner, linalg.FillOp)

    @cached_property
    def _stored_whole(self) -> bool:
        """Whether a vector is stored as it is: the sum is the one result, lanes side by side."""
        values = list(self.binder.op.terminator.values)
        last = len(self.binder.root.parallel) - 1
        alone = len(values) == 1 and values[0] is self.binder.root.value
        return alone and self._uniform and self.layout.lane == last and not self.binder.op.in_place

    def _statements(self, sums: list[dict[str, str]]) -> None:
        """The statement for each turn of what is unrolled."""
        printer, vectors = self._printer(), dict[tuple[int, str], str]()
        outside = self._known
        for values in self._unrolled(reduced=True):
            self._known = outside.copy(values)
            self._settle()
            total = f"total{sums.index({k: v for k, v in values.items() if k in sums[0]})}"
            index = self._index(printer)
            if self.nest.vector is None:
                self._scalar(printer, index, total)
            else:
                self._vector(printer, index, total, vectors)

    def _read(self, printer: ElementPrinter, number: int, index: Index) -> str:
        """One element of an input."""
        if number in self._copies:
            return printer.name(f"copy{number}[{self._place(self._copies[number])}]")
        return super()._read(printer, number, index)

    def _vector(
        self,
        printer: ElementPrinter,
        index: Index,
        total: str,
        vectors: dict[tuple[int, str], str],
    ) -> None:
        made: list[str] = []
        for number in range(2 if is_contraction(self.layout.op) else 1):
            text = self._lanes(printer, number, index)
            if (number, text) not in vectors:
                vectors[number, text] = f"lanes{len(vectors)}"
                self.line(f"{vectors[number, text]} = {text}")
            made.append(vectors[number, text])
        if len(made) == 2:
            self.line(f"{total} = add_product({made[0]}, {made[1]}, {total})")
        else:
            self.line(f"{total} = {_VECTORS[self._combine]}({total}, {made[0]})")

    def _lanes(self, printer: ElementPrinter, number: int, index: Index) -> str:
        """An element of an input for every lane."""
        vector, lane = self.nest.vector, self.layout.lane
        assert vector is not None
        assert lane is not None
        copy, amap = self._copies.get(number), maps(self.layout.op)[number]
        moved = self.nest.indices[lane].name in self.layout.moved_by(amap)
        if not moved:
            return f"spread_vector({vector.extent}, {self._read(printer, number, index)})"
        if copy is not None:
            return f"load_vector({vector.extent}, copy{number}, {self._place(copy)})"
        value = self.layout.op.inputs[number]
        where = tuple(printer.affine(e, index) for e in amap.results)
        place = linear(where, tensor_type(value).get_shape())
        return f"load_vector({vector.extent}, {self.binder.pointer(value)}, {place})"

    def _store(self, number: int) -> None:
        vector, lane = self.nest.vector, self.layout.lane
        if vector is None:
            self.line(f"STORE_({self._call(f'total{number}')})")
            return
        assert lane is not None
        printer = self._printer()
        index = self._index(printer)[: len(self._names)]
        if self._stored_whole:
            result = f"p{len(self.binder.block.args)}"
            place = linear(index, self.binder.root.parallel)
            self.line(f"store_vector({result}, {place}, total{number})")
            return
        self.line(f"store_vector(spilt, 0, total{number})")
        self.line(f"for lane in range({vector.extent}):")
        at = [f"{i} + lane" if d == lane else i for d, i in enumerate(index)]
        where = ", ".join([self.operands, *at])
        total = "spilt[lane]"
        if not self._uniform:
            total = f"COMBINE_(INIT_({where}), {total})"
        self.line(f"    STORE_({where}, {total})")


def body_of(binder: Binder, layout: Layout) -> list[str]:
    """The statements of `NEST`; what they call is bound."""
    printer = NestPrinter(binder, layout)
    printer.print()
    return printer.body()
