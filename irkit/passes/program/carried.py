"""Drop what nobody reads: values, and what loops carry for nobody."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.loops import (
    LoopOp,
    asked_of,
    body_of,
    carried_in,
    is_loop,
    over,
    starts_of,
)


def drop_dead_values(function: FuncOp) -> None:
    """Erase ops of a function of values whose results nobody reads, and take from loops what they carry for
    themselves alone."""
    while _drop_once(function.body.block):
        pass


def _drop_once(block: Block) -> bool:
    dropped = False
    for op in reversed(list(block.ops)):
        if op is block.last_op:
            continue
        if not any(r.uses for r in op.results):
            Rewriter.erase_op(op)
            dropped = True
        elif is_loop(op):
            dropped |= _drop_once(body_of(op)) or _drop_carried(op)
    return dropped


def _drop_carried(loop: LoopOp) -> bool:
    """Take from a loop what is read neither behind it nor in its next iteration."""
    body = body_of(loop)
    ended = body.last_op
    assert isinstance(ended, scf.YieldOp)
    asked = asked_of(loop) if isinstance(loop, scf.WhileOp) else None
    live = _live(loop, asked, ended)
    dead = [n for n in range(len(loop.results)) if n not in live]
    if not dead:
        return False
    kept = [n for n in range(len(loop.results)) if n not in dead]
    for n in reversed(dead):
        argument = carried_in(loop)[n]
        argument.replace_all_uses_with(starts_of(loop)[n])
        body.erase_arg(argument)
    Rewriter.replace_op(ended, scf.YieldOp(*(ended.operands[n] for n in kept)))
    ask = None if asked is None else kept.index(asked)
    made = over(loop, [starts_of(loop)[n] for n in kept], ask)
    made.location = loop.location
    Rewriter.insert_op(made, InsertPoint.before(loop))
    for n, result in zip(kept, made.results, strict=True):
        loop.results[n].replace_all_uses_with(result)
    Rewriter.erase_op(loop)
    return True


def _live(loop: LoopOp, asked: int | None, ended: Operation) -> set[int]:
    """Which of the carried values are read behind the loop, or by what makes one that is."""
    arguments: dict[SSAValue, int] = {v: n for n, v in enumerate(carried_in(loop))}
    todo = [n for n, result in enumerate(loop.results) if result.uses or n == asked]
    live, seen = set(todo), set[Operation]()
    while todo:
        values = [ended.operands[todo.pop()]]
        while values:
            value = values.pop()
            if (n := arguments.get(value)) is not None and n not in live:
                live.add(n)
                todo.append(n)
            owner = value.owner
            if isinstance(owner, Operation) and owner not in seen:
                seen.add(owner)
                values += [v for inner in owner.walk() for v in inner.operands]
    return live
