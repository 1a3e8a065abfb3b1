"""`keep-operands`: what a heavy op gives to several is a second result of the elementwise op behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import func, tensor
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.functions import is_straight
from irkit.dialects.linalg_generic import is_elementwise, maps
from irkit.dialects.reassociation import groups_of
from irkit.dialects.tensor_ops.interface import Kind
from irkit.dialects.tensor_ops.registry import kind_of
from irkit.dialects.tensor_ops.reshape import RESHAPES
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.passes.gpu import gpu_of
from irkit.passes.tensor.group_products import Depths
from irkit.passes.tensor.joined_reads import joined_operands, joined_read, split_again
from irkit.passes.tensor.joining import why_not_joined
from irkit.remarks import applied, missed

RULE = "KeepOperand"


def _readers(value: SSAValue) -> dict[Operation, SSAValue]:
    """The ops that read a value, and what each reads: the value, or it under another shape."""
    found: dict[Operation, SSAValue] = {}
    for use in value.uses:
        seen = use.operation.results[0] if isinstance(use.operation, RESHAPES) else value
        inner = [u.operation for u in seen.uses] if seen is not value else [use.operation]
        found.update(dict.fromkeys(inner, seen))
    return found


def _why_not_behind(op: Operation, seen: SSAValue, value: SSAValue) -> str | None:
    """Why an op that reads `value`, as `seen`, cannot be computed where it is made; None if it can."""
    if not isinstance(op, linalg.GenericOp) or not is_elementwise(op):
        return "it is not elementwise"
    if (reason := why_not_joined([op])) is not None:
        return reason
    shape = tensor_type(seen).get_shape()
    identity = AffineMap.identity(len(shape))
    own = [m for v, m in zip(op.inputs, maps(op), strict=False) if v is seen]
    if tensor_type(op.results[0]).get_shape() != shape or set(own) != {identity}:
        return "it reads other elements than it computes"
    users = {use.operation for result in op.results for use in result.uses}
    if len(users) == 1 and not any(
        is_elementwise(u) or isinstance(u, func.ReturnOp) for u in users
    ):
        return "it is computed where it is read"
    if any(isinstance(user, tensor.InsertSliceOp) for user in users):
        return "it is computed where it is inserted"
    if seen is value:
        return None
    if not isinstance(seen.owner, tensor.ExpandShapeOp) or DYNAMIC in shape:
        return "it reads what is made under another shape"
    groups = groups_of(seen.owner)
    fits = all(
        joined_read(v, m, groups, shape) is not None
        for v, m in zip(op.inputs, maps(op), strict=False)
    )
    return None if fits else "it reads others by parts of a dimension"


@dataclass(frozen=True)
class _Keeper:
    """Rewrites one block."""

    block: Block
    depths: Depths

    def run(self) -> None:
        """Look at each heavy op."""
        for root in list(self.block.ops):
            if kind_of(root) is Kind.HEAVY and len(root.results) == 1:
                self._look(root)

    def _look(self, root: Operation) -> None:
        (value,) = root.results
        readers = _readers(value)
        if len(readers) < 2:
            return
        if any(isinstance(op, linalg.GenericOp) and op.outputs[0] is value for op in readers):
            missed(root, RULE, "another goes on from what it gives")
            return
        order = {op: n for n, op in enumerate(self.block.ops)}
        for op, seen in readers.items():
            reason = _why_not_behind(op, seen, value) or self._why_later(op, seen, root, order)
            if reason is None and isinstance(op, linalg.GenericOp):
                applied(op, RULE, "it gives what it reads of '{}' too", root.name)
                self._keep(op, seen, value, order)
                return
            missed(op, RULE, "behind '{}': {}", root.name, reason)

    def _why_later(
        self, op: Operation, seen: SSAValue, root: Operation, order: dict[Operation, int]
    ) -> str | None:
        """Why an op would keep the root, or what reads it, waiting."""
        others = _needed(op, seen)
        ready = max((self.depths.of.get(v, 0) for v in root.operands), default=0)
        if any(self.depths.of.get(v, 0) > ready for v in others):
            return "it waits for what comes later"
        last = max(
            (order.get(v.owner, -1) for v in others if isinstance(v.owner, Operation)), default=-1
        )
        if any(
            order.get(reader, last) < last
            for reader in _readers(root.results[0])
            if reader is not op
        ):
            return "something reads it before the op can be computed"
        return None

    def _keep(
        self, op: linalg.GenericOp, seen: SSAValue, value: SSAValue, order: dict[Operation, int]
    ) -> None:
        """Make `value` the last result of `op`, which is computed as soon as it can be."""
        view = (
            seen.owner
            if isinstance(seen.owner, tensor.ExpandShapeOp) and seen is not value
            else None
        )
        made: list[Operation] = []
        kind = tensor_type(value)
        inputs, read = list(op.inputs), maps(op)[: len(op.inputs)]
        if view is not None:
            inputs, read = joined_operands(inputs, read, view, made)
        types = [TensorType(tensor_type(r).element_type, kind.get_shape()) for r in op.results]
        types.append(kind)
        sizes = _dynamic_sizes(op)
        empties = [tensor.EmptyOp(sizes, t) for t in types]
        body = op.body.clone()
        block = body.block
        block.insert_arg(kind.element_type, len(block.args))
        end = block.last_op
        assert isinstance(end, linalg.YieldOp)
        kept = block.args[inputs.index(value)]
        Rewriter.replace_op(end, linalg.YieldOp(*end.operands, kept))
        own = AffineMap.identity(kind.get_num_dims())
        new = linalg.GenericOp(
            inputs,
            [e.tensor for e in empties],
            body,
            ArrayAttr(AffineMapAttr(m) for m in (*read, *[own] * len(types))),
            ArrayAttr([IteratorTypeAttr.parallel()] * kind.get_num_dims()),
            types,
        )
        new.location = op.location
        needed = [value, *_needed(op, seen)]
        places = [v.owner for v in needed if isinstance(v.owner, Operation)]
        at = max(places, key=lambda maker: order.get(maker, -1))
        made += [*empties, new]
        results = list(new.results)
        if view is not None:
            split = [split_again(r, view) for r in results]
            made += split
            results = [s.result for s in split]
        Rewriter.insert_op(made, InsertPoint.after(at))
        self.depths.of |= dict.fromkeys(results, self.depths.of.get(value, 0))
        for old, result in zip(op.results, results, strict=False):
            result.name_hint = old.name_hint
            old.replace_all_uses_with(result)
        Rewriter.erase_op(op)
        last = new.results[-1]
        for use in [u for u in value.uses if u.operation not in made]:
            if isinstance(use.operation, RESHAPES):
                use.operation.detach()
                Rewriter.insert_op(use.operation, InsertPoint.after(made[-1]))
            use.operation.operands[use.index] = last


def _needed(op: Operation, seen: SSAValue) -> list[SSAValue]:
    """What an elementwise op waits for beside `seen`."""
    assert isinstance(op, linalg.GenericOp)
    return [*(v for v in op.inputs if v is not seen), *_dynamic_sizes(op)]


def _dynamic_sizes(op: linalg.GenericOp) -> list[SSAValue]:
    """Sizes of the destination that are not known before the program runs."""
    empty = op.outputs[0].owner
    return list(empty.dynamic_sizes) if isinstance(empty, tensor.EmptyOp) else []


@dataclass(frozen=True)
class KeepOperands(ModulePass):
    """Where several read what a heavy op gives, let the first elementwise op of them hand it on as a result.

    That op is then the only one that reads it, so `form-roperators` computes it where it is made: one launch
    stores both, where there were two one behind the other. So are a layer normalisation of a step of
    training and what scales it, or the gradient of a product and what is multiplied with it. Done for a
    `device` that is a GPU, where each launch on the longest path costs as much as a small tensor does; only
    where the op waits for nothing that the heavy one does not wait for. A dimension that a reshape splits
    between the two is joined again. No value changes.

    ```mlir
    %0 = te.layer_norm %x {...}
    %1 = linalg.generic {...} ins(%0, %w) outs(%e) { ^(%p, %q, %o): %s = arith.mulf %p, %q  linalg.yield %s }
    %2 = te.softmax %0 {...}
    ```
    becomes
    ```mlir
    %0 = te.layer_norm %x {...}
    %1, %3 = linalg.generic {...} ins(%0, %w) outs(%e, %e) {
      ^(%p, %q, %o, %r): %s = arith.mulf %p, %q  linalg.yield %s, %p }
    %2 = te.softmax %3 {...}
    ```
    """

    name = "keep-operands"
    requires: ClassVar[tuple[str, ...]] = ("tensor",)
    produces: ClassVar[str] = "tensor"
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if gpu_of(self.device) is None:
            return
        for function in [f for f in op.ops if is_straight(f)]:
            _Keeper(function.body.block, Depths(function.body.block)).run()
