"""scikit-learn's own `estimator_checks` on compiled estimators: one of each family.

All checks that ask for answers run on what the interpreter of the graph level gives, through the doors that a
compiled program has; those of values run on programs compiled for the CPU too.
"""

# pyright: basic, reportArgumentType=false, reportAssignmentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sklearn import (
    cluster,
    cross_decomposition,
    decomposition,
    ensemble,
    feature_selection,
    impute,
    linear_model,
    mixture,
    naive_bayes,
    neighbors,
    neural_network,
    preprocessing,
    svm,
)
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks

import irkit.serving.estimator as serving
from irkit.sklearn import CompiledEstimator
from tests.conformance.interpreted import interpreted

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
LOGISTIC = linear_model.LogisticRegression(max_iter=20)
ESTIMATORS = [
    cluster.KMeans(2, n_init=2, max_iter=5, random_state=0),
    cross_decomposition.PLSRegression(1, max_iter=20),
    decomposition.PCA(1),
    ensemble.HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5, random_state=0),
    ensemble.IsolationForest(n_estimators=3, random_state=0),
    ensemble.RandomForestClassifier(3, random_state=0),
    ensemble.StackingRegressor([("a", linear_model.Ridge()), ("b", svm.LinearSVR(random_state=0))], cv=2),
    feature_selection.SelectKBest(k=1),
    impute.KNNImputer(n_neighbors=1),
    impute.SimpleImputer(),
    linear_model.GammaRegressor(),
    linear_model.SGDClassifier(max_iter=5, random_state=0),
    make_pipeline(preprocessing.StandardScaler(with_mean=False), LOGISTIC),
    mixture.GaussianMixture(random_state=0),
    naive_bayes.MultinomialNB(),
    neighbors.KNeighborsClassifier(3),
    neighbors.RadiusNeighborsRegressor(50.0),
    neural_network.MLPClassifier((3,), max_iter=10, random_state=0),
    preprocessing.KBinsDiscretizer(3, encode="onehot", quantile_method="averaged_inverted_cdf"),
    preprocessing.OneHotEncoder(handle_unknown="ignore"),
    preprocessing.QuantileTransformer(n_quantiles=5),
    preprocessing.TargetEncoder(cv=3, shuffle=False),
    svm.SVC(),
    svm.OneClassSVM(),
]  # fmt: skip
REFUSED = {
    "check_estimators_dtypes": {"GaussianMixture": "it computes in integers"},
    "check_fit2d_1sample": {
        "IsolationForest": "its scores are divided by the logarithm of a row's count",
        "QuantileTransformer": "one quantile is no curve",
        "KBinsDiscretizer": "a bin of its own has no width",
        "KNeighborsClassifier": "fewer rows than neighbours",
        "HistGradientBoostingClassifier": "there is one class",
        "MLPClassifier": "there is one class",
    },
    "check_classifiers_one_label": {
        "HistGradientBoostingClassifier": "its probabilities have two columns",
        "MLPClassifier": "its probabilities have two columns",
    },
    "check_dtype_object": {
        "OneHotEncoder": "categories are objects of several types",
        "TargetEncoder": "categories are objects of several types",
    },
}
"""What irkit refuses of a check's models, and why."""
BY_NAME = {
    "check_transformer_general": ("PLSRegression",),
    "check_transformer_data_not_an_array": ("PLSRegression",),
}
"""Checks that know an estimator by the name of its class, which a CompiledEstimator has not."""
VALUES = ("check_estimators_dtypes", "check_methods_subset_invariance")
OF_THE_FIT = (
    "check_classifiers_regression_target",
    "check_classifiers_train",
    "check_dont_overwrite_attributes",
    "check_estimators_overwrite_params",
    "check_fit_score_takes_y",
    "check_requires_y_none",
    "check_regressors_train",
    "check_supervised_y_2d",
    "check_supervised_y_no_nan",
)
"""Checks of fits alone, or of how good they are."""


def _name(estimator: Any) -> str:
    return type(estimator).__name__


def _checks(estimator: Any) -> Iterator[tuple[str, Any, Any]]:
    """Name, estimator and check of each that asks a fitted estimator."""
    model = CompiledEstimator(estimator, target="cpu", dtype="float64")
    for each, check in estimator_checks.estimator_checks_generator(model, legacy=True):
        name = check.func.__name__
        passing = ("sample_weight", "class_weight", "param", "attributes", "partial_fit")
        if name not in OF_THE_FIT and not any(part in name for part in passing):
            yield name, each, check


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=_name)
def test_answers_through_the_doors(estimator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        serving, "compile_model", lambda model, target, dtype=None: interpreted(model)
    )
    failed: dict[str, str] = {}
    for name, each, check in _checks(estimator):
        if "pickle" in name or _name(estimator) in (*REFUSED.get(name, ()), *BY_NAME.get(name, ())):
            continue
        try:
            check(each)
        except estimator_checks.SkipTest:
            pass
        except Exception as error:
            failed[name] = f"{_name(error)}: {error}"
    assert failed == {}


def _raised(check: Any, model: Any) -> set[str]:
    """Names of the error that a check raises, and of those that it came of."""
    try:
        check(model)
    except Exception as error:
        errors: list[Any] = [error]
        while errors[-1] is not None:
            errors.append(errors[-1].__cause__ or errors[-1].__context__)
        return {_name(each) for each in errors}
    return set()


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_is_refused_is_said(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An UnsupportedError, or what scikit-learn's check expects of a refusal, with irkit's words."""
    monkeypatch.setattr(
        serving, "compile_model", lambda model, target, dtype=None: interpreted(model)
    )
    for estimator in (e for e in ESTIMATORS if _name(e) in REFUSED[name]):
        found = [(each, check) for known, each, check in _checks(estimator) if known == name]
        for each, check in found:
            kinds = _raised(check, each)
            assert kinds & {"UnsupportedError", "InvalidInputError"}, (_name(estimator), kinds)


COMPILED = [e for e in ESTIMATORS if _name(e) in ("IsolationForest", "Pipeline")]


@pytest.mark.parametrize("estimator", COMPILED, ids=_name)
def test_values_of_compiled_programs(estimator: Any) -> None:
    for name, each, check in _checks(estimator):
        if name in VALUES:
            check(each)
