"""A function of arrays that is traced inside of a trace: as a program of its own, which is then changed and
replayed.

What is differentiated is such a function. Its arguments are values of the trace outside, and so is what it
reads of that trace beside them; what it writes is its own.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from irkit.dialects.program.builder import BuiltProgram
from irkit.frontends.numpy.affine import Affine, LoopSymbol
from irkit.frontends.numpy.arrays import TracedArray, fresh, is_traced, value_of
from irkit.frontends.numpy.emission import emitted
from irkit.frontends.numpy.foreign import foreign
from irkit.frontends.numpy.globals import TracedGlobals, with_globals
from irkit.frontends.numpy.operands import array_of
from irkit.frontends.numpy.places import refused
from irkit.frontends.numpy.recorder import Recorder, recorder, recording
from irkit.frontends.numpy.records import (
    Buffer,
    Call,
    Check,
    Counter,
    For,
    Read,
    Record,
    Value,
    View,
    While,
    Write,
)
from irkit.frontends.numpy.trace import Leaf, filled, rebuilt


@dataclass
class Nested:
    """A traced function: its program, the values that its arguments are outside, and the structure of what it
    returns, with a Leaf for each result. `scalars`: which results are numbers. `checks`: of each thing that
    must hold in it, the number of the result that says whether it did."""

    program: BuiltProgram
    given: list[Value]
    structure: Any
    scalars: list[bool]
    checks: dict[Check, int] = field(default_factory=dict[Check, int])

    @property
    def results(self) -> int:
        """How many arrays it returns."""
        return len(self.scalars)


def leaves(structure: Any) -> Iterator[Any]:
    """All that is in a structure of tuples, lists and dicts, in order."""
    if isinstance(structure, dict):
        for part in cast("dict[Any, Any]", structure).values():
            yield from leaves(part)
    elif isinstance(structure, list | tuple) and not is_traced(structure):
        for part in cast("list[Any]", structure):
            yield from leaves(part)
    else:
        yield structure


def mapped(function: Callable[[Any], Any], structure: Any) -> Any:
    """A structure of the same kind, of what a function makes of all that is in it."""
    if isinstance(structure, dict):
        items = cast("dict[Any, Any]", structure)
        return {k: mapped(function, v) for k, v in items.items()}
    if isinstance(structure, list | tuple) and not is_traced(structure):
        return rebuilt(structure, [mapped(function, v) for v in cast("list[Any]", structure)])
    return function(structure)


def arranged(structure: Any, like: Any) -> Any:
    """A structure with the keys of its dicts in the order in which `like` has them.

    Raises ValueError, which says how they differ, for a dict of other keys, or in the place of what is none.
    """
    if isinstance(structure, dict) or isinstance(like, dict):
        return _with_keys_of(structure, like)
    pair = [isinstance(s, list | tuple) and not is_traced(s) for s in (structure, like)]
    if not all(pair) or len(structure) != len(like):
        return structure
    return [arranged(s, k) for s, k in zip(structure, like, strict=True)]


def _with_keys_of(structure: Any, like: Any) -> dict[Any, Any]:
    keys, wanted = (
        [*cast("dict[Any, Any]", s)] if isinstance(s, dict) else None for s in (structure, like)
    )
    if keys is None or wanted is None or {*keys} != {*wanted}:
        shown = [
            type(s).__name__ if k is None else f"a dict of {', '.join(map(repr, k))}"
            for s, k in ((like, wanted), (structure, keys))
        ]
        raise ValueError(f"expected {shown[0]}, got {shown[1]}")
    return {k: arranged(structure[k], like[k]) for k in wanted}


def is_array(value: Any) -> bool:
    """Whether it is an array, traced or known."""
    return is_traced(value) or isinstance(value, np.ndarray | np.generic)


def scoped(function: Any) -> Any:
    """A function of the user's as the trace at hand sees it: NumPy, `range` and what it reads of its module
    are those of the trace. What is traced so already, and what is no function, stays."""
    wrapped = getattr(function, "_function", None)
    if isinstance(wrapped, types.FunctionType):
        function = wrapped
    if isinstance(function, types.MethodType):
        return types.MethodType(scoped(function.__func__), function.__self__)
    capture = recorder().capture
    if not isinstance(function, types.FunctionType) or capture is None:
        return function
    if isinstance(function.__globals__, TracedGlobals):
        return function
    return with_globals(function, TracedGlobals(function.__globals__, capture, stand_in=foreign))


def nested(function: Callable[..., Any], args: Sequence[Any], known: Sequence[str] = ()) -> Nested:
    """Trace `function` for arguments of the trace at hand, structures of arrays and of what is none. `known`:
    names of the first of these arrays.

    Raises UnsupportedError, with the line, for what is returned and is no array, and for writes to arrays of
    the trace outside that are no arguments.
    """
    outer = recorder()
    inner = Recorder()
    inner.capture, inner.differentiated = outer.capture, True
    inner.compiled, inner.guarded = outer.compiled, outer.guarded
    inner.customs = outer.customs
    inner.exact, inner.moving = outer.exact, outer.moving
    inner.not_compiled = outer.not_compiled
    given: list[Value] = []

    def own(value: Any) -> Any:
        if not is_array(value):
            return value
        array = array_of(value)
        if array.dtype.kind == "c":
            raise refused(
                f"a function that is differentiated has an argument of {array.dtype}: "
                "pass its real and its imaginary part"
            )
        given.append(value_of(array))
        with recording(inner):
            return _argument(inner, array)

    arguments = mapped(own, list(args))
    function = scoped(function)
    with recording(inner):
        returned = function(*arguments)
        results: list[TracedArray] = []
        structure = mapped(lambda v: _result(v, results), returned)
        scalars = [r.spot.scalar for r in results]
        wholes = [fresh(value_of(r)) for r in results]
    for buffer in _captured(inner):
        given.append(outer.read(View(buffer, Affine(0), buffer.shape, _strides(buffer.shape))))
        inner.arguments.append(buffer)
    names = [*known, *(f"x{n}" for n in range(len(known), len(inner.arguments)))]
    outputs = [(f"result{n}", a.spot.buffer) for n, a in enumerate(wholes)]
    checks = {key: len(outputs) + n for n, key in enumerate(inner.checks)}
    outputs += [(f"check{n}", b) for n, b in enumerate(inner.checks.values())]
    return Nested(emitted(inner, names, outputs), given, structure, scalars, checks)


def _argument(inner: Recorder, like: TracedArray) -> TracedArray:
    from irkit.frontends.numpy.spots import Spot

    buffer = inner.argument(like.shape, like.dtype)
    return TracedArray(Spot(buffer, buffer.base, scalar=like.spot.scalar))


def _result(value: Any, results: list[TracedArray]) -> Leaf:
    if not is_traced(value) and not isinstance(value, int | float | np.ndarray | np.generic):
        raise refused(
            f"a function that is differentiated returns a {type(value).__name__}: expected arrays"
        )
    results.append(array_of(value))
    return Leaf(len(results) - 1)


def _strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Of a buffer as it lies, in elements."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def _captured(inner: Recorder) -> list[Buffer]:
    """Buffers of the trace outside that are read."""
    own = {*inner.arguments, *inner.made, *inner.checks.values()}
    found: dict[Buffer, None] = {}
    for record in _all(inner.records, set()):
        match record:
            case Read() if record.view.buffer not in own:
                found[record.view.buffer] = None
            case Write() if record.view.buffer not in own:
                raise refused(
                    "a function that is differentiated writes an array that is no argument of it"
                )
            case Call():
                raise refused(
                    "a function that is differentiated calls one that is not traced: "
                    f"'{record.task.annotation.name}'"
                )
            case _:
                pass
    return list(found)


def _all(records: Sequence[Record], symbols: set[LoopSymbol]) -> Iterator[Record]:
    """All records, of loops too. Raises UnsupportedError for places that move with a loop outside."""
    for record in records:
        if isinstance(record, For):
            yield from _all(record.body, symbols | {record.symbol})
        elif isinstance(record, While):
            yield from _all(record.body, symbols)
        else:
            _check_still(record, symbols)
            yield record


def _check_still(record: Record, symbols: set[LoopSymbol]) -> None:
    moving: tuple[Affine, ...] = ()
    if isinstance(record, Read | Write):
        moving = (record.view.offset,)
    elif isinstance(record, Counter):
        moving = (record.index,)
    for at in moving:
        if any(not s.fixed and s not in symbols for s, _ in at.terms):
            raise refused(
                "a function that is differentiated in a loop reads what moves with that loop: pass it as an "
                "argument"
            )


def structured(structure: Any, values: Sequence[Value], scalars: Sequence[bool]) -> Any:
    """A structure with new arrays in the places of its leaves."""
    arrays = [fresh(v, scalar=s) for v, s in zip(values, scalars, strict=True)]
    return filled(structure, arrays)
