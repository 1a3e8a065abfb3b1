"""The CUDA parts of an emitted module: persistent, per-wave and per-op kernels around the rKernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irkit.lower.task_to_numba import walkers_cuda
from irkit.lower.task_to_numba.walkers_cuda import Kernel
from irkit.rkernels.binding.binder import Binding
from irkit.rkernels.rkernel import RKernel
from irkit.schedule.tables import Program

RESIDENT = "_resident"


def pinned_kernels(program: Program) -> dict[int, set[int]]:
    """Per kernel, the operands that every one of its appends keeps in shared memory."""
    pinned: dict[int, set[int]] = {}
    for append in program.appends:
        here = {p.operand for p in append.pinned}
        pinned[append.kernel] = pinned.get(append.kernel, here) & here
    return pinned


class CudaPrinter:
    """Blocks as vEUs."""

    def header(self, program: Program) -> str:
        what = f"{len(program.kernels)} rOperators, {len(program.appends)} appends"
        return (
            f'"""irkit program for {program.device}: {what} on {program.veus} vEUs."""\n# ruff: noqa\n\n'
            + walkers_cuda.IMPORTS
            + "from irkit.schedule.tables import Appended, Operand, Pinned, Port, Program\n"
        )

    def fused(self, rkernel: RKernel) -> str:
        return "@fused"

    def kernel(self, rkernel: RKernel) -> str:
        return "@fused"

    def signature(self, text: str, binding: Binding) -> str:
        """Pointers are made where rTasks are dispatched."""
        return text

    def names(self, binding: Binding, rkernel: RKernel, program: Program) -> Mapping[str, str]:
        number = program.kernels.index(binding.symbol)
        names = {"RESIDENT": "0"}
        if "VECTOR" in binding.names and not _aligned(binding, number, program):
            names["VECTOR"] = "0"
        return names

    def resident_names(
        self, binding: Binding, number: int, program: Program
    ) -> Mapping[str, str] | None:
        pinned = pinned_kernels(program).get(number, set())
        weights = {binding.names[w] for w in ("W0", "W1") if w in binding.names}
        if not weights or not weights <= {f"p{i}" for i in pinned}:
            return None
        return {"RESIDENT": "1"}

    def dispatch(self, bindings: Sequence[Binding], program: Program) -> str:
        text = walkers_cuda.run_task(_kernels(bindings))
        if any(b.resident for b in bindings):
            kept = walkers_cuda.run_task(_kernels(bindings, RESIDENT))
            text += "\n\n" + kept.replace("run_task(", f"run_task{RESIDENT}(")
        return text

    def walkers(self, bindings: Sequence[Binding], program: Program) -> str:
        kernels = _kernels(bindings)
        text = walkers_cuda.walkers(walkers_cuda.layout_of(program))
        if any(b.resident for b in bindings):
            # Only the persistent kernel, which comes first, keeps operands in shared memory.
            head, tail = text.split("def wave(", 1)
            text = f"{head.replace('run_task(', f'run_task{RESIDENT}(')}def wave({tail}"
        entries = [walkers_cuda.op_kernel(number, k) for number, k in enumerate(kernels)]
        return "\n\n".join([text, *entries, walkers_cuda.launch_facts(program, kernels)])


def _aligned(binding: Binding, number: int, program: Program) -> bool:
    """Whether vectors of 16 bytes may be read from every row that a contraction reads."""
    read = {binding.names[n] for n in ("X0", "X1", "W0", "W1") if n in binding.names}
    operands = [int(name[1:]) for name in read]
    return all(
        a.operands[i].offset % 16 == 0 and a.operands[i].per_row % 16 == 0
        for a in program.appends
        if a.kernel == number
        for i in operands
    )


def _kernels(bindings: Sequence[Binding], suffix: str = "") -> list[Kernel]:
    return [
        Kernel(b.symbol + suffix * b.resident, b.pointer_types, b.scratch_bytes, b.batch)
        for b in bindings
    ]
