"""Single operators on rows of 20 numbers, irkit beside scikit-learn: the table of Hummingbird's paper.

    python -m benchmarks.operators [NAME ...] [--rows 1000000] [--one-thread] [--runs N] [--out FOLDER]

Operators and shape are those of Nakandala et al., OSDI 2020, table 11; each is fitted on 1000 random rows of
two classes. The gate, the times and the ratio are as of `benchmarks.pipelines`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.pipelines import compare, parser, run

COLUMNS = 20


def _made(path: str, **parameters: Any) -> Callable[[], Any]:
    module, _, name = path.rpartition(".")
    return lambda: getattr(harness.peer(f"sklearn.{module}"), name)(**parameters)


OPERATORS: dict[str, Callable[[], Any]] = {
    "LogisticRegression": _made("linear_model.LogisticRegression"),
    "SGDClassifier": _made("linear_model.SGDClassifier", random_state=0, loss="log_loss"),
    "LinearSVC": _made("svm.LinearSVC", random_state=0),
    "SVC": _made("svm.SVC"),
    "NuSVC": _made("svm.NuSVC"),
    "BernoulliNB": _made("naive_bayes.BernoulliNB"),
    "MLPClassifier": _made("neural_network.MLPClassifier", random_state=0),
    "DecisionTreeClassifier": _made("tree.DecisionTreeClassifier", random_state=0),
    "Binarizer": _made("preprocessing.Binarizer"),
    "MinMaxScaler": _made("preprocessing.MinMaxScaler"),
    "Normalizer": _made("preprocessing.Normalizer"),
    "PolynomialFeatures": _made("preprocessing.PolynomialFeatures"),
    "StandardScaler": _made("preprocessing.StandardScaler"),
}


def main() -> int:
    """Entry point: 0 if every answer is right."""
    options = parser(__doc__, (1_000_000,)).parse_args()
    random = np.random.default_rng(0)
    x = random.normal(size=(1000, COLUMNS))
    y = (x[:, :5].sum(axis=1) > 0).astype(np.int64)

    def one(name: str) -> dict[str, Any]:
        model = OPERATORS[name]().fit(x, y)
        return compare(model, x, options.rows, options.runs, options.one_thread)

    return run("operators", options, list(OPERATORS), one)


if __name__ == "__main__":
    raise SystemExit(main())
