"""Memory of the device for several arrays of a program, where that costs no time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from irkit.passes.host.actions import Action, Call, Compute, HostProgram, Move, Place
from irkit.schedule.host.model import HostBuffer, HostTask, Region, Use
from irkit.schedule.host.planning import COMPARED, parents_of


@dataclass
class _Slot:
    """Memory, and the tasks that use it so far, a bit each."""

    buffer: int
    nbytes: int
    users: int


def shared(program: HostProgram) -> HostProgram:
    """The same program on fewer bytes of the device: an array lies where another one did if every task that
    uses that other one comes before its first one anyway, so no task has to wait for one more.

    Of programs of more than 2,000 tasks nothing is shared. The contents of an array of the device are nothing
    before it is first written; one that is read first, or written in part, keeps memory of its own.
    """
    if len(program.tasks) > COMPARED:
        return program
    ancestors = _ancestors(program.tasks)
    users: dict[int, list[int]] = {}
    for number, task in enumerate(program.tasks):
        for use in task.uses:
            users.setdefault(use.region.buffer, []).append(number)
    home: dict[int, int] = {}
    slots: list[_Slot] = []
    for buffer in sorted(users, key=lambda b: users[b][0]):
        if program.buffers[buffer].space == "device":
            slot = _slot(program, buffer, users[buffer][0], slots, ancestors)
            slot.nbytes = max(slot.nbytes, program.buffers[buffer].nbytes)
            slot.users |= _bits(users[buffer])
            home[buffer] = slot.buffer
    return _moved(program, home, {slot.buffer: slot.nbytes for slot in slots})


def _slot(
    program: HostProgram, buffer: int, first: int, slots: list[_Slot], ancestors: Sequence[int]
) -> _Slot:
    nbytes = program.buffers[buffer].nbytes
    free = [slot for slot in slots if not slot.users & ~ancestors[first]]
    if free and _is_written_first(program.tasks[first], buffer, nbytes):
        return min(free, key=lambda slot: abs(slot.nbytes - nbytes))
    slots.append(_Slot(buffer, nbytes, 0))
    return slots[-1]


def _is_written_first(task: HostTask, buffer: int, nbytes: int) -> bool:
    uses = [use for use in task.uses if use.region.buffer == buffer]
    whole = any(use.region.dense and use.region.hull == (0, nbytes) for use in uses)
    return whole and not any(use.reads for use in uses)


def _ancestors(tasks: Sequence[HostTask]) -> list[int]:
    """For each task all that come before it, a bit each."""
    found: list[int] = []
    for parents in parents_of(tasks):
        bits = _bits(parents)
        for parent in parents:
            bits |= found[parent]
        found.append(bits)
    return found


def _bits(numbers: Sequence[int]) -> int:
    bits = 0
    for number in numbers:
        bits |= 1 << number
    return bits


def _moved(program: HostProgram, home: Mapping[int, int], nbytes: Mapping[int, int]) -> HostProgram:
    """The program with buffers where others have a home, which are so large."""
    kept = [n for n in range(len(program.buffers)) if home.get(n, n) == n]
    at = {old: new for new, old in enumerate(kept)}
    number = {n: at[home.get(n, n)] for n in range(len(program.buffers))}
    buffers = [
        HostBuffer(b.name, b.space, nbytes.get(n, b.nbytes))
        for n, b in enumerate(program.buffers)
        if n in at
    ]
    tasks = [replace(t, uses=tuple(_use(use, number) for use in t.uses)) for t in program.tasks]
    return HostProgram(
        buffers,
        [program.arrays[n] for n in kept],
        tasks,
        [_action(a, number) for a in program.actions],
        [number[n] for n in program.arguments],
        [_place(p, number) for p in program.results],
        {n: _place(p, number) for n, p in program.left.items()},
    )


def _use(use: Use, number: Mapping[int, int]) -> Use:
    return replace(use, region=_region(use.region, number))


def _region(region: Region, number: Mapping[int, int]) -> Region:
    return replace(region, buffer=number[region.buffer])


def _place(place: Place, number: Mapping[int, int]) -> Place:
    return replace(place, buffer=number[place.buffer])


def _action(action: Action, number: Mapping[int, int]) -> Action:
    if isinstance(action, Move):
        return Move(_region(action.source, number), _region(action.target, number))
    if isinstance(action, Compute):
        arrays = {v: _place(p, number) for v, p in action.arrays.items()}
        return Compute(action.ops, arrays, action.variables)
    arrays = tuple(_place(p, number) for p in action.arrays)
    outputs = {n: _place(p, number) for n, p in action.outputs.items()}
    return Call(action.function, arrays, action.on_device, outputs)
