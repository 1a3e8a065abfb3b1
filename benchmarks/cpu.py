"""The CPU suites: the forest on 10 000 rows, one row through a pipeline, compile time, networks.

    python -m benchmarks.cpu [forest] [one_row] [compile_time] [networks] [--out FOLDER]

Peers run in the same process and take turns with irkit, call by call. Answers are compared first; a
wrong one is recorded instead of a time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import irkit
from benchmarks import harness
from benchmarks.models import lstm_stack, mlp, small_cnn

ROWS = 10_000
TREES, DEPTH, FEATURES = 500, 8, 28


def data(rows: int, seed: int = 0) -> tuple[Any, Any]:
    """Float32 rows and a binary label that takes deep trees to learn."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, FEATURES), dtype=np.float32)
    score = x[:, :10] @ np.linspace(-1, 1, 10) + 2 * np.sin(3 * x[:, 10]) + x[:, 11] * x[:, 12]
    return x, (score + rng.standard_normal(rows) > 0).astype(np.int32)


def lightgbm_forest() -> Any:
    """500 trees of depth 8."""
    import lightgbm

    settings: dict[str, Any] = {"num_leaves": 255, "max_depth": DEPTH, "verbose": -1, "n_jobs": 2}
    return lightgbm.LGBMClassifier(n_estimators=TREES, **settings).fit(*data(20_000))


def largest_error(got: Any, want: Any) -> float:
    """Largest absolute difference."""
    return float(np.abs(np.asarray(got, np.float64) - want).max())


def forest() -> dict[str, Any]:
    """predict_proba of 10 000 rows: LightGBM's, scikit-learn's and XGBoost's forests of one shape."""
    import xgboost
    from sklearn.ensemble import RandomForestClassifier

    x, _ = data(ROWS, 1)
    train = data(20_000)
    models = {
        "LightGBM": lightgbm_forest(),
        "scikit-learn": RandomForestClassifier(
            TREES, max_depth=DEPTH, n_jobs=2, random_state=0
        ).fit(*train),
        "XGBoost": xgboost.XGBClassifier(n_estimators=TREES, max_depth=DEPTH, n_jobs=2).fit(*train),
    }
    found: dict[str, Any] = {"rows": ROWS}
    for name, model in models.items():
        program = irkit.compile(model, target="cpu", dtype="float32")
        off = largest_error(program.predict_proba(x), model.predict_proba(x))
        if off > 1e-6:
            found[name] = {"wrong": off}
            continue
        runs: dict[str, Callable[[], Any]] = {
            f"irkit on {name}'s forest": lambda p=program: p.predict_proba(x),
            f"{name}'s own predict_proba": lambda m=model: m.predict_proba(x),
        }
        if name == "LightGBM" and (peer := hummingbird(model, x)) is not None:
            runs["Hummingbird (torch, perfect traversal)"] = peer
        for _ in range(20):
            program.predict_proba(x)
        found[name] = {
            "max error": off,
            **harness.interleaved(runs, 15),
            "modes": program.report()["measured"],
        }
    return found


def hummingbird(model: Any, x: Any) -> Callable[[], Any] | None:
    """Hummingbird's fastest strategy for this depth, if it is installed."""
    try:
        import torch
        from hummingbird.ml import convert
    except ImportError:
        return None
    torch.set_num_threads(2)
    made = convert(model, "torch", extra_config={"tree_implementation": "perf_tree_trav"})
    return lambda: made.predict_proba(x)


def one_row() -> dict[str, Any]:
    """One row through StandardScaler and a 100-tree forest, the Python call included."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), RandomForestClassifier(100, random_state=0)).fit(x, y)
    program = irkit.compile(model, target="cpu", dtype="float64")
    row = np.ascontiguousarray(x[:1])
    off = largest_error(program.predict_proba(x), model.predict_proba(x))
    return {
        "max error": off,
        "irkit predict_proba": harness.timed(lambda: program.predict_proba(row), 2000),
        "irkit call": harness.timed(lambda: program(row), 2000),
        "scikit-learn predict_proba": harness.timed(lambda: model.predict_proba(row), 50),
    }


_COMPILE = """
import json, sys, time
start = time.perf_counter()
import lightgbm, numpy as np
model = lightgbm.Booster(model_file=sys.argv[1])
ready = time.perf_counter()
import irkit
program = irkit.compile(model, target="cpu", dtype="float32")
compiled = time.perf_counter()
value = program(np.zeros((1, 28), np.float32))
done = time.perf_counter()
print(json.dumps({"import LightGBM and read": ready - start, "import irkit and compile": compiled - ready,
                  "first call": done - compiled, "model to first answer": done - ready}))
"""


def compile_time() -> dict[str, Any]:
    """The 500-tree model in new processes: with an empty cache, then with what the first one left."""
    found: dict[str, Any] = {"unit": "seconds, one process each"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.txt")
        lightgbm_forest().booster_.save_model(path)
        environment = {**os.environ, "IRKIT_CACHE_DIR": str(Path(folder, "cache"))}
        for name in ("cold", "warm", "warm again"):
            output = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", _COMPILE, str(path)],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            found[name] = json.loads(output.stdout)
    return found


def networks() -> dict[str, Any]:
    """Small networks against ONNX Runtime, each mode."""
    import onnxruntime

    found: dict[str, Any] = {}
    models = {"mlp": mlp(), "cnn": small_cnn(), "lstm 2x64, 20 steps": lstm_stack(2, 64, 64, 20)}
    for name, model in models.items():
        session = onnxruntime.InferenceSession(model.SerializeToString())
        rng = np.random.default_rng(0)
        inputs = {
            i.name: rng.standard_normal(
                [d if isinstance(d, int) else 64 for d in i.shape], dtype=np.float32
            )
            for i in session.get_inputs()
        }
        arrays, want = list(inputs.values()), session.run(None, inputs)
        runs: dict[str, Callable[[], Any]] = {
            "ONNX Runtime": lambda s=session, i=inputs: s.run(None, i)
        }
        off = 0.0
        for mode in ("serial", "per-op", "per-wave", "persistent"):
            program = irkit.compile(model, target="cpu", mode=mode)
            off = max(
                off, *(largest_error(g, w) for g, w in zip(program.run(arrays), want, strict=True))
            )
            runs[f"irkit {mode}"] = lambda p=program, a=arrays: p.run(a)
        found[name] = {
            "max error": off,
            **(harness.interleaved(runs) if off < 1e-5 else {"wrong": off}),
        }
    return found


SUITES: dict[str, Callable[[], dict[str, Any]]] = {
    "forest": forest,
    "one_row": one_row,
    "compile_time": compile_time,
    "networks": networks,
}


def main(arguments: list[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("suites", nargs="*", help=f"of {', '.join(SUITES)}; all by default")
    parser.add_argument("--out", type=Path, default=None, help="folder for cpu.json")
    options = parser.parse_args(arguments)
    unknown = [s for s in options.suites if s not in SUITES]
    if unknown:
        parser.error(f"unknown suite '{unknown[0]}': expected {', '.join(SUITES)}")
    results: dict[str, Any] = {"suites": {}}
    for name in options.suites or SUITES:
        results["suites"][name] = SUITES[name]()
        harness.show(name, results["suites"][name])
    print(harness.write("cpu", results, options.out))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
