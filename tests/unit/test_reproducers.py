"""An internal error leaves a test behind: it fails as the run did, and passes once the fault is gone."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import passes_for_tests
import pytest
from filecheck_runner import FileCheckError, FileCheckTest

from irkit.driver.tools.error_handler import without_outputs
from irkit.driver.tools.opt import OptTool
from irkit.driver.tools.run import RunTool
from irkit.weights import WeightStore

MODEL = """\
func.func @main(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %w = arith.constant dense_resource<w> : tensor<4xf32>
  %0 = graph.reshape %w {shape = array<i64: 2, 2>} : (tensor<4xf32>) -> tensor<2x2xf32>
  %1 = graph.reshape %0 {shape = array<i64: 4>} : (tensor<2x2xf32>) -> tensor<4xf32>
  %y = graph.add %x, %1 : (tensor<?x4xf32>, tensor<4xf32>) -> tensor<?x4xf32>
  func.return %y : tensor<?x4xf32>
}
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = tmp_path / "model.mlir"
    path.write_text(MODEL)
    weights = WeightStore()
    weights.put("w", np.arange(4, dtype=np.float32))
    weights.save(path.with_suffix(".safetensors"))
    return path


def crash(*argv: object) -> tuple[str, Path]:
    """What irkit-opt says before it ends with exit code 2, and the reproducer that it names, once."""
    err = io.StringIO()
    tool = OptTool(io.StringIO(), io.StringIO(), err, passes_for_tests.TEST_PASSES)
    assert tool.main([str(a) for a in argv]) == 2
    (path,) = re.findall(r"wrote a reproducer to '(.*)'", err.getvalue())
    return err.getvalue(), Path(path)


def fails_with(path: Path, message: str) -> None:
    with pytest.raises(FileCheckError, match=re.escape(message)):
        FileCheckTest(path, path.parent).run()


def test_the_reproducer_runs_and_passes_once_the_fault_is_gone(model: Path, monkeypatch):
    pipeline = "canonicalize,test-crash,test-mark{label=late}"
    _, path = crash(model, "-p", pipeline, "-o", model.with_name("out.mlir"))
    text = path.read_text()
    # From the failing pass on, with every option; what ran before has run.
    assert text.startswith(
        """// RUN: irkit-opt %s -p 'test-crash,test-mark{label="late"}' | filecheck %s\n"""
    )
    assert "ZeroDivisionError: test-crash always does this" in text
    assert "graph.add" in text
    assert "graph.reshape" not in text
    fails_with(path, "ZeroDivisionError: test-crash always does this")
    monkeypatch.setattr(passes_for_tests.CrashPass, "apply", lambda *_: None)
    FileCheckTest(path, path.parent).run()


def test_the_weights_are_beside_it(model: Path):
    message, path = crash(model, "-p", "canonicalize,test-crash-on-weights")
    assert "ValueError: sum of" in message
    assert path.with_suffix(".safetensors").exists()
    model.with_suffix(".safetensors").unlink()
    fails_with(path, re.findall("ValueError: sum of .*", message)[-1])


def test_flags_that_find_the_fault_are_kept(model: Path):
    _, path = crash(model, "-p", "cse,test-break-dominance", "--seed=3", "--timing")
    assert path.read_text().startswith("// RUN: irkit-opt %s -p test-break-dominance --seed=3 | ")
    fails_with(path, "does not dominate this use")


def test_each_part_of_a_split_file_is_its_own(model: Path):
    parts = ["func.func @first() { func.return }\n", "func.func @second() { func.return }\n"]
    model.write_text("// -----\n".join(parts))
    _, path = crash(model, "-p", "test-crash", "--split-input-file")
    assert "@first" in path.read_text()
    assert "@second" not in path.read_text()


def test_an_error_outside_of_passes_repeats_the_whole_run(model: Path, monkeypatch):
    def broken(*_: object) -> None:
        raise ZeroDivisionError("while reading")

    monkeypatch.setattr("irkit.driver.tools.opt_session.check_module", broken)
    _, path = crash(model, "-p", "cse", "-o", model.with_name("out.mlir"))
    assert path.read_text().startswith("// RUN: irkit-opt %s -p cse | filecheck %s\n")
    assert MODEL in path.read_text()
    assert path.with_suffix(".safetensors").exists()
    monkeypatch.undo()
    FileCheckTest(path, path.parent).run()


def test_emission_is_repeated_from_the_schedule(model: Path, monkeypatch):
    def broken(*_: object) -> str:
        raise ZeroDivisionError("while printing")

    monkeypatch.setattr("irkit.lower.task_to_numba.emit.emit_module", broken)
    _, path = crash(model, "-t", "numba", "--device=test4")
    assert path.read_text().startswith("// RUN: irkit-opt %s --target=numba | filecheck %s\n")
    assert "task.program @main" in path.read_text()
    fails_with(path, "ZeroDivisionError: while printing")


def test_irkit_run_leaves_one_too(model: Path, monkeypatch):
    def broken(*_: object) -> None:
        raise ZeroDivisionError("while fusing")

    monkeypatch.setattr("irkit.passes.tensor.fuse_elementwise.fuse_block", broken)
    err = io.StringIO()
    assert RunTool(io.StringIO(), io.StringIO(), err).main([str(model), "--level=task"]) == 2
    (path,) = re.findall(r"wrote a reproducer to '(.*)'", err.getvalue())
    run = "// RUN: irkit-opt %s -p 'fuse-elementwise,repeat-elementwise{"
    assert Path(path).read_text().startswith(run)
    fails_with(Path(path), "ZeroDivisionError: while fusing")


def test_arguments_without_outputs():
    argv = ["-", "-o", "x", "--html=y", "-p", "a", "--print-ir-tree-dir", "d", "--timing"]
    assert without_outputs(argv) == ["-p", "a", "--timing"]
