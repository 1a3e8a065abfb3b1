"""Rule 'meaning': the schedule computes its function, and nothing else.

Translation validation (Pnueli, Siegel, Singerman: Translation Validation, TACAS 1998): the appends are
executed symbolically in list order over the bytes of the buffers, and what they compute is compared
with the function's calls. List order stands for every run, since the rules 'race' and 'arena' show
that any order that a mode allows gives the same bytes.

Calls of one rOperator on equal values are equal, so calls are numbered by what they compute; function
and schedule must agree on how often each is made, and on what is returned. Of an operand, only the bytes
that the rTasks read count: a schedule may run a call before the rest of them is written.

State is an argument and a result in one place: a buffer of it starts as the argument, and must end as the
result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from irkit.schedule.byte_runs import Runs, runs_of
from irkit.schedule.footprint import resolve_views
from irkit.schedule.meaning import Function, Piece, Port, Value, cut, joined, size_of
from irkit.schedule.model import Buffer, Launch, Schedule
from irkit.schedule.wellformed import describe, reject

_NOTHING = ("nothing", 0, 0)
"""The source of bytes that nothing has written."""


class _Numbers:
    """Numbers calls by what they compute: equal calls share one."""

    def __init__(self, schedule: Schedule) -> None:
        self._known: dict[tuple[str, tuple[Value, ...]], int] = {}
        self._read: dict[str, list[Runs | None]] = {}
        # Of what several rOperators compute, in grids of their own, what all their rTasks read.
        of_symbol: dict[str, dict[str, Launch]] = {}
        for launch in schedule.launches:
            of_symbol.setdefault(launch.meaning, {}).setdefault(launch.symbol, launch)
        for name, launches in of_symbol.items():
            first, *others = launches.values()
            self._read[name] = [
                runs_of(
                    np.concatenate([read.boxes, *(other.reads[n].boxes for other in others)]),
                    schedule.buffers[read.buffer],
                )
                for n, read in enumerate(first.reads)
            ]

    def read(self, symbol: str, operands: Sequence[Value]) -> tuple[Value, ...]:
        """What the rTasks of `symbol` read of its operands."""
        known = self._read.get(symbol, [None] * len(operands))
        return tuple(
            value if runs is None else joined(p for a, b in runs for p in cut(value, a, b))
            for value, runs in zip(operands, known, strict=True)
        )

    def number(self, symbol: str, operands: tuple[Value, ...]) -> int:
        return self._known.setdefault((symbol, operands), len(self._known))


class _Memory:
    """What the bytes of each root buffer are."""

    def __init__(self, buffers: Sequence[Buffer], function: Function) -> None:
        self.buffers, self.places = buffers, resolve_views(buffers)
        self.values: dict[int, Value] = {
            index: _initial(buffer, function)
            for index, buffer in enumerate(buffers)
            if buffer.parent is None
        }

    def read(self, index: int) -> Value:
        """The bytes of a buffer or view."""
        place = self.places[index]
        stop = place.offset + self.buffers[index].nbytes
        return cut(self.values[place.root], place.offset, stop)

    def write(self, index: int, value: Value) -> None:
        """Put a value of its size into a buffer or view."""
        place = self.places[index]
        whole, stop = self.values[place.root], place.offset + self.buffers[index].nbytes
        end = size_of(whole)
        parts = (*cut(whole, 0, place.offset), *value, *cut(whole, stop, end))
        self.values[place.root] = joined(parts)


def _initial(buffer: Buffer, function: Function) -> Value:
    source, port = _NOTHING, buffer.port if buffer.port is not None else -1
    if buffer.space == "input":
        source = ("input", port, 0)
    elif buffer.space == "state":
        source = ("input", function.state[port][0], 0)
    elif buffer.space == "constant":
        source = ("constant", buffer.source or "", 0)
    return joined([Piece(source, 0, buffer.nbytes)])


def check_translation(schedule: Schedule, function: Function) -> None:
    """Prove that `schedule` computes `function`, or raise ScheduleError that names the difference.

    Needs well-formed appends whose launches are listed in their order.
    """
    _check_ports(schedule, function)
    numbers = _Numbers(schedule)
    wanted, values = _calls_of(function, numbers)
    memory = _Memory(schedule.buffers, function)
    made: Counter[int] = Counter()
    for number, append in enumerate(schedule.appends):
        launch = schedule.launches[append.launch]
        operands = numbers.read(
            launch.meaning, [memory.read(access.buffer) for access in launch.reads]
        )
        call = numbers.number(launch.meaning, operands)
        made[call] += 1
        if made[call] > len(wanted.get(call, ())):
            _report_append(schedule, function, number, operands, made[call] > 1)
        for which, access in enumerate(launch.writes):
            nbytes = schedule.buffers[access.buffer].nbytes
            memory.write(access.buffer, joined([Piece(("result", call, which), 0, nbytes)]))
    for call, calls in wanted.items():
        if made[call] < len(calls):
            launch = calls[made[call]]
            symbol = function.calls[launch].symbol
            reject("meaning", f"launch {launch} (@{symbol}) of @{function.name} is never appended")
    _check_outputs(schedule, function, memory, values)


def _calls_of(function: Function, numbers: _Numbers) -> tuple[dict[int, list[int]], list[Value]]:
    """The function's launches by what they compute, and what it returns in these numbers."""
    wanted: dict[int, list[int]] = {}
    number_of: list[int] = []

    def renumbered(value: Value) -> Value:
        return joined(
            Piece(("result", number_of[int(p.source[1])], p.source[2]), p.start, p.stop)
            if p.source[0] == "result"
            else p
            for p in value
        )

    for launch, call in enumerate(function.calls):
        operands = numbers.read(call.symbol, [renumbered(v) for v in call.operands])
        number = numbers.number(call.symbol, operands)
        number_of.append(number)
        wanted.setdefault(number, []).append(launch)
    return wanted, [renumbered(value) for value in function.returned]


def _check_ports(schedule: Schedule, function: Function) -> None:
    """Every input, output and pair of state of the function is one buffer, of its type."""
    for space, ports in _ports(function).items():
        found = Counter(b.port for b in schedule.buffers if b.space == space and b.parent is None)
        for port in ports:
            if found[port] != 1:
                times = f"{found[port]} buffers, expected 1"
                reject("meaning", f"{space} {port} of @{function.name} has {times}")
        for buffer in schedule.buffers:
            if buffer.space != space or buffer.parent is not None:
                continue
            if buffer.port is None or buffer.port not in ports:
                reject("meaning", f"@{function.name} has no {space} {buffer.port}")
            given = Port(buffer.shape, buffer.element)
            if given != ports[buffer.port]:
                wanted = ports[buffer.port]
                reject(
                    "meaning",
                    f"{space} {buffer.port} of @{function.name} is {_type(wanted)}, its buffer "
                    f"'{buffer.name}' is {_type(given)}",
                )


def _ports(function: Function) -> dict[str, dict[int, Port]]:
    """What buffers of each space stand for. What is state is no input or output besides."""
    held, kept = zip(*function.state, strict=True) if function.state else ((), ())
    return {
        "input": {n: port for n, port in enumerate(function.inputs) if n not in held},
        "output": {n: port for n, port in enumerate(function.outputs) if n not in kept},
        "state": {n: function.inputs[argument] for n, argument in enumerate(held)},
    }


def _type(port: Port) -> str:
    shape = "x".join("?" if s < 0 else str(s) for s in port.shape)
    return f"{shape or 'scalar'} of {port.element}"


def _report_append(
    schedule: Schedule, function: Function, number: int, operands: tuple[Value, ...], again: bool
) -> None:
    what = describe(schedule, number)
    if again:
        reject("meaning", f"{what} computes again what @{function.name} launches less often")
    for operand, value in enumerate(operands):
        if any(piece.source == _NOTHING for piece in value):
            reject("meaning", f"{what} reads, as operand {operand}, bytes that nothing has written")
    reject("meaning", f"{what} computes what no launch of @{function.name} does")


def _check_outputs(
    schedule: Schedule, function: Function, memory: _Memory, returned: list[Value]
) -> None:
    for index, buffer in enumerate(schedule.buffers):
        if buffer.space not in ("output", "state") or buffer.parent is not None:
            continue
        assert buffer.port is not None
        output = function.state[buffer.port][1] if buffer.space == "state" else buffer.port
        if memory.read(index) != returned[output]:
            reject(
                "meaning",
                f"'{buffer.name}' does not hold output {output} of @{function.name} at the end",
            )
