"""The progress bar of long compilations."""

import re
import sys
import time

import numpy as np
import pytest

import irkit
from benchmarks.models import lstm_stack, mlp
from irkit.driver.compiler import progress
from irkit.driver.compiler.progress import ProgressBar


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    monkeypatch.setattr(progress, "PERIOD", 0.01)


def test_stages_and_counts_are_shown(impatient, capfd):
    with ProgressBar(True) as bar:
        bar.stage("waiting", 5, lambda: 3)
        time.sleep(0.3)
    out, err = capfd.readouterr()
    assert "waiting 3 of 5" in err
    assert out == ""


def test_nothing_is_shown_in_good_time(capfd):
    with ProgressBar(True) as bar:
        bar.stage("waiting")
    assert capfd.readouterr().err == ""


def test_nothing_is_shown_where_stderr_is_no_terminal(impatient, capfd):
    irkit.compile(mlp(), target="cpu", cache=False)
    assert capfd.readouterr() == ("", "")


def test_an_error_ends_the_bar(impatient):
    with pytest.raises(irkit.InvalidModelError):
        irkit.compile("/nowhere/model.onnx", target="cpu", progress=True)


def test_compilation_names_its_stages(impatient, capfd):
    # A model of its own, whose machine code is nowhere yet.
    irkit.compile(lstm_stack(1, 7, 5, 2), target="cpu", cache=False, progress=True)
    assert "machine code of rOperator" in capfd.readouterr().err


def test_a_traced_function_names_its_stages(impatient, capfd, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    x = np.linspace(0, 1, 7)

    @irkit.jit(target="cpu", cache=False)
    def compiled(x):
        for n in [0.5, 1.5, 2.5, 4.5]:
            x = np.cumsum(x / (1.25 + np.sum(x * n)))
        return x

    assert np.allclose(compiled(x), compiled.__wrapped__(x))
    shown = capfd.readouterr().err
    assert re.search(r"(graph|tensor|task|schedule) level, [a-z-]+: \d+ of \d+", shown)
