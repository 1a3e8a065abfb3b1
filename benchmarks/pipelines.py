"""End-to-end pipelines over scikit-learn's own data sets, irkit beside scikit-learn in one run.

    python -m benchmarks.pipelines [NAME ...] [--rows 1000 10000] [--one-thread] [--runs N] [--out FOLDER]

Each pipeline is fitted on all rows of its data set; what is scored are rows of it drawn with replacement.
Both take the same float64 array and give the public result, whole: `predict_proba` of classifiers that have
it, else `predict`. The gate: labels are equal, and values within 1e-6 of scikit-learn's, of the largest.
A pipeline that fails it has no times. Calls of the two are taken in turn; times are medians, and the ratio is
scikit-learn's over irkit's. Both run with all cores, and times are of the wall clock; with `--one-thread`
each has one, and times are of the processor, which other work on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import irkit
from benchmarks import harness

TOLERANCE = 1e-6
METHODS = ("predict_proba", "predict", "transform")
"""The first that a model has is what is timed."""


def _sk(path: str) -> Any:
    """A class or function of scikit-learn, by "module.name"."""
    module, _, name = path.rpartition(".")
    return getattr(harness.peer(f"sklearn.{module}"), name)


def _steps(*parts: Any) -> Any:
    return _sk("pipeline.make_pipeline")(*parts)


def _made(path: str, *arguments: Any, **parameters: Any) -> Any:
    return _sk(path)(*arguments, **parameters)


def _columns(*parts: Any) -> Any:
    return _sk("compose.make_column_transformer")(*parts, sparse_threshold=0)


def _bins(count: int, encode: str) -> Any:
    return _made(
        "preprocessing.KBinsDiscretizer",
        count,
        encode=encode,
        quantile_method="averaged_inverted_cdf",
    )


def _seeded(path: str, *arguments: Any, **parameters: Any) -> Any:
    return _sk(path)(*arguments, random_state=0, **parameters)


STANDARD, MIN_MAX = "preprocessing.StandardScaler", "preprocessing.MinMaxScaler"
ROBUST, MAX_ABS = "preprocessing.RobustScaler", "preprocessing.MaxAbsScaler"
IMPUTER, PCA = "impute.SimpleImputer", "decomposition.PCA"
LOGISTIC, RIDGE = "linear_model.LogisticRegression", "linear_model.Ridge"
FOREST, BOOSTED = "ensemble.RandomForestClassifier", "ensemble.GradientBoostingClassifier"
HISTOGRAM = "ensemble.HistGradientBoostingClassifier"

# Name → data set and pipeline. "+nan" makes every tenth number NaN.
PIPELINES: dict[str, tuple[str, Callable[[], Any]]] = {
    "standard logistic": ("breast_cancer", lambda: _steps(_made(STANDARD), _made(LOGISTIC))),
    "min-max logistic": ("digits", lambda: _steps(_made(MIN_MAX), _made(LOGISTIC))),
    "robust linear svc": ("wine", lambda: _steps(_made(ROBUST), _seeded("svm.LinearSVC"))),
    "max-abs sgd": (
        "digits",
        lambda: _steps(_made(MAX_ABS), _seeded("linear_model.SGDClassifier", loss="log_loss")),
    ),
    "impute standard logistic": (
        "breast_cancer+nan",
        lambda: _steps(_made(IMPUTER), _made(STANDARD), _made(LOGISTIC)),
    ),
    "impute forest": ("breast_cancer+nan", lambda: _steps(_made(IMPUTER), _seeded(FOREST))),
    "impute boosted": (
        "breast_cancer+nan",
        lambda: _steps(_made(IMPUTER, strategy="median"), _seeded(BOOSTED)),
    ),
    "histogram boosting": ("breast_cancer+nan", lambda: _steps(_seeded(HISTOGRAM))),
    "standard histogram boosting": (
        "digits",
        lambda: _steps(_made(STANDARD), _seeded(HISTOGRAM, max_iter=30)),
    ),
    "standard forest": ("digits", lambda: _steps(_made(STANDARD), _seeded(FOREST))),
    "select k forest": (
        "breast_cancer",
        lambda: _steps(_made("feature_selection.SelectKBest", k=8), _seeded(FOREST)),
    ),
    "standard percentile logistic": (
        "breast_cancer",
        lambda: _steps(
            _made(STANDARD),
            _made("feature_selection.SelectPercentile", percentile=20),
            _made(LOGISTIC),
        ),
    ),
    "variance extra trees": (
        "digits",
        lambda: _steps(
            _made("feature_selection.VarianceThreshold"),
            _seeded("ensemble.ExtraTreesClassifier"),
        ),
    ),
    "standard pca logistic": (
        "digits",
        lambda: _steps(_made(STANDARD), _made(PCA, 20), _made(LOGISTIC)),
    ),
    "svd logistic": (
        "digits",
        lambda: _steps(_seeded("decomposition.TruncatedSVD", 16), _made(LOGISTIC)),
    ),
    "polynomial ridge": (
        "diabetes",
        lambda: _steps(_made("preprocessing.PolynomialFeatures", 2), _made(STANDARD), _made(RIDGE)),
    ),
    "standard lasso": (
        "diabetes",
        lambda: _steps(_made(STANDARD), _made("linear_model.Lasso", 1.0)),
    ),
    "splines ridge": (
        "diabetes",
        lambda: _steps(_made("preprocessing.SplineTransformer"), _made(RIDGE)),
    ),
    "power logistic": (
        "wine",
        lambda: _steps(_made("preprocessing.PowerTransformer"), _made(LOGISTIC)),
    ),
    "quantile logistic": (
        "wine",
        lambda: _steps(_made("preprocessing.QuantileTransformer", n_quantiles=50), _made(LOGISTIC)),
    ),
    "bins logistic": ("iris", lambda: _steps(_bins(5, "onehot-dense"), _made(LOGISTIC))),
    "bins tree": (
        "wine",
        lambda: _steps(_bins(8, "ordinal"), _seeded("tree.DecisionTreeClassifier")),
    ),
    "normalise neighbours": (
        "iris",
        lambda: _steps(
            _made("preprocessing.Normalizer"), _made("neighbors.KNeighborsClassifier", 5)
        ),
    ),
    "standard svc": ("wine", lambda: _steps(_made(STANDARD), _made("svm.SVC"))),
    "standard naive bayes": (
        "digits",
        lambda: _steps(_made(STANDARD), _made("naive_bayes.GaussianNB")),
    ),
    "standard perceptron of layers": (
        "digits",
        lambda: _steps(
            _made(STANDARD), _seeded("neural_network.MLPClassifier", (50,), max_iter=40)
        ),
    ),
    "union logistic": (
        "breast_cancer",
        lambda: _steps(
            _sk("pipeline.make_union")(_made(MIN_MAX), _steps(_made(STANDARD), _made(PCA, 5))),
            _made(LOGISTIC, max_iter=300),
        ),
    ),
    "columns boosted": (
        "diabetes",
        lambda: _steps(
            _columns(
                (_made(STANDARD), [0, 2, 3, 4, 5, 6, 7, 8, 9]),
                (_made("preprocessing.OneHotEncoder", handle_unknown="ignore"), [1]),
            ),
            _seeded("ensemble.GradientBoostingRegressor"),
        ),
    ),
    "columns forest": (
        "diabetes+nan",
        lambda: _steps(
            _columns(
                (_steps(_made(IMPUTER), _made(STANDARD)), [0, 2, 3, 4]),
                (_steps(_made(IMPUTER), _made(MIN_MAX)), [5, 6, 7, 8, 9]),
            ),
            _seeded("ensemble.RandomForestRegressor"),
        ),
    ),
    "standard bagged trees": (
        "wine",
        lambda: _steps(_made(STANDARD), _seeded("ensemble.BaggingClassifier", n_estimators=20)),
    ),
}


def _data(name: str) -> tuple[Any, Any]:
    """Rows and targets of a data set that ships in scikit-learn."""
    name, _, gaps = name.partition("+")
    x, y = _sk(f"datasets.load_{name}")(return_X_y=True)
    x = np.array(x, np.float64)
    if gaps:
        x[np.random.default_rng(1).random(x.shape) < 0.1] = np.nan
    return x, y


def _off(got: Any, want: Any) -> float:
    """Largest difference, relative to the largest value; infinite where labels differ."""
    if got.dtype.kind in "iuOU":
        return 0.0 if np.array_equal(got, want) else float("inf")
    return harness.largest_error(got, want) / max(1.0, float(np.abs(want).max()))


def measure(name: str, rows: Sequence[int], runs: int, one_thread: bool) -> dict[str, Any]:
    """Times of one pipeline by batch."""
    data, make = PIPELINES[name]
    x, y = _data(data)
    return {"data": data, **compare(make().fit(x, y), x, rows, runs, one_thread)}


def compare(model: Any, x: Any, rows: Sequence[int], runs: int, one_thread: bool) -> dict[str, Any]:
    """A fitted model beside its program, on rows drawn from `x`."""
    start = time.perf_counter()
    mode = "serial" if one_thread else "auto"
    program = irkit.compile(model, "cpu", dtype="float64", mode=mode)
    found: dict[str, Any] = {"compile_s": round(time.perf_counter() - start, 2)}
    method = next(m for m in METHODS if m in program.methods)
    ours, theirs = getattr(program, method), getattr(model, method)
    random = np.random.default_rng(0)
    for batch in rows:
        part = x[random.integers(0, x.shape[0], batch)]
        off = _off(ours(part), theirs(part))
        both = {"irkit": partial(ours, part), "scikit-learn": partial(theirs, part)}
        timed = partial(_times, both, runs, one_thread)
        found[str(batch)] = harness.gated(off, TOLERANCE, timed)
    return found


def _times(both: dict[str, Callable[[], Any]], runs: int, one_thread: bool) -> dict[str, Any]:
    # The first calls of a size choose a mode.
    for _ in range(3 if one_thread else 30):
        both["irkit"]()
    clock = time.process_time if one_thread else time.perf_counter
    times = harness.interleaved(both, runs, clock)
    ratio = times["scikit-learn"]["median_us"] / times["irkit"]["median_us"]
    return {**times, "ratio": ratio}


def summary(found: dict[str, Any], rows: Sequence[int]) -> dict[str, Any]:
    """By batch: the geometric mean of the ratios, the least, and what is slower or wrong."""
    made: dict[str, Any] = {}
    for batch in map(str, rows):
        ratios = {n: f[batch]["ratio"] for n, f in found.items() if "ratio" in f[batch]}
        made[batch] = {
            "pipelines": len(ratios),
            "geometric mean": math.exp(sum(map(math.log, ratios.values())) / max(len(ratios), 1)),
            "least": min(ratios.values(), default=0.0),
            "slower": [n for n, r in ratios.items() if r < 1],
            "wrong": [n for n, f in found.items() if "wrong" in f[batch]],
        }
    return made


def parser(doc: str | None, rows: Sequence[int]) -> argparse.ArgumentParser:
    """Arguments of a suite of models, with the batches that it has by default."""
    made = argparse.ArgumentParser(description=(doc or "").split("\n")[0])
    made.add_argument("names", nargs="*", help="by name; all by default")
    made.add_argument("--rows", type=int, nargs="+", default=list(rows))
    made.add_argument("--one-thread", action="store_true")
    made.add_argument("--runs", type=int, default=15)
    made.add_argument("--out", type=Path, default=None)
    return made


def run(
    suite: str,
    options: argparse.Namespace,
    known: Sequence[str],
    one: Callable[[str], dict[str, Any]],
) -> int:
    """Measure what was asked for, and write it; 0 if every answer is right."""
    if unknown := [n for n in options.names if n not in known]:
        print(f"unknown name '{unknown[0]}': expected {', '.join(known)}")
        return 1
    warnings.simplefilter("ignore")
    found: dict[str, Any] = {}
    limits = harness.peer("threadpoolctl").threadpool_limits
    with limits(1) if options.one_thread else nullcontext():
        for name in options.names or known:
            found[name] = one(name)
            ratios = [(b, found[name][str(b)].get("ratio", 0.0)) for b in options.rows]
            shown = "   ".join(f"{b} rows {ratio:.2f} x" for b, ratio in ratios)
            print(f"{name:32} {shown}", flush=True)
    totals = summary(found, options.rows)
    print(totals)
    harness.write(suite, {"summary": totals, "suites": found}, options.out)
    return int(any(t["wrong"] for t in totals.values()))


def main() -> int:
    """Entry point: 0 if every answer is right."""
    options = parser(__doc__, (1000, 10000)).parse_args()
    asked = (options.rows, options.runs, options.one_thread)
    return run("pipelines", options, list(PIPELINES), lambda name: measure(name, *asked))


if __name__ == "__main__":
    raise SystemExit(main())
