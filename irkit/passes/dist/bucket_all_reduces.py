"""`bucket-all-reduces`: many small reductions over ranks as few, each as early as its values are there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.dist import AllReduceOp
from irkit.dialects.functions import is_straight
from irkit.dialects.graph import ConcatOp, ReshapeOp, SliceOp
from irkit.dialects.types import DYNAMIC, int_array, numpy_dtype, tensor_type
from irkit.remarks import applied, missed

NAME = "bucket-all-reduces"
BYTES = 25_000_000
"""Of a bucket, at least, unless it is the last one: as PyTorch's DistributedDataParallel has it."""


@dataclass
class Bucket:
    """Reductions of one kind and of one element type, which become one."""

    ops: list[AllReduceOp] = field(default_factory=list[AllReduceOp])
    nbytes: int = 0

    def add(self, op: AllReduceOp) -> None:
        """One more."""
        self.ops.append(op)
        self.nbytes += _elements(op) * numpy_dtype(tensor_type(op.x).element_type).itemsize


@dataclass(frozen=True)
class BucketAllReduces(ModulePass):
    """Join reductions over ranks of one kind and element type in buckets of `bytes` bytes or more.

    Buckets are filled in the order in which their values are there, so gradients of the last layers come
    first, and each is reduced as soon as it is full: behind it, what does not hang on it goes on. Functions
    without loops, of values of static extents; a reduction that hangs on another one is in no bucket with it.
    The same sums of the same ranks: exact.

    ```mlir
    %a = dist.all_reduce %x {kind = "sum"} : (tensor<8xf32>) -> tensor<8xf32>
    %b = dist.all_reduce %y {kind = "sum"} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    ```
    becomes
    ```mlir
    %0 = graph.reshape %y {shape = array<i64: 4>} : (tensor<2x2xf32>) -> tensor<4xf32>
    %1 = graph.concat(%x, %0) {axis = 0 : i64} : (tensor<8xf32>, tensor<4xf32>) -> tensor<12xf32>
    %2 = dist.all_reduce %1 {kind = "sum"} : (tensor<12xf32>) -> tensor<12xf32>
    %a = graph.slice %2 {offsets = array<i64: 0>, sizes = array<i64: 8>, strides = array<i64: 1>}
      : (tensor<12xf32>) -> tensor<8xf32>
    ...
    ```
    """

    name = NAME
    bytes: int = BYTES

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if is_straight(function):
                _bucket(function.body.block, self.bytes)


def _bucket(block: Block, least: int) -> None:
    order = {op: number for number, op in enumerate(block.ops)}
    reductions = [op for op in block.ops if isinstance(op, AllReduceOp) and _may(op)]
    reductions.sort(key=lambda op: _made_at(op, order))
    for bucket in _buckets(reductions, least):
        if len(bucket.ops) > 1:
            _join(bucket.ops, order)
            applied(bucket.ops[0], NAME)
        for op in bucket.ops:
            if len(bucket.ops) > 1:
                Rewriter.erase_op(op)


def _may(op: AllReduceOp) -> bool:
    if DYNAMIC in tensor_type(op.x).get_shape() or not _elements(op):
        missed(op, NAME, "its size is open, or nothing")
        return False
    if _hangs_on_other(op):
        missed(op, NAME, "it hangs on another reduction")
        return False
    return True


def _owner(value: SSAValue) -> Operation | None:
    return value.owner if isinstance(value.owner, Operation) else None


def _made_at(op: AllReduceOp, order: dict[Operation, int]) -> int:
    """Where in the text the operand is made; -1 for an argument."""
    owner = _owner(op.x)
    return -1 if owner is None else order[owner]


def _elements(op: AllReduceOp) -> int:
    return math.prod(tensor_type(op.x).get_shape())


def _hangs_on_other(op: AllReduceOp) -> bool:
    pending, seen = [op.x], set[SSAValue]()
    while pending:
        value = pending.pop()
        owner = _owner(value)
        if owner is None or value in seen:
            continue
        if isinstance(owner, AllReduceOp):
            return True
        seen.add(value)
        pending += owner.operands
    return False


def _buckets(ops: Sequence[AllReduceOp], least: int) -> Iterator[Bucket]:
    """Full ones, in the order of their last values, then those that are left."""
    open_: dict[tuple[str, Attribute], Bucket] = {}
    for op in ops:
        key = op.kind.data, tensor_type(op.x).element_type
        bucket = open_.setdefault(key, Bucket())
        bucket.add(op)
        if bucket.nbytes >= least:
            yield open_.pop(key)
    yield from open_.values()


def _join(ops: Sequence[AllReduceOp], order: dict[Operation, int]) -> None:
    """One reduction of all their values, behind the last of these; and each part of what it gives."""
    made: list[Operation] = []
    flat = [_reshaped(op.x, (_elements(op),), made) for op in ops]
    joined = ConcatOp.make(flat, {"axis": IntegerAttr(0, i64)})
    total = AllReduceOp.make([joined.y], {"kind": StringAttr(ops[0].kind.data)})
    made += [joined, total]
    at = 0
    for op in ops:
        size = _elements(op)
        part = SliceOp.make(
            [total.y],
            {"offsets": int_array([at]), "sizes": int_array([size]), "strides": int_array([1])},
        )
        made.append(part)
        op.y.replace_all_uses_with(_reshaped(part.y, tensor_type(op.y).get_shape(), made))
        at += size
    last = _owner(max(ops, key=lambda op: _made_at(op, order)).x)
    for new in made:
        new.location = ops[-1].location
    block = ops[0].parent_block()
    assert block is not None
    point = InsertPoint.at_start(block) if last is None else InsertPoint.after(last)
    Rewriter.insert_op(made, point)


def _reshaped(x: SSAValue, shape: Sequence[int], made: list[Operation]) -> SSAValue:
    if tuple(tensor_type(x).get_shape()) == tuple(shape):
        return x
    made.append(ReshapeOp.make([x], {"shape": int_array(shape)}))
    return made[-1].results[0]
