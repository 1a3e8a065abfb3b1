"""One runner of passes behind `irkit.compile` and the tools: the same checks, the same errors."""

from __future__ import annotations

import importlib
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from passes_for_tests import TEST_PASSES
from xdsl.dialects.builtin import UnknownLoc

import irkit
from irkit.context import IrkitContext
from irkit.driver.diagnostics.locations import place_of
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.pipelines.standard import STANDARD
from irkit.driver.registry import register_dialects
from irkit.driver.tools.opt import OptTool
from irkit.driver.tools.run import RunTool
from irkit.driver.tools.translate import TranslateTool
from irkit.passes import PASSES

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ["new_op", "new_pass", "own_device", "own_rkernel", "own_tensor_op"]
TEXT = """\
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = graph.add %x, %x : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  %1 = graph.relu %0 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %1 : tensor<?x4xf32>
}
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("IRKIT_CACHE_DIR", "")
    path = tmp_path / "model.mlir"
    path.write_text(TEXT)
    return path


def at_the_end_of(monkeypatch: pytest.MonkeyPatch, level: str, name: str) -> None:
    """Have a pass with a fault run at the end of a level."""
    monkeypatch.setitem(PASSES, name, TEST_PASSES[name])
    monkeypatch.setitem(STANDARD, level, [*STANDARD[level], name])


def run(tool: type, *argv: object) -> tuple[int, str]:
    err = io.StringIO()
    return tool(stdout=io.StringIO(), stderr=err).main([str(a) for a in argv]), err.getvalue()


# What a pass does wrong: how `irkit.compile` says it, and the tools' exit code.
FAULTS = [
    ("test-break-dominance", irkit.InternalError, "'graph.relu' does not dominate|used|defined", 2),
    ("test-break-op", irkit.InternalError, "test-break-op' left IR that does not verify", 2),
    ("test-half-lower", irkit.InternalError, "must produce the tensor level, but 'graph.add'", 2),
    ("test-undo-each-other", irkit.InternalError, "'test-undo-each-other' does not end", 2),
    ("test-fail", irkit.UnsupportedError, "'test-fail' failed: this module is not for me", 1),
    ("test-crash", ZeroDivisionError, "always does this", 2),
]


@pytest.mark.parametrize(("name", "error", "message", "status"), FAULTS)
def test_faults_of_passes_are_the_same_everywhere(
    name: str,
    error: type[Exception],
    message: str,
    status: int,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    at_the_end_of(monkeypatch, "graph", name)
    with pytest.raises(error, match=message):
        irkit.compile(model, target="cpu")
    for tool, flags in (
        (OptTool, ["--to=task"]),
        (RunTool, ["--level=task"]),
        (RunTool, ["--level=numba"]),
    ):
        found, text = run(tool, model, *flags)
        assert found == status, text
        assert name in text


def test_errors_name_the_line(model: Path, monkeypatch: pytest.MonkeyPatch):
    at_the_end_of(monkeypatch, "graph", "test-half-lower")
    with pytest.raises(irkit.InternalError, match=r"model.mlir:2:8: pass 'test-half-lower'"):
        irkit.compile(model, target="cpu")


def test_what_a_level_does_not_have_is_refused_before_a_lowering(model: Path):
    text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
    text += "  %e = tensor.empty() : tensor<4xf32>\n"
    text += "  %y = linalg.sub ins(%x, %x : tensor<4xf32>, tensor<4xf32>) "
    text += "outs(%e : tensor<4xf32>) -> tensor<4xf32>\n"
    model.write_text(f"{text}  func.return %y : tensor<4xf32>\n}}\n")
    message = "requires the tensor level, but 'linalg.sub' does not belong"
    with pytest.raises(irkit.UnsupportedError, match=f"model.mlir:3:8: .*{message}"):
        irkit.compile(model, target="cpu")
    assert message in run(OptTool, model, "--to=task")[1]


def test_errors_of_irkit_keep_their_kind(model: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise irkit.UnsupportedError("this model", ["one reason", "another"])

    monkeypatch.setattr("irkit.passes.task.plan_memory.PlanMemory.apply", refuse)
    with pytest.raises(irkit.UnsupportedError) as caught:
        irkit.compile(model, target="cpu")
    assert caught.value.missing == ("one reason", "another")


def test_locations_survive_compilation():
    ctx = IrkitContext()
    register_dialects(ctx)
    module = irkit.parse(TEXT, "net.mlir")
    for level in ("graph", "tensor", "task"):
        run_level(ctx, module, level, "test4")
        assert not [op for op in module.walk() if isinstance(op.location, UnknownLoc)]
    launch = next(op for op in module.walk() if op.name == "task.launch")
    place = place_of(launch)
    assert place is not None
    assert place.file == "net.mlir"


def test_the_function_of_a_scheduled_module_runs(model: Path, monkeypatch: pytest.MonkeyPatch):
    """It is what the schedule is proved against, and stays in the module."""
    scheduled = model.with_name("scheduled.mlir")
    assert run(OptTool, model, "--to=schedule", "--device=test4", "-o", scheduled)[0] == 0
    ran: list[str] = []
    for level in ("task", "schedule"):
        interpreter = importlib.import_module(f"irkit.interp.{level}")
        monkeypatch.setattr(interpreter, f"run_{level}", recorded(interpreter, level, ran))
    outputs = {level: scheduled.with_name(f"{level}.npz") for level in ("task", "schedule")}
    for level, path in outputs.items():
        status, text = run(RunTool, scheduled, f"--level={level}", f"--outputs={path}")
        assert status == 0, text
    assert ran == ["task", "schedule"]
    task, schedule = (np.load(path)["output0"] for path in outputs.values())
    np.testing.assert_array_equal(task, schedule)


def recorded(interpreter: ModuleType, level: str, ran: list[str]) -> Callable[..., object]:
    """An interpreter that says that it ran."""
    known = getattr(interpreter, f"run_{level}")
    return lambda *a, **k: ran.append(level) or known(*a, **k)


def test_translate_verifies_what_a_front_end_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from irkit.frontends.module import ImportedModel
    from irkit.model_info import ModelInfo
    from irkit.weights import WeightStore

    broken = irkit.parse(TEXT)
    TEST_PASSES["test-break-dominance"]()().apply(IrkitContext(), broken)
    info = ModelInfo("network", ("x",), ("y",))
    monkeypatch.setattr(
        "irkit.frontends.import_model", lambda *_: ImportedModel(broken, WeightStore(), info)
    )
    monkeypatch.setitem(
        sys.modules["irkit.driver.tools.translate"].LOADERS, "onnx", lambda path: None
    )
    status, text = run(TranslateTool, tmp_path / "model.onnx")
    assert (status, "the front end left IR that does not verify" in text) == (2, True), text


# What is added from outside is known to the tools as it is to `irkit.compile`.


def opt(*argv: object) -> subprocess.CompletedProcess[str]:
    code = "from irkit.cli.opt import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, argv)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_plugins_of_irkit_opt(name: str, tmp_path: Path):
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        text: str = __import__(name).MODULE
    finally:
        sys.path.pop(0)
    path = tmp_path / "module.mlir"
    path.write_text(text.replace("COLUMNS", "80"))
    plugin = f"--load-plugin={ROOT / 'examples' / name}.py"
    checks = ["--check-semantics", "--verify-roundtrip"]
    device = {"own_device": "three-cores"}.get(name, "cpu2")
    done = opt(path, plugin, "--to=schedule", f"--device={device}", *checks)
    assert done.returncode == 0, done.stderr
    wanted = {
        "new_op": "graph.matmul, mine.softsign",
        "own_rkernel": "softmax.online",
        "own_tensor_op": "graph.matmul, mine.bucketize",
    }
    assert wanted.get(name, "verified") in done.stdout
    known = {"new_op": "--list-dialects", "new_pass": "--list-passes"}
    if name in known:
        listed = opt(plugin, known[name]).stdout.split("xdsl:")[0]
        assert {"new_op": "mine  1 ops", "new_pass": "remove-abs"}[name] in listed


def test_files_that_are_no_plugins(tmp_path: Path, model: Path):
    files = {"empty.py": "", "wrong.py": "def register(:\n", "needs.py": "import no_such_module"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    messages = {
        "empty.py": "has no function register()",
        "wrong.py": "invalid syntax",
        "needs.py": "No module named 'no_such_module'",
        "absent.py": "No such file",
        "io.py": "there is a module 'io'",
        "plugin.txt": "is no Python file",
    }
    for name, message in messages.items():
        status, text = run(OptTool, model, f"--load-plugin={tmp_path / name}")
        assert status == 1
        assert f"{name}'" in text
        assert message in text
