"""A family of rKernels of one's own, registered from outside the package.

    python examples/own_family.py

Sums over the last dimension of an operand in memory. The general family of reductions gives its templates
one term at a time; this one gives them the operand itself, so that a template may choose in which order a
row is summed: here by pairs, whose rounding error grows with the logarithm of the row's length (N. Higham,
The accuracy of floating point summation, 1993). The family says which roots it can look at and what the
names in capitals become; the rKernel is a template (docs/emission.md) and its cost. `partition-rtasks`,
`verify-schedule` and emission ask the family; nothing else has to know of it.
"""

from __future__ import annotations

import sys

import numpy as np
from xdsl.ir import BlockArgument
from xdsl.ir.affine import AffineMap

import irkit
from irkit.dialects.linalg_generic import combiner, maps
from irkit.dialects.roperator_root import Root
from irkit.extending import add_family, add_rkernel
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.family import Family, of_floats
from irkit.rkernels.registry import RKernel


class RowSums(Family):
    """`RANGE`, `INIT(OPERANDS, r, j)`, `STORE(OPERANDS, r, j, acc)`, pointer `X` and `K`, a row's length.

    The row of output r, j starts at `X[(r * J + j) * K]`.
    """

    name = "pair_sums"

    def refuses(self, root: Root) -> str | None:
        """Only sums of the last dimension of an operand, as it lies in memory."""
        if root.family != "reduce" or len(root.reduction) != 1 or len(root.chain[0].inputs) != 1:
            return "its root is no sum over one dimension"
        (op,) = root.chain
        found = combiner(op)
        if found is None or found[0] != "add" or set(found[1].operands) != set(op.body.block.args):
            return "its root is no plain sum"
        in_memory = isinstance(op.inputs[0], BlockArgument)
        if not in_memory or maps(op)[0] != AffineMap.identity(len(root.parallel) + 1):
            return "its rows do not lie in memory as they are summed"
        return of_floats(root)

    def bind(self, binder: Binder) -> None:
        """Ranges, initial values and epilogues are as in every family."""
        (op,) = binder.root.chain
        binder.range()
        binder.binding.names["X"] = binder.pointer(op.inputs[0])
        binder.literal("K", binder.root.reduction[0])
        binder.init("r, j", binder.rj_index)
        binder.store("r, j, acc", binder.rj_index, binder.accumulated)


def by_pairs(task, tasks, rows, scratch, OPERANDS):
    """Blocks of 64 terms, joined as in counting in binary: always two sums of equally many terms."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    sums = STACK(40)
    for r in range(r0, r1):
        for j in range(j0, j1):
            first = (r * J + j) * K
            used = 0
            for block in range((K + 63) // 64):
                total = FLOAT(0)
                for k in range(block * 64, min(block * 64 + 64, K)):
                    total += X[first + k]
                joined = block + 1
                while joined % 2 == 0:
                    used -= 1
                    total = sums[used] + total
                    joined //= 2
                sums[used] = total
                used += 1
            total = FLOAT(0)
            while used > 0:
                used -= 1
                total = total + sums[used]
            STORE(OPERANDS, r, j, INIT(OPERANDS, r, j) + total)


PAIRS = RKernel(
    "pair_sums",
    "pairs",
    "cpu",
    __name__,
    "by_pairs",
    efficiency=1.0,
    reassociates=True,
)

MODULE = """
func.func @main(%x: tensor<?x100000xf32>) -> tensor<?xf32> {
  %0 = graph.reduce %x {kind = "sum", axes = array<i64: 1>, keepdims = false}
    : (tensor<?x100000xf32>) -> tensor<?xf32>
  func.return %0 : tensor<?xf32>
}
"""


def main() -> int:
    """Sum long rows with and without the family; 1 if it was not taken, or is the less exact."""
    x = np.random.default_rng(0).random((4, 100_000), dtype=np.float32)
    exact, errors = x.sum(axis=1, dtype=np.float64), dict[str, float]()
    for wanted in ("reduce.lanes", "pair_sums.pairs"):
        if wanted == "pair_sums.pairs":
            add_family(RowSums())
            add_rkernel(PAIRS)
        program = irkit.compile(irkit.parse(MODULE), target="cpu")
        (found,) = (op["rkernel"] for op in program.report()["roperators"].values())
        errors[found] = float(np.abs(program(x) - exact).max())
        print(f"{found}: largest error {errors[found]:.1e}")
    return 0 if errors.get("pair_sums.pairs", 1.0) < errors.get("reduce.lanes", 0.0) else 1


if __name__ == "__main__":
    sys.exit(main())
