"""Who computes it, when and where: devices, buffers, appends, scheduled programs."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    DenseArrayBase,
    FlatSymbolRefAttrConstr,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    TensorType,
    i64,
)
from xdsl.ir import (
    Attribute,
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
from xdsl.traits import (
    IsolatedFromAbove,
    NoTerminator,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from irkit.dialects.task.roperator import verify_call
from irkit.dialects.types import int_array, ints


@irdl_op_definition
class VDeviceOp(IRDLOperation):
    """A machine as the scheduler sees it: `veus` execution units, all resident at once.

    ```mlir
    task.vdevice @test4 {kind = "test", veus = 4 : i64, threads = 1 : i64, shared_bytes = 65536 : i64}
    ```
    """

    name = "task.vdevice"
    sym_name = prop_def(SymbolNameConstraint())
    kind = prop_def(StringAttr)
    veus = prop_def(IntegerAttr[IntegerType])
    threads = prop_def(IntegerAttr[IntegerType])
    shared_bytes = prop_def(IntegerAttr[IntegerType])
    irdl_options = (ParsePropInAttrDict(),)
    traits = traits_def(SymbolOpInterface())
    assembly_format = "$sym_name attr-dict"

    def verify_(self) -> None:
        if self.veus.value.data < 1:
            raise VerifyException(
                f"'task.vdevice' expects 1 or more veus, got {self.veus.value.data}"
            )


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """What an append yields: it stands for all its rTasks having signalled."""

    name = "task.token"


SPACES = ("arena", "rows", "input", "output", "constant")


@irdl_op_definition
class BufferOp(IRDLOperation):
    """Bytes that hold a tensor during a run.

    `space` is `arena` or `rows` (planned by `plan-memory`; `offset` in bytes, or in bytes per row of
    the batch), `input` or `output` (number `offset` of the program), or `constant` (`source` names
    the weight).

    ```mlir
    task.program @main attributes {device = @test4} {
      %x = task.buffer {space = "input", offset = 0 : i64} : tensor<4xf32>
      %w = task.buffer {space = "constant", source = "w"} : tensor<4xf32>
      %h = task.buffer {space = "arena"} : tensor<4xf32>
    }
    ```
    """

    name = "task.buffer"
    space = prop_def(StringAttr)
    offset = opt_prop_def(IntegerAttr[IntegerType])
    source = opt_prop_def(StringAttr)
    result = result_def(TensorType)
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "attr-dict `:` type($result)"

    def __init__(
        self, space: str, type: Attribute, offset: int | None = None, source: str | None = None
    ) -> None:
        super().__init__(
            result_types=[type],
            properties={
                "space": StringAttr(space),
                "offset": None if offset is None else IntegerAttr(offset, i64),
                "source": None if source is None else StringAttr(source),
            },
        )

    def verify_(self) -> None:
        if self.space.data not in SPACES:
            raise VerifyException(
                f"'task.buffer' expects a space among {', '.join(SPACES)}, got '{self.space.data}'"
            )
        if self.space.data == "constant" and self.source is None:
            raise VerifyException("'task.buffer' in space 'constant' expects a source, got none")
        if self.space.data in ("input", "output") and self.offset is None:
            raise VerifyException(
                f"'task.buffer' in space '{self.space.data}' expects a number as offset"
            )


@irdl_op_definition
class ViewOp(IRDLOperation):
    """Some bytes of another buffer under a type of their own, `offset` bytes into it (bytes per row
    of the batch for buffers whose leading dimension is the batch).

    ```mlir
    task.program @main attributes {device = @test4} {
      %x = task.buffer {space = "input", offset = 0 : i64} : tensor<4x2xf32>
      %r = task.view %x {offset = 8 : i64} : tensor<4x2xf32> -> tensor<2xf32>
    }
    ```
    """

    name = "task.view"
    source = operand_def(TensorType)
    offset = prop_def(IntegerAttr[IntegerType])
    result = result_def(TensorType)
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

    def __init__(self, source: SSAValue, offset: int, type: Attribute) -> None:
        super().__init__(
            operands=[source], result_types=[type], properties={"offset": IntegerAttr(offset, i64)}
        )


@irdl_op_definition
class AppendOp(IRDLOperation):
    """All rTasks of an rOperator on vEUs [first:last], after every rTask of the appends waited for.

    rTask t runs on vEU first + t mod (last - first + 1). `resident [i at o, ...]`: read operand i
    stays in shared memory, o bytes into it.

    ```mlir
    task.roperator @same(%a : tensor<4xf32>) -> tensor<4xf32> attributes {grid = array<i64: 2>} {
      task.yield %a : tensor<4xf32>
    }
    task.program @main attributes {device = @test4} {
      %x = task.buffer {space = "input", offset = 0 : i64} : tensor<4xf32>
      %y = task.buffer {space = "arena", offset = 0 : i64} : tensor<4xf32>
      %z = task.buffer {space = "output", offset = 0 : i64} : tensor<4xf32>
      %t0 = task.append @same to [0:1] wave 0 reads(%x) writes(%y)
      %t1 = task.append @same to [2:3] wave 1 wait(%t0) reads(%y) writes(%z)
    }
    ```
    """

    name = "task.append"
    callee = prop_def(FlatSymbolRefAttrConstr)
    veus = prop_def(DenseArrayBase)
    wave = prop_def(IntegerAttr[IntegerType])
    residents = opt_prop_def(DenseArrayBase)
    waits = var_operand_def(TokenType)
    reads = var_operand_def(TensorType)
    writes = var_operand_def(TensorType)
    token = result_def(TokenType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        callee: str | SymbolRefAttr,
        veus: tuple[int, int],
        wave: int,
        waits: Sequence[SSAValue],
        reads: Sequence[SSAValue],
        writes: Sequence[SSAValue],
        residents: Sequence[tuple[int, int]] = (),
    ) -> None:
        flat = [n for pair in residents for n in pair]
        super().__init__(
            operands=[waits, reads, writes],
            result_types=[TokenType()],
            properties={
                "callee": SymbolRefAttr(callee) if isinstance(callee, str) else callee,
                "veus": int_array(veus),
                "wave": IntegerAttr(wave, i64),
                "residents": int_array(flat) if flat else None,
            },
        )

    @property
    def range(self) -> tuple[int, int]:
        """First and last vEU."""
        first, last = ints(self.veus)
        return first, last

    @property
    def resident_pairs(self) -> list[tuple[int, int]]:
        """(read operand, offset in shared memory)"""
        flat = ints(self.residents)
        return list(zip(flat[::2], flat[1::2], strict=True))

    def verify_(self) -> None:
        first, last = self.range
        if not 0 <= first <= last:
            raise VerifyException(f"'task.append' expects vEUs first <= last, got [{first}:{last}]")
        verify_call(self, self.callee, list(self.reads.types), list(self.writes.types))

    @classmethod
    def parse(cls, parser: Parser) -> AppendOp:
        callee = parser.parse_symbol_name()
        parser.parse_keyword("to")
        parser.parse_punctuation("[")
        first, last = _parse_range(parser)
        parser.parse_punctuation("]")
        parser.parse_keyword("wave")
        wave = parser.parse_integer()
        groups = {
            keyword: parser.parse_comma_separated_list(
                parser.Delimiter.PAREN, lambda: _parse_defined_operand(parser)
            )
            if parser.parse_optional_keyword(keyword)
            else []
            for keyword in ("wait", "reads", "writes")
        }
        residents: Sequence[tuple[int, int]] = ()
        if parser.parse_optional_keyword("resident"):
            residents = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE, lambda: _parse_resident(parser)
            )
        return cls(
            callee.data,
            (first, last),
            wave,
            groups["wait"],
            groups["reads"],
            groups["writes"],
            residents,
        )

    def print(self, printer: Printer) -> None:
        first, last = self.range
        printer.print_string(
            f" @{self.callee.string_value()} to [{first}:{last}] wave {self.wave.value.data}"
        )
        for keyword, operands in (
            ("wait", self.waits),
            ("reads", self.reads),
            ("writes", self.writes),
        ):
            if not operands:
                continue
            printer.print_string(f" {keyword}(")
            printer.print_list(operands, printer.print_ssa_value)
            printer.print_string(")")
        if pairs := self.resident_pairs:
            printer.print_string(f" resident [{', '.join(f'{i} at {o}' for i, o in pairs)}]")


def _parse_defined_operand(parser: Parser) -> SSAValue:
    """A value that is defined already, which tells its type."""
    operand = parser.parse_unresolved_operand()
    values = parser.ssa_values.get(operand.operand_name)
    if values is None:
        parser.raise_error(f"use of undefined value '%{operand.operand_name}'", operand.span)
    # An index out of bounds is for `resolve_operand` to refuse.
    known = values[operand.index if operand.index < len(values) else 0]
    return parser.resolve_operand(operand, known.type)


def _parse_range(parser: Parser) -> tuple[int, int]:
    """`a:b`"""
    first = parser.parse_integer(allow_boolean=False, allow_negative=False)
    parser.parse_punctuation(":")
    return first, parser.parse_integer(allow_boolean=False, allow_negative=False)


def _parse_resident(parser: Parser) -> tuple[int, int]:
    """`operand at offset`"""
    operand = parser.parse_integer(allow_boolean=False, allow_negative=False)
    parser.parse_keyword("at")
    return operand, parser.parse_integer(allow_boolean=False, allow_negative=False)


@irdl_op_definition
class ProgramOp(IRDLOperation):
    """A scheduled program: buffers, views, and appends in the order that each vEU follows.

    `arena_bytes` and `row_bytes` (per row of the batch) are what `plan-memory` asks for;
    `arena_ratio` is their sum over the lower bound.

    ```mlir
    task.program @main attributes {device = @test4, arena_bytes = 16 : i64, row_bytes = 0 : i64} {
      %x = task.buffer {space = "input", offset = 0 : i64} : tensor<4xf32>
    }
    ```
    """

    name = "task.program"
    sym_name = prop_def(SymbolNameConstraint())
    device = prop_def(FlatSymbolRefAttrConstr)
    arena_bytes = opt_prop_def(IntegerAttr[IntegerType])
    row_bytes = opt_prop_def(IntegerAttr[IntegerType])
    arena_ratio = opt_prop_def(FloatAttr[Float64Type])
    verified = opt_prop_def(StringAttr)
    body = region_def("single_block")
    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove(), NoTerminator())

    def __init__(self, name: str, device: str, body: Region) -> None:
        super().__init__(
            properties={"sym_name": StringAttr(name), "device": SymbolRefAttr(device)},
            regions=[body],
        )

    @classmethod
    def parse(cls, parser: Parser) -> ProgramOp:
        name = parser.parse_symbol_name()
        attributes = parser.parse_optional_attr_dict_with_keyword()
        region = parser.parse_region()
        properties = {"sym_name": name, **(attributes.data if attributes else {})}
        own = {k: v for k, v in properties.items() if k in _PROGRAM_PROPERTIES}
        rest = {k: v for k, v in properties.items() if k not in _PROGRAM_PROPERTIES}
        return cls.create(regions=[region], properties=own, attributes=rest)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        shown = {k: v for k, v in self.properties.items() if k != "sym_name"} | self.attributes
        printer.print_string(" attributes")
        printer.print_op_attributes(shown)
        printer.print_string(" ")
        printer.print_region(self.body)


_PROGRAM_PROPERTIES = (
    "sym_name",
    "device",
    "arena_bytes",
    "row_bytes",
    "arena_ratio",
    "verified",
)
