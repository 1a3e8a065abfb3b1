"""`reduce`, `pool` and `conv`: any reduction, term by term; `conv` are those that add up products."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import i1
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument
from xdsl.ir.affine import AffineMap

from irkit.dialects.linalg_generic import combiner, loop_of, maps
from irkit.dialects.pool_windows import Rows, pool_windows
from irkit.dialects.roperator_root import Root
from irkit.dialects.tensor_ops.interface import Index
from irkit.dialects.types import tensor_type
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import ElementPrinter, delinearised, linear
from irkit.rkernels.binding.scalars import COMBINE
from irkit.rkernels.binding.sum_tuples import bind_sums
from irkit.rkernels.family import Family


def combines_by(root: Root) -> str:
    """How terms are combined: "add", "mul", "max" or "min"."""
    found = combiner(root.chain[-1])
    return found[0] if found is not None else ""


def joined_reduction(root: Root) -> tuple[int, ...]:
    """The extents of the reduced loops, the last ones as one where they go through the operand side by side.

    They are one loop where all operands are in memory, and each that moves with one of them has their
    dimensions next to one another, whole, as rows of a matrix have their elements.
    """
    op, extents = root.chain[-1], list(root.reduction)
    numbered = any(isinstance(inner, linalg.IndexOp) for inner in op.body.block.ops)
    if numbered or not all(isinstance(value, BlockArgument) for value in op.inputs):
        return root.reduction
    last = len(root.parallel) + len(extents) - 1
    while len(extents) > 1 and all(
        _side_by_side(
            amap,
            tensor_type(value).get_shape(),
            last - 1,
            root.reduction[last - len(root.parallel)],
        )
        for amap, value in zip(maps(op), op.inputs, strict=False)
    ):
        extents[-2:] = [extents[-2] * extents[-1]]
        last -= 1
    return tuple(extents)


def _side_by_side(amap: AffineMap, shape: Sequence[int], loop: int, extent: int) -> bool:
    """Whether the dimensions that `loop` and the next one move are neighbours, the second of `extent`, or
    neither moves any."""
    used = [d for d, e in enumerate(amap.results) if e.used_dims() & {loop, loop + 1}]
    if not used:
        return True
    plain = [loop_of(e) for e in amap.results]
    return (
        len(used) == 2
        and plain[used[0] : used[0] + 2] == [loop, loop + 1]
        and shape[used[1]] == extent
    )


def _shuffled(name: str) -> str:
    """What the lanes of a warp give one another of a sum: shuffles know no short integers, and none without
    sign; what is too long for 32 bits goes as 64."""
    if not name.startswith(("int", "uint")):
        return name
    return "int32" if name in ("int8", "uint8", "int16", "uint16", "int32") else "int64"


class Reduction(Family):
    """`RANGE`, `INIT(OPERANDS, r, j)`, `TERM(OPERANDS, r, j, k0, k1, k2)`, `COMBINE(acc, term)`,
    `STORE(OPERANDS, r, j, acc)`, `K0`, `K1`, `K2` and `SHUFFLED`, the type that a sum is shuffled as; for an
    rKernel with a parameter SUMS what `bind_sums` has.

    `roots` are the families of roots that can be seen so: a contraction is also a reduction.
    """

    def __init__(self, name: str, roots: Sequence[str]) -> None:
        self.name, self._roots = name, frozenset(roots)

    def refuses(self, root: Root) -> str | None:
        """One reduction with an associative combination, and no sum of booleans."""
        if root.family not in self._roots:
            return f"its root is of family '{root.family}'"
        if len(root.chain) != 1 or combiner(root.chain[0]) is None:
            return "its root is no one associative combination"
        if tensor_type(root.chain[0].results[0]).element_type == i1:
            return "a reduction of booleans"
        return None

    def bind(self, binder: Binder) -> None:
        """Reduced dimensions that lie side by side are one; where more than three are left, k0 stands for
        all but the last two."""
        op = binder.root.chain[-1]
        found = combiner(op)
        if found is None or len(binder.root.chain) != 1:
            raise UnsupportedError("a reduction whose body is not one associative combination")
        binder.range()
        binder.init("r, j", binder.rj_index)
        binder.binding.names["SHUFFLED"] = _shuffled(binder.binding.names["FLOAT"])
        extents = list(joined_reduction(binder.root))
        if len(extents) > 3:
            extents = [math.prod(extents[:-2]), *extents[-2:]]
        extents = [*extents, 1, 1, 1][:3]
        for number, extent in enumerate(extents):
            binder.literal(f"K{number}", extent)
        printer = ElementPrinter()
        loops = (*binder.rj_index(printer), *_reduction_index(binder.root, printer))
        (term,) = printer.body(op, printer.inputs(op, loops), loops, skip=found[1])
        printer.line(f"return {term}")
        arguments = f"{binder.binding.operands}, r, j, k0, k1, k2"
        binder.binding.function("TERM", arguments, printer.lines)
        binder.binding.function("COMBINE", "acc, term", [f"return {COMBINE[found[0]]}"])
        if binder.has_parameter("SUMS"):
            bind_sums(binder, extents)
        binder.store("r, j, acc", binder.rj_index, binder.accumulated)


class Pool(Reduction):
    """As any reduction. Where `pool_windows` finds outputs without padding, of an operand in memory, also
    `INSIDE(r)`, whether a row has any, `FIRST` and `LAST`, in which columns, and what windows look at:
    pointer `SOURCE` from `FIRST_OF(r, j)` on, `SHAPE` elements, `STEPS` apart, and those of the next column
    `STRIDE` behind; `LARGEST`: 1 for a maximum, 0 for a minimum."""

    def bind(self, binder: Binder) -> None:
        """The padded operand is looked at where it is in memory."""
        super().bind(binder)
        found = pool_windows(binder.root)
        source = found.source if found is not None else None
        if found is None or not isinstance(source, BlockArgument) or not binder.split:
            return
        binder.literal("FIRST", found.first)
        binder.literal("LAST", found.last)
        binder.literal("STRIDE", found.stride)
        binder.literal("LARGEST", int(combines_by(binder.root) == "max"))
        names = binder.binding.names
        names["SOURCE"] = f"p{source.index}"
        names["SHAPE"] = f"({''.join(f'{n}, ' for n in binder.root.reduction)})"
        names["STEPS"] = f"({''.join(f'{n}, ' for n in found.steps)})"
        rows = ElementPrinter()
        index = binder.index("r", "j", rows)
        rows.line(f"return {' and '.join(_between(row, index) for row in found.rows) or 'True'}")
        binder.binding.function("INSIDE", "r", rows.lines)
        places = ElementPrinter()
        loops = (*binder.rj_index(places), *("0" for _ in binder.root.reduction))
        at = [
            f"({places.affine(expr, loops)} - {low})"
            for expr, low in zip(found.index, found.low, strict=True)
        ]
        places.line(f"return {linear(at, tensor_type(source).get_shape())}")
        binder.binding.function("FIRST_OF", "r, j", places.lines)


def _between(row: Rows, index: Index) -> str:
    place = " + ".join(f"{index[loop]} * {step}" for loop, step in row.factors.items())
    return f"{row.low} <= {place or '0'} <= {row.high}"


def _reduction_index(root: Root, printer: ElementPrinter) -> Index:
    """Names of the reduction indices; of joined loops the last that moves goes over all, the others stay at
    0: what is read of a dimension of one element is not asked for its index."""
    extents = joined_reduction(root)
    joined = root.reduction[len(extents) - 1 :]
    moving = max((n for n, extent in enumerate(joined) if extent != 1), default=0)

    def group(name: str) -> list[str]:
        return [name if n == moving else "0" for n in range(len(joined))]

    if len(extents) <= 3:
        return (*(f"k{i}" for i in range(len(extents) - 1)), *group(f"k{len(extents) - 1}"))
    lead = [printer.name(i) for i in delinearised("k0", extents[:-2])]
    return (*lead, "k1", *group("k2"))
