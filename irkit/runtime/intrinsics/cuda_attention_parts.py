"""Attention's two products of float32 in three bfloat16 parts each, x = high + middle + low.

Queries, keys and values are cut once, when they arrive in shared memory, into planes of packed rows; weights
where they are. Six products of parts are multiplied, the three least are left out (`cuda_wgmma` has the
source). Sums of 16 terms leave the tensor cores, which truncate, and are added in float32.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.cuda import SHARED, shared_address
from irkit.runtime.intrinsics.cuda_attention import (
    Values,
    constant,
    floats,
    literal,
    row_of,
    unpacked,
)
from irkit.runtime.intrinsics.cuda_mma import BF16, Fragments, Warp

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic

I32, F32 = ir.IntType(32), ir.FloatType()

_PRODUCTS = ((2, 0), (0, 2), (1, 1), (1, 0), (0, 1), (0, 0))
"""Parts of both factors that are multiplied, the least first."""

_ACROSS = 32
"""Columns whose sums are under way at once."""


def _add(warp: Warp, a: list[Fragments], b: list[Fragments], first: int, sums: list[Any]) -> None:
    """Add the products of 16 terms, `a` and `b` being fragments by part, to tiles `first` on of each row."""
    rows, columns = len(a[0]), len(b[0])
    across = len(sums) // 4 // rows
    tiles = [(i, j) for i in range(rows) for j in range(columns)]
    found = [[constant(0.0)] * 4 for _ in tiles]
    for x, y in _PRODUCTS:
        for n, (i, j) in enumerate(tiles):
            found[n] = warp.multiply(a[x][i], b[y][j], found[n])
    for n, (i, j) in enumerate(tiles):
        for e, value in enumerate(found[n]):
            at = 4 * (i * across + first + j) + e
            sums[at] = warp.builder.fadd(sums[at], value)


@intrinsic
def cut_terms(
    typing_context: Any, least: Any, most: Any, staged: Any, place: Any, target: Any, plane: Any, scale: Any
) -> Any:  # fmt: skip
    """Cut four float32 at staged[place], times `scale`, into parts: two words at staged[target], and `plane`
    (literal) words further the next part's.

    (`least`, `most`) with their magnitudes counted in, as `cuda_mma.magnitudes` has them.
    """
    if not literal(plane):
        return None
    apart = plane.literal_value
    u32, u64 = types.uint32, types.uint64
    pair = types.UniTuple(u32, 2)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, (low, high) = builder, args[:2]
        kind = ir.VectorType(F32, 4)
        given = b.load(b.inttoptr(shared_address(b, args[2], args[3]), kind.as_pointer(SHARED)))
        given.align = 16
        values = [b.fmul(b.extract_element(given, I32(i)), args[6]) for i in range(4)]
        for value in values:
            word = b.bitcast(value, I32)
            twice = b.add(word, word)
            before = b.sub(twice, I32(1))
            low = b.select(b.icmp_unsigned("<", before, low), before, low)
            high = b.select(b.icmp_unsigned(">", twice, high), twice, high)
        first = shared_address(b, args[2], args[4])
        two = ir.VectorType(I32, 2)
        for n, words in enumerate(
            Values.cut(Warp(b, BF16, ir.Constant(ir.IntType(64), 0)), values, 3)
        ):
            both = ir.Constant(two, ir.Undefined)
            for i, word in enumerate(words):
                both = b.insert_element(both, word, I32(i))
            at = b.inttoptr(b.add(first, I32(4 * n * apart)), two.as_pointer(SHARED))
            b.store(both, at).align = 8
        return context.make_tuple(b, pair, [low, high])

    return pair(u32, u32, staged, u64, u64, plane, types.float32), generate


@intrinsic
def part_scores(
    typing_context: Any, staged: Any, q: Any, k: Any, lane: Any,
    row: Any, rows: Any, columns: Any, terms: Any, q_plane: Any, k_plane: Any,
) -> Any:  # fmt: skip
    """`cuda_attention.score_sums` of queries and keys in parts, whose planes are so many words apart."""
    given = (row, rows, columns, terms, q_plane, k_plane)
    if not literal(*given):
        return None
    step, height, width, depth, of_q, of_k = (v.literal_value for v in given)
    result = floats(height * width // 32)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, warp = builder, Warp(builder, BF16, args[3])
        left, right = (shared_address(b, args[0], args[i]) for i in (1, 2))
        sums = [constant(0.0)] * result.count
        for at in range(0, depth // 2, 8):
            a = [warp.below(b.add(left, I32(4 * n * of_q)), height, at, step) for n in range(3)]
            for j in range(0, width, _ACROSS):
                count = min(_ACROSS, width - j)
                starts = [b.add(right, I32(4 * (n * of_k + j * step))) for n in range(3)]
                parts = [warp.beside(start, count, at, step, True) for start in starts]
                _add(warp, a, parts, j // 8, sums)
        return context.make_tuple(b, result, sums)

    u64 = types.uint64
    return result(staged, u64, u64, u64, *given), generate


@intrinsic
def part_sums(
    typing_context: Any, sums: Any, factors: Any, weights: Any, staged: Any, values: Any, lane: Any,
    row: Any, columns: Any, keys: Any, plane: Any,
) -> Any:  # fmt: skip
    """`cuda_attention.weighted_sums` of values in parts, whose planes are `plane` words apart."""
    given = (row, columns, keys, plane)
    if not literal(*given):
        return None
    step, width, count, apart = (v.literal_value for v in given)
    rows = 32 * weights.count // count

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, warp = builder, Warp(builder, BF16, args[5])
        scales = unpacked(b, args[1], factors.count)
        found = [
            b.fmul(value, scales[row_of(n, width // 8)])
            for n, value in enumerate(unpacked(b, args[0], sums.count))
        ]
        base = shared_address(b, args[3], args[4])
        own = unpacked(b, args[2], weights.count)
        for key in range(0, count, 16):
            tiles = Values(warp, base, step, width, count, rows, own).weighed(key)
            cut = [Values.cut(warp, tile, 3) for tile in tiles]
            a = [[tile[n] for tile in cut] for n in range(3)]
            for j in range(0, width, _ACROSS):
                most = min(_ACROSS, width - j)
                starts = [b.add(base, I32(4 * n * apart)) for n in range(3)]
                planes = [Values(warp, s, step, most, count, rows, own) for s in starts]
                _add(warp, a, [p.across(key, j) for p in planes], j // 8, found)
        return context.make_tuple(b, signature.return_type, found)

    u64 = types.uint64
    return sums(sums, factors, weights, staged, u64, u64, *given), generate
