"""XGBoost's gblinear: a product that leaves out what is missing."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost as xgb
from scipy.sparse import csr_array
from sklearn.ensemble import VotingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from irkit.errors import InvalidInputError, InvalidModelError, UnsupportedError
from irkit.frontends import import_model
from irkit.interp.graph import run_graph
from tests.conformance.interpreted import compare, interpreted
from tests.conformance.sklearn_models import data

pytestmark = pytest.mark.filterwarnings("ignore")
LINEAR: dict[str, Any] = {
    "n_estimators": 8,
    "n_jobs": 1,
    "booster": "gblinear",
    "updater": "coord_descent",
}


def gaps(x: Any, seed: int = 0) -> Any:
    """x of which a tenth is NaN."""
    return np.where(np.random.default_rng(seed).random(x.shape) < 0.1, np.nan, x)


def fitted(name: str) -> tuple[Any, Any]:
    """A model and its rows."""
    x, y = data("iris" if name.startswith("classes") else "diabetes")
    match name:
        case "classes":
            return xgb.XGBClassifier(**LINEAR).fit(x, y), x
        case "classes, two":
            return xgb.XGBClassifier(**LINEAR).fit(gaps(x), y > 0), x
        case "targets":
            return xgb.XGBRegressor(**LINEAR).fit(x, np.c_[y, -2 * y]), x
        case "counts":
            return xgb.XGBRegressor(**LINEAR, objective="count:poisson").fit(x, y), x
        case "zero is missing":
            return xgb.XGBRegressor(**LINEAR, missing=0.0).fit(np.round(x, 1), y), np.round(x, 1)
        case "no rounds":
            return xgb.XGBRegressor(**{**LINEAR, "n_estimators": 0}).fit(x, y), x
        case _:
            return xgb.XGBRegressor(**LINEAR).fit(x, y), x


NAMES = ("target", "targets", "classes", "classes, two", "counts", "zero is missing", "no rounds")


@pytest.mark.parametrize("name", NAMES)
def test_answers(name: str) -> None:
    model, x = fitted(name)
    program = interpreted(model)
    for rows in (x, x.astype(np.float32)):
        compare(program, model, rows, rtol=3e-6, atol=1e-6)
    if name != "zero is missing":
        compare(program, model, gaps(x), rtol=3e-6, atol=1e-6)
    odd = x.copy()
    odd[0, 0] = np.inf
    for answer in (program.predict, model.predict):
        with pytest.raises(ValueError, match="inf"):
            answer(odd)


@pytest.mark.parametrize("suffix", ["json", "ubj"])
@pytest.mark.parametrize("name", ["target", "targets", "classes"])
def test_files(tmp_path: Path, name: str, suffix: str) -> None:
    model, x = fitted(name)
    path = tmp_path / f"m.{suffix}"
    model.get_booster().save_model(path)
    found = import_model(path, "float32")
    rows = gaps(x).astype(np.float32)
    wanted = model.get_booster().predict(xgb.DMatrix(rows))
    np.testing.assert_allclose(
        run_graph(found.module, found.weights, [rows])[0], wanted, rtol=1e-6, atol=1e-6
    )


def test_a_compiled_program_takes_csr_rows(compiled: Any) -> None:
    """What is not there is missing, and adds nothing."""
    model, x = fitted("target")
    rows = csr_array(np.where(np.abs(x) < 0.02, 0.0, x))
    found = compiled(model, mode="serial").predict(rows)
    np.testing.assert_allclose(found, model.predict(rows), rtol=1e-6)


def test_within_others() -> None:
    x, y = data("diabetes")
    linear = xgb.XGBRegressor(**LINEAR)
    model = make_pipeline(StandardScaler(), VotingRegressor([("x", linear)])).fit(x, y)
    compare(interpreted(model), model, x)
    alone = VotingRegressor([("x", linear)]).fit(x, y)
    odd = x.copy()
    odd[0, 0] = -np.inf
    with pytest.raises(InvalidInputError, match="infinity"):
        interpreted(alone).predict(odd)


def test_weights_that_are_not_there(tmp_path: Path) -> None:
    model, _ = fitted("target")
    document = json.loads(model.get_booster().save_raw("json"))
    weights = document["learner"]["gradient_booster"]["model"]["weights"]
    path = tmp_path / "m.json"
    for changed, error in (
        (weights[:-1], InvalidModelError),
        ([1e39, *weights[1:]], UnsupportedError),
    ):
        document["learner"]["gradient_booster"]["model"]["weights"] = changed
        path.write_text(json.dumps(document))
        with pytest.raises(error, match="weights"):
            import_model(path)
