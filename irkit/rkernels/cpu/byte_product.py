"""integer_product: contractions and convolutions of bytes in sums of 32 bits, which wrap.

As `product.blocked` (its docstring says how), but that four terms at once are multiplied and added up
(`irkit.runtime.intrinsics.cpu_bytes`), so B's terms are packed in fours. Where both factors are signed, or
neither is, B's are taken as of the other signedness: each is 128 more or less, and so is the sum, times A's
row.
"""

from irkit.dialects.products import as_product, of_bytes
from irkit.dialects.roperator_root import Root
from irkit.rkernels.packed_words import LARGE, SMALL, parameters_of, words, work_of
from irkit.rkernels.rkernel import Parameters, RKernel

FOUR = 4


def byte_product_blocked(task, tasks, rows, scratch, OPERANDS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    sums = int32p(scratch)
    turned = int32p(scratch + TILE * NC * 4)
    panel = BYTES(scratch + TILE * (NC + 1) * 4)
    for b in range(b0, b1):
        for lead in range(l0, l1):
            for c in range(c0, c1, NC):
                count = min(NC, c1 - c)
                PACK(OPERANDS, b, lead, c, count, panel, NC)
                interleave_fours(NC, TURNED, K, panel)
                for m in range(m0, m1, TILE):
                    n = min(TILE, m1 - m)
                    first = (b * M + m) * K
                    for i in range(n):
                        total = int32(0)
                        if TURNED:
                            for k in range(K):
                                total = int32(total + A[first + i * K + k])
                        turned[i] = int32(total * (-128 if OF_SIGNED else 128))
                    for q in range(0, count, 16 * ACROSS):
                        multiply_fours(TILE, ACROSS, OF_SIGNED, n, A, first, K, panel, q, sums, NC)
                    if TRANSPOSED:
                        for j in range(count):
                            for i in range(n):
                                total = sums[i * NC + j] + turned[i]
                                total += INIT(OPERANDS, b, m + i, lead, c + j)
                                STORE(OPERANDS, b, m + i, lead, c + j, int32(total))
                    else:
                        for i in range(n):
                            for j in range(count):
                                total = sums[i * NC + j] + turned[i]
                                total += INIT(OPERANDS, b, m + i, lead, c + j)
                                STORE(OPERANDS, b, m + i, lead, c + j, int32(total))


def legal(root: Root) -> bool:
    """Both factors are bytes."""
    product = as_product(root)
    return product is not None and of_bytes(product)


def _scratch(root: Root, parameters: Parameters) -> int:
    """A tile of sums, what is to be added to each row's, and the panel behind them."""
    sums = parameters["TILE"] * (parameters["NC"] + 1)
    return (words(root, FOUR) * parameters["NC"] + sums) * 4


RKERNELS = [
    RKernel(
        "integer_product",
        variant,
        "cpu",
        __name__,
        "byte_product_blocked",
        legal=legal,
        work=work_of(tile, FOUR, kind),
        scratch_bytes=_scratch,
        parameters=parameters_of(tile, FOUR),
        choices={"NC": tile.packed},
    )
    for variant, tile, kind in (("bytes", SMALL, "fma"), ("wide_bytes", LARGE, "wide"))
]
