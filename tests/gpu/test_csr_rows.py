"""Programs of what CSR matrices have stored, on a GPU: scikit-learn's answers in every mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn import linear_model, naive_bayes, preprocessing
from sklearn import pipeline as pipelines

import irkit
from irkit.runtime.cuda.availability import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

pipe: Any = vars(pipelines)["make_pipeline"]
sparse: Any = scipy.sparse
WIDTH = 3000
MODELS: dict[str, Any] = {
    "two classes": lambda: linear_model.LogisticRegression(max_iter=10),
    "twenty classes": lambda: pipe(preprocessing.Normalizer(), linear_model.RidgeClassifier()),
    "counts": naive_bayes.MultinomialNB,
    "largest": lambda: pipe(preprocessing.Normalizer("max"), linear_model.Ridge()),
}


def rows(count: int, seed: int) -> Any:
    """Rows of a few to some hundred elements; the second has none."""
    made = sparse.random_array((count, WIDTH), density=0.03, format="csr", rng=seed)
    return sparse.vstack([made[:1], sparse.csr_array((1, WIDTH)), made[1:]]).tocsr()


@pytest.mark.parametrize("mode", ["auto", "per-op", "per-wave", "persistent"])
@pytest.mark.parametrize("name", MODELS)
def test_answers(name: str, mode: str) -> None:
    training = rows(200, 0)
    classes = 2 if name == "two classes" else 20
    model = MODELS[name]().fit(training, np.arange(training.shape[0]) % classes)
    program = irkit.compile(model, target="cuda", mode=mode)
    for count in (1, 3, 500, 20_000):
        for dtype, error in (("float64", 1e-10), ("float32", 2e-4)):
            x = rows(count, count).astype(dtype)
            for method in program.methods:
                found, want = getattr(program, method)(x), getattr(model, method)(x)
                if want.dtype.kind == "f":
                    np.testing.assert_allclose(found, want, rtol=error, atol=error)
                elif dtype == "float64":
                    assert np.array_equal(found, want)
    assert program.report()["sparse_rows"] == "by the elements that are stored"
