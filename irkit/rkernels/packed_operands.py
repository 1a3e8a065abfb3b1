"""Which products of matrices have operands that are packed (`te.pack`), or could have."""

from __future__ import annotations

from xdsl.dialects.builtin import Float32Type

from irkit.dialects import te
from irkit.dialects.packed_terms import FEWEST_SCALED, FORMATS, SCALED
from irkit.dialects.precision import Precision, precision_of
from irkit.dialects.product_memory import matrix_of_b
from irkit.dialects.products import Product
from irkit.dialects.types import tensor_type


def packed_operands(product: Product) -> tuple[te.PrepackedOp, te.PrepackedOp] | None:
    """Both operands where they are packed, in one way."""
    a, b = (product.op.inputs[i].owner for i in (product.a, product.b))
    if not isinstance(a, te.PrepackedOp) or not isinstance(b, te.PrepackedOp):
        return None
    depth = product.extent(product.k)
    alike = a.precision == b.precision and a.depth.value.data == b.depth.value.data == depth
    return (a, b) if alike and a.terms.value.data == 1 else None


def packed_alone(product: Product) -> int | None:
    """The number of the only operand that is packed, the other being as it lies in memory; None if there is
    none."""
    packed = [
        i for i in (product.a, product.b) if isinstance(product.op.inputs[i].owner, te.PrepackedOp)
    ]
    if len(packed) != 1:
        return None
    owner = product.op.inputs[packed[0]].owner
    assert isinstance(owner, te.PrepackedOp)
    alike = owner.precision.data in packings_of(product)
    whole = owner.depth.value.data == product.extent(product.k)
    return packed[0] if alike and whole else None


def packings_of(product: Product) -> list[str]:
    """What the terms of a product of matrices may be packed as, by name in FORMATS; none where they cannot
    be."""
    elements = {tensor_type(product.op.inputs[i]).element_type for i in (product.a, product.b)}
    if len(elements) != 1 or matrix_of_b(product) is None or product.batch:
        return []
    (element,), asked = elements, precision_of(product.op)
    if asked is Precision.IEEE:
        return []
    if not isinstance(element, Float32Type):
        return [name for name, f in FORMATS.items() if f.parts == 1 and f.element == element]
    scaled = asked is Precision.FLOAT32 and product.extent(product.k) >= FEWEST_SCALED
    return [asked.value, SCALED] if scaled else [asked.value]
