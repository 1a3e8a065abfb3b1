"""Dumps of the module around passes, as the `--print-ir-*` flags ask: to stderr, or to numbered files."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from irkit.driver.diagnostics.diagnostic import UserError
from irkit.driver.files.printing import module_text


def exact_spec(module_pass: ModulePass) -> str:
    """A pass with all its options, defaults included, as `-p` reads it."""
    return str(module_pass.pipeline_pass_spec(include_default=True))


def unified_diff(before: str, after: str, name_before: str, name_after: str) -> str:
    """What changed between two texts; empty if nothing did."""
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), name_before, name_after
    )
    return "".join(lines)


def wants_dumps(options: argparse.Namespace) -> bool:
    """Whether any flag asks for a dump."""
    return bool(
        options.tree_dir
        or options.print_ir_before_all
        or options.print_ir_after_all
        or options.print_ir_after_change
        or options.print_ir_after_failure
        or options.print_ir_diff
    )


class Dumper:
    """The instrument behind `--print-ir-*`.

    Files are `NNN-PASS.mlir`, by the pass's number in the pipeline, from 000-input.mlir; each begins
    with the exact pass and may be read by irkit-opt again. `NNN-PASS.diff` has what the pass changed.
    """

    def __init__(
        self,
        options: argparse.Namespace,
        stderr: IO[str],
        module: ModuleOp,
        passes: Sequence[ModulePass],
        folder: Path | None,
    ) -> None:
        self._options = options
        self._stderr = stderr
        self._total = len(passes)
        self._folder = folder
        self._number = 0
        self._last_file = "000-input.mlir"
        after = options.print_ir_after_change or options.print_ir_after_failure
        asked = options.print_ir_before_all or options.print_ir_after_all or after
        every = folder is not None and not asked
        self._after_all = bool(options.print_ir_after_all or every)
        # Printing costs as much as a pass: only where it is shown or compared.
        self._failures_only = asked and not (
            folder is not None
            or self._after_all
            or options.print_ir_before_all
            or options.print_ir_after_change
            or options.print_ir_diff
        )
        self._last = "" if self._failures_only else self._text(module)
        if folder is not None:
            self._write(self._last_file, f"// The input of {self._total} passes.\n\n{self._last}")

    def before(self, module: ModuleOp, module_pass: ModulePass) -> None:
        """A pass is about to run."""
        self._number += 1
        if self._options.print_ir_before_all:
            self._dump("before", ".before", module_pass, self._last)

    def after(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """A pass has succeeded."""
        if self._failures_only:
            return
        before, text = self._last, self._text(module)
        changed = before != text
        if self._options.print_ir_diff:
            self._diff(module_pass, before, text)
        shown = self._folder is not None or not self._options.print_ir_diff
        if shown and (self._after_all or (self._options.print_ir_after_change and changed)):
            note = "It changed the module." if changed else "It left the module as it was."
            self._dump("after", "", module_pass, text, note)
        self._last = text

    def failed(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """A pass has failed."""
        if self._options.print_ir_after_failure or self._after_all:
            # The custom form may not be able to print what does not verify.
            text = module_text(module, generic=True)
            self._dump("after failure of", ".failed", module_pass, text, "It failed.")

    def _text(self, module: ModuleOp) -> str:
        options = self._options
        return module_text(module, options.print_op_generic, options.print_debuginfo)

    def _stem(self, module_pass: ModulePass) -> str:
        return f"{self._number:03}-{module_pass.name}"

    def _diff(self, module_pass: ModulePass, before: str, after: str) -> None:
        name = f"{self._stem(module_pass)}.mlir"
        text = unified_diff(before, after, self._last_file, name)
        self._last_file = name
        if not text:
            return
        if self._folder is not None:
            self._write(f"{self._stem(module_pass)}.diff", text)
            return
        spec = exact_spec(module_pass)
        self._stderr.write(f"// -----// IR diff by {spec} //----- //\n{text}\n")

    def _dump(
        self, when: str, suffix: str, module_pass: ModulePass, text: str, note: str = ""
    ) -> None:
        spec = exact_spec(module_pass)
        if self._folder is None:
            self._stderr.write(f"// -----// IR dump {when} {spec} //----- //\n{text}\n")
            return
        head = f"// Pass {self._number} of {self._total}, {when}: {spec}\n"
        head += f"// {note}\n" if note else ""
        self._write(f"{self._stem(module_pass)}{suffix}.mlir", f"{head}\n{text}")

    def _write(self, name: str, text: str) -> None:
        assert self._folder is not None
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            (self._folder / name).write_text(text, encoding="utf-8")
        except OSError as error:
            raise UserError(f"cannot write to '{self._folder}': {error.strerror}") from None
