"""Functions that Python calls, kept as machine code: whole or made anew, and never unpickled."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import irkit
from irkit.runtime import code_store, function_code
from irkit.runtime.compile_worker import take_step
from irkit.runtime.function_code import functions_of
from irkit.runtime.machine_code import context
from irkit.runtime.numba_settings import numba_settings

ROOT = Path(__file__).parents[2]
TEXT = """
from numba import types
from irkit.runtime.intrinsics.engine import njit


@njit(types.int64(types.int64[::1], types.int64), nogil=True, error_model="numpy")
def total(x, more):
    for i in range(x.size):
        more += x[i]
    return more


@njit(types.float64(types.Array(types.float32, 2, "C", readonly=True)), nogil=True)
def largest(x):
    found = x[0, 0]
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            found = max(found, x[i, j])
    return found


@njit(types.void(types.int64[::1], types.int64[::1]), nogil=True)
def bind(x, y):
    y[0] = total(x, 1)


BINDERS = ((bind, (3, 5)),)
"""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("IRKIT_CACHE_DIR", str(tmp_path))
    return tmp_path / "rkernels"


@pytest.fixture
def compiled(monkeypatch):
    """The texts that were compiled."""
    found = []
    payload = function_code._payload

    def counted(text, name):
        found.append(text)
        return payload(text, name)

    monkeypatch.setattr(function_code, "_payload", counted)
    return found


def check(text=TEXT):
    found = functions_of(text)
    assert found.called["total"](np.arange(5), 7) == 17
    assert found.called["largest"](np.array([[1, 5, 2]], np.float32)) == 5.0
    y = np.zeros(1, np.int64)
    found.called["bind"](np.arange(3), y)
    assert y[0] == 4
    assert found.arity == {"total": 2, "largest": 1, "bind": 2}
    assert found.binders == (("bind", (3, 5)),)
    return found


def test_a_text_compiles_once(cache, compiled):
    first = check()
    assert check() is first
    del first
    check()
    assert len(compiled) == 1
    check(TEXT + "\n# another\n")
    assert len(compiled) == 2


def test_nothing_is_unpickled(cache):
    """In a process that finds all of it on disk, and cannot unpickle anything."""
    check()
    code = f"""
    import pickle, sys
    from irkit.runtime import function_code
    def refused(*_): raise AssertionError("unpickled")
    pickle.loads = pickle.load = pickle.Unpickler = function_code._payload = refused
    import numpy as np
    print(function_code.functions_of({TEXT!r}).called["total"](np.arange(5), 7))
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.stdout == "17\n", run.stderr


@pytest.mark.parametrize("part", [0.1, 0.5, 0.99])
def test_one_wrong_bit_anywhere_is_seen(cache, compiled, part):
    check()
    (entry,) = cache.iterdir()
    whole = bytearray(entry.read_bytes())
    whole[int(part * len(whole))] ^= 4
    entry.write_bytes(whole)
    check()
    assert len(compiled) == 2
    assert code_store.kept(entry.name) is not None


_LIMITED = """
import resource, sys, signal, numpy as np, warnings
warnings.simplefilter("error")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
import irkit

@irkit.jit
def f(x, w):
    return np.tanh(x @ w).sum(axis=1)

x, w = np.ones((5, 3), np.float32), np.full((3, 4), 0.25, np.float32)
np.testing.assert_allclose(f(x, w), np.tanh(x @ w).sum(axis=1), rtol=1e-5)
print("right")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX limits")
@pytest.mark.parametrize("size", [3000, 30_000])
def test_a_cache_in_which_some_find_no_room(tmp_path, size):
    """Files of up to `size` bytes are kept, of larger ones nothing is left behind."""
    environment = {**os.environ, "IRKIT_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", _LIMITED, str(size)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.stdout == "right\n", run.stderr
    assert not run.stderr
    assert not [p for p in tmp_path.rglob("*") if ".partial" in p.name]


def test_what_numba_is_told_counts(tmp_path, monkeypatch):
    """By the environment, and by a file in the folder where a program runs."""
    monkeypatch.chdir(tmp_path)
    found = {context()}
    monkeypatch.setenv("NUMBA_COLOR_SCHEME", "no_color")
    monkeypatch.setenv("NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS", "0")
    assert {context()} == found
    monkeypatch.setenv("NUMBA_OPT", "1")
    found.add(context())
    pytest.importorskip("yaml")
    (tmp_path / ".numba_config.yaml").write_text("loop_vectorize: 0\n")
    found.add(context())
    assert ("NUMBA_LOOP_VECTORIZE", "0") in numba_settings()
    assert len(found) == 3


def test_where_numba_compiles_nothing_that_is_said(monkeypatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    with pytest.raises(irkit.UnsupportedError, match="NUMBA_DISABLE_JIT"):
        irkit.jit(lambda x: x + 1)(np.ones(3, np.float32))


def test_a_setting_that_comes_too_late_is_said(monkeypatch):
    """The number of Numba's threads, once they run."""

    def refuse():
        raise RuntimeError("Cannot set NUMBA_NUM_THREADS to a different value")

    monkeypatch.setattr("numba.core.config.reload_config", refuse)
    with pytest.raises(irkit.UnsupportedError, match="NUMBA_NUM_THREADS"):
        numba_settings()


def test_what_another_process_compiled_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("IRKIT_CACHE_DIR", str(tmp_path / "made"))
    made = take_step("cpu functions", (TEXT,))
    monkeypatch.setenv("IRKIT_CACHE_DIR", str(tmp_path / "cache"))
    assert function_code.known_functions(TEXT) is None
    found = function_code.made_functions(TEXT, made)
    assert found.called["total"](np.arange(5), 7) == 17
    assert function_code.known_functions(TEXT) is found
    del found
    gc.collect()
    monkeypatch.setattr(function_code, "_payload", None)
    assert functions_of(TEXT).called["total"](np.arange(5), 7) == 17
