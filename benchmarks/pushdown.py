"""Selections that are pushed down and injected: a plan with them beside the same plan without, in one run.

    python -m benchmarks.pushdown [NAME ...] [--rows 34465] [--runs N] [--out FOLDER]

After figures 9 and 10 of Hummingbird (Nakandala et al., OSDI 2020), with data and a pipeline of irkit's
own: 89 random numbers, of which a twentieth is missing, filled and scaled, beside 29 classes of three
categories each, encoded one-hot; then either a percentile of the columns and a logistic regression, or one
with the L1 penalty, whose coefficients of zero select. Without is the standard pipeline less `checks-to-
limits` and `select-first`. Both give `predict_proba` of the same float64 array, and must be within 1e-9 of
scikit-learn's. They have one thread, are called in turn, and times are of the processor.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import irkit
from benchmarks import harness
from benchmarks.pipelines import IMPUTER, LOGISTIC, STANDARD
from irkit.driver.pipelines import standard

NUMBERS, CLASSES = 89, 29
PASSES = ("checks-to-limits", "select-first")
TOLERANCE = 1e-9


def rows_of(count: int) -> tuple[Any, Any]:
    """Rows and their classes; a third of the numbers counts."""
    random = np.random.default_rng(0)
    numbers = random.normal(size=(count, NUMBERS))
    weights = random.normal(size=NUMBERS) * (random.random(NUMBERS) < 0.3)
    y = (numbers @ weights + random.normal(size=count) > 0).astype(np.int64)
    numbers[random.random(numbers.shape) < 0.05] = np.nan
    classes = random.integers(0, 3, (count, CLASSES)).astype(np.float64)
    return np.concatenate([numbers, classes], axis=1), y


def _sk(path: str, *arguments: Any, **parameters: Any) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(harness.peer(f"sklearn.{module}"), name)(*arguments, **parameters)


def _model(*rest: Any) -> Any:
    numbers = _sk("pipeline.make_pipeline", _sk(IMPUTER), _sk(STANDARD))
    one_hot = _sk("preprocessing.OneHotEncoder", handle_unknown="ignore")
    parts = [(numbers, range(NUMBERS)), (one_hot, range(NUMBERS, NUMBERS + CLASSES))]
    columns = [(str(i), part, list(which)) for i, (part, which) in enumerate(parts)]
    return _sk(
        "pipeline.make_pipeline",
        _sk("compose.ColumnTransformer", columns, sparse_threshold=0),
        *rest,
    )


def _pushed(percentile: int) -> Callable[[], Any]:
    return lambda: _model(
        _sk("feature_selection.SelectPercentile", percentile=percentile), _sk(LOGISTIC)
    )


def _injected(penalty: float) -> Callable[[], Any]:
    return lambda: _model(_sk(LOGISTIC, l1_ratio=1, C=penalty, solver="liblinear"))


MODELS: dict[str, Callable[[], Any]] = {
    **{f"push-down {p / 100:g}": _pushed(p) for p in (20, 40, 60, 80)},
    **{f"injection {c:g}": _injected(c) for c in (0.001, 0.01, 0.1, 1)},
}


@contextmanager
def without(*names: str) -> Generator[None]:
    """The standard pipeline less some passes."""
    level, whole = standard.STANDARD["graph"], list(standard.STANDARD["graph"])
    level[:] = [name for name in whole if name not in names]
    try:
        yield
    finally:
        level[:] = whole


def _compiled(model: Any) -> Any:
    return irkit.compile(model, target="cpu", device="cpu1", dtype="float64", mode="serial")


def measure(name: str, rows: int, runs: int) -> dict[str, Any]:
    """Times of both plans and of scikit-learn; no times where an answer is wrong."""
    x, y = rows_of(rows)
    model = MODELS[name]().fit(x, y)
    plans: dict[str, Any] = {"with": _compiled(model)}
    with without(*PASSES):
        plans["without"] = _compiled(model)
    plans["scikit-learn"] = model
    want = model.predict_proba(x)
    for plan, program in plans.items():
        if np.abs(program.predict_proba(x) - want).max() > TOLERANCE:
            return {"wrong": f"the plan {plan} is not what scikit-learn answers"}
    seconds: dict[str, list[float]] = {plan: [] for plan in plans}
    for _ in range(runs):
        for plan, program in plans.items():
            start = time.process_time()
            program.predict_proba(x)
            seconds[plan].append(time.process_time() - start)
    found: dict[str, Any] = {plan: harness.spread(s) for plan, s in seconds.items()}
    read = int((model[-1].coef_ != 0).sum())
    ratio = found["without"]["median_us"] / found["with"]["median_us"]
    return {"coefficients": read, **found, "ratio": ratio}


def main(arguments: list[str] | None = None) -> int:
    """Entry point: 0 if every answer is right."""
    parser = argparse.ArgumentParser(
        "irkit-bench pushdown", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("names", nargs="*", help="by name; all by default")
    parser.add_argument("--rows", type=int, default=34_465)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args(arguments)
    if unknown := [n for n in options.names if n not in MODELS]:
        message = f"unknown name '{unknown[0]}': expected {', '.join(MODELS)}"
        parser.exit(1, f"irkit-bench: error: {message}\n")
    warnings.simplefilter("ignore")
    suites: dict[str, Any] = {}
    with harness.peer("threadpoolctl").threadpool_limits(1):
        for name in options.names or MODELS:
            suites[name] = measure(name, options.rows, options.runs)
            print(f"{name:20} {suites[name].get('ratio', 0.0):.2f} x", flush=True)
    print(harness.write("pushdown", {"suites": suites}, options.out))
    return int(any("wrong" in found for found in suites.values()))


if __name__ == "__main__":
    raise SystemExit(main())
