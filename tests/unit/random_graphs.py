"""Random small graph-level programs, whatever their shapes: for tests that compare levels."""

from __future__ import annotations

import math
import random

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.types import DYNAMIC, tensor, tensor_type
from irkit.frontends.module import GraphBuilder, ImportedModel
from irkit.model_info import ModelInfo

UNARY = (graph.ReluOp, graph.TanhOp, graph.NegOp, graph.AbsOp, graph.SigmoidOp, graph.FloorOp)
BINARY = (graph.AddOp, graph.SubOp, graph.MulOp, graph.MaxOp, graph.MinOp)


class RandomGraph:
    """A program of about `size` ops on one or two inputs, with a batch if `batch`."""

    def __init__(self, seed: int, size: int, batch: bool) -> None:
        self.random = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        self.batch = batch
        shapes = [self._shape() for _ in range(self.random.randint(1, 2))]
        self.b = GraphBuilder([(f"x{i}", tensor(f32, s)) for i, s in enumerate(shapes)])
        self.values: list[SSAValue] = list(self.b.inputs)
        steps = [
            self.unary, self.binary, self.constant, self.matmul, self.matmul, self.softmax,
            self.reduce, self.argmax, self.concat, self.slice, self.slice, self.reshape,
            self.transpose, self.gather, self.where, self.gemm,
        ]  # fmt: skip
        for _ in range(size):
            made = self.random.choice(steps)(self._pick())
            if made is not None:
                self.values.append(made)

    def _shape(self) -> tuple[int, ...]:
        rank = self.random.randint(1, 3)
        shape = [self.random.choice((1, 2, 3, 4, 6)) for _ in range(rank)]
        if self.batch:
            shape[0] = DYNAMIC
        return tuple(shape)

    def _pick(self) -> SSAValue:
        # Mostly what came last, so that chains grow.
        last = len(self.values) - 1
        return self.values[max(0, last - int(self.random.expovariate(0.8)))]

    def _floats(self, *shape: int) -> np.ndarray:
        return self.rng.standard_normal(shape).astype(np.float32)

    def model(self) -> ImportedModel:
        """The program; outputs are what nothing uses, and now and then more, or one twice."""
        outputs = [v for v in self.values if not v.uses] or [self.values[-1]]
        if self.random.random() < 0.3:
            outputs.append(self.random.choice(self.values))
        names = tuple(f"y{i}" for i in range(len(outputs)))
        info = ModelInfo("network", self.b.names, names)
        return self.b.finish(list(zip(names, outputs, strict=True)), info)

    def inputs(self, rows: int) -> list[np.ndarray]:
        return [
            self._floats(*(rows if s == DYNAMIC else s for s in tensor_type(v).get_shape()))
            for v in self.b.inputs
        ]

    # One step each: the value it makes, or None where the shape does not allow it.

    def unary(self, x: SSAValue) -> SSAValue:
        return self.b(self.random.choice(UNARY), x)

    def binary(self, x: SSAValue) -> SSAValue:
        same = [v for v in self.values if v.type == x.type]
        return self.b(self.random.choice(BINARY), x, self.random.choice(same))

    def constant(self, x: SSAValue) -> SSAValue:
        shape = [1 if s == DYNAMIC or self.random.random() < 0.3 else s for s in shape_of(x)]
        shape = shape[self.random.randint(0, len(shape)) :]
        return self.b(self.random.choice(BINARY), x, self.b.constant(self._floats(*shape)))

    def matmul(self, x: SSAValue) -> SSAValue | None:
        shape = shape_of(x)
        if len(shape) < 2:
            return None
        w = self.b.constant(self._floats(shape[-1], self.random.randint(1, 5)))
        return self.b(graph.MatmulOp, x, w)

    def gemm(self, x: SSAValue) -> SSAValue | None:
        shape = shape_of(x)
        if len(shape) != 2:
            return None
        columns = self.random.randint(1, 5)
        w, c = self._floats(columns, shape[-1]), self._floats(columns)
        props = {"trans_a": False, "trans_b": True, "alpha": 1.0, "beta": 1.0}
        return self.b(graph.GemmOp, x, self.b.constant(w), self.b.constant(c), **props)

    def softmax(self, x: SSAValue) -> SSAValue | None:
        shape = shape_of(x)
        if shape[-1] == DYNAMIC:
            return None
        return self.b(graph.SoftmaxOp, x, axis=len(shape) - 1)

    def reduce(self, x: SSAValue) -> SSAValue | None:
        shape = shape_of(x)
        static = [d for d, s in enumerate(shape) if s != DYNAMIC]
        if not static or len(shape) == 1:
            return None
        axes = sorted(self.random.sample(static, self.random.randint(1, min(2, len(static)))))
        if len(axes) == len(shape):
            axes = axes[:1]
        kind = self.random.choice(("sum", "mean", "max", "min"))
        keep = self.random.random() < 0.4
        return self.b(graph.ReduceOp, x, kind=kind, axes=axes, keepdims=keep)

    def argmax(self, x: SSAValue) -> SSAValue | None:
        shape = shape_of(x)
        if len(shape) == 1:
            return None
        labels = self.b(graph.ArgmaxOp, x, axis=len(shape) - 1, keepdims=self.random.random() < 0.5)
        return self.b(graph.CastOp, labels, to=f32)

    def concat(self, x: SSAValue) -> SSAValue | None:
        shape = shape_of(x)
        static = [d for d, s in enumerate(shape) if s != DYNAMIC]
        if not static:
            return None
        axis = self.random.choice(static)
        fits = [
            v
            for v in self.values
            if len(shape_of(v)) == len(shape)
            and all(
                a == b for d, (a, b) in enumerate(zip(shape_of(v), shape, strict=True)) if d != axis
            )
        ]
        parts = [x, *self.random.choices(fits, k=self.random.randint(1, 2))]
        self.random.shuffle(parts)
        return self.b(graph.ConcatOp, *parts, axis=axis)

    def slice(self, x: SSAValue) -> SSAValue:
        offsets, sizes, steps = [], [], []
        for extent in shape_of(x):
            if extent == DYNAMIC:
                offset, size, step = 0, DYNAMIC, 1
            else:
                offset = self.random.randrange(extent)
                step = self.random.choice((1, 1, 2))
                size = self.random.randint(1, (extent - offset - 1) // step + 1)
            offsets.append(offset), sizes.append(size), steps.append(step)
        return self.b(graph.SliceOp, x, offsets=offsets, sizes=sizes, strides=steps)

    def reshape(self, x: SSAValue) -> SSAValue:
        shape = shape_of(x)
        lead = [DYNAMIC] if shape[0] == DYNAMIC else []
        count = math.prod(shape[len(lead) :])
        factors = [f for f in (2, 3, 4) if count % f == 0 and count > f]
        if factors and self.random.random() < 0.6:
            factor = self.random.choice(factors)
            return self.b(graph.ReshapeOp, x, shape=[*lead, factor, count // factor])
        return self.b(graph.ReshapeOp, x, shape=[*lead, count])

    def transpose(self, x: SSAValue) -> SSAValue:
        shape = shape_of(x)
        first = [0] if shape[0] == DYNAMIC else []
        rest = list(range(len(first), len(shape)))
        self.random.shuffle(rest)
        return self.b(graph.TransposeOp, x, permutation=[*first, *rest])

    def gather(self, x: SSAValue) -> SSAValue | None:
        shape = shape_of(x)
        static = [d for d, s in enumerate(shape) if s != DYNAMIC]
        if not static:
            return None
        axis = self.random.choice(static)
        picked = self.rng.integers(0, shape[axis], self.random.randint(1, 4))
        return self.b(graph.GatherOp, x, self.b.constant(picked.astype(np.int64)), axis=axis)

    def where(self, x: SSAValue) -> SSAValue:
        same = [v for v in self.values if v.type == x.type]
        other = self.random.choice(same)
        zero = self.b.constant(np.float32(0.1))
        chosen = self.b(graph.CompareOp, x, zero, predicate=self.random.choice(("lt", "ge")))
        return self.b(graph.WhereOp, chosen, x, other)


def shape_of(value: SSAValue) -> list[int]:
    return list(tensor_type(value).get_shape())
