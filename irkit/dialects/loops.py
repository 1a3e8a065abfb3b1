"""Loops of values: `scf.for`, and `scf.while` in the one form that all levels take.

```mlir
%r:2 = scf.while (%g = %go, %x = %a) : (tensor<i1>, tensor<4xf64>) -> (tensor<i1>, tensor<4xf64>) {
  %c = tensor.extract %g[] : tensor<i1>
  scf.condition(%c) %g, %x : tensor<i1>, tensor<4xf64>
} do {
^bb0(%h: tensor<i1>, %y: tensor<4xf64>):
  ...
  scf.yield %next, %z : tensor<i1>, tensor<4xf64>
}
```

What asks computes nothing: whether there is one more turn is a value that the loop carries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard, cast

from xdsl.dialects import scf, tensor
from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from irkit.dialects.types import tensor_type
from irkit.errors import UnsupportedError

LoopOp = scf.ForOp | scf.WhileOp


def is_loop(op: object) -> TypeGuard[LoopOp]:
    """Whether an op is a loop."""
    return isinstance(op, scf.ForOp | scf.WhileOp)


def body_of(loop: LoopOp) -> Block:
    """What a turn does."""
    return loop.body.block if isinstance(loop, scf.ForOp) else loop.after_region.block


def is_body(block: Block | None) -> bool:
    """Whether a block is what a turn of a loop does."""
    return block is not None and is_loop(loop := block.parent_op()) and block is body_of(loop)


def first_start(loop: LoopOp) -> int:
    """The number of the operand that the first carried value starts from."""
    return 3 if isinstance(loop, scf.ForOp) else 0


def starts_of(loop: LoopOp) -> Sequence[SSAValue]:
    """What a loop starts from."""
    return loop.operands[first_start(loop) :]


def carried_in(loop: LoopOp) -> Sequence[BlockArgument]:
    """What a turn is given of what the loop carries."""
    return body_of(loop).args[1 if isinstance(loop, scf.ForOp) else 0 :]


def yielded_by(loop: LoopOp) -> Sequence[SSAValue]:
    """What a turn hands to the next."""
    return cast("Operation", body_of(loop).last_op).operands


def asked_of(loop: scf.WhileOp) -> int:
    """Which of the carried values says whether there is one more turn. Raises UnsupportedError for a loop that
    is not of the form of this module."""
    found, block = asked_by(loop), loop.before_region.block
    types = [v.type for v in loop.arguments]
    for values in (block.args, body_of(loop).args, yielded_by(loop), loop.res):
        if [v.type for v in values] != types:
            raise UnsupportedError("'scf.while' that changes the types of what it carries")
    return found


def asked_by(loop: scf.WhileOp) -> int:
    """`asked_of`, of a loop some of whose values have other types by now."""
    block = loop.before_region.block
    ended = block.last_op
    assert isinstance(ended, scf.ConditionOp)
    extract = ended.condition.owner
    if list(ended.args) != list(block.args) or not isinstance(extract, tensor.ExtractOp):
        raise UnsupportedError("'scf.while' that computes where it asks, or hands on other values")
    asked = [n for n, v in enumerate(block.args) if v is extract.tensor]
    if not asked or extract.indices or len(list(block.ops)) != 2:
        raise UnsupportedError("'scf.while' that asks for what it does not carry")
    if tensor_type(block.args[asked[0]]).get_shape():
        raise UnsupportedError("'scf.while' that asks for more than one boolean")
    return asked[0]


def while_op(starts: Sequence[SSAValue], asked: int, body: Block) -> scf.WhileOp:
    """A loop that goes on as long as the carried value `asked` holds; `body` has an argument of each."""
    types: list[Attribute] = [v.type for v in starts]
    before = Block(arg_types=types)
    for old, new in zip(body.args, before.args, strict=True):
        new.name_hint = old.name_hint
    held = tensor.ExtractOp(before.args[asked], [], i1)
    before.add_ops([held, scf.ConditionOp(held.results[0], *before.args)])
    return scf.WhileOp(list(starts), types, Region(before), Region(body))


def over(loop: LoopOp, starts: Sequence[SSAValue], asked: int | None) -> LoopOp:
    """A loop over `starts` that is as another, whose body, with as many arguments by now, moves there; `asked`:
    which of them a `scf.while` asks for."""
    body = body_of(loop)
    region = body.parent
    assert region is not None
    region.detach_block(body)
    if isinstance(loop, scf.ForOp):
        return scf.ForOp(loop.lb, loop.ub, loop.step, list(starts), Region(body))
    assert asked is not None
    return while_op(starts, asked, body)
