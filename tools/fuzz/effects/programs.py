"""Random programs of arrays: as steps, which are built as IR and executed by NumPy."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.semantics.random import threefry
from irkit.dialects.program.builder import BuiltProgram, ProgramBuilder
from irkit.dialects.program.views import StridedView, buffer_type
from irkit.dialects.types import element_type
from tools.fuzz.effects.views import Array, View, random_view

OPS: dict[str, tuple[type[GraphOp], Callable[[Array, Array], Array]]] = {
    "add": (graph.AddOp, np.add),
    "sub": (graph.SubOp, np.subtract),
    "max": (graph.MaxOp, np.maximum),
}

ui64 = IntegerType(64, Signedness.UNSIGNED)


@dataclass(frozen=True)
class Write:
    """`target[...] = a`, or `= op(op(a, b), c)...` of all sources."""

    target: View
    ops: tuple[str, ...]
    sources: tuple[View, ...]


@dataclass(frozen=True)
class New:
    """A buffer is made, and one number written to a part of it."""

    buffer: int
    part: View
    number: int


@dataclass(frozen=True)
class Call:
    """The host adds 1 to a view, in place."""

    target: View


@dataclass(frozen=True)
class Note:
    """The host notes what is in a view now, and when."""

    source: View


@dataclass(frozen=True)
class Draw:
    """Random numbers to a view, of a key that is the counter's value; the counter goes on by 1."""

    target: View


@dataclass(frozen=True)
class Loop:
    """`body` for each number of `trips`."""

    trips: range
    body: tuple[Step, ...]


Step = Write | New | Call | Note | Draw | Loop
NOTES: list[Array] = []
"""What the host has noted, in its order."""


@dataclass
class Program:
    """Steps on buffers, of which the first `arguments` are the caller's; and views that it returns."""

    dtype: np.dtype[Any]
    shapes: list[tuple[int, ...]]
    arguments: int
    steps: list[Step] = field(default_factory=list[Step])
    returned: list[View] = field(default_factory=list[View])
    counter: int = -1
    """The buffer that says which random numbers are next, if there are any; nothing else writes it."""

    def inputs(self, seed: int) -> list[Array]:
        """Arrays for the arguments."""
        generator = np.random.default_rng(seed)
        return [
            generator.integers(-50, 50, shape).astype(self.dtype)
            for shape in self.shapes[: self.arguments]
        ]

    def expected(self, inputs: Sequence[Array]) -> list[Array]:
        """By NumPy: what is returned, and then what is left in all arguments."""
        buffers = [x.copy() for x in inputs]
        buffers += [np.zeros(s, self.dtype) for s in self.shapes[self.arguments :]]
        _Sequence(self, buffers).execute(self.steps, [])
        return [v.of(buffers, []).copy() for v in self.returned] + buffers[: self.arguments]

    def build(self) -> BuiltProgram:
        """As IR."""
        arguments = self.shapes[: self.arguments]
        element = element_type(self.dtype)
        b = ProgramBuilder([(f"x{n}", buffer_type(element, s)) for n, s in enumerate(arguments)])
        made = _Built(b, self, dict(enumerate(b.buffers)), [])
        made.steps(self.steps)
        return b.finish([(f"y{n}", made.view(v)) for n, v in enumerate(self.returned)])


@dataclass
class _Sequence:
    """A program in NumPy: one step after another."""

    program: Program
    buffers: list[Array]

    def execute(self, steps: Sequence[Step], variables: list[int]) -> None:
        """Some steps, in loops of these variables."""
        for step in steps:
            if isinstance(step, Loop):
                for number in step.trips:
                    self.execute(step.body, [*variables, number])
            else:
                self._step(step, variables)

    def _step(self, step: Write | New | Call | Note | Draw, variables: list[int]) -> None:
        buffers = self.buffers
        match step:
            case Call():
                bump(step.target.of(buffers, variables))
            case Note():
                note(step.source.of(buffers, variables))
            case Draw():
                counter = buffers[self.program.counter]
                drawn = threefry(np.abs(counter).astype(np.uint64), lanes(step.target))
                step.target.of(buffers, variables)[...] = drawn >> np.uint64(SHIFTED)
                counter += 1
            case New():
                buffers[step.buffer][...] = 0
                step.part.of(buffers, variables)[...] = step.number
            case Write():
                first, *rest = (v.of(buffers, variables) for v in step.sources)
                value = first.copy()
                for name, other in zip(step.ops, rest, strict=True):
                    value = OPS[name][1](value, other)
                step.target.of(buffers, variables)[...] = value


SHIFTED = 54
"""What is left of 64 random bits is a number that every dtype has."""


def lanes(view: View) -> Array:
    """A number for each element of a view."""
    count = int(np.prod(view.sizes, dtype=np.int64))
    return np.arange(count, dtype=np.uint64).reshape(view.sizes)


def bump(array: Array) -> None:
    """What calls of the host do."""
    array += 1


def note(array: Array) -> None:
    """What the host does that has no effect on arrays: a callback."""
    NOTES.append(np.array(array))


HOST: dict[str, Callable[[Array], None]] = {"bump": bump, "note": note}
"""The functions of the host."""


@dataclass
class _Built:
    b: ProgramBuilder
    program: Program
    buffers: dict[int, SSAValue]
    variables: list[SSAValue]

    def view(self, view: View) -> SSAValue:
        offset = self.b.affine(view.offset, {self.variables[n]: f for n, f in view.moves.items()})
        return self.b.view(self.buffers[view.buffer], offset, view.sizes, view.strides)

    def steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, Loop):
                self._loop(step)
            elif isinstance(step, New):
                self._new(step)
            elif isinstance(step, Call):
                self.b.call("bump", [self.view(step.target)], [0], [0])
            elif isinstance(step, Note):
                self.b.call("note", [self.view(step.source)], [0], [])
            elif isinstance(step, Draw):
                self._draw(step)
            else:
                first, *rest = (self.b.read(self.view(v)) for v in step.sources)
                for name, other in zip(step.ops, rest, strict=True):
                    first = self.b(OPS[name][0], first, other)
                self.b.write(first, self.view(step.target))

    def _loop(self, step: Loop) -> None:
        with ExitStack() as stack:
            trips = step.trips
            variable = stack.enter_context(self.b.loop(trips.start, trips.stop, trips.step))
            self.variables.append(variable)
            self.steps(step.body)
        self.variables.pop()

    def _draw(self, step: Draw) -> None:
        b, dtype = self.b, self.program.dtype
        counter = self.buffers[self.program.counter]
        now = b.read(counter)
        key = b(graph.CastOp, b(graph.AbsOp, now), to=ui64)
        bits = b(graph.ThreefryOp, key, b.constant(lanes(step.target)))
        few = b(graph.ShiftRightOp, bits, b.constant(np.array(SHIFTED, np.uint64)))
        b.write(b(graph.CastOp, few, to=element_type(dtype)), self.view(step.target))
        b.write(b(graph.AddOp, now, b.constant(np.array(1, dtype))), counter)

    def _new(self, step: New) -> None:
        dtype, shape = self.program.dtype, self.program.shapes[step.buffer]
        self.buffers[step.buffer] = self.b.alloc(element_type(dtype), shape)
        value = self.b.constant(np.full(step.part.sizes, step.number, dtype))
        self.b.write(value, self.view(step.part))


def random_program(
    rng: random.Random, *, loops: bool = True, calls: bool = False, effects: bool = False
) -> Program:
    """A program of a few buffers of a few elements, with loops or not, and calls of the host or not; with
    `effects` also with random numbers, of which a counter is state, and callbacks."""
    dtype = np.dtype(rng.choice((np.int64, np.float64, np.float32)))
    count = rng.randint(1, 3)
    shapes = [tuple(rng.randint(1, 6) for _ in range(rng.randrange(4))) for _ in range(count)]
    program = Program(dtype, shapes, count)
    if effects:
        program.counter, program.arguments = count, count + 1
        shapes.append(())
    made = _Maker(rng, program, list(range(count)), [], calls, effects)
    program.steps = made.steps(rng.randint(2, 8), 2 if loops else 0)
    program.returned = [made.view() for _ in range(rng.randrange(3))]
    return program


@dataclass
class _Maker:
    rng: random.Random
    program: Program
    known: list[int]
    loops: list[range]
    calls: bool
    effects: bool = False

    def view(self) -> View:
        number = self.rng.choice(self.known)
        return random_view(self.rng, number, self.program.shapes[number], self.loops)

    def steps(self, count: int, depth: int) -> list[Step]:
        return [self._step(depth) for _ in range(count)]

    def _step(self, depth: int) -> Step:
        kind = self.rng.random()
        if depth and kind < 0.2:
            return self._loop(depth)
        if self.effects and (found := self._effect()) is not None:
            return found
        if self.calls and kind > 0.7:
            return Call(self._target(self.view))
        return self._new() if kind < 0.3 else self._write()

    def _effect(self) -> Step | None:
        kind = self.rng.random()
        if kind < 0.2:
            return Draw(self._target(self.view))
        # Without calls all is values, and nobody can be told of one.
        return Note(self.view()) if self.calls and kind < 0.4 else None

    def _loop(self, depth: int) -> Loop:
        start, step = self.rng.randrange(3), self.rng.randint(1, 2)
        trips = range(start, start + self.rng.randint(1, 5), step)
        known = list(self.known)
        self.loops.append(trips)
        body = self.steps(self.rng.randint(1, 3), depth - 1)
        self.loops.pop()
        self.known = known
        return Loop(trips, tuple(body))

    def _new(self) -> New:
        shape = tuple(self.rng.randint(1, 6) for _ in range(self.rng.randint(1, 2)))
        self.program.shapes.append(shape)
        number = len(self.program.shapes) - 1
        part = self._target(lambda: random_view(self.rng, number, shape, self.loops))
        if self.effects:
            # Callbacks show all of a buffer: none of it may be what nobody has written.
            strides = tuple(math.prod(shape[d + 1 :]) for d in range(len(shape)))
            part = View(number, 0, shape, strides, {})
        self.known.append(number)
        return New(number, part, self.rng.randint(-9, 9))

    def _target(self, draw: Callable[[], View]) -> View:
        while True:
            view = draw()
            if not _as_strided_view(view).repeats():
                return view

    def _write(self) -> Write:
        target = self._target(self.view)
        count = self.rng.randint(1, 3)
        sources = tuple(self._source(target) for _ in range(count))
        ops = tuple(self.rng.choice(list(OPS)) for _ in range(count - 1))
        return Write(target, ops, sources)

    def _source(self, target: View) -> View:
        """A view of the target's shape: of one that broadcasts to it, or the target itself."""
        for _ in range(20):
            view = self.view()
            if self.rng.random() < 0.5:
                view = _cropped(view, target.sizes)
            if (found := _broadcast(view, target.sizes)) is not None:
                return found
        return target


def _as_strided_view(view: View) -> StridedView:
    from irkit.dialects.program.views import Affine

    empty: Any = None
    return StridedView(empty, Affine(), view.sizes, view.strides)


def _cropped(view: View, sizes: tuple[int, ...]) -> View:
    """No longer in any of its last dimensions than `sizes`."""
    if len(view.sizes) > len(sizes):
        return view
    last = sizes[len(sizes) - len(view.sizes) :]
    fewer = tuple(min(a, b) for a, b in zip(view.sizes, last, strict=True))
    return View(view.buffer, view.offset, fewer, view.strides, view.moves)


def _broadcast(view: View, sizes: tuple[int, ...]) -> View | None:
    """The view as NumPy broadcasts it to `sizes`; None where it does not."""
    missing = len(sizes) - len(view.sizes)
    have = zip((1,) * missing + view.sizes, sizes, strict=True) if missing >= 0 else ()
    if missing < 0 or any(a not in (1, b) for a, b in have):
        return None
    strides = (0,) * missing + tuple(
        0 if n == 1 else s for n, s in zip(view.sizes, view.strides, strict=True)
    )
    return View(view.buffer, view.offset, sizes, strides, view.moves)
