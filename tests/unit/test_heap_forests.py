"""Nodes in 8 bytes: the same trees, and forests for a GPU that give what they gave before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_tree_programs import FEATURES, NUMBERS, forest

from irkit.context import IrkitContext
from irkit.dialects.heap_nodes import heap_nodes, unpacked_heap
from irkit.driver.pipelines.runner import PipelineRunner
from irkit.driver.pipelines.specification import build_pipeline
from irkit.driver.registry import all_passes, register_dialects
from irkit.interp.graph import run_graph
from irkit.interp.tensor import run_tensor
from irkit.lower.graph_to_tensor import forest as lowering
from irkit.passes.tensor import pack_forests

ODD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, 1e-45], np.float32)


@pytest.mark.parametrize("seed", range(10))
def test_the_same_nodes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    depth, trees = int(rng.integers(1, 7)), int(rng.integers(1, 6))
    shape = trees, (1 << depth) - 1
    feature = rng.integers(0, (1 << 31) - 1, shape).astype(np.int32)
    threshold, nan_left = rng.choice(ODD, shape), rng.random(shape) < 0.5
    nodes = heap_nodes(feature, threshold, nan_left)
    assert nodes.dtype == np.int32
    assert nodes.shape == (trees, 1 << depth, 2)
    assert not nodes[:, 0].any()
    found = unpacked_heap(nodes)
    assert (found[0] == feature).all()
    assert found[1].tobytes() == threshold.tobytes()
    assert (found[2] == nan_left).all()
    # The children of slot s, the i-th node for i = s - 1, are in slots 2s and 2s + 1.
    assert (nodes[:, 2::2, 1].view(np.float32) == threshold[:, 1::2])[
        ~np.isnan(threshold[:, 1::2])
    ].all()


# Trees, depth, output columns, whether a leaf has a value for each, comparison, element type.
SHAPES = [
    (1, 0, 1, False, "le", "float32"),
    (7, 3, 1, False, "lt", "float32"),
    (5, 5, 3, True, "le", "float32"),
    (4, 7, 2, False, "lt", "float32"),
    (3, 4, 1, False, "le", "float64"),
]


@pytest.mark.parametrize("deepest", [0, 10])
@pytest.mark.parametrize("shape", SHAPES)
def test_no_value_changes(
    shape: tuple[Any, ...], deepest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of perfect trees, and of those by child pointers that are padded only here."""
    monkeypatch.setattr(lowering, "MAX_PERFECT_DEPTH", deepest)
    monkeypatch.setattr(lowering, "MAX_LEAVES_ASKED", 0)
    monkeypatch.setattr(pack_forests, "MOST_PLACES", 1 << 20)
    imported, rng = forest(SHAPES.index(shape), *shape)
    ctx = IrkitContext(weights=imported.weights)
    register_dialects(ctx)
    x = rng.choice(np.r_[NUMBERS, np.nan], (65, FEATURES)).astype(shape[-1])
    (want,) = run_graph(imported.module, imported.weights, [x])
    text = 'convert-graph-to-tensor,pack-forests{device="h200"}'
    PipelineRunner(ctx).run(imported.module, build_pipeline(text, all_passes()))
    made = {op.name for op in imported.module.walk() if "forest" in op.name}
    packed = "te.packed_forest" if deepest == 0 else "te.perfect_forest"
    assert made == {"te.heap_forest" if shape[-1] == "float32" else packed}
    (got,) = run_tensor(imported.module, ctx.weights, [x])
    assert got.tobytes() == want.tobytes()
