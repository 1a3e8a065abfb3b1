"""The one runner of passes, behind `irkit.compile` and every tool: each pass with its time, what watches it,
and the checks that follow it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

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


class Verify(Enum):
    """When a module is verified: its ops, their levels, dominance."""

    EACH_PASS = "each pass"
    """Whatever is wrong is found in the pass that did it."""
    LEVELS = "levels"
    """Levels around each lowering; ops and dominance after the last pass. A fifth of the cost."""
    NOTHING = "nothing"


@dataclass
class PipelineRunner:
    """Runs passes in order. `place` is where errors without an op are shown."""

    ctx: IrkitContext
    timer: Timer = field(default_factory=Timer)
    instruments: Sequence[Instrument] = ()
    verify: Verify = Verify.EACH_PASS
    place: str | None = None

    def run(self, module: ModuleOp, passes: Sequence[ModulePass]) -> None:
        """Run `passes` on `module`, in place. Raises UserError for what the module's author can put
        right, BrokenPassError for a pass that leaves wrong IR, or whatever a pass raises that is neither."""
        produced: str | None = None
        for number, module_pass in enumerate(passes, start=1):
            self._run_one(module, module_pass, produced, number == len(passes))
            left: str | None = getattr(module_pass, "produces", None)
            # A pass that states nothing leaves the level that it finds.
            produced = produced if left is None and self.verify is Verify.LEVELS else left

    def _run_one(
        self, module: ModuleOp, module_pass: ModulePass, produced: str | None, is_last: bool
    ) -> None:
        """Run one pass, verify what it left, and show it to the instruments. `produced` is the level that
        the module is known to be at."""
        for instrument in self.instruments:
            instrument.before(module, module_pass)
        succeeded, start = False, time.perf_counter()
        try:
            self._check_before(module, module_pass, produced)
            with self.timer(module_pass.name), locations_kept():
                self._apply(module, module_pass)
            seconds = time.perf_counter() - start
            self._check_after(module, module_pass, is_last)
            for instrument in self.instruments:
                instrument.after(module, module_pass, seconds)
            succeeded = True
        finally:
            if not succeeded:
                for instrument in self.instruments:
                    instrument.failed(module, module_pass, time.perf_counter() - start)

    def _check_before(
        self, module: ModuleOp, module_pass: ModulePass, produced: str | None
    ) -> None:
        # What the pass before was held to need not be looked at again.
        if self.verify is Verify.NOTHING or produced in getattr(module_pass, "requires", ()):
            return
        with self.timer("verify"):
            check_required(module, module_pass, self.place)

    def _check_after(self, module: ModuleOp, module_pass: ModulePass, is_last: bool) -> None:
        each = self.verify is Verify.EACH_PASS
        if each or is_last or self.verify is Verify.NOTHING:
            adopt_locations(module)
        if self.verify is Verify.NOTHING:
            return
        with self.timer("verify"):
            if each or is_last:
                blamed = "pass" if each else "a pass up to"
                self._verify(module, f"{blamed} '{module_pass.name}'")
            if each or is_last or _lowers(module_pass):
                check_produced(module, module_pass, self.place)

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

    def _verify(self, module: ModuleOp, blamed: str) -> None:
        try:
            check_module(module)
        except UserError as error:
            raise BrokenPassError.of(error, f"{blamed} left IR that does not verify") from None


def _lowers(module_pass: ModulePass) -> bool:
    """Whether a pass leaves another level than it takes."""
    return getattr(module_pass, "produces", None) not in getattr(module_pass, "requires", ())


def _endless(name: str, error: FixpointError) -> BrokenPassError:
    """Patterns that go on for ever, each with an op that it rewrote."""
    places = [(step, file_place(step.location, len(step.op))) for step in error.cycle]
    notes = [note(f"'{step.rule}' rewrites '{step.op}'", place) for step, place in places]
    place = next((place for _, place in places if place is not None), None)
    return BrokenPassError(f"pass '{name}' does not end: {error}", place, notes)
