"""The CPU suites: the forest on 10 000 rows, one row through a pipeline, compile time, networks.

    python -m benchmarks.cpu [forest] [one_row] [compile_time] [networks] [--out FOLDER]

Peers run in the same process and take turns with irkit, call by call. Answers are compared first; a
wrong one is recorded instead of a time. Peers that are not installed are named as such.
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
TRAINING_ROWS = 20_000
TREES, DEPTH, FEATURES = 500, 8, 28


def data(rows: int, seed: int = 0) -> tuple[Any, Any]:
    """Float32 rows and a binary label that takes deep trees to learn."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, FEATURES), dtype=np.float32)
    score = x[:, :10] @ np.linspace(-1, 1, 10) + 2 * np.sin(3 * x[:, 10]) + x[:, 11] * x[:, 12]
    return x, (score + rng.standard_normal(rows) > 0).astype(np.int32)


def lightgbm_forest() -> Any:
    """500 trees of depth 8."""
    settings: dict[str, Any] = {"num_leaves": 255, "max_depth": DEPTH, "verbose": -1, "n_jobs": 2}
    lightgbm = harness.peer("lightgbm")
    return lightgbm.LGBMClassifier(n_estimators=TREES, **settings).fit(*data(TRAINING_ROWS))


def forest() -> dict[str, Any]:
    """predict_proba of 10 000 rows: LightGBM's, scikit-learn's and XGBoost's forests of one shape."""
    sklearn, xgboost = harness.peer("sklearn.ensemble"), harness.peer("xgboost")
    shape: dict[str, Any] = {"n_estimators": TREES, "max_depth": DEPTH, "n_jobs": 2}
    train, (x, _) = data(TRAINING_ROWS), data(ROWS, 1)
    models = {
        "LightGBM": lightgbm_forest(),
        "scikit-learn": sklearn.RandomForestClassifier(**shape, random_state=0).fit(*train),
        "XGBoost": xgboost.XGBClassifier(**shape).fit(*train),
    }
    found: dict[str, Any] = {"rows": ROWS}
    for name, model in models.items():
        found[name] = forest_of(name, model, x, hummingbird(model, x) if name == "LightGBM" else {})
    return found


def forest_of(name: str, model: Any, x: Any, peers: dict[str, Any]) -> dict[str, Any]:
    """One forest: irkit, the library itself and `peers`, those of them that give the right answers."""
    program, want = irkit.compile(model, target="cpu", dtype="float32"), model.predict_proba(x)
    runs: dict[str, Callable[[], Any]] = {
        f"irkit on {name}'s forest": lambda: program.predict_proba(x),
        f"{name}'s own predict_proba": lambda: model.predict_proba(x),
    }
    found: dict[str, Any] = {}
    for label, run in peers.items():
        if not callable(run):
            found[label] = run
        elif (off := harness.largest_error(run(), want)) > 1e-5:
            found[label] = {"wrong": off}
        else:
            runs[label] = run

    def measure() -> dict[str, Any]:
        for _ in range(20):  # `auto` tries its modes on the first calls
            program.predict_proba(x)
        times = harness.interleaved(runs, 15)
        return {**times, "modes": program.report()["measured"]}

    off = harness.largest_error(program.predict_proba(x), want)
    return {**harness.gated(off, 1e-6, measure), **found}


def hummingbird(model: Any, x: Any) -> dict[str, Any]:
    """Hummingbird's strategies on PyTorch, as functions; or a word where it is not installed.

    Not its third, gemm: for 500 trees of 255 leaves that is gigabytes of intermediates and minutes.
    """
    try:
        torch, convert = harness.peer("torch"), harness.peer("hummingbird.ml").convert
    except ImportError:
        return {"Hummingbird": {"absent": "torch and hummingbird-ml are not installed"}}
    torch.set_num_threads(2)

    def made(strategy: str) -> Callable[[], Any]:
        converted = convert(model, "torch", extra_config={"tree_implementation": strategy})
        return lambda: converted.predict_proba(x)

    return {f"Hummingbird {name}": made(name) for name in ("perf_tree_trav", "tree_trav")}


def one_row() -> dict[str, Any]:
    """One row through StandardScaler and a 100-tree forest, the Python call included."""
    datasets, ensemble = harness.peer("sklearn.datasets"), harness.peer("sklearn.ensemble")
    pipeline, scaling = harness.peer("sklearn.pipeline"), harness.peer("sklearn.preprocessing")
    x, y = datasets.load_breast_cancer(return_X_y=True)
    steps = scaling.StandardScaler(), ensemble.RandomForestClassifier(100, random_state=0)
    model = pipeline.make_pipeline(*steps).fit(x, y)
    program = irkit.compile(model, target="cpu", dtype="float64")
    row = np.ascontiguousarray(x[:1])
    # Every row, one by one: that is the path which is timed.
    got = np.concatenate(
        [program.predict_proba(np.ascontiguousarray(r)) for r in np.split(x, len(x))]
    )
    return harness.gated(
        harness.largest_error(got, model.predict_proba(x)),
        1e-12,
        lambda: {
            "irkit predict_proba": harness.timed(lambda: program.predict_proba(row), 2000),
            "irkit call": harness.timed(lambda: program(row), 2000),
            "scikit-learn predict_proba": harness.timed(lambda: model.predict_proba(row), 50),
        },
    )


# The answer to 100 rows goes back too: a program that is ready early and wrong is not ready.
_COMPILE = """
import json, sys, time
start = time.perf_counter()
import lightgbm, numpy as np
model = lightgbm.Booster(model_file=sys.argv[1])
read = time.perf_counter()
import irkit
import irkit.driver.compiler.compile
imported = time.perf_counter()
program = irkit.compile(model, target="cpu", dtype="float32")
compiled = time.perf_counter()
x = np.load(sys.argv[2])
first = program(x[:1])
done = time.perf_counter()
off = float(np.abs(program.predict(x) - model.predict(x)).max())
print(json.dumps({
    "max error": off,
    "import LightGBM and read the model, s": read - start,
    "import irkit, s": imported - read,
    "compile, s": compiled - imported,
    "first call, s": done - compiled,
    "model to first answer, s": done - read,
}))
"""


def compile_time() -> dict[str, Any]:
    """The 500-tree model in new processes: with an empty cache, then with what the first one left."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        path, rows = Path(folder, "model.txt"), Path(folder, "rows.npy")
        lightgbm_forest().booster_.save_model(path)
        np.save(rows, data(100, 1)[0])
        environment = {**os.environ, "IRKIT_CACHE_DIR": str(Path(folder, "cache"))}
        for name in ("cold", "warm", "warm again"):
            seconds = _in_a_process(_COMPILE, environment, path, rows)
            off = seconds.pop("max error")
            found[name] = harness.gated(off, 1e-6, lambda s=seconds: s)
    return found


def _in_a_process(source: str, environment: dict[str, str], *arguments: Path) -> dict[str, Any]:
    """What a program prints as JSON, run in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-c", source, *map(str, arguments)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise RuntimeError(f"a measured process failed:\n{run.stderr}")
    return json.loads(run.stdout)


def networks() -> dict[str, Any]:
    """Small networks against ONNX Runtime, each mode."""
    models = {"mlp": mlp(), "cnn": small_cnn(), "lstm 2x64, 20 steps": lstm_stack(2, 64, 64, 20)}
    return {name: network(model) for name, model in models.items()}


def network(model: Any) -> dict[str, Any]:
    """One network; 64 rows where the batch is free. Each mode has its own error."""
    runtime, rng = harness.peer("onnxruntime"), np.random.default_rng(0)
    settings = runtime.SessionOptions()
    settings.intra_op_num_threads = len(os.sched_getaffinity(0))
    session = runtime.InferenceSession(model.SerializeToString(), settings)
    inputs: dict[str, Any] = {
        i.name: rng.standard_normal(
            [d if isinstance(d, int) else 64 for d in i.shape], dtype=np.float32
        )
        for i in session.get_inputs()
    }
    arrays, want = list(inputs.values()), session.run(None, inputs)
    runs: dict[str, Callable[[], Any]] = {"ONNX Runtime": lambda: session.run(None, inputs)}
    found: dict[str, Any] = {}
    for mode in ("serial", "per-op", "per-wave", "persistent"):
        program = irkit.compile(model, target="cpu", mode=mode)
        got = program.run(arrays)
        off = max(harness.largest_error(g, w) for g, w in zip(got, want, strict=True))
        found[f"irkit {mode}"] = harness.gated(off, 1e-5, dict)
        if off <= 1e-5:
            runs[f"irkit {mode}"] = lambda p=program: p.run(arrays)
    times = harness.interleaved(runs)
    return {name: {**found.get(name, {}), **times.get(name, {})} for name in {**times, **found}}


SUITES: dict[str, Callable[[], dict[str, Any]]] = {
    "forest": forest,
    "one_row": one_row,
    "compile_time": compile_time,
    "networks": networks,
}


def main(arguments: list[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser("irkit-bench cpu", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("suites", nargs="*", help=f"of {', '.join(SUITES)}; all by default")
    parser.add_argument("--out", type=Path, default=None, help="folder for cpu.json")
    options = parser.parse_args(arguments)
    unknown = [s for s in options.suites if s not in SUITES]
    if unknown:
        message = f"unknown suite '{unknown[0]}': expected {', '.join(SUITES)}"
        parser.exit(1, f"irkit-bench: error: {message}\n")
    suites: dict[str, Any] = {}
    for name in options.suites or SUITES:
        suites[name] = SUITES[name]()
        harness.show(name, suites[name])
    print(harness.write("cpu", {"suites": suites}, options.out))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
