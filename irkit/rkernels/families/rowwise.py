"""`rowwise` and `row_sums`: elements that hang on sums along their rows, or what is made of such sums."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import BlockArgument, Operation, SSAValue

from irkit.dialects.roperator_root import Root
from irkit.dialects.rowwise import RowwiseOp
from irkit.dialects.types import numpy_dtype
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.fours import fours
from irkit.rkernels.binding.row_scratch import ScratchRows
from irkit.rkernels.binding.row_sweeps import RowPrinter, kept, sweeps_of
from irkit.rkernels.families.whole_rows import WholeRows
from irkit.rkernels.family import leading_parts
from irkit.rkernels.fused_work import scalar_counts
from irkit.rkernels.work import Part, Work, work


def sums(root: Root) -> int:
    """How many sums along a row there are."""
    return sum(len(ops) for ops in sweeps_of(root).reductions)


def words_kept(root: Root) -> int:
    """How many words of 32 bits are kept of each element."""
    found = kept(sweeps_of(root))
    return sum(max(1, numpy_dtype(v.type).itemsize // 4) for v in found)


def columns(root: Root) -> int:
    """Elements of a row."""
    return sweeps_of(root).op.columns


def rows(part: Part) -> float:
    """Rows of a part."""
    return part.elements if sweeps_of(part.root).op.sums_up else part.rows


def arithmetic(part: Part, together: int, held: bool) -> Work:
    """What all elements of a part cost; where nothing is `held`, each sweep has all that it needs anew."""
    sweeps, body = sweeps_of(part.root), sweeps_of(part.root).op.body.block
    there = set[SSAValue](kept(sweeps) if held else ())
    known, each = set[SSAValue](), Work()
    for values in sweeps.terms:
        needed = sweeps.needed(values, there & known)
        fresh = needed - known if held else needed
        for value in fresh & set(body.args):
            assert isinstance(value, BlockArgument)
            each = each + part.load(sweeps.op.inputs[value.index]) * (1 / together)
        made = [v.owner for v in needed - known if isinstance(v.owner, Operation)]
        each = each + Work(dict(scalar_counts(made)))
        known |= there & needed
    # What is alike in a row is had once.
    apart = part.store if sweeps.op.sums_up else Work()
    each = each if sweeps.op.sums_up else each + part.store
    return each * (rows(part) * sweeps.op.columns) + (
        work(divide=len(sweeps.reductions)) + apart
    ) * rows(part)


class Rowwise(WholeRows):
    """`RANGE` of whole rows, and `ROW(OPERANDS, r, end, first, scratch)`: ROWS rows from r on, none from
    `end` on, by LANES threads, of which this is `first`, with PIECES times TOGETHER elements each. On a CPU
    `ROW(OPERANDS, r, scratch)`."""

    name = "rowwise"
    op = RowwiseOp
    called = "computation of rows"

    def refuses(self, root: Root) -> str | None:
        """Another root, or one of another shape. Results are of any elements, sums are of floats."""
        return None if root.family == self.name else f"its root is of family '{root.family}'"

    def bind(self, binder: Binder) -> None:
        """The body, as the rKernel's parameters say."""
        op = binder.root.op
        if not isinstance(op, RowwiseOp):
            raise UnsupportedError("a computation of rows of another root")
        binder.range()
        if op.sums_up:
            binder.store("r, acc", lambda p: binder.index("r", "0", p), binder.accumulated)
        else:
            binder.store("r, j, acc", binder.rj_index, binder.accumulated)
        sweeps = sweeps_of(binder.root)
        operands = binder.binding.operands
        if binder.target == "cpu":
            lines = ScratchRows(binder, sweeps).print()
            return binder.binding.function("ROW", f"{operands}, r, scratch", lines)
        lanes, pieces = binder.parameter("LANES"), binder.parameter("PIECES")
        together, rows = binder.parameter("TOGETHER"), binder.parameter("ROWS")
        if together > 1 and not op.sums_up:
            fours(binder, binder.rj_index, of_sums=True)
            binder.binding.functions.append(binder.binding.parts.pop("STORE_FOUR"))

        def join(kind: str, value: str, number: int) -> str:
            name = {"add": "sum", "max": "maximum", "min": "minimum"}[kind]
            if lanes < 32:
                return f"lanes_{name}({value}, {lanes})"
            if lanes == 32:
                return f"warp_{name}({value})"
            warps = lanes // 32
            return f"block_{name}({value}, shared_of({value}, scratch + {8 * warps * number}), {warps})"

        printer = RowPrinter(binder, sweeps, lanes, pieces, together, rows, join)
        binder.binding.function("ROW", f"{operands}, r, end, first, scratch", printer.print())


class RowSums(Rowwise):
    """`rowwise` with one element for each row: all of the root's dimensions are rows."""

    name = "row_sums"

    def grid(self, root: Root, tasks: int) -> list[int]:
        """Any dimension may be cut."""
        return leading_parts(root, tasks)

    def refuses_grid(self, root: Root, grid: Sequence[int]) -> str | None:
        """None: rows are not among what is cut."""
        return None
