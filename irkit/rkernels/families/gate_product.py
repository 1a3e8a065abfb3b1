"""`gate_product`: `acc[g] = sum_k A[m, k] * B[k, (u, g)]`, of which one element of each result is made."""

from __future__ import annotations

from collections.abc import Sequence

from irkit.dialects.products import Product, as_product
from irkit.dialects.roperator_body import GATES
from irkit.dialects.roperator_root import Root
from irkit.dialects.tensor_ops.interface import Index
from irkit.dialects.types import DYNAMIC
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.elements import linear
from irkit.rkernels.binding.fetching import fetch
from irkit.rkernels.binding.groups import part
from irkit.rkernels.family import Family, of_floats


class GateProduct(Family):
    """Products whose epilogue makes elements (m, u) of the sums (m, u, g) of all g: the gates of a unit.

    What templates of `product` on a GPU are given, where `LEAVE` hands the sums of a unit to
    `STORE(OPERANDS, m, u, acc)`, each with what it starts from, `INIT(OPERANDS, m, u, g)`; `G` is how many.
    """

    name = GATES

    def refuses(self, root: Root) -> str | None:
        """Rows of one operand in memory, and columns that are units, each of its gates."""
        if root.family != GATES:
            return "its elements are made of one sum each"
        product = as_product(root)
        if product is None or DYNAMIC in root.parallel or not _by_unit(product):
            return "its root is no product of rows in memory by units of several sums"
        return of_floats(root)

    def grid(self, root: Root, tasks: int) -> list[int]:
        """Parts of the units."""
        return [1, min(tasks, root.parallel[1]), 1]

    def refuses_grid(self, root: Root, grid: Sequence[int]) -> str | None:
        """The gates of a unit are one rTask's."""
        return "the sums of a unit cannot be cut" if grid[-1] > 1 else None

    def bind(self, binder: Binder) -> None:
        """Sums reach the epilogue unit by unit."""
        product, gates = as_product(binder.root), binder.root.parallel[-1]
        if product is None or binder.target != "cuda":
            raise UnsupportedError("gates of a product on a CPU")
        binder.binding.names["A"] = f"p{product.in_place.index}"
        for name, value in (
            ("M", product.extent(product.m)),
            ("K", product.extent(product.k)),
            ("TRANSPOSED", 0),
            ("G", gates),
        ):
            binder.literal(name, value)
        part(binder, product)
        binder.init("m, u, g", lambda _: ("m", "u", "g"))

        def accumulator(index: Index) -> str:
            if index[:2] != ("m", "u"):
                raise UnsupportedError("an epilogue that reads another unit's sums")
            return f"acc[{linear(index[2:], (gates,))}]"

        binder.store("m, u, acc", lambda _: ("m", "u"), accumulator)
        fetch(binder, product)
        binder.binding.part("LEAVE", "irkit.rkernels.cuda.gate_product", "leave_gates")


def _by_unit(product: Product) -> bool:
    groups = (product.batch, product.m, product.lead, product.columns)
    return groups == ((), (0,), (), (1, 2))
