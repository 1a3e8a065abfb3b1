"""What differs between targets in an emitted module: header, decorators, dispatch, walkers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from irkit.lower.task_to_numba.entry_cpu import entry
from irkit.lower.task_to_numba.target_cuda import CudaPrinter
from irkit.rkernels.binding.binder import Binding
from irkit.rkernels.rkernel import Target
from irkit.schedule.tables import HEADER, Program, record_sizes


class Printer(Protocol):
    """One target's parts of a module."""

    def header(self, program: Program) -> str:
        """Docstring and imports."""
        ...

    def fused(self, flags: Sequence[str]) -> str:
        """Decorator of fused functions, compiled with these fast-math flags."""
        ...

    def kernel(self, flags: Sequence[str]) -> str:
        """Decorator of specialised rKernels."""
        ...

    def signature(self, text: str, binding: Binding) -> str:
        """A specialised rKernel with the parameters that this target calls it by."""
        ...

    def dispatch(self, bindings: Sequence[Binding], program: Program) -> str:
        """How walkers find the rKernels."""
        ...

    def walkers(self, bindings: Sequence[Binding], program: Program, arch: str) -> str:
        """The entry points; `arch` is a GPU's architecture."""
        ...


class CpuPrinter:
    """Threads as vEUs; every entry point is compiled ahead with an explicit signature and cached."""

    def header(self, program: Program) -> str:
        what = f"{len(program.kernels)} rOperators, {len(program.appends)} appends"
        return f'''"""irkit program for {program.device}: {what} on {program.veus} vEUs."""
# ruff: noqa

import math

import numpy as np
from numba import float32, float64, int8, int16, int32, int64, types, uint8, uint16, uint32, uint64

from irkit.runtime.intrinsics.cpu import (
    add_release, call_rkernel, cbrt, exp2, float32p, float64p, floor, fmod, int8p, int16p, int32p,
    int64p, ipow, log2, rint, stack_float32, stack_float64, stack_int32, stack_int64, stack_uint8,
    uint8p, uint16p, uint32p, uint64p, wait_for,
)
from irkit.runtime.intrinsics.cpu_approximations import (
    acos_float64, asin_float64, atan2_float32, atan2_float64, atan_float32, atan_float64,
    cos_float32, cos_float64, cosh_float64, erf_float32, erf_float64, exp2_float64, exp_float32,
    exp_float64, expm1_float64, log10_float64, log1p_float32, log1p_float64, log2_float64,
    log_float32, log_float64, pow_float32, sin_float32, sin_float64, sinh_float64, tanh_float32,
    tanh_float64,
)
from irkit.runtime.intrinsics.cpu_bits import fma
from irkit.runtime.intrinsics.cpu_blocks import multiply_blocks
from irkit.runtime.intrinsics.cpu_bytes import copy_run, interleave_fours, multiply_fours
from irkit.runtime.intrinsics.cpu_depthwise import add_windows
from irkit.runtime.intrinsics.cpu_dots import (
    dot_rows, dot_rows_of_each, dot_rows_of_two, dot_rows_of_two_each,
)
from irkit.runtime.intrinsics.cpu_half import bfloat16p, float16p, round_bfloat16, round_float16
from irkit.runtime.intrinsics.cpu_integers import multiply_pairs
from irkit.runtime.intrinsics.cpu_kept import as_it_is
from irkit.runtime.intrinsics.cpu_nibbles import add_nibbles
from irkit.runtime.intrinsics.cpu_nodes import packed_node
from irkit.runtime.intrinsics.cpu_pixels import multiply_pixels, turn_rows
from irkit.runtime.intrinsics.cpu_planes import copy_every, multiply_planes
from irkit.runtime.intrinsics.cpu_products import (
    add_tile, multiply_panels, multiply_strided, multiply_tile,
)
from irkit.runtime.intrinsics.cpu_quotients import quotient
from irkit.runtime.intrinsics.cpu_rows import (
    row_from, row_largest, row_largest_ahead, row_maximum, row_minimum, row_squares, row_sum,
)
from irkit.runtime.intrinsics.cpu_trees import choose_ways
from irkit.runtime.intrinsics.cpu_turns import expect_runs, turn_runs, turn_whole_runs
from irkit.runtime.intrinsics.cpu_vectors import (
    add_product, add_vectors, greater_vectors, load_vector, multiply_vectors, smaller_vectors,
    spread_vector, store_vector,
)
from irkit.runtime.intrinsics.cpu_windows import extremes
from irkit.runtime.intrinsics.engine import cfunc, njit
from irkit.runtime.intrinsics.loop_hints import (
    element_by_element, four_vectors_at_a_time, last_vector_of_fewer_lanes,
)
from irkit.schedule.tables import Appended, Operand, Pinned, Port, Program'''

    def _options(self, flags: Sequence[str]) -> str:
        named = ", ".join(f'"{flag}"' for flag in flags)
        return 'error_model="numpy"' + (f", fastmath={{{named}}}" if flags else "")

    def fused(self, flags: Sequence[str]) -> str:
        wrappers = "no_cpython_wrapper=True, no_cfunc_wrapper=True"
        return f"@njit(forceinline=True, {wrappers}, {self._options(flags)})"

    def kernel(self, flags: Sequence[str]) -> str:
        # Compiled each on its own and called by address: no other function is compiled with it.
        return f'@cfunc("void(int64, int64, int64, int64, int64)", {self._options(flags)})'

    def signature(self, text: str, binding: Binding) -> str:
        """An rKernel takes the address of its operands' addresses; pointers are made of them."""
        head, _, body = text.partition("\n")
        lines = [head.replace(binding.operands, "operands"), "    address = int64p(operands)"]
        lines += [
            f"    {pointer} = {kind}p(address[{number}])"
            for number, (pointer, kind) in enumerate(
                zip(binding.pointers, binding.pointer_types, strict=True)
            )
        ]
        return "\n".join([*lines, body])

    def dispatch(self, bindings: Sequence[Binding], program: Program) -> str:
        return f"KERNELS = ({''.join(f'{b.symbol}, ' for b in bindings)})"

    def walkers(self, bindings: Sequence[Binding], program: Program, arch: str) -> str:
        waits, _ = record_sizes(program.plans)
        first = HEADER + 2 * waits
        return f"""{_CPU_WALKER.replace("FIRST_OPERAND", str(first)).replace("HEADER", str(HEADER))}

{entry(program)}"""


_CPU_WALKER = '''
@njit(
    types.int64(
        types.int64[:, ::1], types.int64, types.int64, types.int64[::1], types.int64[::1],
        types.int64, types.int64, types.int64, types.int64[::1],
    ),
    nogil=True, cache=True, error_model="numpy",
)
def run(records, begin, end, bases, counters, epoch, rows, rows_padded, address):
    """Walk records [begin, end): wait, run the rTask, signal. Returns how many were run."""
    for i in range(begin, end):
        for w in range(records[i, 4]):
            counter = counters.ctypes.data + 8 * records[i, HEADER + 2 * w]
            if not wait_for(counter, epoch * records[i, HEADER + 1 + 2 * w], 100_000_000):
                return i - begin
        for o in range((records.shape[1] - FIRST_OPERAND) // 3):
            at = FIRST_OPERAND + 3 * o
            address[o] = bases[records[i, at]] + records[i, at + 1] + records[i, at + 2] * rows_padded
        call_rkernel(
            records[i, 0], records[i, 1], records[i, 2], rows, address[address.size - 1],
            address.ctypes.data,
        )
        if records[i, 3] >= 0:
            add_release(counters.ctypes.data + 8 * records[i, 3], 1)
    return end - begin
'''.strip("\n")


TARGETS: dict[Target, Printer] = {"cpu": CpuPrinter(), "cuda": CudaPrinter()}
