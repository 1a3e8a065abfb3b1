"""`block_product`: `product` of a factor that is laid out in blocks of columns (`pack-factors`)."""

from __future__ import annotations

import math

from irkit.dialects.product_memory import MatrixInMemory, matrices_of_b, run_of_b
from irkit.dialects.products import PACKED_ROWS, Product, as_block_product, windows
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.groups import part, store
from irkit.rkernels.binding.panels import pack_panel
from irkit.rkernels.families.product import cut_one
from irkit.rkernels.family import Family, leading_parts, of_floats


def rows_in_place(product: Product) -> MatrixInMemory | None:
    """How B's columns, whose terms lie side by side, lie in memory; None where they are to be copied."""
    run, found = run_of_b(product), windows(product)
    if run is None or found is None or not run.by_k:
        return None
    sums = tensor_type(product.op.results[0]).element_type
    return matrices_of_b(product) if tensor_type(found[0]).element_type == sums else None


class BlockProduct(Family):
    """`PART`, `INIT`, `STORE`, pointer `A` and `K` as `product`; `DEPTH`: how many rows A has, filled up.

    `IN_PLACE`: whether B is read where it lies: `SOURCE`, column c of group b from FIRST + b * BETWEEN + c *
    BELOW on. Else `PACK_B`, of parameter `WIDE`: terms of some columns into a panel, which is `SOURCE`.
    """

    name = "block_product"

    def refuses(self, root: Root) -> str | None:
        """A contraction of floats, one operand of which is laid out in blocks."""
        if root.family != "conv" or as_block_product(root) is None:
            return "its root is no product of a factor in blocks of columns"
        return of_floats(root)

    def grid(self, root: Root, tasks: int) -> list[int]:
        """One loop is cut, the first of its group: where the largest part is the least work. Columns of B are
        the template's rows, whose number it is printed for: where it is known they are not cut."""
        if DYNAMIC in root.parallel:
            return leading_parts(root, tasks)
        product = as_block_product(root)
        assert product is not None
        known = product.extent(product.columns)

        def work(batch: float, lead: float, rows: float, columns: float) -> float:
            if columns != known:
                return math.inf
            return batch * lead * math.ceil(rows / PACKED_ROWS) * (columns + 4)

        return cut_one(product, len(root.parallel), tasks, work)

    def bind(self, binder: Binder) -> None:
        """On a CPU alone: there is no template for a GPU."""
        product = as_block_product(binder.root)
        found = windows(product) if product is not None else None
        if product is None:
            raise UnsupportedError("it is no product of a factor in blocks of columns")
        names, matrix = binder.binding.names, rows_in_place(product)
        names["A"] = f"p{product.in_place.index}"
        names["SOURCE"] = f"p{found[0].index}" if found is not None and matrix else "panels"
        rows = product.extent(product.m)
        at = matrix or MatrixInMemory(0, 0, 0)
        for name, value in (
            ("K", product.extent(product.k)), ("DEPTH", -(-rows // PACKED_ROWS) * PACKED_ROWS),
            ("IN_PLACE", int(matrix is not None)), ("FIRST", at.first), ("BETWEEN", at.between),
            ("BELOW", at.pitch),
        ):  # fmt: skip
            binder.literal(name, value)
        part(binder, product)
        store(binder, product)
        pack_panel(binder, product, "PACK_B", binder.parameter("WIDE"))
