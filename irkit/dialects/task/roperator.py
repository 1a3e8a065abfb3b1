"""What is computed: rOperators, whose bodies are their meaning, and their launches."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary, WeakValueDictionary

from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import (
    ArrayAttr,
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
)
from xdsl.ir import (
    Attribute,
    Operation,
    Region,
    SSAValue,
)
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    IsolatedFromAbove,
    IsTerminator,
    Pure,
    SingleBlockImplicitTerminator,
    SymbolOpInterface,
    SymbolTable,
)
from xdsl.utils.exceptions import VerifyException

from irkit.dialects.loop import ScheduleAttr
from irkit.dialects.task.alternative import AlternativeAttr
from irkit.dialects.task.costs import costs_by_rows, costs_fault
from irkit.dialects.types import ints

# What is said of a choice when it is known where operands lie.
_LATER = ("vector_bytes", "residents")


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
    `sources` names the graph ops it came from. `cost` is one rTask's time in ns: an estimate, or, where
    there is `measured_on`, what it took on the machine of that name (`measure-rtasks`). Of a batch it is that
    for typically many rows; where schedules are chosen by the number of rows, `costs` has it for each of
    `batches`.

    `scratch` is how many bytes of scratch one rTask needs: shared memory on a GPU, the vEU's own on a CPU.
    `fastmath` says, in `arith`'s words, in what the rKernel's sums and products may differ from the body's:
    none where it is absent. `vector_bytes` is how much of an operand is read at once where the rKernel can
    read vectors (1 element where it is absent): all appends must place what it reads so at multiples of
    that. `residents` are the numbers of the operands that every append keeps in shared memory, and for
    which the rKernel is printed a second time. These two are for `select-accesses` to say.

    `in_place` has pairs of an operand and a result that may be the same bytes: each element of the operand is
    read where that element of the result is made, before it is written, and nowhere else. `form-roperators`
    says so of what updates state.

    `library` names a library that mode `per-op` calls in place of the rKernel, where it is there: it computes the
    same, whole, and took `library_cost` ns where the fastest rKernel took longer (`measure-library-calls`). Other
    modes, and machines without it, have the rKernel.

    `schedule` says of a generated rKernel in which nest of loops an rTask runs over the root's elements and
    terms, and how; its parts are the grid's.

    Before it is scheduled, an rOperator may have `alternatives` in place of all that says how it is run, the
    fastest alone first (`#task.alternative`): a scheduling pass chooses one for each launch.

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
    scratch = opt_prop_def(IntegerAttr[IntegerType])
    fastmath = opt_prop_def(FastMathFlagsAttr)
    vector_bytes = opt_prop_def(IntegerAttr[IntegerType])
    residents = opt_prop_def(DenseArrayBase)
    in_place = opt_prop_def(DenseArrayBase)
    measured_on = opt_prop_def(StringAttr)
    batches = opt_prop_def(DenseArrayBase)
    costs = opt_prop_def(DenseArrayBase)
    library = opt_prop_def(StringAttr)
    library_cost = opt_prop_def(FloatAttr[Float64Type])
    schedule = opt_prop_def(ScheduleAttr)
    alternatives = opt_prop_def(ArrayAttr[AlternativeAttr])
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
    def scratch_bytes(self) -> int:
        """Bytes of scratch of one rTask; 0 where nothing is said."""
        return self.scratch.value.data if self.scratch is not None else 0

    @property
    def in_place_pairs(self) -> tuple[tuple[int, int], ...]:
        """(operand, result) that may be the same bytes."""
        flat = ints(self.in_place)
        return tuple(zip(flat[::2], flat[1::2], strict=True))

    @property
    def tasks(self) -> int:
        """Number of rTasks; 1 where no grid is chosen yet."""
        total = 1
        for parts in ints(self.grid):
            total *= parts
        return total

    @property
    def costs_by_rows(self) -> dict[int, float]:
        """Rows of the batch -> time of one rTask, in ns; empty where that is said of no batch."""
        return costs_by_rows(self.properties)

    def choose(self, alternative: AlternativeAttr) -> None:
        """Be run as `alternative` says, in place of any choice before; nothing is offered any more."""
        for name in (*AlternativeAttr.NAMES, *_LATER, "alternatives"):
            self.properties.pop(name, None)
        for name in AlternativeAttr.NAMES:
            if name in alternative.facts.data:
                self.properties[name] = alternative.facts.data[name]

    def offer(self, alternatives: Sequence[AlternativeAttr]) -> None:
        """Have these `alternatives`, the fastest alone first, and no choice."""
        self.choose(alternatives[0])
        for name in AlternativeAttr.NAMES:
            self.properties.pop(name, None)
        self.alternatives = ArrayAttr(alternatives)

    def verify_(self) -> None:
        self._verify_alternatives()
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
        fault = costs_fault(self.properties)
        if fault is not None:
            raise VerifyException(f"'task.roperator' {fault}")
        if min(ints(self.grid), default=1) < 1:
            raise VerifyException(f"'task.roperator' expects a grid of 1 or more, got {self.grid}")
        self._verify_in_place()

    def _verify_in_place(self) -> None:
        if len(ints(self.in_place)) % 2:
            raise VerifyException("'task.roperator' expects pairs in in_place, got an odd number")
        inputs, outputs = self.function_type.inputs.data, self.function_type.outputs.data
        for operand, result in self.in_place_pairs:
            known = 0 <= operand < len(inputs) and 0 <= result < len(outputs)
            if not known or inputs[operand] != outputs[result]:
                raise VerifyException(
                    f"'task.roperator' expects an operand and a result of one type in in_place, got "
                    f"{operand} and {result}"
                )

    def _verify_alternatives(self) -> None:
        if self.alternatives is None:
            return
        if not self.alternatives.data:
            raise VerifyException("'task.roperator' expects one alternative or more, got none")
        for name in (*AlternativeAttr.NAMES, *_LATER):
            if name in self.properties:
                raise VerifyException(
                    f"'task.roperator' with alternatives has made no choice, but has '{name}'"
                )

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
    if not root.has_trait(SymbolTable):
        return None
    if len(symbol.nested_references.data):
        found = SymbolTable.lookup_symbol(root, symbol)
    else:
        found = _named(root, symbol.root_reference.data)
    return found if isinstance(found, ROperatorOp) else None


_NAMED: WeakKeyDictionary[Operation, WeakValueDictionary[str, Operation]] = WeakKeyDictionary()
"""Of modules: ops by their names, as they were when one was last looked for in vain."""


def _named(root: Operation, name: str) -> Operation | None:
    """What has a name in a module, without going through all of it for each: a module of thousands of
    rOperators has as many launches that name them."""
    named = _NAMED.get(root)
    known = None if named is None else named.get(name)
    if known is not None and known.parent_op() is root and _name_of(known) == name:
        return known
    found: WeakValueDictionary[str, Operation] = WeakValueDictionary()
    for op in root.regions[0].block.ops:
        if (own := _name_of(op)) is not None:
            found.setdefault(own, op)
    _NAMED[root] = found
    return found.get(name)


def _name_of(op: Operation) -> str | None:
    if op.get_trait(SymbolOpInterface) is None:
        return None
    # One that is no text is a fault of that op, not of those that look for another.
    name = op.get_attr_or_prop("sym_name")
    return name.data if isinstance(name, StringAttr) else None


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
