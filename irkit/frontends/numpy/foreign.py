"""What stands, in a traced function, for modules and functions that are neither NumPy's nor its own.

A function of another module is traced as it stands. Where that fails, all of it is one task of the host.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from irkit.annotations.annotation import Annotated, Annotation, annotation_of, unannotated
from irkit.annotations.sets import load_sets
from irkit.frontends.numpy.attempts import Attempt
from irkit.frontends.numpy.host_calls import has_traced, host_call
from irkit.frontends.numpy.library import WRITING, is_of_numpy
from irkit.frontends.numpy.lists import taking_lists
from irkit.frontends.numpy.models import Method, is_method, is_model
from irkit.frontends.numpy.objects import ForeignObject
from irkit.frontends.numpy.places import refused
from irkit.frontends.numpy.recorder import recorder, tracing
from irkit.frontends.numpy.states import of_library, state_of

OWN = ("irkit",)
PLAIN = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    functools.partial,
)


class ForeignModule:
    """A module of anyone's, whose functions are `stand_in`s."""

    def __init__(self, module: types.ModuleType, stand_in: Callable[[Any], Any]) -> None:
        self._module, self._stand_in = module, stand_in

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        own = tracing() and not of_library(self._module)
        watched = own and not isinstance(found, types.ModuleType) and recorder().capture is not None
        if watched:
            kept = recorder().capture(  # pyright: ignore[reportOptionalCall]
                f"{self._module.__name__}.{name}", found, partial(getattr, self._module, name)
            )
            if kept is not found:
                return kept
        return self._stand_in(found)

    def __repr__(self) -> str:
        return f"<traced {self._module.__name__}>"


class ForeignFunction:
    """A function of another module in a traced one."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__wrapped__ = function
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from irkit.frontends.numpy.tables.library import call_with_tables
        from irkit.frontends.numpy.tables.objects import has_table

        function = self.__wrapped__
        if tracing() and has_table((args, kwargs)):
            return call_with_tables(function, args, kwargs)
        if not tracing() or not has_traced((args, kwargs)):
            return function(*args, **kwargs)
        known = annotation_of(function)
        if known is not None:
            return host_call(known, args, kwargs)
        return traced_or_opaque(function, function, args, kwargs)


def traced_or_opaque(
    function: Callable[..., Any],
    body: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """What `function` returns: by tracing `body`, which does the same, or else by a task of the host."""
    attempt, capture = Attempt(recorder()), recorder().capture
    watched = capture is not None and not of_library(function)
    name = getattr(function, "__name__", "function")
    before = state_of(function, name) if watched else None
    found: Any = None
    with attempt:
        found = body(*args, **kwargs)
    if attempt.why is None:
        if watched and state_of(function, name) != before:
            raise refused(
                f"'{name}' changes what it reads, and is no argument: a compiled function cannot"
            )
        if capture is not None and watched:
            # It is traced with what it reads.
            capture(name, function, lambda: function)
        return found
    if recorder().differentiated and attempt.error is not None and not of_library(function):
        # A task of the host has no gradient: what was in the way is the user's to see.
        raise attempt.error
    return host_call(unannotated(function, attempt.why), args, kwargs)


def foreign(value: Any) -> Any:
    """What stands for a global, or an attribute of a module, in a traced function."""
    from irkit.frontends.numpy.globals import numpy_stand_in
    from irkit.frontends.numpy.tables.library import FrameClass, is_class

    if isinstance(value, types.ModuleType):
        root = value.__name__.partition(".")[0]
        if root == "numpy":
            return numpy_stand_in(value)
        load_sets(root)
        return value if root in OWN else ForeignModule(value, foreign)
    if is_of_numpy(value):
        return numpy_stand_in(value)
    if is_class(value):
        return FrameClass(value)
    if is_model(value):
        return ForeignObject(value, foreign)
    if is_method(value) and annotation_of(value) is None:
        return Method(value)
    return ForeignFunction(value) if is_foreign(value) else taking_lists(value)


def is_foreign(value: Any) -> bool:
    """Whether calls of it are looked at: a function that is no class, and neither NumPy's nor irkit's."""
    if isinstance(value, type | Annotated | np.ufunc | ForeignFunction):
        return False
    root = str(getattr(value, "__module__", None) or "").partition(".")[0]
    load_sets(root)
    if annotation_of(value) is not None:
        return True
    compiled = type(value).__name__ in ("cython_function_or_method", "builtin_function_or_method")
    return root not in OWN and (isinstance(value, PLAIN) or compiled)


def opaque(function: Callable[..., Any], why: str, args: Any, kwargs: Any) -> Any:
    """A function of NumPy as a task of the host."""
    known = annotation_of(function)
    if known is None:
        silent = "out" not in kwargs and function.__name__ not in WRITING
        known = Annotation(function, writes=(), why=why) if silent else unannotated(function, why)
    return host_call(known, tuple(args), dict(kwargs))
