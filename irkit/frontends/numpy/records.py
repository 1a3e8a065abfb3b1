"""What a trace is made of: buffers, views of them, and what is done to them, in order.

These are the ops of the program level as plain data, so that two traces of a loop's body can be compared and
a round can be told apart from a loop. `emission.py` writes them as IR.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from xdsl.ir import Attribute

from irkit.annotations.host_task import HostTask
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.types import Tensor, numpy_dtype
from irkit.frontends.numpy.affine import Affine, LoopSymbol
from irkit.frontends.numpy.picks import Pick, check
from irkit.frontends.numpy.places import refused, segment_now
from irkit.weights import Array


class Buffer:
    """Memory of one dtype, contiguous in C order. `base` has its layout and no values: nobody reads it."""

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        argument: int | None,
        pairs: bool = False,
    ) -> None:
        self.argument = argument
        """Which argument of the program it is; None if the program makes it."""
        self.pairs = pairs
        """Whether its last dimension is the real and imaginary parts of complex numbers, of which every view
        sees one."""
        self.repeats = False
        """Whether somebody might write a view of it, but that elements of that share memory."""
        self.apart = False
        """Whether its elements may lie otherwise than the caller's, or be none of an array's."""
        self.base: Array = np.empty(shape, dtype)
        self.written = argument is not None
        """Whether anything was written to it so far, as the trace goes."""
        self.known: Array | None = None
        """Its contents, where they are the same in every call and nothing was written to it since."""
        self.pick: Pick | None = None
        """What it is a copy of where NumPy has a view."""
        self.picks: list[Pick] = []
        """Of such copies of parts of it."""

    def being_read(self) -> None:
        """Raises UnsupportedError where NumPy would find another value here."""
        if self.pick is not None:
            check(self.pick.behind)
        for pick in self.picks:
            check(pick.ahead)

    def being_written(self) -> None:
        """Copies of it, and what it is a copy of, may differ from now on."""
        if self.pick is not None:
            self.pick.copy_written()
        for pick in self.picks:
            pick.array_written()

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
        return self.base.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of its elements."""
        return self.base.dtype


@dataclass(frozen=True)
class View:
    """Elements of a buffer: `strides` in elements, from `offset`."""

    buffer: Buffer
    offset: Affine
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True)
class ComplexView(View):
    """Complex elements of a buffer of floats, in which each is a real part and an imaginary one behind it:
    the view of the real parts."""

    @property
    def parts(self) -> tuple[View, View]:
        """Views of the real and of the imaginary parts."""
        real = View(self.buffer, self.offset, self.sizes, self.strides)
        return real, replace(real, offset=self.offset.plus(Affine(1)))


class Value:
    """A tensor, as it was when it was computed or read."""

    def __init__(self, type: Tensor) -> None:
        self._type = type

    @property
    def type(self) -> Tensor:
        """Its type at the graph level."""
        return self._type

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
        return self._type.get_shape()

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of its elements."""
        return numpy_dtype(self._type.element_type)


class ComplexValue(Value):
    """Complex numbers: a tensor of real parts and one of imaginary parts, of one shape and float type."""

    def __init__(self, real: Value, imaginary: Value) -> None:
        super().__init__(real.type)
        self.parts = real, imaginary

    @property
    def type(self) -> Tensor:
        """There is none. Raises UnsupportedError: what asks for it knows nothing of complex numbers."""
        raise refused("complex numbers, in an operation that irkit has of real ones only")

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of its elements."""
        return complex_of(self.parts[0].dtype)


def complex_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of complex numbers whose parts are of `dtype`."""
    found: np.dtype[Any] = np.result_type(dtype, np.complex64)
    return found


def part_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of the parts of complex numbers."""
    return parts_of(np.empty(0, dtype))[0].dtype


def parts_of(array: Array) -> tuple[Array, Array]:
    """Views of the real and of the imaginary parts of complex numbers."""
    complex_array: Any = array
    return complex_array.real, complex_array.imag


@dataclass(frozen=True)
class Check:
    """Something that must hold in a run: where it does not, `error` is raised with `message`, which names a
    `place`."""

    place: str
    message: str
    error: type[Exception] = IndexError


def out_of_bounds(place: str, size: int, error: type[Exception] = IndexError) -> Check:
    """Indices are within an extent."""
    return Check(place, f"an index is out of bounds for an axis of size {size}", error)


@dataclass(frozen=True, eq=False)
class Record:
    """Something that happens; `place` is the line of the user's file that asked for it, `segment` the name of
    what is computed again as one."""

    place: str
    segment: str | None = field(default_factory=segment_now, kw_only=True)


@dataclass(frozen=True, eq=False)
class Read(Record):
    """`value` is what is in `view` now."""

    view: View
    value: Value


@dataclass(frozen=True, eq=False)
class Write(Record):
    """`value` goes to `view`."""

    value: Value
    view: View


@dataclass(frozen=True, eq=False)
class Compute(Record):
    """A graph op."""

    op: type[GraphOp]
    operands: tuple[Value, ...]
    props: Mapping[str, Attribute]
    values: tuple[Value, ...]


@dataclass(frozen=True, eq=False)
class Constant(Record):
    """An array that is known now."""

    array: Array
    value: Value


@dataclass(frozen=True, eq=False)
class Counter(Record):
    """`value`, of no dimensions, is the number of `index`."""

    index: Affine
    value: Value


@dataclass(frozen=True, eq=False)
class For(Record):
    """`body` for each number of `symbol` from `lower` to below `upper`."""

    symbol: LoopSymbol
    lower: int
    upper: int
    body: list[Record]


@dataclass(frozen=True, eq=False)
class While(Record):
    """`body` as long as `condition`, a boolean of no dimensions, holds."""

    condition: Buffer
    body: list[Record]


@dataclass(frozen=True, eq=False)
class Call(Record):
    """A function of the host, on views, of which it reads those that `reads` numbers, and writes `writes`."""

    task: HostTask
    views: tuple[View, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]


def own_buffers(record: Record) -> list[Buffer]:
    """Buffers that a record touches, not counting its body."""
    match record:
        case Read() | Write():
            return [record.view.buffer]
        case While():
            return [record.condition]
        case Call():
            return [v.buffer for v in record.views]
        case _:
            return []


def buffers_of(record: Record) -> Iterator[Buffer]:
    """Buffers that a record, or one in its body, touches."""
    yield from own_buffers(record)
    if isinstance(record, For | While):
        for inside in record.body:
            yield from buffers_of(inside)
