"""Lengths of fitted attributes that must agree where the graph's own ops would not notice: NumPy's rules of
broadcasting fit what does not belong together, and some lengths are read from one attribute alone."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, cast

import numpy as np

from irkit.errors import InvalidModelError, UnsupportedError
from irkit.frontends.sklearn.importer import kind_of

_METHODS = frozenset((
    "decision_function", "predict", "predict_log_proba", "predict_proba", "score_samples", "transform",
))  # fmt: skip
_MIXTURE = {"means_": "kf", "weights_": "k"}
_NEIGHBOURS = {"_fit_X": "nf", "n_samples_fit_": "=n"}
_TREE = {"tree_.n_outputs": "=o", "n_outputs_": "=o", "n_classes_": "=c"}
_BAG = {"n_classes_": "=c"}
_FOREST = {"n_outputs_": "=o", **_BAG}
_SHAPES: dict[str, dict[str, str]] = {
    "AdaBoostClassifier": _BAG,
    "BaggingClassifier": _BAG,
    "BayesianGaussianMixture": {**_MIXTURE, "mean_precision_": "k", "degrees_of_freedom_": "k"},
    "DecisionTreeClassifier": _TREE,
    "DecisionTreeRegressor": _TREE,
    "DummyRegressor": {"constant_": "1o", "n_outputs_": "=o"},
    "ExtraTreeClassifier": _TREE,
    "ExtraTreeRegressor": _TREE,
    "ExtraTreesClassifier": _FOREST,
    "GaussianMixture": _MIXTURE,
    "KBinsDiscretizer": {"n_bins_": "f", "bin_edges_": "f"},
    "KNeighborsClassifier": _NEIGHBOURS,
    "KNeighborsRegressor": _NEIGHBOURS,
    "KNeighborsTransformer": _NEIGHBOURS,
    "LocallyLinearEmbedding": {"embedding_": "nk", "n_components": "=k"},
    "RadiusNeighborsClassifier": _NEIGHBOURS,
    "RadiusNeighborsRegressor": _NEIGHBOURS,
    "RadiusNeighborsTransformer": _NEIGHBOURS,
    "RandomForestClassifier": _FOREST,
}
"""Attribute → its dimensions by letter, or the letter that its number is, behind "="."""


_TREES = (
    "DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor",
)  # fmt: skip
_OF_TREES = (
    "ExtraTreesClassifier", "ExtraTreesRegressor", "GradientBoostingClassifier",
    "GradientBoostingRegressor", "IsolationForest", "RandomForestClassifier", "RandomForestRegressor",
    "RandomTreesEmbedding",
)  # fmt: skip
"""What reads the nodes of its members, and asks them nothing."""


def check_trees(step: Any) -> None:
    """Raises UnsupportedError if an ensemble has another member than the library's own trees,
    InvalidModelError if the trees are of several sizes."""
    if kind_of(step) not in _OF_TREES:
        return
    trees: list[Any] = np.ravel(step.estimators_).tolist()
    for tree in trees:
        if kind_of(tree) not in _TREES:
            raise UnsupportedError(f"{kind_of(step)} with a member {kind_of(tree)}")
        check_methods(tree)
    sizes = {(t.tree_.n_features, t.tree_.n_outputs, t.tree_.max_n_classes) for t in trees}
    if len(sizes) != 1 and kind_of(step) != "IsolationForest":
        raise InvalidModelError(
            f"{kind_of(step)} has trees of several features, outputs or classes: {sorted(sizes)}"
        )


def check_methods(step: Any) -> None:
    """Raises UnsupportedError if a method of an estimator was replaced: nothing is known of its answers."""
    replaced = _METHODS.intersection(getattr(step, "__dict__", ()))
    if replaced:
        raise UnsupportedError(f"{kind_of(step)} with a method of its own: {min(replaced)}")


def check_lengths(step: Any) -> None:
    """Raises InvalidModelError if two attributes of a fitted step say different things of one length, or one
    is complex."""
    for name, value in cast(dict[str, Any], vars(step)).items():
        if str(getattr(value, "dtype", "")).startswith("complex"):
            raise InvalidModelError(f"{kind_of(step)} has a complex {name}")
    table = _SHAPES.get(kind_of(step), {})
    said: dict[str, tuple[int, str]] = {}
    for letter, name in (("f", "n_features_in_"), ("c", "classes_"), ("o", "estimators_")):
        found = _known(step, letter, name)
        if found is not None:
            said[letter] = found, name
    for name, dims in table.items():
        for letter, length in zip(dims.lstrip("="), _lengths(step, name, dims), strict=False):
            before, other = said.setdefault(letter, (length, name))
            if letter != "1" and before != length:
                raise InvalidModelError(
                    f"{kind_of(step)} was fitted otherwise than it says: {name} has {length} where "
                    f"{other} has {before}"
                )


def _known(step: Any, letter: str, name: str) -> int | None:
    """A length that many kinds of estimators have by the same attribute; None if this one does not say."""
    value: Any = getattr(step, name, None)
    if value is None:
        return None
    if letter == "f":
        return int(value)
    if letter == "o":
        return getattr(value[0], "n_outputs_", None) if len(value) else None
    # Of several outputs there are lists of labels.
    return None if isinstance(value, list) else len(value)


def _lengths(step: Any, name: str, dims: str) -> tuple[int, ...]:
    try:
        value = attrgetter(name)(step)
    except AttributeError:
        return ()
    if not dims.startswith("="):
        return tuple(value.shape) if hasattr(value, "shape") else (len(value),)
    return (int(value),) if np.ndim(value) == 0 and value is not None else ()
