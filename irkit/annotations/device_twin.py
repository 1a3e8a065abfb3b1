"""The twin of a function on a GPU, called in the place of the function with arrays of the device."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from irkit.annotations.host_task import HostTask
from irkit.annotations.results import Same
from irkit.annotations.structures import Slot, mapped, slots_in, unpacked
from irkit.errors import UnsupportedError

STREAM = "stream"
"""The parameter by which a twin is told its stream, where it has one."""


def why_not_there(task: HostTask) -> str | None:
    """Why the twin of a call's function cannot be called in its place; None if it can be.

    Raises nothing; of a function without a twin that is why.
    """
    if task.annotation.device_twin is None:
        return "it has no device twin"
    if task.is_complex:
        return "it takes or returns complex numbers, of which programs have the parts"
    slots = [*slots_in(task.arguments), *slots_in(task.returned.structure)]
    if any(slot.kind != "array" for slot in slots):
        return (
            "it takes or returns numbers that are computed, which the host would have to wait for"
        )
    found: list[Any] = []
    mapped(task.returned.structure, lambda v: found.append(v) if isinstance(v, Same) else None)
    if found:
        return "it returns an argument"
    return None


class DeviceTwin:
    """A call of a twin: arrays as the call of the function has them, on the device."""

    def __init__(self, task: HostTask) -> None:
        twin = task.annotation.device_twin
        assert twin is not None
        self._twin: Callable[..., Any] = twin
        self._task = task
        self._told = _has_stream(twin)

    @property
    def name(self) -> str:
        """As messages have it."""
        return f"the device twin of '{self._task.annotation.name}'"

    def __call__(self, arrays: Sequence[Any], stream: Any) -> list[tuple[Any, Any]]:
        """Call it. Returns the arrays that it returned, each with the one of `arrays` that it belongs in.

        Raises what the twin raises, UnsupportedError where it returns something else than the function does.
        """
        task = self._task
        given, outputs = arrays[: len(task.inputs)], arrays[len(task.inputs) :]
        args, kwargs = unpacked(task.arguments, lambda slot: given[slot.number])
        told = {STREAM: stream} if self._told else {}
        try:
            result = self._twin(*args, **kwargs, **told)
        except Exception as error:
            error.add_note(f"{task.place}: in {self.name}")
            raise
        return list(self._paired(task.returned.structure, result, outputs))

    def _paired(
        self, structure: Any, result: Any, outputs: Sequence[Any]
    ) -> Iterator[tuple[Any, Any]]:
        """Arrays of what was returned beside those of what is expected."""
        if isinstance(structure, Slot):
            expected = self._task.returned.types[structure.number]
            shape, dtype = getattr(result, "shape", None), str(getattr(result, "dtype", None))
            if shape is None or tuple(shape) != expected.shape or dtype != str(expected.dtype):
                got = type(result).__name__ if shape is None else f"{dtype}{list(shape)}"
                raise self._refused(f"returned {got}, and {expected} was expected")
            yield result, outputs[structure.number]
            return
        wanted, got = _inner(structure), _inner(result)
        if type(structure) is not type(result) or wanted.keys() != got.keys():
            raise self._refused(f"returned {_shown(result)}, and {_shown(structure)} was expected")
        for key, inner in wanted.items():
            yield from self._paired(inner, got[key], outputs)

    def _refused(self, what: str) -> UnsupportedError:
        return UnsupportedError(f"{self._task.place}: {self.name} {what}")


def _has_stream(twin: Callable[..., Any]) -> bool:
    try:
        found = inspect.signature(twin).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.name == STREAM or p.kind is inspect.Parameter.VAR_KEYWORD for p in found)


def _inner(structure: Any) -> dict[Any, Any]:
    """What a structure is made of."""
    if isinstance(structure, dict):
        return cast("dict[Any, Any]", structure)
    if isinstance(structure, (tuple, list)):
        return dict(enumerate(cast("Sequence[Any]", structure)))
    return {}


def _shown(structure: Any) -> str:
    inner = _inner(structure)
    name = type(structure).__name__
    return f"a {name} of {len(inner)}" if inner else name
