"""Gradients of maxima of windows that lie side by side: of equal elements the first has all of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from gradient_cases import Case
from test_gradients import built, derived, ran

from irkit.dialects import graph
from irkit.driver.compiler.artifacts import build_artifact
from irkit.passes.graph.differentiation import Differentiation
from irkit.runtime.variant import Variant
from irkit.schedule.devices import device as find_device

WINDOWS = [(2, 2), (3,), (2, 1, 3), (4, 4), (5, 4), (1, 1), (20,)]


def firsts(x: np.ndarray, ct: np.ndarray, kernel: Sequence[int]) -> np.ndarray:
    """Window by window: the first element, in row-major order, that is NaN or the largest."""
    found = np.zeros_like(x)
    for place in np.ndindex(ct.shape):
        at = (
            *place[:2],
            *(slice(i * k, i * k + k) for i, k in zip(place[2:], kernel, strict=True)),
        )
        window = x[at]
        wins = (window == window.max()) | np.isnan(window)
        found[at][np.unravel_index(wins.argmax(), wins.shape)] = ct[place]
    return found


@pytest.mark.parametrize("kernel", WINDOWS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_first_largest_has_the_gradient(kernel: tuple[int, ...], dtype: str):
    rng = np.random.default_rng(len(kernel))
    counts = (3, 7, 2)[: len(kernel)]
    shape = (2, 3, *(n * k for n, k in zip(counts, kernel, strict=True)))
    # Many are equal, and some are no numbers.
    x = rng.integers(-2, 2, shape).astype(dtype)
    x[rng.random(shape) < 0.05] = np.nan
    x[rng.random(shape) < 0.05] = -np.inf
    ct = rng.standard_normal((2, 3, *counts)).astype(dtype)
    settings = {"kernel_shape": kernel, "strides": kernel, "pads": [0] * 2 * len(kernel)}
    case = Case(graph.MaxPoolOp, (x,), {name: list(sizes) for name, sizes in settings.items()})
    model = derived(built(case), Differentiation("reverse", (0,), (0,)))
    want = firsts(x, ct, kernel)
    np.testing.assert_array_equal(ran(model, [x, ct])[-1], want)
    artifact = build_artifact(model, find_device("cpu2"), cache=False)
    program = Variant(artifact, "serial")
    np.testing.assert_array_equal(program.run([x, ct])[-1], want)
