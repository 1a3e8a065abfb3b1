"""The suites of pipelines and operators: every pipeline is named once, and wrong answers have no times."""

# pyright: basic
from __future__ import annotations

import json
import time

import numpy as np
import pytest

from benchmarks import operator_peers, operators, pipelines, texts


def test_thirty_pipelines() -> None:
    assert len(pipelines.PIPELINES) == 30


@pytest.mark.filterwarnings("ignore")
def test_one_is_measured_and_written(tmp_path, monkeypatch) -> None:
    arguments = ["standard logistic", "--rows", "50", "--one-thread", "--runs", "2"]
    monkeypatch.setattr("sys.argv", ["pipelines", *arguments, "--out", str(tmp_path)])
    assert pipelines.main() == 0
    found = json.loads((tmp_path / "pipelines.json").read_text())
    assert found["summary"]["50"]["pipelines"] == 1
    assert found["suites"]["standard logistic"]["50"]["max error"] < 1e-12
    arguments = ["StandardScaler", "--rows", "50", "--one-thread", "--runs", "2"]
    monkeypatch.setattr("sys.argv", ["operators", *arguments, "--out", str(tmp_path)])
    assert operators.main() == 0
    assert json.loads((tmp_path / "operators.json").read_text())["suites"]["StandardScaler"]


@pytest.mark.filterwarnings("ignore")
def test_peers_that_are_absent_are_named(tmp_path, monkeypatch) -> None:
    def peer(name):
        if name in ("torch", "skl2onnx"):
            raise ImportError(name)
        return harness_peer(name)

    harness_peer = operator_peers.harness.peer
    monkeypatch.setattr(operator_peers.harness, "peer", peer)
    arguments = ["StandardScaler", "--rows", "50", "--one-thread", "--peers", "--runs", "2"]
    monkeypatch.setattr("sys.argv", ["operators", *arguments, "--out", str(tmp_path)])
    assert operators.main() == 0
    found = json.loads((tmp_path / "operators.json").read_text())["suites"]["StandardScaler"]
    many, one = found["peers"].values()
    assert many["irkit"]["max error"] < 1e-6 < one["irkit"]["median_us"]
    assert many["Hummingbird"]["absent"] == "torch and hummingbird-ml are not installed"
    assert one["ONNX Runtime"]["absent"] == "onnxruntime and skl2onnx are not installed"


def test_a_peer_that_is_wrong_has_no_times() -> None:
    answers = {"irkit": lambda: np.ones(3), "other": lambda: np.zeros(3), "absent": {"absent": "?"}}
    found = operator_peers._timed(answers, np.ones(3), 2, time.perf_counter)
    assert found["other"] == {"wrong": 1.0}
    assert found["absent"] == {"absent": "?"}
    assert "median_us" in found["irkit"]
    assert "ratio" not in found
    assert operator_peers._off(np.array([1, 0]), np.array([1, 1])) == 0.5


@pytest.mark.filterwarnings("ignore")
def test_texts_are_measured_too(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(texts, "WORDS", 300)
    monkeypatch.setattr(texts, "FITTED", 60)
    names = ["tf-idf logistic 2", "documents hashes sgd 20"]
    arguments = [*names, "--rows", "50", "--one-thread", "--runs", "2", "--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["texts", *arguments])
    assert texts.main() == 0
    found = json.loads((tmp_path / "texts.json").read_text())["suites"]
    assert all(found[name]["50"]["max error"] < 1e-12 for name in names)


def test_wrong_answers_have_no_times() -> None:
    assert pipelines._off(np.array([1, 2]), np.array([1, 3])) == float("inf")
    assert pipelines._off(np.array(["a"]), np.array(["a"])) == 0
    found = {
        "a": {"10": {"ratio": 4.0}},
        "b": {"10": {"ratio": 0.25}},
        "c": {"10": {"wrong": 1.0}},
    }
    totals = pipelines.summary(found, [10])["10"]
    assert totals["geometric mean"] == pytest.approx(1.0)
    assert (totals["slower"], totals["wrong"], totals["least"]) == (["b"], ["c"], 0.25)


def test_unknown_names(monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.argv", ["operators", "Scaler"])
    assert operators.main() == 1
    assert "unknown name 'Scaler': expected LogisticRegression" in capsys.readouterr().out
