"""Products of tiles on tensor cores.

A warp multiplies by `mma.sync` (compute capability 8.0 and later). Both tiles lie in shared memory as
float32; a fragment is rounded, or split into parts, in registers, so that one layout serves every precision.
How the elements of a fragment are dealt to lanes, g = lane / 4 and t = lane % 4, is from the PTX manual's
"Matrix Fragments". Arguments marked *literal* must be constants in the source text.

float32 products come from three products of TF32 parts, x = high + low: low·high + high·low + high·high
(Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores", 2022). A tensor core truncates
where it adds, so sums of eight terms leave it at once and are added in float32. On an H200 each is 4e-8
too small on average. Sums of 64 random terms and more are closer than plain float32's all the same; those
of 8 to 32 are off by 0.6e-7 to 1e-7, where plain ones are by 0.4e-7 to 1e-7.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.cuda import SHARED, asm, shared_address

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic

I32, I64, F32 = ir.IntType(32), ir.IntType(64), ir.FloatType()

SPLIT, TF32, BF16, F16, SCALED = range(5)
"""How factors reach the tensor cores: in parts, or rounded to one format. `SCALED` are two float16 parts,
which warp groups alone multiply (`irkit/scaled_rows.py`)."""

Fragments = list[list[Any]]

_SIDE_BY_SIDE = 4
"""Tiles of sums that are under way at once where each is a chain of three products."""

_CONVERT = {BF16: "cvt.rn.bf16x2.f32", F16: "cvt.rn.f16x2.f32"}
_SHAPES = {
    SPLIT: "m16n8k8.row.col.f32.tf32.tf32.f32",
    TF32: "m16n8k8.row.col.f32.tf32.tf32.f32",
    BF16: "m16n8k16.row.col.f32.bf16.bf16.f32",
    F16: "m16n8k16.row.col.f32.f16.f16.f32",
}


class Warp:
    """Prints what a warp does with a stage: fragments read, split or rounded, multiplied."""

    def __init__(self, builder: Any, kind: int, lane: Any) -> None:
        self.builder, self.kind = builder, kind
        self.lane = builder.trunc(lane, I32)

    def matrices(self, address: Any, count: int, across: bool = False) -> list[Any]:
        """`count` matrices of 8 × 4 words; lane 8i + r gives the address of row r of matrix i.

        With `across` they are of 8 × 8 halves of words, of which a lane has two that are below one another.
        """
        found = ", ".join(f"${i}" for i in range(count))
        how = f"x{count}.trans" if across else f"x{count}"
        text = f"ldmatrix.sync.aligned.m8n8.{how}.shared.b16 {{{found}}}, [${count}];"
        kind = ir.LiteralStructType([I32] * count)
        words = asm(self.builder, text, kind, [address], ",".join(["=r"] * count) + ",r")
        return [self.builder.extract_value(words, i) for i in range(count)]

    def word(self, address: Any) -> Any:
        """One word of shared memory."""
        place = self.builder.inttoptr(address, I32.as_pointer(SHARED))
        return self.builder.load(place)

    def below(self, base: Any, rows: int, k: int, step: int) -> Fragments:
        """Fragments of A: 16 rows each, of 8 terms; rows are `step` words apart."""
        b = self.builder
        row = b.and_(self.lane, I32(15))
        word = b.shl(b.lshr(self.lane, I32(4)), I32(2))
        first = self._at(base, b.add(b.mul(row, I32(step)), word), k)
        return [self.matrices(b.add(first, I32(4 * i * step)), 4) for i in range(0, rows, 16)]

    def beside(self, base: Any, columns: int, k: int, step: int, by_k: bool) -> Fragments:
        """Fragments of B: 8 columns each, of 8 terms; a column runs on, or (not `by_k`) a term's row."""
        b = self.builder
        if by_k:
            return self._columns(base, columns, k, step)
        t, g = b.and_(self.lane, I32(3)), b.lshr(self.lane, I32(2))
        first = self._at(base, b.add(b.mul(t, I32(step)), g), k * step)
        return [
            [self.word(b.add(first, I32(4 * (j + i * step)))) for i in (0, 4)]
            for j in range(0, columns, 8)
        ]

    def _columns(self, base: Any, columns: int, k: int, step: int) -> Fragments:
        b = self.builder
        row = b.and_(self.lane, I32(7))
        row = b.add(row, b.shl(b.lshr(self.lane, I32(4)), I32(3)))
        word = b.and_(b.lshr(self.lane, I32(1)), I32(4))
        first = self._at(base, b.add(b.mul(row, I32(step)), word), k)
        found: Fragments = []
        for j in range(0, columns, 16):
            count = 4 if j + 16 <= columns else 2
            words = self.matrices(b.add(first, I32(4 * j * step)), count)
            found += [words[i : i + 2] for i in range(0, count, 2)]
        return found

    def _at(self, base: Any, words: Any, more: int) -> Any:
        return self.builder.add(base, self.builder.shl(self.builder.add(words, I32(more)), I32(2)))

    def parts(self, word: Any) -> tuple[Any, Any]:
        """(high, low): high has the bits that TF32 keeps, low what is left of the float32.

        A tensor core reads low towards zero: half of its last place more, and it is rounded.
        """
        b = self.builder
        high = b.and_(b.add(word, I32(0x1000)), I32(0xFFFFE000))
        low = b.fsub(b.bitcast(word, F32), b.bitcast(high, F32))
        low = b.fmul(low, ir.Constant(F32, 1 + 2.0**-11))
        return high, b.bitcast(low, I32)

    def rounded(self, word: Any) -> Any:
        """A float32 rounded to TF32, ties to even: an instruction does so from 9.0 on alone."""
        b = self.builder
        odd = b.and_(b.lshr(word, I32(13)), I32(1))
        up = b.and_(b.add(b.add(word, I32(0xFFF)), odd), I32(0xFFFFE000))
        nan = b.icmp_unsigned(">", b.and_(word, I32(0x7FFFFFFF)), I32(0x7F800000))
        return b.select(nan, I32(0x7FFFE000), up)

    def pair(self, low: Any, high: Any) -> Any:
        """Two float32 rounded to 16 bits each, in one word."""
        both = [self.builder.bitcast(w, F32) for w in (high, low)]
        return self._pure(f"{_CONVERT[self.kind]} $0, $1, $2;", I32, both, "=r,f,f")

    def multiply(self, a: list[Any], b: list[Any], sums: list[Any]) -> list[Any]:
        """sums + a b, by one instruction."""
        text = (
            f"mma.sync.aligned.{_SHAPES[self.kind]} {{$0, $1, $2, $3}}, {{$4, $5, $6, $7}}, "
            "{$8, $9}, {$10, $11, $12, $13};"
        )
        kind = ir.LiteralStructType([F32] * 4)
        constraints = ",".join(["=f"] * 4 + ["r"] * 6 + ["f"] * 4)
        found = self._pure(text, kind, [*a, *b, *sums], constraints)
        return [self.builder.extract_value(found, i) for i in range(4)]

    def _pure(self, text: str, result: Any, args: list[Any], constraints: str) -> Any:
        kind = ir.FunctionType(result, [a.type for a in args])
        code = ir.InlineAsm(kind, text, constraints, side_effect=False)
        return self.builder.call(code, args, attrs=("convergent",))

    def split_steps(
        self, given: list[tuple[Fragments, Fragments]], sums: list[Any], chained: int = 1
    ) -> None:
        """Steps of eight terms each, as three products of parts, the least first; added in float32.

        `chained` steps are added up by the tensor cores first.
        """
        tiles: list[list[tuple[list[Any], list[Any]]]] = []
        for first in range(0, len(given), chained):
            steps = given[first : first + chained]
            left = [[[self.parts(w) for w in words] for words in a] for a, _ in steps]
            right = [[[self.parts(w) for w in words] for words in b] for _, b in steps]
            tiles += [
                [(rows[i], columns[j]) for rows, columns in zip(left, right, strict=True)]
                for i in range(len(left[0]))
                for j in range(len(right[0]))
            ]
        # Side by side, as far as registers reach: an instruction does not wait for the one before.
        for first in range(0, len(tiles), _SIDE_BY_SIDE):
            own = tiles[first : first + _SIDE_BY_SIDE]
            found = self._added(own)
            for n, value in enumerate(v for tile in found for v in tile):
                at = (4 * first + n) % len(sums)
                sums[at] = self.builder.fadd(sums[at], value)

    def _added(self, tiles: list[list[tuple[list[Any], list[Any]]]]) -> list[list[Any]]:
        """The products of parts of some tiles, each of as many steps."""
        found = [[ir.Constant(F32, 0.0)] * 4 for _ in tiles]
        for step in range(len(tiles[0])):
            for x, y in ((1, 0), (0, 1), (0, 0)):
                for n, (rows, columns) in enumerate(tile[step] for tile in tiles):
                    own, other = [w[x] for w in rows], [w[y] for w in columns]
                    found[n] = self.multiply(own, other, found[n])
        return found

    def step(self, a: Fragments, b: Fragments, sums: list[Any]) -> None:
        """The terms that one instruction takes."""
        for i, rows in enumerate(a):
            for j, columns in enumerate(b):
                at = 4 * (i * len(b) + j)
                sums[at : at + 4] = self.multiply(rows, columns, sums[at : at + 4])

    def packed(self, first: list[Any], second: list[Any]) -> list[Any]:
        """Fragments of 8 terms and the 8 after them, as one of 16 in half the width.

        Which term goes where in a fragment is free, as long as A and B agree.
        """
        half = len(first) // 2
        return [
            self.pair(words[i], words[half + i]) for words in (first, second) for i in range(half)
        ]


def add_products(
    warp: Warp,
    depth: int,
    fragments: Callable[[int], tuple[Fragments, Fragments]],
    sums: list[Any],
    chained: int = 1,
) -> None:
    """Add the products of `depth` terms to `sums`; `fragments(k)` has those of 8 float32 terms from k on.

    `chained`: as of `Warp.split_steps`.
    """
    if warp.kind == SPLIT:
        # Few tiles a step: more steps at once.
        steps = min(max(8 * chained * _SIDE_BY_SIDE // (len(sums) // 4), 8 * chained), depth)
        for k in range(0, depth, steps):
            given = [fragments(n) for n in range(k, min(k + steps, depth), 8)]
            warp.split_steps(given, sums, chained)
        return
    for k in range(0, depth, 8 if warp.kind == TF32 else 16):
        a, b = fragments(k)
        if warp.kind == TF32:
            a, b = ([[warp.rounded(w) for w in words] for words in side] for side in (a, b))
        else:
            pairs = zip((a, b), fragments(k + 8), strict=True)
            a, b = ([warp.packed(*both) for both in zip(*p, strict=True)] for p in pairs)
        warp.step(a, b, sums)


@intrinsic
def mma_sums(
    typing_context: Any, sums: Any, staged: Any, a: Any, b: Any, lane: Any,
    a_step: Any, b_step: Any, rows: Any, columns: Any, terms: Any, by_k: Any, kind: Any,
) -> Any:  # fmt: skip
    """The warp's sums, `terms` terms of A times B added; all but the first five are literal.

    A[i, k] is staged[a + i * a_step + k]; B[k, j] is staged[b + j * b_step + k] if `by_k`, else
    staged[b + k * b_step + j]. `rows` is a multiple of 16, `columns` of 8, `terms` of 16, steps of 4. A lane
    holds rows * columns / 32 sums, as `mma_store` takes them. `kind`: SPLIT, TF32, BF16 or F16.
    """
    given = (a_step, b_step, rows, columns, terms, by_k, kind)
    if not all(isinstance(v, types.IntegerLiteral) for v in given):
        return None
    below, beside, height, width, depth, runs, how = (v.literal_value for v in given)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = [builder.extract_value(args[0], i) for i in range(sums.count)]
        warp = Warp(builder, how, args[4])
        left, right = (shared_address(builder, args[1], args[i]) for i in (2, 3))

        def fragments(k: int) -> tuple[Fragments, Fragments]:
            return (
                warp.below(left, height, k, below),
                warp.beside(right, width, k, beside, bool(runs)),
            )

        add_products(warp, depth, fragments, values)
        return context.make_tuple(builder, signature.return_type, values)

    u64 = types.uint64
    return sums(sums, staged, u64, u64, u64, *given), generate


@intrinsic
def magnitudes(
    typing_context: Any, least: Any, most: Any, staged: Any, position: Any, width: Any
) -> Any:
    """(`least`, `most`) with those of staged[position : position + width (literal, 1 or 4)] counted in.

    A magnitude is the float32's bits without the sign, times two; zero is none, it counts as the largest.
    """
    if not isinstance(width, types.IntegerLiteral):
        return None
    words = width.literal_value
    u32 = types.uint32
    pair = types.UniTuple(u32, 2)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = shared_address(builder, args[2], args[3])
        kind = ir.VectorType(I32, words)
        both = builder.load(builder.inttoptr(address, kind.as_pointer(SHARED)))
        both.align = 4 * words
        low, high = args[:2]
        for i in range(words):
            word = builder.extract_element(both, I32(i))
            twice = builder.add(word, word)
            # Zero less one is the largest of all.
            before = builder.sub(twice, I32(1))
            low = builder.select(builder.icmp_unsigned("<", before, low), before, low)
            high = builder.select(builder.icmp_unsigned(">", twice, high), twice, high)
        return context.make_tuple(builder, pair, [low, high])

    return pair(u32, u32, staged, types.uint64, width), generate


@intrinsic
def mma_store(
    typing_context: Any, staged: Any, position: Any, step: Any, sums: Any, columns: Any, lane: Any
) -> Any:
    """staged[position + i * step + j] = the warp's sum [i, j]; `step` and `columns` are literal."""
    if not all(isinstance(v, types.IntegerLiteral) for v in (step, columns)):
        return None
    below, across = step.literal_value, columns.literal_value // 8

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b = builder
        lane32, rows = b.trunc(args[5], I32), sums.count // (4 * across)
        for i in range(rows):
            count = 4 * across
            values = [b.extract_value(args[3], i * count + n) for n in range(count)]
            along_pieces(b, shared_address(b, *args[:2]), below, values, lane32, 16 * i * below)
        return context.get_dummy_value()

    return types.void(staged, types.uint64, step, sums, columns, types.uint64), generate


@intrinsic
def mma_store_across(
    typing_context: Any, staged: Any, position: Any, step: Any, sums: Any, columns: Any, lane: Any
) -> Any:
    """staged[position + j * step + i] = the warp's sum [i, j]: columns run on. As `mma_store` otherwise."""
    if not all(isinstance(v, types.IntegerLiteral) for v in (step, columns)):
        return None
    beside, across = step.literal_value, columns.literal_value // 8

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b = builder
        lane32, rows = b.trunc(args[5], I32), sums.count // (4 * across)
        for i in range(rows):
            count = 4 * across
            values = [b.extract_value(args[3], i * count + n) for n in range(count)]
            across_pieces(b, shared_address(b, *args[:2]), beside, values, lane32, 16 * i)
        return context.get_dummy_value()

    return types.void(staged, types.uint64, step, sums, columns, types.uint64), generate


def along_pieces(
    b: Any, address: Any, step: int, sums: list[Any], lane: Any, start: int = 0
) -> None:
    """Store a lane's sums of 16 rows, `step` words apart, from `start` words behind a shared address on."""
    g, t = b.lshr(lane, I32(2)), b.and_(lane, I32(3))
    own = b.add(b.mul(g, I32(step)), b.shl(t, I32(1)))
    first = b.add(address, b.shl(own, I32(2)))
    for tile in range(len(sums) // 4):
        for half in range(2):
            at = b.add(first, I32(4 * (start + 8 * half * step + 8 * tile)))
            pair = [sums[4 * tile + 2 * half + e] for e in range(2)]
            _store_pair(b, at, pair, aligned=step % 2 == 0)


def across_pieces(
    b: Any, address: Any, step: int, sums: list[Any], lane: Any, start: int = 0
) -> None:
    """The same, columns `step` words apart."""
    g, t = b.lshr(lane, I32(2)), b.and_(lane, I32(3))
    own = b.add(b.mul(t, I32(2 * step)), g)
    first = b.add(address, b.shl(own, I32(2)))
    for number, value in enumerate(sums):
        tile, (half, e) = number // 4, divmod(number % 4, 2)
        at = b.add(first, I32(4 * (start + (8 * tile + e) * step + 8 * half)))
        b.store(value, b.inttoptr(at, value.type.as_pointer(SHARED)))


def _store_pair(b: Any, address: Any, pair: list[Any], aligned: bool) -> None:
    if not aligned:
        for n, value in enumerate(pair):
            place = b.inttoptr(b.add(address, I32(4 * n)), value.type.as_pointer(SHARED))
            b.store(value, place)
        return
    kind = ir.VectorType(pair[0].type, 2)
    both = b.insert_element(ir.Constant(kind, ir.Undefined), pair[0], I32(0))
    both = b.insert_element(both, pair[1], I32(1))
    b.store(both, b.inttoptr(address, kind.as_pointer(SHARED))).align = 8
