"""`join-epilogues`: on a GPU, all that is made of a small product element by element, as its one epilogue."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass

from irkit.dialects.functions import is_straight
from irkit.dialects.linalg_generic import is_contraction, is_elementwise, loop_sizes, maps
from irkit.dialects.tensor_ops.interface import Kind
from irkit.dialects.tensor_ops.registry import kind_of
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.passes.gpu import gpu_of
from irkit.passes.tensor.group_products import Depths
from irkit.passes.tensor.join_siblings import BODY, OPERANDS
from irkit.passes.tensor.joining import join, why_not_joined
from irkit.remarks import applied, missed

RULE = "JoinEpilogues"
LARGEST: Final = 1 << 25
"""Multiply-adds of a product that takes no longer than some launches: the epilogue of a larger one is not
made longer, since a library may compute it."""


def _users(op: Operation) -> set[Operation]:
    return {use.operation for result in op.results for use in result.uses}


def _behind(
    product: linalg.GenericOp, depths: Depths, order: Mapping[Operation, int]
) -> list[linalg.GenericOp]:
    """The elementwise ops over its loops that are made of what a product gives, when that is there, in
    program order."""
    shape = tensor_type(product.results[0]).get_shape()
    made, ready = set[SSAValue](product.results), depths.of[product.results[0]]
    found: list[linalg.GenericOp] = []
    pending, seen = list[tuple[int, linalg.GenericOp]](), set[Operation]()

    def await_readers(op: Operation) -> None:
        for user in _users(op) - seen:
            seen.add(user)
            if isinstance(user, linalg.GenericOp):
                heapq.heappush(pending, (order[user], user))

    await_readers(product)
    while pending:
        _, op = heapq.heappop(pending)
        if _is_member(op, shape, made) and depths.ready(op) == ready:
            made |= set(op.results)
            found.append(op)
            await_readers(op)
    return found


def _is_member(op: linalg.GenericOp, shape: tuple[int, ...], made: set[SSAValue]) -> bool:
    if not is_elementwise(op) or tensor_type(op.results[0]).get_shape() != shape:
        return False
    identity = AffineMap.identity(len(shape))
    reads = {m for v, m in zip(op.inputs, maps(op), strict=False) if v in made}
    return reads == {identity} and why_not_joined([op]) is None and _is_stored(op)


def _is_stored(op: linalg.GenericOp) -> bool:
    """Whether what an op makes is no part of what reads it: of an insertion, or of a sum along rows."""
    users = _users(op)
    if any(isinstance(user, tensor.InsertSliceOp) for user in users):
        return False
    (user, *others) = users or (op,)
    return bool(others) or kind_of(user) is not Kind.HEAVY or is_contraction(user)


def _why_not(product: linalg.GenericOp, ops: list[linalg.GenericOp]) -> str | None:
    if len(ops) < 2:
        return "one op or none is behind it"
    if not _users(product) <= set(ops):
        return "something else reads it"
    sizes = loop_sizes(product)
    if DYNAMIC in sizes or math.prod(sizes) > LARGEST:
        return "it is large"
    made = {result for op in ops for result in op.results}
    read = {value for op in ops for value in op.inputs} - made
    kept = sum(any(u.operation not in ops for u in result.uses) for result in made)
    if len(read) + kept > OPERANDS or sum(len(o.body.block.ops) for o in ops) > BODY:
        return "they are too many for the registers of one kernel"
    return why_not_joined(ops)


def join_block(block: Block) -> None:
    """Join what is behind each small product of a function's body."""
    depths, order = Depths(block), {op: n for n, op in enumerate(block.ops)}
    for op in list(block.ops):
        if not isinstance(op, linalg.GenericOp) or not is_contraction(op):
            continue
        ops = _behind(op, depths, order)
        if (reason := _why_not(op, ops)) is not None:
            missed(op, RULE, "{}", reason)
            continue
        applied(op, RULE, "{} elementwise ops are its epilogue", len(ops))
        made = join(ops, {})
        # What stood between the first and the last may stand behind them now.
        order = {op: n for n, op in enumerate(block.ops)}
        ready = depths.of[op.results[0]]
        depths.of |= dict.fromkeys(made.results, ready)


@dataclass(frozen=True)
class JoinEpilogues(ModulePass):
    """Compute all that is made element by element of what a small product gives as one op behind it.

    Elementwise ops over the loops of a product's result that need nothing which other products give later,
    and read its result or that of each other, become one with a result for each that is needed outside: it is
    the product's epilogue, where several would be launches, or waits, of their own. So a step backwards of a
    recurrence is one rOperator. Of products of more than 2^25 multiply-adds nothing changes, nor on a CPU;
    `device` is the vDevice that is planned for. No value changes.

    ```mlir
    %0 = linalg.generic {... "reduction"} ins(%x, %w) outs(%z) {...}
    %1 = linalg.generic {...} ins(%0, %y) outs(%e) {...}
    %2 = linalg.generic {...} ins(%1, %v) outs(%e) {...}
    %3 = linalg.generic {...} ins(%1, %u) outs(%e) {...}
    ```
    becomes
    ```mlir
    %0 = linalg.generic {... "reduction"} ins(%x, %w) outs(%z) {...}
    %2, %3 = linalg.generic {...} ins(%0, %y, %v, %u) outs(%e, %e) {...}
    ```
    """

    name = "join-epilogues"
    requires: ClassVar[tuple[str, ...]] = ("tensor",)
    produces: ClassVar[str] = "tensor"
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if gpu_of(self.device) is None:
            return
        for function in op.walk():
            if is_straight(function):
                join_block(function.body.block)
