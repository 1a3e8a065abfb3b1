"""Fitted estimators, and compiled programs, in traced functions: what their front end knows is part of the
program, all else a task of the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from irkit.annotations.annotation import Annotation, annotation_of, unannotated
from irkit.frontends.numpy.estimators import LIBRARIES, READING, OpaqueError, part_of_trace
from irkit.frontends.numpy.host_calls import has_traced, host_call
from irkit.frontends.numpy.objects import is_booster, is_estimator
from irkit.frontends.numpy.recorder import tracing

METHODS = READING
WHY = "a method of a fitted estimator"
CHANGES = "a method of an estimator that may change it"
COMPILED = "a program that irkit.compile made"


class Method:
    """A method of a model in a traced function."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.__wrapped__ = method
        self.__name__ = getattr(method, "__name__", "method")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        method: Any = self.__wrapped__
        if not tracing() or not has_traced((args, kwargs)):
            return method(*args, **kwargs)
        known = annotation_of(method)
        if known is not None or is_program(method.__self__):
            return host_call(known or Annotation(method, writes=(), why=COMPILED), args, kwargs)
        if method.__name__ not in METHODS:
            return host_call(unannotated(method, CHANGES), args, kwargs)
        try:
            return part_of_trace(method, args, kwargs)
        except OpaqueError as reason:
            why = f"{WHY}, which is not compiled: {reason}"
        return host_call(Annotation(method, writes=(), why=why), args, kwargs)


def is_model(value: Any) -> bool:
    """Whether it is a fitted estimator, as scikit-learn has them, a booster, or a program of
    `irkit.compile`."""
    return is_estimator(value) or is_booster(value) or is_program(value)


def is_program(value: Any) -> bool:
    """Whether it is what `irkit.compile` gives."""
    kind: Any = type(cast(object, value))
    return f"{kind.__module__}.{kind.__qualname__}" == "irkit.runtime.program.CompiledProgram"


def is_method(value: Any) -> bool:
    """Whether it is a method of a model."""
    owner = getattr(value, "__self__", None)
    if not is_model(owner) or not callable(value):
        return False
    library = str(getattr(value, "__module__", None) or "").partition(".")[0]
    return library in LIBRARIES or getattr(value, "__name__", "") in METHODS


def is_function_of_numpy(value: Any) -> bool:
    """Whether it is a function of a module of NumPy's, `numpy.linalg` among them."""
    plain = callable(value) and not isinstance(value, type | np.ufunc)
    root = str(getattr(value, "__module__", None) or "").partition(".")[0]
    return plain and root == "numpy" and hasattr(value, "__name__")
