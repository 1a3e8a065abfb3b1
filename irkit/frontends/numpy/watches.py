"""Places in which a value's contents may change, with what they hold: a quick proof that they did not.

A state (`states.py`) is made anew by a walk over all of a value. The walk also says where what it met can
come to be something else: elements of a list, attributes of an object, globals that a function reads. While
each place holds the very same objects, another walk would find an equal state. Where one does not, nothing
is known: an equal number may have been put there, and the walk has to say.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from operator import is_
from typing import Any

import numpy as np

ABSENT = object()
"""What is found where there is nothing."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where of `owner` something is to be seen, what was seen, and how to see whether it is still there."""

    owner: Any
    seen: Any
    is_as_seen: Callable[[Any, Any], bool]


def holds(places: tuple[Place, ...]) -> bool:
    """Whether all places hold what was seen in them."""
    return all(p.is_as_seen(p.owner, p.seen) for p in places)


def same_root(now: Any, then: Any) -> bool:
    """Whether it is one object. A bound method is made anew wherever it is asked for."""
    if now is then:
        return True
    if type(now) is not types.MethodType or type(then) is not types.MethodType:
        return False
    return now.__self__ is then.__self__ and now.__func__ is then.__func__


def elements(owner: list[Any] | deque[Any]) -> Place:
    """Those of a list."""
    return Place(owner, tuple(owner), _same_elements)


def items(owner: Any) -> Place:
    """Keys and values of a dictionary, in their order."""
    return Place(owner, (tuple(owner), tuple(owner.values())), _same_items)


def contents(owner: np.ndarray[Any, Any]) -> Place:
    """Elements of an array that are no objects."""
    return Place(owner, (owner.dtype, owner.shape, owner.tobytes()), _same_contents)


def attributes(owner: Any, slots: tuple[str, ...]) -> tuple[Place, ...]:
    """The type of an object, and its attributes: in its dictionary, and in slots."""
    held = getattr(owner, "__dict__", None)
    own = Place(owner, (type(owner), held, slots, _in_slots(owner, slots)), _same_attributes)
    return (own,) if held is None else (own, items(held))


def of_class(owner: type) -> tuple[Place, ...]:
    """Its bases and what it defines."""
    return Place(owner, owner.__mro__, _same_bases), items(owner.__dict__)


def of_function(owner: types.FunctionType, names: tuple[str, ...]) -> Place:
    """Code, defaults, variables of enclosing functions, and globals of these names."""
    return Place(owner, (names, *_of_function(owner, names)), _same_function)


def _same_elements(owner: Any, seen: tuple[Any, ...]) -> bool:
    return len(owner) == len(seen) and all(map(is_, tuple(owner), seen))


def _same_items(owner: Any, seen: tuple[tuple[Any, ...], tuple[Any, ...]]) -> bool:
    keys, values = seen
    same = len(owner) == len(keys) and all(map(is_, tuple(owner.values()), values))
    return same and all(map(is_, tuple(owner), keys))


def _same_contents(owner: np.ndarray[Any, Any], seen: tuple[Any, ...]) -> bool:
    dtype, shape, held = seen
    return owner.dtype is dtype and owner.shape == shape and owner.tobytes() == held


def _same_attributes(owner: Any, seen: tuple[Any, ...]) -> bool:
    kind, held, slots, values = seen
    if type(owner) is not kind or getattr(owner, "__dict__", None) is not held:
        return False
    return all(map(is_, _in_slots(owner, slots), values))


def _in_slots(owner: Any, slots: tuple[str, ...]) -> list[Any]:
    return [getattr(owner, slot, ABSENT) for slot in slots]


def _same_bases(owner: type, seen: tuple[type, ...]) -> bool:
    return owner.__mro__ is seen


def _same_function(owner: types.FunctionType, seen: tuple[Any, ...]) -> bool:
    names, *held = seen
    return all(map(is_, _of_function(owner, names), held))


def _of_function(owner: types.FunctionType, names: tuple[str, ...]) -> list[Any]:
    known = owner.__globals__
    found = [owner.__code__, owner.__defaults__, owner.__kwdefaults__]
    found += [cell_contents(cell) for cell in owner.__closure__ or ()]
    found += [known.get(name, ABSENT) for name in names]
    return found


def cell_contents(cell: types.CellType) -> Any:
    """What an enclosing function's variable is, None before it is assigned to."""
    try:
        return cell.cell_contents
    except ValueError:
        return None
