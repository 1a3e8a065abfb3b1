"""Numba intrinsics that reduce a row in memory to one number, in vector registers and in any order."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_BYTES = ir.IntType(8).as_pointer()
LANES = 16
UNROLLED = 4

Combine = Callable[[Any, Any, Any], Any]
"""Prints how two values of a kind, scalars or vectors, become one."""
Term = Callable[[Any, Any], Any]
"""Prints what of an element, or of a vector of them, is reduced."""


def _sum(builder: Any, total: Any, value: Any) -> Any:
    return builder.fadd(total, value)


def _extreme(sign: str) -> Combine:
    """The larger or the smaller of two; NaN where one of them is."""

    def combined(builder: Any, best: Any, value: Any) -> Any:
        better = builder.fcmp_ordered(sign, value, best)
        unknown = builder.fcmp_unordered("uno", value, value)
        return builder.select(builder.or_(better, unknown), value, best)

    return combined


def _larger(builder: Any, best: Any, value: Any) -> Any:
    """The larger of two numbers; `best` where the value is NaN."""
    return builder.select(builder.fcmp_ordered(">", value, best), value, best)


def _itself(builder: Any, value: Any) -> Any:
    return value


def _square(builder: Any, value: Any) -> Any:
    return builder.fmul(value, value)


class _Row:
    """Prints the reduction of `count` elements from `pointer` on, or of what `term` makes of them, which is
    one at least. `ahead`: what lies `count` elements behind each is fetched meanwhile, if it is memory."""

    def __init__(
        self,
        builder: Any,
        combine: Combine,
        term: Term,
        pointer: Any,
        count: Any,
        ahead: bool = False,
    ) -> None:
        self.builder, self.combine, self.term = builder, combine, term
        self.pointer, self.count, self.ahead = pointer, count, ahead
        self.vector = ir.VectorType(pointer.type.pointee, LANES)

    def result(self, start: float) -> Any:
        """The combination of all; `start` changes nothing that it is combined with."""
        block = LANES * UNROLLED
        whole = self.builder.and_(self.count, _I64(-block))
        zero = ir.Constant(self.vector, [start] * LANES)
        totals = self._loop(_I64(0), whole, block, [zero] * UNROLLED, self._vectors)
        total = totals[0]
        for other in totals[1:]:
            total = self.combine(self.builder, total, other)
        lanes = LANES
        while lanes > 1:
            lanes //= 2
            total = self.combine(self.builder, *(self._half(total, n) for n in (0, lanes)))
        first = self.builder.extract_element(total, _I32(0))
        return self._loop(whole, self.count, 1, [first], self._scalar)[0]

    def _half(self, total: Any, first: int) -> Any:
        """Half of a vector's lanes, from `first` on."""
        lanes = total.type.count // 2
        chosen = ir.Constant(ir.VectorType(_I32, lanes), [first + n for n in range(lanes)])
        return self.builder.shuffle_vector(total, total, chosen)

    def _vectors(self, at: Any, totals: list[Any]) -> list[Any]:
        first = self.builder.gep(self.pointer, [at])
        made: list[Any] = []
        for number, total in enumerate(totals):
            place = self.builder.gep(first, [_I64(LANES * number)])
            if self.ahead:
                self._fetch(self.builder.gep(place, [self.count]))
            pointer = self.builder.bitcast(place, self.vector.as_pointer())
            value = self.term(self.builder, self.builder.load(pointer, align=4))
            made.append(self.combine(self.builder, total, value))
        return made

    def _fetch(self, place: Any) -> None:
        """Ask for the cache lines of a vector; of an address that is no memory nothing comes."""
        arguments = [_BYTES, _I32, _I32, _I32]
        prefetch = cgutils.get_or_insert_function(
            self.builder.module, ir.FunctionType(ir.VoidType(), arguments), "llvm.prefetch.p0"
        )
        wide = isinstance(self.vector.element, ir.DoubleType)
        for line in range(2 if wide else 1):
            at = self.builder.gep(place, [_I64(LANES // 2 * line)])
            # To be read, in all caches, as data.
            flags = (_I32(0), _I32(3), _I32(1))
            self.builder.call(prefetch, [self.builder.bitcast(at, _BYTES), *flags])

    def _scalar(self, at: Any, totals: list[Any]) -> list[Any]:
        value = self.term(self.builder, self.builder.load(self.builder.gep(self.pointer, [at])))
        return [self.combine(self.builder, totals[0], value)]

    def _loop(
        self,
        begin: Any,
        end: Any,
        step: int,
        totals: list[Any],
        body: Callable[[Any, list[Any]], list[Any]],
    ) -> list[Any]:
        """`body` from `begin` to `end`, which may be none at all; the builder behind the loop."""
        builder, before = self.builder, self.builder.block
        head, inside, done = (
            builder.append_basic_block(f"row.{n}") for n in ("head", "body", "done")
        )
        builder.branch(head)
        builder.position_at_end(head)
        at = builder.phi(_I64)
        phis = [builder.phi(total.type) for total in totals]
        builder.cbranch(builder.icmp_signed("<", at, end), inside, done)
        builder.position_at_end(inside)
        made = body(at, phis)
        following = builder.add(at, _I64(step))
        builder.branch(head)
        for phi, start, value in zip(
            [at, *phis], [begin, *totals], [following, *made], strict=True
        ):
            phi.add_incoming(start, before)
            phi.add_incoming(value, inside)
        builder.position_at_end(done)
        return phis


@intrinsic
def row_from(typingctx: Any, pointer: Any, first: Any) -> Any:
    """The pointer to an element of what a pointer points to."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.gep(arguments[0], [arguments[1]])

    return pointer(pointer, types.int64), codegen


def _reduction(
    combine: Combine, start: float, says: str, term: Term = _itself, ahead: bool = False
) -> Any:
    @intrinsic
    def reduced(typingctx: Any, row: Any, count: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return _Row(builder, combine, term, *arguments, ahead).result(start)

        return row.dtype(row, types.int64), codegen

    reduced.__doc__ = says
    return reduced


row_sum = _reduction(_sum, -0.0, "The sum of `count` floats from a pointer on.")
row_squares = _reduction(
    _sum, -0.0, "The sum of the squares of `count` floats from a pointer on.", _square
)
row_maximum = _reduction(
    _extreme(">"), float("-inf"), "The largest of `count` floats; NaN where one is."
)
row_largest = _reduction(
    _larger, float("-inf"), "The largest of those of `count` floats that are no NaN."
)
row_largest_ahead = _reduction(
    _larger,
    float("-inf"),
    "As `row_largest`; the row behind is fetched meanwhile: processors look ahead within a page at most.",
    ahead=True,
)
row_minimum = _reduction(
    _extreme("<"), float("inf"), "The smallest of `count` floats; NaN where one is."
)
