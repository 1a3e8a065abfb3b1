"""`--cross-check`: a real mlir-opt verifies modules, upstream's ops and, by IRDL, irkit's."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from irkit.driver.diagnostics.diagnostic import BrokenPassError, Diagnostic, Place, UserError, note
from irkit.driver.instruments.timer import Timer
from irkit.driver.registry import irkit_dialects
from irkit.driver.verification.irdl_export import export_dialects, foreign_text, widest_group

VARIABLE = "IRKIT_MLIR_OPT"
PROGRAMS = ("mlir-opt-22", "mlir-opt")
_MODULE = "irkit-cross-check.mlir"
_MESSAGE = re.compile(r"^(?P<file>.*?):(?P<line>\d+):(?P<column>\d+): error: (?P<text>.*)$", re.M)


def find_mlir_opt() -> str | None:
    """The mlir-opt to use: `IRKIT_MLIR_OPT`, else one that is installed; None if there is none."""
    if named := os.environ.get(VARIABLE):
        return named
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


def refusal(program: str, texts: Sequence[str], widest: int) -> Diagnostic | None:
    """What mlir-opt has against modules, as `foreign_text` writes them; None if it takes them all.

    Raises UserError if it cannot be run.
    """
    exported = export_dialects((factory() for factory in irkit_dialects().values()), widest)
    with tempfile.TemporaryDirectory() as folder:
        dialects, text = Path(folder, "irkit.irdl.mlir"), Path(folder, _MODULE)
        dialects.write_text(exported.text(), encoding="utf-8")
        text.write_text("// -----\n".join(texts), encoding="utf-8")
        flags = [f"--irdl-file={dialects}", "--allow-unregistered-dialect", "--split-input-file"]
        try:
            done = subprocess.run(
                [program, *flags, str(text)], capture_output=True, text=True, check=False
            )
        except OSError as error:
            raise UserError(f"--cross-check: cannot run '{program}': {error.strerror}") from None
    return None if done.returncode == 0 else _diagnostic(done.stderr)


def _diagnostic(errors: str) -> Diagnostic:
    """The first of mlir-opt's errors; its place is irkit's own where an op has a location."""
    found = _MESSAGE.search(errors)
    if found is None:
        return Diagnostic((errors.strip() or "it failed and said nothing").split("\n", 1)[0])
    if Path(found["file"]).name == _MODULE:  # an op without a location
        return Diagnostic(found["text"])
    return Diagnostic(found["text"], Place(found["file"], int(found["line"]), int(found["column"])))


class CrossChecker:
    """The instrument: the input, and what each pass leaves, must please mlir-opt."""

    def __init__(self, module: ModuleOp, timer: Timer) -> None:
        program = find_mlir_opt()
        if program is None:
            raise UserError(
                "--cross-check needs mlir-opt (Debian: mlir-22-tools), in the PATH or named by "
                f"{VARIABLE}",
                "irkit-opt",
            )
        self._program = program
        self._timer = timer
        self._taken = ""
        if (found := self._refusal(module)) is not None:
            raise UserError(f"mlir-opt refuses the input: {found.message}", found.place)

    def before(self, module: ModuleOp, module_pass: ModulePass) -> None:
        """What was there before has been checked."""

    def after(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """Raises BrokenPassError if mlir-opt refuses the module."""
        if (found := self._refusal(module)) is not None:
            blame = note(f"pass '{module_pass.name}' left IR that mlir-opt does not take")
            raise BrokenPassError(f"mlir-opt: {found.message}", found.place, [blame])

    def failed(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """There is nothing to check."""

    def _refusal(self, module: ModuleOp) -> Diagnostic | None:
        with self._timer("cross-check"):
            widest = widest_group(module)
            text = foreign_text(module, widest)
            if text == self._taken:
                return None
            found = refusal(self._program, [text], widest)
            self._taken = text
            return found
