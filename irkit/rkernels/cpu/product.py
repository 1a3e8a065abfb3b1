"""product: contractions and convolutions as blocked matrix products.

C[b, m, (l, c)] = sum_k A[b, m, k] * B[b, k, (l, c)]. A block of B's columns is packed into scratch, row
after row of k, where windows and padding are resolved once; then tiles of ROWS x 16 sums run over all
of k in registers, A being read in place. After K. Goto and R. van de Geijn, Anatomy of
High-Performance Matrix Multiplication, ACM TOMS 34(3), 2008, without its blocking of k.
"""

import math

from xdsl.dialects.builtin import Float32Type, Float64Type

from irkit.dialects.products import as_product, windows
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

ROWS, LANES = 4, 16
_PANEL_BYTES = 1 << 20


def product_blocked(task, tasks, rows, scratch, OPERANDS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    panel = POINTER(scratch)
    sums = K * NC
    for b in range(b0, b1):
        for lead in range(l0, l1):
            for c in range(c0, c1, NC):
                count = min(NC, c1 - c)
                PACK(OPERANDS, b, lead, c, count, panel, NC)
                m = m0
                while m + 4 <= m1:
                    for q in range(0, count, 16):
                        multiply_tile(4, 1, A, (b * M + m) * K, K, panel, q, panel, sums + q, NC)
                    if TRANSPOSED:
                        for j in range(count):
                            for i in range(4):
                                at = sums + i * NC + j
                                total = panel[at] + INIT(OPERANDS, b, m + i, lead, c + j)
                                STORE(OPERANDS, b, m + i, lead, c + j, total)
                    else:
                        for i in range(4):
                            for j in range(count):
                                at = sums + i * NC + j
                                total = panel[at] + INIT(OPERANDS, b, m + i, lead, c + j)
                                STORE(OPERANDS, b, m + i, lead, c + j, total)
                    m += 4
                while m < m1:
                    for q in range(0, count, 16):
                        multiply_tile(1, 1, A, (b * M + m) * K, K, panel, q, panel, sums + q, NC)
                    for j in range(count):
                        total = panel[sums + j] + INIT(OPERANDS, b, m, lead, c + j)
                        STORE(OPERANDS, b, m, lead, c + j, total)
                    m += 1


def _itemsize(root: Root) -> int:
    return 8 if isinstance(tensor_type(root.chain[0].results[0]).element_type, Float64Type) else 4


def _width(root: Root) -> int:
    """Columns packed at once: as many as keep the panel within the second-level cache, up to 64."""
    product = as_product(root)
    assert product is not None
    fit = _PANEL_BYTES // (product.extent(product.k) * _itemsize(root))
    columns = product.extent(product.columns)
    wanted = 64 if columns == DYNAMIC else -(-columns // LANES) * LANES
    return max(LANES, min(64, fit // LANES * LANES, wanted))


def _blocked(root: Root) -> bool:
    """At least one tile of rows, and more columns than a matrix times a vector has."""
    product = as_product(root)
    if product is None:
        return False
    element = tensor_type(product.op.results[0]).element_type
    if not isinstance(element, Float32Type | Float64Type):
        return False
    rows, columns = product.extent(product.m), product.extent(product.columns)
    enough = rows == DYNAMIC or rows >= ROWS
    return enough and (columns == DYNAMIC or columns >= 4)


def _scratch(root: Root, parameters: Parameters) -> int:
    """The panel, and a tile of sums below it."""
    product = as_product(root)
    assert product is not None
    return (product.extent(product.k) + ROWS) * parameters["NC"] * _itemsize(root)


def _work(part: Part) -> Work:
    """Whole tiles are computed, those of the last rows one row at a time; each column is packed once for all
    rows, run by run where windows are padded."""
    product = as_product(part.root)
    assert product is not None
    rows, columns, terms = (part.share(d) for d in (product.m, product.columns, product.k))
    times = part.share((*product.batch, *product.lead))
    whole, left = rows // ROWS * ROWS, rows % ROWS
    across = math.ceil(columns / LANES)
    sums = (whole + 2 * left) * across * LANES * terms
    tiles = work(fma=sums, tile=(whole / ROWS + left) * across)
    b = product.op.inputs[product.b]
    packed = (part.fused(b) if windows(product) is None else work(pack=1)) * (terms * columns)
    runs = work(row=terms * math.ceil(columns / part.sizes[product.columns[-1]]))
    outputs = (part.store + work(scalar=1)) * (rows * columns) + work(row=rows)
    return (tiles + packed + runs + outputs) * times


RKERNELS = [
    RKernel(
        "product",
        "blocked",
        "cpu",
        __name__,
        "product_blocked",
        legal=_blocked,
        work=_work,
        reassociates=True,
        contracts=True,
        scratch_bytes=_scratch,
        parameters=lambda root: {"NC": _width(root)},
        # Whole tiles, so that none writes past the panel.
        choices={"NC": range(LANES, 65, LANES)},
    ),
]
