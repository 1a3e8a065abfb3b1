"""A Numba intrinsic that adds up the few terms of neighbouring windows, of several rows at once."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from irkit.runtime.intrinsics.cpu_products import LANES, in_register

_I32, _I64 = ir.IntType(32), ir.IntType(64)


@dataclass(frozen=True)
class _Sums:
    """Prints the sums of `lanes` neighbouring outputs in each of `rows` rows."""

    builder: Any
    rows: int
    lanes: int
    pitch: int
    places: list[int]
    plane: Any
    weights: list[Any]

    @property
    def vector(self) -> Any:
        return ir.VectorType(self.plane.type.pointee, self.lanes)

    def _at(self, place: Any) -> Any:
        pointer = self.builder.gep(self.plane, [place])
        return self.builder.bitcast(pointer, self.vector.as_pointer())

    def _spread(self, scalar: Any) -> Any:
        undefined = ir.Constant(self.vector, ir.Undefined)
        first = self.builder.insert_element(undefined, scalar, _I32(0))
        zeros = ir.Constant(ir.VectorType(_I32, self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(first, undefined, zeros)

    def print(self, at: Any, to: Any, width: int) -> None:
        """What is read lies from `at` on, the sums of row i go to `to + i * width`, row after row."""
        builder, lanes = self.builder, self.lanes
        letter = "f32" if isinstance(self.vector.element, ir.FloatType) else "f64"
        kind = ir.FunctionType(self.vector, [self.vector] * 3)
        fma = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{lanes}{letter}")
        # What several rows of outputs look at is loaded once for all of them.
        readers: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for row in range(self.rows):
            for term, place in enumerate(self.places):
                readers[place + row * self.pitch].append((row, term))
        sums = [ir.Constant(self.vector, [0.0] * lanes)] * self.rows
        for place, found in sorted(readers.items()):
            value = builder.load(self._at(builder.add(at, _I64(place))), align=4)
            for row, term in found:
                sums[row] = builder.call(fma, [self._spread(self.weights[term]), value, sums[row]])
        for row, total in enumerate(sums):
            builder.store(total, self._at(builder.add(to, _I64(row * width))), align=4)


@intrinsic(prefer_literal=True)
def add_windows(
    typingctx: Any, rows: Any, width: Any, pitch: Any, places: Any, plane: Any, at: Any, filters: Any,
    first: Any, to: Any,
) -> Any:  # fmt: skip
    """plane[to + i * width + x] = sum over t of filters[first + t] * plane[at + places[t] + i * pitch + x].

    For i < `rows` and x < `width`; both, `pitch` and the numbers in `places` are literals. Where `width` is
    below 16, up to 15 elements more are read, and written behind the last row.
    """
    literals = (rows, width, pitch, *places)
    if not all(isinstance(value, types.IntegerLiteral) for value in literals):
        return None
    count, columns, below = (v.literal_value for v in (rows, width, pitch))
    terms = [value.literal_value for value in places]
    lanes = next(n for n in (4, 8, LANES) if n >= min(columns, LANES))

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        *_, plane, at, filters, first, to = arguments
        weights = [
            in_register(builder, builder.load(builder.gep(filters, [builder.add(first, _I64(t))])))
            for t in range(len(terms))
        ]
        sums = _Sums(builder, count, lanes, below, terms, plane, weights)
        # Rows that are no longer than a vector end where the next one's begin; the last vector of longer ones
        # computes some outputs again.
        with cgutils.for_range(builder, _I64(max(columns // lanes, 1))) as loop:
            x = builder.mul(loop.index, _I64(lanes))
            sums.print(builder.add(at, x), builder.add(to, x), columns)
        if columns > lanes and columns % lanes:
            x = _I64(columns - lanes)
            sums.print(builder.add(at, x), builder.add(to, x), columns)
        return context.get_dummy_value()

    integer = types.int64
    return types.void(rows, width, pitch, places, plane, integer, filters, integer,
                      integer), codegen  # fmt: skip
