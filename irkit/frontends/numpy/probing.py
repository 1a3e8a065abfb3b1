"""Run a function once as it is, on copies, to see what functions of the host return in it."""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irkit.annotations.annotation import Annotated, Annotation, annotation_of, intercepting
from irkit.annotations.frames import Node
from irkit.annotations.held import Held
from irkit.annotations.learned import Learned
from irkit.annotations.structures import mapped
from irkit.frontends.numpy.foreign import ForeignModule, is_foreign, is_of_numpy
from irkit.frontends.numpy.functions import FUNCTIONS, OPAQUE
from irkit.frontends.numpy.globals import TracedGlobals, given, with_globals
from irkit.frontends.numpy.models import is_function_of_numpy, is_method, is_model
from irkit.frontends.numpy.objects import ForeignObject, plain
from irkit.frontends.numpy.trace import Guard, NewArrayError, Pattern, filled
from irkit.weights import Array


def learn(
    function: types.FunctionType,
    pattern: Pattern,
    arrays: Sequence[Array],
    held: Held | None = None,
) -> Learned:
    """What calls in `function` return; `arrays` of the pattern are the function's to write, `held` is what
    is no array.

    Raises what the function raises, and NewArrayError.
    """
    learned = Learned()

    def capture(name: str, value: Any, later: Callable[[], Any]) -> Any:
        return captured(pattern, arrays, name, value, later)

    def stand_in(value: Any) -> Any:
        if isinstance(value, types.ModuleType):
            own = value.__name__.partition(".")[0] == "irkit"
            return value if own else ForeignModule(value, stand_in)
        if isinstance(value, Annotated):
            return value
        if is_of_numpy(value):
            traced = value.__name__ in FUNCTIONS and value.__name__ not in OPAQUE
            watched = not isinstance(value, type | np.ufunc) and not traced
            return _watched(learned, value) if watched else value
        if is_model(value):
            return ForeignObject(value, stand_in)
        numpys = is_function_of_numpy(value) and value.__name__ not in FUNCTIONS
        known = numpys or is_method(value) or is_foreign(value)
        return _watched(learned, value) if known else value

    scope = TracedGlobals(function.__globals__, capture, stand_in=stand_in)

    def argument(value: Any) -> Any:
        if isinstance(value, Node) and held is not None:
            return value.built(arrays, held)
        return given(value, scope)

    args, kwargs = filled(pattern.structure, list(arrays), argument)

    def intercepted(known: Annotation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return learned.call(known, *mapped((args, kwargs), plain))

    with intercepting(intercepted):
        with_globals(function, scope)(*args, **kwargs)
    return learned


def captured(
    pattern: Pattern, arrays: Sequence[Array], name: str, value: Any, later: Callable[[], Any]
) -> Any:
    """What stands for a value that is read and no argument: of an array the copy. Raises NewArrayError for
    one of which there is none yet."""
    if type(value) is not np.ndarray:
        return value
    number = pattern.captured.get(id(value))
    if number is None:
        raise NewArrayError(value, Guard(name, value, later))
    return arrays[number]


def _watched(learned: Learned, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose calls are noted."""

    def call(*args: Any, **kwargs: Any) -> Any:
        known = annotation_of(function) or Annotation(function)
        return learned.call(known, *mapped((args, kwargs), plain))

    call.__name__ = getattr(function, "__name__", "function")
    return call
