"""Tensor expressions: one `linalg.generic`, after what brings the elements that it reads within affine maps.

A read at affine indices is a map; where a condition keeps it within its tensor, the tensor is padded.
Indices that hang on others by a quotient or remainder, or on values of tensors, are computed first, and
`te.gather` picks by them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, f32, i64
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr

from irkit.dialects import graph, te
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.linalg_generic import iterators
from irkit.dialects.loop import SCHEDULE, ScheduleAttr
from irkit.dialects.types import element_type, is_unsigned, numpy_dtype, signless, tensor_type
from irkit.expressions.affine import Linear, linear
from irkit.expressions.binding import Step
from irkit.expressions.ranges import Loop
from irkit.expressions.syntax import Apply, Expr, Name, Number, Read, names_of
from irkit.expressions.typing import DType, Typed, index, typed
from irkit.lower.graph_to_tensor.builder import TensorBuilder
from irkit.lower.graph_to_tensor.elementwise import Rule
from irkit.lower.graph_to_tensor.expression_scalars import applied, combined
from irkit.lower.graph_to_tensor.nests import Index
from irkit.lower.graph_to_tensor.scalars import Scalars, highest, lowest

Place = tuple[SSAValue, Index]
_Body = Callable[[Scalars, Mapping[Read, SSAValue]], SSAValue]
_Total = Callable[[Scalars, SSAValue, SSAValue], SSAValue]


def _expression(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    assert isinstance(op, graph.ExpressionOp)
    step = op.step
    tensors = dict(zip(step.operands, op.operands, strict=True))
    nest = _Statement(b, tensors, step.domain.loops)
    made = nest.lowered(step)
    if op.schedule is not None:
        given = replace(op.schedule.schedule, operands=nest.names(step))
        _schedule(made, ScheduleAttr.of(given))
    return [made]


def _schedule(made: SSAValue, schedule: ScheduleAttr) -> None:
    """The nest that computes a value, below what makes numbers unsigned again, is run by a schedule."""
    owner = made.owner
    while not isinstance(owner, linalg.GenericOp) or all(iterators(owner)):
        assert isinstance(owner, Operation)
        owner = owner.operands[0].owner
    owner.attributes[SCHEDULE] = schedule


@dataclass
class _Statement:
    """A nest of loops over tensors, by name, and what of them it reads where."""

    b: TensorBuilder
    tensors: Mapping[str, SSAValue]
    loops: Sequence[Loop]
    places: dict[Read, Place] = field(default_factory=dict[Read, Place])

    @property
    def dtypes(self) -> dict[str, DType]:
        """Types of the tensors."""
        return {n: numpy_dtype(tensor_type(v).element_type) for n, v in self.tensors.items()}

    def names(self, step: Step) -> tuple[str, ...]:
        """What is read, in the order of the nest's operands: by the tensor's name, the n-th time with n
        behind it."""
        reads: list[Read] = list(self.places)
        value = step.statement.value
        if step.is_product and isinstance(value, Apply):
            reads = [a for a in value.arguments if isinstance(a, Read)]
        found: list[str] = []
        for read in reads:
            times = sum(r.tensor == read.tensor for r in reads[: len(found)])
            found.append(f"{read.tensor}_{times + 1}" if times else read.tensor)
        return tuple(found)

    def lowered(self, step: Step) -> SSAValue:
        """The value of a statement."""
        value = typed(step.statement.value, self.dtypes)
        self.collect(value)
        shape, element = step.domain.shape, element_type(value.dtype)
        every = list(range(len(shape)))
        if not step.statement.operator:
            made = self.b.empty(shape, element, [])
            return self._generic(value, (made, every), None)
        return self._reduced(step, value)

    def _reduced(self, step: Step, value: Typed) -> SSAValue:
        """The value of a reduction; of unsigned numbers as signless ones of the same order."""
        shape, element = step.domain.shape, element_type(value.dtype)
        every, operator = list(range(len(shape))), step.statement.operator
        if step.is_product:
            start = self.b.fill(0, shape, element, [])
            if not self._lone([*self.places.values(), (start, every)]):
                reads = (p.source for p in value.arguments if isinstance(p.source, Read))
                a, w = (self.places[read] for read in reads)
                return self.b.contract(a, w, (start, every), len(step.domain.reduced))
        plain = signless(element)
        first = {"max": lowest(plain), "min": highest(plain), "*": 1}
        initial = first.get(operator, 0)
        if len(shape) == len(self.loops):
            made = self._of_one_term(
                value, (self.b.empty(shape, plain, []), every), operator, initial
            )
        else:
            start = self.b.fill(initial, shape, plain, [])
            made = self._generic(value, (start, every), operator)
        return self.b.bits(made, element, ordered=operator in ("max", "min"))

    # What is read where

    def collect(self, part: Typed) -> None:
        """Note all that a part reads, and where."""
        source = part.source
        if part.kind == "read" and isinstance(source, Read) and source not in self.places:
            self.places[source] = self._placed(source)
        for inner in part.arguments:
            self.collect(inner)

    def _placed(self, read: Read) -> Place:
        """A tensor and affine indices of it, all of them within it."""
        value = self.tensors[read.tensor]
        known = [linear(e) for e in read.indices]
        picked = [d for d, k in enumerate(known) if k is None]
        if picked:
            value, known = self._gathered(value, read, picked)
        bounds = {loop.name: (loop.low, loop.high - 1) for loop in self.loops}
        low, high, indices = list[int](), list[int](), list[AffineExpr]()
        offsets, sizes = list[int](), list[int]()
        for one, size in zip(known, tensor_type(value).get_shape(), strict=True):
            assert one is not None
            least, most = one.bounds(bounds)
            low.append(max(0, -least))
            high.append(max(0, most - size + 1))
            # What an index has to itself is as large as its loop.
            alone = len(one.terms) == 1 and one.terms[0][1] == 1
            offsets.append(low[-1] + least if alone else 0)
            sizes.append(most - least + 1 if alone else low[-1] + size + high[-1])
            indices.append(self._affine(one + Linear(low[-1] - offsets[-1])))
        value = self.b.cut(self.b.pad(value, low, high, 0), offsets, sizes)
        return value, [self._plain(i) for i in indices]

    def _affine(self, one: Linear) -> AffineExpr:
        """As a map's expression; loops of a map start at 0."""
        numbers = {loop.name: n for n, loop in enumerate(self.loops)}
        constant, result = one.constant, None
        for name, factor in one.terms:
            constant += factor * self.loops[numbers[name]].low
            term: AffineExpr = AffineDimExpr(numbers[name])
            term = term if factor == 1 else term * factor
            result = term if result is None else result + term
        if result is None:
            return AffineConstantExpr(constant)
        return result + constant if constant else result

    def _plain(self, expr: AffineExpr) -> int | AffineExpr:
        return expr.position if isinstance(expr, AffineDimExpr) else expr

    # Indices that are computed

    def _gathered(
        self, value: SSAValue, read: Read, picked: Sequence[int]
    ) -> tuple[SSAValue, list[Linear | None]]:
        """The tensor with its `picked` dimensions, in front, replaced by the loops that their indices hang
        on."""
        names = [n for loop in self.loops if (n := loop.name) in _used(read, picked)]
        loops = [loop for loop in self.loops if loop.name in names]
        shape = tensor_type(value).get_shape()
        rest = [d for d in range(len(shape)) if d not in picked]
        moved = self.b.transpose(value, [*picked, *rest])
        sizes = [shape[d] for d in picked]
        flat = self.b.reshape(moved, [math.prod(sizes), *(shape[d] for d in rest)])
        places = self._indices([read.indices[d] for d in picked], sizes, loops)
        found = self.b.insert(te.GatherOp.make([flat, places], {"axis": IntegerAttr(0, i64)}))
        own: list[Linear | None] = [Linear(-loop.low, ((loop.name, 1),)) for loop in loops]
        return found, [*own, *(linear(read.indices[d]) for d in rest)]

    def _indices(
        self, exprs: Sequence[Expr], sizes: Sequence[int], loops: Sequence[Loop]
    ) -> SSAValue:
        """Over `loops`: the row-major number of the element at indices `exprs`, each taken into its
        dimension."""
        direct = exprs[0]
        inner = _Statement(self.b, self.tensors, loops)
        parts = [index(e, self.dtypes) for e in exprs]
        if len(parts) == 1 and isinstance(direct, Read) and self._is_whole(direct, loops):
            return self.tensors[direct.tensor]
        for part in parts:
            inner.collect(part)

        def body(s: Scalars, values: Mapping[Read, SSAValue]) -> SSAValue:
            total: SSAValue | None = None
            for part, size in zip(parts, sizes, strict=True):
                one = inner.scalar(s, part, values)
                one = s(arith.MaxSIOp(one, s.constant(0, i64)))
                one = s(arith.MinSIOp(one, s.constant(size - 1, i64)))
                if total is not None:
                    one = s(arith.AddiOp(s(arith.MuliOp(total, s.constant(size, i64))), one))
                total = one
            assert total is not None
            return total

        every = list(range(len(loops)))
        made = self.b.empty([loop.size for loop in loops], i64, [])
        return inner.nest((made, every), body)

    def _is_whole(self, read: Read, loops: Sequence[Loop]) -> bool:
        """Whether a read is of a whole tensor of indices, element by element over `loops`."""
        shape = tensor_type(self.tensors[read.tensor]).get_shape()
        dtype = self.dtypes[read.tensor]
        names = [e.name if isinstance(e, Name) else "" for e in read.indices]
        same = names == [loop.name for loop in loops] and all(loop.low == 0 for loop in loops)
        whole = [loop.size for loop in loops] == list(shape)
        return same and whole and dtype in (np.dtype(np.int32), np.dtype(np.int64))

    # The nest

    def _lone(self, places: Sequence[Place]) -> list[int]:
        """Loops that no tensor has alone as an index: nothing says their extents."""
        alone = {i for _, where in places for i in where if isinstance(i, int)}
        return [n for n in range(len(self.loops)) if n not in alone]

    def _generic(self, value: Typed, out: Place, operator: str | None) -> SSAValue:
        body = self._term(value, operator)
        if operator is None:
            return self.nest(out, body)
        combine = combined(operator, signless(element_type(value.dtype)))

        def total(s: Scalars, acc: SSAValue, term: SSAValue) -> SSAValue:
            return s(combine(acc, term))

        return self.nest(out, body, total)

    def _of_one_term(self, value: Typed, out: Place, operator: str, initial: float) -> SSAValue:
        """A reduction over no index: each element is its first value, and one term."""
        element = signless(element_type(value.dtype))
        combine, term = combined(operator, element), self._term(value, operator)

        def whole(s: Scalars, values: Mapping[Read, SSAValue]) -> SSAValue:
            return s(combine(s.constant(initial, element), term(s, values)))

        return self.nest(out, whole)

    def _term(self, value: Typed, operator: str | None) -> _Body:
        """What is reduced; unsigned numbers whose order counts as signless ones of the same order."""
        element = element_type(value.dtype)
        ordered = operator in ("max", "min") and is_unsigned(element)

        def body(s: Scalars, values: Mapping[Read, SSAValue]) -> SSAValue:
            made = self.scalar(s, value, values)
            return s.turned(made, lowest(signless(element))) if ordered else made

        return body

    def nest(self, out: Place, body: _Body, total: _Total | None = None) -> SSAValue:
        """A generic over all loops."""
        reads, places = list(self.places), list(self.places.values())
        parallel = len(out[1])
        for n in self._lone([*places, out]):
            # Read by no one: it says how large a loop is.
            places.append((self.b.empty((self.loops[n].size,), f32, []), [n]))

        def whole(s: Scalars, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
            values = dict(zip(reads, args, strict=False))
            made = body(s, values)
            return [made if total is None else total(s, args[-1], made)]

        return self.b.generic(places, [out], parallel, len(self.loops) - parallel, whole)[0]

    def scalar(self, s: Scalars, part: Typed, values: Mapping[Read, SSAValue]) -> SSAValue:
        """A part of an expression in a body, of the elements that are read there."""
        source = part.source
        if part.kind == "number":
            assert isinstance(source, Number)
            return s.constant(source.value, element_type(part.dtype))
        if part.kind == "index":
            assert isinstance(source, Name)
            number = next(n for n, loop in enumerate(self.loops) if loop.name == source.name)
            found = s(arith.IndexCastOp(s(linalg.IndexOp(number)), i64))
            low = self.loops[number].low
            return s(arith.AddiOp(found, s.constant(low, i64))) if low else found
        if part.kind == "read":
            assert isinstance(source, Read)
            return values[source]
        return applied(s, part, [self.scalar(s, a, values) for a in part.arguments])


def _used(read: Read, picked: Sequence[int]) -> set[str]:
    """Indices that those of some dimensions of a read hang on."""
    return {n for d in picked for n in names_of(read.indices[d])}


RULES: dict[type[GraphOp], Rule] = {graph.ExpressionOp: _expression}
