"""Appending graph ops, and the few compositions that front ends and gradients are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar, cast

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from irkit.dialects import graph
from irkit.dialects.types import DYNAMIC, element_type, numpy_dtype
from irkit.errors import UnsupportedError
from irkit.weights import Array


class Typed(Protocol):
    """What an op takes and gives: something of a tensor type."""

    @property
    def type(self) -> Attribute: ...


V = TypeVar("V", bound=Typed)


class Ops(Generic[V]):
    """Appends ops by `make(op, *operands, **props)`, which gives an op's results (`ops` of a `GraphBuilder`),
    and constants by `constant(array)`."""

    def __init__(self, make: Callable[..., Sequence[V]], constant: Callable[[Array], V]) -> None:
        self.make = make
        self.constant = constant

    def __call__(self, op: type[graph.GraphOp], *operands: V, **props: Any) -> V:
        """Append an op of one result."""
        return self.make(op, *operands, **props)[0]

    def pair(self, op: type[graph.GraphOp], *operands: V, **props: Any) -> tuple[V, V]:
        """Append an op of two results."""
        first, second = self.make(op, *operands, **props)
        return first, second

    # What a value is

    def dtype(self, x: V) -> np.dtype[Any]:
        """Its NumPy type."""
        return numpy_dtype(cast(TensorType[Attribute], x.type).element_type)

    def shape(self, x: V) -> tuple[int, ...]:
        """Its extents. Raises UnsupportedError where one is open."""
        shape = cast(TensorType[Attribute], x.type).get_shape()
        if DYNAMIC in shape:
            raise UnsupportedError(f"an array function of {x.type}: its extents must be known")
        return tuple(shape)

    def is_float(self, x: V) -> bool:
        """Whether it is of floats, bfloat16 too."""
        return self.dtype(x).kind not in "biu"

    # Constants and conversions

    def like(self, number: float, x: V) -> V:
        """One number of x's type, without dimensions."""
        return self.constant(np.array(number).astype(self.dtype(x)))

    def cast(self, x: V, dtype: Any) -> V:
        """As another type."""
        if self.dtype(x) == np.dtype(dtype):
            return x
        return self(graph.CastOp, x, to=element_type(np.dtype(dtype)))

    def truth(self, x: V) -> V:
        """Whether each element is not 0; NaN is true."""
        return self.cast(x, np.bool_)

    # Elementwise

    def compare(self, x: V, y: V, predicate: str) -> V:
        """As `graph.compare`."""
        return self(graph.CompareOp, x, y, predicate=predicate)

    def below(self, x: V, number: float) -> V:
        """x < number"""
        return self.compare(x, self.like(number, x), "lt")

    def above(self, x: V, number: float) -> V:
        """x > number"""
        return self.compare(x, self.like(number, x), "gt")

    def equals(self, x: V, number: float) -> V:
        """x == number"""
        return self.compare(x, self.like(number, x), "eq")

    def where(self, condition: V, x: V, y: V) -> V:
        """As `graph.where`."""
        return self(graph.WhereOp, condition, x, y)

    def add(self, x: V, y: V) -> V:
        """x + y"""
        return self(graph.AddOp, x, y)

    def sub(self, x: V, y: V) -> V:
        """x - y"""
        return self(graph.SubOp, x, y)

    def mul(self, x: V, y: V) -> V:
        """x * y"""
        return self(graph.MulOp, x, y)

    def div(self, x: V, y: V) -> V:
        """x / y; integers truncate."""
        return self(graph.DivOp, x, y)

    # Shapes

    def reshape(self, x: V, shape: Sequence[int]) -> V:
        """The same elements in C order."""
        wanted = list(shape)
        return x if list(self.shape(x)) == wanted else self(graph.ReshapeOp, x, shape=wanted)

    def expand(self, x: V, shape: Sequence[int]) -> V:
        """Broadcast to a shape."""
        wanted = list(shape)
        return x if list(self.shape(x)) == wanted else self(graph.ExpandOp, x, shape=wanted)

    def transpose(self, x: V, permutation: Sequence[int]) -> V:
        """Dimension d of the result is dimension permutation[d] of x."""
        if list(permutation) == list(range(len(permutation))):
            return x
        return self(graph.TransposeOp, x, permutation=list(permutation))

    def cut(self, x: V, axis: int, start: int, size: int, step: int = 1) -> V:
        """`size` elements along one axis from `start`, `step` apart."""
        sizes = list(self.shape(x))
        offsets, strides = [0] * len(sizes), [1] * len(sizes)
        if (start, size, step) == (0, sizes[axis], 1):
            return x
        offsets[axis], sizes[axis], strides[axis] = start, size, step
        if 0 in sizes:
            return self.constant(np.zeros(sizes, self.dtype(x)))
        return self(graph.SliceOp, x, offsets=offsets, sizes=sizes, strides=strides)

    def reduce(self, x: V, kind: str, axes: Sequence[int], keepdims: bool = False) -> V:
        """As `graph.reduce`, booleans as bytes."""
        if self.dtype(x) == np.bool_:
            return self.truth(self.reduce(self.cast(x, np.uint8), kind, axes, keepdims))
        return self(graph.ReduceOp, x, kind=kind, axes=list(axes), keepdims=keepdims)


class OpenOps(Ops[V]):
    """The same over values whose extents may be open, for compositions that know what DYNAMIC is."""

    def shape(self, x: V) -> tuple[int, ...]:
        """Its extents, DYNAMIC where one is open."""
        return tuple(cast(TensorType[Attribute], x.type).get_shape())
