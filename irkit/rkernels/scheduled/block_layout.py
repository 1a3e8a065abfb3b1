"""What a nest that threads of a block run keeps where: copies in shared memory, and where sums meet."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.ir import BlockArgument
from xdsl.ir.affine import AffineMap

from irkit.dialects.linalg_generic import combiner, is_contraction, maps
from irkit.dialects.loop import ScheduleAttr
from irkit.dialects.products import linear_factors
from irkit.dialects.roperator_root import Root
from irkit.dialects.tensor_ops.registry import through_reshapes
from irkit.dialects.types import is_float, numpy_dtype, tensor_type
from irkit.errors import UnsupportedError
from irkit.expressions.loops import Axis, Fused, Nest, Split
from irkit.expressions.syntax import ExpressionError, Place
from irkit.rkernels.scheduled.fragments import Fragment, fragment_of, refuse
from irkit.rkernels.scheduled.layout import VECTORS, Layout, check_sums
from irkit.rkernels.scheduled.shared_copy import SharedCopy

THREADS = 256
WARP = 32
FOUR = 4
"""Elements of 32 bits that are copied together."""
_LINE = 128
MOST_AT_ONCE = 2048
"""Multiply-adds that are written out."""


@dataclass(frozen=True)
class Tile:
    """Sums of a thread that are products of rows and columns: those of input `left` by those of `right`."""

    left: int
    right: int
    rows: tuple[Axis, ...]
    columns: tuple[Axis, ...]

    @property
    def height(self) -> int:
        """Rows."""
        return math.prod(a.extent for a in self.rows)

    @property
    def width(self) -> int:
        """Columns."""
        return math.prod(a.extent for a in self.columns)


@dataclass(frozen=True)
class BlockLayout(Layout):
    """A root's nest in a block of threads. Loops bound to threads count them, the innermost fastest."""

    @staticmethod
    def of(root: Root, schedule: ScheduleAttr) -> BlockLayout:
        """The root's loops as the schedule makes them."""
        sizes = (*root.parallel, *root.reduction)
        found = BlockLayout(root, schedule.nest(sizes, len(root.parallel)))
        found.check()
        return found

    @property
    def working(self) -> int:
        """Threads that have turns of their own; of a tensorised nest each turn is a warp's."""
        each = WARP if self.nest.tensor is not None else 1
        return each * math.prod(a.extent for a in self.nest.threads)

    # Copies

    @cached_property
    def shared(self) -> dict[int, SharedCopy]:
        """Copies by the number of the input; those that outlive a tile first."""
        found: dict[int, SharedCopy] = {}
        made = [self._copy(name) for name in self.nest.caches]
        offset = 0
        for copy in sorted(made, key=lambda c: c.at):
            found[copy.number] = SharedCopy(
                copy.number,
                copy.at,
                copy.axes,
                offset,
                copy.buffers,
                copy.pitch,
                copy.padding,
            )
            offset += self.nbytes(copy)
        return found

    def nbytes(self, copy: SharedCopy) -> int:
        """All its buffers."""
        kind = numpy_dtype(tensor_type(self.op.inputs[copy.number]).element_type)
        return -(-copy.elements * copy.buffers * kind.itemsize // _LINE) * _LINE

    def _copy(self, name: str) -> SharedCopy:
        loop, _ = self.nest.caches[name]
        number, at = self.nest.operands.index(name), self.nest.position(loop) if loop else -1
        moved = self.moved_by(maps(self.op)[number])
        axes = tuple(
            a
            for n, a in enumerate(self.nest.order)
            if (n > at or a.mark == "thread") and moved & self.nest.sources(a.name)
        )
        buffers = self.nest.buffers.get(name, 1)
        if self.nest.tensor is not None:
            # Rows of eight terms come to lie in other banks.
            plain = SharedCopy(number, at, axes, 0, buffers, 1, FOUR)
            return replace(plain, pitch=plain.run(1))
        pitch = math.prod(a.extent for a in axes[1:])
        if len(axes) > 1 and self.fastest(number, axes) is not axes[-1] and pitch % FOUR == 0:
            # Neighbours in memory come to lie in other banks.
            pitch += FOUR
        return SharedCopy(number, at, axes, 0, buffers, pitch)

    def fastest(self, number: int, axes: tuple[Axis, ...]) -> Axis:
        """The loop of which turns are nearest to each other in an input."""
        steps = {a.name: abs(self.step(number, a)) for a in axes}
        return min(axes, key=lambda a: (steps[a.name] == 0, steps[a.name]))

    def step(self, number: int, axis: Axis) -> int:
        """How many elements of an input the second turn of a loop is from the first."""
        shape = tensor_type(self.op.inputs[number]).get_shape()
        return self._linear(maps(self.op)[number], shape, axis)

    def _linear(self, amap: AffineMap, shape: tuple[int, ...], axis: Axis) -> int:
        places: list[int] = []
        for turn in (0, 1):
            values = [_number(self.nest, i.name, {axis.name: turn}) for i in self.nest.indices]
            at = amap.eval(values, [])
            places.append(sum(p * math.prod(shape[d + 1 :]) for d, p in enumerate(at)))
        return places[1] - places[0]

    def is_async(self, copy: SharedCopy) -> bool:
        """Whether it is copied as it lies in memory."""
        return isinstance(through_reshapes(self.op.inputs[copy.number]), BlockArgument)

    def in_fours(self, copy: SharedCopy) -> bool:
        """Whether aligned fours of the innermost loop lie side by side in memory."""
        value = self.op.inputs[copy.number]
        kind, last = numpy_dtype(tensor_type(value).element_type), copy.axes[-1:]
        if not last or kind.itemsize != 4 or not self.is_async(copy):
            return False
        (axis,) = last
        if axis.extent % FOUR or axis.least % FOUR or self.step(copy.number, axis) != 1:
            return False
        shape, common = tensor_type(value).get_shape(), 0
        for d, expr in enumerate(maps(self.op)[copy.number].results):
            factors = linear_factors(expr, len(self.nest.indices))
            if factors is None:
                return False
            stride = math.prod(shape[d + 1 :])
            constant = expr.eval([0] * len(self.nest.indices), [])
            common = math.gcd(common, stride * constant)
            for index, factor in factors.items():
                multiple = self._multiple_of_index(self.nest.indices[index], axis)
                common = math.gcd(common, stride * factor * multiple)
        return common % FOUR == 0

    def _multiple_of_index(self, axis: Axis, chunk: Axis) -> int:
        parts = self.nest.parts.get(axis.name, 1)
        low = 0 if parts == 1 else axis.extent // parts if axis.extent % parts == 0 else 1
        return math.gcd(low, self._multiple(axis.name, chunk))

    def _multiple(self, name: str, chunk: Axis) -> int:
        """What a loop's number is a multiple of, at the first of four turns of `chunk`."""
        if name == chunk.name:
            return FOUR
        for origin in self.nest.origins:
            if isinstance(origin, Split) and origin.of.name == name:
                begin = origin.by * self._multiple(origin.outer, chunk)
                if not origin.exact and not origin.of.reduced:
                    begin = math.gcd(origin.by, origin.of.extent) if origin.of.whole else 1
                return math.gcd(begin, self._multiple(origin.inner, chunk))
            if isinstance(origin, Fused) and name == origin.inner.name:
                made = self._multiple(origin.made, chunk)
                return math.gcd(made, origin.inner.extent)
        return 1

    # Sums

    @cached_property
    def cells(self) -> tuple[Axis, ...]:
        """The loops of a block's tile of sums, those of nearest results last."""
        axes = [a for a in self.nest.order if a.mark and not a.reduced]
        shape, amap = self.root.parallel, maps(self.op)[-1]
        return tuple(sorted(axes, key=lambda a: -self._linear(amap, shape, a)))

    @property
    def sums(self) -> int:
        """Of a block's tile."""
        return math.prod(a.extent for a in self.cells)

    @cached_property
    def lanes(self) -> int:
        """So many lanes of a warp share the terms of a sum, side by side, and exchange what they have."""
        if self.tile is not None or self.nest.tensor is not None:
            return 1
        trailing = 1
        for axis in reversed(self.nest.threads):
            if not axis.reduced:
                break
            trailing *= axis.extent
        return math.gcd(trailing, WARP)

    @property
    def groups(self) -> int:
        """So many parts of a sum meet in shared memory."""
        return math.prod(a.extent for a in self.nest.threads if a.reduced) // self.lanes

    @property
    def meets(self) -> bool:
        """Whether sums go through shared memory before they are stored."""
        return self.groups > 1 or self.tile is not None or self.nest.tensor is not None

    @property
    def meeting(self) -> int:
        """Where in the scratch they meet: behind what outlives a tile."""
        first = self.nest.first_reduced
        return max(
            (c.offset + self.nbytes(c) for c in self.shared.values() if c.at < first), default=0
        )

    @property
    def scratch(self) -> int:
        """Bytes of scratch."""
        copies = max((c.offset + self.nbytes(c) for c in self.shared.values()), default=0)
        sums = self.groups * self.sums * self.element_bytes if self.meets else 0
        return max(copies, self.meeting + sums)

    @cached_property
    def tile(self) -> Tile | None:
        """Sums as rows by columns, read four at a time from copies; None where they are no such product."""
        element = tensor_type(self.op.results[0]).element_type
        axes = [a for a in self.nest.order if a.mark in ("unroll", "vectorize")]
        if not is_contraction(self.op) or not is_float(element) or set(self.shared) != {0, 1}:
            return None
        if not axes or any(a.reduced for a in axes) or len(self.op.inputs) != 2:
            return None
        moved = [self.moved_by(m) for m in maps(self.op)[:2]]
        owners = [[n for n in (0, 1) if moved[n] & self.nest.sources(a.name)] for a in axes]
        if any(len(o) != 1 for o in owners) or element not in VECTORS:
            return None
        left, right = owners[0][0], owners[-1][0]
        rows = tuple(a for a, o in zip(axes, owners, strict=True) if o == [left])
        found = Tile(left, right, rows, tuple(axes[len(rows) :]))
        whole = left != right and tuple(axes[: len(rows)]) == rows
        return found if whole and self._read_in_fours(found) else None

    @cached_property
    def fragment(self) -> Fragment | None:
        """What tensor cores multiply, where the schedule says so.

        Raises ExpressionError for what they cannot.
        """
        if self.nest.tensor is None:
            return None
        moved = [self.moved_by(m) for m in maps(self.op)[:2]]
        found = fragment_of(self.op, self.nest, self.nest.tensor, moved)
        for number in (found.left, found.right):
            copy = self.shared.get(number)
            name = self.nest.operands[number] if number < len(self.nest.operands) else str(number)
            if copy is None or copy.axes[-2:] != found.axes(number):
                own = ", ".join(a.name for a in found.axes(number))
                refuse(self.nest, found.terms, f"reads '{name}', which has no copy by {own}")
        if self.cells[-1] != found.columns:
            refuse(self.nest, found.columns, "is not the last index of the result")
        return found

    def _read_in_fours(self, tile: Tile) -> bool:
        """Whether rows and columns lie side by side in the copies, and where the sums meet."""
        element = tensor_type(self.op.results[0]).element_type
        for number, axes in ((tile.left, tile.rows), (tile.right, tile.columns)):
            copy, extent = self.shared[number], math.prod(a.extent for a in axes)
            own = copy.axes[-len(axes) :] == axes and len(copy.axes) > len(axes)
            if not own or extent % FOUR or copy.pitch % FOUR:
                return False
            if tensor_type(self.op.inputs[number]).element_type != element:
                return False
        names, cells = tuple(a.name for a in self.cells), self.cells
        behind = len(cells) - len(tile.columns)
        if cells[behind:] != tile.columns or tile.rows[0].name not in names:
            return False
        at = names.index(tile.rows[0].name)
        return cells[at : at + len(tile.rows)] == tile.rows

    def together(self) -> Axis | None:
        """The innermost reduced loop, where a tile takes all its terms at once."""
        tile, inner = self.tile, [a for a in self.nest.order if a.reduced and not a.mark][-1:]
        if tile is None or not inner:
            return None
        own = [inner[0] in self.shared[n].axes for n in (0, 1)]
        work = tile.height * tile.width * inner[0].extent
        return inner[0] if all(own) and work <= MOST_AT_ONCE else None

    # Legality

    def check(self) -> None:
        """Raises UnsupportedError for what it cannot be run by."""
        if len(self.nest.operands) > len(self.op.inputs):
            raise UnsupportedError(
                f"a schedule of {len(self.nest.operands)} operands for {len(self.op.inputs)}"
            )
        if not any(a.reduced for a in self.nest.indices) or combiner(self.op) is None:
            raise UnsupportedError("a schedule of what reduces nothing")
        check_sums(self.nest)
        if self.working > THREADS:
            axis = self.nest.threads[-1]
            reason = f"{self.working} threads, of {THREADS} in a block"
            raise ExpressionError(reason, self._place_of(axis))
        _ = self.fragment
        self._check_buffers()
        for copy in self.shared.values():
            self._check_copy(copy)

    def _check_buffers(self) -> None:
        """Copies that are made in the turns of one loop go into as many buffers."""
        for name, (loop, place) in self.nest.caches.items():
            for other, (where, _) in self.nest.caches.items():
                mine, its = (self.nest.buffers.get(n, 1) for n in (name, other))
                if loop == where and mine != its:
                    reason = f"'{name}' in {mine} buffers and '{other}' in {its}, both at '{loop}'"
                    raise ExpressionError(reason, place)

    def _check_copy(self, copy: SharedCopy) -> None:
        name = self.nest.operands[copy.number]
        element, place = (
            tensor_type(self.op.inputs[copy.number]).element_type,
            self.nest.caches[name][1],
        )
        if element not in VECTORS:
            raise ExpressionError(f"'cache' of '{name}', of elements of {element}", place)
        for origin in self.nest.origins:
            if not isinstance(origin, Split) or origin.exact or not origin.of.reduced:
                continue
            counted = [self.nest.position(a) for a in self.nest.made_of(origin.inner)]
            apart = [a for a in self.nest.threads if a.name in self.nest.made_of(origin.outer)]
            bound = [a for a in self.nest.threads if a.name in self.nest.made_of(origin.inner)]
            if (apart or bound) and any(at <= copy.at for at in counted):
                axis = (apart or bound)[0]
                reason = f"in turns of which some threads of '{axis.name}' have fewer"
                raise ExpressionError(f"'cache' of '{name}' {reason}", place)

    def _place_of(self, axis: Axis) -> Place:
        return self.nest.marks.get(axis.name, Place())


def _number(nest: Nest, name: str, values: Mapping[str, int]) -> int:
    """A loop's number or an index where these loops are at these turns and all others at their first."""
    if name in values:
        return values[name]
    for origin in nest.origins:
        if isinstance(origin, Split) and origin.of.name == name:
            outer, inner = (_number(nest, n, values) for n in (origin.outer, origin.inner))
            return outer * origin.by + inner
        if isinstance(origin, Fused) and name == origin.outer.name:
            return _number(nest, origin.made, values) // origin.inner.extent
        if isinstance(origin, Fused) and name == origin.inner.name:
            return _number(nest, origin.made, values) % origin.inner.extent
    return 0
