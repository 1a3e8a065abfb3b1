"""Chains within budgets: what is kept when no product is computed again."""

from __future__ import annotations

from benchmarks.memory_chains import saved
from benchmarks.memory_curve import figures, searched, task_level

BLOCKS, ROWS, WIDTH = 6, 256, 64


def test_one_value_a_block_is_kept() -> None:
    """What a product gives, of seven values a block that are read behind the turn."""
    ops, search = searched(task_level(BLOCKS, ROWS, WIDTH))
    cut = search.play(search.cut(), search.turn)
    value = ROWS * WIDTH * 4
    assert saved(search, cut) <= BLOCKS * value
    assert saved(search, search.naive) >= 5 * BLOCKS * value
    assert figures(ops, search, cut)["products_again"] == 0
