"""`sink-expansions`: elementwise work before a reshape that splits dimensions, not behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType, IteratorTypeAttr
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from irkit.dialects.linalg_generic import is_elementwise, maps
from irkit.dialects.reassociation import groups_of
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.passes.tensor.joined_reads import joined_operands, joined_read, split_again
from irkit.passes.tensor.sink_reshapes import is_epilogue
from irkit.rewriting import Rule, rewrite


class SinkExpansion(Rule):
    """elementwise(expand_shape(heavy)) → expand_shape(elementwise(heavy))."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: linalg.GenericOp, rewriter: PatternRewriter, /):
        expansion = next((v.owner for v in op.inputs if _is_expanded_product(v)), None)
        if not isinstance(expansion, tensor.ExpandShapeOp):
            return self.no_match(op, "no operand is what a heavy op gives, with dimensions split")
        if (reason := _why_not(op, expansion)) is not None:
            return self.no_match(op, reason)
        _sink(op, expansion, rewriter)


def _is_expanded_product(value: SSAValue) -> bool:
    """Whether a value is what a heavy op gives, split, for one reader."""
    expansion = value.owner
    if not isinstance(expansion, tensor.ExpandShapeOp) or len(list(value.uses)) != 1:
        return False
    return is_epilogue(expansion.src)


def _why_not(op: linalg.GenericOp, expansion: tensor.ExpandShapeOp) -> str | None:
    if not is_elementwise(op):
        return "it is not elementwise"
    if any(isinstance(inner, linalg.IndexOp) for inner in op.body.walk()):
        return "its body reads the index"
    groups = groups_of(expansion)
    shape = tensor_type(expansion.result).get_shape()
    if not groups:
        return "a single element is given dimensions"
    if any(shape[d] == DYNAMIC for group in groups if len(group) > 1 for d in group):
        return "a dimension that is split is open"
    if any(isinstance(u.owner, linalg.GenericOp) for u in op.outputs):
        return "its destination is computed"
    if DYNAMIC in shape and not all(isinstance(u.owner, tensor.EmptyOp) for u in op.outputs):
        return "nothing says the extents of its destination"
    identity = AffineMap.identity(len(shape))
    written = maps(op)[len(op.inputs) :]
    own = [m for v, m in zip(op.inputs, maps(op), strict=False) if v is expansion.result]
    if {*own, *written} != {identity}:
        return "it reads the reshaped value, or writes, in another order"
    if any(
        joined_read(v, m, groups, shape) is None for v, m in zip(op.operands, maps(op), strict=True)
    ):
        return "an operand is read by a part of a split dimension"
    return None


def _sink(op: linalg.GenericOp, expansion: tensor.ExpandShapeOp, rewriter: PatternRewriter) -> None:
    made: list[Operation] = []
    inputs, reads = joined_operands(op.inputs, maps(op)[: len(op.inputs)], expansion, made)
    shape = tensor_type(expansion.src).get_shape()
    results = [TensorType(tensor_type(r).element_type, shape) for r in op.results]
    empties = [
        tensor.EmptyOp(_dynamic_sizes(out), t) for out, t in zip(op.outputs, results, strict=True)
    ]
    own = AffineMap.identity(len(shape))
    moved = linalg.GenericOp(
        inputs,
        [empty.tensor for empty in empties],
        op.body.clone(),
        ArrayAttr(AffineMapAttr(m) for m in [*reads, *(own for _ in results)]),
        ArrayAttr([IteratorTypeAttr(IteratorType.PARALLEL)] * len(shape)),
        results,
    )
    split = [split_again(new, expansion) for new in moved.results]
    rewriter.replace(op, [*made, *empties, moved, *split], [s.result for s in split])


def _dynamic_sizes(destination: SSAValue) -> list[SSAValue]:
    """Sizes of a destination that are not known before the program runs: none is of a split dimension."""
    empty = destination.owner
    return list(empty.dynamic_sizes) if isinstance(empty, tensor.EmptyOp) else []


@dataclass(frozen=True)
class SinkExpansions(ModulePass):
    """Move elementwise ops before the reshape that splits dimensions of what a heavy op gives, so that they
    can be its epilogue.

    A product over rows of a batch has loops over all of its rows, which a reshape splits into sequences and
    places: what is then computed of each element, as the gradient of an activation, reads other values of
    the split shape. Those are read under the joined one, which moves no element. Operands that are read by
    a part of a split dimension (an embedding of places) keep the op where it is. No value changes.

    ```mlir
    %1 = linalg.generic {...} ins(%x, %w) outs(%0) {...} -> tensor<512x64xf32>
    %2 = tensor.expand_shape %1 [[0, 1], [2]] : tensor<512x64xf32> into tensor<8x64x64xf32>
    %3 = linalg.generic {maps = [(b, t, c) -> (b, t, c), (b, t, c) -> (b, t, c), ...]} ins(%2, %y)
    ```
    becomes
    ```mlir
    %1 = linalg.generic {...} ins(%x, %w) outs(%0) {...} -> tensor<512x64xf32>
    %2 = tensor.collapse_shape %y [[0, 1], [2]] : tensor<8x64x64xf32> into tensor<512x64xf32>
    %3 = linalg.generic {maps = [(i, c) -> (i, c), (i, c) -> (i, c), ...]} ins(%1, %2)
    %4 = tensor.expand_shape %3 [[0, 1], [2]] : tensor<512x64xf32> into tensor<8x64x64xf32>
    ```
    """

    name = "sink-expansions"
    requires: ClassVar[tuple[str, ...]] = ("tensor",)
    produces: ClassVar[str] = "tensor"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, [SinkExpansion()])
