"""Products of few terms in float64 on a GPU: emulated thread by thread, and which they are."""

from __future__ import annotations

import cuda_samples as cs
import numpy as np
import pytest
from cuda_emulator import run

from irkit.lower.task_to_numba.walkers_cuda import Layout
from irkit.runtime.cuda import compiling
from irkit.schedule.block_memory import BlockMemory

RNG = np.random.default_rng(8)
LAYOUT = Layout(256, BlockMemory(bases=8, max_waits=4, max_operands=10))


@pytest.mark.parametrize("layout", ["kj", "jk"])
@pytest.mark.parametrize(
    ("rows", "terms", "columns", "across", "tasks"),
    [
        # One row; rows that are no multiple of a tile, of a task none at all; columns in several turns.
        (1, 20, 33, 1, 1),
        (37, 5, 64, 1, 2),
        (2, 1, 16, 2, 3),
        (19, 32, 150, 2, 1),
        (40, 7, 150, 1, 2),
    ],
)
def test_the_template_multiplies(
    layout: str, rows: int, terms: int, columns: int, across: int, tasks: int
) -> None:
    a, b, bias = (RNG.standard_normal(s) for s in ((rows, terms), (terms, columns), columns))
    got = np.full((rows, columns), -99.0)
    given = np.ascontiguousarray(b.T) if layout == "jk" else b
    run(cs.gemm_terms(layout, terms, columns, ACROSS=across), [a, given, bias, got], tasks, rows)
    np.testing.assert_allclose(got, np.maximum(a @ b + bias, 0), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_in_its_row(odd: float) -> None:
    """Columns behind the last are padded, and rows: nothing of that is stored, nor added."""
    a, b = np.ones((21, 3)), np.ones((3, 40))
    a[20, 1] = odd
    got = np.full((21, 40), -99.0)
    run(cs.gemm_terms("kj", 3, 40), [a, b, np.zeros(40), got], 1, 21)
    assert (got[:20] == 3).all()
    assert not np.isfinite(got[20]).any() or odd == -np.inf
    if odd == -np.inf:
        assert (got[20] == 0).all()


@pytest.mark.parametrize("layout", ["kj", "jk"])
def test_its_sums_stay_in_registers(layout: str) -> None:
    one = cs.gemm_terms(layout, 20, 100, ACROSS=2)
    text, entries = cs.module_text([one], LAYOUT, walkers=False)
    compiled = compiling.compile_module_with_ptx(text, entries, 256, "sm_90a")
    found = compiled.resources()["op_0"]
    assert (found["stack"], found["spill_stores"]) == (0, 0)
    # Two blocks on a multiprocessor: one multiplies while the other stores.
    assert found["registers"] <= 128
