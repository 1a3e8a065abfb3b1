"""Terms of tiles in the order in which `wgmma` reads them: copied, rounded or split on the way.

`cuda_wgmma` says how tiles lie. Arguments marked *literal* must be constants in the source text.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.cuda import SHARED, asm, shared_address
from irkit.runtime.intrinsics.cuda_mma import BF16, F16, SPLIT, TF32

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic

I32, I64, F32 = ir.IntType(32), ir.IntType(64), ir.FloatType()

ALIGNMENT = 1024
"""Bytes: where packed tiles start, so that a chunk's place follows from its row in the tile."""

_CONVERT = {SPLIT: "cvt.rn.bf16x2.f32", BF16: "cvt.rn.bf16x2.f32", F16: "cvt.rn.f16x2.f32"}


def terms_of_chunk(kind: int) -> int:
    """Terms in 16 bytes of a packed row."""
    return 4 if kind == TF32 else 8


@intrinsic
def aligned_place(typing_context: Any, staged: Any, position: Any) -> Any:
    """The first position in `staged` (shared, float32), from `position` on, where packed tiles may start."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = shared_address(builder, args[0], args[1])
        more = builder.and_(builder.neg(address), I32(ALIGNMENT - 1))
        return builder.add(args[1], builder.zext(builder.lshr(more, I32(2)), I64))

    return types.uint64(staged, types.uint64), generate


class Packer:
    """Prints how one chunk's terms are read, rounded or split, and stored."""

    def __init__(self, builder: Any, kind: int) -> None:
        self.builder, self.kind = builder, kind

    def read(self, address: Any, step: int) -> list[Any]:
        """The chunk's terms as words, `step` words apart."""
        b, count = self.builder, terms_of_chunk(self.kind)
        if step != 1:
            places = [b.add(address, I32(4 * i * step)) for i in range(count)]
            return [b.load(b.inttoptr(p, I32.as_pointer(SHARED))) for p in places]
        found: list[Any] = []
        for first in range(0, count, 4):
            kind = ir.VectorType(I32, 4)
            place = b.inttoptr(b.add(address, I32(4 * first)), kind.as_pointer(SHARED))
            four = b.load(place)
            four.align = 16
            found += [b.extract_element(four, I32(i)) for i in range(4)]
        return found

    def parts(self, words: list[Any]) -> list[list[Any]]:
        """Of each part, the four words that its chunk is."""
        if self.kind == TF32:
            return [[self._pure("cvt.rn.tf32.f32 $0, $1;", [self._float(w)]) for w in words]]
        values = [self._float(w) for w in words]
        found = [self.pairs(values)]
        while self.kind == SPLIT and len(found) < 3:
            values = self._rest(values, found[-1])
            found.append(self.pairs(values))
        return found

    def _float(self, word: Any) -> Any:
        return self.builder.bitcast(word, F32)

    def pairs(self, values: list[Any]) -> list[Any]:
        """Two terms a word, the first in its low half."""
        text = f"{_CONVERT[self.kind]} $0, $1, $2;"
        pairs = zip(values[1::2], values[::2], strict=True)
        return [self._pure(text, list(pair)) for pair in pairs]

    def _rest(self, values: list[Any], rounded: list[Any]) -> list[Any]:
        """What rounding to bfloat16 has left of float32 values, exactly."""
        b, found = self.builder, list[Any]()
        for n, word in enumerate(rounded):
            ends = b.shl(word, I32(16)), b.and_(word, I32(0xFFFF0000))
            found += [b.fsub(values[2 * n + i], self._float(end)) for i, end in enumerate(ends)]
        return found

    def _pure(self, text: str, args: list[Any]) -> Any:
        kind = ir.FunctionType(I32, [a.type for a in args])
        constraints = ",".join(["=r"] + ["f"] * len(args))
        return self.builder.call(ir.InlineAsm(kind, text, constraints, side_effect=False), args)

    def store(self, address: Any, words: list[Any]) -> None:
        """Four words, as one."""
        b, kind = self.builder, ir.VectorType(I32, 4)
        where = b.inttoptr(address, kind.as_pointer(SHARED))
        b.store(self.joined(words), where).align = 16

    def joined(self, words: list[Any]) -> Any:
        """Four words as a vector."""
        four = ir.Constant(ir.VectorType(I32, 4), ir.Undefined)
        for i, word in enumerate(words):
            four = self.builder.insert_element(four, word, I32(i))
        return four

    def counted(self, words: list[Any], least: Any, most: Any) -> list[Any]:
        """[least, most] magnitudes with those of the words, as `cuda_mma.magnitudes` has them."""
        b = self.builder
        for word in words:
            twice = b.add(word, word)
            before = b.sub(twice, I32(1))
            least = b.select(b.icmp_unsigned("<", before, least), before, least)
            most = b.select(b.icmp_unsigned(">", twice, most), twice, most)
        return [least, most]


def chunk_address(b: Any, first: Any, row: Any, chunk: Any, row_words: int) -> Any:
    """Where a chunk of a packed row lies: its number is swizzled with the row's."""
    chunks = row_words // 4
    turned = row if chunks == 8 else b.lshr(row, I32(1))
    turned = b.xor(chunk, b.and_(turned, I32(chunks - 1)))
    return b.add(first, b.add(b.mul(row, I32(4 * row_words)), b.shl(turned, I32(4))))


@intrinsic
def read_terms(
    typing_context: Any, staged: Any, place: Any, step: Any, count: Any, apart: Any, kind: Any
) -> Any:
    """The terms of `count` chunks, for `pack_terms`: staged[place], staged[place + step], ... of the first.

    The chunks start `apart` elements from one another. All but the first two arguments are literal.
    """
    given = (step, count, apart, kind)
    if not all(isinstance(v, types.IntegerLiteral) for v in given):
        return None
    between, chunks, further, how = (v.literal_value for v in given)
    result = types.UniTuple(types.uint32, chunks * terms_of_chunk(how))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        packer = Packer(builder, how)
        first = shared_address(builder, args[0], args[1])
        starts = [builder.add(first, I32(4 * n * further)) for n in range(chunks)]
        words = [word for start in starts for word in packer.read(start, between)]
        return context.make_tuple(builder, result, words)

    return result(staged, types.uint64, *given), generate


@intrinsic
def pack_terms(
    typing_context: Any, least: Any, most: Any, terms: Any, staged: Any,
    tile: Any, row: Any, chunk: Any, rows: Any, chunks: Any,
    row_words: Any, part_words: Any, kind: Any,
) -> Any:  # fmt: skip
    """Pack what `read_terms` has read; (`least`, `most`) with the terms' magnitudes counted in.

    The tile starts at staged[tile]; the first is chunk `chunk` of row `row`, each that follows is `rows` rows
    and `chunks` chunks further. Rows have `row_words` words (16 or 32); the tile's parts, where terms are
    split, are `part_words` words apart. Only then are magnitudes counted. From `rows` on all are literal.
    """
    given = (rows, chunks, row_words, part_words, kind)
    if not all(isinstance(v, types.IntegerLiteral) for v in given):
        return None
    down, across, wide, between, how = (v.literal_value for v in given)
    u32, u64 = types.uint32, types.uint64
    pair = types.UniTuple(u32, 2)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, packer, seen = builder, Packer(builder, how), list(args[:2])
        words = [b.extract_value(args[2], i) for i in range(terms.count)]
        first = shared_address(b, args[3], args[4])
        row, chunk = (b.trunc(a, I32) for a in args[5:7])
        for n, start in enumerate(range(0, terms.count, terms_of_chunk(how))):
            own = words[start : start + terms_of_chunk(how)]
            seen = packer.counted(own, *seen) if how == SPLIT else seen
            at = b.add(row, I32(n * down)), b.add(chunk, I32(n * across))
            target = chunk_address(b, first, *at, wide)
            for m, part in enumerate(packer.parts(own)):
                packer.store(b.add(target, I32(4 * m * between)), part)
        return context.make_tuple(b, pair, seen)

    return pair(u32, u32, terms, staged, u64, u64, u64, *given), generate


@intrinsic
def copy_chunk(
    typing_context: Any, staged: Any, tile: Any, row: Any, chunk: Any, source: Any, index: Any, inside: Any
) -> Any:  # fmt: skip
    """Start copying 16 bytes from source[index], which is aligned to them, to a chunk of a packed row.

    Rows have 128 bytes. The tile starts at staged[tile]. Zeros come in their place where `inside` is false;
    the index must be one that could be read.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first = shared_address(builder, args[0], args[1])
        row, chunk = (builder.trunc(a, I32) for a in args[2:4])
        target = chunk_address(builder, first, row, chunk, 32)
        start = builder.ptrtoint(builder.gep(args[4], [args[5]]), I64)
        count = builder.select(args[6], I32(16), I32(0))
        text = "cp.async.cg.shared.global [$0], [$1], 16, $2;"
        asm(builder, text, ir.VoidType(), [target, start, count], "r,l,r,~{memory}")
        return context.get_dummy_value()

    u64 = types.uint64
    return types.void(staged, u64, u64, u64, source, types.int64, types.boolean), generate


@intrinsic
def round_chunks(
    typing_context: Any, staged: Any, tile: Any, row: Any, chunk: Any, further: Any, count: Any
) -> Any:
    """Round the four float32 of each of `count` chunks, as `copy_chunk` places them, to TF32, where they are.

    The first is chunk `chunk` of row `row`, each that follows is `further` rows below. Both are literal, and
    `further` is a multiple of 8, so that their places lie equally far apart. Some are read before the first
    is written, so that one wait is enough for them.
    """
    if not all(isinstance(v, types.IntegerLiteral) for v in (further, count)):
        return None
    apart, chunks = 128 * further.literal_value, count.literal_value
    if further.literal_value % 8:
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first = shared_address(builder, args[0], args[1])
        row, chunk = (builder.trunc(a, I32) for a in args[2:4])
        target = chunk_address(builder, first, row, chunk, 32)
        for start in range(0, chunks, _ROUNDED_AT_ONCE):
            places = [n * apart for n in range(start, min(start + _ROUNDED_AT_ONCE, chunks))]
            asm(builder, _rounding(places), ir.VoidType(), [target], "r,~{memory}")
        return context.get_dummy_value()

    u64 = types.uint64
    return types.void(staged, u64, u64, u64, further, count), generate


_ROUNDED_AT_ONCE = 4
"""Chunks in registers, four words each, beside the sums."""


def _rounding(places: Sequence[int]) -> str:
    """Chunks at some bytes from $0, all read, then rounded, then written."""
    words = [[f"w{4 * n + i}" for i in range(4)] for n in range(len(places))]
    lines = [f"{{ .reg .b32 w<{4 * len(places)}>;"]
    for place, four in zip(places, words, strict=True):
        lines.append(f"ld.shared.v4.b32 {{{', '.join(four)}}}, [$0 + {place}];")
    lines += [f"cvt.rn.tf32.f32 {w}, {w};" for four in words for w in four]
    for place, four in zip(places, words, strict=True):
        lines.append(f"st.shared.v4.b32 [$0 + {place}], {{{', '.join(four)}}};")
    return " ".join([*lines, "}"])


@intrinsic
def feed_rows(
    typing_context: Any, staged: Any, tile: Any, row: Any, chunk: Any, source: Any, index: Any,
    pitch: Any, between: Any, count: Any, limit: Any,
) -> Any:  # fmt: skip
    """Start copying 16 bytes each of `count` rows, `between` apart, to a chunk of packed rows of 128 bytes.

    The first is that of source[index], aligned to 16 bytes, for row `row` of the tile at staged[tile]; those
    that follow are `pitch` elements a row further. Zeros come in the place of rows from row + `limit` on,
    which are not read. `pitch`, `between` (a multiple of 8) and `count` are literal.
    """
    given = (pitch, between, count)
    if not all(isinstance(v, types.IntegerLiteral) for v in given):
        return None
    apart, rows, times = (v.literal_value for v in given)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b = builder
        first = shared_address(b, args[0], args[1])
        row, chunk = (b.trunc(a, I32) for a in args[2:4])
        target, limit = chunk_address(b, first, row, chunk, 32), b.trunc(args[9], I32)
        start = b.ptrtoint(b.gep(args[4], [args[5]]), I64)
        size = context.get_abi_sizeof(args[4].type.pointee)
        for n in range(times):
            inside = b.icmp_signed(">", limit, I32(n * rows))
            bytes_ = b.select(inside, I32(16), I32(0))
            where = b.add(start, I64(n * rows * apart * size))
            given = [b.add(target, I32(n * rows * 128)), where, bytes_]
            text = "cp.async.cg.shared.global [$0], [$1], 16, $2;"
            asm(b, text, ir.VoidType(), given, "r,l,r,~{memory}")
        return context.get_dummy_value()

    u64, i64 = types.uint64, types.int64
    return types.void(staged, u64, u64, u64, source, i64, *given, i64), generate
