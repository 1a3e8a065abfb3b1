"""The persistent kernel of an emitted CUDA module with stamps around every wait and every rTask.

The block's first thread stamps, with the clock of its multiprocessor: when the block turned to a record, when
its waits were over, when its rTask was done. Each block notes the device's timer beside that clock as it
starts and as it ends, so that stamps of all blocks can be put on one line of time
(`irkit/runtime/cuda/trace.py`).
"""

from __future__ import annotations

from itertools import product

from irkit.errors import ArtifactError
from irkit.lower.task_to_numba.walkers_cuda import layout_of, persistent_text
from irkit.schedule.tables import Program

TICKS, STAMPS = 4, 3
"""64-bit words of the log: a block's (timer, clock) at its start and its end, block by block; then a record's
stamps, record by record."""

_CLOCKS = '''\
from irkit.runtime.intrinsics.cuda_clocks import clock_cycles, timer_ns


@fused
def tick(log, at):
    """Note the device's timer as it goes on, and the multiprocessor's clock there."""
    before = timer_ns()
    now = timer_ns()
    while now == before:
        now = timer_ns()
    log[at + 1] = clock_cycles()
    log[at] = now


'''
_STAMP = "if thread == 0:\n            log[TICKS * block_count() + STAMPS * number + {}] = clock_cycles()\n"
_CHANGES = (
    ("epoch, rows, rows_padded\n):", "epoch, rows, rows_padded, stamps\n):"),
    (
        "    fill_bases(bases)\n",
        "    log = i64p(stamps)\n    if thread == 0:\n        tick(log, TICKS * veu)\n"
        "    fill_bases(bases)\n",
    ),
    ("        counter = words[3]", f"        {_STAMP.format(0)}        counter = words[3]"),
    ("        RUN_TASK(", f"        {_STAMP.format(1)}        RUN_TASK("),
    (
        "        # The last warp signals,",
        f"        {_STAMP.format(2)}        # The last warp signals,",
    ),
)
_END = "    if thread == 0:\n        tick(log, TICKS * veu + 2)\n"


def traced(source: str, program: Program) -> str:
    """The text of the emitted module of a program, its persistent kernel with stamps: this has one parameter
    more, the address of the log. Raises ArtifactError for a module of another irkit."""
    layout = layout_of(program)
    for run_task, asks in product(("run_task", "run_task_resident"), (False, True)):
        plain = persistent_text(layout, run_task, asks)
        if source.count(plain) == 1:
            text = persistent_text(layout, run_task, asks, _with_stamps)
            return source.replace(plain, _CLOCKS + text)
    raise ArtifactError("the program's walker is not the one of this irkit: compile it anew")


def _with_stamps(text: str) -> str:
    for old, new in _CHANGES:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return (text + _END).replace("TICKS", str(TICKS)).replace("STAMPS", str(STAMPS))
