"""The persistent kernel of a program with loops, and what places its slices in other modes, as text.

Every block walks its part of a run as it would walk a program, then all blocks meet, then the next run
begins: nothing in a loop asks for the host. A block copies the table of its steps (`StepPlaces` of
`irkit/schedule/step_tables.py`) into its shared memory when a call begins, and its first thread counts the
loops' turns there; where slices lie in a turn every block works out for itself, in its own table of bases.

Counters, and the word where blocks meet, are never set back. A run's waits are for what its appends have
signalled in all calls and turns so far, and a meeting's for all blocks having come to it as often.
"""

from __future__ import annotations

import textwrap

from irkit.lower.task_to_numba.walkers_cuda import RECORDS, Layout, fill

_STEPS = '''\
@fused
def next_run(table):
    """The line of the next run of a call, that behind all at its end: loops count their turns on the way."""
    line = table[0]
    while line < LINES and table[CODE_AT + CODE_WORDS * line] != 0:
        word = CODE_AT + CODE_WORDS * line
        loop = TURNS_AT + table[word + 1]
        line += 1
        if table[word] == 1:
            table[loop] = 0
        else:
            table[loop] += 1
            if table[loop] < table[word + 2]:
                line = table[word + 3]
    return line


@fused
def move_bases(table, bases, first, last):
    """Put the bases first to last where they lie in this turn of the loops around."""
    number = first + thread_index()
    while number < last:
        word = MOVES_AT + MOVE_WORDS * number
        address = bases[table[word + 1] + 1] + table[word + 2]
        for loop in range(DEPTH):
            address += table[word + 3 + loop] * table[TURNS_AT + loop]
        bases[table[word] + 1] = address
        number += THREADS


@fused
def meet(meeting, target):
    """Wait for all blocks to come here: what they wrote before is seen from now on."""
    red_release_add(meeting, uint32(1))
    while int32(ld_acquire(meeting) - target) < int32(0):
        pass
'''

_HEAD = '''\
def persistent(records, bases, counters, meeting, steps, epoch, rows, rows_padded):
    """Block v walks its part of every run, in every turn; between two runs all blocks meet."""
    thread = thread_index()
    slots = shared_of(int64(0), RECORD_TABLE)
    addresses = shared_of(int64(0), ADDRESS_TABLE)
    table = shared_of(int64(0), STEP_TABLE)
    fill_bases(bases)
    copy16(int64(address_of(table)), steps + block_index() * (STEP_WORDS * 8), STEP_WORDS * 8)
    cp_async_wait()
    cuda.syncthreads()
    before = (epoch - 1) * MEETINGS
    met = int64(0)
    while True:
        if thread == 0:
            table[0] = next_run(table)
        cuda.syncthreads()
        line = table[0]
        if line >= LINES:
            break
        word = CODE_AT + CODE_WORDS * line
        first = table[RANGES_AT + 2 * table[word + 1]]
        last = table[RANGES_AT + 2 * table[word + 1] + 1]
        # How often this run was begun, in all calls: its counters have been signalled as often.
        turn = (epoch - 1) * table[word + 2] + table[RAN_AT + line] + 1
        # Records never change, so the first is fetched while others are waited for.
        if first < last:
            copy16(int64(address_of(slots)), records + first * (RECORD * 8), RECORD * 8)
        if thread == 0 and met > 0:
            meet(meeting, uint32((before + met) * block_count()))
        met += 1
        move_bases(table, shared_of(int64(0), BASE_TABLE), table[word + 3], table[word + 4])
        cp_async_wait()
        cuda.syncthreads()
'''

_TAIL = """\
        if thread == 0:
            table[RAN_AT + line] += 1
            table[0] = line + 1
"""

_PLACE = '''\
def place(bases, moves, first, last, turns, trips):
    """Put the bases first to last where they lie in this turn of the loops around a run, and count on to the
    next turn. One block."""
    table = i64p(bases)
    now = i64p(turns)
    number = first + thread_index()
    while number < last:
        move = i64p(moves + number * (MOVE_WORDS * 8))
        address = table[move[1]] + move[2]
        for loop in range(DEPTH):
            address += move[3 + loop] * now[loop]
        table[move[0]] = address
        number += THREADS
    cuda.syncthreads()
    if thread_index() == 0:
        loop = int64(DEPTH) - 1
        while loop >= 0:
            now[loop] += 1
            if now[loop] < i64p(trips)[loop]:
                loop = int64(-1)
            else:
                now[loop] = 0
                loop -= 1
'''


def stepped_text(layout: Layout) -> str:
    """Text of the persistent kernel of a program with loops; `run_task` must stand before it."""
    walk = textwrap.indent(RECORDS.replace("epoch", "turn").replace("RUN_TASK", "run_task"), "    ")
    return "\n\n".join((fill(_STEPS, layout), fill(_HEAD + walk + _TAIL, layout)))


def place_text(layout: Layout) -> str:
    """Text of the kernel `place`, which a program with slices that move has."""
    return fill(_PLACE, layout)
