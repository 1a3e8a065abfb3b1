"""Cases by name, the processes that contend, their ratios, and results of several runs."""

from __future__ import annotations

import json
import multiprocessing
import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks import contenders, harness
from benchmarks import workloads as suite
from benchmarks.cases import Case
from benchmarks.contenders import Job, Ready, contend
from irkit.errors import UnsupportedError


def test_modes_are_set_beside_the_fastest_form_of_each_peer() -> None:
    def entry(us: float) -> dict[str, Any]:
        return {"median_us": us, "error": 1e-7}

    found = suite.ratios(
        {
            "irkit": {"compile, s": 3.0, "report": {}},
            "irkit per-op": entry(50),
            "irkit persistent": {"wrong": 0.5},
            "torch eager": entry(200),
            "torch eager, grouped": entry(100),
            "torch eager, TF32 on": entry(10),
            "torch CUDA graph": entry(40),
        }
    )
    assert found["irkit per-op"]["over torch eager"] == 0.5
    assert found["irkit per-op"]["over torch CUDA graph"] == 1.25
    assert "over torch.compile" not in found["irkit per-op"]
    text = suite.table({"W1": found})
    assert "{'wrong': 0.5}" in text
    assert "0.50 over torch eager, 1.25 over torch CUDA graph, 1.25 over the best" in text


@pytest.mark.parametrize(
    ("text", "case", "label"),
    [
        ("LSTM", Case("LSTM"), "LSTM"),
        ("lstm@16", Case("LSTM", 16), "LSTM@16"),
        ("W4@tf32", Case("W4", 1, "tf32"), "W4:tf32"),
        ("ResNet-50@16:bf16", Case("ResNet-50", 16, "bf16"), "ResNet-50@16:bf16"),
        ("bert:float32", Case("BERT"), "BERT"),
    ],
)
def test_a_case_by_name(text: str, case: Case, label: str) -> None:
    assert Case.parse(text) == case
    assert case.label == label
    assert Case.parse(label) == case


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("W2", "unknown work 'W2': expected W1, "),
        ("LSTM@0", "'0' in 'LSTM@0': expected rows, or one of float32, tf32, bf16"),
        ("LSTM@fp32", "'fp32' in 'LSTM@fp32'"),
    ],
)
def test_a_case_that_there_is_not(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Case.parse(text)


# What becomes of contenders. Functions of this module, so that they pass to another process.


def _good() -> Ready:
    return {"a": lambda: {"median_us": 1.0}, "b": lambda: {"median_us": 2.0}}


def _refused() -> Ready:
    raise UnsupportedError("no such op")


def _broken() -> Ready:
    raise RuntimeError("out of memory")


def _breaks_later() -> Ready:
    def fail() -> dict[str, Any]:
        raise RuntimeError("out of luck")

    return {"c": lambda: {"median_us": 3.0}, "d": fail}


def _slow() -> Ready:
    time.sleep(600)
    return {}


def test_what_becomes_of_contenders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contenders, "multiprocessing", multiprocessing.get_context("spawn"))
    prepared = {"good": _good, "refused": _refused, "broken": _broken, "later": _breaks_later}
    jobs = [Job("W1", name, prepare, 20.0) for name, prepare in prepared.items()]
    found = contend([*jobs, Job("W3", "slow", _slow)], 12.0)
    assert found["W1"]["a"] == {"median_us": 1.0}
    assert found["W1"]["b"] == {"median_us": 2.0}
    assert found["W1"]["refused"] == {"refused": "no such op"}
    assert found["W1"]["broken"] == {"failed": "RuntimeError: out of memory"}
    assert found["W1"]["c"] == {"median_us": 3.0}
    assert found["W1"]["later"] == {"failed": "RuntimeError: out of luck"}
    assert found["W3"]["slow"] == {"absent": "not ready in the time given"}


def test_later_runs_on_a_device_add_to_its_results(tmp_path: Path) -> None:
    def update(device: str, **suites: Any) -> dict[str, Any]:
        path = harness.update("workloads", {"device": device, "suites": suites}, tmp_path)
        return json.loads(path.read_text())["suites"]

    update("a", W1={"x": {"n": 1}}, W3={"x": {"n": 2}})
    found = update("a", W1={"x": {"n": 3}})
    assert found["W1"]["x"] == {"n": 3}
    assert found["W3"]["x"] == {"n": 2}
    assert set(found["W1"]["measured in"]) == {"date", "commit"}
    assert list(update("b", W4={"x": {"n": 4}})) == ["W4"]


def test_who_takes_part() -> None:
    assert "irkit, float32 in memory" in suite.contenders_of(Case("BERT", 1, "bf16"))
    assert "torch.compile max-autotune" in suite.contenders_of(Case("BERT"))
    assert "torch.compile" in suite.contenders_of(Case("W4", 1, "tf32"))
    some = list(suite.jobs([Case("W4"), Case("LSTM", 4)], ["torch", "irkit"], False))
    assert [(j.case, j.contender) for j in some] == [
        ("W4", "irkit"),
        ("LSTM@4", "irkit"),
        ("W4", "torch"),
        ("LSTM@4", "torch"),
    ]
    assert suite.granted(Case("W4", 1, "tf32"), False) == "tf32"
    assert suite.granted(Case("W4", 1, "bf16"), False) is None
    assert suite.granted(Case("W4", 1, "bf16"), True) == "bf16"
