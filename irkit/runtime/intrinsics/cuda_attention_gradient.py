"""What a gradient of attention makes of scores and of what the cotangents say of their weights, in registers.

`cuda_attention.py` says how scores lie in lanes, and what row values are. A *slope* is what a weight's
cotangent, t, adds to that of its score, weight · (t - the row's sum of weight · t), or a part of that.
Where weights are lifted, they and what is made of them are times `cuda_softmax.LIFT`, so that the parts of
the least are kept whole.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.cuda import SHARED, shared_address
from irkit.runtime.intrinsics.cuda_attention import constant, floats, literal, row_of, unpacked
from irkit.runtime.intrinsics.cuda_softmax import LIFT, LOG2_E, power

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic

I32, F32 = ir.IntType(32), ir.FloatType()


@intrinsic
def equal_rows(typing_context: Any, value: Any, count: Any) -> Any:
    """`count` (literal) row values that are `value`."""
    if not literal(count):
        return None
    result = floats(count.literal_value)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.make_tuple(builder, result, [args[0]] * result.count)

    return result(types.float32, count), generate


@intrinsic
def row_slopes(
    typing_context: Any, weights: Any, cotangents: Any, along: Any, factors: Any, columns: Any
) -> Any:
    """(weight · cotangent, `along` times `factors` with these added up), of the lane's own columns, of which
    the warp has `columns` (literal)."""
    if not literal(columns):
        return None
    across = columns.literal_value // 8
    result = types.Tuple([weights, along])

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, slopes = builder, list[Any]()
        pairs = zip(*(unpacked(b, args[i], along.count) for i in (2, 3)), strict=True)
        sums = [b.fmul(total, factor) for total, factor in pairs]
        pairs = zip(*(unpacked(b, args[i], weights.count) for i in (0, 1)), strict=True)
        for n, (weight, cotangent) in enumerate(pairs):
            slopes.append(b.fmul(weight, cotangent))
            row = row_of(n, across)
            sums[row] = b.fadd(sums[row], slopes[-1])
        made = [context.make_tuple(b, k, v) for k, v in ((weights, slopes), (along, sums))]
        return context.make_tuple(b, result, made)

    return result(weights, cotangents, along, factors, columns), generate


@intrinsic
def row_differences(
    typing_context: Any, weights: Any, cotangents: Any, along: Any, factors: Any, columns: Any
) -> Any:
    """weight · factor · (cotangent - along): slopes of rows of which all weights are known; `columns` is
    literal."""
    if not literal(columns):
        return None
    across = columns.literal_value // 8

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, slopes = builder, list[Any]()
        sums, scales = (unpacked(b, args[i], along.count) for i in (2, 3))
        pairs = zip(*(unpacked(b, args[i], weights.count) for i in (0, 1)), strict=True)
        for n, (weight, cotangent) in enumerate(pairs):
            row = row_of(n, across)
            left = b.fsub(cotangent, sums[row])
            slopes.append(b.fmul(b.fmul(weight, scales[row]), left))
        return context.make_tuple(b, weights, slopes)

    return weights(weights, cotangents, along, factors, columns), generate


@intrinsic
def column_slopes(
    typing_context: Any, scores: Any, cotangents: Any, staged: Any, sums: Any, apart: Any, lane: Any,
    first: Any, cap: Any, columns: Any, causal: Any, lifted: Any,
) -> Any:  # fmt: skip
    """(weights, slopes) where queries are columns.

    Column j has the logarithm of the sum of its weights at staged[sums + j], and the sum of weight ·
    cotangent `apart` elements further. Columns from `cap` on are not seen and weigh nothing, whatever they
    hold; if `causal`, nor are those of row r before column `first` + r. These two are of 32 bits, and may be
    negative. `apart`, `columns`, `causal` and `lifted`, 1 where all is times LIFT, are literal.
    """
    if not literal(apart, columns, causal, lifted):
        return None
    across, diagonal = columns.literal_value // 8, bool(causal.literal_value)
    further, lift = apart.literal_value, bool(lifted.literal_value)
    result = types.Tuple([scores, scores])

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, lane32 = builder, builder.trunc(args[5], I32)
        own = b.shl(b.and_(lane32, I32(3)), I32(1))
        cap32 = b.sub(b.trunc(args[7], I32), own)
        first32 = b.sub(b.add(b.trunc(args[6], I32), b.lshr(lane32, I32(2))), own)
        base = b.add(shared_address(b, args[2], args[3]), b.shl(own, I32(2)))

        def read(column: int) -> Any:
            at = b.add(base, I32(4 * column))
            return b.load(b.inttoptr(at, F32.as_pointer(SHARED)))

        held = [8 * j + e for j in range(across) for e in range(2)]
        known = {j: (read(j), read(further + j)) for j in held}
        given, turned = (unpacked(b, args[i], scores.count) for i in (0, 1))
        weights, slopes = list[Any](), list[Any]()
        for n, (score, cotangent) in enumerate(zip(given, turned, strict=True)):
            tile, half, e = n // 4, n // 2 % 2, n % 2
            i, j = divmod(tile, across)
            column = 8 * j + e
            seen = b.icmp_signed(">", cap32, I32(column))
            if diagonal:
                row = b.add(first32, I32(16 * i + 8 * half))
                seen = b.and_(seen, b.icmp_signed("<=", row, I32(column)))
            total, along = known[column]
            weight = power(b, b.fmul(b.fsub(score, total), constant(LOG2_E)))
            weight = b.fmul(weight, constant(LIFT)) if lift else weight
            slope = b.fmul(weight, b.fsub(cotangent, along))
            weights.append(b.select(seen, weight, constant(0.0)))
            slopes.append(b.select(seen, slope, constant(0.0)))
        made = [context.make_tuple(b, scores, values) for values in (weights, slopes)]
        return context.make_tuple(b, result, made)

    u64, i64 = types.uint64, types.int64
    given = (scores, cotangents, staged, u64, apart, u64, i64, i64, columns, causal, lifted)
    return result(*given), generate
