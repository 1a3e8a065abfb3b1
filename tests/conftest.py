"""Collect `tests/filecheck/**/*.mlir` beside the Python tests."""

from __future__ import annotations

import gc
import os
import signal
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from filecheck_runner import FileCheckError, FileCheckTest, time_limit

from irkit.processors import usable_cores
from irkit.runtime import side_by_side

# Rates that were measured on a machine are no tests' business.
os.environ["IRKIT_RATES_DIR"] = ""
# A shell's jobs in the background ignore interrupts, and so do their children; tests send some.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Where tests keep all cores busy, processes that compile for one of them only cost their start, a second
# each. What is run as a program of its own starts them all the same, but for docs' pages and examples, and so
# does test_rkernel_code.py.
if int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) >= max(2, usable_cores()):
    side_by_side.MOST_WORKERS = 0
FILECHECK = Path(__file__).parent / "filecheck"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-checks",
        action="store_true",
        help="rewrite the check lines of FileCheck tests that do not match",
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Tests by the ten thousand and all modules stay, so that the collector of cycles looks through none of
    them, neither now nor later, and at what is new not as often as it does by itself: that took a tenth of
    all time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(7_000, 10, 10)
        gc.enable()


class FileCheckItem(pytest.Item):
    """One `.mlir` test."""

    def runtest(self) -> None:
        with tempfile.TemporaryDirectory() as scratch, time_limit(120):
            test = FileCheckTest(self.path, Path(scratch))
            if self.config.getoption("--update-checks"):
                test.update()
            else:
                test.run()

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None):
        if isinstance(excinfo.value, FileCheckError):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name


class FileCheckFile(pytest.File):
    """A `.mlir` file under tests/filecheck."""

    def collect(self) -> Iterator[FileCheckItem]:
        yield FileCheckItem.from_parent(self, name=self.path.relative_to(FILECHECK).as_posix())


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> FileCheckFile | None:
    if file_path.suffix == ".mlir" and file_path.is_relative_to(FILECHECK):
        return FileCheckFile.from_parent(parent, path=file_path)
    return None
