"""The parts of an XGBoost model's JSON that its meaning needs, and what XGBoost says of its base score."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from irkit.errors import InvalidModelError


@dataclass
class JsonModel:
    """A gradient booster in XGBoost's JSON. `output`: the column that each tree adds to; `weights`: of dart;
    `recoded`: categories of a data frame."""

    objective: str
    booster: str
    features: int
    columns: int
    trees: list[dict[str, Any]]
    output: list[int]
    weights: list[float] | None
    recoded: bool


def read(booster: Any, iterations: int | None) -> JsonModel:
    """A Booster's model, of its first `iterations` if given. Raises InvalidModelError."""
    try:
        learner = json.loads(bytes(booster.save_raw("json")))["learner"]
        parameters, gradient = learner["learner_model_param"], learner["gradient_booster"]
        gradient_model = gradient.get("gbtree", gradient).get("model", {})
    except (KeyError, ValueError) as error:
        raise InvalidModelError(f"the XGBoost model's JSON is not readable: {error}") from None
    columns = max(int(parameters.get("num_class", "0")), int(parameters.get("num_target", "1")), 1)
    trees, output = gradient_model.get("trees", []), gradient_model.get("tree_info", [])
    weights = gradient.get("weight_drop")
    if iterations is not None and "iteration_indptr" in gradient_model:
        starts = gradient_model["iteration_indptr"]
        if iterations >= len(starts):
            raise InvalidModelError(
                f"best_iteration is {iterations - 1}; the model has {len(starts) - 1} iterations"
            )
        end = starts[iterations]
        trees, output = trees[:end], output[:end]
        weights = weights[:end] if weights is not None else None
    return JsonModel(
        learner["objective"]["name"],
        gradient["name"],
        int(parameters["num_feature"]),
        columns,
        trees,
        output,
        weights,
        bool(gradient_model.get("cats", {}).get("enc")),
    )


def base_margin(booster: Any, found: JsonModel) -> Any:
    """Where the sums start, one float32 a column: XGBoost's own answer for no iterations.

    The file has base_score from before the objective's link, whose bounds and last bit differ by objective
    and release.
    """
    from scipy.sparse import csr_matrix
    from xgboost import DMatrix

    row = DMatrix(csr_matrix((1, found.features), dtype=np.float32))
    # (0, 0) would mean all iterations.
    none = (1, 1) if found.trees else (0, 0)
    margin = booster.predict(row, output_margin=True, iteration_range=none, validate_features=False)
    return np.ascontiguousarray(np.broadcast_to(margin.ravel(), (found.columns,)), np.float32)


def with_empty_tree(found: JsonModel) -> JsonModel:
    """A forest has at least one tree: one that adds -0.0, which leaves every margin as it is."""
    leaf: dict[str, Any] = {
        "left_children": [-1],
        "right_children": [-1],
        "split_conditions": [-0.0],
        "split_indices": [0],
        "default_left": [0],
        "tree_param": {},
    }
    return replace(found, trees=[leaf], output=[0], weights=None)
