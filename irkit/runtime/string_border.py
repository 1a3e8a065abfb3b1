"""Arrays of strings that a program takes and gives as numbers, and maps that it gives as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irkit.errors import InvalidInputError
from irkit.model_info import ModelInfo
from irkit.runtime.host_arrays import to_host
from irkit.runtime.string_steps import string_step
from irkit.weights import Array


class StringBorder:
    """What the host does to inputs and outputs of a model that has strings or maps; thread-safe.

    A string that the model does not name has a number beyond those that it names, for as long as a call.
    """

    def __init__(self, info: ModelInfo) -> None:
        self._info = info
        self._given = info.caller_inputs or info.inputs
        self._strings = {*info.string_inputs, *(source for _, source, _, _ in info.string_steps)}
        self._steps = [
            (source, made, string_step(kind, facts))
            for kind, source, made, facts in info.string_steps
        ]
        self._numbers = {text: number for number, text in enumerate(info.vocabulary)}

    def run(
        self, inputs: Sequence[Any], program: Callable[[list[Any]], Sequence[Any]]
    ) -> list[Any]:
        """What the caller gets of `program`, which is run on numbers in place of strings.

        Raises InvalidInputError for what are no strings.
        """
        if len(inputs) != len(self._given):
            names = ", ".join(self._given)
            raise InvalidInputError(
                f"expected {len(self._given)} inputs ({names}), got {len(inputs)}"
            )
        values = dict(zip(self._given, inputs, strict=True))
        for name in self._strings & values.keys():
            values[name] = _strings(name, values[name])
        for source, made, step in self._steps:
            values[made] = step(values[source])
        fresh: dict[str, int] = {}
        outputs = program([self._numbered(n, values[n], fresh) for n in self._info.inputs])
        texts = np.array([*self._numbers, *fresh], object)
        named = zip(self._info.outputs, outputs, strict=False)
        return [self._of_caller(n, x, texts) for n, x in named]

    def _numbered(self, name: str, value: Any, fresh: dict[str, int]) -> Any:
        if name not in self._info.string_inputs:
            return value
        known, first = self._numbers, len(self._numbers)
        codes = [
            known[v] if v in known else fresh.setdefault(v, first + len(fresh))
            for v in value.reshape(-1).tolist()
        ]
        return np.array(codes, np.int64).reshape(value.shape)

    def _of_caller(self, name: str, value: Any, texts: Array) -> Any:
        if name in self._info.string_outputs:
            return texts[to_host(value)]
        labels = self._info.maps.get(name)
        if labels is None:
            return value
        rows: list[Any] = to_host(value).tolist()
        # By label, as ONNX Runtime has them.
        return [dict(sorted(zip(labels, row, strict=True))) for row in rows]


def _strings(name: str, value: Any) -> Array:
    """An array of strings, of objects. Raises InvalidInputError for anything else."""
    array: Any = np.asarray(value)
    if array.dtype.kind not in "OUT":
        raise InvalidInputError(f"input '{name}': expected strings, got dtype {array.dtype}")
    if odd := [v for v in array.reshape(-1).tolist() if not isinstance(v, str)]:
        raise InvalidInputError(
            f"input '{name}': expected strings, got {type(odd[0]).__name__} among them"
        )
    return array.astype(object)
