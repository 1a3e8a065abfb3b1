"""Recurrent cells that are written out: what the passes make of their products, against ONNX Runtime."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from written_cells import Written, written
from xdsl.dialects.builtin import ModuleOp

import irkit
from irkit.context import IrkitContext
from irkit.dialects.task import LaunchOp
from irkit.dialects.types import tensor_type
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.frontends.onnx import import_onnx
from irkit.interp import run_module

onnxruntime = pytest.importorskip("onnxruntime")

LIMIT = 2e-5


def wanted(what: Written, x: np.ndarray) -> list[np.ndarray]:
    """ONNX Runtime's answer."""
    session = onnxruntime.InferenceSession(
        written(what).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": x})


def at_level(what: Written, last: str, device: str = "cpu2") -> tuple[ModuleOp, IrkitContext]:
    """The network after the standard passes to a level."""
    imported = import_onnx(written(what))
    context = IrkitContext(weights=imported.weights)
    register_dialects(context)
    for level in ("graph", "tensor", "task", "schedule"):
        run_level(context, imported.module, level, device)
        if level == last:
            break
    return imported.module, context


def names(module: ModuleOp) -> Counter[str]:
    return Counter(op.name for op in module.walk())


WRITTEN = st.builds(
    Written,
    rows=st.sampled_from([None, 1, 2, 17]),
    steps=st.integers(1, 5),
    inputs=st.integers(1, 6),
    units=st.integers(1, 5),
    gates=st.integers(2, 5),
    layers=st.integers(1, 2),
    batch_first=st.booleans(),
    reverse=st.booleans(),
    joined=st.booleans(),
    gemm=st.booleans(),
    multiply=st.booleans(),
    summed=st.booleans(),
    seed=st.integers(0, 99),
)


# A failure is told as it was found: each example is some seconds of compiling.
@settings(max_examples=15, deadline=None, derandomize=True, phases=[Phase.generate])
@given(WRITTEN, st.booleans(), st.integers(1, 4))
def test_every_level_computes_what_onnx_runtime_does(
    what: Written, shared: bool, rows: int
) -> None:
    if shared:
        what = Written(**{**what.__dict__, "shared": True, "inputs": what.units})
    x = what.sample(rows)
    want = wanted(what, x)
    for level in ("graph", "tensor", "task"):
        module, context = at_level(what, level)
        for got, known in zip(run_module(module, context.weights, [x]), want, strict=True):
            np.testing.assert_allclose(got, known, rtol=LIMIT, atol=LIMIT)


@pytest.mark.parametrize(
    "what",
    [
        Written(rows=1, layers=2),
        Written(rows=2, gemm=True, joined=True, layers=2, multiply=True),
        Written(rows=1, gemm=True, summed=True, layers=2),
        Written(rows=None, batch_first=True, reverse=True),
    ],
    ids=["one row", "split", "summed", "open batch"],
)
@pytest.mark.parametrize("device", ["cpu1", "cpu2"])
def test_a_program_computes_what_onnx_runtime_does(what: Written, device: str) -> None:
    x = what.sample()
    got = irkit.compile(written(what), device=device)(x)
    for mine, known in zip(got, wanted(what, x), strict=True):
        np.testing.assert_allclose(mine, known, rtol=LIMIT, atol=LIMIT)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("rows", [None, 1, 2])
def test_the_input_half_is_one_product_a_gate(rows: int | None, batch_first: bool) -> None:
    what = Written(rows=rows, batch_first=batch_first, steps=6, gates=3)
    module, _ = at_level(what, "graph")
    # A start that is constant is multiplied at compile time.
    of_state = 3 * (6 if rows is None else 5)
    assert names(module)["graph.matmul"] == 3 + of_state


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("gemm", [False, True])
def test_a_cell_is_one_launch(gemm: bool, joined: bool) -> None:
    what = Written(rows=1, steps=6, gates=4, joined=joined, gemm=gemm)
    module, _ = at_level(what, "task")
    of_input = 1 if joined else 4
    # The first step has no product of the state: two launches of elements.
    assert names(module)["task.launch"] == of_input + 2 + 5


@pytest.mark.parametrize("layers", [1, 2])
def test_a_sum_of_products_that_is_split_is_one_launch_a_product(layers: int) -> None:
    what = Written(rows=1, steps=6, gates=4, gemm=True, summed=True, layers=layers)
    module, _ = at_level(what, "task")
    # Of the first layer the input's products are one; of the second each step's is one, as the state's is. A
    # first step, whose state is constant, is at most three launches of elements.
    assert names(module)["task.launch"] <= 1 + 3 + 5 + (layers - 1) * (6 + 3 + 5)


def test_a_cell_waits_for_the_layer_before_and_no_more() -> None:
    """What comes late, the layer before, is multiplied in the launch that makes the state; the product of the
    state before is there by then."""
    what = Written(rows=1, steps=3, gates=3, inputs=4, units=4, gemm=True, summed=True, layers=2)
    module, _ = at_level(what, "task")
    launches = [op for op in module.walk() if isinstance(op, LaunchOp)]
    bare = [op for op in launches if tensor_type(op.outputs[0]).get_num_dims() == 3]
    assert bare
    for op in bare:
        assert all(isinstance(u.operation, LaunchOp) for u in op.outputs[0].uses)
