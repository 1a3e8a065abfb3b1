"""Drop what nobody reads: values, and what loops carry for nobody."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region
from xdsl.rewriter import InsertPoint, Rewriter


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
        elif isinstance(op, scf.ForOp):
            dropped |= _drop_once(op.body.block) or _drop_carried(op)
    return dropped


def _drop_carried(loop: scf.ForOp) -> bool:
    """Take from a loop what is read neither behind it nor in its next iteration."""
    ended = loop.body.block.last_op
    assert isinstance(ended, scf.YieldOp)
    dead = [
        n
        for n, result in enumerate(loop.results)
        if not result.uses and _feeds_itself(loop, n, ended)
    ]
    if not dead:
        return False
    kept = [n for n in range(len(loop.results)) if n not in dead]
    body = loop.body.block
    for n in reversed(dead):
        argument = body.args[n + 1]
        argument.replace_all_uses_with(loop.iter_args[n])
        body.erase_arg(argument)
    Rewriter.replace_op(ended, scf.YieldOp(*(ended.operands[n] for n in kept)))
    loop.body.detach_block(body)
    made = scf.ForOp(loop.lb, loop.ub, loop.step, [loop.iter_args[n] for n in kept], Region(body))
    made.location = loop.location
    Rewriter.insert_op(made, InsertPoint.before(loop))
    for n, result in zip(kept, made.results, strict=True):
        loop.results[n].replace_all_uses_with(result)
    Rewriter.erase_op(loop)
    return True


def _feeds_itself(loop: scf.ForOp, number: int, ended: Operation) -> bool:
    """Whether an iteration uses what it is given of a value for nothing but to give it on unchanged, or not
    at all."""
    argument = loop.body.block.args[number + 1]
    return all(use.operation is ended and use.index == number for use in argument.uses)
