"""Estimators of estimators against scikit-learn: ensembles, several outputs, calibration, searches."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn import ensemble, multiclass, multioutput
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LinearRegression, LogisticRegression, RANSACRegressor, Ridge
from sklearn.linear_model import Perceptron as Margins
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeRegressor

from irkit.errors import InvalidInputError, InvalidModelError, UnsupportedError
from irkit.frontends import import_model
from tests.conformance.interpreted import METHODS, compare, interpreted, same
from tests.conformance.sklearn_models import data, with_gaps

pytestmark = pytest.mark.filterwarnings("ignore")
LABELS = np.array(["a", "long name", "ü"])


@cache
def rows(name: str, classes: int = 3) -> tuple[Any, Any]:
    """100 scaled rows, and their labels or values."""
    x, y = data(name)
    kept = np.flatnonzero(y < classes) if name != "diabetes" else np.arange(len(y))
    kept = np.random.default_rng(0).permutation(kept)[:100]
    made: Any = StandardScaler().fit_transform(x)
    return made[kept], y[kept]


def check(
    model: Any, x: Any, exact: tuple[str, ...] = (), left_out: set[str] | None = None
) -> None:
    program = interpreted(model)
    assert set(program._methods) == {m for m in METHODS if hasattr(model, m)} - (left_out or set())
    given = np.concatenate([x, 5 * x[:9]])
    compare(program, model, given, exact, rtol=1e-9, atol=1e-9)
    compare(program, model, given.astype(np.float32), exact, rtol=1e-5, atol=1e-5)


def logistic() -> Any:
    return LogisticRegression(max_iter=50)


def tree() -> Any:
    return DecisionTreeClassifier(max_depth=3, random_state=0)


def piped(last: Any) -> Any:
    return make_pipeline(PCA(3), last)


# Classifiers

THREE = [("a", logistic()), ("b", tree()), ("c", piped(GaussianNB()))]
CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "adaboost": lambda: ensemble.AdaBoostClassifier(n_estimators=6, random_state=0),
    "adaboost_linear": lambda: ensemble.AdaBoostClassifier(logistic(), n_estimators=3),
    "bagged_trees": lambda: ensemble.BaggingClassifier(n_estimators=5, random_state=0),
    "bagged_columns": lambda: ensemble.BaggingClassifier(
        tree(), n_estimators=5, max_features=0.5, max_samples=0.1, random_state=0
    ),
    "bagged_bayes": lambda: ensemble.BaggingClassifier(GaussianNB(), n_estimators=3),
    "bagged_linear": lambda: ensemble.BaggingClassifier(
        logistic(), n_estimators=3, max_features=2, random_state=0
    ),
    "bagged_votes": lambda: ensemble.BaggingClassifier(SVC(), n_estimators=3, random_state=0),
    "calibrated": lambda: CalibratedClassifierCV(tree(), cv=2),
    "calibrated_isotonic": lambda: CalibratedClassifierCV(logistic(), cv=2, method="isotonic"),
    "calibrated_one": lambda: CalibratedClassifierCV(SVC(), cv=2, ensemble=False),
    "calibrated_temperature": lambda: CalibratedClassifierCV(tree(), cv=2, method="temperature"),
    "calibrated_temperature_margins": lambda: CalibratedClassifierCV(
        logistic(), cv=2, method="temperature"
    ),
    "calibrated_temperature_votes": lambda: CalibratedClassifierCV(
        SVC(), cv=2, method="temperature", ensemble=False
    ),
    "codes": lambda: multiclass.OutputCodeClassifier(logistic(), random_state=0),
    "dummy": DummyClassifier,
    "dummy_frequent": lambda: DummyClassifier(strategy="most_frequent"),
    "one_one": lambda: multiclass.OneVsOneClassifier(logistic()),
    "one_one_trees": lambda: multiclass.OneVsOneClassifier(tree()),
    "one_rest": lambda: multiclass.OneVsRestClassifier(logistic()),
    "one_rest_margins": lambda: multiclass.OneVsRestClassifier(Margins()),
    "one_rest_regressor": lambda: multiclass.OneVsRestClassifier(LinearRegression()),
    "one_rest_trees": lambda: multiclass.OneVsRestClassifier(tree()),
    "search": lambda: GridSearchCV(Pipeline([("last", logistic())]), {"last__C": [0.1, 1]}, cv=2),
    "self_training": lambda: SelfTrainingClassifier(logistic()),
    "stacking": lambda: ensemble.StackingClassifier(THREE, logistic(), cv=2, passthrough=True),
    "stacking_margins": lambda: ensemble.StackingClassifier(
        [("a", SVC()), ("b", tree())], tree(), cv=2
    ),
    "voting_hard": lambda: ensemble.VotingClassifier(THREE, weights=[1, 3, 2]),
    "voting_soft": lambda: ensemble.VotingClassifier(THREE, voting="soft"),
    "voting_weighed": lambda: ensemble.VotingClassifier(
        [*THREE, ("none", "drop")], voting="soft", weights=[0.1, 0.3, 0.2, 9]
    ),
}
EXACT = {"adaboost", "bagged_trees", "bagged_columns", "voting_hard", "dummy", "dummy_frequent"}


@pytest.mark.parametrize("dataset", ["wine", "breast_cancer"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifier(name: str, dataset: str) -> None:
    x, y = rows(dataset)
    model = CLASSIFIERS[name]()
    labels = y if isinstance(model, ensemble.BaggingClassifier) else LABELS[y]
    if isinstance(model, SelfTrainingClassifier):
        labels = np.where(np.arange(len(y)) % 3 == 0, -1, y)
    exact = ("predict_proba", "decision_function") if name in EXACT else ()
    check(model.fit(x, labels), x, exact)


def test_voices_of_three_dimensions() -> None:
    """They are left out, and the votes are not."""
    x, y = rows("wine")
    model = ensemble.VotingClassifier(THREE, voting="soft", flatten_transform=False).fit(x, y)
    check(model, x, left_out={"transform"})


@pytest.mark.parametrize("positive", [None, "a", "long name"])
def test_thresholds(positive: Any) -> None:
    x, y = rows("breast_cancer")
    for inner in (logistic(), Margins(), GaussianNB()):
        model = FixedThresholdClassifier(inner, threshold=0.3, pos_label=positive)
        check(model.fit(x, LABELS[y] if positive else y), x)
    check(TunedThresholdClassifierCV(logistic(), cv=2).fit(x, y), x)
    check(FixedThresholdClassifier(FrozenEstimator(logistic().fit(x, y))).fit(x, y), x)


# Regressors

PAIR = [("a", LinearRegression()), ("b", piped(DecisionTreeRegressor(max_depth=3)))]
REGRESSORS: dict[str, Callable[[], Any]] = {
    "adaboost": lambda: ensemble.AdaBoostRegressor(n_estimators=7, random_state=0),
    "adaboost_linear": lambda: ensemble.AdaBoostRegressor(
        LinearRegression(), n_estimators=4, random_state=0
    ),
    "bagged_trees": lambda: ensemble.BaggingRegressor(
        ExtraTreeRegressor(), n_estimators=4, max_features=3, random_state=0
    ),
    "bagged_machines": lambda: ensemble.BaggingRegressor(SVR(), n_estimators=3),
    "dummy": lambda: DummyRegressor(strategy="median"),
    "ransac": lambda: RANSACRegressor(random_state=0),
    "stacking": lambda: ensemble.StackingRegressor(PAIR, Ridge(), cv=2),
    "voting": lambda: ensemble.VotingRegressor(PAIR),
    "voting_weighed": lambda: ensemble.VotingRegressor(PAIR, weights=[1, 2]),
}


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressor(name: str) -> None:
    x, y = rows("diabetes")
    exact = ("predict",) if name in ("adaboost", "bagged_trees", "dummy") else ()
    check(REGRESSORS[name]().fit(x, y), x, exact)


def test_isotonic_regression() -> None:
    x, y = rows("diabetes")
    for bounds in ("clip", "raise"):
        model = IsotonicRegression(out_of_bounds=bounds).fit(x[:, 2], y)
        inside = x[(x[:, 2] >= model.X_min_) & (x[:, 2] <= model.X_max_), 2:3]
        inside = np.concatenate([inside, model.X_thresholds_[:, None]])
        compare(interpreted(model), model, inside, rtol=1e-12)
    program = interpreted(model)
    with pytest.raises(InvalidInputError, match="row 1: IsotonicRegression found a value outside"):
        program.predict(np.array([[0.0], [99.0]]))


def test_isotonic_regression_beyond_its_ends() -> None:
    x, y = rows("diabetes")
    for given, targets in ((x[:, 2], y), (np.zeros(3), np.arange(3.0))):
        model = IsotonicRegression(out_of_bounds="nan").fit(given, targets)
        beyond = np.concatenate([x[:, 2:3], model.X_thresholds_[:, None], [[-99.0], [99.0]]])
        compare(interpreted(model), model, beyond, rtol=1e-12)


# Several outputs


def test_several_outputs() -> None:
    x, y = rows("diabetes")
    both = np.stack([y, -y, x[:, 0]], axis=1)
    check(multioutput.MultiOutputRegressor(SVR()).fit(x, both), x)
    order = [2, 0, 1]
    check(multioutput.RegressorChain(Ridge(), order=order).fit(x, both), x)
    x, y = rows("wine")
    several = np.stack([LABELS[y], np.where(y > 0, "b", "ü")], axis=1)
    check(multioutput.MultiOutputClassifier(logistic()).fit(x, several), x)
    check(multioutput.MultiOutputClassifier(tree()).fit(x, np.stack([y, y + 5], axis=1)), x)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_chains(method: Any) -> None:
    x, y = rows("wine")
    marks = np.stack([y == 0, y > 0, y == 2], axis=1).astype(int)
    chain = multioutput.ClassifierChain(logistic(), order=[1, 2, 0], chain_method=method)
    check(chain.fit(x, marks), x)


def test_several_labels_a_row() -> None:
    x, y = rows("wine")
    marks = np.stack([y == 0, y > 0, y == 2], axis=1).astype(int)
    check(multiclass.OneVsRestClassifier(logistic()).fit(x, marks), x)
    always = np.stack([y == 0, y >= 0], axis=1).astype(int)
    check(multiclass.OneVsRestClassifier(logistic()).fit(x, always), x)


# NaN, infinity, refusals


def test_missing_values_where_all_members_take_them() -> None:
    x, y = rows("wine")
    gaps = with_gaps(x)
    pair = [("a", HistGradientBoostingClassifier(max_iter=3)), ("b", tree())]
    for model in (
        ensemble.VotingClassifier(pair, voting="soft"),
        ensemble.BaggingClassifier(n_estimators=3, random_state=0),
        ensemble.StackingClassifier(pair, logistic(), cv=2),
    ):
        check(model.fit(gaps, y), gaps)
        assert import_model(model, "float64").info.allow_nan
    mixed = ensemble.VotingClassifier([*pair, ("c", logistic())], voting="soft").fit(x, y)
    boosted = ensemble.AdaBoostClassifier(n_estimators=2).fit(x, y)
    for refusing in (mixed, boosted):
        with pytest.raises(ValueError, match="contains NaN"):
            refusing.predict(gaps)
        with pytest.raises(InvalidInputError, match="has NaN"):
            interpreted(refusing).predict(gaps)


def test_what_is_infinite_as_float32_is_an_error() -> None:
    x, y = rows("wine")
    model = ensemble.BaggingClassifier(n_estimators=2, random_state=0).fit(x, y)
    wrong = x.copy()
    wrong[3, 1] = 1e300
    with pytest.raises(ValueError, match="infinity or a value too large"):
        model.predict(wrong)
    with pytest.raises(
        InvalidInputError, match=r"row 3: .*infinity reaches DecisionTreeClassifier"
    ):
        interpreted(model).predict(wrong)


class Stubborn(ClassifierMixin, BaseEstimator):
    """A classifier that no front end knows: the first class it saw."""

    def fit(self, x: Any, y: Any) -> Stubborn:
        self.classes_ = np.unique(y)
        return self

    def predict(self, x: Any) -> Any:
        return np.full(len(x), self.classes_[0])


REFUSED: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "member": (
        lambda x, y: ensemble.BaggingClassifier(Stubborn(), n_estimators=2).fit(x, y),
        f"step 'BaggingClassifier: estimators_: Stubborn': estimator {__name__}.Stubborn",
    ),
    "random": (
        lambda x, y: DummyClassifier(strategy="uniform").fit(x, y),
        "parameter strategy='uniform', which draws at random",
    ),
    "refit": (
        lambda x, y: GridSearchCV(logistic(), {"C": [1]}, cv=2, refit=False).fit(x, y),
        "GridSearchCV without best_estimator_",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_by_name(case: str) -> None:
    make, reason = REFUSED[case]
    model = make(*rows("wine"))
    with pytest.raises(UnsupportedError) as caught:
        import_model(model, "float64")
    assert len(caught.value.missing) == 1
    assert reason in caught.value.missing[0]


def test_margins_that_look_like_probabilities() -> None:
    """scikit-learn looks at all rows of a batch to say whether scores are margins."""
    x, y = rows("wine")
    model: Any = CalibratedClassifierCV(logistic(), cv=2, method="temperature").fit(x, y)
    for part in model.calibrated_classifiers_:
        part.estimator.coef_[:], part.estimator.intercept_[:] = 0, 1 / 3
        part.estimator.coef_[0, 0] = 1
    x = x[:4].copy()
    x[:, 0] = 3
    same(interpreted(model).predict_proba(x), model.predict_proba(x), 1e-9)
    x[1, 0] = 0
    with pytest.raises(InvalidInputError, match="row 1: margins between 0 and 1 whose sum is 1"):
        interpreted(model).predict_proba(x)


def test_members_without_the_method_and_unfitted_ones() -> None:
    x, y = data("digits")[0][:99], np.arange(99) % 11
    model = ensemble.VotingClassifier([("a", SVC(probability=True))], voting="soft").fit(x, y)
    with pytest.raises(UnsupportedError, match="method 'predict_proba' of SVC"):
        import_model(model, "float64")
    with pytest.raises(InvalidModelError, match="is not fitted"):
        import_model(ensemble.VotingClassifier(THREE), "float64")


def test_compiled(compiled: Any) -> None:
    x, y = rows("wine")
    for model in (
        ensemble.StackingClassifier(THREE, logistic(), cv=2).fit(x, LABELS[y]),
        ensemble.BaggingClassifier(RandomForestClassifier(3), n_estimators=2).fit(x, y),
    ):
        compare(compiled(model, mode="serial", dtype="float64"), model, x, rtol=1e-9, atol=1e-9)
