"""NumPy's functions that move or find places by computed numbers, and rows that are long to sort."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from jitted import check

import irkit
from irkit.annotations.sorting import LONG
from irkit.errors import UnsupportedError

RNG = np.random.default_rng(0)
X = RNG.random((6, 5))
SHIFTS = np.array([2, 7, -3, 0])


@pytest.mark.parametrize(
    "function",
    [
        lambda x, s: np.roll(x, s[0], 0),
        lambda x, s: np.roll(x, s[1]),
        lambda x, s: np.roll(x, (s[0], 1), (0, 1)),
        lambda x, s: np.roll(x, s[2], (0, 1)),
        lambda x, s: np.roll(x, s[:2], (1, 0)),
        lambda x, s: np.roll(x, s[:2], 1),
        lambda x, s: np.roll(x, [s[3], s[1]], (-1, -1)),
        lambda x, s: np.roll(x, s[0] * 1.75, 0),
        lambda x, s: np.roll(x, np.argmax(x), 0),
        lambda x, s: np.roll(x, np.array([1, 2]), (0, 1)),
        lambda x, s: np.roll(x, np.int8(-1), axis=1),
        lambda x, s: np.roll(x[:, :1], s[0], 1),
    ],
)
def test_roll(function: Any) -> None:
    check(function, X, SHIFTS)


def test_rolls_of_a_loop_by_a_table() -> None:
    table = np.array([0, 1, 0, -1])

    def streamed(f: Any, steps: int) -> Any:
        f = f.copy()
        for _ in range(steps):
            for i in range(4):
                f[i] = np.roll(np.roll(f[i], table[i], 0), table[i - 1], 1)
        return f

    for steps in (1, 40):
        check(streamed, RNG.random((4, 6, 5)), steps)
    check(streamed, RNG.random((4, 6, 5)), 3, jit=irkit.jit(target="cpu"))


def test_rolls_that_numpy_refuses() -> None:
    with pytest.raises(ValueError, match="cannot be broadcast"):
        check_raises(lambda x, s: np.roll(x, s[:3], (0, 1)))
    with pytest.raises(np.exceptions.AxisError):
        check_raises(lambda x, s: np.roll(x, s[0], 2))


def check_raises(function: Any) -> None:
    irkit.jit(target="cpu")(function)(X, SHIFTS)


def test_what_np_broadcast_says_of_computed_arrays_is_their_shape() -> None:
    check(lambda x, s: x * np.broadcast(x, x[0]).shape[0] + np.broadcast(x, 3).ndim, X, SHIFTS)
    with pytest.raises(UnsupportedError, match=r"np\.broadcast\(\.\.\.\) that is iterated"):
        check_raises(lambda x, s: sum(a * b for a, b in np.broadcast(s, 2)))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.unravel_index(np.argmax(x), x.shape),
        lambda x: np.unravel_index(np.argmax(x, 0), (7, 3), order="F"),
        lambda x: np.unravel_index(indices=np.argmin(x), shape=30),
        lambda x: np.unravel_index(np.argsort(x[0])[:, None], [2, 1, 3]),
    ],
)
def test_unravel_index(function: Any) -> None:
    check(function, X)


@pytest.mark.parametrize("by", [30, -30])
def test_places_outside_of_a_shape_are_told(by: int) -> None:
    f = irkit.jit(target="cpu")(lambda x: np.unravel_index(np.argmax(x) + by, x.shape))
    with pytest.raises(ValueError, match="out of bounds"):
        f(X)


def diagonal_of(view: Any, value: Any) -> Any:
    def filled(x: Any) -> Any:
        np.fill_diagonal(view(x), value)
        return x * 2

    return filled


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x,
        lambda x: x.T,
        lambda x: x[1:, ::2],
        lambda x: x[::-1, :3],
        lambda x: x[:1],
        lambda x: x.reshape(5, 6),
        lambda x: x[:2, :2].reshape(2, 2),
    ],
)
def test_fill_diagonal(view: Any) -> None:
    check(diagonal_of(view, 7), X)


def test_other_diagonals() -> None:
    def cube(x: Any) -> Any:
        y = np.zeros((3, 3, 3), np.int32)
        np.fill_diagonal(y, x[0, 0] * 99.7)
        return y

    check(cube, X)
    check(diagonal_of(lambda x: x, [1, 2, 3]), X, jit=irkit.jit(target="cpu"))

    def wrapped(x: Any) -> Any:
        np.fill_diagonal(x, 1, wrap=True)

    check(wrapped, X, jit=irkit.jit(target="cpu"))
    with pytest.raises(ValueError, match="read-only"):
        irkit.jit(target="cpu")(diagonal_of(lambda x: np.broadcast_to(x[0], (5, 5)), 1))(X)


@pytest.mark.parametrize(
    "function",
    [
        np.linalg.norm,
        lambda x: np.linalg.norm(x, axis=0),
        lambda x: np.linalg.norm(x, np.inf, axis=1),
        lambda x: np.linalg.norm(x[0], 3),
        lambda x: np.linalg.norm(x, 1, keepdims=True),
        lambda x: np.linalg.norm(x[0] + 1j * x[1]),
        lambda x: np.linalg.norm((x * 10).astype(int)),
        lambda x: np.linalg.vector_norm(x, axis=1),
        lambda x: np.linalg.matrix_power(x[:5], 4),
        lambda x: np.linalg.multi_dot([x, x.T, x]),
        lambda x: np.linalg.matmul(x.T, x) + np.linalg.trace(x[:5]),
        lambda x: np.linalg.cross(x[:, :3], x[:, 2:]) * np.linalg.vecdot(x, x)[:, None],
        lambda x: np.linalg.tensordot(x, np.linalg.matrix_transpose(x), axes=1),
        lambda x: np.linalg.outer(x[0], x[:, 0]),
        lambda x: np.linalg.vecdot(x + 1j, x, axis=0) + np.vecdot(x[:5], x[1:], axis=1)[0],
        lambda x: np.linalg.diagonal(x[None], offset=1),
    ],
)
def test_what_linalg_composes_is_compiled(function: Any) -> None:
    f = irkit.jit(target="cpu")(lambda x: function(x) * 2)
    np.testing.assert_allclose(f(X), function(X) * 2, 1e-13)
    assert "host_tasks" not in f.report()


def test_the_norm_that_asks_lapack_is_a_task() -> None:
    f = irkit.jit(target="cpu")(lambda x: np.linalg.norm(x, 2) * 2)
    np.testing.assert_allclose(f(X), np.linalg.norm(X, 2) * 2, 1e-13)
    assert f.report()["host_tasks"]


@pytest.mark.parametrize("function", [np.sort, np.argsort])
def test_long_rows_are_numpys_to_sort(function: Any) -> None:
    long = RNG.random((3, LONG))
    long[0, :3] = np.nan
    f = check(lambda x: function(x * 2, axis=1, kind="stable"), long, jit=irkit.jit(target="cpu"))
    assert [t["function"] for t in f.report()["host_tasks"]] == [f"numpy.{function.__name__}"]
    g = check(lambda x: function(x * 2, axis=0), long, jit=irkit.jit(target="cpu"))
    assert "host_tasks" not in g.report()


def test_sorting_in_place() -> None:
    def ordered(x: Any) -> Any:
        x.sort()
        return x[::-1]

    check(ordered, RNG.random(LONG), jit=irkit.jit(target="cpu"))


ROWS, COLUMNS = np.array([-1, 3, -6, 3]), np.array([4, 0, 1, 0])
VALUES = RNG.random(4)


def pairs(x: Any, i: Any, j: Any, v: Any) -> None:
    x[i, j] = v


def one(x: Any, i: Any, j: Any, v: Any) -> None:
    x[i[0], j[1]] = v[2]
    x[i[1], ::2] *= 2


def crossed(x: Any, i: Any, j: Any, v: Any) -> Any:
    x[i[:, None], j] = v
    x[i, 2] += 1
    return x.T[j, i]


def other_axes(x: Any, i: Any, j: Any, v: Any) -> None:
    x[:, j] = 0
    x[1:, j[:2]] = v[0]
    x[i, 1:3] = v[:, None]


def of_parts(x: Any, i: Any, j: Any, v: Any) -> Any:
    y = x.reshape(2, 3, 5)
    y[:, i % 3, 1:] = v[:, None]
    return y[1:, i % 3, j], y[:, i % 3, ::2], x[1:-1, j[:, None]], x[i[0], 1:]


def step_by_step(x: Any, i: Any, j: Any, v: Any) -> None:
    for k in range(4):
        x[i[k], j[k]] = v[k]
        x[k:, j] = k


def of_complex(x: Any, i: Any, j: Any, v: Any) -> Any:
    z = x + 1j
    z[i, j] = v * 1j
    return z


@pytest.mark.parametrize(
    "function", [pairs, one, crossed, other_axes, of_parts, step_by_step, of_complex]
)
def test_assignments_at_computed_indices(function: Any) -> None:
    check(function, X, ROWS, COLUMNS, VALUES)
    check(function, X, ROWS, COLUMNS, VALUES, jit=irkit.jit(target="cpu"))


def test_values_that_do_not_fit_the_indices() -> None:
    f = irkit.jit(target="cpu")(pairs)
    with pytest.raises(ValueError, match=r"\(3,\) could not be broadcast .* \(4,\)"):
        f(X, ROWS, COLUMNS, VALUES[:3])
    with pytest.raises(IndexError, match="out of bounds"):
        f(X, ROWS + 100, COLUMNS, VALUES)


def test_many_computed_indices_are_numpys_to_place() -> None:
    """Each element beside each index would be 1e11 comparisons."""
    indices = RNG.integers(-(10**6), 10**6, 10**5)

    def placed(x: Any, i: Any, v: Any) -> Any:
        x[i] = v * 2
        return x[::1000]

    f = check(placed, np.zeros(10**6), indices, RNG.random(10**5), jit=irkit.jit(target="cpu"))
    assert len(f.report()["host_tasks"]) == 1


def taken_before(x: Any, i: Any) -> Any:
    part = x[1:, i[0]]
    x[0:, i[0]] = 7
    return part + 0


def put_elsewhere(x: Any, i: Any) -> None:
    k = i[1]
    part = x[:3, k]
    part += 1
    x[3:, k] = part


def written_by_the_host(x: Any, i: Any) -> Any:
    part = x[i[1]]
    np.put(x, [0, 16], 9.0)
    return part + 0


def read_by_the_host(x: Any, i: Any) -> Any:
    part = x[i[1]]
    part += 1
    return np.median(x)


@pytest.mark.parametrize(
    "function", [taken_before, put_elsewhere, written_by_the_host, read_by_the_host]
)
def test_parts_at_computed_indices_are_never_taken_for_views(function: Any) -> None:
    with pytest.raises(UnsupportedError, match="a computed index"):
        irkit.jit(target="cpu")(function)(X.copy(), np.array([2, 3]))


def test_parts_that_are_put_back() -> None:
    def put_back(x: Any, i: Any) -> Any:
        x[i[0]] += 1
        x[i[1], 1:] += x[i[0], 1:]
        return np.median(x)

    check(put_back, X, np.array([2, 3]), jit=irkit.jit(target="cpu"))


def test_stable_orders_of_long_rows() -> None:
    ties = np.repeat(np.arange(10)[::-1], 1000)[RNG.permutation(10000)]
    check(
        lambda x: (np.argsort(x, stable=True), x.argsort(kind="stable")),
        ties,
        jit=irkit.jit(target="cpu"),
    )
