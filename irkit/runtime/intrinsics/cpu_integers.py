"""Numba intrinsics of products of 16-bit integers on a CPU: two terms multiplied and added up at once.

By `pmaddwd` of the widest registers that the processor has, which LLVM makes one `vpdpwssd` with the addition
where there is VNNI; elsewhere by vectors of 32-bit products. All wrap at 32 bits, as sums of i32 do.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

from functools import cache
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 16
_I16, _I32, _I64 = ir.IntType(16), ir.IntType(32), ir.IntType(64)
_SUMS = ir.VectorType(_I32, LANES)
# Of so many pairs at once: the feature that a processor needs, and LLVM's name.
_INSTRUCTIONS = {
    16: ("avx512bw", "llvm.x86.avx512.pmaddw.d.512"),
    8: ("avx2", "llvm.x86.avx2.pmadd.wd"),
}


@cache
def _widest() -> int:
    """Pairs that one instruction of this processor multiplies; 0 if it has none that is known."""
    features = llvm.get_host_cpu_features()
    return next((n for n, (needed, _) in _INSTRUCTIONS.items() if features.get(needed)), 0)


@intrinsic(prefer_literal=True)
def multiply_pairs(
    typingctx: Any, most: Any, vectors: Any, rows: Any, a: Any, at_a: Any, k: Any, b: Any, at_b: Any,
    c: Any, width: Any,
) -> Any:  # fmt: skip
    """C[i, at_b + j] = sum over t of A[i, t] * B[t, at_b + j], `rows` rows and `vectors` times 16 columns.

    `most`, a literal power of two, is the largest number of rows; `vectors` is a literal too. A's rows are
    k elements of i16 long, from `at_a` on. B lies in pairs: b[t // 2 * 2 * width + 2 * j + t % 2]; where k is
    odd, what stands beside its last term is read and counts nothing. Rows of C, of i32, are `width` apart.
    """
    if not isinstance(most, types.IntegerLiteral) or not isinstance(vectors, types.IntegerLiteral):
        return None
    largest, across = most.literal_value, vectors.literal_value

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, _, rows, *given = arguments
        size = largest
        while size:
            wanted = builder.and_(rows, _I64(size))
            with builder.if_then(builder.icmp_unsigned("!=", wanted, _I64(0))):
                first = builder.and_(rows, _I64(-2 * size))
                Tile(builder, across, first, size, *given).print()
            size //= 2
        return context.get_dummy_value()

    integer = types.int64
    return types.void(most, vectors, integer, a, integer, integer, b, integer, c, integer), codegen


class Tile:
    """Prints the sums of `count` rows from `first` on.

    A derived class may take more than two terms at once: TERMS of TERM bits, which are 32 together.
    """

    TERMS = 2
    TERM = 16

    def __init__(
        self, builder: Any, across: int, first: Any, count: int, a: Any, at_a: Any, k: Any, b: Any,
        at_b: Any, c: Any, width: Any,
    ) -> None:  # fmt: skip
        self.builder, self.across, self.k = builder, across, k
        self.numbers = [builder.add(first, _I64(i)) for i in range(count)]
        self.rows = [builder.gep(a, [builder.add(at_a, builder.mul(n, k))]) for n in self.numbers]
        self.b = builder.bitcast(
            builder.gep(b, [builder.mul(at_b, _I64(self.TERMS))]), _I32.as_pointer()
        )
        self.c = [builder.gep(c, [builder.add(at_b, builder.mul(n, width))]) for n in self.numbers]
        self.width = width

    def print(self) -> None:
        """Whole groups of terms in a loop, then the rest; the sums to C."""
        builder = self.builder
        zero = ir.Constant(_SUMS, [0] * LANES)
        places = [
            [cgutils.alloca_once_value(builder, zero) for _ in range(self.across)]
            for _ in self.rows
        ]
        for place in (p for row in places for p in row):
            builder.store(zero, place)
        whole = builder.udiv(self.k, _I64(self.TERMS))
        with cgutils.for_range(builder, whole) as loop:
            self._add(places, loop.index, self._group)
        rest = builder.icmp_unsigned("!=", builder.urem(self.k, _I64(self.TERMS)), _I64(0))
        with builder.if_then(rest):
            self._add(places, whole, self._rest)
        for row, c in zip(places, self.c, strict=True):
            for number, place in enumerate(row):
                where = builder.gep(c, [_I64(LANES * number)])
                builder.store(
                    builder.load(place), builder.bitcast(where, _SUMS.as_pointer()), align=4
                )

    def _group(self, row: Any, number: Any) -> Any:
        """Neighbours of a row, as 32 bits."""
        place = self.builder.gep(row, [self.builder.mul(number, _I64(self.TERMS))])
        return self.builder.load(
            self.builder.bitcast(place, _I32.as_pointer()), align=self.TERM // 8
        )

    def _rest(self, row: Any, number: Any) -> Any:
        """The last terms of a row, and zeros."""
        builder, first = self.builder, self.builder.mul(number, _I64(self.TERMS))
        found: Any = _I32(0)
        for term in range(self.TERMS - 1):
            at = builder.add(first, _I64(term))
            inside = builder.icmp_unsigned("<", at, self.k)
            # What lies behind the last row may be no memory.
            place = builder.gep(row, [builder.select(inside, at, first)])
            bits = builder.zext(builder.load(place, align=self.TERM // 8), _I32)
            shifted = builder.shl(bits, _I32(self.TERM * term))
            found = builder.or_(found, builder.select(inside, shifted, _I32(0)))
        return found

    def _add(self, places: list[list[Any]], number: Any, read: Any) -> None:
        """The products of one group of terms."""
        builder = self.builder
        start = builder.gep(self.b, [builder.mul(number, self.width)])
        columns = [
            builder.load(
                builder.bitcast(builder.gep(start, [_I64(LANES * n)]), _SUMS.as_pointer()), align=4
            )
            for n in range(self.across)
        ]
        for row, sums in zip(self.rows, places, strict=True):
            factor = self._spread(read(row, number))
            for column, place in zip(columns, sums, strict=True):
                builder.store(self.added(builder.load(place), factor, column), place)

    def _spread(self, pair: Any) -> Any:
        undefined = ir.Constant(_SUMS, ir.Undefined)
        first = self.builder.insert_element(undefined, pair, _I32(0))
        zeros = ir.Constant(_SUMS, [0] * LANES)
        return self.builder.shuffle_vector(first, undefined, zeros)

    def added(self, sums: Any, a: Any, b: Any) -> Any:
        """`sums` and the products of one group of terms of every lane."""
        return self.builder.add(sums, self.pairs(a, b))

    def pairs(self, a: Any, b: Any) -> Any:
        """a0 * b0 + a1 * b1 of every lane."""
        pairs = _widest()
        if not pairs:
            return self._plain(a, b)
        parts = [self._instruction(pairs, self._cut(a, at, pairs), self._cut(b, at, pairs))
                 for at in range(0, LANES, pairs)]  # fmt: skip
        if len(parts) == 1:
            return parts[0]
        order = ir.Constant(ir.VectorType(_I32, LANES), list(range(LANES)))
        return self.builder.shuffle_vector(parts[0], parts[1], order)

    def _cut(self, vector: Any, at: int, lanes: int) -> Any:
        """Lanes `at` on, as pairs of i16."""
        if lanes < LANES:
            order = ir.Constant(ir.VectorType(_I32, lanes), list(range(at, at + lanes)))
            vector = self.builder.shuffle_vector(vector, ir.Constant(_SUMS, ir.Undefined), order)
        return self.builder.bitcast(vector, ir.VectorType(_I16, 2 * lanes))

    def _instruction(self, lanes: int, a: Any, b: Any) -> Any:
        halves, words = ir.VectorType(_I16, 2 * lanes), ir.VectorType(_I32, lanes)
        kind = ir.FunctionType(words, [halves, halves])
        name = _INSTRUCTIONS[lanes][1]
        return self.builder.call(
            cgutils.get_or_insert_function(self.builder.module, kind, name), [a, b]
        )

    def _plain(self, a: Any, b: Any) -> Any:
        builder, sixteen = self.builder, ir.Constant(_SUMS, [16] * LANES)
        high = builder.mul(builder.ashr(a, sixteen), builder.ashr(b, sixteen))
        low_a, low_b = (builder.ashr(builder.shl(v, sixteen), sixteen) for v in (a, b))
        return builder.add(high, builder.mul(low_a, low_b))
