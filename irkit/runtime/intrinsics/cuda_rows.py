"""Products of several rows of x, which lie in shared memory, with several rows of weights, spread over lanes.

A row of either is dealt to the lanes of a group piece by piece, as in `cuda_lanes`. Each lane has a tile of
sums in registers, a tuple of height × width, row-major: a piece that is read serves a whole row or column of
the tile. Arguments marked *literal* must be constants in the source text.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.cuda import SHARED, to_shared
from irkit.runtime.intrinsics.cuda_lanes import (
    held_pieces,
    literals_of,
    load_vector,
    pieces_of,
    shuffled,
)

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic

I32, I64 = ir.IntType(32), ir.IntType(64)
HELD = 8
"""So many pieces of a thread are on their way from memory at once."""


@intrinsic
def rows_to_shared(
    typing_context: Any, staged: Any, place: Any, pointer: Any, start: Any, count: Any, thread: Any,
    length: Any, threads: Any, stride: Any,
) -> Any:  # fmt: skip
    """staged[place : place + count] = pointer[start : start + count], by all `threads` (literal) of a block.

    `length` (literal) is the most that `count` can be; both, `place` and `start` are multiples of four where
    `stride` (literal; 0: addresses may be unaligned) is one that is not zero.
    """
    given = literals_of(length, threads, stride)
    if given is None:
        return None
    most, block, wide = given
    width, pieces = pieces_of(most, block, wide)

    def store(builder: Any, place: Any, values: list[Any]) -> None:
        if len(values) == 1:
            builder.store(values[0], place)
            return
        kind = ir.VectorType(place.type.pointee, width)
        vector = ir.Constant(kind, ir.Undefined)
        for i, value in enumerate(values):
            vector = builder.insert_element(vector, value, I32(i))
        builder.store(vector, builder.bitcast(place, kind.as_pointer(SHARED))).align = 16

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        to = builder.gep(to_shared(builder, args[0]), [args[1]])
        source, limit = builder.gep(args[2], [args[3]]), args[4]
        for first in range(0, pieces, HELD):
            held: list[tuple[Any, Any, list[Any]]] = []
            for piece in range(first, min(first + HELD, pieces)):
                number = builder.add(args[5], I64(piece * block))
                at = builder.mul(number, I64(width))
                inside = builder.icmp_unsigned("<", at, limit)
                # What is not there is read at the first place, and not kept.
                safe = builder.select(inside, at, I64(0))
                values = load_vector(builder, builder.gep(source, [safe]), width)
                held.append((inside, at, values))
            for inside, at, values in held:
                with builder.if_then(inside):
                    store(builder, builder.gep(to, [at]), values)
        return context.get_dummy_value()

    u64, literals = types.uint64, (length, threads, stride)
    return types.void(staged, u64, pointer, u64, u64, u64, *literals), generate


class Tile:
    """The products of one piece of each row: `down` and `beside` are where the rows of both sides begin."""

    def __init__(self, builder: Any, down: list[Any], beside: list[Any], width: int) -> None:
        self.builder, self.down, self.beside, self.width = builder, down, beside, width

    def _read(self, first: Any, at: Any, present: Any) -> list[Any]:
        values = load_vector(self.builder, self.builder.gep(first, [at]), self.width)
        if present is None:
            return values
        return [self.builder.select(present, v, ir.Constant(v.type, 0.0)) for v in values]

    def added(self, sums: list[Any], number: Any, present: Any = None) -> list[Any]:
        """`sums` and the products of piece `number`, or none where it is not `present`."""
        at = self.builder.mul(number, I64(self.width))
        ws = [self._read(first, at, present) for first in self.beside]
        found: list[Any] = []
        for first in self.down:
            x = self._read(first, at, present)
            found += [self._dot(x, w, sums[len(found) + j]) for j, w in enumerate(ws)]
        return found

    def _dot(self, x: list[Any], w: list[Any], total: Any) -> Any:
        for a, b in zip(x, w, strict=True):
            total = self.builder.fma(a, b, total)
        return total

    def loop(self, sums: list[Any], lane: Any, group: int, turns: int) -> list[Any]:
        """`sums` and the products of a lane's first pieces; a loop, so that its code stays in the cache."""
        builder, before = self.builder, self.builder.block
        loop, after = builder.append_basic_block("pieces"), builder.append_basic_block("summed")
        builder.branch(loop)
        builder.position_at_end(loop)
        phis = [builder.phi(I64), *(builder.phi(v.type) for v in sums)]
        number = builder.add(lane, builder.mul(phis[0], I64(group)))
        following = builder.add(phis[0], I64(1))
        nexts = [following, *self.added(phis[1:], number)]
        for phi, start, later in zip(phis, [I64(0), *sums], nexts, strict=True):
            phi.add_incoming(start, before)
            phi.add_incoming(later, loop)
        builder.cbranch(builder.icmp_unsigned("<", following, I64(turns)), loop, after)
        builder.position_at_end(after)
        return nexts[1:]


@intrinsic
def rows_dots(
    typing_context: Any, sums: Any, staged: Any, rows: Any, pointer: Any, starts: Any, lane: Any,
    length: Any, lanes: Any, stride: Any, shared: Any,
) -> Any:  # fmt: skip
    """sums[i, j] + this lane's part of the product of the vectors at staged + rows[i], pointer + starts[j].

    `rows` and `starts` are tuples of uint64; `staged` is in shared memory, and so is what `pointer` is to
    where `shared` (literal) is 1. `length`, `lanes` and `stride` (literal) are those of `lane_dots`.
    """
    given = literals_of(length, lanes, stride, shared)
    if given is None:
        return None
    count, group, wide, in_shared = given
    width, pieces = pieces_of(count, group, wide)
    whole = count // width // group

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        left, right = to_shared(builder, args[1]), args[3]
        if in_shared:
            right = to_shared(builder, right)
        down, beside = (
            [builder.gep(base, [builder.extract_value(given, i)]) for i in range(kind.count)]
            for base, given, kind in ((left, args[2], rows), (right, args[4], starts))
        )
        tile = Tile(builder, down, beside, width)
        values = [builder.extract_value(args[0], i) for i in range(sums.count)]
        if whole:
            values = tile.loop(values, args[5], group, whole)
        if whole < pieces:
            number = builder.add(args[5], I64(whole * group))
            present = builder.icmp_unsigned("<", number, I64(count // width))
            values = tile.added(values, builder.select(present, number, I64(0)), present)
        return context.make_tuple(builder, signature.return_type, values)

    literals = (length, lanes, stride, shared)
    return sums(sums, staged, rows, pointer, starts, types.uint64, *literals), generate


@intrinsic
def rows_load(
    typing_context: Any, pointer: Any, starts: Any, lane: Any, length: Any, lanes: Any, stride: Any
) -> Any:
    """What `lane` holds of each row pointer[starts[i] : starts[i] + length], row behind row.

    `starts` is a tuple of uint64; `length`, `lanes` and `stride` (literal) are those of `lane_load`.
    """
    given = literals_of(length, lanes, stride)
    if given is None:
        return None
    count, group, wide = given
    width, pieces = pieces_of(count, group, wide)
    result = types.UniTuple(pointer.dtype, starts.count * pieces * width)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        held: list[Any] = []
        for i in range(starts.count):
            first = builder.gep(args[0], [builder.extract_value(args[1], i)])
            held += held_pieces(builder, first, args[2], count, group, wide)
        return context.make_tuple(builder, result, held)

    return result(pointer, starts, types.uint64, length, lanes, stride), generate


def held_products(
    builder: Any,
    sums: list[Any],
    held: list[Any],
    beside: list[Any],
    lane: Any,
    given: Sequence[int],
) -> list[Any]:
    """`sums`, row by row, and the products of what a lane holds of each row with its pieces of the vectors at
    `beside`; `given` is the length of these, the lanes and the stride."""
    length, lanes, stride = given
    width, pieces = pieces_of(length, lanes, stride)
    found = list(sums)
    for piece in range(pieces):
        number, present = builder.add(lane, I64(piece * lanes)), None
        if (piece + 1) * lanes > length // width:
            present = builder.icmp_unsigned("<", number, I64(length // width))
            number = builder.select(present, number, I64(0))
        at = builder.mul(number, I64(width))
        for j, first in enumerate(beside):
            w = load_vector(builder, builder.gep(first, [at]), width)
            if present is not None:
                # A lane with nothing left holds zeros there, which make no number of what is infinite.
                w = [builder.select(present, v, ir.Constant(v.type, 0.0)) for v in w]
            for n in range(j, len(found), len(beside)):
                begin = (n // len(beside) * pieces + piece) * width
                for a, b in zip(held[begin : begin + width], w, strict=True):
                    found[n] = builder.fma(a, b, found[n])
    return found


@intrinsic
def held_rows_dots(
    typing_context: Any, sums: Any, held: Any, pointer: Any, starts: Any, lane: Any,
    length: Any, lanes: Any, stride: Any, shared: Any,
) -> Any:  # fmt: skip
    """sums[i, j] + this lane's part of the product of row i of `held` and the vector at pointer + starts[j].

    `held` is what `rows_load` gave; `starts` and the literals are those of `rows_dots`. No loop: what is read
    of the vectors does not wait for the rows, which may still be on their way.
    """
    given = literals_of(length, lanes, stride, shared)
    if given is None:
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        right = to_shared(builder, args[2]) if given[3] else args[2]
        beside = [
            builder.gep(right, [builder.extract_value(args[3], j)]) for j in range(starts.count)
        ]
        values = [builder.extract_value(args[0], i) for i in range(sums.count)]
        rows = [builder.extract_value(args[1], i) for i in range(held.count)]
        values = held_products(builder, values, rows, beside, args[4], given[:3])
        return context.make_tuple(builder, signature.return_type, values)

    literals = (length, lanes, stride, shared)
    return sums(sums, held, pointer, starts, types.uint64, *literals), generate


@intrinsic
def dealt_sums(typing_context: Any, sums: Any, lane: Any, lanes: Any, height: Any) -> Any:
    """The row of a tile that this lane gets, summed over its group of `lanes` (literal).

    `sums` is a tile of `height` (literal, a power of two, at most `lanes`) rows; lane n of a group gets row
    n // (lanes / height). All lanes of the warp must call it.
    """
    given = literals_of(lanes, height)
    if given is None:
        return None
    group, rows = given
    result = types.UniTuple(sums.dtype, sums.count // rows)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = [builder.extract_value(args[0], i) for i in range(sums.count)]
        distance = group // 2
        while distance and len(values) > result.count:
            half = len(values) // 2
            upper = builder.icmp_unsigned("!=", builder.and_(args[1], I64(distance)), I64(0))
            # Each lane of a pair keeps one half of the rows, and gives the other away.
            kept = [builder.select(upper, values[half + i], values[i]) for i in range(half)]
            given_away = [builder.select(upper, values[i], values[half + i]) for i in range(half)]
            values = [
                builder.fadd(v, shuffled(builder, other, distance))
                for v, other in zip(kept, given_away, strict=True)
            ]
            distance //= 2
        while distance:
            values = [builder.fadd(v, shuffled(builder, v, distance)) for v in values]
            distance //= 2
        return context.make_tuple(builder, result, values)

    return result(sums, types.uint64, lanes, height), generate
