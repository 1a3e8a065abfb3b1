"""What the kernels of a CUDA module know of the rKernels that they run, and how they find the one to run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from irkit.lower.task_to_numba.header_cuda import POINTERS
from irkit.rkernels.binding.longest import Longest
from irkit.schedule.library_call import LibraryCall


@dataclass(frozen=True)
class Kernel:
    """A specialised rKernel: its name, its operands' element types as Numba names them, its scratch.

    `batch` says that its rTasks are shares of the batch, so that any number of them will do. `call` is what
    mode `per-op` asks a library for instead. `spread` blocks at most may share one of its rTasks in that
    mode, `side_by_side` of which are to fit on a multiprocessor, or if `clustered` just as many do, of one
    cluster; there `alone` is the function that runs it, and a block takes `rows_at_once` of the batch. There
    the rTasks that take the `longest` start first.
    `follows_values`: where it reads or writes may hang on values.
    `aligned`: its operands are at multiples of 16 bytes, which the compiler is told; so is what stays in
    shared memory.
    """

    function: str
    pointers: Sequence[str]
    scratch_bytes: int = 0
    batch: bool = False
    call: LibraryCall | None = None
    spread: int = 1
    clustered: bool = False
    alone: str = ""
    rows_at_once: int = 1
    longest: Longest | None = None
    follows_values: bool = False
    aligned: bool = False
    side_by_side: int = 1

    def pointer(self, number: int, address: str) -> str:
        """Operand `number`, of which `address` is the text."""
        kind = self.pointers[number]
        # NVVM makes vectors of float16 of what it is told so, and does not compile them.
        told = " & -16" if self.aligned and kind != "float16" else ""
        return f"{POINTERS[kind]}({address}{told})"

    @property
    def scratch(self) -> int:
        """Bytes of scratch, a multiple of 16."""
        return -(-self.scratch_bytes // 16) * 16


def run_task(kernels: Sequence[Kernel], name: str = "run_task") -> str:
    """Text of `name(kernel, task, tasks, rows, top, addresses)`; scratch ends at `top`.

    Which rOperator it is, is looked for among groups of them, then in the group. A binary search compares
    less often, but each time elsewhere among the rKernels, in instructions that have to be fetched.
    """
    group = max(1, math.isqrt(len(kernels)))
    firsts = range(0, len(kernels), group)
    head = ["@fused", f"def {name}(number, task, tasks, rows, top, addresses):"]
    lines = ["    kernel = int32(number)"]
    for first in firsts:
        lines.append(f"    {'el' if first else ''}if kernel < int32({first + group}):")
        for at, kernel in enumerate(kernels[first : first + group], first):
            word = "el" if at > first else ""
            lines.append(f"        {word}if kernel == int32({at}):")
            lines.append(f"            {_call(kernel)}")
    return "\n".join([*head, *lines]) + "\n"


def _call(kernel: Kernel) -> str:
    pointers = [kernel.pointer(i, f"addresses[{i}]") for i in range(len(kernel.pointers))]
    given = ", ".join(("task", "tasks", "rows", f"top - {kernel.scratch}", *pointers))
    return f"{kernel.function}({given})"
