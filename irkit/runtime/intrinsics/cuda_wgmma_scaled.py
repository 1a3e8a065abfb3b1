"""Products whose left factor warp groups hold in registers in two scaled float16 parts (`wgmma`).

`cuda_wgmma_columns` says what is held. `irkit/scaled_rows.py` says what scaled parts are, but that here each
stage of a column is scaled by a power of two of its own: that is known once the stage is there, and what it
has multiplied is taken away where its sums leave the tensor cores. With what is shared, packed in such parts
beforehand, a stage is three products: high·high by itself, and high·low with low·high, kept `LOW` times
larger. Arguments marked *literal* must be constants in the source text.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.cuda import SHARED, shared_address
from irkit.runtime.intrinsics.cuda_attention import constant, literal, unpacked
from irkit.runtime.intrinsics.cuda_lanes import shuffled
from irkit.runtime.intrinsics.cuda_mma import F16
from irkit.runtime.intrinsics.cuda_mma import SCALED as SCALED_PARTS
from irkit.runtime.intrinsics.cuda_wgmma import Stage, arrived
from irkit.runtime.intrinsics.cuda_wgmma_columns import begun, names, settled
from irkit.runtime.intrinsics.cuda_wgmma_terms import Packer
from irkit.runtime.intrinsics.cuda_wgmma_units import cut
from irkit.scaled_rows import EXPONENTS, HEADROOM, KEPT, LARGEST, LOW, SLIGHT, TINY, UNDERFLOW

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic

I32, F32 = ir.IntType(32), ir.FloatType()

FACTS = 6
"""Of a lane's two columns: what a stage's sums are multiplied by; bounds, by what this lane has seen; and the
sizes of the largest terms."""


def _select(b: Any, name: str, x: Any, y: Any) -> Any:
    return b.select(b.icmp_unsigned(name, x, y), x, y)


def _power(b: Any, exponent: Any) -> Any:
    """2 to the power of an exponent of a float32 that is normal, as its bits."""
    return b.shl(b.add(exponent, I32(127)), I32(23))


def _of_column(b: Any, sizes: list[Any], bound: Any, most: Any) -> list[Any]:
    """[the scale of these terms, what takes it away, the column's bound, the size of its largest term]."""
    largest, least = sizes[0], I32(0xFFFFFFFF)
    for size in sizes[1:]:
        largest = _select(b, ">", largest, size)
    # Of zero, which is no size, it is the largest number.
    for size in sizes:
        least = _select(b, "<", least, b.sub(size, I32(1)))
    for distance in (1, 2):
        other = b.bitcast(shuffled(b, b.bitcast(largest, F32), distance), I32)
        largest = _select(b, ">", largest, other)
    low, high = (I32(e) for e in EXPONENTS)
    exponent = b.sub(I32(127 + LARGEST), b.lshr(largest, I32(23)))
    exponent = b.select(b.icmp_signed("<", exponent, low), low, exponent)
    exponent = b.select(b.icmp_signed(">", exponent, high), high, exponent)
    back = b.bitcast(_power(b, b.neg(exponent)), F32)
    # Small terms lose no more than this each, scaled; sums of what is very small may be no float32 at all.
    kept = b.sub(_power(b, b.sub(I32(int(math.log2(KEPT))), exponent)), I32(1))
    lost = b.fmul(back, constant(len(sizes) * SLIGHT * HEADROOM))
    lost = b.select(b.icmp_unsigned("<", least, kept), lost, constant(0.0))
    tiny = b.and_(
        b.icmp_signed(">", exponent, I32(UNDERFLOW)),
        b.icmp_unsigned("!=", largest, I32(0)),
    )
    more = b.select(tiny, constant(TINY), constant(0.0))
    bound = b.fadd(b.fadd(bound, lost), more)
    seen = _select(b, ">", b.bitcast(most, I32), largest)
    return [b.bitcast(_power(b, exponent), F32), back, bound, b.bitcast(seen, F32)]


@intrinsic
def scale_columns(typing_context: Any, facts: Any, words: Any) -> Any:
    """What `column_terms` has read, scaled and cut, for `taken_over`; behind it the `facts` (`FACTS`), these
    terms counted in, for `facts_of`. All lanes of the warp must call it."""
    made = types.UniTuple(types.uint32, words.count + FACTS)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, packer, found = builder, Packer(builder, F16), list[Any]()
        known, held = unpacked(b, args[0], FACTS), unpacked(b, args[1], words.count)
        # Two terms of one column, two of the other.
        columns = [i // 2 % 2 for i in range(words.count)]
        told = [
            _of_column(
                b,
                [b.and_(w, I32(0x7FFFFFFF)) for w, c in zip(held, columns, strict=True) if c == n],
                known[2 + n],
                known[4 + n],
            )
            for n in (0, 1)
        ]
        scaled = [b.fmul(b.bitcast(w, F32), told[c][0]) for w, c in zip(held, columns, strict=True)]
        for first in range(0, len(held), 8):
            found += [w for part in cut(packer, scaled[first : first + 8]) for w in part]
        found += [b.bitcast(of_column[i], I32) for i in (1, 2, 3) for of_column in told]
        return context.make_tuple(b, made, settled(b, found))

    return made(facts, words), generate


@intrinsic
def facts_of(typing_context: Any, words: Any) -> Any:
    """The facts behind what `scale_columns` has cut."""
    made = types.UniTuple(types.float32, FACTS)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = unpacked(builder, args[0], words.count)[-FACTS:]
        return context.make_tuple(builder, made, [builder.bitcast(w, F32) for w in found])

    return made(words), generate


_PRODUCTS = ((0, 0, 0), (1, 1, 0), (1, 0, 1))
"""Which sums; which part of columns, which of rows: the first of its sums is of high parts of rows."""


@intrinsic
def scaled_products(typing_context: Any, words: Any, staged: Any, place: Any, rows: Any) -> Any:
    """Start the products of the warp group's 64 columns, which are `words`, of 32 or 64 terms, and of `rows`
    (literal) packed rows of 128 bytes whose terms start at staged[place], their low parts behind the high
    ones.

    What comes back is for `columns_added` alone: rows / 2 sums of high parts, then as many of the others.
    `words` must stay as they are until then (`still_held`).
    """
    if not literal(rows):
        return None
    wide = rows.literal_value
    count = wide // 2
    made = types.UniTuple(types.float32, 2 * count)
    stage = Stage(wide, 2 * words.count, 32, 0, 32 * wide, True, SCALED_PARTS)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        held, lines = unpacked(builder, args[0], words.count), list[str]()
        shape = f"m64n{wide}k16.f32.f16.f16"
        for step, (into, x, y) in ((s, p) for s in stage.steps for p in _PRODUCTS):
            sums = names(into * count, count)
            own = names(made.count + 8 * step + 4 * x, 4)
            added = int(step > 0 or y > 0)
            lines.append(f"add.s64 b, ${made.count + len(held)}, {stage.of_b(step, y)};")
            lines.append(
                f"wgmma.mma_async.sync.aligned.{shape} {sums}, {own}, b, {added}, 1, 1, 0;"
            )
        tile = stage.descriptor(builder, shared_address(builder, args[1], args[2]), by_k=True)
        return begun(context, builder, lines, made, (held, tile), [])

    return made(words, staged, types.uint64, rows), generate


@intrinsic
def columns_added(typing_context: Any, sums: Any, products: Any, facts: Any) -> Any:
    """Wait for all that `scaled_products` started; the sums with it, the stage's scales taken away."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, count = builder, sums.count
        found = arrived(b, unpacked(b, args[1], products.count), 0)
        backs, given, share = (
            unpacked(b, args[2], 2),
            unpacked(b, args[0], count),
            constant(1 / LOW),
        )
        values = list[Any]()
        for n, (value, high, rest) in enumerate(
            zip(given, found[:count], found[count:], strict=True)
        ):
            both = b.fma(rest, share, high)
            values.append(b.fma(both, backs[n // 2 % 2], value))
        return context.make_tuple(b, sums, values)

    return sums(sums, products, facts), generate


@intrinsic
def sure_columns(
    typing_context: Any, sums: Any, facts: Any, staged: Any, rows: Any, bounds: Any, quad: Any
) -> Any:
    """Sums of columns of scaled rows times what the rows' headers say, or NaN, where they are not as large as
    the bounds of column and row, or none. All lanes of the warp must call it.

    What sums are multiplied by is at staged[rows], bounds are `bounds` (literal) elements behind.
    """
    if not literal(bounds):
        return None
    behind = bounds.literal_value

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, quad, pair = builder, builder.trunc(args[5], I32), ir.VectorType(F32, 2)
        known, columns = unpacked(b, args[1], FACTS), list[tuple[Any, Any]]()
        for bound, most in zip(known[2:4], known[4:6], strict=True):
            for distance in (1, 2):
                bound = b.fadd(bound, shuffled(b, bound, distance))
            # Rows are scaled, what they lose is seen by terms as large as the column's.
            columns.append((bound, b.fmul(most, constant(2.0 ** -(LARGEST + 1)))))
        start = b.add(shared_address(b, args[2], args[3]), b.shl(quad, I32(3)))
        values = list[Any]()
        for tile in range(sums.count // 4):
            headers = list[Any]()
            for words in (0, behind):
                place = b.add(start, I32(4 * (8 * tile + words)))
                two = b.load(b.inttoptr(place, pair.as_pointer(SHARED)))
                two.align = 8
                headers.append([b.extract_element(two, I32(n)) for n in (0, 1)])
            for n, (column, row) in enumerate((c, r) for c in (0, 1) for r in (0, 1)):
                (bound, most), factor, lost = columns[column], headers[0][row], headers[1][row]
                value = b.extract_value(args[0], 4 * tile + n)
                size = b.bitcast(b.and_(b.bitcast(value, I32), I32(0x7FFFFFFF)), F32)
                # Sums of nothing but zeros are right as they are.
                least = b.fadd(bound, b.fmul(lost, most))
                zero = b.fcmp_ordered("==", most, constant(0.0))
                least = b.select(zero, constant(-math.inf), least)
                sure = b.and_(
                    b.fcmp_ordered(">=", size, least),
                    b.fcmp_ordered("<", size, constant(math.inf)),
                )
                values.append(b.select(sure, b.fmul(value, factor), constant(math.nan)))
        return context.make_tuple(b, sums, values)

    u64 = types.uint64
    return sums(sums, facts, staged, u64, bounds, u64), generate
