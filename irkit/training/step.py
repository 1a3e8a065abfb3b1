"""`irkit.training_step`: forward, backward and update as one program, that keeps what is trained."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from irkit.driver.flags import check_flags
from irkit.driver.programs.arguments import check_budget
from irkit.driver.programs.chunked import within_budget
from irkit.driver.programs.jitted import JittedFunction, jit
from irkit.errors import InvalidInputError, InvalidModelError, NotFiniteError, UnsupportedError
from irkit.model_info import ModelInfo
from irkit.runtime.dist.engine import Engine
from irkit.runtime.host_arrays import to_host
from irkit.runtime.program import CompiledProgram
from irkit.runtime.program_state import ProgramState
from irkit.runtime.state_memory import HostState
from irkit.schedule.tables import Port
from irkit.training.data_parallel import DataParallel, ParallelProgram
from irkit.training.identity import StepIdentity
from irkit.training.models import Model, model_of
from irkit.training.optimizers import Optimizer
from irkit.training.structures import arrays_by_name, filled_with
from irkit.training.traced import TracedProgram
from irkit.training.update import PARAMETERS, STATISTICS, STEPS, WHAT, Update
from irkit.weights import Array

Program = CompiledProgram | ParallelProgram
"""What runs a step."""


class TrainingStep:
    """A step of training, for arrays of any shapes: for each there is a program, and all have one state.

    Calls go one after another, from any thread.
    """

    def __init__(
        self,
        model: Model,
        loss: Callable[..., Any] | None,
        optimizer: Optimizer,
        parameters: Any,
        statistics: Any,
        stop_on_nan: bool,
        seed: int,
        options: Mapping[str, Any],
        parallel: DataParallel | None = None,
    ) -> None:
        arrays = arrays_by_name(parameters, PARAMETERS)
        if not arrays:
            raise UnsupportedError(f"{WHAT} of '{model.name}': there are no parameters")
        for name, array in arrays.items():
            if array.dtype.kind in "biuc":
                raise UnsupportedError(
                    f"{WHAT} of '{model.name}': '{name}' is of {array.dtype}: only floats have a gradient"
                )
        self._parallel = parallel
        self._update = Update(
            model, loss, optimizer, parameters, statistics, stop_on_nan, seed, parallel is not None
        )
        initial = self._update.start({**arrays, **arrays_by_name(statistics, STATISTICS)})
        ports = [Port(n, a.dtype.name, a.shape) for n, a in initial.items()]
        if parallel is not None:
            parallel.agree(initial)
        info = ModelInfo("network", (), ())
        self._identity = StepIdentity(self._update, initial)
        self._at_rest = ProgramState(HostState(ports), info, initial, self._identity)
        self._model, self._options = model, dict(options)
        self._lock = threading.RLock()
        self._known: dict[Hashable, list[tuple[TracedProgram, Program]]] = {}
        self._live, self._last = self._at_rest, None
        self._evaluation = _evaluation(model, {**options, "memory_budget": None})

    # Training

    def __call__(self, *arrays: Any) -> Any:
        """One step on inputs of the model and what else the loss takes; the loss before it.

        Raises InvalidInputError, IndexError for labels and indices out of bounds, NotFiniteError where the
        step is to stop for it, and at the first call for arrays of new shapes UnsupportedError. The state is
        then as it was.
        """
        with self._lock:
            traced, program = self._program(arrays)
            self._move_to(program.state)
            inputs = traced.all_inputs(arrays)
            outputs = list(map(to_host, program.run(inputs)))
            loss, *more = found = traced.results(outputs)
            for check, inside in zip(traced.checks, outputs[len(found) :], strict=True):
                if not inside:
                    raise check.error(f"{check.place}: {check.message}; the state is as it was")
            if self._update.stop_on_nan and not more[0]:
                raise NotFiniteError(self._why_not_finite(traced, inputs, loss))
            if self._parallel is not None:
                self._parallel.check(more[-1])
            return loss[()] if loss.ndim == 0 else loss

    def compile(self, *arrays: Any) -> TrainingStep:
        """Trace and compile for arrays like these, and train nothing."""
        with self._lock:
            self._program(arrays)
        return self

    def _program(self, arrays: Sequence[Any]) -> tuple[TracedProgram, Program]:
        given = [_described(a) for a in arrays]
        key = tuple((a.shape, a.dtype) for a in given)
        for found in self._known.get(key, ()):
            if found[0].holds():
                self._last = found
                return found
        if len(given) < self._model.inputs:
            raise InvalidInputError(
                f"{WHAT} of '{self._model.name}': expected {self._model.inputs} inputs and what the loss "
                f"takes, got {len(given)}"
            )
        names = [f"x{n}" for n in range(len(given))]
        made = within_budget(lambda: self._made(given, names))
        self._known.setdefault(key, []).append(made)
        self._last = made
        return made

    def _made(self, given: Sequence[Any], names: list[str]) -> tuple[TracedProgram, Program]:
        """The step for arrays like `given`, traced and compiled."""
        traced = TracedProgram(self._update.function(), self._live.arrays(), given, names)
        if self._parallel is None:
            program: Program = traced.compiled(self._options)
        else:
            program = self._parallel.compiled(traced.graph(), self._options)
        program.state.identity = self._identity
        self._identity.compiled_for(given)
        return traced, program

    def _move_to(self, state: ProgramState) -> None:
        """Make `state` the one that is trained."""
        if self._live is not state:
            state.update(self._live.arrays())
            self._live = state

    def _why_not_finite(self, traced: TracedProgram, inputs: Sequence[Array], loss: Array) -> str:
        from irkit.training.not_finite import first_op

        held = [*self._live.arrays().values(), *map(to_host, inputs)]
        where = first_op(traced.graph(), held, loss)
        what = f"the loss is {loss}"
        if np.isfinite(loss).all():
            what += ", and a gradient, or what it makes of the state, is not finite"
        return f"step {self.steps + 1}: {what}: {where}; the state is as it was"

    # What is kept

    @property
    def state(self) -> ProgramState:
        """All that is kept, by name: to be read, set, saved to a safetensors file and loaded from one."""
        return self._live

    @property
    def steps(self) -> int:
        """How many steps there were."""
        return int(self._live[STEPS])

    @property
    def parameters(self) -> Any:
        """The parameters now, copies in the structure that they came in."""
        return self._part(self._update.parameters, PARAMETERS)

    @property
    def statistics(self) -> Any:
        """The statistics now, copies in the structure that they came in."""
        return self._part(self._update.statistics, STATISTICS)

    def _part(self, structure: Any, name: str) -> Any:
        with self._lock:
            return filled_with(structure, self._live.arrays(), name)

    def save(self, path: Path | str) -> None:
        """Write the state to a safetensors file, with what identifies model, loss and optimiser. Raises
        ArtifactError."""
        with self._lock:
            self._live.save(path)

    def load(self, path: Path | str, other: Collection[str] = ()) -> None:
        """Go on, bit for bit, from a state that `save` wrote. `other`: which of "model", "loss" and
        "optimizer" may be others than those of the file. Raises ArtifactError for another file,
        InvalidInputError for the state of another model, loss or optimiser, or of other shapes; nothing is
        changed then."""
        with self._lock:
            self._live.load(path, other)

    # Evaluation

    def evaluate(self, *inputs: Any) -> Any:
        """What the model, not being trained, makes of inputs, with the parameters and statistics of now."""
        return self._evaluation(self.parameters, self.statistics, *inputs)

    # Looking inside

    def _compiled(self) -> Program:
        if self._last is None:
            raise InvalidModelError(f"'{self._model.name}' was not trained yet: call or compile it")
        return self._last[1]

    def ir(self, level: str = "graph") -> str:
        """Textual IR of the program that ran last, at "graph", "tensor", "task" or "schedule"."""
        return self._compiled().ir(level)

    def report(self) -> dict[str, Any]:
        """What was compiled for the arrays of the last call, and how it runs."""
        return self._compiled().report()


def _described(array: Any) -> Array:
    """An array of the host; of one on a device, one of its shape and dtype."""
    if hasattr(array, "__cuda_array_interface__"):
        return np.empty(tuple(array.shape), np.dtype(str(array.dtype)))
    return np.asarray(array)


def _evaluation(model: Model, options: Mapping[str, Any]) -> JittedFunction:
    def evaluate(parameters: Any, statistics: Any, *inputs: Any) -> Any:
        found = model(
            parameters, inputs, {"training": False, "statistics": statistics, "key": None}
        )
        return found[0] if len(found) == 1 else found

    evaluate.__qualname__ = f"evaluation of {model.name}"
    return jit(**options)(evaluate)


def training_step(
    model: Any,
    loss: Callable[..., Any] | None,
    optimizer: Any,
    *,
    parameters: Any = None,
    statistics: Any = (),
    stop_on_nan: bool = False,
    seed: int = 0,
    target: str = "auto",
    device: Any = None,
    mode: str = "auto",
    fastmath: Collection[str] | None = ("afn",),
    cache: bool = True,
    memory_budget: int | None = None,
    data_parallel: DataParallel | Engine | None = None,
) -> TrainingStep:
    """A step of training a model, as one program with a proved static schedule: `step(*inputs, *targets)`.

    `model`: a function of (parameters, *inputs), traced as by `irkit.jit`, of which `parameters` are the
    first values, an array or a dict, list or tuple of such; or an ONNX model (a path, an `onnx.ModelProto`,
    an `irkit.network`), of which `parameters` names initializers, or gives them values by name; by default
    they are all of its floats. `loss`: a function of (*outputs, *targets) that returns one number, such as
    those of `irkit.training.losses`; None: the model's output is the loss. `optimizer`: one of
    `irkit.training.optimizers`.

    A model that takes `training` is told whether it is trained or evaluated; one that takes `statistics` is
    given the arrays of that structure, and what it writes to them while it is trained is kept; one that takes
    `key` is given a key for `irkit.training.random`, of `seed` and the number of the step.
    `stop_on_nan`: a step whose loss, whose gradients or whose new state are not all finite changes nothing,
    and raises NotFiniteError, which names the first op that made it so. All else is as of `irkit.jit`.
    `memory_budget`: bytes of what a step computes that may be in use at once; what does not fit is computed
    again. `irkit.training.checkpoints` names what is to be.
    `data_parallel`: the group of ranks (`irkit.training.groups`) that make each step together, each on a
    part of the batch of the same size: the loss, and the gradients before they are clipped, are means over
    the ranks, and the state is the same on all of them, bit for bit. What is wrong on one is an error on all.

    Raises UnsupportedError for what is no model, parameters of integers, and names that no initializer has.
    """
    if not isinstance(optimizer, Optimizer):
        kind = type(optimizer).__name__
        raise UnsupportedError(
            f"{WHAT}: optimizer of {kind}: expected one of irkit.training.optimizers"
        )
    if loss is not None and not callable(loss):
        raise UnsupportedError(
            f"{WHAT}: loss of {type(loss).__name__}: expected a function or None"
        )
    check_flags(WHAT, stop_on_nan=stop_on_nan, cache=cache)
    found, start = model_of(model, parameters)
    options = {
        "target": target, "device": device, "mode": mode, "fastmath": fastmath, "cache": cache,
        "memory_budget": check_budget(memory_budget, WHAT),
    }  # fmt: skip
    if data_parallel is not None and memory_budget is not None:
        raise UnsupportedError(
            f"{WHAT}: memory_budget with data_parallel: a step of a group is several programs, of which"
            " later ones read what earlier ones computed"
        )
    parallel = None if data_parallel is None else _parallel(data_parallel, statistics)
    return TrainingStep(
        found, loss, optimizer, start, statistics, stop_on_nan, seed, options, parallel
    )


def _parallel(given: Any, statistics: Any) -> DataParallel:
    found = given if isinstance(given, DataParallel) else DataParallel(given)
    if not hasattr(found.group, "all_reduce"):
        kind = type(given).__name__
        raise UnsupportedError(
            f"{WHAT}: data_parallel of {kind}: expected a group of irkit.training.groups"
        )
    if arrays_by_name(statistics, STATISTICS):
        raise UnsupportedError(
            f"{WHAT}: data_parallel with statistics=: those of a part of the batch are not those of the whole"
        )
    return found
