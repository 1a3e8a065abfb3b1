"""Toy programs over plain schedules, and a byte-exact NumPy executor that judges them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from irkit.errors import ScheduleError
from irkit.interp.interleave import Machine, Step, interleave
from irkit.schedule.footprint import resolve_views, share_count
from irkit.schedule.model import Access, Buffer, Launch, Schedule

ROWS = 5
"""Rows of the batch in runs of the toys; not a multiple of most share counts."""


def boxes(*per_task: list[tuple[int, int]]) -> np.ndarray:
    """tasks×rank×2 from one list of ranges per rTask."""
    return np.array(per_task, np.int64).reshape(len(per_task), -1, 2)


def cut(size: int, parts: int) -> list[tuple[int, int]]:
    """[0, size) in `parts` nearly equal ranges."""
    return [(i * size // parts, (i + 1) * size // parts) for i in range(parts)]


def split(shape: tuple[int, ...], tasks: int, axis: int = -1) -> np.ndarray:
    """Boxes that divide `shape` along `axis` among the rTasks."""
    result = whole(shape, tasks)
    result[:, axis] = cut(shape[axis], tasks)
    return result


def whole(shape: tuple[int, ...], tasks: int) -> np.ndarray:
    """Boxes of all of `shape`, for each rTask."""
    return np.array([[(0, size) for size in shape]] * tasks, np.int64).reshape(tasks, len(shape), 2)


class Memory:
    """Bytes of a run. Planned memory starts as NaN; inputs and constants have fixed contents.

    With `planned` false every root buffer has bytes of its own.
    """

    def __init__(self, schedule: Schedule, planned: bool) -> None:
        self.schedule = schedule
        self.places = resolve_views(schedule.buffers)
        arena = {"arena": self._poison(schedule.arena_bytes)}
        arena["rows"] = self._poison(schedule.row_bytes * ROWS)
        self.bytes: dict[int, np.ndarray] = {}
        for index, buffer in enumerate(schedule.buffers):
            if buffer.parent is not None:
                continue
            size = buffer.nbytes * self._scale(buffer)
            if buffer.space in ("input", "constant"):
                values = np.random.default_rng(index).random(size // 8)
                self.bytes[index] = values.view(np.uint8)
            elif buffer.space == "output" or not planned:
                self.bytes[index] = self._poison(size)
            else:
                start = buffer.offset * self._scale(buffer)
                self.bytes[index] = arena[buffer.space][start : start + size]

    @staticmethod
    def _poison(size: int) -> np.ndarray:
        return np.full(-(-size // 8), np.nan).view(np.uint8)[:size]

    @staticmethod
    def _scale(buffer: Buffer) -> int:
        return ROWS if buffer.shape and buffer.shape[0] < 0 else 1

    def part(self, access: Access, task: int) -> np.ndarray:
        """The array that rTask `task` touches, as a view."""
        buffer, place = self.schedule.buffers[access.buffer], self.places[access.buffer]
        scale = self._scale(buffer)
        start = place.offset * scale
        raw = self.bytes[place.root][start : start + buffer.nbytes * scale]
        array = raw.view(np.float64).reshape([ROWS if s < 0 else s for s in buffer.shape])
        box = access.boxes[task].tolist()
        if buffer.shape and buffer.shape[0] < 0:
            shares = share_count(access)
            box[0] = [bound * ROWS // shares for bound in box[0]]
        return array[tuple(slice(low, high) for low, high in box)]

    def run(self, launch: int, task: int) -> None:
        """One rTask: every element written depends on every element read, NaN included."""
        entry = self.schedule.launches[launch]
        seed = 1.0 + launch * 0.37 + task * 0.11
        for operand, access in enumerate(entry.reads):
            values = self.part(access, task).ravel()
            seed += float(np.sin(values * np.arange(1, len(values) + 1) + operand).sum())
        for access in entry.writes:
            target = self.part(access, task)
            target[...] = np.cos(seed + np.arange(target.size)).reshape(target.shape)

    def outputs(self) -> list[np.ndarray]:
        """Contents of the output buffers."""
        return [
            self.bytes[i].view(np.float64).copy()
            for i, buffer in enumerate(self.schedule.buffers)
            if buffer.space == "output" and buffer.parent is None
        ]


def sequential(schedule: Schedule) -> list[np.ndarray]:
    """What the program means: launches in order, rTasks in order, every buffer on its own."""
    memory = Memory(schedule, planned=False)
    for number, launch in enumerate(schedule.launches):
        for task in range(launch.tasks):
            memory.run(number, task)
    return memory.outputs()


def replay(schedule: Schedule, steps: list[Step]) -> list[np.ndarray]:
    """What a run in this order gives, in planned memory."""
    memory = Memory(schedule, planned=True)
    for append, task in steps:
        memory.run(schedule.appends[append].launch, task)
    return memory.outputs()


def extreme_orders(schedule: Schedule) -> Iterator[list[Step]]:
    """For each vEU, the orders in which it is as fast and as slow as it can be."""
    for favourite in range(schedule.device.veus):
        for sign in (1, -1):
            machine, steps = Machine(schedule), []
            while ready := machine.ready():
                veu = max(ready, key=lambda v, f=favourite, s=sign: (s * (v == f), s * v))
                steps.append(machine.start_next(veu))
            yield steps


def all_interleavings(schedule: Schedule, limit: int | None = None) -> Iterator[list[Step]]:
    """Every order of the rTasks that waits allow, at most `limit` of them; for tiny schedules.

    Raises ScheduleError when the schedule deadlocks.
    """
    yield from islice(_orders(Machine(schedule), []), limit)


def _orders(machine: Machine, done: list[Step]) -> Iterator[list[Step]]:
    ready = machine.ready()
    if not ready:
        yield list(done)
    for queue in ready:
        ahead = machine.copy()
        done.append(ahead.start_next(queue))
        yield from _orders(ahead, done)
        done.pop()


def orders(schedule: Schedule, tries: int, seed: int = 0) -> Iterator[list[Step]]:
    """Many legal orders: the extremes, random ones, and the first few of the exhaustive list."""
    yield from extreme_orders(schedule)
    rng = np.random.default_rng(seed)
    for _ in range(tries):
        steps: list[Step] = []
        interleave(schedule, lambda a, t, s=steps: s.append((a, t)), rng)
        yield steps
    yield from all_interleavings(schedule, limit=tries)


def goes_wrong(schedule: Schedule, expected: list[np.ndarray], tries: int = 20) -> bool:
    """The judge: whether some order found deadlocks or gives another answer than `expected`."""
    try:
        return any(
            not np.array_equal(got, want)
            for steps in orders(schedule, tries)
            for got, want in zip(replay(schedule, steps), expected, strict=True)
        )
    except ScheduleError:
        return True


class RandomProgram:
    """A program that reads only what it has written: chains, fans, in-place updates, views, batches.

    Built from a NumPy generator, so that one integer names a program.
    """

    def __init__(self, seed: int, launches: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.buffers: list[Buffer] = []
        self.launches: list[Launch] = []
        self.readable: list[int] = [
            self._buffer("x", "input", (4, 6)),
            self._buffer("w", "constant", (6, 4)),
            self._buffer("xb", "input", (-1, 2)),
        ]
        for _ in range(launches):
            self._grow()
        self._finish()

    def _buffer(self, name: str, space: str, shape: tuple[int, ...], **more: int) -> int:
        self.buffers.append(Buffer(f"{name}{len(self.buffers)}", space, shape, 8, **more))
        return len(self.buffers) - 1

    def _launch(
        self, tasks: int, reads: list[Access], writes: list[Access], **facts: tuple
    ) -> None:
        name = f"n{len(self.launches)}"
        cost = float(self.rng.integers(1, 9)) * 100
        self.launches.append(Launch(name, "toy", tasks, tuple(reads), tuple(writes), cost, **facts))

    def _boxes(self, buffer: int, tasks: int, owned: bool) -> np.ndarray:
        """The part of a buffer per rTask: its own, or everything, or for reads any box."""
        shape = tuple(tasks if size < 0 else size for size in self.buffers[buffer].shape)
        if owned or self.rng.random() < 0.4:
            axis = 0 if self.buffers[buffer].shape[0] < 0 else int(self.rng.integers(len(shape)))
            return split(shape, tasks, axis)
        if self.buffers[buffer].shape[0] < 0 or self.rng.random() < 0.5:
            return whole(shape, tasks)
        ends = np.sort(
            self.rng.integers(0, np.array(shape)[None, :, None] + 1, (tasks, len(shape), 2))
        )
        return ends.astype(np.int64)

    def _reads(self, tasks: int) -> list[Access]:
        count = int(self.rng.integers(1, 4))
        recent = self.readable[-6:]
        chosen = [int(self.rng.choice(recent)) for _ in range(count)]
        return [Access(buffer, self._boxes(buffer, tasks, owned=False)) for buffer in chosen]

    def _grow(self) -> None:
        tasks = int(self.rng.integers(1, 7))
        kind = self.rng.random()
        planned = [b for b in self.readable if self.buffers[b].space in ("arena", "rows")]
        planned = [b for b in planned if self.buffers[b].parent is None]
        if kind < 0.3 and planned:
            target = int(self.rng.choice(planned))
            roots = resolve_views(self.buffers)
            reads = [r for r in self._reads(tasks) if roots[r.buffer].root != target]
            mine = Access(target, self._boxes(target, tasks, owned=True))
            self._launch(tasks, [*reads, mine], [mine], in_place=((len(reads), 0),))
        elif kind < 0.45:
            self._halves(tasks)
        elif kind < 0.6:
            self._write(self._buffer("b", "rows", (-1, int(self.rng.integers(1, 4)))), tasks)
        else:
            shape = (int(self.rng.integers(1, 5)), int(self.rng.integers(1, 50)))
            self._write(self._buffer("t", "arena", shape), tasks)

    def _write(self, target: int, tasks: int) -> None:
        self._launch(tasks, self._reads(tasks), [Access(target, self._boxes(target, tasks, True))])
        self.readable.append(target)

    def _halves(self, tasks: int) -> None:
        """A concatenation without copies: two launches write two views, later ones read the whole."""
        parent = self._buffer("p", "arena", (2, 3, 4))
        parts = [
            self._buffer("v", "arena", (3, 4), parent=parent, parent_offset=96 * half)
            for half in range(2)
        ]
        for part in parts:
            self._write(part, tasks)
        self.readable.append(parent)

    def _finish(self) -> None:
        for buffer in [b for b in self.readable if self.buffers[b].space in ("arena", "rows")][-4:]:
            shape = tuple(1 if size < 0 else size for size in self.buffers[buffer].shape)
            output = self._buffer("out", "output", (1, 2))
            self._launch(2, [Access(buffer, whole(shape, 2))], [Access(output, split((1, 2), 2))])
