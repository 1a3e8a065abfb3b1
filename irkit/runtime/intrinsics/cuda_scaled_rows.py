"""Rows of terms scaled by powers of two and cut into two float16 parts: packed so, and sums of such.

`irkit/scaled_rows.py` says what becomes of a row. Its header is two float32: what sums are multiplied by, and
the bound from which on they do not notice what the row has lost.
Arguments marked *literal* must be constants in the source text.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.cuda import SHARED, shared_address
from irkit.runtime.intrinsics.cuda_attention import constant, literal, unpacked
from irkit.runtime.intrinsics.cuda_mma import F16
from irkit.runtime.intrinsics.cuda_wgmma_terms import Packer
from irkit.runtime.intrinsics.cuda_wgmma_units import cut, widened
from irkit.scaled_rows import EXPONENTS, HEADROOM, KEPT, LARGEST, LOW

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic

I32, I64, F32 = ir.IntType(32), ir.IntType(64), ir.FloatType()
PAIR = types.UniTuple(types.float32, 2)


def _of_two(builder: Any, name: str, x: Any, y: Any) -> Any:
    """`llvm.<name>` of float32: a NaN is none of them."""
    kind = ir.FunctionType(F32, [F32, F32])
    return builder.call(builder.module.declare_intrinsic(f"llvm.{name}", [F32], kind), [x, y])


def _size(builder: Any, x: Any) -> Any:
    return builder.bitcast(builder.and_(builder.bitcast(x, I32), I32(0x7FFFFFFF)), F32)


@intrinsic
def sizes_seen(typing_context: Any, seen: Any, terms: Any) -> Any:
    """(least, most) with the sizes of the terms; of zero and NaN there is none."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b = builder
        least, most = unpacked(b, args[0], 2)
        for size in (_size(b, x) for x in unpacked(b, args[1], terms.count)):
            nonzero = b.fcmp_unordered("!=", size, constant(0.0))
            least = _of_two(b, "minnum", least, b.select(nonzero, size, constant(math.inf)))
            most = _of_two(b, "maxnum", most, size)
        return context.make_tuple(b, PAIR, [least, most])

    return PAIR(PAIR, terms), generate


@intrinsic
def row_scale(typing_context: Any, most: Any) -> Any:
    """The power of two for a row whose largest term is of this size, and what takes it away again."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b = builder
        least, largest = (I32(e) for e in EXPONENTS)
        exponent = b.sub(I32(127 + LARGEST), b.lshr(b.bitcast(args[0], I32), I32(23)))
        exponent = b.select(b.icmp_signed("<", exponent, least), least, exponent)
        exponent = b.select(b.icmp_signed(">", exponent, largest), largest, exponent)
        powers = [b.add(I32(127), exponent), b.sub(I32(127), exponent)]
        found = [b.bitcast(b.shl(power, I32(23)), F32) for power in powers]
        return context.make_tuple(b, PAIR, found)

    return PAIR(types.float32), generate


@intrinsic
def small_terms(typing_context: Any, least: Any, scale: Any) -> Any:
    """Whether a row whose smallest term is `least`, scaled, has terms that lose something."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fcmp_ordered("<", builder.fmul(*args), constant(KEPT))

    return types.boolean(types.float32, types.float32), generate


@intrinsic
def row_bound(typing_context: Any, lost: Any, most: Any) -> Any:
    """The bound of a row that has lost so much, and whose largest term is `most`: sums of nothing but zeros
    are right as they are."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b = builder
        nothing = b.fcmp_ordered("==", args[1], constant(0.0))
        return b.select(nothing, constant(-math.inf), b.fmul(args[0], constant(HEADROOM)))

    return types.float32(types.float32, types.float32), generate


@intrinsic
def lost_of(typing_context: Any, terms: Any, scale: Any) -> Any:
    """What those of the terms, scaled, that are below `KEPT` lose where they are cut, all together."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, packer = builder, Packer(builder, F16)
        values = [b.fmul(x, args[1]) for x in unpacked(b, args[0], terms.count)]
        rests = [x for part in zip(*cut(packer, values), strict=True) for x in part]
        high, low = widened(b, rests[::2]), widened(b, rests[1::2])
        total = constant(0.0)
        for value, first, second in zip(values, high, low, strict=True):
            rest = b.fsub(b.fmul(b.fsub(value, first), constant(LOW)), second)
            small = b.fcmp_ordered("<", _size(b, value), constant(KEPT))
            total = b.fadd(total, b.select(small, _size(b, rest), constant(0.0)))
        return b.fmul(total, constant(1 / LOW))

    return types.float32(terms, types.float32), generate


@intrinsic
def store_scaled(
    typing_context: Any, target: Any, index: Any, terms: Any, scale: Any, part: Any
) -> Any:
    """Eight terms, times `scale`: their high parts to target[index], the low ones `part` (literal) elements
    on."""
    if not literal(part):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, packer, four = builder, Packer(builder, F16), ir.VectorType(I32, 4)
        values = [b.fmul(x, args[3]) for x in unpacked(b, args[2], terms.count)]
        for n, words in enumerate(cut(packer, values)):
            where = b.gep(args[0], [b.add(args[1], I64(n * part.literal_value))])
            b.store(packer.joined(words), b.bitcast(where, four.as_pointer())).align = 16
        return context.get_dummy_value()

    return types.void(target, types.int64, terms, types.float32, part), generate


@intrinsic
def store_header(typing_context: Any, target: Any, index: Any, header: Any) -> Any:
    """A header, and zeros behind it, 16 bytes, to target[index]."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, four = builder, ir.Constant(ir.VectorType(F32, 4), [0.0] * 4)
        for n, value in enumerate(unpacked(b, args[2], 2)):
            four = b.insert_element(four, value, I32(n))
        where = b.bitcast(b.gep(args[0], [args[1]]), four.type.as_pointer())
        b.store(four, where).align = 16
        return context.get_dummy_value()

    return types.void(target, types.int64, PAIR), generate


@intrinsic
def row_header(typing_context: Any, source: Any, index: Any) -> Any:
    """The header at source[index]."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, kind = builder, ir.VectorType(F32, 2)
        two = b.load(b.bitcast(b.gep(args[0], [args[1]]), kind.as_pointer()))
        two.align = 8
        return context.make_tuple(b, PAIR, [b.extract_element(two, I32(n)) for n in (0, 1)])

    return PAIR(source, types.int64), generate


@intrinsic
def scaled_sums(
    typing_context: Any, sums: Any, staged: Any, rows: Any, columns: Any, bounds: Any, lane: Any
) -> Any:
    """Sums, as `mma_store` takes them, times what the headers of their row and column say, or NaN.

    What sums are multiplied by is at staged[rows] and at staged[columns], bounds are `bounds` (literal)
    elements behind. NaN is the sum that is not as large as both bounds together, or that is none.
    """
    if not literal(bounds):
        return None
    behind = bounds.literal_value

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, lane = builder, builder.trunc(args[5], I32)

        def headers(place: Any, first: Any, count: int) -> list[list[Any]]:
            """[factor, bound] of each of `count` that lie side by side."""
            start = b.add(shared_address(b, args[1], place), b.shl(first, I32(2)))
            kind, found = ir.VectorType(F32, count), list[list[Any]]()
            for words in (0, behind):
                where = b.inttoptr(b.add(start, I32(4 * words)), kind.as_pointer(SHARED))
                loaded = b.load(where)
                loaded.align = 4 * count
                found.append([b.extract_element(loaded, I32(n)) for n in range(count)])
            return [list(pair) for pair in zip(*found, strict=True)]

        row, column = b.lshr(lane, I32(2)), b.shl(b.and_(lane, I32(3)), I32(1))
        down = [headers(args[2], b.add(row, I32(8 * n)), 1)[0] for n in (0, 1)]
        values = list[Any]()
        for tile in range(sums.count // 4):
            across = headers(args[3], b.add(column, I32(8 * tile)), 2)
            pairs = [(x, y) for x in down for y in across]
            for n, ((factor, bound), (other, further)) in enumerate(pairs):
                value = b.extract_value(args[0], 4 * tile + n)
                size = _size(b, value)
                # As a number that is none: inf would be in order.
                sure = b.and_(
                    b.fcmp_ordered(">=", size, b.fadd(bound, further)),
                    b.fcmp_ordered("<", size, constant(math.inf)),
                )
                scaled = b.fmul(b.fmul(value, factor), other)
                values.append(b.select(sure, scaled, constant(math.nan)))
        return context.make_tuple(b, sums, values)

    u64 = types.uint64
    return sums(sums, staged, u64, u64, bounds, types.int64), generate
