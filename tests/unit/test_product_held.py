"""Products of which warp groups hold one factor in registers (`product.held_*`): emulated, and as machine
code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from packed_products import (
    Case,
    check_as_exact_as_plain_sums,
    pack,
    roperators,
    run,
    shape,
)
from test_cuda_tiles import model, run_in_groups
from test_scaled_rows import MAGNITUDES, drawn

from benchmarks.products import Case as Product
from benchmarks.products import Job, program
from irkit.rkernels import registry
from irkit.rkernels.cuda import product_held
from irkit.rkernels.legality import root_of
from irkit.runtime.cuda import compiling, ptx
from irkit.runtime.cuda.facts import read_facts

TOLERANCE = {"float32": 1e-6, "tf32": 2e-3}


def product(
    case: Case,
    x: Any,
    w: Any,
    variant: str,
    tasks: Any = 1,
    ranks: int = 1,
    only: int | None = None,
    vector: int = 1,
) -> Any:
    """What an rKernel makes of a case, of packed parts of what is shared, if it takes such."""
    rows, known = "held_rows" in variant, {a.shape: a for a in (x, w, np.zeros(case.n, np.float32))}
    number = "second" if rows else "first"
    terms = f' terms="{case.terms}"' if case.terms else ""
    text = f'pack-products{{device="h200" always=true only="{number}"{terms}}}'
    ops = roperators(case, *([text] if case.precision == "float32" else []))
    for op in ops.values():
        if op.sym_name.data.startswith("pack"):
            made = pack(op, known[shape(op.body.block.args[0])], 1)
            known[made.shape] = made
    op, y = ops["gemm_0"], np.full((case.m, case.n), np.nan, np.float32)

    def few_stages(root: Any) -> Any:
        """Which are filled again and again."""
        literals = registry.find("cuda", f"product.{variant}").literals(root)
        return {**literals, "STAGES": 3 * literals["SLICES"], "VECTOR": vector}

    arrays = [known[shape(a)] for a in op.body.block.args]
    run(op, f"product.{variant}", few_stages, [*arrays, y], tasks, only, ranks)
    return y


@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize(
    ("variant", "case"),
    [
        ("held_columns32x64", Case(70, 132, 68)),
        ("held_columns16x64", Case(19, 72, 132)),
        ("held_columns64x128", Case(20, 36, 140)),
        ("held_columns32x64", Case(35, 100, 19, True)),
        ("held_rows64x32", Case(19, 100, 36)),
        ("held_rows64x16", Case(9, 164, 70, True)),
        ("held_columns32x64", Case(70, 132, 68, terms="scaled")),
        ("held_columns64x128", Case(20, 72, 140, terms="scaled")),
        ("held_columns16x64", Case(13, 324, 19, True, terms="scaled")),
        ("held_columns64x128", Case(30, 100, 68, True, terms="scaled")),
        ("held_rows64x32", Case(19, 100, 36, terms="scaled")),
        ("held_rows64x16", Case(9, 264, 70, True, terms="scaled")),
        ("held_columns32x64", Case(40, 100, 68, precision="tf32")),
        ("held_columns64x128", Case(70, 68, 132, precision="tf32")),
        ("held_columns32x64", Case(40, 100, 67, True, "tf32")),
        ("held_rows64x32", Case(19, 100, 69, True, "tf32")),
        ("held_rows128x64", Case(67, 68, 129, True, "tf32")),
    ],
    ids=str,
)  # fmt: skip
def test_one_factor_is_held_in_registers(variant: str, case: Case, tasks: int) -> None:
    x, w = case.arrays(tasks)
    y, want = product(case, x, w, variant, tasks).astype(np.float64), case.want(x, w)
    assert np.abs(y - want).max() <= TOLERANCE[case.precision] * np.abs(want).max()


@pytest.mark.parametrize(
    ("variant", "case", "ranks"),
    [
        # One block has more stages than the others.
        ("held_columns32x64_by2", Case(20, 160, 40), 2),
        ("held_rows64x32_by2", Case(20, 164, 40, True), 2),
        ("held_columns64x64_by4", Case(20, 292, 40, True), 4),
        ("held_columns64x128_by2", Case(20, 100, 132), 2),
        ("held_columns64x64_by2", Case(20, 160, 40, precision="tf32"), 2),
        ("held_columns64x64_by2", Case(20, 332, 40, terms="scaled"), 2),
        ("held_rows128x64_by2", Case(20, 196, 40, True, terms="scaled"), 2),
        # In the persistent kernel a block has a tile of its own.
        ("held_columns64x64_by4", Case(20, 292, 40), 1),
    ],
    ids=str,
)
def test_blocks_of_a_cluster_share_a_tile(variant: str, case: Case, ranks: int) -> None:
    x, w = case.arrays(8)
    y, want = product(case, x, w, variant, 1, ranks).astype(np.float64), case.want(x, w)
    assert np.abs(y - want).max() <= TOLERANCE[case.precision] * np.abs(want).max()


@pytest.mark.parametrize(
    ("variant", "ranks", "terms"),
    [
        ("held_columns32x64", 1, ""),
        ("held_rows64x32", 1, ""),
        ("held_columns64x128", 1, ""),
        ("held_columns32x64_by2", 2, ""),
        ("held_columns64x128_by2", 2, ""),
        ("held_columns32x64", 1, "scaled"),
        ("held_rows128x64", 1, "scaled"),
        ("held_rows64x32_by2", 2, "scaled"),
        ("held_columns64x128_by2", 2, "scaled"),
    ],
)
def test_what_parts_do_not_hold_is_summed_from_the_operands(
    variant: str, ranks: int, terms: str
) -> None:
    case = Case(24, 280 if terms else 140, 32, terms=terms)
    x, w = case.arrays(0)
    x[3, 5], x[7, 1], x[9, 135], x[11, 3] = np.inf, -np.inf, np.nan, np.finfo(np.float32).max
    x[13], w[:, 17] = 1e-42, 1e30
    y = product(case, x, w, variant, 1, ranks)
    with np.errstate(all="ignore"):
        want = np.maximum(x.astype(np.float64) @ w.astype(np.float64), 0).astype(np.float32)
    np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("variant", "ranks"), [("held_columns32x64", 1), ("held_columns64x128_by2", 2)]
)
def test_operands_that_no_copy_can_take_are_read_one_by_one(variant: str, ranks: int) -> None:
    case = Case(20, 140, 36)
    x, w = case.arrays(4)
    y, want = product(case, x, w, variant, 1, ranks, vector=0), case.want(x, w)
    assert np.abs(y - want).max() <= 1e-6 * np.abs(want).max()


@pytest.mark.parametrize("kind", [k for k in sorted(MAGNITUDES) if k not in ("tiny", "huge")])
@pytest.mark.parametrize(
    ("variant", "terms", "ranks"),
    [("held_columns16x64", 396, 1), ("held_rows64x32_by2", 332, 2), ("held_columns32x64", 132, 1)],
)
def test_scaled_parts_are_as_exact_as_plain_sums(
    variant: str, terms: int, ranks: int, kind: str
) -> None:
    """Each error beside the sum of magnitudes, where all of a column are alike, and where stages differ."""
    case, rng = Case(12, terms, 68, True, relu=False, terms="scaled"), np.random.default_rng(terms)
    x, w = (drawn(kind, rng, s) for s in case.shapes)
    # Terms far larger than those of other stages.
    w[3::7, : terms // 2] *= np.float32(2.0**20)
    with np.errstate(over="ignore", invalid="ignore"):
        y = product(case, x, w, variant, 1, ranks)
    check_as_exact_as_plain_sums(y, x, w, kind == "few are large")


@pytest.mark.parametrize("side", [0, 1], ids=["shared", "held"])
@pytest.mark.parametrize("scale", [1e13, 1e20])
def test_large_terms_that_meet_zeros_do_not_hide_the_rest(side: int, scale: float) -> None:
    case, rng = Case(9, 196, 20, True, relu=False, terms="scaled"), np.random.default_rng(1)
    pair = [rng.standard_normal(s).astype(np.float32) for s in case.shapes]
    pair[side][:, ::2] *= np.float32(scale)
    pair[1 - side][:, ::2] = 0
    want = pair[0].astype(np.float64) @ pair[1].astype(np.float64).T
    y = product(case, *pair, "held_columns32x64")
    np.testing.assert_allclose(y, want, rtol=0, atol=1e-5)


@pytest.mark.parametrize("scale", [1e-25, 1e-30, 3e-37, 1e30])
def test_columns_of_very_small_and_of_very_large_terms(scale: float) -> None:
    """Whose sums, before what is shared is scaled back, float32 may not hold."""
    case, rng = Case(9, 196, 20, True, relu=False, terms="scaled"), np.random.default_rng(1)
    x, w = (rng.standard_normal(s) for s in case.shapes)
    x, w = (x / scale).astype(np.float32), (w * scale).astype(np.float32)
    x[:3], w[4:9, 60:] = 0, 0
    want = x.astype(np.float64) @ w.astype(np.float64).T
    y = product(case, x, w, "held_columns32x64")
    np.testing.assert_allclose(y, want, rtol=0, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize("grid", [[3, 1], [1, 3]], ids=str)
@pytest.mark.parametrize("variant", ["held_columns32x64", "held_rows64x32"])
def test_an_rtask_stores_its_own_elements_alone(variant: str, grid: list[int]) -> None:
    """Tiles of what is packed begin at multiples of eight, rTasks anywhere."""
    case = Case(28, 68, 44)
    x, w = case.arrays(2)
    found = [~np.isnan(product(case, x, w, variant, grid, only=task)) for task in range(3)]
    assert (np.sum(found, axis=0) == 1).all()


def test_parts_are_cut_of_what_is_held_alone() -> None:
    names = {f"product.{name}" for name in product_held.TILES}
    for number, side in (("first", "columns"), ("second", "rows")):
        text = f'pack-products{{device="h200" always=true only="{number}"}}'
        root = root_of(roperators(Case(64, 256, 256), text)["gemm_0"])
        legal = {k.name for k in registry.candidates("cuda", root)} & names
        assert legal
        assert all(f"held_{side}" in name for name in legal)
        # Registers do not hold more sums.
        assert all(product_held.TILES[n.removeprefix("product.")]["SHARED"] <= 64 for n in legal)
    both = root_of(
        roperators(Case(64, 256, 256), 'pack-products{device="h200" always=true}')["gemm_0"]
    )
    assert not {k.name for k in registry.candidates("cuda", both)} & names


@pytest.mark.parametrize(
    ("precision", "terms"), [("float32", ""), ("float32", "scaled"), ("tf32", "")]
)
@pytest.mark.parametrize(
    ("rkernel", "transposed"),
    [
        ("held_columns64x64_by2", False),
        ("held_columns64x128", True),
        ("held_rows128x64_by2", True),
        ("held_rows64x16", True),
    ],
)
def test_products_are_at_work_while_terms_are_cut(
    rkernel: str, transposed: bool, precision: str, terms: str
) -> None:
    """No product waits for the one before it, and no register is spilled."""
    case = Product("test", (256, 512), (512, 512), transposed=transposed)
    made = program(Job(case, precision, "h200", f"product.{rkernel}", terms))
    assert made is not None
    _, facts = read_facts(made.artifact.source)
    entries = [e for e in facts.entries if e.startswith("op_")]
    compiled = compiling.compile_module_with_ptx(
        made.artifact.source, entries, facts.threads, "sm_90a"
    )
    assert ptx.warnings(compiled.ptx) == []
    assert "C75" not in compiled.log
    for entry in entries:
        resources = compiled.resources()[entry]
        assert resources["stack"] == resources["spill_stores"] == 0, entry


@pytest.mark.parametrize("tile", ["columns32x64", "columns64x128"])
def test_matrices_of_a_batch_are_held_one_after_another(tile: str) -> None:
    w = np.random.default_rng(1).standard_normal((3, 68, 40)).astype(np.float32)
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    own = model([node], (3, 20, 68), (3, 20, 40), {"w": w})
    variant = f"product.held_{tile}"
    run_in_groups(variant, registry.find("cuda", variant).literals, own, "tf32", 2e-3)
