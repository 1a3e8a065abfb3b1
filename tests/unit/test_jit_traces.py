"""Traces and pictures of functions that are compiled: planned, and a run as measured."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import irkit
from irkit.errors import InvalidModelError, UnsupportedError


@irkit.jit(target="cpu", mode="serial")
def doubled(x: Any) -> Any:
    """Writes its argument."""
    x *= 2
    return x.sum()


def _called(x: Any) -> Any:
    """LAPACK's, which is the host's."""
    linalg: Any = np.linalg
    return linalg.solve(x, x)


@irkit.jit(target="cpu", mode="serial")
def solved(x: Any) -> Any:
    """Calls the host."""
    return 1 + x @ _called(x)


def _titles(trace: str) -> list[str]:
    events = json.loads(trace)["traceEvents"]
    return [e["args"]["name"].split(":")[0] for e in events if e["name"] == "process_name"]


def test_a_trace_with_arguments_is_of_a_run_too_which_changes_nothing() -> None:
    with pytest.raises(InvalidModelError, match="was not called yet"):
        doubled.trace()
    x = np.ones((4, 3))
    planned, measured = _titles(doubled.trace(x))
    assert planned == "planned"
    assert measured.startswith("measured")
    assert x.tolist() == np.ones((4, 3)).tolist()
    doubled.compile(x)
    assert _titles(doubled.trace()) == ["planned"]
    assert "doubled" in doubled.picture()


def test_a_function_that_calls_the_host_has_a_planned_trace() -> None:
    with pytest.raises(UnsupportedError, match="expected one compiled program"):
        solved.trace(np.eye(3))
    assert _titles(solved.compile(np.eye(3)).trace()) == ["planned"]
