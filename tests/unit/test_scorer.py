"""`irkit.Scorer`: a program in other processes, loaded there once."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false
# pyright: reportIndexIssue=false
from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import irkit
from irkit.errors import UnsupportedError
from irkit.serving import kept

X, Y = load_iris(return_X_y=True)
MODEL = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
STATEFUL = """\
func.func @main(%x: tensor<2xf32>, %h: tensor<2xf32>) -> tensor<2xf32>
    attributes {irkit.inputs = ["x", "h"], irkit.outputs = ["g"]} {
  %0 = graph.add %x, %h : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}
"""


@pytest.fixture(scope="module")
def program() -> irkit.CompiledProgram:
    return irkit.compile(MODEL, "cpu", dtype="float64")


@pytest.fixture(scope="module")
def path(program, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "model.irkit"
    program.save(path)
    return path


def test_a_function_of_rows(program, path) -> None:
    for source in (program, path, str(path)):
        np.testing.assert_array_equal(irkit.Scorer(source, "predict")(X), MODEL.predict(X))
        assert len(irkit.Scorer(source)(X)) == len(program(X))


def test_pickled_by_path_and_by_content(program, path, tmp_path) -> None:
    by_path = pickle.dumps(irkit.Scorer(path, "predict"))
    assert len(by_path) < 1000
    by_content = pickle.dumps(irkit.Scorer(program, "predict"))
    first, second = pickle.loads(by_content), pickle.loads(by_content)
    np.testing.assert_array_equal(first(X), MODEL.predict(X))
    assert first.program is second.program is not program
    assert pickle.loads(by_path).program is irkit.Scorer(path).program
    # What was unpickled is pickled again as it came, without being loaded.
    assert pickle.dumps(pickle.loads(by_content)) == by_content


def test_a_program_itself_is_no_data(program) -> None:
    """Whoever pickles it is told what to do; scikit-learn's `clone` copies what it holds."""
    with pytest.raises(UnsupportedError, match="Scorer"):
        pickle.dumps(program)
    assert copy.deepcopy({"held": program})["held"] is program
    assert copy.copy(program) is program


def test_a_file_that_was_replaced_is_another_program(program, path, tmp_path) -> None:
    copy = tmp_path / "model.irkit"
    program.save(copy)
    before = irkit.Scorer(copy).program
    irkit.compile(LogisticRegression().fit(X[:, :2], Y), "cpu", dtype="float64").save(copy)
    after = irkit.Scorer(copy, "predict")
    assert after.program is not before
    assert after(X[:, :2]).shape == (150,)


def test_programs_of_elsewhere_are_kept_to_a_number(program, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(kept, "KEPT", 2)
    monkeypatch.setattr(kept, "_loaded", type(kept._loaded)())
    paths = [tmp_path / f"{n}.irkit" for n in range(3)]
    for one in paths:
        program.save(one)
        irkit.Scorer(one, "predict")(X)
    assert [key[0] for key in kept._loaded] == paths[1:]


def test_refused(program, path, tmp_path) -> None:
    with pytest.raises(irkit.ArtifactError, match=r"no saved program '.*none.irkit'"):
        irkit.Scorer(tmp_path / "none.irkit")
    with pytest.raises(irkit.UnsupportedError, match="method 'transform' of this model; it has"):
        irkit.Scorer(program, "transform")
    with pytest.raises(irkit.UnsupportedError, match="method 'transform' of this model; it has"):
        irkit.Scorer(path, "transform")(X)
    with pytest.raises(irkit.InvalidInputError, match="expected shape"):
        irkit.Scorer(path, "predict")(X[:, :2])
    stateful = irkit.compile(irkit.parse(STATEFUL), "cpu", state={"h": "g"})
    with pytest.raises(irkit.UnsupportedError, match="a program with state"):
        irkit.Scorer(stateful)


def _scored(scorer: irkit.Scorer, rows: np.ndarray) -> tuple[int, int, np.ndarray]:
    found = scorer(rows)
    return os.getpid(), len(kept._loaded), found


def test_processes(program) -> None:
    """Each of two processes loads the program once, whatever comes."""
    scorer = irkit.Scorer(program, "predict_proba")
    parts = np.array_split(X, 9)
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        found = list(pool.map(_scored, [scorer] * 9, parts))
    got = np.concatenate([f for _, _, f in found])
    np.testing.assert_array_equal(got, program.predict_proba(X))
    assert os.getpid() not in {process for process, _, _ in found}
    assert {loaded for _, loaded, _ in found} == {1}


def test_dask() -> None:
    """The example, on a local cluster of two processes; it compares with scikit-learn itself."""
    pytest.importorskip("distributed")
    example = Path(__file__).resolve().parents[2] / "examples" / "batch_scoring.py"
    command = [sys.executable, str(example), "--rows", "150000"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "150000 rows by 2 processes" in run.stdout
    assert "scikit-learn agrees" in run.stdout
