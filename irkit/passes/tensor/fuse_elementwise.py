"""`fuse-elementwise`: one loop nest instead of a chain of elementwise ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    AffineMapAttr,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    UnrealizedConversionCastOp,
    i8,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irkit.dialects.functions import is_straight
from irkit.dialects.linalg_generic import is_contraction, is_elementwise, maps
from irkit.dialects.tensor_ops.interface import Kind
from irkit.dialects.tensor_ops.registry import kind_of
from irkit.dialects.tensor_ops.reshape import RESHAPES
from irkit.dialects.types import DYNAMIC, is_unsigned, signless, tensor_type, ui8
from irkit.passes.tensor.read_back import read_back
from irkit.remarks import applied, missed

# Names of this pass's rules in remarks.
RESOLVE, CANCEL, FUSE = "ResolveSize", "CancelReshapes", "FuseProducer"
LONGEST = 256
"""Ops of a body that still takes a producer's: longer ones gain nothing in memory, and cost their square."""


def fuse_block(block: Block) -> None:
    """Fuse all elementwise ops of a function's body, in program order."""
    for op in list(block.ops):
        if isinstance(op, tensor.DimOp):
            _resolve_size(op)
    for op in list(block.ops):
        if isinstance(op, RESHAPES):
            _cancel_reshapes(op)
    read_back(block)
    for op in list(block.ops):
        consumer: linalg.GenericOp | None = op if isinstance(op, linalg.GenericOp) else None
        while consumer is not None and is_elementwise(consumer):
            consumer = _fuse_one(consumer)
    for op in reversed(list(block.ops)):
        if _is_removable(op) and not any(result.uses for result in op.results):
            Rewriter.erase_op(op)


def _is_removable(op: Operation) -> bool:
    """What fusion leaves without users."""
    return is_elementwise(op) or isinstance(op, RESHAPES) or kind_of(op) in (Kind.FREE, Kind.STORED)


def _resolve_size(op: tensor.DimOp) -> None:
    """The size of an op's result becomes the size that its destination was made with, so that no op
    is kept for its size alone."""
    index = op.index.owner
    if not isinstance(index, arith.ConstantOp) or not isinstance(index.value, IntegerAttr):
        return missed(op, RESOLVE, "the dimension is no constant")
    d, source = index.value.value.data, op.source
    while isinstance(source, OpResult) and isinstance(source.op, linalg.GenericOp | linalg.FillOp):
        producer = source.op
        source = producer.outputs[source.index]
    empty = source.owner
    if not isinstance(empty, tensor.EmptyOp):
        return missed(op, RESOLVE, "the tensor was not made with a size")
    shape = tensor_type(source).get_shape()
    if shape[d] != DYNAMIC:
        return missed(op, RESOLVE, "the dimension is static")
    applied(op, RESOLVE)
    Rewriter.replace_op(op, [], [empty.dynamic_sizes[shape[:d].count(DYNAMIC)]])


def _cancel_reshapes(op: tensor.CollapseShapeOp | tensor.ExpandShapeOp) -> None:
    """A chain of reshapes that ends in the type that it started from changes nothing."""
    source = op.src
    while source.type != op.result.type:
        if not isinstance(source.owner, RESHAPES):
            return missed(op, CANCEL, "no reshape before it starts from its type")
        source = source.owner.src
    applied(op, CANCEL)
    op.result.replace_all_uses_with(source)


# Fusion of one operand


def _fuse_one(consumer: linalg.GenericOp) -> linalg.GenericOp | None:
    """Fuse one operand of `consumer`; returns what replaces it, or None if there is nothing to fuse."""
    for number, operand in enumerate(consumer.inputs):
        if (value := _splat(operand)) is not None:
            applied(consumer, FUSE, "operand {} is a constant of one value", number)
            return _with_constant(consumer, operand, value)
        producer = operand.owner
        if not isinstance(producer, linalg.GenericOp):
            continue
        if (reason := _why_apart(producer, consumer)) is None:
            applied(consumer, FUSE, "operand {} is computed here", number)
            return _fused(producer, consumer)
        missed(consumer, FUSE, "operand {}: {}", number, reason)
    return None


def _splat(value: SSAValue) -> FloatAttr | IntegerAttr | None:
    """The one value that all elements have, if that is known."""
    op = value.owner
    if isinstance(op, linalg.FillOp):
        op = op.inputs[0].owner
        known = op.value if isinstance(op, arith.ConstantOp) else None
        return known if isinstance(known, FloatAttr | IntegerAttr) else None
    if not isinstance(op, arith.ConstantOp) or not isinstance(op.value, DenseIntOrFPElementsAttr):
        return None
    if not op.value.is_splat():
        return None
    number, element = op.value.get_values()[0], tensor_type(value).element_type
    if isinstance(number, float):
        return FloatAttr(number, element)  # pyright: ignore
    return IntegerAttr(int(number), signless(element))  # pyright: ignore


def _why_apart(producer: linalg.GenericOp, consumer: linalg.GenericOp) -> str | None:
    """Why `producer` is not computed where `consumer` reads it; None if that is right and costs nothing."""
    if (reason := _why_not_inlined(producer)) is not None:
        return reason
    result = producer.results[0]
    if result in consumer.outputs:
        return "it is read as a destination too"
    if _is_copy(producer):
        return None
    if sum(1 for op in (producer, consumer) for _ in op.body.block.ops) > LONGEST:
        return f"their bodies together have more than {LONGEST} ops"
    if _narrows_sums(producer):
        return "bytes are stored in place of the sums that they are made of"
    if {use.operation for use in result.uses} != {consumer}:
        return "something else reads it too"
    reads = [m for v, m in zip(consumer.inputs, maps(consumer), strict=False) if v is result]
    if len(set(reads)) != 1 or not _reads_once(reads[0]):
        return "its elements are read more than once"
    return None


def _narrows_sums(producer: linalg.GenericOp) -> bool:
    """Whether it makes bytes of sums in i32: elsewhere those would lie in memory, four times as long."""
    if tensor_type(producer.results[0]).element_type not in (i8, ui8):
        return False
    return any(is_contraction(v.owner) for v in producer.inputs if isinstance(v.owner, Operation))


def _why_not_inlined(producer: linalg.GenericOp) -> str | None:
    """Why a generic's body cannot stand elsewhere; None if it can."""
    if len(producer.results) != 1:
        return "what computes it has several results"
    if not is_elementwise(producer):
        return "what computes it is no elementwise op"
    block, out = producer.body.block, maps(producer)[-1]
    if out != AffineMap.identity(len(producer.iterator_types)):
        return "it is written in another order than it is computed"
    if block.args[-1].uses:
        return "its own destination is read"
    if any(isinstance(op, linalg.IndexOp) for op in block.ops):
        return "it depends on where an element stands"
    return None


def _is_copy(op: linalg.GenericOp) -> bool:
    """Whether the body computes nothing: a broadcast, a transposition, a constant."""
    return all(isinstance(inner, arith.ConstantOp | linalg.YieldOp) for inner in op.body.block.ops)


def _reads_once(amap: AffineMap) -> bool:
    """Whether no two loop points read the same element."""
    loops = {e.position for e in amap.results if isinstance(e, AffineDimExpr)}
    return len(loops) == amap.num_dims


Operand = tuple[SSAValue, AffineMap]


class _Builder:
    """The inputs and body of a generic that replaces another; equal inputs are one argument."""

    def __init__(self, old: linalg.GenericOp) -> None:
        self.old = old
        self.inputs: dict[Operand, SSAValue] = {}
        self.block = Block()

    def argument(self, value: SSAValue, amap: AffineMap) -> SSAValue:
        """The body's argument for an input."""
        key = (value, amap)
        if key not in self.inputs:
            element = tensor_type(value).element_type
            self.inputs[key] = self.block.insert_arg(element, len(self.inputs))
        return self.inputs[key]

    def inline(self, block: Block, scope: dict[SSAValue, SSAValue]) -> list[SSAValue]:
        """Copy a body's ops; returns what it yields."""
        for op in block.ops:
            if isinstance(op, linalg.YieldOp):
                # `cse` shares constants of bodies in the function around them.
                return [scope.get(v, v) for v in op.operands]
            copy = op.clone(scope)
            copy.location = op.location
            self.block.add_op(copy)
            scope.update(zip(op.results, copy.results, strict=True))
        return []

    def take(self, block: Block, scope: dict[SSAValue, SSAValue]) -> list[SSAValue]:
        """Move the ops of a body that nobody needs any more; returns what it yields."""
        for argument in block.args:
            if argument in scope:
                argument.replace_all_uses_with(scope[argument])
        *ops, end = block.ops
        for op in ops:
            op.detach()
        self.block.add_ops(ops)
        return list(end.operands)

    def finish(self, replaced: dict[SSAValue, SSAValue]) -> linalg.GenericOp:
        """Put the new op in the old one's place. `replaced` has values for the old body's inputs."""
        old = self.old
        scope, own = dict(replaced), maps(old)
        outputs = list(zip(old.outputs, own[len(old.inputs) :], strict=True))
        for argument, operand, amap in zip(old.body.block.args, old.inputs, own, strict=False):
            if argument not in scope:
                scope[argument] = self.argument(operand, amap)
        for argument in old.body.block.args[len(old.inputs) :]:
            scope[argument] = self.block.insert_arg(argument.type, len(self.block.args))
        yielded = self.take(old.body.block, scope)
        self.block.add_op(linalg.YieldOp(*yielded))
        operands = [*self.inputs, *outputs]
        new = linalg.GenericOp(
            [v for v, _ in self.inputs],
            list(old.outputs),
            Region(self.block),
            [AffineMapAttr(m) for _, m in operands],
            old.iterator_types,
            [r.type for r in old.results],
        )
        new.location = old.location
        for before, after in zip(old.results, new.results, strict=True):
            after.name_hint = before.name_hint
        Rewriter.replace_op(old, new)
        return new


def _with_constant(
    consumer: linalg.GenericOp, operand: SSAValue, value: FloatAttr | IntegerAttr
) -> linalg.GenericOp:
    """`consumer` with a scalar constant in its body for an input."""
    builder = _Builder(consumer)
    made: list[Operation] = [arith.ConstantOp(value)]
    element = tensor_type(operand).element_type
    if is_unsigned(element):
        # Scalar constants are signless, as in all of `arith`.
        made.append(UnrealizedConversionCastOp.get(made[0].results, [element]))
    for op in made:
        op.location = consumer.location
    builder.block.add_ops(made)
    arguments = zip(consumer.body.block.args, consumer.inputs, strict=False)
    constant = made[-1].results[0]
    return builder.finish({a: constant for a, v in arguments if v is operand})


def _fused(producer: linalg.GenericOp, consumer: linalg.GenericOp) -> linalg.GenericOp:
    """`consumer` with `producer`'s body in place of reads of its result; erases a dead producer."""
    builder = _Builder(consumer)
    replaced: dict[SSAValue, SSAValue] = {}
    known: dict[AffineMap, SSAValue] = {}
    result = producer.results[0]
    put = builder.inline if _is_needed_still(producer, consumer) else builder.take
    reads = list(zip(consumer.body.block.args, consumer.inputs, maps(consumer), strict=False))
    # All arguments first: they stand before the body's ops.
    for _, operand, amap in reads:
        if operand is result:
            _producer_scope(builder, producer, amap)
        else:
            builder.argument(operand, amap)
    for argument, operand, amap in reads:
        if operand is result:
            if amap not in known:
                scope = _producer_scope(builder, producer, amap)
                (known[amap],) = put(producer.body.block, scope)
            replaced[argument] = known[amap]
    new = builder.finish(replaced)
    if not result.uses:
        Rewriter.erase_op(producer)
    return new


def _is_needed_still(producer: linalg.GenericOp, consumer: linalg.GenericOp) -> bool:
    """Whether a producer's body is read once it stands in `consumer`: by another, or there once more."""
    result = producer.results[0]
    reads = {m for v, m in zip(consumer.inputs, maps(consumer), strict=False) if v is result}
    return len(reads) > 1 or any(use.operation is not consumer for use in result.uses)


def _producer_scope(
    builder: _Builder, producer: linalg.GenericOp, amap: AffineMap
) -> dict[SSAValue, SSAValue]:
    """Arguments for the producer's inputs, read where `amap` reads its result."""
    return {
        argument: builder.argument(operand, _composed(own, amap))
        for argument, operand, own in zip(
            producer.body.block.args, producer.inputs, maps(producer), strict=False
        )
    }


def _composed(inner: AffineMap, outer: AffineMap) -> AffineMap:
    results = (e.replace_dims_and_symbols(outer.results, []) for e in inner.results)
    return AffineMap(outer.num_dims, 0, tuple(results))


@dataclass(frozen=True)
class FuseElementwise(ModulePass):
    """Compute an elementwise op where its one reader needs it.

    A producer is fused if its reader is elementwise too and alone, and reads each element once; a
    broadcast, a transposition or a constant is fused into all of its readers. Neither goes into a
    contraction or reduction, nor does one of these into what follows: `form-roperators` decides
    about that. What makes bytes of the sums of an integer product stays by itself, so that bytes are
    what is stored. What is inserted into an array that is needed as a whole is read from there by all
    others, so that the insertion is its one reader (`read_back.py`). Reshapes that cancel each other go. No
    value changes.

    ```mlir
    %0 = linalg.generic {maps = [(i, j) -> (j), (i, j) -> (i, j)], "parallel", "parallel"}
        ins(%b) outs(%e) { ^(%p, %o): linalg.yield %p }
    %1 = linalg.generic {maps = [(i, j) -> (i, j), (i, j) -> (i, j), (i, j) -> (i, j)], ...}
        ins(%x, %0) outs(%e) { ^(%p, %q, %o): %s = arith.addf %p, %q  linalg.yield %s }
    %2 = linalg.generic {...} ins(%1) outs(%e) { ^(%p, %o): %s = math.exp %p  linalg.yield %s }
    ```
    becomes
    ```mlir
    %2 = linalg.generic {maps = [(i, j) -> (i, j), (i, j) -> (j), (i, j) -> (i, j)], ...}
        ins(%x, %b) outs(%e) {
      ^(%p, %q, %o): %s = arith.addf %p, %q  %t = math.exp %s  linalg.yield %t }
    ```
    """

    name = "fuse-elementwise"
    requires: ClassVar[tuple[str, ...]] = ("tensor",)
    produces: ClassVar[str] = "tensor"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.walk():
            if is_straight(function):
                fuse_block(function.body.block)
