"""Terms x @ w of recurrent cells that wait for no state: which can be one product, and what they wait for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, tensor
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue

from irkit.dialects.constants import constant_array
from irkit.dialects.linalg_generic import (
    RowTerm,
    continues,
    is_contraction,
    loop_sizes,
    row_term,
)
from irkit.dialects.tensor_ops.interface import Kind
from irkit.dialects.tensor_ops.registry import kind_of
from irkit.dialects.types import DYNAMIC, Tensor, is_float, tensor_type
from irkit.dialects.views import Sum, view_of
from irkit.passes.tensor.rows import constant_row
from irkit.weights import Array, WeightStore


@dataclass(frozen=True)
class Part:
    """A box of `source` that has all of its last dimension: rows of a step."""

    source: SSAValue
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    """Both of the dimensions before the last."""

    @property
    def rows(self) -> int:
        """Rows of the box, in samples where the batch is open."""
        return math.prod(s for s in self.sizes if s != DYNAMIC)


@dataclass(frozen=True)
class InputTerm:
    """A contraction that begins a chain: a constant row, the same for all rows, plus x @ w."""

    op: linalg.GenericOp
    term: RowTerm
    weights: Array
    start: Array
    part: Part | None
    """What x is of another tensor; None where it is computed by itself."""

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for those that differ in x alone."""
        owner = self.term.w.owner
        w = owner.value if isinstance(owner, arith.ConstantOp) else id(self.term.w)
        t = tensor_type(self.op.results[0])
        return (w, t, self.start.tobytes(), str(self.op.attributes), tensor_type(self.term.x))


def term_of(op: linalg.GenericOp, weights: WeightStore) -> InputTerm | str:
    """`op` as a term of an input, or why it is none."""
    if not is_contraction(op) or (term := row_term(op)) is None:
        return "it is no sum of rows times rows"
    if not is_float(tensor_type(op.results[0]).element_type):
        return "it is no product of floats"
    if isinstance(term.x.owner, arith.ConstantOp):
        return "both of its operands are constant"
    array = constant_array(term.w, weights)
    if array is None:
        return "its weights are no constant"
    start = constant_row(op.outputs[0], weights)
    if start is None:
        return "it starts from what is not the same constant in all rows"
    return InputTerm(op, term, array, start, part_of(term.x))


def part_of(x: SSAValue) -> Part | None:
    """The rows×k matrix `x` as whole rows of another tensor, all in one dimension; None if it is none."""
    rows, k = tensor_type(x).get_shape()
    view = view_of(x)
    shape = tensor_type(view.source).get_shape()
    if not view.moved or len(shape) < 2 or isinstance(view.source.owner, arith.ConstantOp):
        return None
    *lead, last = view.index
    whole = Sum({1: 1}) if k != 1 else Sum()
    if shape[-1] != k or last != whole:
        return None
    down = Sum({0: 1}).factors
    along = [bool(s.factors) for s in lead]
    if any(s.factors not in ({}, down) for s in lead) or sum(along) != int(rows != 1):
        return None
    if any((n == DYNAMIC) != (a and rows == DYNAMIC) for n, a in zip(shape, along, strict=False)):
        return None
    sizes = tuple(rows if a else 1 for a in along)
    return Part(view.source, tuple(s.offset for s in lead), sizes)


class Chains:
    """How long the longest chain of heavy ops is, in multiply-adds that have to wait for one another."""

    def __init__(self, block: Block) -> None:
        self._ops = list(block.ops)
        self._own = {op: _terms(op) for op in self._ops}

    def through(self, terms: Sequence[InputTerm], hoisted: bool) -> int:
        """The longest chain through what is made of `terms`, as they are or as one product of all of them.

        The product's rows are computed side by side: it counts as one of the terms.
        """
        members: dict[Operation, InputTerm] = {t.op: t for t in terms}
        before: dict[SSAValue, int] = {}
        weight: dict[Operation, int] = {}
        for op in self._ops:
            ready = max((before.get(v, 0) for v in op.operands), default=0)
            if op in members and not hoisted:
                ready = max(before.get(v, 0) for v in _waits_for(members[op]))
            weight[op] = self._weight(op, members, hoisted)
            before |= dict.fromkeys(op.results, ready + weight[op])
        behind: dict[Operation, int] = {}
        for op in reversed(self._ops):
            users = (use.operation for r in op.results for use in r.uses)
            behind[op] = weight[op] + max((behind.get(u, 0) for u in users), default=0)
        tails = [tail_of(t.op) for t in terms]
        return max(before[op.results[0]] + behind[op] - weight[op] for op in tails)

    def _weight(self, op: Operation, members: dict[Operation, InputTerm], hoisted: bool) -> int:
        """Of a chain that is one launch, all is in its last op; one product is the first of its launches."""
        if op in members and hoisted:
            return self._own[op]
        if not isinstance(op, linalg.GenericOp) or kind_of(op) is not Kind.HEAVY:
            return self._own[op]
        if tail_of(op) is not op:
            return 0
        first = chain_start(op)
        apart = first in members and hoisted and first is not op
        return self._own[op] + sum(
            self._own[link] for link in _links(op) if not (apart and link is first)
        )


def _terms(op: Operation) -> int:
    """Multiply-adds of a heavy op, as if an open batch were one row; 0 of others."""
    if kind_of(op) is not Kind.HEAVY:
        return 0
    if not isinstance(op, linalg.GenericOp):
        return max(_elements(tensor_type(r)) for r in op.results)
    return math.prod(s for s in loop_sizes(op) if s != DYNAMIC)


def _elements(t: Tensor) -> int:
    return math.prod(s for s in t.get_shape() if s != DYNAMIC)


def tail_of(op: linalg.GenericOp) -> linalg.GenericOp:
    """The last of the contractions that go on accumulating where `op` does."""
    while True:
        users = [use.operation for use in op.results[0].uses]
        if len(users) != 1 or not isinstance(users[0], linalg.GenericOp):
            return op
        if not continues(op, users[0]):
            return op
        op = users[0]


def _links(op: linalg.GenericOp) -> list[linalg.GenericOp]:
    """The contractions before `op` in its chain."""
    found: list[linalg.GenericOp] = []
    while isinstance(before := op.outputs[0].owner, linalg.GenericOp) and continues(before, op):
        found.append(before)
        op = before
    return found


def chain_start(op: linalg.GenericOp) -> linalg.GenericOp:
    """The first of a chain of contractions."""
    return [op, *_links(op)][-1]


def _waits_for(term: InputTerm) -> list[SSAValue]:
    """What x and the other operands of a term wait for: of what is made piece by piece, what x has of it."""
    part = term.part
    if part is None or not isinstance(part.source.owner, tensor.ConcatOp):
        return list(term.op.operands)
    return _pieces(part.source.owner, part)


def _pieces(op: tensor.ConcatOp, part: Part) -> list[SSAValue]:
    """Operands of a concatenation that a part of it reads."""
    axis = op.dim.value.data
    if axis >= len(part.sizes) or part.sizes[axis] == DYNAMIC:
        return list(op.inputs)
    first, behind = part.offsets[axis], part.offsets[axis] + part.sizes[axis]
    found: list[SSAValue] = []
    at = 0
    for value in op.inputs:
        end = at + tensor_type(value).get_shape()[axis]
        if at < behind and first < end:
            found.append(value)
        at = end
    return found
