"""Calls of functions that irkit does not compile, as they are traced: one task of the host each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from irkit.annotations.annotation import Annotation
from irkit.annotations.host_task import HostTask
from irkit.annotations.results import Returned, Same, declared
from irkit.annotations.structures import ArrayType, Kind, Slot, mapped, packed, slots_in
from irkit.errors import UnsupportedError
from irkit.frontends.numpy.arrays import TracedArray, Varying, empty, is_traced
from irkit.frontends.numpy.indices import Index
from irkit.frontends.numpy.objects import plain
from irkit.frontends.numpy.operands import array_of
from irkit.frontends.numpy.places import refused, user_place
from irkit.frontends.numpy.recorder import recorder
from irkit.frontends.numpy.records import Call, View, parts_of
from irkit.frontends.numpy.varying import exact
from irkit.frontends.numpy.weak import weak_number


class NeedExamplesError(BaseException):
    """What a function of the host returns is not known: the traced function is to be run once, on copies, to
    see. Not an error of the user's, whose `except` must not see it."""

    def __init__(self, annotation: Annotation) -> None:
        super().__init__(f"'{annotation.name}' is not traced: {annotation.why}")


def has_traced(value: Any) -> bool:
    """Whether there is an array of the trace, or an index of a loop, in a structure."""
    found: list[bool] = []
    mapped(value, lambda v: found.append(is_traced(v) or isinstance(v, Index | Varying)))
    return any(found)


def host_call(annotation: Annotation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Record a call; what it returns, traced.

    Raises UnsupportedError, with the user's line, for a function that returns what has no form, for arguments
    that it cannot be given; ValueError for an array that it writes and may not; NeedExamplesError.
    """
    if not has_traced((args, kwargs)):
        if annotation.callback:
            raise refused(
                f"callback '{annotation.name}' is given no array that is computed here, so that nothing says "
                "when it is called"
            )
        return annotation.function(*args, **kwargs)
    given = _Given(*mapped((args, kwargs), lambda v: exact(plain(v))))
    types = [ArrayType.of(a) for a in given.arrays]
    returned = _returned(annotation, given, types)
    writes = _written(annotation, given)
    outputs = [empty(t.shape, t.dtype) for t in returned.types]
    task = HostTask(annotation, given.structure, types, returned, writes, user_place())
    # Of complex numbers a program has the parts.
    parts = [_parts(a) for a in [*given.arrays, *outputs]]
    views = tuple(view for own in parts for view in own)
    ends = list(accumulate(map(len, parts), initial=0))
    for number in writes:
        given.arrays[number].spot.buffer.known = None
    # Of an array that is made by np.empty, and given to be written, nothing is read.
    buffers = [v.buffer for v in views]
    reads = tuple(
        n for n in range(ends[len(types)]) if buffers[n].written or buffers[n].argument is not None
    )
    written = (*writes, *range(len(types), len(parts)))
    changed = tuple(n for own in written for n in range(ends[own], ends[own + 1]))
    for number in reads:
        buffers[number].being_read()
    recorder().records.append(Call(task.place, task, views, reads, changed))
    for number in changed:
        buffers[number].written = True
        buffers[number].being_written()
    return _results(returned.structure, given.arrays, outputs)


def _parts(array: TracedArray) -> tuple[View, ...]:
    """Where an array lies; of complex numbers where their real and where their imaginary parts lie."""
    spot = array.spot
    if array.dtype.kind != "c":
        return (spot.view,)
    return tuple(spot.viewed(part).view for part in parts_of(spot.layout))


KINDS: Mapping[type, Kind] = {float: "float", int: "int", bool: "bool"}
"""What of Python's a number stands for → the place of one in a structure."""


class _Given:
    """Arguments as a structure with slots: arrays and NumPy's numbers, then Python's that are computed."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.arrays: list[TracedArray] = []
        self._known: list[Any] = []
        self._weak: list[Any] = []
        packed((args, kwargs), self._gathered)
        self.strong = len(self.arrays)
        self.structure = packed((args, kwargs), self._slot)

    def _gathered(self, value: Any) -> Slot | None:
        array = type(value) is np.ndarray or isinstance(value, np.generic)
        if not array and not is_traced(value):
            return None
        weak = is_traced(value) and value.spot.weak is not None
        if not weak and not any(value is k for k in self._known):
            self._known.append(value)
            self.arrays.append(array_of(value))
        return Slot(0)

    def _slot(self, value: Any) -> Slot | None:
        _check_static(value)
        for number, known in enumerate(self._known):
            if value is known:
                scalar = self.arrays[number].spot.scalar
                return Slot(number, "scalar" if scalar else "array")
        if isinstance(value, Index):
            value = weak_number(value, int)
        if not is_traced(value) or value.spot.weak is None:
            return None
        self.arrays.append(value)
        return Slot(len(self.arrays) - 1, KINDS[value.spot.weak])


def _check_static(value: Any) -> None:
    """Raises UnsupportedError for a function that was made in the traced one: it has its arrays."""
    scope = getattr(value, "__globals__", None)
    if scope is not None and hasattr(scope, "capture"):
        raise refused(
            f"'{getattr(value, '__name__', 'lambda')}' is traced, and is given to a function of the host: "
            "annotate it (irkit.annotate), or define it in another module"
        )


def _returned(annotation: Annotation, given: _Given, types: Sequence[ArrayType]) -> Returned:
    args, kwargs = given.structure
    try:
        found = declared(annotation, args, kwargs, types)
        learned = recorder().learned
        if found is None and learned is not None:
            found = learned.find(annotation, given.structure, types[: given.strong])
    except UnsupportedError as error:
        raise refused(str(error)) from None
    if found is not None:
        return found
    if recorder().differentiated:
        raise refused(
            "a function that is differentiated calls one that is not traced: "
            f"'{annotation.name}': {annotation.why}"
        )
    if recorder().learned is None:
        raise NeedExamplesError(annotation)
    shown = ", ".join(map(str, types))
    raise refused(
        f"'{annotation.name}' of {shown}: no such call was made when the function was run to see what it "
        "returns: say it by irkit.annotate(..., result=...)"
    )


def _written(annotation: Annotation, given: _Given) -> list[int]:
    """Numbers of the arrays that the function may write."""
    if annotation.writes is None:
        own = slots_in(given.structure)
        return sorted({s.number for s in own if _may_be_written(annotation, given, s)})
    bound = annotation.bound(*given.structure)
    found: set[int] = set()
    for name in annotation.writes:
        for slot in slots_in(bound.get(name)):
            if not given.arrays[slot.number].flags.writeable:
                raise ValueError(f"'{annotation.name}' writes '{name}', which is read-only")
            if slot.kind == "array" and _may_be_written(annotation, given, slot):
                found.add(slot.number)
    return sorted(found)


def _may_be_written(annotation: Annotation, given: _Given, slot: Slot) -> bool:
    array = given.arrays[slot.number]
    if slot.kind != "array" or not array.flags.writeable:
        return False
    if array.size and _repeats(array):
        raise refused(
            f"'{annotation.name}' may write an array whose elements share memory: give it a copy"
        )
    return True


def _repeats(array: TracedArray) -> bool:
    """Whether two elements may be one in memory."""
    reached = 0
    strides: tuple[int, ...] = array.strides
    for stride, size in sorted(zip(map(abs, strides), array.shape, strict=True)):
        if size > 1:
            if stride <= reached:
                return True
            reached += stride * (size - 1)
    return False


def _results(structure: Any, given: Sequence[TracedArray], outputs: Sequence[TracedArray]) -> Any:
    """What is returned: new arrays and numbers, and arguments themselves."""

    def made(value: Any) -> Any:
        if isinstance(value, Same):
            return given[value.number]
        if not isinstance(value, Slot):
            return value
        array = outputs[value.number]
        array.spot.scalar = value.kind != "array"
        array.spot.weak = {"float": float, "int": int, "bool": bool}.get(value.kind)
        return array

    return mapped(structure, made)
