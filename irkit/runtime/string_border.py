"""Arrays of strings that a program takes and gives as numbers, and maps that it gives as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irkit.errors import InvalidInputError
from irkit.model_info import ModelInfo
from irkit.runtime.host_arrays import to_host
from irkit.weights import Array


class StringBorder:
    """What the host does to inputs and outputs of a model that has strings or maps."""

    def __init__(self, info: ModelInfo) -> None:
        self._info = info
        self._numbers = {text: number for number, text in enumerate(info.vocabulary)}
        self._texts = np.array(info.vocabulary, object)

    def enter(self, inputs: Sequence[Any]) -> list[Any]:
        """Inputs with numbers in place of strings. Raises InvalidInputError for what are none."""
        if len(inputs) != len(self._info.inputs):
            names = ", ".join(self._info.inputs)
            raise InvalidInputError(
                f"expected {len(self._info.inputs)} inputs ({names}), got {len(inputs)}"
            )
        named = zip(self._info.inputs, inputs, strict=True)
        return [self._numbered(n, x) if n in self._info.string_inputs else x for n, x in named]

    def leave(self, outputs: Sequence[Any]) -> list[Any]:
        """Outputs with strings in place of their numbers, and a map a row in place of columns."""
        named = zip(self._info.outputs, outputs, strict=False)
        return [self._of_caller(n, x) for n, x in named]

    def _numbered(self, name: str, value: Any) -> Array:
        array: Any = np.asarray(value)
        if array.dtype.kind not in "OUT":
            raise InvalidInputError(f"input '{name}': expected strings, got dtype {array.dtype}")
        flat: list[Any] = array.reshape(-1).tolist()
        if odd := [v for v in flat if not isinstance(v, str)]:
            raise InvalidInputError(
                f"input '{name}': expected strings, got {type(odd[0]).__name__} among them"
            )
        codes = [self._numbers.get(v, -1) for v in flat]
        return np.array(codes, np.int64).reshape(array.shape)

    def _of_caller(self, name: str, value: Any) -> Any:
        if name in self._info.string_outputs:
            return self._texts[to_host(value)]
        labels = self._info.maps.get(name)
        if labels is None:
            return value
        rows: list[Any] = to_host(value).tolist()
        # By label, as ONNX Runtime has them.
        return [dict(sorted(zip(labels, row, strict=True))) for row in rows]
