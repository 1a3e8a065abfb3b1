"""Exact packing: against brute force at small sizes, for rivals of any kind, and planted packings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from schedule_toys import whole

from benchmarks.interval_sets import ARENA, interval_set
from irkit.schedule.devices import device
from irkit.schedule.exact_packing import ExactPacking, Packed, SearchTables
from irkit.schedule.model import Access, Append, Buffer, Launch, Schedule
from irkit.schedule.packing_search import FOUND, NONE, solve
from irkit.schedule.packing_state import STEPS
from irkit.schedule.planner import plan_memory
from irkit.schedule.pool import SearchBounds
from irkit.schedule.verifier import verify_schedule

PLENTY = SearchBounds(10**6, 60.0)
UNIT = 1024


def overlapping(offsets, sizes, rivals) -> bool:
    ends = offsets + sizes
    return bool((rivals & (offsets[:, None] < ends) & (offsets < ends[:, None])).any())


def lowest(sizes, rivals) -> int:
    """The height of the best packing, by placing the buffers in every order, each as low as it may lie."""
    best = int(sizes.sum())
    for order in itertools.permutations(range(len(sizes))):
        offsets = np.zeros(len(sizes), np.int64)
        for place, buffer in enumerate(order):
            # A lower buffer comes sooner: some order has each above the rivals before it.
            below = [other for other in order[:place] if rivals[buffer, other]]
            offsets[buffer] = max((offsets[o] + sizes[o] for o in below), default=0)
        best = min(best, int((offsets + sizes).max()))
    return best


def stacked(sizes):
    return np.concatenate([[0], sizes.cumsum()[:-1]]).astype(np.int64)


def pairs_of(rivals):
    """The pairs of rivals, and each buffer alone."""
    pairs = [np.isin(np.arange(len(rivals)), pair) for pair in np.argwhere(np.triu(rivals))]
    return np.array([*pairs, *np.eye(len(rivals), dtype=bool)])


def packed(sizes, rivals, bounds=PLENTY) -> Packed:
    """From one above the other, with the pairs of rivals as cliques."""
    cliques = pairs_of(rivals)
    bound = int((cliques @ sizes).max())
    return ExactPacking(sizes, rivals, cliques, bounds).improve(stacked(sizes), bound)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.floats(0.0, 1.0), st.integers(1, 6))
def test_rivals_of_any_kind(seed: int, count: int, density: float, largest: int) -> None:
    """The lowest of all, and known to be: also for rivals that no intervals have."""
    rng = np.random.default_rng(seed)
    rivals = np.triu(rng.random((count, count)) < density, 1)
    rivals |= rivals.T
    sizes = rng.integers(0, largest + 1, count) * 16
    found = packed(sizes, rivals)
    assert not overlapping(found.offsets, sizes, rivals)
    assert found.height == found.bound == lowest(sizes, rivals)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 7))
def test_intervals(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    begin = rng.integers(0, 5, count)
    end = begin + rng.integers(1, 4, count)
    rivals = (begin[:, None] < end) & (begin < end[:, None])
    np.fill_diagonal(rivals, False)
    sizes = rng.integers(1, 5, count) * 256
    found = packed(sizes, rivals)
    assert not overlapping(found.offsets, sizes, rivals)
    assert found.height == found.bound == lowest(sizes, rivals)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.floats(0.0, 1.0), st.booleans())
def test_both_ways_to_choose(seed: int, count: int, density: float, by_clique: bool) -> None:
    """In any order a packing is found at the lowest height, and none is claimed to be below it or missing."""
    rng = np.random.default_rng(seed)
    rivals = np.triu(rng.random((count, count)) < density, 1)
    rivals |= rivals.T
    sizes = rng.integers(1, 7, count)
    height = lowest(sizes, rivals)
    pairs = pairs_of(rivals)
    tables = SearchTables(sizes, rivals, pairs)
    for limit, expected in ((max(height - 1, (pairs @ sizes).max()), NONE), (height, FOUND)):
        blame = rng.integers(0, 3, len(pairs))
        search = tables.search(rng.permutation(count), 10**6, blame, by_clique)
        states = [solve(search, *parts, 0, limit) for parts in tables.components]
        assert (NONE if NONE in states else FOUND) == (FOUND if limit == height else expected)
    assert not overlapping(search.low, sizes, rivals)
    assert (search.low + sizes).max() == height


def test_where_the_trail_ends_nothing_is_claimed() -> None:
    problem = interval_set(60, 8.0, seed=0)
    tables = SearchTables(problem.sizes, problem.rivals, problem.cliques)
    blame = np.zeros(len(problem.cliques), np.int64)
    search = tables.search(np.arange(len(problem.sizes)), 10**6, blame, True)
    search = search._replace(trail=search.trail[:20])
    solve(search, *tables.components[0], 0, problem.bound)
    assert search.counts[STEPS] < 0


def cycle() -> tuple[np.ndarray, np.ndarray]:
    """Five buffers of one byte in a ring: two of them side by side, but three high."""
    rivals = np.zeros((5, 5), bool)
    for a in range(5):
        rivals[a, (a + 1) % 5] = rivals[(a + 1) % 5, a] = True
    return np.ones(5, np.int64), rivals


def test_a_bound_that_none_reaches_is_raised() -> None:
    found = packed(*cycle())
    assert (found.height, found.bound, found.optimal) == (3, 3, True)


def test_without_steps_nothing_is_claimed() -> None:
    found = packed(*cycle(), SearchBounds(2, 60.0))
    assert (found.bound, found.optimal) == (2, False)
    assert not overlapping(found.offsets, *cycle())


@pytest.mark.parametrize("seed", range(6))
def test_planted_packings_are_found(seed: int) -> None:
    problem = interval_set(60, 8.0, seed=seed)
    found = ExactPacking(problem.sizes, problem.rivals, problem.cliques, PLENTY).improve(
        stacked(problem.sizes), problem.bound
    )
    assert not overlapping(found.offsets, problem.sizes, problem.rivals)
    assert found.height == problem.bound


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(8, 20), st.floats(2.0, 5.0))
def test_what_is_planted_is_never_refuted(seed: int, count: int, reuse: float) -> None:
    """A search that loses a packing proves what is wrong."""
    problem = interval_set(count, reuse, seed=seed)
    found = ExactPacking(problem.sizes, problem.rivals, problem.cliques, PLENTY).improve(
        stacked(problem.sizes), problem.bound
    )
    assert found.height == found.bound == problem.bound


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 2**32 - 1), st.integers(8, 40), st.floats(2.0, 6.0), st.booleans(), st.booleans()
)
def test_no_search_refutes_what_is_planted(
    seed: int, count: int, reuse: float, some_fixed: bool, by_cliques: bool
) -> None:
    """In any order, at the planted height: a rule that lifts a byte too far says that there is none."""
    problem = interval_set(count, reuse, 0.2 * some_fixed, seed)
    tables = SearchTables(problem.sizes // UNIT, problem.rivals, problem.cliques)
    rng = np.random.default_rng(seed)
    order, blame = (
        rng.permutation(len(problem.sizes)),
        rng.integers(0, 3, len(problem.cliques)),
    )
    search = tables.search(order, 20_000, blame, by_cliques)
    assert NONE not in [solve(search, *part, 0, ARENA // UNIT) for part in tables.components]


def test_the_same_steps_come_to_the_same_packing() -> None:
    problem = interval_set(120, 9.0, seed=3)
    twice = [
        ExactPacking(problem.sizes, problem.rivals, problem.cliques, SearchBounds(3000)).improve(
            stacked(problem.sizes), problem.bound
        )
        for _ in range(2)
    ]
    assert np.array_equal(twice[0].offsets, twice[1].offsets)


def scheduled(problem) -> Schedule:
    """A schedule on one vEU in which the buffers live as the intervals say."""
    buffers = [Buffer(f"b{n}", "arena", (int(s),), 1) for n, s in enumerate(problem.sizes)]
    launches = []
    for time in np.unique(np.concatenate([problem.begin, problem.end - 1])):
        writes = tuple(_access(buffers, n) for n in np.flatnonzero(problem.begin == time))
        ends = (problem.end - 1 == time) & (problem.begin < time)
        reads = tuple(_access(buffers, n) for n in np.flatnonzero(ends))
        launches.append(Launch(f"n{len(launches)}", "toy", 1, reads, writes))
    appends = [Append(n, 0, 1) for n in range(len(launches))]
    return Schedule(device("test4"), buffers, launches, appends)


def _access(buffers, number) -> Access:
    return Access(int(number), whole(buffers[number].shape, 1))


@pytest.mark.parametrize("seed", range(3))
def test_a_plan_is_at_the_bound_and_proved_apart(seed: int) -> None:
    problem = interval_set(80, 7.0, seed=seed)
    planned = plan_memory(scheduled(problem), PLENTY)
    verify_schedule(planned)
    notes = planned.notes
    assert planned.arena_bytes == notes["arena_bytes"] == notes["arena_lower_bound"]
    assert notes["arena_lower_bound"] == notes["arena_proved_bound"] == problem.bound
    assert notes["arena_greedy_bytes"] >= planned.arena_bytes
    greedy = plan_memory(scheduled(problem), SearchBounds(0))
    assert greedy.arena_bytes == notes["arena_greedy_bytes"]
