"""Variables of loops as numbers: tensors that the loops carry."""

from __future__ import annotations

from typing import cast

import numpy as np
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IndexType, TensorType, i64
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.graph import AddOp, CastOp, MulOp, ReshapeOp
from irkit.dialects.loop_places import Affine, affine, trips_of
from irkit.dialects.types import int_array, tensor_of, tensor_type
from irkit.errors import UnsupportedError
from irkit.weights import Array


def constant_numbers(array: Array) -> arith.ConstantOp:
    """A constant of integers."""
    of_type = cast("TensorType[IndexType]", tensor_of(array))
    return arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(of_type, array.ravel().tolist()))


class Numbers:
    """Has loops carry their iterations as tensors of no dimensions, each once."""

    def __init__(self) -> None:
        # The argument that is the number of the iteration, by the block of the loop, which stays the same.
        self._known: dict[object, BlockArgument] = {}

    def of(self, place: Affine, before: Operation) -> SSAValue:
        """A place as a tensor of one i64, made before an op in its loops."""
        total: SSAValue | None = None
        for loop, factor in place.terms.items():
            term = self._iteration(loop)
            if factor != 1:
                scale = _put(constant_numbers(np.array(factor)), before)
                term = _put(MulOp.make([term, scale], {}), before)
            total = term if total is None else _put(AddOp.make([total, term], {}), before)
        if total is None or place.constant:
            constant = _put(constant_numbers(np.array(place.constant)), before)
            total = constant if total is None else _put(AddOp.make([total, constant], {}), before)
        return total

    def replace(self, op: tensor.FromElementsOp | tensor.SplatOp) -> None:
        """Make a tensor of loops' variables one of what they carry. Raises UnsupportedError for one of other
        scalars."""
        t = tensor_type(op.results[0])
        if len(op.operands) != 1:
            raise UnsupportedError(f"'{op.name}' of several scalars")
        value = self.of(affine(op.operands[0]), op)
        if t.element_type != i64:
            value = _put(CastOp.make([value], {"to": t.element_type}), op)
        count = int(np.prod(t.get_shape(), dtype=np.int64))
        if count > 1:
            zeros = _put(constant_numbers(np.zeros(t.get_shape(), np.int64)), op)
            value = _put(AddOp.make([value, zeros], {}), op)
        elif t.get_shape():
            shape = int_array(t.get_shape())
            value = _put(ReshapeOp.make([value], {"shape": shape}), op)
        op.results[0].replace_all_uses_with(value)
        Rewriter.erase_op(op)

    def _iteration(self, loop: scf.ForOp) -> SSAValue:
        """The number of the iteration of a loop, from 0, which it carries from here on."""
        body = loop.body.block
        if body not in self._known:
            self._known[body] = _carry(loop)
        return self._known[body]


def _put(op: Operation, before: Operation) -> SSAValue:
    Rewriter.insert_op(op, InsertPoint.before(before))
    return op.results[0]


def _carry(loop: scf.ForOp) -> BlockArgument:
    """Have a loop carry the number of its iteration. Its body's block stays, the op is another."""
    trips_of(loop)
    body = loop.body.block
    first = constant_numbers(np.array(0))
    Rewriter.insert_op(first, InsertPoint.before(loop))
    number = body.insert_arg(first.result.type, len(body.args))
    number.name_hint = "n"
    terminator = body.last_op
    assert terminator is not None
    one = _put(constant_numbers(np.array(1)), terminator)
    following = _put(AddOp.make([number, one], {}), terminator)
    Rewriter.replace_op(terminator, scf.YieldOp(*terminator.operands, following), [])
    region = loop.detach_region(loop.body)
    wider = scf.ForOp(loop.lb, loop.ub, loop.step, [*loop.iter_args, first.result], region)
    Rewriter.replace_op(loop, wider, list(wider.results[:-1]))
    return number
