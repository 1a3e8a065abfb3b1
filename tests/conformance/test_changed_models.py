"""Fitted models of another version of scikit-learn, changed by hand, or of a user's own classes."""

# pyright: basic

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irkit.errors import InvalidModelError, UnsupportedError
from tests.conformance.interpreted import interpreted, same

pytest.importorskip("sklearn")

from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, SplineTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

RNG = np.random.default_rng(0)
X: Any = RNG.normal(size=(60, 4))
Y: Any = RNG.integers(0, 2, 60)
THREE: Any = RNG.integers(0, 3, 60)


# A user's own classes


class Flipped(LogisticRegression):
    def decision_function(self, X):
        return -super().decision_function(X)


class Wider(StandardScaler):
    def transform(self, X, copy=None):
        return super().transform(X) * 7


class Stump(DecisionTreeClassifier):
    def predict_proba(self, X, check_input=True):
        return np.flip(np.asarray(super().predict_proba(X)), axis=1)


class Nothing(Pipeline):
    def predict(self, X, **params):
        return np.zeros(len(X))


class Columns(ColumnTransformer):
    def transform(self, X, **params):
        return super().transform(X) * 2


class Kernel(RBF):
    def __call__(self, X, Y=None, eval_gradient=False):
        return super().__call__(X, Y, eval_gradient)


class Own(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X


OWN = {
    "alone": lambda: Flipped().fit(X, Y),
    "a step": lambda: make_pipeline(Wider(), LogisticRegression()).fit(X, Y),
    "a pipeline": lambda: Nothing([("a", LogisticRegression())]).fit(X, Y),
    "columns": lambda: make_pipeline(
        Columns([("a", StandardScaler(), [0])]), LogisticRegression()
    ).fit(X, Y),
    "a part": lambda: FeatureUnion([("a", Own()), ("b", StandardScaler())]).fit(X),
    "a bag": lambda: BaggingClassifier(Flipped(), 2).fit(X, Y),
    "boosted": lambda: AdaBoostClassifier(Stump(max_depth=1), n_estimators=2).fit(X, Y),
    "a vote": lambda: VotingClassifier([("a", Flipped())]).fit(X, Y),
    "searched": lambda: GridSearchCV(Flipped(), {"C": [1.0]}, cv=2).fit(X, Y),
    "a kernel": lambda: GaussianProcessRegressor(Kernel()).fit(X, X[:, 0]),
    "a first guess": lambda: GradientBoostingClassifier(init=Stump(), n_estimators=2).fit(X, Y),
    "its own": lambda: make_pipeline(Own(), LogisticRegression()).fit(X, Y),
}


@pytest.mark.parametrize("name", OWN)
def test_classes_of_a_user_are_refused_by_name(name):
    """Whatever they override."""
    with pytest.raises(UnsupportedError, match=r"test_changed_models\.\w+"):
        interpreted(OWN[name]())


def test_a_tree_of_a_forest_that_is_a_users_own():
    model = RandomForestClassifier(3).fit(X, Y)
    model.estimators_[1] = Stump().fit(X, Y)
    with pytest.raises(UnsupportedError, match=r"RandomForestClassifier with a member .*Stump"):
        interpreted(model)


def test_methods_that_were_replaced():
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    forest = RandomForestClassifier(3).fit(X, Y)
    for step, method in ((model[0], "transform"), (model[1], "predict"), (model, "predict_proba")):
        setattr(step, method, np.zeros_like)
        with pytest.raises(
            UnsupportedError, match=f"{type(step).__name__} with a method of its own: {method}"
        ):
            interpreted(model)
        delattr(step, method)
    forest.estimators_[2].predict_proba = np.zeros_like
    with pytest.raises(UnsupportedError, match="DecisionTreeClassifier with a method of its own"):
        interpreted(forest)


# Attributes that are missing, as in models of other versions


@pytest.mark.parametrize(
    ("model", "attribute"),
    [
        (SimpleImputer(), "_fill_dtype"),
        (SplineTransformer(), "handle_missing"),
        (LogisticRegression(), "classes_"),
        (RandomForestClassifier(2), "n_classes_"),
        (PCA(2), "mean_"),
    ],
)
def test_attributes_that_are_not_there(model, attribute):
    """Alone, and as a step that is named."""
    alone = model.fit(X, Y)
    behind = make_pipeline(StandardScaler(), model).fit(X, Y)
    delattr(alone, attribute)
    words = f"not this version of scikit-learn: '{type(model).__name__}' object .* '{attribute}'"
    for each in (alone, behind):
        with pytest.raises(InvalidModelError, match=words):
            interpreted(each)


# Attributes that do not fit together


def changed(model, targets=Y, **attributes):
    model.fit(X, targets)
    for name, value in attributes.items():
        setattr(model, name, value(getattr(model, name)))
    return model


CHANGED = {
    "fewer coefficients": (
        lambda: changed(LogisticRegression(), coef_=lambda v: v[:, :3]),
        "'graph.matmul' expects b with 4 rows",
    ),
    "a shift of two": (
        lambda: changed(LogisticRegression(), intercept_=lambda v: np.zeros(2)),
        "LogisticRegression has fitted attributes that do not fit together",
    ),
    "a column of scales": (
        lambda: changed(StandardScaler(), scale_=lambda v: v[:, None]),
        "StandardScaler has fitted attributes that do not fit together",
    ),
    "fewer labels": (
        lambda: changed(LogisticRegression(), THREE, classes_=lambda v: v[:2]),
        "LogisticRegression has 2 class labels, and columns of 3 classes",
    ),
    "more labels": (
        lambda: changed(BaggingClassifier(), classes_=lambda v: np.arange(3)),
        "BaggingClassifier was fitted otherwise than it says: n_classes_ has 2 where classes_ has 3",
    ),
    "more outputs": (
        lambda: changed(DecisionTreeClassifier(), n_outputs_=lambda v: 2),
        r"n_outputs_ has 2 where tree_\.n_outputs has 1",
    ),
    "more weights": (
        lambda: changed(GaussianMixture(2), weights_=lambda v: np.full(3, 1 / 3)),
        "GaussianMixture was fitted otherwise than it says: weights_ has 3 where means_ has 2",
    ),
    "fewer rows": (
        lambda: changed(KNeighborsClassifier(), _fit_X=lambda v: v[:-1]),
        "KNeighborsClassifier was fitted otherwise than it says: n_samples_fit_ has 60",
    ),
    "fewer bins": (
        lambda: changed(KBinsDiscretizer(), n_bins_=lambda v: v[:-1]),
        "KBinsDiscretizer was fitted otherwise than it says: n_bins_ has 3 where n_features_in_ has 4",
    ),
    "complex": (
        lambda: changed(PCA(2), components_=lambda v: v.astype(complex)),
        "PCA has a complex components_",
    ),
    "long": (
        lambda: changed(LinearRegression(), coef_=lambda v: v.astype(np.longdouble)),
        "LinearRegression has fitted attributes that do not fit together, .*float128|longdouble",
    ),
    "no trees": (
        lambda: changed(RandomForestClassifier(2), estimators_=lambda v: []),
        "RandomForestClassifier has trees of several",
    ),
    "other steps": (
        lambda: changed(
            make_pipeline(PCA(3), LogisticRegression()),
            steps=lambda v: [("a", StandardScaler().fit(X)), v[1]],
        ),
        "LogisticRegression was fitted on 3 columns, and is given 4 of them",
    ),
}


@pytest.mark.parametrize("name", CHANGED)
def test_attributes_that_do_not_fit_together(name):
    make, words = CHANGED[name]
    with pytest.raises(InvalidModelError, match=words):
        interpreted(make())


def test_trees_of_other_columns_and_classes():
    model = RandomForestClassifier(3).fit(X, Y)
    for odd in (DecisionTreeClassifier().fit(X, THREE), DecisionTreeClassifier().fit(X[:, :2], Y)):
        model.estimators_[1] = odd
        with pytest.raises(
            InvalidModelError, match="trees of several features, outputs or classes"
        ):
            interpreted(model)


def test_what_was_changed_and_still_fits_has_the_librarys_answer():
    fewer = changed(RandomForestRegressor(3), X[:, 0], estimators_=lambda v: v[:2])
    same(interpreted(fewer).predict(X), fewer.predict(X))
    narrow = changed(PCA(2), components_=lambda v: v.astype(np.float32))
    same(interpreted(narrow).transform(X), narrow.transform(X), 1e-6, 1e-6)
    # A perceptron answers with the labels of its binarizer.
    named = changed(MLPClassifier((3,), tol=9.0), classes_=lambda v: np.array(["no", "yes"]))
    same(interpreted(named).predict(X), named.predict(X))
    renamed = changed(LogisticRegression(), classes_=lambda v: np.array(["no", "yes"]))
    same(interpreted(renamed).predict(X), renamed.predict(X))
    drawn = IsolationForest(n_estimators=5, max_features=2, random_state=0).fit(X)
    same(interpreted(drawn).predict(X), drawn.predict(X))
