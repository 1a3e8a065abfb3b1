"""A progress bar on long compilations: on a terminal, to stderr, once a second has passed."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

# Nothing is shown for what is over sooner, in seconds; and how often it is drawn anew.
PATIENCE, PERIOD = 1.0, 0.1


class ProgressBar:
    """Shows the stage at hand, and how much of it is done where that can be counted.

    `shown`: True or False; None shows it where stderr is a terminal. The work itself only names its
    stages: a thread of the bar's own looks at the clock and at the count.
    """

    def __init__(self, shown: bool | None = None) -> None:
        self.shown = sys.stderr.isatty() if shown is None else shown
        self._stage: tuple[str, int, Callable[[], int]] = ("", 0, lambda: 0)
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def stage(self, name: str, total: int = 0, done: Callable[[], int] = lambda: 0) -> None:
        """The work begins `name`; `done` counts how many of `total` parts are done."""
        self._stage = (name, total, done)

    def __enter__(self) -> Self:
        if self.shown:
            self._thread = threading.Thread(target=self._show, name="irkit-progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _show(self) -> None:
        if self._over.wait(PATIENCE):
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("irkit: {task.description}"), BarColumn(), TimeElapsedColumn())
        console = Console(stderr=True, force_terminal=True)
        with Progress(*columns, console=console, transient=True) as drawn:
            task = drawn.add_task("")
            while not self._over.wait(PERIOD):
                name, total, done = self._stage
                count = min(done(), total)
                text = f"{name} {count} of {total}" if total else name
                drawn.update(task, description=text, total=total or None, completed=count)


class PassesShown:
    """Has a bar say which pass of a level runs, of how many (it watches a pipeline)."""

    def __init__(self, bar: ProgressBar, level: str, passes: int) -> None:
        self._bar, self._level, self._passes, self._begun = bar, level, passes, 0

    def before(self, module: ModuleOp, module_pass: ModulePass) -> None:
        """Another pass begins."""
        self._begun = begun = self._begun + 1
        self._bar.stage(f"{self._level} level, {module_pass.name}:", self._passes, lambda: begun)

    def after(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """The next one says so."""

    def failed(self, module: ModuleOp, module_pass: ModulePass, seconds: float) -> None:
        """The error says more."""


SILENT = ProgressBar(False)
"""A bar that shows nothing."""
