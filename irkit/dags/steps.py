"""From a launch to the steps that it takes: copies of host arrays that the device needs, then the
launch itself."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from irkit.dags.coherence import Sides, Span, Spans
from irkit.dags.device import DagDevice
from irkit.dags.leases import Lease, ended
from irkit.dags.located import Located, Path, locate, owner_of, steps_of
from irkit.dags.memory import Memory
from irkit.dags.programs import ProgramLaunch, ProgramSource, rows_of
from irkit.dags.works import ArrayUse, Copy, Launch, Work
from irkit.errors import DeviceError, InvalidInputError
from irkit.schedule.host.expected import estimate
from irkit.schedule.host.model import ON_HOST, HostTask, Kind, Region, Use

HOST_BUFFER, DEVICE_BUFFER = 0, 1
"""Buffers of regions before allocations are told apart: all of the host's memory, all of the device's."""


@dataclass(frozen=True)
class Step:
    """One task with what it takes to do it. Regions are counted from address 0 of the host and the
    device. `kept`: what has to stay until it has ended, beside what `used` has."""

    task: HostTask
    work: Work
    used: tuple[ArrayUse, ...] = ()
    kept: tuple[Any, ...] = ()


def task_of(work: Work, uses: Sequence[Use], origin: str) -> HostTask:
    """What the plan knows of a work: its time is estimated by what it touches."""
    cost = estimate(work.kind, uses)
    return HostTask(work.name, work.kind, tuple(uses), cost, origin)


@dataclass
class Twin:
    """Memory on the device for a host allocation."""

    owner: weakref.ref[Any]
    root: Span
    address: int
    sides: Sides
    name: str

    def there(self, span: Span) -> int:
        """The address on the device of bytes of the host."""
        return self.address + span[0] - self.root[0]


@dataclass(frozen=True)
class Move:
    """Bytes of the host, of the argument of a number, that have to be true on the device when a launch
    starts; nothing has to be that it covers."""

    argument: int
    twin: Twin
    span: Span
    writes: bool
    covers: bool


class Stepper:
    """Turns launches into steps, and knows for each host array which side is true."""

    def __init__(self, device: DagDevice) -> None:
        self._device = device
        self.memory = Memory(device)
        self._twins: dict[Span, Twin] = {}

    def program(self, source: ProgramSource, arguments: Sequence[Any]) -> ProgramLaunch:
        """A program in a stream. Raises InvalidInputError for arrays that it cannot take."""
        loaded = self.memory.program(source)
        rows = rows_of(loaded.program, arguments)
        workspace = loaded.workspace(rows)
        return ProgramLaunch(tuple(arguments), loaded.program, workspace, rows)

    def steps(self, work: Launch, origin: str) -> list[Step]:
        """Copies that a launch needs, and the launch. Raises UnsupportedError, InvalidInputError."""
        used = work.uses(self._device.checks)
        on_host = work.kind in ON_HOST
        made: list[Step] = []
        moved: dict[Path, Any] = {}
        uses: list[Use] = []
        for use in used:
            # Before anything is taken to be copied, all that may fail.
            if (problem := ended(use.array, f"'{work.name}', {use.name}")) is not None:
                raise problem
            if use.located.space == "host" and not on_host:
                self._placed(work, use)
        for use in used:
            located = use.located
            if located.space == "host":
                made += self._copies(_needed(use, used), on_host, origin)
                if not on_host:
                    located = self._there(located)
            if not on_host and use.path:
                moved[use.path] = self._device.view(located)
            region = located.region(_buffer_of(located))
            uses.append(Use(region, use.reads, use.writes, use.name))
        task = task_of(work, uses, origin)
        if on_host:
            return [*made, Step(task, work.at(work.arguments), tuple(used))]
        # Arrays of which a kernel only asks the shape are handed over on the device too.
        arguments = _with(work.arguments, moved, (), self._device_argument)
        return [*made, Step(task, work.at(arguments), tuple(used))]

    def moves(self, used: Sequence[ArrayUse]) -> tuple[Move, ...]:
        """What a launch on the device that was just turned into steps needs of the host, for the next one of
        the same arguments."""
        return tuple(
            Move(
                use.path[0],
                self._twins[use.located.root],
                use.located.region().hull,
                use.writes,
                _needed(use, used).covers,
            )
            for use in used
            if use.located.space == "host"
        )

    def moved(self, move: Move) -> list[Step]:
        """The copies of a move, as things stand."""
        spans = move.twin.sides.on_device(move.span, move.writes, move.covers)
        return [self._copy(span, move.twin, "to_device", "") for span in spans]

    def has(self, twin: Twin, owner: Any) -> bool:
        """Whether a twin is still here, and that of this array."""
        return self._twins.get(twin.root) is twin and twin.owner() is owner

    def empty(self, shape: tuple[int, ...], dtype: Any, origin: str = "") -> Any:
        """An array of the device's memory, which is given back when all is closed."""
        plain = np.empty(0, dtype).dtype
        size = int(np.prod(shape, dtype=np.int64)) * plain.itemsize
        address = self.memory.allocate(size)
        root = (address, address + size)
        steps = steps_of(shape, plain.itemsize)
        made = Located("device", address, shape, steps, plain, False, root)
        return self._device.view(made, Lease(self.memory, origin))

    def copied(
        self, target: Located, source: Located, arrays: tuple[Any, Any], origin: str
    ) -> list[Step]:
        """A copy of a whole array between the host and the device, and what has to be true before it."""
        steps: list[Step] = []
        host = source if source.space == "host" else target
        twin, span = self.twin_of(host), host.region().hull
        if twin is not None and host is source:
            steps = self.to_host(span, twin, origin)
        elif twin is not None:
            twin.sides.on_host(span, True)
        used = (
            ArrayUse("target", (0,), arrays[0], target, False, True),
            ArrayUse("source", (1,), arrays[1], source, True, False),
        )
        uses = [
            Use(u.located.region(_buffer_of(u.located)), u.reads, u.writes, u.name) for u in used
        ]
        kind: Kind = "to_host" if host is target else "to_device"
        work = Copy(target.address, source.address, span[1] - span[0], kind, "a copy", arrays)
        return [*steps, Step(task_of(work, uses, origin), work, used)]

    def to_host(self, span: Span, twin: Twin, origin: str) -> list[Step]:
        """Copies that make a span of a host array true on the host."""
        return [self._copy(s, twin, "to_host", origin) for s in twin.sides.on_host(span, False)]

    def fetch(self, array: Any, located: Located, origin: str) -> tuple[Any, list[Step]]:
        """A new array of the host's for one on the device, and the copy that fills it."""
        low, high = located.region().hull
        raw = np.empty(max(high - low, 1), np.uint8)
        there = located.address - low
        made: Any = np.ndarray(located.shape, located.dtype, raw, there, located.strides)
        if low == high:
            return made, []
        source = Region.of(DEVICE_BUFFER, low, (high - low,), (1,), 1)
        target = Region.of(HOST_BUFFER, raw.ctypes.data, (high - low,), (1,), 1)
        uses = Use(target, False, True), Use(source, True, False)
        work = Copy(raw.ctypes.data, low, high - low, "to_host", "what is read", (made, array))
        return made, [Step(task_of(work, uses, origin), work)]

    def home(self, origin: str) -> list[Step]:
        """Copies that make all host arrays true on the host."""
        return [s for twin in self._twins.values() for s in self.to_host(twin.root, twin, origin)]

    def twin_of(self, located: Located) -> Twin | None:
        """The memory on the device of a host array, where it has any."""
        return self._twins.get(located.root)

    def sweep(self) -> None:
        """Give back the memory of host arrays that are no more."""
        for root, twin in list(self._twins.items()):
            if twin.owner() is None:
                self._release(root)

    def close(self) -> None:
        """Give all memory back."""
        self._twins.clear()
        self.memory.close()

    def _release(self, root: Span) -> None:
        twin = self._twins.pop(root)
        self.memory.unpin(root[0])
        self.memory.free(twin.address)

    def _copies(self, use: ArrayUse, on_host: bool, origin: str) -> list[Step]:
        span = use.located.region().hull
        if on_host:
            twin = self._twins.get(use.located.root)
            if twin is None:
                return []
            spans, direction = twin.sides.on_host(span, use.writes), "to_host"
        else:
            twin = self._twin(use)
            spans = twin.sides.on_device(span, use.writes, use.covers)
            direction = "to_device"
        return [self._copy(s, twin, direction, origin) for s in spans]

    def _placed(self, work: Launch, use: ArrayUse) -> None:
        try:
            self._twin(use)
        except DeviceError as error:
            raise DeviceError(f"'{work.name}', {use.name}: {error}") from error

    def _copy(self, span: Span, twin: Twin, to: Kind, origin: str) -> Step:
        size, name = span[1] - span[0], twin.name
        host = Region.of(HOST_BUFFER, span[0], (size,), (1,), 1)
        there = twin.there(span)
        device = Region.of(DEVICE_BUFFER, there, (size,), (1,), 1)
        inward = to == "to_device"
        uses = Use(host, inward, not inward, name), Use(device, not inward, inward, name)
        ends = (there, span[0]) if inward else (span[0], there)
        work = Copy(*ends, size, to, name)
        return Step(task_of(work, uses, origin), work)

    def _twin(self, use: ArrayUse) -> Twin:
        root, owner = use.located.root, owner_of(use.array)
        known = self._twins.get(root)
        if known is not None and known.owner() is owner:
            return known
        self.sweep()
        for other in self._twins:
            if other[0] < root[1] and root[0] < other[1]:
                raise InvalidInputError(
                    "two arrays of the host share memory and are not of one allocation: the device cannot "
                    "have both"
                )
        address = self.memory.allocate(root[1] - root[0])
        try:
            self.memory.pin(*root)
        except DeviceError:
            self.memory.free(address)
            raise
        twin = Twin(weakref.ref(owner), root, address, Sides(Spans(root)), use.name)
        self._twins[root] = twin
        return twin

    def _there(self, located: Located) -> Located:
        twin = self._twins[located.root]
        address = twin.there((located.address, located.address))
        return replace(located, space="device", address=address)

    def _device_argument(self, value: Any) -> Any:
        """A host array of which nothing is read or written still has to be one on the device."""
        located = locate(value)
        if located is None:
            return value
        return self._device.view(replace(located, space="device"))


def _needed(use: ArrayUse, used: Sequence[ArrayUse]) -> ArrayUse:
    """A use that covers its array, for what it needs: elements that the same launch reads by another name
    are needed."""
    span = use.located.region().hull
    others = (u.located.region().hull for u in used if u is not use and u.reads)
    read = use.covers and any(a < span[1] and span[0] < b for a, b in others)
    return replace(use, covers=False) if read else use


def _buffer_of(located: Located) -> int:
    return HOST_BUFFER if located.space == "host" else DEVICE_BUFFER


def _with(values: Any, moved: dict[Path, Any], path: Path, leaf: Callable[[Any], Any]) -> Any:
    """Arguments with arrays put in their places, and `leaf` done to the others."""
    if path in moved:
        return moved[path]
    if isinstance(values, (tuple, list)):
        items = cast("Sequence[Any]", values)
        parts = [_with(item, moved, (*path, n), leaf) for n, item in enumerate(items)]
        named: Any = getattr(cast(Any, values), "_make", None)
        return named(parts) if named is not None else tuple(parts)
    return leaf(values)
