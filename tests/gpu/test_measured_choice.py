"""Choice by measurement on the GPU at hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irkit
from irkit.driver.measuring import measure_rtasks
from irkit.runtime.cuda import availability

pytestmark = pytest.mark.skipif(
    availability.why_not() is not None, reason=availability.why_not() or "a GPU is there"
)

MODEL = """
func.func @main(%x: tensor<64x256xf32>, %w: tensor<256x128xf32>) -> tensor<64x128xf32> {
  %y = graph.matmul %x, %w : (tensor<64x256xf32>, tensor<256x128xf32>) -> tensor<64x128xf32>
  %p = graph.softmax %y {axis = 1 : i64} : (tensor<64x128xf32>) -> tensor<64x128xf32>
  func.return %p : tensor<64x128xf32>
}
"""


def test_measured_programs_are_right_and_times_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IRKIT_CACHE_DIR", str(tmp_path))
    program = irkit.compile(irkit.parse(MODEL), target="cuda", measure=True)
    rng = np.random.default_rng(0)
    x, w = rng.random((64, 256), np.float32) - 0.5, rng.random((256, 128), np.float32) - 0.5
    y = np.exp(x.astype(np.float64) @ w)
    want = y / y.sum(1, keepdims=True)
    np.testing.assert_allclose(program.run([x, w])[0], want, rtol=1e-4)
    facts = program.report()["roperators"]
    assert {f["cost_from"] for f in facts.values()} == {"measurement"}
    # An rTask takes more than a nanosecond and less than a tenth of a second.
    assert all(1 < f["cost_ns"] < 1e8 for f in facts.values())

    def nothing(*_: object) -> dict[str, float]:
        raise AssertionError("something is measured again")

    monkeypatch.setattr(measure_rtasks, "rtask_times", nothing)
    again = irkit.compile(irkit.parse(MODEL), target="cuda", measure=True, cache=False)
    assert again.report()["roperators"] == facts
