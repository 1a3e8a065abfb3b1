"""Traced programs of many operations: NumPy's results, and work that grows as they do."""

import cProfile
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from xdsl.dialects import test as upstream
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region

import irkit
from benchmarks.long_programs import KINDS
from irkit.dialects.positions import Positions
from irkit.driver.pipelines.runner import PipelineRunner
from irkit.driver.programs import lowering

SMALL, LARGE, MOST = 200, 800, 4.8
"""Two lengths, and how much more work the longer may be: a fifth more than it is longer."""
UP_TO_A_LENGTH = {"fuse-elementwise": 8.0}
"""Passes that look at bodies as they grow, to 256 ops: longer programs have more that are as long."""
FEWEST = 25_000
"""Calls of a pass for the shorter program that are as good as none: some find nothing to do in it."""


def both(function, args):
    """Results and arguments of a call of NumPy's, and of one that is compiled."""
    theirs, ours = ([a.copy() for a in args] for _ in range(2))
    compiled = irkit.jit(target="cpu", cache=False)(function)
    return compiled, (function(*theirs), theirs), (compiled(*ours), ours)


def assert_same(expected, found):
    if isinstance(expected, list | tuple):
        assert len(expected) == len(found)
        for one, other in zip(expected, found, strict=True):
            assert_same(one, other)
    elif expected is not None:
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_computes_what_numpy_does(kind):
    _, expected, found = both(*KINDS[kind](60))
    assert_same(expected, found)


def random_program(seed):
    """Statements of several kinds in a random order, on two arrays and a number."""
    rng = np.random.default_rng(seed)
    steps = [(int(rng.integers(7)), int(rng.integers(1, 9))) for _ in range(60)]

    def function(a, b):
        total, kept = a.sum() * 0.5, []
        for kind, n in steps:
            if kind == 0:
                a[n:] += 0.25 * a[:-n]
            elif kind == 1:
                b[n : n + 8] = np.tanh(a[2:10]) - b[n + 2 : n + 10]
            elif kind == 2:
                a = np.sin(a) + 0.125 * n
            elif kind == 3:
                total = total / (n + np.sum(b * b))
            elif kind == 4:
                b *= 0.75 - total / 64
            elif kind == 5:
                a[1:-1] = (a[:-2] + a[1:-1] + a[2:]) / 3
            else:
                kept.append(a * n - b.max())
        return a, total, kept

    return function, (np.linspace(0, 1, 24), np.linspace(1, 2, 24))


def test_a_sum_of_thousands_of_terms_is_compiled():
    _, expected, found = both(*KINDS["total"](4000))
    assert_same(expected, found)


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_compute_what_numpy_does(seed):
    _, expected, found = both(*random_program(seed))
    assert_same(expected, found)


def test_a_long_chain_is_cut_into_rtasks_that_are_compiled_once():
    compiled, expected, found = both(*KINDS["chain"](2400))
    assert_same(expected, found)
    # As many launches as it takes, of a first part, others like one another, and a last.
    assert 1 < len(compiled.report()["roperators"]) <= 3
    assert compiled.ir("schedule").count("task.append") > 3


class _NotLoaded:
    """In place of what runs: no machine code is made."""

    def __init__(self, artifact, *_):
        self.artifact = artifact


def work(kind, ops, monkeypatch):
    """Calls of functions by pass, with those of its checks."""
    counts = Counter()
    run_one = PipelineRunner._run_one

    def counted(runner, module, module_pass, *rest):
        profile = cProfile.Profile()
        profile.enable()
        try:
            run_one(runner, module, module_pass, *rest)
        finally:
            profile.disable()
        counts[module_pass.name] += sum(entry.callcount for entry in profile.getstats())

    with monkeypatch.context() as patched:
        patched.setattr(lowering, "Variant", _NotLoaded)
        patched.setattr(PipelineRunner, "_run_one", counted)
        function, args = KINDS[kind](ops)
        irkit.jit(target="cpu", cache=False)(function).compile(*args)
    return counts


@pytest.mark.parametrize("kind", ["mix", "in_place", "apart", "returned", "total"])
def test_no_pass_does_more_than_so_much_more_for_a_longer_program(kind, monkeypatch):
    few, many = (work(kind, ops, monkeypatch) for ops in (SMALL, LARGE))
    steep = {
        name: f"{few[name]} calls, then {count}"
        for name, count in many.items()
        if count > UP_TO_A_LENGTH.get(name, MOST) * max(few[name], FEWEST)
    }
    assert not steep


def block_of(count):
    block = Block([upstream.TestOp() for _ in range(count)])
    module = ModuleOp(Region(block))
    return module, block


def test_positions_follow_what_is_moved_and_inserted():
    rng = np.random.default_rng(0)
    _module, block = block_of(40)
    positions = Positions(block)
    for _ in range(300):
        ops = list(block.ops)
        one, other = (ops[n] for n in rng.choice(len(ops), 2, replace=False))
        kind = rng.integers(3)
        if kind == 0:
            positions.move_after(one, other)
        elif kind == 1:
            positions.insert_after(upstream.TestOp(), other)
        else:
            positions.replace(one, upstream.TestOp())
    ops = list(block.ops)
    assert positions.ordered(reversed(ops)) == ops
    assert all(positions.is_before(a, b) for a, b in pairwise(ops))
    assert not positions.is_before(ops[3], ops[3])


def test_ops_are_seldom_numbered_anew():
    _module, block = block_of(10)
    positions, first = Positions(block), block.first_op
    assert first is not None
    for _ in range(1000):
        positions.insert_after(upstream.TestOp(), first)
    ops = list(block.ops)
    assert positions.ordered(reversed(ops)) == ops
    assert positions.renumbered < 50
