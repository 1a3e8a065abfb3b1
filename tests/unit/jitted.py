"""Traced functions beside NumPy: the same calls on copies of the same arguments, compared to the last bit
where nothing is summed or approximated."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from irkit.dialects.functions import function_named
from irkit.dialects.program.builder import BuiltProgram
from irkit.dialects.program.check import written_arguments
from irkit.driver.programs.jitted import JittedFunction
from irkit.interp.program import run_program


class Interpreted:
    """A program run by the interpreter of its level."""

    source = ""

    def __init__(self, built: BuiltProgram) -> None:
        self.built = built
        main = function_named(built.module, "main")
        assert main is not None
        self._written = list(written_arguments(main))
        self._results = len(main.function_type.outputs)

    def run(self, buffers: Sequence[Any]) -> tuple[list[Any], Mapping[int, Any]]:
        with np.errstate(all="ignore"):
            found = run_program(
                self.built.module, self.built.weights, buffers, self.built.functions
            )
        written = dict(zip(self._written, found[self._results :], strict=True))
        return found[: self._results], written

    def ir(self, level: str) -> str:
        assert level == "program"
        return str(self.built.module)

    def report(self) -> dict[str, Any]:
        return {}

    def timelines(self) -> list[Any]:
        return []


def interpreted(function: Any) -> JittedFunction:
    """`function`, traced and run by the interpreter."""
    return JittedFunction(function, Interpreted)


def check(
    function: Any, *args: Any, tolerance: float = 0.0, jit: Callable[..., Any] = interpreted
) -> Any:
    """Call a function and its traced twin; compare results and arguments. Returns the twin."""
    theirs, ours = copy.deepcopy(args), copy.deepcopy(args)
    with np.errstate(all="ignore"):
        want = function(*theirs)
    traced = jit(function)
    got = traced(*ours)
    compare(got, want, tolerance, "result")
    compare(list(ours), list(theirs), tolerance, "argument")
    return traced


def compare(got: Any, want: Any, tolerance: float, where: str) -> None:
    """Types, dtypes, shapes and values of everything in two structures."""
    assert type(got) is type(want), f"{where}: {type(got)}, not {type(want)}"
    if isinstance(want, dict):
        assert list(got) == list(want), where
        for key in want:
            compare(got[key], want[key], tolerance, f"{where}[{key!r}]")
    elif isinstance(want, list | tuple):
        assert len(got) == len(want), where
        for number, (g, w) in enumerate(zip(got, want, strict=True)):
            compare(g, w, tolerance, f"{where}[{number}]")
    elif isinstance(want, np.ndarray | np.generic):
        assert got.dtype == want.dtype, f"{where}: {got.dtype}, not {want.dtype}"
        assert got.shape == want.shape, f"{where}: {got.shape}, not {want.shape}"
        np.testing.assert_allclose(got, want, tolerance, tolerance, err_msg=where)
    else:
        assert got == want, where
