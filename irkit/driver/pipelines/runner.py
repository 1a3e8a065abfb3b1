"""Run a pipeline: each pass with its dumps, its time, and the checks that follow it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import DiagnosticException

from irkit.context import IrkitContext
from irkit.driver.diagnostics.diagnostic import BrokenPassError, UserError, note
from irkit.driver.diagnostics.locations import adopt_locations, file_place, locations_kept
from irkit.driver.instruments.instrument import Instrument
from irkit.driver.instruments.timer import Timer
from irkit.driver.verification.level_checks import check_produced, check_required
from irkit.driver.verification.verifier import check_module, message_of
from irkit.errors import IrkitError
from irkit.rewriting import FixpointError


@dataclass
class PipelineRunner:
    """Runs passes in order. `place` is where errors without an op are shown."""

    ctx: IrkitContext
    timer: Timer
    instruments: Sequence[Instrument] = ()
    verify_each: bool = True
    place: str | None = None

    def run(self, module: ModuleOp, passes: list[ModulePass]) -> None:
        """Run `passes` on `module`, in place. Raises UserError, BrokenPassError, or whatever a pass
        raises that is no diagnostic."""
        for module_pass in passes:
            self._run_one(module, module_pass)

    def _run_one(self, module: ModuleOp, module_pass: ModulePass) -> None:
        """Run one pass, verify what it left, and show it to the instruments."""
        name = module_pass.name
        for instrument in self.instruments:
            instrument.before(module, module_pass)
        succeeded, start = False, time.perf_counter()
        try:
            if self.verify_each:
                check_required(module, module_pass, self.place)
            with self.timer(name), locations_kept():
                self._apply(module, module_pass)
            seconds = time.perf_counter() - start
            adopt_locations(module)
            if self.verify_each:
                with self.timer("verify"):
                    self._verify(module, name)
                    check_produced(module, module_pass, self.place)
            for instrument in self.instruments:
                instrument.after(module, module_pass, seconds)
            succeeded = True
        finally:
            if not succeeded:
                for instrument in self.instruments:
                    instrument.failed(module, module_pass, time.perf_counter() - start)

    def _apply(self, module: ModuleOp, module_pass: ModulePass) -> None:
        name = module_pass.name
        try:
            module_pass.apply(self.ctx, module)
        except DiagnosticException as error:
            raise UserError(f"pass '{name}' failed: {message_of(error)}", self.place) from error
        except IrkitError as error:
            raise UserError(f"pass '{name}' failed: {error}", self.place) from error
        except FixpointError as error:
            raise _endless(name, error) from None
        except RecursionError:
            raise UserError(f"pass '{name}' failed: regions are nested too deeply") from None

    def _verify(self, module: ModuleOp, name: str) -> None:
        try:
            check_module(module)
        except UserError as error:
            found = error.diagnostic
            blame = note(f"pass '{name}' left IR that does not verify")
            raise BrokenPassError(found.message, found.place, [*found.notes, blame]) from None


def _endless(name: str, error: FixpointError) -> BrokenPassError:
    """Patterns that go on for ever, each with an op that it rewrote."""
    places = [(step, file_place(step.location, len(step.op))) for step in error.cycle]
    notes = [note(f"'{step.rule}' rewrites '{step.op}'", place) for step, place in places]
    place = next((place for _, place in places if place is not None), None)
    return BrokenPassError(f"pass '{name}' does not end: {error}", place, notes)
