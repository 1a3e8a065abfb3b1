"""docs/models.md names all that the front ends take, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from irkit.frontends import lightgbm, xgboost
from irkit.frontends.sklearn import COMPOSITIONS, PREDICTORS, TRANSFORMERS
from irkit.frontends.sklearn.preprocessing import FUNCTIONS

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`([^`\n]+)`", PAGE))


def section(title: str) -> set[str]:
    """Code in a section of the page."""
    text = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return set(re.findall(r"`([^`\n]+)`", text))


@pytest.mark.parametrize("name", sorted({*COMPOSITIONS, *PREDICTORS, *TRANSFORMERS}))
def test_estimator(name: str) -> None:
    assert name in NAMED


def test_tables_name_nothing_else() -> None:
    text = PAGE.split("\n## scikit-learn: predictors\n")[1].split("\n## LightGBM\n")[0]
    cells = [row.split("|")[1] for row in text.splitlines() if row.startswith("| `")]
    listed = {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
    assert listed == {*COMPOSITIONS, *PREDICTORS, *TRANSFORMERS}


def test_objectives_functions_and_wrappers() -> None:
    assert set(lightgbm._OBJECTIVES) <= section("LightGBM")
    assert {*xgboost._OBJECTIVES, *xgboost._WRAPPERS} <= section("XGBoost")
    assert {f.__name__.replace("absolute", "abs") for f in FUNCTIONS} <= NAMED
