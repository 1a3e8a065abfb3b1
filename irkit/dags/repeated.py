"""Launches like ones that came before: what was worked out of a kernel and its arguments serves again.

A launch is known again by what its arguments say of themselves when it comes: of an array its class,
address, shape, strides, type of elements, whether it may be written, and the allocation that it is a part
of; of a number its type, and its value where that decides what is written. Which object says so does not
matter, so a view that is made anew is known, and one that was resized or moved is not. What is true on which
side of a host array is looked up each time, as its owner is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import numpy as np

from irkit.dags.inference.typed_code import argument_types
from irkit.dags.kernels import NumbaLaunch, numba_effects
from irkit.dags.leases import ended
from irkit.dags.located import address_of, arrays_in, owner_of
from irkit.dags.steps import Move, Step, Stepper
from irkit.schedule.host.model import HostTask, Region

REPEATED = 1024
"""So many launches are known at a time."""
_WORD = 1 << 62
_NUMBERS: Final = frozenset(
    {
        bool, float, complex, np.bool_, np.float16, np.float32, np.float64, np.complex64, np.complex128,
        np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
    }
)  # fmt: skip
"""Of these the class says the type that Numba gives them."""
_BY_VALUE: Final = "by value"

Key = tuple[Any, ...]


@dataclass(eq=False, slots=True)
class Known:
    """A launch that came before: its task, its arguments as the device takes them, which of them are
    numbers, which are arrays on the device, and what has to be true of arrays of the host's."""

    work: NumbaLaunch
    task: HostTask
    numbers: tuple[int, ...]
    devices: tuple[int, ...]
    moves: tuple[Move, ...]


class Repeats:
    """Launches by what their arguments say, for the steps that one of them makes again."""

    def __init__(self, stepper: Stepper, checks: bool) -> None:
        self._stepper, self._checks = stepper, checks
        self._known: dict[Key, Known | str] = {}
        self._regions: dict[Region, Region] = {}

    def find(self, key: Key | None, arguments: tuple[Any, ...]) -> list[Step] | None:
        """The steps of a launch of this key, if one like it came before."""
        if key is None:
            return None
        known = self._known.get(key)
        if known is _BY_VALUE:
            known = self._known.get((key, *_numbers_of(arguments)))
        if not isinstance(known, Known):
            return None
        if any(ended(arguments[n], "") is not None for n in known.devices):
            return None
        for move in known.moves:
            # Another array may have come to lie where one was.
            if not self._stepper.has(move.twin, owner_of(arguments[move.argument])):
                return None
        steps: list[Step] = []
        for move in known.moves:
            steps += self._stepper.moved(move)
        return [*steps, Step(known.task, _work(known, arguments), kept=arguments)]

    def keep(self, key: Key | None, arguments: tuple[Any, ...], step: Step) -> None:
        """Take note of a launch that was worked out."""
        work = step.work
        if key is None or not isinstance(work, NumbaLaunch):
            return
        effects = numba_effects(work.kernel, argument_types(work.kernel, arguments), self._checks)
        if effects.captured:
            return
        if len(self._known) >= REPEATED:
            self._known.clear()
            self._regions.clear()
        found = list(arrays_in(arguments))
        arrays = {path[0] for path, _, _ in found}
        devices = tuple(path[0] for path, _, at in found if at.space == "device")
        numbers = tuple(n for n in range(len(arguments)) if n not in arrays)
        moves = self._stepper.moves(step.used)
        known = Known(work, self._task(step.task), numbers, devices, moves)
        if numbers and effects.covers:
            # What is written whole may hang on a bound that is given.
            self._known[key] = _BY_VALUE
            key = (key, *_numbers_of(arguments))
        self._known[key] = known

    def _task(self, task: HostTask) -> HostTask:
        """The task of every launch like it; equal regions are one object, which is quickly compared."""
        one = self._regions.setdefault
        uses = [replace(use, region=one(use.region, use.region)) for use in task.uses]
        return replace(task, uses=tuple(uses), origin="")


def key_of(configured: Any, arguments: tuple[Any, ...]) -> Key | None:
    """What a launch is known by; None for what has to be worked out each time: tuples, records, classes of
    arrays that irkit does not know."""
    key: list[Any] = [
        configured.dispatcher, configured.griddim, configured.blockdim, configured.sharedmem
    ]  # fmt: skip
    for value in arguments:
        kind = cast(Any, type(value))
        key.append(kind)
        if kind is np.ndarray:
            key.append(_host_facts(value))
        elif kind in _NUMBERS:
            continue
        elif kind is int:
            # Of larger ones Numba makes other types.
            if not -_WORD < value < _WORD:
                return None
        else:
            facts = getattr(value, "__cuda_array_interface__", None)
            if facts is None or facts.get("mask") is not None:
                return None
            key.append(_device_facts(cast("dict[str, Any]", facts)))
    return tuple(key)


def _host_facts(value: np.ndarray[Any, Any]) -> Any:
    facts = address_of(value), value.shape, value.strides, value.dtype, value.flags.writeable
    owner = owner_of(value)
    if owner is value:
        return facts
    return *facts, address_of(owner), owner.shape, owner.strides, owner.itemsize


def _device_facts(facts: dict[str, Any]) -> Any:
    strides = facts.get("strides")
    return (
        tuple(facts["data"]),
        tuple(facts["shape"]),
        None if strides is None else tuple(strides),
        facts["typestr"],
    )


def _numbers_of(arguments: Sequence[Any]) -> list[Any]:
    return [a for a in arguments if type(a) is int or type(a) in _NUMBERS]


def _work(known: Known, arguments: tuple[Any, ...]) -> NumbaLaunch:
    """The launch with the numbers of now."""
    if not known.numbers:
        return known.work
    made = list(known.work.arguments)
    for number in known.numbers:
        made[number] = arguments[number]
    old = known.work
    return NumbaLaunch(tuple(made), old.kernel, old.grid, old.block, old.shared_bytes)
