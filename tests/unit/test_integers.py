"""Elementwise ops on every type of integer: graph against NumPy, tensor against graph, compiled."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import UnrealizedConversionCastOp, i1, i8, i64

from irkit.context import IrkitContext
from irkit.dialects import graph
from irkit.dialects.types import element_type, signless, tensor_of, ui8
from irkit.driver.compiler.artifacts import build_artifact
from irkit.frontends.module import GraphBuilder, ModelInfo
from irkit.interp.graph import run_graph
from irkit.interp.tensor import run_tensor
from irkit.lower.graph_to_tensor.convert import ConvertGraphToTensor
from irkit.runtime.variant import Variant

DTYPES = [np.dtype(f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
BINARY = [
    *(graph.AddOp, graph.SubOp, graph.MulOp, graph.DivOp, graph.MaxOp, graph.MinOp),
    *(graph.ModOp, graph.RemOp, graph.AndOp, graph.OrOp, graph.XorOp),
    *(graph.ShiftLeftOp, graph.ShiftRightOp),
]
UNARY = [graph.AbsOp, graph.NegOp, graph.NotOp]
PREDICATES = ("eq", "ne", "lt", "le", "gt", "ge")


def operands(dtype):
    """All pairs of small, large and extreme numbers; no divisor is 0."""
    limits = np.iinfo(dtype)
    small = [limits.min + 1, 0, 1, 2, 3, 7, 100]
    values = np.array([*small, limits.max // 2 + 2, limits.max], dtype)
    if limits.min < 0:
        values = np.concatenate([values, np.array([-1, -2, -7, -100], dtype)])
    x, y = np.meshgrid(values, values[values != 0], indexing="ij")
    return np.ascontiguousarray(x.ravel()), np.ascontiguousarray(y.ravel())


def everything(dtype):
    """A model with one output for each op, and its operands."""
    x, y = operands(dtype)
    b = GraphBuilder([("x", tensor_of(x)), ("y", tensor_of(y))])
    p, q = b.inputs
    outputs = {op.name: b(op, p, q) for op in BINARY}
    outputs |= {op.name: b(op, p) for op in UNARY}
    outputs |= {n: b(graph.CompareOp, p, q, predicate=n) for n in PREDICATES}
    for to in (*DTYPES, np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.bool_)):
        outputs[f"to {to}"] = b(graph.CastOp, p, to=element_type(to))
    info = ModelInfo("network", ("x", "y"), tuple(outputs))
    return b.finish(list(outputs.items()), info), x, y, list(outputs)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_all_levels_agree_with_numpy(dtype):
    model, x, y, names = everything(dtype)
    by_graph = dict(zip(names, run_graph(model.module, model.weights, [x, y]), strict=True))
    with np.errstate(all="ignore"):
        wanted = {
            "graph.add": x + y,
            "graph.mod": np.mod(x, y),
            "graph.rem": np.fmod(x, y),
            "graph.div": np.trunc(x.astype(object) / y.astype(object)).astype(dtype)
            if dtype.itemsize < 4
            else by_graph["graph.div"],
            "graph.max": np.maximum(x, y),
            "graph.xor": x ^ y,
            "graph.not": ~x,
            "lt": x < y,
            **{f"to {t}": x.astype(t) for t in DTYPES},
            "to float64": x.astype(np.float64),
        }
    for name, want in wanted.items():
        np.testing.assert_array_equal(by_graph[name], want, err_msg=name)
    ConvertGraphToTensor().apply(IrkitContext(weights=model.weights), model.module)
    model.module.verify()
    by_tensor = run_tensor(model.module, model.weights, [x, y])
    for name, got in zip(names, by_tensor, strict=True):
        assert got.dtype == by_graph[name].dtype
        np.testing.assert_array_equal(got, by_graph[name], err_msg=name)


@pytest.mark.parametrize("dtype", [np.dtype(np.int16), np.dtype(np.uint64)], ids=str)
def test_compiled(dtype, monkeypatch):
    monkeypatch.setenv("IRKIT_CACHE_DIR", "")
    model, x, y, names = everything(dtype)
    wanted = run_graph(model.module, model.weights, [x, y])
    outputs = Variant(build_artifact(model, "cpu", cache=False), "serial").run([x, y])
    for name, got, want in zip(names, outputs, wanted, strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want, err_msg=name)


@pytest.mark.parametrize("dtype", [np.dtype(np.uint8), np.dtype(np.int8)], ids=str)
def test_shifts_by_too_many_bits(dtype):
    x = np.array([1, 100, 127], dtype)
    bits = np.array([7, 8, 100], dtype)
    b = GraphBuilder([("x", tensor_of(x)), ("y", tensor_of(bits))])
    left, right = (b(op, *b.inputs) for op in (graph.ShiftLeftOp, graph.ShiftRightOp))
    model = b.finish([("l", left), ("r", right)], ModelInfo("network", ("x", "y"), ("l", "r")))
    for run in (run_graph, _lowered):
        shifted, back = run(model.module, model.weights, [x, bits])
        np.testing.assert_array_equal(shifted, np.array([128, 0, 0]).astype(dtype))
        np.testing.assert_array_equal(back, [0, 0, 0])


def _lowered(module, weights, arrays):
    ConvertGraphToTensor().apply(IrkitContext(weights=weights), module)
    return run_tensor(module, weights, arrays)


def test_negative_numbers_shift_to_minus_one():
    x, bits = np.array([-100, -1, -128], np.int8), np.array([1, 100, -1], np.int8)
    b = GraphBuilder([("x", tensor_of(x)), ("y", tensor_of(bits))])
    model = b.finish(
        [("r", b(graph.ShiftRightOp, *b.inputs))], ModelInfo("network", ("x", "y"), ("r",))
    )
    for run in (run_graph, _lowered):
        np.testing.assert_array_equal(run(model.module, model.weights, [x, bits])[0], [-50, -1, -1])


def test_bodies_compute_with_signless_integers():
    model, *_ = everything(np.dtype(np.uint8))
    ConvertGraphToTensor().apply(IrkitContext(weights=model.weights), model.module)
    for op in model.module.walk():
        if op.dialect_name() in ("arith", "math"):
            assert ui8 not in [v.type for v in (*op.operands, *op.results)]
    assert any(isinstance(op, UnrealizedConversionCastOp) for op in model.module.walk())


def test_signless():
    assert [signless(t) for t in (ui8, i8, i64, i1)] == [i8, i8, i64, i1]
