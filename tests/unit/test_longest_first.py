"""Blocks of an attention whose rows see more and more keys start with the rTasks that take the longest."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from test_attention_mma import chosen, program

from irkit.rkernels import registry
from irkit.rkernels.binding.longest import Longest


def order_of(lines: list[str], blocks: int) -> list[int]:
    """The rTask of each block."""
    found: list[int] = []
    for block in range(blocks):
        names: dict[str, Any] = {"divide": divmod, "task": block}
        exec("\n".join(lines), names)
        found.append(names["task"])
    return found


@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("grid", [(1, 12, 8, 1), (3, 5, 2), (4, 1, 3), (7, 1), (1, 6, 1, 2)])
def test_every_rtask_once_and_the_longest_first(grid: tuple[int, ...], last: bool) -> None:
    cells = list(itertools.product(*map(range, grid)))
    for dimension, parts in enumerate(grid):
        longest = Longest.of(grid, dimension, last)
        if longest is None:
            # The rTasks' own order is one from the longest on.
            places = [cell[dimension] for cell in cells]
            assert places == sorted(places)
            assert parts == 1 or not last
            continue
        order = order_of(longest.lines("task"), len(cells))
        assert sorted(order) == list(range(len(cells))) != order
        places = [cells[task][dimension] for task in order]
        assert places == sorted(places, reverse=last)


def module(causal: int | None, order: str) -> str:
    """That of an attention of 3 heads and 512 tokens."""
    shape = (3, 512, 64) if order == "heads" else (512, 3, 64)
    text = program([np.empty(shape, np.float32)] * 3, 0.125, causal, order)[0]
    return chosen(text, registry.find("cuda", "attention.mma64x64"))


def rows_of_blocks(source: str) -> list[tuple[int, int, int, int]]:
    """What `PART` says of the rTask that each block runs."""
    tasks = int(source.split(" rTasks")[0].rsplit(" ", 1)[1])
    starts = source.index("@fused\ndef attention_0_part(")
    names: dict[str, Any] = {}
    exec(source[starts + len("@fused\n") : source.index("@fused", starts + 1)], names)
    entry = source[source.index("def op_0(") : source.index("LAUNCH = ")]
    lines = [line.strip() for line in entry.splitlines() if line.strip().startswith("task")]
    assert lines[0] == "task = block_index()"
    assert "(task, block_count(), rows" in entry
    return [names["attention_0_part"](n, tasks, 1) for n in order_of(lines[1:], tasks)]


@pytest.mark.parametrize("order", ["heads", "tokens"])
def test_a_causal_attention_begins_with_its_last_rows(order: str) -> None:
    parts = rows_of_blocks(module(0, order))
    ends = [i1 for *_, i1 in parts]
    assert ends == sorted(ends, reverse=True)
    assert ends[0] == 512 > ends[-1]
    seen = np.zeros((3, 512), np.int64)
    for b0, b1, i0, i1 in parts:
        seen[b0:b1, i0:i1] += 1
    assert (seen == 1).all()


def test_where_all_rows_see_the_same_blocks_are_rtasks() -> None:
    assert "(block_index(), block_count(), rows" in module(None, "heads")
