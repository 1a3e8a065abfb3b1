"""Gradients beside PyTorch's: conventions, layers and small networks in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_gradients import derived, ran

from irkit.dialects import graph
from irkit.dialects.types import tensor_of
from irkit.frontends.module import GraphBuilder
from irkit.model_info import ModelInfo
from irkit.passes.graph.differentiation import Differentiation

torch = pytest.importorskip("torch")
F = torch.nn.functional

TIES = np.array([-1.0, 0.0, 0.0, 2.0, 2.0, 0.5])


def ours(build: Callable[..., Any], arrays: list[np.ndarray], ct: np.ndarray) -> list[np.ndarray]:
    b = GraphBuilder([(f"x{n}", tensor_of(a)) for n, a in enumerate(arrays)])
    y = build(b, *b.inputs)
    model = b.finish([("y", y)], ModelInfo("network", b.names, ("y",)))
    wrt = tuple(range(len(arrays)))
    made = derived(model, Differentiation("reverse", wrt, (0,), value=False, allow_unused=True))
    return ran(made, [*arrays, ct])


def theirs(build: Callable[..., Any], arrays: list[np.ndarray], ct: np.ndarray) -> list[np.ndarray]:
    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
    y = build(*tensors)
    y.backward(torch.tensor(ct))
    return [np.zeros(t.shape) if t.grad is None else t.grad.numpy() for t in tensors]


def n(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def pool(b: Any, op: Any, x: Any, **props: Any) -> Any:
    return b(op, x, kernel_shape=[3, 2], strides=[2, 1], pads=[1, 1, 1, 1], **props)


def reduced(kind: str) -> Callable[..., Any]:
    return lambda b, x: b(graph.ReduceOp, x, kind=kind, axes=[0], keepdims=False)


def network(b: Any, x: Any, w: Any, scale: Any, bias: Any, mean: Any, variance: Any, v: Any) -> Any:
    props = {"strides": [1, 1], "pads": [1, 1, 1, 1], "dilations": [1, 1], "group": 1}
    y = b(graph.ConvOp, x, w, **props)
    y = b(graph.BatchNormOp, y, scale, bias, mean, variance, epsilon=1e-5)
    y = b(graph.MaxPoolOp, b(graph.ReluOp, y), kernel_shape=[2, 2], strides=[2, 2], pads=[0] * 4)
    y = b(graph.ReshapeOp, b(graph.GlobalAveragePoolOp, y), shape=[2, 4])
    return b(graph.SoftmaxOp, b(graph.MatmulOp, y, v), axis=1)


def torch_network(x, w, scale, bias, mean, variance, v):
    y = F.conv2d(x, w, padding=1)
    c = (1, -1, 1, 1)
    y = (y - mean.reshape(c)) / torch.sqrt(variance.reshape(c) + 1e-5)
    y = y * scale.reshape(c) + bias.reshape(c)
    y = F.max_pool2d(torch.relu(y), 2)
    return torch.softmax(y.mean((2, 3)) @ v, 1)


PAIRS: dict[
    str, tuple[Callable[..., Any], Callable[..., Any], list[np.ndarray], tuple[int, ...]]
] = {
    "relu": (lambda b, x: b(graph.ReluOp, x), lambda x: torch.relu(x), [TIES], (6,)),
    "abs": (lambda b, x: b(graph.AbsOp, x), lambda x: x.abs(), [TIES], (6,)),
    "sqrt": (lambda b, x: b(graph.SqrtOp, x), lambda x: x.sqrt(), [np.abs(TIES)], (6,)),
    "clip": (
        lambda b, x: b(graph.ClipOp, x, min=-1.0, max=2.0),
        lambda x: x.clamp(-1, 2),
        [TIES],
        (6,),
    ),
    "max": (lambda b, x, y: b(graph.MaxOp, x, y), torch.maximum, [TIES, TIES[::-1].copy()], (6,)),
    "min": (lambda b, x, y: b(graph.MinOp, x, y), torch.minimum, [TIES, TIES[::-1].copy()], (6,)),
    "floor": (lambda b, x: b(graph.FloorOp, x), lambda x: x.floor(), [TIES], (6,)),
    "pow": (
        lambda b, x, y: b(graph.PowOp, x, y),
        torch.pow,
        [np.array([0.0, 0.0, 2.0]), np.array([0.0, 2.0, -1.5])],
        (3,),
    ),
    "mod": (
        lambda b, x, y: b(graph.ModOp, x, y),
        torch.remainder,
        [n(5) * 4, np.array([1.5, -0.7, 2.0, -3.0, 0.9])],
        (5,),
    ),
    "largest": (reduced("max"), lambda x: x.amax(0), [TIES], ()),
    "product": (reduced("prod"), lambda x: x.prod(0), [TIES], ()),
    "max_pool": (
        lambda b, x: pool(b, graph.MaxPoolOp, x),
        lambda x: F.max_pool2d(F.pad(x, (1, 1, 1, 1), value=-np.inf), (3, 2), (2, 1)),
        [np.random.default_rng(0).integers(0, 4, (2, 3, 6, 5)).astype(float)],
        (2, 3, 3, 6),
    ),
    "average_pool": (
        lambda b, x: pool(b, graph.AveragePoolOp, x, count_include_pad=True),
        lambda x: F.avg_pool2d(F.pad(x, (1, 1, 1, 1)), (3, 2), (2, 1)),
        [n(2, 3, 6, 5)],
        (2, 3, 3, 6),
    ),
    "layer_norm": (
        lambda b, x: b(graph.LayerNormOp, x, epsilon=1e-5, centred=True),
        lambda x: F.layer_norm(x, (8,)),
        [n(4, 8)],
        (4, 8),
    ),
    "attention": (
        lambda b, q, k, v: b(graph.AttentionOp, q, k, v, scale=0.5, causal=0),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.5),
        [n(2, 5, 4), n(2, 5, 4, seed=1), n(2, 5, 3, seed=2)],
        (2, 5, 3),
    ),
    "embedding": (
        lambda b, x: b(graph.GatherOp, x, b.constant(np.array([[1, 1, 3], [0, 3, 3]])), axis=0),
        lambda x: F.embedding(torch.tensor([[1, 1, 3], [0, 3, 3]]), x),
        [n(5, 2)],
        (2, 3, 2),
    ),
    "network": (
        network,
        torch_network,
        [
            *(n(2, 3, 8, 8), n(4, 3, 3, 3, seed=1), n(4, seed=2), n(4, seed=3), n(4, seed=4)),
            *(n(4, seed=5) ** 2 + 0.5, n(4, 3, seed=6)),
        ],
        (2, 3),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_gradients_are_those_of_pytorch(name: str) -> None:
    build, reference, arrays, shape = PAIRS[name]
    ct = np.asarray(np.random.default_rng(7).standard_normal(shape))
    for got, want in zip(ours(build, arrays, ct), theirs(reference, arrays, ct), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
