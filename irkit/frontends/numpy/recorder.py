"""The trace as it grows: what a function of arrays does, in order."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from xdsl.utils.exceptions import VerifyException

from irkit.annotations.learned import Learned
from irkit.dialects.graph import (
    AddOp,
    AndOp,
    CastOp,
    CompareOp,
    ConcatOp,
    ExpandOp,
    GatherOp,
    OrOp,
    ReduceOp,
    ReshapeOp,
    SubOp,
    WhereOp,
)
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.types import element_type, tensor, tensor_of
from irkit.frontends.array_ops import Ops
from irkit.frontends.module import attribute
from irkit.frontends.numpy.affine import Affine
from irkit.frontends.numpy.places import refused, user_place
from irkit.frontends.numpy.records import (
    Buffer,
    Check,
    ComplexValue,
    ComplexView,
    Compute,
    Constant,
    Counter,
    Read,
    Record,
    Value,
    View,
    Write,
    out_of_bounds,
    part_of,
    parts_of,
)
from irkit.weights import Array

BY_PARTS = frozenset([AddOp, SubOp, ConcatOp, ExpandOp, GatherOp, ReshapeOp, WhereOp])
"""Ops of complex numbers that are those of their parts."""
MOST = 20_000
"""Ops of a trace: more come of loops that Python unrolls, for ever perhaps."""


class Recorder:
    """What one trace has so far: `records` is what happened, `arguments` are buffers from outside."""

    def __init__(self, learned: Learned | None = None) -> None:
        """`learned`: what functions of the host were seen to return."""
        self.learned = learned
        self._ops = 0
        self.records: list[Record] = []
        self._outermost = self.records
        self.arguments: list[Buffer] = []
        self.made: list[Buffer] = []
        """Buffers that are no arguments, in the order in which they were made."""
        self.capture: Callable[[str, Any, Callable[[], Any]], Any] | None = None
        """Told of what the traced function reads beside its arguments."""
        self.call: Any = None
        """The number of the call, a traced array, by which tasks of the host find what is no array."""
        self.differentiated = False
        """Whether what is traced will be differentiated: functions with gradients of their own stay whole."""
        self.customs: list[Any] = []
        """Functions with gradients of their own that were called: they are there as long as the trace."""
        self.checks: dict[Check, Buffer] = {}
        """Of each thing that must hold: a boolean that says whether it did."""
        self.not_compiled = ""
        """Why the methods of estimators are not to be part of the program; empty if they may be."""
        self.compiled: list[str] = []
        """Methods of estimators that are part of it, each with its place."""
        self.guarded: set[int] = set()
        """Identities of these estimators."""
        self.going: list[str] = []
        """Places of `while` statements on data of which a round is being traced."""
        self.exact: set[str] = set()
        """Places of loops whose range is taken as it is in each round around them."""
        self.leaving: set[str] = set()
        """Places of first statements of `for` statements that data end: they are `while` statements."""
        self.moving: list[str] = []
        """Places of loops of which a round is being traced that may stand for all, whatever their range."""
        self.dropped: dict[str, str] = {}
        """Variables that only rounds of such a loop bind, and where it stands."""

    @property
    def in_rounds(self) -> bool:
        """Whether what is traced now is a round that may stand for others."""
        return self.records is not self._outermost

    @property
    def compose(self) -> Ops[Value]:
        """What compositions of graph ops are appended by."""
        return Ops(self.ops, self.constant)

    def argument(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Buffer:
        """A buffer that comes from outside."""
        buffer = Buffer(shape, dtype, len(self.arguments))
        self.arguments.append(buffer)
        return buffer

    def alloc(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Buffer:
        """A new buffer, of no contents; of complex numbers one of floats with parts side by side. Raises
        UnsupportedError for a dtype that irkit has no type for."""
        check_dtype(dtype)
        pairs = dtype.kind == "c"
        if pairs:
            shape, dtype = (*shape, 2), part_of(dtype)
        buffer = Buffer(tuple(shape), dtype, None, pairs)
        self.made.append(buffer)
        return buffer

    def read(self, view: View) -> Value:
        """What is in a view now."""
        if isinstance(view, ComplexView):
            return ComplexValue(*map(self.read, view.parts))
        view.buffer.being_read()
        value = Value(tensor(element_type(view.buffer.dtype), view.sizes))
        self.records.append(Read(user_place(), view, value))
        return value

    def write(self, value: Value, view: View) -> None:
        """Put a value of the same shape and dtype to a view. A view of no elements takes none."""
        assert value.shape == view.sizes
        if isinstance(view, ComplexView):
            assert isinstance(value, ComplexValue)
            for part, into in zip(value.parts, view.parts, strict=True):
                self.write(part, into)
            return
        assert value.dtype == view.buffer.dtype
        view.buffer.known, view.buffer.written = None, True
        view.buffer.being_written()
        if 0 not in view.sizes:
            self.records.append(Write(user_place(), value, view))

    def constant(self, array: Array) -> Value:
        """An array that is known now."""
        check_dtype(array.dtype)
        if array.dtype.kind == "c":
            return ComplexValue(*map(self.constant, parts_of(array)))
        value = Value(tensor_of(array))
        self.records.append(Constant(user_place(), np.array(array, order="C"), value))
        return value

    def counter(self, index: Affine) -> Value:
        """The number of an index, as a 64-bit integer of no dimensions."""
        settled = index.settled
        if not settled.terms:
            return self.constant(np.array(settled.constant, np.int64))
        value = Value(tensor(element_type(np.dtype(np.int64)), ()))
        self.records.append(Counter(user_place(), settled, value))
        return value

    def ops(self, op: type[GraphOp], *operands: Value, **props: Any) -> tuple[Value, ...]:
        """Append a graph op; its results. Raises UnsupportedError, with the user's line, on what it does
        not take."""
        if any(isinstance(v, ComplexValue) for v in operands):
            return self._by_parts(op, operands, props)
        made = {k: attribute(v) for k, v in props.items()}
        try:
            types = op.inferred([v.type for v in operands], made)
        except VerifyException as error:
            raise refused(str(error)) from None
        values = tuple(map(Value, types))
        self._ops += 1
        if self._ops > MOST:
            raise refused(
                f"more than {MOST} ops, of loops that are unrolled: a `for` over a range whose rounds are "
                "alike is kept, and so are irkit.range and irkit.while_loop"
            )
        self.records.append(Compute(user_place(), op, operands, made, values))
        return values

    def op(self, op: type[GraphOp], *operands: Value, **props: Any) -> Value:
        """Append a graph op of one result."""
        return self.ops(op, *operands, **props)[0]

    def _by_parts(
        self, op: type[GraphOp], operands: Sequence[Value], props: Mapping[str, Any]
    ) -> tuple[Value, ...]:
        """An op that does to real and imaginary parts what it does to complex numbers; masks and indices are
        real."""
        if op not in BY_PARTS and (op, props.get("kind")) != (ReduceOp, "sum"):
            raise refused(f"{op.name} of complex numbers")
        found = [
            self.ops(
                op, *(v.parts[n] if isinstance(v, ComplexValue) else v for v in operands), **props
            )
            for n in range(2)
        ]
        return tuple(ComplexValue(*parts) for parts in zip(*found, strict=True))

    def within(
        self,
        indices: Value,
        size: int,
        least: int | None = None,
        error: type[Exception] = IndexError,
    ) -> None:
        """Whoever runs the program is told by an `error` if an index is not from `least`, or else `-size`, to
        below `size`."""
        place = user_place()
        ends = (-size if least is None else least, size)
        limits = [self.constant(np.array(n, np.int64)) for n in ends]
        low = self.op(CompareOp, indices, limits[0], predicate="ge")
        high = self.op(CompareOp, indices, limits[1], predicate="lt")
        inside = self.cast(self.op(AndOp, low, high), np.dtype(np.uint8))
        axes = list(range(len(indices.shape)))
        if axes:
            inside = self.op(ReduceOp, inside, kind="min", axes=axes, keepdims=False)
        self.require(out_of_bounds(place, size, error), self.cast(inside, np.dtype(bool)))

    def require(self, check: Check, held: Value) -> None:
        """Whoever runs the program is told of it if a boolean does not hold."""
        buffer = self.checks.setdefault(check, Buffer((), np.dtype(bool), None))
        view = View(buffer, Affine(0), (), ())
        self.write(self.op(AndOp, self.read(view), held), view)

    # What every operation needs

    def cast(self, value: Value, dtype: np.dtype[Any]) -> Value:
        """`value` in another dtype, as NumPy converts."""
        check_dtype(dtype)
        if value.dtype == dtype:
            return value
        if isinstance(value, ComplexValue):
            return self._cast_complex(value, dtype)
        if dtype.kind == "c":
            real = self.cast(value, part_of(dtype))
            return ComplexValue(real, self.splat(0, real.dtype, value.shape))
        return self.op(CastOp, value, to=element_type(dtype))

    def _cast_complex(self, value: ComplexValue, dtype: np.dtype[Any]) -> Value:
        """Complex numbers as others, as whether they are not 0, or as their real parts."""
        real, imaginary = value.parts
        if dtype.kind == "b":
            return self.op(OrOp, self.cast(real, dtype), self.cast(imaginary, dtype))
        if dtype.kind != "c":
            return self.cast(real, dtype)
        return ComplexValue(*(self.cast(p, part_of(dtype)) for p in value.parts))

    def expand(self, value: Value, shape: Sequence[int]) -> Value:
        """`value` broadcast to a shape."""
        return value if value.shape == tuple(shape) else self.op(ExpandOp, value, shape=list(shape))

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """The same elements, in C order, in another shape."""
        return (
            value if value.shape == tuple(shape) else self.op(ReshapeOp, value, shape=list(shape))
        )

    def splat(self, number: Any, dtype: np.dtype[Any], shape: Sequence[int]) -> Value:
        """One number in every place."""
        return self.expand(self.constant(np.array(number, dtype)), shape)


def check_dtype(dtype: np.dtype[Any]) -> None:
    """Raises UnsupportedError for a dtype that irkit has no type for."""
    try:
        element_type(part_of(dtype) if dtype.kind == "c" else dtype)
    except KeyError:
        raise refused(f"arrays of dtype {dtype}: irkit has no such type") from None


_CURRENT: ContextVar[Recorder | None] = ContextVar("recorder", default=None)


def recorder() -> Recorder:
    """The trace that is being made. Raises UnsupportedError where there is none: an array of a trace has
    outlived it."""
    current = _CURRENT.get()
    if current is None:
        raise refused(
            "an array of a traced function is used outside of it: return it, or keep nothing of it"
        )
    return current


def tracing() -> bool:
    """Whether a trace is being made."""
    return _CURRENT.get() is not None


@contextmanager
def recording(into: Recorder) -> Generator[Recorder]:
    """What happens inside is recorded."""
    token = _CURRENT.set(into)
    try:
        yield into
    finally:
        _CURRENT.reset(token)
