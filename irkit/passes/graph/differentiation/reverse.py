"""Reverse mode: ops in their order, then from the last to the first what each does to cotangents.

What a value is read by adds to its cotangent, in the order in which they are met. A loop runs again from its
last round to its first: going forward, it stacks what it carries, and each round back computes anew, from
what that round began with, what its own rules read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.scf import ForOp, YieldOp
from xdsl.dialects.tensor import ExtractSliceOp, InsertSliceOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.composition import Ops
from irkit.dialects.graph.gradients import Composed, has_gradient, rule_of
from irkit.dialects.graph.gradients.rule import Maybe, made_good, total, zeros
from irkit.dialects.program.views import trips_of
from irkit.dialects.properties import attribute
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.errors import UnsupportedError
from irkit.passes.graph.differentiation.slices import pull_slice
from irkit.passes.graph.differentiation.tape import Tape


@dataclass(frozen=True)
class _Kept:
    """A loop that has been run: its source, what stands for values there, and the stacks of what it
    carried."""

    source: ForOp
    known: Mapping[SSAValue, SSAValue]
    rounds: range
    stacks: Sequence[SSAValue]


class Reverse:
    """Copies ops to `tape`'s block and remembers them; `pull` then propagates cotangents. `known`: values of
    the source as those of what is made; `varied`: values of what is made that hang on what is
    differentiated."""

    def __init__(
        self, tape: Tape, known: Mapping[SSAValue, SSAValue], varied: Iterable[SSAValue]
    ) -> None:
        self.tape = tape
        self.known = dict(known)
        self.varied = set(varied)
        self._steps: list[Operation] = []
        self._loops: dict[Operation, _Kept] = {}

    # Forward

    def block(self, source: Block) -> Operation:
        """All ops of a block but its terminator, which is given back."""
        for op in source.ops:
            if op.has_trait(IsTerminator):
                return op
            self.tape.like = op
            self._copy(op)
        raise AssertionError("a block without terminator")

    def _copy(self, op: Operation) -> None:
        if isinstance(op, ForOp):
            made = self._loop(op)
        elif isinstance(op, GraphOp):
            operands = [self.known[v] for v in op.operands]
            made = self._graph(type(op), operands, op.properties, op)
        else:
            made = self._step(op.clone(self.known)).results
        for old, new in zip(op.results, made, strict=True):
            new.name_hint = new.name_hint or old.name_hint
            self.known[old] = new

    def _step(self, op: Operation) -> Operation:
        """Append an op and remember it, if cotangents may come through it."""
        self.tape.add(op)
        if any(v in self.varied for v in op.operands):
            moved = [v for v in op.results if _is_moving(v)]
            self.varied.update(moved)
            if moved:
                self._steps.append(op)
        return op

    def _make(self, op: type[GraphOp], *operands: SSAValue, **props: Any) -> Sequence[SSAValue]:
        made = {k: attribute(v) for k, v in props.items()}
        return self._graph(op, operands, made, None)

    def _graph(
        self,
        kind: type[GraphOp],
        operands: Sequence[SSAValue],
        props: Mapping[str, Any],
        like: GraphOp | None,
    ) -> Sequence[SSAValue]:
        """Append an op; of a composition that is differentiated its parts."""
        made = kind.make(operands, props)
        if like is not None:
            made.attributes.update(like.attributes)
        if any(v in self.varied for v in operands) and any(map(has_gradient, made.results)):
            rule = rule_of(made)
            if isinstance(rule, Composed):
                return rule.expand(Ops(self._make, self.tape.constant), made)
        return self._step(made).results

    def _loop(self, op: ForOp) -> Sequence[SSAValue]:
        """A loop that stacks what it carries, one row a round."""
        starts = [self.known[v] for v in op.iter_args]
        if not self.varied & {*starts, *_captured(op, self.known)}:
            return self.tape.add(op.clone(self.known)).results
        rounds = trips_of(op)
        if not len(rounds):
            return starts
        tape = self.tape
        stacks = [_stack(tape, len(rounds), v) for v in starts]
        variable, *carried = op.body.block.args
        block = Block(arg_types=[variable.type, *(v.type for v in (*starts, *stacks))])
        inside = Tape(block, tape.weights)
        own, rows = block.args[1 : 1 + len(starts)], block.args[1 + len(starts) :]
        filled = [
            inside.with_row(stack, block.args[0], value)
            for stack, value in zip(rows, own, strict=True)
        ]
        known = {**self.known, variable: counted(inside, block.args[0], rounds)}
        known.update(zip(carried, own, strict=True))
        for inner_op in op.body.block.ops:
            if inner_op.has_trait(IsTerminator):
                inside.add(YieldOp(*(known[v] for v in inner_op.operands), *filled))
                break
            copy = inside.add(inner_op.clone(known))
            known.update(zip(inner_op.results, copy.results, strict=True))
        first, end, one = (tape.index(n) for n in (0, len(rounds), 1))
        made = tape.add(ForOp(first, end, one, [*starts, *stacks], Region(block)))
        results = made.results[: len(starts)]
        self.varied.update(v for v in results if has_gradient(v))
        self._steps.append(made)
        left = made.results[len(starts) :]
        self._loops[made] = _Kept(op, dict(self.known), rounds, left)
        return results

    # Backward

    def pull(self, cotangents: Mapping[SSAValue, SSAValue]) -> dict[SSAValue, SSAValue]:
        """Cotangents of values that no step made, of those of others. Raises UnsupportedError for an op
        without a rule."""
        found = dict(cotangents)
        for op in reversed(self._steps):
            outer = [found.pop(v, None) for v in op.results]
            if all(c is None for c in outer):
                continue
            self.tape.like = op
            for value, cotangent in self._pulled(op, outer):
                if cotangent is not None:
                    added = total(self.tape.ops, found.get(value), cotangent)
                    assert added is not None
                    found[value] = added
        return found

    def _pulled(
        self, op: Operation, cotangents: Sequence[Maybe]
    ) -> Iterable[tuple[SSAValue, Maybe]]:
        wanted = [v in self.varied for v in op.operands]
        if isinstance(op, ForOp):
            return self._pulled_loop(op, cotangents)
        if isinstance(op, GraphOp):
            pulled = rule_of(op).vjp(self.tape.ops, op, cotangents, wanted)
        elif isinstance(op, ExtractSliceOp | InsertSliceOp):
            (cotangent,) = cotangents
            assert cotangent is not None
            pulled = pull_slice(self.tape, op, cotangent, wanted)
        else:
            raise UnsupportedError(f"'{op.name}' is not differentiable: there is no rule for it")
        return zip(op.operands, pulled, strict=True)

    def _pulled_loop(
        self, op: ForOp, cotangents: Sequence[Maybe]
    ) -> Iterable[tuple[SSAValue, Maybe]]:
        kept, tape = self._loops[op], self.tape
        starts = list(op.iter_args)[: len(kept.stacks)]
        moving = [n for n, v in enumerate(starts) if has_gradient(v)]
        captured = [v for v in _captured(kept.source, kept.known) if v in self.varied]
        seeds = [made_good(tape.ops, cotangents[n], starts[n]) for n in moving]
        sums = [zeros(tape.ops, v) for v in captured]
        block = Block(arg_types=[op.body.block.args[0].type, *(v.type for v in (*seeds, *sums))])
        back = _Back(self, kept, captured, moving)
        back.fill(block)
        first, end, one = (tape.index(n) for n in (0, len(kept.rounds), 1))
        made = tape.add(ForOp(first, end, one, [*seeds, *sums], Region(block)))
        targets = [*(starts[n] for n in moving), *captured]
        return [
            (value, result if value in self.varied else None)
            for value, result in zip(targets, made.results, strict=True)
        ]


@dataclass(frozen=True)
class _Back:
    """The body of a loop's way back."""

    outer: Reverse
    kept: _Kept
    captured: Sequence[SSAValue]
    moving: Sequence[int]

    def fill(self, block: Block) -> None:
        """One round: what it began with is taken from the stacks, and its ops are run again."""
        kept, tape = self.kept, Tape(block, self.outer.tape.weights)
        count = len(self.moving)
        seeds, sums = block.args[1 : 1 + count], block.args[1 + count :]
        last = tape.index(len(kept.rounds) - 1)
        number = tape.add(arith.SubiOp(last, block.args[0])).results[0]
        variable, *carried = kept.source.body.block.args
        begun = [tape.row(stack, number) for stack in kept.stacks]
        known = {**kept.known, variable: counted(tape, number, kept.rounds)}
        known.update(zip(carried, begun, strict=True))
        varied = {*self.captured, *(begun[n] for n in self.moving)}
        inside = Reverse(tape, known, varied)
        end = inside.block(kept.source.body.block)
        given: dict[SSAValue, SSAValue] = {}
        for n, seed in zip(self.moving, seeds, strict=True):
            value = inside.known[end.operands[n]]
            added = total(tape.ops, given.get(value), seed)
            assert added is not None
            given[value] = added
        found = inside.pull(given)
        left = [made_good(tape.ops, found.get(begun[n]), begun[n]) for n in self.moving]
        added = [
            total(tape.ops, accumulated, found.get(value))
            for accumulated, value in zip(sums, self.captured, strict=True)
        ]
        tape.add(YieldOp(*left, *(v for v in added if v is not None)))


def counted(tape: Tape, number: SSAValue, rounds: range) -> SSAValue:
    """The loop's variable in round `number`."""
    if rounds.step != 1:
        number = tape.add(arith.MuliOp(number, tape.index(rounds.step))).results[0]
    if rounds.start != 0:
        number = tape.add(arith.AddiOp(number, tape.index(rounds.start))).results[0]
    return number


def _captured(op: ForOp, known: Mapping[SSAValue, SSAValue]) -> list[SSAValue]:
    """Values from outside that the ops in a loop read, in order."""
    read = (v for o in op.walk() if o is not op for v in o.operands)
    return list(dict.fromkeys(known[v] for v in read if v in known))


def _stack(tape: Tape, rounds: int, value: SSAValue) -> SSAValue:
    t = tensor_type(value)
    zero = tape.constant(np.zeros((), numpy_dtype(t.element_type)))
    return tape.ops.expand(zero, [rounds, *t.get_shape()])


def _is_moving(value: SSAValue) -> bool:
    """Whether a value is a tensor of floats: indices and integers carry no cotangents."""
    return hasattr(value.type, "get_shape") and has_gradient(value)
