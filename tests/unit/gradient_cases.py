"""Each graph op that has a gradient, at random float64 points where it is smooth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.types import element_type

Rng = np.random.Generator


@dataclass(frozen=True)
class Case:
    """`op` on `arrays`; those of floats are differentiated."""

    op: type[GraphOp]
    arrays: tuple[np.ndarray, ...]
    props: dict[str, Any] = field(default_factory=dict[str, Any])


def _spread(rng: Rng, *shape: int) -> np.ndarray:
    """Numbers that are apart from one another and from whole numbers, so that no step is crossed."""
    count = int(np.prod(shape))
    return (rng.permutation(count).reshape(shape) - count // 2) * 0.37 + 0.21 + rng.random() * 0.05


def _between(low: float, high: float) -> Callable[..., np.ndarray]:
    def drawn(rng: Rng, *shape: int) -> np.ndarray:
        return rng.uniform(low, high, shape)

    return drawn


_UNARY: dict[type[GraphOp], Callable[..., np.ndarray]] = {
    **{op: _between(-2, 2) for op in (
        graph.AsinhOp, graph.AtanOp, graph.CosOp, graph.CoshOp, graph.ErfOp, graph.Exp2Op,
        graph.ExpOp, graph.Expm1Op, graph.NegOp, graph.SigmoidOp, graph.SinOp, graph.SinhOp,
        graph.TanhOp,
    )},
    **{op: _between(-0.9, 0.9) for op in (graph.AcosOp, graph.AsinOp, graph.AtanhOp, graph.TanOp)},
    **{op: _between(0.2, 3) for op in (
        graph.CbrtOp, graph.Log10Op, graph.Log1pOp, graph.Log2Op, graph.LogOp, graph.SqrtOp,
    )},
    graph.AcoshOp: _between(1.2, 4),
    **{op: _spread for op in (
        graph.AbsOp, graph.CeilOp, graph.FloorOp, graph.ReluOp, graph.RoundOp,
    )},
}  # fmt: skip

_BINARY: dict[type[GraphOp], tuple[Callable[..., np.ndarray], Callable[..., np.ndarray]]] = {
    **{op: (_spread, _spread) for op in (
        graph.AddOp, graph.Atan2Op, graph.CopysignOp, graph.DivOp, graph.MaxOp, graph.MinOp,
        graph.MulOp, graph.SubOp,
    )},
    graph.ModOp: (_spread, _between(2.13, 2.17)),
    graph.PowOp: (_between(0.3, 2), _between(-2, 2)),
    graph.RemOp: (_spread, _between(2.13, 2.17)),
}  # fmt: skip

_SHAPES = (((4, 3), (4, 3)), ((2, 4, 3), (4, 1)), ((1, 3), (2, 1)), ((), (2,)))


def _unary(op: type[GraphOp]) -> Callable[[Rng], Case]:
    return lambda rng: Case(op, (_UNARY[op](rng, 3, 4),))


def _binary(op: type[GraphOp], shapes: tuple[tuple[int, ...], ...]) -> Callable[[Rng], Case]:
    first, second = _BINARY[op]
    return lambda rng: Case(
        op, tuple(map(np.asarray, (first(rng, *shapes[0]), second(rng, *shapes[1]))))
    )


def _case(
    op: type[GraphOp], *arrays: Callable[[Rng], np.ndarray], **props: Any
) -> Callable[[Rng], Case]:
    return lambda rng: Case(op, tuple(a(rng) for a in arrays), props)


def _n(*shape: int) -> Callable[[Rng], np.ndarray]:
    return lambda rng: rng.standard_normal(shape)


def _apart(*shape: int) -> Callable[[Rng], np.ndarray]:
    return lambda rng: _spread(rng, *shape)


def _positive(*shape: int) -> Callable[[Rng], np.ndarray]:
    return lambda rng: rng.uniform(0.3, 2, shape)


def _index(low: int, high: int, *shape: int) -> Callable[[Rng], np.ndarray]:
    return lambda rng: rng.integers(low, high, shape)


def _truth(*shape: int) -> Callable[[Rng], np.ndarray]:
    return lambda rng: rng.random(shape) < 0.5


def _convolution(transposed: bool, group: int, **kwargs: Any) -> Callable[[Rng], Case]:
    props = {"strides": [1, 1], "pads": [0, 0, 0, 0], "dilations": [1, 1], "group": group}
    if transposed:
        props["output_padding"] = [0, 0]
    props |= kwargs
    op = graph.ConvTransposeOp if transposed else graph.ConvOp
    w = _n(4, 6 // group, 3, 2) if transposed else _n(6, 4 // group, 3, 2)
    return _case(op, _n(2, 4, 7, 6), w, _n(6), **props)


def _pool(op: type[GraphOp], draw: Any, **props: Any) -> Callable[[Rng], Case]:
    return _case(op, draw(2, 2, 7, 6), **{"pads": [0, 0, 0, 0], **props})


def _recurrent(op: type[GraphOp], gates: int, biases: int, **props: Any) -> Callable[[Rng], Case]:
    steps = () if op.name.endswith("cell") else (3,)
    states = 2 if "lstm" in op.name else 1
    small = [_n(2, 3)] * states
    weights = [_n(gates * 3, 4), _n(gates * 3, 3), _n(biases * 3)]
    peep = [_n(9)] if props.pop("peepholes", False) else []
    return _case(op, _n(*steps, 2, 4), *small, *weights, *peep, **props)


_WINDOW = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
_SIDE = {"kernel_shape": [7, 2], "strides": [7, 2]}
_UP = {"kernel_shape": [2, 3], "strides": [2, 2], "ceil_mode": True, "dilations": [2, 1]}
_GRU = {"linear_before_reset": True}

CASES: dict[str, Callable[[Rng], Case]] = {
    **{op.name: _unary(op) for op in _UNARY},
    **{f"{op.name} {n}": _binary(op, s) for op in _BINARY for n, s in enumerate(_SHAPES)},
    "cast": _case(graph.CastOp, _n(3, 2), to=element_type(np.float64)),
    "clip": _case(graph.ClipOp, _apart(4, 3), min=-0.5, max=1.0),
    "fma": _case(graph.FmaOp, _n(2, 1), _n(3), _n(2, 3)),
    "where": _case(graph.WhereOp, _truth(2, 1), _n(2, 3), _n(3)),
    "gemm": _case(
        graph.GemmOp, _n(4, 3), _n(3, 2), _n(2), trans_a=False, trans_b=False, alpha=0.5, beta=2.0
    ),
    "gemm t": _case(
        graph.GemmOp, _n(3, 4), _n(2, 3), _n(4, 1), trans_a=True, trans_b=True, alpha=1.0, beta=1.0
    ),
    "gemm a": _case(
        graph.GemmOp, _n(3, 4), _n(3, 2), trans_a=True, trans_b=False, alpha=1.0, beta=0.0
    ),
    "gemm b": _case(
        graph.GemmOp,
        _n(4, 3),
        _n(2, 3),
        _n(4, 2),
        trans_a=False,
        trans_b=True,
        alpha=-1.0,
        beta=1.0,
    ),
    "matmul": _case(graph.MatmulOp, _n(4, 3), _n(3, 2)),
    "matmul rows": _case(graph.MatmulOp, _n(2, 5, 4, 3), _n(3, 2)),
    "matmul lead": _case(graph.MatmulOp, _n(2, 1, 4, 3), _n(5, 3, 2)),
    "matmul one": _case(graph.MatmulOp, _n(4, 3), _n(5, 3, 2)),
    **{
        f"reduce {kind} {axes}": _case(
            graph.ReduceOp, _apart(2, 3, 5), kind=kind, axes=axes, keepdims=keep
        )
        for kind in ("sum", "mean", "max", "min", "prod")
        for axes, keep in (([1], False), ([0, 2], True), ([], False))
    },
    **{
        f"cumsum {n}": _case(
            graph.CumSumOp, _n(2, 5), axis=1, exclusive=bool(n & 1), reverse=bool(n & 2)
        )
        for n in range(4)
    },
    "top_k": _case(graph.TopKOp, _apart(3, 6), k=4, axis=1, largest=True),
    "top_k least": _case(graph.TopKOp, _apart(5, 2), k=2, axis=0, largest=False),
    "concat": _case(graph.ConcatOp, _n(2, 3), _n(2, 1), _n(2, 2), axis=1),
    "expand": _case(graph.ExpandOp, _n(3, 1), shape=[2, 3, 4]),
    "gather": _case(graph.GatherOp, _n(2, 5, 3), _index(-2, 7, 2, 4), axis=1),
    "gather rows": _case(graph.GatherOp, _n(5, 3), _index(0, 5, 6), axis=0),
    "scatter_add": _case(graph.ScatterAddOp, _n(4, 3), _index(-2, 6, 2, 4), _n(2, 4, 3)),
    "gather_elements": _case(graph.GatherElementsOp, _n(2, 5, 3), _index(-1, 6, 2, 4, 3), axis=1),
    "pad": _case(graph.PadOp, _n(2, 3), low=[1, 0], high=[0, 2], value=3.0),
    "reshape": _case(graph.ReshapeOp, _n(2, 6), shape=[3, 4]),
    "slice": _case(graph.SliceOp, _n(5, 7), offsets=[1, 6], sizes=[2, 3], strides=[3, -2]),
    "slice one": _case(graph.SliceOp, _n(5, 7), offsets=[4, 2], sizes=[5, 1], strides=[-1, 4]),
    "transpose": _case(graph.TransposeOp, _n(2, 3, 4), permutation=[2, 0, 1]),
    "expression product": _case(
        graph.ExpressionOp, _n(2, 3), _n(3, 4), text="C(m, n) +=! A(m, k) * B(k, n)"
    ),
    "expression windows": _case(
        graph.ExpressionOp,
        _n(2, 9),
        _n(3, 2),
        text="O(b, i, o) +=! X(b, 2 * i + k) * W(k, o)",
    ),
    "expression largest": _case(
        graph.ExpressionOp, lambda r: _spread(r, 3, 4), text="O(i) max=! tanh(X(i, k))"
    ),
    "expression factors": _case(
        graph.ExpressionOp, _positive(2, 3), text="O(i) *=! X(i, k) where k in 1:3"
    ),
    "expression chosen": _case(
        graph.ExpressionOp,
        _n(4),
        _positive(5),
        text="O(i) = i >= 1 ? X(i - 1) / Y(i) : exp(Y(4 - i)) where i in 0:5",
    ),
    "expression picked": _case(
        graph.ExpressionOp,
        _n(4, 2),
        lambda _: np.array([3, 0, 3]),
        text="O(i, j) = X(I(i), j) * X(I(i), 1 - j)",
    ),
    "expression of indices": _case(
        graph.ExpressionOp, _n(3), text="O(i) = X(i / 2) * X(i % 3) * i where i in 0:6"
    ),
    "softmax": _case(graph.SoftmaxOp, _n(3, 4), axis=1),
    "layer_norm": _case(graph.LayerNormOp, _n(3, 5), epsilon=0.01, centred=True),
    "rms_norm": _case(graph.LayerNormOp, _n(3, 5), epsilon=0.01, centred=False),
    "batch_norm": _case(
        graph.BatchNormOp, _n(2, 3, 4), _n(3), _n(3), _n(3), _positive(3), epsilon=0.01
    ),
    "lrn": _case(graph.LrnOp, _n(2, 5, 3), size=3, alpha=0.3, beta=0.75, bias=1.0),
    "conv": _convolution(False, 1),
    "conv strides": _convolution(False, 2, strides=[2, 3], pads=[1, 2, 0, 1]),
    "conv dilations": _convolution(False, 1, dilations=[2, 1], strides=[1, 2], pads=[0, 1, 1, 0]),
    "conv depthwise": _case(
        graph.ConvOp, _n(1, 3, 8), _n(3, 1, 3), strides=[2], pads=[1, 1], dilations=[1], group=3
    ),
    "conv_transpose": _convolution(True, 1),
    "conv_transpose strides": _convolution(
        True, 2, strides=[2, 3], pads=[1, 0, 0, 2], output_padding=[1, 2]
    ),
    "conv_transpose longer": _convolution(
        True, 1, strides=[2, 1], dilations=[1, 2], output_padding=[3, 1]
    ),
    "average_pool": _pool(graph.AveragePoolOp, _n, **_WINDOW, count_include_pad=False),
    "average_pool padding": _pool(graph.AveragePoolOp, _n, **_WINDOW, count_include_pad=True),
    "average_pool side": _pool(graph.AveragePoolOp, _n, **_SIDE, count_include_pad=False),
    "average_pool up": _pool(graph.AveragePoolOp, _n, **_UP, count_include_pad=False),
    "max_pool": _pool(graph.MaxPoolOp, _apart, **_WINDOW),
    "max_pool side": _pool(graph.MaxPoolOp, _apart, **_SIDE),
    "max_pool blocks": _case(
        graph.MaxPoolOp, _apart(2, 2, 4, 6), kernel_shape=[2, 3], strides=[2, 3], pads=[0] * 4
    ),
    "max_pool cubes": _case(
        graph.MaxPoolOp,
        _apart(1, 2, 4, 2, 6),
        kernel_shape=[2, 1, 3],
        strides=[2, 1, 3],
        pads=[0] * 6,
    ),
    "max_pool up": _pool(graph.MaxPoolOp, _apart, **_UP),
    "lp_pool": _pool(graph.LpPoolOp, _apart, **_WINDOW, p=2),
    "lp_pool 3": _pool(graph.LpPoolOp, _apart, **_UP, p=3),
    "lp_pool 1": _pool(graph.LpPoolOp, _apart, **_SIDE, p=1),
    "global_average_pool": _case(graph.GlobalAveragePoolOp, _n(2, 3, 4, 2)),
    "attention": _case(
        graph.AttentionOp, _n(2, 4, 3), _n(2, 5, 3), _n(2, 5, 2), _n(4, 5), scale=0.5
    ),
    "attention query gradient": _case(
        graph.AttentionQueryGradientOp,
        _n(2, 4, 3),
        _n(1, 5, 3),
        _n(2, 5, 2),
        _n(2, 4, 2),
        _n(4, 5),
        scale=0.5,
        causal=1,
    ),
    "attention key gradient": _case(
        graph.AttentionKeyGradientOp,
        _n(2, 4, 3),
        _n(1, 5, 3),
        _n(2, 5, 2),
        _n(2, 4, 2),
        _n(2, 4, 5),
        scale=0.5,
        causal=1,
    ),
    "attention heads": _case(
        graph.AttentionOp, _n(2, 3, 4, 3), _n(2, 1, 5, 3), _n(2, 1, 5, 2), scale=0.5, causal=1
    ),
    "attention mask": _case(
        graph.AttentionOp,
        _n(4, 3),
        _n(3, 3),
        _n(3, 2),
        lambda rng: np.tril(np.ones((4, 3), bool)),
        scale=0.5,
    ),
    "lstm_cell": _recurrent(graph.LstmCellOp, 4, 4),
    "lstm_cell peepholes": _recurrent(graph.LstmCellOp, 4, 4, peepholes=True),
    "lstm": _recurrent(graph.LstmOp, 4, 4),
    "lstm reverse": _recurrent(graph.LstmOp, 4, 4, peepholes=True, reverse=True),
    "gru_cell": _recurrent(graph.GruCellOp, 3, 4, **_GRU),
    "gru": _recurrent(graph.GruOp, 3, 4, linear_before_reset=False),
    "rnn_cell": _recurrent(graph.RnnCellOp, 1, 1),
    "rnn": _recurrent(graph.RnnOp, 1, 1, reverse=True),
}
