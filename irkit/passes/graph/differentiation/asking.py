"""Reverse mode of loops that go on as long as data say so.

The way back needs what each round began with, and so a number of rounds for which to keep that. Where the
loop's own test bounds it, by whole numbers that it counts, `bound_loops` makes a loop of so many rounds of
it, each of which runs the body once if the loop would have gone on, and else hands on what it has:

```mlir
scf.for %i = %c0 to %c20 step %c1 iter_args(%g = %go, %x = %a) {
  %r:3 = scf.while (%once = %g, %g0 = %g, %x0 = %x) { ... } do { ...; scf.yield %false, %next, %z }
  scf.yield %r#1, %r#2
}
```

What is not run is not differentiated either: nothing is multiplied by a cotangent of 0 that may be infinite.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.scf import ForOp, WhileOp, YieldOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import Rewriter

from irkit.dialects import graph
from irkit.dialects.constants import constant, constant_array
from irkit.dialects.graph.gradients import has_gradient
from irkit.dialects.graph.gradients.rule import Maybe, made_good, total
from irkit.dialects.loops import asked_of, body_of, carried_in, is_loop, while_op, yielded_by
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.errors import UnsupportedError
from irkit.passes.graph.differentiation.loops import captured_by
from irkit.passes.graph.differentiation.tape import Tape
from irkit.passes.program.splitting.demands import line_of
from irkit.weights import WeightStore

if TYPE_CHECKING:
    from irkit.passes.graph.differentiation.reverse import Reverse


# Bounds


def is_once(op: WhileOp, weights: WeightStore) -> bool:
    """Whether a loop has one round at most."""
    held = constant_array(yielded_by(op)[asked_of(op)], weights)
    return held is not None and not held.any()


def most_rounds(op: WhileOp, weights: WeightStore) -> int | None:
    """How many rounds a loop has at most, where its test says so: one of the conditions that must all hold
    compares with a constant what is counted, from a constant on, by a constant."""
    found = (
        _counted_to(op, compared, weights)
        for compared in _conjuncts(yielded_by(op)[asked_of(op)])
        if isinstance(compared, graph.CompareOp)
    )
    return min((n for n in found if n is not None), default=None)


def _conjuncts(value: SSAValue) -> Iterable[object]:
    """What makes the operands of `and`s."""
    if isinstance(value.owner, graph.AndOp):
        for operand in value.owner.operands:
            yield from _conjuncts(operand)
    else:
        yield value.owner


_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def _counted_to(op: WhileOp, compared: graph.CompareOp, weights: WeightStore) -> int | None:
    """After how many rounds a condition no longer holds; None where that is not known."""
    predicate = compared.predicate.data
    for value, limit, named in (
        (compared.lhs, compared.rhs, predicate),
        (compared.rhs, compared.lhs, _TURNED.get(predicate)),
    ):
        if named not in _TURNED or value not in (ended := list(yielded_by(op))):
            continue
        number = ended.index(value)
        start = _whole(op.arguments[number], weights)
        by = _step(carried_in(op)[number], value, weights)
        end = _whole(limit, weights)
        if start is not None and end is not None and by:
            return _rounds(start, end, by, named, numpy_dtype(tensor_type(value).element_type))
    return None


def _rounds(start: int, end: int, by: int, predicate: str, dtype: np.dtype[Any]) -> int | None:
    if (by > 0) is not (predicate in ("lt", "le")):
        return None
    reached = end + {"le": 1, "ge": -1}.get(predicate, 0)
    # The first round is asked for apart from the others.
    rounds = max(1, len(range(start, reached, by)))
    held, last = np.iinfo(dtype), start + rounds * by
    return rounds if held.min <= last <= held.max else None


def _step(before: SSAValue, after: SSAValue, weights: WeightStore) -> int | None:
    """What is added to a number in a round."""
    made = after.owner
    if isinstance(made, graph.AddOp):
        if made.lhs is before:
            return _whole(made.rhs, weights)
        return _whole(made.lhs, weights) if made.rhs is before else None
    if isinstance(made, graph.SubOp) and made.lhs is before:
        taken = _whole(made.rhs, weights)
        return None if taken is None else -taken
    return None


def _whole(value: SSAValue, weights: WeightStore) -> int | None:
    """A whole number that is a constant."""
    held = constant_array(value, weights)
    return int(held) if held is not None and held.shape == () and held.dtype.kind in "iu" else None


def bound_loops(block: Block, moved: Iterable[SSAValue], weights: WeightStore) -> None:
    """Loops of a block, and inside of them, that ask and hang on values, as loops of rounds that are counted,
    where they are bounded."""
    moving = set(moved)
    for op in list(block.ops):
        if not any(v in moving for inner in op.walk() for v in inner.operands):
            continue
        results: Sequence[SSAValue] = op.results
        if is_loop(op):
            inside = (a for a in carried_in(op) if _is_float(a))
            bound_loops(body_of(op), [*moving, *inside], weights)
            if isinstance(op, WhileOp) and not is_once(op, weights):
                results = _bounded(op, weights)
        moving.update(v for v in results if _is_float(v))


def _bounded(op: WhileOp, weights: WeightStore) -> Sequence[SSAValue]:
    """The results of what is put in the place of a loop, if that is bounded."""
    most = most_rounds(op, weights)
    if most is None:
        return op.results
    asked, body, before = asked_of(op), body_of(op), Block()
    tape = Tape(before, weights)
    tape.like = op
    first, last, one = (tape.index(n) for n in (0, most, 1))
    round_ = Block(arg_types=[first.type, *(v.type for v in op.arguments)])
    starts = list(op.arguments)
    end = body.last_op
    assert isinstance(end, YieldOp)
    op.after_region.detach_block(body)
    body.insert_arg(starts[asked].type, 0)
    stop = constant(np.array(False), weights)
    Rewriter.replace_op(end, [stop, YieldOp(stop.result, *end.operands)], [])
    once = while_op([round_.args[1 + asked], *round_.args[1:]], 0, body)
    once.location = op.location
    round_.add_ops([once, YieldOp(*once.results[1:])])
    made = tape.add(ForOp(first, last, one, starts, Region(round_)))
    ops = list(before.ops)
    for inner in ops:
        inner.detach()
    results = list(made.results)
    op.after_region.add_block(Block())
    Rewriter.replace_op(op, ops, results)
    return results


def _is_float(value: SSAValue) -> bool:
    return hasattr(value.type, "get_shape") and has_gradient(value)


# The way back


@dataclass(frozen=True)
class Once:
    """A loop of one round at most that has been run: its source, and what stands for values there."""

    source: WhileOp
    known: Mapping[SSAValue, SSAValue]


def check_once(op: WhileOp, weights: WeightStore) -> None:
    """Raises UnsupportedError, with its line, for a loop that may have more than one round."""
    if is_once(op, weights):
        return
    at = f"{line}: " if (line := line_of(op)) else ""
    raise UnsupportedError(
        f"{at}a loop that goes on as long as data say so cannot be differentiated in reverse mode, which"
        " keeps what every round began with: say how many rounds it has at most, by"
        " irkit.while_loop(..., most=N), or in the test of a `while` statement by a whole number that is"
        " counted from a constant to a constant (`... and n < 1000`). Forward mode (irkit.jvp) takes any"
    )


def pulled_once(
    walk: Reverse, made: WhileOp, kept: Once, cotangents: Sequence[Maybe]
) -> list[tuple[SSAValue, Maybe]]:
    """Cotangents of what a loop of one round at most starts from and reads, of those of its results: a loop
    that runs its body again, and back, if it was run."""
    source, starts, outer = kept.source, list(made.arguments), walk.tape
    read = [*starts, *captured_by(source, kept.known)]
    moving = [v for v in dict.fromkeys(read) if v in walk.varied]
    begun: dict[SSAValue, Maybe] = {}
    for start, cotangent in zip(starts, cotangents, strict=True):
        begun[start] = total(outer.ops, begun.get(start), cotangent)
    asked = starts[asked_of(source)]
    block = Block(arg_types=[asked.type])
    tape = Tape(block, outer.weights)
    known = {**kept.known, **dict(zip(carried_in(source), starts, strict=True))}
    inside = walk.inner(tape, known, moving)
    end = inside.block(body_of(source))
    given: dict[SSAValue, SSAValue] = {}
    for value, cotangent in zip(end.operands, cotangents, strict=True):
        left = inside.known[value]
        if (added := total(tape.ops, given.get(left), cotangent)) is not None:
            given[left] = added
    found = inside.pull(given)
    live = [v for v in moving if found.get(v) is not None or begun.get(v) is not None]
    for value in live:
        block.insert_arg(value.type, len(block.args))
    tape.like = source
    changes = [made_good(tape.ops, found.get(v), v) for v in live]
    tape.add(YieldOp(tape.constant(np.array(False)), *changes))
    seeds = [made_good(outer.ops, begun.get(v), v) for v in live]
    back = outer.add(while_op([asked, *seeds], 0, block))
    return list(zip(live, back.results[1:], strict=True))
