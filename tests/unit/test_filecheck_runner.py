"""The FileCheck harness fails where it should: tests of the tests."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from filecheck_runner import FileCheckError, FileCheckTest, run_lines, time_limit

IR = "// CHECK: builtin.module\nbuiltin.module {}\n"


def check(folder: Path, text: str) -> None:
    path = folder / "test.mlir"
    path.write_text(text)
    FileCheckTest(path, folder).run()


def test_a_passing_test(tmp_path: Path):
    check(tmp_path, f"// RUN: irkit-opt %s | filecheck %s\n{IR}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (IR, "no RUN line"),
        ("// RUN: irkit-opt %s\nbuiltin.module {}\n", "checks anything"),
        (f"// RUN: irkit-opt %s\n{IR}", "checks anything"),
        ("// RUN: irkit-opt %s | filecheck %s\nbuiltin.module {}\n", "checks anything"),
        (f"// RUN: irkit-opt %s | filecheck %s --check-prefix=NO\n{IR}", "returned 2"),
        (f"// RUN: irkit-opt %s | filecheck %s\n// CHECK: func.func\n{IR}", "Couldn't match"),
        (f"// RUN: mlir-opt %s | filecheck %s\n{IR}", "unknown command 'mlir-opt'"),
        (f"// RUN: irkit-opt %s -p nope | filecheck %s\n{IR}", "unknown pass 'nope'"),
        (f"// RUN: not irkit-opt %s | filecheck %s\n{IR}", "returned 1"),
        (f"// RUN: irkit-opt %s | filecheck %s \\\n{IR}", "backslash"),
        # Every RUN line counts, not only the first.
        (
            f"// RUN: irkit-opt %s | filecheck %s\n// RUN: irkit-opt %s -p nope\n{IR}",
            "unknown pass 'nope'",
        ),
        # `not` takes a crash for a failure only if told to.
        (
            f"// RUN: not irkit-opt %s -p test-crash 2>&1 | filecheck %s\n{IR}",
            "returned 1",
        ),
    ],
)
def test_a_failing_test(tmp_path: Path, text: str, message: str):
    with pytest.raises(FileCheckError, match=message):
        check(tmp_path, text)


def test_lines_are_joined():
    text = "// RUN: irkit-opt %s \\\n// RUN:   -p cse | filecheck %s\n// RUN: cat %t\n"
    assert run_lines(text) == ["irkit-opt %s -p cse | filecheck %s", "cat %t"]


def test_errors_are_piped_only_if_asked(tmp_path: Path):
    text = "// RUN: not irkit-opt %s -p nope {} | filecheck %s\n// CHECK: unknown pass\nbuiltin.module {{}}"
    check(tmp_path, text.format("2>&1"))
    with pytest.raises(FileCheckError, match="is empty"):
        check(tmp_path, text.format(""))


def test_a_test_that_hangs_is_stopped():
    with pytest.raises(TimeoutError, match="took more than 1 s"), time_limit(1):
        time.sleep(30)
