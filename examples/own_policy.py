"""A scheduling policy of one's own, registered from outside the package.

    python examples/own_policy.py

A policy says which launch goes to which execution units, in which order, and by which of its options
(`launch.options`: rKernels and grids, and their cost) it is run; waits, memory and the proof come behind it,
as behind irkit's own. This one takes each launch as it comes, the fastest alone, and makes the
bulk-synchronous schedule that most runtimes have: one launch after another, each as wide as the machine lets
it, in a wave of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

import irkit
from irkit.extending import add_policy
from irkit.schedule.model import Append, Buffer, Launch, Schedule, VDevice

MODULE = """
func.func @main(%x: tensor<8x64xf32>, %w: tensor<64x64xf32>) -> tensor<8x64xf32> {
  %0 = graph.matmul %x, %w : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  %1 = graph.softmax %x {axis = 1 : i64} : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %2 = graph.softmax %0 {axis = 1 : i64} : (tensor<8x64xf32>) -> tensor<8x64xf32>
  %3 = graph.matmul %1, %w : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  %4 = graph.add %2, %3 : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  func.return %4 : tensor<8x64xf32>
}
"""


def one_by_one(buffers: Sequence[Buffer], launches: Sequence[Launch], device: VDevice) -> Schedule:
    """Every launch in a wave of its own, on the first vEUs."""
    appends = [
        Append(number, 0, min(launch.tasks, device.veus), wave=number)
        for number, launch in enumerate(launches)
    ]
    return Schedule(device, list(buffers), list(launches), appends)


def register() -> None:
    """Make it known; `irkit-opt --load-plugin=examples/own_policy.py` calls this too."""
    add_policy("one-by-one", one_by_one)


def main() -> int:
    """Compare with irkit's own policy; 1 if a value is off, or waves are not as expected."""
    register()
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s, dtype=np.float32) for s in ((8, 64), (64, 64)))
    mine = irkit.compile(irkit.parse(MODULE), device="cpu4", policy="one-by-one")
    own = irkit.compile(irkit.parse(MODULE), device="cpu4")
    off = float(np.abs(mine(x, w) - own(x, w)).max())
    waves = {p.report()["policy"]: p.report()["waves"] for p in (mine, own)}
    print(f"waves: {waves}, largest difference {off:.1e}, proved for {mine.report()['modes']}")
    right = off < 1e-5 and waves["one-by-one"] == mine.report()["appends"] >= waves["wavefront"]
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
