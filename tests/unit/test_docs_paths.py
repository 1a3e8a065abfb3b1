"""What the pages name of the tree is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
PLACE = re.compile(r"`((?:irkit|tests|tools|examples|benchmarks|docs)/[\w./-]+)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_places_are_there(page: Path) -> None:
    places = set(PLACE.findall(page.read_text(encoding="utf-8")))
    assert sorted(p for p in places if not (ROOT / p).exists()) == []
