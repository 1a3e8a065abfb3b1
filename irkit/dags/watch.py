"""Whether arrays are still where they were when they were recorded: looked at before each run, so quickly.

Views share the memory of their owner, which is looked at once. What a plan itself has on the device stays
where it is until the plan is closed. Of a NumPy array the address stands at a known place in its object
(`PyArrayObject_fields.data`, the first field of NumPy's binary interface), which is checked when it is first
looked for.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter, is_
from typing import Any, cast

import numpy as np

from irkit.dags.leases import ended, lease_of
from irkit.dags.located import locate, owner_of
from irkit.dags.memory import Memory
from irkit.dags.steps import Step
from irkit.errors import InvalidInputError

_ALLOCATION = attrgetter("gpu_data")
Stamp = Callable[[], object]
"""Says where an array is, and how large: another answer than before is another place."""


@dataclass(frozen=True)
class Watched:
    """An allocation: what it says of itself, what it said, and the first step that used it."""

    stamp: Stamp
    recorded: object
    step: Step
    name: str
    allocation: tuple[Any, Any] | None = None
    """An array of Numba's and what it has of the device, which says as much."""


class Watch:
    """The arrays of steps, which it keeps."""

    def __init__(self, steps: Sequence[Step], memory: Memory) -> None:
        self._memory, self._kept = memory, [use.array for step in steps for use in step.used]
        found: dict[int, Watched] = {}
        for step in steps:
            for use in step.used:
                if use.array is None or memory.has(use.located.address):
                    continue
                owner = owner_of(use.array)
                stamp, moved = stamp_of(owner), locate(use.array) != use.located
                if moved or id(owner) not in found:
                    recorded = None if moved else stamp()
                    held = None if moved else _allocation(owner)
                    found[id(owner)] = Watched(stamp, recorded, step, use.name, held)
        self._watched = [w for w in found.values() if w.allocation is None]
        # Most arrays of a device: their allocations are looked at without a line of Python for each.
        self._of_numba = [w for w in found.values() if w.allocation is not None]
        self._owners = [w.allocation[0] for w in self._of_numba if w.allocation is not None]
        self._allocations = [w.allocation[1] for w in self._of_numba if w.allocation is not None]
        self._leased = {
            id(use.array): (use.array, f"'{s.task.name}' ({s.task.origin}), {use.name}")
            for s in steps
            for use in s.used
            if lease_of(use.array) is not None
        }

    def close(self) -> None:
        """Keep the arrays no more."""
        self._kept, self._watched, self._leased = [], [], {}
        self._of_numba, self._owners, self._allocations = [], [], []

    def check(self) -> None:
        """Raises InvalidInputError, with the operation and its line, where an array is no longer where it
        was."""
        self._memory.require()
        for array, name in self._leased.values():
            if (problem := ended(array, name)) is not None:
                raise problem
        same = all(map(is_, map(_ALLOCATION, self._owners), self._allocations))
        for one in self._watched if same else [*self._watched, *self._of_numba]:
            if one.stamp() != one.recorded:
                raise InvalidInputError(
                    f"'{one.step.task.name}' ({one.step.task.origin}), {one.name}: the array was freed or "
                    "resized since it was recorded"
                )


def stamp_of(owner: Any) -> Stamp:
    """How an owner of memory says where that is."""
    if isinstance(owner, np.ndarray):
        return _host_stamp(cast("np.ndarray[Any, Any]", owner))
    pointer = getattr(owner, "data_ptr", None)
    if callable(pointer):  # PyTorch
        return lambda: (pointer(), owner.shape)
    if hasattr(getattr(owner, "data", None), "ptr"):  # CuPy
        return lambda: (owner.data.ptr, owner.shape)
    if (found := _allocation(owner)) is not None:
        return lambda: owner.gpu_data is found[1]
    return lambda: _interface_stamp(owner)


def _allocation(owner: Any) -> tuple[Any, Any] | None:
    """An array of Numba's and its allocation, which stays where it is: to ask an array for its interface
    takes some µs."""
    held = getattr(owner, "gpu_data", None)
    own = held is not None and type(owner).__module__.startswith("numba")
    return (owner, held) if own else None


def _interface_stamp(owner: Any) -> object:
    facts = owner.__cuda_array_interface__
    return facts["data"][0], facts["shape"]


def _host_stamp(owner: np.ndarray[Any, Any]) -> Stamp:
    # Its object begins as all do; then comes the address.
    place = ctypes.c_size_t.from_address(id(owner) + object.__basicsize__)
    if place.value != owner.ctypes.data:
        return lambda: (owner.ctypes.data, owner.nbytes)
    return lambda: (place.value, owner.nbytes)
