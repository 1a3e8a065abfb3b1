"""Layers of some numbers of rows as ONNX models, for `benchmarks.networks`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.models import lstm_stack
from benchmarks.models.onnx_model import OnnxModel
from benchmarks.models.sequence import bidirectional

ROWS = (1, 2, 4, 8, 16, 64)


def dense(operator: str, terms: int, units: int, rows: int) -> Any:
    """x[rows, terms] → y[rows, units]: "Gemm" of weights units × terms and a bias, as PyTorch writes a linear
    layer, or "MatMul" of weights terms × units, as TensorFlow does."""
    m = OnnxModel(f"{operator} {terms}x{units}", 0)
    if operator == "Gemm":
        w, b = m.weight("w", units, terms), m.weight("b", units, scale=0.1)
        m.node("Gemm", ["x", w, b], "y", transB=1)
    else:
        m.node("MatMul", ["x", m.weight("w", terms, units)], "y")
    return m.finish({"x": [rows, terms]}, {"y": [rows, units]})


def lstm(units: int, rows: int) -> Any:
    """20 steps of one layer."""
    return lstm_stack(1, units, 64, 20, rows)


def gru(units: int, rows: int) -> Any:
    """20 steps of one layer, forward and back."""
    return bidirectional("GRU", rows, layers=1, hidden=units, steps=20)


LAYERS: dict[str, Callable[[int], Any]] = {
    "Gemm 256x1024": partial(dense, "Gemm", 256, 1024),
    "Gemm 1024x1024": partial(dense, "Gemm", 1024, 1024),
    "MatMul 256x1024": partial(dense, "MatMul", 256, 1024),
    "MatMul 1024x1024": partial(dense, "MatMul", 1024, 1024),
    "LSTM 64, 20 steps": partial(lstm, 64),
    "LSTM 256, 20 steps": partial(lstm, 256),
    "bidirectional GRU 128, 20 steps": partial(gru, 128),
}
"""By name: models of so many rows."""
