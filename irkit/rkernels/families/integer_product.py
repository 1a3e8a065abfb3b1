"""`integer_product`: `product` of factors of 8 or 16 bits in sums of 32."""

from __future__ import annotations

from xdsl.dialects.builtin import i16, i32

from irkit.dialects.products import Product, as_product, of_bytes, padding_of
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import is_unsigned, tensor_type
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.fetching import fetch
from irkit.rkernels.binding.groups import part, store
from irkit.rkernels.binding.packing import pack
from irkit.rkernels.families.product import MatrixProduct


class IntegerProduct(MatrixProduct):
    """`PART`, `INIT`, `STORE`, pointer `A`, `M`, `K`, `TRANSPOSED`, `PACK`, `COLUMN`, `STEP`, `FETCH` and
    `INSIDE` as `product`.

    On a CPU terms 2n and 2n + 1 of a column of i16 lie side by side in the panel: `panel[k // 2 * 2 * width
    + 2 * i + k % 2]`. Of bytes: `OF_SIGNED` and `BY_SIGNED`, whether A's and B's are signed; `TURNED`,
    whether B's are alike; `BYTES`, a pointer to such as B's; `FILL`, what stands where an index of B lies
    outside.
    """

    name = "integer_product"

    def refuses(self, root: Root) -> str | None:
        """A contraction of bytes or i16 in i32 with one operand in memory, in the order of the loops."""
        product = as_product(root) if root.family in ("gemm", "conv") else None
        if product is None:
            return "its root is no product of two operands, one of them in memory"
        types = [tensor_type(v).element_type for v in (*product.op.inputs, product.op.results[0])]
        if of_bytes(product) or types == [i16, i16, i32]:
            return None
        return "its factors are not bytes, or i16, with sums of i32"

    def bind(self, binder: Binder) -> None:
        """How B is read is the target's."""
        product = as_product(binder.root)
        if product is None:
            raise UnsupportedError("it is no product of two operands, one of them in memory")
        a = product.op.inputs[product.a]
        binder.binding.names |= {
            "A": f"p{binder.block.args.index(a)}",
            "M": str(max(product.extent(product.m), 0)),
            "K": str(product.extent(product.k)),
            "TRANSPOSED": str(int(product.transposed)),
        }
        part(binder, product)
        if of_bytes(product):
            byte_factors(binder, product)
        if binder.target == "cpu":
            pack(binder, product, pairs=not of_bytes(product))
        store(binder, product)
        if binder.target == "cuda":
            fetch(binder, product)


def byte_factors(binder: Binder, product: Product) -> None:
    """What is said of the factors of a product of bytes."""
    signed = [
        not is_unsigned(tensor_type(product.op.inputs[i]).element_type)
        for i in (product.a, product.b)
    ]
    binder.literal("OF_SIGNED", int(signed[0]))
    binder.literal("BY_SIGNED", int(signed[1]))
    binder.literal("TURNED", int(signed[0] == signed[1]))
    binder.literal("FILL", padding_of(product))
    binder.binding.names["BYTES"] = "int8p" if signed[1] else "uint8p"
