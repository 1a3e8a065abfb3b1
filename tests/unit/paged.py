"""Functions computed in chunks, by the interpreter of programs: what tests of paging run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irkit.dialects.functions import function_named
from irkit.dialects.program.builder import BuiltProgram
from irkit.dialects.program.check import program_faults, written_arguments
from irkit.driver.programs.jitted import JittedFunction
from irkit.interp.program import run_program
from irkit.passes.program.paging.calls import PagedSweep
from irkit.passes.program.paging.paged import page_module


class Chunked:
    """A program in chunks, run by the interpreter of its level."""

    source = ""

    def __init__(self, built: BuiltProgram, limit: int, buffers: int, values: bool) -> None:
        self.built, self.module = built, built.module.clone()
        self.sweeps: list[PagedSweep] = page_module(
            self.module, built.weights, limit, buffers, values
        )
        self.module.verify()
        assert list(program_faults(self.module)) == []
        main = function_named(built.module, "main")
        assert main is not None
        self._results = len(main.function_type.outputs)
        self._written = list(written_arguments(main))

    def run(self, buffers: Sequence[Any]) -> tuple[list[Any], Mapping[int, Any]]:
        with np.errstate(all="ignore"):
            found = run_program(self.module, self.built.weights, buffers)
        return found[: self._results], dict(zip(self._written, found[self._results :], strict=True))

    def ir(self, level: str) -> str:
        return str(self.module)

    def report(self) -> dict[str, Any]:
        return {}

    def timelines(self) -> list[Any]:
        return []


class Chunking:
    """Makes traced functions that are computed in chunks; what became of the last one is in `sweeps`."""

    def __init__(self, limit: int, buffers: int = 3, values: bool = False) -> None:
        self._limit, self._buffers, self._values = limit, buffers, values
        self.last: Chunked | None = None

    def __call__(self, function: Any) -> JittedFunction:
        return JittedFunction(function, self._lower)

    def _lower(self, built: BuiltProgram) -> Chunked:
        self.last = Chunked(built, self._limit, self._buffers, self._values)
        return self.last

    @property
    def sweeps(self) -> list[PagedSweep]:
        assert self.last is not None
        return self.last.sweeps
