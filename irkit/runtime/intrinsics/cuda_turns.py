"""Turns of a block's halves: barriers of 256 threads at which one half waits and the other only arrives.

PTX ISA, "Parallel Synchronization and Communication Instructions: bar". Barrier 0 is that of the whole
block.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.cuda import asm

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic


def _at_barrier(text: str) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number = builder.add(builder.trunc(args[0], ir.IntType(32)), ir.IntType(32)(1))
        asm(builder, text, ir.VoidType(), [number], "r,~{memory}")
        return context.get_dummy_value()

    def at(typing_context: Any, half: Any) -> Any:
        return types.void(types.int64), generate

    return intrinsic(at)


await_turn = _at_barrier("bar.sync $0, 256;")
"""(half): wait until the other half of the block's 256 threads has given this one, 0 or 1, its turn."""

give_turn = _at_barrier("bar.arrive $0, 256;")
"""(half): it is the turn of that half; this one goes on."""
