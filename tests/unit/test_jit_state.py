"""What a compiled function reads beside its arguments may change between calls, to the elements of lists."""

# pyright: basic

from __future__ import annotations

import dataclasses
import functools
import types

import host_functions
import numpy as np
import pytest
from jitted import check, interpreted

from irkit.errors import UnsupportedError

X = np.linspace(-2, 2, 5)
CLASSES = (list, np.ndarray)
CLASS_NAMES = {np.ndarray: "array"}
LIST, DICT, TUPLE, SET = [1.0], {"k": 2.0}, (1.0, [2.0]), {3.0}
SCALE = 2.0


class Own:
    scale = 2.0

    def __init__(self):
        self.weight, self.parts, self.array = 3.0, [1.0], np.arange(5.0)

    def times(self, x):
        return x * self.weight * SCALE


@dataclasses.dataclass
class Settings:
    k: float = 2.0


class Slotted:
    __slots__ = ("k",)

    def __init__(self):
        self.k = 2.0


OWN, SETTINGS, SLOTTED, SPACE = Own(), Settings(), Slotted(), types.SimpleNamespace(k=2.0)


def enclosed():
    kept, number = [2.0], 1.0

    def f(x):
        return x * kept[0] + number

    def change():
        nonlocal number
        kept[0], number = 5.0, 7.0

    return f, change


def default_list(x, k=[2.0]):  # noqa: B006
    return x * k[0]


def default_array(x, a=np.arange(5.0)):  # noqa: B008
    return x * a


def default_object(x, *, o=OWN):
    return x * o.weight


def set_scale():
    global SCALE
    SCALE += 1


CASES = {
    "list": (lambda x: x * LIST[0], lambda: LIST.append(LIST.pop() + 1)),
    "dict": (lambda x: x * DICT["k"], lambda: DICT.update(k=DICT["k"] + 1)),
    "list in a tuple": (lambda x: x * TUPLE[1][0], lambda: TUPLE[1].insert(0, 9.0)),
    "set": (lambda x: x * sum(SET), lambda: SET.add(max(SET) + 1)),
    "attribute": (lambda x: x * OWN.weight, lambda: setattr(OWN, "weight", OWN.weight + 1)),
    "list of an object": (lambda x: x * OWN.parts[0], lambda: OWN.parts.insert(0, 9.0)),
    "array of an object": (lambda x: x * OWN.array, lambda: OWN.array.__setitem__(0, 9.0)),
    "class": (lambda x: x * Own.scale, lambda: setattr(Own, "scale", Own.scale + 1)),
    "class of an object": (lambda x: x * OWN.scale, lambda: setattr(Own, "scale", Own.scale + 1)),
    "dataclass": (lambda x: x * SETTINGS.k, lambda: setattr(SETTINGS, "k", SETTINGS.k + 1)),
    "slots": (lambda x: x * SLOTTED.k, lambda: setattr(SLOTTED, "k", SLOTTED.k + 1)),
    "namespace": (lambda x: x * SPACE.k, lambda: setattr(SPACE, "k", SPACE.k + 1)),
    "method": (lambda x: OWN.times(x), lambda: setattr(OWN, "weight", OWN.weight + 1)),
    "global of a method": (lambda x: OWN.times(x), set_scale),
    "partial": (
        functools.partial(lambda own, x: x * own(2.0), functools.partial(OWN.times)),
        lambda: setattr(OWN, "weight", OWN.weight + 1),
    ),
    "enclosing function": enclosed(),
    "default": (default_list, lambda: default_list.__defaults__[0].__setitem__(0, 5.0)),
    "default array": (default_array, lambda: default_array.__defaults__[0].__setitem__(0, 5.0)),
    "default object": (default_object, lambda: setattr(OWN, "weight", OWN.weight + 1)),
    "other module": (
        lambda x: x * host_functions.FACTORS[0],
        lambda: host_functions.FACTORS.insert(0, 9.0),
    ),
    "function of another module": (
        lambda x: host_functions.by_factor(x),
        lambda: host_functions.FACTORS.insert(0, 11.0),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_read_may_change(name):
    function, change = CASES[name]
    if isinstance(function, functools.partial):
        own = function

        def function(x):
            return own(x)

    f = interpreted(function)
    before = f(X)
    assert before.tobytes() == function(X).tobytes()
    change()
    after = function(X)
    assert after.tobytes() != before.tobytes(), "the change is seen"
    assert f(X).tobytes() == after.tobytes()
    made = sum(map(len, f._known.values()))
    assert made <= 2
    f(X)
    assert sum(map(len, f._known.values())) == made, "traced anew once, and not in every call"


def test_a_function_that_changes_what_is_no_argument():
    seen = []

    def note(x):
        seen.append(x.shape)
        return x

    def count(x):
        OWN.weight += 1
        return x

    with pytest.raises(UnsupportedError, match=r"test_jit_state.py:\d+: '.*note' changes 'seen'"):
        interpreted(note)(X)
    with pytest.raises(UnsupportedError, match="changes 'OWN', which is no argument"):
        interpreted(count)(X)


def test_more_than_can_be_looked_at():
    many = list(range(300_000))
    with pytest.raises(UnsupportedError, match="'many' has more than 200000 values"):
        interpreted(lambda x: x * many[3])(X)


def test_types_of_arrays():
    check(lambda x: x * 2 if type(x) is np.ndarray else x, X)
    check(lambda x: x * 2 if type(x) == np.ndarray else x, X)  # noqa: E721
    check(lambda x: x * 2 if isinstance(type(x), type) else x, X)
    check(lambda x: x * 2 if x.__class__ is np.ndarray else x, X)
    check(lambda x: x * 2 if x.__class__ is type(x) and x.__class__.__name__ == "ndarray" else x, X)
    check(lambda x: x * 2 if x[0].__class__ is np.float64 else x, X)
    check(lambda x: x * 2 if x.__class__ in CLASSES and isinstance(x, CLASSES) else x, X)
    check(lambda x: x * 2 if type(x) is CLASSES[1] else x, X)
    check(lambda x: x * 2 if CLASS_NAMES.get(type(x)) == "array" else x, X)
    check(lambda x: x * len([v for v in (1, 2.0, "a") if type(v) is int]), X)
    check(lambda x: x * 2 if type(x[0]) is np.float64 else x, X)


def test_text_and_attributes_of_arrays():
    for function, what in [
        (lambda x: f"{x[0]:.2f}", "format"),
        (lambda x: str(x), "str"),
        (lambda x: print(x), "print"),
    ]:
        with pytest.raises(UnsupportedError, match=rf"test_jit_state.py:\d+: .*{what}"):
            interpreted(function)(X)
    with pytest.raises(UnsupportedError, match=r"ndarray.strides is assigned to"):
        interpreted(lambda x: setattr(x, "strides", 3))(X)
    with pytest.raises(AttributeError, match="has no attribute 'mine'"):
        interpreted(lambda x: setattr(x, "mine", 3))(X)


def test_a_power_in_place_casts_as_numpy_does():
    def squared(x):
        x **= 2
        return x

    check(squared, X)
    with pytest.raises(TypeError, match="'square'"):
        interpreted(squared)(np.array([True, False]))


def with_defaults(x, by=2.0, *, sign="+"):
    return x * by if sign == "+" else -x * by


def test_defaults_that_are_bound_anew():
    traced, x = interpreted(with_defaults), np.arange(3.0)
    assert traced(x).tolist() == [0, 2, 4]
    with_defaults.__defaults__ = (-0.0,)
    assert np.signbit(traced(x)).tolist() == [True] * 3
    with_defaults.__kwdefaults__["sign"] = "-"
    with_defaults.__defaults__ = (3.0,)
    assert traced(x).tolist() == [0, -3, -6]
    with_defaults.__defaults__ = None
    with pytest.raises(TypeError, match="by"):
        traced(x)


def test_a_warning_on_the_way_is_no_global_that_is_assigned_to():
    space = {"np": np}
    exec("def warned(x):\n    return x + (np.uint8(250) + np.uint8(10))\n", space)
    with pytest.warns(RuntimeWarning, match="overflow"):
        assert interpreted(space["warned"])(X).tolist() == (X + 4).tolist()
