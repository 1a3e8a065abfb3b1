"""Each rule of the verifier, broken once, and what it says then."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from schedule_toys import boxes, split, whole

from irkit.errors import ScheduleError
from irkit.schedule.block_memory import walker_bytes
from irkit.schedule.devices import device
from irkit.schedule.model import Access, Append, Buffer, Launch, Resident, Schedule
from irkit.schedule.modes import Mode
from irkit.schedule.planner import plan_memory
from irkit.schedule.residents import pin_residents
from irkit.schedule.verifier import verify_schedule

TEST4 = device("test4")


def proved() -> Schedule:
    """n0 makes a from x and w, n1 makes b from a and w, n2 makes c from b, n3 the output from c."""
    buffers = [
        Buffer("x", "input", (4,), 8),
        Buffer("w", "constant", (2, 40), 8),
        Buffer("a", "arena", (4,), 8),
        Buffer("b", "arena", (4,), 8),
        Buffer("c", "arena", (4,), 8),
        Buffer("o", "output", (4,), 8),
    ]
    all_of, part, weights = whole((4,), 2), split((4,), 2), split((2, 40), 2, axis=0)
    launches = [
        Launch("n0", "toy", 2, (Access(0, all_of), Access(1, weights)), (Access(2, part),)),
        Launch("n1", "toy", 2, (Access(2, all_of), Access(1, weights)), (Access(3, part),)),
        Launch("n2", "toy", 2, (Access(3, all_of),), (Access(4, part),), 1000.0, 512),
        Launch("n3", "toy", 1, (Access(4, whole((4,), 1)),), (Access(5, whole((4,), 1)),)),
    ]
    appends = [
        Append(0, 0, 2),
        Append(1, 0, 2, 1, waits=(0,)),
        Append(2, 1, 2, 2, waits=(1,)),
        Append(3, 3, 1, 3, waits=(2,)),
    ]
    return plan_memory(pin_residents(Schedule(TEST4, buffers, launches, appends)))


def with_append(schedule: Schedule, number: int, **changes) -> Schedule:
    appends = list(schedule.appends)
    appends[number] = replace(appends[number], **changes)
    return replace(schedule, appends=appends)


def with_buffer(schedule: Schedule, number: int, **changes) -> Schedule:
    buffers = list(schedule.buffers)
    buffers[number] = replace(buffers[number], **changes)
    return replace(schedule, buffers=buffers)


def with_launch(schedule: Schedule, number: int, **changes) -> Schedule:
    launches = list(schedule.launches)
    launches[number] = replace(launches[number], **changes)
    return replace(schedule, launches=launches)


def rejected(schedule: Schedule) -> str:
    with pytest.raises(ScheduleError) as caught:
        verify_schedule(schedule)
    return str(caught.value)


def test_the_schedule_is_proved_as_it_is() -> None:
    schedule = proved()
    verify_schedule(schedule)
    assert [bool(a.residents) for a in schedule.appends] == [True, True, False, False]


def test_once() -> None:
    schedule = proved()
    assert "'n3' is never appended" in rejected(replace(schedule, appends=schedule.appends[:-1]))
    twice = [*schedule.appends, Append(3, 3, 1)]
    assert "'n3' is appended twice, as appends 3 and 4" in rejected(
        replace(schedule, appends=twice)
    )


def test_placement() -> None:
    assert "rule 'placement'" in rejected(with_append(proved(), 1, first_veu=3))
    assert "rule 'placement'" in rejected(with_append(proved(), 1, first_veu=-1))
    assert "rule 'placement'" in rejected(with_append(proved(), 1, veus=0))


def test_names_of_things_that_are_not_there() -> None:
    assert "names launch 9" in rejected(with_append(proved(), 1, launch=9))
    assert "waits for append 12" in rejected(with_append(proved(), 1, waits=(12,)))
    assert "names buffer 9" in rejected(with_launch(proved(), 3, reads=(Access(9, boxes([])),)))


def test_deadlock() -> None:
    assert "rule 'deadlock'" in rejected(with_append(proved(), 0, waits=(3,)))


def test_race_names_both_rtasks() -> None:
    text = rejected(with_append(proved(), 2, waits=()))
    assert "rule 'race': read after write on 'b'" in text
    assert "append 1 ('n1') rTask 0 on vEU 0" in text
    assert "append 2 ('n2') rTask 0 on vEU 1" in text


def test_ordered_the_wrong_way_round_is_a_race() -> None:
    """All rTasks on one vEU, but the reader before its writer."""
    schedule = proved()
    appends = [Append(n, 0, 1) for n in (1, 0, 2, 3)]
    assert "read after write on 'a'" in rejected(replace(schedule, appends=appends))


def test_rtasks_of_one_launch_race_with_each_other() -> None:
    both = (Access(3, whole((4,), 2)),)
    schedule = with_launch(proved(), 1, writes=both)
    assert "write after write on 'b'" in rejected(schedule)
    reading = with_launch(proved(), 1, reads=(Access(2, whole((4,), 2)), Access(3, whole((4,), 2))))
    assert "rule 'alias': 'n1' writes to 'b' what it reads as operand 1" in rejected(reading)


def test_rtasks_of_one_launch_on_one_veu_are_ordered() -> None:
    schedule = with_launch(proved(), 2, writes=(Access(4, whole((4,), 2)),))
    assert "rule 'race'" in rejected(schedule)
    proof = verify_schedule(with_append(schedule, 2, veus=1))
    # Alone in a kernel, they are not.
    assert Mode.PER_OP not in proof.modes
    assert "write after write on 'c'" in proof.refused[Mode.PER_OP]


def test_every_mode_of_a_schedule_in_waves_is_proved() -> None:
    assert verify_schedule(proved()).modes == list(Mode)


def test_waves_are_proved() -> None:
    """Two dependent appends of one wave, ordered by a wait: right only where waits are looked at."""
    proof = verify_schedule(with_append(proved(), 2, wave=1))
    assert proof.modes == [Mode.SERIAL, Mode.PERSISTENT]
    for mode in (Mode.PER_WAVE, Mode.PER_OP):
        assert "rule 'race': read after write on 'b'" in proof.refused[mode]


def test_waves_follow_each_veus_list() -> None:
    proof = verify_schedule(with_append(proved(), 0, wave=5))
    assert Mode.PER_WAVE not in proof.modes
    assert "rule 'wave'" in proof.refused[Mode.PER_WAVE]


def test_bytes_are_reused_only_where_each_mode_allows_it() -> None:
    """c takes the bytes of a, which n1 reads: safe behind a wait, not within one wave."""
    proof = verify_schedule(with_append(proved(), 2, wave=1, waits=(0, 1)))
    assert Mode.PER_WAVE not in proof.modes
    buffers = [replace(b, offset=None) for b in proved().buffers]
    own = plan_memory(replace(proved(), buffers=buffers))
    assert verify_schedule(own).modes == list(Mode)


def test_unwritten() -> None:
    elsewhere = with_buffer(proved(), 3, name="d")
    elsewhere = replace(
        elsewhere, buffers=[*elsewhere.buffers, Buffer("e", "arena", (4,), 8, offset=512)]
    )
    elsewhere = replace(elsewhere, arena_bytes=1024)
    lost = with_launch(elsewhere, 1, writes=(Access(6, split((4,), 2)),))
    text = rejected(lost)
    assert "rule 'unwritten'" in text
    assert "append 2 ('n2') rTask 0 on vEU 1 reads elements of 'd'" in text


def test_results_are_written_everywhere() -> None:
    half = with_launch(proved(), 1, writes=(Access(3, boxes([(0, 1)], [(2, 4)])),))
    assert "rule 'unwritten': append 1 ('n1') writes only a part of 'b'" in rejected(half)
    part = with_launch(proved(), 3, writes=(Access(5, boxes([(0, 3)])),))
    assert "append 3 ('n3') writes only a part of 'o'" in rejected(part)


def test_unwritten_through_views() -> None:
    schedule = proved()
    view = Buffer("v", "arena", (2,), 8, parent=3, parent_offset=16)
    schedule = replace(schedule, buffers=[*schedule.buffers, view])
    good = with_launch(schedule, 2, reads=(Access(6, whole((2,), 2)),))
    verify_schedule(good)
    first = replace(view, name="u", parent_offset=0)
    good = replace(good, buffers=[*good.buffers, first])
    bad = with_launch(good, 1, writes=(Access(7, split((2,), 2)),))
    assert "reads elements of 'v'" in rejected(bad)
    verify_schedule(with_launch(good, 1, writes=(Access(6, split((2,), 2)),)))


def test_a_view_races_with_its_parent() -> None:
    schedule = proved()
    view = Buffer("v", "arena", (2,), 8, parent=3, parent_offset=16)
    schedule = replace(schedule, buffers=[*schedule.buffers, view])
    schedule = with_launch(schedule, 2, reads=(Access(6, whole((2,), 2)),))
    assert "rule 'race'" in rejected(with_append(schedule, 2, waits=()))


def test_views_of_batches_with_other_rows() -> None:
    """Shares of a view with other rows than its parent's say nothing; only the whole does."""
    buffers = [
        Buffer("p", "rows", (-1, 2), 8),
        Buffer("v", "rows", (-1, 1), 8, parent=0, parent_offset=8),
        Buffer("o", "output", (-1, 1), 8),
    ]
    shares, one = split((2, 1), 2, axis=0), whole((1, 1), 1)
    launches = [
        Launch("n0", "toy", 2, (), (Access(0, split((2, 2), 2, axis=0)),)),
        Launch("n1", "toy", 2, (Access(1, shares),), (Access(2, shares),)),
    ]
    local = Schedule(TEST4, buffers, launches, [Append(0, 0, 2), Append(1, 0, 2)])
    assert "rule 'race'" in rejected(plan_memory(local))
    waiting = with_append(local, 1, waits=(0,))
    verify_schedule(plan_memory(waiting))
    half = with_launch(waiting, 0, writes=(Access(0, boxes([(0, 2), (0, 1)], [(0, 2), (1, 1)])),))
    assert "rule 'unwritten'" in rejected(plan_memory(half))
    assert one.shape == (1, 2, 2)


def test_constants_and_inputs_are_not_written() -> None:
    schedule = with_launch(proved(), 3, writes=(Access(0, whole((4,), 1)),))
    assert "rule 'constant': 'n3' writes to 'x', which is input memory" in rejected(schedule)


def test_arena() -> None:
    schedule = proved()
    offsets = [b.offset for b in schedule.buffers[2:5]]
    assert offsets[0] == offsets[2] != offsets[1]  # a and c share, b lies between
    text = rejected(with_buffer(schedule, 3, offset=offsets[0]))
    assert "rule 'arena'" in text
    assert "share bytes" in text
    assert "no offset" in rejected(with_buffer(schedule, 3, offset=None))
    assert "not aligned to 256" in rejected(with_buffer(schedule, 3, offset=128))
    assert "outside" in rejected(with_buffer(schedule, 3, offset=1024))
    assert "outside" in rejected(with_buffer(schedule, 3, offset=-256))
    assert "cannot live in 'rows'" in rejected(with_buffer(schedule, 3, space="rows"))


def test_no_space_is_less_than_empty() -> None:
    bare = replace(proved(), row_bytes=-16)
    assert "rule 'arena': row_bytes of -16" in rejected(bare)


def test_one_rtask_may_not_overwrite_what_it_reads() -> None:
    """a and b are both used by n1, so even on one vEU they cannot share bytes."""
    schedule = proved()
    single = replace(schedule, appends=[Append(n, 0, 1) for n in range(4)])
    verify_schedule(single)
    moved = with_buffer(single, 3, offset=single.buffers[2].offset)
    assert "'a' and 'b' share bytes" in rejected(moved)


def test_a_view_is_where_its_parent_is() -> None:
    schedule = proved()
    view = Buffer("v", "arena", (2,), 8, parent=3, parent_offset=16, offset=16)
    base = schedule.buffers[3].offset
    placed = replace(schedule, buffers=[*schedule.buffers, replace(view, offset=base + 16)])
    verify_schedule(placed)
    assert "view 'v'" in rejected(with_buffer(placed, 6, offset=base))


def test_scratch_fits() -> None:
    large = with_launch(proved(), 2, scratch_bytes=64 * 1024 + 1)
    assert "vEU 1 needs 65552 bytes of scratch, 512 bytes of shared memory are planned" in rejected(
        large
    )
    planned = replace(large, shared_bytes=65552)
    assert "65552 bytes of shared memory are planned" in rejected(planned)
    assert "a vEU has 65536 bytes on 'test4'" in rejected(planned)


def test_the_walkers_tables_fit() -> None:
    """A plan that fills a block leaves no room for records of many waits."""
    h200 = device("h200")
    schedule = replace(proved(), device=h200)
    assert walker_bytes(schedule) == 8 * (3 + 2 + 1 + 3 + 1 + 2 * (6 + 2 * 1 + 3 * 3 + 1))
    full = replace(schedule, shared_bytes=h200.shared_bytes - walker_bytes(schedule))
    verify_schedule(full)
    more = replace(full, shared_bytes=full.shared_bytes + 16)
    assert "rule 'shared'" in rejected(more)
    assert "the walker needs 368" in rejected(more)
    odd = replace(full, shared_bytes=full.shared_bytes - 8)
    assert "not a multiple of 16" in rejected(odd)


def test_blocks_are_resident_and_whole() -> None:
    h200 = device("h200")
    wide = replace(h200, veus=133)
    assert "rule 'device': 133 vEUs on 'h200'" in rejected(replace(proved(), device=wide))
    large = replace(h200, shared_bytes=228 * 1024)
    assert "a block of sm_90a has 232448 or fewer" in rejected(replace(proved(), device=large))
    thin = replace(h200, threads=32)
    assert "blocks of 32 threads" in rejected(replace(proved(), device=thin))


def test_residents() -> None:
    schedule = proved()
    assert "not aligned" in rejected(with_append(schedule, 0, residents=(Resident(1, 8),)))
    assert "not a constant" in rejected(with_append(schedule, 0, residents=(Resident(0, 0),)))
    assert "not a constant" in rejected(with_append(schedule, 0, residents=(Resident(7, 0),)))
    top = 64 * 1024 - 320
    high = with_append(schedule, 0, residents=(Resident(1, top),))
    assert "vEU 0 needs" in rejected(high)
    # 512 bytes of scratch on vEU 1, where nothing is kept any more, and while it is.
    roomy = replace(with_append(high, 1, residents=(Resident(1, top),)), shared_bytes=64 * 1024)
    verify_schedule(roomy)
    assert "vEU 0 needs" in rejected(with_launch(roomy, 1, scratch_bytes=512))
    columns = np.array(split((2, 40), 2, axis=1))
    reads = (schedule.launches[0].reads[0], Access(1, columns))
    assert "not one contiguous box" in rejected(with_launch(schedule, 0, reads=reads))


def test_residents_do_not_overlap() -> None:
    """The same constant at two places that overlap, then one rTask's part where another's is."""
    schedule = proved()
    roomy = replace(schedule, shared_bytes=64 * 1024)
    assert "overlap on vEU 0" in rejected(with_append(roomy, 0, residents=(Resident(1, 16),)))
    shifted = with_append(roomy, 0, first_veu=1)
    assert "overlap on vEU 1" in rejected(with_append(shifted, 1, waits=(0,)))


def updating(in_place: tuple[tuple[int, int], ...] = (), tasks: int = 2) -> Schedule:
    """n0 makes a from x; n1, a from a; n2 the output from a."""
    buffers = [
        Buffer("x", "input", (4,), 8),
        Buffer("a", "arena", (4,), 8),
        Buffer("o", "output", (4,), 8),
    ]
    part, all_of = split((4,), tasks), whole((4,), 1)
    launches = [
        Launch("n0", "toy", 1, (Access(0, all_of),), (Access(1, all_of),)),
        Launch("n1", "toy", tasks, (Access(1, part),), (Access(1, part),), in_place=in_place),
        Launch("n2", "toy", 1, (Access(1, all_of),), (Access(2, all_of),)),
    ]
    appends = [Append(0, 0, 1), Append(1, 0, 1, 1), Append(2, 0, 1, 2)]
    return plan_memory(Schedule(TEST4, buffers, launches, appends))


def test_alias() -> None:
    verify_schedule(updating(((0, 0),)))
    # Each rTask writes what it alone reads: but the rKernel may read it again.
    assert "rule 'alias': 'n1' writes to 'a' what it reads as operand 0" in rejected(updating())
    assert "rule 'alias'" in rejected(updating(((0, 1),)))


def test_alias_of_other_rtasks() -> None:
    """All on one vEU, one after another: a reader after a writer sees the new value."""
    schedule = updating(((0, 0),))
    access = Access(1, whole((4,), 2))
    text = rejected(with_launch(schedule, 1, reads=(access,)))
    assert "writes to 'a' in rTask 1 what rTask 0 touches of operand 0" in text


def test_alias_at_other_places() -> None:
    """The same bytes, as elements of another kind."""
    schedule = updating(((0, 0),), tasks=1)
    buffers = [*schedule.buffers, Buffer("v", "arena", (8,), 4, parent=1)]
    read = Access(3, whole((8,), 1))
    changed = with_launch(replace(schedule, buffers=buffers), 1, reads=(read,))
    assert "and reads it as operand 0 at other places" in rejected(changed)


def test_alias_of_two_results() -> None:
    schedule = updating()
    one = Access(1, whole((4,), 1))
    changed = with_launch(schedule, 0, writes=(one, one))
    assert "rule 'alias': 'n0' writes to 'a' as results 0 and 1 at once" in rejected(changed)
