"""Which variables of a function are read again behind a `for` statement: from its code."""

from __future__ import annotations

import dis
import types
from functools import lru_cache
from typing import Any, cast

_ENDS = ("RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE")
_JUMPS = ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
Names = frozenset[str]


def read_behind(frame: types.FrameType) -> Names | None:
    """Variables that may be read, before they are bound anew, once the `for` statement is over that `frame`
    asks for its next round; of cells, that other functions see, all. None where it is no such statement."""
    code = frame.f_code
    loop = next((i for i in dis.get_instructions(code) if i.offset == frame.f_lasti), None)
    if loop is None or loop.opname != "FOR_ITER":
        return None
    return _lived(code)[loop.argval] | {*code.co_cellvars, *code.co_freevars}


@lru_cache(maxsize=256)
def _lived(code: types.CodeType) -> dict[int, Names]:
    """By the offset of each instruction: variables that are read from there on before they are bound."""
    every = list(dis.get_instructions(code))
    follows = _followers(code, every)
    uses = {i.offset: _uses(i) for i in every}
    found = {i.offset: Names() for i in every}
    changed = True
    while changed:
        changed = False
        for instruction in reversed(every):
            at = instruction.offset
            read, bound = uses[at]
            behind = Names().union(*(found[n] for n in follows[at]))
            lived = read | (behind - bound)
            changed = changed or lived != found[at]
            found[at] = lived
    return found


def _followers(code: types.CodeType, every: list[dis.Instruction]) -> dict[int, list[int]]:
    """By offset: what may run next, handlers of errors too."""
    found: dict[int, list[int]] = {}
    jumping = {*dis.hasjrel, *dis.hasjabs}
    for instruction, behind in zip(every, [*every[1:], None], strict=True):
        follows: list[int] = []
        if behind is not None and instruction.opname not in (*_ENDS, *_JUMPS):
            follows.append(behind.offset)
        if instruction.opcode in jumping:
            follows.append(instruction.argval)
        found[instruction.offset] = follows
    handlers: list[Any] = [*cast(Any, dis.Bytecode(code)).exception_entries]
    for entry in handlers:
        for at in (o for o in found if entry.start <= o < entry.end):
            found[at].append(entry.target)
    return found


def _uses(instruction: dis.Instruction) -> tuple[Names, Names]:
    """Variables that an instruction reads, and those that it binds; of pairs the second comes later."""
    steps = instruction.opname.split("_FAST")[:-1]
    argument: Any = instruction.argval
    names = cast("tuple[Any, ...]", argument) if isinstance(argument, tuple) else (argument,)
    read, bound = set[str](), set[str]()
    for step, name in zip(steps, names, strict=False):
        if step.strip("_") == "STORE":
            bound.add(name)
        elif name not in bound:
            read.add(name)
    return Names(read), Names(bound)
