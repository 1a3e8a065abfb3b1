"""Sparse rows and documents of 30,000 words, irkit beside scikit-learn in one run.

    python -m benchmarks.texts [NAME ...] [--rows 1000 10000] [--one-thread] [--runs N] [--out FOLDER]

Rows are CSR matrices of counts: about 100 words each, drawn from 30,000 by Zipf's law. Pipelines are fitted
on 3000 of them, and score rows of them drawn with replacement; those named `documents` take strings of the
same words, which both sides count by scikit-learn's own analyzer. The gate, the clock and the ratio are those
of `benchmarks.pipelines`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.pipelines import compare, parser, run

WORDS, FITTED, LENGTH = 30_000, 3000, 100


def _made(path: str, *arguments: Any, **parameters: Any) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(harness.peer(f"sklearn.{module}"), name)(*arguments, **parameters)


def _steps(*parts: Any) -> Any:
    return _made("pipeline.make_pipeline", *parts)


LOGISTIC, SGD = "linear_model.LogisticRegression", "linear_model.SGDClassifier"
TFIDF, WEIGHTS = (
    "feature_extraction.text.TfidfVectorizer",
    "feature_extraction.text.TfidfTransformer",
)
HASHES = "feature_extraction.text.HashingVectorizer"

# Name → how many classes, and the pipeline.
PIPELINES: dict[str, tuple[int, Callable[[], Any]]] = {
    "logistic 2": (2, lambda: _made(LOGISTIC, max_iter=5)),
    "logistic 20": (20, lambda: _made(LOGISTIC, max_iter=3)),
    "multinomial 20": (20, lambda: _made("naive_bayes.MultinomialNB")),
    "bernoulli 20": (20, lambda: _made("naive_bayes.BernoulliNB")),
    "tf-idf logistic 2": (2, lambda: _steps(_made(WEIGHTS), _made(LOGISTIC, max_iter=5))),
    "tf-idf sgd 20": (20, lambda: _steps(_made(WEIGHTS), _made(SGD, max_iter=3))),
    "tf-idf svc 20": (20, lambda: _steps(_made(WEIGHTS), _made("svm.LinearSVC", max_iter=20))),
    "tf-idf projected logistic 20": (
        20,
        lambda: _steps(
            _made(WEIGHTS),
            _made("decomposition.TruncatedSVD", 20, n_iter=1, random_state=0),
            _made(LOGISTIC, max_iter=5),
        ),
    ),
    "max-abs svc 2": (
        2,
        lambda: _steps(_made("preprocessing.MaxAbsScaler"), _made("svm.LinearSVC", max_iter=20)),
    ),
    "normalised ridge": (
        2,
        lambda: _steps(
            _made("preprocessing.Normalizer"),
            _made("linear_model.Ridge", solver="sparse_cg", max_iter=20),
        ),
    ),
    "selected complement 20": (
        20,
        lambda: _steps(
            _made("feature_selection.SelectKBest", _chi2(), k=5000),
            _made("naive_bayes.ComplementNB"),
        ),
    ),
    "documents tf-idf logistic 2": (2, lambda: _steps(_made(TFIDF), _made(LOGISTIC, max_iter=5))),
    "documents tf-idf multinomial 20": (
        20,
        lambda: _steps(_made(TFIDF), _made("naive_bayes.MultinomialNB")),
    ),
    "documents hashes sgd 20": (
        20,
        lambda: _steps(_made(HASHES, n_features=WORDS), _made(SGD, max_iter=3)),
    ),
}


def _chi2() -> Any:
    return vars(harness.peer("sklearn.feature_selection"))["chi2"]


def rows(count: int, words: int = WORDS) -> Any:
    """CSR, counts of words."""
    random = np.random.default_rng(0)
    chances = 1 / np.arange(1, words + 1)
    drawn = [
        np.unique(random.choice(words, n, p=chances / chances.sum()), return_counts=True)
        for n in random.poisson(LENGTH, count) + 1
    ]
    ends = np.cumsum([0, *(len(found) for found, _ in drawn)])
    indices, data = (np.concatenate(part) for part in zip(*drawn, strict=True))
    sparse = harness.peer("scipy.sparse")
    return sparse.csr_matrix((data.astype(np.float64), indices, ends), shape=(count, words))


def documents(x: Any) -> Any:
    """The same as strings."""
    texts = [
        " ".join(f"w{word}" for word in np.repeat(row.indices, row.data.astype(int))) for row in x
    ]
    return np.array(texts, object)


def measure(name: str, x: Any, options: Any) -> dict[str, Any]:
    """Times of one pipeline by batch."""
    classes, make = PIPELINES[name]
    y = np.random.default_rng(1).integers(0, classes, x.shape[0])
    given = documents(x) if name.startswith("documents") else x
    model = make().fit(given, y)
    return compare(model, given, options.rows, options.runs, options.one_thread)


def main() -> int:
    """Entry point: 0 if every answer is right."""
    options = parser(__doc__, (1000, 10000)).parse_args()
    x = rows(FITTED)
    return run("texts", options, list(PIPELINES), lambda name: measure(name, x, options))


if __name__ == "__main__":
    raise SystemExit(main())
