"""Which buffer has what an array of a program holds: a new one where the old contents have to stay."""

from __future__ import annotations

import math

from xdsl.ir import SSAValue

from irkit.dialects.program.spaces import on_device
from irkit.dialects.program.views import array_type
from irkit.dialects.types import numpy_dtype
from irkit.passes.host.actions import HostProgram, Place
from irkit.schedule.host.model import HostBuffer


class Versions:
    """The buffers of arrays, by the array. A compiled function of the device writes what it returns while it
    reads what it takes, so of an array that it changes there are two, in turn. An argument that stays as it
    is (`kept`) has another buffer from the first write on."""

    def __init__(self, made: HostProgram, kept: bool) -> None:
        self._made, self._keeps = made, kept
        self._now: dict[SSAValue, int] = {}
        self._other: dict[SSAValue, int] = {}
        self._kept: set[SSAValue] = set()

    def argument(self, value: SSAValue) -> int:
        """The buffer of an argument."""
        if self._keeps:
            self._kept.add(value)
        return self.new(value)

    def new(self, value: SSAValue) -> int:
        """The buffer of an array; the same one in each round of a loop."""
        if value not in self._now:
            self._now[value] = self._buffer(value, "")
        return self._now[value]

    def now(self, value: SSAValue) -> int:
        """The buffer that has what an array holds."""
        return self._now[value]

    def is_kept(self, value: SSAValue) -> bool:
        """Whether the buffer of an array must not be written."""
        return value in self._kept

    def turn(self, value: SSAValue) -> tuple[int, int]:
        """The buffer of an array up to now, and the one from now on."""
        old = self._now[value]
        if value in self._kept:
            self._kept.discard(value)
            self._now[value] = self._buffer(value, "_new")
        else:
            if value not in self._other:
                self._other[value] = self._buffer(value, "_turn")
            self._now[value], self._other[value] = self._other[value], old
        return old, self._now[value]

    def whole(self, value: SSAValue, buffer: int) -> Place:
        """All of a buffer of an array."""
        array = array_type(value)
        item, shape = numpy_dtype(array.element_type).itemsize, tuple(array.get_shape())
        strides = tuple(math.prod(shape[d + 1 :]) * item for d in range(len(shape)))
        return Place(buffer, 0, shape, strides, array)

    def _buffer(self, value: SSAValue, suffix: str) -> int:
        made = self._made
        number, array = len(made.buffers), array_type(value)
        nbytes = math.prod(array.get_shape()) * numpy_dtype(array.element_type).itemsize
        space = "device" if on_device(value) else "host"
        name = f"{value.name_hint}{suffix}" if value.name_hint else f"{space}{number}"
        made.buffers.append(HostBuffer(name, space, nbytes))
        made.arrays.append(array)
        return number
