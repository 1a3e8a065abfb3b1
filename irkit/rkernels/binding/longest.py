"""Which rTasks of an rOperator take the longest, where its rows have more and more to do.

On a GPU blocks start in the order of their numbers: where the longest start first, the short ones fill what
the others leave (R. L. Graham, "Bounds on Multiprocessing Timing Anomalies", 1969). An rTask's number, and so
what it reads and writes, stays what it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Longest:
    """rTasks that are the `parts` parts of one dimension, `step` rTasks from each to the next, times `others`
    of the other dimensions: those of the last part take the longest if `last`, else those of the first."""

    parts: int
    step: int
    others: int
    last: bool = True

    @staticmethod
    def of(grid: Sequence[int], dimension: int, last: bool = True) -> Longest | None:
        """Of a dimension of a grid; None where its order is that of the rTasks already."""
        parts, step = grid[dimension], math.prod(grid[dimension + 1 :])
        others = math.prod(grid) // parts
        if parts == 1 or (not last and others == step):
            return None
        return Longest(parts, step, others, last)

    def lines(self, block: str) -> list[str]:
        """Text that gives `block`, a name, the rTask of the block of that number."""
        part = f"{self.parts - 1} - {block}_part" if self.last else f"{block}_part"
        return [
            f"{block}_part, {block}_rest = divide({block}, {self.others})",
            f"{block}_outer, {block}_inner = divide({block}_rest, {self.step})",
            f"{block} = ({block}_outer * {self.parts} + {part}) * {self.step} + {block}_inner",
        ]
