"""A model whose rows of the batch mix: a program for each batch size, compiled when it is first met."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from irkit.errors import InvalidInputError, UnsupportedError
from irkit.model_info import ModelInfo
from irkit.runtime.artifact import Artifact
from irkit.runtime.executor import Executor
from irkit.runtime.state_memory import StateMemory
from irkit.runtime.variant import Variant
from irkit.schedule.tables import Port

if TYPE_CHECKING:
    from irkit.viewing.timeline import Timeline

KEPT = 16
"""Programs that stay in memory, those used last; what is on disk is loaded again."""


@dataclass(frozen=True)
class OpenBatch:
    """What is known of a model that has no program for every batch size.

    `axes`: for each input, which of its dimensions is the batch, None where none is. `reasons`: the ops
    that mix rows, and how; for messages and the report.
    """

    info: ModelInfo
    target: str
    axes: tuple[int | None, ...]
    reasons: tuple[str, ...]

    def refusal(self, what: str) -> UnsupportedError:
        """That `what` needs a program of one size."""
        return UnsupportedError(
            f"{what}: the model has a program for each batch size, as rows of the batch mix"
            " (name one size: irkit.compile(..., batch=N)):",
            self.reasons,
        )


class SizedVariant:
    """A variant for each batch size, behind the interface of one; thread-safe. It has no state."""

    state: StateMemory | None = None

    def __init__(self, model: OpenBatch, build: Callable[[int], Variant], kept: int = KEPT) -> None:
        self.model, self.info, self.target = model, model.info, model.target
        self._build, self._kept = build, kept
        self._variants: OrderedDict[int, Variant] = OrderedDict()
        self._lock = threading.Lock()

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """All outputs, in order. Raises InvalidInputError, and UnsupportedError for a size at which the
        model has no meaning."""
        return self.at(self._rows(inputs)).run(inputs)

    def at(self, rows: int) -> Variant:
        """The program for a batch of so many rows."""
        with self._lock:
            found = self._variants.get(rows)
            if found is None:
                found = self._variants[rows] = self._build(rows)
            self._variants.move_to_end(rows)
            while len(self._variants) > self._kept:
                self._variants.popitem(last=False)
            return found

    def _rows(self, inputs: Sequence[Any]) -> int:
        if len(inputs) != len(self.model.axes):
            names = ", ".join(self.info.inputs)
            raise InvalidInputError(
                f"expected {len(self.model.axes)} inputs ({names}), got {len(inputs)}"
            )
        found = {
            _size(name, value, axis)
            for name, value, axis in zip(self.info.inputs, inputs, self.model.axes, strict=True)
            if axis is not None
        }
        if len(found) > 1:
            raise InvalidInputError(f"inputs disagree on the number of rows: {sorted(found)}")
        (rows,) = found
        if rows < 1:
            raise InvalidInputError(
                "expected 1 or more rows, got 0: rows of this model's batch mix"
            )
        return rows

    # As of one variant: the one used last.

    def _last(self, what: str) -> Variant:
        with self._lock:
            if not self._variants:
                raise self.model.refusal(f"{what} of a program that was called with no size yet")
            return next(reversed(self._variants.values()))

    @property
    def artifact(self) -> Artifact:
        """That of the size used last. Raises UnsupportedError before the first call."""
        return self._last("the artifact").artifact

    @property
    def executor(self) -> Executor:
        """That of the size used last."""
        return self._last("the executor").executor

    @property
    def inputs(self) -> tuple[Port, ...]:
        """Those of the size used last."""
        return self._last("inputs").inputs

    @property
    def outputs(self) -> tuple[Port, ...]:
        """Those of the size used last."""
        return self._last("outputs").outputs

    def kept(self) -> Artifact:
        """What `save` writes: there is none. Raises UnsupportedError, with the reasons."""
        raise self.model.refusal("saving")

    def report(self) -> dict[str, Any]:
        """Of the size used last, if any; `batch` says why there is a program a size, and for which."""
        with self._lock:
            sizes = list(self._variants)
        last = self._variants[sizes[-1]].report() if sizes else {"target": self.target}
        return {**last, "batch": {"sizes": sizes, "rows mix": list(self.model.reasons)}}

    def timelines(self, inputs: Sequence[Any] | None, mode: str) -> list[Timeline]:
        """Of the inputs' size, or the size used last."""
        variant = self._last("timelines") if inputs is None else self.at(self._rows(inputs))
        return variant.timelines(inputs, mode)


def _size(name: str, value: Any, axis: int) -> int:
    shape = value.shape if hasattr(value, "shape") else np.shape(value)
    if len(shape) <= axis:
        raise InvalidInputError(
            f"input '{name}': expected {axis + 1} dimensions or more, got {shape}"
        )
    return int(shape[axis])
