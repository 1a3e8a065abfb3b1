"""How many rows a chunk has: what fits, and what keeps the link and the device busy."""

from __future__ import annotations

import math
from dataclasses import dataclass

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.func import FuncOp

from irkit.dialects.bufferization import Array, ToTensorOp
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.passes.program.splitting.bands import Unsplittable
from irkit.passes.program.splitting.functions import (
    Chunk,
    array_of,
    chunk_function,
    chunk_of,
    chunk_types,
)
from irkit.passes.program.splitting.sweeps import SplitPlan, Sweep
from irkit.weights import WeightStore

LARGEST = 64 << 20
SMALLEST = 4 << 20
"""Bytes of a chunk's largest array: shorter copies do not fill the link, longer ones leave it idle at both
ends for longer."""
CHUNKS = 48
"""Chunks that a sweep has at least, where they are not too small: the first copy in and the last copy out
overlap nothing, which are 2 in so many."""


@dataclass(frozen=True)
class Size:
    """`units` rows a chunk; `slots` chunks have memory at a time; `nbytes` on the device in all, of which
    `workspace` for values between."""

    units: int
    slots: int
    nbytes: int
    workspace: int


def bytes_of(array: Array) -> int:
    """Bytes of an array."""
    return math.prod(array.get_shape()) * numpy_dtype(array.element_type).itemsize


class Budget:
    """What chunks of a sweep take on the device, by their number of units."""

    def __init__(self, plan: SplitPlan, sweep: Sweep, weights: WeightStore) -> None:
        self._plan, self._sweep, self._weights = plan, sweep, weights
        self.chunk: Chunk = chunk_of(plan, sweep)
        one = self._between(1)
        self._slope = self._between(2) - one if sweep.units > 1 else 0
        self._start = one - self._slope

    def moving(self, units: int) -> list[Array]:
        """The arrays that each chunk has: rows of arguments, then rows that are written."""
        types, chunk = chunk_types(self._sweep, self.chunk, units), self.chunk
        return types[: len(chunk.rows)] + types[len(types) - len(chunk.writes) :]

    def shared(self, slots: int) -> list[Array]:
        """The arrays that chunks share: what is there as a whole, and what is merged, of which there are as
        many as slots, and two at least: a chunk reads one and writes the next."""
        chunk = self.chunk
        sums = [array_of(m.op.y) for m in chunk.merges]
        return [*(array_of(v) for v in chunk.wholes), *sums * ring(slots)]

    def workspace(self, units: int) -> int:
        """Bytes of all values of a chunk that are neither its arguments nor what it writes: no program of it
        needs more beside."""
        return self._start + self._slope * units

    def total(self, units: int, buffers: int) -> int:
        """Bytes on the device with chunks of so many units."""
        count, rest = divmod(self._sweep.units, units)
        slots = min(buffers, count)
        found = sum(map(bytes_of, self.shared(slots))) + self.workspace(units)
        found += slots * sum(map(bytes_of, self.moving(units)))
        return found + (sum(map(bytes_of, self.moving(rest))) if rest else 0)

    def size(self, limit: int, buffers: int) -> Size:
        """The size of chunks under a limit in bytes. Raises Unsplittable where none fits."""
        units = self._sweep.units
        least = self.total(1, buffers)
        if least > limit:
            raise Unsplittable(
                f"a chunk of one row takes {least} bytes on the device ({self._taken()}), and {limit} are "
                "allowed"
            )
        largest = self._largest(limit, buffers)
        wanted = max(min(self._wanted(), largest), 1)
        # Chunks that are all alike need one function; a divisor not much smaller gives them.
        even = next((n for n in range(wanted, wanted // 2, -1) if units % n == 0), None)
        found = even or wanted
        slots = min(buffers, units // found)
        return Size(found, slots, self.total(found, buffers), self.workspace(found))

    def _taken(self) -> str:
        whole = sum(map(bytes_of, self.shared(1)))
        parts = [f"{sum(map(bytes_of, self.moving(1)))} for its rows"]
        if whole:
            causes = sorted(set(self._sweep.demands.wholes[v] for v in self.chunk.wholes))
            why = f", that {', '.join(causes)} needs" if causes else ""
            parts.append(f"{whole} for what is there as a whole{why}")
        return ", ".join(parts)

    def _wanted(self) -> int:
        rows = max((bytes_of(t) for t in self.moving(1)), default=1)
        balanced = self._sweep.units // CHUNKS
        return max(min(max(balanced, SMALLEST // rows), LARGEST // rows), 1)

    def _largest(self, limit: int, buffers: int) -> int:
        """The most units whose chunks fit, the rest counted as one more."""
        low, high = 1, self._sweep.units
        if self._bound(high, buffers) <= limit:
            return high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._bound(middle, buffers) <= limit else (low, middle)
        return low

    def _bound(self, units: int, buffers: int) -> int:
        """As `total`, and grows with the units."""
        moving = sum(map(bytes_of, self.moving(units)))
        slots = 1 if units == self._sweep.units else buffers + 1
        return sum(map(bytes_of, self.shared(slots))) + self.workspace(units) + slots * moving

    def _between(self, units: int) -> int:
        made = chunk_function("between", self._plan, self._sweep, units, self._weights, _here)
        return between(made)


def ring(slots: int) -> int:
    """How many arrays what is merged has."""
    return max(slots, 2)


def _here(array: Array) -> Array:
    return array


def between(function: FuncOp) -> int:
    """Bytes of the values of a function of arrays that are no constants and not what arrays hold."""
    return sum(
        math.prod(tensor_type(value).get_shape())
        * numpy_dtype(tensor_type(value).element_type).itemsize
        for op in function.body.block.ops
        if not isinstance(op, ConstantOp | ToTensorOp)
        for value in op.results
    )
