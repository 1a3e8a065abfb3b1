"""Loops before they are differentiated in reverse mode: loops over chunks of their rounds, of which only what
a chunk begins with is kept.

The way back runs a chunk forward again, which then keeps a row for each round of that chunk alone, and back.
Of T rounds, chunks of about the square root of T need fewest rows: one for each chunk, and those of one chunk
(T. Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016). Every round is run once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Final

from xdsl.dialects import arith
from xdsl.dialects.builtin import UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp, YieldOp
from xdsl.dialects.tensor import ExtractSliceOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.loop_places import affine
from irkit.dialects.program.views import trips_of
from irkit.dialects.types import DYNAMIC, int_array, ints, tensor, tensor_type
from irkit.errors import UnsupportedError
from irkit.passes.graph.differentiation.tape import Tape
from irkit.weights import WeightStore

CHUNKED: Final = "irkit.chunked"
"""On a loop over chunks: what its rounds add to a sum does not wait for the last of them."""
FEWEST: Final = 16
"""Rounds of a loop that is cut; of fewer, what is kept is little more than what chunks would."""


def chunk_loops(function: FuncOp, weights: WeightStore) -> None:
    """Cut the loops of a function, but for those inside of others, into loops of chunks, in place."""
    for op in list(function.body.block.ops):
        if isinstance(op, ForOp) and len(trips_of(op)) >= FEWEST:
            _Chunks(op, weights).replace()


def join_slices(function: FuncOp) -> None:
    """Rows of rows of an array are rows of that, in place: a buffer has no part that is a buffer."""
    for op in list(function.walk()):
        if not isinstance(op, ExtractSliceOp) or not isinstance(
            outer := op.source.owner, ExtractSliceOp
        ):
            continue
        if not (_is_rows(op) and _is_rows(outer)):
            continue
        (_, *inside), (_, *places) = ints(op.static_offsets), ints(outer.static_offsets)
        first = arith.AddiOp(outer.offsets[0], op.offsets[0])
        Rewriter.insert_op(first, InsertPoint.before(op))
        sums = [a + b for a, b in zip(inside, places, strict=True)]
        made = _slice(outer.source, first.result, sums, ints(op.static_sizes))
        made.location = op.location
        Rewriter.replace_op(op, made)
        if not outer.result.uses:
            Rewriter.erase_op(outer)


def _is_rows(op: ExtractSliceOp) -> bool:
    """Whether a slice is of rows from a computed place on, and at known places in the other dimensions."""
    alone = len(op.offsets) == 1 and ints(op.static_offsets)[0] == DYNAMIC
    return alone and not op.sizes and set(ints(op.static_strides)) == {1}


class _Chunks:
    """A loop as one over chunks, and one of the rounds that are left over."""

    def __init__(self, op: ForOp, weights: WeightStore) -> None:
        self.op, self.rounds, self.weights = op, trips_of(op), weights
        self.length = isqrt(len(self.rounds) - 1) + 1

    def replace(self) -> None:
        """Put them in the loop's place."""
        tape = Tape(before := Block(), self.weights)
        tape.like = self.op
        whole = len(self.rounds) // self.length
        chunks = tape.add(self._chunks(tape, whole))
        last = chunks.results
        if rest := self.rounds[whole * self.length :]:
            first, end, step = (tape.index(n) for n in (rest.start, rest.stop, rest.step))
            body = self.op.body.clone()
            last = tape.add(ForOp(first, end, step, last, body)).results
        made = list(before.ops)
        for inner in made:
            inner.detach()
            Rewriter.insert_op(inner, InsertPoint.before(self.op))
        Rewriter.replace_op(self.op, [], last)

    def _chunks(self, outside: Tape, count: int) -> ForOp:
        """The loop over `count` whole chunks."""
        starts = list(self.op.iter_args)
        block = Block(arg_types=[self.op.body.block.args[0].type, *(v.type for v in starts)])
        tape = Tape(block, self.weights)
        tape.like = self.op
        number, *carried = block.args
        length, start, step = self.length, self.rounds.start, self.rounds.step
        begin = _sum(tape, number, length * step, tape.index(start))
        first, last, one = (tape.index(n) for n in (0, length, 1))
        inner = Block(arg_types=list(block.arg_types))
        self._rounds(tape, Tape(inner, self.weights), begin)
        rounds = tape.add(ForOp(first, last, one, carried, Region(inner)))
        tape.add(YieldOp(*rounds.results))
        first, last, one = (outside.index(n) for n in (0, count, 1))
        made = ForOp(first, last, one, starts, Region(block))
        made.attributes[CHUNKED] = UnitAttr()
        return made

    def _rounds(self, chunk: Tape, tape: Tape, begin: SSAValue) -> None:
        """The body, of the rounds of the chunk that begins at `begin`. Rows of an array from outside are
        those of a part of it, so that what is added to its gradient in a chunk is that part's."""
        body = self.op.body.block
        number, *own = tape.block.args
        tape.like = self.op
        variable, *carried = body.args
        known: dict[SSAValue, SSAValue] = dict(zip(carried, own, strict=True))
        known[variable] = _sum(tape, number, self.rounds.step, begin)
        parts: dict[tuple[SSAValue, tuple[int, ...], tuple[int, ...]], SSAValue] = {}
        for op in body.ops:
            tape.like = chunk.like = op
            turn = self._turn(op)
            if turn is None:
                known.update(zip(op.results, tape.add(op.clone(known)).results, strict=True))
                continue
            assert isinstance(op, ExtractSliceOp)
            (_, *places), sizes = ints(op.static_offsets), ints(op.static_sizes)
            back = min(turn.factor, 0) * (self.length - 1)
            key = (op.source, (turn.constant, turn.factor, *places), tuple(sizes))
            if key not in parts:
                start = chunk.index(turn.constant + back)
                first = _sum(chunk, chunk.block.args[0], turn.factor * self.length, start)
                rows = [self.length * sizes[0], *sizes[1:]]
                parts[key] = _rows(chunk, op.source, first, places, rows)
            first = _sum(tape, number, turn.factor, tape.index(-back))
            known[op.result] = _rows(tape, parts[key], first, [0] * len(places), sizes)

    def _turn(self, op: Operation) -> _Turn | None:
        """Where an op takes rows of an array from outside, the next ones in each round."""
        if not isinstance(op, ExtractSliceOp) or self.op.is_ancestor(_block_of(op.source)):
            return None
        if not _is_rows(op):
            return None
        try:
            place = affine(op.offsets[0])
        except UnsupportedError:
            return None
        factor = place.terms.get(self.op, 0)
        if len(place.terms) != 1 or abs(factor) != ints(op.static_sizes)[0]:
            return None
        return _Turn(place.constant, factor)


@dataclass(frozen=True)
class _Turn:
    """The first row of round n is `constant + factor * n`."""

    constant: int
    factor: int


def _block_of(value: SSAValue) -> Block:
    """Where a value is made."""
    owner = value.owner if isinstance(value.owner, Block) else value.owner.parent
    assert owner is not None
    return owner


def _sum(tape: Tape, number: SSAValue, step: int, begin: SSAValue) -> SSAValue:
    """`begin + number * step`, an index."""
    if step != 1:
        number = tape.add(arith.MuliOp(number, tape.index(step))).results[0]
    return tape.add(arith.AddiOp(begin, number)).results[0]


def _rows(
    tape: Tape, source: SSAValue, first: SSAValue, places: Sequence[int], sizes: Sequence[int]
) -> SSAValue:
    """A slice that begins at row `first`, and at `places` in the other dimensions."""
    return tape.add(_slice(source, first, places, sizes)).results[0]


def _slice(
    source: SSAValue, first: SSAValue, places: Sequence[int], sizes: Sequence[int]
) -> ExtractSliceOp:
    return ExtractSliceOp.build(
        operands=[source, [first], [], []],
        properties={
            "static_offsets": int_array([DYNAMIC, *places]),
            "static_sizes": int_array(list(sizes)),
            "static_strides": int_array([1] * len(sizes)),
        },
        result_types=[tensor(tensor_type(source).element_type, sizes)],
    )
