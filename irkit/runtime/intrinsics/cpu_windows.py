"""A Numba intrinsic that takes the largest or the smallest elements of neighbouring windows at once."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_I32, _I64 = ir.IntType(32), ir.IntType(64)


@dataclass(frozen=True)
class Windows:
    """`lanes` windows, `stride` elements from one to the next."""

    builder: Any
    source: Any
    at: Any
    lanes: int
    stride: int

    def _load(self, place: int) -> Any:
        pointer = self.builder.gep(self.source, [self.builder.add(self.at, _I64(place))])
        kind = ir.VectorType(self.source.type.pointee, self.lanes).as_pointer()
        return self.builder.load(self.builder.bitcast(pointer, kind), align=4)

    def elements(self, place: int) -> Any:
        """The element `place` from the first of each window; none behind the last window's is read."""
        if self.stride == 1:
            return self._load(place)
        low, high = self._load(place), self._load(place + self.lanes - 1)
        half = self.lanes // 2
        # The second vector begins with an element between two that are looked for.
        chosen = [2 * n for n in range(half)] + [self.lanes + 1 + 2 * n for n in range(half)]
        mask = ir.Constant(ir.VectorType(_I32, self.lanes), chosen)
        return self.builder.shuffle_vector(low, high, mask)


@intrinsic(prefer_literal=True)
def extremes(
    typingctx: Any,
    largest: Any,
    lanes: Any,
    stride: Any,
    shape: Any,
    steps: Any,
    source: Any,
    at: Any,
    target: Any,
) -> Any:
    """Of `lanes` windows the largest elements (`largest` 1) or the smallest (0), NaN where there is one.

    The first window begins at `source[at]`, each other `stride` (1 or 2) elements behind the one before.
    `shape` is how many elements a window has along each of its loops, `steps` how far apart they are; all of
    these are literals. Terms are compared in the order of the loops, and of equal ones the last counts. They
    are written to `target`.
    """
    literals = (largest, lanes, stride, *shape, *steps)
    if not all(isinstance(value, types.IntegerLiteral) for value in literals):
        return None
    sign = ">" if largest.literal_value else "<"
    sizes = [value.literal_value for value in shape]
    apart = [value.literal_value for value in steps]

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, _, _, _, _, source, at, target = arguments
        windows = Windows(builder, source, at, lanes.literal_value, stride.literal_value)
        terms = [
            windows.elements(sum(n * s for n, s in zip(point, apart, strict=True)))
            for point in itertools.product(*map(range, sizes))
        ]
        best = _extreme(builder, sign, terms)
        builder.store(best, builder.bitcast(target, best.type.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(largest, lanes, stride, shape, steps, source, types.int64, target), codegen


def _extreme(builder: Any, sign: str, terms: list[Any]) -> Any:
    """The largest or the smallest of vectors, NaN in lanes where one of them has it."""
    best, unknown = terms[0], None
    for term in terms[1:]:
        best = builder.select(builder.fcmp_ordered(sign, best, term), best, term)
    # Two of them are asked at once.
    for first, second in itertools.zip_longest(terms[::2], terms[1::2], fillvalue=terms[-1]):
        either = builder.fcmp_unordered("uno", first, second)
        unknown = either if unknown is None else builder.or_(unknown, either)
    return builder.select(unknown, ir.Constant(best.type, [math.nan] * best.type.count), best)
