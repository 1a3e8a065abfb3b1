"""What a model means in strict arithmetic: tensors of 16-bit floats in float32, no precision asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import FunctionType, ModuleOp, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from irkit.bfloat16 import is_half as is_half_dtype
from irkit.dialects.constants import constant, constant_array
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.precision import PRECISION
from irkit.dialects.state import STATE
from irkit.dialects.types import is_half, tensor, tensor_type
from irkit.errors import InvalidModelError, UnsupportedError
from irkit.weights import WeightStore

if TYPE_CHECKING:
    from irkit.frontends.module import ImportedModel


def without_state(module: ModuleOp) -> None:
    """State is an argument and a result of the functions of `module` again."""
    for function in module.ops:
        function.attributes.pop(STATE, None)


def strict(imported: ImportedModel) -> ImportedModel:
    """A copy of a graph-level model that computes in float32 what it computes in 16-bit floats.

    Op by op the same, in the same order; what asks for a precision asks no more. Raises UnsupportedError for
    an op of another level, InvalidModelError where a constant's bytes are missing.
    """
    from irkit.frontends.module import ImportedModel

    weights = imported.weights
    module = ModuleOp([], dict(imported.module.attributes))
    for op in imported.module.ops:
        if not isinstance(op, FuncOp) or not op.body.blocks:
            raise UnsupportedError(f"accuracy: '{op.name}' beside the functions of the model")
        module.body.block.add_op(_strict_function(op, weights))
    return ImportedModel(module, weights, imported.info)


def _strict_function(function: FuncOp, weights: WeightStore) -> FuncOp:
    block = Block(arg_types=[_widened(a.type) for a in function.body.block.args])
    values: dict[SSAValue, SSAValue] = dict(zip(function.body.block.args, block.args, strict=True))
    for op in function.body.block.ops:
        made = _strict_op(op, values, weights)
        made.location = op.location
        block.add_op(made)
        for old, new in zip(op.results, made.results, strict=True):
            new.name_hint = old.name_hint
            values[old] = new
    last = block.last_op
    assert last is not None
    types = FunctionType.from_lists([a.type for a in block.args], [v.type for v in last.operands])
    found = FuncOp(function.sym_name.data, types, Region(block))
    kept = {k: v for k, v in function.attributes.items() if k != PRECISION}
    found.attributes.update(kept)
    return found


def _strict_op(op: Operation, values: dict[SSAValue, SSAValue], weights: WeightStore) -> Operation:
    operands = [values[v] for v in op.operands]
    if isinstance(op, GraphOp):
        props = {k: f32 if is_half(v) else v for k, v in op.properties.items()}
        made = type(op).make(operands, props)
        made.attributes.update({k: v for k, v in op.attributes.items() if k != PRECISION})
        return made
    if isinstance(op, ReturnOp):
        return ReturnOp(*operands)
    if not isinstance(op, ConstantOp):
        raise UnsupportedError(f"accuracy: '{op.name}' is no op of the graph level")
    array = constant_array(op.result, weights)
    if array is None:
        raise InvalidModelError(f"the weights hold no bytes for {op.value}")
    if not is_half_dtype(array.dtype):
        return op.clone()
    return constant(array.astype(np.float32), weights)


def _widened(t: Attribute) -> Attribute:
    found = tensor_type(Block(arg_types=[t]).args[0])
    return tensor(f32, found.get_shape()) if is_half(found.element_type) else t
