"""Appending ops to a block, with what an op under differentiation hands on to those that its rule makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IndexType, StringAttr, f32
from xdsl.ir import Attribute, Block, Operation, SSAValue

from irkit.dialects.constants import constant
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.composition import Ops
from irkit.dialects.graph.elementwise import MulOp
from irkit.dialects.graph.shape import ExpandOp, ReshapeOp
from irkit.dialects.precision import PRECISION
from irkit.dialects.properties import attribute
from irkit.dialects.types import DYNAMIC, int_array, tensor_type
from irkit.dialects.types import tensor as tensor_of
from irkit.weights import Array, WeightStore


class Tape:
    """Appends to `block`. `like`: the op whose location and precision those have that are made."""

    def __init__(self, block: Block, weights: WeightStore) -> None:
        self.block, self.weights = block, weights
        self.like: Operation | None = None
        self._constants: dict[Attribute, SSAValue] = {}

    @property
    def ops(self) -> Ops[SSAValue]:
        """What rules append by."""
        return Ops(self.make, self.constant)

    def add(self, op: Operation) -> Operation:
        """Append an op."""
        if self.like is not None:
            op.location = self.like.location
        self.block.add_op(op)
        return op

    def make(self, op: type[GraphOp], *operands: SSAValue, **props: Any) -> Sequence[SSAValue]:
        """Append a graph op; its results. Nothing is multiplied by 1, which the first cotangent often is."""
        if op is MulOp and (same := _times_one(*operands)) is not None:
            return [same]
        made = op.make(operands, {k: attribute(v) for k, v in props.items()})
        precision = None if self.like is None else self.like.attributes.get(PRECISION)
        # A precision is said of products of float32 alone.
        if op.CONTRACTS and isinstance(precision, StringAttr) and _is_single(made):
            made.attributes[PRECISION] = precision
        return self.add(made).results

    def constant(self, array: Array) -> SSAValue:
        """A constant tensor; equal ones are one op."""
        made = constant(array, self.weights)
        known = self._constants.get(made.value)
        if known is None:
            known = self._constants[made.value] = self.add(made).results[0]
        return known

    # Loops

    def index(self, number: int) -> SSAValue:
        """A constant index."""
        return self.add(arith.ConstantOp.from_int_and_width(number, IndexType())).results[0]

    def row(self, stack: SSAValue, number: SSAValue) -> SSAValue:
        """Row `number` of a stack of values, as a value."""
        shape = tensor_type(stack).get_shape()
        rest = list(shape[1:])
        made = tensor.ExtractSliceOp.build(
            operands=[stack, [number], [], []],
            properties=_slice_properties(rest),
            result_types=[tensor_of(tensor_type(stack).element_type, (1, *rest))],
        )
        return self.ops.reshape(self.add(made).results[0], rest)

    def with_row(self, stack: SSAValue, number: SSAValue, value: SSAValue) -> SSAValue:
        """A stack with `value` as row `number`."""
        shape = list(tensor_type(value).get_shape())
        part = self.ops.reshape(value, [1, *shape])
        made = tensor.InsertSliceOp.build(
            operands=[part, stack, [number], [], []],
            properties=_slice_properties(shape),
            result_types=[stack.type],
        )
        return self.add(made).results[0]


def _times_one(lhs: SSAValue, rhs: SSAValue) -> SSAValue | None:
    """The product of two, if it is one of them."""
    for one, other in ((lhs, rhs), (rhs, lhs)):
        shape, rest = (tensor_type(v).get_shape() for v in (other, one))
        fits = len(rest) <= len(shape) and all(
            s in (1, t) for s, t in zip(reversed(rest), reversed(shape), strict=False)
        )
        if fits and _is_one(one):
            return other
    return None


def _is_one(value: SSAValue) -> bool:
    """Whether all elements are the constant 1."""
    while isinstance(value.owner, ExpandOp | ReshapeOp):
        value = value.owner.x
    owner = value.owner
    if not isinstance(owner, arith.ConstantOp):
        return False
    held = owner.value
    return isinstance(held, DenseIntOrFPElementsAttr) and set(held.get_values()) == {1.0}


def _is_single(op: GraphOp) -> bool:
    return all(tensor_type(v).element_type == f32 for v in op.results)


def _slice_properties(rest: Sequence[int]) -> dict[str, Attribute]:
    return {
        "static_offsets": int_array([DYNAMIC, *[0] * len(rest)]),
        "static_sizes": int_array([1, *rest]),
        "static_strides": int_array([1] * (1 + len(rest))),
    }
