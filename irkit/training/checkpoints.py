"""Parts of a model that are computed again in the backward pass, rather than kept for it."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable
from typing import Any

from irkit.errors import UnsupportedError
from irkit.frontends.numpy.nested import scoped
from irkit.frontends.numpy.places import in_segment
from irkit.frontends.numpy.recorder import tracing

_NUMBERS = itertools.count()


def checkpoint(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function of arrays, each call of which is a segment: of what it computes, only what leaves it
    is kept for the backward pass, and the rest is computed again there (T. Chen et al., Training Deep Nets
    with Sublinear Memory Cost, 2016). Results are the same, bit for bit.

    A call inside of another segment is part of that. A program that has segments runs its launches one after
    another, in the order that needs fewest bytes. Raises UnsupportedError for what is no function.
    """
    if not callable(function):
        kind = type(function).__name__
        raise UnsupportedError(
            f"irkit.training.checkpoints.checkpoint of {kind}: expected a function"
        )
    name = getattr(function, "__name__", type(function).__name__)

    @functools.wraps(function)
    def segment(*args: Any, **kwargs: Any) -> Any:
        if not tracing():
            return function(*args, **kwargs)
        with in_segment(f"{name} {next(_NUMBERS)}"):
            return scoped(function)(*args, **kwargs)

    # What is traced is this function, with the other in it.
    del segment.__wrapped__
    segment.__dict__["__signature__"] = inspect.signature(function)
    return segment
