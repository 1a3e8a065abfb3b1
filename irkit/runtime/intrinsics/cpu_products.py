"""Numba intrinsics of products on a CPU: tiles of sums in vector registers.

LLVM's own vectoriser unrolls short loops of known length before it looks at them, and leaves scalars;
here the vectors are spelt out. 16 lanes become one register or several, as the processor has them.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from irkit.runtime.intrinsics.half_conversions import HALF, I16, widened

_I32, _I64 = ir.IntType(32), ir.IntType(64)
LANES = 16
LINE, AHEAD = 64, 512
"""Bytes of a line of a cache, and how far ahead of what is read in a row what follows is fetched."""


def in_register(builder: Any, value: Any) -> Any:
    """What was loaded, of 16-bit floats in float32; scalar or vector."""
    element = value.type.element if isinstance(value.type, ir.VectorType) else value.type
    return widened(builder, value) if element in (HALF, I16) else value


@intrinsic(prefer_literal=True)
def multiply_tile(
    typingctx: Any, most: Any, vectors: Any, lanes: Any, rows: Any, a: Any, at_a: Any, k: Any,
    b: Any, at_b: Any, c: Any, at_c: Any, width: Any,
) -> Any:  # fmt: skip
    """C[i, j] = sum over k of A[i, k] * B[k, j], for `rows` rows i and `vectors` times `lanes` columns j.

    `most`, a literal power of two, is the largest number of rows; `vectors` and `lanes` are literals too.
    A's rows are k elements long; those of B and C are `width` apart. Elements are counted from pointers
    `a`, `b`, `c`.
    The sums stay in registers; fewer rows than `most` go by powers of two.
    """
    if not all(isinstance(n, types.IntegerLiteral) for n in (most, vectors, lanes)):
        return None
    largest, across, side = (n.literal_value for n in (most, vectors, lanes))

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, _, _, rows, a, at_a, k, b, at_b, c, at_c, width = arguments
        tile = Tile(builder, c.type.pointee, across, side, ahead=True)
        _by_powers(tile, largest, rows, k, a, at_a, k, b, at_b, width, c, at_c, width)
        return context.get_dummy_value()

    integer = types.int64
    return types.void(most, vectors, lanes, integer, a, integer, integer, b, integer, c, integer,
                      integer), codegen  # fmt: skip


@intrinsic(prefer_literal=True)
def multiply_strided(
    typingctx: Any, most: Any, vectors: Any, rows: Any, k: Any, a: Any, at_a: Any, below_a: Any,
    b: Any, at_b: Any, below_b: Any, c: Any, at_c: Any, below_c: Any,
) -> Any:  # fmt: skip
    """`multiply_tile` of 16 lanes and rows that are `below_a`, `below_b` and `below_c` elements apart."""
    if not isinstance(most, types.IntegerLiteral) or not isinstance(vectors, types.IntegerLiteral):
        return None
    largest, across = most.literal_value, vectors.literal_value

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, _, *given = arguments
        _by_powers(Tile(builder, given[8].type.pointee, across), largest, *given)
        return context.get_dummy_value()

    integer = types.int64
    return types.void(most, vectors, integer, integer, a, integer, integer, b, integer, integer, c,
                      integer, integer), codegen  # fmt: skip


@intrinsic(prefer_literal=True)
def multiply_panels(
    typingctx: Any, most: Any, vectors: Any, lanes: Any, rows: Any, k: Any, a: Any, at_a: Any,
    at_b: Any, at_c: Any, width: Any, anew: Any,
) -> Any:  # fmt: skip
    """C[i, j] += sum over k of A[k, i] * B[k, j], for `rows` rows i and `vectors` times `lanes` columns j.

    The literals are those of `multiply_tile`. Panels of both lie row behind row of k: `most` elements of A,
    all columns of B. C's rows are `width` apart; where `anew` is not 0 they are sums of these terms alone.
    All are counted from pointer `a`.
    """
    if not all(isinstance(n, types.IntegerLiteral) for n in (most, vectors, lanes)):
        return None
    largest, across, side = (n.literal_value for n in (most, vectors, lanes))

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, _, _, rows, k, a, at_a, at_b, at_c, width, anew = arguments
        tile = Tile(builder, a.type.pointee, across, side, below=largest)
        c = builder.gep(a, [at_c])
        fresh = builder.icmp_signed("!=", anew, _I64(0))
        for size, first in powers(builder, largest, rows):
            numbers = [builder.add(first, _I64(i)) for i in range(size)]
            rows_of_a = [builder.gep(a, [builder.add(at_a, n)]) for n in numbers]
            tile.expect(c, width, numbers)
            sums = tile.sums(rows_of_a, k, builder.gep(a, [at_b]), _I64(across * side))
            before = tile.load(fresh, c, width, numbers)
            tile.store(tile.added(sums, before), c, width, numbers)
        return context.get_dummy_value()

    integer = types.int64
    return types.void(most, vectors, lanes, integer, integer, a, integer, integer, integer, integer,
                      integer), codegen  # fmt: skip


@intrinsic(prefer_literal=True)
def add_tile(
    typingctx: Any, most: Any, vectors: Any, lanes: Any, rows: Any, k: Any, a: Any, at_a: Any,
    below_a: Any, b: Any, at_b: Any, below_b: Any, c: Any, at_c: Any, below_c: Any, anew: Any,
) -> Any:  # fmt: skip
    """C[i, j] += sum over k of A[i, k] * B[k, j], for `rows` rows i and `vectors` times `lanes` columns j.

    The literals are those of `multiply_tile`; rows are `below_a`, `below_b` and `below_c` elements apart.
    Where `anew` is not 0, C are sums of these terms alone. B comes from memory, several rows at a time: a
    tile is done before a processor has found by itself what to fetch, so AHEAD of it is fetched here.
    """
    if not all(isinstance(n, types.IntegerLiteral) for n in (most, vectors, lanes)):
        return None
    largest, across, side = (n.literal_value for n in (most, vectors, lanes))

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, _, _, rows, k, a, at_a, below_a, b, at_b, below_b, c, at_c, below_c, anew = arguments
        tile = Tile(builder, c.type.pointee, across, side)
        place = builder.gep(c, [at_c])
        fresh = builder.icmp_signed("!=", anew, _I64(0))
        for size, first in powers(builder, largest, rows):
            numbers = [builder.add(first, _I64(i)) for i in range(size)]
            starts = [builder.add(at_a, builder.mul(below_a, n)) for n in numbers]
            rows_of_a = [builder.gep(a, [start]) for start in starts]
            start = tile.load(fresh, place, below_c, numbers)
            column = builder.gep(b, [at_b])
            sums = tile.sums(rows_of_a, k, column, below_b, start, AHEAD)
            tile.store(sums, place, below_c, numbers)
        return context.get_dummy_value()

    integer = types.int64
    return types.void(most, vectors, lanes, integer, integer, a, integer, integer, b, integer, integer,
                      c, integer, integer, integer), codegen  # fmt: skip


def _by_powers(tile: Tile, largest: int, rows: Any, *operands: Any) -> None:
    """`rows` rows of a tile, so many at once as powers of two of them there are."""
    for size, first in powers(tile.builder, largest, rows):
        _multiply(tile, size, first, *operands)


def powers(builder: Any, largest: int, rows: Any) -> Iterator[tuple[int, Any]]:
    """For each power of two in `rows`, from `largest` on: that, and the first row; the builder stands where
    there are so many."""
    size = largest
    while size:
        with builder.if_then(builder.icmp_unsigned("!=", builder.and_(rows, _I64(size)), _I64(0))):
            yield size, builder.and_(rows, _I64(-2 * size))
        size //= 2


def _multiply(
    tile: Tile, count: int, first: Any, k: Any, a: Any, at_a: Any, below_a: Any, b: Any, at_b: Any,
    below_b: Any, c: Any, at_c: Any, below_c: Any,
) -> None:  # fmt: skip
    """Rows `first` to `first + count` of a tile."""
    builder = tile.builder
    numbers = [builder.add(first, _I64(i)) for i in range(count)]
    rows_of_a = [builder.gep(a, [builder.add(at_a, builder.mul(below_a, n))]) for n in numbers]
    sums = tile.sums(rows_of_a, k, builder.gep(b, [at_b]), below_b)
    tile.store(sums, builder.gep(c, [at_c]), below_c, numbers)


class Tile:
    """Prints loops that add to a tile: `across` vectors of `lanes` sums per row of A.

    `ahead`: A's rows lie one behind another, so what the next tile reads is behind what this one does. It is
    fetched meanwhile: a few rows at a time are no run that a processor would find by itself. `below`: how
    many elements a term of A is from the next. `beside`: as many a vector of B is from that beside it, which
    it follows otherwise. Either is a number of Python's or of the program's.
    """

    def __init__(
        self, builder: Any, element: Any, across: int, lanes: int = LANES, ahead: bool = False,
        below: Any = 1, beside: Any = None,
    ) -> None:  # fmt: skip
        self.builder, self.across, self.lanes, self.ahead = builder, across, lanes, ahead
        self.below = _I64(below) if isinstance(below, int) else below
        self.beside = _I64(lanes) if beside is None else beside
        self.vector = ir.VectorType(element, self.lanes)
        letter = "f32" if isinstance(element, ir.FloatType) else "f64"
        kind = ir.FunctionType(self.vector, [self.vector] * 3)
        name = f"llvm.fma.v{self.lanes}{letter}"
        self.fma = cgutils.get_or_insert_function(builder.module, kind, name)

    def vector_at(self, pointer: Any, number: int) -> Any:
        """A pointer to the vector of this number from `pointer` on."""
        place = self.builder.gep(pointer, [_I64(self.lanes * number)])
        return self.builder.bitcast(place, self.vector.as_pointer())

    def spread(self, scalar: Any) -> Any:
        """A vector of one scalar."""
        undefined = ir.Constant(self.vector, ir.Undefined)
        first = self.builder.insert_element(undefined, scalar, ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(first, undefined, zeros)

    def fetch(self, first: Any, length: Any, rows: int, step: Any) -> None:
        """In step `step` of `length`, fetch that part of the `rows` rows behind those from `first` on."""
        builder = self.builder
        place = builder.mul(builder.add(length, step), _I64(rows))
        self._prefetch(builder.gep(first, [place]))

    def expect(self, c: Any, width: Any, numbers: list[Any]) -> None:
        """Fetch the sums that `load` will read when the loop is done."""
        for number in numbers:
            row = self.builder.gep(c, [self.builder.mul(width, number)])
            for n in range(self.across):
                self._prefetch(self.vector_at(row, n))

    def _prefetch(self, pointer: Any) -> None:
        builder, letter = self.builder, ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [letter, _I32, _I32, _I32])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        # To read, into the first cache, data.
        builder.call(prefetch, [builder.bitcast(pointer, letter), _I32(0), _I32(3), _I32(1)])

    def added(self, sums: list[list[Any]], others: list[list[Any]]) -> list[list[Any]]:
        """Sums of two tiles."""
        pairs = [zip(s, o, strict=True) for s, o in zip(sums, others, strict=True)]
        return [[self.builder.fadd(x, y) for x, y in row] for row in pairs]

    def fetch_row(self, row: Any, distance: int) -> None:
        """Fetch what lies `distance` bytes behind the tile's part of a row, each line of a cache once."""
        nbytes = self.lanes * (4 if isinstance(self.vector.element, ir.FloatType) else 8)
        for n in range(0, self.across, max(1, LINE // nbytes)):
            self._prefetch(self.vector_at(row, n + distance // nbytes))

    def sums(
        self, rows: list[Any], k: Any, b: Any, width: Any, start: list[list[Any]] | None = None,
        distance: int = 0,
    ) -> list[list[Any]]:  # fmt: skip
        """Runs over k at least once; returns the sums of each row, from `start` or zero on, the builder
        behind the loop. What is `distance` bytes further on in each row of B is fetched meanwhile."""
        builder = self.builder
        before = builder.block
        loop, done = (builder.append_basic_block(n) for n in ("tile.loop", "tile.done"))
        builder.branch(loop)
        builder.position_at_end(loop)
        step = builder.phi(_I64)
        step.add_incoming(_I64(0), before)
        totals = [[builder.phi(self.vector) for _ in range(self.across)] for _ in rows]
        if self.ahead:
            self.fetch(rows[0], k, len(rows), step)
        column = builder.gep(b, [builder.mul(step, width)])
        values = self._beside_one_another(column)
        if distance:
            self.fetch_row(column, distance)
        following = builder.add(step, _I64(1))
        step.add_incoming(following, loop)
        zero = ir.Constant(self.vector, [0.0] * self.lanes)
        added: list[list[Any]] = []
        begun = start or [[zero] * self.across for _ in rows]
        term = builder.mul(step, self.below)
        for row, phis, given in zip(rows, totals, begun, strict=True):
            scalar = self.spread(in_register(builder, builder.load(builder.gep(row, [term]))))
            added.append(
                [builder.call(self.fma, [scalar, v, t]) for v, t in zip(values, phis, strict=True)]
            )
            for phi, total, first in zip(phis, added[-1], given, strict=True):
                phi.add_incoming(first, before)
                phi.add_incoming(total, loop)
        builder.cbranch(builder.icmp_signed("<", following, k), loop, done)
        builder.position_at_end(done)
        return added

    def _beside_one_another(self, column: Any) -> list[Any]:
        """The vectors of one row of B."""
        builder = self.builder
        numbers = [builder.mul(self.beside, _I64(n)) for n in range(self.across)]
        places = [self.vector_at(builder.gep(column, [number]), 0) for number in numbers]
        return [builder.load(place, align=4) for place in places]

    def load(self, fresh: Any, c: Any, width: Any, numbers: list[Any]) -> list[list[Any]]:
        """The sums of rows that `store` has written; zeros where `fresh`."""
        builder, zero = self.builder, ir.Constant(self.vector, [0.0] * self.lanes)
        found: list[list[Any]] = []
        for number in numbers:
            row = builder.gep(c, [builder.mul(width, number)])
            places = [self.vector_at(row, n) for n in range(self.across)]
            given = [builder.load(place, align=4) for place in places]
            found.append([builder.select(fresh, zero, value) for value in given])
        return found

    def store(self, sums: list[list[Any]], c: Any, width: Any, numbers: list[Any]) -> None:
        """Write each row's sums to `c`, row `numbers[i]` being so many times `width` elements behind it."""
        for number, totals in zip(numbers, sums, strict=True):
            row = self.builder.gep(c, [self.builder.mul(width, number)])
            for position, total in enumerate(totals):
                self.builder.store(total, self.vector_at(row, position), align=4)
