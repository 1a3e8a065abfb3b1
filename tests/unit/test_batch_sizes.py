"""Contractions and reductions over the batch: a program for each size, on every level and both targets."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from onnx_nodes import floats, model, node

import irkit
from irkit.context import IrkitContext
from irkit.dialects.types import DYNAMIC
from irkit.driver.compiler.artifacts import build_artifact
from irkit.driver.compiler.batch import SizedModel, read_for_batch
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.interp import LEVELS, run_module
from irkit.runtime.sized import SizedVariant

D = str(DYNAMIC)
X, Y = "tensor<?x4xf32>", "tensor<?x3xf32>"


def exp(x):
    power = np.exp(x - x.max(0))
    return power / power.sum(0)


OVER_THE_BATCH = {
    "gradient": (
        f"%t = graph.transpose %x {{permutation = array<i64: 1, 0>}} : ({X}) -> tensor<4x?xf32>\n"
        f"%0 = graph.matmul %t, %y : (tensor<4x?xf32>, {Y}) -> tensor<4x3xf32>",
        "tensor<4x3xf32>",
        lambda x, y: x.T @ y,
    ),
    "gradient by gemm": (
        "%0 = graph.gemm %x, %y {trans_a = true, trans_b = false, alpha = 2.0 : f64, beta = 1.0 : f64}"
        f" : ({X}, {Y}) -> tensor<4x3xf32>",
        "tensor<4x3xf32>",
        lambda x, y: 2 * x.T @ y,
    ),
    "similarity": (
        "%0 = graph.gemm %x, %x {trans_a = false, trans_b = true, alpha = 1.0 : f64, beta = 1.0 : f64}"
        f" : ({X}, {X}) -> tensor<?x?xf32>\n"
        '%1 = graph.reduce %0 {kind = "max", axes = array<i64: 0, 1>, keepdims = false}'
        " : (tensor<?x?xf32>) -> tensor<f32>",
        "tensor<f32>",
        lambda x, y: (x @ x.T).max(),
    ),
    "gradient of a bias": (
        f'%0 = graph.reduce %y {{kind = "sum", axes = array<i64: 0>, keepdims = false}}'
        f' : ({Y}) -> tensor<3xf32>',
        "tensor<3xf32>",
        lambda x, y: y.sum(0),
    ),
    "mean": (
        f'%0 = graph.reduce %y {{kind = "mean", axes = array<i64: 0, 1>, keepdims = false}}'
        f' : ({Y}) -> tensor<f32>',
        "tensor<f32>",
        lambda x, y: y.mean(),
    ),
    "batch norm in training": (
        f'%m = graph.reduce %x {{kind = "mean", axes = array<i64: 0>, keepdims = true}}'
        f' : ({X}) -> tensor<1x4xf32>\n'
        f"%c = graph.sub %x, %m : ({X}, tensor<1x4xf32>) -> {X}\n"
        f"%q = graph.mul %c, %c : ({X}, {X}) -> {X}\n"
        f'%v = graph.reduce %q {{kind = "mean", axes = array<i64: 0>, keepdims = true}}'
        f' : ({X}) -> tensor<1x4xf32>\n'
        "%s = graph.sqrt %v : (tensor<1x4xf32>) -> tensor<1x4xf32>\n"
        "%e = arith.constant dense<1.0> : tensor<f32>\n"
        "%r = graph.add %s, %e : (tensor<1x4xf32>, tensor<f32>) -> tensor<1x4xf32>\n"
        f"%0 = graph.div %c, %r : ({X}, tensor<1x4xf32>) -> {X}",
        X,
        lambda x, y: (x - x.mean(0)) / (x.std(0) + 1),
    ),
    "softmax": (
        f"%0 = graph.softmax %y {{axis = 0 : i64}} : ({Y}) -> {Y}",
        Y,
        lambda x, y: exp(y),
    ),
    "argmax": (
        f"%0 = graph.argmax %x {{axis = 0 : i64, keepdims = false}} : ({X}) -> tensor<4xi64>",
        "tensor<4xi64>",
        lambda x, y: x.argmax(0),
    ),
}  # fmt: skip


def module(name):
    body, result, _ = OVER_THE_BATCH[name]
    last = body.rsplit("\n", 1)[-1].split(" =")[0]
    return irkit.parse(
        f"func.func @main(%x: {X}, %y: {Y}) -> {result} {{\n{body}\nfunc.return {last} : {result}\n}}"
    )


@pytest.mark.parametrize("name", OVER_THE_BATCH)
def test_every_level_and_target(name):
    """A size at the four levels for the CPU's plan, compiled for it, and a cubin's schedule interpreted."""
    wanted = OVER_THE_BATCH[name][2]
    sized = read_for_batch(module(name), "float32", None, {})
    assert isinstance(sized, SizedModel)
    for rows in (1, 6):
        x, y = floats(rows, 4), floats(rows, 3, seed=5)
        for device in ("test4", "h200"):
            imported = sized.at(rows)
            ctx = IrkitContext(weights=imported.weights)
            register_dialects(ctx)
            for level in LEVELS[1:]:
                run_level(ctx, imported.module, level, device)
                (got,) = run_module(imported.module, imported.weights, [x, y], level)
                np.testing.assert_allclose(got, wanted(x, y), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", OVER_THE_BATCH)
def test_compiled_for_the_sizes_that_come(name):
    program = irkit.compile(module(name), target="cpu")
    for rows in (1, 2, 7, 2):
        x, y = floats(rows, 4), floats(rows, 3, seed=5)
        np.testing.assert_allclose(
            program(x, y), OVER_THE_BATCH[name][2](x, y), rtol=2e-5, atol=2e-5
        )
    assert sorted(program.report()["batch"]["sizes"]) == [1, 2, 7]


def test_a_cubin_of_a_size():
    """All of them in one program for a GPU; none is needed to compile it."""
    pytest.importorskip("numba_cuda")
    x = floats(6, 4)
    nodes = [
        node("Transpose", "x", "t"),
        node("MatMul", "t x", "g"),
        node("ReduceSum", "x axis", "s", keepdims=0),
        node("Softmax", "x", "p", axis=0),
        node("ArgMax", "x", "a", axis=0, keepdims=0),
    ]
    proto = model(nodes, {"x": x}, {"axis": np.array([0])}, ("g", "s", "p", "a"), batch=True)
    sized = read_for_batch(proto, "float32", None, {})
    assert isinstance(sized, SizedModel)
    artifact = build_artifact(sized.at(6), "cuda", cache=False)
    assert artifact.cubin[:4] == b"\x7fELF"


def mixing(rows=None):
    return irkit.compile(module("softmax"), target="cpu", batch=rows)


REASON = r"'graph.softmax': it works along dimension 0, which is the batch"


def test_what_needs_one_size_says_so(tmp_path):
    program = mixing()
    assert program.report()["batch"]["sizes"] == []
    assert program.target == "cpu"
    for ask in (
        lambda: program.save(tmp_path / "p.irkit"),
        lambda: program.source,
        lambda: program.ir(),
        lambda: program.timelines(),
    ):
        with pytest.raises(irkit.UnsupportedError, match=REASON) as caught:
            ask()
        assert "irkit.compile(..., batch=N)" in str(caught.value)
    program(floats(3, 4), floats(3, 3))
    assert "tensor<3x3xf32>" in program.ir("graph")
    assert program.source


def test_one_size_that_is_named(tmp_path):
    program, x, y = mixing(5), floats(5, 4), floats(5, 3)
    assert program.report()["batch"] == "fixed"
    program.save(tmp_path / "p.irkit")
    np.testing.assert_allclose(irkit.load(tmp_path / "p.irkit")(x, y), exp(y), rtol=1e-5)
    with pytest.raises(irkit.InvalidInputError, match="expected shape 5x4"):
        program(floats(4, 4), floats(4, 3))


def test_a_size_is_a_size():
    with pytest.raises(irkit.UnsupportedError, match="batch = 0: it has 1 row or more"):
        mixing(0)
    fixed = irkit.parse(
        "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {func.return %x : tensor<2xf32>}"
    )
    with pytest.raises(
        irkit.UnsupportedError, match="batch = 2: no dimension of the model's inputs is open"
    ):
        irkit.compile(fixed, target="cpu", batch=2)


def test_inputs_are_judged_before_anything_is_compiled():
    program = mixing()
    for given, words in (
        ([floats(3, 4)], "expected 2 inputs"),
        ([floats(3, 4), floats(2, 3)], r"disagree on the number of rows: \[2, 3\]"),
        ([floats(0, 4), floats(0, 3)], "expected 1 or more rows, got 0"),
        ([np.float32(1), floats(2, 3)], "input 'input0': expected 1 dimensions or more"),
    ):
        with pytest.raises(irkit.InvalidInputError, match=words):
            program(*given)
    assert program.report()["batch"]["sizes"] == []
    np.testing.assert_allclose(
        program(floats(2, 4).tolist(), floats(2, 3)), exp(floats(2, 3)), rtol=1e-5
    )


def test_sizes_used_last_are_kept_and_compiled_once():
    found = mixing()._first
    assert isinstance(found, SizedVariant)
    built = []

    def build(rows):
        built.append(rows)
        return found._build(rows)

    kept = SizedVariant(found.model, build, kept=2)
    for rows in (1, 2, 1, 3, 1, 2):
        kept.run([floats(rows, 4), floats(rows, 3)])
    assert built == [1, 2, 3, 2]
    built.clear()
    threads = [
        threading.Thread(target=lambda: kept.run([floats(9, 4), floats(9, 3)])) for _ in range(4)
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert built == [9]


def test_an_onnx_model_that_computes_with_the_size():
    """What no import for every size can say is imported for each."""
    nodes = [
        node("Shape", "x", "s", end=1),
        node("Cast", "s", "f", to=1),
        node("Div", "x f"),
    ]
    program = irkit.compile(model(nodes, {"x": floats(2, 3)}, batch=True), target="cpu")
    for rows in (1, 2, 7):
        np.testing.assert_allclose(program(floats(rows, 3)), floats(rows, 3) / rows, rtol=1e-6)
    (line,) = program.report()["batch"]["rows mix"]
    assert line == "node 'f' (Cast): it computes with the dynamic batch size"


def test_an_onnx_model_that_is_refused_at_every_size():
    proto = model([node("NonZero", "x")], {"x": floats(2, 3)}, batch=True)
    with pytest.raises(irkit.UnsupportedError, match=r"node 'y' \(NonZero\)"):
        irkit.compile(proto, target="cpu")
