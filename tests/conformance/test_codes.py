"""Sparse codes against scikit-learn: thresholds and pursuits, of rows that end early too."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.decomposition import DictionaryLearning, MiniBatchDictionaryLearning, SparseCoder
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from irkit.errors import InvalidModelError, UnsupportedError
from irkit.frontends import import_model
from tests.conformance.interpreted import compare, interpreted
from tests.conformance.sklearn_models import data

pytestmark = pytest.mark.filterwarnings("ignore")


def check(model: Any, x: Any, tolerance: float = 1e-9, narrow: bool = True) -> None:
    program = interpreted(model)
    compare(program, model, x, rtol=tolerance, atol=tolerance)
    if narrow:
        compare(program, model, x.astype(np.float32), rtol=1e-3, atol=1e-4)


def atoms(count: int, width: int) -> Any:
    found = np.random.default_rng(count).normal(size=(count, width))
    return found / np.linalg.norm(found, axis=1, keepdims=True)


@pytest.mark.parametrize("split", [True, False])
@pytest.mark.parametrize("steps", [None, 1, 2, 5, 9])
def test_pursuit(steps: Any, split: bool) -> None:
    x = data("wine")[0][:50] / 100
    model = SparseCoder(atoms(15, 13), transform_n_nonzero_coefs=steps, split_sign=split)
    check(model.fit(x), x)


def test_more_atoms_of_a_row_than_there_are_are_refused() -> None:
    x = data("iris")[0]
    model = SparseCoder(atoms(3, 4), transform_n_nonzero_coefs=4).fit(x)
    with pytest.raises(ValueError, match="number of atoms"):
        model.transform(x)
    with pytest.raises(InvalidModelError, match=r"4 atoms .* of 3 that it has"):
        import_model(model)
    model = SparseCoder(atoms(4, 4), transform_n_nonzero_coefs=4)
    check(model.fit(x), x)


def test_pursuits_that_end_early() -> None:
    """Nothing is left of a row, or nothing of what an atom could add."""
    known = atoms(6, 8)
    rows = np.concatenate([known[:3], known[:1] + 2 * known[1:2], np.zeros((2, 8)), 1e-9 * known])
    check(SparseCoder(known, transform_n_nonzero_coefs=4).fit(rows), rows, 1e-7, narrow=False)
    plane = atoms(9, 3) @ atoms(3, 8)
    plane /= np.linalg.norm(plane, axis=1, keepdims=True)
    given = np.random.default_rng(1).normal(size=(40, 8))
    check(SparseCoder(plane, transform_n_nonzero_coefs=5).fit(given), given, 1e-7, narrow=False)


@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize("alpha", [None, 0.0, 0.3])
def test_threshold(alpha: Any, positive: bool) -> None:
    x = data("iris")[0] - 3
    model = SparseCoder(
        atoms(7, 4), transform_algorithm="threshold", transform_alpha=alpha, positive_code=positive
    )
    check(model.fit(x), x)
    check(model.set_params(split_sign=True), x)


@pytest.mark.parametrize("kind", [DictionaryLearning, MiniBatchDictionaryLearning])
def test_learned(kind: Any) -> None:
    x = data("digits")[0][:60]
    check(kind(12, max_iter=3, random_state=0).fit(x), data("digits")[0][60:110], 1e-7)
    soft = kind(12, max_iter=3, alpha=2.0, transform_algorithm="threshold", random_state=0)
    check(soft.fit(x), data("digits")[0][60:110], 1e-7)


def test_compiled(compiled: Any) -> None:
    x, y = data("iris")
    coder = SparseCoder(atoms(7, 4), transform_n_nonzero_coefs=3)
    model = make_pipeline(coder, LogisticRegression()).fit(x, y)
    compare(compiled(model, mode="serial"), model, x, rtol=1e-7, atol=1e-7)


def test_refused_by_name() -> None:
    x = data("iris")[0]
    for parameters, reason in (
        ({"transform_algorithm": "lasso_lars"}, "transform_algorithm='lasso_lars'"),
        ({"transform_n_nonzero_coefs": 33}, "more than 32 atoms a row"),
    ):
        with pytest.raises(UnsupportedError) as caught:
            import_model(SparseCoder(atoms(40, 4), **parameters).fit(x), "float64")
        assert reason in caught.value.missing[0]
