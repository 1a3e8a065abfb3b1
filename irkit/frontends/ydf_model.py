"""What a YDF (Yggdrasil Decision Forests) model says of itself, through its public Python interface.

Nothing of ydf is imported: objects are told by the names of their classes. What is not known is refused by
name, before anything is built.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from irkit.errors import InvalidModelError, UnsupportedError
from irkit.weights import Array

GRADIENT_BOOSTED, RANDOM, ISOLATION = (
    "GradientBoostedTreesModel",
    "RandomForestModel",
    "IsolationForestModel",
)
# Class of a model → the tasks that are read of it.
MODELS: Mapping[str, tuple[str, ...]] = {
    GRADIENT_BOOSTED: ("CLASSIFICATION", "RANKING", "REGRESSION"),
    RANDOM: ("CLASSIFICATION", "REGRESSION"),
    ISOLATION: ("ANOMALY_DETECTION",),
}
SEMANTICS = {
    "BOOLEAN": "truth",
    "CATEGORICAL": "category",
    "DISCRETIZED_NUMERICAL": "number",
    "NUMERICAL": "number",
}
CONDITIONS = (
    "CategoricalIsInCondition",
    "DiscretizedNumericalHigherThanCondition",
    "IsMissingInCondition",
    "IsTrueCondition",
    "NumericalHigherThanCondition",
    "NumericalSparseObliqueCondition",
)
# Engine of YDF's → whether it is a QuickScorer (Lucchese et al. 2015).
_ENGINES = {
    "GradientBoostedTreesGeneric": False,
    "GradientBoostedTreesOptPred": False,
    "GradientBoostedTreesQuickScorerExtended": True,
    "GradientBoostedTreesQuickScorerExtendedHighway": True,
    "IsolationForestGeneric": False,
    "IsolationForestOptPred": False,
    "RandomForestGeneric": False,
    "RandomForestOptPred": False,
}


@dataclass(frozen=True)
class Feature:
    """A column that the model reads. `semantic`: YDF's name; `words`: of a dictionary, by their numbers,
    of which 0 is for what is in none; None where categories are numbers already. `categories`: how many there
    are. `mean`, `most_frequent` and `mostly_true`: what training saw; `boundaries`: of bins, float32."""

    name: str
    semantic: str
    words: tuple[str, ...] | None
    categories: int
    mean: float
    most_frequent: int
    mostly_true: bool
    boundaries: Array

    @property
    def kind(self) -> str:
        """What a cell is: "number", "truth", "category" of a dictionary, or "index" of a category."""
        kind = SEMANTICS[self.semantic]
        return "index" if kind == "category" and self.words is None else kind


@dataclass
class Tree:
    """Nodes, a parent before its children. `left` is where a condition is false; a leaf names itself twice,
    and has no condition. Conditions and values are YDF's objects."""

    conditions: list[Any]
    values: list[Any]
    left: Array
    right: Array
    depth: Array


@dataclass
class YdfModel:
    """A decision forest. `columns`: how many classes it tells apart, 1 where it predicts a number;
    `initial`: float32, one for each column, none of forests; `quick`: whether `predict` runs a QuickScorer.
    `place`: the number of a feature by that of its column; `logits`: no activation is asked for."""

    kind: str
    task: str
    loss: str
    features: tuple[Feature, ...]
    place: Mapping[int, int]
    trees: list[Tree]
    classes: int
    initial: Array
    quick: bool
    logits: bool
    winner_takes_all: bool
    rows_per_tree: int


def read(model: Any) -> YdfModel:
    """All that is needed of a model. Raises UnsupportedError listing what is not known."""
    kind, task = type(model).__name__, _task(model)
    if kind not in MODELS:
        raise UnsupportedError(f"YDF model {kind}; supported: {', '.join(MODELS)}")
    reasons: list[str] = []
    if task not in MODELS[kind]:
        reasons.append(f"task {task} (supported: {', '.join(MODELS[kind])})")
    reasons += _why_not_features(model)
    engines = list(model.list_compatible_engines())
    if not engines:
        reasons.append(
            "no engine of YDF takes the model, so that its predict has no answer: conditions say of missing "
            "values other than what global imputation makes of them"
        )
    elif engines[0] not in _ENGINES:
        reasons.append(f"engine '{engines[0]}' (supported: {', '.join(_ENGINES)})")
    trees = [_tree(model, number) for number in range(model.num_trees())]
    reasons += _why_not_nodes(kind, task, trees)
    if reasons:
        raise UnsupportedError(f"cannot import {kind} exactly:", reasons)
    boosted = kind == GRADIENT_BOOSTED
    of_classes = task == "CLASSIFICATION"
    features = tuple(_feature(model, f) for f in model.input_features())
    return YdfModel(
        kind,
        task,
        _loss(model) if boosted else "",
        features,
        {int(f.column_idx): number for number, f in enumerate(model.input_features())},
        trees,
        len(model.label_classes()) if of_classes else 1,
        np.asarray(model.initial_predictions(), np.float32) if boosted else np.zeros(0, np.float32),
        _ENGINES[engines[0]],
        bool(model.output_logits()) if boosted and of_classes else False,
        bool(model.winner_takes_all()) if kind == RANDOM else False,
        int(model.num_examples_per_tree()) if kind == ISOLATION else 0,
    )


def _task(model: Any) -> str:
    task = getattr(model, "task", None)
    return str(task().name) if task is not None else ""


def _loss(model: Any) -> str:
    """The name of the loss, which the interface has in the model's description alone."""
    found = set(re.findall(r"^Loss: (\S+)$", str(model.describe("text")), re.MULTILINE))
    if len(found) != 1:
        raise UnsupportedError("a YDF model whose description does not say its loss, or several")
    # Ranking losses say after how many documents they are cut off.
    return found.pop().partition("@")[0]


def _why_not_features(model: Any) -> list[str]:
    found = [(str(f.name), str(f.semantic.name)) for f in model.input_features()]
    if not found:
        return ["a model without features"]
    return [
        f"feature '{name}': semantic {semantic} (supported: {', '.join(SEMANTICS)})"
        for name, semantic in found
        if semantic not in SEMANTICS
    ]


def _feature(model: Any, found: Any) -> Feature:
    column = model.data_spec().columns[found.column_idx]
    semantic = str(found.semantic.name)
    categorical = column.categorical if semantic == "CATEGORICAL" else None
    words = None
    if categorical is not None and not categorical.is_already_integerized:
        words = _words(found.name, categorical)
    bounds = column.discretized_numerical.boundaries if semantic.startswith("DISCRET") else ()
    return Feature(
        str(found.name),
        semantic,
        words,
        int(categorical.number_of_unique_values) if categorical is not None else 0,
        float(column.numerical.mean) if SEMANTICS[semantic] == "number" else 0.0,
        int(categorical.most_frequent_value) if categorical is not None else 0,
        semantic == "BOOLEAN" and column.boolean.count_true >= column.boolean.count_false,
        np.asarray(list(bounds), np.float32),
    )


def _words(name: str, categorical: Any) -> tuple[str, ...]:
    """The dictionary of a feature. Raises InvalidModelError if it does not number its words from 0 on."""
    numbered = {int(item.index): str(word) for word, item in categorical.items.items()}
    size = int(categorical.number_of_unique_values)
    if sorted(numbered) != [*range(size)]:
        raise InvalidModelError(
            f"feature '{name}' of the YDF model has a dictionary of {len(numbered)} words, and "
            f"{size} categories"
        )
    return tuple(numbered[number] for number in range(size))


def _tree(model: Any, number: int) -> Tree:
    """Raises UnsupportedError for a tree that is too deep for YDF's own reader, InvalidModelError."""
    try:
        root = model.get_tree(number).root
    except RecursionError:
        raise UnsupportedError(
            f"tree {number} of the YDF model is too deep for ydf's get_tree (sys.setrecursionlimit)"
        ) from None
    met: list[Any] = [root]
    depth, left, right = [0], [0], [0]
    for place, node in enumerate(met):
        if node.is_leaf:
            continue
        if node.condition is None:
            raise InvalidModelError(
                f"tree {number} of the YDF model has a node without a condition"
            )
        left[place], right[place] = len(met), len(met) + 1
        left += [len(met), len(met) + 1]
        right += [len(met), len(met) + 1]
        depth += [depth[place] + 1] * 2
        met += [node.neg_child, node.pos_child]
    conditions = [None if node.is_leaf else node.condition for node in met]
    values = [node.value if node.is_leaf else None for node in met]
    return Tree(conditions, values, np.array(left), np.array(right), np.array(depth))


def _why_not_nodes(kind: str, task: str, trees: list[Tree]) -> list[str]:
    """Conditions and values of kinds that are not known."""
    met = Counter(type(c).__name__ for tree in trees for c in tree.conditions if c is not None)
    reasons = [
        f"condition '{name}' of {met[name]} nodes (supported: {', '.join(CONDITIONS)})"
        for name in sorted(met)
        if name not in CONDITIONS
    ]
    wanted = _value(kind, task)
    values = {type(v).__name__ for tree in trees for v in tree.values if v is not None}
    reasons += [
        f"leaf value '{name}' of task {task} (expected '{wanted}')"
        for name in sorted(values)
        if name != wanted
    ]
    return reasons


def _value(kind: str, task: str) -> str:
    """The class of the values of leaves."""
    if kind == ISOLATION:
        return "AnomalyDetectionValue"
    shares = kind == RANDOM and task == "CLASSIFICATION"
    return "ProbabilityValue" if shares else "RegressionValue"
