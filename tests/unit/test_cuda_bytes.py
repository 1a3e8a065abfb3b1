"""Products of bytes on a GPU, thread by thread: every rKernel against the interpreter, bit by bit."""

from __future__ import annotations

from typing import Any

import cuda_emulator
import numpy as np
import pytest
from test_byte_products import PAIRS, bytes_of, convolution
from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, StringAttr, i64

import irkit
from irkit.context import IrkitContext
from irkit.dialects.task import ROperatorOp
from irkit.dialects.types import int_array, numpy_dtype, tensor_type
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.interp.tensor import evaluate_block
from irkit.lower.task_to_numba.emit import print_roperator
from irkit.lower.task_to_numba.program import describe
from irkit.passes.graph.quantise_products import QuantiseProducts
from irkit.rkernels import registry
from irkit.rkernels.legality import root_of

ALL = [k for k in registry.registered("cuda") if k.family == "integer_product"]
SMALL = [k for k in ALL if k.variant in ("mma32x32", "mma64x64", "dots")]


def product(m: int, k: int, n: int, kinds: tuple[str, str], by_k: bool) -> str:
    """x times w, of which w lies by columns or by terms; a requantisation behind."""
    a, b = kinds
    w = f"{n}x{k}" if by_k else f"{k}x{n}"
    y = f"tensor<{m}x{n}x"
    return f"""
func.func @main(%x: tensor<{m}x{k}x{a}>, %w: tensor<{w}x{b}>) -> ({y}i32>, {y}ui8>) {{
  %0 = graph.cast %x {{to = i32}} : (tensor<{m}x{k}x{a}>) -> tensor<{m}x{k}xi32>
  %1 = graph.cast %w {{to = i32}} : (tensor<{w}x{b}>) -> tensor<{w}xi32>
  %2 = graph.gemm %0, %1 {{trans_a = false, trans_b = {str(by_k).lower()},
    alpha = 1.0 : f64, beta = 1.0 : f64}}
    : (tensor<{m}x{k}xi32>, tensor<{w}xi32>) -> {y}i32>
  %3 = graph.cast %2 {{to = f32}} : ({y}i32>) -> {y}f32>
  %s = arith.constant dense<{0.01 / k**0.5}> : tensor<f32>
  %4 = graph.mul %3, %s : ({y}f32>, tensor<f32>) -> {y}f32>
  %5 = graph.round %4 : ({y}f32>) -> {y}f32>
  %6 = graph.clip %5 {{min = 0.0 : f64, max = 255.0 : f64}} : ({y}f32>) -> {y}f32>
  %7 = graph.cast %6 {{to = ui8}} : ({y}f32>) -> {y}ui8>
  func.return %2, %7 : {y}i32>, {y}ui8>
}}
"""


def roperators(text: str) -> tuple[Any, Any, list[ROperatorOp]]:
    """The scheduled program of a GPU, and its rOperators that are products of integers."""
    module, ctx = irkit.parse(text), IrkitContext()
    register_dialects(ctx)
    QuantiseProducts().apply(ctx, module)
    for level in ("graph", "tensor", "task", "schedule"):
        run_level(ctx, module, level, "h200")
    found = [op for op in module.ops if isinstance(op, ROperatorOp)]
    return module, ctx, found


def emulated(
    op: ROperatorOp, kernel: Any, program: Any, weights: Any, inputs: list[Any], grid: list[int]
) -> None:
    root = root_of(op)
    literals = kernel.literals(root)
    op.rkernel, op.fastmath = StringAttr(kernel.name), kernel.fastmath
    op.parameters = DictionaryAttr({k: IntegerAttr(v, i64) for k, v in literals.items()})
    op.scratch = IntegerAttr(kernel.scratch(root, literals), i64)
    op.grid = int_array(grid)
    binding, text = print_roperator(op, program, "cuda")
    block = op.body.block
    want = evaluate_block(block, dict(zip(block.args, inputs, strict=True)), weights)
    got = [np.full(w.shape, 7, w.dtype) for w in want]
    cuda_emulator.run_text(
        text,
        binding.symbol,
        [*inputs, *got],
        int(np.prod(grid)),
        1,
        program.threads,
        binding.scratch_bytes,
    )
    for y, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(y, w, err_msg=kernel.name)


def operand(t: Any, rng: Any) -> Any:
    dtype = numpy_dtype(t.element_type)
    if dtype.itemsize == 1:
        return bytes_of(rng, "i8" if dtype == np.int8 else "ui8", *t.get_shape())
    return rng.integers(-99, 99, t.get_shape()).astype(dtype)


def check(text: str, seed: int, vectors: bool, cut: int = 1) -> set[str]:
    """Every small rKernel that is legal computes what the body means; returns their names."""
    module, ctx, found = roperators(text)
    program = describe(module, ctx.weights)
    rng, tried = np.random.default_rng(seed), set[str]()
    for op in found:
        root = root_of(op)
        kernels = [k for k in SMALL if k in registry.candidates("cuda", root)]
        inputs = [operand(tensor_type(a), rng) for a in op.body.block.args]
        for kernel in kernels:
            op.vector_bytes = IntegerAttr(16, i64) if vectors else None
            last = next(d for d, size in reversed(list(enumerate(root.parallel))) if size > 1)
            parts = [cut if d == last else 1 for d in range(len(root.parallel))]
            emulated(op, kernel, program, ctx.weights, inputs, parts)
            tried.add(kernel.variant)
    return tried


@pytest.mark.parametrize("kinds", PAIRS)
@pytest.mark.parametrize("by_k", [False, True])
def test_products(kinds: tuple[str, str], by_k: bool) -> None:
    """Of odd sizes, by bytes; of fours, by words, which are turned where columns lie side by side."""
    seed = PAIRS.index(kinds) * 2 + by_k
    for (m, k, n), vectors, cut in (((19, 37, 21), False, 1), ((35, 132, 44), True, 3)):
        assert check(product(m, k, n, kinds, by_k), seed, vectors, cut) >= {"mma32x32", "mma64x64"}


@pytest.mark.parametrize("kinds", PAIRS)
def test_few_rows(kinds: tuple[str, str]) -> None:
    for rows, vectors in ((1, True), (5, False)):
        assert "dots" in check(product(rows, 1072, 13, kinds, True), rows, vectors)


@pytest.mark.parametrize("kinds", PAIRS)
def test_convolutions(kinds: tuple[str, str]) -> None:
    """With zero points of the image outside of it, strides, and corrections behind."""
    for stride in (1, 2):
        text, _, _ = convolution(stride, 7, 20, 9, stride, kinds, "image")
        assert "mma32x32" in check(text, stride, False)


@pytest.mark.parametrize("shape", [(256, 512, 256), (4, 1024, 1024), (64, 256, 3136)])
def test_tensor_cores_are_what_is_chosen(shape: tuple[int, int, int]) -> None:
    for by_k in (False, True)[shape[0] < 8 :]:
        _, _, found = roperators(product(*shape, ("ui8", "i8"), by_k))
        names = {op.rkernel.data for op in found if op.rkernel}
        assert any(name.startswith("integer_product.") for name in names), names
