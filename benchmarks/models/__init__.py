"""Small ONNX networks with seeded random weights, laid out as PyTorch's exporter lays them out.

Used by tests, the demo and the benchmarks; needs NumPy and onnx only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto, numpy_helper

from benchmarks.models.onnx_model import OnnxModel


def mlp(batch: int | None = None, seed: int = 0) -> ModelProto:
    """x[batch, 64] → probabilities y[batch, 10] through layers of 128, 64 and 10.

    No `batch` means a symbolic one.
    """
    m = OnnxModel("mlp", seed)
    width, value = 64, "x"
    for i, units in enumerate((128, 64)):
        w, b = m.weight(f"fc{i}.weight", units, width), m.weight(f"fc{i}.bias", units, scale=0.1)
        value = m.node("Gemm", [value, w, b], f"fc{i}", alpha=1.0, beta=1.0, transB=1)
        value = m.node("Relu", [value], f"relu{i}")
        width = units
    # A linear layer without torch's Gemm fusion, as it is exported for inputs of rank three.
    value = m.node("MatMul", [value, m.weight("head.weight", width, 10)], "head_product")
    value = m.node("Add", [m.weight("head.bias", 10, scale=0.1), value], "head")
    m.node("Softmax", [value], "y", axis=1)
    rows = batch or "batch"
    return m.finish({"x": [rows, 64]}, {"y": [rows, 10]})


def small_cnn(batch: int | None = 1, seed: int = 0) -> ModelProto:
    """x[batch, 3, 16, 16] → probabilities y[batch, 10].

    Conv, BatchNormalization, Relu, MaxPool; two branches joined by Concat; a residual Add;
    GlobalAveragePool, Flatten, Gemm, Softmax. No `batch` means a symbolic one.
    """
    m = OnnxModel("small_cnn", seed)

    def conv(value: str, name: str, inputs: int, outputs: int, kernel: int) -> str:
        w = m.weight(f"{name}.weight", outputs, inputs, kernel, kernel)
        b = m.weight(f"{name}.bias", outputs, scale=0.1)
        pad = kernel // 2
        return m.node(
            "Conv", [value, w, b], name, dilations=[1, 1], group=1,
            kernel_shape=[kernel, kernel], pads=[pad] * 4, strides=[1, 1],
        )  # fmt: skip

    def batch_norm(value: str, name: str, channels: int) -> str:
        scale, bias, mean = (
            m.weight(f"{name}.{part}", channels, scale=0.3) for part in ("scale", "bias", "mean")
        )
        variance = m.random.uniform(0.5, 1.5, channels).astype(np.float32)
        inputs = [value, scale, bias, mean, m.array(f"{name}.var", variance)]
        return m.node("BatchNormalization", inputs, name, epsilon=1e-5, momentum=0.9)

    def relu(value: str) -> str:
        return m.node("Relu", [value], f"{value}_relu")

    stem = relu(batch_norm(conv("x", "conv1", 3, 8, 3), "bn1", 8))
    stem = m.node("MaxPool", [stem], "pool", kernel_shape=[2, 2], strides=[2, 2], pads=[0] * 4)
    left = relu(conv(stem, "branch1", 8, 8, 1))
    right = relu(conv(stem, "branch3", 8, 8, 3))
    joined = m.node("Concat", [left, right], "joined", axis=1)
    deeper = batch_norm(conv(joined, "conv2", 16, 16, 3), "bn2", 16)
    value = relu(m.node("Add", [deeper, joined], "sum"))
    value = m.node("GlobalAveragePool", [value], "gap")
    value = m.node("Flatten", [value], "flat", axis=1)
    w, b = m.weight("fc.weight", 10, 16), m.weight("fc.bias", 10, scale=0.1)
    value = m.node("Gemm", [value, w, b], "fc", alpha=1.0, beta=1.0, transB=1)
    m.node("Softmax", [value], "y", axis=1)
    rows = batch or "batch"
    return m.finish({"x": [rows, 3, 16, 16]}, {"y": [rows, 10]})


def lstm_stack(
    layers: int, hidden: int, inputs: int, steps: int, batch: int = 1,
    *, batch_first: bool = False, seed: int = 0,
) -> ModelProto:  # fmt: skip
    """x[steps, batch, inputs] → y[steps, batch, hidden], and the last states h, c[layers, batch, hidden].

    With `batch_first`, x and y start with batch. The initial states are zeros whose shape is
    computed from x by a small sub-graph.
    """
    m = OnnxModel("lstm_stack", seed)
    order = [1, 0, 2]
    value = m.node("Transpose", ["x"], "x_steps_first", perm=order) if batch_first else "x"
    zeros = _zero_states(m, value, layers, hidden)
    last: dict[str, list[str]] = {"h": [], "c": []}
    for layer in range(layers):
        width = inputs if layer == 0 else hidden
        name = f"lstm{layer}"
        scale = hidden**-0.5
        weights = [
            m.weight(f"{name}.W", 1, 4 * hidden, width, scale=scale),
            m.weight(f"{name}.R", 1, 4 * hidden, hidden, scale=scale),
            m.weight(f"{name}.B", 1, 8 * hidden, scale=0.1),
        ]
        states = [_layer_of(m, zeros, layer, f"{name}_{s}0") for s in "hc"]
        outputs = [f"{name}_Y", f"{name}_Y_h", f"{name}_Y_c"]
        m.node("LSTM", [value, *weights, "", *states], outputs, hidden_size=hidden)
        for state, output in zip("hc", outputs[1:], strict=True):
            last[state].append(output)
        is_last = layer == layers - 1 and not batch_first
        axes = m.array(f"{name}_axes", np.array([1]))
        value = m.node("Squeeze", [outputs[0], axes], "y" if is_last else f"{name}_out")
    if batch_first:
        m.node("Transpose", [value], "y", perm=order)
    for state, values in last.items():
        m.node("Concat", values, state, axis=0)
    rows = [batch, steps] if batch_first else [steps, batch]
    state_shape = [layers, batch, hidden]
    return m.finish(
        {"x": [*rows, inputs]}, {"y": [*rows, hidden], "h": state_shape, "c": state_shape}
    )


def _zero_states(m: OnnxModel, x: str, layers: int, hidden: int) -> str:
    """zeros[layers, batch, hidden], where batch is read from x."""
    batch = m.node("Gather", [m.node("Shape", [x], "x_shape"), m.array("one", np.array(1))], "n")
    parts = [m.array("layers", np.array([layers]))]
    parts.append(m.node("Unsqueeze", [batch, m.array("axis0", np.array([0]))], "n_1d"))
    parts.append(m.array("hidden", np.array([hidden])))
    shape = m.node("Concat", parts, "state_shape", axis=0)
    zero = numpy_helper.from_array(np.zeros(1, np.float32))
    return m.node("ConstantOfShape", [shape], "zero_states", value=zero)


def _layer_of(m: OnnxModel, states: str, layer: int, output: str) -> str:
    """states[layer : layer + 1]"""
    bounds = [m.array(f"{output}_{part}", np.array([layer + part])) for part in (0, 1)]
    axis = m.array(f"{output}_axis", np.array([0]))
    return m.node("Slice", [states, *bounds, axis], output)
