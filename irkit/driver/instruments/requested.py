"""Which instruments watch a run of irkit-opt: those that its flags ask for, and no other."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from irkit.context import IrkitContext
from irkit.driver.diagnostics.diagnostic import Diagnostic
from irkit.driver.files.model_files import write_text
from irkit.driver.instruments.instrument import Instrument
from irkit.driver.instruments.ir_dumps import Dumper, wants_dumps
from irkit.driver.instruments.timer import Timer
from irkit.remarks import Kind

if TYPE_CHECKING:
    from irkit.driver.instruments.remarks import RemarkReporter


@dataclass
class RequestedInstruments:
    """Makes the instruments for each part of an input, and keeps what outlives a part."""

    options: argparse.Namespace
    stderr: IO[str]
    timer: Timer
    show: Callable[[Diagnostic], None]
    reporters: list[RemarkReporter] = field(default_factory=list["RemarkReporter"])
    part: int = 0

    def __post_init__(self) -> None:
        """Arguments are looked at before anything runs. Raises UserError."""
        options = self.options
        self._reports = bool(options.remarks or options.statistics or options.report)
        if self._reports:
            from irkit.driver.instruments.remarks import parse_filter, parse_kinds

            self._kinds = parse_kinds(options.remarks) if options.remarks else frozenset[Kind]()
            self._filter = parse_filter(options.remarks_filter)

    @contextmanager
    def for_part(
        self,
        ctx: IrkitContext,
        module: ModuleOp,
        passes: Sequence[ModulePass],
        fresh_context: Callable[[], IrkitContext],
    ) -> Generator[list[Instrument]]:
        """The instruments for a run of `passes` on `module`, the next part of the input.

        Each is imported only when asked for; pages are written at the end if the run succeeds.
        """
        options, self.part = self.options, self.part + 1
        instruments: list[Instrument] = []
        with ExitStack() as stack:
            if self._reports:
                instruments.append(stack.enter_context(self._reporting()))
            instruments += self._checkers(ctx, module, fresh_context)
            if wants_dumps(options):
                folder = self._folder()
                instruments.append(Dumper(options, self.stderr, module, passes, folder))
            if options.html is not None:
                instruments.append(stack.enter_context(self._page(module)))
            yield instruments

    def _checkers(
        self, ctx: IrkitContext, module: ModuleOp, fresh_context: Callable[[], IrkitContext]
    ) -> Iterator[Instrument]:
        options = self.options
        if options.verify_roundtrip:
            from irkit.driver.instruments.roundtrip import RoundtripChecker

            yield RoundtripChecker(module, fresh_context, self.timer)
        if options.cross_check:
            from irkit.driver.instruments.cross_check import CrossChecker

            yield CrossChecker(module, self.timer)
        if options.check_semantics:
            from irkit.driver.instruments.semantics import SemanticsChecker

            yield SemanticsChecker(module, ctx.weights, options.seed, self.timer)

    @contextmanager
    def finishing(self) -> Generator[None]:
        """At the end, also of a run that fails, print and write what is about the whole. Raises UserError."""
        try:
            yield
        finally:
            self._finish()

    def _finish(self) -> None:
        if self.options.timing:
            self.stderr.write(self.timer.table())
        if self.options.statistics:
            for reporter in self.reporters:
                self.stderr.write(reporter.table())
        if self.options.report is not None:
            from irkit.driver.instruments.remarks import report

            write_text(self.options.report, report(self.timer.seconds, self.reporters))

    def _folder(self) -> Path | None:
        """Where dumps go; the parts of a split input have folders of their own."""
        if not self.options.tree_dir:
            return None
        folder = Path(self.options.tree_dir)
        return folder / f"part-{self.part:03}" if self.options.split_input_file else folder

    @contextmanager
    def _reporting(self) -> Generator[RemarkReporter]:
        from irkit.driver.instruments.remarks import RemarkReporter

        reporter = RemarkReporter(self._kinds, self._filter, self.show)
        self.reporters.append(reporter)
        with reporter.recording():
            yield reporter

    @contextmanager
    def _page(self, module: ModuleOp) -> Generator[Instrument]:
        from irkit.driver.instruments.html_page import PageWriter

        page = PageWriter(module, self.options.html, f"Passes on {self.options.input}")
        yield page
        page.write()
