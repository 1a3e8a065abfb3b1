"""Single operators on rows of 20 numbers, irkit beside scikit-learn: the table of Hummingbird's paper.

    python -m benchmarks.operators [NAME ...] [--rows 1000000] [--one-thread] [--peers] [--runs N]
        [--out FOLDER]

Operators and shape are those of Nakandala et al., OSDI 2020, table 11; each is fitted on 1000 random rows of
two classes. The gate, the times and the ratio are as of `benchmarks.pipelines`.

`--peers` adds two more on float32 rows, where they are installed: Hummingbird on as many rows, and ONNX
Runtime on one row, of which a Python call is most of what there is to pay.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import harness, operator_peers
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


def _show(peers: dict[str, Any]) -> None:
    """A line of each comparison: times in microseconds, or why there are none."""
    for what, found in peers.items():
        parts = [
            f"{name} {given['median_us']:.1f} us" if "median_us" in given else f"{name} {given}"
            for name, given in found.items()
            if isinstance(given, dict)
        ]
        print(f"    {what}: {', '.join(parts)}", flush=True)


def main() -> int:
    """Entry point: 0 if every answer is right."""
    arguments = parser(__doc__, (1_000_000,))
    arguments.add_argument("--peers", action="store_true", help="Hummingbird and ONNX Runtime too")
    options = arguments.parse_args()
    clock = time.process_time if options.one_thread else time.perf_counter
    random = np.random.default_rng(0)
    x = random.normal(size=(1000, COLUMNS))
    y = (x[:, :5].sum(axis=1) > 0).astype(np.int64)

    def one(name: str) -> dict[str, Any]:
        model = OPERATORS[name]().fit(x, y)
        found = compare(model, x, options.rows, options.runs, options.one_thread)
        if options.peers:
            found["peers"] = operator_peers.compare(
                model, x, max(options.rows), options.runs, options.one_thread, clock
            )
            _show(found["peers"])
        return found

    return run("operators", options, list(OPERATORS), one)


if __name__ == "__main__":
    raise SystemExit(main())
