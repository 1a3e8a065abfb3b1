"""`partition-rtasks`: the ways to cut each rOperator into rTasks, and their rKernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from irkit.dialects import te
from irkit.dialects.linalg_generic import row_term
from irkit.dialects.loop import ScheduleAttr, schedule_on
from irkit.dialects.roperator_root import Root
from irkit.dialects.task import AlternativeAttr, LaunchOp, ROperatorOp, VDeviceOp
from irkit.dialects.tensor_ops.registry import in_memory
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.errors import DeviceError, UnsupportedError
from irkit.expressions.syntax import ExpressionError
from irkit.passes.task.candidates import Candidate, alone_ns, front, shortlist
from irkit.passes.task.launch_constants import launches_of
from irkit.passes.task.vdevices import vdevice_op
from irkit.remarks import applied, missed
from irkit.rkernels import families, registry
from irkit.rkernels.accesses import appends_listed
from irkit.rkernels.family import TYPICAL_ROWS
from irkit.rkernels.legality import refuses_device, refuses_scratch, root_of, target_of, why_illegal
from irkit.rkernels.rkernel import RKernel, Target
from irkit.rkernels.scheduled.costs import nest_ns
from irkit.rkernels.scheduled.layouts import layout_of
from irkit.rkernels.scheduled.rules import plain_schedule
from irkit.schedule.block_memory import WALKER_ROOM, aligned
from irkit.schedule.devices import device as find_device
from irkit.schedule.model import VDevice


def grid_for(root: Root, tasks: int, rkernel: RKernel) -> list[int]:
    """A grid of at most about `tasks` parts that the rKernel can express."""
    if rkernel.grid is not None:
        return rkernel.grid(root, tasks)
    return families.find(rkernel.family).grid(root, tasks)


def nbytes(op: ROperatorOp, batch: int = TYPICAL_ROWS) -> float:
    """Bytes of all operands and results, the batch being so many rows; none of operands in whose place packed
    ones are read (`te.prepacked`)."""
    read = [v for v in op.body.block.args if not _is_packed_beside(v)]
    total = 0.0
    for value in (*read, *op.terminator.values):
        t = tensor_type(value)
        size = getattr(t.element_type, "bitwidth", 64) / 8
        for extent in t.get_shape():
            size *= batch if extent == DYNAMIC else extent
        total += size
    return total


def _is_packed_beside(value: SSAValue) -> bool:
    return all(isinstance(use.operation, te.PrepackedOp) and use.index == 0 for use in value.uses)


def _title(op: ROperatorOp) -> str:
    sources = f" (from {op.sources.data})" if op.sources is not None else ""
    return f"@{op.sym_name.data}{sources}"


def _root(op: ROperatorOp) -> Root:
    """The root of an rOperator. Raises UnsupportedError that names it."""
    try:
        return root_of(op)
    except UnsupportedError as error:
        raise UnsupportedError(f"{_title(op)}: {error}") from None


BATCHES = (1, 32, TYPICAL_ROWS, 16 * TYPICAL_ROWS, 512 * TYPICAL_ROWS)
"""Rows that a program with an open batch is to be good for, the most as many as a device is full with."""


def _alternatives(
    root: Root, offered: Sequence[Candidate], measured: bool
) -> dict[Candidate, AlternativeAttr]:
    """What an rOperator says of each; what they cost by rows where there is a choice that hangs on it, or
    where it is to be measured."""
    return {
        one: one.alternative(
            root,
            dict(zip(BATCHES, one.by_batch, strict=True))
            if one.by_batch and (measured or len(offered) > 1)
            else None,
        )
        for one in offered
    }


def _any(rkernel: RKernel) -> bool:
    return True


class Partition:
    """Offers rKernels and grids for every rOperator of a module, for one device.

    With `most`, so many at most are offered to be measured, and not only the fastest by estimate.
    """

    def __init__(self, module: ModuleOp, device: VDevice, most: int = 0) -> None:
        self.device, self.most = device, most
        self.target: Target = target_of(device)
        self.module = module
        self._known_uses = dict[ROperatorOp, int]()
        self.roperators = {op.sym_name.data: op for op in module.ops if isinstance(op, ROperatorOp)}

    def run(self) -> None:
        """Set `alternatives` of every rOperator; what was chosen of it is taken back.

        Raises UnsupportedError for one that no rKernel can compute.
        """
        with appends_listed(self.module):
            self._offer()

    def _offer(self) -> None:
        for op in self.roperators.values():
            offered = self.alternatives(op)
            op.offer(offered)
            text = "{} alternatives; the fastest alone is {} in a grid of {}, {:.0f} ns an rTask"
            best = offered[0]
            applied(
                op, "OfferRKernels", text, len(offered), best.rkernel, list(best.grid), best.cost_ns
            )

    def alternatives(self, op: ROperatorOp) -> list[AlternativeAttr]:
        """What is fastest on some number of vEUs, and legal, the fastest alone first.

        Raises UnsupportedError if there is no legal one.
        """
        root = _root(op)
        candidates = list(self._candidates(op, root))
        reasons: dict[str, None] = {}
        while candidates:
            offered = _alternatives(root, self._offered(candidates), measured=self.most > 0)
            refused = {
                one: r for one, a in offered.items() if (r := self._refuses(op, a)) is not None
            }
            if not refused:
                return list(offered.values())
            for one, reason in refused.items():
                name, grid = one.rkernel.name, list(one.grid)
                missed(op, "OfferRKernels", "{} in a grid of {}: {}", name, grid, reason)
                reasons[f"{name}: {reason}"] = None
            candidates = [one for one in candidates if one not in refused]
        raise self._none(op, reasons)

    def fastest_ns(self, op: ROperatorOp, wanted: Callable[[RKernel], bool] = _any) -> float:
        """The estimated time of an rOperator that has the device to itself, in ns, in the fastest legal way
        by an rKernel that is `wanted`.

        Asks for what is legal until the first that is: `alternatives` asks of all that it offers. Raises
        UnsupportedError if there is no legal one.
        """
        root = _root(op)
        candidates = list(self._candidates(op, root, wanted))
        reasons: dict[str, None] = {}
        while candidates:
            best = front(candidates, self.device)[0]
            reason = self._refuses(op, best.alternative(root))
            if reason is None:
                return alone_ns(best, self.device)
            reasons[f"{best.rkernel.name}: {reason}"] = None
            candidates.remove(best)
        raise self._none(op, reasons)

    def _none(self, op: ROperatorOp, reasons: Iterable[str]) -> UnsupportedError:
        said = f"{_title(op)}: no rKernel for {self.device.name} can compute it; "
        return UnsupportedError(said + "; ".join(reasons))

    def _offered(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """What is the fastest on some number of vEUs, or so many to be measured, the fastest alone first."""
        if self.most:
            return shortlist(candidates, self.device, self.most)
        return front(candidates, self.device)

    def _refuses(self, op: ROperatorOp, alternative: AlternativeAttr) -> str | None:
        op.choose(alternative)
        return why_illegal(op, self.device)

    def _rkernels(self, op: ROperatorOp, root: Root) -> Iterator[RKernel]:
        """Those that take the root on this device."""
        try:
            found = registry.candidates(self.target, root)
        except UnsupportedError as error:
            raise UnsupportedError(f"{_title(op)}: {error}") from None
        said = schedule_on(root.op)
        if said is not None:
            found = [k for k in found if k.schedules is not None]
            if not found:
                reason = (
                    families.find("generated").refuses(root) or f"no such rKernel for {self.target}"
                )
                raise UnsupportedError(f"{_title(op)}: it is to be run by a schedule: {reason}")
        for rkernel in found:
            reason = (
                refuses_device(rkernel, self.device)
                or refuses_scratch(rkernel, root, rkernel.literals(root), self.device)
                or self._refuses_to_keep(rkernel, op, root)
            )
            if reason is None:
                yield rkernel
            else:
                missed(op, "OfferRKernels", "{}: {}", rkernel.name, reason)

    def _candidates(
        self, op: ROperatorOp, root: Root, wanted: Callable[[RKernel], bool] = _any
    ) -> Iterator[Candidate]:
        """All rKernels that are wanted in all grids worth trying."""
        dynamic = root.parallel[:1] == (DYNAMIC,)
        counts = task_counts(self.device.veus, dynamic=dynamic)
        size, sizes = nbytes(op), {n: nbytes(op, n) for n in BATCHES if dynamic}
        for rkernel in filter(wanted, self._rkernels(op, root)):
            if rkernel.schedules is not None:
                if self.most or schedule_on(root.op) is not None:
                    yield from self._scheduled(rkernel, op, root, counts)
                continue
            family = families.find(rkernel.family)
            # The most parts first: what is found on the way to them serves fewer.
            grids = [tuple(grid_for(root, n, rkernel)) for n in reversed(counts)]
            for grid in dict.fromkeys(reversed(grids)):
                more = self._read_by_all(rkernel, op, root, math.prod(grid))
                cost = family.task_ns(rkernel, root, grid, size + more, self.device)
                by_batch = [
                    family.task_ns(rkernel, root, grid, of_rows + more, self.device, n)
                    for n, of_rows in sizes.items()
                ]
                yield Candidate(rkernel, grid, cost, tuple(by_batch))

    def _refuses_to_keep(self, rkernel: RKernel, op: ROperatorOp, root: Root) -> str | None:
        """Why what it wants to keep in shared memory cannot stay there."""
        if rkernel.keeps is None:
            return None
        if not self._uses(op, root):
            return "what it keeps is no constant"
        kept, scratch = rkernel.keeps(root), rkernel.scratch(root, rkernel.literals(root))
        room = self.device.shared_bytes - WALKER_ROOM - aligned(scratch)
        return None if kept <= room else f"{kept} bytes to keep, {self.device.name} has {room}"

    def _read_by_all(self, rkernel: RKernel, op: ROperatorOp, root: Root, tasks: int) -> float:
        """Bytes that rTasks read beside one another's share of all operands: what each keeps whole, once for
        all launches that use it."""
        if rkernel.keeps is None:
            return 0.0
        kept = rkernel.keeps(root)
        return tasks * kept / self._uses(op, root) - kept

    def _uses(self, op: ROperatorOp, root: Root) -> int:
        """How many launches read the same constants as a launch does as factors of its chain of products, at
        least; 0 where some are no constants."""
        if op not in self._known_uses:
            args = [in_memory(term.w) for o in root.chain if (term := row_term(o)) is not None]
            read = [
                _constant_uses(launch.arguments[a.index]) if a is not None else 0
                for launch in launches_of(self.module, op)
                for a in args
            ]
            self._known_uses[op] = min(read, default=0)
        return self._known_uses[op]

    def _scheduled(
        self, rkernel: RKernel, op: ROperatorOp, root: Root, counts: Sequence[int]
    ) -> Iterator[Candidate]:
        """The schedule that the root says, or those of the rule: one for each grid where none is measured.
        By estimate alone what is generated is taken where it is asked for; templates were measured.

        Raises UnsupportedError for one that the root cannot be run by.
        """
        assert rkernel.schedules is not None
        said, seen = schedule_on(root.op), set[ScheduleAttr]()
        by_rule = said is not None and said.schedule.by_rule
        if by_rule:
            said = None
        if said is not None:
            counts = counts[-1:]
        elif not self.most:
            # The rule finds tiles for every count, which takes its time.
            counts = sorted({max(counts[-1] // parts, 1) for parts in (1, 2, 4, 16)})
        for count in counts:
            offered = [said] if said is not None else rkernel.schedules(root, count, self.device)
            if by_rule and not offered:
                offered = [plain_schedule(root, count)]
            layouts = [(s, layout_of(self.target, root, s)) for s in offered]
            ranked = sorted(
                ((nest_ns(root, layout, nbytes(op), self.device), s) for s, layout in layouts),
                key=lambda found: found[0],
            )
            for cost, one in ranked if self.most else ranked[:1]:
                if one not in seen:
                    seen.add(one)
                    grid = tuple(layout_of(self.target, root, one).nest.grid)
                    yield Candidate(rkernel, grid, cost, schedule=one)


def _constant_uses(value: SSAValue) -> int:
    """How many launches read a constant; 0 of what is none."""
    if not isinstance(value.owner, arith.ConstantOp):
        return 0
    return sum(isinstance(use.operation, LaunchOp) for use in value.uses)


def task_counts(veus: int, dynamic: bool) -> list[int]:
    """Counts worth trying: the device, a half, a third, a quarter of it and so on. A batch is shared by all
    vEUs, so that one share is on the same vEU in every rOperator."""
    return [veus] if dynamic else sorted({veus // parts for parts in range(1, veus + 1)})


@dataclass(frozen=True)
class PartitionRTasks(ModulePass):
    """Offer ways to cut every rOperator into rTasks for `device`: rKernel, grid, and cost by the cost table.

    Of all rKernels and grids, those are offered that are the fastest on some number of vEUs, and legal
    (docs/emission.md). Which of them a launch is run by, the scheduling policy decides, in the company of the
    launches beside it. A row-wise program's batch is cut into one share per vEU; where another rKernel is
    much faster for few rows than the one for many, both are offered, with their `costs` for several
    `batches`. With `candidates`, that many at most are offered, near misses too, of which `measure-rtasks`
    finds the fastest.
    Adds `alternatives`, and a `task.vdevice`; changes no body.

    ```mlir
    task.roperator @gemm_0(%x, %w) {...}
    ```
    becomes
    ```mlir
    task.vdevice @h200 {...}
    task.roperator @gemm_0(%x, %w) attributes {alternatives = [
        #task.alternative<{rkernel = "gemm.tiled", grid = array<i64: 4, 32>, cost = 900.0 : f64, ...}>,
        #task.alternative<{rkernel = "gemm.tiled", grid = array<i64: 4, 8>, cost = 3200.0 : f64, ...}>]} {...}
    ```
    """

    name = "partition-rtasks"
    requires: ClassVar[tuple[str, ...]] = ("task",)
    produces: ClassVar[str] = "partitioned"
    device: str = "cpu"
    candidates: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        try:
            device = find_device(self.device)
            if self.candidates < 0:
                raise PassFailedException(f"candidates = {self.candidates}: expected 0 or more")
            Partition(op, device, self.candidates).run()
        except ExpressionError:
            # It says where in the schedule, in lines of its own.
            raise
        except (UnsupportedError, DeviceError) as error:
            raise PassFailedException(str(error)) from None
        if not any(isinstance(o, VDeviceOp) for o in op.ops):
            first = op.body.block.first_op
            if first is not None:
                op.body.block.insert_op_before(vdevice_op(device), first)
