"""Recurrent layers over many rows: cells as products and maps, and products whose factors are turned."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import irkit
from benchmarks.models import lstm_stack
from irkit.context import IrkitContext
from irkit.dialects.task import ROperatorOp
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.frontends.onnx import import_onnx
from irkit.interp import run_module
from irkit.passes.task import pack_products
from irkit.passes.task.partition_rtasks import Partition

onnxruntime = pytest.importorskip("onnxruntime")

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def layer(
    kind: str, rows: int | str, inputs: int, units: int, steps: int = 3, dtype: Any = np.float32,
    **attributes: Any,
) -> Any:  # fmt: skip
    """One recurrent layer with biases."""
    rng, wide = np.random.default_rng(units), GATES[kind] * units
    shapes = {"w": (1, wide, inputs), "r": (1, wide, units), "b": (1, 2 * wide)}
    weights = {n: (rng.standard_normal(s) / 4).astype(dtype) for n, s in shapes.items()}
    node = helper.make_node(kind, ["x", *weights], ["y", "h"], hidden_size=units, **attributes)
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", element, (steps, rows, inputs))],
        [helper.make_tensor_value_info(n, element, None) for n in ("y", "h")],
        [numpy_helper.from_array(a, n) for n, a in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def wanted(model: Any, x: Any) -> list[Any]:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": x})


def scheduled(model: Any, device: str) -> tuple[Any, IrkitContext]:
    imported = import_onnx(model)
    context = IrkitContext(weights=imported.weights)
    register_dialects(context)
    for level in ("graph", "tensor", "task", "schedule"):
        run_level(context, imported.module, level, device)
    return imported.module, context


@pytest.mark.parametrize(
    ("kind", "rows", "inputs", "units", "more"),
    [
        ("LSTM", 40, 24, 72, {}),
        ("LSTM", 33, 20, 64, {"direction": "reverse"}),
        ("GRU", 40, 24, 72, {}),
        ("GRU", 37, 19, 65, {"linear_before_reset": 1}),
        ("RNN", 64, 24, 96, {}),
    ],
)
def test_layers_of_many_rows(kind: str, rows: int, inputs: int, units: int, more: Any) -> None:
    model = layer(kind, rows, inputs, units, **more)
    program = irkit.compile(model, target="cpu", device="cpu1")
    x = np.random.default_rng(rows).standard_normal((3, rows, inputs)).astype(np.float32)
    for got, right in zip(program(x), wanted(model, x), strict=True):
        np.testing.assert_allclose(got, right, atol=2e-6)


@pytest.mark.parametrize(
    ("device", "rows", "units"), [("h200", 128, 128), ("h200", 200, 250), ("a100", 256, 192)]
)
def test_many_rows_are_split_on_a_gpu(device: str, rows: int, units: int) -> None:
    """Many multiply-adds a step: a product and a map. At 128 × 128 products are packed where they can be."""
    model = layer("LSTM", rows, 16, units, steps=2)
    module, context = scheduled(model, device)
    assert not re.search(r'rkernel = "(recurrent_cell|cell_rows)\.', str(module))
    x = np.random.default_rng(rows).standard_normal((2, rows, 16)).astype(np.float32)
    found = run_module(module, context.weights, [x])
    for got, right in zip(found, wanted(model, x), strict=True):
        np.testing.assert_allclose(got, right, atol=2e-6)


def test_few_rows_are_cells_at_once() -> None:
    for device in ("cpu1", "h200"):
        module, _ = scheduled(layer("LSTM", 2, 16, 32), device)
        assert re.search(r'rkernel = "(recurrent_cell|cell_rows)\.', str(module))


def test_an_open_batch() -> None:
    """One program for one row and for many."""
    model = layer("LSTM", "n", 24, 72)
    program = irkit.compile(model, target="cpu", device="cpu1")
    for rows in (0, 1, 2, 5, 40):
        x = np.random.default_rng(rows).standard_normal((3, rows, 24)).astype(np.float32)
        for got, right in zip(program(x), wanted(model, x) if rows else [], strict=False):
            np.testing.assert_allclose(got, right, atol=2e-6)
            assert got.shape == right.shape


def test_layers_of_doubles() -> None:
    model = layer("LSTM", 40, 24, 72, dtype=np.float64)
    program = irkit.compile(model, target="cpu", device="cpu1")
    x = np.random.default_rng(0).standard_normal((3, 40, 24))
    for got, right in zip(program(x), ReferenceEvaluator(model).run(None, {"x": x}), strict=True):
        np.testing.assert_allclose(got, right, atol=1e-12)


def test_stacked_layers_of_many_rows() -> None:
    model = lstm_stack(2, 48, 20, 4, 50)
    program = irkit.compile(model, target="cpu", device="cpu2")
    x = np.random.default_rng(1).standard_normal((4, 50, 20)).astype(np.float32)
    for got, right in zip(program(x), wanted(model, x), strict=True):
        np.testing.assert_allclose(got, right, atol=2e-6)


def dense(m: int, k: int, n: int, turned: bool, dtype: Any = np.float32) -> Any:
    """x @ w, the weights terms × columns or turned."""
    w = np.random.default_rng(n).standard_normal((n, k) if turned else (k, n)).astype(dtype)
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w"], ["y"], transB=int(turned))],
        "g",
        [helper.make_tensor_value_info("x", element, (m, k))],
        [helper.make_tensor_value_info("y", element, (m, n))],
        [numpy_helper.from_array(w, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("m", [2, 3, 4, 5, 7, 8, 11, 16, 17])
def test_few_rows_of_dense_layers(m: int, dtype: Any) -> None:
    rng = np.random.default_rng(m)
    k, n = (int(v) for v in rng.integers(1, 150, 2))
    x = rng.standard_normal((m, k)).astype(dtype)
    for turned in (True, False):
        model = dense(m, k, n, turned, dtype)
        w = numpy_helper.to_array(model.graph.initializer[0]).astype(np.float64)
        right = x.astype(np.float64) @ (w.T if turned else w)
        got = irkit.compile(model, target="cpu", device="cpu1")(x)
        np.testing.assert_allclose(got, right, atol=np.finfo(dtype).eps * 40 * (k + 1))


def test_both_layouts_are_read_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that are terms × columns are turned, and read as fast as those that are not."""
    monkeypatch.setattr("irkit.passes.task.pack_factors.blocks_ns", lambda *_: math.inf)
    texts = [
        irkit.compile(dense(4, 256, 1024, turned), target="cpu", device="cpu1", cache=False).ir(
            "schedule"
        )
        for turned in (True, False)
    ]
    for text in texts:
        assert "gemv.wide_units" in text or "gemv.units" in text
        assert "tensor<1024x256xf32>" in text
        assert "tensor<256x1024xf32>" not in text


def test_what_no_rkernel_computes_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where parts of a cell, or a product of a turned factor, could not be computed, nothing is rewritten."""
    own = Partition.fastest_ns

    def fastest(self: Partition, op: ROperatorOp) -> float:
        kinds = str(op.function_type)
        both = ("tensor<512x128xf32>", "tensor<128x128xf32>, tensor<128x512xf32>")
        if any(kind in kinds for kind in both):
            raise irkit.UnsupportedError("no rKernel")
        return own(self, op)

    def at_task(model: Any, device: str) -> str:
        imported = import_onnx(model)
        context = IrkitContext(weights=imported.weights)
        register_dialects(context)
        for level in ("graph", "tensor", "task"):
            run_level(context, imported.module, level, device)
        return str(imported.module)

    monkeypatch.setattr("irkit.passes.task.pack_factors.blocks_ns", lambda *_: math.inf)
    monkeypatch.setattr(Partition, "fastest_ns", fastest)
    monkeypatch.setattr(pack_products, "SMALLEST", 1 << 62)
    assert "@recurrent_cell" in at_task(layer("LSTM", 128, 16, 128, steps=2), "h200")
    assert "tensor<128x512xf32>" in at_task(dense(4, 128, 512, False), "cpu1")
