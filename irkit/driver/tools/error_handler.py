"""The edge between a tool and its user: every way a run can end becomes an exit code and a message.

0: fine. 1: an error of the user's, shown as one diagnostic. 2: an error of irkit's, shown with its
traceback and the path of a reproducer.
"""

from __future__ import annotations

import errno
import io
import os
import shlex
import shutil
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING

from irkit.driver.diagnostics.diagnostic import (
    BrokenPassError,
    Diagnostic,
    Sources,
    UserError,
    report,
)
from irkit.driver.tools.arguments import Finished
from irkit.errors import InternalError, IrkitError

if TYPE_CHECKING:
    from irkit.driver.instruments.reproducer import Reproducer

# Flags whose values are files to write.
_WRITES = (
    "-o",
    "--html",
    "--outputs",
    "--mlir-print-ir-tree-dir",
    "--print-ir-tree-dir",
    "--report",
    "--schedule-view",
    "--trace",
)


class ErrorHandler:
    """`with handler: ...` sets `handler.status`. `input_text` is what a reproducer will contain, or what
    `reproducer` makes of it."""

    def __init__(self, tool: str, argv: Sequence[str], sources: Sources, stderr: IO[str]) -> None:
        self.tool = tool
        self.argv = list(argv)
        self.sources = sources
        self.stderr = stderr
        self.status = 0
        self.input_name: str | None = None
        self.input_text = ""
        self.reproducer: Reproducer | None = None

    def __enter__(self) -> ErrorHandler:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        match error:
            case None:
                return True
            case Finished():
                self.status = 0
            case BrokenPassError():
                self._user_error(error.diagnostic, 2)
                self._reproduce(error.diagnostic.message)
            case UserError():
                self._user_error(error.diagnostic, 1)
            case InternalError():
                self._user_error(Diagnostic(str(error), self.input_name), 2)
                self._reproduce(str(error))
            case IrkitError():
                self._user_error(Diagnostic(str(error), self.input_name), 1)
            case BrokenPipeError():
                self._silence()
            case KeyboardInterrupt():
                self.status = 130  # as a shell reports SIGINT
                self.stderr.write(f"{self.tool}: interrupted\n")
            case Exception():
                self._other_error(error)
            case _:
                return False
        return True

    def show(self, diagnostic: Diagnostic) -> None:
        """Print a diagnostic to stderr."""
        report(diagnostic, self.sources, self.stderr)

    def _user_error(self, diagnostic: Diagnostic, status: int) -> None:
        self.status = status
        self.show(diagnostic)

    def _silence(self) -> None:
        # Whoever read our output has gone (`irkit-opt ... | head`): that is no error. What is still
        # buffered must not raise again at exit.
        self.status = 0
        found = os.open(os.devnull, os.O_WRONLY)
        if found != 1:
            os.dup2(found, 1)

    def _other_error(self, error: Exception) -> None:
        """One that the machine is short of something, or irkit's own."""
        match error:
            case MemoryError():
                what = f"not enough memory: {error}".rstrip(": ")
                self._user_error(Diagnostic(what, self.input_name), 1)
            case OSError(errno=errno.ENOSPC | errno.EBADF):
                # Files are written under their own messages: this is what stdout was sent to.
                self._silence()
                self._user_error(Diagnostic(f"cannot write the output: {error.strerror}", None), 1)
            case _:
                self._internal_error(error)

    def _internal_error(self, error: Exception) -> None:
        self.status = 2
        self.stderr.write("".join(traceback.format_exception(error)))
        message = f"internal error: {type(error).__name__}: {error}".rstrip(": ")
        self.show(Diagnostic(message, self.input_name))
        self._reproduce(message)

    def _reproduce(self, message: str) -> None:
        """Write a file that repeats the run when it is given to the FileCheck harness, and say where."""
        if not self.input_text:
            command = shlex.join([self.tool, *self.argv])
            self.show(Diagnostic(f"the command was: {command}", None, "note"))
            return
        path = self._from_failing_pass(message) or self._from_input(message)
        self.show(Diagnostic(f"wrote a reproducer to '{path}'", None, "note"))

    def _from_failing_pass(self, message: str) -> str | None:
        """A reproducer that begins at the pass that failed; None if that cannot be brought about again."""
        # Other tools do something else after the passes, which irkit-opt cannot repeat.
        if self.reproducer is None or not (self.reproducer.in_pass or self.tool == "irkit-opt"):
            return None
        written: list[str] = []
        with ErrorHandler(self.tool, [], self.sources, io.StringIO()):
            written.append(self.reproducer.write(message))
        return next(iter(written), None)

    def _from_input(self, message: str) -> str:
        """A reproducer of the whole run, without what it writes."""
        from irkit.driver.instruments.reproducer import write_test

        arguments = ["%s" if a == self.input_name else a for a in without_outputs(self.argv)]
        if "%s" not in arguments:
            arguments.append("%s")
        path = write_test([self.tool, *arguments], message, self.input_text)
        weights = Path(self.input_name or "-").with_suffix(".safetensors")
        if weights.is_file():
            shutil.copyfile(weights, Path(path).with_suffix(".safetensors"))
        return path


def without_outputs(argv: Sequence[str]) -> list[str]:
    """Arguments without those that name a file to write, and without a lone `-`."""
    kept: list[str] = []
    skip = False
    for argument in argv:
        if skip or argument == "-":
            skip = False
        elif argument in _WRITES:
            skip = True
        elif argument.partition("=")[0] not in _WRITES:
            kept.append(argument)
    return kept
