"""What a family of rKernels is: a view of a root, the grids that fit it, and what its templates are given."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32, f64

from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.rkernels.work import TYPICAL_ROWS, Part, Work, work

if TYPE_CHECKING:
    from irkit.rkernels.binding.binder import Binder
    from irkit.rkernels.rkernel import RKernel
    from irkit.schedule.model import VDevice

FLOATS = (f32, f64)


class Family(ABC):
    """One way to look at roots, for all rKernels of a name, on every target.

    A derived class says in `refuses` which roots it can look at so, in `grid` and `refuses_grid` how they
    may be cut, and in `bind` what the placeholders of its templates become (docs/emission.md). The rest has
    an answer that serves most families. `irkit.rkernels.families.register` makes one known.
    """

    name: str

    @abstractmethod
    def refuses(self, root: Root) -> str | None:
        """Why `root` cannot be seen so; None if it can."""

    @abstractmethod
    def bind(self, binder: Binder) -> None:
        """Give every placeholder of the family's templates its meaning.

        Raises UnsupportedError where the body has what the family cannot express.
        """

    def grid(self, root: Root, tasks: int) -> list[int]:
        """A grid of at most about `tasks` parts."""
        return leading_parts(root, tasks)

    def refuses_grid(self, root: Root, grid: Sequence[int]) -> str | None:
        """Why `bind` could not express a grid of the root's rank; None if it can."""
        return None

    def operations(self, root: Root, rows: int) -> float:
        """Arithmetic operations of the whole root, the batch being `rows`."""
        total = 2.0
        for size in (*root.parallel, *root.reduction):
            total *= rows if size == DYNAMIC else size
        return total * max(len(root.chain), 1)

    def task_ns(
        self,
        rkernel: RKernel,
        root: Root,
        grid: Sequence[int],
        nbytes: float,
        device: VDevice,
        batch: int = TYPICAL_ROWS,
    ) -> float:
        """Estimated time of the largest of the grid's rTasks: its work by the device's rates.

        `nbytes`: bytes of all operands and results; `batch`: rows, where they are not known. Raises
        UnsupportedError for work that has no rate.
        """
        return self.task_work(rkernel, root, grid, nbytes, device, batch).nanoseconds(device)

    def task_work(
        self,
        rkernel: RKernel,
        root: Root,
        grid: Sequence[int],
        nbytes: float,
        device: VDevice,
        batch: int = TYPICAL_ROWS,
    ) -> Work:
        """What the largest of the grid's rTasks does."""
        tasks = math.prod(grid)
        common = work(start=1, byte=nbytes / (tasks * rkernel.blocks(root)))
        if rkernel.work is not None:
            return common + rkernel.work(Part(root, grid, device.threads, batch))
        products = self.operations(root, batch) / 2 / tasks
        return common + work(fma=products / rkernel.efficiency)


def leading_parts(root: Root, tasks: int, whole_rows: bool = False) -> list[int]:
    """Leading dimensions one by one, then parts of the first that is too long for that.

    With `whole_rows` the last dimension is not cut, unless it is the only one.
    """
    sizes = [tasks if s == DYNAMIC else s for s in root.parallel]
    grid = [1] * len(sizes)
    left = tasks
    stop = len(sizes) - 1 if whole_rows and len(sizes) > 1 else len(sizes)
    for d in range(stop):
        grid[d] = min(sizes[d], left)
        if grid[d] < sizes[d] or root.parallel[d] == DYNAMIC:
            break
        left //= sizes[d]
        if left <= 1:
            break
    return grid


def cuts_rows(root: Root, grid: Sequence[int]) -> str | None:
    """The reason of families that compute the last dimension at once."""
    if grid and grid[-1] > 1 and root.parallel[-1] != DYNAMIC:
        return "a row stays whole: the last dimension cannot be cut"
    return None


def of_floats(root: Root) -> str | None:
    """The reason of families whose templates know float32 and float64 alone."""
    assert root.value is not None
    element = tensor_type(root.value).element_type
    return None if element in FLOATS else f"sums of {element}: only those of f32 and f64"
