"""Categories as numbers: OneHotEncoder, OrdinalEncoder, TargetEncoder.

Strings have numbers already (`strings.py`). All columns are compared with all categories at once; products
with matrices of 0 and 1 then say which output each one becomes. A row has at most one category per column, so
these sums are exact.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects.graph import AddOp, AndOp, CastOp, IsNanOp, OrOp, SubOp
from irkit.frontends.sklearn.importer import Importer, Transformer, element, kind_of
from irkit.frontends.sklearn.strings import fills_words, why_not_words
from irkit.weights import Array

# Integers beyond this have no float64 of their own.
_EXACT = 2**53
INTEGERS = ("int32", "int64")
_OWN_DTYPE = ("OneHotEncoder", "OrdinalEncoder")


def encodable(step: Any) -> list[str]:
    """Reasons why an encoder's categories cannot be compared in a program."""
    reasons = _comparable(step)
    dtype = np.dtype(step.dtype)
    if dtype.name not in ("float32", "float64", *INTEGERS):
        known = ", ".join(("float32", "float64", *INTEGERS))
        reasons.append(f"parameter dtype={dtype} (supported: {known})")
    return reasons


def gives_integers(step: Any) -> bool:
    """Whether a step is an encoder whose numbers are integers; a program has them as float64."""
    return kind_of(step) in _OWN_DTYPE and np.dtype(step.dtype).name in INTEGERS


def _dtype(step: Any) -> np.dtype[Any]:
    return np.dtype(np.float64) if gives_integers(step) else np.dtype(step.dtype)


def takes_words(step: Any) -> bool:
    """Whether a step may be given columns of strings: it says itself which of them are, or hands them on."""
    if kind_of(step) == "FunctionTransformer":
        return step.func is None
    return kind_of(step) in TRANSFORMERS or (kind_of(step) == "SimpleImputer" and fills_words(step))


def _comparable(step: Any) -> list[str]:
    reasons: list[str] = []
    for number, categories in enumerate(step.categories_):
        odd = why_not_words(categories)
        if odd is not None:
            reasons.append(f"{odd} in column {number}")
        elif categories.dtype.kind in "iu" and np.abs(categories).max(initial=0) > _EXACT:
            reasons.append(f"categories beyond 2^53 in column {number}")
    return reasons


def _members(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """rows×(categories of all columns): whether each cell is the category, as float64."""
    counts = [len(c) for c in step.categories_]
    codes = [importer.words.codes(x, j, c, kind_of(step)) for j, c in enumerate(step.categories_)]
    flat = np.concatenate(codes)
    cells = importer.columns(x, np.repeat(np.arange(len(counts)), counts))
    # Categories keep the dtype of the training data: float32 input is compared in float64.
    wide = importer.cast(cells, np.float64)
    equal = importer.compare(wide, "eq", flat, "categories")
    if np.isnan(flat).any():
        is_nan = importer.builder.constant(np.isnan(flat), "is_nan")
        both = importer.builder(AndOp, importer.builder(IsNanOp, cells), is_nan)
        equal = importer.builder(OrOp, equal, both)
    return importer.builder(CastOp, equal, to=element(np.float64))


def _groups(step: Any) -> Array:
    """(categories of all columns)×columns: which column a category belongs to."""
    counts = [len(c) for c in step.categories_]
    owner = np.repeat(np.arange(len(counts)), counts)
    return (owner[:, None] == np.arange(len(counts))).astype(np.float64)


def _require_known(importer: Importer, step: Any, known: SSAValue) -> None:
    message = f"{type(step).__name__} found an unknown category, and has handle_unknown='error'"
    importer.require(importer.compare(known, "gt", [0.5], "half"), message)


def _mapping(step: Any, column: int) -> Array:
    """Number of each category after infrequent ones are taken together."""
    count = len(step.categories_[column])
    mapping = getattr(step, "_default_to_infrequent_mappings", None)
    if not getattr(step, "_infrequent_enabled", False) or mapping is None:
        return np.arange(count)
    return np.arange(count) if mapping[column] is None else np.asarray(mapping[column])


def _infrequent(step: Any, column: int) -> int | None:
    """The number of a column's infrequent category, if it has one."""
    if not getattr(step, "_infrequent_enabled", False):
        return None
    indices = step._infrequent_indices[column]
    return None if indices is None else int(_mapping(step, column)[indices[0]])


# OneHotEncoder


def _one_hot(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    members = _members(importer, step, x)
    known_to, unknown_to = _one_hot_targets(step)
    if step.handle_unknown == "error":
        _require_known(importer, step, importer.matmul(members, _groups(step), "groups"))
    y = _picked(importer, members, known_to)
    if unknown_to.any():
        known = importer.matmul(members, _groups(step), "groups")
        one = importer.constant(members, [1.0], "one")
        unknown = importer.builder(SubOp, one, known)
        y = importer.builder(AddOp, y, importer.matmul(unknown, unknown_to, "unknown"))
    return importer.cast(y, _dtype(step))


def _picked(importer: Importer, members: SSAValue, targets: Array) -> SSAValue:
    """`members @ targets`; where each target is one category, those columns."""
    if (targets.sum(axis=0) == 1).all():
        return importer.columns(members, targets.argmax(axis=0))
    return importer.matmul(members, targets, "targets")


def _one_hot_targets(step: Any) -> tuple[Array, Array]:
    """Matrices of 0 and 1: output columns of each category, and of an unknown one of each column."""
    width = int(sum(step._n_features_outs))
    known: list[Array] = []
    unknown = np.zeros((len(step.categories_), width))
    start = 0
    for column, size in enumerate(step._n_features_outs):
        dropped = None
        if step._drop_idx_after_grouping is not None:
            dropped = step._drop_idx_after_grouping[column]
        rows = np.zeros((len(step.categories_[column]), width))
        for category, number in enumerate(_mapping(step, column).tolist()):
            _mark(rows[category], start, number, dropped)
        known.append(rows)
        infrequent = _infrequent(step, column)
        if infrequent is not None and step.handle_unknown in ("infrequent_if_exist", "warn"):
            _mark(unknown[column], start, infrequent, dropped)
        start += int(size)
    return np.concatenate(known), unknown


def _mark(row: Array, start: int, number: int, dropped: int | None) -> None:
    if number != dropped:
        row[start + number - (dropped is not None and number > dropped)] = 1.0


def _why_no_one_hot(step: Any) -> list[str]:
    return [*encodable(step), *([] if sum(step._n_features_outs) else ["no output columns"])]


# OrdinalEncoder


def ordinal_codes(importer: Importer, step: Any, x: SSAValue, dtype: Any) -> SSAValue:
    """Codes of a fitted OrdinalEncoder, in `dtype`."""
    members = _members(importer, step, x)
    sizes = [len(c) for c in step.categories_]
    codes, owner = np.zeros((sum(sizes), len(sizes))), np.repeat(np.arange(len(sizes)), sizes)
    for column in range(len(sizes)):
        mapping = _mapping(step, column)
        # The mapping of infrequent ones leaves out NaN, which has a code of its own.
        codes[np.flatnonzero(owner == column)[: len(mapping)], column] = mapping
    known = importer.matmul(members, _groups(step), "groups")
    y = importer.cast(importer.matmul(members, codes, "codes"), dtype)
    if step.handle_unknown == "error":
        _require_known(importer, step, known)
    else:
        unknown = importer.compare(known, "lt", [0.5], "half")
        y = importer.where(unknown, y, [step.unknown_value], "unknown")
    missing = step._missing_indices
    if missing:
        here = np.isin(np.arange(len(sizes)), list(missing))
        has_missing = importer.builder.constant(here, "has_missing")
        is_nan = importer.builder(AndOp, importer.builder(IsNanOp, x), has_missing)
        y = importer.where(is_nan, y, [step.encoded_missing_value], "missing")
    return y


def _ordinal(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    return ordinal_codes(importer, step, x, _dtype(step))


# TargetEncoder


def _target(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """The mean target of each cell's category; of an unknown one, that of all rows."""
    members, groups = _members(importer, step, x), _groups(step)
    outputs = len(step.encodings_) // int(groups.shape[1])
    owner = np.array([k // outputs for k in range(len(step.encodings_))])
    codes = np.zeros((len(groups), len(owner)))
    for number, encoding in enumerate(step.encodings_):
        codes[groups[:, owner[number]] > 0, number] = encoding
    y = importer.matmul(members, codes, "encodings")
    known = importer.columns(importer.matmul(members, groups, "groups"), owner)
    means = np.tile(np.atleast_1d(step.target_mean_), groups.shape[1])
    return importer.where(importer.compare(known, "lt", [0.5], "half"), y, means, "target_mean")


TRANSFORMERS: dict[str, Transformer] = {
    "OneHotEncoder": Transformer(
        _one_hot, why_not_fitted=_why_no_one_hot, nan="clears", bounded=True
    ),
    # An unknown category may become NaN.
    "OrdinalEncoder": Transformer(_ordinal, why_not_fitted=encodable, nan="makes", bounded=True),
    "TargetEncoder": Transformer(_target, why_not_fitted=_comparable, nan="clears", bounded=True),
}
