"""Every pass has a FileCheck test: a file of its name, or one whose RUN line names it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from irkit.passes import PASSES

FILES = sorted((Path(__file__).parents[1] / "filecheck").rglob("*.mlir"))
RUN = re.compile(r"^// RUN:.*$", re.MULTILINE)


@pytest.fixture(scope="module")
def run_lines() -> str:
    """All RUN lines, those of a file behind its name."""
    found = [[file.stem, *RUN.findall(file.read_text(encoding="utf-8"))] for file in FILES]
    return "\n".join(line for lines in found for line in lines)


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_is_run(name: str, run_lines: str) -> None:
    assert re.search(rf"(?<![\w-]){name}(?![\w-])", run_lines)
