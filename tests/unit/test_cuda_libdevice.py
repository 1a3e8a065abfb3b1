"""Functions that a GPU takes from libdevice by name: compiled for one, of both types."""

from __future__ import annotations

import re

import numpy as np
import pytest

from irkit.dialects import graph
from irkit.dialects.types import element_type, tensor
from irkit.driver.compiler.artifacts import build_artifact
from irkit.frontends.module import GraphBuilder
from irkit.model_info import ModelInfo

PAIRS = (graph.Atan2Op, graph.CopysignOp, graph.ModOp, graph.RemOp)
SINGLE = (graph.CbrtOp, graph.Exp2Op, graph.Expm1Op, graph.Log10Op, graph.Log2Op)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_gpu_has_each(dtype: str) -> None:
    kind = tensor(element_type(np.dtype(dtype)), (1000,))
    b = GraphBuilder([("x", kind), ("y", kind)])
    x, y = b.inputs
    results = [("fma", b(graph.FmaOp, x, y, x))]
    results += [(op.name, b(op, x, y)) for op in PAIRS] + [(op.name, b(op, x)) for op in SINGLE]
    info = ModelInfo("network", b.names, tuple(name for name, _ in results))
    artifact = build_artifact(b.finish(results, info), "h200", cache=False)
    assert artifact.cubin
    for name in ("math.atan2(", "math.copysign(", "fma(", "fmod(", "cbrt(", "exp2(", "log2("):
        assert re.search(rf"= {re.escape(name)}", artifact.source), name
