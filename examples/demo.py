"""Small models, SqueezeNet and a NumPy function through irkit: compiled, compared, timed, reported.

    python examples/demo.py          (or: make demo)

Trains a random-forest pipeline on scikit-learn's digits, and gradient-boosted trees over scaled and encoded
columns; makes a two-layer LSTM and a small CNN as ONNX files; takes SqueezeNet from the onnx package. Each
is compiled for the CPU, and for a GPU if there
is one, and every answer is compared with scikit-learn's (equal to the last bit), ONNX Runtime's (up to
rounding, which the order of a sum decides), or the output that comes with the model. A perceptron is trained
to the accuracy of scikit-learn's. A picture of SqueezeNet's schedule and a trace of one run are left in
demo-output/. The exit code is 1 if anything differs.
"""

# pyright: basic, reportArgumentType=false
from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import irkit
from benchmarks.models import lstm_stack, small_cnn
from examples import training_digits
from irkit.driver.compiler.targets import resolve_target

OUTPUT = Path("demo-output")
# Networks have answers of magnitude 1 in float32; sums run in another order than ONNX Runtime's.
ROUNDING = 1e-5


def difference(got: Any, want: Any) -> float:
    """Largest absolute difference of two arrays; infinite if their shapes differ."""
    if got.shape != want.shape:
        return float("inf")
    return float(np.abs(got - want).max())


def microseconds(f: Callable[[], Any], runs: int = 30) -> float:
    """Median time of a call, after warm-up."""
    for _ in range(10):
        f()
    times: list[float] = []
    for _ in range(runs):
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def show_speed(what: str, ours: float, theirs: float, peer: str) -> None:
    """One line of speed, side by side."""
    print(f"  {what:22} irkit {ours:10.1f} us   {peer} {theirs:10.1f} us   {theirs / ours:6.1f}x")


def show_report(program: irkit.CompiledProgram) -> None:
    """What was compiled, and how it runs."""
    report = program.report()
    stages = "  ".join(f"{name} {seconds:.2f}" for name, seconds in report["seconds"].items())
    print(f"  levels (seconds)       {stages}")
    for name, op in report["roperators"].items():
        print(f"  rOperator              {name:20} {op['rkernel']:24} {op['rtasks']:4} rTasks")
    steps = f"{report['appends']} appends in {report['waves']} waves, {report['waits']} waits"
    print(f"  schedule               {steps}")
    print(f"  proved                 {report['proved']}")
    print(
        f"  arena                  {report['arena_bytes']} bytes + {report['row_bytes']} a row, "
        f"{report['arena_ratio']:.2f} x the lower bound"
    )
    modes = report["measured"] or {"one size": {"mode": report["mode"]}}
    if not all("mode" in chosen for chosen in modes.values()):
        # Several plans, each for a range of rows.
        modes = {size: mode for plan in modes.values() for size, mode in plan.items()}
    for size, chosen in modes.items():
        measured = "  ".join(f"{m} {t} us" for m, t in chosen.get("microseconds", {}).items())
        print(f"  mode for {size:13} {chosen['mode']}  {measured}")


def digits(target: str) -> bool:
    """StandardScaler and a random forest on the digits."""
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y = load_digits(return_X_y=True)
    train_x, test_x, train_y, _ = train_test_split(x, y, test_size=0.5, random_state=0)
    model = make_pipeline(StandardScaler(), RandomForestClassifier(100, random_state=0))
    model.fit(train_x, train_y)
    start = time.perf_counter()
    program = irkit.compile(model, target=target)
    print(f"\nRandom forest on digits, {target}: compiled in {time.perf_counter() - start:.1f} s")
    labels, wanted = model.predict(test_x), model.predict_proba(test_x)
    equal = int((program.predict(test_x) == labels).sum())
    off = difference(program.predict_proba(test_x), wanted)
    print(f"  answers                {equal} of {len(labels)} labels equal")
    print(f"                         probabilities of all rows at once differ by at most {off:g}")
    rows = [program.predict_proba(test_x[i : i + 1]) for i in range(len(test_x))]
    singly = difference(np.concatenate(rows), wanted)
    print(f"                         probabilities row by row differ by at most {singly:g}")
    one = np.ascontiguousarray(test_x[:1])
    show_speed(
        f"{len(test_x)} rows",
        microseconds(lambda: program.predict_proba(test_x)),
        microseconds(lambda: model.predict_proba(test_x), 5),
        "scikit-learn",
    )
    show_speed(
        "1 row",
        microseconds(lambda: program.predict_proba(one), 300),
        microseconds(lambda: model.predict_proba(one), 5),
        "scikit-learn",
    )
    show_report(program)
    return equal == len(labels) and off == singly == 0


def boosted_columns(target: str) -> bool:
    """Scaled and one-hot encoded columns of the diabetes data set, and gradient-boosted trees."""
    from sklearn.compose import make_column_transformer
    from sklearn.datasets import load_diabetes
    from sklearn.ensemble import GradientBoostingRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    x, y = load_diabetes(return_X_y=True)
    columns = make_column_transformer(
        (StandardScaler(), [0, *range(2, 10)]), (OneHotEncoder(), [1]), sparse_threshold=0
    )
    model = make_pipeline(columns, GradientBoostingRegressor(random_state=0)).fit(x, y)
    start = time.perf_counter()
    program = irkit.compile(model, target=target)
    print(
        f"\nBoosted trees over columns, {target}: compiled in {time.perf_counter() - start:.1f} s"
    )
    rows = np.tile(x, (10, 1))
    off = difference(program.predict(rows), model.predict(rows))
    print(f"  answers                {len(rows)} rows, values differ by at most {off:g}")
    for some in (rows, rows[:1]):
        show_speed(
            f"{len(some)} rows" if len(some) > 1 else "1 row",
            microseconds(lambda some=some: program.predict(some)),
            microseconds(lambda some=some: model.predict(some), 10),
            "scikit-learn",
        )
    show_report(program)
    return off == 0


def network(name: str, path: Path, target: str) -> bool:
    """An ONNX file against ONNX Runtime."""
    import onnxruntime

    start = time.perf_counter()
    program = irkit.compile(path, target=target)
    print(f"\n{name}, {target}: compiled in {time.perf_counter() - start:.1f} s")
    session = onnxruntime.InferenceSession(path)
    rng = np.random.default_rng(0)
    inputs = {i.name: rng.standard_normal(i.shape, dtype=np.float32) for i in session.get_inputs()}
    arrays = list(inputs.values())
    want, got = session.run(None, inputs), program.run(arrays)
    off = max(difference(g, w) for g, w in zip(got, want, strict=True))
    print(f"  answers                {len(got)} outputs, values differ by at most {off:.1e}")
    show_speed(
        "one run",
        microseconds(lambda: program.run(arrays)),
        microseconds(lambda: session.run(None, inputs)),
        "ONNX Runtime",
    )
    show_report(program)
    return off < ROUNDING


def squeezenet(target: str) -> bool:
    """SqueezeNet as the onnx package has it, against the output that is kept beside it."""
    import onnx

    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    path = folder / "light_squeezenet.onnx"
    expected = onnx.TensorProto.FromString((folder / "light_squeezenet_output_0.pb").read_bytes())
    # The input that the onnx package's own tests make.
    shape = (1, 3, 224, 224)
    x = (np.arange(np.prod(shape)) / np.prod(shape)).reshape(shape).astype(np.float32)
    right = network("SqueezeNet", path, target)
    program = irkit.compile(path, target=target)
    off = difference(program(x), onnx.numpy_helper.to_array(expected))
    print(f"  the model's own output differs by at most {off:.1e}")
    if target == "cpu":
        show_schedule(program, x)
    return right and off < ROUNDING


def black_scholes(price: Any, strike: Any, t: Any, rate: float = 0.1, vol: float = 0.2) -> Any:
    """Prices of European calls and puts: plain NumPy."""
    spread = vol * np.sqrt(t)
    d1 = (np.log(price / strike) + (rate + vol * vol / 2) * t) / spread
    near, far = (1 / (1 + np.exp(-1.702 * d)) for d in (d1, d1 - spread))
    discounted = strike * np.exp(-rate * t)
    call = price * near - discounted * far
    return call, call - price + discounted


def numpy_function(target: str) -> bool:
    """A function of NumPy arrays, as it stands, beside NumPy."""
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(0.5, 2.0, 1 << 20) for _ in range(3)]
    compiled = irkit.jit(target=target)(black_scholes)
    start = time.perf_counter()
    got = compiled(*arrays)
    print(f"\nBlack-Scholes in NumPy, {target}: compiled in {time.perf_counter() - start:.1f} s")
    off = max(difference(g, w) for g, w in zip(got, black_scholes(*arrays), strict=True))
    print(f"  answers                2 arrays of 2^20, values differ by at most {off:.1e}")
    show_speed(
        "2^20 options",
        microseconds(lambda: compiled(*arrays), 10),
        microseconds(lambda: black_scholes(*arrays), 5),
        "NumPy",
    )
    if target == "cpu":
        from irkit.driver.tools.schedule_views import write_schedule_view

        OUTPUT.mkdir(exist_ok=True)
        path = OUTPUT / "black-scholes.svg"
        write_schedule_view(str(path), compiled.timelines(), "Black-Scholes: planned")
        print(f"  picture                {path}")
    return off < 1e-12


def show_schedule(program: irkit.CompiledProgram, x: Any) -> None:
    """Leave a picture of the schedule and a trace behind."""
    from irkit.driver.tools.schedule_views import write_schedule_view, write_trace

    OUTPUT.mkdir(exist_ok=True)
    timelines = program.timelines([x])
    for name in ("schedule.svg", "schedule.html"):
        write_schedule_view(str(OUTPUT / name), timelines, "SqueezeNet: planned and measured")
    write_trace(str(OUTPUT / "trace.json"), timelines[1:], program.report()["seconds"])
    print(f"  picture                {OUTPUT / 'schedule.html'} and {OUTPUT / 'schedule.svg'}")
    print(f"  trace                  {OUTPUT / 'trace.json'}, for ui.perfetto.dev")


def main() -> int:
    """Every model on every target here; 1 if an answer differs."""
    import onnx

    targets = ["cpu", "cuda"] if resolve_target("auto") == "cuda" else ["cpu"]
    right: list[bool] = []
    with tempfile.TemporaryDirectory() as folder:
        files = {
            "Two-layer LSTM": (Path(folder, "lstm.onnx"), lstm_stack(2, 32, 16, 20)),
            "Small CNN": (Path(folder, "cnn.onnx"), small_cnn()),
        }
        for path, model in files.values():
            onnx.save(model, path)
        for target in targets:
            right.append(digits(target))
            right.append(boosted_columns(target))
            right += [network(name, path, target) for name, (path, _) in files.items()]
            right.append(squeezenet(target))
            right.append(numpy_function(target))
            right.append(training_digits.digits(target))
    print(f"\n{sum(right)} of {len(right)} comparisons agree")
    return 0 if all(right) else 1


if __name__ == "__main__":
    raise SystemExit(main())
