"""Whether two rounds of a loop did the same, but for which buffers they did it with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any, cast

import numpy as np

from irkit.frontends.numpy.affine import Affine, LoopSymbol
from irkit.frontends.numpy.arrays import TracedArray
from irkit.frontends.numpy.indices import Index
from irkit.frontends.numpy.records import (
    Buffer,
    Call,
    Compute,
    Constant,
    Counter,
    For,
    Read,
    Record,
    Value,
    View,
    While,
    Write,
)


class Unequal(Exception):
    """Two rounds differ; the message says in what."""


class Unifier:
    """What of one round stands for what of the next: buffers, symbols, values."""

    def __init__(self, symbols: Mapping[LoopSymbol, LoopSymbol] | None = None) -> None:
        self.symbols = dict(symbols or {})
        self.buffers: dict[Buffer, Buffer] = {}
        self._values: dict[Value, Value] = {}
        self._taken: dict[Buffer, Buffer] = {}

    def bodies(self, a: Sequence[Record], b: Sequence[Record]) -> None:
        """All that happened. Raises Unequal."""
        for x, y in zip(a, b, strict=False):
            self._record(x, y)
        if len(a) != len(b):
            longer = a if len(a) > len(b) else b
            raise Unequal(f"{longer[min(len(a), len(b))].place} happens in one round only")

    def _record(self, x: Record, y: Record) -> None:
        if type(x) is not type(y):
            raise Unequal(f"{x.place} in one round, {y.place} in the next")
        match x, y:
            case Read() | Write(), Read() | Write():
                self._effect(x, y)
            case Compute(), Compute():
                self._compute(x, y)
            case For() | While(), For() | While():
                self._loop(x, y)
            case Constant(), Constant():
                if not _equal(x.array, y.array):
                    raise Unequal(f"{x.place}: a number that differs from round to round")
                self._values[x.value] = y.value
            case Counter(), Counter():
                self._affine(x.index, y.index, x)
                self._values[x.value] = y.value
            case Call(), Call():
                self._call(x, y)
            case _:
                raise Unequal(x.place)

    def _compute(self, x: Compute, y: Compute) -> None:
        if x.op is not y.op or dict(x.props) != dict(y.props):
            raise Unequal(f"{x.place}: {x.op.name} differs from round to round")
        if len(x.operands) != len(y.operands):
            raise Unequal(f"{x.place}: {x.op.name} of more operands in one round")
        for p, q in zip(x.operands, y.operands, strict=True):
            self._same_value(p, q, x)
        self._values.update(zip(x.values, y.values, strict=True))

    def _effect(self, x: Read | Write, y: Read | Write) -> None:
        self._view(x.view, y.view, x)
        if isinstance(x, Read):
            self._values[x.value] = y.value
        else:
            self._same_value(x.value, y.value, x)

    def _loop(self, x: For | While, y: For | While) -> None:
        if isinstance(x, For) and isinstance(y, For):
            if (x.lower, x.upper) != (y.lower, y.upper):
                raise Unequal(f"{x.place}: a loop inside is longer in one round")
            self.symbols[x.symbol] = y.symbol
        elif isinstance(x, While) and isinstance(y, While):
            self.pair(x.condition, y.condition, x.place)
        self.bodies(x.body, y.body)

    def _call(self, x: Call, y: Call) -> None:
        if not x.task.same_as(y.task) or x.writes != y.writes:
            raise Unequal(f"{x.place}: another function is called in the next round")
        for p, q in zip(x.views, y.views, strict=True):
            self._view(p, q, x)

    def _same_value(self, p: Value, q: Value, record: Record) -> None:
        if self._values.get(p, p) is not q:
            raise Unequal(f"{record.place}: computed of something else in the next round")

    def _view(self, p: View, q: View, record: Record) -> None:
        if (p.sizes, p.strides) != (q.sizes, q.strides):
            raise Unequal(f"{record.place}: {p.sizes} in one round, {q.sizes} in the next")
        self._affine(p.offset, q.offset, record)
        self.pair(p.buffer, q.buffer, record.place)

    def _affine(self, p: Affine, q: Affine, record: Record) -> None:
        p, q = p.settled, q.settled
        moved = {self.symbols.get(s, s): c for s, c in p.terms}
        if p.constant != q.constant or moved != dict(q.terms):
            raise Unequal(f"{record.place}: an index that differs otherwise than by the loop's")

    def pair(self, p: Buffer, q: Buffer, place: str) -> None:
        """`q` is in the next round what `p` is in this. Raises Unequal where it was another one before."""
        if self.buffers.setdefault(p, q) is not q or self._taken.setdefault(q, p) is not p:
            raise Unequal(f"{place}: an array that is one in one round is two in the next")
        if p.shape != q.shape or p.dtype != q.dtype:
            raise Unequal(f"{place}: an array of shape {p.shape} has {q.shape} in the next round")

    # What Python keeps from round to round

    def states(self, p: Any, q: Any, name: str) -> None:
        """Variables at the end of both rounds. Raises Unequal where one that moved on is neither an array nor
        an index."""
        if isinstance(p, dict) and isinstance(q, dict):
            self._items(cast("dict[Any, Any]", p), cast("dict[Any, Any]", q), name)
        elif isinstance(p, list) and isinstance(q, list):
            self._parts(cast("list[Any]", p), cast("list[Any]", q), name)
        else:
            self._state(cast(object, p), cast(object, q), name)

    def _state(self, p: object, q: object, name: str) -> None:
        if type(p) is TracedArray and type(q) is TracedArray:
            self._arrays(p, q, name)
        elif type(p) is Index and type(q) is Index:
            self._indices(p, q, name)
        elif not (p is q or _plainly_equal(p, q) or _same_function(p, q)):
            raise Unequal(f"{name} changes from round to round, which is not an array")

    def _items(self, p: dict[Any, Any], q: dict[Any, Any], name: str) -> None:
        _same_keys(p, q, name)
        for key in p:
            self.states(p[key], q[key], f"{name}[{key!r}]" if name else str(key))

    def _parts(self, p: list[Any], q: list[Any], name: str) -> None:
        if len(p) != len(q):
            raise Unequal(f"{name} grows from round to round")
        for number, (x, y) in enumerate(zip(p, q, strict=True)):
            self.states(x, y, f"{name}[{number}]")

    def _arrays(self, p: TracedArray, q: TracedArray, name: str) -> None:
        x, y = p.spot.view, q.spot.view
        if p.dtype != q.dtype:
            raise Unequal(f"{name} has another dtype in the next round")
        if (x.sizes, x.strides) != (y.sizes, y.strides) or p.spot.scalar != q.spot.scalar:
            raise Unequal(f"{name} has another shape in the next round")
        self._affine(x.offset, y.offset, Record(name))
        self.pair(x.buffer, y.buffer, name)

    def _indices(self, p: Index, q: Index, name: str) -> None:
        self._affine(p.affine, q.affine, Record(name))


def _same_keys(p: Mapping[Any, Any], q: Mapping[Any, Any], name: str) -> None:
    if p.keys() != q.keys():
        odd = ", ".join(sorted(str(k) for k in p.keys() ^ q.keys()))
        raise Unequal(f"{name or 'a variable'}: {odd} is there in one round only")


def _equal(p: Any, q: Any) -> bool:
    return p.dtype == q.dtype and p.shape == q.shape and p.tobytes() == q.tobytes()


def _same_function(p: object, q: object) -> bool:
    """Whether two functions that rounds define are one: of the same text, variables and defaults."""
    if not (isinstance(p, FunctionType) and isinstance(q, FunctionType)):
        return False
    # Cells are the variables of the function around, which are the same in each round.
    return (
        p.__code__ is q.__code__
        and p.__globals__ is q.__globals__
        and all(x is y for x, y in zip(p.__closure__ or (), q.__closure__ or (), strict=True))
        and p.__defaults__ is p.__kwdefaults__ is None
        and q.__defaults__ is q.__kwdefaults__ is None
    )


def _plainly_equal(p: Any, q: Any) -> bool:
    """Whether two values that are no arrays are the same: numbers, text, and NumPy's."""
    if type(p) is not type(q):
        return False
    if isinstance(p, np.ndarray | np.generic):
        return _equal(p, q)
    return isinstance(p, int | float | complex | str | bytes | bool) and repr(p) == repr(q)
