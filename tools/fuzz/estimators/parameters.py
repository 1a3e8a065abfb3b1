"""Random parameters of an estimator, read from what scikit-learn itself says that it takes."""

# pyright: basic

from __future__ import annotations

import random
from numbers import Integral
from typing import Any

import numpy as np

CHANGED = 0.25
"""Which part of an estimator's parameters are not their defaults."""
NEVER = frozenset({
    "alphas", "base_estimator", "callback", "copy", "copy_X", "cv", "estimator", "feature_names_in",
    "max_iter", "memory", "metric_params", "n_jobs", "refit", "scoring", "store_precision", "tol", "verbose",
    "warm_start",
})  # fmt: skip
"""What changes no program, or only how long it takes to fit."""
SMALL = {
    "n_estimators": (1, 2, 5), "max_iter": (20, 60), "n_alphas": (3,), "n_components": (1, 2, 3),
    "degree": (1, 2, 3), "n_quantiles": (5, 20), "n_clusters": (2, 3), "n_neighbors": (1, 2, 5),
    "n_knots": (2, 4), "n_bins": (2, 3, 7), "min_samples": (2, 4), "max_bins": (4, 30),
    "hidden_layer_sizes": ((3,), (4, 2)), "random_state": (0, 1), "max_n_alphas": (10,),
    "max_leaf_nodes": (None, 4), "n_init": (1,),
    "max_subpopulation": (10,), "n_subsamples": (20,), "sample_steps": (1, 2, 3), "max_no_improvement": (3,),
    "batch_size": (20,), "n_bootstraps": (2,), "max_features": (None, 0.7, 2),
}  # fmt: skip
"""Values instead of those that scikit-learn's ranges would give."""


def changed(rng: random.Random, estimator: Any) -> Any:
    """The estimator with some of its parameters drawn anew."""
    constraints = getattr(type(estimator), "_parameter_constraints", None) or {}
    own = estimator.get_params(deep=False)
    drawn: dict[str, Any] = {}
    for name, kinds in sorted(constraints.items()):
        if name not in own or name in NEVER or not isinstance(kinds, list):
            continue
        if name == "random_state":
            drawn[name] = 0
        elif rng.random() < CHANGED or (name in SMALL and _is_large(own[name])):
            drawn.update(_value(rng, name, kinds))
    return estimator.set_params(**drawn)


def _is_large(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) > 20


def _value(rng: random.Random, name: str, kinds: list[Any]) -> dict[str, Any]:
    """A value of one of the kinds, under the parameter's name; nothing where none can be made up."""
    if name in SMALL and rng.random() < 0.8:
        return {name: rng.choice(SMALL[name])}
    kind = rng.choice(kinds)
    if kind is None:
        return {name: None}
    if kind in ("boolean", bool):
        return {name: rng.random() < 0.5}
    options = getattr(kind, "options", None)
    if options:
        return {name: rng.choice(sorted(options, key=str))}
    if hasattr(kind, "left") and hasattr(kind, "closed"):
        return {name: _number(rng, kind)}
    return {}


def _number(rng: random.Random, kind: Any) -> Any:
    """A number of an interval, most often near its ends or of ordinary size."""
    if kind.type is Integral:
        low = int(kind.left) if kind.left is not None and np.isfinite(kind.left) else 0
        low += kind.closed in ("right", "neither")
        high = int(kind.right) if kind.right is not None and np.isfinite(kind.right) else low + 6
        return rng.randint(low, max(low, min(high, low + 6)))
    ordinary = (0.0, 1e-3, 0.05, 0.1, 0.25, 0.5, 0.9, 1.0, 1.5, 2.0, 10.0)
    return rng.choice([n for n in ordinary if n in kind] or [1.0])
