"""Scheduled programs one after another, and in loops: as one program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FlatSymbolRefAttrConstr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    TensorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, NoTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from irkit.dialects.task.figures import check_figures
from irkit.dialects.task.program import parse_defined_operand
from irkit.dialects.types import int_array, ints


@dataclass(frozen=True)
class Place:
    """`buffer` from byte `offset` on; `steps` further on in each iteration of the loops around, the outermost
    first."""

    buffer: SSAValue
    offset: int = 0
    steps: tuple[int, ...] = ()


@irdl_op_definition
class RunOp(IRDLOperation):
    """Run a scheduled program: every vEU begins it when all have ended what stands before.

    `reads` are the program's inputs, `writes` its outputs, `state` its pairs of state, each in the order of
    their numbers. `%x at 8 step [16]`: from byte 8 of the buffer on, and 16 bytes further on in each iteration
    of the loop around; of several loops around the outermost first.

    ```mlir
    task.composite @main_schedule of @main attributes {device = @test4} {
      %x = task.buffer {space = "input", port = 0 : i64} : tensor<4xf32>
      %y = task.buffer {space = "output", port = 0 : i64} : tensor<4xf32>
      task.run @main_part1_schedule reads(%x) writes(%y)
      task.repeat 4 {
        task.run @main_part0_schedule reads(%x at 0 step [4]) state(%y)
      }
    }
    ```
    """

    name = "task.run"
    program = prop_def(FlatSymbolRefAttrConstr)
    offsets = opt_prop_def(DenseArrayBase)
    steps = opt_prop_def(DenseArrayBase)
    reads = var_operand_def(TensorType)
    writes = var_operand_def(TensorType)
    state = var_operand_def(TensorType)
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())

    def __init__(
        self, program: str, reads: Sequence[Place], writes: Sequence[Place], state: Sequence[Place]
    ) -> None:
        places = (*reads, *writes, *state)
        depth = max((len(p.steps) for p in places), default=0)
        steps = [s for p in places for s in (*p.steps, *(0,) * (depth - len(p.steps)))]
        moved = any(p.offset for p in places) or any(steps)
        super().__init__(
            operands=[[p.buffer for p in group] for group in (reads, writes, state)],
            properties={
                "program": SymbolRefAttr(program),
                "offsets": int_array([p.offset for p in places]) if moved else None,
                "steps": int_array(steps) if any(steps) else None,
            },
        )

    @property
    def depth(self) -> int:
        """How many loops there are around."""
        found, parent = 0, self.parent_op()
        while isinstance(parent, RepeatOp | WhileOp):
            found, parent = found + 1, parent.parent_op()
        return found

    def places(self) -> tuple[list[Place], list[Place], list[Place]]:
        """Where inputs, outputs and state lie."""
        count = len(self.operands)
        offsets, steps = ints(self.offsets) or [0] * count, ints(self.steps)
        depth = len(steps) // count if count else 0
        found = [
            Place(v, o, tuple(steps[n * depth : (n + 1) * depth]))
            for n, (v, o) in enumerate(zip(self.operands, offsets, strict=True))
        ]
        first, second = len(self.reads), len(self.reads) + len(self.writes)
        return found[:first], found[first:second], found[second:]

    def verify_(self) -> None:
        count, depth = len(self.operands), self.depth
        if self.offsets is not None and len(ints(self.offsets)) != count:
            raise VerifyException("'task.run' expects an offset of each operand")
        if min(ints(self.offsets), default=0) < 0:
            raise VerifyException(
                f"'task.run' expects offsets of 0 or more, got {ints(self.offsets)}"
            )
        given = len(ints(self.steps))
        if self.steps is not None and given != count * depth:
            raise VerifyException(
                f"'task.run' expects {depth} steps of each of {count} operands, got {given} in all"
            )

    @classmethod
    def parse(cls, parser: Parser) -> RunOp:
        program = parser.parse_symbol_name()
        groups = [
            parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_place(parser))
            if parser.parse_optional_keyword(keyword)
            else []
            for keyword in ("reads", "writes", "state")
        ]
        reads, writes, state = groups
        return cls(program.data, reads, writes, state)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.program.string_value())
        for keyword, places in zip(("reads", "writes", "state"), self.places(), strict=True):
            if places:
                printer.print_string(f" {keyword}(")
                printer.print_list(places, lambda place: _print_place(printer, place))
                printer.print_string(")")


def _parse_place(parser: Parser) -> Place:
    buffer, offset, steps = parse_defined_operand(parser), 0, list[int]()
    if parser.parse_optional_keyword("at"):
        offset = parser.parse_integer(allow_boolean=False)
    if parser.parse_optional_keyword("step"):
        steps = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, lambda: parser.parse_integer(allow_boolean=False)
        )
    return Place(buffer, offset, tuple(steps))


def _print_place(printer: Printer, place: Place) -> None:
    printer.print_ssa_value(place.buffer)
    if place.offset or any(place.steps):
        printer.print_string(f" at {place.offset}")
    if any(place.steps):
        printer.print_string(f" step [{', '.join(map(str, place.steps))}]")


@irdl_op_definition
class RepeatOp(IRDLOperation):
    """Run what stands in it `trips` times: each iteration begins when the one before has ended.

    ```mlir
    task.composite @main_schedule of @main attributes {device = @test4} {
      %y = task.buffer {space = "output", port = 0 : i64} : tensor<4xf32>
      task.repeat 1000 {
        task.run @main_part0_schedule state(%y)
      }
    }
    ```
    """

    name = "task.repeat"
    trips = prop_def(IntegerAttr[IntegerType])
    body = region_def("single_block")
    traits = traits_def(NoTerminator())

    def __init__(self, trips: int, body: Region) -> None:
        super().__init__(properties={"trips": IntegerAttr(trips, i64)}, regions=[body])

    def verify_(self) -> None:
        if self.trips.value.data < 1:
            raise VerifyException("'task.repeat' expects 1 iteration or more")

    @classmethod
    def parse(cls, parser: Parser) -> RepeatOp:
        trips = parser.parse_integer(allow_boolean=False)
        return cls(trips, parser.parse_region())

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.trips.value.data} ")
        printer.print_region(self.body)


@irdl_op_definition
class WhileOp(IRDLOperation):
    """Run what stands in it as long as a buffer of one boolean holds that: it is asked before each turn, and
    all vEUs have ended what stands before, and have asked, when a turn begins.

    How many turns there will be is not known: nothing in it lies at a place that moves with them.

    ```mlir
    task.composite @main_schedule of @main attributes {device = @test4, link_bytes = 256 : i64} {
      %y = task.buffer {space = "output", port = 0 : i64} : tensor<4xf32>
      %go = task.buffer {space = "arena", offset = 0 : i64} : tensor<i1>
      task.run @main_part1_schedule writes(%go, %y)
      task.while %go {
        task.run @main_part0_schedule state(%go, %y)
      }
    }
    ```
    """

    name = "task.while"
    condition = operand_def(TensorType)
    body = region_def("single_block")
    traits = traits_def(NoTerminator())

    def __init__(self, condition: SSAValue, body: Region) -> None:
        super().__init__(operands=[condition], regions=[body])

    def verify_(self) -> None:
        if self.condition.type != TensorType(i1, []):
            raise VerifyException(
                f"'task.while' expects a buffer of one boolean, tensor<i1>, got {self.condition.type}"
            )

    @classmethod
    def parse(cls, parser: Parser) -> WhileOp:
        condition = parse_defined_operand(parser)
        return cls(condition, parser.parse_region())

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.condition)
        printer.print_string(" ")
        printer.print_region(self.body)


@irdl_op_definition
class CompositeOp(IRDLOperation):
    """A schedule of a function of calls: the schedules of what it calls, in its order and its loops.

    Its buffers are the function's arguments and results, and, in space `arena`, what else passes from one
    call to another; the arenas of the programs that it runs lie behind these, `link_bytes` on, one over
    another. `verified` and `modes` are as those of `task.program`.

    ```mlir
    task.composite @main_schedule of @main attributes {device = @test4, link_bytes = 256 : i64} {
      %x = task.buffer {space = "input", port = 0 : i64} : tensor<4xf32>
      %h = task.buffer {space = "arena", offset = 0 : i64} : tensor<4xf32>
      task.run @main_part0_schedule reads(%x) writes(%h)
    }
    ```
    """

    name = "task.composite"
    sym_name = prop_def(SymbolNameConstraint())
    function = prop_def(FlatSymbolRefAttrConstr)
    device = prop_def(FlatSymbolRefAttrConstr)
    link_bytes = opt_prop_def(IntegerAttr[IntegerType])
    verified = opt_prop_def(StringAttr)
    modes = opt_prop_def(ArrayAttr[StringAttr])
    body = region_def("single_block")
    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove(), NoTerminator())

    def __init__(
        self, name: str, function: str, device: str, body: Region, link_bytes: int
    ) -> None:
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "function": SymbolRefAttr(function),
                "device": SymbolRefAttr(device),
                "link_bytes": IntegerAttr(link_bytes, i64),
            },
            regions=[body],
        )

    def retract(self) -> None:
        """Take back the proof: something that it covers is about to change."""
        self.verified = self.modes = None

    def verify_(self) -> None:
        check_figures(self, {"link_bytes": 0})

    @classmethod
    def parse(cls, parser: Parser) -> CompositeOp:
        name = parser.parse_symbol_name()
        parser.parse_keyword("of")
        function = SymbolRefAttr(parser.parse_symbol_name())
        given = parser.parse_optional_attr_dict_with_keyword()
        region = parser.parse_region()
        properties: dict[str, Attribute] = {"sym_name": name, "function": function}
        rest: dict[str, Attribute] = {}
        attributes: Mapping[str, Attribute] = given.data if given else {}
        for key, value in attributes.items():
            (properties if key in _PROPERTIES else rest)[key] = value
        return cls.create(regions=[region], properties=properties, attributes=rest)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" of ")
        printer.print_symbol_name(self.function.string_value())
        shown = {k: v for k, v in self.properties.items() if k in _PROPERTIES}
        printer.print_string(" attributes")
        printer.print_op_attributes(shown | self.attributes)
        printer.print_string(" ")
        printer.print_region(self.body)


_PROPERTIES = ("device", "link_bytes", "verified", "modes")
