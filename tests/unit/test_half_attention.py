"""Attention written out in bfloat16: one op, at least as near to the exact answer as what it stands for."""

from __future__ import annotations

import numpy as np
import pytest

import irkit
from irkit.bfloat16 import BFLOAT16
from irkit.context import IrkitContext
from irkit.dialects.graph import AttentionOp
from irkit.driver.pipelines.runner import PipelineRunner
from irkit.driver.pipelines.specification import build_pipeline
from irkit.driver.registry import all_passes, register_dialects
from irkit.interp import run_module

pytestmark = pytest.mark.skipif(BFLOAT16 is None, reason="ml_dtypes is not installed")


def written_out(heads: int, rows: int, keys: int, size: int, columns: int) -> str:
    """queries, keys and values of bfloat16, as an exporter of PyTorch writes them."""
    q, k, v, s, y = (
        f"tensor<{heads}x{a}x{b}xbf16>"
        for a, b in ((rows, size), (size, keys), (keys, columns), (rows, keys), (rows, columns))
    )
    c = "tensor<bf16>"
    return f"""
func.func @main(%q: {q}, %k: {k}, %v: {v}) -> {y} {{
  %c = arith.constant dense<0.375> : {c}
  %0 = graph.mul %q, %c : ({q}, {c}) -> {q}
  %1 = graph.mul %k, %c : ({k}, {c}) -> {k}
  %2 = graph.matmul %0, %1 : ({q}, {k}) -> {s}
  %3 = graph.softmax %2 {{axis = 2 : i64}} : ({s}) -> {s}
  %4 = graph.matmul %3, %v : ({s}, {v}) -> {y}
  func.return %4 : {y}
}}
"""


def exact(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = 0.375**2 * (q @ k)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize("seed", range(6))
def test_it_is_as_near_as_what_is_written_out(seed: int) -> None:
    random = np.random.default_rng(seed)
    heads, rows, keys, size, columns = (int(random.integers(1, n)) for n in (4, 20, 40, 33, 17))
    text = written_out(heads, rows, keys, size, columns)
    shapes = ((heads, rows, size), (heads, size, keys), (heads, keys, columns))
    arrays = [(3 * random.standard_normal(s)).astype(BFLOAT16) for s in shapes]
    want = exact(*arrays)

    def off(y: np.ndarray) -> float:
        return float(np.linalg.norm(y.astype(np.float64) - want) / np.linalg.norm(want))

    module = irkit.parse(text)
    context = IrkitContext()
    register_dialects(context)
    as_written = off(run_module(module, context.weights, arrays)[0])
    passes = "widen-half,canonicalize,set-precision,recognise-attention,dce"
    PipelineRunner(context).run(module, build_pipeline(passes, all_passes()))
    assert sum(isinstance(op, AttentionOp) for op in module.walk()) == 1
    assert off(run_module(module, context.weights, arrays)[0]) <= max(1.1 * as_written, 4e-3)
    program = irkit.compile(irkit.parse(text), target="cpu", cache=False)
    assert off(program.run(arrays)[0]) <= max(1.1 * as_written, 4e-3)
