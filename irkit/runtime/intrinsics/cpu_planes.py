"""Numba intrinsics of convolutions on a CPU: tiles of sums whose terms lie at places of padded planes."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from irkit.runtime.intrinsics.cpu_products import LANES, Tile
from irkit.runtime.intrinsics.cpu_windows import Windows

_I64 = ir.IntType(64)


@intrinsic(prefer_literal=True)
def multiply_planes(
    typingctx: Any, most: Any, vectors: Any, rows: Any, a: Any, at_a: Any, channels: Any, step: Any,
    terms: Any, places: Any, b: Any, at_b: Any, c: Any, at_c: Any,
) -> Any:  # fmt: skip
    """C[i, j] = sum over n < channels, t < terms of A[i, n * terms + t] * b[n * step + places[t] + j].

    For `rows` rows i, at most `most`, a literal power of two, and `vectors` (a literal too) times 16 columns
    j. A's rows are channels * terms long, C's are 16 * vectors. Elements of `a`, `b` and `c` are counted from
    `at_a`, `at_b` and `at_c`. Fewer rows than `most` go by powers of two.
    """
    if not isinstance(most, types.IntegerLiteral) or not isinstance(vectors, types.IntegerLiteral):
        return None
    largest, across = most.literal_value, vectors.literal_value

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, _, rows, a, at_a, channels, step, terms, places, b, at_b, c, at_c = arguments
        tile = Tile(builder, a.type.pointee, across)
        first, into = builder.gep(b, [at_b]), builder.gep(c, [at_c])
        loops = _Planes(tile, channels, step, terms, places, first)
        length, size = builder.mul(channels, terms), largest
        while size:
            with builder.if_then(
                builder.icmp_unsigned("!=", builder.and_(rows, _I64(size)), _I64(0))
            ):
                start = builder.and_(rows, _I64(-2 * size))
                numbers = [builder.add(start, _I64(i)) for i in range(size)]
                filters = [
                    builder.gep(a, [builder.add(at_a, builder.mul(length, n))]) for n in numbers
                ]
                tile.store(loops.sums(filters), into, _I64(LANES * across), numbers)
            size //= 2
        return context.get_dummy_value()

    integer = types.int64
    return types.void(most, vectors, integer, a, integer, integer, integer, integer, places, b,
                      integer, c, integer), codegen  # fmt: skip


@intrinsic(prefer_literal=True)
def copy_every(
    typingctx: Any, stride: Any, widest: Any, count: Any, a: Any, at: Any, b: Any, to: Any
) -> Any:
    """b[to + i] = a[at + i * stride] for i < `count`; nothing else is read or written.

    `stride`, 1 or 2, and `widest`, the largest power of two that is not more than `count`, 16 at most, are
    literals. What is left of whole vectors is copied by one that begins sooner.
    """
    if not isinstance(stride, types.IntegerLiteral) or not isinstance(widest, types.IntegerLiteral):
        return None
    apart, lanes = stride.literal_value, min(widest.literal_value, LANES)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, _, wanted, a, at, b, to = arguments

        def copy(first: Any) -> None:
            begin = builder.add(at, builder.mul(first, _I64(apart)))
            windows = Windows(builder, a, begin, lanes, apart)
            value = windows.elements(0)
            target = builder.gep(b, [builder.add(to, first)])
            builder.store(value, builder.bitcast(target, value.type.as_pointer()), align=4)

        with cgutils.for_range(builder, builder.udiv(wanted, _I64(lanes))) as loop:
            copy(builder.mul(loop.index, _I64(lanes)))
        left = builder.urem(wanted, _I64(lanes))
        with builder.if_then(builder.icmp_unsigned("!=", left, _I64(0))):
            copy(builder.sub(wanted, _I64(lanes)))
        return context.get_dummy_value()

    integer = types.int64
    return types.void(stride, widest, integer, a, integer, b, integer), codegen


@dataclass(frozen=True)
class _Planes:
    """Prints the two loops of `multiply_planes`, over channels and over terms, the sums in registers."""

    tile: Tile
    channels: Any
    step: Any
    terms: Any
    places: Any
    b: Any

    def sums(self, filters: list[Any]) -> list[list[Any]]:
        """The sums of each row of A, which begin at `filters`; the builder behind the loops."""
        tile, builder = self.tile, self.tile.builder
        before = builder.block
        outer, inner, latch, done = (
            builder.append_basic_block(f"planes.{n}") for n in ("channel", "term", "next", "done")
        )
        zero = ir.Constant(tile.vector, [0.0] * tile.lanes)
        builder.branch(outer)
        builder.position_at_end(outer)
        # A channel: its number, where its plane is, and its first term of A.
        channel, plane, first = (builder.phi(_I64) for _ in range(3))
        so_far = [[builder.phi(tile.vector) for _ in range(tile.across)] for _ in filters]
        builder.branch(inner)
        builder.position_at_end(inner)
        term = builder.phi(_I64)
        totals = [[builder.phi(tile.vector) for _ in row] for row in so_far]
        added = self._added(filters, totals, builder.add(first, term), plane, term)
        next_term = builder.add(term, _I64(1))
        builder.cbranch(builder.icmp_signed("<", next_term, self.terms), inner, latch)
        builder.position_at_end(latch)
        behind = [
            builder.add(value, by)
            for value, by in ((channel, _I64(1)), (plane, self.step), (first, self.terms))
        ]
        builder.cbranch(builder.icmp_signed("<", behind[0], self.channels), outer, done)
        builder.position_at_end(done)
        _enter(term, (_I64(0), outer), (next_term, inner))
        for phi, following in zip((channel, plane, first), behind, strict=True):
            _enter(phi, (_I64(0), before), (following, latch))
        for row, phis, made in zip(so_far, totals, added, strict=True):
            for start, phi, total in zip(row, phis, made, strict=True):
                _enter(start, (zero, before), (total, latch))
                _enter(phi, (start, outer), (total, inner))
        return added

    def _added(
        self, filters: list[Any], totals: list[list[Any]], k: Any, plane: Any, term: Any
    ) -> list[list[Any]]:
        """One term more of each sum."""
        tile, builder = self.tile, self.tile.builder
        place = builder.add(plane, builder.load(builder.gep(self.places, [term])))
        column = builder.gep(self.b, [place])
        tile.fetch(filters[0], builder.mul(self.channels, self.terms), len(filters), k)
        values = [builder.load(tile.vector_at(column, n), align=4) for n in range(tile.across)]
        added: list[list[Any]] = []
        for row, phis in zip(filters, totals, strict=True):
            scalar = tile.spread(builder.load(builder.gep(row, [k])))
            pairs = zip(values, phis, strict=True)
            added.append([builder.call(tile.fma, [scalar, v, phi]) for v, phi in pairs])
        return added


def _enter(phi: Any, *incoming: tuple[Any, Any]) -> None:
    for value, block in incoming:
        phi.add_incoming(value, block)
