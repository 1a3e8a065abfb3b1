"""What some rows of some values need of every value of a function: backward, op by op.

The analysis is bounds inference (Ragan-Kelley et al., Halide, PLDI 2013) with one dimension that moves: from
the rows of results, that are known for every chunk, to the rows of arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, NameLoc
from xdsl.dialects.func import ReturnOp
from xdsl.dialects.tensor import InsertSliceOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from irkit.dialects.graph.base import GraphOp
from irkit.dialects.segments import unmarked
from irkit.dialects.types import ints
from irkit.passes.program.splitting.bands import Band, Unsplittable
from irkit.passes.program.splitting.rules import Needs, needs, shape_of

Root = tuple[SSAValue, Band]
"""A value, and the rows that one unit is."""


@dataclass
class Demands:
    """Of which values rows are needed, and of which all, with the op that needs it. `given`: values that are
    computed before."""

    bands: dict[SSAValue, Band] = field(default_factory=dict[SSAValue, Band])
    wholes: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    given: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])

    def rows(self, value: SSAValue, band: Band, by: str) -> None:
        """Rows of a value are needed, by an op."""
        known = self.bands.get(value, band)
        both = known.hull(band)
        if both is None:
            raise Unsplittable(
                f"{by}: chunks of what it needs are cut in two ways: {_way(known)}, and {_way(band)}"
            )
        self.bands[value] = both


def _way(band: Band) -> str:
    return f"{band.scale} rows of dimension {band.axis} for each"


def described(op: Operation) -> str:
    """An op in a message: its name, its result's, and its line in the user's file."""
    hint = op.results[0].name_hint if op.results else None
    name = f"'{op.name}'" if hint is None else f"'{op.name}' (%{hint})"
    where = unmarked(op.location)
    if isinstance(where, NameLoc):
        return f"node '{where.desc.data}' ({op.name})"
    line = line_of(op)
    return f"{name} at {line}" if line else name


def line_of(op: Operation) -> str:
    """The line of an op in the user's file; nothing where it is not known."""
    line = str(unmarked(op.location)).removeprefix("loc(").removesuffix(")").replace('"', "")
    return "" if line == "unknown" else line


def demanded(
    block: Block, roots: Sequence[Root], cut: Callable[[SSAValue], bool] = lambda value: False
) -> Demands:
    """What the rows of `roots` need. `cut` says of a value, all of which is needed, that it is given.

    Raises Unsplittable, naming the op, where rows of something need what chunks do not have.
    """
    found = Demands()
    for value, band in roots:
        found.rows(value, band, "the results")
    for op in reversed(list(block.ops)):
        if isinstance(op, ReturnOp):
            continue
        asked = [n for n, r in enumerate(op.results) if r in found.bands]
        if asked:
            _rows_needed(op, asked, found)
        causes = [found.wholes[r] for r in op.results if r in found.wholes]
        if not causes:
            continue
        if any(cut(r) for r in op.results):
            found.given.update({r: causes[0] for r in op.results if r in found.wholes})
            continue
        for value in _used(op):
            found.wholes.setdefault(value, causes[0])
    for argument in block.args:
        if argument in found.bands:
            _check_lies_together(argument, found.bands[argument])
    return found


def _rows_needed(op: Operation, asked: Sequence[int], found: Demands) -> None:
    name = described(op)
    for result in asked:
        band = found.bands[op.results[result]]
        try:
            parts = operand_rows(op, result, band)
        except Unsplittable as reason:
            raise Unsplittable(f"{name}: {reason}") from None
        for operand, part in zip(op.operands, parts, strict=True):
            if part is None:
                found.wholes.setdefault(operand, name)
            else:
                found.rows(operand, part, name)


def operand_rows(op: Operation, result: int, band: Band) -> Needs:
    """What rows of a result need of each operand. Raises Unsplittable."""
    if isinstance(op, GraphOp):
        return needs(op, result, band)
    if isinstance(op, ConstantOp):
        if isinstance(op.value, DenseIntOrFPElementsAttr) and op.value.is_splat():
            return []
        raise Unsplittable(f"a constant of shape {list(shape_of(op.result))} is no argument")
    if isinstance(op, InsertSliceOp):
        return _inserted_rows(op, band)
    raise Unsplittable("a loop has all of what it carries in each round")


def _inserted_rows(op: InsertSliceOp, band: Band) -> Needs:
    offsets, sizes = ints(op.static_offsets), ints(op.static_sizes)
    shape = shape_of(op.result)
    if len(op.operands) > 2 or len(shape_of(op.source)) != len(shape):
        raise Unsplittable("its place moves with a loop")
    if (offsets[band.axis], sizes[band.axis]) != (0, shape[band.axis]):
        raise Unsplittable(
            f"what it writes are some rows of dimension {band.axis}, along which chunks are cut"
        )
    return [band, band]


def _used(op: Operation) -> list[SSAValue]:
    """What an op needs, and the ops in it."""
    inside = {inner for inner in op.walk()}
    return [
        v
        for inner in op.walk()
        for v in inner.operands
        if v.owner not in inside
        and not (isinstance(v, BlockArgument) and v.owner.parent_op() in inside)
    ]


def leading(shape: Sequence[int]) -> int | None:
    """The outermost dimension of more than one element."""
    return next((d for d, n in enumerate(shape) if n > 1), None)


def _check_lies_together(argument: SSAValue, band: Band) -> None:
    shape = shape_of(argument)
    if math.prod(shape[: band.axis]) != 1:
        raise Unsplittable(
            f"argument %{argument.name_hint or 'arg'} of shape {list(shape)} is needed by parts of dimension "
            f"{band.axis}, which do not lie in one piece"
        )
