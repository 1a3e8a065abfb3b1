"""One random model of scikit-learn: what irkit makes of it beside the library."""

# pyright: basic

from __future__ import annotations

import random
import traceback
import warnings
from collections import Counter
from typing import Any

import numpy as np

import irkit
from irkit.errors import (
    InternalError,
    InvalidInputError,
    InvalidModelError,
    IrkitError,
    UnsupportedError,
)
from tests.conformance.interpreted import METHODS, interpreted
from tools.fuzz.estimators import rows
from tools.fuzz.estimators.models import Case, case
from tools.fuzz.finding import Finding, TookTooLong, limit

SECONDS = 60.0
COMPILED = 0.05
"""Which part of models is compiled; the graph level's interpreter runs the others behind the same host."""
_ITS_OWN = (
    "Buffer dtype mismatch",
    "does not support data with dtype bool",
    "dataframe with 1 dimensions",
    "got 1D array instead",
    "previously unseen labels: np.True_",
)
"""Rows that scikit-learn fails on without meaning to."""
_NEAREST = (
    "Isomap", "KNN", "KNeighbors", "LabelPropagation", "LabelSpreading", "LocalOutlier", "LocallyLinear",
)  # fmt: skip
"""What asks for nearest rows: which of equally near ones is open, as behind encoders all are."""
REFUSED: Counter[str] = Counter()


def attempt(rng: random.Random) -> Finding | None:
    """One model."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        drawn = case(rng)
        what = None if drawn is None else judge(drawn, rng)
    return None if what is None else Finding(what, repr(drawn.model).encode(), ".txt")  # type: ignore[union-attr]


def judge(drawn: Case, rng: random.Random) -> str | None:
    """What irkit does wrong with a model; None if nothing."""
    try:
        with limit(SECONDS):
            compiled = rng.random() < COMPILED
            program = _compiled(drawn.model) if compiled else interpreted(drawn.model)
            return _answers(program, drawn, rng)
    except UnsupportedError as error:
        for line in error.missing or (str(error),):
            REFUSED[str(line)[:150]] += 1
        return None
    except InvalidModelError:
        return _fails(drawn) if _takes_rows(drawn) else None
    except TookTooLong:
        return f"{drawn.model!r}: took more than {SECONDS:.0f} s"
    except Exception:  # anything else is what is looked for
        return _fails(drawn)


def _fails(drawn: Case) -> str:
    return f"{drawn.model!r}: {traceback.format_exc(limit=-3)}"


def _takes_rows(drawn: Case) -> bool:
    """Whether scikit-learn itself can be asked anything of the model."""
    for method in METHODS:
        try:
            getattr(drawn.model, method)(drawn.rows)
        except Exception:  # of every kind: the method is not there, or fails
            continue
        return True
    return False


def _compiled(model: Any) -> Any:
    return irkit.compile(model, device="cpu2", cache=False)


def _answers(program: Any, drawn: Case, rng: random.Random) -> str | None:
    methods = [m for m in METHODS if m in program._methods]
    for form, x in rows.forms(rng, drawn.rows):
        for method in methods:
            wrong = _one_answer(program, drawn.model, method, x)
            if wrong is not None and (
                form != rows.TOO_LARGE or "scikit-learn has ValueError" in wrong
            ):
                return f"{drawn.model!r}: {method} of {form}: {wrong}"
    return None


def _one_answer(program: Any, model: Any, method: str, x: Any) -> str | None:
    try:
        want = getattr(model, method)(x)
    except Exception as error:  # of every kind, for rows that it refuses
        if any(words in str(error) for words in _ITS_OWN):
            return None
        return _refused_alike(program, method, x, error)
    try:
        found = getattr(program, method)(x)
    except InternalError:
        raise
    except IrkitError as error:  # a refusal by name is no wrong answer
        REFUSED[f"rows: {str(error)[:100]}"] += 1
        return None
    wrong = difference(found, want)
    return None if wrong is None or is_open(model, method, x, want) else wrong


def _refused_alike(program: Any, method: str, x: Any, error: Exception) -> str | None:
    try:
        found = getattr(program, method)(x)
    except InternalError:
        raise
    except (InvalidInputError, UnsupportedError):
        return None
    return f"{np.asarray(found).ravel()[:3]} where scikit-learn has {type(error).__name__}: {error}"


def difference(found: Any, want: Any) -> str | None:
    """Where two answers are not the same."""
    if isinstance(want, list):
        if not isinstance(found, list) or len(found) != len(want):
            return f"{type(found).__name__} where scikit-learn has a list of {len(want)}"
        return next((d for f, w in zip(found, want, strict=True) if (d := difference(f, w))), None)
    want = want.toarray() if hasattr(want, "tocsr") else np.asarray(want)
    # Which byte of a number comes first is no part of it.
    want = want.astype(want.dtype.newbyteorder("="))
    found = np.asarray(found)
    if found.shape == (1, *want.shape):  # scikit-learn's SparsePCA of one row
        want = want[None]
    if (found.dtype, found.shape) != (want.dtype, want.shape):
        return f"{found.dtype}{found.shape} where scikit-learn has {want.dtype}{want.shape}"
    if close(found, want):
        return None
    at = np.unravel_index(np.argmax(np.nan_to_num(_distance(found, want), nan=np.inf)), want.shape)
    return f"{found[at]} at {[int(i) for i in at]} where scikit-learn has {want[at]}"


def _distance(found: Any, want: Any) -> Any:
    if want.dtype.kind != "f":
        return (found != want) + 0.0
    same = (found == want) | (np.isnan(found) & np.isnan(want))
    return np.where(same, 0.0, np.abs(found - want))


def close(found: Any, want: Any) -> bool:
    """Whether two arrays differ by rounding at most."""
    if want.dtype.kind != "f":
        return bool(np.array_equal(found, want))
    finite = np.abs(want[np.isfinite(want)]).astype(np.float64)
    scale = max(float(finite.max(initial=0.0)), 1e-3)
    relative = {2: 2e-2, 4: 2e-4}.get(want.dtype.itemsize, 1e-6)
    return bool(np.allclose(found, want, rtol=relative, atol=relative * scale, equal_nan=True))


def is_open(model: Any, method: str, x: Any, want: Any) -> bool:
    """Whether scikit-learn itself answers otherwise of rows that differ by their rounding."""
    name = repr(model)
    if name.startswith("Pipeline") and any(n in name for n in _NEAREST):
        return True
    x = np.asarray(x)
    if x.dtype.kind not in "f":
        x = x.astype(np.float64)
    step = max(float(np.finfo(x.dtype).eps) * 4, 1e-12)
    for seed in range(4):
        noise = np.random.default_rng(seed).standard_normal(x.shape) * step
        moved = x * (1 + noise) if x.any() else noise
        try:
            other = getattr(model, method)(moved.astype(x.dtype))
        except Exception:  # of every kind, for rows that are no longer taken
            return True
        if difference(other, want) is not None:
            return True
    return False
