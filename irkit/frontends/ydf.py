"""YDF (Yggdrasil Decision Forests) models, with the arithmetic of YDF's own engines.

Input is float32, and sums are float32, in tree order. Where a sum starts hangs on the engine that YDF's
`predict` takes: at the initial prediction, or at 0, and then that comes last
(yggdrasil_decision_forests/serving/decision_forest).
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from irkit.dialects.graph import (
    AddOp,
    ClipOp,
    DivOp,
    ExpOp,
    MulOp,
    NegOp,
    PowOp,
    ReshapeOp,
    SliceOp,
)
from irkit.dialects.types import DYNAMIC, tensor, tensor_type
from irkit.errors import InvalidModelError, UnsupportedError
from irkit.frontends.module import GraphBuilder, ImportedModel, Outputs
from irkit.frontends.trees import Trees, join
from irkit.frontends.ydf_model import (
    GRADIENT_BOOSTED,
    ISOLATION,
    MODELS,
    Tree,
    YdfModel,
    read,
)
from irkit.frontends.ydf_splits import Splits
from irkit.weights import Array

# Loss → what is made of the sums, and the task.
LOSSES = {
    "BINARY_FOCAL_LOSS": ("sigmoid", "CLASSIFICATION"),
    "BINOMIAL_LOG_LIKELIHOOD": ("sigmoid", "CLASSIFICATION"),
    "LAMBDA_MART_NDCG": ("", "RANKING"),
    "MEAN_AVERAGE_ERROR": ("", "REGRESSION"),
    "MULTINOMIAL_LOG_LIKELIHOOD": ("softmax", "CLASSIFICATION"),
    "POISSON": ("exp", "REGRESSION"),
    "SQUARED_ERROR": ("", "REGRESSION"),
    "XE_NDCG_MART": ("", "RANKING"),
}
ESTIMATORS = tuple(MODELS)
_POISSON_BOUND = 19.0
_EULER = np.float32(0.5772156649)
MOST_CLASSES = 256
"""Each is an addition of its own, as YDF sums exponentials in the order of classes."""


def import_ydf(model: Any, dtype: str = "float32") -> ImportedModel:
    """The graph-level module of a trained YDF model.

    `predict` gives what the model's own `predict` gives without other arguments: probabilities (of two
    classes that of the second, else rows×classes), values, relevances or scores, float32. The program takes a
    data frame, or a mapping from names to columns; or rows×features of float32, a category by its number in
    the dataspec's dictionary, NaN for what is missing. Raises UnsupportedError listing all that is missing,
    InvalidModelError for what contradicts itself.
    """
    if dtype not in ("float32", "float64"):
        raise UnsupportedError(f"YDF input of dtype {dtype}; accepted: float32, float64")
    found = read(model)
    if missing := _why_not(found):
        raise UnsupportedError(f"cannot import {found.kind} exactly:", missing)
    builder = GraphBuilder([("x", tensor(f32, (DYNAMIC, len(found.features))))])
    prediction = _prediction(builder, found)
    outputs = Outputs("regressor", [("prediction", prediction)], {"predict": "prediction"})
    info = outputs.info(
        casts=("float64",),
        allow_empty=True,
        source=f"YDF {found.kind}",
        columns=tuple(f.name for f in found.features),
        by_name=True,
        semantics=tuple((f.kind, f.categories, f.words or ()) for f in found.features),
    )
    return builder.finish(outputs.values, info)


def import_ydf_folder(path: str | Path, dtype: str = "float32") -> ImportedModel:
    """The graph-level module of the folder that `model.save` wrote, which ydf reads.

    Raises UnsupportedError, also where ydf is not installed, and InvalidModelError for a damaged folder.
    """
    try:
        ydf: Any = importlib.import_module("ydf")
    except ImportError:
        raise UnsupportedError(
            f"'{path}' is the folder of a YDF model, which ydf reads: pip install ydf"
        ) from None
    try:
        model = ydf.load_model(str(path))
    except (OSError, RuntimeError, ValueError) as error:
        raise InvalidModelError(f"ydf cannot read '{path}': {error}") from None
    return import_ydf(model, dtype)


def is_ydf_folder(path: str | Path) -> bool:
    """Whether a path is a folder with the parts of a YDF model; their names may have a prefix."""
    try:
        names = [p.name for p in Path(path).iterdir()] if Path(path).is_dir() else []
    except OSError:
        return False
    parts = ("header.pb", "data_spec.pb")
    return all(any(name.endswith(part) for name in names) for part in parts)


def _why_not(model: YdfModel) -> list[str]:
    """Reasons why a model that was read cannot be built."""
    if model.kind != GRADIENT_BOOSTED:
        return [] if model.trees else ["a model without trees"]
    if model.loss not in LOSSES:
        return [f"loss '{model.loss}' (supported: {', '.join(LOSSES)})"]
    made, task = LOSSES[model.loss]
    if task != model.task:
        return [f"loss '{model.loss}' of task {model.task}"]
    columns = len(model.initial)
    fits = model.classes == (columns if made == "softmax" else 2 if made == "sigmoid" else 1)
    if not fits or (made != "softmax" and columns != 1) or len(model.trees) % columns:
        return [
            f"loss '{model.loss}' of {model.classes} classes, {columns} initial predictions and "
            f"{len(model.trees)} trees"
        ]
    if columns > MOST_CLASSES:
        return [f"a model of {columns} classes, of at most {MOST_CLASSES}"]
    return []


def _prediction(builder: GraphBuilder, model: YdfModel) -> SSAValue:
    if model.kind == GRADIENT_BOOSTED:
        return _boosted(builder, model)
    if model.kind == ISOLATION:
        return _isolation(builder, model)
    total = _sums(builder, model, [_averaged(model, tree) for tree in model.trees])
    if model.task == "CLASSIFICATION":
        total = builder(ClipOp, total, min=0.0, max=1.0)
    return _flat(builder, total)


def _sums(
    builder: GraphBuilder, model: YdfModel, values: list[Array], base: Array | None = None
) -> SSAValue:
    """rows×columns of float32: `base`, or zeros, and the leaves' values. Of each tree `values` has those of
    its nodes, for all columns, or for one, which trees then have in turn."""
    splits = Splits.of(model)
    columns = len(base) if base is not None else values[0].shape[1]
    base = np.zeros(columns, np.float32) if base is None else base
    found = [
        [splits.split(c) if c is not None else None for c in t.conditions] for t in model.trees
    ]
    wide, stands = splits.extend(builder, builder.inputs[0])
    parts: list[Trees] = []
    for number, (tree, nodes) in enumerate(zip(model.trees, found, strict=True)):
        column = number % columns if values[number].shape[1] == 1 else 0
        parts.append(
            Trees(
                np.array([0 if s is None else stands[s.column] for s in nodes]),
                np.array([0 if s is None else s.threshold for s in nodes], np.float32),
                tree.left,
                tree.right,
                np.array([s is not None and not s.missing for s in nodes]),
                values[number],
                np.zeros(1, np.int64),
                np.array([column]),
                base,
                "lt",
            )
        )
    return join(parts).build(builder, wide)


def _flat(builder: GraphBuilder, y: SSAValue) -> SSAValue:
    """One column as its elements."""
    one = tensor_type(y).get_shape()[1] == 1
    return builder(ReshapeOp, y, shape=[DYNAMIC]) if one else y


# Random forests


def _averaged(model: YdfModel, tree: Tree) -> Array:
    """nodes×columns of float32: what a leaf adds to the mean over trees. Of two classes the second counts."""
    count = np.float32(len(model.trees))
    if model.task == "REGRESSION":
        return _regression(tree) / count
    made = np.zeros((len(tree.values), model.classes), np.float32)
    for node, value in enumerate(tree.values):
        if value is not None:
            made[node] = _votes(model, value)
    return made[:, 1:] if model.classes == 2 else made


def _votes(model: YdfModel, value: Any) -> Array:
    """A leaf's classes, over the number of trees. Raises UnsupportedError for a leaf of another class."""
    shares = np.asarray(value.probability, np.float64)
    if len(shares) != model.classes:
        raise InvalidModelError(
            f"a leaf of the YDF model has {len(shares)} classes, and the model {model.classes}"
        )
    trees = len(model.trees)
    if model.winner_takes_all:
        if 1 - shares.sum() > max(shares.max(), 1e-9):
            raise UnsupportedError("a YDF model with leaves of labels that are in no dictionary")
        return (np.arange(model.classes) == shares.argmax()) * (np.float32(1) / np.float32(trees))
    # YDF divides counts by examples times trees: as float32 that is the same up to 2^27 of them.
    return np.asarray(shares / trees, np.float32)


def _regression(tree: Tree) -> Array:
    """nodes×1 of float32: a leaf's value."""
    values = [0.0 if v is None else v.value for v in tree.values]
    return np.array(values, np.float32)[:, None]


# Boosted trees


def _boosted(builder: GraphBuilder, model: YdfModel) -> SSAValue:
    initial = model.initial
    if not model.trees:
        model = replace(model, trees=[_leaf()] * len(initial))
    values = [_regression(tree) for tree in model.trees]
    # A QuickScorer starts at the initial prediction, where the others add it last.
    if model.quick:
        raw = _sums(builder, model, values, initial)
    else:
        raw = _sums(builder, model, values, np.zeros_like(initial))
        raw = builder(AddOp, raw, builder.constant(initial, "initial"))
    made = "" if model.logits else LOSSES[model.loss][0]
    if made == "softmax":
        return _softmax(builder, raw)
    if made == "sigmoid":
        one = builder.constant(np.ones(1, np.float32), "one")
        total = builder(AddOp, one, builder(ExpOp, builder(NegOp, raw)))
        raw = builder(DivOp, one, total)
    if made == "exp":
        raw = builder(ExpOp, builder(ClipOp, raw, min=-_POISSON_BOUND, max=_POISSON_BOUND))
    return _flat(builder, raw)


def _leaf() -> Tree:
    """A tree of one leaf, which adds nothing."""
    own = np.zeros(1, np.int64)
    return Tree([None], [None], own, own, own)


def _softmax(builder: GraphBuilder, raw: SSAValue) -> SSAValue:
    """YDF's: no largest is subtracted, sums go in the order of classes, and shares are of one quotient."""
    powers = builder(ExpOp, raw)
    first, *others = (
        builder(SliceOp, powers, offsets=[0, number], sizes=[DYNAMIC, 1], strides=[1, 1])
        for number in range(tensor_type(raw).get_shape()[1])
    )
    total = reduce(lambda sum_, column: builder(AddOp, sum_, column), others, first)
    one = builder.constant(np.ones(1, np.float32), "one")
    shares = builder(MulOp, powers, builder(DivOp, one, total))
    return builder(ClipOp, shares, min=0.0, max=1.0)


# Isolation forests


def _path(examples: int) -> np.float32:
    """Expected depth of `examples` rows in a tree (Liu, Ting and Zhou 2008), as YDF rounds it."""
    if examples <= 2:
        return np.float32(examples == 2)
    count, one, two = np.float32(examples), np.float32(1), np.float32(2)
    harmonic = np.float32(np.log(np.float64(count - one))) + _EULER
    return two * harmonic - two * (count - one) / count


def _isolation(builder: GraphBuilder, model: YdfModel) -> SSAValue:
    """2 to the power of minus the mean depth, over the depth that is expected."""
    count = np.float32(len(model.trees))
    values = [
        np.array(
            [
                0
                if v is None
                else (np.float32(d) + _path(int(v.num_examples_without_weight))) / count
                for v, d in zip(tree.values, tree.depth, strict=True)
            ],
            np.float32,
        )[:, None]
        for tree in model.trees
    ]
    depth = _sums(builder, model, values)
    expected = _path(model.rows_per_tree)
    if expected == 0:
        zero = builder.constant(np.zeros(1, np.float32), "zero")
        return _flat(builder, builder(MulOp, depth, zero))
    power = builder(
        DivOp, builder(NegOp, depth), builder.constant(np.array([expected]), "expected")
    )
    two = builder.constant(np.full(1, 2, np.float32), "two")
    return _flat(builder, builder(PowOp, two, power))
