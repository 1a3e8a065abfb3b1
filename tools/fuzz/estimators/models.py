"""Random models: estimators of every family, alone, behind transformers, and within one another."""

# pyright: basic

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from sklearn import base, compose, ensemble, linear_model, multiclass, pipeline, preprocessing

from tools.fuzz.estimators import rows
from tools.fuzz.estimators.parameters import changed
from tools.sklearn_coverage import estimators, made

ELSEWHERE = frozenset({
    "CountVectorizer", "HashingVectorizer", "TfidfVectorizer", "KernelCenterer", "LabelBinarizer",
    "LabelEncoder", "FrozenEstimator", "Pipeline",
})  # fmt: skip
"""What takes no rows of numbers, or is made otherwise."""
SLOW = frozenset({"GridSearchCV", "RandomizedSearchCV", "RFECV", "SequentialFeatureSelector"})
WHOLE = ("CategoricalNB", "MultinomialNB", "ComplementNB", "BernoulliNB", "AdditiveChi2Sampler")
SEVERAL = (
    "CCA",
    "PLSCanonical",
    "PLSRegression",
    "PLSSVD",
    "MultiOutputRegressor",
    "RegressorChain",
)


@dataclass(frozen=True)
class Case:
    """A fitted model, and rows to ask it of."""

    model: Any
    rows: Any


@cache
def known() -> dict[str, type]:
    """Estimators of scikit-learn that irkit imports, by name."""
    import irkit

    names = set(irkit.supported_operators()["scikit-learn"]) - ELSEWHERE
    return {n: c for n, c in sorted(estimators().items()) if n in names}


@cache
def _of(kind: str) -> list[str]:
    tests = {
        "transformer": lambda c: hasattr(c, "transform") and not hasattr(c, "predict"),
        "classifier": lambda c: issubclass(c, base.ClassifierMixin),
        "regressor": lambda c: issubclass(c, base.RegressorMixin),
    }
    return [n for n, c in known().items() if n not in SLOW and tests[kind](c)]


def _one(rng: random.Random, name: str) -> Any:
    return changed(rng, made(name, known()[name]))


def _transformers(rng: random.Random, columns: int, depth: int = 0) -> Any:
    """A transformer, or several beside or behind one another."""
    draw = rng.random()
    if depth < 2 and draw < 0.15:
        return pipeline.make_pipeline(*(_transformers(rng, columns, depth + 1) for _ in "ab"))
    if depth < 2 and draw < 0.3:
        parts = [
            (f"part{i}", _transformers(rng, columns, depth + 1)) for i in range(rng.randint(1, 3))
        ]
        weights = {"part0": rng.choice((2.0, -0.5, 0.1))} if rng.random() < 0.3 else None
        return pipeline.FeatureUnion(parts, transformer_weights=weights)
    if depth == 0 and draw < 0.5:
        return _by_columns(rng, columns)
    return _one(rng, rng.choice(_of("transformer")))


def _by_columns(rng: random.Random, columns: int) -> Any:
    parts = []
    for i in range(rng.randint(1, 3)):
        chosen: Any = sorted(
            rng.sample(range(columns), rng.randint(1, columns)), key=lambda _: rng.random()
        )
        form = rng.randrange(4)
        if form == 0:
            chosen = slice(0, max(chosen) + 1)
        elif form == 1:
            chosen = [c in chosen for c in range(columns)]
        elif form == 2:
            chosen = [c - columns for c in chosen]
        step = rng.choice(("passthrough", "drop", None, None, None))
        parts.append((f"part{i}", step or _transformers(rng, columns, 1), chosen))
    rest = rng.choice(("drop", "passthrough", preprocessing.StandardScaler()))
    return compose.ColumnTransformer(
        parts, remainder=rest, sparse_threshold=rng.choice((0, 0.3, 1))
    )


def _within(rng: random.Random, estimator: Any, kind: str) -> Any:
    """An estimator that has this one inside."""
    if kind == "classifier":
        other = ("other", linear_model.LogisticRegression(C=0.1))
        return rng.choice((
            multiclass.OneVsRestClassifier(estimator), multiclass.OneVsOneClassifier(estimator),
            ensemble.BaggingClassifier(estimator, 3, random_state=0, max_features=rng.choice((1.0, 0.7))),
            ensemble.VotingClassifier([("one", estimator), other], voting=rng.choice(("hard", "soft"))),
            ensemble.StackingClassifier([("one", estimator), other], cv=2, passthrough=rng.random() < 0.5),
        ))  # fmt: skip
    other = ("other", linear_model.Ridge())
    return rng.choice((
        compose.TransformedTargetRegressor(estimator, transformer=preprocessing.StandardScaler()),
        ensemble.BaggingRegressor(estimator, 3, random_state=0, bootstrap_features=rng.random() < 0.5),
        ensemble.VotingRegressor([("one", estimator), other], weights=rng.choice((None, [1, 3]))),
        ensemble.StackingRegressor([("one", estimator), other], cv=2, passthrough=rng.random() < 0.5),
    ))  # fmt: skip


def case(rng: random.Random) -> Case | None:
    """A random fitted model; None where scikit-learn cannot fit what was drawn."""
    name = rng.choice(list(known()))
    columns = 1 if name == "IsotonicRegression" else rng.choice((1, 2, 4, 5, 9))
    kind = (
        "whole" if name in WHOLE else rng.choice(("normal", "normal", "positive", "whole", "wide"))
    )
    x = rows.numbers(rng, rows.FITTED + rows.ASKED, columns, kind)
    if rng.random() < 0.1:
        x = rows.with_gaps(rng, x)
    if rng.random() < 0.15:
        x = x.astype(np.float32)
    model = _composed(rng, name, columns)
    fitted, asked = x[: rows.FITTED], x[rows.FITTED :]
    try:
        model.fit(fitted, _wanted(rng, model, name, fitted))
    except Exception:  # of every kind, for parameters that do not go together
        return None
    return Case(model, asked)


def _composed(rng: random.Random, name: str, columns: int) -> Any:
    model = _one(rng, name)
    if rng.random() < 0.2 and name in (*_of("classifier"), *_of("regressor")):
        model = _within(rng, model, "classifier" if name in _of("classifier") else "regressor")
    if rng.random() < 0.35:
        model = pipeline.make_pipeline(_transformers(rng, columns), model)
    return model


def _wanted(rng: random.Random, model: Any, name: str, x: Any) -> Any:
    """A target that suits the model."""
    if name in ("ClassifierChain", "MultiOutputClassifier"):
        return np.stack([x[:, 0] > np.median(x[:, 0]), x[:, -1] > np.median(x[:, -1])], axis=1) + 0
    several = name in SEVERAL or name.startswith("MultiTask")
    if base.is_regressor(model) or several:
        y = rows.target(rng, x)
        return np.stack([y, -y * y + 1], axis=1) if several or _takes_several(rng, model) else y
    two = name in ("FixedThresholdClassifier", "TunedThresholdClassifierCV")
    return rows.labels(rng, x, 2 if two else rng.choice((2, 3, 4)))


def _takes_several(rng: random.Random, model: Any) -> bool:
    return rng.random() < 0.1 and bool(model.__sklearn_tags__().target_tags.multi_output)
