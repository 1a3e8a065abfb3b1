"""What Numba sets up once in a process before it compiles for a GPU: done while nobody waits for it."""

from __future__ import annotations

from irkit.runtime.cuda.unit_code import lower

_UNIT = """\
from numba import cuda

from irkit.runtime.intrinsics.cuda import divide, f32p, thread_index

fused = cuda.jit(device=True)


@fused
def warm(task, tasks, rows, scratch, p0):
    for i in range(divide(task, 2)[0], tasks):
        p0[i] = max(p0[thread_index()], p0[i]) * 2
"""


def warm() -> None:
    """Compile a unit that nothing uses."""
    lower(_UNIT, "sm_90a", (("warm", ("f32p",)),))
