"""docs/reference.md is what tools/docs.py writes, and has every op and pass."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from irkit.driver.registry import irkit_dialects
from irkit.passes import PASSES

TOOL = Path(__file__).resolve().parents[2] / "tools" / "docs.py"


@pytest.fixture(scope="module")
def docs() -> ModuleType:
    """tools/docs.py as a module."""
    spec = importlib.util.spec_from_file_location("irkit_docs_tool", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date(docs: ModuleType):
    assert docs.main(["--check"]) == 0, "run tools/docs.py"


def test_the_page_has_every_op_and_pass(docs: ModuleType):
    ops = [op.name for factory in irkit_dialects().values() for op in factory().operations]
    text = docs.page()
    headings = [line.removeprefix("### ") for line in text.splitlines() if line.startswith("### ")]
    own = sorted(h for h in headings if h[1] not in "!#")
    assert own == sorted(f"`{n}`" for n in [*ops, *PASSES])
    assert "`#task.alternative`" in headings


def test_signatures_and_options(docs: ModuleType):
    text = docs.page()
    assert "- operands: `a`, `b`, `c?`\n" in text  # graph.gemm
    assert "- operands: `waits*`, `reads*`, `writes*`\n" in text  # task.append
    assert "`residents?`" in text
    assert "operandSegmentSizes" not in text
    assert "- option `device`: str" in text  # partition-rtasks


def test_check_tells_a_stale_page(
    docs: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.setattr(docs, "PAGE", tmp_path / "reference.md")
    assert docs.main(["--check"]) == 1
    assert "out of date" in capsys.readouterr().err
    assert docs.main([]) == 0
    assert docs.main(["--check"]) == 0
    docs.PAGE.write_text(docs.PAGE.read_text(encoding="utf-8") + "x", encoding="utf-8")
    assert docs.main(["--check"]) == 1
