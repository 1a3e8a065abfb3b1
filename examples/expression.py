"""A new operator in a line, by itself, in a traced function, and with its gradient.

A locally connected layer: like a convolution, but each place has weights of its own. No library call does it.
"""

from __future__ import annotations

import numpy as np

import irkit

local = irkit.te.op("O(b, i, o) +=! X(b, i + k, c) * W(i, k, c, o)")


def loss(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """How far the layer is from what is wanted."""
    return ((local(x, w) - y) ** 2).mean()


def main() -> None:
    """Fit the layer to another one by gradient descent."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((64, 12, 3))
    wanted = rng.standard_normal((10, 3, 3, 4))
    y = np.einsum("bikc,ikco->bio", np.stack([x[:, i : i + 3] for i in range(10)], 1), wanted)
    print(local.explain(x.shape, wanted.shape, dtype=np.float64))
    step = irkit.value_and_grad(loss, target="cpu")
    w = np.zeros_like(wanted)
    for number in range(41):
        value, gradient = step(w, x, y)
        w -= 10 * gradient
        if number % 10 == 0:
            print(f"step {number:3}: loss {value:.6f}")
    print("largest error of a weight:", float(np.abs(w - wanted).max().round(3)))


if __name__ == "__main__":
    main()
