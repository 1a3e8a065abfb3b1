"""A schedule as plain data: buffers, launches, appends. No IR types here.

Words are Rammer's: a *launch* is one use of an rOperator, cut into rTasks; an *append* places the
rTasks of a launch on a range of vEUs and says which earlier appends they wait for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from irkit.architectures import ARCHITECTURES, Architecture
from irkit.errors import UnsupportedError
from irkit.row_ranges import cost_at

Space = Literal["arena", "rows", "input", "output", "constant", "state"]
Boxes = NDArray[np.int64]


@dataclass(frozen=True)
class VDevice:
    """A machine as the scheduler sees it.

    `veus` execution units that are all resident at once; `threads` per vEU; `shared_bytes` of
    scratchpad per vEU (0 on a CPU); `wait_ns` is what a wait between two vEUs costs. A GPU has
    `multiprocessors`, `l2_bytes` of second-level cache, and an `arch`, the target that its machine code is
    made for ("sm_90a"). `rates` are what costs are computed from: nanoseconds that a vEU takes for a unit of
    each kind of work (`irkit/dialects/task/rates.py`); `rates_from` names the machine whose rates they were
    estimated from, and is empty where they are its own.
    """

    name: str
    kind: Literal["cpu", "cuda", "test", "host"]
    veus: int
    threads: int
    shared_bytes: int
    wait_ns: float
    multiprocessors: int = 0
    rates: Mapping[str, float] = field(default_factory=dict[str, float], hash=False)
    arch: str = ""
    l2_bytes: int = 0
    rates_from: str = ""

    def __post_init__(self) -> None:
        """Raises UnsupportedError for a GPU of an architecture that irkit does not know."""
        if self.kind == "cuda":
            _ = self.architecture

    def rate(self, name: str) -> float:
        """Nanoseconds of one unit of a kind of work. Raises UnsupportedError if that has no price here."""
        if name not in self.rates:
            raise UnsupportedError(f"costs on device '{self.name}': it has no rate '{name}'")
        return self.rates[name]

    @property
    def architecture(self) -> Architecture:
        """Limits and instructions of a GPU. Raises UnsupportedError for what is none."""
        if self.arch not in ARCHITECTURES:
            raise UnsupportedError(
                f"device '{self.name}' of architecture '{self.arch}': there are {', '.join(ARCHITECTURES)}"
            )
        return ARCHITECTURES[self.arch]

    @property
    def capability(self) -> tuple[int, int]:
        """Compute capability of a GPU, (9, 0); (0, 0) where there is none."""
        return self.architecture.capability if self.arch else (0, 0)

    @property
    def bytes_per_ns(self) -> float:
        """What a vEU moves. Raises UnsupportedError without a rate."""
        return 1 / self.rate("byte")


@dataclass(frozen=True)
class Buffer:
    """Where a tensor lives.

    `space` "arena", "rows" and "constant" are planned: `offset` is in bytes, or in bytes per row of the
    batch for "rows" (its leading dimension is the batch, and every such offset and size scales with it
    alike). A view shares the bytes of `parent` starting `parent_offset` bytes (or bytes per row) into it.
    `shape` has -1 for the batch dimension; an input of 1×-1 has a length of its own, on which nothing hangs
    here (what rows of a CSR matrix have stored). For accesses, a "rows" buffer's leading dimension is
    counted in shares: share i of N is rows [i*n/N, (i+1)*n/N).

    `element` is the NumPy name of its elements' type; `port` the number of an input, output or pair of
    state, `source` the name of a constant. "state" lasts from run to run: when a run starts it is what the
    function takes as the pair's argument, and in the end what it returns as the pair's result.
    """

    name: str
    space: Space
    shape: tuple[int, ...]
    itemsize: int
    parent: int | None = None
    parent_offset: int = 0
    offset: int | None = None
    element: str = ""
    port: int | None = None
    source: str | None = None

    @property
    def nbytes(self) -> int:
        """Size in bytes; in bytes per row for a buffer whose leading dimension is the batch."""
        return math.prod(s for s in self.shape if s >= 0) * self.itemsize


@dataclass(frozen=True)
class Access:
    """What each rTask of a launch touches of a buffer.

    `boxes` is tasks×rank×2: half-open index ranges per dimension (rank 0 is tasks×0×2).
    """

    buffer: int
    boxes: Boxes


@dataclass(frozen=True, eq=False)
class Option:
    """One way to run a launch: by `rkernel`, as `tasks` rTasks of `cost_ns` and `scratch_bytes` each.

    `boxes()` gives those of all reads, then those of all writes, as `Access` has them; it may be costly.
    `costs` has rows of the batch -> ns, where `cost_ns` is that of typically many.
    """

    tasks: int
    cost_ns: float
    scratch_bytes: int
    boxes: Callable[[], Sequence[Boxes]]
    rkernel: str = ""
    costs: Mapping[int, float] = field(default_factory=dict[int, float])

    def at(self, rows: int) -> Option:
        """The same where the batch is so many rows."""
        return replace(self, cost_ns=cost_at(self.costs, rows, self.cost_ns))


@dataclass(frozen=True)
class Launch:
    """One use of an rOperator. `cost_ns` is one rTask's estimated time.

    `in_place`: (number of a read, number of a write) that may be of the same bytes, as each element is
    read before it is written, by the rTask that writes it, and not again.

    `maps` counts the tensor maps that its rTasks are given beside their operands.

    `computes` names what it computes: launches of the same name, on the same operands, give the same; by
    default they are those of one `symbol`.

    `options` are the ways to run it, the fastest alone first; none where there is no choice. The launch is
    what number `option` of them makes of it. `whole()` gives boxes (1×rank×2 each, reads then writes) that
    hold what any of them touches.
    """

    name: str
    symbol: str
    tasks: int
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    cost_ns: float = 1000.0
    scratch_bytes: int = 0
    in_place: tuple[tuple[int, int], ...] = ()
    options: tuple[Option, ...] = ()
    option: int = 0
    whole: Callable[[], Sequence[Boxes]] | None = None
    computes: str = ""
    maps: int = 0

    @property
    def meaning(self) -> str:
        """The name of what it computes."""
        return self.computes or self.symbol

    def choose(self, number: int) -> Launch:
        """The launch as its option `number` has it. Raises IndexError where there is no such option."""
        chosen = self.options[number]
        return replace(
            self._with(chosen.boxes()),
            tasks=chosen.tasks,
            cost_ns=chosen.cost_ns,
            scratch_bytes=chosen.scratch_bytes,
            option=number,
        )

    def at(self, rows: int) -> Launch:
        """The launch where the batch is so many rows: its options cost what they do there."""
        if not any(option.costs for option in self.options):
            return self
        options = tuple(option.at(rows) for option in self.options)
        return replace(self, options=options, cost_ns=options[self.option].cost_ns)

    def as_one(self) -> Launch:
        """The launch as one rTask that touches all that those of any option do."""
        return self if self.whole is None else replace(self._with(self.whole()), tasks=1)

    def _with(self, boxes: Sequence[Boxes]) -> Launch:
        uses = (*self.reads, *self.writes)
        made = tuple(Access(a.buffer, b) for a, b in zip(uses, boxes, strict=True))
        at = len(self.reads)
        return replace(self, reads=made[:at], writes=made[at:])


@dataclass(frozen=True)
class Resident:
    """Read operand `operand` of an append stays in shared memory, at `offset` bytes on each vEU."""

    operand: int
    offset: int


@dataclass(frozen=True)
class Append:
    """All rTasks of launch number `launch` on vEUs [first_veu, first_veu + veus).

    rTask t runs on vEU first_veu + t % veus. Each rTask waits until every rTask of every append in
    `waits` has signalled, and until the elements of the read operands `carried` are there (`carried.py`).
    Appends of one vEU run in list order.
    """

    launch: int
    first_veu: int
    veus: int
    wave: int = 0
    waits: tuple[int, ...] = ()
    residents: tuple[Resident, ...] = ()
    carried: tuple[int, ...] = ()

    def veu_of(self, task: int) -> int:
        """The vEU that runs rTask `task`."""
        return self.first_veu + task % self.veus


@dataclass
class Schedule:
    """A program: appends in order over a device. `notes` carries figures for the report.

    `arena_bytes`, `row_bytes` per row of the batch, `constant_bytes`: the sizes of the spaces.
    `shared_bytes`: what residents and scratch take of a vEU's shared memory; the walker's tables lie
    above (`block_memory.py`).
    """

    device: VDevice
    buffers: list[Buffer]
    launches: list[Launch]
    appends: list[Append] = field(default_factory=list[Append])
    arena_bytes: int = 0
    row_bytes: int = 0
    constant_bytes: int = 0
    shared_bytes: int = 0
    notes: dict[str, Any] = field(default_factory=dict[str, Any])
