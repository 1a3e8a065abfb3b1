"""The parts of a CatBoost model's JSON that its meaning needs, checked before they are used.

What `save_model(format="json")` writes (catboost/libs/model/model_export/json_model_helpers.cpp): features,
trees, a scale and a bias, and the parameters of training. Nothing is believed of what is read: lists that
contradict one another are an InvalidModelError.
"""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from irkit.errors import InvalidModelError, UnsupportedError
from irkit.frontends.catboost_features import Features, features_of
from irkit.plain_json import parsed
from irkit.weights import Array

# What a file in CatBoost's binary format begins with.
_BINARY = b"CBM1"
# CatBoost trains no oblivious tree that is deeper: each level doubles the leaves.
DEEPEST = 16
# Every one of them is a column of the sums, also where training saw no row of it.
_MOST_CLASSES = 4096
# One of them stands in every such file; "learner" in every one of XGBoost's.
_OF_TREES = ("oblivious_trees", "trees")
_LABELS = {"Boolean": "bool", "Float": "float64", "Integer": "int64", "String": "object"}


@dataclass
class Nodes:
    """A tree: a node goes right where float32 `border` is exceeded by a column, `feature`, of the wide row; a
    leaf names itself twice. `value` is nodes×columns, used at leaves."""

    feature: Array
    border: Array
    left: Array
    right: Array
    value: Array


@dataclass
class Classes:
    """Labels of a classifier, NumPy's name of their dtype, and the class of each column of the sums."""

    labels: tuple[Any, ...]
    dtype: str
    places: tuple[int, ...]


@dataclass
class JsonModel:
    """A CatBoost model. `loss`: empty where it does not say; `bias`: float64, one for each column;
    `threshold`: the probability above which the second class is said."""

    loss: str
    features: Features
    trees: list[Nodes]
    scale: float
    bias: Array
    classes: Classes | None
    threshold: float

    @property
    def columns(self) -> int:
        """Columns of the sums."""
        return len(self.bias)


def is_catboost(data: bytes) -> bool:
    """Whether the bytes of a `.json` file are CatBoost's and not XGBoost's."""
    if data.startswith(_BINARY):
        return True
    # Most files need not be parsed twice; those that begin so are UBJSON under another name.
    if b'"features_info"' not in data or data[:2] == b"{L":
        return False
    try:
        document = parsed(data)
    except ValueError:
        return b'"learner"' not in data
    return isinstance(document, dict) and "features_info" in document and "learner" not in document


def read(model: Any) -> JsonModel:
    """A fitted object's model, which CatBoost itself writes as JSON.

    Raises InvalidModelError if it is not fitted, and UnsupportedError for what CatBoost has no JSON of (text
    and embedding features).
    """
    if not model.is_fitted():
        raise InvalidModelError(f"{type(model).__name__} is not fitted: call fit first")
    catboost: Any = importlib.import_module("catboost")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.json")
        try:
            model.save_model(path, format="json")
        except catboost.CatBoostError as error:
            reason = str(error).rpartition(": ")[2]
            raise UnsupportedError(f"CatBoost writes no JSON of the model: {reason}") from None
        return read_file(path)


def read_file(path: str | Path) -> JsonModel:
    """The model of a `.json` file. Raises InvalidModelError, and UnsupportedError for CatBoost's binary
    format, and naming features that are texts or vectors."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InvalidModelError(f"cannot read '{path}': {error.strerror}") from None
    if data.startswith(_BINARY):
        how = 'save it as JSON, model.save_model("model.json", format="json")'
        raise UnsupportedError(f"'{path}' is in CatBoost's binary format (.cbm): {how}")
    with _readable():
        return model_of(parsed(data))


@contextmanager
def _readable() -> Generator[None]:
    """What Python raises of JSON that is no model's is an InvalidModelError."""
    try:
        yield
    except KeyError as error:
        raise _unreadable(f"no {error}") from None
    except (AttributeError, IndexError, TypeError):
        # Python's own words would be of Python's types.
        raise _unreadable("an entry is of another kind than CatBoost writes it") from None
    except (OverflowError, ValueError) as error:
        raise _unreadable(str(error)) from None


def _unreadable(reason: str) -> InvalidModelError:
    return InvalidModelError(f"the CatBoost model's JSON is not readable: {reason}")


def model_of(document: Any) -> JsonModel:
    """What a document says of a model. Raises InvalidModelError, UnsupportedError, or what Python raises of
    other JSON."""
    kinds = [kind for kind in _OF_TREES if kind in document]
    if len(kinds) != 1:
        raise InvalidModelError(f"the CatBoost model has {len(kinds)} lists of trees, expected one")
    info, features = document.get("model_info", {}), features_of(document)
    scale, bias = _scale_and_bias(document["scale_and_bias"])
    nodes = _oblivious if kinds[0] == "oblivious_trees" else _nested
    trees = [nodes(n, tree, features, len(bias)) for n, tree in enumerate(document[kinds[0]])]
    return JsonModel(
        str(_object(_object(info.get("params", {})).get("loss_function", {})).get("type", "")),
        features,
        trees,
        scale,
        bias,
        _classes(_object(info["class_params"]), len(bias)) if "class_params" in info else None,
        _threshold(info.get("binclass_probability_threshold", 0.5)),
    )


def _object(value: Any) -> Any:
    """An object of the JSON, which some releases write as a string."""
    return parsed(value) if isinstance(value, str) else value


def _floats(values: Any, what: str) -> Array:
    """A list of finite numbers as float64. Raises InvalidModelError."""
    # Of strings NumPy would make numbers, where it is told which.
    found = np.array(values)
    if found.ndim != 1 or found.dtype.kind not in "if" or not np.isfinite(found).all():
        raise InvalidModelError(f"{what} of the CatBoost model is no list of finite numbers")
    return found.astype(np.float64)


def _scale_and_bias(pair: Any) -> tuple[float, Array]:
    scale, bias = pair
    return float(_floats([scale], "the scale")[0]), _floats(
        bias if isinstance(bias, list) else [bias], "the bias"
    )


def _threshold(written: Any) -> float:
    found = float(written)
    if not 0 <= found <= 1:
        raise InvalidModelError(f"the CatBoost model has binclass_probability_threshold={found}")
    return found


def _classes(parameters: Any, columns: int) -> Classes:
    """Labels, or the numbers from 0 on where none are named."""
    kind = parameters["class_label_type"]
    if kind not in _LABELS:
        raise UnsupportedError(f"class labels of CatBoost's type '{kind}'")
    places = tuple(int(place) for place in parameters["class_to_label"])
    names = parameters["class_names"] or range(max(int(parameters["classes_count"]), len(places)))
    if len(names) > _MOST_CLASSES:
        raise UnsupportedError(
            f"a CatBoost model of {len(names)} classes, of at most {_MOST_CLASSES}"
        )
    cast = {"bool": bool, "float64": float, "int64": int, "object": str}[_LABELS[kind]]
    labels = tuple(cast(name) for name in names)
    if len({*places}) != len(places) or not all(0 <= place < len(labels) for place in places):
        raise InvalidModelError(
            f"the CatBoost model has {len(labels)} classes, and columns of others"
        )
    if columns > 1 and columns != len(places):
        raise InvalidModelError(
            f"the CatBoost model has {columns} columns, and classes of {len(places)}"
        )
    return Classes(labels, _LABELS[kind], places)


def _borders(number: int, splits: Sequence[tuple[int, float]]) -> tuple[Array, Array]:
    """Columns and float32 borders of splits."""
    borders = _floats([0.0, *(b for _, b in splits)], f"the list of borders of tree {number}")[1:]
    # A border beyond float32's range is above, or below, all of its numbers.
    with np.errstate(over="ignore", under="ignore"):
        return np.array([f for f, _ in splits], np.int64), borders.astype(np.float32)


def _oblivious(number: int, tree: Any, features: Features, columns: int) -> Nodes:
    """A tree that asks the same on all of a level: bit k of a leaf's number is what split k says."""
    splits: list[Any] = tree["splits"] or []
    depth = len(splits)
    if depth > DEEPEST:
        raise InvalidModelError(
            f"tree {number} of the CatBoost model is {depth} deep, of at most {DEEPEST}"
        )
    leaves, inner = 1 << depth, (1 << depth) - 1
    values = _floats(tree["leaf_values"], f"leaf_values of tree {number}")
    if len(values) != leaves * columns:
        raise InvalidModelError(
            f"tree {number} of the CatBoost model has {len(values)} leaf_values, expected {leaves * columns}"
        )
    feature, border = _borders(number, [features.split(f"tree {number}", s) for s in splits])
    level = np.repeat(np.arange(depth), 1 << np.arange(depth))
    nodes = np.arange(inner + leaves)
    left, right = nodes.copy(), nodes.copy()
    # Node p of level k is what is seen where the k bits so far are p; its children are p, and p with bit k.
    first = (1 << level) - 1
    left[:inner] = 2 * first + 1 + (nodes[:inner] - first)
    right[:inner] = left[:inner] + (1 << level)
    value = np.zeros((inner + leaves, columns))
    value[inner:] = values.reshape(leaves, columns)
    padding = np.zeros(leaves, np.int64)
    return Nodes(
        np.concatenate([feature[level], padding]),
        np.concatenate([border[level], padding.astype(np.float32)]),
        left,
        right,
        value,
    )


def _nested(number: int, tree: Any, features: Features, columns: int) -> Nodes:
    """A tree whose nodes hold their children."""
    # Nodes are numbered as they are met, so that a child comes after its parent.
    met, splits, values = [tree], [(0, 0.0)], [[0.0] * columns]
    left, right = [0], [0]
    for place, node in enumerate(met):
        if "split" not in node:
            value = node["value"]
            values[place] = value if isinstance(value, list) else [value]
            continue
        splits[place] = features.split(f"tree {number}", node["split"])
        left[place], right[place] = len(met), len(met) + 1
        met += [node["left"], node["right"]]
        splits += [(0, 0.0)] * 2
        values += [[0.0] * columns] * 2
        left += [len(met) - 2, len(met) - 1]
        right += [len(met) - 2, len(met) - 1]
    if any(len(value) != columns for value in values):
        raise InvalidModelError(
            f"tree {number} of the CatBoost model has leaves of other than {columns} columns"
        )
    flat_values = _floats([v for value in values for v in value], f"the values of tree {number}")
    feature, border = _borders(number, splits)
    return Nodes(feature, border, np.array(left), np.array(right), flat_values.reshape(-1, columns))
