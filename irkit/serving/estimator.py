"""`irkit.sklearn.CompiledEstimator`: an estimator whose answers a compiled program gives."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NoReturn, cast

import numpy as np
from sklearn import base, utils
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, RegressorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import metaestimators, validation

from irkit.driver.compiler.compile import compile_model
from irkit.errors import InvalidInputError, UnsupportedError
from irkit.runtime.data_frames import is_data_frame
from irkit.runtime.program import CompiledProgram
from irkit.runtime.sparse_rows import is_sparse
from irkit.serving.kept import KeptProgram

# Functions of scikit-learn state no types.
clone, get_tags = cast(Any, base).clone, cast(Any, utils).get_tags
available_if = cast(Any, metaestimators).available_if
check_array = cast(Any, validation).check_array
check_is_fitted = cast(Any, validation).check_is_fitted
validate_data = cast(Any, validation).validate_data

# Scores that are made of predictions, and of nothing else of the estimator.
_OF_PREDICTIONS = (cast(Any, ClassifierMixin).score, cast(Any, RegressorMixin).score)


def _has(method: str) -> Callable[[Any], bool]:
    """Whether an estimator has a method: before it is fitted, if the inner one has."""

    def check(self: CompiledEstimator) -> bool:
        if not hasattr(self, "estimator_"):
            # The inner one says what it lacks.
            return getattr(self.estimator, method) is not None
        return method in self.program_.methods

    return check


def _inner_has(name: str) -> Callable[[Any], bool]:
    def check(self: CompiledEstimator) -> bool:
        return getattr(getattr(self, "estimator_", self.estimator), name) is not None

    return check


class CompiledEstimator(MetaEstimatorMixin, BaseEstimator):
    """A scikit-learn estimator that is fitted as `estimator` is, and answers by a program compiled from it.

    `estimator`: anything that `irkit.compile` takes once it is fitted: an estimator of scikit-learn, LightGBM
    or XGBoost, or a Pipeline. `fit` fits a clone of it, as every meta-estimator does; `from_fitted` takes one
    that is fitted already. `target`: "cpu", "cuda" or "auto", as of `irkit.compile`; `dtype`: "float64" or
    "float32" if only such arrays will come.

    It may stand in a Pipeline, be cloned, searched over (`estimator__C`) and pickled: what is pickled is the
    saved program, which is loaded and not compiled again. Any number of threads may call it. Input that is
    refused raises what `estimator_` raises of it. `fit` raises UnsupportedError for a model that irkit does
    not compile. Sparse rows are taken where `estimator` takes them, and refused with TypeError elsewhere;
    what it transforms of them is dense.

    Fitted, it has `estimator_`, the fitted inner estimator; `program_`, the CompiledProgram; and
    `classes_`, `n_features_in_`, `feature_names_in_` and `offset_` where `estimator_` has them.
    """

    def __init__(self, estimator: Any, target: str = "auto", dtype: str | None = None) -> None:
        self.estimator = estimator
        self.target = target
        self.dtype = dtype

    @classmethod
    def from_fitted(
        cls, estimator: Any, target: str = "auto", dtype: str | None = None
    ) -> CompiledEstimator:
        """One of an estimator that is fitted, which it does not fit again, nor do its clones.

        Raises UnsupportedError, InvalidModelError.
        """
        made = cls(FrozenEstimator(estimator), target, dtype)
        return made._compiled(made.estimator)

    def fit(self, X: Any, y: Any = None, **fit_params: Any) -> CompiledEstimator:
        """Fit a clone of the inner estimator to rows `X` and targets `y`, and compile it."""
        self._refuse_sparse(X)
        return self._compiled(clone(self.estimator).fit(X, y, **fit_params))

    def _refuse_sparse(self, X: Any) -> None:
        if is_sparse(X) and not _takes_sparse(self.estimator):
            # Raises TypeError, as every estimator does that takes none.
            check_array(X, accept_sparse=False, estimator=self)

    def _compiled(self, fitted: Any) -> CompiledEstimator:
        model = _thawed(fitted)
        self._kept = KeptProgram(compile_model(model, self.target, dtype=self.dtype))
        self.estimator_ = fitted
        return self

    @property
    def program_(self) -> CompiledProgram:
        """The compiled program. Raises NotFittedError."""
        check_is_fitted(self, "estimator_")
        return self._kept.program

    # Answers

    def _answer(self, method: str, X: Any) -> Any:
        program = self.program_
        self._refuse_sparse(X)
        try:
            found = getattr(program, method)(_rows(X, program.takes_strings))
        except (InvalidInputError, UnsupportedError) as refusal:
            self._refuse(method, X, refusal)
        if not is_data_frame(X) and hasattr(self, "feature_names_in_"):
            # A warning that the columns have no names.
            validate_data(self, X, reset=False, skip_check_array=True)
        return found

    def _refuse(self, method: str, X: Any, refusal: Exception) -> NoReturn:
        """Raise what scikit-learn raises for rows that the program refused; the refusal, if it takes them."""
        check_array(
            X, accept_sparse=is_sparse(X), dtype=None, ensure_all_finite=False, estimator=self
        )
        validate_data(self, X, reset=False, skip_check_array=True)
        getattr(self.estimator_, method)(X)
        raise refusal

    @available_if(_has("predict"))
    def predict(self, X: Any) -> Any:
        """Labels or values of rows, as the inner estimator's."""
        return self._answer("predict", X)

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Any) -> Any:
        """Class probabilities, rows×classes."""
        return self._answer("predict_proba", X)

    @available_if(_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> Any:
        """Logarithms of class probabilities, rows×classes."""
        return self._answer("predict_log_proba", X)

    @available_if(_has("decision_function"))
    def decision_function(self, X: Any) -> Any:
        """Margins."""
        return self._answer("decision_function", X)

    @available_if(_has("score_samples"))
    def score_samples(self, X: Any) -> Any:
        """Scores of rows: the lower, the more abnormal."""
        return self._answer("score_samples", X)

    @available_if(_has("transform"))
    def transform(self, X: Any) -> Any:
        """Transformed rows."""
        return self._answer("transform", X)

    @available_if(_has("transform"))
    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """What the inner estimator's own `fit_transform` gives, which may be more than `fit` and `transform`
        of the same rows (TargetEncoder, stacking); then its clone is compiled. Dense, as `transform` is."""
        self._refuse_sparse(X)
        fitted = clone(self.estimator)
        found = fitted.fit_transform(X, y, **fit_params)
        self._compiled(fitted)
        return found.toarray() if is_sparse(found) else found

    @available_if(_inner_has("score"))
    def score(self, X: Any, y: Any = None, **score_params: Any) -> Any:
        """The inner estimator's score.

        Accuracy and R² are of the program's predictions; any other is computed by `estimator_` itself.
        """
        check_is_fitted(self, "estimator_")
        last: Any = _thawed(self.estimator_)
        while isinstance(last, Pipeline):
            last = _thawed(cast(Any, last)[-1])
        own: Any = getattr(cast(Any, type(last)), "score", None)
        if own in _OF_PREDICTIONS and "predict" in self.program_.methods:
            return own(self, X, y, **score_params)
        return self.estimator_.score(X, y, **score_params)

    # What is known of it

    @property
    def classes_(self) -> Any:
        """Those of `estimator_`."""
        return self._known("classes_")

    @property
    def n_features_in_(self) -> Any:
        """That of `estimator_`."""
        return self._known("n_features_in_")

    @property
    def feature_names_in_(self) -> Any:
        """Those of `estimator_`."""
        return self._known("feature_names_in_")

    @property
    def offset_(self) -> Any:
        """That of an outlier detector: its decision function is its `score_samples` minus this."""
        return self._known("offset_")

    def _known(self, name: str) -> Any:
        # Not through hasattr: an AttributeError says that there is none, before a fit too.
        fitted = self.__dict__.get("estimator_")
        if fitted is None:
            raise AttributeError(f"a CompiledEstimator has '{name}' once it is fitted")
        return getattr(_thawed(fitted), name)

    @available_if(_inner_has("get_feature_names_out"))
    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names of the columns that `transform` gives."""
        check_is_fitted(self, "estimator_")
        return self.estimator_.get_feature_names_out(input_features)

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        for name in (
            "estimator_type",
            "target_tags",
            "transformer_tags",
            "classifier_tags",
            "regressor_tags",
            "input_tags",
            "non_deterministic",
            "no_validation",
        ):
            setattr(tags, name, copy.deepcopy(getattr(inner, name)))
        return tags


def _takes_sparse(estimator: Any) -> bool:
    return bool(get_tags(estimator).input_tags.sparse)


def _are_numbers(X: Any) -> bool:
    return isinstance(X, np.ndarray) and cast(Any, X).dtype.kind in "fiub"


def _thawed(estimator: Any) -> Any:
    """What is within a FrozenEstimator."""
    while isinstance(estimator, FrozenEstimator):
        estimator = cast(Any, estimator).estimator
    return estimator


def _rows(X: Any, words: bool) -> Any:
    """Rows as a program takes them: lists, and numbers as objects, as scikit-learn reads them.

    `words`: it has columns of strings, so that objects are what it takes.
    """
    if words or is_data_frame(X) or _are_numbers(X) or is_sparse(X):
        return X
    if not isinstance(X, np.ndarray) and hasattr(X, "__dlpack__"):
        return X
    return check_array(X, accept_sparse=False, ensure_all_finite=False)
