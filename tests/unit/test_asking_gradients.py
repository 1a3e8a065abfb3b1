# pyright: basic
"""Gradients of loops that go on as long as data say so: random ones against central differences and forward
against reverse mode, bounds that a test has, and loops that nothing bounds."""

from __future__ import annotations

import numpy as np
import pytest
from jitted import interpreted

import irkit
from irkit.driver.programs.chunked import chunked_loops
from irkit.errors import UnsupportedError


class Loop:
    """A random loop of one to three states, with another loop in it or around it, whose rounds hang on what
    it computes; how many there are at most is said by `most` or by the test."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.count = int(rng.integers(1, 4))
        self.kinds = rng.integers(5, size=self.count)
        self.others = rng.integers(self.count, size=self.count)
        self.said, self.inside, self.around = (int(rng.integers(k)) for k in (2, 3, 3))
        self.most = int(rng.integers(0, 12))
        self.limit = float(rng.uniform(0.5, 3))
        self.x = rng.uniform(0.3, 1.5, 4)
        self.way = rng.standard_normal(4)

    def _round(self, x, s):
        made = list(s)
        for n, (kind, other) in enumerate(zip(self.kinds, self.others, strict=True)):
            a, b = s[n], s[other]
            match kind:
                case 0:
                    made[n] = 1.2 * a + 0.1 * np.sin(b)
                case 1:
                    made[n] = a + np.tanh(x * b) * 0.4
                case 2:
                    made[n] = a * 1.1 + x
                case 3:
                    made[n] = a + np.sqrt(np.abs(b) + x * x)
                case _:
                    made[n] = b
        return made

    def _body(self, x):
        def body(*s):
            *s, n = s
            s = self._round(x, s)
            if self.inside == 1:
                for _ in irkit.range(5):
                    s = [np.sin(s[0]) + 0.5 * x + 0.2 * s[0], *s[1:]]
            elif self.inside == 2:
                (held,) = irkit.while_loop(
                    lambda v: v.max() > 1.5, lambda v: (v * 0.8,), (s[0] + x,), most=6
                )
                s = [s[0] + 0.3 * held, *s[1:]]
            return (*s, n + 1)

        return body

    def _run(self, x, start):
        def small(*s):
            return np.abs(s[0]).sum() < self.limit * 4

        start = (*(start * (n + 1) for n in range(self.count)), np.int64(0))
        if self.said:
            return irkit.while_loop(small, self._body(x), start, most=self.most)

        def asks(*s):
            return small(*s) & (s[-1] < self.most)

        return irkit.while_loop(asks, self._body(x), start)

    def __call__(self, x):
        total = (x * 0).sum()
        if self.around == 0:
            for _ in irkit.range(3):
                *s, _ = self._run(x * 0.5, x + total * 0.1)
                total = total + (s[0] * s[-1]).sum() * 0.1
            return total
        *s, n = self._run(x, x * 0.3)
        return sum((v * v).sum() for v in s) + n


def along(function, x, way, step=1e-6):
    return (function(x + step * way) - function(x - step * way)) / (2 * step)


@pytest.mark.parametrize("seed", range(16))
def test_random_loops(seed: int):
    loop = Loop(seed)
    want = along(loop, loop.x, loop.way)
    gradient = irkit.grad(lambda x: loop(x))
    found = interpreted(gradient.__wrapped__)(loop.x)
    np.testing.assert_allclose((found * loop.way).sum(), want, rtol=1e-6, atol=1e-7)
    pushed = irkit.jvp(lambda x: loop(x))
    _, tangent = interpreted(pushed.__wrapped__)(loop.x, loop.way)
    np.testing.assert_allclose(tangent, (found * loop.way).sum(), rtol=1e-12, atol=1e-12)
    if seed % 6 == 0:
        curved = irkit.jvp(gradient)
        _, product = interpreted(curved.__wrapped__)(loop.x, loop.way)
        again = irkit.grad(lambda x: (gradient(x) * loop.way).sum(), allow_unused=True)
        twice = interpreted(again.__wrapped__)(loop.x)
        np.testing.assert_allclose(twice, product, rtol=1e-10, atol=1e-10)
        ends = [interpreted(gradient.__wrapped__)(loop.x + e * loop.way) for e in (1e-5, -1e-5)]
        np.testing.assert_allclose(product, (ends[0] - ends[1]) / 2e-5, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("seed", [3, 4])
def test_loops_in_chunks_have_the_same_gradients(seed: int):
    loop = Loop(seed)
    loop.most, loop.limit = 40, 1e30
    gradient = irkit.grad(lambda x: loop(x))
    kept = interpreted(gradient.__wrapped__)(loop.x)
    with chunked_loops():
        chunked = interpreted(gradient.__wrapped__)
        np.testing.assert_allclose(chunked(loop.x), kept, rtol=1e-12)


def newton(x):
    """Its rounds behind the last would divide 0 by 0."""

    def step(y, error):
        change = (y * y - x) / (2 * y)
        return y - change, np.sqrt(change @ change)

    y, _ = irkit.while_loop(lambda _, e: e > 1e-9, step, (x + 1, np.float64(1)), most=60)
    return y.sum()


def statement(x):
    y, n = x * 0.1, 10
    while n > 2 and (y.sum() < 3):
        y = y * 1.5 + x
        n -= 2
    return (y * y).sum()


@pytest.mark.parametrize("function", [newton, statement])
def test_compiled(function):
    x = np.array([0.7, 0.2, 1.9])
    gradient = irkit.grad(function, target="cpu", device="cpu2")
    want = [along(function, x, e) for e in np.eye(3)]
    np.testing.assert_allclose(gradient(x), want, rtol=1e-7)
    np.testing.assert_allclose(gradient(x), want, rtol=1e-7)


@pytest.mark.parametrize("most", [0, 1, 5, np.int64(3)])
def test_most_is_the_same_in_python_and_compiled(most):
    def function(x):
        return irkit.while_loop(
            lambda y, n: y.sum() < 9, lambda y, n: (y + x, n + 1), (x, np.int64(0)), most=most
        )

    y, n = function(np.ones(2))
    assert n == min(most, 4)
    made = interpreted(function)(np.ones(2))
    np.testing.assert_array_equal(made[0], y)
    assert made[1] == n
    assert len(made) == 2


@pytest.mark.parametrize("most", [-1, 2.5, "3"])
def test_most_that_is_no_number_of_rounds(most):
    for call in (lambda f: f, interpreted):
        with pytest.raises(UnsupportedError, match="expected a whole number, 0 or more"):
            call(lambda x: irkit.while_loop(lambda y: y < 1, lambda y: (y + x,), (x,), most=most))(
                np.float64(1)
            )


def unbounded(x):
    return irkit.while_loop(lambda y: y.sum() < 9, lambda y: (y + x,), (x,))[0].sum()


def counted_by_data(x):
    def asks(y, n):
        return (y.sum() < 9) & (n < x.sum())

    return irkit.while_loop(asks, lambda y, n: (y + x, n + 1), (x, np.int64(0)))[0].sum()


def either(x):
    def asks(y, n):
        return (y.sum() < 9) | (n < 5)

    return irkit.while_loop(asks, lambda y, n: (y + x, n + 1), (x, np.int64(0)))[0].sum()


def stands_still(x):
    def asks(y, n):
        return (y.sum() < 9) & (n < 5)

    return irkit.while_loop(asks, lambda y, n: (y + x, n + 0), (x, np.int64(0)))[0].sum()


def counts_beyond_its_type(x):
    def asks(y, n):
        return (y.sum() < 9) & (n < np.int8(127))

    def body(y, n):
        return y + x, n + np.int8(2)

    return irkit.while_loop(asks, body, (x, np.int8(0)))[0].sum()


@pytest.mark.parametrize(
    "function", [unbounded, counted_by_data, either, stands_still, counts_beyond_its_type]
)
def test_what_nothing_bounds_is_refused_with_its_line(function):
    x = np.full(3, 1.1)
    with pytest.raises(UnsupportedError, match=r"test_asking_gradients.py:\d+:1: a loop .* most=N"):
        interpreted(irkit.grad(function).__wrapped__)(x)
    _, tangent = interpreted(irkit.jvp(function).__wrapped__)(x, np.ones(3))
    np.testing.assert_allclose(tangent, along(function, x, np.ones(3)), rtol=1e-8)


def test_a_loop_that_nothing_is_differentiated_through_may_be_unbounded():
    def function(x, y):
        (z,) = irkit.while_loop(lambda z: z.sum() < 9, lambda z: (z + y,), (y,))
        return (x * z).sum()

    gradient = interpreted(irkit.grad(function).__wrapped__)(np.ones(3), np.ones(3))
    np.testing.assert_array_equal(gradient, np.full(3, 3.0))
