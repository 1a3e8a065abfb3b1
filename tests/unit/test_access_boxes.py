"""Boxes, by brute force: what an rTask does not read cannot change what it writes, and all is written."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from family_programs import choose_first
from random_graphs import RandomGraph
from test_levels_agree import bring
from xdsl.dialects.builtin import i64

from irkit.dialects.access_boxes import operand_boxes, part
from irkit.dialects.roperator_body import find_root
from irkit.dialects.types import DYNAMIC, int_array, numpy_dtype, tensor_type
from irkit.errors import UnsupportedError
from irkit.interp.task import evaluate_body

ROWS_PER_SHARE = 2
RNG = np.random.default_rng(2)


def roperators(seed, batch):
    program = RandomGraph(seed, 12, batch)
    model = program.model()
    for level in ("graph", "tensor", "task"):
        bring(model, level)
    return model, list(choose_first(model.module).values())


def slices(box, value, shares):
    """A box as slices; shares of the batch are ROWS_PER_SHARE rows each."""
    found = [slice(int(a), int(b)) for a, b in box]
    if tensor_type(value).get_shape()[:1] == (DYNAMIC,):
        found[0] = slice(found[0].start * ROWS_PER_SHARE, found[0].stop * ROWS_PER_SHARE)
    return tuple(found)


def operand(value, shares):
    t = tensor_type(value)
    shape = [shares * ROWS_PER_SHARE if s == DYNAMIC else s for s in t.get_shape()]
    if t.element_type == i64:
        # Indices of a gather: the first element is there whatever the extent.
        return np.zeros(shape, np.int64)
    return RNG.standard_normal(shape).astype(numpy_dtype(t.element_type))


def check(op, weights):
    reads, writes = operand_boxes(op)
    block, tasks = op.body.block, op.tasks
    arrays = [operand(a, tasks) for a in block.args]
    whole = evaluate_body(op, arrays, weights)
    written = [np.zeros(w.shape, int) for w in whole]
    for task in range(tasks):
        scrambled = [operand(a, tasks) for a in block.args]
        for value, boxes, mine, true in zip(block.args, reads, scrambled, arrays, strict=True):
            where = slices(boxes[task], value, tasks)
            mine[where] = true[where]
        results = evaluate_body(op, scrambled, weights)
        for number, value in enumerate(op.terminator.values):
            where = slices(writes[number][task], value, tasks)
            np.testing.assert_array_equal(results[number][where], whole[number][where])
            written[number][where] += 1
    # rTasks share the results among them: everything once.
    assert all((w == 1).all() for w in written)
    for boxes, array in zip((*reads, *writes), (*arrays, *whole), strict=True):
        assert boxes.shape == (tasks, array.ndim, 2)


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_what_is_not_read_does_not_matter(seed, batch):
    model, ops = roperators(seed, batch)
    for op in ops:
        check(op, model.weights)


@pytest.mark.parametrize("seed", range(8))
def test_other_grids(seed):
    """Any grid that the rOperator's meaning allows, not only those that partition-rtasks picks."""
    model, ops = roperators(seed, batch=False)
    families = {"softmax", "forest", "heap_forest", "packed_forest", "perfect_forest"}
    for op in ops:
        root = find_root(op.body.block)
        rank = len(root.parallel) - (root.family in families)
        for d in range(rank):
            grid = [1] * len(root.parallel)
            grid[d] = min(3, root.parallel[d])
            op.grid = int_array(grid)
            check(op, model.weights)


def test_a_batch_is_cut_into_shares_and_nothing_else():
    _, ops = roperators(4, batch=True)
    op = next(o for o in ops if len(find_root(o.body.block).parallel) > 1)
    op.grid = int_array([2, 2, *[1] * (len(find_root(op.body.block).parallel) - 2)])
    with pytest.raises(UnsupportedError, match="the batch alone"):
        operand_boxes(op)
    op.grid = int_array([2])
    with pytest.raises(UnsupportedError, match="dimensions"):
        operand_boxes(op)


@pytest.mark.parametrize("size", [1, 2, 5, 7, 64])
@pytest.mark.parametrize("parts", [1, 2, 3, 4, 7])
def test_parts_are_the_whole(size, parts):
    cuts = [part(size, parts, n) for n in range(parts)]
    assert cuts[0][0] == 0
    assert cuts[-1][1] == size
    assert all(a[1] == b[0] for a, b in itertools.pairwise(cuts))
    assert [part(DYNAMIC, parts, n) for n in range(parts)] == [(n, n + 1) for n in range(parts)]
