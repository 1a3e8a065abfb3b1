"""Networks that `training.py` trains, as irkit takes them and as PyTorch modules of the same weights.

A small convolutional network on images 1x28x28, an LSTM that classifies sequences of 32 rows, and a decoder
like GPT of two blocks on sequences of 64 bytes; the perceptron is that of T. Chen's course CSE 599W (2017).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import erf

from benchmarks import harness

CLASSES = 10
LAYERS = (784, 256, 100, CLASSES)
CHANNELS, SIDE = (1, 16, 32), 28
STEPS, FEATURES, HIDDEN = 32, 64, 128
CONTEXT, TOKENS, WIDTH, HEADS, BLOCKS = 64, 128, 128, 4, 2

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Workload:
    """What is trained. `batch`: rows of a step by default; `rate`: of plain gradient descent.

    `model`: what `irkit.training_step` takes, of (parameters, x); `parameters`: the first ones; `data`: x and
    y of so many steps of so many rows; `module`: PyTorch's, of the same parameters, from x to logits (rows,
    classes).
    """

    batch: int
    rate: float
    model: Callable[[], Any]
    parameters: Callable[[], Any]
    data: Callable[[int, int], tuple[Array, Array]]
    module: Callable[[Any], Any]


def _drawn(rng: np.random.Generator, *shape: int, inside: int) -> Array:
    """Weights for sums over `inside` numbers."""
    return (rng.standard_normal(shape) / np.sqrt(inside)).astype(np.float32)


def _classified(*shape: int) -> Callable[[int, int], tuple[Array, Array]]:
    """Normal numbers of a shape, and a class for each."""

    def data(steps: int, batch: int) -> tuple[Array, Array]:
        rng = np.random.default_rng(1)
        x = rng.standard_normal((steps, batch, *shape)).astype(np.float32)
        return x, rng.integers(0, CLASSES, (steps, batch))

    return data


# The perceptron


def _perceptron_start() -> list[dict[str, Array]]:
    rng = np.random.default_rng(0)
    return [
        {"w": _drawn(rng, a, b, inside=a), "b": np.zeros(b, np.float32)}
        for a, b in pairwise(LAYERS)
    ]


def perceptron(p: Any, x: Any) -> Any:
    """Logits, in NumPy."""
    for layer in p[:-1]:
        x = np.maximum(x @ layer["w"] + layer["b"], 0)
    return x @ p[-1]["w"] + p[-1]["b"]


def _torch_perceptron(torch: Any) -> Any:
    layers: list[Any] = []
    for held in _perceptron_start():
        layer = torch.nn.Linear(*held["w"].shape)
        layer.weight.data = torch.tensor(np.ascontiguousarray(held["w"].T))
        layer.bias.data = torch.tensor(held["b"])
        layers += [layer, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


# The convolutional network


def _convolutional_start() -> dict[str, Array]:
    rng = np.random.default_rng(0)
    one, two, three = CHANNELS
    flat = three * (SIDE // 4) ** 2
    return {
        "w1": _drawn(rng, two, one, 5, 5, inside=25 * one),
        "b1": np.zeros(two, np.float32),
        "w2": _drawn(rng, three, two, 3, 3, inside=9 * two),
        "b2": np.zeros(three, np.float32),
        "w3": _drawn(rng, flat, CLASSES, inside=flat),
        "b3": np.zeros(CLASSES, np.float32),
    }


def _onnx(nodes: list[Any], shape: tuple[int | str, ...], start: Mapping[str, Array]) -> Any:
    onnx = harness.peer("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", kind, list(shape))],
        [helper.make_tensor_value_info("z", kind, ["batch", CLASSES])],
        [onnx.numpy_helper.from_array(array, name) for name, array in start.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def _convolutional() -> Any:
    node = harness.peer("onnx").helper.make_node
    pooled = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [
        node("Conv", ["x", "w1", "b1"], ["c1"], pads=[2] * 4),
        node("Relu", ["c1"], ["r1"]),
        node("MaxPool", ["r1"], ["p1"], **pooled),
        node("Conv", ["p1", "w2", "b2"], ["c2"], pads=[1] * 4),
        node("Relu", ["c2"], ["r2"]),
        node("MaxPool", ["r2"], ["p2"], **pooled),
        node("Flatten", ["p2"], ["f"]),
        node("Gemm", ["f", "w3", "b3"], ["z"]),
    ]
    return _onnx(nodes, ("batch", CHANNELS[0], SIDE, SIDE), _convolutional_start())


def _torch_convolutional(torch: Any) -> Any:
    p, nn = {n: torch.tensor(a) for n, a in _convolutional_start().items()}, torch.nn
    one, two, three = CHANNELS
    first, second = nn.Conv2d(one, two, 5, padding=2), nn.Conv2d(two, three, 3, padding=1)
    last = nn.Linear(p["w3"].shape[0], CLASSES)
    for layer, n in ((first, 1), (second, 2), (last, 3)):
        layer.weight.data = p[f"w{n}"] if n < 3 else p["w3"].T.contiguous()
        layer.bias.data = p[f"b{n}"]
    parts = [first, nn.ReLU(), nn.MaxPool2d(2), second, nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*parts, nn.Flatten(), last)


# The LSTM


def _lstm_start() -> dict[str, Array]:
    rng = np.random.default_rng(0)
    return {
        "w": _drawn(rng, 1, 4 * HIDDEN, FEATURES, inside=FEATURES),
        "r": _drawn(rng, 1, 4 * HIDDEN, HIDDEN, inside=HIDDEN),
        "b": np.zeros((1, 8 * HIDDEN), np.float32),
        "v": _drawn(rng, HIDDEN, CLASSES, inside=HIDDEN),
        "c": np.zeros(CLASSES, np.float32),
    }


def _lstm() -> Any:
    node = harness.peer("onnx").helper.make_node
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
        node("LSTM", ["t", "w", "r", "b"], ["", "h"], hidden_size=HIDDEN),
        node("Squeeze", ["h", "axes"], ["last"]),
        node("Gemm", ["last", "v", "c"], ["z"]),
    ]
    held = {**_lstm_start(), "axes": np.array([0])}
    return _onnx(nodes, ("batch", STEPS, FEATURES), held)


def _torch_lstm(torch: Any) -> Any:
    p = _lstm_start()

    def gates(a: Array) -> Any:
        """Input, output, forget, new, as ONNX has them, in PyTorch's order."""
        i, o, f, c = np.split(a, 4)
        return torch.tensor(np.concatenate([i, f, c, o]))

    class Classifier(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            torch.nn.Module.__init__(self)
            self.layer = torch.nn.LSTM(FEATURES, HIDDEN, batch_first=True)
            self.layer.weight_ih_l0.data = gates(p["w"][0])
            self.layer.weight_hh_l0.data = gates(p["r"][0])
            self.layer.bias_ih_l0.data = gates(p["b"][0, : 4 * HIDDEN])
            self.layer.bias_hh_l0.data = gates(p["b"][0, 4 * HIDDEN :])
            self.last = torch.nn.Linear(HIDDEN, CLASSES)
            self.last.weight.data = torch.tensor(np.ascontiguousarray(p["v"].T))
            self.last.bias.data = torch.tensor(p["c"])

        def forward(self, x: Any) -> Any:
            return self.last(self.layer(x)[1][0][0])

    return Classifier()


# The decoder


def _block_start(rng: np.random.Generator) -> dict[str, Array]:
    ones, zeros = np.ones(WIDTH, np.float32), np.zeros(WIDTH, np.float32)
    return {
        "s1": ones, "b1": zeros, "s2": ones.copy(), "b2": zeros.copy(),
        "qkv": _drawn(rng, WIDTH, 3 * WIDTH, inside=WIDTH),
        "out": _drawn(rng, WIDTH, WIDTH, inside=WIDTH),
        "up": _drawn(rng, WIDTH, 4 * WIDTH, inside=WIDTH),
        "down": _drawn(rng, 4 * WIDTH, WIDTH, inside=4 * WIDTH),
    }  # fmt: skip


def _decoder_start() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "tokens": _drawn(rng, TOKENS, WIDTH, inside=4),
        "places": _drawn(rng, CONTEXT, WIDTH, inside=4),
        "blocks": [_block_start(rng) for _ in range(BLOCKS)],
        "s": np.ones(WIDTH, np.float32),
        "b": np.zeros(WIDTH, np.float32),
        "head": _drawn(rng, WIDTH, TOKENS, inside=WIDTH),
    }


def _normalised(x: Any, scale: Any, shift: Any) -> Any:
    x = x - x.mean(axis=-1, keepdims=True)
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + np.float32(1e-5)) * scale + shift


def _attended(x: Any, p: Any) -> Any:
    rows, length, width = x.shape
    heads = (x @ p["qkv"]).reshape(rows, length, 3, HEADS, width // HEADS)
    query, key, value = heads.transpose(2, 0, 3, 1, 4)
    scores = query @ key.transpose(0, 1, 3, 2) * np.float32((width // HEADS) ** -0.5)
    scores = np.where(np.tri(length, dtype=bool), scores, np.float32(-np.inf))
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    scores = scores / scores.sum(axis=-1, keepdims=True)
    return (scores @ value).transpose(0, 2, 1, 3).reshape(rows, length, width) @ p["out"]


def decoder(p: Any, tokens: Any) -> Any:
    """Logits of the token after each, in NumPy."""
    x = p["tokens"][tokens] + p["places"]
    for block in p["blocks"]:
        x = x + _attended(_normalised(x, block["s1"], block["b1"]), block)
        inner = _normalised(x, block["s2"], block["b2"]) @ block["up"]
        x = x + (np.float32(0.5) * inner * (1 + erf(inner * np.float32(0.5**0.5)))) @ block["down"]
    return _normalised(x, p["s"], p["b"]) @ p["head"]


def _texts(steps: int, batch: int) -> tuple[Array, Array]:
    drawn = np.random.default_rng(1).integers(0, TOKENS, (steps, batch, CONTEXT + 1))
    return drawn[..., :-1].copy(), drawn[..., 1:].copy()


def _torch_decoder(torch: Any) -> Any:
    start, functional = _decoder_start(), torch.nn.functional

    def held(array: Array) -> Any:
        return torch.nn.Parameter(torch.tensor(array))

    class Decoder(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            torch.nn.Module.__init__(self)
            self.p = torch.nn.ParameterDict({n: held(a) for n, a in start.items() if n != "blocks"})
            blocks = [{n: held(a) for n, a in block.items()} for block in start["blocks"]]
            self.blocks = torch.nn.ModuleList([torch.nn.ParameterDict(b) for b in blocks])

        def attended(self, x: Any, p: Any) -> Any:
            rows, length, width = x.shape
            heads = (x @ p["qkv"]).view(rows, length, 3, HEADS, width // HEADS)
            query, key, value = heads.permute(2, 0, 3, 1, 4)
            y = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            return y.transpose(1, 2).reshape(rows, length, width) @ p["out"]

        def forward(self, tokens: Any) -> Any:
            shape = (WIDTH,)
            x = functional.embedding(tokens, self.p["tokens"]) + self.p["places"]
            for p in self.blocks:
                y = functional.layer_norm(x, shape, p["s1"], p["b1"])
                x = x + self.attended(y, p)
                y = functional.layer_norm(x, shape, p["s2"], p["b2"])
                x = x + functional.gelu(y @ p["up"]) @ p["down"]
            y = functional.layer_norm(x, shape, self.p["s"], self.p["b"])
            return (y @ self.p["head"]).reshape(-1, TOKENS)

    return Decoder()


WORKLOADS: Mapping[str, Workload] = {
    "MLP": Workload(
        1000, 1e-3, lambda: perceptron, _perceptron_start, _classified(LAYERS[0]), _torch_perceptron
    ),
    "CNN": Workload(
        64, 1e-2, _convolutional, _convolutional_start,
        _classified(CHANNELS[0], SIDE, SIDE), _torch_convolutional,
    ),
    "LSTM": Workload(64, 1e-2, _lstm, _lstm_start, _classified(STEPS, FEATURES), _torch_lstm),
    "decoder": Workload(8, 1e-2, lambda: decoder, _decoder_start, _texts, _torch_decoder),
}  # fmt: skip
