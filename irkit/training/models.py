"""What is trained: functions of parameters and inputs, and ONNX networks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from irkit.driver.programs.networks import Network, network
from irkit.errors import UnsupportedError
from irkit.frontends.numpy.nested import scoped

EXTRAS = ("training", "statistics", "key")
"""What a model is given by name if it takes it: whether it is trained, arrays that it writes while it is, and
a key of random numbers, another in each step."""


class Model:
    """A model as the function (parameters, *inputs) → outputs. `inputs`: how many it takes; `wants`: which of
    EXTRAS."""

    def __init__(self, function: Callable[..., Any], inputs: int, wants: tuple[str, ...]) -> None:
        self.function, self.inputs, self.wants = function, inputs, wants
        self.name = getattr(function, "__qualname__", "model")

    def __call__(
        self, parameters: Any, inputs: tuple[Any, ...], extras: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """All outputs, in a trace."""
        given = {name: extras[name] for name in self.wants}
        found = scoped(self.function)(parameters, *inputs, **given)
        return cast("tuple[Any, ...]", found) if isinstance(found, tuple) else (found,)


def model_of(given: Any, parameters: Any) -> tuple[Model, Any]:
    """A model, and the values that its parameters start from.

    `given`: a function of (parameters, *inputs), an `irkit.network`, an `onnx.ModelProto` or the path of a
    file, of which `parameters` names initializers (None: all of floats). Raises UnsupportedError.
    """
    if isinstance(given, str | Path) or type(given).__name__ == "ModelProto":
        from irkit.frontends.onnx.parameters import float_initializers

        names = float_initializers(given) if parameters is None else parameters
        if isinstance(names, Mapping):
            start = dict(cast("Mapping[str, Any]", names))
            held = network(given, list(start))
            return Model(held, len(held.inputs), ()), start
        given, parameters = network(given, names), None
    if isinstance(given, Network):
        start = dict(given.parameters) if parameters is None else parameters
        return Model(given, len(given.inputs), ()), start
    if not callable(given):
        kind = type(given).__name__
        raise UnsupportedError(
            f"irkit.training_step of {kind}: expected a function or an ONNX model"
        )
    if parameters is None:
        raise UnsupportedError(
            "irkit.training_step of a function: parameters= has the first values"
        )
    return _of_function(given), parameters


def _of_function(function: Callable[..., Any]) -> Model:
    known = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_POSITIONAL for p in known):
        raise UnsupportedError(
            "irkit.training_step: a model with *arguments does not say how many inputs it has: name them"
        )
    positional = [p.name for p in known if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    taken = [n for n in positional if n not in EXTRAS]
    wants = tuple(p.name for p in known if p.name in EXTRAS)
    if not taken:
        raise UnsupportedError("irkit.training_step: a model takes its parameters first")
    return Model(function, len(taken) - 1, wants)
