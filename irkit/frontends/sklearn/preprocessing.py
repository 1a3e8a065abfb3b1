"""Transformers that work column by column or row by row: scalers, bins, polynomials."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects.graph import (
    AbsOp,
    AddOp,
    CastOp,
    DivOp,
    MulOp,
    SqrtOp,
    SubOp,
)
from irkit.frontends.sklearn.importer import Importer, Transformer, element

# Scalers. All give x's dtype; all but StandardScaler compute in that of their statistics.


def standard(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """x less its means, by its deviations: in x's dtype."""
    if step.with_mean:
        x = importer.sub(x, step.mean_, "mean")
    if importer.is_sparse(x):
        return _by_inverse(importer, step, x) if step.with_std else x
    return importer.div(x, step.scale_, "scale") if step.with_std else x


def _by_inverse(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """A sparse matrix by the scales of its columns: scikit-learn multiplies it by what they divide 1 into,
    which often has another last bit."""
    return importer.update(MulOp, x, 1 / step.scale_, "scale")


def _min_max(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    x = importer.update(MulOp, x, step.scale_, "scale")
    x = importer.update(AddOp, x, step.min_, "min")
    return _limited(importer, x, *step.feature_range) if step.clip else x


def _limited(importer: Importer, x: SSAValue, low: float, high: float) -> SSAValue:
    """x within [low, high]; NaN stays."""
    x = importer.where(importer.compare(x, "lt", [low], "low"), x, [low], "low")
    return importer.where(importer.compare(x, "gt", [high], "high"), x, [high], "high")


def _robust(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    if step.with_centering:
        x = importer.update(SubOp, x, step.center_, "center")
    if not step.with_scaling:
        return x
    if importer.is_sparse(x):
        return _by_inverse(importer, step, x)
    return importer.update(DivOp, x, step.scale_, "scale")


def _max_abs(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    if importer.is_sparse(x):
        x = _by_inverse(importer, step, x)
    else:
        x = importer.update(DivOp, x, step.scale_, "scale")
    return _limited(importer, x, -1.0, 1.0) if getattr(step, "clip", False) else x


def of_unit_norm(importer: Importer, norm: str, x: SSAValue) -> SSAValue:
    """Rows of a sparse matrix by their norms, which scikit-learn sums in float64; zeros stay."""
    build, dtype = importer.builder, importer.dtype(x)
    if norm == "max":
        size = importer.reduce("max", build(AbsOp, x))
    else:
        parts = build(AbsOp, x) if norm == "l1" else build(MulOp, x, x)
        size = importer.reduce("sum", importer.cast(parts, np.float64))
        size = build(SqrtOp, size) if norm == "l2" else size
    none = importer.compare(size, "eq", [0.0], "zero")
    wide = importer.cast(x, importer.dtype(size))
    return importer.cast(build(DivOp, wide, importer.where(none, size, [1.0], "one")), dtype)


def _normalizer(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    if importer.is_sparse(x):
        return of_unit_norm(importer, step.norm, x)
    build = importer.builder
    match step.norm:
        case "l1":
            norm = importer.reduce("sum", build(AbsOp, x))
        case "l2":
            norm = build(SqrtOp, importer.reduce("sum", build(MulOp, x, x)))
        case _:
            norm = importer.reduce("max", build(AbsOp, x))
    # scikit-learn divides by 1 where the norm is next to nothing.
    tiny = importer.compare(norm, "lt", [10 * np.finfo(importer.dtype(x)).eps], "tiny")
    return build(DivOp, x, importer.where(tiny, norm, [1.0], "one"))


def _binarizer(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    dtype = importer.dtype(x)
    limit = float(step.threshold)
    # A Python float is compared in x's dtype, NumPy's own number in the wider one.
    wide = np.result_type(dtype, step.threshold)
    above = importer.compare(importer.cast(x, wide), "gt", [limit], "threshold")
    return importer.builder(CastOp, above, to=element(dtype))


# Bins


def _bins(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    dtype = importer.dtype(x) if step.dtype is None else np.dtype(step.dtype)
    x = importer.cast(x, dtype)
    inner = [np.asarray(edges, np.float64)[1:-1] for edges in step.bin_edges_]
    counts = [len(edges) for edges in inner]
    owner = np.repeat(np.arange(len(counts)), counts)
    cells = importer.cast(importer.columns(x, owner), np.float64)
    above = importer.compare(cells, "ge", np.concatenate(inner), "edges")
    held = importer.builder(CastOp, above, to=element(np.float64))
    groups = (owner[:, None] == np.arange(len(counts))).astype(np.float64)
    # The number of edges at or below a cell is its bin.
    bins = importer.matmul(held, groups, "groups")
    if step.encode != "ordinal":
        sizes = [int(n) for n in step.n_bins_]
        numbers = np.concatenate([np.arange(size) for size in sizes]).astype(np.float64)
        spread = importer.columns(bins, np.repeat(np.arange(len(sizes)), sizes))
        here = importer.compare(spread, "eq", numbers, "bins")
        return importer.builder(CastOp, here, to=element(dtype))
    return importer.cast(bins, dtype)


def _why_no_bins(step: Any) -> list[str]:
    inner = sum(len(edges) - 2 for edges in step.bin_edges_)
    return [] if inner else ["columns of one bin only"]


# Polynomials


def _polynomial(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """Monomials, each a feature times a monomial of the features after it, as scikit-learn multiplies."""
    wanted = [_factors(row) for row in np.asarray(step.powers_)]
    levels = _levels(wanted)
    columns: dict[tuple[int, ...], int] = {}
    parts: list[SSAValue] = []
    before: SSAValue | None = None
    known: dict[tuple[int, ...], int] = {}
    for level in levels:
        y = importer.columns(x, [m[0] for m in level])
        if before is not None:
            y = importer.builder(MulOp, y, importer.columns(before, [known[m[1:]] for m in level]))
        start = len(columns)
        columns |= {m: start + i for i, m in enumerate(level)}
        before, known = y, {m: i for i, m in enumerate(level)}
        parts.append(y)
    if () in wanted:
        columns[()] = len(columns)
        parts.append(importer.full(x, 1.0, importer.dtype(x)))
    return importer.columns(importer.concat(parts), [columns[m] for m in wanted])


def _factors(powers: Any) -> tuple[int, ...]:
    """Features of a monomial, each as often as its power."""
    return tuple(itertools.chain.from_iterable([f] * int(p) for f, p in enumerate(powers)))


def _levels(wanted: list[tuple[int, ...]]) -> list[list[tuple[int, ...]]]:
    """Monomials by degree from 1, with all that they are made from."""
    needed = {m[i:] for m in wanted for i in range(len(m))}
    top = max((len(m) for m in needed), default=0)
    return [sorted(m for m in needed if len(m) == degree) for degree in range(1, top + 1)]


def _why_no_polynomial(step: Any) -> list[str]:
    return [] if len(step.powers_) else ["no output columns"]


TRANSFORMERS: dict[str, Transformer] = {
    "Binarizer": Transformer(_binarizer, bounded=True),
    "KBinsDiscretizer": Transformer(_bins, why_not_fitted=_why_no_bins, bounded=True),
    "MaxAbsScaler": Transformer(_max_abs),
    "MinMaxScaler": Transformer(_min_max),
    "Normalizer": Transformer(_normalizer),
    "PolynomialFeatures": Transformer(_polynomial, why_not_fitted=_why_no_polynomial),
    "RobustScaler": Transformer(_robust),
    "StandardScaler": Transformer(standard),
}
