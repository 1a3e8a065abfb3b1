"""Arrays of strings that a program takes and gives as numbers, maps that it gives as columns, and integers
of 2 and 4 bits, which it has in bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irkit.errors import InvalidInputError
from irkit.model_info import ModelInfo
from irkit.narrow_integers import NARROW, NarrowInteger
from irkit.runtime.host_arrays import to_host
from irkit.runtime.string_steps import string_step
from irkit.weights import Array


class StringBorder:
    """What the host does to inputs and outputs that are something else to the caller; thread-safe.

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
        self._narrow = {name: NARROW[kind] for name, kind in info.narrow.items()}
        self._numbers = {text: number for number, text in enumerate(info.vocabulary)}

    def run(
        self, inputs: Sequence[Any], program: Callable[[list[Any]], Sequence[Any]]
    ) -> list[Any]:
        """What the caller gets of `program`, which is run on numbers in place of strings.

        Raises InvalidInputError for what are no strings, or no integers of so few bits.
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
        if name in self._narrow:
            return _bytes(name, value, self._narrow[name])
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
        if name in self._narrow:
            return to_host(value).astype(self._narrow[name].dtype)
        labels = self._info.maps.get(name)
        if labels is None:
            return value
        rows: list[Any] = to_host(value).tolist()
        # By label, as ONNX Runtime has them.
        return [dict(sorted(zip(labels, row, strict=True))) for row in rows]


def _bytes(name: str, value: Any, kind: NarrowInteger) -> Array:
    """An array of integers of fewer bits, as bytes. Raises InvalidInputError for any other."""
    array: Any = np.asarray(value)
    if array.dtype != kind.dtype:
        raise InvalidInputError(f"input '{name}': expected {kind.name}, got dtype {array.dtype}")
    return array.astype(kind.wide)


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
