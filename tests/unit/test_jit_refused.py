"""What cannot be traced is refused, by operation and line of the user's file, and changes nothing."""

from __future__ import annotations

import random

import numpy as np
import pytest

import irkit
from irkit.errors import UnsupportedError
from tests.unit.jitted import interpreted

COUNT = 0


def branches(x):
    x += 1
    if x.sum() > 0:
        x *= 2
    return x


def compares_a_chain(x):
    return x if 0 < x[0] < 1 else -x


def converts(x):
    return float(x[0])


def rounds(x):
    return round(x[0]) + np.float32(1)


def formats_a_shape(x):
    return np.zeros(x[0].astype(int))


def picks_by_a_mask(x):
    return x[x > 0] + x[:2]


def returns_what_a_mask_picks(x):
    return x[x > 0]


def finds(x):
    return np.where(x > 0)


def unknown_function(x):
    return np.unique(x)


def unknown_ufunc(x):
    return np.spacing(x, where=x > 0)


def random_numbers(x):
    return x + np.random.rand(3)


def two_masks(x):
    x[x > 0] = x[x < 0]


def divides_at(x):
    np.divide.at(x, [0, 0], 2.0)


def adds_at_a_mask(x):
    np.add.at(x, x > 0, 1.0)


def adds_at_columns(x):
    np.add.at(x.reshape(1, 3), (slice(None), x.astype(int)), 1.0)


def adds_wider_numbers(x):
    np.add.at(x.astype(np.float32), [0], x[:1])


def cuts_at_a_computed_end(x):
    x[x[0].astype(int) :] = 1.0


def cuts_beside_an_index(x):
    x.reshape(1, 3)[x[0].astype(int) :, x.astype(int)] = 1.0


def adds_behind_a_computed_end(x):
    np.add.at(x, slice(x[0].astype(int), None), 1.0)


def keeps_a_global(x):
    global COUNT
    COUNT = COUNT + 1
    return x * COUNT


def grows_an_argument(x, found=None):
    return x


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (branches, "'if', 'while', 'and' or bool\\(\\) needs the value of an array"),
        (compares_a_chain, "'if', 'while'"),
        (converts, "float\\(\\) or a function of math needs the value"),
        (rounds, "round\\(\\) without digits, an int of Python's, needs the value"),
        (formats_a_shape, "a count, a shape"),
        (picks_by_a_mask, "picked by a mask"),
        (returns_what_a_mask_picks, "a result of elements that a mask picks"),
        (finds, "np.where\\(condition\\) alone"),
        (unknown_function, "numpy.unique"),
        (unknown_ufunc, "universal function 'spacing' with where="),
        (random_numbers, "np.random"),
        (two_masks, "what one mask picked is written through another"),
        (
            divides_at,
            "divide.at; there are add.at, subtract.at, multiply.at, maximum.at, minimum.at",
        ),
        (adds_at_a_mask, "add.at with a mask that is computed"),
        (adds_at_columns, "computed indices of other than the first axes"),
        (adds_wider_numbers, "add.at of float64 on an array of float32: convert the values before"),
        (cuts_at_a_computed_end, "a slice whose start, stop or step is computed"),
        (cuts_beside_an_index, "a slice whose start, stop or step is computed"),
        (adds_behind_a_computed_end, "a slice whose start, stop or step is computed"),
        (keeps_a_global, "assigns to globals \\(COUNT\\)"),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_refused_by_operation_and_line(function, message):
    x = np.array([1.0, -2.0, 3.0])
    before = x.copy()
    with pytest.raises(UnsupportedError, match=rf"test_jit_refused\.py:\d+: .*{message}") as raised:
        interpreted(function)(x)
    first = function.__code__.co_firstlineno
    line = int(str(raised.value).partition(".py:")[2].partition(":")[0])
    assert first <= line <= first + 4
    assert np.array_equal(x, before)


def test_numpys_own_errors_are_raised_as_they_are():
    x = np.arange(3.0)
    with pytest.raises(ValueError, match="could not be broadcast"):
        interpreted(lambda x: x + np.zeros(4))(x)
    with pytest.raises(TypeError, match="Cannot cast ufunc"):
        interpreted(lambda x: np.add(x, 1, out=x.astype(int)))(x)
    with pytest.raises(IndexError, match="out of bounds"):
        interpreted(lambda x: x[7])(x)
    fixed = x.copy()
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        interpreted(branches_not)(fixed)
    with pytest.raises(ValueError, match="negative integer powers"):
        interpreted(lambda x: x ** np.int64(-1))(np.arange(3))


def branches_not(x):
    x += 1


def test_an_index_that_is_out_of_bounds_changes_nothing():
    def pick(x, i):
        x += 1
        return x[i]

    traced = interpreted(pick)
    x = np.zeros(3)
    assert np.array_equal(traced(x, np.array([-3, 2])), [1, 1])
    with pytest.raises(
        IndexError, match=r"test_jit_refused.py:\d+: an index is out of bounds .* size 3"
    ):
        traced(x, np.array([0, 3]))
    assert np.array_equal(x, [1, 1, 1])


def test_a_function_that_does_something_else_when_it_is_traced_again():
    def moody(x):
        return x + random.random()

    with pytest.raises(UnsupportedError, match="did something else when it was traced again"):
        interpreted(moody)(np.zeros(3))


def test_a_structure_that_hangs_on_shapes():
    def two(x):
        return (x, x) if len(x) > 3 else x

    traced = interpreted(two)
    traced(np.zeros(3))
    with pytest.raises(UnsupportedError, match=r"returned .* before, and now"):
        traced(np.zeros(4))


def test_arguments_that_have_no_form():
    traced = interpreted(lambda x, y=None: x)
    for bad, message in [
        (np.array([1, "a"], object), "argument 'x': dtype object"),
        (np.zeros(3, np.clongdouble), "argument 'x': dtype complex256: irkit has no such type"),
        (np.zeros(3, ">f8"), "argument 'x': dtype >f8: bytes in the order"),
        (np.ma.zeros(3), "argument 'x': a numpy.ma"),
        ({1, 2}, "argument 'x' of type builtins.set"),
        (np.zeros(3, "datetime64[s]"), ".* irkit has no such type"),
    ]:
        with pytest.raises(UnsupportedError, match=rf"test_jit_refused.py:\d+: {message}"):
            traced(bad)
    whole = np.zeros(32, np.uint8)
    with pytest.raises(
        UnsupportedError, match=r"test_jit_refused.py:\d+: arguments 'x', 'y' share"
    ):
        traced(whole[:16].view(np.float64), whole[8:24].view(np.float32))
    with pytest.raises(UnsupportedError, match="expected a Python function"):
        irkit.jit(np.sin)


OBJECTS = np.array([1, None])


def test_an_array_of_objects_that_is_read():
    """The line is the one that reads it; an argument's is the call's."""

    def added(x):
        x = x + 1
        return x + OBJECTS

    place = f"{added.__code__.co_filename}:{added.__code__.co_firstlineno + 2}"
    with pytest.raises(UnsupportedError, match=f"^{place}: 'OBJECTS': dtype object"):
        interpreted(added)(np.zeros(2))


@pytest.mark.parametrize("strides", [(0, 8), (8, 8)])
def test_arguments_that_are_written_and_whose_elements_share_memory(strides):
    """What is only read may lie so."""

    def doubled(x):
        x *= 2

    def halved(x):
        x[1:] = 0.5

    memory = np.arange(9.0)
    x = np.lib.stride_tricks.as_strided(memory, (5, 5), strides)
    for function in (doubled, halved):
        with pytest.raises(
            UnsupportedError, match=r"test_jit_refused.py:\d+: an argument is written"
        ):
            interpreted(function)(x)
    np.testing.assert_array_equal(memory, np.arange(9.0))
    np.testing.assert_array_equal(interpreted(lambda x: x * 2)(x), x * 2)
    with pytest.raises(ValueError, match="read-only"):
        interpreted(doubled)(np.frombuffer(bytes(16)))


def test_an_argument_that_grows():
    def grow(x, found):
        found.append(x)
        return x

    with pytest.raises(UnsupportedError, match="changes a list or dict that it is given"):
        interpreted(grow)(np.zeros(3), [])


def test_an_array_of_a_trace_that_outlives_it():
    kept = []

    def keep(x):
        kept.append(x)
        return x

    with pytest.raises(UnsupportedError, match=r"'.*keep' changes 'kept', which is no argument"):
        interpreted(keep)(np.zeros(3))
    with pytest.raises(UnsupportedError, match="used outside of it"):
        kept[0] + 1


MATRIX = np.eye(2).view(np.matrix)
MASKED = np.ma.array(np.ones((2, 2)), mask=np.eye(2))


class Own(np.ndarray):
    pass


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * MATRIX,
        lambda x: x + MASKED,
        lambda x: MASKED + x,
        lambda x: np.where(x > 0, MASKED, x),
        lambda x: np.concatenate([x, MATRIX]),
        lambda x: x + {"here": MATRIX}["here"],
        lambda x: x - np.ones((2, 2)).view(Own),
    ],
)
def test_arrays_of_subclasses_are_refused_wherever_they_come_from(function):
    with pytest.raises(UnsupportedError, match=r"test_jit_refused.py:\d+: "):
        irkit.jit(target="cpu")(function)(np.ones((2, 2)))


def for_ever(x):
    while True:
        x = x + 1


def in_turn_for_long(x):
    for c in [1.0, 2.0, 3.0] * 10_000:
        x = x * c
    return x


@pytest.mark.parametrize("function", [for_ever, in_turn_for_long])
def test_loops_that_are_unrolled_without_end_are_refused(function):
    with pytest.raises(UnsupportedError, match=r"refused.py:\d+: more than 20000 ops, of loops"):
        irkit.jit(target="cpu")(function)(np.ones(3))


def loud(x):
    with np.errstate(divide="raise", over="ignore"):
        return 1 / x


def test_exceptions_of_floats_are_not_promised():
    with pytest.raises(UnsupportedError, match=r"np.errstate\(divide='raise'\): compiled arithm"):
        irkit.jit(target="cpu")(loud)(np.zeros(3))

    def quiet(x):
        with np.errstate(all="ignore"):
            return 1 / x

    assert np.isinf(irkit.jit(target="cpu")(quiet)(np.zeros(3))).all()


def test_shapes_that_hang_on_values_say_so():
    for function in (lambda x: np.unique(x), lambda x: np.nonzero(x)):
        with pytest.raises(UnsupportedError, match="has a shape that hangs on values"):
            irkit.jit(target="cpu")(function)(np.ones(3))
    with pytest.raises(UnsupportedError, match="elements that a mask picks: how many hangs on val"):
        irkit.jit(target="cpu")(lambda x: x[x > 0])(np.ones(3))


def test_functions_that_call_themselves():
    def halved(x, n=5):
        return x if n == 0 else other(x * 2, n - 1)

    def other(x, n):
        return halved(x + 1, n)

    x = np.arange(3.0)
    np.testing.assert_array_equal(irkit.jit(target="cpu")(halved)(x), halved(x))
