"""`for` statements that data end by a `break` at their beginning, and what masks pick, handed on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irkit

X = np.random.default_rng(1).random(60)


def fewer(a: Any, n: int) -> Any:
    """Fewer elements in each round, until there are none."""
    z = a
    for i in range(n):
        if not len(z):
            break
        z = z[z > 0.05 * i]
    return z.sum()


def grown(a: Any, n: int) -> Any:
    """Arrays and a counter."""
    x, k = a * 2, 0
    for _ in range(n):
        if x.max() > 50 or k == 7:
            break
        x = x * 1.5
        k += 1
    return x, k


def downwards(a: Any, n: int) -> Any:
    z = a
    for i in range(n, 0, -2):
        if z.sum() < 1:
            break
        if n == 3:
            continue
        z = z * i / n
    return z


def escaped(a: Any, n: int) -> Any:
    """Each element until it escapes: when that was, and where it went."""
    rows, columns = np.mgrid[0:6, 0:10]
    rows.shape = columns.shape = 60
    when, kept = np.zeros((6, 10), int), np.zeros((6, 10))
    z, c = a.copy(), a / 8
    for i in range(n):
        if not len(z):
            break
        np.multiply(z, 1.2, z)
        np.add(z, c, z)
        out = z > 2
        when[rows[out], columns[out]] = i + 1
        kept[rows[out], columns[out]] = z[out]
        np.logical_not(out, out)
        z, c = z[out], c[out]
        rows, columns = rows[out], columns[out]
    return when, kept.T


def scattered(a: Any, n: int) -> Any:
    """Places in another order than that of the array."""
    places, found, z = np.mgrid[0:120:2][::-1], np.zeros(120), a * 1
    while len(z):
        far = z > 1
        found[places[far]] = z[far]
        near = np.logical_not(far)
        z, places = z[near] * 1.5 + n, places[near]
    return found


def twice(a: Any, n: int) -> Any:
    """A loop that data end in one that they do not."""
    total = np.zeros(3)
    for j in range(3):
        z = a * (j + 1)
        for i in range(n):
            if z.min() > 5:
                break
            z = z + i
        total[j] = z.sum()
    return total


def counted(a: Any, n: int) -> Any:
    """`len` in the test of a `while` statement."""
    z, k = a[a > 0.5], 0
    while len(z) and k < n:
        z = z[z > 0.55 + 0.02 * k]
        k += 1
    return z.sum(), k


@pytest.mark.parametrize("n", [3, 200])
@pytest.mark.parametrize("function", [fewer, grown, downwards, escaped, scattered, twice, counted])
def test_what_data_end_is_numpys(function: Any, n: int) -> None:
    got, want = irkit.jit(target="cpu")(function)(X, n), function(X.copy(), n)
    pairs = zip(*(r if isinstance(r, tuple) else (r,) for r in (got, want)), strict=True)
    for ours, theirs in pairs:
        assert np.asarray(ours).dtype == np.asarray(theirs).dtype
        np.testing.assert_allclose(ours, theirs, 1e-12)


def test_that_the_loop_is_one_of_the_program() -> None:
    compiled = irkit.jit(target="cpu")(escaped)
    compiled.compile(X, 1000)
    assert "task.while" in compiled.ir("schedule")


def test_that_a_break_of_what_is_known_leaves_the_loop_as_it_was() -> None:
    def some(a: Any, last: int) -> Any:
        for i in range(100):
            if last < 0:
                break
            a = a * 1.01 + i
        return a

    compiled = irkit.jit(target="cpu")(some)
    for last in (-1, 1):
        np.testing.assert_allclose(compiled(X, last), some(X, last), 1e-12)
    assert "task.while" not in compiled.ir("schedule")


def shared(a: Any) -> Any:
    z = a[a > 0.5]
    y = z
    while z.sum() > 1:
        z = z * 0.5
        y += 1
    return z.sum(), y.sum()


def other_mask(a: Any) -> Any:
    z, y = a[a > 0.5], a[a > 0.5]
    while z.sum() > 1:
        z, y = z[z > 0.6], y[y > 0.7]
    return z.sum(), y.sum()


def read_behind(a: Any) -> Any:
    for i in range(100):
        if a.sum() > 50:
            break
        a = a * i
    return a, i


def there_twice(a: Any) -> Any:
    found, places = np.zeros(60), np.mgrid[0:2, 0:30][1].reshape(60)
    m = a > 0.5
    found[places[m]] = a[m]
    return found


def computed(a: Any) -> Any:
    found, places = np.zeros(60), (a * 10).astype(int)
    m = a > 0.5
    found[places[m]] = a[m]
    return found


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (shared, "'z' of a `while` loop on data is what a mask picked, and so is another variable"),
        (other_mask, "'y' is picked by another mask than others are"),
        (read_behind, "'if', 'while', 'and' or bool"),
        (there_twice, "indices that a mask picked, of which some are there twice"),
        (computed, "indices that a mask picked and that are computed"),
    ],
)
def test_what_is_refused(function: Any, words: str) -> None:
    with pytest.raises(irkit.UnsupportedError, match=rf"test_left_loops.py:\d+: {words}"):
        irkit.jit(target="cpu")(function)(X)
