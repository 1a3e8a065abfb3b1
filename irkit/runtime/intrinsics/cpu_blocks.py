"""Numba intrinsic of products on a CPU with a factor laid out in blocks of 16 columns, term by term.

A vector of B is 16 columns of one block, so a tile may have any number of blocks beside one another, and
reads each from its first term to its last as memory gives them fastest.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from irkit.runtime.intrinsics.cpu_products import LANES, Tile, powers

_I64 = ir.IntType(64)


@intrinsic(prefer_literal=True)
def multiply_blocks(
    typingctx: Any, most: Any, vectors: Any, rows: Any, k: Any, a: Any, at_a: Any, below_a: Any,
    step_a: Any, b: Any, at_b: Any, beside: Any, c: Any, at_c: Any, width: Any, anew: Any,
) -> Any:  # fmt: skip
    """C[i, 16 n + j] += sum over k of A[i, k] * B[n, k, j], for `rows` rows i, `vectors` blocks n and j < 16.

    `most`, the largest number of rows, and `vectors` are literals. Rows of A are `below_a` elements apart,
    its terms `step_a`; blocks of B are `beside` apart, rows of C `width`. Where `anew` is not 0, C are sums
    of these terms alone. Elements are counted from pointers `a`, `b`, `c`. Fewer rows than `most` go by
    powers of two.
    """
    if not isinstance(most, types.IntegerLiteral) or not isinstance(vectors, types.IntegerLiteral):
        return None
    largest, across = most.literal_value, vectors.literal_value

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, _, rows, k, a, at_a, below_a, step_a, b, at_b, beside, c, at_c, width, anew = arguments
        tile = Tile(builder, c.type.pointee, across, below=step_a, beside=beside)
        column, place = builder.gep(b, [at_b]), builder.gep(c, [at_c])
        fresh = builder.icmp_signed("!=", anew, _I64(0))
        for size, first in _sizes(builder, largest, rows):
            numbers = [builder.add(first, _I64(i)) for i in range(size)]
            starts = [builder.add(at_a, builder.mul(below_a, n)) for n in numbers]
            start = tile.load(fresh, place, width, numbers)
            rows_of_a = [builder.gep(a, [at]) for at in starts]
            tile.store(tile.sums(rows_of_a, k, column, _I64(LANES), start), place, width, numbers)
        return context.get_dummy_value()

    integer = types.int64
    return types.void(most, vectors, integer, integer, a, integer, integer, integer, b, integer,
                      integer, c, integer, integer, integer), codegen  # fmt: skip


def _sizes(builder: Any, largest: int, rows: Any) -> Iterator[tuple[int, Any]]:
    """So many rows at once, and the first of them: `largest`, or what `rows` are by powers of two."""
    if largest & (largest - 1) == 0:
        yield from powers(builder, largest, rows)
        return
    whole = builder.icmp_signed("==", rows, _I64(largest))
    with builder.if_else(whole) as (all_at_once, fewer):
        with all_at_once:
            yield largest, _I64(0)
        with fewer:
            yield from powers(builder, 1 << (largest.bit_length() - 1), rows)
