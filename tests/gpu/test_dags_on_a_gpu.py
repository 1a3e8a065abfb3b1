"""DAGs of kernels on a GPU: the six programs of the benchmarks in all modes, and launches as they come."""

from __future__ import annotations

import numpy as np
import pytest

import irkit
from benchmarks.dag_kernels import difference, square
from benchmarks.dag_programs import WORKLOADS, Workload
from benchmarks.dags import Bench, open_device
from irkit.runtime.cuda.availability import why_not

pytestmark = [
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
    pytest.mark.filterwarnings("ignore:.*Grid size:Warning"),
]
SIZES = {"VEC": 100_000, "B&S": 10_000, "ML": 500, "HITS": 10_000, "IMG": 200, "DL": 300}


@pytest.mark.parametrize("e2e", [True, False])
@pytest.mark.parametrize("work", WORKLOADS, ids=lambda w: w.name)
def test_all_modes_are_right(work: Workload, e2e: bool) -> None:
    """Three runs each: streams, the graph when it is made, the graph again."""
    bench = Bench(work, SIZES[work.name], open_device("cuda"), (64, 128))
    for mode, run in bench.modes(e2e).items():
        with bench.opened(mode):
            for _ in range(3):
                bench.reset()
                run()
                bench.check(e2e)
    bench.close()


def test_launches_as_they_come() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random(100_000, np.float32), rng.random(100_000, np.float32)
    with irkit.dag(eager=True) as d:
        x1, y1 = d.empty(x.size, x.dtype), d.empty(y.size, y.dtype)
        for _ in range(200):
            z = np.zeros(1, np.float32)
            square[64, 128](x, x1)
            square[64, 128](y, y1)
            difference[64, 128](x1, y1, z)
            right = (x.astype(float) ** 2).sum() - (y.astype(float) ** 2).sum()
            assert d.read(z)[0] == pytest.approx(right, rel=1e-2, abs=1.0)
            assert d.kept() < 2000


@pytest.mark.parametrize("mode", ["persistent", "per-wave"])
def test_programs_in_streams(mode: str) -> None:
    """Runs side by side and one behind the other, put into streams and replayed as a graph."""
    text = """
    func.func @main(%x: tensor<?x64xf32>, %w: tensor<64x64xf32>) -> tensor<?x64xf32> {
      %0 = graph.matmul %x, %w : (tensor<?x64xf32>, tensor<64x64xf32>) -> tensor<?x64xf32>
      %1 = graph.softmax %0 {axis = 1 : i64} : (tensor<?x64xf32>) -> tensor<?x64xf32>
      func.return %1 : tensor<?x64xf32>
    }
    """
    program = irkit.compile(irkit.parse(text), target="cuda", mode=mode, cache=False)
    rng = np.random.default_rng(0)
    x, w = rng.random((512, 64), np.float32), rng.random((64, 64), np.float32)
    out = [np.zeros_like(x) for _ in range(4)]
    with irkit.dag() as d:
        for one in out:
            inner = d.empty(x.shape, x.dtype)
            d.call(program, x, w, out=inner)
            d.call(program, inner, w, out=one)
    with d.plan() as plan:
        for run in range(4):
            plan.run()
            right = program(program(x, w), w)
            for one in out:
                np.testing.assert_allclose(one, right, rtol=1e-6)
            x += run
