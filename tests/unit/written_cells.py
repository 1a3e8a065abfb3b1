"""Random recurrent networks that are written out step by step, as exporters of cells write them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import ModelProto

from benchmarks.models.onnx_model import OnnxModel

FUNCTIONS = ("Sigmoid", "Tanh", "Relu")


@dataclass(frozen=True)
class Written:
    """What a network is: `rows` None is an open batch.

    `joined`: the gates of a step are one product each of input and state, which are split; else a product a
    gate. `gemm`: products have transposed weights and a bias. `multiply`: the first gate's two products are
    multiplied. `summed`: the products of a step are added before they are split. `shared`: the second layer
    has the first one's weights.
    """

    rows: int | None = 2
    steps: int = 4
    inputs: int = 5
    units: int = 3
    gates: int = 3
    layers: int = 1
    batch_first: bool = False
    reverse: bool = False
    joined: bool = False
    gemm: bool = False
    multiply: bool = False
    summed: bool = False
    shared: bool = False
    seed: int = 0

    @property
    def shape(self) -> list[int | str]:
        """Of the input."""
        rows: int | str = "batch" if self.rows is None else self.rows
        lead = [rows, self.steps] if self.batch_first else [self.steps, rows]
        return [*lead, self.inputs]

    def sample(self, rows: int = 3) -> np.ndarray:
        """An input; `rows` where the batch is open."""
        shape = [rows if s == "batch" else int(s) for s in self.shape]
        rng = np.random.default_rng(self.seed + 1)
        return rng.standard_normal(shape).astype(np.float32)


class _Writer(OnnxModel):
    def __init__(self, what: Written) -> None:
        super().__init__("written", what.seed)
        self.what = what

    def product(self, x: str, name: str, inputs: int, outputs: int) -> str:
        if self.what.gemm:
            w = self._once(f"{name}.w", outputs, inputs)
            return self.then("Gemm", x, w, self._once(f"{name}.b", outputs), transB=1)
        return self.then("MatMul", x, self._once(f"{name}.w", inputs, outputs))

    def _once(self, name: str, *shape: int) -> str:
        return name if name in self.weights else self.weight(name, *shape, scale=0.4)

    def halves(self, x: str, name: str, inputs: int) -> list[str]:
        """The product of each gate."""
        units, gates = self.what.units, self.what.gates
        if not self.what.joined:
            return [self.product(x, f"{name}{g}", inputs, units) for g in range(gates)]
        return self.split(self.product(x, name, inputs, units * gates))

    def split(self, y: str) -> list[str]:
        """The columns of each gate."""
        units, gates = self.what.units, self.what.gates
        outputs = [f"{y}_{g}" for g in range(gates)]
        self.node("Split", [y, self.integers(*[units] * gates)], outputs, axis=-1)
        return outputs

    def summed(self, x: str, h: str, name: str, inputs: int) -> list[str]:
        """One sum of two products, split."""
        columns = self.what.units * self.what.gates
        of_state = self.product(h, f"{name}.h", self.what.units, columns)
        return self.split(self.then("Add", of_state, self.product(x, f"{name}.x", inputs, columns)))

    def apart(self, x: str, h: str, name: str, inputs: int) -> list[str]:
        """A sum, or a product, of two products a gate."""
        of_input = self.halves(x, f"{name}.x", inputs)
        of_state = self.halves(h, f"{name}.h", self.what.units)
        ops = ["Add"] * self.what.gates
        if self.what.multiply:
            ops[0] = "Mul"
        return [self.then(op, a, b) for op, a, b in zip(ops, of_input, of_state, strict=True)]

    def cell(self, x: str, h: str, c: str, layer: int) -> tuple[str, str]:
        """The new output and cell state, of gates mixed one after another."""
        inputs = self.what.units if layer else self.what.inputs
        name = "layer0" if self.what.shared else f"layer{layer}"
        sums = (
            self.summed(x, h, name, inputs) if self.what.summed else self.apart(x, h, name, inputs)
        )
        gates = [self.then(FUNCTIONS[n % 3], value) for n, value in enumerate(sums)]
        total = gates[0]
        for number, gate in enumerate(gates[1:-1]):
            total = self.then("Mul" if number % 2 else "Add", total, gate)
        c = self.then("Add", self.then("Mul", total, c), gates[0])
        return self.then("Mul", gates[-1], self.then("Tanh", c)), c


def written(what: Written) -> ModelProto:
    """x → y, the last layer's state at the last step, and c, its cell state."""
    m = _Writer(what)
    axis = 1 if what.batch_first else 0
    order = range(what.steps)[:: -1 if what.reverse else 1]
    values = [m.then("Gather", "x", m.array(f"t{t}", np.array(t)), axis=axis) for t in order]
    start = m.weight("start", 1, what.units, scale=0.5)
    for layer in range(what.layers):
        h = c = start
        if what.rows is None:
            rows = m.then("Gather", m.then("Shape", values[0]), m.integers(0))
            shape = m.then("Concat", rows, m.integers(what.units), axis=0)
            h = c = m.then("Expand", start, shape)
        elif what.rows > 1:
            h = c = m.then("Expand", start, m.integers(what.rows, what.units))
        outputs: list[str] = []
        for x in values:
            h, c = m.cell(x, h, c, layer)
            outputs.append(h)
        values = outputs
    m.node("Identity", [values[-1]], "y")
    m.node("Identity", [c], "last")
    rows = "batch" if what.rows is None else what.rows
    return m.finish({"x": what.shape}, {"y": [rows, what.units], "last": [rows, what.units]})
