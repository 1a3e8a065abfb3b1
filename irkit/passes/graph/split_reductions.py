"""`split-reductions`: long reductions to few results in two steps, the first of them in parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from irkit.context import weights_of
from irkit.dialects.constants import constant
from irkit.dialects.graph import CastOp, ConcatOp, DivOp, ReduceOp, ReshapeOp, SliceOp, WhereOp
from irkit.dialects.graph.elementwise import BinaryOp, UnaryOp
from irkit.dialects.types import DYNAMIC, int_array, ints, is_float, numpy_dtype, tensor_type
from irkit.passes.gpu import gpu_of
from irkit.rewriting import Rule, rewrite
from irkit.rkernels.cuda.reduce import APART_BYTES, COLUMNS, waits_of_block, waits_of_columns
from irkit.rkernels.work import work
from irkit.schedule.model import VDevice
from irkit.weights import WeightStore

LEAST: Final = 1 << 14
"""Terms of one result from which on a second step costs less than what it saves."""
PARTS: Final = 4
"""Parts for each vEU: where one waits for memory, others go on."""
SHORTEST: Final = 2048
"""Terms of a part: enough for a block to share."""
SECTOR: Final = 32
"""Bytes that memory gives at once: who reads one column out of wide rows reads so many of each."""
WORTH: Final = 0.8
"""The share of the time, by estimate, below which columns are summed in two steps."""
KINDS: Final = ("sum", "mean", "max", "min", "prod")
ELEMENTWISE: Final = (UnaryOp, BinaryOp, CastOp, WhereOp)


@dataclass(frozen=True)
class Split:
    """Dimensions `first` to `last` of x, of `count` terms together: `parts` of `length`, and the `rest`."""

    first: int
    last: int
    count: int
    parts: int

    @property
    def length(self) -> int:
        """Terms of a part."""
        return self.count // self.parts

    @property
    def rest(self) -> int:
        """Terms after the last part."""
        return self.count - self.parts * self.length

    def spans(self, shape: Sequence[int], whole: Sequence[int]) -> bool:
        """Whether a value of that shape has all the terms, where `whole` has them."""
        return tuple(shape[self.first : self.last + 1]) == tuple(whole[self.first : self.last + 1])

    def repeats(self, shape: Sequence[int]) -> bool:
        """Whether a value of that shape is the same for all terms."""
        return math.prod(shape[self.first : self.last + 1]) == 1

    def of(self, x: SSAValue, rest: bool, made: list[Operation]) -> SSAValue:
        """The terms as parts, one dimension more than in a line, or the `rest` of them in a line."""
        lead, tail = _shape(x)[: self.first], _shape(x)[self.last + 1 :]
        if self.repeats(_shape(x)):
            return _reshape(x, (*lead, *([1] if rest else [1, 1]), *tail), made)
        cut = self.parts * self.length
        if rest:
            return self._line(x, made, cut, self.rest)
        line = x if not self.rest else self._line(x, made, 0, cut)
        return _reshape(line, (*lead, self.parts, self.length, *tail), made)

    def _line(self, x: SSAValue, made: list[Operation], start: int, size: int) -> SSAValue:
        lead, tail = _shape(x)[: self.first], _shape(x)[self.last + 1 :]
        line = _reshape(x, (*lead, self.count, *tail), made)
        return _part(line, self.first, start, size, made)


def _shape(value: SSAValue) -> tuple[int, ...]:
    return tensor_type(value).get_shape()


def split_of(op: ReduceOp, device: VDevice) -> Split | str:
    """How a reduction is split for a device's vEUs, or why it is not."""
    shape, axes = _shape(op.x), sorted(set(ints(op.axes)))
    why = _why_whole(op)
    if why:
        return why
    if axes != list(range(axes[0], axes[-1] + 1)):
        return "its dimensions are apart"
    lead, tail = math.prod(shape[: axes[0]]), math.prod(shape[axes[-1] + 1 :])
    count = math.prod(shape[a] for a in axes)
    if not lead * tail * count:
        return "it has no terms, or no results"
    itemsize = numpy_dtype(tensor_type(op.x).element_type).itemsize
    parts = (
        _parts_of_rows(count, lead, op.kind.data == "mean", device)
        if tail == 1
        else _parts_of_columns(Columns(lead, count, tail, itemsize), device)
    )
    return parts if isinstance(parts, str) else Split(axes[0], axes[-1], count, parts)


def _parts_of_rows(count: int, results: int, mean: bool, device: VDevice) -> int | str:
    """Parts of each of `results` runs of terms, or why there are none."""
    if mean:
        return "it is a mean of rows, which may be part of a normalisation"
    if results >= device.veus:
        return "each vEU has a result of its own"
    if count < LEAST:
        return "it has few terms"
    wanted = min(-(-PARTS * device.veus // results), count // SHORTEST)
    near = [p for p in range(max(wanted // 2, 2), 2 * wanted) if count % p == 0]
    # As many parts as divide the terms, if that is about as many as are wanted.
    return min(near, key=lambda p: abs(p - wanted), default=max(wanted, 2))


@dataclass(frozen=True)
class Columns:
    """`tail` columns of `count` terms each in each of `lead` matrices, elements of `itemsize` bytes."""

    lead: int
    count: int
    tail: int
    itemsize: int

    def time(self, parts: int, device: VDevice) -> float:
        """Nanoseconds, by estimate, on the vEU that has most to do.

        A block sums `COLUMNS` columns of a part side by side. Where that leaves vEUs without work, columns
        are dealt out to more, down to a sector of each row; their terms wait for one another as before. Or
        it sums the terms of one column at a time, far apart.
        """
        length = math.ceil(self.count / parts)
        blocks = self.lead * parts * math.ceil(self.tail / COLUMNS)
        wide = min(self.tail, COLUMNS) * self.itemsize * min(1.0, blocks / device.veus)
        beside = waits_of_columns(length) + work(byte=length * max(wide, SECTOR))
        single = waits_of_block(length) + work(byte=length * (self.itemsize + APART_BYTES))
        columns = self.lead * parts * self.tail
        return work(start=1).nanoseconds(device) + min(
            (beside * math.ceil(blocks / device.veus)).nanoseconds(device),
            (single * math.ceil(columns / device.veus)).nanoseconds(device),
        )


def _parts_of_columns(columns: Columns, device: VDevice) -> int | str:
    """Parts of the terms of columns, or why there are none: the number with the least time of both steps is
    taken, one that divides the terms if that costs little."""
    blocks = columns.lead * math.ceil(columns.tail / COLUMNS)
    most = min(PARTS * device.veus // blocks, columns.count // 2)
    if most < 2:
        return "each vEU has columns of its own, or terms are few"

    def time(parts: int) -> float:
        rest = columns.count % parts
        joined = Columns(columns.lead, parts + rest, columns.tail, columns.itemsize)
        return columns.time(parts, device) + joined.time(1, device) + device.wait_ns

    best = min(range(2, most + 1), key=time)
    even = min((p for p in range(2, most + 1) if columns.count % p == 0), key=time, default=best)
    if time(even) <= 1.1 * time(best):
        best = even
    if time(best) > WORTH * columns.time(1, device):
        return "to join parts takes as long as they save"
    return best


@dataclass
class SplitReduction(Rule):
    """reduce(x) = reduce(reduce(parts of x), what is left of x)"""

    device: VDevice
    weights: WeightStore

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReduceOp, rewriter: PatternRewriter, /):
        split = split_of(op, self.device)
        if isinstance(split, str):
            return self.no_match(op, "{}", split)
        made: list[Operation] = []
        axis = split.first
        found = [_reduced(op, _beside(op.x, split, False, made), [axis + 1], made)]
        if split.rest:
            found.append(_beside(op.x, split, True, made))
        joined = found[0]
        if len(found) > 1:
            concat = ConcatOp.make(found, {"axis": IntegerAttr(axis, i64)})
            made.append(concat)
            joined = concat.results[0]
        y = _reduced(op, joined, [axis], made)
        rewriter.replace(op, made, [_finished(op, y, self.weights, made)])


@dataclass
class SplitApart(Rule):
    """reduce(x over dimensions that are apart) = reduce(reduce(x over the last of them), the others)"""

    device: VDevice
    weights: WeightStore

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReduceOp, rewriter: PatternRewriter, /):
        last = _last_run(op, self.device.veus)
        if isinstance(last, str):
            return self.no_match(op, "{}", last)
        others = [a for a in sorted(set(ints(op.axes))) if a not in last]
        made: list[Operation] = []
        first = _reduced(op, op.x, last, made)
        y = _reduced(op, first, others, made)
        rewriter.replace(op, made, [_finished(op, y, self.weights, made)])


def _last_run(op: ReduceOp, veus: int) -> list[int] | str:
    """The last dimensions that lie together of those reduced, or why they are not reduced first."""
    shape, axes = _shape(op.x), sorted(set(ints(op.axes)))
    why = _why_whole(op)
    if why:
        return why
    last = [a for n, a in enumerate(axes) if axes[-1] - a == len(axes) - 1 - n]
    if len(last) == len(axes):
        return "its dimensions lie together"
    count = math.prod(shape[a] for a in axes)
    if not 0 < math.prod(shape) // max(count, 1) < veus or count < LEAST:
        return "each vEU has a result of its own, or it has few terms"
    return last


def _why_whole(op: ReduceOp) -> str:
    """Why a reduction is never split; empty where it may be."""
    element = tensor_type(op.x).element_type
    if op.kind.data not in KINDS or DYNAMIC in _shape(op.x) or not ints(op.axes):
        return "it is of nothing, or of open dimensions"
    if op.kind.data == "mean" and not is_float(element):
        return "it is a mean of integers, whose sum has more bits than they"
    if numpy_dtype(element).itemsize < 4:
        return "what parts give would be rounded"
    return ""


def _reduced(op: ReduceOp, x: SSAValue, axes: Sequence[int], made: list[Operation]) -> SSAValue:
    """A step of a reduction; of a mean a sum."""
    properties = {
        "kind": StringAttr("sum" if op.kind.data == "mean" else op.kind.data),
        "axes": DenseArrayBase.from_list(i64, list(axes)),
        "keepdims": BoolAttr.from_bool(False),
    }
    made.append(ReduceOp.make([x], properties))
    return made[-1].results[0]


def _finished(op: ReduceOp, y: SSAValue, weights: WeightStore, made: list[Operation]) -> SSAValue:
    """What a reduction gives, of what its steps give."""
    if op.kind.data == "mean":
        count = math.prod(_shape(op.x)[a] for a in set(ints(op.axes)))
        dtype = numpy_dtype(tensor_type(op.x).element_type)
        made.append(constant(np.array(count, dtype), weights))
        made.append(DivOp.make([y, made[-1].results[0]]))
        y = made[-1].results[0]
    return _reshape(y, _shape(op.y), made)


def _reshape(x: SSAValue, shape: Sequence[int], made: list[Operation]) -> SSAValue:
    if _shape(x) == tuple(shape):
        return x
    made.append(ReshapeOp.make([x], {"shape": int_array(shape)}))
    return made[-1].results[0]


def _beside(x: SSAValue, split: Split, rest: bool, made: list[Operation]) -> SSAValue:
    """What is taken of a value; of elementwise work that nothing else reads, of what that reads."""
    source = x.owner
    if not isinstance(source, ELEMENTWISE) or not _moves(source, split):
        return split.of(x, rest, made)
    operands = [_operand(v, _shape(x), split, rest, made) for v in source.operands]
    made.append(type(source).make(operands, dict(source.properties)))
    return made[-1].results[0]


def _operand(
    v: SSAValue, whole: tuple[int, ...], split: Split, rest: bool, made: list[Operation]
) -> SSAValue:
    """What is taken of an operand of elementwise work over `whole`."""
    if math.prod(_shape(v)) == 1:
        # One element has no dimensions: those of the parts are others than those of the whole.
        return _reshape(v, (), made)
    return _beside(_reshape(v, _aligned(v, whole), made), split, rest, made)


def _aligned(v: SSAValue, whole: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of an operand, with as many dimensions as what it is broadcast to."""
    return (*(1 for _ in range(len(whole) - len(_shape(v)))), *_shape(v))


def _moves(op: Operation, split: Split) -> bool:
    """Whether one reader reads the op, and each of its operands has all terms, or the same for all."""
    whole = _shape(op.results[0])
    shapes = [_aligned(v, whole) for v in op.operands]
    alike = all(split.spans(shape, whole) or split.repeats(shape) for shape in shapes)
    return alike and len(list(op.results[0].uses)) == 1


def _part(x: SSAValue, axis: int, start: int, size: int, made: list[Operation]) -> SSAValue:
    shape = _shape(x)
    sizes = [size if d == axis else s for d, s in enumerate(shape)]
    offsets = [start if d == axis else 0 for d in range(len(shape))]
    where = {
        "offsets": int_array(offsets),
        "sizes": int_array(sizes),
        "strides": int_array([1] * len(shape)),
    }
    made.append(SliceOp.make([x], where))
    return made[-1].results[0]


@dataclass(frozen=True)
class SplitReductions(ModulePass):
    """Make a long reduction to fewer results than keep vEUs busy one of parts, and one of what they give.

    A result belongs to one rTask: a sum of a whole tensor would be the work of one multiprocessor. Of rows,
    parts are about four for each (`device`), of 2,048 terms or more. Columns are read side by side, a line of
    memory at a time, so that few of them are few rTasks too: there are as many parts of their terms as take
    least time, by estimate, with the step that joins them. What elementwise work a part needs is done beside
    it. Of dimensions that are apart the last ones are reduced first, then the others. Means of rows stay as
    they are, and so does everything on a CPU, where sums are in the order of their terms.

    Numeric risk: floats are added in another order, as a GPU's kernels do anyway.

    ```mlir
    %y = graph.reduce %x {kind = "sum", axes = array<i64: 0>, ...} : (tensor<4194304xf32>) -> tensor<f32>
    ```
    becomes
    ```mlir
    %0 = graph.reshape %x {...} : (tensor<4194304xf32>) -> tensor<512x8192xf32>
    %1 = graph.reduce %0 {kind = "sum", axes = array<i64: 1>, ...} : ... -> tensor<512xf32>
    %y = graph.reduce %1 {kind = "sum", axes = array<i64: 0>, ...} : (tensor<512xf32>) -> tensor<f32>
    ```
    """

    name = "split-reductions"
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        gpu = gpu_of(self.device)
        if gpu is None:
            return
        weights = weights_of(ctx)
        rewrite(op, [SplitReduction(gpu, weights), SplitApart(gpu, weights)])
