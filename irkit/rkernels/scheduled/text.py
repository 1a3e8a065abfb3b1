"""Print a scheduled nest as Numba statements: `NEST(OPERANDS, task, scratch)`.

Loops outside of what is reduced run over tiles of sums, which are in registers (`total0`, ...) while the
reduced loops run; then they are stored through the epilogue. `INIT` and `STORE` take every index of the
result (docs/emission.md).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue

from irkit.dialects.linalg_generic import combiner, is_contraction, maps
from irkit.dialects.tensor_ops.interface import Index
from irkit.dialects.types import tensor_type
from irkit.expressions.nest import Axis, Fused, Split
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import ElementPrinter, linear
from irkit.rkernels.binding.scalars import COMBINE, numba_type
from irkit.rkernels.scheduled.layout import Copy, Layout

_VECTORS = {
    "add": "add_vectors",
    "mul": "multiply_vectors",
    "max": "greater_vectors",
    "min": "smaller_vectors",
}


@dataclass
class _Known:
    """What is known of loops that are open: their numbers, where parts begin, how long they are."""

    values: dict[str, str] = field(default_factory=dict[str, str])
    begins: dict[str, str] = field(default_factory=dict[str, str])
    lengths: dict[str, str] = field(default_factory=dict[str, str])

    def copy(self, values: Mapping[str, str] | None = None) -> _Known:
        """The same, and the numbers of these loops."""
        return _Known({**self.values, **(values or {})}, dict(self.begins), dict(self.lengths))


class NestPrinter:
    """Prints the nest of one rOperator; `lines` are the statements of the function."""

    def __init__(self, binder: Binder, layout: Layout) -> None:
        self.binder, self.layout, self.nest = binder, layout, layout.nest
        self.operands = binder.binding.operands
        self._base = ElementPrinter()
        self.lines = self._base.lines
        self._indent = 0
        self._known: _Known = _Known()
        self._copies = layout.copies
        self._low: dict[str, str] = {}
        self._names_made: dict[str, int] = {}
        element = tensor_type(layout.op.results[0]).element_type
        self._float = numba_type(element)
        self._names = [f"i{d}" for d in range(len(binder.root.parallel))]
        found = combiner(layout.op)
        assert found is not None
        self._combine = found[0]

    # Statements

    def line(self, text: str) -> None:
        """A statement at the depth at hand."""
        self.lines.append("    " * self._indent + text)

    def _printer(self) -> ElementPrinter:
        """For elements at the depth at hand; names are those of no other printer."""
        made = self._base.branch()
        made.indent = self._indent
        return made

    def print(self) -> None:
        """All statements, and the functions that they call."""
        arguments = ", ".join(self._names)
        self.binder.init(arguments, lambda _: tuple(self._names))
        self.binder.store(
            f"{arguments}, acc", lambda _: tuple(self._names), self.binder.accumulated
        )
        self.binder.binding.function("COMBINE", "acc, term", [f"return {COMBINE[self._combine]}"])
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
        nest, known = self.nest, self._known
        self.line("part = task")
        for axis, parts in reversed(list(zip(nest.indices, nest.grid, strict=False))):
            known.lengths[axis.name] = str(axis.extent)
            if parts == 1:
                continue
            name = axis.name
            self.line(f"part_{name} = part % {parts}")
            self.line(f"part = part // {parts}")
            self.line(f"low_{name} = ({axis.extent} * part_{name}) // {parts}")
            self.line(f"turns_{name} = ({axis.extent} * (part_{name} + 1)) // {parts} - low_{name}")
            self._low[name], known.lengths[name] = f"low_{name}", f"turns_{name}"
        for axis in nest.indices:
            known.lengths.setdefault(axis.name, str(axis.extent))
        for origin in nest.origins:
            self._lengths(origin)
        if self.nest.vector is not None:
            known.values[self.nest.vector.name] = "0"
        for number, copy in self._copies.items():
            kind = numba_type(tensor_type(self.layout.op.inputs[number]).element_type)
            self.line(f"copy{number} = {kind}p(scratch + {copy.offset})")
        if self.nest.vector is not None and not self._stored_whole:
            self.line(f"spilt = {self._float}p(scratch + {self.layout.spill})")
        self._settle()

    def _lengths(self, origin: Split | Fused) -> None:
        lengths = self._known.lengths
        if isinstance(origin, Fused):
            lengths[origin.made] = str(origin.outer.extent * origin.inner.extent)
            return
        lengths[origin.inner] = str(origin.by)
        if origin.of.whole:
            lengths[origin.outer] = str(-(-origin.of.extent // origin.by))
            return
        name = f"turns_{origin.outer}"
        self.line(f"{name} = ({lengths[origin.of.name]} + {origin.by - 1}) // {origin.by}")
        lengths[origin.outer] = name

    # Loops and indices

    def _open(self, axis: Axis, at: int, fill: bool = True) -> None:
        """A loop, and what is known inside of it."""
        self.line(f"for at_{axis.name} in range({self._known.lengths[axis.name]}):")
        self._indent += 1
        self._known.values[axis.name] = f"at_{axis.name}"
        self._settle()
        if fill:
            self._fill(at)

    def _settle(self) -> None:
        """Where parts begin whose numbers are known by now."""
        known = self._known
        for origin in reversed(self.nest.origins):
            if isinstance(origin, Fused):
                made = self._value(origin.made)
                if made is not None and origin.outer.name not in known.values:
                    over = origin.inner.extent
                    for name, text in ((origin.outer.name, "//"), (origin.inner.name, "%")):
                        known.values[name] = self._fresh(f"at_{name}")
                        self.line(f"{known.values[name]} = ({made}) {text} {over}")
                continue
            outer, of = self._value(origin.outer), origin.of
            if outer is None or of.name in known.begins:
                continue
            begin = f"({outer}) * {origin.by}"
            if not origin.exact and not of.reduced:
                begin = f"min({begin}, {known.lengths[of.name]} - {origin.by})"
            start = self._fresh(f"from_{of.name}")
            self.line(f"{start} = {begin}")
            known.begins[of.name] = start
            if not origin.exact and of.reduced:
                left = f"{known.lengths[of.name]} - {start}"
                known.lengths[origin.inner] = self._fresh(f"turns_{origin.inner}")
                self.line(f"{known.lengths[origin.inner]} = min({origin.by}, {left})")

    def _fresh(self, name: str) -> str:
        """A name that nothing else has: what is known by one is not known of another turn."""
        self._names_made[name] = number = self._names_made.get(name, 0) + 1
        return name if number == 1 else f"{name}_{number}"

    def _value(self, name: str) -> str | None:
        """A loop's or index's number within its part; None where it is not known yet."""
        if name in self._known.values:
            return self._known.values[name]
        for origin in self.nest.origins:
            if isinstance(origin, Split) and origin.of.name == name:
                inner = self._value(origin.inner)
                if inner is None or name not in self._known.begins:
                    return None
                return _plus(self._known.begins[name], inner)
        return None

    def _index(self, printer: ElementPrinter) -> Index:
        """The statement's indices, of which a nest that is open knows some."""
        found: list[str] = []
        for axis in self.nest.indices:
            value = self._value(axis.name)
            if value is None:
                # Of no concern to what is read here.
                found.append("0")
                continue
            low = self._low.get(axis.name)
            found.append(printer.name(_plus(value, low) if low is not None else value))
        return tuple(found)

    def _unrolled(self, reduced: bool) -> list[dict[str, str]]:
        """Values of the loops that are written out, all but the reduced ones where not `reduced`."""
        axes = [a for a in self.nest.order if a.mark == "unroll" and (reduced or not a.reduced)]
        turns = itertools.product(*(range(a.extent) for a in axes))
        return [{a.name: str(v) for a, v in zip(axes, t, strict=True)} for t in turns]

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

    def _neutral(self) -> str:
        floats = self._float.startswith("float")
        if self._combine in ("add", "mul"):
            return "0" if self._combine == "add" else "1"
        if floats:
            return "-math.inf" if self._combine == "max" else "math.inf"
        bits = int(self._float.removeprefix("int"))
        return str(-(1 << bits - 1)) if self._combine == "max" else str((1 << bits - 1) - 1)

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

    def _call(self, *more: str) -> str:
        """Arguments of INIT and STORE at the turns at hand."""
        printer = self._printer()
        index = self._index(printer)[: len(self._names)]
        return ", ".join([self.operands, *index, *more])

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
        amap = maps(self.layout.op)[number]
        where = tuple(printer.affine(e, index) for e in amap.results)
        return printer.element(self.layout.op.inputs[number], where)

    def _scalar(self, printer: ElementPrinter, index: Index, total: str) -> None:
        op, found = self.layout.op, combiner(self.layout.op)
        assert found is not None
        arguments = list(zip(op.body.block.args, op.inputs, strict=False))
        values: dict[SSAValue, str] = {
            argument: self._read(printer, number, index)
            for number, (argument, _) in enumerate(arguments)
            if argument.uses
        }
        (term,) = printer.body(op, values, index, skip=found[1])
        self.line(f"{total} = COMBINE_({total}, {term})")

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


def _plus(base: str, other: str) -> str:
    if base == "0" or other == "0":
        return other if base == "0" else base
    return f"{base} + {other}"


def body_of(binder: Binder, layout: Layout) -> list[str]:
    """The statements of `NEST`; what they call is bound."""
    printer = NestPrinter(binder, layout)
    printer.print()
    names = binder.binding.names
    called = {f"{n}_(": f"{names[n]}(" for n in ("INIT", "STORE", "COMBINE")}
    found: list[str] = []
    for line in printer.lines:
        for short, name in called.items():
            line = line.replace(short, name)
        found.append(line)
    return [*found, "return"] if found else ["return"]
