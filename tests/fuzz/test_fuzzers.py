"""A fixed number of tries of each fuzzer, the same on every machine; `python -m tools.fuzz` and
IRKIT_FUZZ_SECONDS run them for as long as one likes."""

from __future__ import annotations

import os
import sys
import warnings

import pytest

from tools.fuzz.__main__ import fuzz

LONGER = os.environ.get("IRKIT_FUZZ_SECONDS")
# Nothing that a slow machine reaches: it ends a run that would be stopped as one that hangs.
GUARD_S = 400.0
# Tries that take a core some 12 s at most: the fuzzers themselves search further.
TRIES = {
    "mlir": 1250, "onnx": 750, "networks": 40, "sklearn": 20, "functions": 20, "graphs": 8,
    "programs": 25, "effects": 200,
}  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="time limits need POSIX signals")
@pytest.mark.parametrize("kind", TRIES)
def test_nothing_is_found(kind: str) -> None:
    if kind in ("onnx", "networks"):
        pytest.importorskip("onnxruntime")
    if kind == "sklearn":
        pytest.importorskip("sklearn")
    with warnings.catch_warnings():
        # Broken numbers overflow wherever they go: what counts is what comes of it.
        warnings.simplefilter("ignore")
        tried, findings = (
            fuzz(kind, float(LONGER), 1) if LONGER else fuzz(kind, GUARD_S, 1, TRIES[kind])
        )
    assert not findings, "\n\n".join(
        f"{f.what}\n{f.data.decode(errors='replace')[:2000]}" for f in findings
    )
    assert tried > 0
