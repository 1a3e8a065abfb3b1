"""Schedules one after another, and in loops, as plain data, and the function that they are to compute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from irkit.schedule.meaning import Port
from irkit.schedule.model import Buffer

ALIGNED = 256


@dataclass(frozen=True)
class Window:
    """Bytes from `offset` on of a buffer, `steps` further on in each iteration of the loops around."""

    buffer: int
    offset: int = 0
    steps: tuple[int, ...] = ()


@dataclass(frozen=True)
class Run:
    """A program, and where its inputs, outputs and pairs of state lie."""

    program: str
    reads: tuple[Window, ...] = ()
    writes: tuple[Window, ...] = ()
    state: tuple[Window, ...] = ()


@dataclass(frozen=True)
class Repeat:
    """Steps that are run `trips` times."""

    trips: int
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class While:
    """Steps that are run as long as the boolean that buffer `condition` holds is true, which is asked before
    each turn."""

    condition: int
    steps: tuple[Step, ...]


Step = Run | Repeat | While


@dataclass
class Composite:
    """Runs over buffers; those of space "arena" lie in the first `link_bytes`."""

    buffers: list[Buffer] = field(default_factory=list[Buffer])
    steps: tuple[Step, ...] = ()
    link_bytes: int = 0


@dataclass(frozen=True)
class Part:
    """What a program is to who runs it: its function, and how many bytes arguments and results have; `state`
    has (argument, result)."""

    function: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    state: tuple[tuple[int, int], ...] = ()

    @property
    def given(self) -> list[int]:
        """The arguments that are no state."""
        return [n for n in range(len(self.inputs)) if n not in {a for a, _ in self.state}]

    @property
    def made(self) -> list[int]:
        """The results that are no state."""
        return [n for n in range(len(self.outputs)) if n not in {r for _, r in self.state}]


# The function, as calls of values, which are numbers.


@dataclass(frozen=True)
class Called:
    """A call of a function."""

    function: str
    arguments: tuple[int, ...]
    results: tuple[int, ...]


@dataclass(frozen=True)
class Cut:
    """`result` is `nbytes` of `source` from a place on."""

    source: int
    offset: int
    steps: tuple[int, ...]
    result: int


@dataclass(frozen=True)
class Put:
    """`result` is `dest` with `source` from a place on."""

    source: int
    dest: int
    offset: int
    steps: tuple[int, ...]
    result: int


@dataclass(frozen=True)
class Looped:
    """`trips` iterations of `body`, which makes `yielded` of `arguments`; with None as long as the value that
    comes as `arguments[asked]` is true."""

    trips: int | None
    start: tuple[int, ...]
    arguments: tuple[int, ...]
    body: tuple[Op, ...]
    yielded: tuple[int, ...]
    results: tuple[int, ...]
    asked: int = 0


Op = Called | Cut | Put | Looped


@dataclass
class Composed:
    """A function of calls; `nbytes` has the size of every value."""

    name: str
    arguments: tuple[int, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    body: tuple[Op, ...]
    returned: tuple[int, ...]
    nbytes: Mapping[int, int]
    state: tuple[tuple[int, int], ...] = ()
    """Pairs of an argument and a result, which are one buffer."""


def runs_of(steps: Sequence[Step]) -> Iterator[Run]:
    """All runs, in order, each once."""
    for step in steps:
        if isinstance(step, Run):
            yield step
        else:
            yield from runs_of(step.steps)
