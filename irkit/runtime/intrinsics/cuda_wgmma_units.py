"""Float32 copied to shared memory in units of a warp's own, and cut from there into float16 parts.

`cuda_wgmma_parts` says what parts are. A warp copies and cuts units of 8 rows and 32 columns: no other warp
waits for what it has copied. Arguments marked *literal* must be constants in the source text.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.cuda import SHARED, asm, shared_address
from irkit.runtime.intrinsics.cuda_attention import constant, literal
from irkit.runtime.intrinsics.cuda_mma import F16
from irkit.runtime.intrinsics.cuda_wgmma_terms import Packer, chunk_address
from irkit.scaled_rows import LOW

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic

I16, I32, I64, F32 = ir.IntType(16), ir.IntType(32), ir.IntType(64), ir.FloatType()


def widened(b: Any, words: list[Any]) -> list[Any]:
    """The float16 of some words, the low halves first, as float32."""
    kind = ir.FunctionType(F32, [I16])
    code = ir.InlineAsm(kind, "cvt.f32.f16 $0, $1;", "=f,h", side_effect=False)
    halves = [b.trunc(half, I16) for w in words for half in (w, b.lshr(w, I32(16)))]
    return [b.call(code, [half]) for half in halves]


def cut(packer: Packer, values: list[Any]) -> tuple[list[Any], list[Any]]:
    """Words of the high and of the low parts."""
    b = packer.builder
    high = packer.pairs(values)
    rest = [b.fsub(x, y) for x, y in zip(values, widened(b, high), strict=True)]
    return high, packer.pairs([b.fmul(x, constant(LOW)) for x in rest])


@intrinsic
def anew(typing_context: Any, value: Any) -> Any:
    """The value, of 32 bits, as one that nobody knows: what is computed of it is computed here, and held in
    no register from before a loop on."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        narrow = builder.trunc(args[0], I32)
        return builder.zext(asm(builder, "mov.b32 $0, $1;", I32, [narrow], "=r,r"), I64)

    return types.int64(types.int64), generate


UNIT = 288
"""Words that a unit of 8 rows and 32 columns takes where it is copied: 36 a row, against bank conflicts."""


@intrinsic
def copy_units(
    typing_context: Any, staged: Any, place: Any, source: Any, index: Any, limit: Any,
    pitch: Any, rows: Any, apart: Any, count: Any,
) -> Any:  # fmt: skip
    """Start copying 16 bytes each of two rows, four apart, of `count` units, as a group of copies.

    The first are those of source[index], aligned to 16 bytes, to staged[place]; a row has `pitch` elements in
    memory. Each unit that follows is `rows` rows further there, and `apart` units here. Zeros come in the
    place of rows from `limit` on, the first being row 0, which are not read. From `pitch` on all are literal.
    """
    given = (pitch, rows, apart, count)
    if not literal(*given):
        return None
    step, down, further, times = (v.literal_value for v in given)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b = builder
        target, limit = shared_address(b, args[0], args[1]), b.trunc(args[4], I32)
        start = b.ptrtoint(b.gep(args[2], [args[3]]), I64)
        size = context.get_abi_sizeof(args[2].type.pointee)
        for n, half in ((n, half) for n in range(times) for half in (0, 1)):
            row, to = n * down + 4 * half, 4 * (n * further * UNIT + half * UNIT // 2)
            inside = b.icmp_signed(">", limit, I32(row))
            own = [
                b.add(target, I32(to)),
                b.add(start, I64(row * step * size)),
                b.select(inside, I32(16), I32(0)),
            ]
            text = "cp.async.cg.shared.global [$0], [$1], 16, $2;"
            asm(b, text, ir.VoidType(), own, "r,l,r,~{memory}")
        asm(b, "cp.async.commit_group;", ir.VoidType(), [], "~{memory}")
        return context.get_dummy_value()

    i64 = types.int64
    return types.void(staged, types.uint64, source, i64, i64, *given), generate


@intrinsic
def cut_chunks(
    typing_context: Any, staged: Any, place: Any, scale: Any, tile: Any, row: Any, chunk: Any,
    apart: Any, rows: Any, count: Any, part: Any,
) -> Any:  # fmt: skip
    """Cut eight float32 at staged[place], times `scale`, to chunk `chunk` of packed row `row`; (least, most)
    of their magnitudes, before they are scaled, as `cuda_mma.magnitudes` has them.

    So with `count` chunks, `apart` elements from one another and `rows` rows (a multiple of 8) of the tile at
    staged[tile], in rows of 128 bytes; low parts are `part` words behind. From `apart` on all are literal.
    """
    given = (apart, rows, count, part)
    if not literal(*given):
        return None
    further, down, times, behind = (v.literal_value for v in given)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, packer = builder, Packer(builder, F16)
        start, first = (shared_address(b, args[0], args[i]) for i in (1, 3))
        row, chunk = (b.trunc(a, I32) for a in args[4:6])
        target = chunk_address(b, first, row, chunk, 32)
        seen = [I32(0xFFFFFFFF), I32(0)]
        # Two are read before either is written: nobody knows that they lie apart.
        for n in range(0, times, 2):
            own = range(n, min(n + 2, times))
            words = [packer.read(b.add(start, I32(4 * m * further)), 1) for m in own]
            seen = packer.counted([w for eight in words for w in eight], *seen)
            made = [
                cut(packer, [b.fmul(b.bitcast(w, F32), args[2]) for w in eight]) for eight in words
            ]
            for m, (high, low) in zip(own, made, strict=True):
                at = b.add(target, I32(128 * m * down))
                packer.store(at, high)
                packer.store(b.add(at, I32(4 * behind)), low)
        return context.make_tuple(b, pair, seen)

    u64, pair = types.uint64, types.UniTuple(types.uint32, 2)
    return pair(staged, u64, types.float32, u64, u64, u64, *given), generate


@intrinsic
def tell_largest(typing_context: Any, staged: Any, place: Any, most: Any) -> Any:
    """staged[place] = the largest of a warp's `most`, which `cuda_mma.magnitudes` has."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b = builder
        found = asm(b, "redux.sync.max.u32 $0, $1, -1;", I32, [args[2]], "=r,r")
        b.store(found, b.inttoptr(shared_address(b, args[0], args[1]), I32.as_pointer(SHARED)))
        return context.get_dummy_value()

    return types.void(staged, types.uint64, types.uint32), generate


@intrinsic
def told_exponent(typing_context: Any, staged: Any, place: Any, count: Any) -> Any:
    """The exponent, as float32 have it, of the largest that `count` warps told, from staged[place] on; 15 at
    least. `place` and `count`, which is literal, are multiples of four."""
    if not literal(count):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, largest = builder, I32(15 << 24)
        start = shared_address(b, args[0], args[1])
        kind = ir.VectorType(I32, 4)
        for first in range(0, count.literal_value, 4):
            four = b.load(b.inttoptr(b.add(start, I32(4 * first)), kind.as_pointer(SHARED)))
            four.align = 16
            for word in (b.extract_element(four, I32(i)) for i in range(4)):
                largest = b.select(b.icmp_unsigned(">", word, largest), word, largest)
        return b.zext(b.lshr(largest, I32(24)), I64)

    return types.int64(staged, types.uint64, count), generate


@intrinsic
def power_of(typing_context: Any, exponent: Any) -> Any:
    """The power of two that has this exponent, from 1 to 254, as float32 have it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(builder.shl(builder.trunc(args[0], I32), I32(23)), F32)

    return types.float32(types.int64), generate
