"""`sink-reshapes`: elementwise work before a reshape that joins dimensions, not behind it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import tensor
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType, IteratorTypeAttr
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from irkit.dialects.linalg_generic import is_elementwise, maps
from irkit.dialects.reassociation import groups_of
from irkit.dialects.tensor_ops.interface import Kind
from irkit.dialects.tensor_ops.registry import kind_of
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.passes.gpu import gpu_of
from irkit.rewriting import Rule, rewrite


@dataclass
class SinkReshape(Rule):
    """elementwise(collapse_shape(heavy)) → collapse_shape(elementwise(heavy)); or, if `light`, of what an
    elementwise op gives."""

    light: bool = False

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: linalg.GenericOp, rewriter: PatternRewriter, /):
        wanted = _is_light if self.light else is_epilogue
        reshape = _reshape_of(op, wanted)
        if reshape is None:
            what = "an elementwise op" if self.light else "a heavy op"
            return self.no_match(op, "no operand is what {} gives, with dimensions joined", what)
        if (reason := _why_not(op, reshape)) is not None:
            return self.no_match(op, reason)
        _sink(op, reshape, rewriter)


def _reshape_of(
    op: linalg.GenericOp, wanted: Callable[[SSAValue], bool]
) -> tensor.CollapseShapeOp | None:
    """The reshape before `op` of what such an op gives: only there is something to be won."""
    joined = (v.owner for v in op.inputs if isinstance(v.owner, tensor.CollapseShapeOp))
    return next((reshape for reshape in joined if wanted(reshape.src)), None)


def _is_light(value: SSAValue) -> bool:
    """Whether a value is what an elementwise op gives, for one reader."""
    op = value.owner
    return isinstance(op, linalg.GenericOp) and is_elementwise(op) and len(list(value.uses)) == 1


def is_epilogue(value: SSAValue) -> bool:
    """Whether a value is what a heavy op gives, with elementwise work behind it or none."""
    pending, seen = [value], {value}
    while pending:
        op = pending.pop().owner
        if not isinstance(op, linalg.GenericOp):
            continue
        if kind_of(op) is Kind.HEAVY:
            return True
        further = set(op.inputs) - seen if is_elementwise(op) else set[SSAValue]()
        seen |= further
        pending += further
    return False


def _why_not(op: linalg.GenericOp, reshape: tensor.CollapseShapeOp) -> str | None:
    if not is_elementwise(op) or len(op.results) != 1:
        return "it is not elementwise, or has several results"
    if any(isinstance(inner, linalg.IndexOp) for inner in op.body.walk()):
        return "its body reads the index"
    if len(list(reshape.result.uses)) != 1:
        return "something else reads the reshaped value"
    if DYNAMIC in tensor_type(reshape.src).get_shape()[1:]:
        return "an open dimension behind the first"
    written = [m for v, m in zip(op.operands, maps(op), strict=True) if v is reshape.result]
    identity = AffineMap.identity(tensor_type(op.results[0]).get_num_dims())
    if {*written, maps(op)[-1]} != {identity}:
        return "it reads the reshaped value in another order"
    if any(isinstance(u.owner, linalg.GenericOp) and u is not reshape.result for u in op.outputs):
        return "its destination is computed"
    return None


def _sink(op: linalg.GenericOp, reshape: tensor.CollapseShapeOp, rewriter: PatternRewriter) -> None:
    shape = tensor_type(reshape.src).get_shape()
    groups = groups_of(reshape)
    loops = [_joined(group, shape) for group in groups]
    own = AffineMap.identity(len(shape))
    made = [
        own
        if v is reshape.result
        else AffineMap(
            len(shape), 0, tuple(e.replace_dims_and_symbols(loops, []) for e in m.results)
        )
        for v, m in zip(op.inputs, maps(op), strict=False)
    ]
    inputs = [reshape.src if v is reshape.result else v for v in op.inputs]
    result = TensorType(tensor_type(op.results[0]).element_type, shape)
    empty = tensor.EmptyOp(_dynamic_sizes(op), result)
    moved = linalg.GenericOp(
        inputs,
        [empty.tensor],
        op.body.clone(),
        ArrayAttr(AffineMapAttr(m) for m in [*made, own]),
        ArrayAttr([IteratorTypeAttr(IteratorType.PARALLEL)] * len(shape)),
        [result],
    )
    joined = tensor.CollapseShapeOp.create(
        operands=[moved.results[0]],
        result_types=[op.results[0].type],
        properties=dict(reshape.properties),
    )
    rewriter.replace(op, [empty, moved, joined])


def _joined(group: Sequence[int], shape: Sequence[int]) -> AffineExpr:
    """The loop over joined dimensions by the loops over each: row-major, those of size 1 left out."""
    total: AffineExpr | None = None
    kept = [d for d in group if shape[d] != 1]
    for position, d in enumerate(kept):
        size = math.prod(shape[e] for e in kept[position + 1 :])
        term: AffineExpr = AffineDimExpr(d) if size == 1 else AffineDimExpr(d) * size
        total = term if total is None else total + term
    if total is not None:
        return total
    return AffineDimExpr(group[0]) if group else AffineConstantExpr(0)


def _dynamic_sizes(op: linalg.GenericOp) -> list[SSAValue]:
    """Sizes of the destination that are not known before the program runs."""
    empty = op.outputs[0].owner
    return list(empty.dynamic_sizes) if isinstance(empty, tensor.EmptyOp) else []


@dataclass(frozen=True)
class SinkReshapes(ModulePass):
    """Move elementwise ops before the reshape of what a heavy op gives, so that they can be its epilogue.

    A grouped convolution has loops over groups and over the filters of a group, which a reshape joins: bias,
    activation and residual of such a convolution then stand between it and the reshape, over the same loops.
    No value changes.

    ```mlir
    %1 = linalg.generic {...} ins(%x, %w) outs(%0) {...} -> tensor<1x2x3x8x8xf32>
    %2 = tensor.collapse_shape %1 [[0], [1, 2], [3], [4]] : tensor<1x2x3x8x8xf32> into tensor<1x6x8x8xf32>
    %3 = linalg.generic {maps = [(i, j, k, l) -> (i, j, k, l), (i, j, k, l) -> (j), ...]} ins(%2, %r)
    ```
    becomes
    ```mlir
    %1 = linalg.generic {...} ins(%x, %w) outs(%0) {...} -> tensor<1x2x3x8x8xf32>
    %2 = linalg.generic {maps = [(i, g, m, k, l) -> (i, g, m, k, l), (i, g, m, k, l) -> (g * 3 + m), ...]}
        ins(%1, %r)
    %3 = tensor.collapse_shape %2 [[0], [1, 2], [3], [4]] : tensor<1x2x3x8x8xf32> into tensor<1x6x8x8xf32>
    ```
    """

    name = "sink-reshapes"
    requires: ClassVar[tuple[str, ...]] = ("tensor",)
    produces: ClassVar[str] = "tensor"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, [SinkReshape()])


@dataclass(frozen=True)
class SinkLightReshapes(ModulePass):
    """Move elementwise ops before the reshape of what an elementwise op gives for no other reader:
    what is computed for all elements of one shape is then fused with what is for those of the other.

    The gradient of a pool is such a pair: it is computed by windows, and multiplied by that of an activation
    by images. For a GPU alone: on a CPU, inner loops would be as short as windows. No value changes.

    ```mlir
    %1 = linalg.generic {...} ins(%w, %g) outs(%0) {...} -> tensor<8x7x2x7x2xf32>
    %2 = tensor.collapse_shape %1 [[0], [1, 2], [3, 4]] : tensor<8x7x2x7x2xf32> into tensor<8x14x14xf32>
    %3 = linalg.generic {maps = [(i, j, k) -> (i, j, k), ...]} ins(%2, %x)
    ```
    becomes
    ```mlir
    %1 = linalg.generic {...} ins(%w, %g) outs(%0) {...} -> tensor<8x7x2x7x2xf32>
    %2 = linalg.generic {maps = [..., (i, y, p, x, q) -> (i, y * 2 + p, x * 2 + q)]} ins(%1, %x)
    %3 = tensor.collapse_shape %2 [[0], [1, 2], [3, 4]] : tensor<8x7x2x7x2xf32> into tensor<8x14x14xf32>
    ```
    """

    name = "sink-light-reshapes"
    requires: ClassVar[tuple[str, ...]] = ("tensor",)
    produces: ClassVar[str] = "tensor"
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if gpu_of(self.device) is not None:
            rewrite(op, [SinkReshape(light=True)])
