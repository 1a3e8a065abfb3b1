"""Where in its code a function stands: whether it begins a `for` statement."""

from __future__ import annotations

import dis
import inspect
import types
from functools import lru_cache
from itertools import pairwise

_NESTED = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
"""Functions that are comprehensions: what they have collected is none of their variables."""
_RESUMED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
"""Functions that go on while others run."""


def begins_a_statement(frame: types.FrameType | None) -> bool:
    """Whether what `frame` does now is to ask for the iterator of a `for` statement, which then nothing but
    that statement has."""
    if frame is None or frame.f_code.co_flags & _RESUMED or frame.f_code.co_name in _NESTED:
        return False
    return frame.f_lasti in _beginnings(frame.f_code)


@lru_cache(maxsize=1024)
def _beginnings(code: types.CodeType) -> frozenset[int]:
    """Offsets of the instructions that make iterators for `for` statements."""
    every = [i for i in dis.get_instructions(code) if i.opname != "EXTENDED_ARG"]
    pairs = pairwise(every)
    return frozenset(i.offset for i, j in pairs if (i.opname, j.opname) == ("GET_ITER", "FOR_ITER"))
