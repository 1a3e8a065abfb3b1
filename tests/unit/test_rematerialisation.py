"""What is computed again within a budget: against a run by symbols, at small sizes, and on long chains."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irkit.schedule.rematerialisation import Played, Program, Rematerialiser, Step


def both_ways(rng: np.random.Generator, count: int) -> Program:
    """Forward steps that read arguments and earlier values, then backward steps that read some of them."""
    steps, nbytes, root = list[Step](), [0], [0]
    for number in range(count):
        reads = tuple(int(v) for v in rng.integers(0, len(nbytes), 2))
        view = rng.random() < 0.2
        nbytes.append(0 if view else int(rng.integers(1, 9)) * 256)
        root.append(reads[0] if view else len(root))
        segment = str(number // 3) if rng.random() < 0.3 else None
        until = int(rng.integers(count, 2 * count)) if rng.random() < 0.3 else None
        steps.append(
            Step(
                reads,
                (number + 1,),
                float(not view),
                bool(rng.random() < 0.9),
                segment=segment,
                until=until,
            )
        )
    last = count
    for number in reversed(range(count)):
        nbytes.append(256)
        root.append(len(root))
        steps.append(Step((last, number, number + 1), (len(nbytes) - 1,), 1.0))
        last = len(nbytes) - 1
    return Program(steps, nbytes, root)


def meanings(program: Program, played: Played) -> list[object]:
    """Runs by symbols: what each step reads, the same each time; a value that is not there is an error."""
    made: dict[tuple[int, int], object] = {}
    found: dict[int, object] = {}
    for at, (number, versions) in enumerate(played.runs):
        step = program.steps[number]
        read = [
            value if version is None else made[version, value]
            for value, version in zip(step.reads, versions, strict=True)
        ]
        for value in step.writes:
            made[at, value] = hash((number, value, tuple(read)))
        assert found.setdefault(number, hash((number, tuple(read)))) == hash((number, tuple(read)))
    return [found[number] for number in range(len(program.steps))]


def in_use(program: Program, played: Played) -> int:
    """The most bytes in use at once, moment by moment."""
    uses: dict[tuple[int, int], list[int]] = {}
    home: dict[tuple[int, int], tuple[int, int]] = {}
    for at, (number, versions) in enumerate(played.runs):
        step = program.steps[number]
        versions_of = dict(zip(step.reads, versions, strict=True))
        for value, version in versions_of.items():
            if version is not None:
                uses[home[value, version]].append(at)
        for value in step.writes:
            source, place = program.root[value], (value, at)
            if source != value and (version := versions_of.get(source)) is not None:
                place = home[source, version]
            home[value, at] = place
            uses.setdefault(place, []).append(at)
    return max(
        sum(program.nbytes[v] for (v, _), at in uses.items() if min(at) <= now <= max(at))
        for now in range(len(played.runs))
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 9), st.floats(0.3, 1.0))
def test_it_means_the_same_and_needs_what_it_says(seed: int, count: int, share: float) -> None:
    program = both_ways(np.random.default_rng(seed), count)
    search = Rematerialiser(program)
    ways = (
        search.naive,
        search.asked,
        search.within(int(search.naive.peak * share)),
        search.least(),
    )
    for played in ways:
        assert played.peak == in_use(program, played)
        assert meanings(program, played) == meanings(program, search.naive)
        again = [n for n, _ in played.runs]
        assert all(program.steps[n].repeatable for n in set(again) if again.count(n) > 1)
        assert in_time(program, played)
    assert search.least().peak <= search.asked.peak


def in_time(program: Program, played: Played) -> bool:
    """Whether nothing is made again behind the step that changes what it reads."""
    runs = [number for number, _ in played.runs]
    again = [(at, n) for at, n in enumerate(runs) if n in runs[:at]]
    return all(
        until is None or at < runs.index(until)
        for at, until in ((at, program.steps[n].until) for at, n in again)
    )


def test_what_a_segment_keeps_is_what_leaves_it() -> None:
    """Of four layers in two segments, the middle and the end: the others' results are made again."""
    steps = [Step((n,), (n + 1,), 1.0, dear=True, segment="ab"[n // 2]) for n in range(4)]
    steps += [Step((4 + n, 4 - n), (5 + n,), 1.0) for n in range(4)]
    search = Rematerialiser(Program(steps, [0] + [1] * 8, list(range(9))))
    assert search.named == {1, 3}
    runs = [number for number, _ in search.asked.runs]
    assert [n for at, n in enumerate(runs) if n in runs[:at]] == [2, 0]


def chain(layers: int) -> Program:
    """A residual chain: a step forward reads what the one before wrote, one back that and a gradient, and
    takes twice as long. Values of 1 MiB; the first is an argument."""
    steps = [Step((n,), (n + 1,), 1.0, dear=True) for n in range(layers)]
    gradient = layers
    for n in reversed(range(layers)):
        steps.append(Step((gradient, n), (2 * layers - n,), 2.0))
        gradient = 2 * layers - n
    return Program(steps, [0] + [1 << 20] * (2 * layers), list(range(2 * layers + 1)))


def test_a_thousand_layers_in_a_seventh() -> None:
    search = Rematerialiser(chain(1000))
    found = search.within(int(0.15 * search.naive.peak))
    assert found.peak <= 0.15 * search.naive.peak
    assert found.cost <= 1.30 * search.naive.cost
    assert search.least().peak <= 0.08 * search.naive.peak


def gated(blocks: int) -> Program:
    """x + gelu(xW) * sigmoid(x), unfused: a product, then what is elementwise; back, all of it is read."""
    steps: list[Step] = []
    x, count = 0, 1
    saved: list[tuple[int, ...]] = []
    for _ in range(blocks):
        h, a, s, m, y = range(count, count + 5)
        steps += [
            Step((x,), (h,), 30.0, dear=True),
            Step((h,), (a,), 2.0),
            Step((x,), (s,), 2.0),
            Step((a, s), (m,), 1.0),
            Step((x, m), (y,), 1.0),
        ]
        saved.append((x, h, a, s))
        x, count = y, count + 5
    last = x
    for values in reversed(saved):
        steps.append(Step((last, *values), (count,), 65.0))
        last, count = count, count + 1
    return Program(steps, [0] + [1 << 20] * (count - 1), list(range(count)))


def test_the_cut_repeats_no_product() -> None:
    """One value a block is kept, of the four that are read, as by PyTorch's best cut: what is made again from
    these has a working set of its own, so borders of segments are kept beside them."""
    program = gated(32)
    search = Rematerialiser(program)
    assert len(search.cut()) <= 32
    found = search.within(search.naive.peak // 2)
    assert found.peak <= search.naive.peak // 2
    assert meanings(program, found) == meanings(program, search.naive)
    runs = [n for n, _ in found.runs]
    assert not any(program.steps[n].dear for n in runs if runs.count(n) > 1)


def test_a_budget_that_holds_changes_nothing() -> None:
    search = Rematerialiser(chain(20))
    assert search.within(search.naive.peak) is search.naive


@pytest.mark.parametrize("share", [0.6, 0.45, 0.35])
def test_less_memory_takes_more_time(share: float) -> None:
    search = Rematerialiser(chain(100))
    found, tighter = (search.within(int(s * search.naive.peak)) for s in (share, share * 0.8))
    assert search.naive.cost < found.cost <= tighter.cost
    assert tighter.peak <= share * 0.8 * search.naive.peak < search.naive.peak
