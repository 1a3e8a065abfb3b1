"""A machine of one's own, registered from outside the package.

    python examples/own_device.py

A vDevice is all that the scheduler knows of a machine: how many execution units run at once, what
memory each has, what a wait between two of them costs, and nanoseconds for a unit of each kind of work, from
which the costs of all rKernels follow. Here a CPU with three cores, where waits are dear, and a GPU that
this machine need not have: a program for it is compiled and saved.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

import irkit
from irkit.extending import add_device
from irkit.schedule.model import VDevice
from irkit.schedule.rates import default_rates

BOARD = VDevice(
    name="three-cores",
    kind="cpu",
    veus=3,
    threads=1,
    shared_bytes=0,
    wait_ns=2000.0,
    rates=default_rates("cpu") | {"fma": 0.25, "byte": 0.5},
)
GPU = VDevice(
    name="small-gpu",
    kind="cuda",
    veus=16,
    threads=256,
    shared_bytes=96 * 1024,
    wait_ns=1000.0,
    multiprocessors=16,
    arch="sm_86",
    l2_bytes=2 * 1024 * 1024,
    rates=default_rates("h200") | {"fma": 0.01, "byte": 0.05},
)

MODULE = """
func.func @main(%x: tensor<?x64xf32>, %w: tensor<64x64xf32>) -> tensor<?x64xf32> {
  %0 = graph.matmul %x, %w : (tensor<?x64xf32>, tensor<64x64xf32>) -> tensor<?x64xf32>
  %1 = graph.softmax %0 {axis = 1 : i64} : (tensor<?x64xf32>) -> tensor<?x64xf32>
  func.return %1 : tensor<?x64xf32>
}
"""


def register() -> None:
    """Make both known; `irkit-opt --load-plugin=examples/own_device.py` calls this too."""
    add_device(BOARD)
    add_device(GPU)


def main() -> int:
    """Run on the one, save a program for the other; 1 if a value is off or a plan uses too many vEUs."""
    register()
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s, dtype=np.float32) for s in ((40, 64), (64, 64)))
    program = irkit.compile(irkit.parse(MODULE), device="three-cores")
    e = np.exp(x @ w - (x @ w).max(axis=1, keepdims=True))
    off = float(np.abs(program(x, w) - e / e.sum(axis=1, keepdims=True)).max())
    widest = max(timeline.veus for timeline in program.timelines())
    print(f"{program.report()['device']}: {widest} vEUs, largest difference {off:.1e}")
    other = irkit.compile(irkit.parse(MODULE), device="small-gpu")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program.irkit")
        other.save(path)
        print(f"{other.report()['device']}: {other.target}, saved in {path.stat().st_size} bytes")
    right = off < 1e-5 and widest == BOARD.veus and 'device = @"small-gpu"' in other.ir()
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
