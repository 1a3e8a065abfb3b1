"""`split-reductions`: long reductions to few results in two steps, the first of them in parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from xdsl.context import Context
from xdsl.dialects.builtin import BoolAttr, DenseArrayBase, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from irkit.dialects.graph import CastOp, ConcatOp, ReduceOp, ReshapeOp, SliceOp, WhereOp
from irkit.dialects.graph.elementwise import BinaryOp, UnaryOp
from irkit.dialects.types import DYNAMIC, int_array, ints, numpy_dtype, tensor_type
from irkit.passes.gpu import gpu_of
from irkit.rewriting import Rule, rewrite

LEAST: Final = 1 << 14
"""Terms of one result from which on a second step costs less than what it saves."""
PARTS: Final = 4
"""Parts for each vEU: where one waits for memory, others go on."""
SHORTEST: Final = 2048
"""Terms of a part: enough for a block to share."""
KINDS: Final = ("sum", "max", "min", "prod")
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

    def many(self, x: SSAValue, made: list[Operation]) -> SSAValue:
        """The terms as parts, one dimension more than in a line."""
        whole = x if not self.rest else self._line(x, made, 0, self.parts * self.length)
        lead, tail = _shape(x)[: self.first], _shape(x)[self.last + 1 :]
        return _reshape(whole, (*lead, self.parts, self.length, *tail), made)

    def left(self, x: SSAValue, made: list[Operation]) -> SSAValue:
        """The terms behind the last part."""
        return self._line(x, made, self.parts * self.length, self.rest)

    def _line(self, x: SSAValue, made: list[Operation], start: int, size: int) -> SSAValue:
        lead, tail = _shape(x)[: self.first], _shape(x)[self.last + 1 :]
        line = _reshape(x, (*lead, self.count, *tail), made)
        return _part(line, self.first, start, size, made)


def _shape(value: SSAValue) -> tuple[int, ...]:
    return tensor_type(value).get_shape()


def split_of(op: ReduceOp, veus: int) -> Split | str:
    """How a reduction is split for so many vEUs, or why it is not."""
    shape, axes = _shape(op.x), sorted(set(ints(op.axes)))
    why = _why_whole(op)
    if why:
        return why
    if axes != list(range(axes[0], axes[-1] + 1)):
        return "its dimensions are apart"
    count = math.prod(shape[a] for a in axes)
    results = math.prod(shape) // count if count else 0
    if not 0 < results < veus:
        return "each vEU has a result of its own"
    if count < LEAST:
        return "it has few terms"
    wanted = min(-(-PARTS * veus // results), count // SHORTEST)
    return Split(axes[0], axes[-1], count, _parts(count, wanted))


def _parts(count: int, wanted: int) -> int:
    """As many parts as divide the terms, if that is about as many as are wanted."""
    near = [p for p in range(max(wanted // 2, 2), 2 * wanted) if count % p == 0]
    return min(near, key=lambda p: abs(p - wanted), default=max(wanted, 2))


@dataclass
class SplitReduction(Rule):
    """reduce(x) = reduce(reduce(parts of x), what is left of x)"""

    veus: int

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReduceOp, rewriter: PatternRewriter, /):
        split = split_of(op, self.veus)
        if isinstance(split, str):
            return self.no_match(op, "{}", split)
        made: list[Operation] = []
        axis = split.first
        found = [_reduced(op, _beside(op.x, split.many, made), [axis + 1], made)]
        if split.rest:
            found.append(_beside(op.x, split.left, made))
        joined = found[0]
        if len(found) > 1:
            concat = ConcatOp.make(found, {"axis": IntegerAttr(axis, i64)})
            made.append(concat)
            joined = concat.results[0]
        y = _reduced(op, joined, [axis], made)
        if _shape(y) != _shape(op.y):
            y = _reshape(y, _shape(op.y), made)
        rewriter.replace(op, made, [y])


@dataclass
class SplitApart(Rule):
    """reduce(x over dimensions that are apart) = reduce(reduce(x over the last of them), the others)"""

    veus: int

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: ReduceOp, rewriter: PatternRewriter, /):
        last = _last_run(op, self.veus)
        if isinstance(last, str):
            return self.no_match(op, "{}", last)
        others = [a for a in sorted(set(ints(op.axes))) if a not in last]
        made: list[Operation] = []
        first = _reduced(op, op.x, last, made)
        y = _reduced(op, first, others, made)
        if _shape(y) != _shape(op.y):
            y = _reshape(y, _shape(op.y), made)
        rewriter.replace(op, made, [y])


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
    if op.kind.data not in KINDS or DYNAMIC in _shape(op.x) or not ints(op.axes):
        return "it is a mean, of nothing, or of open dimensions"
    if numpy_dtype(tensor_type(op.x).element_type).itemsize < 4:
        return "what parts give would be rounded"
    return ""


def _reduced(op: ReduceOp, x: SSAValue, axes: Sequence[int], made: list[Operation]) -> SSAValue:
    properties = {
        "kind": StringAttr(op.kind.data),
        "axes": DenseArrayBase.from_list(i64, list(axes)),
        "keepdims": BoolAttr.from_bool(False),
    }
    made.append(ReduceOp.make([x], properties))
    return made[-1].results[0]


def _reshape(x: SSAValue, shape: Sequence[int], made: list[Operation]) -> SSAValue:
    if _shape(x) == tuple(shape):
        return x
    made.append(ReshapeOp.make([x], {"shape": int_array(shape)}))
    return made[-1].results[0]


def _beside(
    x: SSAValue, taken: Callable[[SSAValue, list[Operation]], SSAValue], made: list[Operation]
) -> SSAValue:
    """What is `taken` of a value; of elementwise work that nothing else reads, of what that reads."""
    source = x.owner
    if not isinstance(source, ELEMENTWISE) or not _moves(source):
        return taken(x, made)
    operands = [
        v if math.prod(_shape(v)) == 1 else _beside(v, taken, made) for v in source.operands
    ]
    made.append(type(source).make(operands, dict(source.properties)))
    return made[-1].results[0]


def _moves(op: Operation) -> bool:
    """Whether one reader reads the op, and it nothing that it repeats along some dimensions."""
    whole = _shape(op.results[0])
    alike = all(_shape(v) == whole or math.prod(_shape(v)) == 1 for v in op.operands)
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
    """Make a long reduction to fewer results than vEUs one of parts, and one of what they give.

    A result belongs to one rTask: a sum of a whole tensor would be the work of one multiprocessor. Parts are
    about four for each (`device`), of 2,048 terms or more; what elementwise work a part needs is done beside
    it. Of dimensions that are apart the last ones are reduced first, then the others. Means stay as they are,
    and so does everything on a CPU, where sums are in the order of their terms.

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
        rewrite(op, [SplitReduction(gpu.veus), SplitApart(gpu.veus)])
