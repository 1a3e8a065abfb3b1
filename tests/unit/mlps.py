"""Chains of dense layers on a batch of any size, as ONNX models, and what they compute in float64."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from onnx_nodes import model, node

ACTIVATIONS = {
    "Relu": lambda x: np.maximum(x, 0),
    "Tanh": np.tanh,
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}


class Mlp:
    """Layers of `sizes`, with an activation behind each but the last; weights by `seed`."""

    def __init__(self, sizes: Sequence[int], activation: str = "Relu", seed: int = 0) -> None:
        self.sizes, self.activation = tuple(sizes), activation
        rng = np.random.default_rng(seed)
        self.layers = [
            (
                (rng.standard_normal((a, b)) / a**0.5).astype(np.float32),
                rng.standard_normal(b).astype(np.float32),
            )
            for a, b in pairwise(sizes)
        ]

    def model(self) -> Any:
        """The ONNX model; its batch is open."""
        nodes: list[Any] = []
        constants: dict[str, np.ndarray] = {}
        x = "x"
        for n, (w, b) in enumerate(self.layers):
            last = n == len(self.layers) - 1
            constants |= {f"w{n}": w, f"b{n}": b}
            made = "y" if last else f"g{n}"
            nodes.append(node("Gemm", f"{x} w{n} b{n}", made))
            if not last:
                nodes.append(node(self.activation, made, f"a{n}"))
                x = f"a{n}"
        return model(nodes, {"x": self.inputs(1)}, constants, batch=True)

    def inputs(self, rows: int) -> np.ndarray:
        """Numbers for so many rows."""
        return np.random.default_rng(rows).standard_normal((rows, self.sizes[0]), np.float32)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """What it computes of them."""
        values = x.astype(np.float64)
        for n, (w, b) in enumerate(self.layers):
            values = values @ w.astype(np.float64) + b
            if n < len(self.layers) - 1:
                values = ACTIVATIONS[self.activation](values)
        return values
