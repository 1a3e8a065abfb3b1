"""Some minutes of the fuzzers; `python -m tools.fuzz` runs them for as long as one likes."""

from __future__ import annotations

import os
import sys
import warnings

import pytest

from tools.fuzz.__main__ import fuzz

SECONDS = float(os.environ.get("IRKIT_FUZZ_SECONDS", "45"))
# Inputs to try, the same on every machine that is fast enough.
MOST = {
    "mlir": 4500, "onnx": 1500, "networks": 400, "sklearn": 150, "functions": 400, "graphs": 120,
    "programs": 300, "effects": 400,
}  # fmt: skip


@pytest.mark.skipif(sys.platform == "win32", reason="time limits need POSIX signals")
@pytest.mark.parametrize("kind", MOST)
def test_nothing_is_found(kind: str) -> None:
    if kind in ("onnx", "networks"):
        pytest.importorskip("onnxruntime")
    if kind == "sklearn":
        pytest.importorskip("sklearn")
    with warnings.catch_warnings():
        # Broken numbers overflow wherever they go: what counts is what comes of it.
        warnings.simplefilter("ignore")
        tried, findings = fuzz(kind, SECONDS, 1, MOST[kind])
    assert not findings, "\n\n".join(
        f"{f.what}\n{f.data.decode(errors='replace')[:2000]}" for f in findings
    )
    assert tried > 0
