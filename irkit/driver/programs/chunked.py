"""Loops that are differentiated within a budget of bytes."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from irkit.errors import BudgetError

Made = TypeVar("Made")

_CHUNKED: ContextVar[bool] = ContextVar("chunked", default=False)


def chunks_now() -> bool:
    """Whether of loops that are differentiated in reverse mode only what chunks of their rounds begin with
    is kept, and the rest computed again."""
    return _CHUNKED.get()


@contextmanager
def chunked_loops() -> Generator[None]:
    """Loops that are differentiated inside are in chunks."""
    token = _CHUNKED.set(True)
    try:
        yield
    finally:
        _CHUNKED.reset(token)


def within_budget(make: Callable[[], Made]) -> Made:
    """What `make` traces and compiles; where that needs more bytes than it may, again with loops in chunks.

    Raises BudgetError, with the least that was found.
    """
    try:
        return make()
    except BudgetError as error:
        kept = error
    try:
        with chunked_loops():
            return make()
    except BudgetError as chunked:
        least = min(kept.needed, chunked.needed)
        raise BudgetError(kept.budget, least, kept.plain) from None
