"""Whether a program computes the same at every level, in any order of passes, and compiled."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Sequence

import numpy as np
from xdsl.utils.exceptions import PassFailedException

from irkit.context import IrkitContext
from irkit.driver.compiler.artifacts import build_artifact
from irkit.driver.diagnostics.diagnostic import UserError
from irkit.driver.instruments.timer import Timer
from irkit.driver.pipelines.runner import PipelineRunner
from irkit.driver.pipelines.specification import build_pipeline
from irkit.driver.registry import all_passes, register_dialects
from irkit.errors import UnsupportedError
from irkit.frontends.module import ImportedModel
from irkit.interp import level_of, run_module
from irkit.runtime.cpu import MODES
from irkit.runtime.program import Variant
from tools.fuzz.orders import DEVICES, random_grids, random_passes, standard_passes
from tools.fuzz.programs.program import RandomProgram

Arrays = Sequence[np.ndarray]
# Why programs were refused, in a process: `python -m tools.fuzz` shows them.
REFUSED: Counter[str] = Counter()
# What every level may be wrong by, for elements that are very small.
SMALLEST = {"f": 1e-30, "d": 1e-300}


def difference(got: Arrays, want: Arrays, tolerances: Sequence[float]) -> str | None:
    """Where `got` is not `want`, in words. Integers and NaN must be the same."""
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


def _near(got: np.ndarray, want: np.ndarray, tolerance: float) -> np.ndarray:
    if got.dtype.kind != "f":
        return np.asarray(got == want)
    with np.errstate(all="ignore"):
        near = np.abs(got.astype(np.float64) - want.astype(np.float64)) <= (
            tolerance + SMALLEST.get(got.dtype.char, 0.0)
        )
    return near | (got == want) | (np.isnan(got) & np.isnan(want))


class Comparison:
    """One program, and what the interpreter of the graph level says."""

    def __init__(self, program: RandomProgram) -> None:
        self.model = program.model()
        self.runs = program.runs
        self.tolerances = program.tolerances()
        self.wanted = [run_module(self.model.module, self.model.weights, x) for x in self.runs]

    def copy(self) -> ImportedModel:
        """Passes rewrite in place."""
        return ImportedModel(self.model.module.clone(), self.model.weights, self.model.info)

    def pipeline(self, rng: random.Random, standard: bool) -> str | None:
        """The first level of a pipeline that computes something else; None if all agree."""
        name = rng.choice(DEVICES)
        lowered = self.copy()
        ctx = IrkitContext(weights=lowered.weights)
        register_dialects(ctx)
        for level, text in standard_passes(name) if standard else random_passes(rng, name):
            try:
                PipelineRunner(ctx, Timer()).run(lowered.module, build_pipeline(text, all_passes()))
            except UserError as error:
                if _is_refusal(error):
                    raise UnsupportedError(str(error)) from error
                return f"after '{text}' on {name}: {error}"
            if level == "task" and not standard:
                random_grids(rng, lowered.module, name)
            if (found := self._differs(lowered, rng)) is not None:
                return f"the {level} level after '{text}' on {name}: {found}"
        return None

    def _differs(self, lowered: ImportedModel, rng: random.Random) -> str | None:
        options = {}
        for x, want in zip(self.runs, self.wanted, strict=True):
            if level_of(lowered.module) == "schedule":
                options = {"seed": rng.randrange(1000)}
            got = run_module(lowered.module, lowered.weights, x, **options)
            if (found := difference(got, want, self.tolerances)) is not None:
                return found
        return None

    def compiled(self) -> str | None:
        """The first mode of the compiled program that computes something else."""
        artifact = build_artifact(self.copy(), "cpu", cache=False)
        for mode in MODES:
            variant = Variant(artifact, mode)
            for x, want in zip(self.runs, self.wanted, strict=True):
                if (found := difference(variant.run(x), want, self.tolerances)) is not None:
                    return f"compiled, mode {mode}: {found}"
        return None


def _is_refusal(error: UserError) -> bool:
    """Whether a pass says by name what cannot be done. The proof refuses nothing that passes made, and no
    pass leaves what the next does not take."""
    said = isinstance(error.__cause__, UnsupportedError | PassFailedException)
    return said and "'verify-schedule'" not in str(error)


def compare(program: RandomProgram, rng: random.Random, compiled: bool) -> str | None:
    """What is wrong with `program`: at a level of the standard pipeline, of another, or compiled.

    None if all agree, or if irkit refuses it by name.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            comparison = Comparison(program)
            found = comparison.pipeline(rng, standard=True) or comparison.pipeline(
                rng, standard=False
            )
            if found is None and compiled:
                return comparison.compiled()
    except UnsupportedError as error:
        REFUSED[str(error)] += 1
        return None
    return found
