"""Numba intrinsics of products of bytes on a CPU: four terms multiplied and added up at once, exactly.

By `vpdpbusd` where the processor has it (AVX-512 VNNI, AVX-VNNI), which multiplies unsigned by signed
bytes; else by two multiplications of pairs of 16 bits (`cpu_integers`). Where both factors are of one
signedness, those of the second have their highest bit turned round, which makes each 128 more or less.
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

from irkit.runtime.intrinsics.cpu_integers import LANES, Tile

_I8, _I16, _I32, _I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
_WORDS = ir.VectorType(_I32, LANES)
_HALVES = ir.VectorType(_I16, 2 * LANES)
# Of so many groups of four at once: features, all of which a processor needs, and LLVM's name.
_INSTRUCTIONS = (
    (16, ("avx512vnni",), "llvm.x86.avx512.vpdpbusd.512"),
    (8, ("avx512vnni", "avx512vl"), "llvm.x86.avx512.vpdpbusd.256"),
    (8, ("avxvnni",), "llvm.x86.avx512.vpdpbusd.256"),
)


@cache
def _widest() -> int:
    """Groups that one instruction of this processor multiplies; 0 if it has none."""
    features = llvm.get_host_cpu_features()
    return next((n for n, needed, _ in _INSTRUCTIONS if all(map(features.get, needed))), 0)


@intrinsic(prefer_literal=True)
def copy_run(typingctx: Any, count: Any, a: Any, at: Any, b: Any, to: Any) -> Any:
    """b[to + i] = a[at + i] for i < `count`, a literal, of bytes that do not overlap."""
    if not isinstance(count, types.IntegerLiteral):
        return None
    kind = ir.VectorType(_I8, count.literal_value).as_pointer()

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, a, at, b, to = arguments
        value = builder.load(builder.bitcast(builder.gep(a, [at]), kind), align=1)
        builder.store(value, builder.bitcast(builder.gep(b, [to]), kind), align=1)
        return context.get_dummy_value()

    integer = types.int64
    return types.void(count, a, integer, b, integer), codegen


@intrinsic(prefer_literal=True)
def interleave_fours(typingctx: Any, width: Any, turned: Any, k: Any, panel: Any) -> Any:
    """Rows 4n to 4n + 3 of a panel of bytes, `width` (literal) long, become groups of four, in place.

    panel[4 * (n * width + i) + t] is what panel[(4 * n + t) * width + i] was, with its highest bit turned
    round if `turned` (literal) is 1. There are `k` rows, and room for a multiple of four.
    """
    if not isinstance(width, types.IntegerLiteral) or not isinstance(turned, types.IntegerLiteral):
        return None
    count, flip = width.literal_value, turned.literal_value

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, _, rows, first = arguments
        groups = builder.udiv(builder.add(rows, _I64(3)), _I64(4))
        row = ir.VectorType(_I8, count)
        with cgutils.for_range(builder, groups) as loop:
            at = builder.mul(loop.index, _I64(4 * count))
            given = [
                builder.load(
                    builder.bitcast(
                        builder.gep(first, [builder.add(at, _I64(t * count))]), row.as_pointer()
                    ),
                    align=1,
                )
                for t in range(4)
            ]
            fours = _interleaved(builder, given, count)
            if flip:
                sign = ir.Constant(fours.type, [-128] * (4 * count))
                fours = builder.xor(fours, sign)
            place = builder.bitcast(builder.gep(first, [at]), fours.type.as_pointer())
            builder.store(fours, place, align=1)
        return context.get_dummy_value()

    return types.void(width, turned, types.int64, panel), codegen


def _interleaved(builder: Any, rows: list[Any], count: int) -> Any:
    pairs = [_zipped(builder, rows[t], rows[t + 1], count) for t in (0, 2)]
    halves = ir.VectorType(_I16, count)
    both = _zipped(builder, *(builder.bitcast(p, halves) for p in pairs), count)
    return builder.bitcast(both, ir.VectorType(_I8, 4 * count))


def _zipped(builder: Any, a: Any, b: Any, count: int) -> Any:
    order = [i + n * count for i in range(count) for n in range(2)]
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_I32, 2 * count), order))


@intrinsic(prefer_literal=True)
def multiply_fours(
    typingctx: Any, most: Any, vectors: Any, of_signed: Any, rows: Any, a: Any, at_a: Any, k: Any,
    b: Any, at_b: Any, c: Any, width: Any,
) -> Any:  # fmt: skip
    """C[i, at_b + j] = sum over t of A[i, t] * B[t, at_b + j], `rows` rows and `vectors` times 16 columns.

    `most`, a literal power of two, is the largest number of rows; `vectors` is a literal too. A's rows are
    k bytes long, from `at_a` on, signed ones if `of_signed` (literal) is 1; B has bytes of the other
    signedness, as `interleave_fours` leaves them; where k is no multiple of four, what stands behind its
    last term is read and counts nothing. Rows of C, of i32, are `width` apart.
    """
    given = (most, vectors, of_signed)
    if not all(isinstance(v, types.IntegerLiteral) for v in given):
        return None
    largest, across, signed = (v.literal_value for v in given)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, _, _, rows, *operands = arguments
        size = largest
        while size:
            wanted = builder.and_(rows, _I64(size))
            with builder.if_then(builder.icmp_unsigned("!=", wanted, _I64(0))):
                first = builder.and_(rows, _I64(-2 * size))
                tile = _Fours(builder, across, first, size, *operands)
                tile.signed = bool(signed)
                tile.print()
            size //= 2
        return context.get_dummy_value()

    integer = types.int64
    kinds = (most, vectors, of_signed, integer, a, integer, integer, b, integer, c, integer)
    return types.void(*kinds), codegen


class _Fours(Tile):
    """Sums of groups of four bytes; A's are signed, or B's."""

    TERMS = 4
    TERM = 8
    signed = True

    def added(self, sums: Any, a: Any, b: Any) -> Any:
        plain, signed = (b, a) if self.signed else (a, b)
        lanes = _widest()
        if not lanes:
            products = [self.pairs(x, y) for x, y in self._halves(plain, signed)]
            return self.builder.add(sums, self.builder.add(*products))
        parts = [
            self._fours(lanes, *(self._part(v, at, lanes) for v in (sums, plain, signed)))
            for at in range(0, LANES, lanes)
        ]
        if len(parts) == 1:
            return parts[0]
        order = ir.Constant(ir.VectorType(_I32, LANES), list(range(LANES)))
        return self.builder.shuffle_vector(parts[0], parts[1], order)

    def _halves(self, plain: Any, signed: Any) -> list[tuple[Any, Any]]:
        """Both factors as pairs of i16: the first and third bytes, the second and fourth."""
        builder, eight = self.builder, ir.Constant(_HALVES, [8] * (2 * LANES))
        x, y = (builder.bitcast(v, _HALVES) for v in (plain, signed))
        even = ir.Constant(_HALVES, [255] * (2 * LANES))
        low = builder.and_(x, even), builder.ashr(builder.shl(y, eight), eight)
        high = builder.lshr(x, eight), builder.ashr(y, eight)
        return [(builder.bitcast(p, _WORDS), builder.bitcast(q, _WORDS)) for p, q in (low, high)]

    def _part(self, vector: Any, at: int, lanes: int) -> Any:
        if lanes == LANES:
            return vector
        order = ir.Constant(ir.VectorType(_I32, lanes), list(range(at, at + lanes)))
        return self.builder.shuffle_vector(vector, ir.Constant(_WORDS, ir.Undefined), order)

    def _fours(self, lanes: int, sums: Any, plain: Any, signed: Any) -> Any:
        words = ir.VectorType(_I32, lanes)
        kind = ir.FunctionType(words, [words] * 3)
        name = next(name for n, _, name in _INSTRUCTIONS if n == lanes)
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, [sums, plain, signed])
