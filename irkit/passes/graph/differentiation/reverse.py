"""Reverse mode: ops in their order, then from the last to the first what each does to cotangents.

What a value is read by adds to its cotangent, in the order in which they are met. Of a part of an array it
is added there. A loop runs again from its last round to its first (`loops.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from xdsl.dialects.scf import ForOp, WhileOp
from xdsl.dialects.tensor import ExtractSliceOp, InsertSliceOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.composition import Ops
from irkit.dialects.graph.gradients import Composed, has_gradient, rule_of
from irkit.dialects.graph.gradients.rule import Maybe, total
from irkit.dialects.program.views import trips_of
from irkit.dialects.properties import attribute
from irkit.errors import UnsupportedError
from irkit.passes.graph.differentiation.asking import Once, check_once, pulled_once
from irkit.passes.graph.differentiation.loops import Run, captured_by, pulled, run
from irkit.passes.graph.differentiation.slices import add_slice, pull_slice
from irkit.passes.graph.differentiation.tape import Tape


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
        self.keep: Callable[[Operation, Operation | None], SSAValue] | None = None
        """What stands for what an op gives, made of one of the source: in loops, what was kept of it."""
        self.leave: Callable[[SSAValue, SSAValue], bool] | None = None
        """Whether a term of a value's cotangent is taken care of: in loops, of sums over all rounds."""
        self._stand_for: dict[SSAValue, SSAValue] = {}
        self._steps: list[Operation] = []
        self._loops: dict[Operation, Run] = {}
        self._once: dict[Operation, Once] = {}

    def inner(
        self, tape: Tape, known: Mapping[SSAValue, SSAValue], varied: Iterable[SSAValue]
    ) -> Reverse:
        """A walk of the same kind, of the body of a loop."""
        return Reverse(tape, known, varied)

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
        elif isinstance(op, WhileOp):
            made = self._loop_once(op)
        elif isinstance(op, GraphOp):
            operands = [self.known[v] for v in op.operands]
            made = self._graph(type(op), operands, op.properties, op)
        else:
            made = self._standing(self._step(op.clone(self.known)), op)
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
        return self._standing(self._step(made), like)

    def _standing(self, made: Operation, like: Operation | None) -> Sequence[SSAValue]:
        """What an op gives, or what stands for it."""
        if self.keep is None or len(made.results) != 1:
            return made.results
        (y,), given = made.results, self.keep(made, like)
        if given is not y and y in self.varied:
            self.varied.add(given)
            self._stand_for[y] = given
        return [given]

    def _loop(self, op: ForOp) -> Sequence[SSAValue]:
        """A loop that keeps what the way back reads."""
        starts = [self.known[v] for v in op.iter_args]
        if not self.varied & {*starts, *captured_by(op, self.known)}:
            return self.tape.add(op.clone(self.known)).results
        if not len(trips_of(op)):
            return starts
        made, kept = run(self, op)
        results = made.results[: len(starts)]
        self.varied.update(v for v in results if has_gradient(v))
        self._steps.append(made)
        self._loops[made] = kept
        return results

    def _loop_once(self, op: WhileOp) -> Sequence[SSAValue]:
        """A loop that asks. Raises UnsupportedError for one of several rounds that is differentiated: where
        they are bounded it is another one by now."""
        starts = [self.known[v] for v in op.arguments]
        moving = bool(self.varied & {*starts, *captured_by(op, self.known)})
        if moving:
            check_once(op, self.tape.weights)
        made = self.tape.add(op.clone(self.known))
        if moving:
            self.varied.update(v for v in made.results if _is_moving(v))
            self._steps.append(made)
            self._once[made] = Once(op, dict(self.known))
        return made.results

    # Backward

    def pull(self, cotangents: Mapping[SSAValue, SSAValue]) -> dict[SSAValue, SSAValue]:
        """Cotangents of values that no step made, of those of others. Raises UnsupportedError for an op
        without a rule."""
        found = dict(cotangents)
        for op in reversed(self._steps):
            outer = [found.pop(self._stand_for.get(v, v), None) for v in op.results]
            if all(c is None for c in outer):
                continue
            self.tape.like = op
            if isinstance(op, ExtractSliceOp) and op.source in found and outer[0] is not None:
                found[op.source] = add_slice(self.tape, op, outer[0], found[op.source])
                continue
            for value, cotangent in self._pulled(op, outer):
                if cotangent is None or (self.leave is not None and self.leave(value, cotangent)):
                    continue
                added = total(self.tape.ops, found.get(value), cotangent)
                assert added is not None
                found[value] = added
        return found

    def _pulled(
        self, op: Operation, cotangents: Sequence[Maybe]
    ) -> Iterable[tuple[SSAValue, Maybe]]:
        wanted = [v in self.varied for v in op.operands]
        if isinstance(op, ForOp):
            return pulled(self, op, self._loops[op], cotangents)
        if isinstance(op, WhileOp):
            return pulled_once(self, op, self._once[op], cotangents)
        if isinstance(op, GraphOp):
            given = rule_of(op).vjp(self.tape.ops, op, cotangents, wanted)
        elif isinstance(op, ExtractSliceOp | InsertSliceOp):
            (cotangent,) = cotangents
            assert cotangent is not None
            given = pull_slice(self.tape, op, cotangent, wanted)
        else:
            raise UnsupportedError(f"'{op.name}' is not differentiable: there is no rule for it")
        return zip(op.operands, given, strict=True)


def _is_moving(value: SSAValue) -> bool:
    """Whether a value is a tensor of floats: indices and integers carry no cotangents."""
    return hasattr(value.type, "get_shape") and has_gradient(value)
