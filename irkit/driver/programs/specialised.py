"""One pattern of arguments: its trace, its program, and how a call goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irkit.annotations.frames import Node, assign
from irkit.annotations.held import Held
from irkit.dialects.functions import function_named
from irkit.dialects.program.builder import BuiltProgram
from irkit.dialects.program.check import written_arguments
from irkit.driver.programs.apart import GapsNeededError, view_of_caller
from irkit.driver.programs.complex_border import as_complex
from irkit.driver.programs.hosted import Hosted
from irkit.driver.programs.lowering import Lowered, Runner
from irkit.driver.programs.memory import Layout, strided
from irkit.driver.programs.placed import Placed
from irkit.errors import InvalidInputError, UnsupportedError
from irkit.frontends.numpy.emission import emitted
from irkit.frontends.numpy.places import user_place
from irkit.frontends.numpy.records import Buffer, ComplexView, For, View
from irkit.frontends.numpy.trace import Guard, Result, Traced, filled
from irkit.viewing.timeline import Timeline
from irkit.weights import Array

COPIES = ("copy", "apart")
"""Kinds of places whose arrays are copied."""


class Specialised:
    """What runs a function for arguments of one pattern."""

    def __init__(
        self,
        traced: Traced,
        layout: Layout,
        names: Sequence[str],
        lower: Callable[[BuiltProgram], Runner],
        objects: Sequence[str] = (),
    ) -> None:
        """`objects`: columns of frames that stay with the host."""
        self.guards: list[Guard] = traced.guards
        self.structure = traced.structure
        self._effects = traced.effects
        self.results: list[Result] = traced.results
        self.layout = layout
        self._checks = list(traced.recorder.checks)
        self._names = list(names)
        self._objects = list(objects)
        self._estimators = list(dict.fromkeys(traced.recorder.compiled))
        self._loops = [x.place for x in traced.recorder.records if isinstance(x, For)]
        # What has no elements is made when it is returned: no schedule has such arrays.
        made = list(
            dict.fromkeys(
                r.view.buffer
                for r in traced.results
                if r.view.buffer.argument is None and 0 not in r.view.sizes
            )
        )
        checks = list(traced.recorder.checks.values())
        self._made: dict[Buffer, int] = {b: n for n, b in enumerate(made)}
        self._made_count = len(made)
        named = [(f"result{n}", b) for n, b in enumerate(made)]
        named += [(f"check{n}", b) for n, b in enumerate(checks)]
        inputs = [_buffer_name(n, layout, names) for n in range(len(layout.buffers))]
        built = emitted(traced.recorder, inputs, named)
        self._check_copies(built)
        self.runner = lower(built)

    def _check_copies(self, built: BuiltProgram) -> None:
        """Raises GapsNeededError where a copy that has no gaps is written or returned."""
        main = function_named(built.module, "main")
        assert main is not None
        views = [r.view.buffer.argument for r in self.results if r.argument is None]
        for number in {*written_arguments(main), *(n for n in views if n is not None)}:
            if self.layout.places[number].kind == "copy" and not self.layout.has_gaps:
                raise GapsNeededError

    @property
    def has_estimators(self) -> bool:
        """Whether estimators are part of it, as they were when it was traced."""
        return bool(self._estimators)

    def run(
        self,
        arrays: Sequence[Array],
        held: Held | None = None,
        tables: Sequence[Any] = (),
        given: Sequence[Array] | None = None,
    ) -> Any:
        """As `called`, with what of the call is no array, the frames of the caller, and its arrays as they
        are `given`."""
        given = arrays if given is None else given
        if held is None:
            return self.called(arrays, given)
        with held:
            return self.called(arrays, given, held, tables)

    def called(
        self,
        arrays: Sequence[Array],
        given: Sequence[Array],
        held: Held | None = None,
        tables: Sequence[Any] = (),
    ) -> Any:
        """Call the program with the arrays of a call, and write those that it writes.

        Raises IndexError where an index was computed that is out of bounds, InvalidInputError where an
        estimator is given what it refuses; nothing is written then.
        """
        buffers = [p.buffer(arrays) for p in self.layout.places]
        outputs, written = self.runner.run(buffers)
        count = self._made_count
        for check, holds in zip(self._checks, outputs[count:], strict=True):
            if not holds:
                raise check.error(f"{check.place}: {check.message}; no argument was changed")
        for number, contents in written.items():
            self._write_back(number, contents, buffers, arrays)
        found = [self._result(r, outputs, buffers, arrays, given) for r in self.results]

        def made(value: Any) -> Any:
            return value.built(found, held) if isinstance(value, Node) and held else value

        for number, label, structure in self._effects:
            assign(tables[number], label, filled(structure, found, made))
        return filled(self.structure, found, made)

    def timelines(self, arrays: Sequence[Array] | None = None) -> list[Timeline]:
        """Its planned schedule; with arrays of its pattern, which stay as they are, also a run of it as
        measured. Raises UnsupportedError for a measured one of several programs."""
        if arrays is None:
            return self.runner.timelines()
        if not isinstance(self.runner, Lowered):
            raise UnsupportedError(
                "a measured trace of a function that is several programs, or calls the host:"
                " expected one compiled program; without arguments the trace is of what is planned"
            )
        return self.runner.measured([p.buffer(arrays) for p in self.layout.places])

    def explained(self) -> list[str]:
        """What was traced, and how it runs, a line each."""
        count = len(self._names)
        lines = [f"{count} arrays ({', '.join(self._names)}) in {len(self.layout.buffers)} buffers"]
        copies = [self._names[p.first] for p in self.layout.places if p.kind in COPIES]
        if copies:
            lines.append(f"copied, as their elements lie apart: {', '.join(copies)}")
        if self._objects:
            lines.append(f"on the host: {', '.join(self._objects)}")
        lines += [f"loop kept: {place}" for place in self._loops]
        lines += [f"estimator compiled: {method}" for method in self._estimators]
        if isinstance(self.runner, Hosted | Placed):
            lines += self.runner.explained()
        report = self.runner.report()
        lines += report.get("explained", [])
        found = report.get("roperators", {})
        lines.append(
            f"{len(found)} rOperators, {'proved' if report.get('proved') else 'not proved'}"
        )
        return lines

    def _write_back(
        self, number: int, contents: Array, buffers: Sequence[Array], arrays: Sequence[Array]
    ) -> None:
        place = self.layout.places[number]
        if place.kind == "empty":
            return
        if place.kind == "copy":
            np.copyto(arrays[place.first], contents)
            buffers[number][...] = contents
        elif place.kind == "apart":
            array = arrays[place.first]
            np.copyto(array, place.seen(contents, array.shape))
        elif place.kind == "dense":
            np.copyto(buffers[number], contents)
        else:
            self._write_members(number, contents, arrays)

    def _write_members(self, number: int, contents: Array, arrays: Sequence[Array]) -> None:
        """Only what arrays see is theirs to write."""
        for array, spec in zip(arrays, self.layout.arrays, strict=True):
            if spec.buffer == number and spec.writeable:
                strides = tuple(s * array.itemsize for s in spec.strides)
                np.copyto(array, strided(contents, spec.offset, spec.sizes, strides))

    def _seen(
        self,
        view: View,
        outputs: Sequence[Array],
        buffers: Sequence[Array],
        arrays: Sequence[Array],
    ) -> Array:
        """What a view sees, of complex numbers their real parts."""
        own = view.buffer.argument
        if 0 in view.sizes:
            return np.empty(view.sizes, view.buffer.dtype)
        whole = outputs[self._made[view.buffer]] if own is None else buffers[own]
        place = None if own is None else self.layout.places[own]
        if place is not None and place.kind == "apart":
            return view_of_caller(place, view, arrays[place.first])
        if place is not None and place.kind == "copy":
            raise InvalidInputError(
                f"{user_place()}: a view of an argument whose elements share memory is returned: return a "
                "copy of it"
            )
        strides = tuple(s * whole.itemsize for s in view.strides)
        return strided(whole, view.offset.now, view.sizes, strides)

    def _result(
        self,
        result: Result,
        outputs: Sequence[Array],
        buffers: Sequence[Array],
        arrays: Sequence[Array],
        given: Sequence[Array],
    ) -> Any:
        if result.argument is not None:
            return given[result.argument]
        view = result.view
        found = self._seen(view, outputs, buffers, arrays)
        found = as_complex(found) if isinstance(view, ComplexView) else found
        if not result.scalar and not result.writeable:
            found = found[...]
            found.flags.writeable = False
        if not result.scalar:
            return found
        return found.item() if result.weak else found[()]


def _buffer_name(number: int, layout: Layout, names: Sequence[str]) -> str:
    """After the arrays that lie in it."""
    own = [n for n, s in zip(names, layout.arrays, strict=True) if s.buffer == number]
    return "_".join(dict.fromkeys(own)) or f"buffer{number}"
