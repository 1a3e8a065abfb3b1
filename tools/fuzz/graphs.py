"""Random programs through the whole pipeline: every level and every mode computes the same."""

from __future__ import annotations

import random
import sys
import traceback
from pathlib import Path

import numpy as np

from irkit.context import IrkitContext
from irkit.driver.compiler.artifacts import build_artifact
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.errors import UnsupportedError
from irkit.frontends.module import ImportedModel
from irkit.interp import level_of, run_module
from irkit.runtime.variant import Variant
from tools.fuzz.finding import Finding, TookTooLong, limit

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "unit"))

from random_graphs import RandomGraph  # noqa: E402

SECONDS = 120.0


def copy_of(model: ImportedModel) -> ImportedModel:
    """Passes rewrite in place."""
    return ImportedModel(model.module.clone(), model.weights, model.info)


def same(got: list[np.ndarray], want: list[np.ndarray]) -> bool:
    """Equal up to rounding, NaN and infinity in the same places."""
    return all(
        g.dtype == w.dtype
        and g.shape == w.shape
        and np.allclose(g, w, rtol=1e-4, atol=1e-5, equal_nan=True)
        for g, w in zip(got, want, strict=True)
    )


def compare(program: RandomGraph, compiled: bool) -> str | None:
    """The first level or mode that computes something else; None if all agree."""
    model = program.model()
    runs = [program.inputs(rows) for rows in ((1, 2, 5) if program.batch else (1,))]
    wanted = [run_module(model.module, model.weights, x) for x in runs]
    lowered = copy_of(model)
    ctx = IrkitContext(weights=lowered.weights)
    register_dialects(ctx)
    for level in ("graph", "tensor", "task", "schedule"):
        run_level(ctx, lowered.module, level, "test4")
        for seed, (x, want) in enumerate(zip(runs, wanted, strict=True)):
            options = {"seed": seed} if level_of(lowered.module) == "schedule" else {}
            if not same(run_module(lowered.module, lowered.weights, x, **options), want):
                return f"the {level} level computes something else"
    if not compiled:
        return None
    artifact = build_artifact(copy_of(model), "cpu", cache=False)
    for mode in Variant(artifact).executor.choice.allowed:
        variant = Variant(artifact, mode)
        for x, want in zip(runs, wanted, strict=True):
            if not same(variant.run(x), want):
                return f"compiled, mode {mode} computes something else"
    return None


def attempt(rng: random.Random) -> Finding | None:
    """One program. One in eight is compiled too: that takes a second, the rest milliseconds."""
    seed, size, batch = rng.randrange(2**32), rng.randint(1, 14), rng.random() < 0.5
    compiled = rng.random() < 0.125
    text = f"RandomGraph({seed}, {size}, {batch})"
    try:
        with limit(SECONDS):
            program = RandomGraph(seed, size, batch)
            what = compare(program, compiled)
    except UnsupportedError:
        return None
    except TookTooLong:
        what = f"took more than {SECONDS:.0f} s"
    except Exception:  # whatever a pass raises is what is looked for
        what = traceback.format_exc(limit=-3)
    if what is None:
        return None
    module = str(RandomGraph(seed, size, batch).model().module)
    return Finding(what, f"// {text}\n{module}\n".encode(), ".mlir")
