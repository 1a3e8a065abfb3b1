"""Numba intrinsics of convolutions on a CPU: tiles of sums that have the filters in a vector's lanes.

An output's term is one element for all filters, so it may lie anywhere: no vector goes over the end of a row,
and rows of few outputs fill registers as long ones do. Filters are laid out for that (`turn_rows`), and sums
are transposed when they are stored, so that the outputs of a filter lie side by side.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from irkit.runtime.intrinsics.cpu_products import LANES, Tile

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_FOURS = range(0, LANES, 4)
# Of two vectors: neighbours taken in turn, of elements and of pairs; every second four lanes.
_LOW = [at for n in _FOURS for at in (n, n + LANES, n + 1, n + LANES + 1)]
_HIGH = [at + 2 for at in _LOW]
_LOW_PAIRS = [at for n in _FOURS for at in (n, n + 1, n + LANES, n + LANES + 1)]
_HIGH_PAIRS = [at + 2 for at in _LOW_PAIRS]
_EVEN_FOURS = [at + i for at in range(0, 2 * LANES, 8) for i in range(4)]
_ODD_FOURS = [at + 4 for at in _EVEN_FOURS]


def transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """The columns of 16 rows of 16 lanes, by shuffles within and then between fours of lanes."""

    def both(pairs: Iterable[tuple[Any, Any]], low: list[int], high: list[int]) -> Any:
        kind = ir.VectorType(_I32, LANES)
        masks = [ir.Constant(kind, mask) for mask in (low, high)]
        return [[builder.shuffle_vector(a, b, mask) for mask in masks] for a, b in pairs]

    twos = both(zip(rows[::2], rows[1::2], strict=True), _LOW, _HIGH)
    # Row j of a four has, in its four lanes of number n, column 4 n + j.
    fours: list[list[Any]] = []
    for (low, high), (low2, high2) in zip(twos[::2], twos[1::2], strict=True):
        found = both(((low, low2), (high, high2)), _LOW_PAIRS, _HIGH_PAIRS)
        fours.append([value for pair in found for value in pair])
    columns: list[Any] = [None] * LANES
    for j, (a, b, c, d) in enumerate(zip(*fours, strict=True)):
        halves = both(((a, b), (c, d)), _EVEN_FOURS, _ODD_FOURS)
        for odd, (upper, lower) in enumerate(zip(*halves, strict=True)):
            (found,) = both(((upper, lower),), _EVEN_FOURS, _ODD_FOURS)
            columns[4 * odd + j], columns[8 + 4 * odd + j] = found
    return columns


@intrinsic
def turn_rows(typingctx: Any, rows: Any, a: Any, at_a: Any, k: Any, b: Any, at_b: Any) -> Any:
    """b[at_b + t * 16 + i] = a[at_a + i * k + t] for t < `k`, i < 16.

    Of `rows` rows, 16 at most, the last one stands where more would.
    """

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows, a, at_a, k, b, at_b = arguments
        vector = ir.VectorType(a.type.pointee, LANES)
        starts: list[Any] = []
        for n in range(LANES):
            inside = builder.icmp_signed("<", _I64(n), rows)
            row = builder.select(inside, _I64(n), builder.sub(rows, _I64(1)))
            starts.append(builder.gep(a, [builder.add(at_a, builder.mul(row, k))]))
        into = builder.gep(b, [at_b])

        def write(value: Any, t: Any) -> None:
            where = builder.gep(into, [builder.mul(t, _I64(LANES))])
            builder.store(value, builder.bitcast(where, vector.as_pointer()), align=4)

        def block(first: Any) -> None:
            found = [
                builder.load(
                    builder.bitcast(builder.gep(start, [first]), vector.as_pointer()), align=4
                )
                for start in starts
            ]
            for n, column in enumerate(transposed(builder, found)):
                write(column, builder.add(first, _I64(n)))

        def one(t: Any) -> None:
            value = ir.Constant(vector, ir.Undefined)
            for n, start in enumerate(starts):
                element = builder.load(builder.gep(start, [t]))
                value = builder.insert_element(value, element, _I32(n))
            write(value, t)

        with cgutils.for_range(builder, builder.udiv(k, _I64(LANES))) as loop:
            block(builder.mul(loop.index, _I64(LANES)))
        whole = builder.and_(k, _I64(-LANES))
        with cgutils.for_range(builder, builder.sub(k, whole)) as loop:
            one(builder.add(whole, loop.index))
        return context.get_dummy_value()

    integer = types.int64
    return types.void(integer, a, integer, integer, b, integer), codegen


@intrinsic(prefer_literal=True)
def multiply_pixels(
    typingctx: Any, vectors: Any, rows: Any, columns: Any, width: Any, pitch: Any, a: Any, at_a: Any,
    channels: Any, step: Any, terms: Any, places: Any, b: Any, at_b: Any, c: Any, at_c: Any, apart: Any,
    ahead: Any,
) -> Any:  # fmt: skip
    """C[i, y * width + x] = sum over n < channels, t < terms of A[i, n * terms + t] * b[place].

    For y < `rows`, x < `width` and `vectors` times 16 rows i; place is n * step + places[t] + y * pitch + x.
    `columns` outputs of a row at once, times `rows` at most 16: those of several rows are whole. These and
    `vectors` are literals. A is as `turn_rows` lays it out, 16 rows behind another; rows of C are `apart`, of
    which up to 15 elements more are written. Elements of `a`, `b` and `c` are counted from `at_a`, `at_b`,
    `at_c`.
    As many vectors of `a` as there are terms, from `ahead` on, are asked for meanwhile, so that what is
    multiplied next comes from memory beside the sums.
    """
    literals = (vectors, rows, columns)
    if not all(isinstance(value, types.IntegerLiteral) for value in literals):
        return None
    across, down, along = (value.literal_value for value in literals)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, _, _, width, pitch, *others = arguments
        a, at_a, channels, step, terms, places, b, at_b, c, at_c, apart, ahead = others
        rows = [builder.mul(_I64(y), pitch) for y in range(down)]
        offsets = [builder.add(row, _I64(x)) for row in rows for x in range(along)]
        filters, following = builder.gep(a, [at_a]), builder.gep(a, [ahead])
        tile = Tile(builder, a.type.pointee, across)
        unknown = ir.Constant(tile.vector, ir.Undefined)
        # The last tile of a row may begin sooner.
        tiles = builder.sdiv(builder.add(width, _I64(along - 1)), _I64(along))
        last = builder.sub(width, _I64(along))
        with cgutils.for_range(builder, tiles) as loop:
            x = builder.mul(loop.index, _I64(along))
            behind = builder.icmp_signed(">", x, last)
            x = builder.select(behind, last, x)
            first = builder.gep(b, [builder.add(at_b, x)])
            loops = _Pixels(tile, channels, step, terms, places, filters, following, first, offsets)
            for number, sums in enumerate(zip(*loops.sums(), strict=True)):
                padded = [*sums, *[unknown] * (LANES - len(sums))]
                for row, value in enumerate(transposed(builder, padded)):
                    into = builder.mul(apart, _I64(LANES * number + row))
                    place = builder.add(builder.add(at_c, x), into)
                    builder.store(value, tile.vector_at(builder.gep(c, [place]), 0), align=4)
        return context.get_dummy_value()

    integer = types.int64
    return types.void(vectors, rows, columns, integer, integer, a, integer, integer, integer, integer,
                      places, b, integer, c, integer, integer, integer), codegen  # fmt: skip


@dataclass(frozen=True)
class _Pixels:
    """Prints the two loops of `multiply_pixels`, over channels and over terms, the sums in registers."""

    tile: Tile
    channels: Any
    step: Any
    terms: Any
    places: Any
    filters: Any
    following: Any
    b: Any
    offsets: list[Any]

    def sums(self) -> list[list[Any]]:
        """Of each output its vectors of sums; the builder behind the loops."""
        tile, builder = self.tile, self.tile.builder
        before = builder.block
        outer, inner, latch, done = (
            builder.append_basic_block(f"pixels.{n}") for n in ("channel", "term", "next", "done")
        )
        zero = ir.Constant(tile.vector, [0.0] * tile.lanes)
        # How far apart the blocks of 16 filters are.
        apart = builder.mul(builder.mul(self.channels, self.terms), _I64(LANES))
        builder.branch(outer)
        builder.position_at_end(outer)
        channel, plane, first = (builder.phi(_I64) for _ in range(3))
        so_far = [[builder.phi(tile.vector) for _ in range(tile.across)] for _ in self.offsets]
        builder.branch(inner)
        builder.position_at_end(inner)
        term, column = builder.phi(_I64), builder.phi(_I64)
        totals = [[builder.phi(tile.vector) for _ in row] for row in so_far]
        added = self._added(totals, column, apart, plane, term)
        self._ask(column)
        next_term = builder.add(term, _I64(1))
        next_column = builder.add(column, _I64(LANES))
        builder.cbranch(builder.icmp_signed("<", next_term, self.terms), inner, latch)
        builder.position_at_end(latch)
        next_channel = builder.add(channel, _I64(1))
        next_plane = builder.add(plane, self.step)
        builder.cbranch(builder.icmp_signed("<", next_channel, self.channels), outer, done)
        builder.position_at_end(done)
        for phi, start, following, at in (
            (term, _I64(0), next_term, (outer, inner)),
            (column, first, next_column, (outer, inner)),
            (channel, _I64(0), next_channel, (before, latch)),
            (plane, _I64(0), next_plane, (before, latch)),
            (first, _I64(0), next_column, (before, latch)),
        ):
            phi.add_incoming(start, at[0])
            phi.add_incoming(following, at[1])
        for row, phis, made in zip(so_far, totals, added, strict=True):
            for start, phi, total in zip(row, phis, made, strict=True):
                start.add_incoming(zero, before)
                start.add_incoming(total, latch)
                phi.add_incoming(start, outer)
                phi.add_incoming(total, inner)
        return added

    def _ask(self, column: Any) -> None:
        """Have one vector of the filters that are next come to the second cache."""
        builder, letter = self.tile.builder, ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [letter, _I32, _I32, _I32])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        place = builder.bitcast(builder.gep(self.following, [column]), letter)
        # To read, not into the first cache, data.
        builder.call(prefetch, [place, _I32(0), _I32(2), _I32(1)])

    def _added(
        self, totals: list[list[Any]], column: Any, apart: Any, plane: Any, term: Any
    ) -> list[list[Any]]:
        """One term more of each sum."""
        tile, builder = self.tile, self.tile.builder
        place = builder.add(plane, builder.load(builder.gep(self.places, [term])))
        values = [
            builder.load(
                tile.vector_at(
                    builder.gep(
                        self.filters, [builder.add(column, builder.mul(apart, _I64(number)))]
                    ),
                    0,
                ),
                align=4,
            )
            for number in range(tile.across)
        ]
        pixel = builder.gep(self.b, [place])
        added: list[list[Any]] = []
        for offset, phis in zip(self.offsets, totals, strict=True):
            scalar = tile.spread(builder.load(builder.gep(pixel, [offset])))
            pairs = zip(values, phis, strict=True)
            added.append([builder.call(tile.fma, [scalar, v, phi]) for v, phi in pairs])
        return added
