"""Sparse codes over a dictionary of atoms: soft thresholds, and orthogonal matching pursuit written out.

Pursuit (Rubinstein, Zibulevsky and Elad 2008): at each step the atom whose product with what is left is
largest joins, and what is left becomes orthogonal to all that joined. Here directions are kept orthonormal as
sums of atoms, so that no system is solved.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects.graph import (
    AbsOp,
    AddOp,
    AndOp,
    ArgmaxOp,
    CastOp,
    CompareOp,
    DivOp,
    MaxOp,
    MulOp,
    NegOp,
    SqrtOp,
    SubOp,
    WhereOp,
)
from irkit.errors import InvalidModelError
from irkit.frontends.sklearn.importer import Importer, Transformer, element, kind_of
from irkit.weights import Array

MOST_STEPS = 32
"""Atoms a row up to which a pursuit is written out."""


def _dictionary(step: Any) -> Array:
    return np.asarray(step.dictionary if hasattr(step, "dictionary") else step.components_)


def _coded(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    atoms, given = _dictionary(step), importer.dtype(x)
    x = importer.cast(x, np.result_type(given, atoms))
    products = importer.matmul(x, atoms.T, "atoms")
    if step.transform_algorithm == "threshold":
        code = _threshold(importer, step, products)
    else:
        # scikit-learn rounds the products of atoms, and so the codes, to the dtype of the rows.
        least = float(np.finfo(given).eps)
        code = _pursuit(importer, atoms, products, _steps(step, atoms), least)
        code = importer.cast(code, given if step.n_jobs in (None, 1) else np.float64)
    if not step.split_sign:
        return code
    zero = importer.constant(code, [[0.0]], "zero")
    low = importer.builder(MaxOp, importer.builder(NegOp, code), zero)
    halves = importer.concat([importer.builder(MaxOp, code, zero), low])
    return importer.cast(halves, np.float64)


def _threshold(importer: Importer, step: Any, products: SSAValue) -> SSAValue:
    build = importer.builder
    zero = importer.constant(products, [[0.0]], "zero")
    size = build(MaxOp, importer.sub(build(AbsOp, products), [[_alpha(step)]], "alpha"), zero)
    below = build(CompareOp, products, zero, predicate="lt")
    if step.positive_code:
        return build(WhereOp, below, zero, size)
    return build(WhereOp, below, build(NegOp, size), size)


def _alpha(step: Any) -> float:
    given = step.transform_alpha
    if given is None:
        given = getattr(step, "alpha", None)
    return 1.0 if given is None else float(given)


def _steps(step: Any, atoms: Array) -> int:
    """How many atoms a row may have. Raises InvalidModelError for more than there are."""
    count, features = atoms.shape
    given = step.transform_n_nonzero_coefs
    if given is not None and given > count:
        raise InvalidModelError(
            f"{kind_of(step)} codes a row by {given} atoms (transform_n_nonzero_coefs), of {count} that it "
            "has: scikit-learn refuses all rows"
        )
    return int(min(max(features / 10, 1), count) if given is None else given)


def _pursuit(
    importer: Importer, atoms: Array, products: SSAValue, steps: int, least: float
) -> SSAValue:
    build, kind = importer.builder, element(importer.dtype(products))
    gram: Array = atoms @ atoms.T
    left, none = products, importer.constant(products, [[0.0]], "zero")
    directions: list[tuple[SSAValue, SSAValue, SSAValue]] = []
    code = joined = importer.mul(products, [[0.0]], "zero")
    alive: SSAValue | None = None
    for _ in range(steps):
        place = importer.column(build(ArgmaxOp, build(AbsOp, left), axis=1, keepdims=False))
        here = build(
            CastOp, importer.compare(place, "eq", np.arange(len(atoms))[None], "atoms"), to=kind
        )
        product = _picked(importer, here, left)
        again = _picked(importer, here, joined)
        holds = build(
            AndOp,
            importer.compare(build(MulOp, product, product), "ge", [[least]], "least"),
            importer.compare(again, "eq", [[0.0]], "zero"),
        )
        near = importer.matmul(here, gram, "gram")
        norm, sums, along = _picked(importer, here, near), here, near
        length = _picked(importer, here, products)
        for direction, shadow, share in directions:
            part = _picked(importer, here, shadow)
            norm = build(SubOp, norm, build(MulOp, part, part))
            sums = build(SubOp, sums, build(MulOp, part, direction))
            along = build(SubOp, along, build(MulOp, part, shadow))
            length = build(SubOp, length, build(MulOp, part, share))
        if directions:
            holds = build(AndOp, holds, importer.compare(norm, "gt", [[least]], "least"))
        alive = holds if alive is None else build(AndOp, alive, holds)
        root = build(SqrtOp, build(WhereOp, alive, norm, _ones(importer, norm)))
        sums, along, length = (build(DivOp, v, root) for v in (sums, along, length))
        length = build(WhereOp, alive, length, none)
        directions.append((sums, along, length))
        code = build(AddOp, code, build(MulOp, length, sums))
        left = build(SubOp, left, build(MulOp, length, along))
        joined = build(AddOp, joined, here)
    return code


def _ones(importer: Importer, x: SSAValue) -> SSAValue:
    return importer.constant(x, [[1.0]], "one")


def _picked(importer: Importer, here: SSAValue, x: SSAValue) -> SSAValue:
    """rows×1: the element of each row that `here` has a 1 at."""
    return importer.reduce("sum", importer.builder(MulOp, here, x))


def _why_not(step: Any) -> list[str]:
    algorithm = step.transform_algorithm
    if algorithm not in ("omp", "threshold"):
        return [f"parameter transform_algorithm={algorithm!r} (supported: 'omp', 'threshold')"]
    return []


def _why_no_steps(step: Any) -> list[str]:
    if step.transform_algorithm != "omp":
        return []
    if step.positive_code:
        return ["parameter positive_code with transform_algorithm='omp'"]
    steps = _steps(step, _dictionary(step))
    return [f"more than {MOST_STEPS} atoms a row"] if steps > MOST_STEPS else []


TRANSFORMERS: dict[str, Transformer] = {
    name: Transformer(_coded, _why_not, _why_no_steps)
    for name in ("DictionaryLearning", "MiniBatchDictionaryLearning", "SparseCoder")
}
