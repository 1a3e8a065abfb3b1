"""Ops that move elements, reduce, choose, convert."""

# pyright: basic

from __future__ import annotations

import string
from typing import Any

import numpy as np
from onnx import helper

from tools.fuzz.networks.layers import need, whole
from tools.fuzz.networks.network import Network, Value

FLOAT_UNARY = (
    "Abs",
    "Ceil",
    "Cos",
    "Elu",
    "Erf",
    "Exp",
    "Floor",
    "HardSigmoid",
    "HardSwish",
    "LeakyRelu",
    "Mish",
    "Neg",
    "Relu",
    "Round",
    "Selu",
    "Sigmoid",
    "Sign",
    "Sin",
    "Softplus",
    "Softsign",
    "Tanh",
    "ThresholdedRelu",
    "Atan",
    "Gelu",
    "Celu",
    "Identity",
    "Sinh",
    "Cosh",
    "Asinh",
)
REDUCTIONS = (
    "ReduceSum",
    "ReduceMean",
    "ReduceMax",
    "ReduceMin",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSumExp",
    "ReduceSumSquare",
    "ReduceProd",
)


def unary(net: Network, x: Value) -> Value:
    """An elementwise function."""
    if x.dtype == "bool":
        return net.add("Not", x)
    if not x.is_float:
        return net.add(net.rng.choice(("Abs", "Neg", "Sign", "Relu", "BitwiseNot")), x)
    return net.add(net.rng.choice(FLOAT_UNARY), x)


def _partner(net: Network, x: Value) -> Value:
    rng = net.rng
    known = [v for v in net.values if v.dtype == x.dtype and _broadcasts(v.shape, x.shape)]
    if known and rng.random() < 0.6:
        return rng.choice(known)
    cut = x.shape[rng.randint(0, x.rank) :]
    return net.numbers(x.dtype, [1 if rng.random() < 0.3 else s for s in cut])


def _broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(a[::-1], b[::-1], strict=False))


def binary(net: Network, x: Value) -> Value:
    """Two values, of which one may be broadcast."""
    rng = net.rng
    pair = [x, _partner(net, x)]
    rng.shuffle(pair)
    if x.dtype == "bool":
        return net.add(rng.choice(("And", "Or", "Xor")), *pair)
    if rng.random() < 0.15:
        chosen = net.add(rng.choice(("Less", "Greater", "LessOrEqual", "GreaterOrEqual")), *pair)
        return net.add("Where", chosen, *pair)
    if not x.is_float:
        return net.add(rng.choice(("Add", "Sub", "Mul", "Max", "Min")), *pair)
    if rng.random() < 0.15:
        below = net.add("Add", net.add("Abs", pair[1]), net.constant(np.array(0.5, x.dtype)))
        return net.add("Div", pair[0], below)
    return net.add(rng.choice(("Add", "Sub", "Mul", "Max", "Min", "Mean")), *pair)


def reduction(net: Network, x: Value) -> Value:
    """A reduction over odd axes; often broadcast back."""
    rng = net.rng
    need(x.dtype in ("float32", "float64", "float16", "int32", "int64"))
    op = rng.choice(REDUCTIONS if x.is_float else ("ReduceSum", "ReduceMax", "ReduceMin"))
    axes = [
        a - x.rank * rng.choice((0, 1)) for a in rng.sample(range(x.rank), rng.randint(0, x.rank))
    ]
    keep = rng.choice((0, 1))
    kept = {"keepdims": keep, "noop_with_empty_axes": rng.choice((0, 1))}
    y = (
        net.add(op, x, whole(net, *axes), **kept)
        if rng.random() < 0.8
        else net.add(op, x, keepdims=keep)
    )
    return net.add("Add", x, y) if keep and rng.random() < 0.5 else y


def along(net: Network, x: Value) -> Value:
    """Softmax and its kin, running sums, positions of the largest."""
    rng = net.rng
    need(x.is_float and x.rank >= 1)
    axis = rng.randint(-x.rank, x.rank - 1)
    op = rng.choice(("Softmax", "LogSoftmax", "CumSum", "ArgMax", "ArgMin", "TopK", "Hardmax"))
    if op == "CumSum":
        at = net.constant(np.array(axis, rng.choice((np.int32, np.int64))))
        return net.add(op, x, at, exclusive=rng.choice((0, 1)), reverse=rng.choice((0, 1)))
    if op in ("ArgMax", "ArgMin"):
        return net.add(
            op, x, axis=axis, keepdims=rng.choice((0, 1)), select_last_index=rng.choice((0, 1))
        )
    if op == "TopK":
        k = whole(net, rng.randint(1, x.shape[axis]))
        found = net.add_all(op, x, k, outputs=2, axis=axis, largest=rng.choice((0, 1)))
        return rng.choice(found)
    return net.add(op, x, axis=axis)


def layout(net: Network, x: Value) -> Value:
    """Transpositions, reshapes, new and lost axes."""
    rng = net.rng
    what = rng.choice(("transpose", "reshape", "flatten", "unsqueeze", "squeeze", "expand", "tile"))
    if what == "transpose":
        order = rng.sample(range(x.rank), x.rank)
        return net.add("Transpose", x, perm=order) if x.rank else net.add("Transpose", x)
    if what == "flatten":
        return net.add("Flatten", x, axis=rng.randint(-x.rank, x.rank))
    if what == "unsqueeze":
        need(x.rank < 5)
        return net.add("Unsqueeze", x, whole(net, rng.randint(-x.rank - 1, x.rank)))
    if what == "squeeze":
        return net.add("Squeeze", x, whole(net, *(a for a, s in enumerate(x.shape) if s == 1)))
    if what == "expand":
        need(x.rank < 5)
        to = [rng.randint(2, 3) if s == 1 else rng.choice((1, s)) for s in x.shape]
        return net.add("Expand", x, whole(net, *([2] if rng.random() < 0.3 else []), *to))
    if what == "tile":
        need(x.rank > 0)
        return net.add("Tile", x, whole(net, *(rng.choice((1, 1, 2, 3)) for _ in x.shape)))
    to = list(x.shape)
    if x.rank > 1 and rng.random() < 0.7:  # leaves an open batch as it is
        keep, rest = 0, to[1:]
        rng.shuffle(rest)
        cut = rng.randint(1, len(rest))
        return net.add("Reshape", x, whole(net, keep, *rest[: cut - 1], -1))
    rng.shuffle(to)
    return net.add("Reshape", x, whole(net, *to))


def part(net: Network, x: Value) -> Value:
    """Slices with odd steps, splits, pads, concatenations."""
    rng = net.rng
    need(x.rank >= 1)
    what = rng.choice(("Slice", "Split", "Pad", "Concat", "Trilu", "Clip"))
    axis = rng.randint(-x.rank, x.rank - 1)
    if what == "Concat":
        like = [v for v in net.values if v.dtype == x.dtype and v.shape == x.shape]
        others = [rng.choice([x, *like]) for _ in range(rng.randint(0, 2))]
        return net.add("Concat", x, *others, axis=axis)
    if what == "Split":
        need(x.shape[axis] > 1)
        cut = rng.randint(1, x.shape[axis] - 1)
        found = net.add_all(what, x, whole(net, cut, x.shape[axis] - cut), outputs=2, axis=axis)
        for v in found:
            net.keep(v)
        return rng.choice(found)
    if what == "Trilu":
        need(x.rank >= 2)
        k = net.constant(np.array(rng.randint(-3, 3), np.int64))
        return net.add(what, x, k, upper=rng.choice((0, 1)))
    if what == "Clip":
        need(x.dtype != "bool")
        low, high = (net.constant(np.array(v, x.dtype)) for v in (0, 2))
        return net.add(what, x, low, *([high] if rng.random() < 0.6 else []))
    if what == "Pad":
        need(x.is_float and x.rank <= 4)
        mode = rng.choice(("constant", "reflect", "edge", "wrap"))
        pads = [rng.randint(0, min(2, s - 1)) for s in (*x.shape, *x.shape)]
        if rng.random() < 0.5:
            pads = [-p if s > 4 else p for p, s in zip(pads, (*x.shape, *x.shape), strict=True)]
        return net.add(what, x, whole(net, *pads), mode=mode)
    starts, ends = [rng.randint(-4, 4)], [rng.choice((rng.randint(-6, 9), 1 << 40, -(1 << 40)))]
    steps = [rng.choice((1, 1, 2, -1, -2, 3))]
    parts = (whole(net, *v) for v in (starts, ends, [axis], steps))
    return net.add(what, x, *parts)


def gathering(net: Network, x: Value) -> Value:
    """Gather and scatter in all forms, with constant indices."""
    rng = net.rng
    need(x.rank >= 1)
    axis = rng.randint(-x.rank, x.rank - 1)
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    size = x.shape[axis]
    op = rng.choice(("Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND"))
    if op == "Gather":
        shape = [rng.randint(1, 3) for _ in range(rng.randint(0, 2))]
        return net.add(
            op, x, net.constant(np.asarray(numbers.integers(-size, size, shape))), axis=axis
        )
    if op == "GatherElements":
        at = numbers.integers(-size, size, x.shape)
        return net.add(op, x, net.constant(at), axis=axis)
    if op == "GatherND":
        depth = rng.randint(1, x.rank)
        rows = [numbers.integers(-s, s, 3) for s in x.shape[:depth]]
        return net.add(op, x, net.constant(np.stack(rows, -1)))
    need(x.dtype not in ("bool", "float16"))
    how = rng.choice(("none", "add", "mul", "max", "min"))
    if op == "ScatterElements":
        shape = list(x.shape)
        shape[axis] = rng.randint(1, size)
        at = np.argsort(numbers.random(x.shape), axis=axis).take(range(shape[axis]), axis)
        if how != "none" and rng.random() < 0.5:
            at = numbers.integers(-size, size, shape)
        return net.add(
            op, x, net.constant(at), net.numbers(x.dtype, at.shape), axis=axis, reduction=how
        )
    depth = rng.randint(1, x.rank)
    cells = int(np.prod(x.shape[:depth]))
    rows = numbers.choice(cells, rng.randint(1, min(cells, 4)), replace=how != "none")
    at = np.stack(np.unravel_index(rows, x.shape[:depth]), -1).astype(np.int64)
    values = net.numbers(x.dtype, (*at.shape[:-1], *x.shape[depth:]))
    return net.add(op, x, net.constant(at), values, reduction=how)


def einsum(net: Network, x: Value) -> Value:
    """Einsum with a weight, or of a value alone: traces, sums, transpositions, products."""
    rng = net.rng
    need(x.dtype in ("float32", "float64") and 1 <= x.rank <= 4)
    letters = string.ascii_lowercase[: x.rank]
    sizes = dict(zip(letters, x.shape, strict=True))
    other = rng.sample(letters, rng.randint(0, x.rank)) + (["z"] if rng.random() < 0.5 else [])
    sizes["z"] = rng.randint(1, 4)
    rng.shuffle(other)
    kept = sorted({*letters, *other}, key=lambda _: rng.random())
    kept = [n for n in kept if rng.random() < 0.7]
    if not other:
        return net.add("Einsum", x, equation=f"{letters}->{''.join(kept)}")
    weight = net.numbers(x.dtype, [sizes[n] for n in other])
    arrow = f"->{''.join(kept)}" if rng.random() < 0.9 else ""
    return net.add("Einsum", x, weight, equation=f"{letters},{''.join(other)}{arrow}")


def cast(net: Network, x: Value) -> Value:
    """To another type, kept in its range."""
    rng = net.rng
    to = rng.choice(("float32", "float64", "float16", "int32", "int64", "bool", "float32"))
    if x.is_float and np.dtype(to).kind in "iu":
        low, high = (net.constant(np.array(v, x.dtype)) for v in (-99, 99))
        x = net.add("Clip", x, low, high)
    return net.add("Cast", x, to=helper.np_dtype_to_tensor_dtype(np.dtype(to)))


def quantised(net: Network, x: Value) -> Value:
    """Quantise and back, perhaps with a product of bytes between."""
    rng = net.rng
    need(x.dtype == "float32" and x.rank >= 1)
    kind: Any = rng.choice((np.uint8, np.int8))
    scale = net.constant(np.array(rng.choice((0.05, 0.1, 0.33)), np.float32))
    zero = net.constant(np.array(rng.choice((0, 3, 100)), kind))
    what = rng.choice(("pair", "axis", "product", "dynamic", "convolution"))
    if what == "axis":
        axis = rng.randint(0, x.rank - 1)
        scales = net.constant(np.linspace(0.05, 0.3, x.shape[axis], dtype=np.float32))
        zeros = net.constant(np.zeros(x.shape[axis], kind))
        q = net.add("QuantizeLinear", x, scales, zeros, axis=axis)
        return net.add("DequantizeLinear", q, scales, zeros, axis=axis)
    if what == "dynamic":
        q, s, z = net.add_all("DynamicQuantizeLinear", x, outputs=3)
        need(x.rank >= 2)
        w = net.numbers("uint8", (x.shape[-1], rng.randint(1, 4)))
        y = net.add("MatMulInteger", q, w, z)
        return net.add("Mul", net.add("Cast", y, to=1), s)
    q = net.add("QuantizeLinear", x, scale, zero)
    if what == "product" and x.rank >= 2:
        w = net.numbers(
            rng.choice(("uint8", "int8")) if kind == np.uint8 else "int8", (x.shape[-1], 3)
        )
        w_zero = net.constant(np.array(rng.choice((0, 1)), w.dtype))
        q = net.add("QLinearMatMul", q, scale, zero, w, scale, w_zero, scale, zero)
    elif what == "convolution" and x.rank == 4:
        w = net.numbers("int8" if kind == np.int8 else "uint8", (2, x.shape[1], 1, 1))
        w_zero = net.constant(np.array(0, w.dtype))
        pads = rng.choice(([0] * 4, [1, 0, 1, 2]))
        q = net.add(
            "QLinearConv",
            q,
            scale,
            zero,
            w,
            scale,
            w_zero,
            scale,
            zero,
            pads=pads,
            strides=[rng.randint(1, 2)] * 2,
        )
    return net.add("DequantizeLinear", q, scale, zero)


MOVES = (
    unary,
    unary,
    unary,
    binary,
    binary,
    binary,
    binary,
    reduction,
    reduction,
    along,
    layout,
    layout,
    layout,
    part,
    part,
    gathering,
    gathering,
    einsum,
    cast,
    quantised,
)
