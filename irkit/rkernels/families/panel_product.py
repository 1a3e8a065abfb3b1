"""`panel_product`: `product` of two operands that are both copied, however they lie."""

from __future__ import annotations

from irkit.dialects.panel_products import as_panel_product, turned
from irkit.dialects.products import Product
from irkit.dialects.roperator_root import Root
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.groups import part, store
from irkit.rkernels.binding.panels import pack_panel, walk_of
from irkit.rkernels.families.product import MatrixProduct
from irkit.rkernels.family import of_floats

_FEW_TERMS = 16


class PanelProduct(MatrixProduct):
    """`PART`, `INIT`, `STORE`, `K` and `TRANSPOSED` as `product`.

    `PACK_A` and `PACK_B`, of parameters `TILE`, `ACROSS` and `LANES`: part of A's rows, or of B's columns,
    term by term into a panel. `DEEP_A` and `DEEP_B`: how many terms are best copied at once.
    """

    name = "panel_product"

    def refuses(self, root: Root) -> str | None:
        """A contraction of floats, each operand of which has loops of its own."""
        if root.family not in ("gemm", "conv") or as_panel_product(root) is None:
            return "its root is no product of two operands, each with loops of its own"
        return of_floats(root)

    def product(self, root: Root) -> Product | None:
        return as_panel_product(root)

    def bind(self, binder: Binder) -> None:
        """On a CPU alone: there is no template for a GPU."""
        product = as_panel_product(binder.root)
        if product is None:
            raise UnsupportedError("it is no product of two operands, each with loops of its own")
        binder.literal("K", product.extent(product.k))
        binder.literal("TRANSPOSED", int(product.transposed))
        part(binder, product)
        store(binder, product)
        pack_panel(binder, turned(product), "PACK_A", binder.parameter("TILE"))
        for letter, of in (("A", turned(product)), ("B", product)):
            binder.literal(f"DEEP_{letter}", _deep(of, binder.parameter("KC")))
        across = binder.parameter("ACROSS") * binder.parameter("LANES")
        pack_panel(binder, product, "PACK_B", across)


def _deep(product: Product, most: int) -> int:
    """Terms of B that are copied for one panel after another: few where B's columns lie side by side, so that
    memory is read along them."""
    walk = walk_of(product)
    return most if walk is None or walk.by_k else min(most, _FEW_TERMS)
