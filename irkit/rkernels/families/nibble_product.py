"""`nibble_product`: a product with a matrix of 4-bit integers."""

from __future__ import annotations

from collections.abc import Sequence

from irkit.dialects import te
from irkit.dialects.nibbles import WIDTH
from irkit.dialects.roperator_root import Root
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.family import Family, of_floats


class NibbleProduct(Family):
    """`RANGE` of rows and columns, pointers `X`, `PACKED`, `SCALES` and `ZEROS`, which is that of the scales
    where `CENTRED` is 1: there are no zero points; `K` terms, `BLOCK` of them in each of `BLOCKS`, panels of
    `WIDTH` columns; `STORE(OPERANDS, r, j, acc)`."""

    name = "nibble_product"

    def refuses(self, root: Root) -> str | None:
        """Only `te.nibble_matmul`."""
        if not isinstance(root.op, te.NibbleMatmulOp):
            return "its root is no product with a matrix of 4-bit integers"
        return of_floats(root)

    def grid(self, root: Root, tasks: int) -> list[int]:
        """Parts of the columns, a panel or more each: every row's factors serve all of them."""
        return [1, max(1, min(tasks, root.parallel[1] // WIDTH))]

    def refuses_grid(self, root: Root, grid: Sequence[int]) -> str | None:
        """Columns alone are cut."""
        return "only dimension 1 can be cut" if grid[0] > 1 else None

    def operations(self, root: Root, rows: int) -> float:
        """A multiply-add for each term of each result."""
        assert isinstance(root.op, te.NibbleMatmulOp)
        return super().operations(root, rows) * root.op.depth

    def bind(self, binder: Binder) -> None:
        """Operands must lie in memory, up to reshapes."""
        op = binder.root.op
        if not isinstance(op, te.NibbleMatmulOp):
            raise UnsupportedError("a product with a matrix of 4-bit integers of another root")
        binder.range()
        names = binder.binding.names
        names["X"], names["PACKED"], names["SCALES"] = (binder.pointer(v) for v in op.operands[:3])
        names["ZEROS"] = names["SCALES"] if op.zeros is None else binder.pointer(op.zeros)
        binder.literal("CENTRED", int(op.zeros is None))
        binder.literal("K", op.depth)
        binder.literal("BLOCK", op.terms)
        binder.literal("BLOCKS", op.blocks)
        binder.literal("WIDTH", WIDTH)
        binder.store("r, j, acc", binder.rj_index, binder.accumulated)
