"""Slices and loops in the form that the passes behind know: what need not move does not."""

from __future__ import annotations

from xdsl.dialects import scf, tensor
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.graph import ReshapeOp, SliceOp
from irkit.dialects.loop_places import moves, offsets_of, why_no_run
from irkit.dialects.types import int_array, ints, tensor_type
from irkit.passes.graph.loops.copies import blocks_of
from irkit.passes.graph.loops.numbers import Numbers
from irkit.passes.graph.loops.scattered import gather_scattered
from irkit.passes.graph.loops.segments import same_place
from irkit.passes.graph.loops.unrolling import is_short, unroll


def normalise_slices(function: FuncOp) -> None:
    """Bring slices and loops of a function to their form, in place.

    A loop that is short is unrolled. A slice at a static place becomes `graph.slice`, an insertion one of a
    slice of the tensor's rank; a slice at a moving place that is no run of bytes is gathered, or chosen from.
    A loop's variable that is read as a number is carried as one. Bytes at a moving place that are read twice
    are one slice, so that an insertion there has it for its place. Raises UnsupportedError for bounds or
    places that are not known.
    """
    for op in reversed([o for o in function.body.walk() if isinstance(o, scf.ForOp)]):
        if is_short(op):
            unroll(op)
    for op in list(function.body.walk()):
        if isinstance(op, tensor.ExtractSliceOp):
            _extract(op)
        elif isinstance(op, tensor.InsertSliceOp):
            _insert(op)
    numbers = Numbers()
    for op in list(function.body.walk()):
        if isinstance(op, tensor.ExtractSliceOp | tensor.InsertSliceOp):
            gather_scattered(op, numbers.of)
        elif isinstance(op, tensor.FromElementsOp | tensor.SplatOp):
            numbers.replace(op)
    for block in blocks_of(function):
        _share(block)


def _share(block: Block) -> None:
    """Have slices of one value that are the same bytes be one."""
    known: dict[SSAValue, list[tensor.ExtractSliceOp]] = {}
    for op in list(block.ops):
        if not isinstance(op, tensor.ExtractSliceOp) or not moves(op) or why_no_run(op):
            continue
        others = known.setdefault(op.source, [])
        first = next((o for o in others if same_place(o, op)), None)
        if first is None:
            others.append(op)
            continue
        same: list[Operation] = []
        if first.result.type != op.result.type:
            shape = int_array(tensor_type(op.result).get_shape())
            same = [ReshapeOp.make([first.result], {"shape": shape})]
        Rewriter.replace_op(op, same, [same[0].results[0] if same else first.result])


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
