"""`partition-rtasks`: cut each rOperator into rTasks and choose its rKernel."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
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

from irkit.dialects.roperator_root import Root
from irkit.dialects.task import LaunchOp, ROperatorOp, VDeviceOp
from irkit.dialects.types import DYNAMIC, int_array, tensor_type
from irkit.errors import UnsupportedError
from irkit.passes.task.vdevices import vdevice_op
from irkit.remarks import applied, missed
from irkit.rkernels import families, registry
from irkit.rkernels.family import TYPICAL_ROWS
from irkit.rkernels.legality import refuses_device, refuses_scratch, root_of, target_of, why_illegal
from irkit.rkernels.rkernel import RKernel, Target
from irkit.schedule.devices import device as find_device
from irkit.schedule.model import VDevice


def grid_for(root: Root, tasks: int, rkernel: RKernel) -> list[int]:
    """A grid of at most about `tasks` parts that the rKernel can express."""
    if rkernel.grid is not None:
        return rkernel.grid(root, tasks)
    return families.find(rkernel.family).grid(root, tasks)


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


def _title(op: ROperatorOp) -> str:
    sources = f" (from {op.sources.data})" if op.sources is not None else ""
    return f"@{op.sym_name.data}{sources}"


def _root(op: ROperatorOp) -> Root:
    """The root of an rOperator. Raises UnsupportedError that names it."""
    try:
        return root_of(op)
    except UnsupportedError as error:
        raise UnsupportedError(f"{_title(op)}: {error}") from None


class Partition:
    """Chooses rKernel and grid of every rOperator of a module for one device."""

    def __init__(self, module: ModuleOp, device: VDevice) -> None:
        self.device = device
        self.target: Target = target_of(device)
        self.roperators = {op.sym_name.data: op for op in module.ops if isinstance(op, ROperatorOp)}
        self.launches = [op for op in module.walk() if isinstance(op, LaunchOp)]
        self.roots = {name: _root(op) for name, op in self.roperators.items()}

    def company(self) -> dict[str, float]:
        """Share of the device that each rOperator can count on: its part of the widest of its waves."""
        waves: dict[int, list[str]] = {}
        for launch, level in levels(self.launches).items():
            waves.setdefault(level, []).append(launch.callee.string_value())
        shares = dict.fromkeys(self.roperators, 1.0)
        for names in waves.values():
            work = {n: self._operations(n) + nbytes(self.roperators[n]) for n in names}
            total = sum(work[n] for n in names)
            for name in names:
                shares[name] = min(shares[name], work[name] / total)
        return shares

    def run(self) -> None:
        """Set `rkernel`, `parameters`, `grid` and `cost` of every rOperator."""
        shares = self.company()
        for name, op in self.roperators.items():
            rkernel, grid, cost = self.choose(op, self.roots[name], shares[name])
            text = "{} in a grid of {}, {:.0f} ns an rTask, with {:.0%} of the device"
            applied(op, "ChooseRKernel", text, rkernel.name, grid, cost, shares[name])

    def _operations(self, name: str) -> float:
        root = self.roots[name]
        return families.find(root.family).operations(root, TYPICAL_ROWS)

    def choose(self, op: ROperatorOp, root: Root, share: float) -> tuple[RKernel, list[int], float]:
        """The rKernel and grid with the least estimated time within this share of the device, written on
        `op` with the rKernel's parameters. Raises UnsupportedError if there is no legal one."""
        reasons: dict[str, None] = {}
        for _, rkernel, grid, cost in sorted(self._options(op, root, share), key=lambda o: o[0]):
            op.rkernel, op.grid = StringAttr(rkernel.name), int_array(grid)
            op.cost = FloatAttr(cost, f64)
            op.parameters = DictionaryAttr(
                {k: IntegerAttr(v, i64) for k, v in sorted(rkernel.literals(root).items())}
            )
            scratch = rkernel.scratch(root, rkernel.literals(root))
            op.scratch = IntegerAttr(scratch, i64) if scratch else None
            op.fastmath = rkernel.fastmath if rkernel.fastmath.data else None
            op.vector_bytes = op.residents = None
            reason = why_illegal(op, self.device)
            if reason is None:
                return rkernel, grid, cost
            missed(op, "ChooseRKernel", "{} in a grid of {}: {}", rkernel.name, grid, reason)
            reasons[f"{rkernel.name}: {reason}"] = None
        raise UnsupportedError(
            f"{_title(op)}: no rKernel for {self.device.name} can compute it; " + "; ".join(reasons)
        )

    def _candidates(self, op: ROperatorOp, root: Root) -> list[RKernel]:
        try:
            return registry.candidates(self.target, root)
        except UnsupportedError as error:
            raise UnsupportedError(f"{_title(op)}: {error}") from None

    def _options(
        self, op: ROperatorOp, root: Root, share: float
    ) -> Iterator[tuple[float, RKernel, list[int], float]]:
        """(time of the whole, rKernel, grid, time of an rTask), in no order."""
        # On few vEUs, most of them are better taken whole than one left to the company.
        room = max(1, round(self.device.veus * share))
        size, dynamic = nbytes(op), root.parallel[:1] == (DYNAMIC,)
        for rkernel in self._candidates(op, root):
            reason = refuses_device(rkernel, self.device) or refuses_scratch(
                rkernel, root, rkernel.literals(root), self.device
            )
            if reason is not None:
                missed(op, "ChooseRKernel", "{}: {}", rkernel.name, reason)
                continue
            family = families.find(rkernel.family)
            for tasks in _task_counts(room, dynamic=dynamic, veus=self.device.veus):
                grid = grid_for(root, tasks, rkernel)
                count = math.prod(grid)
                cost = family.task_ns(rkernel, root, grid, size, self.device)
                # Several rTasks of one wave on one vEU run one after another.
                total = (
                    cost * math.ceil(count / self.device.veus) + (count > 1) * self.device.wait_ns
                )
                yield total, rkernel, grid, cost


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
