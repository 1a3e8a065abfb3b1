"""Rows of float32 that are scaled and cut into two float16 parts: what packs them, and products of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packed_products import (
    SCALE,
    Case,
    check_as_exact_as_plain_sums,
    pack,
    product,
    roperators,
)
from test_product_packed import two_products

import irkit
from irkit.context import IrkitContext
from irkit.dialects.packed_terms import FORMATS, SCALED, headers_of, is_scaled, packed
from irkit.driver.compiler.models import read_model
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.pipelines.runner import PipelineRunner
from irkit.driver.pipelines.specification import build_pipeline
from irkit.driver.registry import all_passes, register_dialects
from irkit.errors import InvalidModelError
from irkit.interp import run_module
from irkit.passes.task.partition_rtasks import nbytes
from irkit.scaled_rows import EXPONENTS, HEADROOM, KEPT, LOW

MAGNITUDES = {
    "alike": lambda rng, shape: np.ones(shape),
    "wide": lambda rng, shape: np.exp(3 * rng.standard_normal(shape)),
    "wider": lambda rng, shape: np.exp(9 * rng.standard_normal(shape)),
    "rows apart": lambda rng, shape: 10.0 ** rng.integers(-30, 30, (shape[0], 1)),
    "tiny": lambda rng, shape: 10.0 ** rng.integers(-44, -35, (shape[0], 1)),
    "huge": lambda rng, shape: 1e38,
    "few are large": lambda rng, shape: np.where(rng.random(shape) < 0.02, 1e12, 1.0),
}


def drawn(kind: str, rng: Any, shape: tuple[int, int]) -> Any:
    """float32 rows whose magnitudes are near one another or not."""
    with np.errstate(under="ignore"):
        x = rng.standard_normal(shape) * MAGNITUDES[kind](rng, shape)
        return np.clip(x, -3.4e38, 3.4e38).astype(np.float32)


def unscaled(made: Any, rows: int, terms: int) -> Any:
    """The float64 matrix whose packed terms these are."""
    order = np.argsort(FORMATS[SCALED].order(), axis=1)[None, None]
    with np.errstate(invalid="ignore"):
        values = made[:-1, 0].astype(np.float64) + made[:-1, 1].astype(np.float64) / LOW
    tiles = np.take_along_axis(values, order, axis=3).transpose(1, 2, 0, 3)
    factor = headers_of(made)[0][:, None].astype(np.float64)
    return (tiles.reshape(len(factor), -1) * factor)[:rows, :terms]


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(MAGNITUDES)), st.integers(1, 20), st.integers(1, 200), st.booleans(),
    st.integers(0, 99),
)  # fmt: skip
def test_parts_hold_terms_but_for_what_the_bound_says(
    kind: str, rows: int, terms: int, by_k: bool, seed: int
) -> None:
    x = drawn(kind, np.random.default_rng(seed), (rows, terms))
    made = packed(x if by_k else np.ascontiguousarray(x.T), SCALED, terms, by_k)
    factor, bound = (h[:rows, None].astype(np.float64) for h in headers_of(made))
    # What float16 cannot hold is infinite: sums of it are no numbers, and computed otherwise.
    held = np.abs(x / factor) < 65504
    lost = np.where(held, np.abs(unscaled(made, rows, terms) - x.astype(np.float64)), 0)
    small = np.abs(x / factor) < KEPT
    assert (lost <= np.where(small, np.inf, 2.0**-22 * np.abs(x))).all()
    total = (lost / factor * small).sum(axis=1, keepdims=True)
    assert (total * HEADROOM <= np.where(np.isinf(bound), 0, bound * (1 + 1e-5))).all()
    assert (np.isneginf(bound[:, 0]) == ~x.any(axis=1)).all()
    # Powers of two, by which the largest term is brought to the top of float16.
    assert (np.frexp(factor)[0] == 0.5).all()
    most = np.abs(x / factor).max(axis=1)
    shifts = np.log2(factor[:, 0])
    at_ends = (shifts == -EXPONENTS[0]) | (shifts == -EXPONENTS[1])
    assert (at_ends | ((most >= 2.0**14) & (most < 2.0**15))).all()


def test_a_row_without_large_differences_has_no_bound() -> None:
    x = np.random.default_rng(0).uniform(0.5, 1, (8, 64)).astype(np.float32)
    assert (headers_of(packed(x, SCALED, 64, True))[1] == 0).all()


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("tasks", [1, 5])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("kind", sorted(MAGNITUDES))
def test_the_rkernel_packs_as_the_interpreter_does(
    kind: str, transposed: bool, tasks: int, ranks: int
) -> None:
    case = Case(35, 300, 70, transposed, terms=SCALED)
    rng = np.random.default_rng(len(kind))
    ops = roperators(case, SCALE)
    for op in (ops["pack_0"], ops["pack_1"]):
        x = drawn(kind, rng, op.body.block.args[0].type.get_shape())
        x[0], x[5, 3], x[7, 2], x[9, 1] = 0, np.inf, -np.inf, np.nan
        pack(op, x, tasks, ranks)


@pytest.mark.parametrize(
    ("rows", "terms", "by_k"),
    [(70, 100, True), (20, 1100, True), (1030, 64, False), (2060, 64, False), (10, 300, False)],
)
def test_rows_are_seen_in_many_ways(rows: int, terms: int, by_k: bool) -> None:
    """Few abreast or many, at once or one after another, of enough blocks or not."""
    rng = np.random.default_rng(terms)
    ops, form = roperators(Case(8, terms, rows, by_k, terms=SCALED), SCALE), (terms, rows)
    form = form[::-1] if by_k else form
    (op,) = (o for o in ops.values() if o.body.block.args[0].type.get_shape() == form)
    pack(op, drawn("wide", rng, form), 2)


@pytest.mark.parametrize(("tasks", "ranks"), [(1, 1), (2, 8), (3, 1)])
@pytest.mark.parametrize("kind", sorted(MAGNITUDES))
def test_long_rows_are_packed_by_blocks_that_have_them_whole(
    kind: str, tasks: int, ranks: int
) -> None:
    rng, terms = np.random.default_rng(len(kind)), {"tiny": 2100, "wide": 4090}.get(kind, 520)
    (op,) = (
        o
        for o in roperators(Case(19, terms, 8, terms=SCALED), SCALE).values()
        if o.body.block.args[0].type.get_shape() == (19, terms) and len(o.body.block.args) == 1
    )
    x = drawn(kind, rng, (19, terms))
    x[0], x[5, 3], x[7, 2], x[9, 1] = 0, np.inf, -np.inf, np.nan
    pack(op, x, tasks, ranks, "scaled_rows")


@pytest.mark.parametrize("kind", [k for k in sorted(MAGNITUDES) if k not in ("tiny", "huge")])
@pytest.mark.parametrize(
    ("variant", "terms", "ranks"),
    [("64x64", 1500, 1), ("64x64_sliced", 1100, 1), ("64x32_by2", 900, 2)],
)
def test_products_are_as_exact_as_plain_sums(
    variant: str, terms: int, ranks: int, kind: str
) -> None:
    """Of more stages than are in shared memory at once, each error beside the sum of magnitudes."""
    case, rng = Case(20, terms, 36, True, relu=False, terms=SCALED), np.random.default_rng(terms)
    x, w = (drawn(kind, rng, s) for s in case.shapes)
    with np.errstate(over="ignore", invalid="ignore"):
        y = product(case, x, w, 1, variant, ranks)
    check_as_exact_as_plain_sums(y, x, w, kind == "few are large")


def test_large_terms_that_meet_zeros_do_not_hide_the_rest() -> None:
    case, rng = Case(9, 128, 20, True, relu=False, terms=SCALED), np.random.default_rng(1)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in case.shapes)
    x[:, ::2] *= 1e13
    w[:, ::2] = 0
    want = x.astype(np.float64) @ w.astype(np.float64).T
    np.testing.assert_allclose(product(case, x, w), want, rtol=0, atol=1e-5)


def test_sums_of_one_product_are_off_by_what_is_said() -> None:
    """22 bits of each factor count: of a power of two and another one the other's."""
    case, rng = Case(20, 96, 40, True, relu=False, terms=SCALED), np.random.default_rng(2)
    x, w = np.zeros(case.shapes[0], np.float32), drawn("alike", rng, case.shapes[1])
    chosen = rng.integers(0, 96, 20)
    x[np.arange(20), chosen] = np.ldexp(1.0, rng.integers(-30, 30, 20))
    want = x[np.arange(20), chosen][:, None] * w[:, chosen].T
    np.testing.assert_allclose(product(case, x, w), want, rtol=2.0**-23)
    x[np.arange(20), chosen] = rng.standard_normal(20)
    want = x[np.arange(20), chosen][:, None].astype(np.float64) * w[:, chosen].T
    np.testing.assert_allclose(product(case, x, w), want, rtol=4.7e-7)


def prepacked(rows: int, terms: int) -> Any:
    x = f"tensor<{rows}x{terms}xf32>"
    p = "x".join(str(n) for n in FORMATS[SCALED].shape(rows, terms))
    return irkit.parse(
        f"""func.func @main(%x: {x}, %p: tensor<{p}xf16>) -> {x} {{
      %y = te.prepacked %x, %p {{precision = "scaled", terms = 1 : i64, depth = {terms} : i64}}
        : ({x}, tensor<{p}xf16>) -> {x}
      func.return %y : {x}
    }}"""
    )


@pytest.mark.parametrize("kind", sorted(MAGNITUDES))
def test_packed_terms_are_held_to_their_operand(kind: str) -> None:
    x = drawn(kind, np.random.default_rng(4), (12, 100))
    right, module = packed(x, SCALED, 100, True), prepacked(12, 100)
    assert is_scaled(x, right, 100, True)
    np.testing.assert_array_equal(run_module(module, {}, [x, right])[0], x)
    # As a task reads it: some rows and some terms.
    read = np.zeros_like(x)
    read[3:9, 8:80] = x[3:9, 8:80]
    np.testing.assert_array_equal(run_module(module, {}, [read, right])[0], read)
    # A bound that hides what is lost, here or in the other factor.
    unbounded = right.copy()
    headers_of(unbounded)[1][4] = -np.inf
    with pytest.raises(InvalidModelError, match="packed terms are not those of its operand"):
        run_module(module, {}, [x, unbounded])
    row, term = np.unravel_index(np.abs(x).argmax(), x.shape)
    x[row, term] = 0.5
    with pytest.raises(InvalidModelError, match="packed terms are not those of its operand"):
        run_module(module, {}, [x, right])


def test_constants_are_scaled_by_the_pass_and_no_value_changes() -> None:
    weights = np.random.default_rng(5).standard_normal((80, 64)).astype(np.float32)
    imported = read_model(two_products((19, 80), weights), "float32")
    ctx = IrkitContext(weights=imported.weights)
    register_dialects(ctx)
    for level in ("graph", "tensor"):
        run_level(ctx, imported.module, level, "h200")
    x = np.random.default_rng(1).standard_normal((19, 80)).astype(np.float32)
    want = run_module(imported.module, imported.weights, [x])
    PipelineRunner(ctx).run(
        imported.module, build_pipeline(f"form-roperators,{SCALE}", all_passes())
    )
    text = str(imported.module)
    assert text.count("task.launch @pack_") == 2
    assert text.count('precision = "scaled"') == 6
    np.testing.assert_array_equal(run_module(imported.module, imported.weights, [x])[0], want[0])


def test_what_is_read_packed_counts_once() -> None:
    """Bytes of a product: those of the packed terms, not of the operands beside them."""
    case = Case(64, 128, 64, terms=SCALED)
    op = roperators(case, SCALE)["gemm_0"]
    terms = sum(2 * int(np.prod(FORMATS[SCALED].shape(n, 128))) for n in (64, 64))
    assert nbytes(op) == terms + 4 * (64 + 64 * 64)
