"""Rows of scipy.sparse CSR matrices: answers equal those of the library on the same matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lightgbm as lgb
import numpy as np
import pytest
import scipy.sparse
import xgboost as xgb
from sklearn import (
    decomposition,
    ensemble,
    feature_selection,
    linear_model,
    naive_bayes,
    preprocessing,
    svm,
    tree,
)
from sklearn import pipeline as pipelines

import irkit.runtime.sparse_rows as sparse_rows
from irkit.errors import InvalidInputError, UnsupportedError
from tests.conformance.interpreted import METHODS, interpreted, same

pytestmark = pytest.mark.filterwarnings("ignore")
make: Any = pipelines
sparse: Any = scipy.sparse
CHI2: Any = vars(feature_selection)["chi2"]
CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "bernoulli": naive_bayes.BernoulliNB,
    "binarized": lambda: piped(preprocessing.Binarizer(threshold=0.3), naive_bayes.BernoulliNB()),
    "complement": naive_bayes.ComplementNB,
    "extra_trees": lambda: ensemble.ExtraTreesClassifier(5, random_state=0),
    "forest": lambda: ensemble.RandomForestClassifier(5, random_state=0),
    "lgb": lambda: lgb.LGBMClassifier(n_estimators=4, min_child_samples=3, verbose=-1, n_jobs=1),
    "lgb_zero_missing": lambda: lgb.LGBMClassifier(
        n_estimators=4, min_child_samples=3, zero_as_missing=True, verbose=-1, n_jobs=1
    ),
    "linear_svc": lambda: svm.LinearSVC(random_state=0),
    "logistic": lambda: linear_model.LogisticRegression(max_iter=20),
    "multinomial": naive_bayes.MultinomialNB,
    "normalised": lambda: piped(preprocessing.Normalizer(), linear_model.LogisticRegression()),
    "projected": lambda: piped(
        decomposition.TruncatedSVD(3, random_state=0),
        preprocessing.StandardScaler(),
        linear_model.LogisticRegression(),
    ),
    "ridge": linear_model.RidgeClassifier,
    "scaled": lambda: piped(preprocessing.MaxAbsScaler(), linear_model.LogisticRegression()),
    "scaled_forest": lambda: piped(
        preprocessing.StandardScaler(with_mean=False),
        ensemble.RandomForestClassifier(3, random_state=0),
    ),
    "selected": lambda: piped(
        feature_selection.SelectKBest(CHI2, k=20),
        linear_model.SGDClassifier(loss="log_loss", random_state=0),
    ),
    "tree": lambda: tree.DecisionTreeClassifier(random_state=0),
    "voting": lambda: ensemble.VotingClassifier(
        [("a", naive_bayes.MultinomialNB()), ("b", tree.DecisionTreeClassifier(random_state=0))],
        voting="soft",
    ),
    "xgb": lambda: xgb.XGBClassifier(n_estimators=4, max_depth=3, n_jobs=1),
    "xgb_missing": lambda: xgb.XGBClassifier(n_estimators=4, missing=1.0, n_jobs=1),
}
REGRESSORS: dict[str, Callable[[], Any]] = {
    "boosting": lambda: ensemble.GradientBoostingRegressor(n_estimators=4, random_state=0),
    "elastic": lambda: linear_model.ElasticNet(alpha=0.01),
    "isolation": lambda: ensemble.IsolationForest(n_estimators=5, random_state=0),
    "lgb": lambda: lgb.LGBMRegressor(n_estimators=4, min_child_samples=3, verbose=-1, n_jobs=1),
    "ridge": linear_model.Ridge,
    "xgb": lambda: xgb.XGBRegressor(n_estimators=4, max_depth=3, n_jobs=1),
}


def fit(model: Any, *data: Any) -> Any:
    return model.fit(*data)


def piped(*steps: Any) -> Any:
    return make.make_pipeline(*steps)


def rows(count: int = 90, features: int = 40, seed: int = 0) -> Any:
    """Sparse rows of numbers of 0 or more; some rows have nothing, and some elements are written zeros."""
    generator = np.random.default_rng(seed)
    found = sparse.random_array(
        (count, features), density=0.15, format="csr", random_state=generator
    )
    found.data = np.ceil(4 * found.data) / 4
    found.data[::11] = 0.0
    lil = found.tolil()
    lil[3] = 0
    made: Any = lil.tocsr()
    written = found[5:30]
    return sparse.vstack([made, written]).tocsr()


def targets(x: Any) -> Any:
    """Three classes that hang on the rows."""
    weight = np.linspace(-1, 1, x.shape[1])
    return np.digitize(np.asarray(x @ weight).ravel(), [-0.3, 0.3])


def methods_of(program: Any) -> list[str]:
    return [m for m in METHODS if m in program._methods]


def agree(program: Any, model: Any, given: Any, rtol: float) -> None:
    for method in methods_of(program):
        found = getattr(program, method)(given)
        same(found, getattr(model, method)(given), rtol, rtol)


def check(model: Any, x: Any) -> None:
    program = interpreted(model)
    for given in (x, x[:1], x[3:4], x[2:9]):
        agree(
            program,
            model,
            given,
            1e-9 if not type(model).__module__.startswith("xgboost") else 1e-6,
        )
        agree(program, model, given.astype(np.float32), 1e-5)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name: str) -> None:
    x = rows()
    check(CLASSIFIERS[name]().fit(x, targets(x)), x)


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name: str) -> None:
    x = rows()
    check(REGRESSORS[name]().fit(x, np.asarray(x.sum(axis=1)).ravel()), x)


def test_transformers() -> None:
    x = rows()
    for step in (
        preprocessing.MaxAbsScaler(),
        preprocessing.Normalizer("l1"),
        decomposition.TruncatedSVD(3, random_state=0),
        feature_selection.VarianceThreshold(),
    ):
        check(fit(step, x), x)


@pytest.mark.parametrize("size", [1, 40 * 8 * 7, 1 << 30])
def test_chunks(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows go some at a time; what fails is named by its row of all."""
    monkeypatch.setattr(sparse_rows, "CHUNK_BYTES", size)
    x = rows()
    check(fit(linear_model.LogisticRegression(), x, targets(x)), x)
    y = np.abs(rows(features=3).toarray())
    model = fit(naive_bayes.CategoricalNB(), np.floor(y), targets(rows(features=3)))
    program: Any = interpreted(model)
    with pytest.raises(UnsupportedError, match=r"step 'CategoricalNB' .* takes none"):
        program.predict(rows(features=3))


def test_compiled(compiled: Any) -> None:
    x = rows()
    for model in (linear_model.LogisticRegression(), ensemble.RandomForestClassifier(5)):
        fitted = fit(model, x, targets(x))
        program = compiled(fitted, mode="serial", dtype="float64")
        agree(program, fitted, x, 1e-9)
        agree(program, fitted, x[:1], 1e-9)
        with pytest.raises(InvalidInputError, match="expected 1 or more rows, got 0"):
            program.predict(x[:0])


def test_elements_twice_integers_and_sparse_matrices() -> None:
    x = rows()
    model = fit(linear_model.LogisticRegression(), x, targets(x))
    program: Any = interpreted(model)
    twice = sparse.csr_array(
        (np.ones(4), np.array([1, 1, 7, 0]), np.array([0, 3, 4])), shape=(2, 40)
    )
    same(program.predict_proba(twice), model.predict_proba(twice), 1e-9, 1e-9)
    assert twice.nnz == 4
    for given in (sparse.csr_matrix(x), (4 * x).astype(np.int64), (x > 0)):
        same(program.predict_proba(given), model.predict_proba(given), 1e-9, 1e-9)


def test_nan() -> None:
    """Missing to boosters; a scikit-learn forest takes none in sparse rows."""
    x = rows()
    x.data[::7] = np.nan
    for name in ("lgb", "lgb_zero_missing", "xgb"):
        clean = x.copy()
        clean.data = np.nan_to_num(clean.data)
        check(CLASSIFIERS[name]().fit(x, targets(clean)), x)
    dense = np.nan_to_num(x.toarray())
    forest = fit(ensemble.RandomForestClassifier(3, random_state=0), dense, targets(rows()))
    with pytest.raises(InvalidInputError, match="has NaN, which the model does not accept in"):
        interpreted(forest).predict(x)
    line = fit(linear_model.Ridge(), dense, dense[:, 0])
    with pytest.raises(InvalidInputError, match="has NaN"):
        interpreted(line).predict(x)


def test_refused() -> None:
    x = rows()
    model = fit(linear_model.Ridge(), x, targets(x))
    program: Any = interpreted(model)
    for other in (x.tocsc(), x.tocoo(), x.tolil(), x.todok(), x.tobsr(), x.todia()):
        same(program.predict(other), model.predict(other), 1e-9, 1e-9)
    with pytest.raises(InvalidInputError, match="expected shape rowsx40, got 2x39"):
        program.predict(x[:2, :39])
    with pytest.raises(InvalidInputError, match="expected numbers, got dtype complex128"):
        program.predict(x.astype(complex))
    broken = x[:4].copy()
    broken.indices[0] = 77
    with pytest.raises(InvalidInputError, match="columns that it has not"):
        program.predict(broken)


def test_models_of_dense_rows() -> None:
    x = rows()
    dense = x.toarray()
    centred: Any = piped(preprocessing.StandardScaler(), linear_model.Ridge())
    with pytest.raises(
        UnsupportedError, match=r"step 'standardscaler' \(StandardScaler\) takes none"
    ):
        interpreted(centred.fit(dense, dense[:, 0])).predict(x)
    within: Any = piped(preprocessing.MaxAbsScaler(), REGRESSORS["xgb"]()).fit(dense, dense[:, 0])
    with pytest.raises(UnsupportedError, match="XGBoost within a model"):
        interpreted(within).predict(x)
    program = interpreted(REGRESSORS["xgb"]().fit(x, targets(x)))
    with pytest.raises(InvalidInputError, match="expected floats, got dtype int64"):
        program.predict(x.astype(np.int64))
