"""Asynchronous copies to shared memory (`cp.async`, compute capability 8.0 and later): what feeds tiles.

Arguments marked *literal* must be constants in the source text.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.cuda import asm, shared_address

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic

I32, I64 = ir.IntType(32), ir.IntType(64)


@intrinsic
def copy_async(
    typing_context: Any,
    staged: Any,
    position: Any,
    source: Any,
    index: Any,
    width: Any,
    inside: Any,
) -> Any:
    """Start copying `width` (literal, 1 or 4) elements from source[index] to staged[position].

    Elements are of 32 bits, or one of 64; four of them must be 16-byte aligned at both ends. Zeros come in
    their place where `inside` is false; the index must be one that could be read. `staged` is in shared
    memory.
    """
    if not isinstance(width, types.IntegerLiteral):
        return None
    size = width.literal_value * staged.dtype.bitwidth // 8
    # Four or eight bytes can only go by way of the first cache.
    kind = "cg" if size == 16 else "ca"

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target = shared_address(builder, args[0], args[1])
        start = builder.ptrtoint(builder.gep(args[2], [args[3]]), I64)
        count = builder.select(args[5], I32(size), I32(0))
        text = f"cp.async.{kind}.shared.global [$0], [$1], {size}, $2;"
        asm(builder, text, ir.VoidType(), [target, start, count], "r,l,r,~{memory}")
        return context.get_dummy_value()

    flag = types.boolean
    return types.void(staged, types.uint64, source, types.int64, width, flag), generate


@intrinsic
def commit_copies(typing_context: Any) -> Any:
    """Copies that this thread started since the last call are one group."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        asm(builder, "cp.async.commit_group;", ir.VoidType(), [], "~{memory}")
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def await_copies(typing_context: Any, left: Any) -> Any:
    """Wait until at most `left` (literal) groups of this thread's copies, the last, are on their way."""
    if not isinstance(left, types.IntegerLiteral):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        text = f"cp.async.wait_group {left.literal_value};"
        asm(builder, text, ir.VoidType(), [], "~{memory}")
        return context.get_dummy_value()

    return types.void(left), generate
