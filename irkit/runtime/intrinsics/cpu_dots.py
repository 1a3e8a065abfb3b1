"""Numba intrinsics of a matrix times a vector, or a few, on a CPU: rows of terms, eight at once in vector
registers.

Several rows run at once, so that enough sums are under way to hide how long a multiply-add takes, and so
that what a vector's lanes sum to is found for all of them together. Of a few vectors, four rows run at once,
each of which is read for all.
"""

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
from numba.core.cgutils import for_range, for_range_slice
from numba.extending import intrinsic

from irkit.runtime.intrinsics.cpu_products import LANES, in_register
from irkit.runtime.intrinsics.half_conversions import HALF, I16

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_AT_ONCE, _FEWEST = 8, 4
"""Rows that run together; half of them, then one after another, where fewer are left."""


@dataclass(frozen=True)
class _Term:
    """Vectors of `length` elements from pointers `xs` on, and a matrix of rows as long, from `w` on."""

    length: int
    xs: tuple[Any, ...]
    w: Any


@intrinsic(prefer_literal=True)
def dot_rows(
    typingctx: Any, rows: Any, k: Any, x: Any, at_x: Any, w: Any, at_w: Any, y: Any, at_y: Any
) -> Any:
    """y[at_y + i] = sum over j < k of x[at_x + j] * w[at_w + i * k + j], for i < rows; k is a literal."""
    if not isinstance(k, types.IntegerLiteral):
        return None
    length: int = k.literal_value

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows, _, x, at_x, w, at_w, y, at_y = arguments
        term = _Term(length, (builder.gep(x, [at_x]),), builder.gep(w, [at_w]))
        _Rows(builder, [term], (builder.gep(y, [at_y]),)).run(rows)
        return context.get_dummy_value()

    integer = types.int64
    return types.void(integer, k, x, integer, w, integer, y, integer), codegen


@intrinsic(prefer_literal=True)
def dot_rows_of_each(
    typingctx: Any, count: Any, rows: Any, k: Any, x: Any, at_x: Any, w: Any, at_w: Any, y: Any,
    at_y: Any, step: Any,
) -> Any:  # fmt: skip
    """`dot_rows` of x[at_x + n * k] on into y[at_y + n * step] on, for n < count, a literal, 3 at most."""
    if not isinstance(k, types.IntegerLiteral) or not isinstance(count, types.IntegerLiteral):
        return None
    length, several = k.literal_value, count.literal_value

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, rows, _, x, at_x, w, at_w, y, at_y, step = arguments
        xs = _each(builder, several, x, at_x, _I64(length))
        term = _Term(length, xs, builder.gep(w, [at_w]))
        _Rows(builder, [term], _each(builder, several, y, at_y, step)).run(rows)
        return context.get_dummy_value()

    integer = types.int64
    return types.void(count, integer, k, x, integer, w, integer, y, integer, integer), codegen


@intrinsic(prefer_literal=True)
def dot_rows_of_two(
    typingctx: Any, rows: Any, k0: Any, x0: Any, at_x0: Any, w0: Any, at_w0: Any, k1: Any, x1: Any,
    at_x1: Any, w1: Any, at_w1: Any, y: Any, at_y: Any,
) -> Any:  # fmt: skip
    """What two `dot_rows` of the same number of rows add up to."""
    if not isinstance(k0, types.IntegerLiteral) or not isinstance(k1, types.IntegerLiteral):
        return None
    lengths = k0.literal_value, k1.literal_value

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows, _, x0, at_x0, w0, at_w0, _, x1, at_x1, w1, at_w1, y, at_y = arguments
        terms = [
            _Term(lengths[0], (builder.gep(x0, [at_x0]),), builder.gep(w0, [at_w0])),
            _Term(lengths[1], (builder.gep(x1, [at_x1]),), builder.gep(w1, [at_w1])),
        ]
        _Rows(builder, terms, (builder.gep(y, [at_y]),)).run(rows)
        return context.get_dummy_value()

    integer = types.int64
    return types.void(integer, k0, x0, integer, w0, integer, k1, x1, integer, w1, integer, y,
                      integer), codegen  # fmt: skip


@intrinsic(prefer_literal=True)
def dot_rows_of_two_each(
    typingctx: Any, count: Any, rows: Any, k0: Any, x0: Any, at_x0: Any, w0: Any, at_w0: Any, k1: Any,
    x1: Any, at_x1: Any, w1: Any, at_w1: Any, y: Any, at_y: Any, step: Any,
) -> Any:  # fmt: skip
    """What two `dot_rows_of_each` of the same number of rows and vectors add up to."""
    if not all(isinstance(v, types.IntegerLiteral) for v in (count, k0, k1)):
        return None
    several, first, second = count.literal_value, k0.literal_value, k1.literal_value

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, rows, _, x0, at_x0, w0, at_w0, _, x1, at_x1, w1, at_w1, y, at_y, step = arguments
        of_first = _each(builder, several, x0, at_x0, _I64(first))
        of_second = _each(builder, several, x1, at_x1, _I64(second))
        terms = [
            _Term(first, of_first, builder.gep(w0, [at_w0])),
            _Term(second, of_second, builder.gep(w1, [at_w1])),
        ]
        _Rows(builder, terms, _each(builder, several, y, at_y, step)).run(rows)
        return context.get_dummy_value()

    integer = types.int64
    return types.void(count, integer, k0, x0, integer, w0, integer, k1, x1, integer, w1, integer, y,
                      integer, integer), codegen  # fmt: skip


def _each(builder: Any, count: int, pointer: Any, at: Any, step: Any) -> tuple[Any, ...]:
    """Pointers to an element, and to those one step on, two, ..."""
    places = [builder.add(at, builder.mul(_I64(n), step)) for n in range(count)]
    return tuple(builder.gep(pointer, [place]) for place in places)


class _Rows:
    """Prints the loops over rows; `ys` are pointers to the first sum of each vector."""

    def __init__(self, builder: Any, terms: list[_Term], ys: tuple[Any, ...]) -> None:
        self.builder, self.terms, self.ys = builder, terms, ys
        element = terms[0].w.type.pointee
        self.element = ir.FloatType() if element in (HALF, I16) else element
        self.align = 4 if isinstance(self.element, ir.FloatType) else 8

    def run(self, rows: Any) -> None:
        """All rows: eight at once of one vector, of several four; then four, and one by one."""
        builder = self.builder
        together = _AT_ONCE if len(self.ys) == 1 else _FEWEST
        first = builder.and_(rows, _I64(-together))
        with for_range_slice(builder, _I64(0), first, _I64(together), _I64) as (row, _):
            self._store(self._together(row, together), row)
        if len(self.ys) == 1:
            some = builder.and_(rows, _I64(_FEWEST))
            with builder.if_then(builder.icmp_unsigned("!=", some, _I64(0))):
                self._store(self._together(first, _FEWEST), first)
            first = builder.add(first, some)
        with for_range(builder, builder.sub(rows, first)) as loop:
            row = builder.add(first, loop.index)
            for number, y in enumerate(self.ys):
                builder.store(self._one(row, number), builder.gep(y, [row]))

    def _one(self, row: Any, number: int) -> Any:
        """The sum of one row and the vector of this number."""
        total = ir.Constant(self.element, -0.0)
        for term in self.terms:
            dot = _Dot(self.builder, term.xs[number], self._row(term, row))
            total = self.builder.fadd(total, dot.sum(term.length))
        return total

    def _row(self, term: _Term, row: Any) -> Any:
        return self.builder.gep(term.w, [self.builder.mul(row, _I64(term.length))])

    def _store(self, sums: list[Any], row: Any) -> None:
        """The sums of each vector, where its own lie."""
        for part, y in zip(sums, self.ys, strict=True):
            place = self.builder.gep(y, [row])
            pointer = self.builder.bitcast(place, part.type.as_pointer())
            self.builder.store(part, pointer, align=self.align)

    def _together(self, first: Any, count: int) -> list[Any]:
        """Of each vector, the sums of `count` rows from row `first` on."""
        builder = self.builder
        zero = ir.Constant(ir.VectorType(self.element, LANES), [0.0] * LANES)
        totals = [zero] * (count * len(self.ys))
        for term in self.terms:
            rows = [self._row(term, builder.add(first, _I64(n))) for n in range(count)]
            dots = [_Dot(builder, x, row) for x in term.xs for row in rows]
            totals = self._vectors(dots, totals, term.length // LANES)
            done = term.length // LANES * LANES
            for lanes in (8, 4, 2, 1):
                if term.length - done >= lanes:
                    pairs = zip(dots, totals, strict=True)
                    totals = [dot.and_part(total, lanes, _I64(done)) for dot, total in pairs]
                    done += lanes
        return [self._across(totals[n : n + count]) for n in range(0, len(totals), count)]

    def _vectors(self, dots: list[_Dot], totals: list[Any], count: int) -> list[Any]:
        """`count` whole vectors of each row's terms."""
        if count == 0:
            return totals
        builder, before = self.builder, self.builder.block
        body, behind = (builder.append_basic_block(n) for n in ("rows.loop", "rows.done"))
        builder.branch(body)
        builder.position_at_end(body)
        at = builder.phi(_I64)
        at.add_incoming(_I64(0), before)
        phis = [builder.phi(total.type) for total in totals]
        made = [dot.step(phi, LANES, at) for dot, phi in zip(dots, phis, strict=True)]
        for phi, start, value in zip(phis, totals, made, strict=True):
            phi.add_incoming(start, before)
            phi.add_incoming(value, body)
        following = builder.add(at, _I64(LANES))
        at.add_incoming(following, body)
        builder.cbranch(builder.icmp_signed("<", following, _I64(count * LANES)), body, behind)
        builder.position_at_end(behind)
        return made

    def _across(self, totals: list[Any]) -> Any:
        """A vector whose lane i is the sum of the lanes of `totals[i]`, of which there are four or eight.

        Twice, neighbours in two vectors are added, so that each four lanes have a sum of each of four
        vectors; then the fours are.
        """
        for _ in range(2):
            pairs = zip(totals[::2], totals[1::2], strict=True)
            totals = [self._neighbours(a, b) for a, b in pairs]
        total = totals[0]
        if len(totals) == 2:
            left = [n for n in range(2 * LANES) if n % 8 < 4]
            total = self._sum(*totals, left, [n + 4 for n in left])
        while total.type.count > len(totals) * 4:
            total = self._halves(total, len(totals))
        return total

    def _neighbours(self, a: Any, b: Any) -> Any:
        """Of each four lanes: a's two sums of neighbours, then b's."""
        even = [at for n in range(0, LANES, 4) for at in (n, n + 2, LANES + n, LANES + n + 2)]
        return self._sum(a, b, even, [at + 1 for at in even])

    def _halves(self, total: Any, parts: int) -> Any:
        """The upper half of each of `parts` equal parts added to the lower."""
        half = total.type.count // parts // 2
        lower = [2 * half * part + n for part in range(parts) for n in range(half)]
        return self._sum(total, total, lower, [at + half for at in lower])

    def _sum(self, a: Any, b: Any, left: list[int], right: list[int]) -> Any:
        """Lanes `left` of a and b, b's after a's, plus lanes `right`."""
        mask = ir.VectorType(_I32, len(left))
        picked = [self.builder.shuffle_vector(a, b, ir.Constant(mask, at)) for at in (left, right)]
        return self.builder.fadd(*picked)


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

    def and_part(self, total: Any, lanes: int, at: Any) -> Any:
        """`total`, of LANES lanes, plus the products of the `lanes` elements from `at` on."""
        part = self.step(self.zero(lanes), lanes, at)
        mask = [*range(lanes), *[lanes] * (LANES - lanes)]
        kind = ir.VectorType(_I32, LANES)
        wide = self.builder.shuffle_vector(part, self.zero(lanes), ir.Constant(kind, mask))
        return self.builder.fadd(total, wide)

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
