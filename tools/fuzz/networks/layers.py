"""Layers of networks: convolutions, pools, resizes, norms, recurrent layers, attention."""

# pyright: basic

from __future__ import annotations

import random
from typing import Any

import numpy as np

from tools.fuzz.networks.network import Network, NotMade, Value

Step = Any


def need(condition: bool) -> None:
    """Give the step up unless this holds."""
    if not condition:
        raise NotMade


def _windows(rng: random.Random, sizes: tuple[int, ...], ceil: bool = False) -> dict[str, Any]:
    kernel = [rng.choice((1, 2, 3, 3, 4, 5)) for _ in sizes]
    chosen: dict[str, Any] = {"kernel_shape": kernel}
    if rng.random() < 0.6:
        chosen["strides"] = [rng.randint(1, 3) for _ in sizes]
    if rng.random() < 0.4:
        chosen["dilations"] = [rng.randint(1, 3) for _ in sizes]
    spread = [
        (k - 1) * d + 1
        for k, d in zip(kernel, chosen.get("dilations", [1] * len(kernel)), strict=True)
    ]
    if rng.random() < 0.25:
        # ONNX Runtime counts windows of pools otherwise than ONNX where these meet.
        need(not ceil or "dilations" not in chosen)
        chosen["auto_pad"] = rng.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))
        ceil = False
        need(all(s >= w for s, w in zip(sizes, spread, strict=True)))
    elif rng.random() < 0.7:
        # A pool must not have windows of nothing but padding.
        chosen["pads"] = [rng.randint(0, min(2, k - 1)) for k in (*kernel, *kernel)]
    pads = chosen.get("pads", [0] * 2 * len(sizes))
    whole = [s + a + b for s, a, b in zip(sizes, pads, pads[len(sizes) :], strict=False)]
    need(all(s >= w for s, w in zip(whole, spread, strict=True)))
    if ceil and rng.random() < 0.4:
        chosen["ceil_mode"] = 1
    return chosen


def convolution(net: Network, x: Value) -> Value:
    """Conv with odd windows, groups, with and without a bias."""
    rng = net.rng
    need(x.is_float and x.rank in (3, 4, 5))
    channels = x.shape[1]
    chosen = _windows(rng, x.shape[2:])
    groups = rng.choice([g for g in range(1, channels + 1) if channels % g == 0])
    results = groups * rng.choice((1, 1, 2, 3))
    shape = (results, channels // groups, *chosen["kernel_shape"])
    weight = net.numbers(x.dtype, shape, 1 / np.sqrt(np.prod(shape[1:])))
    bias = net.numbers(x.dtype, (results,)) if rng.random() < 0.6 else None
    return net.add("Conv", x, weight, *([bias] if bias else []), group=groups, **chosen)


def transposed_convolution(net: Network, x: Value) -> Value:
    """ConvTranspose with groups and output padding."""
    rng = net.rng
    need(x.is_float and x.rank in (3, 4))
    channels, sizes = x.shape[1], x.shape[2:]
    kernel = [rng.randint(1, 4) for _ in sizes]
    strides = [rng.randint(1, 3) for _ in sizes]
    chosen: dict[str, Any] = {"kernel_shape": kernel, "strides": strides}
    if rng.random() < 0.5:
        chosen["pads"] = [rng.randint(0, k - 1) for k in (*kernel, *kernel)]
    if rng.random() < 0.4:
        chosen["output_padding"] = [rng.randint(0, s - 1) for s in strides]
    if rng.random() < 0.4:
        chosen["dilations"] = [rng.randint(1, 2) for _ in sizes]
    groups = rng.choice([g for g in range(1, channels + 1) if channels % g == 0])
    weight = net.numbers(x.dtype, (channels, rng.randint(1, 3), *kernel), 0.3)
    return net.add("ConvTranspose", x, weight, group=groups, **chosen)


def pool(net: Network, x: Value) -> Value:
    """A pool of any kind."""
    rng = net.rng
    need(x.is_float and x.rank in (3, 4, 5))
    op = rng.choice(
        (
            "MaxPool",
            "MaxPool",
            "AveragePool",
            "AveragePool",
            "LpPool",
            "GlobalAveragePool",
            "GlobalMaxPool",
        )
    )
    if op.startswith("Global"):
        return net.add(op, x)
    chosen = _windows(rng, x.shape[2:], ceil=True)
    if op == "AveragePool":
        chosen["count_include_pad"] = rng.choice((0, 1))
    if op == "LpPool":
        chosen["p"] = rng.choice((1, 2, 3))
        chosen.pop("ceil_mode", None)
    return net.add(op, x, **chosen)


def resize(net: Network, x: Value) -> Value:
    """Resize in any mode that ONNX Runtime has for the rank."""
    rng = net.rng
    need(x.is_float and x.rank == 4)
    mode = rng.choice(("nearest", "nearest", "linear", "linear", "cubic"))
    chosen: dict[str, Any] = {
        "mode": mode,
        "coordinate_transformation_mode": rng.choice(
            ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
        ),
    }
    if mode == "nearest":
        chosen["nearest_mode"] = rng.choice(
            ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
        )
    if mode == "cubic":
        chosen["cubic_coeff_a"] = rng.choice((-0.75, -0.5))
        chosen["exclude_outside"] = rng.choice((0, 1))
    # Corners are aligned to sizes that are not rounded in ONNX, and rounded in ONNX Runtime.
    if rng.random() < 0.5 and chosen["coordinate_transformation_mode"] != "align_corners":
        scales = [1.0, 1.0, *(rng.choice((0.5, 1.0, 1.5, 2.0, 2.5, 3.0)) for _ in "hw")]
        return net.add("Resize", x, None, net.constant(np.array(scales, np.float32)), **chosen)
    sizes = [*x.shape[:2], *(max(1, s + rng.randint(-2, 5)) for s in x.shape[2:])]
    return net.add("Resize", x, None, None, net.constant(np.array(sizes, np.int64)), **chosen)


def norm(net: Network, x: Value) -> Value:
    """Batch, instance, group, layer, local response and Lp normalisation."""
    rng = net.rng
    need(x.is_float and x.rank >= 2)
    op = rng.choice(("Batch", "Instance", "Layer", "LRN", "Lp", "MeanVariance", "Group"))
    channels = x.shape[1]
    if op == "Lp":
        return net.add(
            "LpNormalization", x, axis=rng.randint(-x.rank, x.rank - 1), p=rng.choice((1, 2))
        )
    if op == "Layer":
        axis = rng.randint(1, x.rank - 1)
        scale, bias = (net.numbers(x.dtype, x.shape[axis:]) for _ in "sb")
        return net.add(
            "LayerNormalization", x, scale, bias, axis=axis - x.rank * rng.choice((0, 1))
        )
    scale, bias = net.numbers(x.dtype, (channels,)), net.numbers(x.dtype, (channels,))
    if op == "Batch":
        mean = net.numbers(x.dtype, (channels,))
        spread = net.constant(
            np.abs(net.weights[mean.name]) + net.weights[mean.name].dtype.type(0.5)
        )
        return net.add(
            "BatchNormalization", x, scale, bias, mean, spread, epsilon=rng.choice((1e-5, 1e-2))
        )
    need(x.rank >= 3)
    if op == "Instance":
        return net.add("InstanceNormalization", x, scale, bias)
    if op == "Group":
        groups = rng.choice([g for g in range(1, channels + 1) if channels % g == 0])
        return net.add("GroupNormalization", x, scale, bias, num_groups=groups)
    need(x.rank == 4)
    if op == "LRN":
        return net.add("LRN", x, size=rng.choice((1, 2, 3, 4, 5)), alpha=rng.choice((1e-4, 0.1)))
    return net.add("MeanVarianceNormalization", x, axes=rng.choice(([0, 2, 3], [2, 3], [1])))


def recurrent(net: Network, x: Value) -> Value:
    """LSTM, GRU or RNN over [steps, batch, features]."""
    rng = net.rng
    need(x.dtype == "float32" and x.rank == 3)
    op, gates = rng.choice((("LSTM", 4), ("GRU", 3), ("RNN", 1)))
    hidden, direction = rng.randint(1, 4), rng.choice(("forward", "reverse", "bidirectional"))
    ways = 2 if direction == "bidirectional" else 1
    w = net.numbers(x.dtype, (ways, gates * hidden, x.shape[2]), 0.5)
    r = net.numbers(x.dtype, (ways, gates * hidden, hidden), 0.5)
    b = net.numbers(x.dtype, (ways, 2 * gates * hidden), 0.5) if rng.random() < 0.6 else None
    extra: dict[str, Any] = {"linear_before_reset": rng.choice((0, 1))} if op == "GRU" else {}
    if rng.random() < 0.15:
        extra["layout"] = 1
    operands = [x, w, r, b] if b else [x, w, r]
    count = rng.choice((1, 2))
    made = net.add_all(
        op, *operands, outputs=count, hidden_size=hidden, direction=direction, **extra
    )
    return rng.choice(made)


def attention(net: Network, x: Value) -> Value:
    """softmax(q kᵀ) v, of several heads or one, with or without a mask."""
    rng = net.rng
    need(x.is_float and x.rank == 3)
    _, steps, width = x.shape
    heads = rng.choice((1, 2, 3))
    size = rng.randint(1, 4)
    parts = []
    for order in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]):
        y = net.add("MatMul", x, net.numbers(x.dtype, (width, heads * size), 0.5))
        y = net.add("Reshape", y, whole(net, 0, steps, heads, size))
        parts.append(net.add("Transpose", y, perm=order))
    q, k, v = parts
    scores = net.add("MatMul", q, k)
    scale = net.constant(np.array(1 / np.sqrt(size), x.dtype))
    scores = net.add(rng.choice(("Mul", "Div")), scores, scale)
    if rng.random() < 0.5:
        mask = np.where(np.tri(steps, dtype=bool), 0, -1e4).astype(x.dtype)
        scores = net.add("Add", scores, net.constant(mask))
    weights = net.add("Softmax", scores, axis=rng.choice((-1, -1, 2)))
    y = net.add("Transpose", net.add("MatMul", weights, v), perm=[0, 2, 1, 3])
    return net.add("Reshape", y, whole(net, 0, steps, heads * size))


def shuffle_space(net: Network, x: Value) -> Value:
    """Depth to space and back."""
    rng = net.rng
    need(x.is_float and x.rank == 4)
    if x.shape[1] % 4 == 0 and rng.random() < 0.5:
        return net.add("DepthToSpace", x, blocksize=2, mode=rng.choice(("DCR", "CRD")))
    need(x.shape[2] % 2 == 0 and x.shape[3] % 2 == 0)
    return net.add("SpaceToDepth", x, blocksize=2)


def dense(net: Network, x: Value) -> Value:
    """A product with weights: MatMul, or Gemm of what is flattened."""
    rng = net.rng
    need(x.is_float and x.rank >= 2)
    if rng.random() < 0.6:
        return net.add("MatMul", x, net.numbers(x.dtype, (x.shape[-1], rng.randint(1, 6)), 0.5))
    y = net.add("Flatten", x, axis=1)
    sizes = [y.shape[1], rng.randint(1, 6)]
    turned = rng.choice((0, 1))
    weight = net.numbers(x.dtype, sizes[::-1] if turned else sizes, 1 / np.sqrt(sizes[0]))
    bias = net.numbers(x.dtype, rng.choice(((sizes[1],), (1, sizes[1]), (1,), ())))
    return net.add(
        "Gemm",
        y,
        weight,
        bias,
        transB=turned,
        alpha=rng.choice((1.0, 0.5)),
        beta=rng.choice((1.0, 2.0)),
    )


def whole(net: Network, *numbers: int) -> Value:
    """A weight of int64 numbers."""
    return net.constant(np.array(numbers, np.int64))


LAYERS = (
    convolution,
    convolution,
    transposed_convolution,
    pool,
    resize,
    norm,
    norm,
    recurrent,
    attention,
    shuffle_space,
    dense,
)
