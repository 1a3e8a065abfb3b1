"""Arrays between a caller who has the batch in any dimension and a program that has it in front."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irkit.batch_place import BatchPlace
from irkit.errors import InvalidInputError
from irkit.model_info import ModelInfo
from irkit.runtime.host_arrays import as_array, to_host
from irkit.schedule.tables import Port
from irkit.weights import Array


class BatchBorder:
    """What is moved on the way in and out: on the host, so that no input may lie on a device."""

    def __init__(self, info: ModelInfo, inputs: Sequence[Port], outputs: Sequence[Port]) -> None:
        self._inputs = _places(info.input_batch, len(inputs))
        self._outputs = _places(info.output_batch, len(outputs))
        self._ports = tuple(inputs)
        self.moves = any(self._inputs) or any(self._outputs)

    def enter(self, inputs: Sequence[Any]) -> list[Any]:
        """The inputs as the program takes them. Raises InvalidInputError."""
        if len(inputs) != len(self._ports):
            return list(inputs)  # refused, with their names, by the program
        for value, port in zip(inputs, self._ports, strict=True):
            if hasattr(value, "__cuda_array_interface__"):
                raise InvalidInputError(
                    f"input '{port.name}' lies on a device: this model's batch is not its leading dimension,"
                    " and is moved on the host"
                )
        pairs = zip(inputs, self._ports, self._inputs, strict=True)
        return [
            value if place is None else _moved(value, port, place) for value, port, place in pairs
        ]

    def leave(self, outputs: Sequence[Any]) -> list[Any]:
        """The outputs as the model has them."""
        pairs = zip(outputs, self._outputs, strict=True)
        return [value if place is None else place.back(to_host(value)) for value, place in pairs]


def _places(found: Sequence[Sequence[int] | None], count: int) -> list[BatchPlace | None]:
    if not found:
        return [None] * count
    return [None if place is None else BatchPlace(*place) for place in found]


def _moved(value: Any, port: Port, place: BatchPlace) -> Any:
    array: Array = (
        value if type(value) is np.ndarray else as_array(port.name, value, np.dtype(port.dtype))
    )
    wanted = place.outside(port.shape)
    pairs = zip(wanted, array.shape, strict=False)
    if array.ndim != len(wanted) or any(w not in (-1, n) for w, n in pairs):
        shown = "x".join("rows" if s == -1 else str(s) for s in wanted)
        have = "x".join(map(str, array.shape)) or "scalar"
        raise InvalidInputError(f"input '{port.name}': expected shape {shown}, got {have}")
    return place.to_front(array)
