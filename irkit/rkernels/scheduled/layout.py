"""What a scheduled nest keeps where: copies of operands, vectors, and whether a root can be run so."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.dialects.builtin import f32, f64, i32, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument
from xdsl.ir.affine import AffineMap

from irkit.dialects.linalg_generic import combiner, is_contraction, maps
from irkit.dialects.loop import ScheduleAttr
from irkit.dialects.products import linear_factors
from irkit.dialects.roperator_root import Root
from irkit.dialects.tensor_ops.registry import in_memory
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.errors import UnsupportedError
from irkit.expressions.loops import Axis, Nest, Split
from irkit.expressions.steps import Schedule, Step
from irkit.expressions.syntax import ExpressionError, Place

VECTORS = (f32, f64, i32, i64)
"""Elements that vectors have."""
VECTOR_BYTES = 64
"""Of a vector that `tensorise` is made of: a register, or two."""
MOST_BYTES = 16 << 20
_LINE = 64
_PAGE = 4096


@dataclass(frozen=True)
class Copy:
    """A copy of what a turn of a loop reads of input `number`: for every turn of `axes` an element, at byte
    `offset` of the scratch. `at` is the loop's place in the nest, -1: before all."""

    number: int
    at: int
    axes: tuple[Axis, ...]
    offset: int

    @property
    def elements(self) -> int:
        """How many it has at most."""
        return math.prod(a.extent for a in self.axes)


@dataclass(frozen=True)
class Layout:
    """A root's nest. Raises UnsupportedError when it is made for what it cannot be run by."""

    root: Root
    nest: Nest

    @staticmethod
    def of(root: Root, schedule: ScheduleAttr) -> Layout:
        """The root's loops as the schedule makes them."""
        sizes, parallel = (*root.parallel, *root.reduction), len(root.parallel)
        plain = _in_vectors(root, schedule.schedule, schedule.nest(sizes, parallel))
        found = Layout(root, ScheduleAttr.of(plain).nest(sizes, parallel))
        found.check()
        return found

    @property
    def op(self) -> linalg.GenericOp:
        """The reduction."""
        return self.root.chain[-1]

    @property
    def element_bytes(self) -> int:
        """Of one sum."""
        return numpy_dtype(tensor_type(self.op.results[0]).element_type).itemsize

    @cached_property
    def lane(self) -> int | None:
        """The number of the index that lanes of vectors differ in by 1; None where there is none."""
        name = self.nest.vector.name if self.nest.vector is not None else ""
        for origin in reversed(self.nest.origins):
            if isinstance(origin, Split) and origin.inner == name:
                name = origin.of.name
        names = [a.name for a in self.nest.indices]
        return names.index(name) if name in names else None

    @cached_property
    def copies(self) -> dict[int, Copy]:
        """By the number of the input."""
        found: dict[int, Copy] = {}
        offset = 0
        for name, (loop, _) in self.nest.caches.items():
            number = self.nest.operands.index(name)
            at = self.nest.position(loop) if loop else -1
            moved = self.moved_by(maps(self.op)[number])
            axes = tuple(a for a in self.nest.order[at + 1 :] if moved & self.nest.sources(a.name))
            found[number] = Copy(number, at, axes, offset)
            kind = numpy_dtype(tensor_type(self.op.inputs[number]).element_type)
            offset += -(-found[number].elements * kind.itemsize // _LINE) * _LINE
        return found

    def copied_whole(self, copy: Copy) -> bool:
        """Whether the lanes of a copy lie side by side where they are copied from."""
        vector, value = self.nest.vector, self.op.inputs[copy.number]
        lanes = vector is not None and copy.axes[-1:] == (vector,) and self.lane is not None
        return lanes and in_memory(value) is not None and self.stride(copy.number) == 1

    @property
    def spill(self) -> int:
        """Where in the scratch a vector is whose elements are stored one by one."""
        return max((self._end(c) for c in self.copies.values()), default=0)

    def _end(self, copy: Copy) -> int:
        kind = numpy_dtype(tensor_type(self.op.inputs[copy.number]).element_type)
        return copy.offset + -(-copy.elements * kind.itemsize // _LINE) * _LINE

    @property
    def scratch(self) -> int:
        """Bytes of scratch."""
        vector = self.nest.vector
        return self.spill + (vector.extent * self.element_bytes if vector is not None else 0)

    def moved_by(self, amap: AffineMap) -> set[str]:
        """The indices that a map reads."""
        names = [a.name for a in self.nest.indices]
        return {names[d] for e in amap.results for d in e.used_dims()}

    def stride(self, number: int) -> int | None:
        """How many elements of memory a lane is from the next in an input; None where that is not known."""
        op, shape = self.op, tensor_type(self.op.inputs[number]).get_shape()
        if self.lane is None:
            return None
        total, step = 0, 1
        for expr, extent in reversed(list(zip(maps(op)[number].results, shape, strict=True))):
            factors = linear_factors(expr, len(self.nest.indices))
            if factors is None:
                return None
            total += factors.get(self.lane, 0) * step
            step *= extent
        return total

    def moves(self, axis: Axis) -> bool:
        """Whether a loop is over a part of the index that lanes differ in."""
        return self.lane is not None and self.nest.indices[self.lane].name in self.nest.sources(
            axis.name
        )

    @property
    def pages(self) -> int:
        """Pages of memory that the lanes of one tile read, where nothing is copied."""
        if self.lane is None:
            return 0
        found = 0
        for amap, value in zip(maps(self.op), self.op.inputs, strict=False):
            if self.nest.indices[self.lane].name not in self.moved_by(amap):
                continue
            size = math.prod(tensor_type(value).get_shape()) * self.element_bytes
            found = max(found, min(math.prod(self.root.reduction), size // _PAGE))
        return found

    def check(self) -> None:
        """Raises UnsupportedError for what it cannot be run by."""
        if len(self.nest.operands) > len(self.op.inputs):
            raise UnsupportedError(
                f"a schedule of {len(self.nest.operands)} operands for {len(self.op.inputs)}"
            )
        if not any(a.reduced for a in self.nest.indices):
            raise UnsupportedError("a schedule of what reduces nothing")
        check_sums(self.nest)
        self._check_alone()
        self._check_copies()
        if self.nest.vector is not None:
            self._check_vectors(self.nest.vector)

    def _check_alone(self) -> None:
        """A vEU of a CPU is one thread."""
        for axis in self.nest.threads:
            reason = (
                f"'bind' of '{axis.name}' to threads, of which only a GPU's blocks have several"
            )
            raise ExpressionError(reason, _place(self.nest, axis))
        for name in self.nest.buffers:
            reason = f"buffers of '{name}', which only a GPU copies ahead"
            raise ExpressionError(reason, self.nest.caches[name][1])

    def _check_copies(self) -> None:
        for copy in self.copies.values():
            name = self.nest.operands[copy.number]
            element = tensor_type(self.op.inputs[copy.number]).element_type
            place = self.nest.caches[name][1]
            if element not in VECTORS:
                raise ExpressionError(f"'cache' of '{name}', of elements of {element}", place)
            size = copy.elements * numpy_dtype(element).itemsize
            if size > MOST_BYTES:
                reason = (
                    f"{size} bytes, of {MOST_BYTES} at most: cache less, at a loop further inside"
                )
                raise ExpressionError(f"'cache' of '{name}' takes {reason}", place)

    def _check_vectors(self, vector: Axis) -> None:
        """Lanes are elements that lie side by side, of types that vectors have."""
        element, what = (
            tensor_type(self.op.results[0]).element_type,
            f"'vectorize' of '{vector.name}'",
        )
        if element not in VECTORS:
            raise ExpressionError(f"{what}: sums of {element}", _place(self.nest, vector))
        found = combiner(self.op)
        assert found is not None
        plain = found[1].operands[0], found[1].operands[1]
        if not is_contraction(self.op) and self.op.body.block.args[0] not in plain:
            reason = "a statement that is no product of two elements, and no element itself"
            raise ExpressionError(f"{what} in {reason}", _place(self.nest, vector))
        if self.lane is None:
            reason = "it is no part of one index, of elements side by side"
            raise ExpressionError(f"{what}: {reason}", _place(self.nest, vector))
        for number, value in enumerate(self.op.inputs):
            if not is_contraction(self.op) and number:
                continue
            self._check_lanes(number, what, vector)
            if tensor_type(value).element_type != element:
                have = tensor_type(value).element_type
                raise ExpressionError(f"{what}: {have} and {element}", _place(self.nest, vector))

    def _check_lanes(self, number: int, what: str, vector: Axis) -> None:
        name = self.nest.operands[number] if number < len(self.nest.operands) else str(number)
        assert self.lane is not None
        if self.nest.indices[self.lane].name not in self.moved_by(maps(self.op)[number]):
            return
        place = _place(self.nest, vector)
        if number in self.copies:
            if vector not in self.copies[number].axes:
                raise ExpressionError(f"{what}: '{name}' is not cached for its turns", place)
            return
        if not isinstance(in_memory(self.op.inputs[number]), BlockArgument):
            raise ExpressionError(f"{what}: '{name}' is computed; cache it", place)
        if (stride := self.stride(number)) != 1:
            apart = "at places that no step tells" if stride is None else f"{stride} apart"
            raise ExpressionError(f"{what}: elements of '{name}' are {apart}; cache it", place)


def _in_vectors(root: Root, schedule: Schedule, nest: Nest) -> Schedule:
    """The steps, of which `tensorise` is a tile of vector registers, term by term."""
    if nest.tensor is None:
        return schedule
    rows, columns, terms = nest.tensor
    (step,) = (s for s in schedule.steps if s.kind == "tensorise")
    element = tensor_type(root.chain[-1].results[0]).element_type
    extent = nest.order[nest.position(columns)].extent
    lanes = min(VECTOR_BYTES // numpy_dtype(element).itemsize, extent & -extent)
    if not is_contraction(root.chain[-1]) or element not in VECTORS:
        raise ExpressionError(f"'tensorise' of sums of {element} that are no products", step.place)
    if lanes < 2:
        reason = f"of {extent} turns: vectors are of a power of two of them"
        raise ExpressionError(f"'tensorise': '{columns}' {reason}", step.at(1))

    def made(kind: str, *names: str, number: int = 0) -> Step:
        return Step(kind, names, number, step.place, tuple(step.at(1) for _ in names))

    vectors, lane = f"{columns}_vectors", f"{columns}_lanes"
    steps = (
        made("split", columns, vectors, lane, number=lanes),
        made("reorder", terms, rows, vectors, lane),
        made("unroll", rows),
        made("unroll", vectors),
        made("vectorize", lane),
    )
    at = schedule.steps.index(step)
    return replace(schedule, steps=(*schedule.steps[:at], *steps, *schedule.steps[at + 1 :]))


def check_sums(nest: Nest) -> None:
    """An rTask has all terms of its sums. Raises UnsupportedError where a schedule shares some out."""
    if nest.shared_sums:
        names = ", ".join(f"'{name}'" for name in nest.shared_sums)
        reason = "of one rOperator: `cut-sums` makes two of the statement, at the graph level"
        raise UnsupportedError(f"a schedule that shares sums over {names} out, {reason}")


def _place(nest: Nest, axis: Axis) -> Place:
    return nest.marks.get(axis.name, Place())
