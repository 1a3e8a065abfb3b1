"""Numba intrinsics of products on a CPU: tiles of sums and dot products in vector registers.

LLVM's own vectoriser unrolls short loops of known length before it looks at them, and leaves scalars;
here the vectors are spelt out. 16 lanes become one register or two, as the processor has them.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from irkit.runtime.intrinsics.half_conversions import HALF, I16, widened

_I64 = ir.IntType(64)
LANES = 16


def in_register(builder: Any, value: Any) -> Any:
    """What was loaded, of 16-bit floats in float32; scalar or vector."""
    element = value.type.element if isinstance(value.type, ir.VectorType) else value.type
    return widened(builder, value) if element in (HALF, I16) else value


@intrinsic(prefer_literal=True)
def multiply_tile(
    typingctx: Any, most: Any, vectors: Any, rows: Any, a: Any, at_a: Any, k: Any, b: Any,
    at_b: Any, c: Any, at_c: Any, width: Any,
) -> Any:  # fmt: skip
    """C[i, j] = sum over k of A[i, k] * B[k, j], for `rows` rows i and `vectors` times 16 columns j.

    `most`, a literal power of two, is the largest number of rows; `vectors` is a literal too. A's rows are
    k elements long; those of B and C are `width` apart. Elements are counted from pointers `a`, `b`, `c`.
    The sums stay in registers; fewer rows than `most` go by powers of two.
    """
    if not isinstance(most, types.IntegerLiteral) or not isinstance(vectors, types.IntegerLiteral):
        return None
    largest, across = most.literal_value, vectors.literal_value

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, _, rows, a, at_a, k, b, at_b, c, at_c, width = arguments
        _by_powers(
            builder, largest, across, rows, k, a, at_a, k, b, at_b, width, c, at_c, width
        )  # fmt: skip
        return context.get_dummy_value()

    integer = types.int64
    return types.void(most, vectors, integer, a, integer, integer, b, integer, c, integer,
                      integer), codegen  # fmt: skip


@intrinsic(prefer_literal=True)
def multiply_strided(
    typingctx: Any, most: Any, vectors: Any, rows: Any, k: Any, a: Any, at_a: Any, below_a: Any,
    b: Any, at_b: Any, below_b: Any, c: Any, at_c: Any, below_c: Any,
) -> Any:  # fmt: skip
    """`multiply_tile` of matrices whose rows are each `below_a`, `below_b` and `below_c` elements apart."""
    if not isinstance(most, types.IntegerLiteral) or not isinstance(vectors, types.IntegerLiteral):
        return None
    largest, across = most.literal_value, vectors.literal_value

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, _, *given = arguments
        _by_powers(builder, largest, across, *given)
        return context.get_dummy_value()

    integer = types.int64
    return types.void(most, vectors, integer, integer, a, integer, integer, b, integer, integer, c,
                      integer, integer), codegen  # fmt: skip


def _by_powers(builder: Any, largest: int, across: int, rows: Any, *operands: Any) -> None:
    """`rows` rows of a tile, so many at once as powers of two of them there are."""
    size = largest
    while size:
        with builder.if_then(builder.icmp_unsigned("!=", builder.and_(rows, _I64(size)), _I64(0))):
            _multiply(builder, size, across, builder.and_(rows, _I64(-2 * size)), *operands)
        size //= 2


def _multiply(
    builder: Any, count: int, across: int, first: Any, k: Any, a: Any, at_a: Any, below_a: Any, b: Any,
    at_b: Any, below_b: Any, c: Any, at_c: Any, below_c: Any,
) -> None:  # fmt: skip
    """Rows `first` to `first + count` of a tile."""
    tile = Tile(builder, c.type.pointee, across)
    numbers = [builder.add(first, _I64(i)) for i in range(count)]
    rows_of_a = [builder.gep(a, [builder.add(at_a, builder.mul(below_a, n))]) for n in numbers]
    sums = tile.sums(rows_of_a, k, builder.gep(b, [at_b]), below_b)
    tile.store(sums, builder.gep(c, [at_c]), below_c, numbers)


class Tile:
    """Prints loops that add to a tile: `across` vectors of 16 sums per row of A."""

    lanes = LANES

    def __init__(self, builder: Any, element: Any, across: int) -> None:
        self.builder, self.across = builder, across
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

    def sums(self, rows: list[Any], k: Any, b: Any, width: Any) -> list[list[Any]]:
        """Runs over k at least once; returns the sums of each row, the builder behind the loop."""
        builder = self.builder
        before = builder.block
        loop, done = (builder.append_basic_block(n) for n in ("tile.loop", "tile.done"))
        builder.branch(loop)
        builder.position_at_end(loop)
        step = builder.phi(_I64)
        step.add_incoming(_I64(0), before)
        totals = [[builder.phi(self.vector) for _ in range(self.across)] for _ in rows]
        column = builder.gep(b, [builder.mul(step, width)])
        values = [builder.load(self.vector_at(column, n), align=4) for n in range(self.across)]
        following = builder.add(step, _I64(1))
        step.add_incoming(following, loop)
        zero = ir.Constant(self.vector, [0.0] * self.lanes)
        added: list[list[Any]] = []
        for row, phis in zip(rows, totals, strict=True):
            scalar = self.spread(in_register(builder, builder.load(builder.gep(row, [step]))))
            added.append(
                [builder.call(self.fma, [scalar, v, t]) for v, t in zip(values, phis, strict=True)]
            )
            for phi, total in zip(phis, added[-1], strict=True):
                phi.add_incoming(zero, before)
                phi.add_incoming(total, loop)
        builder.cbranch(builder.icmp_signed("<", following, k), loop, done)
        builder.position_at_end(done)
        return added

    def store(self, sums: list[list[Any]], c: Any, width: Any, numbers: list[Any]) -> None:
        """Write each row's sums to `c`, row `numbers[i]` being so many times `width` elements behind it."""
        for number, totals in zip(numbers, sums, strict=True):
            row = self.builder.gep(c, [self.builder.mul(width, number)])
            for position, total in enumerate(totals):
                self.builder.store(total, self.vector_at(row, position), align=4)


@intrinsic(prefer_literal=True)
def dot_product(typingctx: Any, k: Any, a: Any, at_a: Any, b: Any, at_b: Any) -> Any:
    """sum over i < k of a[at_a + i] * b[at_b + i], k being a literal."""
    if not isinstance(k, types.IntegerLiteral):
        return None
    length: int = k.literal_value

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, a, at_a, b, at_b = arguments
        return _Dot(builder, builder.gep(a, [at_a]), builder.gep(b, [at_b])).sum(length)

    return a.dtype(k, a, types.int64, b, types.int64), codegen


class _Dot:
    """Prints a dot product: blocks of four vectors in a loop, then what is left."""

    block = 4 * LANES

    def __init__(self, builder: Any, a: Any, b: Any) -> None:
        self.builder, self.a, self.b = builder, a, b
        self.element = ir.FloatType() if a.type.pointee in (HALF, I16) else a.type.pointee
        self.letter = "f32" if isinstance(self.element, ir.FloatType) else "f64"

    def sum(self, length: int) -> Any:
        """The sum over `length` elements, the builder behind it."""
        totals = [self.zero(LANES)] * 4
        done = length // self.block * self.block
        if done > self.block:
            totals = self.loop(totals, done)
        else:
            done = 0
        while length - done >= LANES:
            number = done // LANES % 4
            totals[number] = self.step(totals[number], LANES, _I64(done))
            done += LANES
        result = self.added(totals, min(max(length // LANES, 1), 4))
        for lanes in (8, 4):
            if length - done >= lanes:
                part = self.step(self.zero(lanes), lanes, _I64(done))
                result = self.builder.fadd(result, self.across(part, lanes))
                done += lanes
        for i in range(done, length):
            x, y = (
                in_register(self.builder, self.builder.load(self.builder.gep(p, [_I64(i)])))
                for p in (self.a, self.b)
            )
            result = self.builder.fadd(result, self.builder.fmul(x, y))
        return result

    def zero(self, lanes: int) -> Any:
        return ir.Constant(ir.VectorType(self.element, lanes), [0.0] * lanes)

    def step(self, total: Any, lanes: int, at: Any) -> Any:
        """`total` plus the products of `lanes` elements from `at` on."""
        vector = ir.VectorType(self.element, lanes)
        kind = ir.FunctionType(vector, [vector] * 3)
        name = f"llvm.fma.v{lanes}{self.letter}"
        fma = cgutils.get_or_insert_function(self.builder.module, kind, name)
        loaded = [self.load(p, lanes, at) for p in (self.a, self.b)]
        return self.builder.call(fma, [*loaded, total])

    def load(self, pointer: Any, lanes: int, at: Any) -> Any:
        """`lanes` elements from `at` on, in the type of the sum."""
        element = pointer.type.pointee
        place = self.builder.bitcast(
            self.builder.gep(pointer, [at]), ir.VectorType(element, lanes).as_pointer()
        )
        align = 2 if element in (HALF, I16) else 4 if self.letter == "f32" else 8
        return in_register(self.builder, self.builder.load(place, align=align))

    def loop(self, totals: list[Any], length: int) -> list[Any]:
        """Blocks of four vectors, `length` elements in all."""
        builder, before = self.builder, self.builder.block
        body, behind = (builder.append_basic_block(n) for n in ("dot.loop", "dot.done"))
        builder.branch(body)
        builder.position_at_end(body)
        at = builder.phi(_I64)
        at.add_incoming(_I64(0), before)
        sums = [builder.phi(t.type) for t in totals]
        added: list[Any] = []
        for number, (phi, start) in enumerate(zip(sums, totals, strict=True)):
            phi.add_incoming(start, before)
            added.append(self.step(phi, LANES, builder.add(at, _I64(number * LANES))))
            phi.add_incoming(added[-1], body)
        following = builder.add(at, _I64(self.block))
        at.add_incoming(following, body)
        builder.cbranch(builder.icmp_signed("<", following, _I64(length)), body, behind)
        builder.position_at_end(behind)
        return added

    def added(self, totals: list[Any], used: int) -> Any:
        """The first `used` vectors of sums, all lanes."""
        total = totals[0]
        for other in totals[1:used]:
            total = self.builder.fadd(total, other)
        return self.across(total, LANES)

    def across(self, vector: Any, lanes: int) -> Any:
        """The sum of a vector's lanes, in any order."""
        kind = ir.FunctionType(self.element, [self.element, vector.type])
        name = f"llvm.vector.reduce.fadd.v{lanes}{self.letter}"
        reduce = cgutils.get_or_insert_function(self.builder.module, kind, name)
        start = ir.Constant(self.element, -0.0)
        return self.builder.call(reduce, [start, vector], fastmath=("reassoc",))
