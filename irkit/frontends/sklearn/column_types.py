"""Columns of a data frame that have types of their own: what scikit-learn makes of some of them.

A program has float64 of all where these are several. A step that is given some makes an array of them, of the
type that NumPy has for all; what no step has looked at keeps its types until it stands beside others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects.graph import ConcatOp
from irkit.frontends.sklearn.columns import SELECTORS
from irkit.frontends.sklearn.encoders import TRANSFORMERS as ENCODERS
from irkit.frontends.sklearn.importer import Importer, kind_of

Types = tuple[str, ...]
_KEPT_BY_IMPUTERS = ("constant", "most_frequent")


def as_given(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """x as a step other than those that hand it on sees it; encoders look at column by column."""
    return x if kind_of(step) in ENCODERS or is_by_column(step) else of_one_type(importer, x)


def is_by_column(step: Any) -> bool:
    """Whether a step is given frames, and gives frames of the types that each column has by itself."""
    return kind_of(step) == "FunctionTransformer" and not step.validate


def of_one_type(importer: Importer, x: SSAValue) -> SSAValue:
    """x in the type of floats that scikit-learn makes of all of it."""
    types = importer.types.get(x)
    return x if types is None else _narrowed(importer, x, np.result_type(*types))


def types_after(importer: Importer, step: Any, x: SSAValue, y: SSAValue) -> None:
    """Note that y, made of x by a step, is integers where that keeps them."""
    types = importer.types.get(x)
    keeps = kind_of(step) in SELECTORS or getattr(step, "strategy", "") in _KEPT_BY_IMPUTERS
    if types is None or y in importer.types or not keeps:
        return
    common = np.result_type(*types)
    if common.kind != "f":
        importer.types[y] = (common.name,) * importer.width(y)


def function_by_column(
    importer: Importer, x: SSAValue, apply: Callable[[SSAValue], SSAValue], whole: Sequence[str]
) -> SSAValue:
    """A function of each column, in its own type; `whole`: integers of which it makes the same integers."""
    types = importer.types[x]
    narrow = [c for c, t in enumerate(types) if t == "float32"]
    wide = [c for c, t in enumerate(types) if t != "float32"]
    if not narrow:
        y = apply(importer.columns(x, wide))
    else:
        parts = [apply(importer.cast(importer.columns(x, narrow), np.float32))]
        parts += [apply(importer.columns(x, wide))] if wide else []
        joined = importer.concat([importer.cast(part, np.float64) for part in parts])
        y = importer.columns(joined, np.argsort([*narrow, *wide]))
    kept = {t: t for t in ("float32", *whole)}
    importer.types[y] = tuple(kept.get(t, "float64") for t in types)
    return y


def side_by_side(importer: Importer, parts: Sequence[SSAValue]) -> SSAValue:
    """Parts beside each other, as NumPy has frames and arrays: of one type, or integers still."""
    given = [importer.types.get(part) for part in parts]
    if not any(given):
        return importer.concat(parts)
    each = [
        importer.dtype(part) if types is None else _stacked(types)
        for part, types in zip(parts, given, strict=True)
    ]
    common = np.result_type(*each)
    made = [
        part if types is None else _narrowed(importer, part, common)
        for part, types in zip(parts, given, strict=True)
    ]
    # One part alone is still a frame to others that read it.
    alone = len(made) == 1 and made[0] is parts[0]
    wide = importer.builder(ConcatOp, made[0], axis=1) if alone else importer.concat(made)
    if alone:
        importer.words.picked(made[0], wide, range(importer.width(wide)))
    if common.kind != "f":
        importer.types[wide] = (common.name,) * importer.width(wide)
    return wide


def _stacked(types: Types) -> np.dtype[Any]:
    """The type of a frame as an array; truths beside numbers are objects, of which floats become."""
    mixed = "bool" in types and set(types) != {"bool"}
    return np.dtype(np.float64) if mixed else np.result_type(*types)


def _narrowed(importer: Importer, x: SSAValue, dtype: np.dtype[Any]) -> SSAValue:
    """x, of float64, as float32 if it is to be that."""
    if dtype != np.float32 or importer.dtype(x) == np.float32:
        return x
    y = importer.cast(x, np.float32)
    importer.words.picked(x, y, range(importer.width(x)))
    if x in importer.known:
        importer.known[y] = importer.known[x]
    return y
