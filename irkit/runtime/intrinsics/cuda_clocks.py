"""The clocks of a GPU, for walkers that say when each rTask ran."""

from __future__ import annotations

from typing import Any

from irkit.runtime.intrinsics.cuda import I64, asm, intrinsic, types


def _clock(register: str) -> Any:
    def read(typing_context: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return asm(builder, f"mov.u64 $0, %{register};", I64, [], "=l,~{memory}")

        return types.int64(), generate

    return intrinsic(read)


clock_cycles = _clock("clock64")
"""Cycles of the multiprocessor that the thread runs on: fine, and another on each."""

timer_ns = _clock("globaltimer")
"""Nanoseconds of the device's timer: one for all multiprocessors, which may go on in microseconds."""
