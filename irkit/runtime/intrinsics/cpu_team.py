"""What the threads of a team run: they wait for jobs, awake at first, and walk the records of a program.

A job is int64 words in memory (`JOB`), and says which records a vEU walks. A mailbox is what two threads know
of each other, words again, on cache lines of their own: how many jobs were posted, how many are done, whether
the thread sleeps, and on what. `runtime/veu_team.py` compiles these into one module, which runs the jobs of
all programs.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

from typing import Any, Final

import llvmlite.binding as llvm
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from irkit.runtime.intrinsics.cpu import (
    add_release,
    call_rkernel,
    exchange,
    int8p,
    int64p,
    load_acquire,
    sched_yield,
    wait_for,
)
from irkit.runtime.intrinsics.posix_threads import (
    SLEEPER_WORDS,
    begin_places,
    make_sleeper,
    sleep,
    wake,
    will_sleep,
)

_I64 = ir.IntType(64)

JOB: Final = (
    "records", "words", "operands_at", "begin", "end", "bases", "counters", "epoch", "rows", "rows_padded",
    "address", "operands", "done", "steps",
)  # fmt: skip
"""Words of a job: addresses of its tables, int64 words of a record, where its operands begin, the range to
walk, what `run` of an emitted module takes, how many operands `address` has room for; how many were run; the
address of the steps that it is one of, or 0."""
(
    _RECORDS,
    _WORDS,
    _OPERANDS_AT,
    _BEGIN,
    _END,
    _BASES,
    _COUNTERS,
    _EPOCH,
    _ROWS,
    _PADDED,
    _ADDRESS,
) = range(11)
_OPERANDS, DONE, _STEPS = 11, 12, 13

STEPS: Final = (
    "code", "lines", "ranges", "moves", "depth", "team", "meeting", "local",
)  # fmt: skip
"""Words of a vEU's steps (`schedule/step_tables.py`): addresses of the tables, of `ranges` its own; how many
vEUs meet, and the counter where they do; memory for the iterations, and how often each range was run and they
have met in all calls."""

RANGE: Final = slice(3, 5)
CALL: Final = slice(7, 10)
"""Of a job: the range; epoch and rows, which change from call to call."""
LOST: Final = -(1 << 40)
"""What a job with steps has done that did not come to its end: less than nothing, whatever others did."""
JOB_WORDS: Final = 16
"""From one job to the next: each has cache lines of its own."""
_POSTED, _JOB, _FINISHED, _TAKEN, _SLEEPER = 0, 1, 8, 16, 24
MAILBOX_WORDS: Final = _SLEEPER + SLEEPER_WORDS
"""Words of a mailbox: the number of jobs posted and the last one's address, and, from these on: jobs done;
jobs taken, by the thread or by who posted them; what the thread sleeps on (`posix_threads.py`)."""
_FINISHED_AT, _TAKEN_AT, _SLEEPER_AT = 8 * _FINISHED, 8 * _TAKEN, 8 * _SLEEPER
_LIMIT = 100_000_000
# Spins of one that waits for a job to be done, before it lets others run.
_SPINS = 2_000


@intrinsic
def put_in_place_of(typingctx: Any, address: Any, expected: Any, value: Any) -> Any:
    """Put a value into the int64 at an address if the expected one is there; whether it was. Ordered with all
    before and after."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], _I64.as_pointer())
        found = builder.cmpxchg(pointer, arguments[1], arguments[2], "seq_cst", "seq_cst")
        return builder.extract_value(found, 1)

    return types.boolean(types.int64, types.int64, types.int64), codegen


@intrinsic
def pause(typingctx: Any) -> Any:
    """Tell the processor that this is a loop which waits."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if llvm.get_process_triple().startswith("x86_64"):
            kind = ir.FunctionType(ir.VoidType(), [])
            hint = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause")
            builder.call(hint, [])
        return context.get_dummy_value()

    return types.void(), codegen


@njit(nogil=True)
def walk(at: int) -> None:
    """Run a job, as `run` of an emitted module does, or all its steps."""
    if int64p(at)[_STEPS] != 0:
        walk_steps(at)
    else:
        walk_range(at)


@njit(nogil=True)
def walk_steps(at: int) -> None:
    """Run the steps of a job: behind each run, and behind each question, all vEUs meet."""
    job = int64p(at)
    steps = int64p(job[_STEPS])
    code, ranges, depth = int64p(steps[0]), int64p(steps[2]), steps[4]
    iterations, ran = int64p(steps[7]), int64p(steps[7] + 8 * depth)
    epoch, total, line = job[_EPOCH], 0, 0
    lost = False
    while line < steps[1]:
        word = 5 * line
        kind, which, times = code[word], code[word + 1], code[word + 2]
        line += 1
        if kind == 0:
            place_bases(job[_BASES], steps[3], code[word + 3], code[word + 4], depth, steps[7])
            job[_BEGIN], job[_END] = ranges[2 * which], ranges[2 * which + 1]
            # Counters are never set back, and no job is of a call that failed.
            ran[which] += 1
            job[_EPOCH] = ran[which]
            walk_range(at)
            total += job[DONE]
            lost = job[DONE] != job[_END] - job[_BEGIN]
            lost = lost or not meet(steps, ran)
        elif kind == 1:
            iterations[which] = 0
        elif kind == 2:
            iterations[which] += 1
            if iterations[which] < times:
                line = code[word + 3]
        else:
            go_on = int8p(int64p(job[_BASES])[which] + times)[0]
            # Before all have looked, nobody may write there.
            lost = not meet(steps, ran)
            if go_on == 0:
                line = code[word + 3]
        if lost:
            break
    for n in range(depth):
        iterations[n] = 0
    job[_EPOCH], job[DONE] = epoch, LOST if lost else total


@njit(nogil=True)
def meet(steps: Any, ran: Any) -> bool:
    """Wait for all vEUs to come here; False if they did not. How often they met is behind what was ran."""
    if steps[5] < 2:
        return True
    ran[steps[1]] += 1
    add_release(steps[6], 1)
    return wait_for(steps[6], ran[steps[1]] * steps[5], _LIMIT)


@njit(nogil=True)
def place_bases(bases: int, moves: int, first: int, last: int, depth: int, iterations: int) -> None:
    """Move the bases first to last to where they lie in this iteration."""
    table, counts = int64p(bases), int64p(iterations)
    for n in range(first, last):
        move = int64p(moves + 8 * (3 + depth) * n)
        address = table[move[1]] + move[2]
        for d in range(depth):
            address += move[3 + d] * counts[d]
        table[move[0]] = address


@njit(nogil=True)
def walk_range(at: int) -> None:
    """Run the records of a job."""
    job = int64p(at)
    bases, address = int64p(job[_BASES]), int64p(job[_ADDRESS])
    counters, epoch, padded = job[_COUNTERS], job[_EPOCH], job[_PADDED]
    for i in range(job[_BEGIN], job[_END]):
        record = int64p(job[_RECORDS] + 8 * job[_WORDS] * i)
        for w in range(record[4]):
            count = epoch * record[7 + 2 * w]
            if not wait_for(counters + 8 * record[6 + 2 * w], count, _LIMIT):
                job[DONE] = i - job[_BEGIN]
                return
        for o in range(job[_OPERANDS]):
            first = job[_OPERANDS_AT] + 3 * o
            address[o] = bases[record[first]] + record[first + 1] + record[first + 2] * padded
        scratch = address[job[_OPERANDS]]
        call_rkernel(record[0], record[1], record[2], job[_ROWS], scratch, job[_ADDRESS])
        if record[3] >= 0:
            add_release(counters + 8 * record[3], 1)
    job[DONE] = job[_END] - job[_BEGIN]


@njit(nogil=True)
def take(mailbox: int) -> bool:
    """Take the last job posted; False if somebody has. Who posts waits until a job is done, so that only the
    last one can be open, and the mailbox has its address as long as it is not done."""
    posted = load_acquire(mailbox)
    taken = load_acquire(mailbox + _TAKEN_AT)
    return taken < posted and put_in_place_of(mailbox + _TAKEN_AT, posted - 1, posted)


@njit(nogil=True)
def make_mailbox(mailbox: int, places: int) -> None:
    """Make one of zeros, whose thread keeps clear of the set of CPUs at `places`."""
    make_sleeper(mailbox + _SLEEPER_AT, places)


@njit(nogil=True)
def serve_jobs(mailbox: int, patience: int) -> None:
    """Walk jobs as they come, until the thread shall end. After `patience` pauses without one it sleeps until
    it is woken."""
    words = int64p(mailbox)
    idle = 0
    while True:
        if take(mailbox):
            if words[_JOB] == 0:
                return
            walk(words[_JOB])
            add_release(mailbox + _FINISHED_AT, 1)
            idle = 0
        elif idle < patience:
            pause()
            idle += 1
        else:
            idle = 0
            will_sleep(mailbox + _SLEEPER_AT)
            # Who posted before that did not see it; then nobody wakes this thread.
            if load_acquire(mailbox) != load_acquire(mailbox + _TAKEN_AT):
                wake(mailbox + _SLEEPER_AT)
            sleep(mailbox + _SLEEPER_AT)


@njit(nogil=True)
def post_job(mailbox: int, job: int) -> bool:
    """Give a job, or 0 to end, to the thread of a mailbox; whether it slept, and was woken for it."""
    words = int64p(mailbox)
    words[_JOB] = job
    exchange(mailbox, words[_POSTED] + 1)
    return wake(mailbox + _SLEEPER_AT)


@njit(nogil=True)
def wake_up(mailbox: int) -> bool:
    """Let the thread of a mailbox look for a job; whether it slept."""
    return wake(mailbox + _SLEEPER_AT)


@njit(nogil=True)
def run_jobs(jobs: int, veus: int, count: int, mailboxes: int, members: int, places: int) -> None:
    """Walk those of `jobs` that are numbered in `veus`, an array of `count`: the first on this thread, the
    others on those of the first of `members` mailboxes."""
    numbers = int64p(veus)
    begin_places(places)
    for n in range(1, count):
        post_job(mailboxes + 8 * MAILBOX_WORDS * (n - 1), jobs + 8 * JOB_WORDS * numbers[n])
    finish_jobs(jobs + 8 * JOB_WORDS * numbers[0], mailboxes, members)


@njit(nogil=True)
def finish_jobs(job: int, mailboxes: int, count: int) -> None:
    """Walk a job, unless it is 0, and wait until `count` mailboxes, one behind another, have none left.

    A job that its thread has not begun by then is walked here: the processor has other work for the thread.
    """
    if job != 0:
        walk(job)
    for n in range(count):
        mailbox = mailboxes + 8 * MAILBOX_WORDS * n
        if take(mailbox):
            walk(int64p(mailbox)[_JOB])
            add_release(mailbox + _FINISHED_AT, 1)
        spins = 0
        while load_acquire(mailbox + _FINISHED_AT) < int64p(mailbox)[_POSTED]:
            pause()
            spins += 1
            if spins > _SPINS:
                sched_yield()
