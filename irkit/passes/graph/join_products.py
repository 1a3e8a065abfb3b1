"""`join-products`: queries, keys and values that are products of one operand as one product."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from irkit.context import weights_of
from irkit.dialects.constants import constant, constant_array
from irkit.dialects.functions import is_straight
from irkit.dialects.graph import (
    AddOp,
    AttentionOp,
    DivOp,
    GemmOp,
    MatmulOp,
    MulOp,
    ReshapeOp,
    SliceOp,
    TransposeOp,
)
from irkit.dialects.precision import PRECISION, inherit
from irkit.dialects.types import int_array, numpy_dtype, tensor_type
from irkit.errors import DeviceError
from irkit.remarks import applied, missed
from irkit.rkernels.legality import target_of
from irkit.schedule.devices import device as find_device
from irkit.weights import Array, WeightStore

RULE = "JoinProducts"

_MOVES = (ReshapeOp, TransposeOp)
_SCALES = (AddOp, MulOp, DivOp)


@dataclass(frozen=True)
class Member:
    """A product with a constant matrix, and the row that is added to it, if there is one."""

    op: MatmulOp | GemmOp
    weights: Array
    """inputs×outputs."""
    bias: Array | None
    value: SSAValue
    """The sum, or the product where nothing is added."""

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for products that can be one."""
        op, t = self.op, tensor_type(self.op.y)
        said = op.attributes.get(PRECISION)
        lead = t.get_shape()[:-1]
        return (type(op), id(op.a), str(op.properties), said, t.element_type, lead)

    @property
    def columns(self) -> int:
        """Outputs."""
        return self.weights.shape[1]


def member_of(op: MatmulOp | GemmOp, weights: WeightStore) -> Member | str:
    """`op` as a product that can be part of another, or why it cannot."""
    array = constant_array(op.b, weights)
    if array is None or array.ndim != 2 or isinstance(op.a.owner, ConstantOp):
        return "its second operand is no constant matrix"
    if isinstance(op, GemmOp):
        if op.trans_a.value.data or op.c is not None:
            return "its first operand is transposed, or something is added within it"
        array = array.T if op.trans_b.value.data else array
    bias, value = _biased(op.y, weights)
    if not _reaches_attention(value):
        return "something else than attention reads what it gives"
    return Member(op, array, bias, value)


def _biased(value: SSAValue, weights: WeightStore) -> tuple[Array | None, SSAValue]:
    """The constant row that alone is added to `value`, and the sum."""
    users = [use.operation for use in value.uses]
    if len(users) != 1 or not isinstance(users[0], AddOp) or users[0].y.type != value.type:
        return None, value
    add = users[0]
    other = add.rhs if add.lhs is value else add.lhs
    array = None if other is value else constant_array(other, weights)
    columns = tensor_type(value).get_shape()[-1]
    if array is None or array.size != math.prod(array.shape[-1:]) or array.size not in (1, columns):
        return None, value
    return np.broadcast_to(array.reshape(-1), (columns,)), add.y


def _reaches_attention(value: SSAValue) -> bool:
    """Whether attention alone reads `value`: as it is, moved, or scaled by constants."""
    users = [use.operation for use in value.uses]
    return bool(users) and all(_is_on_the_way(user) for user in users)


def _is_on_the_way(op: Operation) -> bool:
    if isinstance(op, AttentionOp):
        return True
    scaled = isinstance(op, _SCALES) and any(isinstance(v.owner, ConstantOp) for v in op.operands)
    return (scaled or isinstance(op, _MOVES)) and _reaches_attention(op.results[0])


def _join(members: Sequence[Member], weights: WeightStore) -> None:
    """One product before the first of them, and parts of it in the places of their sums."""
    first = members[0].op
    at = InsertPoint.before(first)

    def insert(op: Operation) -> SSAValue:
        op.location = first.location  # pyright: ignore[reportAttributeAccessIssue]
        Rewriter.insert_op(op, at)
        return op.results[0]

    w = np.concatenate([m.weights for m in members], axis=1)
    if isinstance(first, GemmOp) and first.trans_b.value.data:
        w = w.T
    matrix = insert(constant(np.ascontiguousarray(w), weights))
    product = type(first).make([first.a, matrix], dict(first.properties))
    inherit(product, first)
    whole = insert(product)
    if any(m.bias is not None for m in members):
        # What nothing is added to stays as it is, zeros too.
        none = -np.zeros((), numpy_dtype(tensor_type(whole).element_type))
        rows = [np.full(m.columns, none) if m.bias is None else m.bias for m in members]
        whole = insert(AddOp.make([whole, insert(constant(np.concatenate(rows), weights))], {}))
    lead, start = tensor_type(whole).get_shape()[:-1], 0
    for m in members:
        where = {
            "offsets": int_array((*(0 for _ in lead), start)),
            "sizes": int_array((*lead, m.columns)),
            "strides": int_array([1] * (len(lead) + 1)),
        }
        part = insert(SliceOp.make([whole], where))
        part.name_hint = m.value.name_hint
        applied(m.op, RULE, "one of {} products of one operand", len(members))
        m.value.replace_all_uses_with(part)
        start += m.columns
    for m in members:
        for op in dict.fromkeys([m.value.owner, m.op]):
            assert isinstance(op, Operation)
            Rewriter.erase_op(op)


def join_block(block: Block, weights: WeightStore) -> None:
    """Join the products of a function's body, in place."""
    found: dict[tuple[object, ...], list[Member]] = {}
    for op in block.ops:
        if not isinstance(op, MatmulOp | GemmOp):
            continue
        member = member_of(op, weights)
        if isinstance(member, str):
            missed(op, RULE, "{}", member)
        else:
            found.setdefault(member.key, []).append(member)
    for members in found.values():
        if len(members) > 1:
            _join(members, weights)
        else:
            missed(members[0].op, RULE, "no other product has its first operand")


@dataclass(frozen=True)
class JoinProducts(ModulePass):
    """Make products of one operand by constants, which attention alone reads, one product.

    Queries, keys and values of self-attention, or keys and values of cross-attention: their weights, and the
    rows that are added, are put side by side when the model is compiled, and attention reads parts of the
    one product where they lie (`compose-views`). The operand is read once, and a launch is left of three.
    What something else reads too stays as it is: a part of a product is no contiguous matrix. On a CPU
    (`device`) the operand is in the cache for each of them, and attention reads whole matrices faster.

    No numeric risk: each element is the sum of the same terms, in an order that a product never says.

    ```mlir
    %0 = graph.matmul %x, %wq : (tensor<10x8xf32>, tensor<8x8xf32>) -> tensor<10x8xf32>
    %1 = graph.add %0, %bq : (tensor<10x8xf32>, tensor<8xf32>) -> tensor<10x8xf32>
    ... the same for %wk, %bk and %wv, %bv
    ```
    becomes
    ```mlir
    %0 = graph.matmul %x, %w : (tensor<10x8xf32>, tensor<8x24xf32>) -> tensor<10x24xf32>
    %1 = graph.add %0, %b : (tensor<10x24xf32>, tensor<24xf32>) -> tensor<10x24xf32>
    %2 = graph.slice %1 {offsets = array<i64: 0, 0>, sizes = array<i64: 10, 8>, ...}
    ...
    ```
    """

    name = "join-products"
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        try:
            if self.device and target_of(find_device(self.device)) == "cpu":
                return
        except DeviceError as error:
            raise PassFailedException(str(error)) from None
        weights = weights_of(ctx)
        for function in op.ops:
            if is_straight(function) and len(function.body.blocks) == 1:
                join_block(function.body.block, weights)
