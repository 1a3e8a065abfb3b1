"""`irkit.grad` and its kin on functions of NumPy arrays: against differences, composed, refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import interpreted

import irkit
from irkit.errors import UnsupportedError

RNG = np.random.default_rng(0)
TABLE = np.array([0.5, -1.0, 2.0])


def run(derived: Any, *args: Any) -> Any:
    """A derivative, by the interpreter."""
    return interpreted(derived.__wrapped__)(*args)


def differences(function: Callable[..., Any], args: Any, number: int) -> np.ndarray:
    """Partial derivatives of a number by an argument, by central differences."""
    found = np.zeros_like(args[number])
    for place in np.ndindex(found.shape):
        ends: list[float] = []
        for step in (1e-6, -1e-6):
            moved = [np.array(a) for a in args]
            moved[number][place] += step
            ends.append(float(function(*moved)))
        found[place] = (ends[0] - ends[1]) / 2e-6
    return found


def mlp(x: Any, w: Any, b: Any) -> Any:
    return np.mean(np.tanh(x @ w + b) ** 2)


def swing(angle: Any, speed: Any, dt: Any) -> Any:
    for _ in range(12):
        speed -= dt * np.sin(angle)
        angle += dt * speed
    return (0.5 * speed**2 + 1 - np.cos(angle)).sum()


def scan(x: Any) -> Any:
    y = np.zeros_like(x)
    for i in range(1, 9):
        y[i] = y[i - 1] * 0.5 + np.sin(x[i]) * x[i - 1]
    return y.sum()


def with_table(x: Any) -> Any:
    return (np.where(x > 0, x * TABLE, x**2 / (1 + TABLE**2))).sum()


def picked(x: Any, k: Any) -> Any:
    return (np.sort(x)[::2] * np.take(x, k)).sum() + np.max(x) * np.sqrt((x * x).sum())


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "mlp": (mlp, (RNG.random((4, 3)), RNG.random((3, 2)), RNG.random(2))),
    "swing": (swing, (RNG.random(3), RNG.random(3), np.array(0.1))),
    "scan": (scan, (RNG.random(9),)),
    "table": (with_table, (np.array([1.0, -2.0, 3.0]),)),
    "picked": (picked, (np.array([3.0, -1.0, 2.0, 5.0, 0.5]), np.array([4, 0, 1]))),
    "einsum": (
        lambda a, b: np.einsum("ij,kj->ik", a, b).std() + np.cumsum(a).prod(),
        (RNG.random((2, 3)), RNG.random((4, 3))),
    ),
    "parts": (
        lambda a: (np.concatenate([a[1:], a[:1] * 2]) * np.roll(a, 1) + np.flip(a)).var(),
        (RNG.random((4, 3)),),
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_agree_with_differences(name: str) -> None:
    function, args = FUNCTIONS[name]
    before = [a.copy() for a in args]
    numbers = [n for n, a in enumerate(args) if a.dtype.kind == "f"]
    value, found = run(irkit.value_and_grad(function, numbers), *args)
    for a, b in zip(args, before, strict=True):
        np.testing.assert_array_equal(a, b)
    want = function(*(a.copy() for a in args))
    np.testing.assert_allclose(value, want, rtol=1e-12)
    assert type(value) is type(want)
    for number, got in zip(numbers, found, strict=True):
        assert (got.shape, got.dtype) == (args[number].shape, args[number].dtype)
        np.testing.assert_allclose(got, differences(function, args, number), rtol=1e-6, atol=1e-8)


def curve(x: Any) -> Any:
    return (np.sin(x) * x * x[0]).sum()


def test_derivatives_compose() -> None:
    """Second derivatives by each way there is, and third ones."""
    x, v = RNG.random(3), RNG.random(3)
    hessian = run(irkit.hessian(curve), x)
    by_rows = np.stack([
        (run(irkit.grad(curve), x + e) - run(irkit.grad(curve), x - e)) / 2e-6
        for e in 1e-6 * np.eye(3)
    ])  # fmt: skip
    np.testing.assert_allclose(hessian, by_rows, atol=1e-8)
    forward_over_reverse = run(irkit.jvp(irkit.grad(curve)), x, v)[1]
    np.testing.assert_allclose(forward_over_reverse, hessian @ v, rtol=1e-12)
    reverse_over_reverse = run(irkit.grad(lambda y: (irkit.grad(curve)(y) * v).sum()), x)
    np.testing.assert_allclose(reverse_over_reverse, hessian @ v, rtol=1e-12)
    reverse_over_forward = run(irkit.grad(lambda y: irkit.jvp(curve)(y, v)[1]), x)
    np.testing.assert_allclose(reverse_over_forward, hessian @ v, rtol=1e-12)
    cube = irkit.grad(irkit.grad(irkit.grad(lambda y: y**4)))
    np.testing.assert_allclose(run(cube, np.array(2.0)), 48.0)


def several(x: Any) -> Any:
    return np.stack([x[0] * x[1], np.sin(x[2]), x[0] ** 2, x.sum(), x[1]])


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse"])
def test_jacobians(mode: str) -> None:
    x = RNG.random(3)
    want = np.stack([differences(lambda y, i=i: several(y)[i], [x], 0) for i in range(5)])
    np.testing.assert_allclose(run(irkit.jacobian(several, mode=mode), x), want, atol=1e-8)
    matrix = RNG.random((2, 3))
    found = run(irkit.jacobian(lambda a: a.sum(axis=1) * a[:, 0], mode=mode), matrix)
    assert found.shape == (2, 2, 3)
    np.testing.assert_allclose(found[0, 1], 0)


def test_products_of_jacobians() -> None:
    a, b, ca, cb = RNG.random((4, 3))

    def function(a: Any, b: Any) -> Any:
        return {"product": a * b, "sum": [a + b]}

    results, gradients = run(irkit.vjp(function), (a, b), {"product": ca, "sum": [cb]})
    np.testing.assert_array_equal(results["sum"][0], a + b)
    np.testing.assert_allclose(gradients[0], ca * b + cb)
    np.testing.assert_allclose(gradients[1], ca * a + cb)
    _, tangents = run(irkit.jvp(function), (a, b), (ca, cb))
    np.testing.assert_allclose(tangents["product"], ca * b + a * cb)
    np.testing.assert_allclose(tangents["sum"][0], ca + cb)


def test_structures_names_and_other_results() -> None:
    parameters = {"w": RNG.random((3, 2)), "b": [RNG.random(2)]}

    def loss(x: Any, parameters: Any) -> Any:
        y = x @ parameters["w"] + parameters["b"][0]
        return (y**2).sum(), {"y": y}

    x = RNG.random((4, 3))
    derived = irkit.value_and_grad(loss, "parameters", has_aux=True)
    (value, other), found = run(derived, x, parameters)
    y = x @ parameters["w"] + parameters["b"][0]
    np.testing.assert_allclose(value, (y**2).sum())
    np.testing.assert_allclose(other["y"], y)
    np.testing.assert_allclose(found["w"], x.T @ (2 * y))
    np.testing.assert_allclose(found["b"][0], (2 * y).sum(axis=0))


def test_what_is_read_outside_is_a_constant() -> None:
    """A closure over arrays of the trace, and over globals."""

    def outer(x: Any, y: Any) -> Any:
        z = y * 2
        return irkit.grad(lambda q: (q * z * TABLE).sum())(x) + x

    x, y = RNG.random(3), RNG.random(3)
    np.testing.assert_allclose(interpreted(outer)(x, y), y * 2 * TABLE + x)


def test_an_index_out_of_bounds_is_still_found() -> None:
    derived = interpreted(irkit.grad(lambda x, k: np.take(x, k).sum()).__wrapped__)
    np.testing.assert_array_equal(derived(np.ones(3), np.array([0, 0, 2])), [2, 0, 1])
    with pytest.raises(IndexError):
        derived(np.ones(3), np.array([0, 3]))


SQUARE = irkit.custom_gradient(
    lambda x: x * x,
    vjp=lambda arguments, y, ct: (100 * ct * arguments[0],),
    jvp=lambda arguments, tangents, y: 10 * tangents[0] * arguments[0],
)


def test_custom_gradients() -> None:
    """Rules that are wrong on purpose, so that it shows which was taken."""
    x = RNG.random(3)
    np.testing.assert_array_equal(interpreted(lambda x: SQUARE(x))(x), x * x)
    np.testing.assert_allclose(run(irkit.grad(lambda x: SQUARE(x).sum()), x), 100 * x)
    np.testing.assert_allclose(run(irkit.jvp(SQUARE), x, np.ones(3))[1], 10 * x)
    twice = irkit.grad(lambda x: irkit.grad(lambda y: SQUARE(y).sum())(x).sum())
    np.testing.assert_allclose(run(twice, x), np.full(3, 100.0))
    several = irkit.custom_gradient(
        lambda x, k: (x * k, x + 1), vjp=lambda a, y, ct: (ct[0] * a[1] + 7 * ct[1], None)
    )

    def use(x: Any, k: Any) -> Any:
        a, b = several(x, k)
        return (a * b).sum()

    k = np.arange(3)
    np.testing.assert_allclose(run(irkit.grad(use), x, k), (x + 1) * k + 7 * x * k)
    # One that is made in the trace, and that nothing else holds.
    passing = irkit.grad(
        lambda x: irkit.custom_gradient(lambda y: y * y, vjp=lambda a, y, ct: (ct * 7,))(x).sum()
    )
    np.testing.assert_allclose(run(passing, x), np.full(3, 7.0))
    with pytest.raises(UnsupportedError, match="custom gradient without a jvp"):
        run(irkit.jvp(lambda x: use(x, k)), x, x)
    wrong = irkit.custom_gradient(lambda x: x * x, vjp=lambda a, y, ct: (ct[:1],))
    with pytest.raises(UnsupportedError, match=r"the vjp of a custom gradient gives tensor<1xf64>"):
        run(irkit.grad(lambda x: wrong(x).sum()), x)
    two = irkit.custom_gradient(lambda x, y: x * y, vjp=lambda a, y, ct: (ct,))
    with pytest.raises(UnsupportedError, match="gives 1 gradients: expected 2"):
        run(irkit.grad(lambda x: two(x, x).sum()), x)
    with pytest.raises(UnsupportedError, match="expected vjp, jvp, or both"):
        irkit.custom_gradient(lambda x: x)


def moving(x: Any) -> Any:
    total = np.zeros(3)
    for i in range(20):
        row = x[i]
        total += irkit.grad(lambda q, row=row: (q * row).sum())(total)
    return total


def test_in_a_loop_what_moves_is_an_argument() -> None:
    def total(x: Any) -> Any:
        found = np.zeros(3)
        for i in range(20):
            found += irkit.grad(lambda q, row: (np.sin(q) * row).sum())(found, x[i])
        return found

    x = RNG.random((20, 3))
    want = np.zeros(3)
    for i in range(20):
        want += np.cos(want) * x[i]
    np.testing.assert_allclose(interpreted(total)(x), want)


def writes(x: Any) -> Any:
    y = np.zeros(3)

    def inner(q: Any) -> Any:
        y[...] = q
        return q.sum()

    return irkit.grad(inner)(x) + y


def test_what_hangs_on_no_elements_reaches_its_arguments():
    """It is a constant once it is simplified."""
    found = run(irkit.grad(lambda x: np.tanh(x).sum()), np.zeros((0, 3)))
    assert found.shape == (0, 3)


REFUSED: dict[str, Callable[[Any], Any]] = {
    "is no scalar": lambda x: run(irkit.grad(lambda x: x * 2), x),
    "'k' is of int64: only floats": lambda x: run(
        irkit.grad(lambda x, k: (x * k).sum(), 1), x, np.arange(3)
    ),
    r"reaches an argument (.|\n)*'k'": lambda x: run(
        irkit.grad(lambda x, k: x.sum(), "k"), x, x + 0
    ),
    "'z' is of complex128: only floats": lambda x: run(irkit.grad(lambda z: abs(z).sum()), x + 1j),
    "an argument of complex128: pass its real": lambda x: run(
        irkit.grad(lambda x, z: abs(x * z).sum()), x, x + 1j
    ),
    "is a float, which is no array": lambda x: run(irkit.grad(lambda x: x * 2), 2.0),
    "returns a tuple, which is no scalar": lambda x: run(irkit.grad(lambda x: (x.sum(), x)), x),
    "with has_aux a pair is expected": lambda x: run(
        irkit.grad(lambda x: x.sum(), has_aux=True), x
    ),
    "no argument 'y' among 1": lambda x: run(irkit.grad(lambda x: x.sum(), "y"), x),
    "no argument 3 among 1": lambda x: run(irkit.grad(lambda x: x.sum(), 3), x),
    r"expected float64\[3\], got float64\[2\]": lambda x: run(
        irkit.jvp(lambda x: x * 2), x, np.ones(2)
    ),
    "expected a function of arrays": lambda x: irkit.grad(3),
    "expected auto, forward, reverse": lambda x: irkit.jacobian(curve, mode="both"),
    "returns a tuple: expected one array": lambda x: run(irkit.jacobian(lambda x: (x, x)), x),
    "returns a str: expected arrays": lambda x: run(irkit.grad(lambda x: "loss"), x),
    "reads what moves with that loop": lambda x: interpreted(moving)(np.ones((20, 3))),
    "writes an array that is no argument": lambda x: interpreted(writes)(x),
    "argument is named twice": lambda x: run(irkit.grad(lambda a, b: (a * b).sum(), (0, -2)), x, x),
    "no argument 0.5": lambda x: run(irkit.grad(curve, argnums=0.5), x),
    "expected one argument, by number": lambda x: run(irkit.hessian(curve, argnums=(0,)), x),
    "vjp of str: expected a function": lambda x: irkit.custom_gradient(curve, vjp="none"),
    "loss= is for ONNX models": lambda x: irkit.grad(curve, loss=curve),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refused(message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        REFUSED[message](np.ones(3))


def test_unused_arguments_may_have_zeros() -> None:
    derived = irkit.grad(lambda x, y: x.sum(), (0, 1), allow_unused=True)
    found = run(derived, np.ones(2), np.ones(3))
    np.testing.assert_array_equal(found[0], np.ones(2))
    np.testing.assert_array_equal(found[1], np.zeros(3))


@pytest.mark.parametrize("name", ["mlp", "swing"])
def test_compiled(name: str) -> None:
    function, args = FUNCTIONS[name]
    derived = irkit.grad(function, target="cpu", cache=False)
    found = derived(*args)
    np.testing.assert_allclose(found, differences(function, args, 0), rtol=1e-6, atol=1e-8)
    assert derived.report()["proved"]


def test_compiled_with_others() -> None:
    """In a function that is compiled, and a Jacobian, whose loop is one of the program's."""
    x = RNG.random(3)

    @irkit.jit(target="cpu", cache=False)
    def newton(x: Any) -> Any:
        return x - irkit.grad(curve)(x) / 4

    np.testing.assert_allclose(newton(x), x - differences(curve, [x], 0) / 4, atol=1e-8)
    found = irkit.jacobian(several, target="cpu", cache=False)(x)
    want = np.stack([differences(lambda y, i=i: several(y)[i], [x], 0) for i in range(5)])
    np.testing.assert_allclose(found, want, atol=1e-8)


def test_clip_has_the_slope_one_at_its_limits():
    """`maximum` and `minimum` have one half where two numbers are equal."""
    x = np.array([1.0, -1.0, 2.0, 0.3, np.nan])
    for low, high, want in (
        (-1, 1, [1, 1, 0, 1, 0]),
        (np.float64(-1), None, [1, 1, 1, 1, 0]),
        (None, 1.0, [1, 1, 0, 1, 0]),
    ):
        slope = irkit.vjp(lambda x, low=low, high=high: np.clip(x, low, high), target="cpu")
        found, (gradient,) = slope((x,), np.ones(5))
        np.testing.assert_array_equal(found, np.clip(x, low, high))
        assert gradient.tolist() == want


def test_the_deviation_of_equal_numbers_has_the_derivative_0() -> None:
    """Where the root of a variance that is 0 would make NaN of what is right beside it."""

    def spread(x: Any) -> Any:
        return (np.std(x, axis=1) * np.array([1.0, 2.0, 3.0])).sum() + x.std()

    x, v = np.array([[1.0, 1.0], [0.0, 2.0], [3.0, 3.0]]), np.arange(6.0).reshape(3, 2)
    slope = irkit.grad(spread, target="cpu", cache=False)(x)
    apart = (x - x.mean()) / (6 * x.std())
    np.testing.assert_allclose(slope - apart, [[0, 0], [-1, 1], [0, 0]], atol=1e-12)
    value, tangent = irkit.jvp(spread, target="cpu", cache=False)((x,), (v,))
    assert value == pytest.approx(spread(x), rel=1e-14)
    assert tangent == pytest.approx((slope * v).sum(), rel=1e-12)


@pytest.mark.parametrize("power", [0, 1, 2, 3])
def test_powers_of_zero_have_all_derivatives(power: int) -> None:
    x = np.array([0.0, 2.0, -3.0])

    def slope(x: Any) -> Any:
        return np.power(x, power).sum()

    for order in range(1, 5):
        slope = _summed_slope(slope)
        factor = math.prod(range(power - order + 1, power + 1))
        want = factor * x ** max(power - order, 0)
        found = irkit.jit(target="cpu")(slope)(x)
        assert found == pytest.approx(want.sum(), abs=1e-12), order


def _summed_slope(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: irkit.grad(function, allow_unused=True)(x).sum()


def test_the_derivative_of_the_slope_of_a_power_by_an_exponent_of_zero() -> None:
    def slope(y: Any) -> Any:
        return irkit.grad(lambda x: (x**y).sum())(np.array([2.0, 3.0, 0.5])).sum()

    found = irkit.grad(slope, target="cpu")(np.zeros(3))
    np.testing.assert_allclose(found, [1 / 2, 1 / 3, 2])


def test_changes_of_dicts_go_by_their_keys() -> None:
    def product(p: Any) -> Any:
        return {"squared": p["a"] ** 2 * p["b"], "b": p["b"]}

    a, b, one = np.array([1.0, 2.0]), np.array([3.0, 5.0]), np.ones(2)
    forward = irkit.jvp(product, target="cpu")
    back = irkit.vjp(product, target="cpu")
    for p in ({"a": a, "b": b}, {"b": b, "a": a}):
        for t in ({"a": one, "b": 0 * one}, {"b": 0 * one, "a": one}):
            for primals, tangents in (((p,), (t,)), (p, t)):
                np.testing.assert_array_equal(forward(primals, tangents)[1]["squared"], 2 * a * b)
        for t in ({"squared": one, "b": 0 * one}, {"b": 0 * one, "squared": one}):
            (found,) = back((p,), t)[1]
            np.testing.assert_array_equal(found["a"], 2 * a * b)
            np.testing.assert_array_equal(found["b"], a**2)
    p = {"a": a, "b": b}
    with pytest.raises(
        UnsupportedError, match=r"tangents: expected a dict of 'a', 'b', got a dict of"
    ):
        forward((p,), ({"a": one, "c": one},))
    with pytest.raises(UnsupportedError, match=r"tangents: expected a dict of 'a', 'b', got tuple"):
        forward(p, (one, one))
    with pytest.raises(
        UnsupportedError, match=r"cotangents: expected a dict of 'squared', 'b', got"
    ):
        back((p,), one)
    with pytest.raises(
        UnsupportedError, match=r"tangents: expected float64\[2\], float64\[2\], got"
    ):
        forward((p,), ({"a": one, "b": np.ones(3)},))
