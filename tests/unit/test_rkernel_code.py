"""Machine code of rKernels: one unit each, shared by models, kept on disk, compiled side by side."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import irkit
from irkit.driver.compiler.artifacts import build_artifact
from irkit.driver.compiler.models import read_model
from irkit.errors import InvalidInputError
from irkit.runtime import code_store, machine_code, side_by_side
from irkit.runtime.compile_worker import take_step
from irkit.runtime.forms import form_of
from irkit.runtime.loading import load_source
from irkit.runtime.side_by_side import Request, compile_units
from irkit.runtime.units import parts_of
from irkit.runtime.variant import Variant

ROOT = Path(__file__).parents[2]
RELU = """
func.func @main(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %0 = "graph.relu"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %0 : tensor<?x8xf32>
}
"""
RELU_AND_SOFTMAX = """
func.func @main(%x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %0 = "graph.softmax"(%x) <{axis = 1 : i64}> : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %1 = "graph.relu"(%x) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  func.return %0, %1 : tensor<?x8xf32>, tensor<?x8xf32>
}
"""
X = np.linspace(-3, 3, 24, dtype=np.float32).reshape(3, 8)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("IRKIT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def artifacts(tmp_path, cache):
    def made(text):
        path = tmp_path / "net.mlir"
        path.write_text(text)
        return build_artifact(read_model(path, "float32"), "cpu")

    return made


@pytest.fixture
def compiled(monkeypatch):
    """The rOperators that machine code was made of, in this process."""
    found = []

    def counted(step, arguments):
        if step == "cpu code":
            found.append(arguments)
        return take_step(step, arguments)

    monkeypatch.setattr(side_by_side, "take_step", counted)
    return found


def entries(cache):
    """What is kept of rKernels' machine code, not forms' IR nor walkers, which say what they have."""
    kept = {p: p.read_bytes().partition(b"\n")[2] for p in (cache / "rkernels").iterdir()}
    return [p for p, payload in kept.items() if b"\0\x7fELF" in payload and payload[:1] != b"{"]


def run(artifact, x=X):
    return Variant(artifact, "serial").run([x])


def units(artifact):
    return parts_of(artifact.source).units


def test_units_are_alike_where_the_text_is_but_for_names(artifacts):
    (relu,) = units(artifacts(RELU))
    other = units(artifacts(RELU_AND_SOFTMAX))
    assert [u.text for u in other].count(relu.text) == 1
    assert relu.symbol not in relu.text
    assert all(name not in relu.text for name in relu.names)


def test_models_that_share_an_rkernel_share_its_machine_code(artifacts, compiled):
    run(artifacts(RELU))
    assert len(compiled) == 1
    softmax, relu = run(artifacts(RELU_AND_SOFTMAX))
    assert len(compiled) == 2
    np.testing.assert_array_equal(relu, np.maximum(X, 0))
    np.testing.assert_allclose(softmax.sum(1), 1, rtol=1e-6)
    run(artifacts(RELU_AND_SOFTMAX))
    assert len(compiled) == 2


def test_programs_in_memory_hold_one_copy(artifacts, cache):
    first, second = load_source(artifacts(RELU)), load_source(artifacts(RELU_AND_SOFTMAX))
    assert first is not second
    assert set(first.rkernels) < set(second.rkernels)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: b"",
        lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
        lambda data: data.replace(b"irkit-rkernel ", b"irkit-rkernel 9", 1),
    ],
    ids=["short", "empty", "bit", "version"],
)
def test_a_damaged_entry_is_compiled_anew(artifacts, cache, compiled, damage):
    artifact = artifacts(RELU)
    run(artifact)
    (entry,) = entries(cache)
    entry.write_bytes(damage(entry.read_bytes()))
    np.testing.assert_array_equal(run(artifact)[0], np.maximum(X, 0))
    assert len(compiled) == 2
    assert code_store.kept(entry.name) is not None


def test_an_entry_of_another_key_is_none(artifacts, cache):
    run(artifacts(RELU_AND_SOFTMAX))
    one, other = sorted(entries(cache))
    one.write_bytes(other.read_bytes())
    assert code_store.kept(one.name) is None
    assert code_store.kept(other.name) is not None


def test_the_key_has_versions_the_processor_and_the_text(artifacts, monkeypatch):
    unit, softmax = sorted(units(artifacts(RELU_AND_SOFTMAX)), key=lambda u: u.symbol)
    here = machine_code.context()
    known = {unit.key(here), softmax.key(here)}
    monkeypatch.setattr(machine_code, "version", lambda name: f"{name} 0")
    known.add(unit.key(machine_code.context()))
    monkeypatch.setattr(machine_code, "_host", lambda: ("3", "another", ""))
    known.add(unit.key(machine_code.context()))
    monkeypatch.setenv("NUMBA_OPT", "1")
    known.add(unit.key(machine_code.context()))
    monkeypatch.setattr(machine_code, "intrinsics_digest", lambda: "other")
    known.add(unit.key(machine_code.context()))
    assert len(known) == 6


def test_what_was_used_longest_ago_goes_first(cache):
    for number in range(4):
        code_store.keep(f"k{number}", bytes(1000))
        os.utime(cache / "rkernels" / f"k{number}", (number, number))
    assert code_store.kept("k0") is not None  # used now
    code_store.prune(2500)
    assert {p.name for p in (cache / "rkernels").iterdir()} == {"k0", "k3"}


def test_without_a_disk_cache_programs_compile(artifacts, monkeypatch, compiled):
    artifact = artifacts(RELU)
    monkeypatch.setenv("IRKIT_CACHE_DIR", "")
    np.testing.assert_array_equal(run(artifact)[0], np.maximum(X, 0))
    np.testing.assert_array_equal(run(artifact)[0], np.maximum(X, 0))
    assert len(compiled) == 2


# Side by side


def requests(artifact, count=4):
    texts = [f"{u.text}# {i}\n" for i in range(count) for u in units(artifact)]
    return [Request(f"u{n}", "cpu", (form_of(t).text,), 1) for n, t in enumerate(texts)]


@pytest.fixture
def gathered():
    """What came of requests, by their symbols, and what gathers it."""
    found = {}

    def done(request, payload):
        found[request.symbol] = payload
        return ()

    return found, done


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_workers_compile_what_this_process_does(artifacts, gathered, workers):
    found, done = gathered
    compile_units(requests(artifacts(RELU), 6), done, workers)
    assert sorted(found) == [f"u{n}" for n in range(6)]
    assert all(b"\0" in code for code in found.values())


@pytest.mark.parametrize("workers", [0, 2])
def test_what_hangs_on_a_request_is_taken_after_it(artifacts, gathered, workers):
    found, done = gathered
    form = form_of(units(artifacts(RELU))[0].text)

    def lowered(request, payload):
        done(request, payload)
        if request.step == "cpu code":
            return ()
        arguments = (payload, form.values)
        return [Request(f"{request.symbol}.{n}", "cpu code", arguments, 1) for n in range(2)]

    compile_units(requests(artifacts(RELU), 3), lowered, workers)
    assert sorted(found) == [f"u{n}{part}" for n in range(3) for part in ("", ".0", ".1")]
    assert all(b"\0\x7fELF" in code for symbol, code in found.items() if "." in symbol)


def test_an_error_in_a_worker_is_raised_here_by_name(artifacts):
    good = requests(artifacts(RELU), 3)
    broken = good[0].arguments[0].replace("p0[", "nowhere[")
    bad = Request("broken_7", "cpu", (broken,), 2)
    with pytest.raises(Exception, match="nowhere") as caught:
        compile_units([bad, *good], lambda request, code: (), 1)
    assert caught.value.__notes__ == ["while machine code was made of rOperator @broken_7"]


def test_nobody_waits_for_a_step_that_failed_here(artifacts, gathered, monkeypatch):
    """The worker has nothing left to do and waits, while this process is interrupted at the last step."""
    found, done = gathered

    def interrupted(step, arguments):
        while not found:
            time.sleep(0.01)
        time.sleep(0.2)
        raise KeyboardInterrupt

    monkeypatch.setattr(side_by_side, "take_step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compile_units(requests(artifacts(RELU), 2), done, 1)
    assert not [t for t in threading.enumerate() if "_lead" in t.name]


def test_a_worker_that_dies_costs_no_unit(artifacts, gathered, monkeypatch):
    class Dying(subprocess.Popen):
        def __init__(self, command, **options):
            super().__init__(
                [sys.executable, "-c", "import sys; sys.stdin.buffer.read(9)"], **options
            )

    monkeypatch.setattr(subprocess, "Popen", Dying)
    found, done = gathered
    compile_units(requests(artifacts(RELU), 3), done, 2)
    assert sorted(found) == ["u0", "u1", "u2"]


def test_a_worker_that_hangs_is_given_up(artifacts, gathered, monkeypatch):
    class Hanging(subprocess.Popen):
        def __init__(self, command, **options):
            super().__init__([sys.executable, "-c", "import time; time.sleep(600)"], **options)

    monkeypatch.setattr(subprocess, "Popen", Hanging)
    monkeypatch.setattr(side_by_side, "PATIENCE_S", 0.5)
    found, done = gathered
    start = time.monotonic()
    compile_units(requests(artifacts(RELU), 3), done, 1)
    assert sorted(found) == ["u0", "u1", "u2"]
    assert time.monotonic() - start < 60
    assert not [t for t in threading.enumerate() if "_lead" in t.name]


@pytest.mark.parametrize(("given", "workers"), [(None, 7), ("", 7), ("2", 2), ("0", 0), ("90", 7)])
def test_how_many_processes_compile_is_a_users_to_limit(given, workers, monkeypatch):
    monkeypatch.setattr(side_by_side, "usable_cores", lambda: 8)
    monkeypatch.setattr(side_by_side, "MOST_WORKERS", 15)
    if given is None:
        monkeypatch.delenv("IRKIT_COMPILE_WORKERS", raising=False)
    else:
        monkeypatch.setenv("IRKIT_COMPILE_WORKERS", given)
    assert side_by_side._crew_size("cpu", 100) == workers


def test_a_limit_of_workers_that_is_no_number_is_refused(monkeypatch):
    monkeypatch.setenv("IRKIT_COMPILE_WORKERS", "few")
    with pytest.raises(InvalidInputError, match="IRKIT_COMPILE_WORKERS is 'few': a number"):
        side_by_side._crew_size("cpu", 100)


def test_workers_that_are_started_ahead_are_asked_first_and_ended(gathered, monkeypatch):
    """They have set Numba up for a GPU by then; those that nobody asks for anything end with the block."""
    pytest.importorskip("numba_cuda")
    monkeypatch.setattr(side_by_side, "usable_cores", lambda: 3)
    monkeypatch.setattr(side_by_side, "MOST_WORKERS", 15)
    started = []

    class Counted(subprocess.Popen):
        def __init__(self, command, **options):
            if side_by_side.__name__.rsplit(".", 1)[0] + ".compile_worker" in command:
                started.append((command, self))
            super().__init__(command, **options)

    monkeypatch.setattr(subprocess, "Popen", Counted)
    found, done = gathered
    with side_by_side.none_left_over():
        side_by_side.start_ahead("cuda", 9)
        assert [command[-1] for command, _ in started] == ["cuda", "cuda"]
        kernel = ("from numba import cuda\nfused = cuda.jit(device=True)\n@fused\n"
                  "def f(task, tasks, rows, scratch, p0):\n    p0[task] = p0[0]\n")  # fmt: skip
        texts = [f"{kernel}# {n}\n" for n in range(2)]
        asked = [
            Request(f"u{n}", "cuda", (t, "sm_90a", (("f", ("f32p",)),)), 1)
            for n, t in enumerate(texts)
        ]
        compile_units(asked, done, 1)
        assert sorted(found) == ["u0", "u1"]
        assert len(started) == 2
        assert started[0][1].poll() is None
    assert all(worker.poll() is not None for _, worker in started)


def test_a_script_needs_no_main_guard(tmp_path):
    """Workers do not import the user's module again."""
    (tmp_path / "net.mlir").write_text(RELU)
    script = tmp_path / "script.py"
    script.write_text(
        "print('once')\n"
        "from irkit.driver.compiler.artifacts import build_artifact\n"
        "from irkit.driver.compiler.models import read_model\n"
        "from irkit.runtime.side_by_side import Request, compile_units\n"
        "from irkit.runtime.units import parts_of\n"
        f"artifact = build_artifact(read_model({str(tmp_path / 'net.mlir')!r}, 'float32'), 'cpu', False)\n"
        "from irkit.runtime.forms import form_of\n"
        "text = form_of(parts_of(artifact.source).units[0].text).text\n"
        "found = []\n"
        "asked = [Request('u', 'cpu', (text,), 1)] * 3\n"
        "compile_units(asked, lambda request, payload: found.append(payload) or (), 1)\n"
        "print(len(found))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "IRKIT_CACHE_DIR": ""}
    found = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout.split("\n")[:2] == ["once", "3"]


def test_a_compiled_program_says_what_it_should(tmp_path, cache):
    path = tmp_path / "net.mlir"
    path.write_text(RELU_AND_SOFTMAX)
    program = irkit.compile(path, target="cpu")
    np.testing.assert_array_equal(program(X)[1], np.maximum(X, 0))
