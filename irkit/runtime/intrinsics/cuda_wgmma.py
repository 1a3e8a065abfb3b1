"""Products of tiles by warp groups (`wgmma`, compute capability 9.0 alone), and the packing that feeds them.

Four warps multiply 64 rows by up to 256 columns, both read by the tensor cores from shared memory, while
their threads do something else. Tiles lie there packed: row by row, 64 or 128 bytes of terms each, and the
16-byte chunks of a row in the order that the hardware's swizzle of that width gives. Layouts, descriptors and
the accumulators' lanes: PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate". Arguments marked
*literal* must be constants in the source text.

float32 products come from six products of bfloat16 parts, x = high + middle + low, of which the three least
are left out (Henry, Tang and Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For
Higher-Precision Computations", 2019): all of a float32's 24 bits, and its range. A tensor core truncates
where it adds, always towards zero: what that leaves out of one product adds up over a network's layers. So
the sums of a few terms leave it at once and are added in float32, and those of the first parts, which are
the result but for a 256th, stay by themselves: of 16 bits a product, they are mostly exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.cuda import SHARED, asm
from irkit.runtime.intrinsics.cuda_mma import BF16, F16, SPLIT, TF32

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic

I32, I64, F32 = ir.IntType(32), ir.IntType(64), ir.FloatType()

ALIGNMENT = 1024
"""Bytes: where packed tiles start, so that a chunk's place follows from its row in the tile."""

WHOLE, SMALL, LARGE = range(3)
PRODUCTS = {
    WHOLE: ((0, 0),),
    SMALL: ((2, 0), (0, 2), (1, 1), (1, 0), (0, 1)),
    LARGE: ((0, 0),),
}
"""Parts of A and B that are multiplied, the least first: of factors that are whole, and of split ones."""

SHAPES = {SPLIT: "bf16", TF32: "tf32", BF16: "bf16", F16: "f16"}
_CONVERT = {SPLIT: "cvt.rn.bf16x2.f32", BF16: "cvt.rn.bf16x2.f32", F16: "cvt.rn.f16x2.f32"}


def terms_of_chunk(kind: int) -> int:
    """Terms in 16 bytes of a packed row."""
    return 4 if kind == TF32 else 8


def shared_address(builder: Any, pointer: Any, position: Any) -> Any:
    """The 32-bit shared address of pointer[position]."""
    first = builder.addrspacecast(pointer, pointer.type.pointee.as_pointer(SHARED))
    return builder.ptrtoint(builder.gep(first, [position]), I32)


@intrinsic
def aligned_place(typing_context: Any, staged: Any, position: Any) -> Any:
    """The first position in `staged` (shared, float32), from `position` on, where packed tiles may start."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = shared_address(builder, args[0], args[1])
        more = builder.and_(builder.neg(address), I32(ALIGNMENT - 1))
        return builder.add(args[1], builder.zext(builder.lshr(more, I32(2)), I64))

    return types.uint64(staged, types.uint64), generate


@intrinsic
def publish_tiles(typing_context: Any) -> Any:
    """What this thread has packed is for the tensor cores to see, once all threads have met."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        asm(builder, "fence.proxy.async.shared::cta;", ir.VoidType(), [], "~{memory}")
        return context.get_dummy_value()

    return types.void(), generate


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


def _chunk_address(b: Any, first: Any, row: Any, chunk: Any, row_words: int) -> Any:
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
            target = _chunk_address(b, first, *at, wide)
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
        target = _chunk_address(builder, first, row, chunk, 32)
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
        target = _chunk_address(builder, first, row, chunk, 32)
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
        target, limit = _chunk_address(b, first, row, chunk, 32), b.trunc(args[9], I32)
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


@dataclass(frozen=True)
class Stage:
    """The products of one stage: 64 rows by `columns`, `terms` terms of `kind`.

    Tiles are planes of rows of `row_words` words, one for each part, or for each `2 * row_words` terms, `a`
    and `b` words apart. Not `by_k`, rows of B hold 64 columns each, a plane all terms of them.
    """

    columns: int
    terms: int
    row_words: int
    a: int
    b: int
    by_k: bool
    kind: int
    parts: int = WHOLE

    @property
    def steps(self) -> range:
        """What one instruction takes: 32 bytes of a row."""
        return range(self.terms // (8 if self.kind == TF32 else 16))

    def of_a(self, step: int, part: int) -> int:
        """Units of 16 bytes from the start of A's tile to a step's terms."""
        plane, within = divmod(step, self.row_words // 8)
        return (plane + part) * self.a // 4 + 2 * within

    def of_b(self, step: int, part: int) -> int:
        """The same of B's."""
        if not self.by_k:
            return step * 16 * self.row_words // 4
        plane, within = divmod(step, self.row_words // 8)
        return (plane + part) * self.b // 4 + 2 * within

    def descriptor(self, b: Any, address: Any, by_k: bool) -> Any:
        """Of a tile: its address and, between groups of 8 rows and between planes, the distance."""
        swizzle = {32: 1, 16: 2}[self.row_words]
        planes = 1 if by_k else 4 * self.b >> 4
        facts = swizzle << 62 | (8 * 4 * self.row_words >> 4) << 32 | planes << 16
        where = b.zext(b.lshr(b.and_(address, I32(0x3FFFF)), I32(4)), I64)
        return b.or_(where, I64(facts))

    def text(self, count: int, fresh: int) -> str:
        """All products as a group of their own, added to $0 ... of `count` sums, or making them: then `fresh`
        times as many, each for as many steps. The descriptors come behind."""
        chains = max(fresh, 1)
        each, behind, name = len(self.steps) // chains, count * chains, SHAPES[self.kind]
        shape = f"m64n{self.columns}k{8 if self.kind == TF32 else 16}.f32.{name}.{name}"
        # Neither operand is negated; those of 16 bits say too whether terms come first.
        last = "1, 1" if self.kind == TF32 else f"1, 1, 0, {int(not self.by_k)}"
        lines = ["{ .reg .b64 a, b;", "wgmma.fence.sync.aligned;"]
        for step in self.steps:
            first = step // each * count
            sums = ", ".join(f"${i}" for i in range(first, first + count))
            for n, (x, y) in enumerate(PRODUCTS[self.parts]):
                a, b = self.of_a(step, x), self.of_b(step, y)
                added = int(not fresh or step % each > 0 or n > 0)
                lines.append(f"add.s64 a, ${behind}, {a}; add.s64 b, ${behind + 1}, {b};")
                lines.append(
                    f"wgmma.mma_async.sync.aligned.{shape} {{{sums}}}, a, b, {added}, {last};"
                )
        return "\n".join([*lines, "wgmma.commit_group.sync.aligned; }"])


@intrinsic
def group_products(
    typing_context: Any, sums: Any, staged: Any, a: Any, b: Any, columns: Any, terms: Any,
    row_words: Any, a_plane: Any, b_plane: Any, by_k: Any, kind: Any, fresh: Any, parts: Any,
) -> Any:  # fmt: skip
    """Start the warp group's products of 64 packed rows at staged[a] and `columns` columns at staged[b].

    What comes back is for `group_added` alone, or for more products: `sums` with them, or if `fresh` they
    alone, in as many sets, each of its share of the terms. A lane holds columns / 2 sums, as `mma_store`
    takes them of 16 rows a warp. All arguments but the first four are literal and as `Stage` has them;
    `parts` is a key of `PRODUCTS`.
    """
    given = (columns, terms, row_words, a_plane, b_plane, by_k, kind, fresh, parts)
    if not all(isinstance(v, types.IntegerLiteral) for v in given):
        return None
    width, depth, row, below, beside, runs, how, anew, which = (v.literal_value for v in given)
    stage, count = Stage(width, depth, row, below, beside, bool(runs), how, which), width // 2
    made = types.UniTuple(types.float32, count * max(anew, 1))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        tiles = [
            stage.descriptor(builder, shared_address(builder, args[1], args[2]), by_k=True),
            stage.descriptor(builder, shared_address(builder, args[1], args[3]), stage.by_k),
        ]
        held = [] if anew else [builder.extract_value(args[0], i) for i in range(count)]
        tied = [str(i) for i in range(len(held))]
        constraints = ",".join(["=f"] * made.count + ["l", "l", *tied, "~{memory}"])
        kind = ir.LiteralStructType([F32] * made.count)
        found = asm(builder, stage.text(count, anew), kind, [*tiles, *held], constraints)
        values = [builder.extract_value(found, i) for i in range(made.count)]
        return context.make_tuple(builder, made, values)

    u64 = types.uint64
    return made(sums, staged, u64, u64, *given), generate


@intrinsic
def same_in_warp(typing_context: Any, value: Any) -> Any:
    """That of the warp's first lane, of 32 bits: all lanes have the same, and the assembler knows it. What is
    computed of it takes registers of the whole warp, in which descriptors of `wgmma` must be."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        text, narrow = "shfl.sync.idx.b32 $0, $1, 0, 31, -1;", builder.trunc(args[0], I32)
        return builder.zext(asm(builder, text, I32, [narrow], "=r,r"), I64)

    return types.int64(types.int64), generate


@intrinsic
def await_products(typing_context: Any, left: Any) -> Any:
    """Wait until `left` (literal) of what `group_products` started are still at work, the sums untouched."""
    if not isinstance(left, types.IntegerLiteral):
        return None
    text = f"wgmma.wait_group.sync.aligned {left.literal_value};"

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        asm(builder, text, ir.VoidType(), [], "~{memory}")
        return context.get_dummy_value()

    return types.void(left), generate


@intrinsic
def group_added(typing_context: Any, sums: Any, products: Any, fresh: Any, left: Any) -> Any:
    """Wait for what `group_products` started, but for the `left` last of it; the sums with it, or it alone
    where it had them before. `fresh`, whether it had not, and `left` are literal."""
    if not all(isinstance(v, types.IntegerLiteral) for v in (fresh, left)):
        return None
    count, several, anew = sums.count, products.count, fresh.literal_value

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        text = f"wgmma.wait_group.sync.aligned {left.literal_value};"
        asm(builder, text, ir.VoidType(), [], "~{memory}")
        started = [builder.extract_value(args[1], i) for i in range(several)]
        # Nothing that reads them may be moved before the wait.
        constraints = ",".join(["=f"] * several + [str(i) for i in range(several)] + ["~{memory}"])
        kind = ir.LiteralStructType([F32] * several)
        found = asm(builder, "", kind, started, constraints)
        values = [builder.extract_value(found, i) for i in range(several)]
        # Sets meet each other before the sums, whose roundings are the largest.
        while len(values) > count:
            half = len(values) // 2
            values = [builder.fadd(x, y) for x, y in zip(values[:half], values[half:], strict=True)]
        if anew:
            given = [builder.extract_value(args[0], i) for i in range(count)]
            values = [builder.fadd(x, y) for x, y in zip(given, values, strict=True)]
        return context.make_tuple(builder, signature.return_type, values)

    return sums(sums, products, fresh, left), generate
