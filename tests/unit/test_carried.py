"""Operands that come with their flag: which can, what the proof takes of them, and what the kernels do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from emulated_loops import Emulated
from schedule_toys import RandomProgram, boxes, cut, goes_wrong, sequential, split, whole
from test_written_out_cells import cells_of, scheduled, written_out

from irkit.errors import ScheduleError
from irkit.interp import run_module
from irkit.lower.task_to_numba.emit import emit_module
from irkit.runtime.cuda.facts import read_facts
from irkit.schedule import devices
from irkit.schedule.carried import carry_values, written_pieces
from irkit.schedule.devices import device
from irkit.schedule.model import Access, Append, Buffer, Launch, Schedule
from irkit.schedule.planner import plan_memory
from irkit.schedule.verifier import verify_schedule
from irkit.schedule.wavefront import schedule_wavefront

CHAIN, TASKS, UNITS = 5, 4, 16
ALL = {"cell"}


def chain() -> Schedule:
    """Cells that read all of what the one before wrote, on the same vEUs, each waiting for it."""
    buffers = [Buffer("x", "input", (1, UNITS), 4, element="float32", port=0)]
    launches, appends = [], []
    for n in range(CHAIN):
        last = n == CHAIN - 1
        buffers.append(Buffer(f"h{n}", "output" if last else "arena", (1, UNITS), 4))
        reads = (Access(n, whole((1, UNITS), TASKS)),)
        writes = (Access(n + 1, split((1, UNITS), TASKS)),)
        launches.append(Launch(f"cell{n}", "cell", TASKS, reads, writes, 1000.0))
        appends.append(Append(n, 0, TASKS, n, (n - 1,) if n else ()))
    return Schedule(device("test4"), buffers, launches, appends)


def carried_chain() -> Schedule:
    return plan_memory(carry_values(chain(), ALL))


def test_a_chain_waits_for_nothing() -> None:
    made = carried_chain()
    assert [a.carried for a in made.appends] == [(), *[(0,)] * (CHAIN - 1)]
    assert not any(a.waits for a in made.appends)
    verify_schedule(made)


def test_what_comes_without_order_shares_no_bytes() -> None:
    """A wait would let the cells have two places in turn."""
    waiting, carrying = plan_memory(chain()), carried_chain()
    assert waiting.arena_bytes == 2 * 256
    assert carrying.arena_bytes == (CHAIN - 1) * 256
    crowded = replace(carrying, buffers=list(waiting.buffers), arena_bytes=waiting.arena_bytes)
    with pytest.raises(ScheduleError, match=r"'(race|arena)'"):
        verify_schedule(crowded)


def test_who_cannot_read_and_store_so_waits() -> None:
    given = chain()
    assert carry_values(given, set()) is given


def test_without_the_attribute_it_is_a_race() -> None:
    made = carried_chain()
    bare = replace(made, appends=[replace(a, carried=()) for a in made.appends])
    with pytest.raises(ScheduleError, match="'race': read after write on 'h0'"):
        verify_schedule(bare)


class _Everything:
    def __contains__(self, symbol: object) -> bool:
        return True


def random_carrying(seed: int) -> Schedule:
    """A random program in which whatever can be is carried."""
    program = RandomProgram(seed, 3 + seed % 6)
    placed = schedule_wavefront(program.buffers, program.launches, device("test4"))
    return plan_memory(carry_values(placed, _Everything()))


def test_random_programs_that_carry_are_proved_and_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """In all orders tried; and so is every change of them that the proof accepts."""
    # The elements of the toys are of eight bytes.
    monkeypatch.setattr("irkit.schedule.carried.ELEMENT_BYTES", 8)
    carried = refused = 0
    for seed in range(30):
        made = random_carrying(seed)
        if not made.notes.get("carried"):
            continue
        verify_schedule(made)
        expected = sequential(made)
        assert not goes_wrong(made, expected, tries=3), seed
        carried += 1
        for number, append in enumerate(made.appends):
            for change in ({"carried": ()}, {"waits": ()}, {"carried": (0, 1)}, {"carried": (0,)}):
                appends = list(made.appends)
                appends[number] = replace(append, **change)
                changed = replace(made, appends=appends)
                try:
                    verify_schedule(changed)
                except ScheduleError:
                    refused += 1
                    continue
                assert not goes_wrong(changed, expected, tries=1), (seed, number, change)
    assert carried > 10
    assert refused > carried


def edited(what: str) -> Schedule:
    """A chain in which one thing is not as it must be."""
    made = carried_chain()
    buffers, launches, appends = list(made.buffers), list(made.launches), list(made.appends)
    if what == "a part is read":
        part = Access(1, boxes(*[[(0, 1), (0, UNITS - 1)]] * TASKS))
        launches[1] = replace(launches[1], reads=(part,))
    elif what == "no such operand":
        appends[1] = replace(appends[1], carried=(1,))
    elif what == "an input":
        appends[0] = replace(appends[0], carried=(0,))
    elif what == "a later append":
        appends[1], appends[2] = replace(appends[2], wave=1), replace(appends[1], wave=2)
    elif what == "eight bytes":
        buffers = [replace(b, itemsize=8) for b in buffers]
    elif what == "twice":
        appends[1] = replace(appends[1], carried=(0, 0))
    elif what == "several writers":
        launches[3] = replace(launches[3], writes=(Access(1, split((1, UNITS), TASKS)),))
    elif what == "a wait forward":
        appends[0] = replace(appends[0], waits=(1,))
    elif what == "a CPU":
        return replace(made, device=device("cpu4"))
    return replace(made, buffers=buffers, launches=launches, appends=appends)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("a part is read", "not every rTask reads all"),
        ("no such operand", "no such operand"),
        ("an input", "input memory"),
        ("a later append", "no earlier append"),
        ("eight bytes", "no elements of 4 bytes"),
        ("twice", "carries an operand twice"),
        ("several writers", "not written by one launch"),
        ("a wait forward", "waits for a later append"),
        ("a CPU", "wait on counters alone"),
    ],
)
def test_what_is_refused(what: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=f"'carried'.*{message}"):
        verify_schedule(edited(what))


def test_pieces_are_the_elements_of_a_box() -> None:
    """Of random boxes, those that are rows at one distance, exactly."""
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(300):
        shape = tuple(rng.integers(1, 5, size=rng.integers(1, 5)).tolist())
        low = [int(rng.integers(0, n)) for n in shape]
        box = np.array([(a, int(rng.integers(a, n + 1))) for a, n in zip(low, shape, strict=True)])
        inside = np.zeros(shape, bool)
        inside[tuple(slice(a, b) for a, b in box)] = True
        found = written_pieces(box[None], shape)
        if found is None:
            refused += 1
            continue
        first, rows, run, distance = found[0].tolist()
        elements = {first + r * distance + c for r in range(rows) for c in range(run)}
        assert elements == set(np.flatnonzero(inside.ravel()).tolist())
    assert refused < 60


def test_rows_of_a_batch_are_pieces() -> None:
    part = boxes(*[[(0, 3), column] for column in cut(10, 4)])
    found = written_pieces(part, (3, 10))
    assert found is not None
    assert found.tolist() == [[0, 3, 2, 10], [2, 3, 3, 10], [5, 3, 2, 10], [7, 3, 3, 10]]


def register_gpu2(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU of two multiprocessors, neither of which has room for all weights, and on which waits take no
    time, so that cells are shared out."""
    made = replace(
        device("h200"),
        name="gpu2",
        veus=2,
        multiprocessors=2,
        wait_ns=1.0,
        shared_bytes=128 * 1024,
    )
    monkeypatch.setitem(devices._REGISTRY, "gpu2", lambda: made)


@pytest.fixture(scope="module")
def program() -> tuple[str, object, np.ndarray, np.ndarray]:
    """A written-out recurrence on two vEUs: its emitted text, weights, an input and the answer."""
    with pytest.MonkeyPatch.context() as patch:
        register_gpu2(patch)
        module, context = scheduled(written_out(4, 128), "gpu2")
        x = np.random.default_rng(1).standard_normal((4, 1, 128)).astype(np.float32)
        want = run_module(module, context.weights, [x])[0]
        assert any(a.carried is not None for a in cells_of(module))
        return emit_module(module, context.weights), context.weights, x, want


@pytest.mark.parametrize(
    ("mode", "seed"), [*(("persistent", n) for n in range(3)), ("per-wave", 0), ("per-op", 0)]
)
def test_the_kernels_carry(
    monkeypatch: pytest.MonkeyPatch, program: tuple[str, object, np.ndarray, np.ndarray],
    mode: str, seed: int,
) -> None:  # fmt: skip
    source, weights, x, want = program
    register_gpu2(monkeypatch)
    run = Emulated(monkeypatch, source, weights, mode, seed)
    for scale in (1, -0.5):
        found = run(x * np.float32(scale))[0]
        if scale == 1:
            np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)
    assert not np.allclose(found, want, atol=1e-3)


# Changes of the walker; whoever does not look at the number of the run takes a value of the run before.
CHANGES = {
    "the run's number": (
        "while uint32(word >> uint64(32)) != tag:",
        "while uint32(word >> uint64(32)) == 0:",
    ),
    "the element": ("staged[element] = uint32(word)", "staged[0] = uint32(word)"),
    "the piece": (
        "element = piece_first + row * distance + column",
        "element = row * distance + column",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_walker_shows(
    monkeypatch: pytest.MonkeyPatch, program: tuple[str, object, np.ndarray, np.ndarray], what: str
) -> None:
    source, weights, x, _ = program
    register_gpu2(monkeypatch)
    right = Emulated(monkeypatch, source, weights, "persistent", 0)
    wanted = [right(x)[0], right(x * np.float32(0.5))[0]]
    old, new = CHANGES[what]
    assert source.count(old) == 1

    def shows(seed: int) -> bool:
        run = Emulated(monkeypatch, source.replace(old, new), weights, "persistent", seed)
        try:
            found = [run(x)[0], run(x * np.float32(0.5))[0]]
        except Exception:
            return True
        return any(not np.array_equal(f, w) for f, w in zip(found, wanted, strict=True))

    assert any(shows(seed) for seed in range(3))


def test_the_table_says_what_is_carried(
    program: tuple[str, object, np.ndarray, np.ndarray],
) -> None:
    made, facts = read_facts(program[0])
    assert made.mail.carried
    assert facts.stage
    assert made.tables == made.digest()
    assert (
        replace(made, mail=made.mail._replace(carried=made.mail.carried[1:])).digest()
        != made.tables
    )
