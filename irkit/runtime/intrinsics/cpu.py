"""Numba intrinsics of emitted CPU modules: typed pointers, stack scratch, counters between threads."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# pyright: reportPrivateUsage=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

_I64 = ir.IntType(64)


def _pointer_to(element: types.Type) -> Any:
    """An intrinsic that makes a typed pointer of an address."""

    @intrinsic
    def pointer(typingctx: Any, address: Any) -> Any:
        result = types.CPointer(element)

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = context.get_value_type(result)
            return builder.inttoptr(arguments[0], kind)

        return result(types.int64), codegen

    return pointer


float32p = _pointer_to(types.float32)
float64p = _pointer_to(types.float64)
int8p = _pointer_to(types.int8)
uint8p = _pointer_to(types.uint8)
int16p = _pointer_to(types.int16)
uint16p = _pointer_to(types.uint16)
int32p = _pointer_to(types.int32)
uint32p = _pointer_to(types.uint32)
int8p = _pointer_to(types.int8)
int64p = _pointer_to(types.int64)
uint64p = _pointer_to(types.uint64)


def _stack_of(element: types.Type) -> Any:
    """An intrinsic that reserves a literal number of elements on the stack, of any values.

    Numba's own `alloca_once` fills them with zeros at every call, which LLVM makes a store an element of.
    """

    @intrinsic(prefer_literal=True)
    def stack(typingctx: Any, count: Any) -> Any:
        if not isinstance(count, types.IntegerLiteral):
            return None
        size: int = count.literal_value

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = context.get_value_type(element)
            with builder.goto_entry_block():
                array = builder.alloca(ir.ArrayType(kind, size))
            return builder.bitcast(array, kind.as_pointer())

        return types.CPointer(element)(count), codegen

    return stack


stack_float32 = _stack_of(types.float32)
stack_float64 = _stack_of(types.float64)
stack_int64 = _stack_of(types.int64)
stack_int32 = _stack_of(types.int32)
stack_uint8 = _stack_of(types.uint8)


@intrinsic
def call_rkernel(
    typingctx: Any, function: Any, task: Any, tasks: Any, rows: Any, scratch: Any, operands: Any
) -> Any:
    """Call the rKernel at an address. `operands` is the address of its operands' addresses."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [_I64] * 5)
        builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 6), codegen


@intrinsic
def load_acquire(typingctx: Any, address: Any) -> Any:
    """The int64 at an address, ordered before all later reads."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], _I64.as_pointer())
        return builder.load_atomic(pointer, "acquire", 8)

    return types.int64(types.int64), codegen


@intrinsic
def add_release(typingctx: Any, address: Any, value: Any) -> Any:
    """Add to the int64 at an address, ordered after all earlier writes."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], _I64.as_pointer())
        builder.atomic_rmw("add", pointer, arguments[1], "release")
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


def _changed(kind: str) -> tuple[Any, Any]:
    """The typing of what changes the int64 at an address by another, and gives what was there."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], _I64.as_pointer())
        return builder.atomic_rmw(kind, pointer, arguments[1], "seq_cst")

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def exchange(typingctx: Any, address: Any, value: Any) -> Any:
    """Put a value into the int64 at an address; what was there. Ordered with all before and after."""
    return _changed("xchg")


@intrinsic
def add(typingctx: Any, address: Any, value: Any) -> Any:
    """Add to the int64 at an address; what was there. Ordered with all before and after."""
    return _changed("add")


@intrinsic
def sched_yield(typingctx: Any) -> Any:
    """Let another thread run (POSIX sched_yield, found by name so that callers can be cached)."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [])
        function = cgutils.get_or_insert_function(builder.module, kind, "sched_yield")
        return builder.call(function, [])

    return types.int32(), codegen


@njit(nogil=True)
def wait_for(address: int, count: int, limit: int) -> bool:
    """Spin until the counter reaches `count`; False after `limit` yields (a vEU died)."""
    spins = 0
    yields = 0
    while load_acquire(address) < count:
        spins += 1
        if spins > 2000:
            # More vEUs than free cores: let the one that is waited for run.
            sched_yield()
            yields += 1
            if yields > limit:
                return False
    return True


@njit(forceinline=True)
def floor(x: float) -> Any:
    """Largest integral value not above x, as a float of x's type."""
    return np.floor(x)


@njit(forceinline=True)
def rint(x: float) -> Any:
    """The integral value nearest to x, the even one of two, as a float of x's type."""
    return np.rint(x)


@njit(forceinline=True)
def ipow(x: int, y: int) -> Any:
    """x to the power of y >= 0, modulo 2^64: Numba's own goes through a float where y is large."""
    result, base, rest = np.int64(1), np.int64(x), np.int64(y)
    while rest > 0:
        if rest & 1:
            result = result * base
        base = base * base
        rest = rest >> 1
    return result


@njit(forceinline=True)
def cbrt(x: float) -> Any:
    """Cube root, in x's type."""
    return np.cbrt(x)


@njit(forceinline=True)
def exp2(x: float) -> Any:
    """2 to the power of x, in x's type."""
    return np.exp2(x)


@njit(forceinline=True)
def log2(x: float) -> Any:
    """Logarithm of base 2, in x's type."""
    return np.log2(x)


@intrinsic
def fmod(typingctx: Any, x: Any, y: Any) -> Any:
    """The exact remainder of x / y with the sign of x, of floats of one type."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.frem(*arguments)

    return x(x, x), codegen
