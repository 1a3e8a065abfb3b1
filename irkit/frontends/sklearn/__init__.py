"""scikit-learn estimators and pipelines, with scikit-learn's own arithmetic.

Each step computes in the dtype that scikit-learn computes in: scalers in the input's, trees on
float32 copies with float64 sums in tree order, linear models in the wider of input and coefficients.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import f32, f64
from xdsl.dialects.utils import FastMathFlag

from irkit.dialects.types import DYNAMIC, element_type, tensor
from irkit.errors import InvalidModelError, UnsupportedError
from irkit.frontends.module import GraphBuilder, ImportedModel
from irkit.frontends.sklearn import documents, labels
from irkit.frontends.sklearn.columns import SELECTORS
from irkit.frontends.sklearn.composition import (
    COMPOSITIONS,
    HANDED_ON,
    PREDICTORS,
    TRANSFORMERS,
    accepted,
    accepts,
    does_nothing,
    estimators_within,
    last,
    members,
    pipeline_steps,
    predict,
    transform,
    why_not,
    why_not_fitted,
)
from irkit.frontends.sklearn.consistency import check_lengths, check_trees
from irkit.frontends.sklearn.forms import Form
from irkit.frontends.sklearn.frames import categories_of, names_of, reads_apart, why_no_categories
from irkit.frontends.sklearn.importer import Importer, Values, kind_of
from irkit.frontends.sklearn.labels import LABEL_ENCODERS
from irkit.frontends.sklearn.own_types import counted_type, own_types, why_no_codes
from irkit.frontends.sklearn.reading import reading
from irkit.frontends.sklearn.sparse_rows import integers, sparse_facts
from irkit.frontends.sklearn.sparsity import form_after
from irkit.frontends.sklearn.texts import Texts, texts_of
from irkit.model_info import ModelInfo
from irkit.row_forms import PLAIN, RowForm

DTYPES = ("float32", "float64")
__all__ = ["COMPOSITIONS", "PREDICTORS", "TRANSFORMERS", "import_sklearn"]


def import_sklearn(model: Any, dtype: str = "float64", rows: RowForm = PLAIN) -> ImportedModel:
    """The graph-level module of a fitted estimator or Pipeline, for rows×features of `dtype`, in the
    arithmetic that scikit-learn has for `rows`: absent elements of sparse ones are 0 here too.

    Raises UnsupportedError listing every unsupported step and parameter, InvalidModelError if a step
    is not fitted, or what was fitted cannot be read.
    """
    if dtype not in DTYPES:
        raise UnsupportedError(
            f"scikit-learn input of dtype {dtype}; accepted: {', '.join(DTYPES)}"
        )
    with reading(model):
        if kind_of(model) in LABEL_ENCODERS:
            return _import_labels(model, dtype)
        return _import_rows(model, dtype, rows)


def _import_rows(model: Any, dtype: str, rows: RowForm) -> ImportedModel:
    head, steps = documents.split(pipeline_steps(model))
    _check(model, head, steps)
    narrow = head is not None and np.dtype(head.dtype) == np.float32
    # Counts have one type, whatever else rows may have.
    dtype = "float32" if narrow else dtype
    texts = None if head is not None else texts_of(model, steps)
    sparse = _COUNTED if texts else sparse_facts(steps, counted=head is not None)
    if head is not None and sparse.get("dense_only"):
        raise UnsupportedError(f"sparse counts of {kind_of(head)}: {sparse['dense_only']}")
    if head is not None and not steps:
        return _import_counts(head)
    final = steps[-1][1]
    entry = PREDICTORS.get(kind_of(final))
    # A tree model alone copies its input to float32 itself, so one program serves both dtypes.
    alone = len(steps) == 1 and entry is not None and entry.trees
    element = f32 if alone else element_type(np.dtype(dtype))
    features = _features(steps[0][1], texts) if head is None else documents.columns(head)
    width = texts.width if texts else features
    builder = GraphBuilder([("x", tensor(element, (DYNAMIC, width)))])
    importer, x = Importer(builder, predict), builder.inputs[0]
    if head is not None:
        importer.forms[x] = form_after(kind_of(head), head, Form.DENSE)
    if texts:
        texts.place(importer)
        x = importer.columns(x, range(features))
    nan, infinite = accepted([step for _, step in steps])
    known = Values(nan, infinite)
    if rows.sparse and sparse.get("absent") == "zero" and not importer.is_sparse(x):
        # The host sees to what is refused of matrices alone.
        known = Values(nan and sparse.get("sparse_nan", True), infinite)
        importer.forms[x] = Form.UNCLEAR if sparse.get("sparse_zeros", True) else Form.ZERO_FREE
    importer.known[x] = known
    importer.words.sources[x] = tuple(range(features))
    importer.types.update({x: rows.types} if rows.types else {})
    scaled = _scaled([step for _, step in steps])
    for _, step in steps[:-1]:
        x = transform(importer, step, x)
        if scaled:
            # The host's bound `largest` sees to it.
            importer.known[x] = Values(known.nan, False)
    if scaled and entry is not None and entry.trees:
        x = importer.cast(x, np.float32)
        importer.known[x] = known
    outputs = last(importer, final, x)
    if head is not None and (counts := counted_type(head, steps)) is not None:
        # Of a predictor there are none: what it makes are floats.
        outputs.values = [(name, importer.cast(value, counts)) for name, value in outputs.values]
    checks = importer.check_outputs()
    values = [*outputs.values, *((name, value) for name, value, _ in checks)]
    names, by_name, unused = _columns(None if head is not None else model, steps[0][1])
    used = None if head is not None else _picked(steps[0][1])
    info = ModelInfo(
        outputs.kind,
        ("x",),
        tuple(name for name, _ in values),
        outputs.methods,
        outputs.classes,
        ("float64",) if alone or narrow else (),
        allow_nan=nan,
        allow_infinity=infinite,
        largest=_largest(steps, dtype) if scaled and not alone else None,
        source=f"scikit-learn {type(model).__name__}",
        label_dtype=outputs.labels,
        checks={name: message for name, _, message in checks},
        columns=names,
        by_name=by_name,
        frames_only=by_name and _names_strings(steps[0][1]),
        unused=unused,
        unread=() if used is None else tuple(i for i in range(features) if i not in used),
        types_apart=head is None and reads_apart(steps),
        types=rows.types,
        words=importer.words.table(),
        categories=None if head is not None else categories_of(steps),
        na_words=tuple(sorted(importer.words.with_na)),
        text=None if head is None else documents.text_facts(head),
        texts=texts.facts() if texts else (),
        integers=integers(steps),
        own_types=() if head is not None else own_types(steps),
        **sparse,
    )
    approximate = [FastMathFlag.APPROX_FUNC] if importer.approximate else []
    return builder.finish(values, info, FastMathFlagsAttr(approximate))


def _import_counts(head: Any) -> ImportedModel:
    """The module of a vectorizer alone, whose counts the host makes."""
    kind = np.dtype(head.dtype)
    builder = GraphBuilder([("x", tensor(f64, (DYNAMIC, documents.columns(head))))])
    importer = Importer(builder, predict)
    values = [("transformed", importer.cast(builder.inputs[0], kind))]
    info = ModelInfo(
        "transformer",
        ("x",),
        ("transformed",),
        {"transform": "transformed"},
        source=f"scikit-learn {type(head).__name__}",
        absent="zero",
        text=documents.text_facts(head),
    )
    return builder.finish(values, info)


def _import_labels(step: Any, dtype: str) -> ImportedModel:
    """The module of an encoder of targets, for rows of labels."""
    _check_fitted(step)
    missing = [f"step '{kind_of(step)}': {reason}" for reason in labels.why_not(step)]
    if missing:
        raise UnsupportedError(f"cannot import {type(step).__name__} exactly:", missing)
    builder = GraphBuilder([("y", tensor(element_type(np.dtype(dtype)), (DYNAMIC,)))])
    importer = Importer(builder, predict)
    values = [("transformed", labels.encoded(importer, step, builder.inputs[0]))]
    checks = importer.check_outputs()
    values += [(name, value) for name, value, _ in checks]
    info = ModelInfo(
        "transformer",
        ("y",),
        tuple(name for name, _ in values),
        {"transform": "transformed"},
        allow_nan=False,
        allow_infinity=False,
        source=f"scikit-learn {type(step).__name__}",
        checks={name: message for name, _, message in checks},
        words=labels.words_of(step),
    )
    return builder.finish(values, info)


_COUNTED: dict[str, Any] = {"absent": "zero"}
"""What is said of sparse rows where the host makes them, of counts beside other columns."""


def _features(step: Any, texts: Texts | None) -> int:
    """Columns of the input, before there are counts among them."""
    if texts is not None:
        return texts.own
    found = 1 if kind_of(step) == "IsotonicRegression" else getattr(step, "n_features_in_", None)
    if found is None:
        raise UnsupportedError(
            f"{type(step).__name__} that does not say how many features it takes"
        )
    return int(found)


def _check(model: Any, head: Any, steps: list[tuple[str, Any]]) -> None:
    """Raises UnsupportedError if a step cannot be imported, InvalidModelError if one is not fitted."""
    if not steps and head is None:
        raise UnsupportedError("a Pipeline without steps")
    if head is not None:
        _check_head(model, head)
    ends = [number == len(steps) - 1 for number in range(len(steps))]
    missing = [
        r for (name, step), end in zip(steps, ends, strict=True) for r in why_not(name, step, end)
    ]
    if missing:
        raise UnsupportedError(f"cannot import {type(model).__name__} exactly:", missing)
    for _, step in steps:
        _check_fitted(step)
    missing = [
        r
        for (name, step), end in zip(steps, ends, strict=True)
        for r in why_not_fitted(name, step, end)
    ]
    missing += [] if missing else [*why_no_codes(steps), *why_no_categories(steps)]
    if missing:
        raise UnsupportedError(f"cannot import {type(model).__name__} exactly:", missing)


def _check_head(model: Any, head: Any) -> None:
    _check_fitted(head)
    name = pipeline_steps(model)[0][0]
    if missing := documents.why_not(name, head):
        raise UnsupportedError(f"cannot import {type(model).__name__} exactly:", missing)


def _check_fitted(step: Any) -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils import validation

    try:
        cast(Any, validation).check_is_fitted(step)
    except NotFittedError:
        raise InvalidModelError(f"{type(step).__name__} is not fitted: call fit first") from None
    check_lengths(step)
    check_trees(step)
    kind = kind_of(step)
    if kind in COMPOSITIONS:
        parts = pipeline_steps(step) if kind == "Pipeline" else members(step, fitted=True)
        for _, part in parts:
            _check_fitted(part)
    for _, estimator in estimators_within(step):
        for _, part in pipeline_steps(estimator):
            _check_fitted(part)


def _columns(model: Any, first: Any) -> tuple[tuple[str, ...] | None, bool, tuple[str, ...]]:
    """Names of the columns that a model was fitted on, whether it picks them by name, and which of
    them it never looks at."""
    names = None if model is None else names_of(first)
    if names is None:
        return None, False, ()
    columns = tuple(str(name) for name in names)
    used = _picked(first)
    if used is None:
        return columns, False, ()
    return columns, True, tuple(n for i, n in enumerate(columns) if i not in used)


def _picked(step: Any) -> set[int] | None:
    """The columns that a step picks by name; of one that hands them on, those that its members pick. None
    where they are told apart by their places."""
    inner = _handed_to(step)
    if inner:
        first = [pipeline_steps(e)[:1] for e in inner]
        found = [_picked(steps[0][1]) if steps else None for steps in first]
        known = [picked for picked in found if picked is not None]
        return set[int]().union(*known) if len(known) == len(found) > 0 else None
    picks = getattr(step, "_preprocessor", None) or step
    if kind_of(picks) != "ColumnTransformer":
        return None
    dropped = {name for name, part, _ in picks.transformers_ if part is None or str(part) == "drop"}
    return {
        int(i)
        for name, indices in picks._transformer_to_input_indices.items()
        if name not in dropped
        for i in indices
    }


def _names_strings(step: Any) -> bool:
    """Whether a step that picks columns, or one to which it hands them on, names some by strings."""
    inner = _handed_to(step)
    if inner:
        first = [pipeline_steps(e)[:1] for e in inner]
        return any(_names_strings(steps[0][1]) for steps in first if steps)
    if kind_of(step) != "ColumnTransformer":
        return False
    given = (columns for _, part, columns in step.transformers_ if str(part) != "drop")
    return any(isinstance(c, str) for columns in given for c in np.atleast_1d(columns).tolist())


def _handed_to(step: Any) -> list[Any]:
    """The fitted estimators that a step gives all of its columns to, where nothing else looks at them."""
    if kind_of(step) == "FeatureUnion":
        every = [part for _, part in step.transformer_list]
        parts = [part for part in every if not does_nothing(part)]
        return [] if any(str(part) == "passthrough" for part in every) else parts
    if kind_of(step) not in HANDED_ON or getattr(step, "passthrough", False):
        return []
    return [e for name, e in estimators_within(step) if name != "final_estimator_"]


def _scaled(steps: list[Any]) -> bool:
    """Whether all before the last step are scalers, whose results the host can bound; selections of columns
    after them too, where they refuse infinity in those that they leave out."""
    kinds = [kind_of(step) for step in steps]
    scalers = next((n for n, kind in enumerate(kinds) if kind != "StandardScaler"), len(kinds))
    rest = steps[scalers:-1]
    entry = PREDICTORS.get(kinds[-1])
    if accepts(steps[-1])[1]:
        return False
    if not rest:
        return True
    if not scalers or (entry is not None and entry.trees):
        return False
    return all(kind_of(step) in SELECTORS and not accepts(step)[1] for step in rest)


def _largest(steps: list[tuple[str, Any]], dtype: str) -> float | None:
    """A magnitude of the input up to which scaling, and the copy that trees make, stay finite."""
    entry = PREDICTORS.get(kind_of(steps[-1][1]))
    last_dtype = np.float32 if entry is not None and entry.trees else np.dtype(dtype)
    limit = full = float(np.finfo(last_dtype).max)
    for _, step in reversed(steps):
        if kind_of(step) != "StandardScaler":
            continue
        if step.with_std:
            # A hundredth is left to rounding.
            limit *= 0.99 * min(1.0, float(np.min(step.scale_)))
        if step.with_mean:
            limit -= float(np.max(np.abs(step.mean_)))
    given = float(np.finfo(dtype).max)
    return limit if limit < given or full < given else None
