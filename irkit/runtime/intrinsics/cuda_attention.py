"""Attention in registers: scores by tensor cores, an online softmax, and sums of values weighted by it.

A warp has `rows` queries and `columns` keys at a time. A score, a weight and a sum lie in lanes as
`mma_store` takes them: lane 4g + t has rows g and g + 8 of each 16, and of each 8 columns those of 2t and
2t + 1. A *row value* (the largest score, the total of weights) is a tuple of one for each row that the lane
has a part of, in order; four lanes have the same rows. Weights go to the second product from the registers
that they are made in: which key is which term of an instruction is free, as long as both factors agree.

Elements of float32 lie in shared memory one a word, 16-bit floats (`packed`) two a word. Arguments marked
*literal* must be constants in the source text.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.cuda import shared_address
from irkit.runtime.intrinsics.cuda_mma import (
    BF16,
    F16,
    SPLIT,
    TF32,
    Fragments,
    Warp,
    add_products,
)

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic

I32, F32 = ir.IntType(32), ir.FloatType()

_CHAINED = 2
"""Steps of eight terms that tensor cores, which truncate, add up where factors are split."""


def literal(*args: Any) -> bool:
    """Whether all are literals."""
    return all(isinstance(a, types.IntegerLiteral) for a in args)


def unpacked(builder: Any, values: Any, count: int) -> list[Any]:
    """The elements of a tuple."""
    return [builder.extract_value(values, i) for i in range(count)]


def floats(count: int) -> Any:
    """A tuple type."""
    return types.UniTuple(types.float32, count)


def constant(value: float) -> Any:
    """A float32."""
    return ir.Constant(F32, value)


@intrinsic
def score_sums(
    typing_context: Any, staged: Any, q: Any, k: Any, lane: Any,
    row: Any, rows: Any, columns: Any, terms: Any, kind: Any, packed: Any,
) -> Any:  # fmt: skip
    """The warp's products of `rows` queries at staged[q] and `columns` keys at staged[k], `terms` terms each.

    `row` words are from one row to the next. From it on all are literal; `rows` and `terms` are multiples of
    16, `columns` of 8, `row` of 4. `kind`: SPLIT, TF32, BF16 or F16; where `packed` one of the last two.
    """
    given = (row, rows, columns, terms, kind, packed)
    if not literal(*given):
        return None
    step, height, width, depth, how, halves = (v.literal_value for v in given)
    result = floats(height * width // 32)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        warp = Warp(builder, how, args[3])
        left, right = (shared_address(builder, args[0], args[i]) for i in (1, 2))
        sums = [constant(0.0)] * result.count

        def fragments(at: int) -> tuple[Fragments, Fragments]:
            return warp.below(left, height, at, step), warp.beside(right, width, at, step, True)

        if halves:
            for at in range(0, depth // 2, 8):
                warp.step(*fragments(at), sums)
        else:
            add_products(warp, depth, fragments, sums, _CHAINED)
        return context.make_tuple(builder, result, sums)

    u64 = types.uint64
    return result(staged, u64, u64, u64, *given), generate


def row_of(n: int, across: int) -> int:
    """Which of a lane's rows score n is of."""
    return 2 * (n // 4 // across) + n // 2 % 2


@dataclass(frozen=True)
class Values:
    """Values in shared memory, a row of them for each key, and the weights of `keys` keys of `rows` rows."""

    warp: Warp
    base: Any
    step: int
    columns: int
    keys: int
    rows: int
    weights: list[Any]

    def add_to(self, sums: list[Any], packed: bool, parts: int) -> None:
        """Weigh them."""
        if packed:
            self._packed(sums, parts)
        elif self.warp.kind in (SPLIT, TF32):
            self._words(sums)
        else:
            self._rounded(sums)

    def _tiles(self, key: int) -> Fragments:
        """The weights of 8 keys: of each 16 rows, those of keys 2t and 2t + 1 of row g, then of row g + 8."""
        across = self.keys // 8
        starts = [4 * (i * across + key // 8) for i in range(self.rows // 16)]
        return [self.weights[s : s + 4] for s in starts]

    def _rows(self, key: int, apart: tuple[int, ...]) -> Fragments:
        """Of each 8 columns, the lane's column g of keys 2t + d, for each d."""
        b = self.warp.builder
        t, g = b.and_(self.warp.lane, I32(3)), b.lshr(self.warp.lane, I32(2))
        word = b.add(b.mul(t, I32(2 * self.step)), g)
        first = b.add(self.base, b.shl(b.add(word, I32(key * self.step)), I32(2)))
        return [
            [self.warp.word(b.add(first, I32(4 * (j + d * self.step)))) for d in apart]
            for j in range(0, self.columns, 8)
        ]

    def _words(self, sums: list[Any]) -> None:
        """Terms t and t + 4 of an instruction are keys 2t and 2t + 1."""
        b = self.warp.builder

        def fragments(key: int) -> tuple[Fragments, Fragments]:
            own = [[tile[n] for n in (0, 2, 1, 3)] for tile in self._tiles(key)]
            return [[b.bitcast(w, I32) for w in words] for words in own], self._rows(key, (0, 1))

        add_products(self.warp, self.keys, fragments, sums, _CHAINED)

    def weighed(self, key: int) -> Fragments:
        """Of each 16 rows, the eight weights that the lane has of 16 keys."""
        pairs = zip(self._tiles(key), self._tiles(key + 8), strict=True)
        return [[*first, *second] for first, second in pairs]

    def _rounded(self, sums: list[Any]) -> None:
        warp = self.warp
        for key in range(0, self.keys, 16):
            a = [self.cut(warp, tile, 1)[0] for tile in self.weighed(key)]
            values = self._rows(key, (0, 1, 8, 9))
            warp.step(a, [[warp.pair(*v[:2]), warp.pair(*v[2:])] for v in values], sums)

    def _packed(self, sums: list[Any], parts: int) -> None:
        warp, b = self.warp, self.warp.builder
        for key in range(0, self.keys, 16):
            a = [self.cut(warp, tile, parts) for tile in self.weighed(key)]
            values = self.across(key)
            if parts == 1:
                warp.step([rows[0] for rows in a], values, sums)
                continue
            for n, (rows, own) in enumerate((r, v) for r in a for v in values):
                found = [constant(0.0)] * 4
                for part in reversed(rows):
                    found = warp.multiply(part, own, found)
                for i, value in enumerate(found):
                    sums[4 * n + i] = b.fadd(sums[4 * n + i], value)

    @staticmethod
    def cut(warp: Warp, values: list[Any], count: int) -> Fragments:
        """float32 values as `count` 16-bit floats each, two a word; of several parts they are bfloat16."""
        b, found = warp.builder, list[list[Any]]()
        while len(found) < count:
            words = [b.bitcast(v, I32) for v in values]
            found.append([warp.pair(words[i], words[i + 1]) for i in range(0, len(words), 2)])
            if len(found) < count:
                ends = [
                    w for r in found[-1] for w in (b.shl(r, I32(16)), b.and_(r, I32(0xFFFF0000)))
                ]
                values = [b.fsub(v, b.bitcast(e, F32)) for v, e in zip(values, ends, strict=True)]
        return found

    def across(self, key: int, first: int = 0) -> Fragments:
        """Of each 8 columns, from column `first` on, the 16 keys of one instruction."""
        b = self.warp.builder
        row = b.add(b.and_(self.warp.lane, I32(15)), I32(key))
        word = b.add(b.shl(b.lshr(self.warp.lane, I32(4)), I32(2)), I32(first // 2))
        start = b.add(self.base, b.shl(b.add(b.mul(row, I32(self.step)), word), I32(2)))
        found: Fragments = []
        for j in range(0, self.columns, 16):
            words = self.warp.matrices(b.add(start, I32(2 * j)), 4, across=True)
            found += [words[:2], words[2:]]
        return found


@intrinsic
def weighted_sums(
    typing_context: Any, sums: Any, factors: Any, weights: Any, staged: Any, values: Any, lane: Any,
    row: Any, columns: Any, keys: Any, kind: Any, packed: Any, parts: Any,
) -> Any:  # fmt: skip
    """`sums` times `factors`, and the warp's weights times the `keys` values at staged[values].

    `row` words are from one row to the next. From it on all are literal: `keys` is a multiple of 8, of 16 for
    BF16 and F16, `columns` of 8, of 16 where `packed`. `parts`: into how many 16-bit floats a weight is split
    where values are packed.
    """
    given = (row, columns, keys, kind, packed, parts)
    if not literal(*given):
        return None
    step, width, count, how, halves, split = (v.literal_value for v in given)
    rows = 32 * weights.count // count
    assert how in (SPLIT, TF32, BF16, F16)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b = builder
        scales = unpacked(b, args[1], factors.count)
        found = [
            b.fmul(value, scales[row_of(n, width // 8)])
            for n, value in enumerate(unpacked(b, args[0], sums.count))
        ]
        warp, base = Warp(b, how, args[5]), shared_address(b, args[3], args[4])
        own = unpacked(b, args[2], weights.count)
        Values(warp, base, step, width, count, rows, own).add_to(found, bool(halves), split)
        return context.make_tuple(b, signature.return_type, found)

    u64 = types.uint64
    return sums(sums, factors, weights, staged, u64, u64, *given), generate
