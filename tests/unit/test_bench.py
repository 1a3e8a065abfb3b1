"""irkit-bench: its errors, the gate before every time, the figures, the rendered page."""

# pyright: basic, reportReturnType=false
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import cpu, harness, opt, plots, pushdown
from benchmarks.attention import TOKENS
from benchmarks.kernel_targets import limits, speed_ups
from benchmarks.kernel_targets import products as products_to_reach
from benchmarks.products import CASES
from benchmarks.render import render
from benchmarks.targets import TARGETS, Target, lookup, measured, reached
from irkit.cli import bench

ROOT = Path(__file__).parents[2]
TIMES = {"median_us": 8.0, "p10_us": 7.0, "p90_us": 9.0, "runs": 3}


def run_tool(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["irkit-bench", *arguments])
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(SystemExit) as stop:
        bench.main()
    return stop.value.code


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "usage: irkit-bench"),
        (
            ("fast",),
            "unknown suite 'fast': expected all, attention, calibrate, costs, cpu, gpu, light, memory, "
            "networks, opt, nvforest, operators, pipelines, products, programs, pushdown, quantised, "
            "render, texts, training, workloads",
        ),
        (("cpu", "slow"), "unknown suite 'slow': expected forest, one_row"),
    ],
)
def test_wrong_arguments_are_a_users_error(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    message: str,
):
    monkeypatch.chdir(ROOT)
    assert run_tool(monkeypatch, *arguments) == 1
    assert message in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
def test_pushdown_compares_two_plans():
    """Of few rows, for which times say nothing."""
    found = pushdown.measure("injection 0.1", 600, 1)
    assert 0 < found["coefficients"] < 176
    assert found["ratio"] == found["without"]["median_us"] / found["with"]["median_us"]
    assert all(name in pushdown.standard.STANDARD["graph"] for name in pushdown.PASSES)


def test_both_opt_tools_print_the_same():
    found = opt.compare("graph", 500, 1)
    assert found["lines left"] > 400
    assert found["ratio"] == found["irkit-opt"]["median_us"] / found["xdsl-opt"]["median_us"]
    assert opt.module("arith", 40_000).count(" = arith.") == 80 * 498


def test_outside_of_the_repository(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
):
    monkeypatch.chdir(tmp_path)
    assert run_tool(monkeypatch, "cpu") == 1
    assert "no benchmarks/ here" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_help_that_cannot_be_written():
    code = "import sys; sys.argv = ['irkit-bench', '--help']; import irkit.cli.bench as b; b.main()"
    with Path("/dev/full").open("w") as full:
        run = subprocess.run(
            [sys.executable, "-c", code], stdout=full, stderr=-1, text=True, cwd=ROOT
        )
    assert run.returncode == 1
    assert run.stderr == "irkit-bench: error: cannot write the output: No space left on device\n"


def test_help_loads_neither_irkit_nor_numpy():
    source = (
        "import sys; sys.argv = ['irkit-bench', '--help']\n"
        "import irkit.cli.bench as b\n"
        "try: b.main()\n"
        "except SystemExit: assert not {'numpy', 'xdsl', 'numba'} & set(sys.modules)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "usage: irkit-bench" in run.stdout


@pytest.mark.parametrize(
    ("got", "want", "off"),
    [
        ([1.0, 2.0], [1.0, 2.5], 0.5),
        ([1.0, np.nan], [1.0, 2.0], np.inf),
        ([1.0, np.inf], [1.0, 2.0], np.inf),
        ([[1.0]], [1.0], np.inf),
    ],
)
def test_the_largest_error(got: Any, want: Any, off: float):
    assert harness.largest_error(got, want) == off


def test_no_time_of_a_wrong_answer():
    def measure() -> dict[str, Any]:
        pytest.fail("a wrong answer was timed")

    assert harness.gated(np.inf, 1.0, measure) == {"wrong": np.inf}
    assert harness.gated(0.25, 0.2, measure) == {"wrong": 0.25}
    assert harness.gated(0.2, 0.2, lambda: dict(TIMES)) == {"max error": 0.2, **TIMES}


class Wrong:
    """A model that disagrees with its own forest."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict_proba(self, x: Any) -> Any:
        return 1 - self.model.predict_proba(x)


def test_forests_and_peers_are_compared_before_they_are_timed(monkeypatch: pytest.MonkeyPatch):
    from sklearn.ensemble import RandomForestClassifier

    x, y = cpu.data(300)
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(x, y)
    timed: list[str] = []

    def interleaved(runs: dict[str, Any], _: int) -> dict[str, Any]:
        timed.extend(runs)
        return {name: dict(TIMES) for name in runs}

    monkeypatch.setattr(harness, "interleaved", interleaved)
    peers = {
        "right": lambda: model.predict_proba(x),
        "inverse": lambda: Wrong(model).predict_proba(x),
        "missing": {"absent": "not installed"},
    }
    found = cpu.forest_of("sk", model, x, peers)
    assert timed == ["irkit on sk's forest", "sk's own predict_proba", "right"]
    assert found["inverse"]["wrong"] > 0.1
    assert found["missing"] == {"absent": "not installed"}
    assert found["irkit on sk's forest"] == TIMES

    compiled = cpu.irkit.compile(model, target="cpu", dtype="float32")
    monkeypatch.setattr(cpu.irkit, "compile", lambda *_, **__: compiled, raising=False)
    found = cpu.forest_of("sk", Wrong(model), x, {})
    assert list(found) == ["wrong"]


RESULTS: dict[str, Any] = {
    "cpu": {"a": {"x": {"median_us": 10.0}, "y": {"median_us": 40.0}, "s": 3}}
}


@pytest.mark.parametrize(
    ("path", "value"),
    [("cpu/a/x", 10.0), ("cpu/a/s", 3.0), ("cpu/a", None), ("cpu/b/x", None), ("cpu/a/s/t", None)],
)
def test_looking_up_a_result(path: str, value: float | None):
    assert lookup(RESULTS, path) == value


@pytest.mark.parametrize(
    ("what", "limit", "ours", "theirs", "value", "good"),
    [
        ("time", 10, ("cpu/a/x",), (), 10.0, True),
        ("time", 9, ("cpu/a/x",), (), 10.0, False),
        ("share", 0.27, ("cpu/a/y", "cpu/a/x"), ("cpu/a/y",), 0.25, True),
        ("share", 0.2, ("cpu/a/x",), ("cpu/a/y",), 0.25, False),
        ("speed-up", 4, ("cpu/a/x", "gone"), ("cpu/a/y", "gone"), 4.0, True),
        ("speed-up", 5, ("cpu/a/x",), ("cpu/a/y",), 4.0, False),
        ("speed-up", None, ("cpu/a/x",), ("cpu/a/y",), 4.0, None),
        ("least", 10, ("cpu/a/y", "cpu/a/x"), (), 10.0, True),
        ("least", 11, ("cpu/a/y", "cpu/a/x"), (), 10.0, False),
        ("correct", 2, ("cpu/a/x", "cpu/a/y"), (), 2.0, True),
        ("correct", 2, ("cpu/a/x", "gone"), (), 1.0, False),
    ],
)
def test_figures(
    what: str,
    limit: float | None,
    ours: tuple[str, ...],
    theirs: tuple[str, ...],
    value: float,
    good: bool | None,
):
    target = Target("here", "work", "must", what, limit, ours, theirs)
    assert measured(RESULTS, target) == value
    assert reached(target, value) is good


def test_a_figure_without_its_peer_is_not_measured():
    assert measured(RESULTS, Target("", "", "", "share", 1, ("cpu/a/x",), ("cpu/gone",))) is None
    assert measured(RESULTS, Target("", "", "", "time", 1, ("cpu/gone",))) is None


def test_the_page(tmp_path: Path):
    found = {
        "irkit predict_proba": {"max error": 2e-7, **TIMES},
        "modes": {"not": "shown"},
        "peer": {"absent": "torch | not installed"},
        "other": {"wrong": 0.5},
    }
    path = harness.write("cpu", {"suites": {"one_row": found}}, tmp_path)
    assert json.loads(path.read_text())["suites"]["one_row"]["other"] == {"wrong": 0.5}
    page = render(tmp_path)
    assert "| one_row: irkit predict_proba | 8.0 | 7.0 – 9.0 |  | error 2.0e-07 |" in page
    assert "| one_row: peer: absent |  |  |  | torch \\| not installed |" in page
    assert "| one_row: other: wrong |  |  |  | 0.5 |" in page
    assert "not: shown" not in page
    assert "Python call included | ≤ 20 µs | 8 µs, yes |" in page
    assert page.count("not measured") == len(TARGETS) - 1


def _lstm(folder: Path, device: str, us: float, mode: str = "irkit auto") -> None:
    peers = {"torch eager": 90.0, "torch CUDA graph": 80.0, "torch eager, TF32 on": 1.0}
    entries = {
        name: {**TIMES, "median_us": value, "error": 1e-6}
        for name, value in {mode: us, **peers}.items()
    }
    facts = {"device": device, "suites": {"LSTM@4": entries}}
    harness.update("workloads", facts, folder / harness.gpu_folder(device))


def test_gpus_side_by_side(tmp_path: Path):
    _lstm(tmp_path, "NVIDIA H200", 20.0)
    _lstm(tmp_path, "NVIDIA H100 80GB HBM3", 60.0, "irkit per-op, measured")
    page = render(tmp_path)
    assert "| on a GPU | must reach | h100 | h200 |" in page
    assert "batch 4 | ≤ 0.5 × a CUDA graph | 0.75 ×, **no** | 0.25 ×, yes |" in page
    assert "## h100: workloads" in page


def test_ratios_are_drawn(tmp_path: Path):
    pytest.importorskip("matplotlib")
    _lstm(tmp_path, "NVIDIA H200", 20.0)
    page = render(tmp_path)
    assert "![workloads on h200](h200/workloads.svg)" in page
    first = (tmp_path / "h200" / "workloads.svg").read_bytes()
    assert b"LSTM@4" in first or b"<path" in first
    assert render(tmp_path) == page
    assert (tmp_path / "h200" / "workloads.svg").read_bytes() == first


def test_ratios_by_work():
    of = {"irkit per-op": 3.0, "irkit auto": 2.0, "torch eager": 5.0, "torch eager, TF32 on": 1.0}
    suites = {"W4": {k: {"median_us": v} for k, v in of.items()}, "W5": {"irkit": {"refused": "x"}}}
    assert plots.of_workloads(suites) == {"W4": 0.4}
    us = {"torch float32": 8.0, "torch TF32": 4.0, "torch bfloat16": 2.0}
    us |= {"product.a": 4.0, "product.b": 6.0, "product.a, bf16": 3.0}
    found = {"4x4x4": {k: {"us": v} for k, v in us.items()}}
    assert plots.of_products({"products": found}) == {"4x4x4": 0.5, "4x4x4, bf16": 1.5}
    ratios = {"a": {"ratio": 0.5, "math": {"us": 1.0}}, "b": {"ratio": float("nan")}, "c": {}}
    assert plots.of_attention({"attention": ratios}) == {"a": 0.5}
    found = {"4x4x4 of bfloat16, transposed": found["4x4x4"]}
    assert set(plots.of_products({"products": found}).values()) == {2.0, 1.5}


@pytest.mark.parametrize(
    ("device", "folder"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("h200 on NVIDIA H200", "h200"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("cpu on AMD EPYC", ""),
    ],
)
def test_the_folder_of_a_gpu(device: str, folder: str):
    assert harness.gpu_folder(device) == folder


def test_the_mean_needs_every_part():
    parts = tuple(Target("", "", "", "time", None, (f"cpu/a/{k}",)) for k in ("x", "y"))
    mean = Target("", "", "", "mean", 20, parts=parts)
    assert measured(RESULTS, mean) == pytest.approx(20.0)
    gone = Target("", "", "", "time", None, ("cpu/gone",))
    assert measured(RESULTS, Target("", "", "", "mean", 20, parts=(*parts, gone))) is None


def _product(us: float, tflops: float) -> dict[str, float]:
    return {"us": us, "tflops": tflops, "error": 1e-7, "packing_us": 1.0}


def test_speeds_of_products_and_attention_are_held_to_their_figures():
    """Each in its own precision; what misses its figure says how far the tensor cores are from cuBLAS."""
    shape, halves = "4096x4096x4096", "4096x4096x4096 of bfloat16"
    torch = {
        "torch float32": _product(300, 50),
        "torch TF32": _product(46, 400),
        "torch bfloat16": _product(20, 800),
    }
    own = {"product.a": _product(200, 80), "product.a, tf32": _product(50, 250)}
    both = {"product.b": _product(60, 300), "product.b, bf16": _product(40, 400)}
    products = {"products": {shape: {**own, **torch}, halves: {**both, **torch}}}
    attention = {"attention": {f"12x{n}x64 of float32": {"ratio": 0.25 + n / 8192} for n in TOKENS}}
    found = speed_ups({"products": products, "attention": attention})
    figures = {
        t.work: (value, reached(t, value))
        for t in TARGETS
        if t.what == "least" and (value := measured(found, t)) is not None
    }
    assert figures == {
        f"product {shape}, bf16": (0.5, False),
        f"product {shape}, tf32": (0.92, True),
        f"product {shape}, fp32": (1.5, False),
        "attention, 12 heads of 64, float32: the slowest of 10 lengths": (
            pytest.approx(4 / 3),
            False,
        ),
    }
    missed = limits({"products": products})
    assert [row[:3] for row in missed] == [
        (f"{halves}, bf16", "0.5", "0.9"),
        (shape, "1.5", "2"),
    ]
    assert [row[3] for row in missed] == ["400 of 800", "480 of 800"]
    assert missed[1][4].startswith("1, 1 µs of packing")


def test_every_figure_of_a_product_is_of_a_case_that_is_measured():
    for _, _, _, case in products_to_reach():
        for ending in (", bf16", ", tf32", ", weights constant"):
            case = case.removesuffix(ending)
        assert case in CASES
