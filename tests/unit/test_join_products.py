"""`join-products` on transformers: queries, keys and values as one product, against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from onnx import ModelProto
from xdsl.dialects.builtin import ModuleOp

from benchmarks.models import sequence
from irkit.context import IrkitContext
from irkit.dialects.graph import MatmulOp
from irkit.dialects.task import LaunchOp
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.frontends.onnx import import_onnx
from irkit.interp import run_module

onnxruntime = pytest.importorskip("onnxruntime")

LIMIT = 1e-4


def at_level(model: ModelProto, last: str, device: str) -> tuple[ModuleOp, IrkitContext]:
    """The network after the standard passes to a level."""
    imported = import_onnx(model)
    context = IrkitContext(weights=imported.weights)
    register_dialects(context)
    for level in ("graph", "tensor", "task"):
        run_level(context, imported.module, level, device)
        if level == last:
            break
    return imported.module, context


@settings(max_examples=8, deadline=None, derandomize=True, phases=[Phase.generate])
@given(
    st.sampled_from([None, 1, 2]),
    st.integers(1, 9),
    st.sampled_from([(4, 1), (6, 2), (8, 4)]),
    st.booleans(),
)
def test_every_level_computes_what_onnx_runtime_does(
    rows: int | None, tokens: int, sizes: tuple[int, int], causal: bool
) -> None:
    width, heads = sizes
    if causal:
        model = sequence.gpt(rows, 1, tokens, width, heads, words=11)
        x = np.random.default_rng(0).integers(0, 11, (rows or 3, tokens))
    else:
        model = sequence.encoder(rows, 1, tokens, width, heads)
        x = np.random.default_rng(0).standard_normal((rows or 3, tokens, width)).astype(np.float32)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (want,) = session.run(None, {session.get_inputs()[0].name: x})
    for level in ("graph", "tensor", "task"):
        module, context = at_level(model, level, "h200")
        (got,) = run_module(module, context.weights, [x])
        np.testing.assert_allclose(got, want, rtol=LIMIT, atol=LIMIT)


@pytest.mark.parametrize(("device", "products"), [("h200", 4), ("cpu1", 6)])
@pytest.mark.parametrize("rows", [None, 1, 3])
def test_a_block_has_one_product_for_three(device: str, products: int, rows: int | None) -> None:
    module, _ = at_level(sequence.encoder(rows, 1, 5, 8, 2), "graph", device)
    assert sum(isinstance(op, MatmulOp) for op in module.walk()) == products


def test_attention_reads_the_product_where_it_lies() -> None:
    """No launch copies a part: three products, attention, two normalisations and one product before."""
    module, _ = at_level(sequence.encoder(1, 1, 64, 64, 2), "task", "h200")
    assert sum(isinstance(op, LaunchOp) for op in module.walk()) == 7
