"""The softmax of an attention, in registers and key after key (cuda_attention.py says how scores lie)."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.cuda import SHARED, asm, shared_address
from irkit.runtime.intrinsics.cuda_attention import (
    constant,
    floats,
    literal,
    row_of,
    unpacked,
)

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic

I32, F32 = ir.IntType(32), ir.FloatType()

LIFT = 2.0**24
"""What weights are multiplied by where they are split: the parts of the least of them are kept whole. Totals
are too, so the quotient does not know of it."""

LOG2_E = 1.4426950408889634


def _function(builder: Any, name: str, count: int) -> Any:
    """An LLVM intrinsic of `count` float32."""
    known = builder.module.globals.get(name)
    return known or ir.Function(builder.module, ir.FunctionType(F32, [F32] * count), name)


def _larger(b: Any, x: Any, y: Any) -> Any:
    """The larger number; a NaN is none."""
    return b.call(_function(b, "llvm.maxnum.f32", 2), [x, y])


def _fma(b: Any, x: Any, y: Any, z: Any) -> Any:
    return b.call(_function(b, "llvm.fma.f32", 3), [x, y, z])


def power(b: Any, x: Any) -> Any:
    """2^x, off by 2^-22 of it at most; zero below 2^-126."""
    kind = ir.FunctionType(F32, [F32])
    code = ir.InlineAsm(kind, "ex2.approx.ftz.f32 $0, $1;", "=f,f", side_effect=False)
    return b.call(code, [x])


def _exchanged(b: Any, x: Any, distance: int) -> Any:
    """What the lane `distance` away has."""
    text = f"shfl.sync.bfly.b32 $0, $1, {distance}, 31, -1;"
    return b.bitcast(asm(b, text, I32, [b.bitcast(x, I32)], "=r,r"), F32)


@intrinsic
def power_of_two(typing_context: Any, x: Any) -> Any:
    """2^x of a float32, off by 2^-22 of it at most; zero below 2^-126."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return power(builder, args[0])

    return types.float32(types.float32), generate


@intrinsic
def lowest_rows(typing_context: Any, count: Any) -> Any:
    """`count` (literal) times -inf: the largest score before there is one."""
    if not literal(count):
        return None
    result = floats(count.literal_value)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.make_tuple(builder, result, [constant(float("-inf"))] * result.count)

    return result(count), generate


@intrinsic
def scaled_terms(
    typing_context: Any, least: Any, most: Any, staged: Any, position: Any, width: Any, scale: Any
) -> Any:
    """Multiply staged[position : position + width (literal, 1 or 4)] by `scale`.

    (`least`, `most`) with the magnitudes of the products counted in, as `cuda_mma.magnitudes` has them.
    """
    if not literal(width):
        return None
    words = width.literal_value
    u32 = types.uint32
    pair = types.UniTuple(u32, 2)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, (low, high) = builder, args[:2]
        kind = ir.VectorType(F32, words)
        place = b.inttoptr(shared_address(b, args[2], args[3]), kind.as_pointer(SHARED))
        given = b.load(place)
        given.align = 4 * words
        made = ir.Constant(kind, ir.Undefined)
        for i in range(words):
            value = b.fmul(b.extract_element(given, I32(i)), args[5])
            made = b.insert_element(made, value, I32(i))
            word = b.bitcast(value, I32)
            twice = b.add(word, word)
            before = b.sub(twice, I32(1))
            low = b.select(b.icmp_unsigned("<", before, low), before, low)
            high = b.select(b.icmp_unsigned(">", twice, high), twice, high)
        b.store(made, place).align = 4 * words
        return context.make_tuple(b, pair, [low, high])

    return pair(u32, u32, staged, types.uint64, width, types.float32), generate


@intrinsic
def scores_within(
    typing_context: Any, scores: Any, lane: Any, first: Any, cap: Any, columns: Any, causal: Any
) -> Any:
    """The first `cap` scores of row r, if `causal` (literal) its first `first` + r; others are -inf.

    `first` and `cap` are of 32 bits, and may be negative; `columns` is literal.
    """
    if not literal(columns, causal):
        return None
    across, diagonal = columns.literal_value // 8, bool(causal.literal_value)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b = builder
        lane32 = b.trunc(args[1], I32)
        own = b.shl(b.and_(lane32, I32(3)), I32(1))
        cap32 = b.sub(b.trunc(args[3], I32), own)
        first32 = b.sub(b.add(b.trunc(args[2], I32), b.lshr(lane32, I32(2))), own)
        values: list[Any] = []
        for n in range(scores.count):
            tile, half, e = n // 4, n // 2 % 2, n % 2
            i, j = divmod(tile, across)
            limit = cap32
            if diagonal:
                row = b.add(first32, I32(16 * i + 8 * half))
                limit = b.select(b.icmp_signed("<", row, cap32), row, cap32)
            seen = b.icmp_signed(">", limit, I32(8 * j + e))
            score = b.extract_value(args[0], n)
            values.append(b.select(seen, score, constant(float("-inf"))))
        return context.make_tuple(b, signature.return_type, values)

    i64 = types.int64
    return scores(scores, types.uint64, i64, i64, columns, causal), generate


@intrinsic
def online_softmax(
    typing_context: Any, scores: Any, largest: Any, totals: Any, scale: Any, columns: Any, lifted: Any
) -> Any:  # fmt: skip
    """(weights, largest, totals, factors): the softmax so far, with `scores` times `scale` > 0 in it.

    `largest` is log2(e) times the largest scaled score; `totals` are those of the lane's own columns. What
    was summed before is to be multiplied by `factors`. Where `lifted` is 1, all weights are times LIFT, where
    it is more times so many powers of two; it and `columns` are literal. Where no key has been seen yet,
    weights are zero; a NaN makes its row's total NaN.
    After M. Milakov and N. Gimelshein, arXiv:1805.02867.
    """
    if not literal(columns, lifted):
        return None
    across, rows, powers = columns.literal_value // 8, largest.count, lifted.literal_value
    lift = LIFT if powers == 1 else 2.0**powers
    result = types.Tuple([scores, largest, totals, floats(rows)])

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b = builder
        given, before, sums = (
            unpacked(b, a, t.count) for a, t in zip(args[:3], result, strict=False)
        )
        scaled = b.fmul(args[3], constant(LOG2_E))
        tops = [constant(float("-inf"))] * rows
        for n, score in enumerate(given):
            row = row_of(n, across)
            tops[row] = _larger(b, tops[row], score)
        for distance in (1, 2):
            tops = [_larger(b, top, _exchanged(b, top, distance)) for top in tops]
        tops = [_larger(b, old, b.fmul(t, scaled)) for old, t in zip(before, tops, strict=True)]
        none = [b.fcmp_ordered("==", top, constant(float("-inf"))) for top in tops]
        shifts = [b.select(n, constant(0.0), top) for n, top in zip(none, tops, strict=True)]
        factors = [power(b, b.fsub(old, shift)) for old, shift in zip(before, shifts, strict=True)]
        sums = [b.fmul(total, factor) for total, factor in zip(sums, factors, strict=True)]
        downs = [b.fsub(constant(-0.0), shift) for shift in shifts]
        weights: list[Any] = []
        for n, score in enumerate(given):
            row = row_of(n, across)
            weight = power(b, _fma(b, score, scaled, downs[row]))
            weight = b.fmul(weight, constant(lift)) if powers else weight
            sums[row] = b.fadd(sums[row], weight)
            weights.append(weight)
        made = [
            context.make_tuple(b, kind, values)
            for kind, values in zip(result, (weights, tops, sums, factors), strict=True)
        ]
        return context.make_tuple(b, result, made)

    return result(scores, largest, totals, types.float32, columns, lifted), generate


@intrinsic
def row_totals(typing_context: Any, totals: Any) -> Any:
    """Row values added up over the four lanes of each row."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = unpacked(builder, args[0], totals.count)
        for distance in (1, 2):
            values = [builder.fadd(v, _exchanged(builder, v, distance)) for v in values]
        return context.make_tuple(builder, totals, values)

    return totals(totals), generate


@intrinsic
def row_store(typing_context: Any, staged: Any, position: Any, values: Any, lane: Any) -> Any:
    """staged[position + row] = the warp's row values."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b = builder
        row = b.lshr(b.trunc(args[3], I32), I32(2))
        first = b.add(shared_address(b, args[0], args[1]), b.shl(row, I32(2)))
        for n, value in enumerate(unpacked(b, args[2], values.count)):
            # All four lanes of a row store the same.
            b.store(value, b.inttoptr(b.add(first, I32(32 * n)), F32.as_pointer(SHARED)))
        return context.get_dummy_value()

    return types.void(staged, types.uint64, values, types.uint64), generate


@intrinsic
def mma_load(
    typing_context: Any, staged: Any, position: Any, step: Any, rows: Any, columns: Any, lane: Any
) -> Any:
    """What `mma_store` has stored: sums of `rows` rows and `columns` columns; all three are literal."""
    if not literal(step, rows, columns):
        return None
    below, height, width = (v.literal_value for v in (step, rows, columns))
    result = floats(height * width // 32)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b = builder
        lane32 = b.trunc(args[5], I32)
        g, t = b.lshr(lane32, I32(2)), b.and_(lane32, I32(3))
        own = b.add(b.mul(g, I32(below)), b.shl(t, I32(1)))
        first = b.add(shared_address(b, args[0], args[1]), b.shl(own, I32(2)))
        values: list[Any] = []
        for n in range(result.count):
            i, j = divmod(n // 4, width // 8)
            at = 4 * ((16 * i + 8 * (n // 2 % 2)) * below + 8 * j + n % 2)
            values.append(b.load(b.inttoptr(b.add(first, I32(at)), F32.as_pointer(SHARED))))
        return context.make_tuple(b, result, values)

    return result(staged, types.uint64, step, rows, columns, types.uint64), generate
