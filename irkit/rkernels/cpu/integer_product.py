"""integer_product: contractions and convolutions of 16-bit integers in sums of 32 bits, which wrap.

As `product.blocked` (its docstring says how), but that two terms at once are multiplied and added up
(`vpdpwssd` or `pmaddwd`, as the processor has them), so B's terms are packed in pairs.
"""

from irkit.dialects.products import as_product, of_bytes
from irkit.dialects.roperator_root import Root
from irkit.rkernels.packed_words import LARGE, SMALL, parameters_of, words, work_of
from irkit.rkernels.rkernel import Parameters, RKernel

PAIR = 2


def integer_product_blocked(task, tasks, rows, scratch, OPERANDS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    sums = int32p(scratch)
    panel = int16p(scratch + TILE * NC * 4)
    for b in range(b0, b1):
        for lead in range(l0, l1):
            for c in range(c0, c1, NC):
                count = min(NC, c1 - c)
                PACK(OPERANDS, b, lead, c, count, panel, NC)
                for m in range(m0, m1, TILE):
                    n = min(TILE, m1 - m)
                    for q in range(0, count, 16 * ACROSS):
                        first = (b * M + m) * K
                        multiply_pairs(TILE, ACROSS, n, A, first, K, panel, q, sums, NC)
                    if TRANSPOSED:
                        for j in range(count):
                            for i in range(n):
                                total = sums[i * NC + j] + INIT(OPERANDS, b, m + i, lead, c + j)
                                STORE(OPERANDS, b, m + i, lead, c + j, int32(total))
                    else:
                        for i in range(n):
                            for j in range(count):
                                total = sums[i * NC + j] + INIT(OPERANDS, b, m + i, lead, c + j)
                                STORE(OPERANDS, b, m + i, lead, c + j, int32(total))


def legal(root: Root) -> bool:
    """Both factors are of 16 bits."""
    product = as_product(root)
    return product is not None and not of_bytes(product)


def _scratch(root: Root, parameters: Parameters) -> int:
    """A tile of sums, and the panel behind it."""
    return (words(root, PAIR) + parameters["TILE"]) * parameters["NC"] * 4


RKERNELS = [
    RKernel(
        "integer_product",
        variant,
        "cpu",
        __name__,
        "integer_product_blocked",
        legal=legal,
        work=work_of(tile, PAIR, kind),
        scratch_bytes=_scratch,
        parameters=parameters_of(tile, PAIR),
        choices={"NC": tile.packed},
    )
    for variant, tile, kind in (("blocked", SMALL, "fma"), ("wide", LARGE, "wide"))
]
