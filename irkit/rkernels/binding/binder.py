"""Binds one rOperator: what the placeholders of its rKernel stand for (docs/emission.md).

What the body says becomes *fused functions*, which each family of rKernels asks for by name.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import (
    Float32Type,
    Float64Type,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    i1,
)
from xdsl.ir import Attribute, BlockArgument, SSAValue

from irkit.dialects.access_boxes import grid_of
from irkit.dialects.roperator_root import Root
from irkit.dialects.task import AppendOp, ProgramOp, ROperatorOp
from irkit.dialects.tensor_ops.interface import Index
from irkit.dialects.tensor_ops.registry import through_reshapes
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.dialects.value_addresses import follows_values
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.elements import ElementPrinter, delinearised, linear
from irkit.rkernels.binding.inserted import (
    Inserted,
    inserted_of,
    span,
    step_of,
    store_outside,
    store_slices,
    store_within,
)
from irkit.rkernels.binding.longest import Longest
from irkit.rkernels.binding.read_ahead import read_ahead
from irkit.rkernels.binding.scalars import memory_type, numba_type
from irkit.rkernels.rkernel import Target
from irkit.rkernels.templates import function_source, specialise
from irkit.schedule.library_call import LibraryCall


@dataclass
class Binding:
    """What the placeholders of one rOperator's rKernel become, and the functions they name.

    `spread`: how many blocks at most may share an rTask that runs alone on a GPU; just as many do, of one
    cluster, if `clustered`. `side_by_side`: how many of them are to fit on a multiprocessor. `rows_at_once`:
    how many rows of the batch a block is given there, if there are so many. `wide`: operands that fused
    functions read or write in vectors where VECTOR is 1. `parts`: functions that are needed where the
    rKernel's template names them, by placeholder. `longest`: which rTasks should start first, where that
    matters.
    `follows_values`: where the rKernel reads or writes may hang on values. `aligned`: all operands are at
    multiples of 16 bytes, which the compiler is told.
    """

    symbol: str
    pointers: list[str]
    pointer_types: list[str]
    names: dict[str, str] = field(default_factory=dict[str, str])
    functions: list[str] = field(default_factory=list[str])
    resident: bool = False
    scratch_bytes: int = 0
    batch: bool = False
    spread: int = 1
    side_by_side: int = 1
    clustered: bool = False
    longest: Longest | None = None
    rows_at_once: int = 1
    call: LibraryCall | None = None
    wide: set[int] = field(default_factory=set[int])
    parts: dict[str, str] = field(default_factory=dict[str, str])
    follows_values: bool = False
    aligned: bool = False

    @property
    def operands(self) -> str:
        """`p0, p1, ...`"""
        return ", ".join(self.pointers)

    def function(self, placeholder: str, arguments: str, lines: Sequence[str]) -> None:
        """Add a fused function `<symbol>_<placeholder>(arguments)`."""
        self.functions.append(self._text(placeholder, arguments, lines))

    def needed(self, placeholder: str, arguments: str, lines: Sequence[str]) -> None:
        """A fused function of the operands and `arguments`, where the rKernel's template names it."""
        self.parts[placeholder] = self._text(placeholder, f"{self.operands}, {arguments}", lines)

    def _text(self, placeholder: str, arguments: str, lines: Sequence[str]) -> str:
        name = f"{self.symbol}_{placeholder.lower()}"
        self.names[placeholder] = name
        body = "\n".join(f"    {line}" for line in lines)
        return f"@fused\ndef {name}({arguments}):\n{body}\n"

    def part(self, placeholder: str, module: str, function: str) -> None:
        """`placeholder` is a function of a module whose own placeholders have got their meaning before."""
        name = f"{self.symbol}_{placeholder.lower()}"
        text = specialise(function_source(module, function), function, name, self.names)
        self.names[placeholder] = name
        self.parts[placeholder] = f"@fused\n{text}"


class Binder:
    """Binds one rOperator for a target; `root` is that of its body.

    Families call its methods; each gives a placeholder its meaning.
    """

    def __init__(self, op: ROperatorOp, root: Root, target: Target) -> None:
        self.op, self.block, self.root = op, op.body.block, root
        self.target: Target = target
        values = [*self.block.args, *op.terminator.values]
        types = [memory_type(tensor_type(v).element_type) for v in values]
        self.binding = Binding(op.sym_name.data, [f"p{i}" for i in range(len(values))], types)
        self.binding.names["OPERANDS"] = self.binding.operands
        self.binding.batch = self.root.parallel[:1] == (DYNAMIC,)
        self.binding.follows_values = follows_values(self.block)
        rank = len(self.root.parallel)
        split = self.root.family not in ("argmax", "row_sums") and rank > 0
        if rank == 1 and self.root.parallel[0] == DYNAMIC:
            split = False
        self.lead = self.root.parallel[: rank - 1] if split else self.root.parallel
        self.last = self.root.parallel[-1] if split else 1
        self.split = split
        self.at: Index = ()
        self.literal("J", self.last)
        self.literal("ROWS", 0 if DYNAMIC in self.lead else math.prod(self.lead))
        value = self.root.value if self.root.value is not None else self.op.terminator.values[0]
        self.binding.names["FLOAT"] = numba_type(tensor_type(value).element_type)

    def literal(self, name: str, value: int) -> None:
        """Placeholder `name` is a number."""
        self.binding.names[name] = str(value)

    def parameter(self, name: str) -> int:
        """A parameter of its rKernel. Raises UnsupportedError where it has no such number."""
        given = self.op.parameters.data.get(name) if self.op.parameters is not None else None
        if not isinstance(given, IntegerAttr):
            raise UnsupportedError(f"parameter {name}: expected an integer, got {given}")
        return given.value.data

    def has_parameter(self, name: str) -> bool:
        """Whether its rKernel has a parameter of this name."""
        return self.op.parameters is not None and name in self.op.parameters.data

    # Index helpers

    def index(self, r: str, j: str, printer: ElementPrinter) -> Index:
        """Index into the root's parallel dimensions, names bound in `printer`."""
        lead = [printer.name(i) for i in delinearised(r, self.lead)]
        return (*lead, j) if self.split else tuple(lead)

    def range(self) -> None:
        """`RANGE(task, tasks, rows)`: this rTask's part of rows r and columns j."""
        grid = grid_of(self.op, self.root)
        lead = grid[: len(self.lead)]
        across = grid[-1] if self.split else 1
        axis = max((d for d, g in enumerate(lead) if g > 1), default=0)
        if any(g != s for g, s in zip(lead[:axis], self.lead, strict=False)):
            raise UnsupportedError(
                f"grid {grid}: dimensions before the last that is cut must be cut into single elements"
            )
        inner = math.prod(self.lead[axis + 1 :])
        lines: list[str] = []
        if not self.lead:
            lines.append("r0, r1, number = 0, 1, task")
        elif self.lead[0] == DYNAMIC:
            scale = "" if inner == 1 else f" * {inner}"
            lines.append(f"r0 = (rows * task) // tasks{scale}")
            lines.append(f"r1 = (rows * (task + 1)) // tasks{scale}")
            lines.append("number = 0")
        else:
            size, parts = self.lead[axis], lead[axis]
            lines.append(f"number = task % {across}")
            lines.append(f"part = (task // {across}) % {parts}")
            lines.append(f"outer = task // {across * parts}")
            lines.append(f"r0 = (outer * {size} + ({size} * part) // {parts}) * {inner}")
            lines.append(f"r1 = (outer * {size} + ({size} * (part + 1)) // {parts}) * {inner}")
        lines.append(f"j0 = ({self.last} * number) // {across}")
        lines.append(f"j1 = ({self.last} * (number + 1)) // {across}")
        lines.append("return r0, r1, j0, j1")
        self.binding.function("RANGE", "task, tasks, rows", lines)

    def units(self) -> None:
        """`UNITS(task, tasks)`: this rTask's part of dimension u; all of it where rows are shared."""
        size, tasks = self.root.parallel[1], grid_of(self.op, self.root)[1]
        part = f"return ({size} * task) // tasks, ({size} * (task + 1)) // tasks"
        if self.target == "cuda" and size * tasks < 1 << 32:
            # No division of 64 bits, nor by what is not known: it would take as long as a product.
            part = (
                f"return divide({size} * task, {tasks})[0], divide({size} * (task + 1), {tasks})[0]"
            )
        if self.root.parallel[0] == DYNAMIC:
            part = f"return 0, {size}"
        self.binding.function("UNITS", "task, tasks", [part])

    # Pieces shared by families

    def store(
        self,
        arguments: str,
        index: Callable[[ElementPrinter], Index],
        accumulator: Callable[[Index], str],
        ahead: str | None = None,
        placeholder: str = "STORE",
        known: Mapping[SSAValue, str] | None = None,
    ) -> None:
        """`STORE`, or another `placeholder`: the epilogue of one element of the root, into every result.
        Elements of the operands `known` are those texts.

        With `ahead`, the arguments that name the element, it takes one more, `known`: what
        `FETCH(OPERANDS, ahead)` returns, the elements of operands that do not wait for the sums; `NOTHING` is
        of the same type.

        Raises UnsupportedError for a result that is not as large as the root's part of it.
        """
        printer = ElementPrinter(results=self.written_over())
        where = index(printer)
        if self.root.value is not None:
            printer.known[self.root.value] = accumulator
        for operand, text in (known or {}).items():
            printer.known[operand] = lambda _, text=text: text
        first = len(self.block.args)
        extents = self.root.parallel[: len(where)]
        stores: list[str] = []
        for number, value in enumerate(self.op.terminator.values):
            if value is self.root.value and len(where) < len(self.root.parallel):
                self._store_group(printer, f"p{first + number}", where, accumulator)
                continue
            if tuple(tensor_type(value).get_shape()) != extents:
                raise UnsupportedError(
                    f"result {number} of type {value.type} of a root over {extents}"
                )
            self.at = where
            if self._store_inserted(printer, value, where):
                continue
            text = printer.element(value, where)
            if tensor_type(value).element_type == i1:
                text = f"uint8(1) if {text} else uint8(0)"
            position = linear(where, extents)
            # What is written in place must not be read any more.
            (stores.append if self.op.in_place else printer.line)(
                f"p{first + number}[{position}] = {text}"
            )
        for line in stores:
            printer.line(line)
        if ahead is not None:
            arguments = f"{arguments}, known"
            printer.lines[:] = self._fetched(ahead, printer.lines)
        self.binding.function(placeholder, f"{self.binding.operands}, {arguments}", printer.lines)

    def _fetched(self, ahead: str, lines: Sequence[str]) -> list[str]:
        """`FETCH` and `NOTHING`; returns the `lines` of an epilogue that takes what is fetched as `known`."""
        # What is written in place is read where it is written.
        own = {number for number, _ in self.op.in_place_pairs}
        kinds = {
            f"p{number}": numba_type(kind)
            for number, kind in enumerate(tensor_type(a).element_type for a in self.block.args)
            if number not in own and _loads_plainly(kind)
        }
        found = read_ahead(lines, kinds)
        values = "".join(f"{name}, " for name in found.names)
        self.binding.function(
            "FETCH", f"{self.binding.operands}, {ahead}", [*found.before, f"return ({values})"]
        )
        named = zip(found.names, found.pointers, strict=True)
        zeros = "".join(f"{found.types.get(n, kinds[p])}(0), " for n, p in named)
        self.binding.names["NOTHING"] = f"({zeros})"
        return [*([f"{values}= known"] if values else []), *found.after]

    def _in_place(self, inserted: Inserted) -> bool:
        """Whether the one result is, in every append, where it is inserted into."""
        dest = inserted.dest
        argument = dest.index if isinstance(dest, BlockArgument) else -1
        pairs = list(self.op.in_place_pairs)
        return pairs == [(argument, 0)] and always_in_place(self.op, argument)

    def written_over(self) -> dict[int, str]:
        """Operands that every append has where a result is, and that result's pointer. Read by that, a
        compiler sees that an element is read where it is written."""
        first, pairs = len(self.block.args), self.op.in_place_pairs
        return {
            operand: f"p{first + result}"
            for operand, result in pairs
            if always_in_place(self.op, operand, result)
        }

    def _store_inserted(self, printer: ElementPrinter, value: SSAValue, where: Index) -> bool:
        """Write the elements of slices that are inserted in place, and no others; whether the one result
        is such."""
        inserted = inserted_of(value)
        if inserted is None or not self._in_place(inserted):
            return False
        place = f"p{len(self.block.args)}[{linear(where, tensor_type(value).get_shape())}]"
        store_slices(printer, where, place, inserted.slices)
        return True

    def store_within(self) -> None:
        """Where slices are inserted into the one result: `WITHIN(r, j0, j1)`, the columns of row r in the
        box of the largest, every STEP-th of which `STORE_WITHIN(OPERANDS, r, j)` computes; `STORE_OUTSIDE`
        others."""
        values = self.op.terminator.values
        inserted = inserted_of(values[0]) if len(values) == 1 else None
        if inserted is None or not self.split or self.root.op is not None:
            return
        in_place = self._in_place(inserted)
        step = step_of(inserted, in_place)
        self.literal("STEP", step)
        rows = ElementPrinter()
        lead = self.index("r", "j", rows)[:-1]
        lines = [*rows.lines, *span(inserted.largest, lead, step)]
        self.binding.function("WITHIN", "r, j0, j1", lines)
        pointer = f"p{len(self.block.args)}"
        for name in ("STORE_WITHIN", "STORE_OUTSIDE"):
            printer = ElementPrinter(results=self.written_over())
            where = self.rj_index(printer)
            if name == "STORE_WITHIN":
                store_within(printer, inserted, where, pointer, in_place, step)
            else:
                store_outside(printer, inserted, where, pointer, in_place)
            self.binding.function(name, f"{self.binding.operands}, r, j", printer.lines)

    def _store_group(
        self,
        printer: ElementPrinter,
        pointer: str,
        where: Index,
        accumulator: Callable[[Index], str],
    ) -> None:
        """Write all the sums of a group that is the result itself."""
        shape = self.root.parallel
        for rest in itertools.product(*(range(size) for size in shape[len(where) :])):
            index = (*where, *map(str, rest))
            printer.line(f"{pointer}[{linear(index, shape)}] = {accumulator(index)}")

    def accumulated(self, index: Index) -> str:
        """The element of the root that `STORE` is given: its own, and no other."""
        if index != self.at:
            raise UnsupportedError("an epilogue that reads another element of the root")
        return "acc"

    def load(
        self,
        placeholder: str,
        arguments: str,
        value: SSAValue,
        index: Callable[[ElementPrinter], Index],
    ) -> None:
        """A function that returns one element of `value`."""
        printer = ElementPrinter()
        printer.line(f"return {printer.element(value, index(printer))}")
        self.binding.function(placeholder, f"{self.binding.operands}, {arguments}", printer.lines)

    def init(self, arguments: str, index: Callable[[ElementPrinter], Index]) -> None:
        """`INIT`: what the accumulation starts from."""
        self.load("INIT", arguments, self.root.chain[0].outputs[0], index)

    def rj_index(self, printer: ElementPrinter) -> Index:
        """The index that variables r and j stand for."""
        return self.index("r", "j", printer)

    def pointer(self, value: SSAValue) -> str:
        """The operand that `value` is, up to reshapes. Raises UnsupportedError if it is computed."""
        value = through_reshapes(value)
        if not isinstance(value, BlockArgument):
            raise UnsupportedError("an operand that is read by pointer is computed")
        return f"p{value.index}"


def _loads_plainly(kind: Attribute) -> bool:
    """Whether an element in memory is what is computed with."""
    whole = isinstance(kind, IntegerType) and kind != i1
    return whole or isinstance(kind, Float32Type | Float64Type)


def always_in_place(op: ROperatorOp, operand: int, result: int = 0) -> bool:
    """Whether every append has an operand and a result in the same bytes. `in_place` says that they may be;
    what is not written must be there already."""
    module = op.parent_op()
    if not isinstance(module, ModuleOp):
        return False
    appends = [
        inner
        for program in module.ops
        if isinstance(program, ProgramOp)
        for inner in program.body.block.ops
        if isinstance(inner, AppendOp) and inner.callee.string_value() == op.sym_name.data
    ]
    return bool(appends) and all(a.reads[operand] is a.writes[result] for a in appends)
