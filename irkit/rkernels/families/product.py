"""`product`: `C[b, m, (l, c)] = sum_k A[b, m, k] * B[b, k, (l, c)]`, windows and padding in B."""

from __future__ import annotations

import math
from collections.abc import Callable

from irkit.dialects import te
from irkit.dialects.access_boxes import grid_of
from irkit.dialects.product_memory import matrix_of_b
from irkit.dialects.products import Product, as_product, windows
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.fetching import fetch
from irkit.rkernels.binding.groups import part, rows_of_parts, store
from irkit.rkernels.binding.packing import pack
from irkit.rkernels.family import Family, leading_parts, of_floats


def cut_one(
    product: Product, rank: int, tasks: int, work: Callable[[float, float, float, float], float]
) -> list[int]:
    """A grid of at most `tasks` parts that cuts one loop, the first of its group that is longer than one:
    that by which the largest part is the least `work(batch, lead, rows, columns)`."""
    grid, best = [1] * rank, math.inf
    groups = (product.batch, product.lead, product.m, product.columns)
    for number, dims in enumerate(groups):
        d = next((d for d in dims if product.sizes[d] > 1), None)
        if d is None:
            continue
        parts = min(tasks, product.sizes[d])
        longest = [float(math.prod(product.extents(g))) for g in groups]
        longest[number] *= math.ceil(product.sizes[d] / parts) / product.sizes[d]
        found = work(*longest)
        if found < best:
            grid, best = [parts if e == d else 1 for e in range(rank)], found
    return grid


class MatrixProduct(Family):
    """Contractions and convolutions as a product of matrices, A in memory (`irkit.dialects.products`).

    `PART`, `INIT`, `STORE`, pointer `A`, `M`, `K`, `TRANSPOSED`; on a CPU `PACK` and,
    where B is a matrix of rows in memory, pointer `B` and `COLUMNS`, on a GPU `COLUMN`,
    `STEP`, `FETCH`, `INSIDE` and `LEAVE`.
    """

    name = "product"

    def refuses(self, root: Root) -> str | None:
        """A contraction of floats with one operand in memory, in the order of the loops."""
        if root.family not in ("gemm", "conv") or as_product(root) is None:
            return "its root is no product of two operands, one of them in memory"
        return of_floats(root)

    def product(self, root: Root) -> Product | None:
        """How the family sees `root`."""
        return as_product(root)

    def grid(self, root: Root, tasks: int) -> list[int]:
        """One loop is cut, the first of its group: where the largest part is the least work. Whole tiles
        are computed, and every part that has all columns packs them all."""
        if DYNAMIC in root.parallel:
            return leading_parts(root, tasks)
        product = self.product(root)
        assert product is not None

        def work(batch: float, lead: float, rows: float, columns: float) -> float:
            return batch * lead * (math.ceil(rows / 4) * 4 + 12) * math.ceil(columns / 16) * 16

        return cut_one(product, len(root.parallel), tasks, work)

    def bind(self, binder: Binder) -> None:
        """How B is read is the target's."""
        product = as_product(binder.root)
        if product is None:
            raise UnsupportedError("it is no product of two operands, one of them in memory")
        binder.binding.names |= {
            "A": f"p{product.in_place.index}",
            "M": str(max(product.extent(product.m), 0)),
            "K": str(product.extent(product.k)),
            "TRANSPOSED": str(int(product.transposed)),
        }
        _packed(binder, product)
        part(binder, product)
        if binder.target == "cpu":
            pack(binder, product)
            store(binder, product)
            _matrix(binder, product)
        else:
            store(binder, product)
            fetch(binder, product)
            binder.literal("WHOLE_M", rows_of_parts(product, grid_of(binder.op, binder.root)))
            _leave(binder)


def _leave(binder: Binder) -> None:
    """`LEAVE(OPERANDS, staged, place, threads, sizes, first, ends, fours, anew, unsure, above=0)`, where
    both operands lie in memory."""
    if "AT" in binder.binding.names:
        binder.binding.part("LEAVE", "irkit.rkernels.cuda.product_tile", "leave_tile")


def _matrix(binder: Binder, product: Product) -> None:
    """`B` and `COLUMNS`, where B lies in memory row behind row of so many columns."""
    found = windows(product)
    if found is not None and matrix_of_b(product) is False:
        binder.binding.names["B"] = f"p{found[0].index}"
        binder.literal("COLUMNS", product.extent(product.columns))


def _packed(binder: Binder, product: Product) -> None:
    """`PACKED_A`, `PACKED_B` and how many groups of rows they have, `GROUPS_A` and `GROUPS_B`, where operands
    are packed; else an operand in memory as it is, of no groups: templates read one or the other."""
    names, found = binder.binding.names, windows(product)
    names |= {"PACKED_A": names["A"], "GROUPS_A": "0"}
    if found is not None:
        names |= {"PACKED_B": f"p{found[0].index}", "GROUPS_B": "0"}
    for letter, number in (("A", product.a), ("B", product.b)):
        owner = product.op.inputs[number].owner
        if isinstance(owner, te.PrepackedOp):
            binder.binding.names[f"PACKED_{letter}"] = binder.pointer(owner.packed)
            binder.literal(f"GROUPS_{letter}", tensor_type(owner.packed).get_shape()[2])
