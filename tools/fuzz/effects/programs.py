"""Random programs of arrays: as steps, which are built as IR and executed by NumPy."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.program.builder import BuiltProgram, ProgramBuilder
from irkit.dialects.program.views import StridedView, buffer_type
from irkit.dialects.types import element_type
from tools.fuzz.effects.views import Array, View, random_view

OPS: dict[str, tuple[type[GraphOp], Callable[[Array, Array], Array]]] = {
    "add": (graph.AddOp, np.add),
    "sub": (graph.SubOp, np.subtract),
    "max": (graph.MaxOp, np.maximum),
}


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
class Loop:
    """`body` for each number of `trips`."""

    trips: range
    body: tuple[Step, ...]


Step = Write | New | Call | Loop


@dataclass
class Program:
    """Steps on buffers, of which the first `arguments` are the caller's; and views that it returns."""

    dtype: np.dtype[Any]
    shapes: list[tuple[int, ...]]
    arguments: int
    steps: list[Step] = field(default_factory=list[Step])
    returned: list[View] = field(default_factory=list[View])

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
        _execute(self.steps, buffers, [])
        return [v.of(buffers, []).copy() for v in self.returned] + buffers[: self.arguments]

    def build(self) -> BuiltProgram:
        """As IR."""
        arguments = self.shapes[: self.arguments]
        element = element_type(self.dtype)
        b = ProgramBuilder([(f"x{n}", buffer_type(element, s)) for n, s in enumerate(arguments)])
        made = _Built(b, self, dict(enumerate(b.buffers)), [])
        made.steps(self.steps)
        return b.finish([(f"y{n}", made.view(v)) for n, v in enumerate(self.returned)])


def _execute(steps: Sequence[Step], buffers: list[Array], variables: list[int]) -> None:
    for step in steps:
        if isinstance(step, Loop):
            for number in step.trips:
                _execute(step.body, buffers, [*variables, number])
        elif isinstance(step, Call):
            bump(step.target.of(buffers, variables))
        elif isinstance(step, New):
            buffers[step.buffer][...] = 0
            step.part.of(buffers, variables)[...] = step.number
        else:
            first, *rest = (v.of(buffers, variables) for v in step.sources)
            value = first.copy()
            for name, other in zip(step.ops, rest, strict=True):
                value = OPS[name][1](value, other)
            step.target.of(buffers, variables)[...] = value


def bump(array: Array) -> None:
    """What calls of the host do."""
    array += 1


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

    def _new(self, step: New) -> None:
        dtype, shape = self.program.dtype, self.program.shapes[step.buffer]
        self.buffers[step.buffer] = self.b.alloc(element_type(dtype), shape)
        value = self.b.constant(np.full(step.part.sizes, step.number, dtype))
        self.b.write(value, self.view(step.part))


def random_program(rng: random.Random, *, loops: bool = True, calls: bool = False) -> Program:
    """A program of a few buffers of a few elements, with loops or not, and calls of the host or not."""
    dtype = np.dtype(rng.choice((np.int64, np.float64, np.float32)))
    count = rng.randint(1, 3)
    shapes = [tuple(rng.randint(1, 6) for _ in range(rng.randrange(4))) for _ in range(count)]
    program = Program(dtype, shapes, count)
    made = _Maker(rng, program, list(range(count)), [], calls)
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

    def view(self) -> View:
        number = self.rng.choice(self.known)
        return random_view(self.rng, number, self.program.shapes[number], self.loops)

    def steps(self, count: int, depth: int) -> list[Step]:
        return [self._step(depth) for _ in range(count)]

    def _step(self, depth: int) -> Step:
        kind = self.rng.random()
        if depth and kind < 0.2:
            return self._loop(depth)
        if self.calls and kind > 0.7:
            return Call(self._target(self.view))
        return self._new() if kind < 0.3 else self._write()

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
