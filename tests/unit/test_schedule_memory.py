"""Offsets, residents, chain covers."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from schedule_toys import split, whole

from irkit.errors import ScheduleError
from irkit.schedule.chain_cover import ChainCover
from irkit.schedule.devices import device
from irkit.schedule.model import Access, Append, Buffer, Launch, Resident, Schedule
from irkit.schedule.planner import plan_memory
from irkit.schedule.residents import contiguous, pin_residents
from irkit.schedule.verifier import verify_schedule
from irkit.schedule.wavefront import schedule_wavefront

TEST4 = device("test4")


def chain(sizes: list[int], target=TEST4) -> Schedule:
    """n0 -> n1 -> ..., each buffer read only by the next launch."""
    buffers = [Buffer("x", "input", (1,), 8)]
    launches = []
    for number, size in enumerate(sizes):
        buffers.append(Buffer(f"b{number}", "arena", (size,), 8))
        read = Access(number, whole(buffers[number].shape, 1))
        launches.append(
            Launch(f"n{number}", "toy", 1, (read,), (Access(number + 1, whole((size,), 1)),))
        )
    return schedule_wavefront(buffers, launches, target)


def test_a_chain_needs_two_buffers() -> None:
    schedule = plan_memory(chain([32] * 10))  # 256 bytes each
    assert schedule.arena_bytes == 512
    assert schedule.notes["arena_bytes"] == schedule.notes["arena_lower_bound"] == 512
    assert schedule.notes["arena_ratio"] == 1.0
    verify_schedule(schedule)


def test_offsets_are_aligned() -> None:
    schedule = plan_memory(chain([3, 5, 7, 40, 2]))
    assert all(b.offset % 256 == 0 for b in schedule.buffers if b.space == "arena")
    assert schedule.arena_bytes % 256 == 0


def test_views_lie_in_their_parent_and_take_no_space() -> None:
    buffers = [
        Buffer("pad", "arena", (40,), 8),
        Buffer("p", "arena", (2, 8), 8),
        Buffer("v", "arena", (8,), 8, parent=1, parent_offset=64),
        Buffer("o", "output", (8,), 8),
    ]
    launches = [
        Launch("n0", "toy", 1, (), (Access(0, whole((40,), 1)),)),
        Launch("n1", "toy", 1, (Access(0, whole((40,), 1)),), (Access(1, whole((2, 8), 1)),)),
        Launch("n2", "toy", 1, (Access(2, whole((8,), 1)),), (Access(3, whole((8,), 1)),)),
    ]
    schedule = plan_memory(schedule_wavefront(buffers, launches, TEST4))
    verify_schedule(schedule)
    assert schedule.buffers[2].offset == schedule.buffers[1].offset + 64
    assert schedule.arena_bytes == 512 + 256  # 320 bytes, then 128: each to the next 256
    assert schedule.buffers[3].offset is None


def test_rows_have_an_arena_of_their_own() -> None:
    buffers = [
        Buffer("a", "rows", (-1, 3), 4),
        Buffer("b", "rows", (-1, 3), 4),
        Buffer("o", "output", (-1,), 4),
    ]
    rows, flat = split((2, 3), 2, axis=0), split((2,), 2, axis=0)
    launches = [
        Launch("n0", "toy", 2, (), (Access(0, rows),)),
        Launch("n1", "toy", 2, (Access(0, rows),), (Access(1, rows),)),
        Launch("n2", "toy", 2, (Access(1, rows),), (Access(2, flat),)),
    ]
    schedule = plan_memory(schedule_wavefront(buffers, launches, TEST4))
    verify_schedule(schedule)
    assert [b.offset for b in schedule.buffers[:2]] == [0, 16]
    assert (schedule.arena_bytes, schedule.row_bytes) == (0, 32)


def test_two_thousand_buffers_of_many_sizes() -> None:
    rng = np.random.default_rng(0)
    buffers = [Buffer("x", "input", (8,), 4)]
    launches: list[Launch] = []
    for number in range(1000):
        tasks = int(rng.integers(1, 20))
        reads = rng.integers(max(0, len(buffers) - 12), len(buffers), 2)
        writes = []
        for _ in range(2):
            size = int(rng.integers(tasks, 4000))
            buffers.append(Buffer(f"b{len(buffers)}", "arena", (size,), 4))
            writes.append(Access(len(buffers) - 1, split((size,), tasks)))
        accesses = tuple(Access(int(r), whole(buffers[r].shape, tasks)) for r in reads)
        launches.append(Launch(f"n{number}", "toy", tasks, accesses, tuple(writes)))
    schedule = schedule_wavefront(buffers, launches, device("h200"))
    planned = plan_memory(schedule)
    verify_schedule(planned)
    assert planned.notes["arena_ratio"] < 1.35
    assert planned.arena_bytes < sum(b.nbytes for b in buffers) / 4


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 7), st.floats(0.0, 1.0))
def test_chain_covers_are_minimal(seed: int, count: int, density: float) -> None:
    """As many chains as the antichain is large, which the brute force cannot beat."""
    rng = np.random.default_rng(seed)
    before = np.triu(rng.random((count, count)) < density, 1)
    for middle in range(count):
        before |= before[:, [middle]] & before[[middle], :]
    cover = ChainCover(before)
    chains, antichain = cover.chains(), np.flatnonzero(cover.antichain())
    assert sorted(itertools.chain(*chains)) == list(range(count))
    assert all(before[a, b] for one in chains for a, b in itertools.pairwise(one))
    assert not before[np.ix_(antichain, antichain)].any()
    assert len(antichain) == len(chains)


def constant_readers(shape, make_boxes, count=3, tasks=2, **more) -> Schedule:
    """`count` launches on vEUs 0.. that read one constant alike."""
    buffers = [Buffer("w", "constant", shape, 4)]
    launches = []
    for number in range(count):
        buffers.append(Buffer(f"o{number}", "output", (tasks,), 4))
        write = Access(number + 1, split((tasks,), tasks))
        launches.append(
            Launch(f"n{number}", "toy", tasks, (Access(0, make_boxes),), (write,), **more)
        )
    appends = [Append(n, 0, min(tasks, 2)) for n in range(count)]
    return Schedule(TEST4, buffers, launches, appends)


def test_residents_share_one_offset() -> None:
    schedule = pin_residents(constant_readers((2, 100), split((2, 100), 2, axis=0)))
    assert [a.residents for a in schedule.appends] == [(Resident(0, 0),)] * 3
    assert schedule.notes["resident_bytes"] == 400
    verify_schedule(plan_memory(schedule))


def test_what_is_not_worth_it_or_not_possible_is_not_resident() -> None:
    once = constant_readers((2, 100), split((2, 100), 2, axis=0), count=1)
    columns = constant_readers((2, 100), split((2, 100), 2, axis=1))
    rounds = constant_readers((4, 100), split((4, 100), 4, axis=0), tasks=4)
    large = constant_readers((2, 100), split((2, 100), 2, axis=0), scratch_bytes=64 * 1024 - 399)
    for schedule in (once, columns, rounds, large):
        assert all(append.residents == () for append in pin_residents(schedule).appends)


def test_the_most_saving_constants_win_the_space() -> None:
    buffers = [Buffer(f"w{n}", "constant", (10 * 1024,), 4) for n in range(2)]
    buffers.append(Buffer("o", "output", (1,), 4))
    out = Access(2, whole((1,), 1))
    box = whole((10 * 1024,), 1)
    launches = [Launch(f"n{n}", "toy", 1, (Access(int(n > 1), box),), (out,)) for n in range(5)]
    schedule = Schedule(TEST4, buffers, launches, [Append(n, 0, 1) for n in range(5)])
    pinned = pin_residents(schedule)  # 40 KB each, 64 KB there
    assert [bool(a.residents) for a in pinned.appends] == [False, False, True, True, True]


def test_scratch_of_what_runs_before_or_after_lies_where_residents_do() -> None:
    """A vEU copies what stays before it is first read: until then its place is free, and after the last."""
    box = whole((10 * 1024,), 1)
    buffers = [Buffer("w", "constant", (10 * 1024,), 4)]
    buffers += [Buffer(f"o{n}", "output", (1,), 4) for n in range(5)]
    reads = [(), (Access(0, box),), (), (Access(0, box),), ()]
    launches = [
        Launch(f"n{n}", "toy", 1, read, (Access(n + 1, whole((1,), 1)),), scratch_bytes=1024)
        for n, read in enumerate(reads)
    ]

    def pinned(large: int) -> Schedule:
        """40 KB to keep and as much scratch for one launch, 64 KB there."""
        made = [
            replace(x, scratch_bytes=40 * 1024) if n == large else x for n, x in enumerate(launches)
        ]
        appends = [Append(n, 0, 1) for n in range(len(made))]
        return plan_memory(pin_residents(Schedule(TEST4, buffers, made, appends)))

    for large in (0, 4):
        apart = pinned(large)
        verify_schedule(apart)
        assert [bool(a.residents) for a in apart.appends] == [False, True, False, True, False]
        assert apart.shared_bytes == 41 * 1024
    for large in (1, 2, 3):
        beside = pinned(large)
        verify_schedule(beside)
        assert not any(a.residents for a in beside.appends)
        wrong = replace(beside, appends=apart.appends, shared_bytes=apart.shared_bytes)
        with pytest.raises(ScheduleError, match=r"'shared'.*vEU 0 needs 81920 bytes, 41984"):
            verify_schedule(wrong)


def test_a_cpu_has_no_residents() -> None:
    schedule = constant_readers((2, 100), split((2, 100), 2, axis=0))
    schedule.device = device("cpu4")
    assert pin_residents(schedule).notes["resident_operands"] == 0


def test_contiguity() -> None:
    shape = (4, 3, 8)
    assert contiguous(whole(shape, 1), shape)
    assert contiguous(np.array([[[1, 3], [0, 3], [0, 8]]]), shape)
    assert contiguous(np.array([[[1, 2], [1, 3], [0, 8]]]), shape)
    assert contiguous(np.array([[[1, 2], [2, 3], [3, 5]]]), shape)
    assert not contiguous(np.array([[[1, 3], [0, 2], [0, 8]]]), shape)
    assert not contiguous(np.array([[[1, 2], [0, 2], [3, 5]]]), shape)
    assert not contiguous(np.array([[[1, 2], [0, 0], [0, 8]]]), shape)
