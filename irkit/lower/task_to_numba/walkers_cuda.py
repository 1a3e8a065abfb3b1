"""The kernels around the rKernels of a CUDA module, as text.

`persistent` walks a vEU's list of rTasks, waiting and signalling, or the part of it that belongs to one wave,
doing neither; where it keeps operands in shared memory, carries values, or walks loops, `wave` is what walks
waves; `op_K` runs rOperator K alone, block b being rTask b. All arguments of an entry kernel are 64-bit
integers: addresses, or numbers. The records are those of docs/emission.md.

Dynamic shared memory of a block: what the schedule planned (residents from 0 on, an rTask's scratch at
the top end), and above that the walker's own: addresses of the bases, of the operands of the rTask at
hand, and two records, of which one is fetched while the other runs.

(This file's name does not start with "cuda" because numba-cuda's import hook takes any module whose
dotted name contains "numba.cuda" for its own.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from irkit.lower.task_to_numba.dispatch_cuda import Kernel
from irkit.lower.task_to_numba.mail_cuda import MAIL, RESOLVING, carrying
from irkit.schedule.block_memory import WORD, BlockMemory
from irkit.schedule.mail import stage_of
from irkit.schedule.step_tables import NO_STEPS, StepPlaces, places_of
from irkit.schedule.tables import CONSTANTS, HEADER, Program, record_sizes

COUNTER_BYTES = 32
"""Distance of two counters: one sector each, so that they do not contend."""


@dataclass(frozen=True)
class Layout:
    """What the walkers are printed for: threads of a block, where things lie in its memory, and whether
    constants stay there."""

    threads: int
    memory: BlockMemory
    steps: StepPlaces = NO_STEPS
    residents: bool = False

    def names(self) -> dict[str, str]:
        """What the placeholders of the walkers become."""
        memory, tables = self.memory, self.memory.tables
        values = {
            "THREADS": self.threads,
            "BASES": memory.bases,
            "MAX_OPERANDS": memory.max_operands,
            "WAITS_AT": HEADER,
            "OPERANDS_AT": memory.operands_at,
            "RECORD": memory.record_words,
            "TOP": tables,
            "BASE_TABLE": tables,
            "ADDRESS_TABLE": tables + WORD * (memory.bases + 1),
            "RECORD_TABLE": tables + WORD * memory.address_words,
            "COUNTER_BYTES": COUNTER_BYTES,
            "STEP_TABLE": memory.step_table,
            "MAIL_AT": memory.mail_at,
            "GATHERS": memory.stage.gathers,
            "CONSTANTS": CONSTANTS,
            **self.steps.names(),
        }
        return {name: str(value) for name, value in values.items()}


_HELPERS = '''\
@fused
def resolve(words, operand, table, rows_padded):
    """Address of an operand of a record: bases[base] + offset + bytes per row * rows."""
    at = OPERANDS_AT + 3 * operand
    return table[words[at] + 1] + words[at + 1] + words[at + 2] * rows_padded


@fused
def resolve_early(words, operand, bases, rows_padded):
    """As `resolve`, where other kernels still run: reads the table past what a multiprocessor keeps of it."""
    at = OPERANDS_AT + 3 * operand
    base = int64(ld_relaxed64(bases + 8 * words[at]))
    return base + words[at + 1] + words[at + 2] * rows_padded


@fused
def fetch_ahead(address, nbytes, part, parts):
    """Ask for one of equal parts of bytes that no kernel writes: they come to the cache of all."""
    share = divide(nbytes // 16 + parts - 1, parts)[0] * 16
    if part * share < nbytes:
        fetch_to_l2(address + part * share, min(share, nbytes - part * share))


@fused
def fill_bases(bases):
    """Copy the base table to shared memory; entry 0 is base -1, shared memory itself."""
    table = shared_of(int64(0), BASE_TABLE)
    entry = thread_index()
    while entry <= BASES:
        table[entry] = int64(shared_base()) if entry == 0 else i64p(bases)[entry - 1]
        entry += THREADS


@fused
def copy16(destination, source, nbytes):
    """Start copying to shared memory, all threads together; sizes and addresses in 16 bytes."""
    offset = thread_index() * 16
    while offset < nbytes:
        cp_async16(destination + offset, source + offset)
        offset += THREADS * 16


@fused
def copy(destination, source, nbytes):
    """Copy to shared memory, whatever the alignment."""
    if (destination | source | nbytes) & 15:
        offset = thread_index()
        while offset < nbytes:
            u8p(destination)[offset] = u8p(source)[offset]
            offset += THREADS
    else:
        copy16(destination, source, nbytes)


@fused
def resolve_all(words, rows_padded):
    """Addresses of all operands; the first warp is left to wait for other vEUs."""
    table = shared_of(int64(0), BASE_TABLE)
    addresses = shared_of(int64(0), ADDRESS_TABLE)
    operand = thread_index() - 32
    while 0 <= operand < MAX_OPERANDS:
        addresses[operand] = resolve(words, operand, table, rows_padded)
        operand += THREADS - 32
'''

_ASKING = '''\
@fused
def resolve_and_ask(words, rows_padded):
    """As `resolve_all`, and asks for the rTask's share of operands that are constants."""
    table = shared_of(int64(0), BASE_TABLE)
    addresses = shared_of(int64(0), ADDRESS_TABLE)
    operand = thread_index() - 32
    while 0 <= operand < MAX_OPERANDS:
        address = resolve(words, operand, table, rows_padded)
        addresses[operand] = address
        nbytes = bytes_ahead(words[0], operand)
        # What is kept in shared memory is there.
        if nbytes > 0 and words[OPERANDS_AT + 3 * operand] == CONSTANTS:
            fetch_ahead(address, nbytes, words[1], words[2])
        operand += THREADS - 32
'''

_HEAD = '''\
def persistent(
    records, starts, ends, bases, counters, residents, resident_begin, epoch, rows, rows_padded
):
    """Block v walks records starts[v] .. ends[v] of vEU v: wait, run, signal; without counters just run. What
    stays is copied before it is read first."""
    thread = thread_index()
    veu = block_index()
    slots = shared_of(int64(0), RECORD_TABLE)
    addresses = shared_of(int64(0), ADDRESS_TABLE)
    # On their way while the bases are.
    first = i64p(starts)[veu]
    last = i64p(ends)[veu]
    fill_bases(bases)
KEEPING\
    if first < last:
        copy16(int64(address_of(slots)), records + first * (RECORD * 8), RECORD * 8)
    cp_async_wait()
    cuda.syncthreads()
'''

RECORDS = """\
    for number in range(first, last):
        words = shared_of(int64(0), RECORD_TABLE + ((number - first) & 1) * (RECORD * 8))
        following = shared_of(int64(0), RECORD_TABLE + ((number - first + 1) & 1) * (RECORD * 8))
        if number + 1 < last:
            source = records + (number + 1) * (RECORD * 8)
            copy16(int64(address_of(following)), source, RECORD * 8)
        counter = words[3] if counters != 0 else int64(-1)
        waits = words[4] if counters != 0 else int64(0)
        wait = thread
        while wait < waits:
            flag = counters + words[WAITS_AT + 2 * wait] * COUNTER_BYTES
            target = uint32(epoch * words[WAITS_AT + 2 * wait + 1])
            # Counters wrap around: reached means that the difference is not negative.
            while int32(ld_acquire(flag) - target) < int32(0):
                pass
            wait += THREADS
        resolve_all(words, rows_padded)
        cuda.syncthreads()
        RUN_TASK(words[0], words[1], words[2], rows, TOP, addresses)
        cp_async_wait()
        cuda.syncthreads()
        # The last warp signals, since the first one goes on to wait.
        if thread == THREADS - 32 and counter >= 0:
            red_release_add(counters + counter * COUNTER_BYTES, uint32(1))
"""

_RESIDENTS = """\
    keeping = i64p(resident_begin)[2 * veu + 1]
"""
_COPYING = """\
        if number == keeping:
            # Nothing before reads what stays, and what was scratch so far is done with.
            for row in range(i64p(resident_begin)[2 * veu], i64p(resident_begin)[2 * veu + 2]):
                kept = i64p(residents + row * 40)
                source = i64p(bases)[kept[2]] + kept[3]
                copy(int64(shared_base()) + kept[1], source, kept[4])
"""
_COPIED = """\
        if number == keeping:
            cp_async_wait()
"""
_WAITING, _RUN = "        waits = words[4]", "        cuda.syncthreads()\n        RUN_TASK("

_PERSISTENT = _HEAD + RECORDS
_RESOLVING_AND_ASKING = "        resolve_and_ask(words, rows_padded)\n"

_WAVE = '''\
def wave(records, starts, ends, bases, rows, rows_padded):
    """Block v runs records starts[v] .. ends[v] of vEU v: its part of one wave."""
    veu = block_index()
    slots = shared_of(int64(0), RECORD_TABLE)
    addresses = shared_of(int64(0), ADDRESS_TABLE)
    fill_bases(bases)
    for number in range(i64p(starts)[veu], i64p(ends)[veu]):
        copy16(int64(address_of(slots)), records + number * (RECORD * 8), RECORD * 8)
        cp_async_wait()
        cuda.syncthreads()
        resolve_all(slots, rows_padded)
        cuda.syncthreads()
        run_task(slots[0], slots[1], slots[2], rows, TOP, addresses)
        cuda.syncthreads()
'''


def fill(text: str, layout: Layout) -> str:
    """Replace the placeholders of a walker; longer names first, since some contain others."""
    for name, value in sorted(layout.names().items(), key=lambda item: -len(item[0])):
        text = text.replace(name, value)
    return text


def persistent_text(
    layout: Layout,
    run_task: str = "run_task",
    asks: bool = False,
    change: Callable[[str], str] = str,
) -> str:
    """Text of `persistent`, which runs an rTask by the function `run_task` and, if it `asks`, has constants
    on their way while it waits; `change` makes it another."""
    text = carrying(_PERSISTENT) if layout.memory.stage.gathers else _PERSISTENT
    text = _with_residents(text) if layout.residents else _without_residents(text)
    text = text.replace(RESOLVING, _RESOLVING_AND_ASKING) if asks else text
    return fill(change(text).replace("RUN_TASK", run_task), layout)


def _without_residents(text: str) -> str:
    return text.replace("KEEPING", "")


def _with_residents(text: str) -> str:
    text = text.replace("KEEPING", _RESIDENTS).replace(_WAITING, _COPYING + _WAITING)
    return text.replace(_RUN, _COPIED + _RUN)


def walkers(
    layout: Layout,
    persistent: str = "run_task",
    ahead: Sequence[Sequence[int]] = (),
) -> str:
    """Text of `persistent`, of `wave` where there is one (`has_waves`), and of what they share. `run_task`
    must stand before it, and the function called `persistent`, by which the persistent kernel runs an rTask.
    `ahead`: how many bytes of each operand of each rOperator a vEU asks for while it waits."""
    asks = any(map(any, ahead))
    text = persistent_text(layout, persistent, asks)
    if asks:
        text = "\n\n".join((_bytes_ahead(ahead), fill(_ASKING, layout), text))
    return walkers_with(layout, text)


def _bytes_ahead(ahead: Sequence[Sequence[int]]) -> str:
    lines = ["@fused", "def bytes_ahead(kernel, operand):"]
    for number, of in enumerate(ahead):
        for operand, nbytes in enumerate(of):
            if nbytes:
                lines.append(f"    if kernel == {number} and operand == {operand}:")
                lines.append(f"        return {nbytes}")
    return "\n".join([*lines, "    return 0"]) + "\n"


def walkers_with(layout: Layout, persistent: str) -> str:
    """Text of the walkers, `persistent` being that of the persistent kernel."""
    mail = [fill(MAIL, layout)] if layout.memory.stage.gathers else []
    wave = [fill(_WAVE, layout)] if has_waves(layout) else []
    return "\n\n".join((fill(_HELPERS, layout), *mail, persistent, *wave))


def op_kernel(number: int, kernel: Kernel, early: bool = False, ahead: Sequence[int] = ()) -> str:
    """Text of `op_K(record, bases, rows, rows_padded)` of rOperator `number`; scratch is at 0.

    `record` is the address of any record of the append. `resolve` must stand before it. `early`: it may begin
    before the kernels queued before it have ended, and waits for them once it knows where its operands are,
    and has asked for as many bytes of each as `ahead` says.
    """
    of_block = "block b is rTask b" if kernel.spread == 1 else "several blocks are one rTask"
    of_block += ", the longest first" if kernel.longest is not None else ""
    lines = [
        f"def op_{number}(record, bases, rows, rows_padded):",
        f'    """Runs {kernel.alone or kernel.function} alone: {of_block}."""',
        *(["    begin_next()"] if early else []),
        "    words = i64p(record)",
        "    # Entry 0 of the table in shared memory is base -1, which no operand has here.",
        "    table = i64p(bases - 8)",
    ]
    arguments = ["block_index()", "block_count()", "rows", "0"]
    if kernel.spread > 1:
        lines.append(f"    share = {_BLOCKS.format(tasks='words[2]')}")
        arguments[:2] = ["divide(block_index(), share)[0]", "words[2]"]
    if kernel.longest is not None:
        lines += [
            f"    {line}" for line in (f"task = {arguments[0]}", *kernel.longest.lines("task"))
        ]
        arguments[0] = "task"
    how, given = ("resolve_early", "bases") if early else ("resolve", "table")
    for i in range(len(kernel.pointers)):
        lines.append(f"    a{i} = {how}(words, {i}, {given}, rows_padded)")
        arguments.append(kernel.pointer(i, f"a{i}"))
    if early:
        lines += _asking(ahead)
        lines.append("    await_previous()")
    lines.append(f"    {kernel.alone or kernel.function}({', '.join(arguments)})")
    return "\n".join(lines) + "\n"


def _asking(ahead: Sequence[int]) -> list[str]:
    asked = [(i, nbytes) for i, nbytes in enumerate(ahead) if nbytes]
    how = "        fetch_ahead(a{}, {}, block_index(), block_count())"
    return ["    if thread_index() == 0:", *(how.format(*a) for a in asked)] if asked else []


# How many blocks share an rTask.
_BLOCKS = "divide(block_count(), {tasks})[0]"


def shared_by_blocks(threads: int, by_threads: bool = True) -> dict[str, str]:
    """What a template says of the blocks of `threads` that share an rTask (`RKernel.spreads`): block b is one
    of those of rTask b // blocks. THREADS are all of theirs where it goes `by_threads`."""
    blocks = _BLOCKS.format(tasks="tasks")
    number = f"divide(block_index(), {blocks})[1]"
    found = {"RANK": number, "RANKS": blocks, "READS_AHEAD": "0"}
    if by_threads:
        found["THREAD"] = f"(thread_index() + {threads} * {number})"
        found["THREADS"] = f"({threads} * {blocks})"
    return found


def ranked(blocks: int) -> dict[str, str]:
    """Which of the `blocks` of a cluster, that share an rTask, a block is."""
    return {"RANK": f"divide(block_index(), {blocks})[1]", "RANKS": str(blocks)}


def layout_of(program: Program) -> Layout:
    """What a program's walkers are printed for."""
    waits, operands = record_sizes(program.plans)
    shared_bytes = max(plan.shared_bytes for plan in program.plans)
    steps = places_of(program)
    bases = max(plan.bases for plan in program.plans)
    memory = BlockMemory(bases, waits, operands, shared_bytes, steps.words, stage_of(program))
    residents = any(append.pinned for plan in program.plans for append in plan.appends)
    return Layout(program.threads, memory, steps, residents)


def has_waves(layout: Layout) -> bool:
    """Whether a module has `wave` beside `persistent`: in a wave nothing is kept in shared memory, carried or
    in a loop."""
    return layout.residents or layout.steps.lines > 0 or layout.memory.stage.gathers > 0


def entries(kernels: Sequence[Kernel], layout: Layout) -> list[str]:
    """Names of the entry kernels of a module without loops."""
    wave = ["wave"] if has_waves(layout) else []
    return ["persistent", *wave, *(f"op_{i}" for i in range(len(kernels)))]
