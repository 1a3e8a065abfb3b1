"""Programs of arrays: the builder, the views, the interpreter and the checks, held against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided
from xdsl.dialects.builtin import f64, i1, i64

from irkit.dialects import graph
from irkit.dialects.program.builder import ProgramBuilder
from irkit.dialects.program.check import program_faults, written_arguments
from irkit.dialects.program.views import Affine, StridedView, buffer_type, row_major
from irkit.errors import InvalidInputError, InvalidModelError, UnsupportedError
from irkit.interp import level_of, run_module
from irkit.interp.program import Execution, run_program, strided


def test_effects_are_numpys():
    b = ProgramBuilder([("x", buffer_type(f64, (8, 4)))])
    (x,) = b.buffers
    tail, head = b.view(x, 4, (7, 4), (4, 1)), b.view(x, 0, (7, 4), (4, 1))
    b.write(b(graph.AddOp, b.read(tail), b.read(head)), tail)
    with b.loop(0, 7) as i:
        here, after = (b.view(x, b.affine(k, {i: 4}), (4,), (1,)) for k in (0, 4))
        b.write(b(graph.AddOp, b.read(here), b.read(after)), after)
    built = b.finish([("y", b.view(x, 28, (8, 4), (-4, 1)))])
    assert level_of(built.module) == "program"
    assert not list(program_faults(built.module))
    given = np.arange(32.0).reshape(8, 4)
    want = given.copy()
    want[1:] += want[:-1]
    for row in range(7):
        want[row + 1] += want[row]
    returned, left = run_module(built.module, built.weights, [given])
    np.testing.assert_array_equal(returned, want[::-1])
    np.testing.assert_array_equal(left, want)
    assert given[1, 0] == 4  # the caller's array stays


def test_a_loop_that_asks_and_counts():
    b = ProgramBuilder([("n", buffer_type(i64, ()))])
    (n,) = b.buffers
    flag, seven = b.alloc(i1, ()), b.constant(np.int64(7))
    b.write(b(graph.CompareOp, b.read(n), seven, predicate="lt"), flag)
    with b.while_loop(flag):
        with b.loop(1, 4, 2) as i:
            b.write(b(graph.AddOp, b.read(n), b.number_of(i)), n)
        b.write(b(graph.CompareOp, b.read(n), seven, predicate="lt"), flag)
    built = b.finish([("n", n)])
    assert run_program(built.module, built.weights, [np.array(0)])[0] == 8  # 0 + (1 + 3) + (1 + 3)


def test_calls_of_the_host_work_in_place():
    b = ProgramBuilder([("x", buffer_type(f64, (6,))), ("y", buffer_type(f64, (6,)))])
    x, y = b.buffers
    b.call("smooth", [x, b.view(y, 5, (3,), (-2,))], reads=[0], writes=[1])
    built = b.finish([])
    (main,) = built.module.ops
    assert written_arguments(main) == [1]

    def smooth(source: np.ndarray, target: np.ndarray) -> None:
        target[:] = source[::2] + source[1::2]

    given = [np.arange(6.0), np.zeros(6)]
    (left,) = run_program(built.module, built.weights, given, {"smooth": smooth})
    np.testing.assert_array_equal(left, [0, 9, 0, 5, 0, 1])
    Execution(main, built.weights, {"smooth": smooth}).run(given)
    np.testing.assert_array_equal(given[1], left)
    with pytest.raises(UnsupportedError, match="of @smooth: no such function was given"):
        run_program(built.module, built.weights, given)


def test_buffers_are_looked_at():
    b = ProgramBuilder([("x", buffer_type(f64, (2, 3)))])
    built = b.finish([("x", b.buffers[0])])
    (main,) = built.module.ops
    execution = Execution(main, built.weights, {})
    for wrong in (np.zeros((3, 2)), np.zeros((2, 3), np.float32), np.zeros((3, 2)).T):
        with pytest.raises(InvalidInputError, match="expected a contiguous array of float64"):
            execution.run([wrong])
    with pytest.raises(InvalidInputError, match="expected 1 buffers, got 0"):
        execution.run([])


def test_whole_views_are_their_buffer():
    b = ProgramBuilder([("x", buffer_type(f64, (4, 1, 3)))])
    (x,) = b.buffers
    assert b.view(x, 0, (4, 1, 3), (3, 3, 1)) is x
    assert b.view(x, 0, (4, 1, 3), (3, 77, 1)) is x  # a stride of one element moves nothing
    for offset, sizes, strides in (
        (1, (3, 1, 3), (3, 3, 1)),
        (0, (4, 3), (3, 1)),
        (2, (4, 1, 3), (3, 3, -1)),
    ):
        assert b.view(x, offset, sizes, strides) is not x


@pytest.mark.parametrize("seed", range(20))
def test_views_are_as_strided(seed: int):
    """`strided` and `repeats` on random views, against NumPy and the set of addresses."""
    random = np.random.default_rng(seed)
    buffer = np.arange(60)
    for _ in range(50):
        sizes = tuple(int(n) for n in random.integers(1, 4, random.integers(0, 4)))
        strides = tuple(int(s) for s in random.integers(-6, 7, len(sizes)))
        b = ProgramBuilder([("x", buffer_type(i64, (60,)))])
        view = StridedView(b.buffers[0], Affine(), sizes, strides)
        low, high = view.reach()
        offset = int(random.integers(-low, 60 - high))
        got = strided(buffer, view, offset)
        index = np.indices(sizes).reshape(len(sizes), int(np.prod(sizes)))
        places = offset + np.asarray(strides, int) @ index
        np.testing.assert_array_equal(got.ravel(), places)
        want = as_strided(buffer[offset:], sizes, [8 * s for s in strides])
        np.testing.assert_array_equal(got, want)
        assert view.repeats() == (len(set(places.tolist())) < len(places))
        with pytest.raises(InvalidModelError, match="of a buffer of 60"):
            strided(buffer, view, 60 - high)


def test_strides_of_an_array():
    assert row_major((2, 3, 4)) == (12, 4, 1)
    assert row_major(()) == ()
