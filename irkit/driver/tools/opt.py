"""irkit-opt: read a module, run passes on it, print it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING

from irkit.driver.diagnostics.diagnostic import Sources
from irkit.driver.registry import PassFactory
from irkit.driver.tools.error_handler import ErrorHandler
from irkit.driver.tools.opt_options import opt_parser
from irkit.driver.tools.plugins import load_plugins
from irkit.driver.tools.streams import standard_error, standard_output

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from irkit.driver.tools.opt_session import Session


class OptTool:
    """One run of irkit-opt. `result` holds the modules it printed, for whoever wants to look."""

    def __init__(
        self,
        stdin: IO[str] | None = None,
        stdout: IO[str] | None = None,
        stderr: IO[str] | None = None,
        extra_passes: Mapping[str, PassFactory] | None = None,
    ) -> None:
        self.stdin = stdin or sys.stdin
        self.stdout = standard_output(stdout)
        self.stderr = standard_error(stderr)
        self.extra_passes = dict(extra_passes or {})
        self.result: list[ModuleOp] = []

    def main(self, argv: Sequence[str]) -> int:
        """Run with these arguments (without the tool's name); returns the exit code."""
        handler = ErrorHandler("irkit-opt", argv, Sources(), self.stderr)
        with handler:
            options = opt_parser(self.stdout).parse_all(argv)
            load_plugins(options.plugins)
            if not self._inform(options):
                handler.status = self._session(options, handler).run()
        return handler.status

    def _inform(self, options: argparse.Namespace) -> bool:
        """Print what `--list-*` and `--explain-*` ask for; False if nothing is asked."""
        asked = (options.list_passes, options.list_dialects, options.explain_pass)
        if not any((*asked, options.emit_irdl)):
            return False
        from irkit.driver.tools import listings

        if options.list_passes:
            self.stdout.write(listings.list_passes(self.extra_passes))
        if options.list_dialects:
            self.stdout.write(listings.list_dialects())
        if options.explain_pass:
            self.stdout.write(listings.explain_pass(options.explain_pass, self.extra_passes))
        if options.emit_irdl:
            self.stdout.write(listings.emit_irdl())
        return True

    def _session(self, options: argparse.Namespace, handler: ErrorHandler) -> Session:
        from irkit.driver.tools.opt_session import Session

        return Session(self, options, handler)
