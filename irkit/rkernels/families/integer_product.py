"""`integer_product`: `product` of factors of 16 bits in sums of 32, on a CPU."""

from __future__ import annotations

from xdsl.dialects.builtin import i16, i32

from irkit.dialects.products import as_product
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import tensor_type
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.binder import Binder
from irkit.rkernels.binding.groups import part, store
from irkit.rkernels.binding.packing import pack
from irkit.rkernels.families.product import MatrixProduct


class IntegerProduct(MatrixProduct):
    """`PART`, `INIT`, `STORE`, pointer `A`, `M`, `K`, `TRANSPOSED` and `PACK` as `product`, but that terms
    2n and 2n + 1 of a column lie side by side in the panel: `panel[k // 2 * 2 * width + 2 * i + k % 2]`."""

    name = "integer_product"

    def refuses(self, root: Root) -> str | None:
        """A contraction of i16 in i32 with one operand in memory, in the order of the loops."""
        product = as_product(root) if root.family in ("gemm", "conv") else None
        if product is None:
            return "its root is no product of two operands, one of them in memory"
        types = [tensor_type(v).element_type for v in (*product.op.inputs, product.op.results[0])]
        return None if types == [i16, i16, i32] else "its factors are not i16 with sums of i32"

    def bind(self, binder: Binder) -> None:
        """B is packed in pairs of terms."""
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
        pack(binder, product, pairs=True)
        store(binder, product)
