"""`share-products`: products of many terms and few results, whose terms the vEUs of a GPU share."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, f32, f64
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from irkit.dialects import graph
from irkit.dialects.precision import inherit
from irkit.dialects.types import DYNAMIC, int_array, ints, tensor_type
from irkit.expressions.binding import Step
from irkit.expressions.printing import text_of
from irkit.expressions.syntax import Apply, Expr, Name, Read, names_of
from irkit.passes.gpu import gpu_of
from irkit.passes.graph.cut_sums import why_whole
from irkit.rewriting import Rule, rewrite

TILE: Final = (32, 64)
"""Rows and columns of a tile that keeps a vEU busy."""
LARGE: Final = ((128, 128), (64, 64))
"""Those of tiles that read less for what they multiply: taken where parts give them to most vEUs."""
BUSY: Final = 0.6
"""The share of vEUs that is most of them."""
LEAST: Final = 256
"""Terms of a part at least: what it saves is more than what a second step costs."""
LEAST_OF_LARGE: Final = 512
"""The same of large tiles, of which every part is written and read."""
TERMS: Final = 128
PRODUCTS: Final = 1 << 22
"""Of a product whose first factor is worth a copy that lies as tiled products read it."""
OF_A_BLOCK: Final = 8192
"""Sums that the threads of a block keep, of a convolution over planes that it has."""
LEAST_OF_PLANES: Final = 128
"""Terms that such a block adds at least."""
PART: Final = "part"


@dataclass(frozen=True)
class Shared:
    """The index whose values are shared out, and into how many parts."""

    index: str
    parts: int


def shared(step: Step, veus: int) -> Shared | str:
    """How a statement's terms are shared by so many vEUs, or why they are not."""
    if not step.is_product or not step.statement.fresh:
        return "it is no sum of products"
    if len(step.operands) != 2:
        return "it multiplies a tensor by itself"
    terms = math.prod(loop.size for loop in step.domain.reduced)
    free = [x for x in step.domain.reduced if why_whole(step, x.name) is None]
    if not free:
        return "no summed index is read by itself"
    longest = max(free, key=lambda loop: loop.size)
    if longest.size > 1 and _one_by_one(step, terms // longest.size):
        return Shared(longest.name, longest.size)

    def parts(tile: tuple[int, int], least: int) -> int:
        """As many as leave no vEU without a tile, if that is more than one."""
        most = min(veus // max(_tiles(step, tile), 1), terms // least, longest.size)
        return max((n for n in range(2, most + 1) if longest.size % n == 0), default=1)

    for tile in LARGE:
        count = parts(tile, LEAST_OF_LARGE)
        if count > 1 and count * _tiles(step, tile) >= BUSY * veus:
            return Shared(longest.name, count)
    count = parts(TILE, LEAST)
    if count == 1:
        return "its results, or too few terms, leave no vEU without work"
    return Shared(longest.name, count)


def _one_by_one(step: Step, terms: int) -> bool:
    """Whether parts of so many terms are each a block's, as the images of a convolution's gradient are: it
    has all their results at once, which are no more than what would be copied, were a part more than one."""
    value = step.statement.value
    assert isinstance(value, Apply)
    windows = (i for a in value.arguments if isinstance(a, Read) for i in a.indices)
    if terms < LEAST_OF_PLANES or all(len(names_of(index)) < 2 for index in windows):
        return False
    batch, rows, columns = _extents(step)
    return batch * rows * columns <= OF_A_BLOCK and columns <= terms


def _tiles(step: Step, tile: tuple[int, int]) -> int:
    """Tiles of the results."""
    batch, *sides = _extents(step)
    return batch * math.prod(math.ceil(n / side) for n, side in zip(sides, tile, strict=True))


def _extents(step: Step) -> tuple[int, int, int]:
    """Matrices of the results, their rows and columns: indices of the first factor alone are rows, of the
    second columns."""
    value = step.statement.value
    assert isinstance(value, Apply)
    first, second = (_named(a) for a in value.arguments)
    sizes = {loop.name: loop.size for loop in step.domain.loops}

    def extent(names: set[str]) -> int:
        return math.prod(sizes[n] for n in step.statement.indices if n in names)

    return extent(first & second), extent(first - second), extent(second - first)


def _named(value: Expr) -> set[str]:
    assert isinstance(value, Read)
    return {n for index in value.indices for n in names_of(index)}


@dataclass
class ShareProduct(Rule):
    """sum over n of a*b = sum over parts of n of the sums over each part"""

    veus: int

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.ExpressionOp, rewriter: PatternRewriter, /):
        if op.schedule is not None:
            return self.no_match(op, "it has a schedule")
        found = shared(op.step, self.veus)
        if isinstance(found, str):
            return self.no_match(op, "{}", found)
        made = _in_parts(op, found)
        rewriter.replace(op, made, [made[-1].results[0]])


class TurnFactor(Rule):
    """transpose(a) @ b, of many terms = a turned by a copy, times b"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.GemmOp, rewriter: PatternRewriter, /):
        why = _why_not_turned(op)
        if why:
            return self.no_match(op, "{}", why)
        turn = graph.TransposeOp.make([op.a], {"permutation": int_array([1, 0])})
        text = StringAttr("C(m, n) +=! A(m, k) * B(k, n)")
        product = graph.ExpressionOp.make([turn.results[0], op.b], {"text": text})
        inherit(product, op)
        rewriter.replace(op, [turn, product], [product.results[0]])


def _why_not_turned(op: graph.GemmOp) -> str:
    """Why a product stays; empty where its first factor is turned."""
    (terms, rows), columns = tensor_type(op.a).get_shape(), tensor_type(op.y).get_shape()[1]
    if not op.trans_a.value.data or op.trans_b.value.data:
        return "its first factor is not the one that is transposed"
    if op.c is not None or op.alpha.value.data != 1:
        return "it has more than a product"
    if tensor_type(op.y).element_type not in (f32, f64) or DYNAMIC in (terms, rows, columns):
        return "it is of other elements, or of open dimensions"
    if terms < TERMS or terms * rows * columns < PRODUCTS:
        return "it is short"
    return ""


def _in_parts(op: graph.ExpressionOp, found: Shared) -> list[Operation]:
    """Operands by parts, the sums of each, and their sum."""
    step, made = op.step, list[Operation]()
    statement, value = step.statement, step.statement.value
    assert isinstance(value, Apply)
    taken = {*step.operands, statement.target, *(x.name for x in step.domain.loops)}
    part = _fresh(PART, taken)
    by_name = dict(zip(step.operands, op.operands, strict=True))
    reads: list[Expr] = []
    operands: list[SSAValue] = []
    for read in value.arguments:
        assert isinstance(read, Read)
        axis = next((d for d, i in enumerate(read.indices) if i == _name(read, found.index)), None)
        if axis is None:
            operands.append(by_name[read.tensor])
            reads.append(read)
            continue
        operands.append(_by_parts(by_name[read.tensor], axis, found.parts, made))
        reads.append(replace(read, indices=(Name(part), *read.indices)))
    first = replace(
        statement,
        indices=(part, *statement.indices),
        value=replace(value, arguments=tuple(reads)),
    )
    made.append(graph.ExpressionOp.make(operands, {"text": StringAttr(text_of(first))}))
    inherit(made[-1], op)
    sums = Read(_fresh(f"{statement.target}_parts", taken), tuple(map(Name, first.indices)))
    last = replace(statement, value=sums, ranges=(), exists=())
    text = StringAttr(text_of(last))
    made.append(graph.ExpressionOp.make([made[-1].results[0]], {"text": text}))
    return made


def _name(read: Read, index: str) -> Expr | None:
    """The index itself, as a read has it."""
    return next((i for i in read.indices if isinstance(i, Name) and i.name == index), None)


def _by_parts(value: SSAValue, axis: int, parts: int, made: list[Operation]) -> SSAValue:
    """A tensor one of whose dimensions is cut, the parts in front. What is transposed is so once, of what it
    was before."""
    order = list(range(len(tensor_type(value).get_shape())))
    if isinstance(value.owner, graph.TransposeOp):
        order = ints(value.owner.permutation)
        value = value.owner.x
    cut, shape = order[axis], tensor_type(value).get_shape()
    split = (*shape[:cut], parts, shape[cut] // parts, *shape[cut + 1 :])
    order = [cut, *(d + (d >= cut) for d in order)]
    wide = [d for d in order if split[d] > 1]
    # Where only dimensions of one element move, the bytes stay where they are.
    stays = wide == sorted(wide)
    lies = [split[d] for d in order] if stays else split
    made.append(graph.ReshapeOp.make([value], {"shape": int_array(lies)}))
    if not stays:
        permutation = {"permutation": int_array(order)}
        made.append(graph.TransposeOp.make([made[-1].results[0]], permutation))
    return made[-1].results[0]


def _fresh(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


@dataclass(frozen=True)
class ShareProducts(ModulePass):
    """Make of a sum of products of so few results that most vEUs of a GPU would have none, one of parts of
    its terms, and one of what these give, always in the same order.

    Of the indices that are summed over and that both factors read by themselves the longest is cut, into as
    many parts as tiles of 32x64 results leave vEUs for, of 256 terms or more, or as tiles of 128x128 or 64x64
    do, of 512 or more, where most vEUs have one of these then; parts lead in both factors, and
    of one that is transposed the transposition is another one. Such is the gradient of a convolution by its
    filters, summed over the batch and all places: where it has so few results that a block keeps them all,
    of 128 terms or more for each image, every image is a part, and no factor is transposed. What has a
    schedule, and everything on a CPU, stays.

    The gradient of a weight, `graph.gemm` with its first factor transposed, is such a sum too: where it is of
    128 terms or more, and 4 million products, that factor is transposed by a copy, which may be made as soon
    as it is there, since tiled products read rows.

    Numeric risk: floats are added in another order, as a GPU's kernels do anyway.

    ```mlir
    %w = graph.expression %d, %x {text = "W(m, t) +=! D(m, n, h) * X(n, h + t) where t in 0:3"}
      : (tensor<8x64x100xf32>, tensor<64x102xf32>) -> tensor<8x3xf32>
    ```
    becomes
    ```mlir
    %0 = graph.transpose %1 {...} : (tensor<8x32x2x100xf32>) -> tensor<32x8x2x100xf32>
    %2 = graph.expression %0, %3 {text = "W(part, m, t) +=! D(part, m, n, h) * X(part, n, h + t) where ..."}
      : (tensor<32x8x2x100xf32>, tensor<32x2x102xf32>) -> tensor<32x8x3xf32>
    %w = graph.expression %2 {text = "W(m, t) +=! W_parts(part, m, t)"} : ... -> tensor<8x3xf32>
    ```
    """

    name = "share-products"
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        gpu = gpu_of(self.device)
        if gpu is None:
            return
        rewrite(op, [TurnFactor(), ShareProduct(gpu.veus)])
