"""Products of bytes in sums of 32 bits: tensor cores by `mma.sync`, and `dp4a`; exact modulo 2^32.

Bytes are held in words of four, the first one lowest. How the elements of a fragment are dealt to lanes is
from the PTX manual's "Matrix Fragments for mma.m16n8k32": in words it is as of TF32 (`cuda_mma`), with a
word of four terms in place of one. Arguments marked *literal* must be constants in the source text.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.cuda import asm, shared_address

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic

I8, I32 = ir.IntType(8), ir.IntType(32)

Fragments = list[list[Any]]


def _is_literal(*given: Any) -> bool:
    return all(isinstance(v, types.IntegerLiteral) for v in given)


@intrinsic
def four_bytes(typing_context: Any, first: Any, second: Any, third: Any, fourth: Any) -> Any:
    """The lowest bytes of four numbers, as a word."""
    word = types.int32

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _joined(builder, args)

    return word(word, word, word, word), generate


def _joined(builder: Any, values: list[Any]) -> Any:
    found: Any = I32(0)
    for n, value in enumerate(values):
        byte = builder.and_(value, I32(255))
        found = builder.or_(found, builder.shl(byte, I32(8 * n)))
    return found


@intrinsic
def words_at(typing_context: Any, source: Any, index: Any, count: Any, aligned: Any) -> Any:
    """A tuple of `count` (literal, 1 or 4) words: the bytes of source[index : index + 4 * count].

    They are read at once where `aligned` (literal) is 1, and must lie at a multiple of their number.
    """
    if not _is_literal(count, aligned):
        return None
    words, whole = count.literal_value, bool(aligned.literal_value)
    result = types.UniTuple(types.int32, words)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = builder.gep(args[0], [args[1]])
        if not whole:
            found = [
                _joined(
                    builder,
                    [
                        builder.zext(builder.load(builder.gep(place, [I32(4 * n + t)])), I32)
                        for t in range(4)
                    ],
                )
                for n in range(words)
            ]
            return context.make_tuple(builder, result, found)
        kind = ir.VectorType(I32, words)
        both = builder.load(builder.bitcast(place, kind.as_pointer()))
        both.align = 4 * words
        found = [builder.extract_element(both, I32(n)) for n in range(words)]
        return context.make_tuple(builder, result, found)

    return result(source, types.int64, count, aligned), generate


@intrinsic
def turn_words(typing_context: Any, first: Any, second: Any, third: Any, fourth: Any) -> Any:
    """Four words of four bytes each, rows becoming columns: byte i of word j is byte j of word i."""
    word = types.int32
    result = types.UniTuple(word, 4)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def permuted(a: Any, b: Any, selector: int) -> Any:
            kind = ir.FunctionType(I32, [I32, I32])
            text = f"prmt.b32 $0, $1, $2, {selector:#x};"
            code = ir.InlineAsm(kind, text, "=r,r,r", side_effect=False)
            return builder.call(code, [a, b])

        halves = [[permuted(args[n], args[n + 1], s) for n in (0, 2)] for s in (0x5140, 0x7362)]
        found = [permuted(a, b, s) for a, b in halves for s in (0x5410, 0x7632)]
        return context.make_tuple(builder, result, found)

    return result(word, word, word, word), generate


@intrinsic
def integer_zeros(typing_context: Any, count: Any) -> Any:
    """A tuple of `count` (literal) zeros of 32 bits."""
    if not _is_literal(count):
        return None
    result = types.UniTuple(types.int32, count.literal_value)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.make_tuple(builder, result, [I32(0)] * count.literal_value)

    return result(count), generate


@intrinsic
def dot4(typing_context: Any, a: Any, b: Any, total: Any, of_signed: Any, by_signed: Any) -> Any:
    """`total` and the products of the four bytes of words a and b, whose signedness is literal."""
    if not _is_literal(of_signed, by_signed):
        return None
    kinds = ["s32" if v.literal_value else "u32" for v in (of_signed, by_signed)]
    word = types.int32

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(I32, [I32] * 3)
        text = f"dp4a.{kinds[0]}.{kinds[1]} $0, $1, $2, $3;"
        code = ir.InlineAsm(kind, text, "=r,r,r,r", side_effect=False)
        return builder.call(code, args[:3])

    return word(word, word, word, of_signed, by_signed), generate


class _Warp:
    """Prints what a warp does with a stage: fragments of 8 words read and multiplied."""

    def __init__(self, builder: Any, kinds: tuple[str, str], lane: Any) -> None:
        self.builder, self.kinds = builder, kinds
        self.lane = builder.trunc(lane, I32)

    def rows(self, base: Any, rows: int, word: int, step: int) -> Fragments:
        """Fragments of A: 16 rows each; rows are `step` words apart."""
        b = self.builder
        row = b.and_(self.lane, I32(15))
        column = b.shl(b.lshr(self.lane, I32(4)), I32(2))
        first = self._at(base, b.add(b.mul(row, I32(step)), column), word)
        return [self._matrices(b.add(first, I32(4 * i * step)), 4) for i in range(0, rows, 16)]

    def columns(self, base: Any, columns: int, word: int, step: int) -> Fragments:
        """Fragments of B: 8 columns each, which are `step` words apart."""
        b = self.builder
        row = b.and_(self.lane, I32(7))
        row = b.add(row, b.shl(b.lshr(self.lane, I32(4)), I32(3)))
        column = b.and_(b.lshr(self.lane, I32(1)), I32(4))
        first = self._at(base, b.add(b.mul(row, I32(step)), column), word)
        found: Fragments = []
        for j in range(0, columns, 16):
            count = 4 if j + 16 <= columns else 2
            words = self._matrices(b.add(first, I32(4 * j * step)), count)
            found += [words[i : i + 2] for i in range(0, count, 2)]
        return found

    def _at(self, base: Any, words: Any, more: int) -> Any:
        return self.builder.add(base, self.builder.shl(self.builder.add(words, I32(more)), I32(2)))

    def _matrices(self, address: Any, count: int) -> list[Any]:
        """`count` matrices of 8 × 4 words; lane 8i + r gives the address of row r of matrix i."""
        found = ", ".join(f"${i}" for i in range(count))
        text = f"ldmatrix.sync.aligned.m8n8.x{count}.shared.b16 {{{found}}}, [${count}];"
        kind = ir.LiteralStructType([I32] * count)
        words = asm(self.builder, text, kind, [address], ",".join(["=r"] * count) + ",r")
        return [self.builder.extract_value(words, i) for i in range(count)]

    def multiply(self, a: list[Any], b: list[Any], sums: list[Any]) -> list[Any]:
        """sums + a b, by one instruction; they wrap."""
        text = (
            f"mma.sync.aligned.m16n8k32.row.col.s32.{self.kinds[0]}.{self.kinds[1]}.s32 "
            "{$0, $1, $2, $3}, {$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13};"
        )
        kind = ir.FunctionType(ir.LiteralStructType([I32] * 4), [I32] * 10)
        code = ir.InlineAsm(kind, text, ",".join(["=r"] * 4 + ["r"] * 10), side_effect=False)
        found = self.builder.call(code, [*a, *b, *sums], attrs=("convergent",))
        return [self.builder.extract_value(found, i) for i in range(4)]


@intrinsic
def mma_bytes(
    typing_context: Any, sums: Any, staged: Any, a: Any, b: Any, lane: Any,
    step: Any, rows: Any, columns: Any, words: Any, of_signed: Any, by_signed: Any,
) -> Any:  # fmt: skip
    """The warp's sums, `words` words of four terms of A times B added; all but the first five are literal.

    A[i, k] is staged[a + i * step + k], B[k, j] is staged[b + j * step + k]. `rows` is a multiple of 16,
    `columns` of 8, `words` of 8, `step` of 4. A lane holds rows * columns / 32 sums, as `mma_store` takes
    them.
    """
    given = (step, rows, columns, words, of_signed, by_signed)
    if not _is_literal(*given):
        return None
    apart, height, width, depth, *signs = (v.literal_value for v in given)
    kinds = ("s8" if signs[0] else "u8", "s8" if signs[1] else "u8")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = [builder.extract_value(args[0], i) for i in range(sums.count)]
        warp = _Warp(builder, kinds, args[4])
        left, right = (shared_address(builder, args[1], args[i]) for i in (2, 3))
        for k in range(0, depth, 8):
            of_a, of_b = warp.rows(left, height, k, apart), warp.columns(right, width, k, apart)
            for i, row in enumerate(of_a):
                for j, column in enumerate(of_b):
                    at = 4 * (i * len(of_b) + j)
                    values[at : at + 4] = warp.multiply(row, column, values[at : at + 4])
        return context.make_tuple(builder, signature.return_type, values)

    u64 = types.uint64
    return sums(sums, staged, u64, u64, u64, *given), generate
