"""Random ONNX operators against ONNX Runtime: interpreted, and many in one compiled program."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto

from irkit.errors import UnsupportedError
from irkit.frontends.onnx import import_onnx
from irkit.interp.graph import run_graph
from tests.conformance.random_onnx import OPS, Case, case_of, together

RUNTIME: Any = onnxruntime
RUNTIME.set_default_logger_severity(4)
_STATES = RUNTIME.capi.onnxruntime_pybind11_state
REFUSED = (_STATES.NotImplemented, _STATES.InvalidGraph, _STATES.Fail)
SEEDS = 400
# What irkit says by name that it cannot do.
KNOWN = ("nothing is left of axis", "the remainder of floating-point numbers")
# The rounding of a sum or of a function of ONNX Runtime's own.
TOLERANCE = {"float32": {"rtol": 3e-5, "atol": 2e-6}, "float64": {"rtol": 1e-9, "atol": 1e-9}}


def wanted(made: ModelProto, feeds: dict[str, Any]) -> list[Any] | None:
    """What ONNX Runtime answers; None where it has no such kernel or refuses the model."""
    try:
        session = RUNTIME.InferenceSession(
            made.SerializeToString(), providers=["CPUExecutionProvider"]
        )
    except REFUSED:
        return None
    return session.run(None, feeds)


def check(found: Any, want: Any, what: str) -> None:
    assert (found.dtype, found.shape) == (want.dtype, want.shape), what
    np.testing.assert_allclose(found, want, **TOLERANCE.get(str(want.dtype), {}), err_msg=what)


def checked(seed: int) -> Case | None:
    """The case of a seed, if ONNX Runtime and irkit both take it; the interpreter must agree."""
    case = case_of(seed)
    made, what = case.model(), f"seed {seed}: {case.op} {case.attributes}"
    want = wanted(made, case.feeds())
    if want is None:
        return None
    try:
        imported = import_onnx(made)
    except UnsupportedError as error:
        if not any(reason in str(error) for reason in KNOWN):
            raise
        return None
    feeds = case.feeds()
    with np.errstate(all="ignore"):
        found = run_graph(
            imported.module, imported.weights, [feeds[n] for n in imported.info.inputs]
        )
    for got, expected in zip(found, want, strict=True):
        check(got, expected, what)
    return case


@pytest.mark.parametrize("block", range(8))
def test_interpreted(block: int) -> None:
    for seed in range(block, SEEDS, 8):
        checked(seed)


def test_compiled(compiled: Any) -> None:
    cases = [c for c in map(checked, range(1000, 1024)) if c is not None and c.opset == 20]
    made = together(cases)
    feeds = {k: v for number, case in enumerate(cases) for k, v in case.feeds(number).items()}
    want = wanted(made, feeds)
    assert want is not None
    found = compiled(made, mode="serial")(*feeds.values())
    for value, got, expected in zip(made.graph.output, found, want, strict=True):
        case = cases[int(value.name[1:].partition("_")[0])]
        check(got, expected, f"{value.name}: {case.op} {case.attributes}")


def test_every_operator_is_met() -> None:
    assert {case_of(seed).op for seed in range(4000)} == {op for _, op in OPS}
