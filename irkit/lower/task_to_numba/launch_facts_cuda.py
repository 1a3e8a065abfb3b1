"""What compiling and launching the entries of a CUDA module takes beside its PROGRAM, as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from irkit.architectures import ARCHITECTURES
from irkit.lower.task_to_numba.dispatch_cuda import Kernel
from irkit.lower.task_to_numba.walkers_cuda import has_waves, layout_of
from irkit.schedule.tables import Program


def begins_early(program: Program, arch: str) -> bool:
    """Whether a kernel of mode `per-op` waits itself for those before it: where the GPU can, and no step
    moves what it reads before it waits."""
    return ARCHITECTURES[arch].has_early_launches and not program.steps


def launch_facts(program: Program, kernels: Sequence[Kernel], arch: str) -> str:
    """`LAUNCH = ...`: what compiling and launching the entries takes beside PROGRAM, as text."""
    layout = layout_of(program)
    memory = layout.memory
    facts: dict[str, Any] = {
        "arch": arch,
        "threads": program.threads,
        "shared_bytes": memory.nbytes,
        "record_words": memory.record_words,
        "scratch": tuple(k.scratch for k in kernels),
        "batch": tuple(k.batch for k in kernels),
    }
    if memory.stage.gathers:
        stage = memory.stage
        sizes = stage.gathers, stage.publishes, stage.operand_bytes, stage.result_bytes
        facts["stage"] = (memory.mail_at, memory.stage_at, *sizes)
    each = {
        "spread": tuple(k.spread for k in kernels),
        "side_by_side": tuple(k.side_by_side for k in kernels),
        "clusters": tuple(k.spread if k.clustered else 1 for k in kernels),
        "rows_at_once": tuple(k.rows_at_once for k in kernels),
    }
    facts |= {name: numbers for name, numbers in each.items() if any(n > 1 for n in numbers)}
    if begins_early(program, arch):
        facts["early"] = True
    if not program.steps and not any(k.follows_values for k in kernels):
        facts["any_values"] = True
    if program.moving:
        facts["places"] = True
    if has_waves(layout):
        facts["waves"] = True
    calls = {i: asdict(k.call) for i, k in enumerate(kernels) if k.call is not None}
    if calls:
        facts["library"] = calls
    return f"LAUNCH = {facts!r}\n"
