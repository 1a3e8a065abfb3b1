"""Trace a function: what it does to arrays, what it returns, and what it read of the world around it."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from irkit.annotations.annotation import intercepting
from irkit.annotations.frames import Node, is_index, kind_of
from irkit.annotations.learned import Learned
from irkit.annotations.structures import mapped, rebuilt
from irkit.errors import UnsupportedError
from irkit.frontends.numpy.arrays import TracedArray, Varying, is_traced
from irkit.frontends.numpy.estimators import may_refit
from irkit.frontends.numpy.flat import FlatIterator
from irkit.frontends.numpy.foreign import foreign
from irkit.frontends.numpy.globals import TracedGlobals, given, with_globals
from irkit.frontends.numpy.host_calls import host_call
from irkit.frontends.numpy.indices import Index
from irkit.frontends.numpy.masked import MaskedArray
from irkit.frontends.numpy.models import is_model
from irkit.frontends.numpy.moving import ExactRange
from irkit.frontends.numpy.picks import check
from irkit.frontends.numpy.places import refused, user_place
from irkit.frontends.numpy.recorder import Recorder, recording
from irkit.frontends.numpy.records import Buffer, View, complex_of
from irkit.frontends.numpy.spots import Spot
from irkit.frontends.numpy.states import Contents
from irkit.frontends.numpy.tables.arguments import TABLES, changes_of, tables_in
from irkit.frontends.numpy.tables.objects import Gathering, Table, is_table
from irkit.frontends.numpy.unify import Unequal, Unifier
from irkit.frontends.numpy.while_rounds import LeavesOnData
from irkit.weights import Array


@dataclass(frozen=True)
class BufferSpec:
    """Memory that arrays of the caller lie in."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


@dataclass(frozen=True)
class ArraySpec:
    """An array of the caller: which elements of which buffer, and whether it may be written."""

    buffer: int
    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    writeable: bool = True
    is_complex: bool = False
    """Whether its last dimension is the real and imaginary parts of complex numbers."""
    repeats: bool = False
    """Whether it is not written for its elements alone, which share memory."""
    apart: bool = False
    """Whether elements of the buffer may lie otherwise than the caller's, or be none of this array's."""


@dataclass(frozen=True)
class Leaf:
    """A place in a structure of arguments or results that has array number `number`."""

    number: int


@dataclass(frozen=True)
class Result:
    """An array that is returned. `view`: what it sees, a ComplexView where it is complex; `argument`: which
    array of the caller it is, if it is one as it came; `scalar`: a number of NumPy's; `weak`: one of
    Python's; `writeable`: whether NumPy lets it be written."""

    view: View
    argument: int | None
    scalar: bool
    weak: bool = False
    writeable: bool = True


@dataclass
class Guard:
    """Something that is no argument and was read: it must be what it was, which `value` says; `watched`: the
    function itself might have changed it."""

    name: str
    value: Any
    later: Callable[[], Any]
    watched: bool = False

    @staticmethod
    def of(name: str, value: Any, later: Callable[[], Any]) -> Guard:
        """That of a value as it is now, to its contents. Raises UnsupportedError where it has too many."""
        plain = isinstance(value, CONSTANT) or value is None
        return Guard(name, Contents(value, name), later, not plain)

    def holds(self) -> bool:
        """Whether it is still the same."""
        return self.value.are_of(self.later())


@dataclass
class Traced:
    """What a function does with arrays of one pattern. `structure` has a Leaf for each of `results`."""

    recorder: Recorder
    results: list[Result]
    structure: Any
    guards: list[Guard]
    effects: list[tuple[int, Any, Any]] = field(default_factory=list[tuple[int, Any, Any]])
    """Of frames of the caller, by number: a column, and what is in it in the end; None: it is gone."""


CONSTANT = (int, float, complex, str, bytes, np.generic, np.dtype, np.ndarray)
"""What can be returned and is the same in every call."""


class NewArrayError(BaseException):
    """An array was met that is no argument: the function is to be traced anew with it as one. Not an error of
    the user's, whose `except` must not see it."""

    def __init__(self, array: Array, guard: Guard) -> None:
        super().__init__(guard.name)
        self.array, self.guard = array, guard
        self.place = user_place()


@dataclass
class Pattern:
    """Arguments of one pattern: `structure` has a Leaf where `arrays` has an array; `captured` are arrays
    that are read and no arguments: identity → number; `learned`: what functions of the host return;
    `not_compiled`: why methods of estimators are the host's, empty if they need not be; `call`: the array
    that has the number of the call, if it has objects that are no arrays."""

    buffers: Sequence[BufferSpec]
    arrays: Sequence[ArraySpec]
    structure: Any
    captured: Mapping[int, int] = field(default_factory=dict[int, int])
    learned: Learned | None = None
    not_compiled: str = ""
    call: int | None = None


def trace(function: types.FunctionType, pattern: Pattern) -> Traced:
    """What `function` does. It is traced twice: a function that does something else then is refused.

    Raises UnsupportedError, with the place in the user's file, for what cannot be traced, and whatever the
    function and NumPy raise; NewArrayError.
    """
    first = _trace(function, pattern)
    refit = may_refit(first.recorder.records, is_model) if first.recorder.compiled else None
    if refit is not None:
        why = f"'{refit.task.annotation.name}' at {refit.place} may fit it anew"
        pattern = replace(pattern, not_compiled=why)
        first = _trace(function, pattern)
    second = _trace(function, pattern)
    unifier = Unifier()
    try:
        unifier.bodies(first.recorder.records, second.recorder.records)
        if repr(first.structure) != repr(second.structure):
            raise Unequal("it returned something else")
    except Unequal as error:
        name = getattr(function, "__qualname__", "function")
        raise UnsupportedError(
            f"'{name}' did something else when it was traced again: {error}"
        ) from None
    return first


def _trace(function: types.FunctionType, pattern: Pattern) -> Traced:
    """One trace that stands: loops whose range hangs on a loop around them are tried as such, and where that
    fails, the function is traced anew with them as they are; so it is where data end a `for` statement."""
    exact, leaving = set[str](), set[str]()
    while True:
        r = Recorder(pattern.learned)
        r.exact, r.leaving = exact, leaving
        try:
            found = _traced(function, pattern, r)
        except ExactRange as met:
            exact.add(met.place)
            continue
        except LeavesOnData as met:
            leaving.add(met.place)
            continue
        except Exception:
            if not r.moving:
                raise
        else:
            if not r.moving:
                return found
        exact.update(r.moving)


def _traced(function: types.FunctionType, pattern: Pattern, r: Recorder) -> Traced:
    r.not_compiled = pattern.not_compiled
    buffers = [r.argument(b.shape, b.dtype) for b in pattern.buffers]
    arrays = [_array(spec, buffers[spec.buffer]) for spec in pattern.arrays]
    guards: list[Guard] = []

    def capture(name: str, value: Any, later: Callable[[], Any]) -> Any:
        if type(value) is np.ndarray:
            number = pattern.captured.get(id(value))
            if number is None:
                raise NewArrayError(value, Guard(name, value, later))
            return arrays[number]
        if kind_of(value) is not None:
            raise refused(f"'{name}' is a frame of pandas, and no argument: pass it as one")
        guards.append(Guard.of(name, value, later))
        return value

    r.capture = capture
    r.call = None if pattern.call is None else arrays[pattern.call]
    with recording(r), intercepting(host_call):
        scope = TracedGlobals(function.__globals__, capture, stand_in=foreign)
        tables = tables_in(pattern.structure, arrays)
        args, kwargs = filled(
            pattern.structure,
            arrays,
            lambda v: tables[v.argument] if isinstance(v, TABLES) else given(v, scope),
        )
        before = _shape_of(args), _shape_of(kwargs)
        returned = _called(with_globals(function, scope), args, kwargs, r)
        if (_shape_of(args), _shape_of(kwargs)) != before:
            raise UnsupportedError(
                f"{_place(function)}: '{function.__qualname__}' changes a list or dict that it is given: a "
                "compiled function cannot"
            )
        results: list[Result] = []
        structure = _returned(returned, arrays, results, _place(function))
        effects = [
            (number, label, _returned(now, arrays, results, _place(function)))
            for number, table in tables.items()
            for label, now in changes_of(table)
        ]
        _check_picks(r)
    changed = [g.name for g in guards if g.watched and not g.holds()]
    if changed:
        raise UnsupportedError(
            f"{_place(function)}: '{function.__qualname__}' changes '{changed[0]}', which is no argument: a "
            "compiled function cannot"
        )
    if scope.changed:
        names = ", ".join(sorted(scope.changed))
        raise UnsupportedError(
            f"{_place(function)}: '{function.__qualname__}' assigns to globals ({names}): a compiled "
            "function cannot"
        )
    return Traced(r, results, structure, guards, effects)


def _called(function: types.FunctionType, args: Any, kwargs: Mapping[str, Any], r: Recorder) -> Any:
    """What the traced function returns. Raises UnsupportedError for a loop on data that it leaves otherwise
    than by its test."""
    try:
        returned = function(*args, **kwargs)
    except UnboundLocalError as error:
        found = [n for n in r.dropped if f"'{n}'" in str(error)]
        if not found:
            raise
        raise UnsupportedError(
            f"{r.dropped[found[0]]}: '{found[0]}' is bound in rounds of this `while` loop alone, of "
            "which there may be none: bind it before the loop"
        ) from None
    if r.going:
        raise UnsupportedError(
            f"{r.going[0]}: a `while` loop that goes on as long as data say so is left by `return` or by an "
            "exception: its test alone can end it"
        )
    return returned


def _array(spec: ArraySpec, buffer: Buffer) -> TracedArray:
    """An array of the caller."""
    base = buffer.base
    flat = base.reshape(-1)
    strides = tuple(s * base.itemsize for s in spec.strides)
    memory: Any = flat.view(np.uint8).data if flat.size else None
    offset = spec.offset * base.itemsize if flat.size else 0
    shadow: Array = np.ndarray(spec.sizes, base.dtype, memory, offset, strides)
    if spec.is_complex:
        kind = complex_of(base.dtype)
        shadow = np.ndarray(spec.sizes[:-1], kind, memory, offset, strides[:-1])
    if not spec.writeable:
        shadow.flags.writeable = False
    buffer.repeats = buffer.repeats or spec.repeats
    buffer.apart = buffer.apart or spec.apart
    made = TracedArray(Spot(buffer, shadow))
    made.spot.outside = True
    return made


def _check_picks(r: Recorder) -> None:
    """Raises UnsupportedError for copies that would differ from the views that NumPy has."""
    for buffer in (*r.arguments, *r.made):
        for pick in buffer.picks:
            check(pick.ahead)


def _place(function: types.FunctionType) -> str:
    """Where a function is defined."""
    return f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}"


def filled(structure: Any, arrays: Sequence[Any], other: Callable[[Any], Any] = lambda v: v) -> Any:
    """A structure with arrays in the places of its leaves, and `other` of all else."""
    return mapped(structure, lambda v: arrays[v.number] if isinstance(v, Leaf) else other(v))


def _returned(value: Any, arrays: Sequence[TracedArray], results: list[Result], place: str) -> Any:
    """The structure of what is returned; its arrays go to `results`."""
    if isinstance(value, FlatIterator):
        raise UnsupportedError(
            f"{place}: a result that is ndarray.flat: return a copy, x.flatten()"
        )
    if isinstance(value, Varying):
        value = value.exact()
    if is_table(value):
        return _returned_table(value, arrays, results, place)
    if is_traced(value):
        own = next((n for n, a in enumerate(arrays) if a is value), None)
        spot = value.spot
        spot.buffer.being_read()
        writeable = spot.layout.flags.writeable
        results.append(Result(spot.view, own, spot.scalar, spot.weak is not None, writeable))
        return Leaf(len(results) - 1)
    if isinstance(value, Index):
        return value.now
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value)
        return {k: _returned(v, arrays, results, place) for k, v in items.items()}
    if isinstance(value, list | tuple):
        parts = [_returned(v, arrays, results, place) for v in cast("list[Any]", value)]
        return rebuilt(value, parts)
    if value is None or isinstance(value, CONSTANT) or is_index(value):
        return cast(Any, value)
    if isinstance(value, MaskedArray):
        raise UnsupportedError(
            f"{place}: a result of elements that a mask picks: how many hangs on values; return np.where, or "
            "the array and the mask"
        )
    raise UnsupportedError(
        f"{place}: a result of type {type(value).__name__}: arrays, numbers, text, None, and tuples, lists "
        "and dicts of them can be returned"
    )


def _returned_table(
    value: Table, arrays: Sequence[TracedArray], results: list[Result], place: str
) -> Node:
    """What a frame is made of, of results that no other frame or array sees."""
    gathering = Gathering()
    node = value.node(gathering)
    taken = [r.view.buffer for r in results]
    numbers: list[int] = []
    for array in gathering.arrays:
        buffer = array.spot.buffer
        shared = buffer.argument is not None or any(buffer is b for b in taken)
        leaf = _returned(array.copy() if shared else array, arrays, results, place)
        numbers.append(leaf.number)
        taken.append(buffer)
    return node.moved(numbers)


def _shape_of(value: object) -> Any:
    """A structure's lists and dicts, and what is in them by identity."""
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value)
        return {k: _shape_of(v) for k, v in items.items()}
    if isinstance(value, list | tuple) and not is_traced(value):
        return [_shape_of(v) for v in cast("list[Any]", value)]
    return id(value)
