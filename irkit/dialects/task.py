"""The `task` dialect: who runs what, when and where. Words are Rammer's.

Unscheduled, a program is a function of `task.launch`es of `task.roperator`s. Scheduled, it is a
`task.program`: buffers, and appends in an order that each vEU follows.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    DenseArrayBase,
    DictionaryAttr,
    FlatSymbolRefAttrConstr,
    Float64Type,
    FloatAttr,
    FunctionType,
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
    Dialect,
    Operation,
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
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    IsolatedFromAbove,
    IsTerminator,
    NoTerminator,
    Pure,
    SingleBlockImplicitTerminator,
    SymbolOpInterface,
    SymbolTable,
)
from xdsl.utils.exceptions import VerifyException

from irkit.dialects.types import int_array, ints

SPACES = ("arena", "rows", "input", "output", "constant")


@irdl_attr_definition
class TokenType(ParametrizedAttribute, TypeAttribute):
    """What an append yields: it stands for all its rTasks having signalled."""

    name = "task.token"


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


@irdl_op_definition
class YieldOp(IRDLOperation):
    """The results of an rOperator's body.

    ```mlir
    task.roperator @same(%x : tensor<4xf32>) -> tensor<4xf32> {
      task.yield %x : tensor<4xf32>
    }
    ```
    """

    name = "task.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict ($values^ `:` type($values))?"


@irdl_op_definition
class ROperatorOp(IRDLOperation):
    """An operator cut into rTasks. The body is its meaning; `grid` and `rkernel` say how it is run.

    `grid` has one entry per parallel dimension of the root: into how many parts it is cut. An rTask
    is one cell of that grid, in row-major order; part p of g of a dimension of size S is
    [S*p/g, S*(p+1)/g). `rkernel` names a registered rKernel and `parameters` its tile sizes.
    `sources` names the graph ops it came from. `cost` estimates one rTask's time in ns.

    ```mlir
    task.roperator @double(%x : tensor<8xf32>) -> tensor<8xf32>
        attributes {grid = array<i64: 2>, rkernel = "map", parameters = {}} {
      %e = tensor.empty() : tensor<8xf32>
      %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
          iterator_types = ["parallel"]} ins(%x : tensor<8xf32>) outs(%e : tensor<8xf32>) {
      ^bb0(%a: f32, %b: f32):
        %c = arith.addf %a, %a : f32
        linalg.yield %c : f32
      } -> tensor<8xf32>
      task.yield %y : tensor<8xf32>
    }
    ```
    """

    name = "task.roperator"
    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    grid = opt_prop_def(DenseArrayBase)
    rkernel = opt_prop_def(StringAttr)
    parameters = opt_prop_def(DictionaryAttr)
    sources = opt_prop_def(StringAttr)
    cost = opt_prop_def(FloatAttr[Float64Type])
    body = region_def("single_block")
    traits = traits_def(
        SymbolOpInterface(), IsolatedFromAbove(), SingleBlockImplicitTerminator(YieldOp)
    )

    def __init__(self, name: str, body: Region, sources: str = "") -> None:
        terminator = body.block.last_op
        assert isinstance(terminator, YieldOp)
        function_type = FunctionType.from_lists(body.block.arg_types, list(terminator.values.types))
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "function_type": function_type,
                "sources": StringAttr(sources) if sources else None,
            },
            regions=[body],
        )

    @property
    def terminator(self) -> YieldOp:
        """The body's `task.yield`."""
        op = self.body.block.last_op
        assert isinstance(op, YieldOp)
        return op

    @property
    def tasks(self) -> int:
        """Number of rTasks; 1 before `partition-rtasks`."""
        total = 1
        for parts in ints(self.grid):
            total *= parts
        return total

    def verify_(self) -> None:
        if list(self.function_type.inputs.data) != list(self.body.block.arg_types):
            raise VerifyException(
                f"'task.roperator' @{self.sym_name.data} expects arguments {self.function_type.inputs}"
            )
        have = list(self.terminator.values.types)
        if list(self.function_type.outputs.data) != have:
            raise VerifyException(
                f"'task.roperator' @{self.sym_name.data} expects to yield "
                f"{', '.join(map(str, self.function_type.outputs.data))}, got {', '.join(map(str, have))}"
            )
        if min(ints(self.grid), default=1) < 1:
            raise VerifyException(f"'task.roperator' expects a grid of 1 or more, got {self.grid}")

    @classmethod
    def parse(cls, parser: Parser) -> ROperatorOp:
        name = parser.parse_symbol_name()
        args = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=True)
        )
        results: list[Attribute] = []
        if parser.parse_optional_punctuation("->"):
            results = list(
                parser.parse_optional_comma_separated_list(
                    parser.Delimiter.PAREN, parser.parse_type
                )
                or [parser.parse_type()]
            )
        attributes = parser.parse_optional_attr_dict_with_keyword()
        region = parser.parse_region(args)
        op = cls.create(
            regions=[region],
            properties={
                "sym_name": name,
                "function_type": FunctionType.from_lists(
                    [a.type for a in region.block.args], results
                ),
                **(attributes.data if attributes else {}),
            },
        )
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        with printer.in_parens():
            printer.print_list(self.body.block.args, printer.print_block_argument)
        outputs = self.function_type.outputs.data
        printer.print_string(" -> ")
        if len(outputs) == 1:
            printer.print_attribute(outputs[0])
        else:
            with printer.in_parens():
                printer.print_list(outputs, printer.print_attribute)
        shown = {k: v for k, v in self.properties.items() if k not in ("sym_name", "function_type")}
        if shown:
            printer.print_string(" attributes")
            printer.print_op_attributes(shown)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """Use an rOperator: its body's value for these operands.

    ```mlir
    task.roperator @same(%a : tensor<4xf32>) -> tensor<4xf32> {
      task.yield %a : tensor<4xf32>
    }
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = task.launch @same(%x) : (tensor<4xf32>) -> tensor<4xf32>
      func.return %y : tensor<4xf32>
    }
    ```
    """

    name = "task.launch"
    callee = prop_def(FlatSymbolRefAttrConstr)
    arguments = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)
    traits = traits_def(Pure())
    assembly_format = "$callee `(` $arguments `)` attr-dict `:` functional-type(operands, results)"

    def __init__(self, callee: str, arguments: Sequence[SSAValue], results: Sequence[Attribute]):
        super().__init__(
            operands=[arguments],
            result_types=[results],
            properties={"callee": SymbolRefAttr(callee)},
        )

    def verify_(self) -> None:
        verify_call(self, self.callee, list(self.operand_types), list(self.result_types))


def lookup(op: Operation, symbol: SymbolRefAttr) -> ROperatorOp | None:
    """The rOperator that `symbol` names in the enclosing module."""
    root = op
    while (parent := root.parent_op()) is not None:
        root = parent
    found = SymbolTable.lookup_symbol(root, symbol) if root.has_trait(SymbolTable) else None
    return found if isinstance(found, ROperatorOp) else None


def verify_call(
    op: Operation, symbol: SymbolRefAttr, inputs: list[Attribute], outputs: list[Attribute]
) -> None:
    """Operands and results of a launch or append must be those of the rOperator it names."""
    target = lookup(op, symbol)
    if target is None:
        if op.parent is None:
            return  # under construction: not in a module yet
        raise VerifyException(
            f"'{op.name}' names @{symbol.string_value()}, which is no task.roperator"
        )
    want = target.function_type
    if list(want.inputs.data) != inputs or list(want.outputs.data) != outputs:
        have = FunctionType.from_lists(inputs, outputs)
        raise VerifyException(f"'{op.name}' @{symbol.string_value()} expects {want}, got {have}")


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

Task = Dialect(
    "task",
    [AppendOp, BufferOp, LaunchOp, ProgramOp, ROperatorOp, VDeviceOp, ViewOp, YieldOp],
    [TokenType],
)
