"""`batch-to-front`: the batch as the leading dimension of every value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.batch_place import BatchPlace
from irkit.context import weights_of
from irkit.dialects.batch_border import INPUT_BATCH, OUTPUT_BATCH, places_attribute
from irkit.dialects.constants import constant
from irkit.dialects.functions import is_straight
from irkit.dialects.graph import ReshapeOp
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.batch import BatchAnalysis, BatchDim, analyse
from irkit.dialects.types import DYNAMIC, int_array, tensor, tensor_type
from irkit.passes.graph.front_rules import RULES, Moved, front_shape
from irkit.remarks import applied, missed
from irkit.weights import Array, WeightStore

RULE = "MoveBatch"


NO_FORM = "it has no form with another batch than its leading dimension"


def first_obstacle(function: FuncOp, found: BatchAnalysis) -> Operation | None:
    """The first op that keeps the batch of a function, in which no rows mix, from the front."""
    return next((op for op in function.body.block.ops if _is_obstacle(op, found)), None)


def _is_obstacle(op: Operation, found: BatchAnalysis) -> bool:
    if isinstance(op, ReturnOp) or (isinstance(op, GraphOp) and type(op) in RULES):
        return False
    states = [found.of(v) for v in (*op.operands, *op.results)]
    return any(isinstance(s, BatchDim) and not s.leads for s in states)


def _dim(found: BatchAnalysis, value: SSAValue) -> BatchDim | None:
    """Where the batch is in a value of a function in which no rows mix."""
    dim = found.of(value)
    assert dim is None or isinstance(dim, BatchDim)
    return dim


class _Mover:
    """Rewrites one function. `front` has the value that stands for one whose batch did not lead."""

    def __init__(self, function: FuncOp, found: BatchAnalysis, weights: WeightStore) -> None:
        self.function, self.found, self.weights = function, found, weights
        self.front: dict[SSAValue, SSAValue] = {}
        self.replaced: list[Operation] = []
        self.builder = Builder(InsertPoint.at_start(function.body.block))
        self.location: Attribute = function.location

    def run(self) -> None:
        """Everything, in place."""
        block = self.function.body.block
        arguments = list(block.args)
        inputs = [self._argument(a) for a in arguments]
        outputs: list[BatchPlace | None] = []
        for op in list(block.ops):
            self.builder.insertion_point = InsertPoint.before(op)
            self.location = op.location
            if isinstance(op, ReturnOp):
                outputs = [self._returned(op, number) for number in range(len(op.operands))]
            else:
                self._op(op)
        for op in reversed(self.replaced):
            Rewriter.erase_op(op)
        for argument in reversed(arguments):
            if argument in self.front:
                block.erase_arg(argument)
        self.function.update_function_type()
        self.function.attributes |= places_attribute(INPUT_BATCH, inputs)
        self.function.attributes |= places_attribute(OUTPUT_BATCH, outputs)

    # The border: what the caller sees is as it was, and the host moves it.

    def _argument(self, argument: BlockArgument) -> BatchPlace | None:
        dim = self.found.of(argument)
        if not isinstance(dim, BatchDim) or dim.leads:
            return None
        t = tensor_type(argument)
        shape = [DYNAMIC, *(s for s in t.get_shape() if s != DYNAMIC)]
        hint = argument.name_hint
        # Its users are rewritten one by one; till then they have a value of the type that they know.
        made = self.function.body.block.insert_arg(tensor(t.element_type, shape), argument.index)
        made.name_hint = hint
        self.front[argument] = self._reshape(made, front_shape(t.get_shape(), dim))
        return BatchPlace(dim.axis)

    def _returned(self, op: ReturnOp, number: int) -> BatchPlace | None:
        value = op.operands[number]
        dim = self.found.of(value)
        if not isinstance(dim, BatchDim) or dim.leads:
            return None
        shape = front_shape(tensor_type(value).get_shape(), dim)
        if dim.factor == 1:
            del shape[dim.axis + 1]
        op.operands[number] = self._reshape(self.front[value], shape)
        return BatchPlace(dim.axis, dim.outer, dim.inner)

    # Ops

    def _op(self, op: Operation) -> None:
        dims = [_dim(self.found, v) for v in op.operands]
        results = [_dim(self.found, r) for r in op.results]
        if not isinstance(op, GraphOp) or all(d is None or d.leads for d in (*dims, *results)):
            return
        operands = [
            v if d is None else self._in_front(v, d) for v, d in zip(op.operands, dims, strict=True)
        ]
        moved = Moved(op, operands, dims, results, self._emit, self._constant)
        for old, new, dim in zip(op.results, RULES[type(op)](moved), results, strict=True):
            new.name_hint = old.name_hint
            if dim is not None and not dim.leads:
                self.front[old] = new
            else:
                own = self._reshape(new, tensor_type(old).get_shape())
                self.found.states[own] = dim
                old.replace_all_uses_with(own)
        self.replaced.append(op)
        applied(op, RULE, "the batch leads")

    def _in_front(self, value: SSAValue, dim: BatchDim) -> SSAValue:
        known = self.front.get(value)
        return known or self._reshape(value, front_shape(tensor_type(value).get_shape(), dim))

    def _reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        if tuple(shape) == tensor_type(value).get_shape():
            return value
        return self._emit(ReshapeOp, [value], {"shape": int_array(shape)})[0]

    def _emit(
        self, op: type[GraphOp], operands: Sequence[SSAValue], props: dict[str, Attribute]
    ) -> Sequence[SSAValue]:
        made = op.make(operands, props)
        made.location = self.location  # pyright: ignore[reportAttributeAccessIssue]
        return self.builder.insert(made).results

    def _constant(self, array: Array) -> SSAValue:
        return self.builder.insert(constant(array, self.weights)).result


def to_front(function: FuncOp, weights: WeightStore) -> None:
    """Move the batch of a function to the front, in place; one that cannot be moved stays as it is."""
    found = analyse(function)
    if found.mixing:
        for mixing in found.mixing:
            missed(mixing.op, RULE, "rows of the batch mix: {}", mixing.reason)
        return
    if not found.elsewhere():
        return
    if (obstacle := first_obstacle(function, found)) is not None:
        missed(obstacle, RULE, NO_FORM)
        return
    _Mover(function, found, weights).run()


@dataclass(frozen=True)
class BatchToFront(ModulePass):
    """Make the batch the leading dimension of every value, as the levels below need it.

    An exporter puts it elsewhere: behind the steps of a sequence, under the heads of an attention, or as so
    many windows an image in one dimension. A value of shape (p…, outer·batch·inner, q…) becomes one of
    shape (batch, p…, outer·inner, q…), which has each row's elements in the order that they had; an op does
    on it what it did, one axis further on. Arguments and results change their types: `irkit.input_batch` and
    `irkit.output_batch` say where the caller sees the batch, and the host moves it there. Exact. A function
    whose rows mix stays as it is, and one with an op that has no such form (a convolution of several samples
    a row).

    ```mlir
    func.func @main(%x: tensor<5x?x4xf32>) -> tensor<?x4xf32> {
      %y = graph.reduce %x {kind = "sum", axes = array<i64: 0>, ...} : (tensor<5x?x4xf32>) -> ...
    ```
    becomes
    ```mlir
    func.func @main(%x: tensor<?x5x4xf32>) -> tensor<?x4xf32>
        attributes {irkit.input_batch = [array<i64: 1, 1, 1>]} {
      %0 = graph.reshape %x {...} : (tensor<?x5x4xf32>) -> tensor<?x5x1x4xf32>
      %1 = graph.reduce %0 {kind = "sum", axes = array<i64: 1>, ...} : (tensor<?x5x1x4xf32>) -> ...
      %y = graph.reshape %1 {...} : (tensor<?x1x4xf32>) -> tensor<?x4xf32>
    ```
    """

    name = "batch-to-front"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        weights = weights_of(ctx)
        for function in op.ops:
            if is_straight(function):
                to_front(function, weights)
