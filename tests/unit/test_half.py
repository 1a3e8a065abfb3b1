"""Floats of 16 bits: conversions on every value, networks at every level and compiled, refusals."""

from __future__ import annotations

import io
from typing import Any

import cuda_emulator
import numpy as np
import onnxruntime
import pytest
from half_networks import HALVES, NETWORKS, build, draw
from numba import njit

import irkit
from irkit.context import IrkitContext
from irkit.dialects.task import ROperatorOp
from irkit.dialects.types import int_array, numpy_dtype, tensor_type
from irkit.driver.compiler.fastmath import set_fastmath
from irkit.driver.compiler.models import read_model
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.driver.tools.opt import OptTool
from irkit.frontends.module import ImportedModel
from irkit.interp import run_module
from irkit.interp.tensor import evaluate_block
from irkit.lower.task_to_numba.emit import print_roperator
from irkit.lower.task_to_numba.program import describe
from irkit.runtime.artifact import LEVELS
from irkit.runtime.intrinsics.cpu_half import (
    bfloat16p,
    float16p,
    round_bfloat16,
    round_float16,
)

UNIT = {"float16": 2.0**-10, "bfloat16": 2.0**-7}


@njit
def _widen_float16(source, target):
    pointer = float16p(source.ctypes.data)
    for i in range(target.size):
        target[i] = pointer[i]


@njit
def _widen_bfloat16(source, target):
    pointer = bfloat16p(source.ctypes.data)
    for i in range(target.size):
        target[i] = pointer[i]


@njit
def _narrow_float16(source, target, rounded):
    pointer = float16p(target.ctypes.data)
    for i in range(source.size):
        pointer[i] = source[i]
        rounded[i] = round_float16(source[i])


@njit
def _narrow_bfloat16(source, target, rounded):
    pointer = bfloat16p(target.ctypes.data)
    for i in range(source.size):
        pointer[i] = source[i]
        rounded[i] = round_bfloat16(source[i])


WIDEN: dict[str, Any] = {"float16": _widen_float16, "bfloat16": _widen_bfloat16}
NARROW: dict[str, Any] = {"float16": _narrow_float16, "bfloat16": _narrow_bfloat16}


@pytest.mark.parametrize("half", HALVES)
def test_every_value_is_widened_exactly(half: str) -> None:
    words = np.arange(1 << 16, dtype=np.uint16)
    got = np.empty(1 << 16, np.float32)
    WIDEN[half](words, got)
    want = words.view(HALVES[half]).astype(np.float32)
    np.testing.assert_array_equal(
        got.view(np.uint32)[~np.isnan(want)], want.view(np.uint32)[~np.isnan(want)]
    )
    assert np.isnan(got[np.isnan(want)]).all()


def _hard(half: str) -> np.ndarray:
    """float32 of all exponents: random ones, all values of the type, ties between them, and beside those."""
    words = np.arange(1 << 16, dtype=np.uint16).view(HALVES[half]).astype(np.float32)
    known = np.sort(words[np.isfinite(words)])
    ties = ((known[1:].astype(np.float64) + known[:-1]) / 2).astype(np.float32)
    beside = [np.nextafter(ties, np.float32(s)) for s in (np.inf, -np.inf)]
    bits = np.random.default_rng(0).integers(0, 2**32, 300_000, np.uint32).view(np.float32)
    edges = np.array(
        [65504, 65519.996, 65520, 3.4028235e38, 3.39e38, 3.396e38, np.inf, np.nan], np.float32
    )
    return np.concatenate([words, ties, *beside, bits, edges, -edges])


@pytest.mark.parametrize("half", HALVES)
def test_float32_is_rounded_to_nearest_even(half: str) -> None:
    x = _hard(half)
    got, rounded = np.empty(x.size, np.uint16), np.empty(x.size, np.float32)
    NARROW[half](x, got, rounded)
    with np.errstate(all="ignore"):
        want = x.astype(HALVES[half])
    number = ~np.isnan(x)
    np.testing.assert_array_equal(got[number], want.view(np.uint16)[number])
    assert np.isnan(got.view(HALVES[half])[~number].astype(np.float32)).all()
    np.testing.assert_array_equal(rounded, got.view(HALVES[half]).astype(np.float32))


def _lowered(name: str, half: str, device: str, levels: tuple[str, ...] = LEVELS) -> ImportedModel:
    imported = read_model(build(name, half), "float32")
    # The emulator has the C library's functions alone.
    set_fastmath(imported.module, ())
    ctx = IrkitContext(weights=imported.weights)
    register_dialects(ctx)
    for level in levels:
        run_level(ctx, imported.module, level, device)
    return imported


def _close(got: np.ndarray, want: np.ndarray, half: str, units: int) -> None:
    assert got.dtype == HALVES[half]
    got, want = got.astype(np.float64), want.astype(np.float64)
    assert np.abs(got - want).max() <= units * UNIT[half] * max(1.0, np.abs(want).max())


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("name", NETWORKS)
def test_levels_and_programs_agree(name: str, half: str) -> None:
    """The graph's meaning, the interpreters below, the compiled program, and the network in float32."""
    model = build(name, half)
    x = draw(model, half)
    imported = read_model(model, "float32")
    want = run_module(imported.module, imported.weights, [x])[0]
    for end in (2, 3, 4):
        lowered = _lowered(name, half, "cpu2", LEVELS[:end])
        _close(run_module(lowered.module, lowered.weights, [x])[0], want, half, 2)
    program = irkit.compile(model, "cpu", cache=False)
    _close(program(x), want, half, 2)
    wide = onnxruntime.InferenceSession(build(name, half, "float32").SerializeToString())
    _close(program(x), wide.run(None, {"x": x.astype(np.float32)})[0], half, 4)


@pytest.mark.parametrize("name", NETWORKS)
def test_float16_is_as_onnx_runtime_has_it(name: str) -> None:
    model = build(name, "float16")
    x = draw(model, "float16")
    want = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    _close(irkit.compile(model, "cpu", cache=False)(x), want, "float16", 3)


@pytest.mark.parametrize("half", HALVES)
def test_weights_stay_16_bits(half: str) -> None:
    """Those of more than a few thousand elements; smaller ones may be what arithmetic takes."""
    lowered = _lowered("perceptron", half, "cpu2")
    text = str(lowered.module)
    large = [w for name, w in lowered.weights.items() if name in text and w.size > 4096]
    assert [w.dtype for w in large] == [HALVES[half]]


@pytest.mark.parametrize("half", HALVES)
def test_a_saved_program_gives_the_same_bits(half: str, tmp_path: Any) -> None:
    model = build("perceptron", half)
    program = irkit.compile(model, "cpu", cache=False)
    x = draw(model, half, 5)
    program.save(tmp_path / "p.irkit")
    again = irkit.load(tmp_path / "p.irkit")
    for rows in (1, 5):
        np.testing.assert_array_equal(
            again(x[:rows]).view(np.uint16), program(x[:rows]).view(np.uint16)
        )


def test_arrays_of_another_type_are_refused() -> None:
    program = irkit.compile(build("perceptron", "bfloat16"), "cpu", cache=False)
    with pytest.raises(irkit.InvalidInputError, match="expected dtype bfloat16, got float16"):
        program(np.zeros((1, 70), np.float16))
    with pytest.raises(irkit.InvalidInputError, match="expected dtype bfloat16, got float32"):
        program(np.zeros((1, 70), np.float32))


def _operand(type_: Any, random: Any) -> np.ndarray:
    shape = [3 if s < 0 else s for s in type_.get_shape()]
    return (random.standard_normal(shape) * 0.5).astype(numpy_dtype(type_.element_type))


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.parametrize("name", ["perceptron", "recurrent"])
def test_cuda_kernels_compute_their_rOperators(name: str, half: str) -> None:
    """Thread by thread, one rTask each, against the interpreter."""
    lowered = _lowered(name, half, "h200")
    program = describe(lowered.module, lowered.weights)
    random = np.random.default_rng(2)
    for op in [o for o in lowered.module.ops if isinstance(o, ROperatorOp)]:
        assert op.grid is not None
        op.grid = int_array([1] * len(op.grid))
        binding, text = print_roperator(op, program, "cuda")
        block = op.body.block
        arrays = [_operand(tensor_type(a), random) for a in block.args]
        want = evaluate_block(block, dict(zip(block.args, arrays, strict=True)), lowered.weights)
        got = [np.full(w.shape, 7, w.dtype) for w in want]
        cuda_emulator.run_text(text, binding.symbol, [*arrays, *got], 1, 3, program.threads)
        for g, w in zip(got, want, strict=True):
            scale = max(1.0, float(np.abs(w.astype(np.float64)).max()))
            error = np.abs(g.astype(np.float64) - w.astype(np.float64)).max()
            assert error <= (UNIT[half] if w.dtype == HALVES[half] else 1e-5) * scale, text


@pytest.mark.parametrize("half", HALVES)
def test_programs_become_cubins(half: str) -> None:
    pytest.importorskip("numba_cuda")
    program = irkit.compile(build("convolutions", half), "cuda", device="h200", cache=False)
    assert "round_" + half in program.source


@pytest.mark.parametrize("half", ["f16", "bf16"])
@pytest.mark.parametrize("target", ["cpu1", "a100"])
def test_constants_are_results(half: str, target: str) -> None:
    """A launch without operands: what it writes is 16 bits, and nothing is read."""
    text = (
        f"func.func @main() -> tensor<5x{half}> {{\n  %0 = arith.constant dense<2.0> : tensor<5x{half}>\n"
        f"  func.return %0 : tensor<5x{half}>\n}}\n"
    )
    out = io.StringIO()
    assert (
        OptTool(io.StringIO(text), out, out).main(["-", "--to=schedule", f"--device={target}"]) == 0
    )
    assert "task.append" in out.getvalue()
