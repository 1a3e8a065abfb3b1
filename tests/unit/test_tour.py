"""The pages of docs/ that have commands are what their commands print; links in docs/ lead somewhere."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from irkit.runtime import side_by_side

ROOT = Path(__file__).resolve().parents[2]


def tour():
    spec = importlib.util.spec_from_file_location("tour", ROOT / "tools" / "tour.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", tour().PAGES)
def test_pages_are_what_is_printed(name, tmp_path, monkeypatch):
    pytest.importorskip("onnx")
    # No more workers than this process would have.
    monkeypatch.setenv("IRKIT_COMPILE_WORKERS", str(side_by_side.MOST_WORKERS))
    page = (ROOT / "docs" / name).read_text()
    made = tour().executed(page, tmp_path)
    assert made == page, "run .venv/bin/python tools/tour.py and look at the difference"


def test_a_wrong_listing_is_noticed(tmp_path):
    page = "```console\n$ echo one\ntwo\n```\n"
    assert tour().executed(page, tmp_path) == "```console\n$ echo one\none\n```\n"


@pytest.mark.parametrize("page", sorted(p.name for p in (ROOT / "docs").glob("*.md")))
def test_links_lead_somewhere(page):
    text = (ROOT / "docs" / page).read_text()
    for target in re.findall(r"\]\(([^)#]+\.md)", text):
        if not target.startswith("http"):
            assert (ROOT / "docs" / target).exists(), f"{page} links to {target}"
