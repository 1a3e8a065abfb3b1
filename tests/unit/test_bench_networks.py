"""The networks that a CPU is measured on: toy sizes of each are what ONNX Runtime computes; the suite."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import networks
from benchmarks.functions import FUNCTIONS, function_model
from benchmarks.layers import LAYERS
from benchmarks.targets import TARGETS, lookup
from irkit.driver.compiler.models import read_model
from irkit.interp import run_module


def agree(model: Any, batch: int = 1) -> Any:
    """The graph's meaning and ONNX Runtime's answer, which must be near; the inputs' shape."""
    peer = networks.session(model, 1)
    feed = networks.input_of(peer, batch)
    imported = read_model(model, "float32")
    got = run_module(imported.module, imported.weights, list(feed.values()))
    want = peer.run(None, feed)
    assert networks.error(tuple(got), want) < 1e-5
    assert np.isfinite(want[0]).all()
    # No answer that a wrong network would give too, and nothing denormal or saturated.
    assert 1e-3 < float(np.std(want[0])) < 100
    return next(iter(feed.values())).shape


@pytest.mark.parametrize("name", networks.NETWORKS)
def test_a_toy_network_is_what_onnx_runtime_computes(name: str):
    agree(networks.NETWORKS[name].small(batch=1))


@pytest.mark.parametrize("name", networks.NETWORKS)
def test_a_toy_network_takes_any_batch(name: str):
    known = networks.NETWORKS[name]
    shape = agree(known.small(batch=None), 3)
    assert shape[known.axis] == 3


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_what_onnx_runtime_computes(name: str):
    assert agree(function_model(name, 1000)) == (4, 256)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_of_some_rows_is_what_onnx_runtime_computes(name: str):
    assert 3 in agree(LAYERS[name](3))


@pytest.mark.parametrize(
    ("name", "megabytes"),
    # Parameters of the papers and of torchvision, four bytes each, batch normalisations not folded.
    [
        ("ResNet-18", 46.8),
        ("MobileNetV2", 14.2),
        ("EfficientNet-B0", 21.3),
        ("ViT-small", 88.2),
    ],
)
def test_a_network_has_its_published_size(name: str, megabytes: float):
    size = len(networks.NETWORKS[name].build(batch=1).SerializeToString()) / 1e6
    assert size == pytest.approx(megabytes, rel=0.01)


def test_a_quick_run(tmp_path: Path):
    name = "bidirectional GRU"
    assert networks.main([name, "--quick", "--threads", "1", "--out", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "networks.json").read_text())["suites"]
    of_one = found[name]["1 threads"]
    assert of_one["ratio"] == of_one["irkit"]["median_us"] / of_one["ONNX Runtime"]["median_us"]
    assert found[name]["open batch"]["agrees"] == 1.0
    assert set(found[name]["open batch"]) == {f"batch {n}, error" for n in (0, 1, 3, 8)} | {
        "agrees"
    }
    # Of other networks there is no ratio, so there is no mean.
    assert found["geometric mean of networks"] == {}


def test_a_wrong_answer_has_no_time(monkeypatch: pytest.MonkeyPatch):
    class Wrong:
        def __call__(self, x: Any) -> Any:
            return x + 1

    monkeypatch.setattr(networks.irkit, "compile", lambda *_, **__: Wrong(), raising=False)
    found = networks.measured(function_model("Exp", 256), 1, networks.Settings(quick=True))
    assert list(found) == ["wrong"]


def test_the_mean_of_ratios():
    ratios = dict.fromkeys(networks.NETWORKS, 1.0) | {"GPT": 4.0}
    suites = {n: {"1 threads": {"ratio": r}} for n, r in ratios.items()}
    mean = networks.geometric_mean(suites, 1)
    assert mean == pytest.approx(4 ** (1 / len(ratios)))
    assert networks.geometric_mean(suites, 2) is None


def test_every_network_and_function_has_its_figures():
    known = {p for t in TARGETS for p in (*t.ours, *t.theirs) if p.startswith("networks/")}
    times = {"median_us": 1.0}
    runs = {"irkit": times, "ONNX Runtime": times}
    suites: dict[str, Any] = {"functions": {}, "layers": {}, "geometric mean of networks": {}}
    for threads in ("1 threads", "2 threads"):
        suites["geometric mean of networks"][threads] = 1.0
        for name in FUNCTIONS:
            suites["functions"].setdefault(name, {})[threads] = {"worst ratio": 1.0}
        for name in LAYERS:
            suites["layers"].setdefault(name, {})[threads] = {"geometric mean": 1.0}
        for name in networks.NETWORKS:
            suites.setdefault(name, {"compile": {"cold": {"processor time, s": 1.0}}})
            suites[name][threads] = runs
    assert all(lookup({"networks": suites}, path) == 1.0 for path in known)
    sweeps = len(FUNCTIONS) + len(LAYERS)
    assert len(known) == 2 * (2 * len(networks.NETWORKS) + sweeps + 1) + len(networks.NETWORKS)
