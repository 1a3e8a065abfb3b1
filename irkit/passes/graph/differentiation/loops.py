"""Reverse mode of a loop, which is a loop again: from its last round to its first.

Going forward a loop keeps, a row for each round, what a round begins with, what its products give and what
it reads of arrays that it writes; a round back computes anew, from those, what else its rules read. What no
rule reads is not kept (it is dropped behind the walk, `drop_dead_values`). Sums over all rounds of products,
or of sums of rows, that no round reads, such as gradients of weights, leave the loop: their factors are kept,
and behind the loop is one product of all rounds. Of ops that are in a segment nothing is kept, nor for such
sums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.scf import ForOp, YieldOp
from xdsl.dialects.tensor import ExtractSliceOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.gradients import has_gradient, rule_of
from irkit.dialects.graph.gradients.linear import product
from irkit.dialects.graph.gradients.rule import Composed, Linear, Maybe, made_good, total, zeros
from irkit.dialects.loops import LoopOp
from irkit.dialects.program.views import trips_of
from irkit.dialects.segments import segment_of
from irkit.dialects.types import ints, numpy_dtype, tensor_type
from irkit.passes.graph.differentiation.chunks import CHUNKED
from irkit.passes.graph.differentiation.tape import Tape

if TYPE_CHECKING:
    from irkit.passes.graph.differentiation.reverse import Reverse

KEPT: Final = 8
"""What a product gives is kept that has at most so many elements for each that the loop carries."""
PART: Final = 2
"""A part of an array is kept that has at most one in so many of its elements."""
STACKED: Final = 1 << 30
"""Bytes that factors of a sum over all rounds may have at most; else each round adds to the sum."""


@dataclass(frozen=True)
class Run:
    """A loop that has been run: its source, what stands for values there, its rounds, and the stacks of what
    rounds began with and of what their products gave."""

    source: ForOp
    known: Mapping[SSAValue, SSAValue]
    rounds: range
    begun: Sequence[SSAValue]
    products: Sequence[SSAValue]


def run(walk: Reverse, op: ForOp) -> tuple[ForOp, Run]:
    """Append a loop that keeps what the way back may read, behind what it gives."""
    tape, rounds = walk.tape, trips_of(op)
    starts = [walk.known[v] for v in op.iter_args]
    variable, *carried = op.body.block.args
    stacks = [_stack(tape, len(rounds), v) for v in starts]
    block = Block(arg_types=[variable.type, *(v.type for v in (*starts, *stacks))])
    inside = Tape(block, tape.weights)
    own, rows = block.args[1 : 1 + len(starts)], block.args[1 + len(starts) :]
    number = block.args[0]
    filled = [inside.with_row(s, number, v) for s, v in zip(rows, own, strict=True)]
    known = {**walk.known, variable: counted(inside, number, rounds)}
    known.update(zip(carried, own, strict=True))
    products: list[SSAValue] = []
    body = walk.inner(inside, known, [*_varied(walk, op), *filter(has_gradient, own)])

    chosen = Kept.of(op.body.block, starts)

    def keep(made: Operation, like: Operation | None) -> SSAValue:
        (y,) = made.results
        if chosen.has(made, like):
            products.append(y)
        return y

    body.keep = keep
    end = body.block(op.body.block)
    left = [body.known[v] for v in end.operands]
    for value in products:
        stacks.append(_stack(tape, len(rounds), value))
        row = block.insert_arg(stacks[-1].type, len(block.args))
        filled.append(inside.with_row(row, number, value))
    inside.add(YieldOp(*left, *filled))
    first, last, one = (tape.index(n) for n in (0, len(rounds), 1))
    made = ForOp(first, last, one, [*starts, *stacks], Region(block))
    tape.add(made)
    kept = made.results[len(starts) :]
    count = len(starts)
    return made, Run(op, dict(walk.known), rounds, kept[:count], kept[count:])


@dataclass(frozen=True)
class Kept:
    """Which values the way back takes from stacks: what products give, with what is added to that, where it
    has at most `most` elements, and `parts` of arrays that the loop makes or hands on, all of which need then
    not be kept. `sums`: the ops that make the former; of products that nothing is added to they are
    themselves."""

    sums: set[Operation]
    inner: set[Operation]
    parts: set[Operation]
    most: int

    @staticmethod
    def of(body: Block, carried: Sequence[SSAValue]) -> Kept:
        """In a loop that carries such values."""
        sums, inner, parts = set[Operation](), set[Operation](), set[Operation]()
        for op in body.ops:
            if segment_of(op.location) is not None:
                continue
            if isinstance(op, ExtractSliceOp) and _is_own(op.source, body):
                part, whole = (prod(tensor_type(v).get_shape()) for v in (op.result, op.source))
                if PART * part <= whole:
                    parts.add(op)
            elif isinstance(op, GraphOp) and op.CONTRACTS:
                chain = _with_added(op)
                inner.update(chain)
                sums.add(chain[-1])
        return Kept(
            sums, inner, parts, KEPT * sum(prod(tensor_type(v).get_shape()) for v in carried)
        )

    def has(self, made: Operation, like: Operation | None) -> bool:
        """Whether what an op gives is kept, which was made of one of the body, or is a part of one."""
        if segment_of(made.location) is not None:
            return False
        if isinstance(like, ExtractSliceOp):
            return like in self.parts and has_gradient(made.results[0])
        if not isinstance(made, GraphOp) or len(made.results) != 1:
            return False
        (y,) = made.results
        if prod(tensor_type(y).get_shape()) > self.most or not has_gradient(y):
            return False
        if like in self.inner:
            return like in self.sums and not isinstance(rule_of(made), Composed)
        return made.CONTRACTS and isinstance(rule_of(made), Linear)


def _with_added(op: GraphOp) -> list[GraphOp]:
    """A product, and the sums, one after another, that alone read it."""
    found = [op]
    while len(uses := list(found[-1].results[0].uses)) == 1:
        added = uses[0].operation
        if not isinstance(added, graph.AddOp) or added.parent is not op.parent:
            break
        if added.results[0].type != op.results[0].type:
            break
        found.append(added)
    return found


def _is_own(value: SSAValue, body: Block) -> bool:
    """Whether a loop makes a value, or hands it on."""
    owner = value.owner
    return (owner if isinstance(owner, Block) else owner.parent) is body


def _varied(walk: Reverse, op: ForOp) -> list[SSAValue]:
    return [v for v in captured_by(op, walk.known) if v in walk.varied]


def captured_by(op: LoopOp, known: Mapping[SSAValue, SSAValue]) -> list[SSAValue]:
    """Values from outside that the ops in a loop read, in order."""
    read = (v for o in op.walk() if o is not op for v in o.operands)
    return list(dict.fromkeys(known[v] for v in read if v in known))


def pulled(
    walk: Reverse, made: ForOp, kept: Run, cotangents: Sequence[Maybe]
) -> list[tuple[SSAValue, Maybe]]:
    """Cotangents of what a loop starts from and of what it reads from outside, of those of its results."""
    starts = list(made.iter_args)[: len(kept.begun)]
    captured = _varied(walk, kept.source)
    live = [n for n, v in enumerate(starts) if has_gradient(v) and cotangents[n] is not None]
    while True:
        # A cotangent that is zero behind the loop may be none in it.
        back = Back(walk, kept, captured, live)
        grown = back.fill(starts)
        if grown == live:
            break
        back.block.erase(safe_erase=False)
        live = grown
    seeds = [made_good(walk.tape.ops, cotangents[n], starts[n]) for n in live]
    return back.emit(starts, seeds)


@dataclass(frozen=True)
class Leaving:
    """What a round adds to a sum that is taken behind the loop: what an op gives, as `shaped` by others."""

    op: GraphOp
    shaped: Sequence[GraphOp]


@dataclass
class Back:
    """A loop's way back. `live`: which of the carried values have a cotangent."""

    outer: Reverse
    kept: Run
    captured: Sequence[SSAValue]
    live: Sequence[int]
    block: Block = field(init=False)
    rows: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Rows of stacks that were kept going forward, and these stacks."""
    stacked: dict[SSAValue, BlockArgument] = field(default_factory=dict[SSAValue, BlockArgument])
    """Other factors of sums that leave, and what they are kept in."""
    leaving: dict[SSAValue, list[Leaving]] = field(default_factory=dict[SSAValue, list[Leaving]])
    sums: dict[SSAValue, BlockArgument] = field(default_factory=dict[SSAValue, BlockArgument])

    def fill(self, starts: Sequence[SSAValue]) -> list[int]:
        """One round: what it began with is taken from the stacks, and its ops are run again. Which of the
        carried values have a cotangent before it."""
        kept = self.kept
        begun_types = [starts[n].type for n in self.live]
        index = kept.source.body.block.args[0].type
        self.block = Block(arg_types=[index, *begun_types, *(v.type for v in self.captured)])
        tape = self.tape = Tape(self.block, self.outer.tape.weights)
        count = len(self.live)
        seeds = self.block.args[1 : 1 + count]
        self.sums = dict(zip(self.captured, self.block.args[1 + count :], strict=True))
        last = tape.index(len(kept.rounds) - 1)
        self.number = tape.add(arith.SubiOp(last, self.block.args[0])).results[0]
        variable, *carried = kept.source.body.block.args
        begun = [self._row(stack) for stack in kept.begun]
        known = {**kept.known, variable: counted(tape, self.number, kept.rounds)}
        known.update(zip(carried, begun, strict=True))
        inside = self.outer.inner(tape, known, [*self.captured, *filter(has_gradient, begun)])
        products = iter(kept.products)
        chosen = Kept.of(kept.source.body.block, begun)

        def keep(made: Operation, like: Operation | None) -> SSAValue:
            return self._row(next(products)) if chosen.has(made, like) else made.results[0]

        inside.keep = keep
        end = inside.block(kept.source.body.block)
        given: dict[SSAValue, SSAValue] = dict(self.sums)
        for n, seed in zip(self.live, seeds, strict=True):
            value = inside.known[end.operands[n]]
            added = total(tape.ops, given.get(value), seed)
            assert added is not None
            given[value] = added
        inside.leave = self._leave
        found = inside.pull(given)
        self.left = [found.get(v) for v in begun]
        self.added = [found[v] for v in self.captured]
        self.begun = begun
        return [n for n, v in enumerate(self.left) if v is not None or n in self.live]

    def emit(
        self, starts: Sequence[SSAValue], seeds: Sequence[SSAValue]
    ) -> list[tuple[SSAValue, Maybe]]:
        """Append the loop, and what leaves it."""
        tape, outer, rounds = self.tape, self.outer.tape, len(self.kept.rounds)
        left = [made_good(tape.ops, self.left[n], self.begun[n]) for n in self.live]
        filled = [
            self._stacked(v)
            for parts in self.leaving.values()
            for p in parts
            for v in p.op.operands
        ]
        filled = [v for v in dict.fromkeys(filled) if v is not None]
        rows = [tape.with_row(self.stacked[v], self.number, v) for v in filled]
        tape.add(YieldOp(*left, *self.added, *rows))
        begun = [*seeds, *(zeros(outer.ops, v) for v in self.captured)]
        begun += [_stack(outer, rounds, v) for v in filled]
        first, end, one = (outer.index(n) for n in (0, rounds, 1))
        made = outer.add(ForOp(first, end, one, begun, Region(self.block)))
        count = len(self.live)
        stacks = {
            **self.rows,
            **dict(zip(filled, made.results[count + len(self.captured) :], strict=True)),
        }
        found: list[tuple[SSAValue, Maybe]] = [
            (starts[n], v) for n, v in zip(self.live, made.results[:count], strict=True)
        ]
        for value, last, result in zip(
            self.captured, self.added, made.results[count:], strict=False
        ):
            changed: Maybe = None if last is self.sums[value] else result
            for part in self.leaving.get(value, ()):
                outer.like = part.op
                changed = total(outer.ops, changed, summed(outer, part, stacks, rounds))
            found.append((value, changed))
        varied = self.outer.varied
        return [(value, made if value in varied else None) for value, made in found]

    def _row(self, stack: SSAValue) -> SSAValue:
        value = self.tape.row(stack, self.number)
        self.rows[value] = stack
        return value

    def _stacked(self, value: SSAValue) -> SSAValue | None:
        """A factor that is kept for what leaves, which is none of those that were kept going forward."""
        if value in self.rows:
            return None
        if value not in self.stacked:
            t = tensor_type(value)
            kind = type(t)(t.element_type, [len(self.kept.rounds), *t.get_shape()])
            self.stacked[value] = self.block.insert_arg(kind, len(self.block.args))
        return value

    def _leave(self, value: SSAValue, term: SSAValue) -> bool:
        """Whether a term of the cotangent of a value from outside is summed up behind the loop."""
        if value not in self.sums or CHUNKED in self.kept.source.attributes:
            return False
        shaped: list[GraphOp] = []
        while isinstance(op := term.owner, graph.ReshapeOp | graph.TransposeOp):
            shaped.insert(0, op)
            term = op.operands[0]
        if not isinstance(op, GraphOp) or op.parent is not self.block or not sums_rows(op):
            return False
        if segment_of(op.location) is not None:
            return False
        factors = [v for v in op.operands if v not in self.rows]
        if any(not _is_own(v, self.block) for v in factors):
            return False
        elements = sum(prod(tensor_type(v).get_shape()) for v in factors)
        size = numpy_dtype(tensor_type(term).element_type).itemsize
        if elements * size * len(self.kept.rounds) > STACKED:
            return False
        self.leaving.setdefault(value, []).append(Leaving(op, shaped))
        return True


def sums_rows(op: GraphOp) -> bool:
    """Whether the sum over rounds of what an op gives is one op of the stacks of its operands."""
    if isinstance(op, graph.ReduceOp):
        return op.kind.data == "sum"
    if isinstance(op, graph.GemmOp):
        return op.c is None
    return isinstance(op, graph.MatmulOp) and all(
        len(tensor_type(v).get_shape()) == 2 for v in op.operands
    )


def summed(tape: Tape, part: Leaving, stacks: Mapping[SSAValue, SSAValue], rounds: int) -> SSAValue:
    """The sum over all rounds, of stacks of one row a round."""
    o, op = tape.ops, part.op
    if isinstance(op, graph.ReduceOp):
        axes = [0, *(d + 1 for d in ints(op.axes))]
        y = o.reshape(o.reduce(stacks[op.x], "sum", axes), o.shape(op.results[0]))
    else:
        turned = (False, False)
        alpha = 1.0
        if isinstance(op, graph.GemmOp):
            turned = (bool(op.trans_a.value.data), bool(op.trans_b.value.data))
            alpha = op.alpha.value.data
        a = _beside(tape, stacks[op.operands[0]], rounds, below=turned[0])
        b = _beside(tape, stacks[op.operands[1]], rounds, below=not turned[1])
        y = product(o, a, b, *turned, alpha)
    for shape in part.shaped:
        y = o(type(shape), y, **shape.properties)
    return y


def _beside(tape: Tape, stack: SSAValue, rounds: int, *, below: bool) -> SSAValue:
    """Matrices of all rounds below one another, or side by side."""
    o = tape.ops
    _, rows, columns = o.shape(stack)
    if below:
        return o.reshape(stack, [rounds * rows, columns])
    return o.reshape(o.transpose(stack, [1, 0, 2]), [rows, rounds * columns])


def counted(tape: Tape, number: SSAValue, rounds: range) -> SSAValue:
    """The loop's variable in round `number`."""
    if rounds.step != 1:
        number = tape.add(arith.MuliOp(number, tape.index(rounds.step))).results[0]
    if rounds.start != 0:
        number = tape.add(arith.AddiOp(number, tape.index(rounds.start))).results[0]
    return number


def _stack(tape: Tape, rounds: int, value: SSAValue) -> SSAValue:
    t = tensor_type(value)
    zero = tape.constant(np.zeros((), numpy_dtype(t.element_type)))
    return tape.ops.expand(zero, [rounds, *t.get_shape()])
