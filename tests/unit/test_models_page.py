"""docs/models.md, and the generated docs/sklearn.md, name all that the front ends take, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from irkit.frontends import catboost, lightgbm, xgboost, ydf, ydf_model
from irkit.frontends.sklearn import COMPOSITIONS, PREDICTORS, TRANSFORMERS
from irkit.frontends.sklearn.functions import known_functions

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "models.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`([^`\n]+)`", PAGE))
IMPORTED = (
    (DOCS / "sklearn.md").read_text(encoding="utf-8").split("\n## Imported\n")[1].split("\n## ")[0]
)
# What scikit-learn keeps to itself stands inside of its estimators alone; others go by their modules.
KNOWN = {name.rpartition(".")[2] for name in {*COMPOSITIONS, *PREDICTORS, *TRANSFORMERS}}
TAKEN = {name for name in KNOWN if not name.startswith("_")}


def section(title: str) -> set[str]:
    """Code in a section of the page."""
    text = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return set(re.findall(r"`([^`\n]+)`", text))


@pytest.mark.parametrize("name", sorted(TAKEN))
def test_estimator(name: str) -> None:
    assert name in NAMED or f"\n| {name} |" in IMPORTED


def test_tables_name_nothing_else() -> None:
    text = PAGE.split("\n## scikit-learn: predictors\n")[1].split("\n## LightGBM\n")[0]
    cells = [row.split("|")[1] for row in text.splitlines() if row.startswith("| `")]
    listed = {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
    assert listed <= TAKEN


def test_objectives_functions_and_wrappers() -> None:
    assert set(lightgbm._OBJECTIVES) <= section("LightGBM")
    assert {*xgboost._OBJECTIVES, *xgboost.ESTIMATORS} <= section("XGBoost")
    assert {*catboost.LOSSES, *catboost.ESTIMATORS} <= section("CatBoost")
    assert {*ydf.LOSSES, *ydf.ESTIMATORS, *ydf_model.CONDITIONS, *ydf_model.SEMANTICS} <= section(
        "YDF"
    )
    assert {f.__name__.replace("absolute", "abs") for f in known_functions()} <= NAMED
