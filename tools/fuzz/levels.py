"""Whether a program computes the same at every level of a route, and compiled."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from irkit.context import IrkitContext
from irkit.dialects.state import StatePair
from irkit.dialects.types import DYNAMIC, Tensor
from irkit.driver.compiler.batch import info_with_borders
from irkit.driver.compiler.report import figures
from irkit.driver.diagnostics.diagnostic import UserError
from irkit.driver.execution.entry_point import entry_point_of
from irkit.driver.instruments.timer import Timer
from irkit.driver.pipelines.runner import PipelineRunner
from irkit.driver.pipelines.specification import build_pipeline
from irkit.driver.pipelines.standard import LEVELS
from irkit.driver.reducing.failure import Failure
from irkit.driver.registry import all_passes, register_dialects
from irkit.errors import UnsupportedError
from irkit.frontends.module import ImportedModel
from irkit.interp import run_module
from irkit.lower.task_to_numba.emit import emit_module
from irkit.runtime.artifact import Artifact
from irkit.runtime.variant import Variant
from tools.fuzz.orders import Route, random_grids

Arrays = Sequence[np.ndarray]
Run = tuple[Arrays, Arrays]
"""Inputs, and what comes of them."""
Differs = Callable[[Arrays, Arrays], str | None]
"""Says where its first argument is not the second."""

# What every level may be wrong by where a value is very small.
SMALLEST = {"f": 1e-30, "d": 1e-300}


def within(tolerances: Sequence[float]) -> Differs:
    """Outputs may be wrong by these; integers, NaN and infinities must be the same."""

    def differs(got: Arrays, want: Arrays) -> str | None:
        if len(got) != len(want):
            return f"{len(want)} outputs became {len(got)}"
        for number, (g, w, tolerance) in enumerate(zip(got, want, tolerances, strict=True)):
            if g.dtype != w.dtype or g.shape != w.shape:
                return f"output {number}: {w.dtype}{w.shape} became {g.dtype}{g.shape}"
            wrong = np.argwhere(~_near(g, w, tolerance))
            if len(wrong):
                at = tuple(wrong[0])
                return f"output {number}{list(map(int, at))}: {w[at]} became {g[at]}"
        return None

    return differs


def _near(got: np.ndarray, want: np.ndarray, tolerance: float) -> np.ndarray:
    if got.dtype.kind != "f":
        return np.asarray(got == want)
    with np.errstate(all="ignore"):
        off = np.abs(got.astype(np.float64) - want.astype(np.float64))
        near = off <= tolerance + SMALLEST.get(got.dtype.char, 0.0)
    return near | (got == want) | (np.isnan(got) & np.isnan(want))


class Journey:
    """A graph-level program, inputs, and what the interpreter of the graph level makes of them."""

    def __init__(self, model: ImportedModel, runs: Sequence[Arrays], differs: Differs) -> None:
        self.model, self.runs, self.differs = model, runs, differs
        self.wanted = [run_module(model.module, model.weights, x) for x in runs]

    def copy(self) -> ImportedModel:
        """Passes rewrite in place."""
        return ImportedModel(self.model.module.clone(), self.model.weights, self.model.info)

    def follow(self, route: Route) -> Failure | None:
        """What is wrong on a route: the first level or mode that computes something else, IR that does not
        verify, or a proof that fails. Raises UnsupportedError where a pass refuses the program by name,
        and what the compiler raises by mistake."""
        lowered, rng = self.copy(), random.Random(route.seed)
        entry, runs = entry_point_of(lowered.module), list(zip(self.runs, self.wanted, strict=True))
        if route.rows is not None:
            runs = [r for r in runs if _is_of(r[0], entry.inputs, route.rows)]
        ctx = IrkitContext(weights=lowered.weights)
        register_dialects(ctx)
        for level, text in zip(LEVELS, route.steps, strict=True):
            try:
                PipelineRunner(ctx, Timer()).run(lowered.module, build_pipeline(text, all_passes()))
            except UserError as error:
                if _is_refusal(error):
                    raise UnsupportedError(str(error)) from error
                return Failure(f"the passes to the {level} level failed", str(error))
            if level == "task" and route.grids:
                random_grids(rng, lowered.module, route.device)
            if (found := self._wrong(lowered.module, level, rng, runs)) is not None:
                return Failure(f"the {level} level computes something else", found)
        return self._emitted(lowered, route, runs, entry.state)

    def _wrong(
        self, module: ModuleOp, level: str, rng: random.Random, runs: Sequence[Run]
    ) -> str | None:
        for x, want in runs:
            options = {"seed": rng.randrange(1000)} if level == "schedule" else {}
            got = run_module(module, self.model.weights, x, **options)
            if (found := self.differs(got, want)) is not None:
                return found
        return None

    def _emitted(
        self,
        lowered: ImportedModel,
        route: Route,
        runs: Sequence[Run],
        state: Sequence[StatePair],
    ) -> Failure | None:
        """What is proved is printed, whatever it is; and run, if it is to be compiled."""
        module, weights = lowered.module, self.model.weights
        try:
            source = emit_module(module, weights)
        except UnsupportedError as error:
            return Failure("what was proved is refused by emission", str(error))
        if not route.compiled:
            return None
        names = {name for name in weights if f'"{name}"' in str(module)}
        artifact = Artifact(
            "cpu", source, {name: weights[name] for name in sorted(names)},
            info_with_borders(lowered.info, module).to_json(), {}, figures(module), b"",
        )  # fmt: skip
        for mode in Variant(artifact).executor.choice.allowed:
            variant = Variant(artifact, mode)
            for x, want in runs:
                if (found := self.differs(_run(variant, x, state), want)) is not None:
                    return Failure(f"compiled, mode {mode} computes something else", found)
        return None


def _is_of(arrays: Arrays, types: Sequence[Tensor], rows: int) -> bool:
    """Whether a run's arrays are of arguments of these types for a batch of `rows`."""
    return all(
        [rows if s == DYNAMIC else s for s in t.get_shape()] == list(x.shape)
        for x, t in zip(arrays, types, strict=True)
    )


def _run(variant: Variant, arrays: Arrays, state: Sequence[StatePair]) -> list[np.ndarray]:
    """All results, of which some are what the state then is."""
    memory = variant.state
    if memory is None:
        return variant.run(arrays)
    held = {pair.argument for pair in state}
    for number, pair in enumerate(state):
        memory.write(number, arrays[pair.argument])
    outputs = iter(variant.run([x for n, x in enumerate(arrays) if n not in held]))
    new = {pair.result: memory.read(number) for number, pair in enumerate(state)}
    count = len(new) + len(variant.outputs)
    return [new[n] if n in new else next(outputs) for n in range(count)]


def _is_refusal(error: UserError) -> bool:
    """Whether a pass says by name what cannot be done. The proof refuses nothing that passes made, and no
    pass leaves what the next does not take."""
    said = isinstance(error.__cause__, UnsupportedError | PassFailedException)
    return said and "'verify-schedule'" not in str(error)
