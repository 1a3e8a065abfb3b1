"""Operands of matrix products as the copy engine copies them in boxes: what `product_boxes.py` tells it."""

from __future__ import annotations

from irkit.dialects.product_memory import matrices_of_b, run_of_b
from irkit.dialects.products import windows
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.rkernels.boxes import Boxed
from irkit.rkernels.cuda import product_wgmma_halves as halves
from irkit.rkernels.cuda.product import product_of
from irkit.rkernels.cuda.product_mma import TF32
from irkit.rkernels.rkernel import Parameters

# No rKernel of its own.
RKERNELS = ()


def depth_of(root: Root) -> int:
    """Terms of a sum."""
    product = product_of(root)
    return product.extent(product.k)


def steps_fit(root: Root) -> bool:
    """Whether the copy engine can take each operand: it starts at 16 bytes, and steps are such; B's matrices
    lie one behind another, and so do its runs."""
    product = product_of(root)
    found, run = matrices_of_b(product), run_of_b(product)
    assert found is not None
    assert run is not None
    unit = 16 // bytes_of(root)
    if any(n % unit for n in (found.first, found.pitch, found.between, depth_of(root))):
        return False
    groups = (product.k, product.columns) if run.by_k else (product.columns, product.k)
    side, runs = (product.extent(g) for g in groups)
    if runs > 1 and found.pitch < side:
        return False
    return product.extent(product.batch) == 1 or found.between >= max(found.pitch, side) * runs


def bytes_of(root: Root) -> int:
    """Of an element of either operand."""
    product = product_of(root)
    return numpy_dtype(tensor_type(product.op.inputs[product.a]).element_type).itemsize


_ELEMENTS = {TF32: "tfloat32", halves.BF16: "bfloat16", halves.F16: "float16"}


def map_of_a(root: Root, p: Parameters) -> Boxed:
    """Rows of terms."""
    product = product_of(root)
    k, m, batch = (product.extent(g) for g in (product.k, product.m, product.batch))
    size = bytes_of(root)
    steps = (k * size, k * m * size)
    box = (p["PLANE"], p["BM"], 1)
    return Boxed(product.in_place.index, _ELEMENTS[p["KIND"]], (k, m, batch), steps, box)


def map_of_b(root: Root, p: Parameters) -> Boxed:
    """Columns of terms, or terms of columns."""
    product, size = product_of(root), bytes_of(root)
    found, run, source = matrices_of_b(product), run_of_b(product), windows(product)
    assert found is not None
    assert run is not None
    assert source is not None
    k, n, batch = (product.extent(g) for g in (product.k, product.columns, product.batch))
    sizes, box = ((k, n, batch), (p["PLANE"], p["BN"], 1))
    if not run.by_k:
        sizes, box = (n, k, batch), (64, p["BK"], 1)
    pitch = max(found.pitch, sizes[0])
    # Of one matrix any step will do.
    steps = (pitch * size, max(found.between, pitch * sizes[1]) * size)
    first = found.first * size
    return Boxed(source[0].index, _ELEMENTS[p["KIND"]], sizes, steps, box, first)
