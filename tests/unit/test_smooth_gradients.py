"""Derivatives where a function is smooth and its formula has a case of its own: zeros, ties, real numbers.

First and second derivatives are held against central differences, in programs of many functions at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from jitted import interpreted

import irkit
from irkit.errors import UnsupportedError
from irkit.training.losses import sigmoid_cross_entropy

STEP = 1e-6
POINTS = np.array([(x, y) for x in (0.0, 1.0, -1.0, 2.0, -0.5) for y in (0.0, 1.0, -1.0, 2.0, 0.5)])
X, Y = POINTS.T.copy()
WEIGHTS = np.random.default_rng(0).standard_normal((9, 2, len(X)))
AWAY = (X != 0) | (Y != 0)
OFF_CUT = AWAY & ~((X < 0) & (Y == 0))
COMPLEX = {"exp": X == X, "sinh": X == X, "cosh": X == X, "sin": X == X, "cos": X == X,
           "sqrt": OFF_CUT, "log": OFF_CUT, "abs": AWAY, "reciprocal": AWAY}  # fmt: skip
REAL = {"hypot": AWAY, "logaddexp": X == X, "logaddexp2": X == X, "power": X > 0}


def real_functions(x: Any, y: Any) -> Any:
    """Each element's own terms, weighted: their sum has the derivatives of each apart."""
    total = x * 0.0
    for number, (name, where) in enumerate(REAL.items()):
        a, b = np.where(where, x, 1.0), np.where(where, y, 1.0)
        total = total + WEIGHTS[number, 0] * getattr(np, name)(a, b)
    return total


def complex_functions(x: Any, y: Any) -> Any:
    """As `real_functions`, of x + iy: the real and the imaginary part."""
    total = x * 0.0
    for number, (name, where) in enumerate(COMPLEX.items()):
        found = getattr(np, name)(np.where(where, x, 1.0) + 1j * np.where(where, y, 1.0))
        total = total + WEIGHTS[number, 0] * np.real(found) + WEIGHTS[number, 1] * np.imag(found)
    return total


@pytest.mark.parametrize("function", [real_functions, complex_functions])
def test_derivatives_at_zeros_and_ties(function: Callable[[Any, Any], Any]) -> None:
    def summed(x: Any, y: Any) -> Any:
        return function(x, y).sum()

    def difference(f: Callable[..., Any], x: int, y: int) -> Any:
        more, less = (f(X + s * x * STEP, Y + s * y * STEP) for s in (1, -1))
        return (np.array(more) - np.array(less)) / (2 * STEP)

    slope = interpreted(irkit.grad(summed, argnums=(0, 1)).__wrapped__)
    wanted = [difference(function, 1, 0), difference(function, 0, 1)]
    np.testing.assert_allclose(slope(X, Y), wanted, rtol=1e-5, atol=1e-6)
    curvature = interpreted(irkit.jvp(irkit.grad(summed, argnums=(0, 1))).__wrapped__)
    for x, y in ((1, 0), (0, 1)):
        found = curvature((X, Y), (np.full_like(X, x), np.full_like(Y, y)))[1]
        np.testing.assert_allclose(found, difference(slope, x, y), rtol=1e-4, atol=1e-4)


NORMS = {
    "rows": lambda x: np.linalg.norm(x, axis=0).sum(),
    "kept": lambda x: np.linalg.norm(x, axis=0, keepdims=True).sum(),
    "third": lambda x: np.linalg.norm(x, ord=3, axis=0).sum(),
    "matrices": lambda x: np.linalg.norm(x.T[:, None, :], axis=(1, 2)).sum(),
    "all": lambda x: np.linalg.norm(x[:, 0]) + np.linalg.norm(x[:, 1]),
    "complex": lambda x: np.abs(x[0] + 1j * x[1]).sum(),
}


@pytest.mark.parametrize("name", NORMS)
def test_the_norm_of_zeros_has_the_derivative_0(name: str) -> None:
    x = np.array([[0.0, 3.0], [0.0, -4.0]])
    found = interpreted(irkit.value_and_grad(NORMS[name]).__wrapped__)(x)
    power = 2 if name != "third" else 3
    length = (np.abs(x[:, 1]) ** power).sum() ** (1 / power)
    wanted = np.sign(x) * np.abs(x) ** (power - 1) / length ** (power - 1)
    np.testing.assert_allclose(found[0], length, rtol=1e-12)
    np.testing.assert_allclose(found[1], wanted, rtol=1e-12)


def test_what_a_function_of_another_module_cannot_is_said(tmp_path: Any, monkeypatch: Any) -> None:
    text = "import numpy as np\n\ndef doubled(x):\n    y = np.zeros(3)\n    y[0] = 2 * x[0]\n    return y\n"
    (tmp_path / "helper_of_a_gradient.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    import helper_of_a_gradient  # pyright: ignore[reportMissingImports]

    def total(x: Any) -> Any:
        return helper_of_a_gradient.doubled(x).sum()

    with pytest.raises(UnsupportedError, match=r"needs the value of an array.*gradient.py:5"):
        irkit.grad(total, target="cpu")(np.ones(3))


@pytest.mark.parametrize("positive", [1.0, 3.0])
def test_sigmoid_cross_entropy_is_curved_where_logits_are_0(positive: float) -> None:
    z, t = np.array([0.0, 0.0, 1.0, -2.0]), np.array([1.0, 0.0, 0.3, 1.0])

    def loss(z: Any) -> Any:
        return sigmoid_cross_entropy(z, t, positive_weight=positive, reduction="sum")

    s, weight = 1 / (1 + np.exp(-z)), 1 + (positive - 1) * t
    slope = interpreted(irkit.grad(loss).__wrapped__)(z)
    np.testing.assert_allclose(slope, s * weight - positive * t, atol=1e-15)
    curvature = interpreted(irkit.jvp(irkit.grad(loss)).__wrapped__)((z,), (np.ones(4),))[1]
    np.testing.assert_allclose(curvature, weight * s * (1 - s), rtol=1e-12)


def network_of(nodes: Any, shapes: dict[str, tuple[int, ...]], held: dict[str, np.ndarray]) -> Any:
    """A network of doubles from x to y, as a function of what is held."""
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.DOUBLE
    (x, y) = (helper.make_tensor_value_info(n, kind, shapes[n]) for n in "xy")
    weights = [onnx.numpy_helper.from_array(v, k) for k, v in held.items()]
    graph = helper.make_graph([helper.make_node(*n, **m) for n, m in nodes], "g", [x], [y], weights)
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return irkit.network(model, parameters=list(held))


def test_softplus_of_a_network_has_a_slope_at_0() -> None:
    nodes = [(("Add", ["x", "w"], ["z"]), {}), (("Softplus", ["z"], ["y"]), {})]
    network = network_of(nodes, {"x": (4,), "y": (4,)}, {"w": np.zeros(4)})
    at = np.array([0.0, 1.0, -1.0, 40.0])
    slope = interpreted(irkit.grad(lambda w, x: network(w, x).sum()).__wrapped__)
    found = slope({"w": np.zeros(4)}, at)
    np.testing.assert_allclose(found["w"], 1 / (1 + np.exp(-at)), rtol=1e-12)


def test_softplus_of_a_recurrent_cell_has_a_slope_at_0() -> None:
    """h = softplus(w x + r h + b): of zeros, half of what goes in."""
    said = {"hidden_size": 1, "activations": ["Softplus"]}
    nodes = [(("RNN", ["x", "w", "r", "b"], ["y"]), said)]
    held = {"w": np.zeros((1, 1, 1)), "r": np.zeros((1, 1, 1)), "b": np.zeros((1, 2))}
    network = network_of(nodes, {"x": (1, 3, 1), "y": (1, 1, 3, 1)}, held)
    slope = interpreted(irkit.grad(lambda w, x: network(w, x).sum()).__wrapped__)
    found = slope(held, np.array([1.0, -2.0, 4.0]).reshape(1, 3, 1))
    np.testing.assert_allclose(found["w"].ravel(), [1.5], rtol=1e-12)
    np.testing.assert_allclose(found["b"].ravel(), [1.5, 1.5], rtol=1e-12)


def test_sinc_is_smooth_around_0() -> None:
    """sin(y) / y of y = pi x: slopes (cos y - sinc) / x, and -pi^2 / 3 and its like for the second ones."""
    x = np.array([0.0, -0.0, 1e-9, 1e-5, 0.1, 0.15915, 0.1592, 1.0, -2.5])

    def total(x: Any) -> Any:
        return np.sinc(x).sum()

    def wanted(x: np.ndarray) -> list[np.ndarray]:
        """In more digits than a float has: the series, which ends at such numbers."""
        found = np.zeros((3, len(x)))
        for n, one in enumerate(x):
            terms = [(-1) ** k * math.pi ** (2 * k) / math.factorial(2 * k + 1) for k in range(30)]
            powers = np.polynomial.Polynomial([t for term in terms for t in (term, 0.0)])
            found[:, n] = [powers(one), powers.deriv()(one), powers.deriv(2)(one)]
        return list(found)

    value, slope, curvature = wanted(x)
    found = interpreted(irkit.value_and_grad(total).__wrapped__)(x)
    assert found[0] == pytest.approx(value.sum(), rel=1e-14)
    np.testing.assert_allclose(found[1], slope, rtol=1e-9, atol=1e-13)
    second = interpreted(irkit.jvp(irkit.grad(total)).__wrapped__)((x,), (np.ones(len(x)),))[1]
    np.testing.assert_allclose(second, curvature, rtol=1e-9, atol=1e-9)
