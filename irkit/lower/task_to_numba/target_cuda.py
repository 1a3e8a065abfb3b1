"""The CUDA parts of an emitted module: persistent, per-wave and per-op kernels around the rKernels."""

from __future__ import annotations

from collections.abc import Sequence

from irkit.lower.task_to_numba import header_cuda, walkers_cuda
from irkit.lower.task_to_numba.ahead_cuda import constants_ahead
from irkit.lower.task_to_numba.dispatch_cuda import Kernel, run_task
from irkit.lower.task_to_numba.launch_facts_cuda import begins_early, launch_facts
from irkit.lower.task_to_numba.stepped_walker import place_text, stepped_text
from irkit.rkernels.binding.binder import Binding
from irkit.schedule.tables import Program

RESIDENT, SPREAD = "_resident", "_spread"


class CudaPrinter:
    """Blocks as vEUs."""

    def header(self, program: Program) -> str:
        what = f"{len(program.kernels)} rOperators, {len(program.appends)} appends"
        return (
            f'"""irkit program for {program.device}: {what} on {program.veus} vEUs."""\n# ruff: noqa\n\n'
            + header_cuda.IMPORTS
            + "from irkit.schedule.tables import Appended, Operand, Pinned, Port, Program\n"
        )

    def fused(self, flags: Sequence[str]) -> str:
        # The compiler contracts unless told not to, and what sums in another order says so in its text.
        return "@fused"

    def kernel(self, flags: Sequence[str]) -> str:
        return "@fused"

    def signature(self, text: str, binding: Binding) -> str:
        """Pointers are made where rTasks are dispatched."""
        return text

    def dispatch(self, bindings: Sequence[Binding], program: Program) -> str:
        text = run_task(_kernels(bindings))
        if any(b.resident for b in bindings):
            kept = run_task(_kernels(bindings, RESIDENT), f"run_task{RESIDENT}")
            text += "\n\n" + kept
        return text

    def walkers(self, bindings: Sequence[Binding], program: Program, arch: str) -> str:
        kernels = _kernels(bindings)
        if program.steps:
            return _stepped(program, kernels, arch)
        # Only the persistent kernel keeps operands in shared memory.
        persistent = f"run_task{RESIDENT}" if any(b.resident for b in bindings) else "run_task"
        early = begins_early(program, arch)
        ahead = constants_ahead(program) if early else [()] * len(kernels)
        text = walkers_cuda.walkers(walkers_cuda.layout_of(program), persistent, ahead)
        entries = [
            walkers_cuda.op_kernel(number, k, early, ahead[number])
            for number, k in enumerate(kernels)
        ]
        return "\n\n".join([text, *entries, launch_facts(program, kernels, arch)])


def _stepped(program: Program, kernels: Sequence[Kernel], arch: str) -> str:
    """The entries of a program with loops."""
    layout = walkers_cuda.layout_of(program)
    parts = [walkers_cuda.walkers_with(layout, stepped_text(layout))]
    if program.moving:
        parts.append(place_text(layout))
    parts += [walkers_cuda.op_kernel(number, k) for number, k in enumerate(kernels)]
    return "\n\n".join([*parts, launch_facts(program, kernels, arch)])


def _kernels(bindings: Sequence[Binding], suffix: str = "") -> list[Kernel]:
    return [
        Kernel(
            b.symbol + suffix * b.resident,
            b.pointer_types,
            b.scratch_bytes,
            b.batch,
            b.call,
            b.spread,
            b.clustered,
            b.symbol + SPREAD * (b.spread > 1),
            b.rows_at_once,
            b.longest,
            b.follows_values,
            b.aligned,
            b.side_by_side,
        )
        for b in bindings
    ]
