"""Random programs of all ops and element types, on random routes; a finding comes as a small module."""

from __future__ import annotations

import random
import traceback
import warnings
from collections import Counter

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from irkit.dialects.functions import function_named
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.driver.files.printing import module_text
from irkit.driver.instruments.semantics import difference
from irkit.driver.reducing.failure import Catcher, Failure, failure_of
from irkit.driver.reducing.reducer import Reducer
from irkit.errors import UnsupportedError
from irkit.frontends.module import ImportedModel
from tools.fuzz.finding import Finding, TookTooLong, limit
from tools.fuzz.levels import Journey
from tools.fuzz.levels import within as within_tolerances
from tools.fuzz.orders import Route, routes
from tools.fuzz.programs import random_program
from tools.fuzz.programs.arrays import Draw
from tools.fuzz.programs.program import ROWS

SECONDS = 120.0
# A share of programs is compiled: that takes seconds, all else milliseconds.
COMPILED = 0.02
# How long a finding is made smaller.
SHRINKING = 60.0
# Why programs were refused, by this process.
REFUSED: Counter[str] = Counter()


def attempt(rng: random.Random) -> Finding | None:
    """One program on its routes."""
    seed, size, batch = rng.randrange(2**32), rng.randint(1, 12), rng.random() < 0.4
    taken = routes(rng, rng.random() < COMPILED, ROWS if batch else ())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return judge(seed, size, batch, taken)


def judge(seed: int, size: int, batch: bool, taken: list[Route]) -> Finding | None:
    """The finding that a program is on some route; None if it is none."""
    text = f"random_program({seed}, {size}, {batch})"
    catcher = Catcher()
    with catcher:
        program = random_program(seed, size, batch)
        model = program.model()
    if catcher.error is not None:
        return Finding(f"{text}: {_traceback(catcher.error)}", text.encode(), ".txt")
    for route in taken:
        try:
            with limit(SECONDS):
                failure, error = _outcome(
                    model, route, program.runs, within_tolerances(program.tolerances())
                )
        except TookTooLong:
            failure, error = Failure(f"took more than {SECONDS:.0f} s", ""), None
        if failure is not None:
            what = _traceback(error) if error is not None else str(failure)
            small = shrunk(model, route, failure)
            shown = f"// {text}\n// {route}\n// {failure}\n{module_text(small)}"
            return Finding(f"{what}\n{shown}", shown.encode(), ".mlir")
    return None


def _traceback(error: Exception) -> str:
    return "".join(traceback.format_exception(error, limit=-3, chain=False))


def _outcome(model, route, runs, differs) -> tuple[Failure | None, Exception | None]:
    """How a program fails on a route, and the error if that is one."""
    catcher, failure = Catcher(), None
    with catcher:
        failure = Journey(model, runs, differs).follow(route)
    if isinstance(catcher.error, UnsupportedError):
        REFUSED[str(catcher.error)] += 1
        return None, None
    if catcher.error is not None:
        return failure_of(catcher.error), catcher.error
    return failure, None


def shrunk(model: ImportedModel, route: Route, failure: Failure) -> ModuleOp:
    """A small module that fails alike on the route, on inputs drawn for it; the program's own if that fails
    on its own inputs alone."""

    def test(module: ModuleOp) -> bool:
        inputs = _inputs(module)
        if inputs is None:
            return False
        again = ImportedModel(module, model.weights, model.info)
        found, _ = _outcome(again, route, inputs, lambda got, want: difference(want, got))
        return found is not None and found.kind == failure.kind and _alike(found, failure)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "took more" in failure.kind or not test(model.module):
            return model.module
        most = 40 if route.compiled else 1000
        return Reducer(test, model.weights, most, SHRINKING).reduce(model.module)


def _alike(found: Failure, failure: Failure) -> bool:
    """Values in words are others in a smaller module."""
    return "computes" in failure.kind or "passes" in failure.kind or found.what == failure.what


def _inputs(module: ModuleOp) -> list[list[np.ndarray]] | None:
    """Inputs for each number of `ROWS`, if there is a batch; None if there is no function."""
    main = function_named(module, "main")
    if main is None:
        return None
    types = [tensor_type(a) for a in main.body.block.args]
    batch = any(DYNAMIC in t.get_shape() for t in types)
    draw = Draw(0)
    return [
        [
            draw.array(t.element_type, [rows if s == DYNAMIC else s for s in t.get_shape()])
            for t in types
        ]
        for rows in (ROWS if batch else (1,))
    ]
