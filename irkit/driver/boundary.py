"""The edge between a tool and its user: every way a run can end becomes an exit code and a message.

0: fine. 1: an error of the user's, shown as one diagnostic. 2: an error of irkit's, shown with its
traceback and the path of a reproducer.
"""

from __future__ import annotations

import os
import shlex
import tempfile
import traceback
from collections.abc import Sequence
from types import TracebackType
from typing import IO

from irkit.driver.arguments import Finished
from irkit.driver.diagnostics import BrokenPassError, Diagnostic, Sources, UserError, report
from irkit.errors import IrkitError


class Boundary:
    """`with boundary: ...` sets `boundary.status`. `input_text` is what a reproducer will contain."""

    def __init__(self, tool: str, argv: Sequence[str], sources: Sources, stderr: IO[str]) -> None:
        self.tool = tool
        self.argv = list(argv)
        self.sources = sources
        self.stderr = stderr
        self.status = 0
        self.input_name: str | None = None
        self.input_text = ""

    def __enter__(self) -> Boundary:
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
                self._reproduce()
            case UserError():
                self._user_error(error.diagnostic, 1)
            case IrkitError():
                self._user_error(Diagnostic(str(error), self.input_name), 1)
            case BrokenPipeError():
                self._silence()
            case KeyboardInterrupt():
                self.status = 130  # as a shell reports SIGINT
            case Exception():
                self._internal_error(error)
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
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

    def _internal_error(self, error: Exception) -> None:
        self.status = 2
        self.stderr.write("".join(traceback.format_exception(error)))
        message = f"internal error: {type(error).__name__}: {error}".rstrip(": ")
        self.show(Diagnostic(message, self.input_name))
        self._reproduce()

    def _reproduce(self) -> None:
        """Write a file that repeats the run when it is given to the FileCheck harness."""
        arguments = ["%s" if a == self.input_name else a for a in self.argv]
        if self.input_name and "%s" not in arguments:
            arguments.append("%s")
        if not self.input_text:
            self.show(
                Diagnostic(f"the command was: {shlex.join([self.tool, *self.argv])}", None, "note")
            )
            return
        run = " ".join(a if a == "%s" else shlex.quote(a) for a in [self.tool, *arguments])
        text = f"// RUN: {run} | filecheck %s\n\n// CHECK: module\n\n{self.input_text}"
        with tempfile.NamedTemporaryFile(
            "w", prefix=f"{self.tool}-", suffix=".mlir", delete=False, encoding="utf-8"
        ) as file:
            file.write(text)
        self.show(Diagnostic(f"wrote a reproducer to '{file.name}'", None, "note"))
