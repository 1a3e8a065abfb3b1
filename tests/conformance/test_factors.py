"""NMF against scikit-learn: as many turns as it takes, which hang on all rows of a batch."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.decomposition import NMF, MiniBatchNMF
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import irkit
from irkit.driver.compiler.batch import SizedModel, read_for_batch
from irkit.errors import InvalidInputError, UnsupportedError
from irkit.frontends import import_model
from tests.conformance.interpreted import compare, interpreted
from tests.conformance.sklearn_models import data

pytestmark = pytest.mark.filterwarnings("ignore")
MODELS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "one turn": {"max_iter": 1},
    "already close": {"tol": 2.0},
    "many turns": {"tol": 1e-9, "max_iter": 60},
    "no tolerance": {"tol": 0.0, "max_iter": 12},
    "penalties": {"alpha_W": 0.02, "l1_ratio": 0.3},
    "sums of magnitudes": {"alpha_W": 0.05, "l1_ratio": 1.0},
}


def fitted(**parameters: Any) -> tuple[Any, Any]:
    x = data("wine")[0]
    return NMF(3, init="nndsvda", **parameters).fit(x), x


@pytest.mark.parametrize("name", MODELS)
def test_answers(name: str) -> None:
    model, x = fitted(**MODELS[name])
    compare(interpreted(model), model, x, rtol=1e-9, atol=1e-9)


def test_a_row_hangs_on_the_others() -> None:
    """Beside other rows it takes another number of turns: a program of one row is not that of many."""
    model, x = fitted(tol=1e-2)
    alone = np.concatenate([model.transform(row[None]) for row in x])
    assert np.abs(model.transform(x) - alone).max() > 1e-6
    found = read_for_batch(model, "float64", None, {})
    assert isinstance(found, SizedModel)
    assert any("how often it turns hangs on all rows" in reason for reason in found.reasons)


def test_edges() -> None:
    model, x = fitted()
    program = interpreted(model)
    for rows in (np.zeros((4, x.shape[1])), 1e-300 * x[:5], np.eye(x.shape[1])):
        np.testing.assert_allclose(program.transform(rows), model.transform(rows), rtol=1e-9)
    for answer in (program.transform, model.transform):
        with pytest.raises(ValueError, match=r"[Nn]egative value"):
            answer(-x[:3])
        with pytest.raises(ValueError, match="NaN"):
            answer(np.full((1, x.shape[1]), np.nan))


def test_float32() -> None:
    """scikit-learn takes the type that it was fitted on, and no other."""
    x = data("wine")[0].astype(np.float32)
    model = NMF(3, init="nndsvda").fit(x)
    found = interpreted(model).transform(x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, model.transform(x), rtol=1e-3, atol=1e-4)
    with pytest.raises(InvalidInputError, match="fitted on float32, and takes no float64"):
        interpreted(model).transform(x.astype(np.float64))


def test_compiled_in_a_pipeline() -> None:
    x, y = data("wine")
    model = make_pipeline(MinMaxScaler(), NMF(2), LogisticRegression()).fit(x, y)
    rows = np.ascontiguousarray(x[::9])
    program = irkit.compile(model, "cpu", mode="serial", dtype="float64", batch=len(rows))
    compare_all(program, model, rows)


def compare_all(program: Any, model: Any, rows: Any) -> None:
    np.testing.assert_array_equal(program.predict(rows), model.predict(rows))
    np.testing.assert_allclose(
        program.predict_proba(rows), model.predict_proba(rows), rtol=1e-7, atol=1e-9
    )


def test_refused_by_name() -> None:
    x = data("wine")[0]
    for model, reason in (
        (NMF(2, solver="mu"), "parameter solver='mu'"),
        (NMF(2, shuffle=True), "parameter shuffle=True"),
        (MiniBatchNMF(2), "its iterations end when the whole batch has converged"),
    ):
        with pytest.raises(UnsupportedError) as caught:
            import_model(model.fit(x), "float64")
        assert reason in caught.value.missing[0]
    with pytest.raises(UnsupportedError, match=r"'scf.while' in a schedule for a GPU"):
        irkit.compile(NMF(2).fit(x), "cuda", device="h200", dtype="float64", batch=4, cache=False)
    with pytest.raises(UnsupportedError, match="takes all rows of a batch at once"):
        interpreted(NMF(2).fit(x)).transform(csr_array(x))
