"""Products with matrices of 4-bit integers: in emulation, compiled, at every level, and from ONNX."""

# pyright: reportPrivateUsage=false
from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from cpu_emulator import run as emulate
from hypothesis import given, settings
from hypothesis import strategies as st
from test_onnx_nbits import close, drawn, judged, product, quantised
from test_product import (
    roperators,  # pyright: ignore[reportUnknownVariableType]
)

import irkit
from irkit.dialects.nibbles import WIDTH, in_panels, packed_nibbles, unpacked_matrix
from irkit.dialects.roperator_body import find_root
from irkit.driver.compiler.artifacts import build_artifact
from irkit.frontends.module import ImportedModel, ModelInfo
from irkit.frontends.onnx import import_onnx
from irkit.interp import run_module
from irkit.rkernels import registry
from irkit.rkernels.bind import bind
from irkit.weights import WeightStore

VARIANTS = ["nibble_product.rows", "nibble_product.wide_rows"]


def text(rows: int, depth: int, columns: int, block: int, centred: bool) -> str:
    panels, blocks = -(-columns // WIDTH), -(-depth // block)
    types = [f"tensor<{rows}x{depth}xf32>", f"tensor<{panels}x{depth // 2}x{WIDTH}xui8>"]
    types += [f"tensor<{panels}x{blocks}x{WIDTH}xf32>"] * (1 if centred else 2)
    names = [f"%x{n}" for n in range(len(types))]
    declared = ", ".join(f"{n}: {t}" for n, t in zip(names, types, strict=True))
    result = f"tensor<{rows}x{columns}xf32>"
    return (
        f"func.func @main({declared}) -> {result} {{\n"
        f"  %y = graph.nibble_matmul {', '.join(names)} {{block = {block} : i64, "
        f"columns = {columns} : i64}} : ({', '.join(types)}) -> {result}\n"
        f"  func.return %y : {result}\n}}"
    )


def operands(
    rng: Any, rows: int, depth: int, columns: int, block: int, centred: bool
) -> tuple[list[Any], Any]:
    """Operands of the op, and the matrix that they mean."""
    blocks = -(-depth // block)
    integers = rng.integers(-8, 8, (depth, columns)).astype(np.int8)
    scales = rng.uniform(-1, 1, (blocks, columns)).astype(np.float32)
    zeros = rng.integers(-8, 8, (blocks, columns)).astype(np.float32)
    of_term = np.arange(depth) // block
    centre = integers if centred else integers - zeros[of_term]
    matrix = centre.astype(np.float32) * scales[of_term]
    x = rng.standard_normal((rows, depth)).astype(np.float32)
    found = [x, packed_nibbles(integers), in_panels(scales)]
    return found if centred else [*found, in_panels(zeros)], matrix


SIZES: Any = given(
    st.integers(1, 11), st.integers(1, 40).map(lambda n: 2 * n), st.integers(1, 150),
    st.sampled_from([2, 16, 32, 64]), st.booleans(), st.integers(0, 999),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@SIZES
def test_layouts(rows: int, depth: int, columns: int, block: int, centred: bool, seed: int):
    """What is packed is the same matrix, bit by bit; it is what is multiplied by."""
    given_, matrix = operands(np.random.default_rng(seed), rows, depth, columns, block, centred)
    _, packed, scales, *zeros = given_
    got = unpacked_matrix(packed, scales, zeros[0] if zeros else None, block, columns)
    np.testing.assert_array_equal(got, matrix)
    module = irkit.parse(text(rows, depth, columns, block, centred))
    (y,) = run_module(module, WeightStore(), given_)
    np.testing.assert_allclose(y, given_[0] @ matrix, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=25, deadline=None)
@SIZES
def test_in_emulation(
    variant: str, rows: int, depth: int, columns: int, block: int, centred: bool, seed: int
):
    """It reads and writes nothing beyond its operands and scratch, in parts of the columns too."""
    given_, matrix = operands(np.random.default_rng(seed), rows, depth, columns, block, centred)
    info = ModelInfo("network", ("x0", "x1", "x2", "x3")[: len(given_)], ("y",), source="test")
    source = irkit.parse(text(rows, depth, columns, block, centred))
    (op,) = roperators(ImportedModel(source, WeightStore(), info))
    kernel = registry.find("cpu", variant)
    binding = bind(op, find_root(op.body.block), kernel, 1)
    got = np.full(rows * columns, np.nan, np.float32)
    for task in range(op.tasks):
        emulate(kernel, binding, [*given_, got], task, op.tasks, 1)
    np.testing.assert_allclose(got.reshape(rows, -1), given_[0] @ matrix, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize(
    "sizes", [(1, 66, 64, 16), (3, 96, 200, 32), (6, 40, 130, 64), (9, 1100, 70, 32)]
)
def test_compiled(
    variant: str, centred: bool, sizes: tuple[int, int, int, int], monkeypatch: pytest.MonkeyPatch
):
    """By each rKernel, on two vEUs: one row, whole tiles and parts of them, several parts of the depth."""
    kernel = registry.find("cpu", variant)
    monkeypatch.setitem(registry._REGISTERED, ("cpu", "nibble_product"), [kernel])
    given_, matrix = operands(np.random.default_rng(3), *sizes, centred)
    program = irkit.compile(irkit.parse(text(*sizes, centred)), device="cpu2", cache=False)
    assert f'"{variant}"' in program.ir()
    (got,) = program.run(given_)
    np.testing.assert_allclose(got, given_[0] @ matrix, rtol=1e-5, atol=1e-4 * sizes[1] ** 0.5)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("kind", ["float32", "float16"])
@pytest.mark.parametrize("lead", [(1,), (2, 3), (7,)])
def test_weights_of_a_network_stay_packed(lead: Any, kind: str, symmetric: bool):
    """What ONNX Runtime's quantiser wrote is read in 4 bits, where few rows are multiplied."""
    rng = np.random.default_rng(4)
    x, w = drawn(rng, kind, *lead, 250), drawn(rng, kind, 250, 333)
    weights = quantised(w, 4, 32, symmetric) | {"c": drawn(rng, kind, 333)}
    proto = product(x, weights, K=250, N=333, bits=4, block_size=32)
    want = judged(proto, x)
    program = irkit.compile(proto, device="cpu2")
    assert "te.nibble_matmul" in program.ir("task")
    assert "tensor<250x333x" not in program.ir("task")
    magnitude = np.abs(x.astype(float)) @ np.abs(w.astype(float)) * 2 + 4
    close(program.run([x])[0], want, magnitude)


def test_nan_and_infinity_go_where_they_go_in_floats():
    rng = np.random.default_rng(5)
    given_, matrix = operands(rng, 3, 128, 640, 32, True)
    x = given_[0]
    x[0, 5], x[1, 7], x[1, 99] = np.nan, np.inf, -np.inf
    program = irkit.compile(irkit.parse(text(3, 128, 640, 32, True)), device="cpu1")
    (got,) = program.run(given_)
    with np.errstate(invalid="ignore"):
        want = x @ matrix
    assert np.isnan(got[0]).all()
    np.testing.assert_array_equal(np.isnan(got[1]), np.isnan(want[1]))
    np.testing.assert_allclose(got[2], want[2], rtol=1e-5, atol=1e-4)


def network(batch: Any = None) -> tuple[Any, Any]:
    rng = np.random.default_rng(6)
    x, w = drawn(rng, "float32", 2, 256), drawn(rng, "float32", 256, 320)
    proto = product(x, quantised(w, 4, 32, False), K=256, N=320, bits=4, block_size=32)
    judged(proto, x)
    if batch is not None:
        for value in (proto.graph.input[0], proto.graph.output[0]):
            value.type.tensor_type.shape.dim[0].Clear()
            value.type.tensor_type.shape.dim[0].dim_param = batch
    return proto, x


def test_floats_of_an_open_batch_and_on_a_gpu():
    proto, x = network("n")
    program = irkit.compile(proto, device="cpu2")
    assert "nibble" not in program.ir("task")
    fixed = irkit.compile(proto, device="cpu2", batch=2)
    assert "nibble" in fixed.ir("task")
    np.testing.assert_allclose(program.run([x])[0], fixed.run([x])[0], rtol=1e-5, atol=1e-4)
    artifact = build_artifact(import_onnx(network()[0]), "h200", cache=False)
    assert "nibble" not in artifact.ir["task"]
    assert artifact.cubin[:4] == b"\x7fELF"


def test_gradients_by_what_is_multiplied():
    """Those of the product of floats that it is."""
    proto, x = network()
    function = irkit.network(proto, [])

    def total(v: Any) -> Any:
        return np.sum(function({}, v))

    slope: Any = irkit.grad(total)
    every = irkit.compile(proto, device="cpu1").run([np.eye(256, dtype=np.float32)[:2]])[0]
    got = slope(x)
    assert got.shape == x.shape
    np.testing.assert_allclose(got[0, :2], every.sum(1), rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(got[0], got[1])


def test_every_byte_is_two_integers():
    """All 256, against their definition."""
    both = np.array(list(itertools.product(range(-8, 8), repeat=2)))
    integers = np.zeros((2, 256), np.int8)
    integers[:] = both.T
    packed = packed_nibbles(integers)
    want = (both[:, 0] & 15) | ((both[:, 1] & 15) << 4)
    np.testing.assert_array_equal(packed.transpose(1, 0, 2).reshape(-1), want)
