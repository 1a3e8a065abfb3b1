"""Run a pipeline: each pass with its dumps, its time, and the checks that follow it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from irkit.context import IrkitContext
from irkit.driver.checking import check_module, message_of
from irkit.driver.diagnostics import BrokenPassError, UserError, note
from irkit.driver.instruments import Timer
from irkit.driver.locations import adopt_locations, locations_kept
from irkit.errors import IrkitError


class Checker(Protocol):
    """Looks at the module after each pass."""

    def after(self, module: ModuleOp, name: str) -> None:
        """Raise UserError if pass `name` changed what it must not."""
        ...


class Instrument(Protocol):
    """Watches a pipeline. Called around each pass, when it is switched on; sees the module, changes
    nothing."""

    def before(self, module: ModuleOp, module_pass: ModulePass) -> None:
        """A pass is about to run."""
        ...

    def after(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """A pass has run, and what it left verifies."""
        ...

    def failed(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """A pass raised, or left what does not verify."""
        ...


@dataclass
class PipelineRunner:
    """Runs passes in order. `place` is where errors without an op are shown."""

    ctx: IrkitContext
    timer: Timer
    instruments: Sequence[Instrument] = ()
    verify_each: bool = True
    checker: Checker | None = None
    place: str | None = None

    def run(self, module: ModuleOp, passes: list[ModulePass]) -> None:
        """Run `passes` on `module`, in place. Raises UserError, BrokenPassError, or whatever a pass
        raises that is no diagnostic."""
        for module_pass in passes:
            for instrument in self.instruments:
                instrument.before(module, module_pass)
            seconds = self._run_one(module, module_pass)
            for instrument in self.instruments:
                instrument.after(module, module_pass, seconds)

    def _run_one(self, module: ModuleOp, module_pass: ModulePass) -> float:
        """Run and check one pass; returns the seconds that the pass itself took."""
        name = module_pass.name
        succeeded, start, seconds = False, time.perf_counter(), 0.0
        try:
            with self.timer(name), locations_kept():
                self._apply(module, module_pass)
            seconds = time.perf_counter() - start
            adopt_locations(module)
            self._check(module, name)
            succeeded = True
        finally:
            if not succeeded:
                for instrument in self.instruments:
                    instrument.failed(module, module_pass, time.perf_counter() - start)
        return seconds

    def _apply(self, module: ModuleOp, module_pass: ModulePass) -> None:
        name = module_pass.name
        try:
            module_pass.apply(self.ctx, module)
        except DiagnosticException as error:
            raise UserError(f"pass '{name}' failed: {message_of(error)}", self.place) from error
        except IrkitError as error:
            raise UserError(f"pass '{name}' failed: {error}", self.place) from error
        except RecursionError:
            raise UserError(f"pass '{name}' failed: regions are nested too deeply") from None

    def _check(self, module: ModuleOp, name: str) -> None:
        if self.verify_each:
            with self.timer("verify"):
                self._verify(module, name)
        if self.checker is not None:
            with self.timer("check semantics"):
                self.checker.after(module, name)

    def _verify(self, module: ModuleOp, name: str) -> None:
        try:
            check_module(module)
        except UserError as error:
            found = error.diagnostic
            blame = note(f"pass '{name}' left IR that does not verify")
            raise BrokenPassError(found.message, found.place, [*found.notes, blame]) from None
