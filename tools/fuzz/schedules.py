"""Mutants of proved schedules: what the proof still accepts must run right, in every mode it allows.

Schedules of models of every front end, on a small vDevice and on a GPU's, are changed in their text. The old
proof must not be taken for that of the mutant. A mutant that a new proof accepts must be emitted, and
its rTasks, run one at a time on poisoned memory in orders that each proved mode allows, must give what
its function of launches does.
"""

from __future__ import annotations

import random
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException

from irkit.context import IrkitContext
from irkit.driver.compiler.models import read_model
from irkit.driver.diagnostics.diagnostic import UserError
from irkit.driver.execution.arrays import random_inputs
from irkit.driver.execution.entry_point import entry_point_of
from irkit.driver.files.parsing import parse_module
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.driver.verification.verifier import check_module
from irkit.errors import InvalidModelError, ScheduleError, UnsupportedError
from irkit.interp.schedule import run_schedule
from irkit.interp.task import run_task
from irkit.lower.task_to_numba.emit import emit_module
from irkit.passes.task.program_text import plans_of, program_of
from irkit.passes.task.proof import require_proof
from irkit.passes.task.verify_schedule import VerifySchedule
from irkit.row_ranges import is_in
from irkit.schedule.modes import Mode
from irkit.weights import WeightStore
from tools.fuzz.finding import Finding, TookTooLong, limit
from tools.fuzz.schedule_mutants import MUTATIONS, Text, without_names

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "unit"))

from random_graphs import RandomGraph  # noqa: E402
from stateful_graphs import StatefulGraph  # noqa: E402

DEVICES = ("test4", "test4", "test4", "h200")
ORDERS = 6
# Rows at which plans for ranges of them are tried, at most.
MOST_ROWS = 40
SECONDS = 120.0
counts: Counter[tuple[str, str]] = Counter()
"""(kind of mutation, what became of it)"""


def _forest() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    rng = np.random.default_rng(0)
    x = rng.standard_normal((40, 4))
    return RandomForestClassifier(3, max_depth=3, random_state=0).fit(x, x[:, 0] > 0)


def _pipeline() -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(1)
    x = rng.standard_normal((40, 4))
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(x, np.arange(40) % 3)


def _lightgbm() -> Any:
    from lightgbm import LGBMRegressor

    x = np.random.default_rng(2).standard_normal((60, 4))
    return LGBMRegressor(n_estimators=3, max_depth=3, verbose=-1).fit(x, x[:, 0])


def _xgboost() -> Any:
    from xgboost import XGBClassifier

    x = np.random.default_rng(3).standard_normal((60, 4))
    return XGBClassifier(n_estimators=3, max_depth=2).fit(x, (x[:, 0] > 0).astype(int))


def _lstm() -> Any:
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(4)
    w, r, b = (
        (0.5 * rng.standard_normal(s)).astype(np.float32) for s in ((1, 16, 3), (1, 16, 4), (1, 32))
    )
    node = helper.make_node("LSTM", ["x", "w", "r", "b"], ["y", "h", "c"], hidden_size=4)
    arrays = {"w": w, "r": r, "b": b}
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node],
        "lstm",
        [value("x", TensorProto.FLOAT, [5, 1, 3])],
        [value("y", TensorProto.FLOAT, [5, 1, 1, 4]), value("h", TensorProto.FLOAT, [1, 1, 4])],
        [numpy_helper.from_array(a, n) for n, a in arrays.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _cnn() -> Any:
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(5)
    w, v = ((0.5 * rng.standard_normal(s)).astype(np.float32) for s in ((4, 2, 3, 3), (64, 3)))
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MaxPool", ["b"], ["c"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Concat", ["c", "c"], ["d"], axis=1),
        helper.make_node("Flatten", ["c"], ["e"]),
        helper.make_node("MatMul", ["e", "v"], ["f"]),
        helper.make_node("Softmax", ["f"], ["y"]),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "cnn",
        [value("x", TensorProto.FLOAT, [1, 2, 8, 8])],
        [value("y", TensorProto.FLOAT, [1, 3]), value("d", TensorProto.FLOAT, [1, 8, 4, 4])],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(v, "v")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _dense() -> Any:
    """Two layers on an open batch: on test4 other rKernels are best for few rows than for many."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(6)
    w, v = ((0.2 * rng.standard_normal(s)).astype(np.float32) for s in ((24, 40), (40, 8)))
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "v"], ["y"]),
    ]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "dense",
        [value("x", TensorProto.FLOAT, ["n", 24])],
        [value("y", TensorProto.FLOAT, ["n", 8])],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(v, "v")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


MODELS: dict[str, Callable[[], Any]] = {
    "dense": _dense,
    "forest": _forest,
    "pipeline": _pipeline,
    "lightgbm": _lightgbm,
    "xgboost": _xgboost,
    "lstm": _lstm,
    "cnn": _cnn,
    **{
        f"random {seed}": (lambda seed=seed: RandomGraph(seed, 9, batch=seed % 3 == 0).model())
        for seed in range(12)
    },
    **{
        f"state {seed}": (lambda seed=seed: StatefulGraph(seed, 1 + seed % 6).model())
        for seed in range(10)
    },
}


def parsed(text: str, weights: WeightStore) -> tuple[IrkitContext, ModuleOp]:
    """A module of this text, verified. Raises UserError."""
    ctx = IrkitContext(weights=weights)
    register_dialects(ctx)
    module = parse_module(ctx, text, "mutant.mlir")
    check_module(module)
    return ctx, module


@cache
def scheduled(name: str, device: str) -> tuple[str, WeightStore]:
    """The proved schedule of a model, as text, and its weights."""
    model = MODELS[name]()
    imported = model if hasattr(model, "module") else read_model(model, "float32")
    ctx = IrkitContext(weights=imported.weights)
    register_dialects(ctx)
    for level in ("graph", "tensor", "task", "schedule"):
        run_level(ctx, imported.module, level, device)
    return str(imported.module), ctx.weights


def mutant(rng: random.Random, text: str) -> tuple[str, str] | None:
    """(kind, changed text); now and then of two changes."""
    kind = rng.choice(list(MUTATIONS))
    changed = MUTATIONS[kind](Text(text), rng)
    if changed is not None and rng.random() < 0.15:
        second = rng.choice(list(MUTATIONS))
        changed = MUTATIONS[second](Text(changed), rng) or changed
    same = changed is None or without_names(changed) == without_names(text)
    return None if same or changed is None else (kind, changed)


def judge(text: str, weights: WeightStore) -> tuple[str, str | None]:
    """What becomes of a mutant: ("refused by ...", None), or ("accepted", what is wrong with it)."""
    try:
        ctx, module = parsed(text, weights)
    except UserError:
        return "refused by the verifier of an op", None
    program = program_of(module)
    try:
        require_proof(module, program)
    except ScheduleError:
        pass
    else:
        return "accepted", "the old proof is taken for that of the mutant"
    try:
        VerifySchedule().apply(ctx, module)
    except PassFailedException as error:
        rule = str(error).partition("rule '")[2].partition("'")[0]
        return f"refused by {rule or 'legality'}", None
    return "accepted", _wrong(ctx, module)


def _wrong(ctx: IrkitContext, module: ModuleOp) -> str | None:
    """What is wrong with an accepted mutant."""
    try:
        emit_module(module, ctx.weights)
    except (UnsupportedError, PassFailedException, ScheduleError) as error:
        return f"proved, but not emitted: {error}"
    plans = plans_of(module)
    if len(plans) > 1:
        sizes = {min(n, MOST_ROWS) for plan in plans for n in plan.row_range if n > 0}
        return next(filter(None, (_wrong_at(ctx, module, n) for n in sorted(sizes))), None)
    return _wrong_at(ctx, module, 5)


def _wrong_at(ctx: IrkitContext, module: ModuleOp, rows: int) -> str | None:
    """What is wrong with the schedule for a number of rows."""
    inputs = random_inputs(entry_point_of(module), 0, batch=rows)
    (program,) = [p for p in plans_of(module) if is_in(p.row_range, rows)]
    modes = [Mode(m.data) for m in program.modes or ()]
    wanted = run_task(module, ctx.weights, inputs)
    for mode in modes:
        for seed in range(ORDERS if mode is not Mode.SERIAL else 1):
            try:
                got = run_schedule(module, ctx.weights, inputs, seed, mode)
            except (ScheduleError, InvalidModelError) as error:
                return f"mode {mode}: {error}"
            if not _same(got, wanted):
                return f"mode {mode}, order {seed}: another answer than the function's"
    return None


def _same(got: list[np.ndarray], wanted: list[np.ndarray]) -> bool:
    return len(got) == len(wanted) and all(
        g.shape == w.shape and np.allclose(g, w, rtol=1e-5, atol=1e-6, equal_nan=True)
        for g, w in zip(got, wanted, strict=True)
    )


def attempt(rng: random.Random) -> Finding | None:
    """One mutant; None if it was refused or is right."""
    name, device = rng.choice(list(MODELS)), rng.choice(DEVICES)
    text, weights = scheduled(name, device)
    made = mutant(rng, text)
    if made is None:
        return None
    kind, changed = made
    what = f"{name} on {device}, {kind}: "
    try:
        with limit(SECONDS):
            outcome, wrong = judge(changed, weights)
    except TookTooLong:
        return Finding(f"{what}longer than {SECONDS:.0f} s", changed.encode(), ".mlir")
    except Exception:  # whatever the proof raises is what is looked for
        return Finding(what + traceback.format_exc(), changed.encode(), ".mlir")
    counts[kind, outcome] += 1
    return Finding(what + wrong, changed.encode(), ".mlir") if wrong is not None else None
