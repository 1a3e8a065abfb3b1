"""A function of arrays that keeps some of them from call to call, traced and compiled for arguments of one
pattern."""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irkit.dialects.program.builder import BuiltProgram
from irkit.driver.compiler.artifacts import build_artifact
from irkit.driver.compiler.compile import absent_device
from irkit.driver.compiler.fastmath import check_fastmath, set_fastmath
from irkit.driver.compiler.models import ONE_BUILDER
from irkit.driver.compiler.targets import planned_device, target_of
from irkit.driver.pipelines.collecting import seldom_collected
from irkit.driver.programs.arguments import check_array
from irkit.driver.programs.lowering import graph_of
from irkit.errors import UnsupportedError
from irkit.frontends.module import ImportedModel
from irkit.frontends.numpy.emission import emitted
from irkit.frontends.numpy.host_calls import NeedExamplesError
from irkit.frontends.numpy.records import Call
from irkit.frontends.numpy.trace import (
    ArraySpec,
    BufferSpec,
    Guard,
    Leaf,
    NewArrayError,
    Pattern,
    Traced,
    filled,
    trace,
)
from irkit.runtime.mode_choice import check_mode
from irkit.runtime.program import CompiledProgram
from irkit.runtime.variant import Variant
from irkit.weights import Array


class TracedProgram:
    """A function of (state, inputs), a dict by name and a list, that writes arrays of its state and returns
    new ones: its trace for arrays of these shapes and dtypes, and the program that it becomes.

    Arrays that it reads beside its arguments are inputs too; all else that it reads is a guard.
    """

    def __init__(
        self,
        function: types.FunctionType,
        state: Mapping[str, Array],
        inputs: Sequence[Array],
        names: Sequence[str],
    ) -> None:
        """`names`: of the inputs. Raises UnsupportedError for what cannot be traced."""
        self._state, self._arrays = dict(state), [*inputs]
        self._captured: list[Guard] = []
        self._names = list(names)
        for array, name in zip([*state.values(), *inputs], [*state, *names], strict=True):
            check_array(array, name)
        self._traced = self._trace(function)
        recorder = self._traced.recorder
        for record in recorder.records:
            if isinstance(record, Call):
                raise UnsupportedError(
                    f"{record.place}: a step of training calls '{record.task.annotation.name}', which is "
                    "not traced"
                )
        self.checks = list(recorder.checks)

    def _trace(self, function: types.FunctionType) -> Traced:
        while True:
            try:
                return trace(function, self._pattern())
            except NewArrayError as met:
                check_array(met.array, met.guard.name)
                self._captured.append(met.guard)
                self._arrays.append(met.array)
            except NeedExamplesError as met:
                # A step is not run to see: it would train.
                raise UnsupportedError(f"irkit.training_step: {met}") from None

    def _pattern(self) -> Pattern:
        given = [*self._state.values(), *self._arrays]
        specs = [ArraySpec(n, 0, a.shape, _strides(a.shape)) for n, a in enumerate(given)]
        held = len(self._state)
        first = len(given) - len(self._captured)
        state = {name: Leaf(n) for n, name in enumerate(self._state)}
        inputs = [Leaf(n) for n in range(held, first)]
        known = {id(a): n for n, a in enumerate(given) if n >= first}
        buffers = [BufferSpec(a.shape, a.dtype) for a in given]
        return Pattern(buffers, specs, ([state, inputs], {}), known)

    def holds(self) -> bool:
        """Whether what it read beside its arguments is what it was."""
        return all(guard.holds() for guard in self._traced.guards)

    def all_inputs(self, inputs: Sequence[Any]) -> list[Any]:
        """The inputs of the program: those that are given, and what it reads beside them."""
        return [*inputs, *(guard.later() for guard in self._captured)]

    def build(self) -> BuiltProgram:
        """The program of arrays."""
        made = [r.view.buffer for r in self._traced.results]
        if any(b.argument is not None for b in made) or len({*made}) < len(made):
            raise UnsupportedError("a result is an argument, or another result: return a copy")
        results = [(f"result{n}", b) for n, b in enumerate(made)]
        checks = self._traced.recorder.checks.values()
        results += [(f"check{n}", b) for n, b in enumerate(checks)]
        captured = [f"{g.name}_{n}" for n, g in enumerate(self._captured)]
        return emitted(self._traced.recorder, [*self._state, *self._names, *captured], results)

    def graph(self) -> ImportedModel:
        """The function of values, at the graph level, before any optimisation."""
        return graph_of(self.build(), state=True)

    def compiled(self, options: Mapping[str, Any]) -> CompiledProgram:
        """The program. `options`: those of `irkit.jit`. Raises UnsupportedError, DeviceError."""
        device = planned_device(options["target"], options["device"])
        check_mode(target_of(device), options["mode"])
        check_fastmath(options["fastmath"])
        with ONE_BUILDER, seldom_collected():
            imported = self.graph()
            set_fastmath(imported.module, options["fastmath"])
            budget = options.get("memory_budget")
            artifact = build_artifact(imported, device, options["cache"], memory_budget=budget)
            variant = Variant(artifact, options["mode"], absent_device(artifact, options["mode"]))
        return CompiledProgram({"only": variant})

    def like_results(self) -> list[Array]:
        """Arrays of no contents, of the shapes and dtypes of those that the function returned."""
        views = [r.view for r in self._traced.results]
        return [np.broadcast_to(np.zeros((), v.buffer.base.dtype), v.sizes) for v in views]

    def structured(self, arrays: Sequence[Any]) -> Any:
        """What the function returned, with these in place of its arrays."""
        return filled(self._traced.structure, list(arrays))

    def results(self, outputs: Sequence[Any]) -> Any:
        """What the function returned, of the outputs of its program."""
        found = [
            np.asarray(a).reshape(r.view.sizes)
            for a, r in zip(outputs, self._traced.results, strict=False)
        ]
        return self.structured(found)


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Of an array as it lies, in elements."""
    made: Array = np.empty(shape, np.uint8)
    return made.strides
