"""What identifies a step of training, for files of its state: its model, its loss and its optimiser."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import Any, cast

import numpy as np

from irkit.bfloat16 import dtype_of
from irkit.driver.compiler.identity import model_digest
from irkit.errors import InvalidInputError, UnsupportedError
from irkit.frontends.numpy.nested import scoped
from irkit.plain_json import parsed
from irkit.runtime.state_identity import PREFIX, Part
from irkit.training.traced import TracedProgram
from irkit.training.update import Update, check_call
from irkit.weights import Array

INPUTS = f"{PREFIX}inputs"
"""In a file of state: shapes and dtypes of a step's inputs, for which its model and loss were traced."""
_FAULTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    InvalidInputError,
    LookupError,
    TypeError,
    UnsupportedError,
    ValueError,
)
"""What functions raise that are called with arrays that they are not made for."""
Shapes = tuple[tuple[str, tuple[int, ...]], ...]
"""Dtype and shape of each."""


class StepIdentity:
    """A step by what its model, its loss and its optimiser are traced to, each for itself.

    The trace is for inputs of the shapes of the step that was compiled first, which a file of state says: who
    reads it traces his own for these, whatever he is called with.
    """

    def __init__(self, update: Update, state: Mapping[str, Array]) -> None:
        self._update = update
        # Of what a trace is for, nothing but shapes and dtypes is asked.
        self._state = {name: _of_shape(a.dtype, a.shape) for name, a in state.items()}
        self._inputs: Shapes | None = None
        self._known: dict[Shapes, tuple[str | None, str | None]] = {}

    def compiled_for(self, arrays: Sequence[Array]) -> None:
        """The step is made for inputs like these."""
        if self._inputs is None:
            self._inputs = tuple((a.dtype.name, tuple(a.shape)) for a in arrays)

    def more(self) -> dict[str, str]:
        """For which inputs."""
        return {} if self._inputs is None else {INPUTS: json.dumps(self._inputs)}

    def taken(self, said: Mapping[str, str], other: Collection[str]) -> None:
        """What is saved before a step is made is still of the model that the file says."""
        if self._inputs is None and not {"model", "loss"} & {*other}:
            self._inputs = _shapes(said)

    def parts(self, said: Mapping[str, str] | None) -> dict[str, Part]:
        """Model, loss (where there is one) and optimiser."""
        update = self._update
        inputs = self._inputs if said is None else _shapes(said)
        model, loss = (None, None) if inputs is None else self._digests(inputs)
        found = {"model": Part(model, f"'{update.model.name}'")}
        if update.loss is not None:
            found["loss"] = Part(loss, f"'{_named(update.loss)}'")
        return found | {"optimizer": Part(self._optimizer, repr(_Fields(update.optimizer)))}

    def _digests(self, inputs: Shapes) -> tuple[str | None, str | None]:
        if inputs not in self._known:
            self._known[inputs] = self._traced_for([_of_shape(dtype_of(d), s) for d, s in inputs])
        return self._known[inputs]

    def _traced_for(self, arrays: Sequence[Array]) -> tuple[str, str | None]:
        for attempt in (self._apart, self._together):
            with suppress(*_FAULTS):
                return attempt(arrays)
        # What cannot be called as the model of a file was is another one.
        return "", ""

    def _together(self, arrays: Sequence[Array]) -> tuple[str, str | None]:
        """Of a model whose outputs are no arrays, but what its loss alone understands."""
        both = model_digest(self._traced(self._update.loss_of, arrays).graph())
        return both, both

    def _apart(self, arrays: Sequence[Array]) -> tuple[str, str | None]:
        """The loss by what it makes of such outputs as the model's, so that it is the same behind another."""
        update = self._update
        model = self._traced(update.outputs_of, arrays)
        if (loss := update.loss) is None:
            return model_digest(model.graph()), None
        made = model.like_results()

        def loss_of(_: Any, inputs: Any) -> Any:
            given = [*model.structured(inputs[: len(made)]), *inputs[len(made) :]]
            check_call(loss, update.model.name, given)
            return scoped(loss)(*given).copy()

        behind = self._traced(loss_of, [*made, *arrays[update.model.inputs :]])
        return model_digest(model.graph()), model_digest(behind.graph())

    @cached_property
    def _optimizer(self) -> str:
        own = [array for name, array in self._state.items() if name in self._update.trained]
        return model_digest(self._traced(self._update.updated_of, own).graph())

    def _traced(self, function: Any, inputs: Sequence[Array]) -> TracedProgram:
        def traced(state: Any, inputs: Any) -> Any:
            return function(state, inputs)

        names = [f"x{n}" for n in range(len(inputs))]
        return TracedProgram(traced, self._state, inputs, names)


class _Fields:
    """An optimiser as it is written; functions by their names, which are the same in another process."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer

    def __repr__(self) -> str:
        fields = {n: getattr(self._optimizer, n) for n in self._optimizer.__dataclass_fields__}
        said = {n: _named(v) if callable(v) else repr(v) for n, v in fields.items() if n != "_"}
        return f"{type(self._optimizer).__name__}({', '.join(f'{n}={v}' for n, v in said.items())})"


def _named(function: Any) -> str:
    if isinstance(function, partial):
        return f"partial({_named(cast('Any', function).func)})"
    return getattr(function, "__qualname__", type(function).__name__)


def _of_shape(dtype: np.dtype[Any], shape: Sequence[int]) -> Array:
    return np.broadcast_to(np.zeros((), dtype), tuple(shape))


def _shapes(said: Mapping[str, str]) -> Shapes | None:
    """Those that a file says. Raises InvalidInputError for a text that says none."""
    if INPUTS not in said:
        return None
    try:
        given = [(str(d), tuple(map(int, s))) for d, s in parsed(said[INPUTS])]
        for name, shape in given:
            _of_shape(dtype_of(name), shape)
    except (ValueError, TypeError, UnsupportedError):
        raise InvalidInputError(f"'{INPUTS}' of a file of state is {said[INPUTS]!r}") from None
    return tuple(given)
