"""The parts of an XGBoost model's JSON that its meaning needs, and what XGBoost says of its base score.

Nothing is believed of what is read: lists that contradict one another are an InvalidModelError.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from irkit.errors import InvalidModelError, UnsupportedError
from irkit.frontends import ubjson
from irkit.model_info import Categories
from irkit.plain_json import parsed
from irkit.weights import Array

_PER_NODE = {
    "left_children": np.int64,
    "right_children": np.int64,
    "split_conditions": np.float32,
    "split_indices": np.int64,
    "default_left": np.bool_,
}
_OF_SETS = ("categories_nodes", "categories_segments", "categories_sizes")
# How XGBoost names the type of categories that are int64.
_INT64 = 15
_ASCII = 127
# XGBoost's numbers of features are 32-bit.
_MOST = 1 << 31
_LEAF: dict[str, Any] = {
    "base_weights": [0.0],
    "categories": [],
    "categories_nodes": [],
    "categories_segments": [],
    "categories_sizes": [],
    "default_left": [0],
    "left_children": [-1],
    "loss_changes": [0.0],
    "parents": [2147483647],
    "right_children": [-1],
    "split_conditions": [-0.0],
    "split_indices": [0],
    "split_type": [0],
    "sum_hessian": [1.0],
    "tree_param": {
        "num_deleted": "0",
        "num_feature": "0",
        "num_nodes": "1",
        "size_leaf_vector": "1",
    },
}
"""A tree that is one leaf."""


@dataclass
class JsonModel:
    """A gradient booster in XGBoost's JSON. `output`: the column that each tree adds to; `weights`: of dart;
    `categories`: of a data frame's columns, by their numbers; `linear`: of gblinear, features and then the
    bias×columns."""

    objective: str
    booster: str
    features: int
    columns: int
    trees: list[dict[str, Any]]
    output: list[int]
    weights: list[float] | None
    categories: tuple[Categories, ...]
    linear: Array | None = None


def read(booster: Any, iterations: int | None) -> JsonModel:
    """A Booster's model, of its first `iterations` if given. Raises InvalidModelError."""
    with _readable():
        return model_of(parsed(bytes(booster.save_raw("json"))), iterations)


def read_file(path: str | Path) -> tuple[JsonModel, Any]:
    """The model of a `.json` or `.ubj` file, and a Booster of it without trees.

    XGBoost reads no tree of the file. Raises InvalidModelError, and UnsupportedError without XGBoost.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InvalidModelError(f"cannot read '{path}': {error.strerror}") from None
    with _readable():
        document = ubjson.parsed(data) if data[:2] == b"{L" else parsed(data)
        found = model_of(document, None)
        return found, _without_trees(document, found)


@contextmanager
def _readable() -> Generator[None]:
    """What Python raises of JSON that is no model's is an InvalidModelError."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise InvalidModelError(
            f"the XGBoost model's JSON is not readable: {_reason(error)}"
        ) from None


def _reason(error: Exception) -> str:
    """What is wrong with a document, where Python's own words are of Python's types."""
    if isinstance(error, KeyError):
        return f"no {error}"
    if isinstance(error, AttributeError | IndexError | TypeError):
        return "an entry is of another kind, or shorter, than XGBoost writes it"
    return str(error)


def model_of(document: Any, iterations: int | None) -> JsonModel:
    """What a document says of a model. Raises InvalidModelError, or what Python raises of other JSON."""
    learner = document["learner"]
    parameters, gradient = learner["learner_model_param"], learner["gradient_booster"]
    gradient_model = gradient.get("gbtree", gradient).get("model", {})
    columns = max(int(parameters.get("num_class", "0")), int(parameters.get("num_target", "1")), 1)
    features = int(parameters["num_feature"])
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
    checked = [_tree(number, tree, columns) for number, tree in enumerate(trees)]
    _check_columns(checked, [int(c) for c in output], columns, features)
    return JsonModel(
        str(learner["objective"]["name"]),
        str(gradient["name"]),
        features,
        columns,
        checked,
        [int(c) for c in output],
        None if weights is None else [float(w) for w in weights],
        _categories(gradient_model.get("cats", {}).get("enc", ()), features),
        _linear(gradient, features, columns),
    )


def _categories(encoders: Any, features: int) -> tuple[Categories, ...]:
    """The categories of a data frame's columns, by column. Raises InvalidModelError, UnsupportedError."""
    if len(encoders) not in (0, features):
        raise InvalidModelError(
            f"the XGBoost model has categories of {len(encoders)} columns, and {features} features"
        )
    found: list[Categories] = []
    for place, each in enumerate(encoders):
        values = np.asarray(each["values"], np.int64)
        if "offsets" not in each:
            if int(each["type"]) != _INT64:
                raise UnsupportedError(f"categories of column {place}, neither strings nor int64")
            found.append((place, tuple(values.tolist())))
        elif len(each["offsets"]):
            if (values < 0).any() or (values > _ASCII).any():
                reason = "which XGBoost cuts off"
                raise UnsupportedError(f"categories of column {place} that are no ASCII, {reason}")
            found.append((place, _strings(values, np.asarray(each["offsets"], np.int64))))
    return tuple(found)


def _strings(values: Array, offsets: Array) -> tuple[str, ...]:
    """Strings whose bytes stand one after another."""
    sound = offsets[0] == 0 and (np.diff(offsets) >= 0).all() and offsets[-1] <= len(values)
    if not sound:
        raise InvalidModelError("the XGBoost model has categories that are none")
    whole = values.astype(np.uint8).tobytes()
    return tuple(whole[a:b].decode() for a, b in pairwise(offsets.tolist()))


def _linear(gradient: Any, features: int, columns: int) -> Array | None:
    """What gblinear multiplies by, and its bias. Raises InvalidModelError."""
    if gradient["name"] != "gblinear":
        return None
    weights = np.array(gradient["model"]["weights"], np.float32)
    if not weights.size:  # of no round of training: as no trees
        return None
    if weights.shape != ((features + 1) * columns,):
        raise InvalidModelError(
            f"the XGBoost model has {weights.size} weights for {features} features and a bias, "
            f"of {columns} columns"
        )
    return weights.reshape(features + 1, columns)


def _check_columns(
    trees: list[dict[str, Any]], output: list[int], columns: int, features: int
) -> None:
    """Raises InvalidModelError for columns to which no tree adds."""
    if len(output) != len(trees):
        raise InvalidModelError(
            f"the XGBoost model has {len(trees)} trees, and {len(output)} columns of them"
        )
    if not 0 <= features < _MOST:
        raise InvalidModelError(f"the XGBoost model has {features} features")
    vectors = any(tree["vector"] for tree in trees)
    if trees and not vectors and columns > len(trees):
        raise InvalidModelError(f"the XGBoost model has {len(trees)} trees, and {columns} outputs")


def _tree(number: int, tree: dict[str, Any], columns: int) -> dict[str, Any]:
    """A tree's arrays, and its sets of categories as node → members. Raises InvalidModelError."""
    found: dict[str, Any] = {k: np.array(tree[k], dtype) for k, dtype in _PER_NODE.items()}
    shapes = {array.shape for array in found.values()}
    if len(shapes) > 1 or len(shapes.pop()) != 1 or not len(found["left_children"]):
        raise InvalidModelError(f"tree {number} of the XGBoost model has lists of several lengths")
    found["vector"] = int(tree["tree_param"].get("size_leaf_vector", "1")) > 1
    if found["vector"]:
        found["leaf_weights"] = np.array(tree["leaf_weights"], np.float32).reshape(-1, columns)
        leaves = found["right_children"][found["left_children"] < 0]
        if not 0 <= leaves.min() <= leaves.max() < len(found["leaf_weights"]):
            raise InvalidModelError(
                f"tree {number} of the XGBoost model names a leaf that it has not"
            )
    nodes, starts, sizes = (np.array(tree.get(key, ()), np.int64) for key in _OF_SETS)
    members = np.array(tree.get("categories", ()), np.int64)
    ends = starts + sizes
    sound = (nodes >= 0).all() and (nodes < len(found["left_children"])).all()
    if not sound or (starts < 0).any() or (sizes < 0).any() or (ends > len(members)).any():
        raise InvalidModelError(f"tree {number} of the XGBoost model has sets that are not there")
    found["sets"] = [
        (int(node), members[start:end].tolist())
        for node, start, end in zip(nodes, starts, ends, strict=True)
    ]
    return found


def _without_trees(document: Any, found: JsonModel) -> Any:
    """A Booster of what a document says beside its trees, which knows where sums start.

    Where there are trees it has one leaf a column: without any, XGBoost starts elsewhere. Of gblinear it has
    the weights, of which there are as many as there should be.
    """
    try:
        import xgboost
    except ImportError:
        raise UnsupportedError("files of XGBoost without the package xgboost") from None
    columns = found.columns if found.trees else 0
    model: dict[str, Any] = {
        "cats": {"enc": [], "feature_segments": [], "sorted_idx": []},
        "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(columns)},
        "iteration_indptr": [0, columns] if columns else [0],
        "tree_info": list(range(columns)),
        "trees": [{**_LEAF, "id": column} for column in range(columns)],
    }
    gradient: dict[str, Any] = {"model": model, "name": "gbtree"}
    if found.linear is not None:
        kept = {"boosted_rounds": 1, "weights": found.linear.ravel().tolist()}
        gradient = {"model": kept, "name": "gblinear"}
    version = [int(part) for part in document["version"]]
    learner = {**document["learner"], "gradient_booster": gradient}
    whole: dict[str, Any] = {"learner": learner, "version": version}
    booster: Any = xgboost.Booster()
    try:
        booster.load_model(bytearray(json.dumps(whole).encode()))
    except xgboost.core.XGBoostError as error:
        reason = str(error).strip().split("\n", 1)[0]
        raise InvalidModelError(f"XGBoost cannot read the model: {reason}") from None
    return booster


def base_margin(booster: Any, found: JsonModel) -> Any:
    """Where the sums start, one float32 a column: XGBoost's own answer for no iterations; of gblinear, which
    has none, for a row of which nothing is there, with its bias.

    The file has base_score from before the objective's link, whose bounds and last bit differ by objective
    and release.
    """
    from scipy.sparse import csr_matrix
    from xgboost import DMatrix

    row = DMatrix(csr_matrix((1, found.features), dtype=np.float32))
    # (0, 0) would mean all iterations.
    none = (1, 1) if booster.num_boosted_rounds() and found.linear is None else (0, 0)
    margin = booster.predict(row, output_margin=True, iteration_range=none, validate_features=False)
    return np.ascontiguousarray(np.broadcast_to(margin.ravel(), (found.columns,)), np.float32)


def with_empty_tree(found: JsonModel) -> JsonModel:
    """A forest has at least one tree: one that adds -0.0, which leaves every margin as it is."""
    return replace(found, trees=[_tree(0, _LEAF, 1)], output=[0], weights=None)
