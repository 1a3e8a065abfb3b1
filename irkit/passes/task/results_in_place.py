"""Give every program output and every concatenation operand a launch that writes it in place.

A launch can write its result straight into an output, or into its part of a concatenation, but only
into one such place. Where a value has two, or is an input, a constant or a slice, a copy is inserted; but
state that is returned as it was stays as it is.
"""

from __future__ import annotations

from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import AffineMapAttr, IndexType
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.state import state_of
from irkit.dialects.tensor_ops.interface import Kind
from irkit.dialects.tensor_ops.registry import kind_of, through_reshapes
from irkit.dialects.types import DYNAMIC, tensor_type

# What is copied into the bodies that read it, or stored, and has no launch of its own.
_NO_LAUNCH = (Kind.FREE, Kind.STORED)


def copy_of(value: SSAValue, before: Operation) -> SSAValue:
    """Insert an elementwise copy of `value` before an op."""
    t = tensor_type(value)
    sizes: list[SSAValue] = []
    if t.get_shape()[:1] == (DYNAMIC,):
        zero = arith.ConstantOp.from_int_and_width(0, IndexType())
        extent = tensor.DimOp(value, zero.result)
        Rewriter.insert_op([zero, extent], InsertPoint.before(before))
        sizes = [extent.result]
    empty = tensor.EmptyOp(sizes, t)
    block = Block(arg_types=[t.element_type, t.element_type])
    block.add_op(linalg.YieldOp(block.args[0]))
    identity = AffineMapAttr(AffineMap.identity(t.get_num_dims()))
    copy = linalg.GenericOp(
        [value],
        [empty.tensor],
        Region(block),
        [identity, identity],
        [IteratorTypeAttr.parallel()] * t.get_num_dims(),
        [t],
    )
    copy.location = before.location
    Rewriter.insert_op([empty, copy], InsertPoint.before(before))
    return copy.results[0]


def insert_copies(main: func.FuncOp) -> None:
    """After this, each operand of a view-like concatenation and each returned value is, up to
    reshapes, the result of an op that computes it, and of that place alone."""
    claimed: set[SSAValue] = set()
    unchanged = {pair.result: main.body.block.args[pair.argument] for pair in state_of(main)}
    for op in list(main.body.block.ops):
        in_parts = isinstance(op, tensor.ConcatOp) and kind_of(op) is Kind.VIEW
        if not in_parts and not isinstance(op, func.ReturnOp):
            continue
        for number, value in enumerate(op.operands):
            source = through_reshapes(value)
            if isinstance(op, func.ReturnOp) and unchanged.get(number) is source:
                continue
            if not _has_launch(source) or source in claimed:
                op.operands[number] = copy_of(value, op)
                source = op.operands[number]
            claimed.add(source)


def _has_launch(value: SSAValue) -> bool:
    """Whether a launch will write a value, or several its parts."""
    owner = value.owner
    if not isinstance(owner, Operation) or kind_of(owner) in _NO_LAUNCH:
        return False
    return kind_of(owner) is not Kind.VIEW or isinstance(owner, tensor.ConcatOp)
