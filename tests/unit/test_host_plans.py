"""Plans of DAGs: random programs of slices are proved, run in random orders, and their mutants are caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from irkit.errors import ScheduleError
from irkit.interp.interleave import interleave
from irkit.schedule.host import planning
from irkit.schedule.host.expected import WAIT_NS, cost
from irkit.schedule.host.expected import expected as expected_times
from irkit.schedule.host.frontier import Frontier
from irkit.schedule.host.model import HOST, HostBuffer, HostPlan, HostTask, Place, Region, Use
from irkit.schedule.host.overlap import conflict, covers, overlap
from irkit.schedule.host.planning import assign_streams, dependences
from irkit.schedule.host.streams import Placed, Streams
from irkit.schedule.host.verifier import verify

Array = np.ndarray
Rng = np.random.Generator
SIZE = 24


def region_of(buffer: int, base: Array, view: Array) -> Region:
    offset = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    return Region.of(buffer, offset, view.shape, view.strides, view.itemsize)


def random_view(rng: Rng, base: Array) -> Array:
    """A slice of a slice, transposed or turned round now and then."""
    shapes = [(SIZE,), (4, 6), (6, 4), (2, 3, 4)]
    order = "F" if rng.random() < 0.3 else "C"
    view = base.reshape(shapes[int(rng.integers(len(shapes)))], order=order)
    if order == "C" and rng.random() < 0.2:
        view = view.view(np.int32)
    cut = []
    for size in view.shape:
        low, high = sorted(rng.integers(0, size + 1, 2).tolist())
        cut.append(slice(low, high, int(rng.integers(1, 4))))
    view = view[tuple(cut)] if rng.random() < 0.7 else view
    return view[..., ::-1] if rng.random() < 0.2 else view


@pytest.mark.parametrize("seed", range(20))
def test_regions_overlap_as_numpy_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    base = np.zeros(SIZE)
    for _ in range(60):
        x, y = random_view(rng, base), random_view(rng, base)
        a, b = region_of(0, base, x), region_of(0, base, y)
        touched = [mask_of(base, view) for view in (x, y)]
        assert overlap(a, b) == bool((touched[0] & touched[1]).any())
        if covers(a, b):
            assert not (touched[1] & ~touched[0]).any()


def mask_of(base: Array, view: Array) -> Array:
    """Which bytes of `base` a view has."""
    mask = np.zeros(base.nbytes, bool)
    start = view.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    for index in np.ndindex(view.shape):
        at = start + sum(i * s for i, s in zip(index, view.strides, strict=True))
        mask[at : at + view.itemsize] = True
    return mask


def test_regions_of_other_views_are_equal() -> None:
    base = np.zeros((4, 6))
    same = [base, base.T, base[::-1], base.reshape(-1), base.view(np.int16), base[:, ::-1]]
    assert len({region_of(0, base, v) for v in same}) == 1
    assert region_of(0, base, base).dense
    columns = region_of(0, base, base[:, :2]), region_of(0, base, base[:, 2:])
    assert not overlap(*columns)
    assert columns[0].hull[1] > columns[1].hull[0]


Work = Callable[[], None]


def random_program(rng: Rng, tasks: int) -> tuple[list[HostTask], list[Work], list[Array]]:
    """Tasks on views of three arrays, in place and not, a fifth of them the host's."""
    bases = [np.arange(SIZE, dtype=np.float64) + 100 * n for n in range(3)]
    made: list[HostTask] = []
    works: list[Work] = []
    for number in range(tasks):
        numbers = rng.integers(0, 3, 2).tolist()
        source, target = (random_view(rng, bases[n]) for n in numbers)
        source, target = source.view(), target.view()
        regions = [
            region_of(n, bases[n], v) for n, v in zip(numbers, (source, target), strict=True)
        ]
        uses = (Use(regions[0], True, False, "x"), Use(regions[1], True, True, "y"))
        kind = "function" if rng.random() < 0.2 else "kernel"
        made.append(HostTask(f"t{number}", kind, uses, 1e5 * (1 + number % 5)))
        works.append(_work(source, target, number))
    return made, works, bases


def _work(source: Array, target: Array, number: int) -> Work:
    def run() -> None:
        value = int(np.sum(source.astype(np.int64) % 997)) * 31 + number
        flat = target.astype(np.int64) * 7 + value
        target[...] = (flat % 10007).astype(target.dtype)

    return run


BUFFERS = [HostBuffer(name, "device", SIZE * 8) for name in "abc"]


def outcome(plan: HostPlan, works: list[Work], bases: list[Array], rng: Rng) -> list[bytes]:
    start = [base.copy() for base in bases]
    interleave(plan.schedule(), lambda append, task: works[append](), rng)
    result = [base.tobytes() for base in bases]
    for base, old in zip(bases, start, strict=True):
        base[:] = old
    return result


def expected(works: list[Work], bases: list[Array]) -> list[bytes]:
    start = [base.copy() for base in bases]
    for work in works:
        work()
    result = [base.tobytes() for base in bases]
    for base, old in zip(bases, start, strict=True):
        base[:] = old
    return result


@pytest.mark.parametrize("seed", range(25))
def test_random_programs_are_proved_and_right_in_any_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tasks, works, bases = random_program(rng, int(rng.integers(2, 25)))
    plan = assign_streams(BUFFERS, tasks, int(rng.integers(1, 6)))
    verify(plan)
    right = expected(works, bases)
    for _ in range(6):
        assert outcome(plan, works, bases, rng) == right


@pytest.mark.parametrize("seed", range(25))
def test_no_wait_is_needless(seed: int) -> None:
    """Without any of its waits a plan is refused; a mutant that is not refused gives the right answer."""
    rng = np.random.default_rng(1000 + seed)
    tasks, works, bases = random_program(rng, 14)
    plan = assign_streams(BUFFERS, tasks, 4)
    right = expected(works, bases)
    for number, place in enumerate(plan.places):
        for wait in place.waits:
            fewer = tuple(w for w in place.waits if w != wait)
            mutant = replace(plan, places=[*plan.places])
            mutant.places[number] = Place(place.queue, fewer)
            with pytest.raises(ScheduleError, match=r"'race'"):
                verify(mutant)
        if place.queue == HOST:
            continue
        moved = replace(plan, places=[*plan.places])
        moved.places[number] = Place(1 + place.queue % 4, place.waits)
        try:
            verify(moved)
        except ScheduleError:
            continue
        assert all(outcome(moved, works, bases, rng) == right for _ in range(4))


def test_mutants_give_wrong_answers_too() -> None:
    rng = np.random.default_rng(5)
    wrong = tried = 0
    for _ in range(12):
        tasks, works, bases = random_program(rng, 12)
        plan = assign_streams(BUFFERS, tasks, 4)
        right = expected(works, bases)
        for number, place in enumerate(plan.places):
            if not place.waits:
                continue
            mutant = replace(plan, places=[*plan.places])
            mutant.places[number] = Place(place.queue, place.waits[1:])
            tried += 1
            wrong += any(outcome(mutant, works, bases, rng) != right for _ in range(12))
    assert tried > 20
    assert wrong > tried / 2


@pytest.mark.parametrize("seed", range(10))
def test_the_frontier_finds_what_comparing_all_pairs_does(seed: int) -> None:
    """Exactly those orders are kept which conflicts ask for: on enough streams nothing else waits."""
    rng = np.random.default_rng(seed)
    tasks, _, _ = random_program(rng, 20)
    direct = dependences(tasks)
    plan = assign_streams(BUFFERS, tasks, 30)
    for number, place in enumerate(plan.places):
        assert set(place.waits) <= set(direct[number])


@pytest.mark.parametrize("seed", range(30))
def test_no_plan_costs_more_than_the_policy_alone(seed: int) -> None:
    """Of tasks short and long: never more time and events together than GrCUDA's policy takes, and never
    more events than conflicts that no others stand for."""
    rng = np.random.default_rng(seed)
    tasks, _, _ = random_program(rng, int(rng.integers(5, 40)))
    tasks = [replace(task, cost_ns=10 ** rng.uniform(3, 6)) for task in tasks]
    streams = int(rng.integers(1, 9))
    plan = assign_streams(BUFFERS, tasks, streams)
    verify(plan)
    assert plan.queues <= 1 + streams
    assert cost(plan) <= cost(alone(tasks, streams))
    needed = sum(map(len, dependences(tasks)))
    assert sum(len(place.waits) for place in plan.places) <= needed


def alone(tasks: list[HostTask], streams: int) -> HostPlan:
    """By GrCUDA's policy."""
    policy, frontier = Streams(streams), Frontier[Placed](lambda placed: placed.queue)
    places: list[Place] = []
    for number, task in enumerate(tasks):
        parents = [parent for use in task.uses for parent in frontier.before(use)]
        placed, waits = policy.place(number, parents, task)
        places.append(Place(placed.queue, tuple(w.number for w in waits)))
        for use in task.uses:
            frontier.add(placed, use)
    return HostPlan(BUFFERS, tasks, places)


def test_long_plans_are_made_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "COMPARED", 10)
    tasks, _, _ = random_program(np.random.default_rng(3), 30)
    plan = assign_streams(BUFFERS, tasks, 4)
    verify(plan)
    assert plan.places == alone(tasks, 4).places


def test_what_a_plan_is_expected_to_take() -> None:
    """Streams beside one another, copies in one direction not, and what comes behind a task of the host in
    program order not before it."""
    task = replace(kernel("k", whole(0, False, True)), cost_ns=1e5)
    copy, here = replace(task, kind="to_device"), replace(task, kind="function")
    places = [Place(1), Place(2), Place(HOST), Place(3)]
    times = expected_times(HostPlan(BUFFERS, [copy, task, here, task], places))
    assert [(one.start, one.end) for one in times.tasks] == [
        (0, 1e5),
        (0, 1e5),
        (0, 1e5),
        (1e5, 2e5),
    ]
    assert times.busy == {"copies in": 1e5, "computing": 2e5, "the host": 1e5}
    assert (times.makespan, times.bound, times.one_by_one) == (2e5, 2e5, 4e5)
    assert (times.overlap, times.gain) == (1.0, 2.0)
    waiting = expected_times(HostPlan(BUFFERS, [copy, task], [Place(1), Place(2, (0,))]))
    assert waiting.makespan == 2e5 + WAIT_NS


def test_short_tasks_stand_in_line() -> None:
    """Where an event takes longer than the task, there is none; copies in one direction gain nothing side by
    side."""
    short = [replace(kernel("k", whole(n, False, True)), cost_ns=100.0) for n in range(2)]
    short.append(
        replace(kernel("join", whole(0, True, False), whole(1, True, True)), cost_ns=100.0)
    )
    assert {place.queue for place in assign_streams(BUFFERS, short).places} == {1}
    long = [replace(task, cost_ns=1e5) for task in short]
    assert [place.queue for place in assign_streams(BUFFERS, long).places] == [1, 2, 1]
    copies = [replace(task, kind="to_device") for task in long]
    plan = HostPlan(BUFFERS, copies, [Place(1), Place(2), Place(1, (1,))])
    ends = [one.end for one in expected_times(plan).tasks]
    assert ends[:2] == [1e5, 2e5]


def whole(buffer: int, reads: bool, writes: bool, half: int | None = None) -> Use:
    offset, size = (0, 192) if half is None else (96 * half, 96)
    return Use(Region.of(buffer, offset, (size,), (1,), 1), reads, writes)


def kernel(name: str, *uses: Use) -> HostTask:
    return HostTask(name, "kernel", uses, 1e5, f"user.py:{len(name)}")


def test_vec_takes_two_streams_and_one_event() -> None:
    """The reference's VEC: two squares side by side, and their sum."""
    buffers = [HostBuffer(n, "device", 192) for n in ("x", "y", "x1", "y1", "z")]
    tasks = [
        kernel("square", whole(0, True, False), whole(2, False, True)),
        kernel("square", whole(1, True, False), whole(3, False, True)),
        kernel("reduce", whole(2, True, False), whole(3, True, False), whole(4, True, True)),
    ]
    plan = assign_streams(buffers, tasks)
    verify(plan)
    assert plan.places == [Place(1), Place(2), Place(1, (1,))]


def test_readers_are_free_and_a_writer_waits_for_all() -> None:
    tasks = [kernel(f"r{n}", whole(0, True, False)) for n in range(3)]
    tasks.append(kernel("w", whole(0, False, True)))
    plan = assign_streams(BUFFERS, tasks)
    assert plan.places == [Place(1), Place(2), Place(3), Place(1, (1, 2))]


def test_halves_of_an_array_are_apart() -> None:
    tasks = [
        kernel("low", whole(0, False, True, 0)),
        kernel("high", whole(0, False, True, 1)),
        kernel("both", whole(0, True, False)),
    ]
    assert dependences(tasks) == [[], [], [0, 1]]
    assert assign_streams(BUFFERS, tasks).places == [Place(1), Place(2), Place(1, (1,))]


def test_a_free_stream_is_used_again() -> None:
    """Behind the join all streams but one are free."""
    tasks = [
        kernel("a", whole(0, False, True)),
        kernel("b", whole(1, False, True)),
        kernel("join", whole(0, True, False), whole(1, True, False), whole(2, False, True)),
        kernel("c", whole(2, True, False), whole(0, False, True)),
        kernel("d", whole(2, True, False), whole(1, False, True)),
    ]
    plan = assign_streams(BUFFERS, tasks)
    verify(plan)
    assert [place.queue for place in plan.places] == [1, 2, 1, 1, 2]
    assert plan.queues == 3


def test_what_program_order_covers_gets_no_event() -> None:
    tasks = [kernel(f"k{n}", whole(0, True, True)) for n in range(5)]
    plan = assign_streams(BUFFERS, tasks)
    assert plan.places == [Place(1)] * 5


@pytest.mark.parametrize(
    ("places", "rule"),
    [
        ([Place(1), Place(2)], r"'race'.*write after write on 'a': task 0 'k' on stream 1"),
        ([Place(1)], r"'placement'.*2 tasks have 1 places"),
        ([Place(0), Place(1)], r"'placement'.*a kernel cannot be there"),
        ([Place(1), Place(1, (7,))], r"'placement'.*waits for a task that does not exist"),
        ([Place(1, (1,)), Place(2, (0,))], "'deadlock'"),
    ],
)
def test_wrong_plans_are_refused(places: list[Place], rule: str) -> None:
    tasks = [kernel("k", whole(0, True, True)), kernel("k", whole(0, True, True))]
    with pytest.raises(ScheduleError, match=rule):
        verify(HostPlan(BUFFERS, tasks, places))


def test_regions_outside_are_refused() -> None:
    far = Use(Region.of(0, 190, (4,), (1,), 1), True, False)
    with pytest.raises(ScheduleError, match=r"'access'.*bytes 190 to 194 of 'a', which has 192"):
        verify(HostPlan(BUFFERS, [kernel("k", far)], [Place(1)]))
    nowhere = Use(Region.of(9, 0, (4,), (1,), 1), True, False)
    with pytest.raises(ScheduleError, match=r"'access'.*a buffer that does not exist"):
        verify(HostPlan(BUFFERS, [kernel("k", nowhere)], [Place(1)]))


@pytest.mark.parametrize("kept", [4, 16, 64])
def test_what_is_kept_does_not_grow(kept: int) -> None:
    """Thousands of tasks on slices of all sorts: orders still hold, and the frontier stays small."""
    rng = np.random.default_rng(kept)
    bases = [np.zeros(SIZE) for _ in range(2)]
    streams = Streams(3)
    frontier = Frontier[Placed](lambda placed: placed.queue, kept)
    seen: list[tuple[Placed, Use]] = []
    most = 0
    for number in range(3000):
        buffer = int(rng.integers(2))
        use = Use(
            region_of(buffer, bases[buffer], random_view(rng, bases[buffer])),
            True,
            rng.random() < 0.3,
        )
        placed, waits = streams.place(number, frontier.before(use), kernel("k", use))
        after = [p for p, other in seen[-40:] if conflict(other, use)]
        assert all(p.ended_by(placed.clock) for p in after)
        assert all(w.number < number for w in waits)
        frontier.add(placed, use)
        seen = [*seen[-40:], (placed, use)]
        most = max(most, len(frontier))
    assert most <= 2 * max(kept, 2 * 4)
