"""What the tasks of a program on a host and a device do, and the buffers that they do it to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from irkit.dialects.bufferization import Array
from irkit.dialects.types import numpy_dtype
from irkit.schedule.host.model import HostBuffer, HostTask, Region


@dataclass(frozen=True)
class Rates:
    """What copies and functions take where nothing else says so: bytes a second over the link, back from the
    device (0: as there), through the device's memory and the host's, and ns before anything starts. The link
    is what the reference assumes of PCIe 5, the memory an H200's."""

    link: float = 50e9
    memory: float = 4.3e12
    start_ns: float = 5_000.0
    back: float = 0.0
    host: float = 10e9

    def copy(self, nbytes: int, to_device: bool) -> float:
        """Nanoseconds of a copy between host and device."""
        rate = self.link if to_device or not self.back else self.back
        return self.start_ns + nbytes / rate * 1e9

    def run(self, nbytes: int, on_device: bool) -> float:
        """Nanoseconds of a function that touches so many bytes."""
        return self.start_ns + nbytes / (self.memory if on_device else self.host) * 1e9


@dataclass(frozen=True)
class Place:
    """A view of a buffer, from `offset` bytes on; strides in bytes."""

    buffer: int
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    array: Array

    @property
    def region(self) -> Region:
        """Its bytes."""
        item = numpy_dtype(self.array.element_type).itemsize
        return Region.of(self.buffer, self.offset, self.sizes, self.strides, item)

    @property
    def nbytes(self) -> int:
        """Bytes of its elements."""
        return math.prod(self.sizes) * numpy_dtype(self.array.element_type).itemsize


@dataclass(frozen=True)
class Move:
    """A copy from one region to another, of as many elements in the same order."""

    source: Region
    target: Region


@dataclass(frozen=True)
class Call:
    """A function on views of buffers: on the device, or on the host. `outputs` are where what it writes to
    `arrays` goes, by the number of the argument; what is not there is written in place."""

    function: str
    arrays: tuple[Place, ...]
    on_device: bool
    outputs: Mapping[int, Place] = field(default_factory=dict[int, Place])

    def written(self, number: int) -> Place:
        """Where an argument's new contents are."""
        return self.outputs.get(number, self.arrays[number])


@dataclass(frozen=True, eq=False)
class Compute:
    """Ops that the host does itself, in a round of its loops: `arrays` are the buffers that they are of,
    `variables` those of the loops around."""

    ops: tuple[Operation, ...]
    arrays: Mapping[SSAValue, Place]
    variables: Mapping[SSAValue, int]


Action = Move | Call | Compute


@dataclass
class HostProgram:
    """Buffers and tasks in program order, and what each task does. `arguments` and `results` say which
    buffers the caller gives, and which views are returned; `left` are those that have the last contents of
    arguments, by the argument's number, where these stay as they are. `arrays` are the types of buffers."""

    buffers: list[HostBuffer]
    arrays: list[Array]
    tasks: list[HostTask]
    actions: list[Action]
    arguments: list[int]
    results: list[Place]
    left: dict[int, Place] = field(default_factory=dict[int, Place])
