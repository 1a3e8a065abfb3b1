"""Choice by measurement: what is timed, what is kept, and what comes of it in the IR."""

from __future__ import annotations

import json
import math
import os
import re
from pathlib import Path

import numpy as np
import pytest

import irkit
from irkit.driver.compiler.artifacts import build_artifact
from irkit.driver.compiler.models import read_model
from irkit.driver.measuring import measure_rtasks, times
from irkit.passes.task.candidates import Candidate, front, shortlist
from irkit.rkernels.rkernel import RKernel
from irkit.runtime.artifact import Artifact
from irkit.schedule.devices import device
from irkit.schedule.tables import Port

MODEL = """
func.func @main(%x: tensor<32x64xf32>, %i: tensor<16xi64>) -> tensor<32x16xf32> {
  %w = arith.constant dense<0.5> : tensor<64x64xf32>
  %y = graph.matmul %x, %w : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
  %p = graph.softmax %y {axis = 1 : i64} : (tensor<32x64xf32>) -> tensor<32x64xf32>
  %z = graph.gather %p, %i {axis = 1 : i64} : (tensor<32x64xf32>, tensor<16xi64>) -> tensor<32x16xf32>
  func.return %z : tensor<32x16xf32>
}
"""
X = np.random.default_rng(0).random((32, 64), dtype=np.float32)
PICKED = np.arange(0, 48, 3)


@pytest.fixture(autouse=True)
def factors_as_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a factor in blocks one rKernel is as good for any number of rows: here there are several."""
    monkeypatch.setattr("irkit.passes.task.pack_factors.blocks_ns", lambda *_: math.inf)


def want() -> np.ndarray:
    y = np.exp(X @ np.full((64, 64), 0.5, np.float32))
    return (y / y.sum(1, keepdims=True))[:, PICKED]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IRKIT_CACHE_DIR", str(tmp_path))
    return tmp_path


def built(text: str = MODEL, target: str = "cpu2") -> Artifact:
    return build_artifact(read_model(irkit.parse(text), "float32"), target, False, measure=True)


def by_name(fast: str):
    """Times by which rKernels with this in their names are a thousand times as fast as others."""

    def made(artifact: Artifact, rows: int) -> dict[str, float]:
        found: dict[str, float] = {}
        for line in artifact.source.splitlines():
            if line.startswith("# ---- rOperator @"):
                symbol, _, rest = line.removeprefix("# ---- rOperator @").partition(":")
                found[symbol] = 10.0 if fast in rest else 10_000.0
        return found

    return made


def nothing_is_measured(*_: object):
    raise AssertionError("something is measured")


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Artifact:
    """The model with all its times known; whatever is measured from now on is noticed."""
    with monkeypatch.context() as patched:
        patched.setattr(measure_rtasks, "rtask_times", by_name("map"))
        artifact = built()
    monkeypatch.setattr(measure_rtasks, "rtask_times", nothing_is_measured)
    return artifact


def test_a_measured_program_is_right_and_says_so(own_cache: Path) -> None:
    program = irkit.compile(irkit.parse(MODEL), device="cpu2", measure=True)
    (got,) = program.run([X, PICKED])
    np.testing.assert_allclose(got, want(), rtol=1e-5)
    report = program.report()
    assert "not_measured" not in report
    for facts in report["roperators"].values():
        assert facts["cost_from"] == "measurement"
        assert facts["cost_ns"] >= 1
    assert len(list((own_cache / "times").iterdir())) >= len(report["roperators"])


def test_a_time_is_measured_once(known: Artifact) -> None:
    assert built().ir == known.ir
    with pytest.raises(AssertionError, match="something is measured"):
        built(MODEL.replace("32x", "24x"))


@pytest.mark.parametrize("damage", ["", "{", '{"ns": 5.0}', "[]"])
def test_a_damaged_time_is_measured_anew(damage: str, own_cache: Path, known: Artifact) -> None:
    next((own_cache / "times").iterdir()).write_text(damage)
    with pytest.raises(AssertionError, match="something is measured"):
        built()


@pytest.mark.parametrize("what", ["versions", "own_digest", "fingerprint", "processor"])
def test_times_of_other_versions_and_machines_are_others(
    what: str, known: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = b"2" if what == "own_digest" else "2"
    monkeypatch.setattr(measure_rtasks, what, lambda *_: other)
    with pytest.raises(AssertionError, match="something is measured"):
        built()


@pytest.mark.parametrize("fast", ["generated.nest", "product.blocked", "product.wide"])
def test_the_fastest_measured_is_chosen(fast: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure_rtasks, "rtask_times", by_name(fast))
    program = irkit.compile(irkit.parse(MODEL), device="cpu2", measure=True)
    (facts,) = [f for f in program.report()["roperators"].values() if "matmul" in f["from"]]
    assert (facts["rkernel"], facts["cost_ns"]) == (fast, 10.0)
    assert re.search(r'cost = 1\.000000e\+01 : f64, .*measured_on = "', program.ir())
    np.testing.assert_allclose(program.run([X, PICKED])[0], want(), rtol=1e-5)


def test_an_open_batch_is_run_by_what_is_measured_fastest(monkeypatch: pytest.MonkeyPatch) -> None:
    text = MODEL.replace("32x", "?x")
    monkeypatch.setattr(measure_rtasks, "rtask_times", by_name("product.blocked"))
    program = irkit.compile(irkit.parse(text), device="cpu2", measure=True)
    (facts,) = [f for f in program.report()["roperators"].values() if "matmul" in f["from"]]
    assert facts["rkernel"] == "product.blocked"
    np.testing.assert_allclose(program.run([X, PICKED])[0], want(), rtol=1e-5)


def test_a_device_that_is_not_at_hand_is_estimated_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(measure_rtasks, "rtask_times", nothing_is_measured)
    plain = build_artifact(read_model(irkit.parse(MODEL), "float32"), "test4", False)
    asked = built(target="test4")
    assert asked.report["not_measured"] == "device 'test4' is of tests, and no machine"
    assert "not_measured" not in plain.report
    assert asked.ir == plain.ir
    assert {f["cost_from"] for f in asked.report["roperators"].values()} == {"estimate"}


def test_on_a_gpu_each_kernel_is_compiled_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole way but for the clock: candidates become kernels of a cubin, and times the choice."""
    seen: list[Artifact] = []

    def made(artifact: Artifact, rows: int) -> dict[str, float]:
        seen.append(artifact)
        return by_name("map")(artifact, rows)

    monkeypatch.setattr("irkit.driver.compiler.artifacts.why_elsewhere", lambda _: None)
    monkeypatch.setattr(measure_rtasks, "why_elsewhere", lambda _: None)
    monkeypatch.setattr(measure_rtasks, "rtask_times", made)
    monkeypatch.setattr(measure_rtasks, "_surroundings", lambda _: ())
    monkeypatch.setattr(measure_rtasks, "_machine", lambda _: "a GPU")
    artifact = built(
        "func.func @main(%x: tensor<4x96xf32>) -> tensor<4x96xf32> {\n"
        "  %y = graph.exp %x : (tensor<4x96xf32>) -> tensor<4x96xf32>\n"
        "  func.return %y : tensor<4x96xf32>\n}\n",
        "h200",
    )
    assert [a.target for a in seen] == ["cuda"]
    assert b"op_0" in seen[0].cubin
    assert b"persistent" not in seen[0].cubin
    assert b"persistent" in artifact.cubin
    assert 'measured_on = "a GPU"' in artifact.ir["schedule"]


def rkernel(name: str) -> RKernel:
    return RKernel("toy", name, "cpu", "nowhere", name)


@pytest.mark.parametrize("seed", range(40))
def test_a_shortlist_has_the_best_of_every_rkernel(seed: int) -> None:
    rng = np.random.default_rng(seed)
    target = device("h200")
    counts = sorted({target.veus // n for n in range(1, target.veus + 1)})
    found = [
        Candidate(rkernel(str(k)), (int(t),), float(speed * 1e6 / t ** rng.uniform(0.5, 1)))
        for k, speed in enumerate(rng.uniform(1, 4, rng.integers(1, 6)))
        for t in counts
    ]
    best = front(found, target)
    for most in (1, 3, 10, 100):
        chosen = shortlist(found, target, most)
        assert 1 <= len(chosen) <= most
        assert len(set(chosen)) == len(chosen)
        assert chosen[0] is best[0]
    assert {c.rkernel.name for c in shortlist(found, target, 100)} == {
        c.rkernel.name for c in found
    }
    assert set(best) <= set(shortlist(found, target, 100))


def test_what_is_far_behind_is_not_measured() -> None:
    near, far = Candidate(rkernel("a"), (2,), 100.0), Candidate(rkernel("b"), (2,), 501.0)
    assert shortlist([near, far], device("cpu2"), 10) == [near]


def test_inputs_of_integers_are_indices_of_something() -> None:
    from irkit.runtime.rtask_times import sample_inputs

    ports = [Port("a", "int64", (-1, 3)), Port("b", "bool", (2,)), Port("c", "float32", (-1, 2))]
    a, b, c = sample_inputs(ports, 5)
    assert a.shape == (5, 3)
    assert not a.any()
    assert not b.any()
    assert c.dtype == np.float32
    assert c.min() > 0.04


def test_times_are_bounded(own_cache: Path) -> None:
    keys = [times.time_key("x", n) for n in range(6)]
    for n, key in enumerate(keys):
        times.keep(key, 5.0, "a test")
        path = own_cache / "times" / f"{key}.json"
        assert json.loads(path.read_text())["ns"] == 5.0
        os.utime(path, (n, n))
    times.prune(2)
    assert [times.kept(key) for key in keys] == [None] * 4 + [5.0] * 2


def test_a_cache_that_is_off_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRKIT_CACHE_DIR", "")
    times.keep("k", 5.0, "a test")
    assert times.kept("k") is None
    monkeypatch.setattr(measure_rtasks, "rtask_times", by_name("map"))
    assert built().report["roperators"]
