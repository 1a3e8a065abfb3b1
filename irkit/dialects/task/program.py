"""Who computes it and when: appends, scheduled programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
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
    irdl_attr_definition,
    irdl_op_definition,
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
from xdsl.utils.hints import isa

from irkit.dialects.task.figures import check_figures
from irkit.dialects.task.roperator import verify_call
from irkit.dialects.types import int_array, ints
from irkit.row_ranges import ALL_ROWS, NO_END, Rows


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """What an append yields: it stands for all its rTasks having signalled."""

    name = "task.token"


@irdl_op_definition
class AppendOp(IRDLOperation):
    """All rTasks of an rOperator on vEUs [first:last], after every rTask of the appends waited for.

    rTask t runs on vEU first + t mod (last - first + 1). `resident [i at o, ...]`: read operand i
    stays in shared memory, o bytes into it. `carried [i, ...]`: the elements of read operand i say
    themselves that they are there (`irkit/schedule/carried.py`).

    ```mlir
    task.roperator @same(%a : tensor<4xf32>) -> tensor<4xf32> attributes {grid = array<i64: 2>} {
      task.yield %a : tensor<4xf32>
    }
    task.program @main_schedule of @main attributes {device = @test4} {
      %x = task.buffer {space = "input", port = 0 : i64} : tensor<4xf32>
      %y = task.buffer {space = "arena", offset = 0 : i64} : tensor<4xf32>
      %z = task.buffer {space = "output", port = 0 : i64} : tensor<4xf32>
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
    carried = opt_prop_def(DenseArrayBase)
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
        carried: Sequence[int] = (),
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
                "carried": int_array(carried) if carried else None,
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
        if len(ints(self.veus)) != 2:
            raise VerifyException(
                f"'task.append' expects a first and a last vEU, got {ints(self.veus)}"
            )
        first, last = self.range
        if not 0 <= first <= last:
            raise VerifyException(f"'task.append' expects vEUs first <= last, got [{first}:{last}]")
        check_figures(self, {"wave": 0})
        self._check_operands("residents", ints(self.residents)[::2])
        self._check_operands("carried", ints(self.carried))
        if len(ints(self.residents)) % 2 or min(ints(self.residents)[1::2], default=0) < 0:
            raise VerifyException(
                "'task.append' expects pairs of an operand and an offset of 0 or more as residents, "
                f"got {ints(self.residents)}"
            )
        verify_call(self, self.callee, list(self.reads.types), list(self.writes.types))

    def _check_operands(self, what: str, numbers: Sequence[int]) -> None:
        count = len(self.reads)
        if wrong := [n for n in numbers if not 0 <= n < count]:
            raise VerifyException(
                f"'task.append' expects numbers of its {count} read operands as {what}, got {wrong[0]}"
            )

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
                parser.Delimiter.PAREN, lambda: parse_defined_operand(parser)
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
        carried: Sequence[int] = ()
        if parser.parse_optional_keyword("carried"):
            carried = parser.parse_comma_separated_list(
                parser.Delimiter.SQUARE,
                lambda: parser.parse_integer(allow_boolean=False, allow_negative=False),
            )
        return cls(
            callee.data,
            (first, last),
            wave,
            groups["wait"],
            groups["reads"],
            groups["writes"],
            residents,
            carried,
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
        if numbers := ints(self.carried):
            printer.print_string(f" carried [{', '.join(map(str, numbers))}]")


def parse_defined_operand(parser: Parser) -> SSAValue:
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


MEMORY_FIGURES = tuple(
    f"{pool}_{figure}"
    for pool in ("arena", "row")
    for figure in ("lower_bound", "proved_bound", "greedy_bytes")
)


@irdl_op_definition
class ProgramOp(IRDLOperation):
    """A schedule of a function of launches: buffers, views, and appends in the order that each vEU
    follows.

    `arena_bytes`, `row_bytes` (per row of the batch), `constant_bytes` and `shared_bytes` (of a vEU's
    shared memory, for residents and scratch) are what `plan-memory` asks for; `arena_ratio` is the arena
    over its lower bound. `memory` has, of arena and rows where they have bytes, the `_lower_bound` (bytes in use
    together), the `_proved_bound` that no plan is below, and the `_greedy_bytes` that the search began with.
    `verified` is the digest of all that was proved, and `modes` the
    ways of running it that the proof covers; only `verify-schedule` adds them.

    A function with an open batch may have several programs, each for a range of `rows`, both ends included;
    the last range has no end. Together they are for every number of rows, and their constants lie in the same
    places. Without `rows` a program is for all.

    ```mlir
    task.program @main_schedule of @main rows [0:4] attributes {device = @test4} {
      %x = task.buffer {space = "input", port = 0 : i64} : tensor<?xf32>
    }
    task.program @main_schedule_5 of @main rows [5:] attributes {device = @test4} {
      %x = task.buffer {space = "input", port = 0 : i64} : tensor<?xf32>
    }
    ```
    """

    name = "task.program"
    sym_name = prop_def(SymbolNameConstraint())
    function = prop_def(FlatSymbolRefAttrConstr)
    rows = opt_prop_def(DenseArrayBase)
    device = prop_def(FlatSymbolRefAttrConstr)
    arena_bytes = opt_prop_def(IntegerAttr[IntegerType])
    row_bytes = opt_prop_def(IntegerAttr[IntegerType])
    constant_bytes = opt_prop_def(IntegerAttr[IntegerType])
    shared_bytes = opt_prop_def(IntegerAttr[IntegerType])
    arena_ratio = opt_prop_def(FloatAttr[Float64Type])
    memory = opt_prop_def(DictionaryAttr)
    verified = opt_prop_def(StringAttr)
    modes = opt_prop_def(ArrayAttr[StringAttr])
    body = region_def("single_block")
    traits = traits_def(SymbolOpInterface(), IsolatedFromAbove(), NoTerminator())

    def __init__(
        self, name: str, function: str, device: str, body: Region, rows: Rows = ALL_ROWS
    ) -> None:
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "function": SymbolRefAttr(function),
                "device": SymbolRefAttr(device),
                "rows": None if rows == ALL_ROWS else int_array(rows),
            },
            regions=[body],
        )

    @property
    def row_range(self) -> Rows:
        """The numbers of rows that it is for."""
        if self.rows is None:
            return ALL_ROWS
        first, last = ints(self.rows)
        return first, last

    def verify_(self) -> None:
        if self.rows is not None and len(ints(self.rows)) != 2:
            raise VerifyException("'task.program' expects a first and a last number of rows")
        first, last = self.row_range
        if first < 0 or (last != NO_END and last < first):
            raise VerifyException(
                f"'task.program' expects rows first <= last, got [{first}:{last}]"
            )
        check_figures(self, dict.fromkeys(_BYTES, 0))

    @property
    def memory_figures(self) -> dict[str, int]:
        """What the plan of its memory is held against: bytes, or bytes per row; 0 where there is none."""
        if self.memory is None:
            return dict.fromkeys(MEMORY_FIGURES, 0)
        return {name: _bytes_of(self.memory.data.get(name)) for name in MEMORY_FIGURES}

    def retract(self) -> None:
        """Take back the proof: something that it covers is about to change."""
        self.verified = self.modes = None

    @classmethod
    def parse(cls, parser: Parser) -> ProgramOp:
        name = parser.parse_symbol_name()
        parser.parse_keyword("of")
        function = SymbolRefAttr(parser.parse_symbol_name())
        rows = _parse_rows(parser) if parser.parse_optional_keyword("rows") else None
        attributes = parser.parse_optional_attr_dict_with_keyword()
        region = parser.parse_region()
        properties: dict[str, Attribute] = {"sym_name": name, "function": function}
        if rows is not None:
            properties["rows"] = int_array(rows)
        rest: dict[str, Attribute] = {}
        given: Mapping[str, Attribute] = attributes.data if attributes else {}
        for key, value in given.items():
            (properties if key in _PROGRAM_PROPERTIES else rest)[key] = value
        return cls.create(regions=[region], properties=properties, attributes=rest)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_string(" of ")
        printer.print_symbol_name(self.function.string_value())
        if self.rows is not None:
            first, last = self.row_range
            printer.print_string(f" rows [{first}:{'' if last == NO_END else last}]")
        shown = {k: v for k, v in self.properties.items() if k in _PROGRAM_PROPERTIES}
        printer.print_string(" attributes")
        printer.print_op_attributes(shown | self.attributes)
        printer.print_string(" ")
        printer.print_region(self.body)


def _bytes_of(attribute: Attribute | None) -> int:
    return attribute.value.data if isa(attribute, IntegerAttr[IntegerType]) else 0


def _parse_rows(parser: Parser) -> Rows:
    """`[a:b]`, or `[a:]` where there is no end"""
    parser.parse_punctuation("[")
    first = parser.parse_integer(allow_boolean=False, allow_negative=False)
    parser.parse_punctuation(":")
    last = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
    parser.parse_punctuation("]")
    return first, NO_END if last is None else last


_BYTES = ("arena_bytes", "row_bytes", "constant_bytes", "shared_bytes")
_PROGRAM_PROPERTIES = (
    "device",
    *_BYTES,
    "arena_ratio",
    "memory",
    "verified",
    "modes",
)
