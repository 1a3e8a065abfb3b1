"""The models of all tensor-level ops, by the op's class."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import arith, tensor
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument, Operation, SSAValue

from irkit.dialects import te
from irkit.dialects.tensor_ops.argmax import Argmax
from irkit.dialects.tensor_ops.attention import Attention
from irkit.dialects.tensor_ops.attention_gradient import KeyGradient, QueryGradient
from irkit.dialects.tensor_ops.cast import Cast
from irkit.dialects.tensor_ops.concat import Concat
from irkit.dialects.tensor_ops.constant import Constant
from irkit.dialects.tensor_ops.csr import CsrDense, CsrMatmul, CsrReduce
from irkit.dialects.tensor_ops.empty import Dim, Empty
from irkit.dialects.tensor_ops.fill import Fill, Splat
from irkit.dialects.tensor_ops.forest import Forest, HeapForest, PackedForest, PerfectForest
from irkit.dialects.tensor_ops.gather import Gather, GatherElements
from irkit.dialects.tensor_ops.gemvt import Gemvt
from irkit.dialects.tensor_ops.generic import Generic
from irkit.dialects.tensor_ops.interface import Kind, TensorOpModel
from irkit.dialects.tensor_ops.layer_norm import LayerNorm
from irkit.dialects.tensor_ops.nibbles import NibbleMatmul
from irkit.dialects.tensor_ops.pack import Pack, Prepacked
from irkit.dialects.tensor_ops.pad import Pad
from irkit.dialects.tensor_ops.reshape import Reshape
from irkit.dialects.tensor_ops.rowwise import Rowwise
from irkit.dialects.tensor_ops.scatter import ScatterAdd
from irkit.dialects.tensor_ops.slices import ExtractSlice, InsertSlice
from irkit.dialects.tensor_ops.softmax import Softmax
from irkit.dialects.tensor_ops.top_k import TopK

_MODELS: dict[type[Operation], TensorOpModel[Any]] = {
    arith.ConstantOp: Constant(),
    linalg.FillOp: Fill(),
    linalg.GenericOp: Generic(),
    te.ArgmaxOp: Argmax(),
    te.AttentionKeyGradientOp: KeyGradient(),
    te.AttentionOp: Attention(),
    te.AttentionQueryGradientOp: QueryGradient(),
    te.CsrDenseOp: CsrDense(),
    te.CsrMatmulOp: CsrMatmul(),
    te.CsrReduceOp: CsrReduce(),
    te.ForestOp: Forest(),
    te.GatherElementsOp: GatherElements(),
    te.GatherOp: Gather(),
    te.GemvtOp: Gemvt(),
    te.NibbleMatmulOp: NibbleMatmul(),
    te.LayerNormOp: LayerNorm(),
    te.PackOp: Pack(),
    te.HeapForestOp: HeapForest(),
    te.PackedForestOp: PackedForest(),
    te.PerfectForestOp: PerfectForest(),
    te.PrepackedOp: Prepacked(),
    te.RowwiseOp: Rowwise(),
    te.ScatterAddOp: ScatterAdd(),
    te.SoftmaxOp: Softmax(),
    te.TopKOp: TopK(),
    tensor.CastOp: Cast(),
    tensor.CollapseShapeOp: Reshape(),
    tensor.ConcatOp: Concat(),
    tensor.DimOp: Dim(),
    tensor.EmptyOp: Empty(),
    tensor.ExpandShapeOp: Reshape(),
    tensor.ExtractSliceOp: ExtractSlice(),
    tensor.InsertSliceOp: InsertSlice(),
    tensor.PadOp: Pad(),
    tensor.SplatOp: Splat(),
}


def register(op: type[Operation], model: TensorOpModel[Any]) -> None:
    """Make `model` that of an op; one that it had goes."""
    _MODELS[op] = model


def is_partial(model: TensorOpModel[Any]) -> bool:
    """Whether an op of this model could stand nowhere: it has no elements, and is no root."""
    prints = type(model).element is not TensorOpModel[Any].element
    return not prints and not model.family and type(model).root is TensorOpModel[Any].root


def model_of(op: Operation) -> TensorOpModel[Any] | None:
    """The model of an op; None if it is none of the tensor level."""
    return _MODELS.get(type(op))


def kind_of(op: Operation) -> Kind | None:
    """How an op is computed; None if it is none of the tensor level."""
    model = _MODELS.get(type(op))
    return model.kind(op) if model is not None else None


def in_memory(value: SSAValue) -> BlockArgument | None:
    """The operand whose elements, index by index, `value` has; None if it is computed."""
    while isinstance(value.owner, Operation):
        model = model_of(value.owner)
        if model is None or not model.names_operand:
            return None
        value = value.owner.operands[0]
    return value if isinstance(value, BlockArgument) else None


def through_reshapes(value: SSAValue) -> SSAValue:
    """What has the bytes of `value` and is no reshape of another."""
    while isinstance(value.owner, Operation):
        model = model_of(value.owner)
        source = model.same_bytes(value.owner) if model is not None else None
        if source is None:
            return value
        value = source
    return value
