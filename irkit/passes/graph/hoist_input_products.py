"""`hoist-input-products`: the input half of a recurrence leaves the time loop as one product."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.functions import is_straight
from irkit.dialects.graph import ConcatOp, GemmOp, MatmulOp, ReshapeOp, SliceOp
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.precision import PRECISION, inherit
from irkit.dialects.types import DYNAMIC, int_array, ints, tensor_type
from irkit.remarks import applied, missed

RULE = "HoistProduct"

Key = tuple[object, ...]


@dataclass(frozen=True)
class Step:
    """A product of a part of `source`, all of its last dimension and some of the others, and a matrix."""

    op: MatmulOp | GemmOp
    part: SliceOp

    @property
    def source(self) -> SSAValue:
        """What the part is of."""
        return self.part.x

    @property
    def rows(self) -> int:
        """Rows of the part, in samples where the batch is open."""
        return math.prod(s for s in ints(self.part.sizes)[:-1] if s != DYNAMIC)

    @property
    def key(self) -> Key:
        """Equal for products that can be one."""
        op = self.op
        weights = tuple(_identity(v) for v in op.operands[1:])
        said = op.attributes.get(PRECISION)
        return (type(op), id(self.source), weights, str(op.properties), said)


def _identity(value: SSAValue) -> object:
    """Equal for equal constants."""
    op = value.owner
    return (op.value, value.type) if isinstance(op, ConstantOp) else id(value)


def _shape(value: SSAValue) -> tuple[int, ...]:
    return tensor_type(value).get_shape()


def _before_reshapes(value: SSAValue) -> SSAValue:
    while isinstance(value.owner, ReshapeOp):
        value = value.owner.x
    return value


def step_of(op: Operation) -> Step | str:
    """`op` as a product of a step's input, or why it is none."""
    if not isinstance(op, MatmulOp | GemmOp):
        return "it is no product"
    if len(_shape(op.b)) != 2:
        return "its second operand is no matrix"
    if isinstance(op, GemmOp) and (reason := why_not_gemm(op)) is not None:
        return reason
    part = _before_reshapes(op.a).owner
    if not isinstance(part, SliceOp):
        return "its first operand is no part of a tensor"
    length = _shape(op.a)[-1]
    if length == DYNAMIC or {_shape(part.x)[-1], _shape(part.y)[-1]} != {length}:
        return "the part has not all of each row"
    if set(ints(part.strides)) != {1}:
        return "the part has a step"
    if isinstance(_before_reshapes(part.x).owner, ConcatOp):
        return "what it is a part of is made piece by piece"
    if isinstance(part.x.owner, ConstantOp):
        return "what it is a part of is constant"
    return Step(op, part)


def why_not_gemm(op: GemmOp) -> str | None:
    if op.trans_a.value.data:
        return "its first operand is transposed"
    if op.c is None:
        return None
    alike = math.prod(_shape(op.c)[:-1]) == 1
    return None if alike else "what is added is not the same for all rows"


def _rows_of(source: SSAValue) -> int:
    return math.prod(s for s in _shape(source)[:-1] if s != DYNAMIC)


def _why_apart(steps: Sequence[Step]) -> str | None:
    """Why products by one matrix stay as they are; None if one product of the whole source is less work."""
    source = steps[0].source
    if len({step.part for step in steps}) < 2:
        return "no other step has such a product"
    if 2 * sum(step.rows for step in steps) < _rows_of(source):
        return "most of what it is a part of is in no product"
    if isinstance(steps[0].op, GemmOp) and DYNAMIC in _shape(source):
        return "a graph.gemm takes no rows in several dimensions, and the batch is open"
    return None


class _Hoist:
    """Puts the one product before the first of its steps, and slices of it in the steps' places."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = steps
        self.at: Operation = steps[0].op
        self.location: Attribute = self.at.location

    def run(self) -> None:
        """Everything, in place."""
        source, first = self.steps[0].source, self.steps[0].op
        shape = _shape(source)
        rows = source
        if DYNAMIC not in shape:
            rows = self._reshape(source, [math.prod(shape[:-1]), shape[-1]])
        product = self._emit(type(first), [rows, *first.operands[1:]], dict(first.properties))
        assert isinstance(product.owner, Operation)
        inherit(product.owner, first)
        outputs = _shape(first.y)[-1]
        whole = self._reshape(product, [*shape[:-1], outputs])
        for step in self.steps:
            self.at, self.location = step.op, step.op.location
            self._replace(step, whole, outputs)

    def _replace(self, step: Step, whole: SSAValue, outputs: int) -> None:
        sizes = [*ints(step.part.sizes)[:-1], outputs]
        offsets = int_array(ints(step.part.offsets))
        where: dict[str, Attribute] = {
            "offsets": offsets,
            "sizes": int_array(sizes),
            "strides": step.part.strides,
        }
        y = self._reshape(self._emit(SliceOp, [whole], where), _shape(step.op.y))
        y.name_hint = step.op.y.name_hint
        applied(step.op, RULE, "one product of {} steps", len(self.steps))
        Rewriter.replace_op(step.op, [], [y])

    def _reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        if tuple(shape) == _shape(value):
            return value
        return self._emit(ReshapeOp, [value], {"shape": int_array(shape)})

    def _emit(
        self, op: type[GraphOp], operands: Sequence[SSAValue], props: dict[str, Attribute]
    ) -> SSAValue:
        made = op.make(operands, props)
        made.location = self.location  # pyright: ignore[reportAttributeAccessIssue]
        Rewriter.insert_op(made, InsertPoint.before(self.at))
        return made.results[0]


def hoist(block: Block) -> None:
    """Make one product of those by one matrix and of parts of one tensor, in place."""
    groups: dict[Key, list[Step]] = {}
    for op in block.ops:
        if not isinstance(op, MatmulOp | GemmOp):
            continue
        step = step_of(op)
        if isinstance(step, str):
            missed(op, RULE, "{}", step)
        else:
            groups.setdefault(step.key, []).append(step)
    for steps in groups.values():
        if (reason := _why_apart(steps)) is not None:
            missed(steps[0].op, RULE, "{}", reason)
        else:
            _Hoist(steps).run()


@dataclass(frozen=True)
class HoistInputProducts(ModulePass):
    """Make products by one matrix of several parts of one tensor one product of the whole tensor.

    So a recurrent cell that is written out, step by step, has its input's products before its first step, as
    one that reads the weights once: what is left in a step waits for the state. The parts are slices of
    whole rows (`x[t]`, `x[:, t]`), the matrices the second operands of `graph.matmul` and, with an added
    row or none, `graph.gemm`: equal constants, or one value, such as weights that are trained. A tensor that
    is made piece by piece, the outputs of the layer before, is left: its steps need not wait for one another.
    So is one most of whose rows are in no product.

    No numeric risk: each element is the sum of the same terms, in an order that a product never says.

    ```mlir
    %0 = graph.slice %x {offsets = array<i64: 0, 0, 0>, sizes = array<i64: 1, 1, 4>, ...}
    %1 = graph.reshape %0 {shape = array<i64: 1, 4>}
    %2 = graph.matmul %1, %w : (tensor<1x4xf32>, tensor<4x8xf32>) -> tensor<1x8xf32>
    ... the same of %x[1]
    ```
    becomes
    ```mlir
    %0 = graph.reshape %x {shape = array<i64: 2, 4>}
    %1 = graph.matmul %0, %w : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
    %2 = graph.reshape %1 {shape = array<i64: 2, 1, 8>}
    %3 = graph.slice %2 {offsets = array<i64: 0, 0, 0>, sizes = array<i64: 1, 1, 8>, ...}
    %4 = graph.reshape %3 {shape = array<i64: 1, 8>}
    ...
    ```
    """

    name = "hoist-input-products"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if is_straight(function):
                for block in function.body.blocks:
                    hoist(block)
