"""Random small programs with state: inputs that are, in the next run, what outputs were."""

from __future__ import annotations

import random

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.state import StatePair, set_state
from irkit.dialects.types import tensor
from irkit.frontends.module import GraphBuilder, ImportedModel
from irkit.interp import run_module
from irkit.model_info import ModelInfo

N = 4
UNARY = (graph.ReluOp, graph.TanhOp, graph.NegOp, graph.AbsOp, graph.SigmoidOp)
BINARY = (graph.AddOp, graph.SubOp, graph.MulOp, graph.MaxOp, graph.MinOp)


class StatefulGraph:
    """About `size` ops on one input and one to three pieces of state, all of them N×N matrices.

    What becomes state is any value at all: computed, as it was, another piece's old value, one that is an
    output too, a part of the old one beside something new.
    """

    def __init__(self, seed: int, size: int) -> None:
        self.random = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        self.states = self.random.randint(1, 3)
        names = ["x", *(f"s{i}" for i in range(self.states))]
        self.random.shuffle(names)
        self.b = GraphBuilder([(name, tensor(f32, (N, N))) for name in names])
        self.values: list[SSAValue] = list(self.b.inputs)
        steps = [
            self.unary, self.binary, self.binary, self.update, self.update, self.matmul,
            self.transpose, self.shift, self.shift, self.part, self.softmax, self.centre,
        ]  # fmt: skip
        for _ in range(size):
            self.values.append(self.random.choice(steps)(self.pick()))

    def pick(self) -> SSAValue:
        """Mostly what came last, or what the program starts from."""
        if self.random.random() < 0.4:
            return self.random.choice(self.b.inputs)
        last = len(self.values) - 1
        return self.values[max(0, last - int(self.random.expovariate(0.7)))]

    def model(self) -> ImportedModel:
        """The program; the results are the next state and one or two outputs, in any order."""
        names, inputs = self.b.names, self.b.inputs
        held = [n for n, name in enumerate(names) if name != "x"]
        results = [(f"{names[n]}_next", self.next_of(inputs[n])) for n in held]
        outputs = [(f"y{i}", self.pick()) for i in range(self.random.randint(1, 2))]
        order = self.random.sample(range(len(results) + len(outputs)), len(results) + len(outputs))
        listed = [[*results, *outputs][n] for n in order]
        info = ModelInfo("network", names, tuple(name for name, _ in listed))
        model = self.b.finish(listed, info)
        main = next(op for op in model.module.ops if isinstance(op, FuncOp))
        self.pairs = [StatePair(n, order.index(k)) for k, n in enumerate(held)]
        set_state(main, self.pairs)
        return model

    def next_of(self, old: SSAValue) -> SSAValue:
        """What an old value becomes."""
        kind = self.random.random()
        if kind < 0.1:
            return old
        if kind < 0.25:
            return self.random.choice(self.b.inputs)
        if kind < 0.55:
            made = self.random.choice((self.update, self.binary, self.unary, self.part))(old)
            self.values.append(made)
            return made
        return self.random.choice(self.values[-4:])

    def arrays(self) -> list[np.ndarray]:
        """One for each input."""
        return [self.rng.standard_normal((N, N)).astype(np.float32) for _ in self.b.names]

    # One step each

    def unary(self, x: SSAValue) -> SSAValue:
        return self.b(self.random.choice(UNARY), x)

    def binary(self, x: SSAValue) -> SSAValue:
        return self.b(graph.TanhOp, self.b(self.random.choice(BINARY), x, self.pick()))

    def update(self, x: SSAValue) -> SSAValue:
        """w - r * g"""
        rate = self.b.constant(np.full((1, 1), 0.25, np.float32))
        return self.b(graph.SubOp, x, self.b(graph.MulOp, self.pick(), rate))

    def matmul(self, x: SSAValue) -> SSAValue:
        return self.b(graph.TanhOp, self.b(graph.MatmulOp, x, self.pick()))

    def transpose(self, x: SSAValue) -> SSAValue:
        return self.b(graph.TransposeOp, x, permutation=[1, 0])

    def shift(self, x: SSAValue) -> SSAValue:
        """All rows (or columns) of x but the first, and the first of another."""
        axis = self.random.randint(0, 1)
        rest = self._rows(x, axis, 1, N - 1)
        return self.b(graph.ConcatOp, rest, self._rows(self.pick(), axis, 0, 1), axis=axis)

    def part(self, x: SSAValue) -> SSAValue:
        """The upper rows of x as they are, the lower ones changed."""
        upper, lower = self._rows(x, 0, 0, 2), self._rows(x, 0, 2, N - 2)
        return self.b(graph.ConcatOp, upper, self.unary(lower), axis=0)

    def softmax(self, x: SSAValue) -> SSAValue:
        return self.b(graph.SoftmaxOp, x, axis=1)

    def centre(self, x: SSAValue) -> SSAValue:
        mean = self.b(
            graph.ReduceOp, x, kind="mean", axes=[self.random.randint(0, 1)], keepdims=True
        )
        return self.b(graph.SubOp, x, mean)

    def _rows(self, x: SSAValue, axis: int, first: int, count: int) -> SSAValue:
        offsets, sizes = [0, 0], [N, N]
        offsets[axis], sizes[axis] = first, count
        return self.b(graph.SliceOp, x, offsets=offsets, sizes=sizes, strides=[1, 1])


def runs_of(
    model: ImportedModel, pairs: list[StatePair], inputs: list[list[np.ndarray]]
) -> list[list[np.ndarray]]:
    """All results of one run after another, state handed on: `inputs` of the first one are whole."""
    results: list[list[np.ndarray]] = []
    for arrays in inputs:
        if results:
            for argument, result in pairs:
                arrays[argument] = results[-1][result]
        results.append(run_module(model.module, model.weights, arrays))
    return results
