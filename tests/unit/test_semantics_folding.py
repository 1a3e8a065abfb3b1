"""Folding and canonicalization change no value, whatever it is: not of zeros, NaN, infinities or limits."""

from __future__ import annotations

import numpy as np
import pytest
from semantics_cases import DTYPES, cases, pool

from irkit.context import IrkitContext
from irkit.dialects import graph
from irkit.dialects.constants import constant, constant_array
from irkit.dialects.types import element_type, tensor_of
from irkit.driver.files.parsing import parse_module
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.frontends.module import GraphBuilder, ModelInfo
from irkit.interp import run_module
from irkit.passes.graph.fold_constants import FoldConstants
from irkit.weights import WeightStore

FLOATS = [d for d in DTYPES if d.kind == "f"]
INTEGERS = [d for d in DTYPES if d.kind in "iu"]


def context(weights):
    ctx = IrkitContext(weights=weights)
    register_dialects(ctx)
    return ctx


def same_bits(got, want, message=""):
    """Equal but for which NaN it is."""
    assert (got.dtype, got.shape) == (want.dtype, want.shape), message
    if want.dtype.name == "bfloat16":
        # NumPy knows no NaN of it.
        got, want = got.astype(np.float32), want.astype(np.float32)
    np.testing.assert_array_equal(got, want, err_msg=message)
    if want.dtype.kind == "f":
        known = ~np.isnan(want)
        signs = np.signbit(want[known])
        np.testing.assert_array_equal(np.signbit(got[known]), signs, err_msg=message)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_constants_are_what_they_were(dtype):
    """Alone and together, in memory and in the text."""
    for array in (*(np.array(v) for v in pool(dtype)), pool(dtype)[:9], pool(dtype)):
        weights = WeightStore()
        op = constant(array, weights)
        got = constant_array(op.result, weights)
        assert got is not None
        same_bits(np.asarray(got), array)
        ctx = context(weights)
        (read,) = parse_module(ctx, str(op), "<constant>").body.block.ops
        got = constant_array(read.results[0], weights)
        assert got is not None
        same_bits(np.asarray(got), array, str(op))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_folded_ops_have_the_values_of_the_interpreter(dtype):
    b, outputs, some = GraphBuilder([("x", tensor_of(np.zeros(1, np.float32)))]), [], []
    for case in cases(dtype):
        operands = [b.constant(a) for a in case.arrays]
        for result in b.ops(case.op, *operands, **case.props):
            outputs.append((f"y{len(outputs)}", result))
            some.append(case)
    names = tuple(name for name, _ in outputs)
    model = b.finish(outputs, ModelInfo("network", b.names, names))
    x = [np.zeros(1, np.float32)]
    want = run_module(model.module, model.weights, x)
    before = sum(isinstance(op, graph.GraphOp) for op in model.module.walk())
    FoldConstants().apply(context(model.weights), model.module)
    model.module.verify()
    after = sum(isinstance(op, graph.GraphOp) for op in model.module.walk())
    assert after < before / 2
    got = run_module(model.module, model.weights, x)
    for case, g, w in zip(some, got, want, strict=True):
        same_bits(g, w, case.name)


def _with(op, value):
    """x op value, and value op x."""
    return [
        (f"x {op.name} {value}", lambda b, x, c: b(op, x, c(value))),
        (f"{value} {op.name} x", lambda b, x, c: b(op, c(value), x)),
    ]


def _chain(first, p, second, q):
    """(x first p) second q."""
    name = f"(x {first.name} {p}) {second.name} {q}"
    return [(name, lambda b, x, c: b(second, b(first, x, c(p)), c(q)))]


def _twice(op):
    """op(op(x)), and x op x."""
    if issubclass(op, graph.elementwise.UnaryOp):
        return [(f"{op.name} twice", lambda b, x, c: b(op, b(op, x)))]
    return [(f"x {op.name} x", lambda b, x, c: b(op, x, x))]


def _casts(*types):
    """x to each of the types in turn."""

    def make(b, x, c):
        for t in types:
            x = b(graph.CastOp, x, to=element_type(np.dtype(t)))
        return x

    return [(f"to {' to '.join(types)}", make)]


ARITHMETIC = (graph.AddOp, graph.SubOp, graph.MulOp, graph.DivOp, graph.MaxOp, graph.MinOp)
COMMON = [
    *(pair for op in (*ARITHMETIC, graph.PowOp) for v in (0, 1, 2) for pair in _with(op, v)),
    *(pair for op in (*ARITHMETIC, graph.NegOp, graph.AbsOp) for pair in _twice(op)),
    *_chain(graph.AddOp, 1, graph.SubOp, 1),
    *_chain(graph.SubOp, 1, graph.AddOp, 1),
    *_chain(graph.MulOp, 3, graph.DivOp, 3),
    *_chain(graph.DivOp, 3, graph.MulOp, 3),
    *_chain(graph.MulOp, 2, graph.MulOp, 3),
    *_chain(graph.MaxOp, 1, graph.MinOp, 0),
    *_casts("int8", "int64"),
    *_casts("float32", "int16"),
    *_casts("bool", "uint8"),
    *_casts("uint8", "int8", "int32"),
    ("x where x == x", lambda b, x, c: b(
        graph.WhereOp, b(graph.CompareOp, x, x, predicate="eq"), x, c(0))),
    ("x where x != x", lambda b, x, c: b(
        graph.WhereOp, b(graph.CompareOp, x, x, predicate="ne"), x, c(0))),
]  # fmt: skip
OF_FLOATS = [
    *(pair for op in ARITHMETIC for v in (-0.0, np.nan, np.inf, 0.5) for pair in _with(op, v)),
    *(pair for v in (-0.0, 0.5, -1.0, np.nan) for pair in _with(graph.PowOp, v)),
    *(_chain(graph.MulOp, 0.0, graph.AddOp, -0.0)),
    *(pair for op in (graph.ReluOp, graph.FloorOp, graph.RoundOp) for pair in _twice(op)),
    *_casts("float16", "float32"),
    *_casts("float64", "float32", "float64"),
    *_casts("int64", "float32"),
]
BITS = (graph.AndOp, graph.OrOp, graph.XorOp)
OF_INTEGERS = [
    *(pair for op in (*BITS, graph.ModOp, graph.RemOp) for v in (0, 1) for pair in _with(op, v)),
    *(pair for op in (*BITS, graph.ModOp, graph.RemOp, graph.NotOp) for pair in _twice(op)),
    *_chain(graph.ShiftLeftOp, 1, graph.ShiftRightOp, 1),
    *_chain(graph.ShiftRightOp, 1, graph.ShiftLeftOp, 1),
    *_chain(graph.ShiftLeftOp, 5, graph.ShiftLeftOp, 5),
]


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
def test_identities_hold_where_they_do(dtype):
    x = pool(dtype)
    b = GraphBuilder([("x", tensor_of(x))])
    some = COMMON + (OF_FLOATS if dtype.kind == "f" else OF_INTEGERS)
    made = [make(b, b.inputs[0], lambda v: b.constant(np.array(v, dtype))) for _, make in some]
    names = tuple(f"y{i}" for i in range(len(some)))
    model = b.finish(list(zip(names, made, strict=True)), ModelInfo("network", ("x",), names))
    want = run_module(model.module, model.weights, [x])
    for level in ("graph", "tensor"):
        run_level(context(model.weights), model.module, level, "cpu4")
        got = run_module(model.module, model.weights, [x])
        for (name, _), g, w in zip(some, got, want, strict=True):
            same_bits(g, w, f"{level}: {name}")
