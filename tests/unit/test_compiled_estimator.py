"""`irkit.sklearn.CompiledEstimator`: scikit-learn's own checks, and answers of the inner estimator."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportIndexIssue=false
from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_iris
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier, IsolationForest, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler, TargetEncoder
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

import irkit
from irkit.sklearn import CompiledEstimator

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
X, Y = load_iris(return_X_y=True)
pd = pytest.importorskip("pandas")


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [
        CompiledEstimator(LogisticRegression()),
        CompiledEstimator(DecisionTreeRegressor(random_state=0)),
        CompiledEstimator(StandardScaler()),
        CompiledEstimator(GaussianNB()),
        CompiledEstimator(PCA(1)),
    ]
)
def test_checks_of_scikit_learn(estimator, check) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def forest() -> CompiledEstimator:
    return CompiledEstimator(RandomForestClassifier(7, random_state=0)).fit(X, Y)


def test_answers_are_those_of_the_inner_estimator(forest: CompiledEstimator) -> None:
    inner = forest.estimator_
    np.testing.assert_array_equal(forest.predict(X), inner.predict(X))
    np.testing.assert_array_equal(forest.predict_proba(X), inner.predict_proba(X))
    np.testing.assert_array_equal(forest.classes_, inner.classes_)
    assert forest.score(X, Y) == inner.score(X, Y)
    assert forest.score(X, Y, sample_weight=Y + 1) == inner.score(X, Y, sample_weight=Y + 1)
    assert forest.n_features_in_ == 4
    assert not hasattr(forest, "decision_function")
    assert not hasattr(forest, "transform")


def test_labels_may_be_strings() -> None:
    names = np.array(["setosa", "versicolor", "virginica"])[Y]
    model = CompiledEstimator(LogisticRegression()).fit(X, names)
    assert model.score(X, names) == model.estimator_.score(X, names)
    assert set(model.predict(X)) == set(names)


def test_threads(forest: CompiledEstimator) -> None:
    """Each of many calls at once has its own rows' answers."""
    want = forest.estimator_.predict_proba(X)
    random = np.random.default_rng(0)
    parts = [random.permutation(150)[: int(random.integers(1, 150))] for _ in range(200)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda part: forest.predict_proba(X[part]), parts))
    for part, got in zip(parts, found, strict=True):
        np.testing.assert_array_equal(got, want[part])


def test_a_clone_is_not_fitted(forest: CompiledEstimator) -> None:
    again = clone(forest)
    with pytest.raises(NotFittedError):
        again.predict(X)
    assert again.get_params()["estimator__n_estimators"] == 7
    again.set_params(estimator__n_estimators=2, target="cpu").fit(X, Y)
    assert len(again.estimator_) == 2


def test_of_a_fitted_one() -> None:
    """It is as it was, and so are its clones."""
    inner = LogisticRegression().fit(X, Y)
    model = CompiledEstimator.from_fitted(inner)
    np.testing.assert_array_equal(model.predict(X), inner.predict(X))
    again = clone(model).fit(X[:100], Y[:100])
    np.testing.assert_array_equal(again.predict(X), inner.predict(X))
    np.testing.assert_array_equal(again.classes_, [0, 1, 2])


def test_pickled_and_loaded(forest: CompiledEstimator, monkeypatch: pytest.MonkeyPatch) -> None:
    text = pickle.dumps(forest)
    # It is the saved program that is loaded.
    monkeypatch.setattr("irkit.driver.compiler.compile.build_artifact", None)
    again = pickle.loads(text)
    np.testing.assert_array_equal(again.predict_proba(X), forest.predict_proba(X))
    assert again.program_ is not forest.program_
    # A program is loaded once in a process.
    assert pickle.loads(text).program_ is again.program_


def test_within_a_pipeline_and_a_search() -> None:
    parts = make_pipeline(
        CompiledEstimator(StandardScaler()), CompiledEstimator(LogisticRegression())
    )
    plain = make_pipeline(StandardScaler(), LogisticRegression())
    got = cross_val_predict(parts, X, Y, cv=2, method="predict_proba")
    np.testing.assert_allclose(got, cross_val_predict(plain, X, Y, cv=2, method="predict_proba"))
    grid = {"compiledestimator-2__estimator__C": [0.01, 1.0]}
    search = GridSearchCV(parts, grid, cv=2).fit(X, Y)
    want = GridSearchCV(plain, {"logisticregression__C": [0.01, 1.0]}, cv=2).fit(X, Y)
    np.testing.assert_allclose(
        search.cv_results_["mean_test_score"], want.cv_results_["mean_test_score"]
    )
    assert irkit.compile(want).predict(X).shape == (150,)


def test_data_frames() -> None:
    frame = pd.DataFrame(
        {"size": X[:, 0], "kind": np.array(["a", "b", "c"])[np.arange(150) % 3], "more": X[:, 1]}
    )
    parts = make_column_transformer(
        (StandardScaler(), ["size", "more"]), (OneHotEncoder(), ["kind"]), sparse_threshold=0
    )
    inner = make_pipeline(parts, GradientBoostingClassifier(n_estimators=3, random_state=0))
    model = CompiledEstimator(inner).fit(frame, Y)
    np.testing.assert_array_equal(model.predict(frame), model.estimator_.predict(frame))
    assert list(model.feature_names_in_) == ["size", "kind", "more"]
    # By name, in any order.
    turned = frame[["kind", "more", "size"]]
    np.testing.assert_array_equal(model.predict(turned), model.predict(frame))
    with pytest.raises(ValueError, match="now missing:\n- size"):
        model.predict(frame[["kind", "more"]])


def test_names_of_columns() -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = CompiledEstimator(LogisticRegression()).fit(frame, Y)
    np.testing.assert_array_equal(model.predict(frame), model.estimator_.predict(frame))
    with pytest.warns(UserWarning, match="CompiledEstimator was fitted with feature names"):
        model.predict(X)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[list("bacd")])
    model = CompiledEstimator(StandardScaler()).fit(frame)
    assert list(model.get_feature_names_out()) == list("abcd")


def _refusals():
    yield X[0], ValueError, "Expected 2D array, got 1D array"
    yield X[:, :3], ValueError, "X has 3 features, but .* is expecting 4 features"
    yield X[:0], ValueError, "0 sample"
    yield np.where(X > 5, np.nan, X), ValueError, "contains NaN"
    yield np.where(X > 5, np.inf, X), ValueError, "infinity"
    yield X.astype(complex), ValueError, "Complex data"
    yield sparse.csr_array(X)[:, :3], ValueError, "X has 3 features, but .* is expecting 4"
    yield sparse.csr_array(np.where(X > 5, np.nan, X)), ValueError, "contains NaN"
    yield [["a", "b", "c", "d"]], ValueError, "arrays of bytes/strings"


@pytest.mark.parametrize(("rows", "error", "message"), list(_refusals()))
def test_refusals_are_those_of_scikit_learn(rows, error, message) -> None:
    model = CompiledEstimator(LogisticRegression()).fit(X, Y)
    with pytest.raises(error, match=message):
        model.predict(rows)


def test_sparse_rows() -> None:
    """Taken where the inner estimator takes them, by a fit and after it."""
    rows = sparse.csr_array(np.where(X > 3, X, 0))
    model = CompiledEstimator(LogisticRegression(max_iter=20), target="cpu").fit(rows, Y)
    for given in (rows, rows.tocsc(), rows.tocoo(), rows.astype(np.float32)):
        want = model.estimator_.predict_proba(given)
        np.testing.assert_allclose(model.predict_proba(given), want, rtol=1e-5)
    assert model.program_.report()["sparse_rows"] == "by the elements that are stored"
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(again.predict_proba(rows), model.predict_proba(rows), rtol=1e-12)
    assert again.__sklearn_tags__().input_tags.sparse
    dense = CompiledEstimator(GaussianNB(), target="cpu")
    assert not dense.__sklearn_tags__().input_tags.sparse
    with pytest.raises(TypeError, match="Sparse data was passed"):
        dense.fit(rows, Y)
    with pytest.raises(TypeError, match="Sparse data was passed"):
        dense.fit(X, Y).predict(rows)


def test_rows_of_any_dtype() -> None:
    model = CompiledEstimator(LogisticRegression()).fit(X, Y)
    for dtype in (np.float32, np.float16, np.int64, np.int8, np.uint8, object):
        rows = X.astype(dtype)
        np.testing.assert_array_equal(model.predict(rows), model.estimator_.predict(rows))
    np.testing.assert_array_equal(model.predict(X.tolist()), model.predict(X))
    np.testing.assert_array_equal(model.predict(X[::-2]), model.predict(X)[::-2])


def test_scores_that_are_no_accuracy() -> None:
    """Deviance of counts is the estimator's own."""
    x, y = load_diabetes(return_X_y=True)
    for inner in (LinearRegression(), PoissonRegressor(alpha=0.1)):
        model = CompiledEstimator(inner).fit(x, y)
        assert model.score(x, y) == pytest.approx(model.estimator_.score(x, y), rel=1e-12)


def test_fit_transform_is_the_estimators_own() -> None:
    """A target encoder encodes what it is fitted on by other folds."""
    kinds = (np.arange(150) % 7).reshape(-1, 1)
    model = CompiledEstimator(TargetEncoder(cv=KFold(3, shuffle=True, random_state=0)))
    y = X[:, 0]
    own = clone(model.estimator).fit_transform(kinds, y)
    np.testing.assert_array_equal(model.fit_transform(kinds, y), own)
    np.testing.assert_allclose(model.transform(kinds), model.estimator_.transform(kinds))
    assert not np.allclose(model.transform(kinds), own)


def test_outlier_detectors() -> None:
    inner = IsolationForest(n_estimators=3, random_state=0)
    model = CompiledEstimator(inner).fit(X)
    np.testing.assert_allclose(
        model.score_samples(X), model.estimator_.score_samples(X), rtol=1e-14
    )
    np.testing.assert_array_equal(model.predict(X), model.estimator_.predict(X))
    assert model.offset_ == model.estimator_.offset_


def test_what_is_not_compiled_is_refused_at_fit() -> None:
    class Mine(LogisticRegression):
        pass

    with pytest.raises(irkit.UnsupportedError, match="Mine"):
        CompiledEstimator(Mine()).fit(X, Y)


def test_sample_weights_and_selectors() -> None:
    weights = np.where(Y == 2, 5.0, 1.0)
    model = CompiledEstimator(LogisticRegression()).fit(X, Y, sample_weight=weights)
    want = LogisticRegression().fit(X, Y, sample_weight=weights)
    np.testing.assert_array_equal(model.predict(X), want.predict(X))
    chosen = CompiledEstimator(SelectKBest(k=2))
    np.testing.assert_array_equal(chosen.fit_transform(X, Y), X[:, 2:])
    np.testing.assert_array_equal(chosen.transform(X), X[:, 2:])


def test_one_dtype() -> None:
    inner = MLPClassifier((5,), max_iter=20, random_state=0)
    model = CompiledEstimator(inner, dtype="float32").fit(X.astype(np.float32), Y)
    np.testing.assert_allclose(
        model.predict_proba(X.astype(np.float32)),
        model.estimator_.predict_proba(X.astype(np.float32)),
        rtol=1e-5,
    )
