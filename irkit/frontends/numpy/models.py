"""Fitted estimators, and compiled programs, in traced functions: their methods are tasks of the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from irkit.annotations.annotation import Annotation, annotation_of
from irkit.frontends.numpy.host_calls import has_traced, host_call
from irkit.frontends.numpy.recorder import tracing

METHODS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "transform",
    "score_samples",
)
"""What reads a model and its argument, writes neither, and returns an array."""
WHY = "a method of a fitted estimator: irkit.compile(estimator) gives a compiled one"
COMPILED = "a program that irkit.compile made"


class ForeignObject:
    """An object of a library, whose methods are `stand_in`s."""

    def __init__(self, value: Any, stand_in: Callable[[Any], Any]) -> None:
        self.__wrapped__, self._stand_in = value, stand_in

    @property
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
        """`isinstance` says what it says of the object."""
        return self.__wrapped__.__class__

    def __getattr__(self, name: str) -> Any:
        return self._stand_in(getattr(self.__wrapped__, name))


class Method:
    """A method of a model in a traced function."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.__wrapped__ = method
        self.__name__ = getattr(method, "__name__", "method")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        method = self.__wrapped__
        if not tracing() or not has_traced((args, kwargs)):
            return method(*args, **kwargs)
        return host_call(annotation_of(method) or model_annotation(method), args, kwargs)


def model_annotation(method: Callable[..., Any]) -> Annotation:
    """That of a method of a model."""
    compiled = is_program(getattr(method, "__self__", None))
    return Annotation(method, writes=(), why=COMPILED if compiled else WHY)


def is_model(value: Any) -> bool:
    """Whether it is a fitted estimator, as scikit-learn has them, or a program of `irkit.compile`."""
    if isinstance(value, type):
        return False
    kind: Any = type(cast(object, value))
    return is_program(value) or (hasattr(kind, "get_params") and hasattr(kind, "fit"))


def is_program(value: Any) -> bool:
    """Whether it is what `irkit.compile` gives."""
    kind: Any = type(cast(object, value))
    return f"{kind.__module__}.{kind.__qualname__}" == "irkit.runtime.program.CompiledProgram"


def is_method(value: Any) -> bool:
    """Whether it is a method of a model that is a task of the host."""
    return getattr(value, "__name__", "") in METHODS and is_model(getattr(value, "__self__", None))


def is_function_of_numpy(value: Any) -> bool:
    """Whether it is a function of a module of NumPy's, `numpy.linalg` among them."""
    plain = callable(value) and not isinstance(value, type | np.ufunc)
    root = str(getattr(value, "__module__", None) or "").partition(".")[0]
    return plain and root == "numpy" and hasattr(value, "__name__")
