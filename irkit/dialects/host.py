"""The `host` dialect: DAGs of kernels on a host and its GPU.

A program is the buffers and the tasks of a DAG in program order. A task says which regions of which
buffers it reads and writes; scheduled, it also has a queue, the host's (0) or a stream, and the tasks
whose events it waits for.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    DenseArrayBase,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolNameConstraint,
    f64,
    i64,
)
from xdsl.ir import (
    Attribute,
    Block,
    Dialect,
    ParametrizedAttribute,
    Region,
    SSAValue,
    TypeAttribute,
)
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, NoTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from irkit.dialects.types import int_array, ints

KINDS = ("kernel", "program", "function", "collective", "to_device", "to_host")
ON_HOST = ("function",)
"""Kinds of tasks that the host does itself."""
SPACES = ("host", "device")
ACCESSES = ("reads", "writes", "updates")


@irdl_attr_definition
class MemoryType(ParametrizedAttribute, TypeAttribute):
    """Bytes of a buffer."""

    name = "host.memory"


@irdl_attr_definition
class UseType(ParametrizedAttribute, TypeAttribute):
    """What a task does with a region of a buffer."""

    name = "host.use"


@irdl_attr_definition
class EventType(ParametrizedAttribute, TypeAttribute):
    """What a task yields: it comes when the task has ended."""

    name = "host.event"


@irdl_op_definition
class BufferOp(IRDLOperation):
    """An allocation of the host or the device. What shares memory lies in one.

    ```mlir
    host.program @dag {
      %x = host.buffer {space = "device", nbytes = 64 : i64}
    }
    ```
    """

    name = "host.buffer"
    space = prop_def(StringAttr)
    nbytes = prop_def(IntegerAttr[IntegerType])
    memory = result_def(MemoryType)
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict"

    def __init__(self, space: str, nbytes: int) -> None:
        super().__init__(
            properties={"space": StringAttr(space), "nbytes": IntegerAttr(nbytes, i64)},
            result_types=[MemoryType()],
        )

    def verify_(self) -> None:
        if self.space.data not in SPACES:
            raise VerifyException(
                f"'host.buffer' expects a space of {', '.join(SPACES)}, got '{self.space.data}'"
            )
        if self.nbytes.value.data < 0:
            raise VerifyException(f"'host.buffer' expects bytes, got {self.nbytes.value.data}")


@irdl_op_definition
class RegionOp(IRDLOperation):
    """Elements of a buffer, and what a task does with them: `reads`, `writes`, or both, `updates`.

    Element (i, j, ...) has `itemsize` bytes at offset + i * strides[0] + j * strides[1] + ...; a run
    of bytes is one element.

    ```mlir
    host.program @dag {
      %x = host.buffer {space = "device", nbytes = 64 : i64}
      %0 = host.region %x updates 8 bytes at 16 of [2] by [32] {label = "x"}
      host.task "scale" kernel uses(%0)
    }
    ```
    """

    name = "host.region"
    memory = operand_def(MemoryType)
    access = prop_def(StringAttr)
    offset = prop_def(IntegerAttr[IntegerType])
    itemsize = prop_def(IntegerAttr[IntegerType])
    sizes = prop_def(DenseArrayBase)
    strides = prop_def(DenseArrayBase)
    label = opt_prop_def(StringAttr)
    region = result_def(UseType)

    def __init__(
        self,
        memory: SSAValue,
        access: str,
        place: tuple[int, int],
        sizes: Sequence[int] = (),
        strides: Sequence[int] = (),
        label: str = "",
    ) -> None:
        offset, itemsize = place
        super().__init__(
            operands=[memory],
            properties={
                "access": StringAttr(access),
                "offset": IntegerAttr(offset, i64),
                "itemsize": IntegerAttr(itemsize, i64),
                "sizes": int_array(sizes),
                "strides": int_array(strides),
                "label": StringAttr(label) if label else None,
            },
            result_types=[UseType()],
        )

    def verify_(self) -> None:
        if self.access.data not in ACCESSES:
            raise VerifyException(
                f"'host.region' expects one of {', '.join(ACCESSES)}, got '{self.access.data}'"
            )
        sizes, strides = ints(self.sizes), ints(self.strides)
        if len(sizes) != len(strides):
            raise VerifyException(
                f"'host.region' expects as many strides as sizes, got {len(strides)} for {len(sizes)}"
            )
        numbers = (self.offset.value.data, self.itemsize.value.data, *sizes)
        if min(numbers) < 0 or min(strides, default=1) < 1:
            raise VerifyException(
                "'host.region' expects sizes that are not negative, strides above 0"
            )

    @classmethod
    def parse(cls, parser: Parser) -> RegionOp:
        memory = _operand(parser, MemoryType())
        access = parser.parse_identifier()
        itemsize = parser.parse_integer()
        parser.parse_keyword("bytes")
        parser.parse_keyword("at")
        offset = parser.parse_integer()
        sizes: list[int] = []
        strides: list[int] = []
        if parser.parse_optional_keyword("of"):
            sizes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
            parser.parse_keyword("by")
            strides = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, parser.parse_integer
            )
        found = cls(memory, access, (offset, itemsize), sizes, strides)
        _take_attributes(parser, found, ("label",))
        return found

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.memory)
        printer.print_string(
            f" {self.access.data} {self.itemsize.value.data} bytes at {self.offset.value.data}"
        )
        if ints(self.sizes):
            sizes, strides = (", ".join(map(str, ints(n))) for n in (self.sizes, self.strides))
            printer.print_string(f" of [{sizes}] by [{strides}]")
        _print_attributes(printer, self, ("label",))


@irdl_op_definition
class TaskOp(IRDLOperation):
    """A kernel launch, a program of irkit's, a function of the host, what the ranks of a group do together, or a
    copy.

    `on q` is its queue, 0 the host's and others streams; `wait(...)` are events of earlier tasks.
    `line` is where it stands in the user's file, `cost_ns` an estimate of its time.

    ```mlir
    host.program @dag {
      %x = host.buffer {space = "device", nbytes = 64 : i64}
      %0 = host.region %x writes 64 bytes at 0
      %t0 = host.task "fill" kernel on 1 uses(%0) {line = "user.py:3"}
      %1 = host.region %x reads 32 bytes at 0
      %t1 = host.task "sum" kernel on 2 wait(%t0) uses(%1) {cost_ns = 1.0 : f64}
    }
    ```
    """

    name = "host.task"
    label = prop_def(StringAttr)
    kind = prop_def(StringAttr)
    queue = opt_prop_def(IntegerAttr[IntegerType])
    line = opt_prop_def(StringAttr)
    cost_ns = opt_prop_def(FloatAttr[Float64Type])
    waits = var_operand_def(EventType)
    uses = var_operand_def(UseType)
    event = result_def(EventType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        label: str,
        kind: str,
        uses: Sequence[SSAValue],
        queue: int | None = None,
        waits: Sequence[SSAValue] = (),
        line: str = "",
        cost_ns: float | None = None,
    ) -> None:
        super().__init__(
            operands=[waits, uses],
            properties={
                "label": StringAttr(label),
                "kind": StringAttr(kind),
                "queue": None if queue is None else IntegerAttr(queue, i64),
                "line": StringAttr(line) if line else None,
                "cost_ns": None if cost_ns is None else FloatAttr(cost_ns, f64),
            },
            result_types=[EventType()],
        )

    def verify_(self) -> None:
        kind = self.kind.data
        if kind not in KINDS:
            raise VerifyException(f"'host.task' expects a kind of {', '.join(KINDS)}, got '{kind}'")
        if self.queue is None:
            if self.waits:
                raise VerifyException("'host.task' waits for events only where it has a queue")
            return
        queue = self.queue.value.data
        if queue < 0 or (queue == 0) != (kind in ON_HOST):
            raise VerifyException(f"'host.task' expects no {kind} on queue {queue}")

    @classmethod
    def parse(cls, parser: Parser) -> TaskOp:
        label, kind = parser.parse_str_literal(), parser.parse_identifier()
        queue = parser.parse_integer() if parser.parse_optional_keyword("on") else None
        groups = [_group(parser, "wait", EventType()), _group(parser, "uses", UseType())]
        found = cls(label, kind, groups[1], queue, groups[0])
        _take_attributes(parser, found, ("line", "cost_ns"))
        return found

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.label)
        printer.print_string(f" {self.kind.data}")
        if self.queue is not None:
            printer.print_string(f" on {self.queue.value.data}")
        for keyword, operands in (("wait", self.waits), ("uses", self.uses)):
            if operands:
                printer.print_string(f" {keyword}(")
                printer.print_list(operands, printer.print_ssa_value)
                printer.print_string(")")
        _print_attributes(printer, self, ("line", "cost_ns"))


@irdl_op_definition
class ProgramOp(IRDLOperation):
    """A DAG of tasks in program order. `verified` is the digest of what was proved.

    ```mlir
    host.program @dag attributes {verified = "sha256:0"} {
      %x = host.buffer {space = "host", nbytes = 8 : i64}
    }
    ```
    """

    name = "host.program"
    sym_name = prop_def(SymbolNameConstraint())
    verified = opt_prop_def(StringAttr)
    body = region_def("single_block")
    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove(), NoTerminator())

    def __init__(self, name: str, body: Region) -> None:
        super().__init__(properties={"sym_name": StringAttr(name)}, regions=[body])

    def verify_(self) -> None:
        for op in self.body.block.ops:
            if not isinstance(op, (BufferOp, RegionOp, TaskOp)):
                raise VerifyException(
                    f"'host.program' holds buffers, regions and tasks, not '{op.name}'"
                )

    @classmethod
    def parse(cls, parser: Parser) -> ProgramOp:
        name = parser.parse_symbol_name()
        attributes = parser.parse_optional_attr_dict_with_keyword()
        given = dict(attributes.data) if attributes else {}
        verified = given.pop("verified", None)
        region = parser.parse_region()
        if not region.blocks:
            region.add_block(Block())
        found = cls(name.data, region)
        if verified is not None:
            found.properties["verified"] = verified
        found.attributes.update(given)
        return found

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        shown: dict[str, Attribute] = dict(self.attributes)
        if self.verified is not None:
            shown["verified"] = self.verified
        if shown:
            printer.print_string(" attributes")
            printer.print_op_attributes(shown)
        printer.print_string(" ")
        printer.print_region(self.body)


def _operand(parser: Parser, typed: Attribute) -> SSAValue:
    return parser.resolve_operand(parser.parse_unresolved_operand(), typed)


def _group(parser: Parser, keyword: str, typed: Attribute) -> Sequence[SSAValue]:
    """`keyword(%a, %b)`, or nothing"""
    if not parser.parse_optional_keyword(keyword):
        return ()
    return parser.parse_comma_separated_list(
        parser.Delimiter.PAREN, lambda: _operand(parser, typed)
    )


def _take_attributes(parser: Parser, op: IRDLOperation, properties: Sequence[str]) -> None:
    """An attribute dictionary, some of whose entries are properties."""
    for key, value in parser.parse_optional_attr_dict().items():
        (op.properties if key in properties else op.attributes)[key] = value


def _print_attributes(printer: Printer, op: IRDLOperation, properties: Sequence[str]) -> None:
    shown = {k: v for k, v in op.properties.items() if k in properties}
    printer.print_op_attributes(shown | op.attributes)


Host = Dialect("host", [BufferOp, ProgramOp, RegionOp, TaskOp], [EventType, MemoryType, UseType])
__all__ = ["BufferOp", "Host", "ProgramOp", "RegionOp", "TaskOp"]
