"""`partition-rtasks`: cut each rOperator into rTasks and choose its rKernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import (
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    f64,
    i64,
)
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from irkit.dialects.products import as_product
from irkit.dialects.roots import Root, find_root
from irkit.dialects.task import LaunchOp, ROperatorOp, VDeviceOp
from irkit.dialects.types import DYNAMIC, int_array, tensor_type
from irkit.errors import UnsupportedError
from irkit.passes.task.vdevices import vdevice_op
from irkit.remarks import applied, missed
from irkit.rkernels import registry
from irkit.rkernels.registry import RKernel, Target
from irkit.schedule.devices import device as find_device
from irkit.schedule.model import VDevice

# The batch is not known when rTasks are cut; costs are compared for this many rows.
TYPICAL_ROWS = 1024


def target_of(device: VDevice) -> Target:
    """Which rKernels a device runs; the test device runs those of the CPU."""
    return "cuda" if device.kind == "cuda" else "cpu"


def task_ns(
    rkernel: RKernel, root: Root, grid: Sequence[int], nbytes: float, device: VDevice
) -> float:
    """Estimated time of one of the grid's rTasks: the slower of arithmetic and memory, and overhead."""
    tasks = math.prod(grid)
    memory = nbytes / tasks / device.bytes_per_ns
    if rkernel.part_ns is not None:
        return max(rkernel.part_ns(root, grid), memory)
    arithmetic = registry.flops(root, TYPICAL_ROWS) / tasks
    compute = arithmetic / (device.flops_per_ns * rkernel.share(root))
    return rkernel.overhead_ns + max(compute, memory)


def grid_for(root: Root, tasks: int, rkernel: RKernel) -> list[int]:
    """A grid of at most about `tasks` parts that the rKernel's `RANGE` can express."""
    if rkernel.grid is not None:
        return rkernel.grid(root, tasks)
    sizes = [tasks if s == DYNAMIC else s for s in root.parallel]
    if rkernel.family == "product" and DYNAMIC not in root.parallel:
        return _product_grid(root, tasks)
    if rkernel.family in ("gemv", "recurrent_cell") and DYNAMIC not in root.parallel:
        return [1, min(tasks, sizes[1])] + [1] * (len(sizes) - 2)
    if rkernel.family == "gemm" and len(sizes) == 2 and root.parallel[0] != DYNAMIC:
        return _tile_grid(sizes, tasks)
    return _prefix_grid(root.parallel, sizes, tasks, len(sizes) if _cuts_last(rkernel) else -1)


def _product_grid(root: Root, tasks: int) -> list[int]:
    """One loop is cut, the first of its group: where the largest part is the least work. Whole tiles
    are computed, and every part that has all columns packs them all."""
    product = as_product(root)
    assert product is not None
    grid, best = [1] * len(root.parallel), math.inf
    groups = (product.batch, product.lead, product.m, product.columns)
    for dims in groups:
        d = next((d for d in dims if product.sizes[d] > 1), None)
        if d is None:
            continue
        parts = min(tasks, product.sizes[d])
        longest = [float(math.prod(product.extents(g))) for g in groups]
        longest[groups.index(dims)] *= math.ceil(product.sizes[d] / parts) / product.sizes[d]
        batch, lead, rows, columns = longest
        work = batch * lead * (math.ceil(rows / 4) * 4 + 12) * math.ceil(columns / 16) * 16
        if work < best:
            grid, best = [parts if e == d else 1 for e in range(len(grid))], work
    return grid


def _cuts_last(rkernel: RKernel) -> bool:
    """Whether the last dimension may be cut: a softmax or forest row stays whole."""
    return rkernel.family not in ("softmax", "forest", "perfect_forest")


def _tile_grid(sizes: Sequence[int], tasks: int) -> list[int]:
    """Two-dimensional tiles, as square as the task count allows."""
    rows, columns = sizes
    best = [1, 1]
    for down in range(1, min(rows, tasks) + 1):
        across = min(columns, tasks // down)
        edge = abs(math.log((rows / down) / (columns / across)))
        if down * across > best[0] * best[1] or (
            down * across == best[0] * best[1]
            and edge < abs(math.log((rows / best[0]) / (columns / best[1])))
        ):
            best = [down, across]
    return best


def _prefix_grid(shape: Sequence[int], sizes: Sequence[int], tasks: int, last: int) -> list[int]:
    """Leading dimensions one by one, then parts of the first that is too long for that."""
    grid = [1] * len(sizes)
    left = tasks
    stop = len(sizes) if last < 0 else last
    if last < 0 and len(sizes) > 1:
        stop = len(sizes) - 1
    for d in range(stop):
        grid[d] = min(sizes[d], left)
        if grid[d] < sizes[d] or shape[d] == DYNAMIC:
            break
        left //= sizes[d]
        if left <= 1:
            break
    return grid


def levels(launches: Sequence[LaunchOp]) -> dict[LaunchOp, int]:
    """Kahn level of each launch: how many launches must come before it."""
    depth: dict[Operation, int] = {}
    found: dict[LaunchOp, int] = {}
    parent = launches[0].parent if launches else None
    for op in parent.ops if parent is not None else ():
        before = [depth[v.owner] for v in op.operands if isinstance(v.owner, Operation)]
        depth[op] = max(before, default=0) + isinstance(op, LaunchOp)
        if isinstance(op, LaunchOp):
            found[op] = depth[op]
    return found


def nbytes(op: ROperatorOp) -> float:
    """Bytes of all operands and results, the batch being TYPICAL_ROWS."""
    total = 0.0
    for value in (*op.body.block.args, *op.terminator.values):
        t = tensor_type(value)
        size = getattr(t.element_type, "bitwidth", 64) / 8
        for extent in t.get_shape():
            size *= TYPICAL_ROWS if extent == DYNAMIC else extent
        total += size
    return total


class Partition:
    """Chooses rKernel and grid of every rOperator of a module for one device."""

    def __init__(self, module: ModuleOp, device: VDevice) -> None:
        self.device = device
        self.target: Target = target_of(device)
        self.roperators = {op.sym_name.data: op for op in module.ops if isinstance(op, ROperatorOp)}
        self.launches = [op for op in module.walk() if isinstance(op, LaunchOp)]
        self.roots = {name: find_root(op.body.block) for name, op in self.roperators.items()}

    def company(self) -> dict[str, float]:
        """Share of the device that each rOperator can count on: its part of the widest of its waves."""
        waves: dict[int, list[str]] = {}
        for launch, level in levels(self.launches).items():
            waves.setdefault(level, []).append(launch.callee.string_value())
        shares = dict.fromkeys(self.roperators, 1.0)
        for names in waves.values():
            work = {
                n: registry.flops(self.roots[n], TYPICAL_ROWS) + nbytes(self.roperators[n])
                for n in names
            }
            total = sum(work[n] for n in names)
            for name in names:
                shares[name] = min(shares[name], work[name] / total)
        return shares

    def run(self) -> None:
        """Set `rkernel`, `parameters`, `grid` and `cost` of every rOperator."""
        shares = self.company()
        for name, op in self.roperators.items():
            root = self.roots[name]
            rkernel, grid, cost = self.choose(op, root, shares[name])
            text = "{} in a grid of {}, {:.0f} ns an rTask, with {:.0%} of the device"
            applied(op, "ChooseRKernel", text, rkernel.name, grid, cost, shares[name])
            op.rkernel = StringAttr(rkernel.name)
            op.grid = int_array(grid)
            op.cost = FloatAttr(cost, f64)
            op.parameters = DictionaryAttr(
                {k: IntegerAttr(v, i64) for k, v in sorted(rkernel.literals(root).items())}
            )

    def choose(self, op: ROperatorOp, root: Root, share: float) -> tuple[RKernel, list[int], float]:
        """The rKernel and grid with the least estimated time within this share of the device."""
        # On few vEUs, most of them are better taken whole than one left to the company.
        room = max(1, round(self.device.veus * share))
        size, best = nbytes(op), None
        for rkernel in registry.candidates(self.target, root):
            if self.device.kind == "test" and rkernel.scratch(root) > self.device.shared_bytes:
                missed(op, "ChooseRKernel", "{} wants more shared memory", rkernel.name)
                continue
            for tasks in _task_counts(
                room, dynamic=root.parallel[:1] == (DYNAMIC,), veus=self.device.veus
            ):
                grid = grid_for(root, tasks, rkernel)
                count = math.prod(grid)
                cost = task_ns(rkernel, root, grid, size, self.device)
                # Several rTasks of one wave on one vEU run one after another.
                total = (
                    cost * math.ceil(count / self.device.veus) + (count > 1) * self.device.wait_ns
                )
                if best is None or total < best[0]:
                    best = (total, rkernel, grid, cost)
        assert best is not None
        return best[1], best[2], best[3]


def _task_counts(room: int, dynamic: bool, veus: int) -> list[int]:
    """Counts worth trying: all of the room, and halves of it. A batch is shared by all vEUs, so that
    one share is on the same vEU in every rOperator."""
    if dynamic:
        return [veus]
    counts = {room}
    while room > 1:
        room = (room + 1) // 2
        counts.add(room)
    return sorted(counts)


@dataclass(frozen=True)
class PartitionRTasks(ModulePass):
    """Cut every rOperator into rTasks for `device`, and choose its rKernel from the cost table.

    An rOperator gets as many rTasks as its share of the device in company: the vEUs divided among
    the launches of its widest wave, by their work (the lesson of Rammer's figure 17: the fastest
    kernel alone is often not the best in company). A row-wise program's batch is cut into one share
    per vEU. Adds `grid`, `rkernel`, `parameters` and `cost`, and a `task.vdevice`; changes no body.

    ```mlir
    task.roperator @gemm_0(%x, %w) {...}
    ```
    becomes
    ```mlir
    task.vdevice @h200 {...}
    task.roperator @gemm_0(%x, %w) attributes {grid = array<i64: 4, 8>, rkernel = "gemm.tiled", ...} {...}
    ```
    """

    name = "partition-rtasks"
    requires: ClassVar[tuple[str, ...]] = ("task",)
    produces: ClassVar[str] = "partitioned"
    device: str = "cpu"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        try:
            device = find_device(self.device)
            Partition(op, device).run()
        except UnsupportedError as error:
            raise PassFailedException(str(error)) from None
        if not any(isinstance(o, VDeviceOp) for o in op.ops):
            first = op.body.block.first_op
            if first is not None:
                op.body.block.insert_op_before(vdevice_op(device), first)
