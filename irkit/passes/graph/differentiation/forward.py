"""Forward mode: each value that hangs on what is differentiated goes with its tangent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xdsl.dialects.scf import ForOp, WhileOp, YieldOp
from xdsl.dialects.tensor import ExtractSliceOp, InsertSliceOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import IsTerminator

from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.composition import Ops
from irkit.dialects.graph.gradients import Composed, has_gradient, rule_of
from irkit.dialects.graph.gradients.rule import Maybe, made_good
from irkit.dialects.loops import LoopOp, asked_of, body_of, is_loop, starts_of, while_op
from irkit.dialects.properties import attribute
from irkit.passes.graph.differentiation.slices import push_slice
from irkit.passes.graph.differentiation.tape import Tape


class Forward:
    """Copies ops to `tape`'s block, beside each what it does to tangents. `known`: values of the source as
    those of what is made; `tangents`: of values of what is made."""

    def __init__(
        self,
        tape: Tape,
        known: Mapping[SSAValue, SSAValue],
        tangents: Mapping[SSAValue, SSAValue],
    ) -> None:
        self.tape = tape
        self.known = dict(known)
        self.tangents = dict(tangents)

    def block(self, source: Block) -> Operation:
        """All ops of a block but its terminator, which is given back."""
        for op in source.ops:
            if op.has_trait(IsTerminator):
                return op
            self.tape.like = op
            self._copy(op)
        raise AssertionError("a block without terminator")

    def _copy(self, op: Operation) -> None:
        if is_loop(op):
            made = self._loop(op)
        elif isinstance(op, GraphOp):
            operands = [self.known[v] for v in op.operands]
            made = self._graph(type(op), operands, op.properties, op)
        else:
            copy = self.tape.add(op.clone(self.known))
            made = copy.results
            if isinstance(copy, ExtractSliceOp | InsertSliceOp):
                self._keep(made, push_slice(self.tape, copy, self._of(copy.operands)))
        for old, new in zip(op.results, made, strict=True):
            new.name_hint = new.name_hint or old.name_hint
            self.known[old] = new

    def _of(self, values: Sequence[SSAValue]) -> list[Maybe]:
        return [self.tangents.get(v) for v in values]

    def _keep(self, values: Sequence[SSAValue], tangents: Sequence[Maybe]) -> None:
        for value, tangent in zip(values, tangents, strict=True):
            if tangent is not None and has_gradient(value):
                self.tangents[value] = tangent

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
        """Append an op and what it does to tangents; of a composition its parts."""
        made = kind.make(operands, props)
        if like is not None:
            made.attributes.update(like.attributes)
        moving = any(t is not None for t in self._of(operands))
        if not moving or not any(map(has_gradient, made.results)):
            return self.tape.add(made).results
        rule = rule_of(made)
        if isinstance(rule, Composed):
            return rule.expand(Ops(self._make, self.tape.constant), made)
        self.tape.add(made)
        self._keep(made.results, rule.jvp(self.tape.ops, made, self._of(operands)))
        return made.results

    def _loop(self, op: LoopOp) -> Sequence[SSAValue]:
        """A loop that carries tangents beside what it carries."""
        starts = [self.known[v] for v in starts_of(op)]
        moving = [n for n, v in enumerate(starts) if has_gradient(v)]
        tangents = [
            made_good(self.tape.ops, self.tangents.get(starts[n]), starts[n]) for n in moving
        ]
        source = body_of(op)
        counter = [v.type for v in source.args[: len(source.args) - len(starts)]]
        block = Block(arg_types=[*counter, *(v.type for v in (*starts, *tangents))])
        inside = Tape(block, self.tape.weights)
        own = block.args[len(counter) : len(source.args)]
        given = {**self.known, **dict(zip(source.args, block.args, strict=False))}
        changed = block.args[len(source.args) :]
        moved = {own[n]: t for n, t in zip(moving, changed, strict=True)}
        body = Forward(inside, given, {**self.tangents, **moved})
        end = body.block(source)
        left = [body.known[v] for v in end.operands]
        changes = [made_good(inside.ops, body.tangents.get(left[n]), left[n]) for n in moving]
        inside.add(YieldOp(*left, *changes))
        made = self.tape.add(self._over(op, [*starts, *tangents], block))
        results = made.results[: len(starts)]
        for n, tangent in zip(moving, made.results[len(starts) :], strict=True):
            self.tangents[results[n]] = tangent
        return results

    def _over(self, op: LoopOp, starts: Sequence[SSAValue], body: Block) -> Operation:
        """A loop of the kind of another."""
        if isinstance(op, WhileOp):
            return while_op(starts, asked_of(op), body)
        low, high, step = (self.known[v] for v in (op.lb, op.ub, op.step))
        return ForOp(low, high, step, list(starts), Region(body))
