"""An rKernel of one's own, registered from outside the package.

    python examples/own_rkernel.py

A softmax over rows in two passes instead of three, after M. Milakov and N. Gimelshein, Online
normalizer calculation for softmax, 2018: the sum is mended whenever a larger maximum comes. It is a
template (docs/emission.md): emission replaces the names in capitals by literals and by the functions
that are fused into it. `legal` limits it to long rows, and its cost lets `partition-rtasks` prefer it
there; nothing else has to know of it.
"""

from __future__ import annotations

import math
import sys

import numpy as np

import irkit
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import tensor_type
from irkit.extending import add_rkernel
from irkit.rkernels.registry import RKernel
from irkit.rkernels.work import Part, Work, work


def softmax_online(task, tasks, rows, scratch, OPERANDS):
    """Maximum and sum in one pass, results in another."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    for r in range(r0, r1):
        top = LOAD(OPERANDS, r, 0)
        total = FLOAT(1)
        for j in range(1, J):
            x = LOAD(OPERANDS, r, j)
            if x > top:
                total = total * math.exp(top - x) + FLOAT(1)
                top = x
            else:
                total += math.exp(x - top)
        for j in range(J):
            STORE(OPERANDS, r, j, math.exp(LOAD(OPERANDS, r, j) - top) / total)


def long_rows(root: Root) -> bool:
    """Rows of 64 elements or more."""
    assert root.op is not None
    return tensor_type(root.op.results[0]).get_shape()[-1] >= 64


def counted(part: Part) -> Work:
    """Two passes: what an element takes in both, by kinds of work that every vDevice has rates for."""
    each = part.loads * 2 + work(chain=1, scalar=2, exp=2, divide=1) + part.store
    return each * part.elements + work(row=2 * part.rows)


ONLINE = RKernel(
    "softmax",
    "online",
    "cpu",
    __name__,
    "softmax_online",
    legal=long_rows,
    work=counted,
)

MODULE = """
func.func @main(%x: tensor<?xCOLUMNSxf32>) -> tensor<?xCOLUMNSxf32> {
  %0 = graph.softmax %x {axis = 1 : i64} : (tensor<?xCOLUMNSxf32>) -> tensor<?xCOLUMNSxf32>
  func.return %0 : tensor<?xCOLUMNSxf32>
}
"""


def register() -> None:
    """Make the rKernel known; `irkit-opt --load-plugin=examples/own_rkernel.py` calls this too."""
    add_rkernel(ONLINE)


def main() -> int:
    """Compile softmax over short and long rows; 1 if the wrong rKernel was taken, or a value is off."""
    register()
    wanted, right = {16: "softmax.rows", 200: "softmax.online"}, True
    for columns, rkernel in wanted.items():
        module = irkit.parse(MODULE.replace("COLUMNS", str(columns)))
        program = irkit.compile(module, target="cpu")
        x = np.random.default_rng(0).standard_normal((3, columns), dtype=np.float32)
        e = np.exp(x - x.max(axis=1, keepdims=True))
        off = float(np.abs(program(x) - e / e.sum(axis=1, keepdims=True)).max())
        (found,) = (op["rkernel"] for op in program.report()["roperators"].values())
        print(f"rows of {columns}: {found}, largest difference {off:.1e}")
        right &= found == rkernel and off < 1e-6
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
