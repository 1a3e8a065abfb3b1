"""`join-product-sums`: sums of products over rows as one product over all of their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, f32, f64, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from irkit.dialects import graph
from irkit.dialects.precision import inherit, precision_of
from irkit.dialects.types import DYNAMIC, int_array, ints, tensor_type
from irkit.passes.gpu import gpu_of
from irkit.rewriting import Rule, rewrite

LEAST: Final = 4
"""Terms from which on one product is worth the rows that are put side by side for it."""


def terms_of(op: graph.AddOp) -> list[SSAValue]:
    """What a tree of additions of one type adds up, from left to right; each is read there alone."""
    return [*terms_from_right(op)][::-1]


def terms_from_right(op: graph.AddOp) -> Iterator[SSAValue]:
    """The same from right to left: of a sum as programs write it, which adds to what was added before, the
    first terms are found without going through all."""
    pending = [*op.operands]
    while pending:
        value = pending.pop()
        inner = value.owner
        alone = value.has_one_use() and value.type == op.results[0].type
        if isinstance(inner, graph.AddOp) and alone:
            pending += inner.operands
        else:
            yield value


def kind_of(term: SSAValue) -> tuple[object, ...] | None:
    """Terms of one kind are summed over the rows of their operands; None for what is no such sum."""
    op = term.owner
    if len(list(term.uses)) != 1 or tensor_type(term).element_type not in (f32, f64):
        return None
    if isinstance(op, graph.GemmOp):
        turned = op.trans_a.value.data and not op.trans_b.value.data
        whole = op.c is None and op.alpha.value.data == 1
        plain = turned and whole and _rows_known(op.a) and _rows_known(op.b)
        return ("gemm", precision_of(op)) if plain else None
    if isinstance(op, graph.ReduceOp):
        rows = op.kind.data == "sum" and ints(op.axes) == [0] and not op.keepdims.value.data
        return ("reduce",) if rows and _rows_known(op.x) else None
    return None


def _rows_known(value: SSAValue) -> bool:
    shape = tensor_type(value).get_shape()
    return len(shape) == 2 and DYNAMIC not in shape


@dataclass(frozen=True)
class Step:
    """Rows of a tensor: all that it has at one place of its first dimension."""

    source: SSAValue
    place: int


def step_of(value: SSAValue) -> Step | None:
    """`value` as a step of a tensor, reshaped to a matrix; None if it is none."""
    if not isinstance(value.owner, graph.ReshapeOp):
        return None
    part = value.owner.x.owner
    if not isinstance(part, graph.SliceOp):
        return None
    (place, *inner), whole = ints(part.offsets), tensor_type(part.x).get_shape()
    plain = not any(inner) and set(ints(part.strides)) == {1}
    rows = tensor_type(value).get_shape()
    if not plain or DYNAMIC in whole or ints(part.sizes) != [1, *whole[1:]] or rows != whole[1:]:
        return None
    return Step(part.x, place)


def steps_of(values: Sequence[SSAValue]) -> list[Step]:
    """All as steps of one tensor; empty if they are not."""
    found = [step for value in values if (step := step_of(value)) is not None]
    one = len(found) == len(values) and len({step.source for step in found}) == 1
    return found if one else []


class Orders:
    """In which order rows of terms lie below one another: values that several sums read in one order, so that
    they lie there once."""

    def __init__(self, module: ModuleOp) -> None:
        self.places = {op: n for n, op in enumerate(module.walk())}
        self.known: dict[frozenset[SSAValue], dict[SSAValue, int]] = {}

    def of(self, ops: Sequence[Operation]) -> list[Operation]:
        """Terms in order: by the steps that they read, so that these are read where they lie; else as another
        sum has them; else by what was there first."""
        sides = list(zip(*(op.operands for op in ops), strict=True))
        rank = self._rank(sides)
        order = sorted(range(len(ops)), key=rank.__getitem__)
        for side in sides:
            if len(set(side)) == len(side):
                ranks = {side[n]: place for place, n in enumerate(order)}
                self.known.setdefault(frozenset(side), ranks)
        return [ops[n] for n in order]

    def _rank(self, sides: Sequence[Sequence[SSAValue]]) -> list[int]:
        for side in sides:
            if steps := steps_of(side):
                return [step.place for step in steps]
        for side in sides:
            if found := self.known.get(frozenset(side)):
                return [found[value] for value in side]
        places = [[self._place(value) for value in side] for side in sides]
        return min(places, key=min)

    def _place(self, value: SSAValue) -> int:
        owner = value.owner
        return self.places.get(owner, -1) if isinstance(owner, Operation) else -1


@dataclass
class JoinProductSums(Rule):
    """aᵀb + cᵀd = [a; c]ᵀ [b; d], and sums of rows alike"""

    orders: Orders
    taken: Callable[[Sequence[SSAValue]], bool]
    """Which groups of terms are joined now: those that say in which order their rows lie come first."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.AddOp, rewriter: PatternRewriter, /):
        if self._goes_on(op):
            return self.no_match(op, "it is part of a larger sum")
        terms = terms_of(op)
        by_kind: dict[tuple[object, ...], list[SSAValue]] = {}
        for term in terms:
            kind = kind_of(term)
            if kind is not None and term.type == op.results[0].type:
                by_kind.setdefault(kind, []).append(term)
        found = [group for group in by_kind.values() if len(group) >= LEAST]
        if not found:
            return self.no_match(op, "it has fewer than {} products of one kind", LEAST)
        if not any(map(self.taken, found)):
            return self.no_match(op, "others come first")
        made = list[Operation]()
        joined = {id(term) for group in found for term in group}
        sums = [_joined(group, self.orders, made) for group in found]
        for term in (t for t in terms if id(t) not in joined):
            sums.append(term)
        total = sums[0]
        for more in sums[1:]:
            made.append(graph.AddOp.make([total, more], {}))
            total = made[-1].results[0]
        rewriter.replace(op, made, [total])

    def _goes_on(self, op: graph.AddOp) -> bool:
        (y,) = op.results
        users = [use.operation for use in y.uses]
        return (
            len(users) == 1
            and isinstance(users[0], graph.AddOp)
            and users[0].results[0].type == y.type
        )


def _joined(group: Sequence[SSAValue], orders: Orders, made: list[Operation]) -> SSAValue:
    """One op of the rows of all."""
    ops = orders.of([term.owner for term in group if isinstance(term.owner, Operation)])
    first = ops[0]
    assert isinstance(first, graph.GemmOp | graph.ReduceOp)
    sides = zip(*(op.operands for op in ops), strict=True)
    operands = [_beside(side, made) for side in sides]
    properties: dict[str, Attribute] = dict(first.properties)
    made.append(type(first).make(operands, properties))
    inherit(made[-1], first)
    return made[-1].results[0]


def _beside(values: Sequence[SSAValue], made: list[Operation]) -> SSAValue:
    """Rows of all, one below another; of all steps of a tensor that tensor."""
    steps = steps_of(values)
    if steps and [s.place for s in steps] == list(range(_shape(steps[0].source)[0])):
        rows, columns = _shape(values[0])
        shape = int_array([len(values) * rows, columns])
        made.append(graph.ReshapeOp.make([steps[0].source], {"shape": shape}))
    else:
        made.append(graph.ConcatOp.make(list(values), {"axis": IntegerAttr(0, i64)}))
    return made[-1].results[0]


def _reads_steps(group: Sequence[SSAValue]) -> bool:
    sides = zip(*(t.owner.operands for t in group if isinstance(t.owner, Operation)), strict=True)
    return any(map(steps_of, sides))


def _is_product(group: Sequence[SSAValue]) -> bool:
    return isinstance(group[0].owner, graph.GemmOp)


def _is_any(group: Sequence[SSAValue]) -> bool:
    return bool(group)


TURNS: Final = (_reads_steps, _is_product, _is_any)


def _shape(value: SSAValue) -> tuple[int, ...]:
    return tensor_type(value).get_shape()


@dataclass(frozen=True)
class JoinProductSumsPass(ModulePass):
    """Make of a sum of four products or more, each over the rows of its operands (`graph.gemm` whose first
    factor is transposed), one product over all of these rows; of sums of rows alike.

    Such is the gradient of a weight that every step of a recurrence reads: products of a step are small, and
    each takes vEUs from the recurrence, behind which they are one. What are all steps of one tensor, in
    whatever order, is that tensor. On a GPU only.

    Numeric risk: floats are added in another order. What is multiplied is kept until the last step.

    ```mlir
    %0 = graph.gemm %a, %b {trans_a = true, ...} : (tensor<64x8xf32>, tensor<64x4xf32>) -> tensor<8x4xf32>
    %1 = graph.gemm %c, %d {trans_a = true, ...} : (tensor<64x8xf32>, tensor<64x4xf32>) -> tensor<8x4xf32>
    %2 = graph.add %0, %1
    ```
    and so on becomes
    ```mlir
    %0 = graph.concat(%a, %c, ...) {axis = 0 : i64} : ... -> tensor<256x8xf32>
    %1 = graph.concat(%b, %d, ...) {axis = 0 : i64} : ... -> tensor<256x4xf32>
    %2 = graph.gemm %0, %1 {trans_a = true, ...} : (tensor<256x8xf32>, tensor<256x4xf32>) -> tensor<8x4xf32>
    ```
    """

    name = "join-product-sums"
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if gpu_of(self.device) is None:
            return
        orders = Orders(op)
        for taken in TURNS:
            rewrite(op, [JoinProductSums(orders, taken)])
