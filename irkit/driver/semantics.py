"""`--check-semantics`: run a module before and after each pass and compare what it computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from irkit.dialects.task import ProgramOp
from irkit.driver.arrays import random_inputs
from irkit.driver.diagnostics import UserError, note
from irkit.driver.entry import entry_of
from irkit.driver.instruments import Timer
from irkit.interp import run_module
from irkit.weights import Array


def difference(before: Sequence[Array], after: Sequence[Array]) -> str | None:
    """Where `after` is not `before`, in words; None if they agree.

    Integers must be equal. Floats may differ by rounding, since passes reorder arithmetic: by the
    square root of a type's epsilon, relative to the largest finite magnitude of the array.
    """
    if len(before) != len(after):
        return f"{len(before)} outputs became {len(after)}"
    for index, (old, new) in enumerate(zip(before, after, strict=True)):
        if (text := _array_difference(old, new)) is not None:
            return f"output {index}: {text}"
    return None


def _array_difference(old: Array, new: Array) -> str | None:
    if old.shape != new.shape or old.dtype != new.dtype:
        return f"{old.dtype}{list(old.shape)} became {new.dtype}{list(new.shape)}"
    wrong = np.argwhere(~_close(old, new))
    if not len(wrong):
        return None
    at = tuple(int(i) for i in wrong[0])
    return f"element {list(at)} was {old[at]}, is {new[at]} ({len(wrong)} of {old.size} differ)"


def _close(old: Array, new: Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    if old.dtype.kind != "f":
        return np.asarray(old == new)
    tolerance = float(np.sqrt(np.finfo(old.dtype).eps))
    scale = float(np.abs(old[np.isfinite(old)]).max(initial=0.0))
    return np.isclose(new, old, rtol=tolerance, atol=tolerance * scale, equal_nan=True)


def runnable(module: ModuleOp) -> bool:
    """Whether an interpreter can run `module`: a scheduled program needs its memory planned."""
    programs = (op for op in module.walk() if isinstance(op, ProgramOp))
    return all(program.arena_bytes is not None for program in programs)


class SemanticsChecker:
    """Keeps the outputs of the module as it was read."""

    def __init__(
        self, module: ModuleOp, weights: Mapping[str, Array], seed: int, timer: Timer
    ) -> None:
        self._timer = timer
        self._weights = weights
        self._seed = seed
        self._unchecked: list[str] = []
        self._inputs = random_inputs(entry_of(module), seed)
        self._expected = run_module(module, weights, self._inputs)

    def before(self, module: ModuleOp, module_pass: ModulePass) -> None:
        """What the module computed before is known."""

    def after(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """Raise UserError if `module` no longer computes what it did."""
        with self._timer("check semantics"):
            self._compare(module, module_pass.name)

    def failed(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """There is nothing to run."""

    def _compare(self, module: ModuleOp, name: str) -> None:
        self._unchecked.append(f"'{name}'")
        if not runnable(module):
            return
        suspects, self._unchecked = self._unchecked, []
        text = difference(self._expected, run_module(module, self._weights, self._inputs))
        if text is not None:
            who = f"pass {suspects[0]}" if len(suspects) == 1 else f"one of {', '.join(suspects)}"
            repeat = note(f"inputs were drawn with --seed={self._seed}")
            raise UserError(f"{who} changed the meaning of the module: {text}", notes=[repeat])
