"""Functions that a compiled function calls for what they do: to note, to print, to draw."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from irkit.annotations.annotation import Annotated, Annotation
from irkit.errors import UnsupportedError


def callback(function: Callable[..., Any], /) -> Annotated:
    """A function that a compiled function calls for what it does: `@irkit.callback`, or `irkit.callback(f)`.

    In a function that `irkit.jit` compiles a call of it is a task of the host, at its place in the order of
    effects: it has arrays as they are there, which it must leave so and not keep (`copy()`), behind all calls
    before it, once for each time that the program comes there. What it returns is dropped. Elsewhere it is
    the function. Raises UnsupportedError for what cannot be called; so does a traced function that gives it
    no array that is computed there, or that is differentiated.
    """
    if isinstance(function, Annotated):
        function = function.annotation.function
    if not callable(function):
        raise UnsupportedError(f"irkit.callback of {type(function).__name__}: expected a function")

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> None:
        function(*args, **kwargs)

    return Annotated(
        Annotation(called, writes=(), result=_nothing, why="a callback", callback=True)
    )


def _nothing(*args: Any, **kwargs: Any) -> None:
    """What callbacks return."""
