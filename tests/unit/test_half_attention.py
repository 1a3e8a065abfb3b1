"""Attention written out in bfloat16: one op, at least as near to the exact answer as what it stands for."""

from __future__ import annotations

import cuda_emulator
import numpy as np
import pytest

import irkit
from benchmarks.rtask_times import Prepared
from irkit.bfloat16 import BFLOAT16
from irkit.context import IrkitContext
from irkit.dialects.graph import AttentionOp
from irkit.driver.pipelines.runner import PipelineRunner
from irkit.driver.pipelines.specification import build_pipeline
from irkit.driver.registry import all_passes, register_dialects
from irkit.interp import run_module
from irkit.lower.task_to_numba.emit import emit_module
from irkit.rkernels.cuda.attention_mma import packed_kind
from irkit.rkernels.cuda.product_mma import BF16
from irkit.rkernels.legality import root_of

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


def parts_of_one(tokens: int, heads: int, size: int) -> str:
    """Queries, keys and values are parts of one value, heads in its columns; so is the result."""
    width = heads * size
    x, part = f"tensor<{tokens}x{3 * width}xbf16>", f"tensor<{tokens}x{width}xbf16>"
    apart, moved = (f"tensor<{a}x{b}x{size}xbf16>" for a, b in ((tokens, heads), (heads, tokens)))
    keys, scores = (
        f"tensor<{heads}x{size}x{tokens}xbf16>",
        f"tensor<{heads}x{tokens}x{tokens}xbf16>",
    )
    lines = [f"func.func @main(%x: {x}) -> {part} {{"]
    for n, (name, order, to) in enumerate(
        (("q", "1, 0, 2", moved), ("k", "1, 2, 0", keys), ("v", "1, 0, 2", moved))
    ):
        where = (
            f"{{offsets = array<i64: 0, {n * width}>, sizes = array<i64: {tokens}, {width}>, "
            f"strides = array<i64: 1, 1>}}"
        )
        shape = f"{{shape = array<i64: {tokens}, {heads}, {size}>}}"
        lines += [
            f"  %s{name} = graph.slice %x {where} : ({x}) -> {part}",
            f"  %r{name} = graph.reshape %s{name} {shape} : ({part}) -> {apart}",
            f"  %{name} = graph.transpose %r{name} {{permutation = array<i64: {order}>}} : ({apart}) -> {to}",
        ]
    lines += [
        f"  %0 = graph.matmul %q, %k : ({moved}, {keys}) -> {scores}",
        f"  %1 = graph.softmax %0 {{axis = 2 : i64}} : ({scores}) -> {scores}",
        f"  %2 = graph.matmul %1, %v : ({scores}, {moved}) -> {moved}",
        f"  %3 = graph.transpose %2 {{permutation = array<i64: 1, 0, 2>}} : ({moved}) -> {apart}",
        f"  %4 = graph.reshape %3 {{shape = array<i64: {tokens}, {width}>}} : ({apart}) -> {part}",
        f"  func.return %4 : {part}\n}}",
    ]
    return "\n".join(lines)


def test_a_gpu_copies_its_rows_where_they_lie() -> None:
    tokens, heads, size = 19, 2, 16
    prepared = Prepared.of("test", irkit.parse(parts_of_one(tokens, heads, size)), "h200")
    (op,) = prepared.roperators()
    root = root_of(op)
    assert packed_kind(root) == (BF16, 1)
    prepared.schedule()
    source = emit_module(prepared.module, prepared.ctx.weights, "cuda")
    text = source[source.index("# ---- rOperator @") : source.index("def run_task")]
    x = np.random.default_rng(0).standard_normal((tokens, 3 * heads * size)).astype(BFLOAT16)
    y = np.zeros((tokens, heads * size), BFLOAT16)
    assert op.grid is not None
    cuda_emulator.run_text(
        text.replace("@fused", ""), op.sym_name.data, [x, y], op.tasks, 1, 256, 1 << 18
    )
    q, k, v = x.reshape(tokens, 3, heads, size).transpose(1, 2, 0, 3)
    want = exact(q, k.transpose(0, 2, 1), v, scale=1.0).transpose(1, 0, 2).reshape(y.shape)
    assert np.linalg.norm(y.astype(np.float64) - want) <= 1e-2 * np.linalg.norm(want)


def exact(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, scale: float = 0.375**2) -> np.ndarray:
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    scores = scale * (q @ k)
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
