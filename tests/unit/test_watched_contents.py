"""Contents of a value are compared quickly, and as a walk over all of it compares them."""

# pyright: basic

from __future__ import annotations

import collections
import dataclasses
import functools
import gc
import types
import weakref

import numpy as np
import pytest

from irkit.frontends.numpy import states
from irkit.frontends.numpy.states import Contents, state_of

SCALE, HELD = 2.0, [1.0]


@dataclasses.dataclass
class Settings:
    k: float = 2.0
    parts: list = dataclasses.field(default_factory=lambda: [1.0])


class Slotted:
    __slots__ = ("k", "later")

    def __init__(self):
        self.k = 2.0


class Base:
    power = 2.0


class Derived(Base):
    def times(self, x):
        return x * SCALE


def reading(x):
    return x * SCALE + HELD[0]


def nested(x):
    return [reading(v) for v in x]


def enclosing():
    number = 1.0

    def inner(x):
        return x + number

    def change(value):
        nonlocal number
        number = value

    return inner, change


def named(value):
    """A change of a global of this module, and its undoing."""

    def change():
        before = globals()[value]
        globals()[value] = before + before
        return lambda: globals().__setitem__(value, before)

    return change


def at(owner, key, value):
    """A change of an element."""

    def change():
        before = owner[key]
        owner[key] = value
        return lambda: owner.__setitem__(key, before)

    return change


def attribute(owner, name, value):
    """A change of an attribute, which may be new."""

    def change():
        missing = (
            name not in vars(owner) if hasattr(owner, "__dict__") else not hasattr(owner, name)
        )
        before = getattr(owner, name, None)
        setattr(owner, name, value)
        return lambda: delattr(owner, name) if missing else setattr(owner, name, before)

    return change


def changes():
    """Names, with values and changes of what they hold."""
    numbers, table, queue = [1.0, [2.0]], {"a": [1.0], "b": 2.0}, collections.deque([1.0, 2.0])
    array, objects = np.arange(4.0), np.array([1.0, [2.0]], object)
    one, other, slotted, space = Settings(), Settings(), Slotted(), types.SimpleNamespace(k=[1.0])
    inner, change = enclosing()

    def moved():
        change(5.0)
        return lambda: change(1.0)

    def longer():
        numbers.append(3.0)
        return numbers.pop

    def reordered():
        first = table.pop("a")
        table["a"] = first

        def undo():
            rest = table.pop("b")
            table["b"] = rest

        return undo

    def defaults():
        before, reading.__defaults__ = reading.__defaults__, (3.0,)
        return lambda: setattr(reading, "__defaults__", before)

    def code():
        before, nested.__code__ = nested.__code__, reading.__code__
        return lambda: setattr(nested, "__code__", before)

    part = functools.partial(reading, numbers)
    yield "list", numbers, at(numbers, 0, 3.0)
    yield "list that grows", numbers, longer
    yield "list in a list", numbers, at(numbers[1], 0, 3.0)
    yield "tuple of a list", (1.0, numbers), at(numbers, 0, 3.0)
    yield "dict", table, at(table, "b", 3.0)
    yield "dict in another order", table, reordered
    yield "deque", queue, at(queue, 1, 3.0)
    yield "array", array, at(array, 3, -0.0)
    yield "array of objects", objects, at(objects, 0, 2.0)
    yield "list in an array of objects", objects, at(objects[1], 0, 3.0)
    yield "partial", part, at(numbers, 0, 3.0)
    yield "object", one, attribute(one, "k", 3.0)
    yield "object, a new attribute", one, attribute(one, "more", 3.0)
    yield "list of an object", one, at(one.parts, 0, 3.0)
    yield "the first of two objects", [one, other], attribute(one, "k", 3.0)
    yield "the second of two objects", [one, other], attribute(other, "k", 3.0)
    yield "slot", slotted, attribute(slotted, "k", 3.0)
    yield "empty slot", slotted, attribute(slotted, "later", 3.0)
    yield "namespace", space, at(space.k, 0, 3.0)
    yield "class", Derived, attribute(Derived, "power", 3.0)
    yield "base class", Derived, attribute(Base, "power", 3.0)
    yield "class of an object", Derived(), attribute(Base, "power", 3.0)
    yield "method", Derived().times, named("SCALE")
    yield "global", reading, named("SCALE")
    yield "list of a global", reading, at(HELD, 0, 3.0)
    yield "global of a function that is called", nested, named("SCALE")
    yield "variable of an enclosing function", inner, moved
    yield "defaults", reading, defaults
    yield "code", nested, code


CASES = list(changes())


@pytest.mark.parametrize(("value", "change"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_a_change_is_seen_and_its_undoing_too(value, change):
    contents, before = Contents(value, "v"), state_of(value)
    assert contents.are_of(value)
    undo = change()
    try:
        assert not contents.are_of(value)
        assert state_of(value) != before
    finally:
        undo()
    assert contents.are_of(value)
    assert contents.are_of(value)


@pytest.mark.parametrize("value", [c[1] for c in CASES], ids=[c[0] for c in CASES])
def test_what_stays_is_walked_over_once(value, monkeypatch):
    contents = Contents(value, "v")
    walked = []
    monkeypatch.setattr(states, "_walked", lambda *a: walked.append(a) or (None, None))
    quick = not isinstance(value, functools.partial) and getattr(
        value, "dtype", ""
    ) is not np.dtype(object)
    assert contents.are_of(value) == quick
    assert bool(walked) != quick


@pytest.mark.parametrize("of", [lambda d: d, lambda d: np.zeros(3, d)], ids=["dtype", "array"])
def test_names_of_fields(of):
    kind = np.dtype([("a", "f4"), ("b", "i4")])
    held = [of(kind)]
    contents = Contents(held, "v")
    getattr(held[0], "dtype", held[0]).names = ("a", "c")
    assert not contents.are_of(held)


def test_an_equal_number_is_equal():
    held = [1000.5, 2.0]
    contents = Contents(held, "v")
    held[0] = float("1000.5")
    assert contents.are_of(held)
    held[0] = 1000
    assert not contents.are_of(held)


@pytest.mark.parametrize("changed", [{1.0, 3.0}, {1, 2.0}])
def test_sets(changed):
    held = {1.0, 2.0}
    contents = Contents(held, "v")
    assert contents.are_of(held)
    held.clear()
    held |= changed
    assert not contents.are_of(held)


def test_a_number_that_can_change_is_looked_at():
    class Counted(float):
        count = 1.0

        def __repr__(self):
            return f"{float(self)} of {self.count}"

    number = Counted(2.0)
    contents = Contents([number], "v")
    assert contents.are_of([number])
    number.count = 2.0
    assert not contents.are_of([number])


def test_an_object_that_takes_the_place_of_another_is_another():
    """Of libraries' objects only the identity is known, and memory is used again."""
    contents = Contents([iter(())], "v")
    # An assertion of each would keep what it looks at a little longer.
    found = [contents.are_of([iter(())]) for _ in range(1000)]
    assert not any(found)


def test_what_is_gone_is_not_kept_alive():
    held = [Settings()]
    contents = Contents(held, "v")
    own = weakref.ref(held[0])
    held.clear()
    assert not contents.are_of(held)
    gc.collect()
    assert own() is None
