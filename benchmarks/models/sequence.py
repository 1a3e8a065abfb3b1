"""Networks of sequences for a CPU's benchmark: ONNX models with seeded random weights, float32.

Transformers are written as PyTorch's exporter writes them: products, Reshape, Transpose, Softmax, a layer
normalisation as an operator, GELU by Erf or Tanh.
"""

from __future__ import annotations

import math

import numpy as np
from onnx import ModelProto, TensorProto

from benchmarks.models.onnx_model import OnnxModel

Batch = int | None
"""A number of rows; None: a symbol."""


class _Sequence(OnnxModel):
    """Adds layers of tokens[batch, tokens, width]."""

    def linear(self, x: str, inputs: int, outputs: int) -> str:
        """A product with a constant, and a bias."""
        number = len(self.nodes)
        y = self.then("MatMul", x, self.weight(f"w{number}", inputs, outputs, scale=inputs**-0.5))
        return self.then("Add", y, self.weight(f"b{number}", outputs, scale=0.1))

    def norm(self, x: str, width: int) -> str:
        """Layer normalisation."""
        name = f"ln{len(self.nodes)}"
        scale = self.array(f"{name}.w", self.random.uniform(0.8, 1.2, width).astype(np.float32))
        return self.then("LayerNormalization", x, scale, self.weight(f"{name}.b", width, scale=0.1))

    def gelu(self, x: str, tanh: bool) -> str:
        """By the error function, or GPT-2's form of it."""
        if tanh:
            cube = self.then("Mul", self.then("Mul", x, x), x)
            inner = self.then("Add", x, self.then("Mul", cube, self.number(0.044715)))
            inner = self.then("Mul", inner, self.number(math.sqrt(2 / math.pi)))
            part = self.then("Tanh", inner)
        else:
            part = self.then("Erf", self.then("Div", x, self.number(math.sqrt(2.0))))
        half = self.then("Mul", x, self.number(0.5))
        return self.then("Mul", half, self.then("Add", part, self.number(1.0)))

    def heads(self, x: str, tokens: int, width: int, heads: int, order: list[int]) -> str:
        """Split the last dimension into heads and bring them before the tokens."""
        shape = self.integers(-1, tokens, heads, width // heads)
        return self.then("Transpose", self.then("Reshape", x, shape), perm=order)

    def attention(self, x: str, tokens: int, width: int, heads: int, mask: str | None) -> str:
        """Self-attention with three products for queries, keys and values, and one behind."""
        q = self.heads(self.linear(x, width, width), tokens, width, heads, [0, 2, 1, 3])
        k = self.heads(self.linear(x, width, width), tokens, width, heads, [0, 2, 3, 1])
        v = self.heads(self.linear(x, width, width), tokens, width, heads, [0, 2, 1, 3])
        scores = self.then("Div", self.then("MatMul", q, k), self.number((width // heads) ** 0.5))
        if mask is not None:
            scores = self.then("Add", scores, mask)
        y = self.then("MatMul", self.then("Softmax", scores, axis=-1), v)
        y = self.then("Transpose", y, perm=[0, 2, 1, 3])
        y = self.then("Reshape", y, self.integers(-1, tokens, width))
        return self.linear(y, width, width)

    def block(
        self, x: str, sizes: tuple[int, int, int], *, before: bool, tanh: bool, mask: str | None
    ) -> str:  # fmt: skip
        """A transformer's block of (tokens, width, heads), normalised before or behind its two parts."""
        tokens, width, heads = sizes
        y = self.attention(self.norm(x, width) if before else x, tokens, width, heads, mask)
        x = self.then("Add", x, y)
        x = x if before else self.norm(x, width)
        y = self.linear(self.norm(x, width) if before else x, width, 4 * width)
        x = self.then("Add", x, self.linear(self.gelu(y, tanh), 4 * width, width))
        return x if before else self.norm(x, width)


def encoder(
    batch: Batch = 1, layers: int = 4, tokens: int = 128, width: int = 256, heads: int = 8, seed: int = 0
) -> ModelProto:  # fmt: skip
    """A transformer encoder, x[batch, tokens, width] → y of the same shape, normalised behind."""
    m = _Sequence("encoder", seed)
    x = "x"
    for _ in range(layers):
        x = m.block(x, (tokens, width, heads), before=False, tanh=False, mask=None)
    m.node("Identity", [x], "y")
    shape = [batch or "batch", tokens, width]
    return m.finish({"x": shape}, {"y": shape})


def gpt(
    batch: Batch = 1, layers: int = 4, tokens: int = 128, width: int = 256, heads: int = 8,
    words: int = 1000, seed: int = 0,
) -> ModelProto:  # fmt: skip
    """A causal decoder, ids[batch, tokens] of int64 → y[batch, tokens, words], GELU by Tanh."""
    m = _Sequence("gpt", seed)
    m.types["ids"] = TensorProto.INT64
    hidden = np.triu(np.full((tokens, tokens), -1e9, np.float32), 1)
    mask = m.array("mask", hidden[None, None])
    x = m.then("Gather", m.weight("words", words, width, scale=0.5), "ids")
    x = m.then("Add", x, m.weight("places", 1, tokens, width, scale=0.5))
    for _ in range(layers):
        x = m.block(x, (tokens, width, heads), before=True, tanh=True, mask=mask)
    x = m.norm(x, width)
    m.node("MatMul", [x, m.weight("head", width, words, scale=width**-0.5)], "y")
    rows = batch or "batch"
    return m.finish({"ids": [rows, tokens]}, {"y": [rows, tokens, words]})


def vit(
    batch: Batch = 1, layers: int = 12, width: int = 384, heads: int = 6, size: int = 224,
    patch: int = 16, classes: int = 1000, seed: int = 0,
) -> ModelProto:  # fmt: skip
    """ViT-small: A. Dosovitskiy et al., An Image is Worth 16x16 Words, ICLR 2021."""
    m = _Sequence("vit", seed)
    patches = (size // patch) ** 2
    w = m.weight("patch.w", width, 3, patch, patch)
    sides = {"kernel_shape": [patch] * 2, "strides": [patch] * 2}
    x = m.then("Conv", "x", w, m.weight("patch.b", width, scale=0.1), **sides)
    x = m.then("Reshape", x, m.integers(-1, width, patches))
    x = m.then("Transpose", x, perm=[0, 2, 1])
    rows = m.then("Gather", m.then("Shape", x), m.integers(0))
    shape = m.then("Concat", rows, m.integers(1, width), axis=0)
    first = m.then("Expand", m.weight("class", 1, 1, width, scale=0.5), shape)
    x = m.then("Concat", first, x, axis=1)
    x = m.then("Add", x, m.weight("places", 1, patches + 1, width, scale=0.5))
    for _ in range(layers):
        x = m.block(x, (patches + 1, width, heads), before=True, tanh=False, mask=None)
    x = m.then("Gather", m.norm(x, width), m.array("zero", np.array(0)), axis=1)
    w, b = m.weight("head.w", classes, width), m.weight("head.b", classes, scale=0.1)
    m.node("Gemm", [x, w, b], "y", transB=1)
    count = batch or "batch"
    return m.finish({"x": [count, 3, size, size]}, {"y": [count, classes]})


def wavenet(
    batch: Batch = 1, channels: int = 64, layers: int = 8, stacks: int = 2, samples: int = 2048,
    seed: int = 0,
) -> ModelProto:  # fmt: skip
    """A. van den Oord et al., WaveNet, 2016: gated causal convolutions, dilated by powers of two."""
    m = _Sequence("wavenet", seed)

    def conv(x: str, outputs: int, inputs: int, kernel: int = 1, dilation: int = 1) -> str:
        number = len(m.nodes)
        w = m.weight(f"w{number}", outputs, inputs, kernel)
        b = m.weight(f"b{number}", outputs, scale=0.1)
        pads = [(kernel - 1) * dilation, 0]
        return m.then("Conv", x, w, b, dilations=[dilation], kernel_shape=[kernel], pads=pads)

    x, skips = conv("x", channels, 1, 2), list[str]()
    for layer in range(layers * stacks):
        step = 1 << layer % layers
        part = m.then("Tanh", conv(x, channels, channels, 2, step))
        gate = m.then("Sigmoid", conv(x, channels, channels, 2, step))
        gated = m.then("Mul", part, gate)
        skips.append(conv(gated, channels, channels))
        x = m.then("Add", x, conv(gated, channels, channels))
    total = skips[0]
    for skip in skips[1:]:
        total = m.then("Add", total, skip)
    y = conv(m.then("Relu", total), channels, channels)
    m.node("Identity", [conv(m.then("Relu", y), 256, channels)], "y")
    rows = batch or "batch"
    return m.finish({"x": [rows, 1, samples]}, {"y": [rows, 256, samples]})


_GATES = {"GRU": 3, "LSTM": 4}


def bidirectional(
    kind: str, batch: Batch = 1, layers: int = 2, hidden: int = 128, steps: int = 50, seed: int = 0
) -> ModelProto:  # fmt: skip
    """GRU or LSTM layers in both directions: x[steps, batch, hidden] → y[steps, batch, 2 * hidden]."""
    m = _Sequence(kind.lower(), seed)
    gates, x, inputs = _GATES[kind], "x", hidden
    more = {"linear_before_reset": 1} if kind == "GRU" else {}
    for layer in range(layers):
        scale = hidden**-0.5
        weights = [
            m.weight(f"W{layer}", 2, gates * hidden, inputs, scale=inputs**-0.5),
            m.weight(f"R{layer}", 2, gates * hidden, hidden, scale=scale),
            m.weight(f"B{layer}", 2, 2 * gates * hidden, scale=0.1),
        ]
        y = m.then(kind, x, *weights, hidden_size=hidden, direction="bidirectional", **more)
        y = m.then("Transpose", y, perm=[0, 2, 1, 3])
        x, inputs = m.then("Reshape", y, m.integers(0, 0, -1)), 2 * hidden
    m.node("Identity", [x], "y")
    rows = batch or "batch"
    return m.finish({"x": [steps, rows, hidden]}, {"y": [steps, rows, 2 * hidden]})
