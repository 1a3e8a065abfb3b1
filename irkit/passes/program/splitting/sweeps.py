"""What is computed in one go over all chunks, and what before and after: data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.func import FuncOp
from xdsl.dialects.tensor import InsertSliceOp
from xdsl.ir import BlockArgument, SSAValue

from irkit.dialects.graph import ReduceOp
from irkit.dialects.types import ints
from irkit.passes.program.splitting.bands import Band
from irkit.passes.program.splitting.demands import Demands, Root
from irkit.passes.program.splitting.rules import shape_of


@dataclass(frozen=True)
class Write:
    """Rows of result `result`: unit i of `value`, the rows `band` of it, go to the rows from
    `first + band.first(i)` on of the result, under `shape`. With `insert` they may be a part of each row, and
    what is under it has the rest. `over`: another write of the result goes before."""

    result: int
    value: SSAValue
    band: Band
    units: int
    first: int = 0
    insert: InsertSliceOp | None = None
    over: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape under which the result has rows."""
        return shape_of(self.value if self.insert is None else self.insert.result)

    @property
    def axis(self) -> int:
        """The dimension of its rows there."""
        return self.band.axis

    @property
    def fills_rows(self) -> bool:
        """Whether its rows are all that is in rows of the result."""
        if self.insert is None:
            return True
        sizes = ints(self.insert.static_sizes)
        return all(d == self.axis or n == self.shape[d] for d, n in enumerate(sizes))

    @property
    def under(self) -> Band:
        """The rows of what is under an insertion."""
        band, at = self.band, self.first
        return Band(band.axis, band.scale, band.low + at, band.high + at)


@dataclass(frozen=True)
class Merge:
    """A reduction over dimension `band.axis` of its operand, of which each chunk has a part."""

    op: ReduceOp
    band: Band
    units: int


@dataclass
class Ended:
    """A value that hangs on merged ones, and what it needs: it is computed when these are there."""

    value: SSAValue
    merges: list[Merge]
    arguments: list[BlockArgument]
    level: int


@dataclass
class Sweep:
    """One time over the arguments: all chunks compute these rows, and these parts of reductions."""

    level: int
    units: int
    writes: list[Write] = field(default_factory=list[Write])
    merges: list[Merge] = field(default_factory=list[Merge])
    demands: Demands = field(default_factory=Demands)

    @property
    def roots(self) -> list[Root]:
        """What it computes."""
        return roots_of(self.writes, self.merges)


@dataclass
class SplitPlan:
    """Sweeps in order of their levels. `ended` results, by number, and values that later sweeps are `given`
    are computed from what was merged, when the sweeps of their level are done. `bases` are what there is of
    results before any sweep, which only write a part of them."""

    function: FuncOp
    sweeps: list[Sweep]
    ended: dict[int, Ended]
    given: dict[SSAValue, Ended]
    bases: dict[int, Ended]


def roots_of(writes: Sequence[Write], merges: Sequence[Merge]) -> list[Root]:
    """The rows of values that writes and merges need."""
    found: list[Root] = []
    for write in writes:
        found.append((write.value, write.band))
        if write.insert is not None and not write.fills_rows:
            found.append((write.insert.dest, write.under))
    return found + [(m.op.x, m.band) for m in merges]
