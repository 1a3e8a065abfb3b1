"""`gemm`: a contraction over one dimension, where A has no columns and B no rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir.affine import AffineMap

from irkit.dialects.linalg_generic import maps
from irkit.dialects.roperator_root import Root, gemm_inputs
from irkit.dialects.tensor_ops.interface import Index
from irkit.dialects.types import DYNAMIC
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import ElementPrinter
from irkit.rkernels.family import Family, leading_parts, of_floats


class Gemm(Family):
    """`RANGE`, `LOAD_A(OPERANDS, r, k)`, `LOAD_B(OPERANDS, k, j)`, `INIT(OPERANDS, r, j)`,
    `STORE(OPERANDS, r, j, acc)`, `K`."""

    name = "gemm"

    def refuses(self, root: Root) -> str | None:
        """One plain contraction."""
        if root.family != "gemm":
            return f"its root is of family '{root.family}', no gemm"
        if len(root.chain) != 1 or gemm_inputs(root) is None:
            return "its root has no operand of rows and one of columns"
        return of_floats(root)

    def grid(self, root: Root, tasks: int) -> list[int]:
        """Tiles of a matrix whose size is known; else by leading dimensions."""
        if len(root.parallel) == 2 and root.parallel[0] != DYNAMIC:
            return _tile_grid(root.parallel, tasks)
        return leading_parts(root, tasks)

    def bind(self, binder: Binder) -> None:
        """Both operands are read through what is fused before them."""
        op, order = binder.root.chain[-1], gemm_inputs(binder.root)
        if order is None:
            raise UnsupportedError("a contraction without an operand of rows and one of columns")
        binder.range()
        binder.init("r, j", binder.rj_index)
        binder.literal("K", binder.root.reduction[0])
        for placeholder, arguments, number in (
            ("LOAD_A", "r, k", order[0]),
            ("LOAD_B", "k, j", order[1]),
        ):
            amap = maps(op)[number]

            def index(
                printer: ElementPrinter, amap: AffineMap = amap, rows: bool = "r" in arguments
            ) -> Index:
                lead = binder.index("r", "j", printer)[:-1] if rows else ("0",) * len(binder.lead)
                loops = (*lead, "j", "k")
                return tuple(printer.affine(e, loops) for e in amap.results)

            binder.load(placeholder, arguments, op.inputs[number], index)
        binder.store("r, j, acc", binder.rj_index, binder.accumulated)


def _tile_grid(sizes: Sequence[int], tasks: int) -> list[int]:
    """Two-dimensional tiles, as square as the task count allows."""
    rows, columns = sizes
    best = [1, 1]
    for down in range(1, min(rows, tasks) + 1):
        across = min(columns, tasks // down)
        edge = abs(math.log((rows / down) / (columns / across)))
        if down * across > best[0] * best[1] or (
            down * across == best[0] * best[1]
            and edge < abs(math.log((rows / best[0]) / (columns / best[1])))
        ):
            best = [down, across]
    return best
