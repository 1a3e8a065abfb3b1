"""Slices and loops in the form that the passes behind know: what need not move does not."""

from __future__ import annotations

from typing import cast

import numpy as np
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IndexType, TensorType, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.graph import AddOp, CastOp, ReshapeOp, SliceOp
from irkit.dialects.loop_places import affine, moves, offsets_of, trips_of
from irkit.dialects.types import Tensor, int_array, ints, tensor_of, tensor_type
from irkit.errors import UnsupportedError
from irkit.passes.graph.loops.unrolling import is_short, unroll
from irkit.weights import Array


def normalise_slices(function: FuncOp) -> None:
    """Bring slices and loops of a function to their form, in place.

    A loop that is short is unrolled. A slice at a static place becomes `graph.slice`, an insertion one of a
    slice of the tensor's rank. A loop's variable that is read as a number is carried as one. Raises
    UnsupportedError for bounds or places that are not known.
    """
    for op in reversed([o for o in function.body.walk() if isinstance(o, scf.ForOp)]):
        if is_short(op):
            unroll(op)
    for op in list(function.body.walk()):
        if isinstance(op, scf.ForOp):
            _loop(op)
    for op in list(function.body.walk()):
        if isinstance(op, tensor.FromElementsOp | tensor.SplatOp):
            _number(op)
    for op in list(function.body.walk()):
        if isinstance(op, tensor.ExtractSliceOp):
            _extract(op)
        elif isinstance(op, tensor.InsertSliceOp):
            _insert(op)


def _loop(op: scf.ForOp) -> None:
    casts = [
        use.operation
        for use in op.body.block.args[0].uses
        if isinstance(use.operation, arith.IndexCastOp)
    ]
    numbers = [
        use.operation
        for cast_op in casts
        for use in cast_op.result.uses
        if use.operation.name in ("tensor.from_elements", "tensor.splat")
    ]
    if numbers:
        _carry_variable(op, numbers)


def _carry_variable(op: scf.ForOp, numbers: list[Operation]) -> None:
    """Have a loop carry its variable as a tensor of no dimensions, in place of `numbers` made of it."""
    trips, body = trips_of(op), op.body.block
    first = arith.ConstantOp(_scalar(trips.first))
    body.insert_arg(first.result.type, len(body.args))
    variable = body.args[-1]
    variable.name_hint = "n"
    terminator = body.last_op
    assert terminator is not None
    step = arith.ConstantOp(_scalar(trips.step))
    following = AddOp.make([variable, step.result], {})
    Rewriter.insert_op([step, following], InsertPoint.before(terminator))
    Rewriter.replace_op(terminator, scf.YieldOp(*terminator.operands, following.results[0]), [])
    for number in numbers:
        made: list[Operation] = []
        value = _as_type(variable, tensor_type(number.results[0]), made)
        Rewriter.insert_op(made, InsertPoint.before(number))
        number.results[0].replace_all_uses_with(value)
        Rewriter.erase_op(number)
    region = op.detach_region(op.body)
    wider = scf.ForOp(op.lb, op.ub, op.step, [*op.iter_args, first.result], region)
    Rewriter.insert_op(first, InsertPoint.before(op))
    Rewriter.replace_op(op, wider, list(wider.results[:-1]))


def _number(op: tensor.FromElementsOp | tensor.SplatOp) -> None:
    """A number that hangs on no loop is a constant."""
    t = tensor_type(op.results[0])
    found = [affine(v) for v in op.operands]
    if any(place.terms for place in found):
        raise UnsupportedError(f"'{op.name}' of what is not a loop's variable alone")
    array = np.resize([p.constant for p in found], t.get_shape()).astype(np.int64)
    made: list[Operation] = [arith.ConstantOp(_constant(array))]
    if t.element_type != i64:
        made.append(CastOp.make([made[0].results[0]], {"to": t.element_type}))
    Rewriter.replace_op(op, made)


def _as_type(value: SSAValue, t: Tensor, made: list[Operation]) -> SSAValue:
    """The number as a tensor of one element of type `t`."""
    if t.element_type != i64:
        made.append(CastOp.make([value], {"to": t.element_type}))
        value = made[-1].results[0]
    if t.get_shape():
        made.append(ReshapeOp.make([value], {"shape": int_array(t.get_shape())}))
        value = made[-1].results[0]
    return value


def _scalar(number: int) -> DenseIntOrFPElementsAttr:
    return _constant(np.array(number))


def _constant(array: Array) -> DenseIntOrFPElementsAttr:
    of_type = cast("TensorType[IndexType]", tensor_of(array))
    return DenseIntOrFPElementsAttr.from_list(of_type, array.ravel().tolist())


def _extract(op: tensor.ExtractSliceOp) -> None:
    places = offsets_of(op)
    if any(p.terms for p in places) or op.sizes or op.strides:
        return
    whole = SliceOp.make(
        [op.source],
        {
            "offsets": int_array([p.constant for p in places]),
            "sizes": op.static_sizes,
            "strides": op.static_strides,
        },
    )
    new: list[Operation] = [whole]
    if tensor_type(whole.results[0]) != tensor_type(op.result):
        shape = int_array(tensor_type(op.result).get_shape())
        new.append(ReshapeOp.make([whole.results[0]], {"shape": shape}))
    Rewriter.replace_op(op, new)


def _insert(op: tensor.InsertSliceOp) -> None:
    places = offsets_of(op)
    if any(p.terms for p in places) or op.sizes or op.strides:
        return
    sizes, source = ints(op.static_sizes), op.source
    if list(tensor_type(source).get_shape()) != sizes:
        reshape = ReshapeOp.make([source], {"shape": int_array(sizes)})
        Rewriter.insert_op(reshape, InsertPoint.before(op))
        op.operands[0] = source = reshape.results[0]
    if not moves(op):
        return
    static = tensor.InsertSliceOp.from_static_parameters(
        source, op.dest, [p.constant for p in places], sizes, ints(op.static_strides)
    )
    Rewriter.replace_op(op, static)
