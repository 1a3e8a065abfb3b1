"""What the printers of scheduled nests share: loops, indices, and elements at the turns at hand."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from irkit.dialects.linalg_generic import combiner, maps
from irkit.dialects.tensor_ops.interface import Index
from irkit.dialects.types import tensor_type
from irkit.expressions.loops import Fused, Split
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import ElementPrinter
from irkit.rkernels.binding.scalars import COMBINE, numba_type
from irkit.rkernels.scheduled.layout import Layout


@dataclass
class Known:
    """What is known of loops that are open: their numbers, where parts begin, how long they are."""

    values: dict[str, str] = field(default_factory=dict[str, str])
    begins: dict[str, str] = field(default_factory=dict[str, str])
    lengths: dict[str, str] = field(default_factory=dict[str, str])

    def copy(self, values: Mapping[str, str] | None = None) -> Known:
        """The same, and the numbers of these loops."""
        return Known({**self.values, **(values or {})}, dict(self.begins), dict(self.lengths))


class LoopPrinter:
    """Prints the nest of one rOperator; `lines` are the statements of the function, `marks` those of loops
    that are written out."""

    marks: tuple[str, ...] = ("unroll",)

    def __init__(self, binder: Binder, layout: Layout) -> None:
        self.binder, self.layout, self.nest = binder, layout, layout.nest
        self.operands = binder.binding.operands
        self._base = ElementPrinter()
        self.lines = self._base.lines
        self._indent = 0
        self._known: Known = Known()
        self._low: dict[str, str] = {}
        self._names_made: dict[str, int] = {}
        element = tensor_type(layout.op.results[0]).element_type
        self._float = numba_type(element)
        self._names = [f"i{d}" for d in range(len(binder.root.parallel))]
        found = combiner(layout.op)
        assert found is not None
        self._combine = found[0]

    def body(self) -> list[str]:
        """The statements, with the names of what they call."""
        names = self.binder.binding.names
        called = {f"{n}_(": f"{names[n]}(" for n in ("INIT", "STORE", "COMBINE")}
        found: list[str] = []
        for line in self.lines:
            for short, name in called.items():
                line = line.replace(short, name)
            found.append(line)
        return [*found, "return"]

    def _bind(self) -> None:
        """What the statements call."""
        arguments = ", ".join(self._names)
        self.binder.init(arguments, lambda _: tuple(self._names))
        self.binder.store(
            f"{arguments}, acc", lambda _: tuple(self._names), self.binder.accumulated
        )
        self.binder.binding.function("COMBINE", "acc, term", [f"return {COMBINE[self._combine]}"])

    # Statements

    def line(self, text: str) -> None:
        """A statement at the depth at hand."""
        self.lines.append("    " * self._indent + text)

    def _printer(self) -> ElementPrinter:
        """For elements at the depth at hand; names are those of no other printer."""
        made = self._base.branch()
        made.indent = self._indent
        return made

    def _parts(self) -> None:
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

    def _settle(self) -> None:
        """Where parts begin whose numbers are known by now."""
        known = self._known
        for origin in reversed(self.nest.origins):
            if isinstance(origin, Fused):
                made = self._value(origin.made)
                if made is not None and origin.outer.name not in known.values:
                    over = origin.inner.extent
                    outer, inner = origin.outer.name, origin.inner.name
                    for name in (outer, inner):
                        known.values[name] = self._fresh(f"at_{name}")
                    self._divide(known.values[outer], known.values[inner], made, over)
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

    def _divide(self, outer: str, inner: str, made: str, over: int) -> None:
        """Quotient and remainder."""
        self.line(f"{outer} = ({made}) // {over}")
        self.line(f"{inner} = ({made}) % {over}")

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
                return plus(self._known.begins[name], inner)
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
            found.append(printer.name(plus(value, low) if low is not None else value))
        return tuple(found)

    def _unrolled(self, reduced: bool) -> list[dict[str, str]]:
        """Values of the loops that are written out, all but the reduced ones where not `reduced`."""
        axes = [a for a in self.nest.order if a.mark in self.marks and (reduced or not a.reduced)]
        turns = itertools.product(*(range(a.extent) for a in axes))
        return [{a.name: str(v) for a, v in zip(axes, t, strict=True)} for t in turns]

    # Elements

    def _call(self, *more: str) -> str:
        """Arguments of INIT and STORE at the turns at hand."""
        printer = self._printer()
        index = self._index(printer)[: len(self._names)]
        return ", ".join([self.operands, *index, *more])

    def _neutral(self) -> str:
        floats = self._float.startswith("float")
        if self._combine in ("add", "mul"):
            return "0" if self._combine == "add" else "1"
        if floats:
            return "-math.inf" if self._combine == "max" else "math.inf"
        bits = int(self._float.removeprefix("int"))
        return str(-(1 << bits - 1)) if self._combine == "max" else str((1 << bits - 1) - 1)

    def _read(self, printer: ElementPrinter, number: int, index: Index) -> str:
        """One element of an input."""
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


def plus(base: str, other: str) -> str:
    """A sum of two texts, of which one may be nothing."""
    if base == "0" or other == "0":
        return other if base == "0" else base
    return f"{base} + {other}"
