"""The tensor level on NumPy arrays: `linalg.generic`, `tensor` and `te` ops, in program order.

Sums run in the order of the loops, so that a result has the bits of the plain loop nest. What
`tensor.empty` leaves unspecified is NaN, or a value nobody wants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from irkit.dialects.constants import constant_array
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.semantics import SEMANTICS, evaluate
from irkit.dialects.inference import InferredOp
from irkit.dialects.types import DYNAMIC, ints, numpy_dtype, tensor_type
from irkit.errors import InvalidInputError, InvalidModelError, UnsupportedError
from irkit.interp.generic import evaluate_generic
from irkit.interp.scalars import evaluate_scalar, scalar_constant
from irkit.interp.te import RULES as TE_RULES
from irkit.interp.te import evaluate_te
from irkit.weights import Array, WeightStore

Rule = Callable[[Any, list[Array]], Array]


def run_tensor(
    module: ModuleOp, weights: WeightStore, inputs: Sequence[Array], function: str = "main"
) -> list[Array]:
    """The results of `function` of `module` on `inputs`, one array per argument."""
    for op in module.body.block.ops:
        if isinstance(op, func.FuncOp) and op.sym_name.data == function:
            return run_function(op, weights, inputs)
    raise InvalidModelError(f"the module has no function '@{function}'")


def run_function(
    function: func.FuncOp, weights: WeightStore, inputs: Sequence[Array]
) -> list[Array]:
    """The results of `function` on `inputs`. Raises InvalidInputError for a wrong dtype or shape."""
    arguments = function.body.block.args
    if len(inputs) != len(arguments):
        raise InvalidInputError(f"expected {len(arguments)} inputs, got {len(inputs)}")
    for argument, array in zip(arguments, inputs, strict=True):
        t = tensor_type(argument)
        fits = len(t.get_shape()) == array.ndim and all(
            s in (DYNAMIC, n) for s, n in zip(t.get_shape(), array.shape, strict=True)
        )
        if not fits or array.dtype != numpy_dtype(t.element_type):
            raise InvalidInputError(
                f"input #{argument.index}: expected {t}, got {array.dtype}{list(array.shape)}"
            )
    return evaluate_block(function.body.block, dict(zip(arguments, inputs, strict=True)), weights)


def evaluate_block(
    block: Block, env: Mapping[SSAValue, Array], weights: WeightStore
) -> list[Array]:
    """Values of the operands of `block`'s terminator; `env` has what the block reads from outside,
    its arguments included. Raises UnsupportedError for an op of another level.
    """
    scope = dict(env)
    for op in block.ops:
        if op.has_trait(IsTerminator):
            return [scope[v] for v in op.operands]
        results = evaluate_op(op, [scope[v] for v in op.operands], weights)
        scope.update(zip(op.results, results, strict=True))
    raise InvalidModelError("a block without terminator")


def evaluate_op(op: Operation, operands: list[Array], weights: WeightStore) -> list[Array]:
    """The results of one op on arrays of its operands."""
    if isinstance(op, linalg.GenericOp):
        return evaluate_generic(op, operands)
    if type(op) in TE_RULES:
        assert isinstance(op, InferredOp)
        return evaluate_te(op, operands)
    if isinstance(op, GraphOp) and type(op) in SEMANTICS:
        return evaluate(op, operands)
    if isinstance(op, arith.ConstantOp) and isinstance(op.result.type, TensorType):
        return [_constant(op, weights)]
    rule = _RULES.get(type(op))
    if rule is not None:
        return [rule(op, operands)]
    if len(op.results) != 1:
        raise UnsupportedError(f"the tensor interpreter does not know '{op.name}'")
    return [evaluate_scalar(op, operands)]


def _constant(op: arith.ConstantOp, weights: WeightStore) -> Array:
    array = constant_array(op.result, weights)
    if array is None:
        raise InvalidModelError(f"the weights hold no bytes for {op.value}")
    return array


def _poison(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    if dtype.kind == "f":
        return np.full(shape, np.nan, dtype)
    return np.full(shape, True if dtype.kind == "b" else np.iinfo(dtype).max - 85, dtype)


def _completed(static: Sequence[int], dynamic: list[Array]) -> list[int]:
    """`static` with its DYNAMIC entries taken from `dynamic`, in order."""
    rest = iter(dynamic)
    return [int(next(rest)) if s == DYNAMIC else s for s in static]


def _empty(op: tensor.EmptyOp, operands: list[Array]) -> Array:
    t = tensor_type(op.tensor)
    return _poison(_completed(t.get_shape(), operands), numpy_dtype(t.element_type))


def _splat(op: tensor.SplatOp, operands: list[Array]) -> Array:
    t = tensor_type(op.result)
    value, *sizes = operands
    return np.full(_completed(t.get_shape(), sizes), value, numpy_dtype(t.element_type))


def _fill(op: linalg.FillOp, operands: list[Array]) -> Array:
    value, out = operands
    return np.full(out.shape, value, out.dtype)


def _dim(op: tensor.DimOp, operands: list[Array]) -> Array:
    source, number = operands
    return np.array(source.shape[int(number)])


def _collapse(op: tensor.CollapseShapeOp, operands: list[Array]) -> Array:
    (source,) = operands
    groups = [[int(d.value.data) for d in g] for g in op.reassociation]
    return source.reshape([int(np.prod([source.shape[d] for d in g])) for g in groups])


def _expand(op: tensor.ExpandShapeOp, operands: list[Array]) -> Array:
    source, *sizes = operands
    return source.reshape(_completed(ints(op.static_output_shape), sizes))


def _pad(op: tensor.PadOp, operands: list[Array]) -> Array:
    source, rest = operands[0], operands[1:]
    low, high = ints(op.static_low), ints(op.static_high)
    split = low.count(DYNAMIC)
    widths = zip(_completed(low, rest[:split]), _completed(high, rest[split:]), strict=True)
    block = op.region.block
    if any(a.uses for a in block.args):
        raise UnsupportedError(f"'{op.name}' with padding that depends on the position")
    (value,) = evaluate_block(block, _shared_constants(block), WeightStore())
    return np.pad(source, list(widths), constant_values=value)


def _shared_constants(block: Block) -> dict[SSAValue, Array]:
    """Scalar constants of the function around that a region's ops use (`cse` shares those)."""
    owners = {v: v.owner for op in block.ops for v in op.operands}
    return {
        value: scalar_constant(owner)
        for value, owner in owners.items()
        if isinstance(owner, arith.ConstantOp) and owner.parent is not block
    }


def _points(
    op: tensor.ExtractSliceOp | tensor.InsertSliceOp, dynamic: list[Array]
) -> tuple[tuple[Array, ...], list[int]]:
    """Where a slice lies, as indices that NumPy combines, and its size in each dimension."""
    offsets, sizes, steps = (
        ints(a) for a in (op.static_offsets, op.static_sizes, op.static_strides)
    )
    first, second = offsets.count(DYNAMIC), offsets.count(DYNAMIC) + sizes.count(DYNAMIC)
    starts = _completed(offsets, dynamic[:first])
    counts = _completed(sizes, dynamic[first:second])
    strides = _completed(steps, dynamic[second:])
    axes = [o + s * np.arange(n) for o, n, s in zip(starts, counts, strides, strict=True)]
    return np.ix_(*axes), counts


def _extract_slice(op: tensor.ExtractSliceOp, operands: list[Array]) -> Array:
    source, *dynamic = operands
    points, sizes = _points(op, dynamic)
    shape = tensor_type(op.result).get_shape()
    # A result of lower rank leaves out dimensions of size 1; the batch leads, if there is one.
    if len(shape) != len(sizes):
        sizes = _completed(shape, [np.array(sizes[0])])
    return source[points].reshape(sizes)


def _insert_slice(op: tensor.InsertSliceOp, operands: list[Array]) -> Array:
    source, dest, *dynamic = operands
    points, sizes = _points(op, dynamic)
    result = dest.copy()
    result[points] = source.reshape(sizes)
    return result


def _concat(op: tensor.ConcatOp, operands: list[Array]) -> Array:
    return np.concatenate(operands, axis=op.dim.value.data)


def _cast(op: tensor.CastOp, operands: list[Array]) -> Array:
    return operands[0]


_RULES: dict[type[Operation], Rule] = {
    linalg.FillOp: _fill,
    tensor.CastOp: _cast,
    tensor.CollapseShapeOp: _collapse,
    tensor.ConcatOp: _concat,
    tensor.DimOp: _dim,
    tensor.EmptyOp: _empty,
    tensor.ExpandShapeOp: _expand,
    tensor.ExtractSliceOp: _extract_slice,
    tensor.InsertSliceOp: _insert_slice,
    tensor.PadOp: _pad,
    tensor.SplatOp: _splat,
}
