"""`join-siblings`: elementwise ops over the same loops that read the same as one op with several results."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import func, tensor
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from irkit.dialects.functions import is_straight
from irkit.dialects.linalg_generic import is_elementwise
from irkit.dialects.positions import Positions
from irkit.dialects.tensor_ops.interface import Kind
from irkit.dialects.tensor_ops.registry import kind_of
from irkit.dialects.tensor_ops.reshape import RESHAPES
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.passes.gpu import gpu_of
from irkit.passes.tensor.group_products import Depths
from irkit.passes.tensor.joining import Sources, join, why_not_joined
from irkit.remarks import applied, missed

RULE = "JoinSiblings"
OPERANDS, BODY = 20, 256
"""At most so many inputs and results, and ops of a body, in one: what the registers of a kernel can hold."""
SHORTEST = 1
"""Ops of a body at least: what it yields."""


@dataclass(eq=False)
class Family:
    """Ops that can be one, in program order."""

    ops: list[linalg.GenericOp] = field(default_factory=list[linalg.GenericOp])

    @property
    def length(self) -> int:
        """Ops of their bodies."""
        return sum(len(op.body.block.ops) for op in self.ops)

    @property
    def operands(self) -> int:
        """What they read, and what others read of what they make."""
        return _operands(self.ops)


def _operands(ops: Sequence[linalg.GenericOp]) -> int:
    made = {result for member in ops for result in member.results}
    read = {value for member in ops for value in member.inputs} - made
    return len(read) + sum(any(u.operation not in ops for u in r.uses) for r in made)


class _Near:
    """Families by what their ops read and make, without those that are full: of each value there may be
    thousands."""

    def __init__(self) -> None:
        self._of: dict[SSAValue, dict[Family, None]] = {}
        self.looked = 0
        """Families that were offered to an op."""

    def of(self, op: linalg.GenericOp) -> list[Family]:
        """Those that may take an op."""
        found = {family: None for value in _whole(op) for family in self._of.get(value, ())}
        self.looked += len(found)
        return list(found)

    def put(self, family: Family) -> None:
        """A family has one more op, the last."""
        if family.length + SHORTEST > BODY:
            return self._drop(family, made=True)
        if family.operands >= OPERANDS:
            # One more op makes one more result, and only one that reads what the family makes takes one away.
            self._drop(family, made=False)
            for value in family.ops[-1].results:
                self._of.setdefault(value, {})[family] = None
            return None
        for value in _whole(family.ops[-1]):
            self._of.setdefault(value, {})[family] = None
        return None

    def _drop(self, family: Family, made: bool) -> None:
        results = {result for op in family.ops for result in op.results}
        for value in (v for op in family.ops for v in _whole(op)):
            if made or value not in results:
                self._of.get(value, {}).pop(family, None)


def _whole(op: linalg.GenericOp) -> list[SSAValue]:
    """What an op makes, what it reads that has as many elements, and what that is a slice of."""
    shape = tensor_type(op.results[0]).get_shape()
    read = [v for v in op.inputs if tensor_type(v).get_shape() == shape]
    sliced = [v.owner.source for v in read if isinstance(v.owner, tensor.ExtractSliceOp)]
    return [*op.results, *read, *sliced]


def _is_epilogue(op: linalg.GenericOp) -> bool:
    """Whether an op will be computed where a heavy op makes what it alone reads."""
    for value in op.inputs:
        maker = value.owner
        made = isinstance(maker, Operation) and kind_of(maker) is Kind.HEAVY
        if made and {use.operation for use in value.uses} == {op}:
            return True
    return False


def _read_whole(op: linalg.GenericOp) -> set[SSAValue]:
    """What an op reads that has as many elements as it makes."""
    shape = tensor_type(op.results[0]).get_shape()
    return {v for v in op.inputs if tensor_type(v).get_shape() == shape}


def _has_heads(op: linalg.GenericOp) -> bool:
    """Whether what an op makes is stored, and something is made of it alone, for as many rows as come: where
    all sizes are known, a library may compute the heavy op and this one, but no more."""
    if DYNAMIC not in tensor_type(op.results[0]).get_shape():
        return False
    users = {use.operation for result in op.results for use in result.uses}
    made = set[SSAValue](op.results)
    return len(users) > 1 and any(
        isinstance(user, linalg.GenericOp) and is_elementwise(user) and _read_whole(user) <= made
        for user in users
    )


def _why_alone(op: linalg.GenericOp, on_gpu: bool) -> str | None:
    """Why an op goes by itself; None if it may be joined."""
    if (reason := why_not_joined([op])) is not None:
        return reason
    if _is_epilogue(op) and not (on_gpu and _has_heads(op)):
        return "it is computed where what it reads is made"
    users = [use.operation for result in op.results for use in result.uses]
    if on_gpu:
        users = [_behind_reshape(user) for user in users]
    if any(isinstance(user, tensor.InsertSliceOp) for user in users):
        return "it is computed where it is inserted"
    if len(set(users)) == 1 and not (
        is_elementwise(users[0]) or isinstance(users[0], func.ReturnOp)
    ):
        return "it is computed where it is read"
    return None


def _behind_reshape(user: Operation) -> Operation:
    """What returns a reshape of a value, as it might return the value; else who reads it."""
    if not isinstance(user, RESHAPES):
        return user
    behind = {use.operation for use in user.result.uses}
    returns = [reader for reader in behind if isinstance(reader, func.ReturnOp)]
    return returns[0] if len(returns) == len(behind) == 1 else user


def _why_not_of(family: Family, op: linalg.GenericOp, depths: Depths, known: Sources) -> str | None:
    """Why an op cannot be one of a family; None if it can."""
    ops = [*family.ops, op]
    made = {result for member in ops for result in member.results}
    if _operands(ops) > OPERANDS or sum(len(o.body.block.ops) for o in ops) > BODY:
        return "they are too many for the registers of one kernel"
    first = next((member for member in ops if _is_epilogue(member)), None)
    if first is not None:
        others = set[SSAValue]().union(*(_read_whole(member) for member in ops))
        if others - made - _read_whole(first):
            return "one will be computed where what it reads is made, and no other"
    return depths.why_apart(ops) or why_not_joined(ops, known)


def _families(block: Block, depths: Depths, on_gpu: bool) -> list[Family]:
    """The elementwise ops of a block, those together that can be one."""
    families: list[Family] = []
    near, known = _Near(), Sources()
    for op in block.ops:
        if not isinstance(op, linalg.GenericOp) or not is_elementwise(op):
            continue
        if (reason := _why_alone(op, on_gpu)) is not None:
            missed(op, RULE, "{}", reason)
            continue
        own = _family_of(op, near.of(op), depths, known)
        if not own.ops:
            families.append(own)
        own.ops.append(op)
        near.put(own)
    return families


def _family_of(
    op: linalg.GenericOp, near: Collection[Family], depths: Depths, known: Sources
) -> Family:
    """The first that takes an op of the families that read or make what it reads; or a new one."""
    if not near:
        missed(op, RULE, "they read nothing in common")
    for family in near:
        if (reason := _why_not_of(family, op, depths, known)) is None:
            return family
        missed(op, RULE, "{}", reason)
    return Family()


def join_block(block: Block, on_gpu: bool) -> None:
    """Join the elementwise ops of a function's body, in place."""
    families = _families(block, Depths(block), on_gpu)
    positions = Positions(block)
    for family in families:
        if len(family.ops) < 2:
            continue
        # To join others has moved what stands between, and may have made these wait for one another.
        ops = positions.ordered(family.ops)
        if (reason := why_not_joined(ops)) is not None:
            missed(ops[0], RULE, "{}", reason)
            continue
        for op in ops:
            applied(op, RULE, "one of {}", len(ops))
        join(ops, {}, positions)


@dataclass(frozen=True)
class JoinSiblings(ModulePass):
    """Compute elementwise ops over the same loops together, where one reads what another reads or makes,
    or both read slices of one array, as gates of a cell do.

    `fuse-elementwise` computes a producer in its one reader. A producer of several readers, and readers of
    one array, are passes over memory of their own: here they become one, with a result for each that is
    needed outside. What will be computed where a heavy op makes what it reads, or reads what it makes, is
    left alone, and so is what waits for more heavy ops than the others, and what is inserted in place.
    (Sibling fusion of MLIR's affine loops; K. Kennedy, K. McKinley, Maximizing Loop Parallelism and Improving
    Data Locality via Loop Fusion and Distribution, LCPC 1993.)

    For a `device` that is a GPU, also what is returned under another shape, and what will be computed where a
    heavy op makes what it reads with what is made of it alone, the heads of a model of a batch: they are
    stored by the heavy op's launch. A CPU is asked for one of a program's outputs, and computes no others.
    No value changes.

    ```mlir
    %0 = linalg.generic {...} ins(%x) outs(%e) { ^(%p, %o): %s = math.exp %p  linalg.yield %s }
    %1 = linalg.generic {...} ins(%0, %y) outs(%e) { ^(%p, %q, %o): %s = arith.addf %p, %q  linalg.yield %s }
    %2 = linalg.generic {...} ins(%0, %y) outs(%e) { ^(%p, %q, %o): %s = arith.mulf %p, %q  linalg.yield %s }
    ```
    becomes
    ```mlir
    %1, %2 = linalg.generic {...} ins(%x, %y) outs(%e, %e) {
      ^(%p, %q, %o, %r):
        %s = math.exp %p  %t = arith.addf %s, %q  %u = arith.mulf %s, %q  linalg.yield %t, %u }
    ```
    """

    name = "join-siblings"
    requires: ClassVar[tuple[str, ...]] = ("tensor",)
    produces: ClassVar[str] = "tensor"
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        on_gpu = gpu_of(self.device) is not None
        for function in op.walk():
            if is_straight(function):
                join_block(function.body.block, on_gpu)
