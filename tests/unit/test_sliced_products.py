"""Products whose terms the warps of a block share, emulated; and gates' gradients as one such product."""

from __future__ import annotations

from typing import Any

import cuda_emulator
import numpy as np
import pytest
from test_cuda_tiles import CASES, SEEN_BY_TENSOR_CORES, bound, check, scheduled

from irkit.context import IrkitContext
from irkit.dialects.roperator_body import find_root
from irkit.dialects.task import ROperatorOp
from irkit.dialects.types import int_array, tensor_type
from irkit.driver.files.parsing import parse_module
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.rkernels import registry
from irkit.rkernels.cuda import product_mma
from irkit.rkernels.templates import specialise, template_source

# Four warps, which have 16 terms of a stage each.
TILE = {"BM": 16, "BN": 16, "BK": 64, "WM": 16, "WN": 16, "STAGES": 3, "THREADS": 128}


@pytest.mark.parametrize("kind", range(4))
@pytest.mark.parametrize("name", SEEN_BY_TENSOR_CORES)
def test_they_compute_what_onnx_says(name: str, kind: int) -> None:
    tolerance = (1e-5, 1e-2, 5e-2, 1e-2)[kind]
    check(CASES[name], "product.sliced16x16", {**TILE, "KIND": kind}, tolerance)


@pytest.mark.parametrize("name", ["strided", "whole fours", "terms side by side, no fours"])
def test_two_sums_of_each_thread(name: str) -> None:
    check(CASES[name], "product.sliced16x32", {**TILE, "BN": 32, "WN": 32, "KIND": 0})


def kernel_of(op: ROperatorOp, variant: str, tasks: int, parameters: dict[str, int]) -> str:
    """The text of one rKernel, cut in so many rTasks at most."""
    root = find_root(op.body.block)
    rkernel = registry.find("cuda", variant)
    assert rkernel.legal(root)
    assert rkernel.grid is not None
    op.grid = int_array(rkernel.grid(root, tasks))
    binding = bound(op, root)
    given = product_mma.parameters_of({"VECTOR": 1, **parameters}, root)
    names = {**binding.names, **{k: str(v) for k, v in given.items()}}
    body = specialise(template_source(rkernel), rkernel.function, "kernel", names)
    return "\n".join([*binding.functions, *binding.parts.values(), body])


def test_what_cannot_be_split_is_summed_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Infinities, NaN, the largest and the least values are as float32 sums have them, where parts, which the
    emulator does not split, make NaN of everything."""
    monkeypatch.setattr(
        cuda_emulator, "mma_sums", lambda sums, *_: (np.float32(np.nan),) * len(sums)
    )
    text = kernel_of(scheduled(CASES["whole fours"]), "product.sliced16x16", 1, TILE)
    x = np.random.default_rng(0).standard_normal((17, 24)).astype(np.float32)
    w = np.random.default_rng(1).standard_normal((24, 32)).astype(np.float32)
    x[3, 5], x[7, 1], x[9, 2], x[11, 3] = np.inf, -np.inf, np.nan, np.finfo(np.float32).max
    x[13], w[:, 17] = 1e-42, 1e30
    y = np.full((17, 32), 77, np.float32)
    cuda_emulator.run_text(text, "kernel", [x, w, y], 1, 1, 128)
    with np.errstate(all="ignore"):
        want = (x.astype(np.float64) @ w.astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-4)


def gates(rows: int, units: int, turned: bool) -> ROperatorOp:
    """The product of two gates' gradients by recurrent weights, and what the step before makes of it."""
    both, w = 2 * units, f"{units}x{2 * units}" if turned else f"{2 * units}x{units}"
    one, wide, weights = (
        f"tensor<{rows}x{units}xf32>",
        f"tensor<{rows}x{both}xf32>",
        f"tensor<{w}xf32>",
    )
    kind = (
        f"{{trans_a = false, trans_b = {str(turned).lower()}, alpha = 1.0 : f64, beta = 0.0 : f64}}"
    )
    text = f"""func.func @main(%a: {one}, %b: {one}, %w: {weights}, %c: {one}) -> ({one}, {one}) {{
      %1 = graph.tanh %a : ({one}) -> {one}
      %2 = graph.tanh %b : ({one}) -> {one}
      %3 = graph.pad %1 {{low = array<i64: 0, 0>, high = array<i64: 0, {units}>, value = 0.0 : f64}}
        : ({one}) -> {wide}
      %4 = graph.pad %2 {{low = array<i64: 0, {units}>, high = array<i64: 0, 0>, value = 0.0 : f64}}
        : ({one}) -> {wide}
      %5 = graph.add %3, %4 : ({wide}, {wide}) -> {wide}
      %6 = graph.gemm %5, %w {kind} : ({wide}, {weights}) -> {one}
      %7 = graph.mul %6, %c : ({one}, {one}) -> {one}
      %8 = graph.tanh %6 : ({one}) -> {one}
      func.return %7, %8 : {one}, {one}
    }}"""
    ctx = IrkitContext()
    register_dialects(ctx)
    module: Any = parse_module(ctx, text, "gates")
    for level in ("graph", "tensor", "task", "schedule"):
        run_level(ctx, module, level, "h200")
    ops = [op for op in module.ops if isinstance(op, ROperatorOp)]
    (op,) = (o for o in ops if find_root(o.body.block).chain)
    return op


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_gradients_of_gates_are_one_product_with_what_follows(seed: int, turned: bool) -> None:
    """One launch, of sums over both gates: its error against float64 is that of plain float32 sums."""
    random = np.random.default_rng(seed)
    rows, units = int(random.integers(9, 40)), int(random.integers(64, 90))
    op = gates(rows, units, turned)
    assert len(op.terminator.values) == 2
    text = kernel_of(op, "product.sliced16x16", 5, TILE)
    d = random.standard_normal((2, rows, units)).astype(np.float32)
    w = random.standard_normal((units, 2, units)).astype(np.float32)
    c = random.standard_normal((rows, units)).astype(np.float32)
    results = [np.full((rows, units), np.nan, np.float32) for _ in range(2)]
    by_size = {a.size: a for a in (d, w, c)}
    given = [by_size[int(np.prod(tensor_type(a).get_shape()))] for a in op.body.block.args]
    cuda_emulator.run_text(text, "kernel", [*given, *results], op.tasks, 1, 128)
    exact = np.einsum("pmk,npk->mn", d.astype(np.float64), w.astype(np.float64))
    plain = np.zeros((rows, units), np.float32)
    for p in range(2):
        for k in range(units):
            plain += d[p, :, k, None] * w[None, :, p, k]
    error, allowed = abs(results[0] - exact * c).mean(), abs(plain * c - exact * c).mean()
    assert error <= 1.1 * allowed
    np.testing.assert_allclose(results[1], np.tanh(exact), atol=1e-5)


def test_few_results_of_many_terms_are_cheaper_sliced() -> None:
    """A step back of 128 rows and units: 64 tiles are side by side, where tiles of 32x32 are 16."""
    op = gates(128, 128, False)
    assert op.rkernel is not None
    assert op.rkernel.data == "product.sliced16x16"
