"""Whose memory an array on a device is, so that one whose memory was given back is not taken for an array."""

from __future__ import annotations

import weakref
from typing import Any, Protocol

from irkit.errors import InvalidInputError


class Given(Protocol):
    """Memory that is given back together."""

    closed: bool


class Lease:
    """Whose memory an array of `Dag.empty` is, and the line that made it: the array and its views keep it."""

    def __init__(self, memory: Given, origin: str) -> None:
        self._memory, self.origin = weakref.ref(memory), origin

    @property
    def ended(self) -> bool:
        """Whether the memory was given back."""
        memory = self._memory()
        return memory is None or memory.closed


def lease_of(array: Any) -> Lease | None:
    """The lease of an array of a device, or of the one that it is a view of; None of others' arrays."""
    own = getattr(array, "irkit_lease", None)
    if own is None:
        # Numba's arrays and views of them have the pointer's owner.
        own = getattr(getattr(array, "gpu_data", None), "owner", None)
    return own if isinstance(own, Lease) else None


def ended(array: Any, name: str) -> InvalidInputError | None:
    """What is wrong with the use of an array as `name`, if its DAG gave its memory back."""
    lease = lease_of(array)
    if lease is None or not lease.ended:
        return None
    return InvalidInputError(
        f"{name}: the array was made by `empty` at {lease.origin}, of a DAG that was closed since: its "
        "memory on the device was given back"
    )
