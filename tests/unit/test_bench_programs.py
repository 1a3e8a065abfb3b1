"""The suite of programs: what is computed is the reference's, npbench is read as it lies."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import npbench_programs, offloaded, programs
from benchmarks.npbench_programs import NpbenchError


@pytest.mark.parametrize("name", offloaded.PROGRAMS)
def test_programs_are_the_references(name: str) -> None:
    known = offloaded.PROGRAMS[name]
    value, count, expected = known.constant
    arrays = [np.full(8, value)] * count
    got = known.by_numpy(*arrays)
    for g, e in zip(got if isinstance(got, tuple) else (got,), expected, strict=True):
        np.testing.assert_allclose(g, e, rtol=1e-6)


@pytest.mark.parametrize("name", offloaded.PROGRAMS)
def test_irkit_and_numba_compute_them(name: str) -> None:
    known = offloaded.PROGRAMS[name]
    arrays = known.inputs(1000)
    want = known.by_numpy(*arrays)
    assert programs.error(offloaded.compiled(known, arrays, "cpu1")(*arrays), want) < 1e-13
    assert programs.error(offloaded.PEERS["Numba parallel"](known, arrays)(), want) < 1e-9


def test_what_is_wrong_is_seen() -> None:
    y = np.ones(4)
    assert programs.error((y, y), (y, y + np.eye(4)[2])) == 0.5
    assert programs.error(y, (y, y)) == np.inf
    assert programs.limit([y]) < programs.limit([y.astype(np.float32)])


KERNEL = """
import numpy as np
def kernel(STEPS, A, B):
    for t in range(STEPS):
        B[1:-1] = 0.5 * (A[:-2] + A[2:])
        A[1:-1] = 0.5 * (B[:-2] + B[2:])
    return A.sum()
"""
INIT = "import numpy as np\ndef initialize(N):\n    return np.arange(float(N)) ** 2, np.zeros(N)\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """One program in the form of npbench's."""
    facts = {
        "relative_path": "own/smooth", "module_name": "smooth", "func_name": "kernel",
        "parameters": {"S": {"STEPS": 3, "N": 20}},
        "init": {"func_name": "initialize", "input_args": ["N"], "output_args": ["A", "B"]},
        "input_args": ["STEPS", "A", "B"], "array_args": ["A", "B"], "output_args": ["A", "B"],
    }  # fmt: skip
    (tmp_path / "bench_info").mkdir()
    (tmp_path / "bench_info" / "jacobi_1d.json").write_text(json.dumps({"benchmark": facts}))
    folder = tmp_path / "npbench" / "benchmarks" / "own" / "smooth"
    folder.mkdir(parents=True)
    (folder / "smooth.py").write_text(INIT)
    (folder / "smooth_numpy.py").write_text(KERNEL)
    return tmp_path


def test_a_program_of_a_checkout(checkout: Path) -> None:
    known = npbench_programs.program(npbench_programs.find(checkout), "jacobi_1d")
    values = known.inputs("S")
    given = known.arguments(values)
    total, a, b = known.results(known.function("numpy")(*given), given)
    assert total == a.sum()
    assert a is given[1]
    assert b is given[2]
    # The next call starts from the same arrays.
    np.testing.assert_array_equal(values["A"], np.arange(20.0) ** 2)
    assert not values["B"].any()


def test_versions_that_return_what_they_were_given_are_compared(checkout: Path) -> None:
    known = npbench_programs.program(checkout, "jacobi_1d")
    given = known.arguments(known.inputs("S"))
    steps, a, b = given
    for returned in (None, (a, b), (a, b[1:-1]), (steps, a, b)):
        found = known.results(returned, given)
        assert [id(f) for f in found] == [id(a), id(b)]
    # What is made anew is a result.
    assert len(known.results((a + 1, b), given)) == 3
    assert len(known.results(steps + 1, given)) == 3


def test_files_of_different_versions_are_named(checkout: Path) -> None:
    known = npbench_programs.program(checkout, "jacobi_1d")
    (known.folder / "smooth.py").write_text("def initialize(N):\n    return [N]\n")
    with pytest.raises(NpbenchError, match=r"initialises 1 values.* names 2 \(A, B\): .* versions"):
        known.inputs("S")
    (known.folder / "smooth_numpy.py").write_text("import npbench.no_such_thing\n")
    with pytest.raises(NpbenchError, match=r"smooth_numpy.py cannot be imported: No module named"):
        known.function("numpy")
    (known.folder / "smooth_numpy.py").write_text("def nopython_mode(A):\n    return A\n")
    with pytest.raises(NpbenchError, match=r"npbench's smooth_numpy.py has no function kernel"):
        known.function("numpy")


def test_what_float32_computes_badly_is_held_against_float64(checkout: Path) -> None:
    known = npbench_programs.program(checkout, "jacobi_1d")
    lines = "import numpy as np\ndef kernel(STEPS, A, B):\n    B[:] = A + np.float32(1e8) - np.float32(1e8)\n"
    (known.folder / "smooth_numpy.py").write_text(lines)
    values = {"STEPS": 1, "A": np.full(4, 3, np.float32), "B": np.zeros(4, np.float32)}

    def answer(value: float) -> Any:
        return lambda _, __, b: b.fill(value)

    given = known.arguments(values)
    want = known.results(known.function("numpy")(*given), given)
    assert want[1][0] == 0
    assert programs._why_not(known, values, answer(3), want) is None
    assert "wrong" in programs._why_not(known, values, answer(30), want)
    # float32 that is stored as float64 is no more exact.
    rounded = {"STEPS": 1, "A": np.full(4, 3, np.float32), "B": np.full(4, 3.0)}
    assert programs._why_not(known, rounded, answer(3 + 1e-6), [np.full(4, 3.0)] * 2) is None
    rounded["A"] = np.full(4, 3.0)
    assert "wrong" in programs._why_not(known, rounded, answer(3 + 1e-6), [np.full(4, 3.0)] * 2)


def test_that_a_peer_fails_by_itself(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(known: Any) -> Any:
        def fails(*arguments: Any) -> Any:
            raise RuntimeError("in no program of ours\nfor a reason")

        return fails

    monkeypatch.setattr(programs, "_by_numba", make)
    options = argparse.Namespace(preset="S", datatype=None, runs=1, budget=1.0)
    found = programs.npbench_program(checkout, "jacobi_1d", options)
    assert found["Numba parallel"] == "refused: in no program of ours"
    assert found["irkit"]["runs"] == 1


def test_floats_are_of_the_type_asked_for(checkout: Path) -> None:
    known = npbench_programs.program(checkout, "jacobi_1d")
    path = known.folder / "smooth.py"
    lines = (
        "import numpy as np\n"
        "def initialize(N, datatype{}):\n    return np.zeros(N, datatype), np.ones(N)\n"
    )
    for default, asked, dtype in (
        ("", None, "float64"),
        ("", "float32", "float32"),
        ("=np.float32", None, "float32"),
        ("=np.float32", "float64", "float64"),
    ):
        path.write_text(lines.format(default))
        assert known.inputs("S", asked)["A"].dtype == dtype
    path.write_text(INIT)
    assert known.inputs("S", "float32")["A"].dtype == np.float64


def test_no_more_runs_than_there_is_time_for() -> None:
    calls = {name: lambda: lambda: None for name in ("NumPy", "irkit")}
    assert programs.turns(calls, 30, 0.0)["irkit"]["runs"] == 5
    assert programs.turns(calls, 8)["irkit"]["runs"] == 8
    assert programs.turns(calls, 1, 0.0)["NumPy"]["runs"] == 1
    slow = {**calls, "a peer": lambda: lambda: time.sleep(0.05)}
    found = programs.turns(slow, 6, 0.02)
    assert {name: f["runs"] for name, f in found.items()} == {"NumPy": 6, "irkit": 6, "a peer": 1}


def test_parts_of_complex_results_are_compared() -> None:
    assert programs.error([np.array([1 + 2j, 0])], [np.array([1 + 4j, 0])]) == 2 / abs(1 + 4j)
    assert programs.error([np.array([1.0, 3])], [np.array([1 + 4j, 3])]) == 4 / abs(1 + 4j)


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda p: npbench_programs.find(p / "nowhere"), "give its folder as --npbench PATH"),
        (lambda p: npbench_programs.program(p, "gemm"), "npbench has no gemm.json"),
        (lambda p: npbench_programs.program(p, "jacobi_1d").inputs("XL"), "has no preset XL: S"),
        (lambda p: npbench_programs.program(p, "jacobi_1d").function("cupy"), "smooth_cupy.py"),
    ],
)
def test_what_is_missing_is_named(checkout: Path, ask: Any, words: str) -> None:
    with pytest.raises(NpbenchError, match=words):
        ask(checkout)


def test_the_suite(checkout: Path, tmp_path: Path) -> None:
    arguments = ["haversine", "jacobi_1d", "gemm", "--sizes", "8", "--runs", "1", "--preset", "S"]
    assert programs.main([*arguments, "--npbench", str(checkout), "--out", str(tmp_path)]) == 0
    suites = json.loads((tmp_path / "programs.json").read_text())["suites"]
    assert suites["haversine"]["2^8"]["irkit"]["runs"] == 1
    facts = json.loads((tmp_path / "npbench.json").read_text())
    assert facts["command"].startswith("python -m benchmarks.programs")
    suites = facts["suites"]
    assert suites["jacobi_1d"]["NumPy"]["runs"] == 1
    assert suites["jacobi_1d"]["irkit, times NumPy, of processor time"] > 0
    assert suites["gemm"] == {"left out": "npbench has no gemm.json in bench_info/"}
    assert suites["npbench, geometric means"]["programs tried"] == 2


def test_without_npbench_the_page_says_so(tmp_path: Path) -> None:
    arguments = ["jacobi_2d", "--npbench", str(tmp_path / "none"), "--out", str(tmp_path)]
    assert programs.main(arguments) == 0
    suites = json.loads((tmp_path / "npbench.json").read_text())["suites"]
    assert "clone https://github.com/spcl/npbench" in suites["npbench"]["left out"]
