"""Single operators by Hummingbird on many rows, and by ONNX Runtime on one, beside irkit on the same float32.

Each of the two libraries may be absent, which the result then says. The ratio is that of the better of
Hummingbird's backends to irkit; all it does is in float32, and its error stands beside its times.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import irkit
from benchmarks import harness

METHODS = ("predict_proba", "predict", "transform")
BACKENDS = ("torch", "torch.jit")
TOLERANCE = 1e-4
"""Of float32, relative to the largest value; what is further off has no times."""
_BLOCKS = 5
_REFUSALS = (AttributeError, NotImplementedError, RuntimeError, TypeError, ValueError)
"""What the converters raise of what they do not take."""
_WITHOUT_ZIPMAP = {"zipmap": False}
Call = Callable[[], Any]


def compare(
    model: Any, x: Any, rows: int, runs: int, one_thread: bool, clock: Callable[[], float]
) -> dict[str, Any]:
    """Times of irkit and Hummingbird on `rows` rows drawn from x; of irkit, scikit-learn and ONNX Runtime
    on one."""
    mode = "serial" if one_thread else "auto"
    program = irkit.compile(model, "cpu", dtype="float32", mode=mode)
    method = next(m for m in METHODS if m in program.methods)
    part = x[np.random.default_rng(0).integers(0, x.shape[0], rows)].astype(np.float32)
    ours, theirs = getattr(program, method), getattr(model, method)
    many = _hummingbird(model, method, part, one_thread)
    row = np.ascontiguousarray(part[:1])
    one = _onnx_runtime(model, method, row)
    for _ in range(3 if one_thread else 30):  # the first calls of a size choose a mode
        ours(part)
        ours(row)
    want, want_one = theirs(part), theirs(row)
    return {
        f"{rows} rows of float32": _timed(
            {"irkit": partial(ours, part), **many}, want, runs, clock
        ),
        "one row of float32": _timed(
            {"irkit": partial(ours, row), "scikit-learn": partial(theirs, row), **one},
            want_one,
            max(runs, 200),
            clock,
        ),
    }


def _timed(
    candidates: dict[str, Any], want: Any, runs: int, clock: Callable[[], float]
) -> dict[str, Any]:
    """Times by candidate, taken in turn, block by block: PyTorch's threads spin after a call. Of those that
    are wrong their error, of words the words."""
    said: dict[str, Any] = {n: c for n, c in candidates.items() if not callable(c)}
    calls: dict[str, Call] = {n: c for n, c in candidates.items() if callable(c)}
    errors = {n: _off(call(), want) for n, call in calls.items()}
    right = {n: c for n, c in calls.items() if errors[n] <= TOLERANCE}
    blocks = min(_BLOCKS, runs)
    times = harness.in_blocks(right, blocks, -(-runs // blocks), clock=clock)
    found: dict[str, Any] = {n: {"wrong": e} for n, e in errors.items() if n not in right}
    found |= {n: {"max error": errors[n], **times[n]} for n in right}
    rest = [times[n]["median_us"] for n in right if n not in ("irkit", "scikit-learn")]
    if rest and "irkit" in right:
        found["ratio"] = min(rest) / times["irkit"]["median_us"]
    return {**found, **said}


def _off(got: Any, want: Any) -> float:
    """Largest difference, relative to the largest value; of labels the share that differs."""
    if want.dtype.kind in "iu":
        wrong: Any = np.asarray(got) != want
        return float(wrong.mean())
    return harness.largest_error(got, want) / max(1.0, float(np.abs(want).max()))


def _hummingbird(model: Any, method: str, rows: Any, one_thread: bool) -> dict[str, Any]:
    """What Hummingbird makes of a model, by backend."""
    try:
        torch, convert = harness.peer("torch"), harness.peer("hummingbird.ml").convert
    except ImportError:
        return {"Hummingbird": {"absent": "torch and hummingbird-ml are not installed"}}
    torch.set_num_threads(1 if one_thread else harness.machine()["cores"])
    found: dict[str, Any] = {}
    for backend in BACKENDS:
        try:
            made = convert(model, backend, rows[:100])
            getattr(made, method)(rows[:100])
        except _REFUSALS as problem:
            found[f"Hummingbird {backend}"] = {"refused": str(problem)[:200]}
        except ImportError as missing:
            found[f"Hummingbird {backend}"] = {"absent": str(missing)[:200]}
        else:
            found[f"Hummingbird {backend}"] = partial(getattr(made, method), rows)
    return found


def _onnx_runtime(model: Any, method: str, row: Any) -> dict[str, Any]:
    """A model as ONNX Runtime runs it, one thread, on one row."""
    try:
        runtime, converter = harness.peer("onnxruntime"), harness.peer("skl2onnx")
    except ImportError:
        return {"ONNX Runtime": {"absent": "onnxruntime and skl2onnx are not installed"}}
    try:
        options = _WITHOUT_ZIPMAP if method == "predict_proba" else None
        made = converter.to_onnx(model, row, options=options)
        settings = runtime.SessionOptions()
        settings.intra_op_num_threads = 1
        session = runtime.InferenceSession(
            made.SerializeToString(), settings, providers=["CPUExecutionProvider"]
        )
    except (NameError, *_REFUSALS) as problem:
        return {"ONNX Runtime": {"refused": str(problem)[:200]}}
    given = {session.get_inputs()[0].name: row}
    names = [output.name for output in session.get_outputs()]
    wanted = [names[1 if method == "predict_proba" else 0]]
    return {"ONNX Runtime": lambda: session.run(wanted, given)[0]}
