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
int64p = _pointer_to(types.int64)
uint64p = _pointer_to(types.uint64)


def _stack_of(element: types.Type) -> Any:
    """An intrinsic that reserves a literal number of elements on the stack."""

    @intrinsic(prefer_literal=True)
    def stack(typingctx: Any, count: Any) -> Any:
        if not isinstance(count, types.IntegerLiteral):
            return None
        size: int = count.literal_value

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = context.get_value_type(element)
            array = cgutils.alloca_once(builder, ir.ArrayType(kind, size))
            return builder.bitcast(array, kind.as_pointer())

        return types.CPointer(element)(count), codegen

    return stack


stack_float32 = _stack_of(types.float32)
stack_float64 = _stack_of(types.float64)
stack_int64 = _stack_of(types.int64)
stack_int32 = _stack_of(types.int32)


@intrinsic(prefer_literal=True)
def multiply_tile(
    typingctx: Any, rows: Any, a: Any, at_a: Any, k: Any, b: Any, at_b: Any, c: Any, at_c: Any,
    width: Any,
) -> Any:  # fmt: skip
    """C[i, j] = sum over k of A[i, k] * B[k, j], for a literal number of rows i and 16 columns j.

    A's rows are k elements long; those of B and C are `width` apart. Elements are counted from
    pointers `a`, `b`, `c`. The sums stay in registers.
    """
    if not isinstance(rows, types.IntegerLiteral):
        return None
    count: int = rows.literal_value

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, a, at_a, k, b, at_b, c, at_c, width = arguments
        element = a.type.pointee
        tile = _Tile(builder, element)
        rows_of_a = [
            builder.gep(a, [builder.add(at_a, builder.mul(k, _I64(i)))]) for i in range(count)
        ]
        sums = tile.sums(rows_of_a, k, builder.gep(b, [at_b]), width)
        for i, total in enumerate(sums):
            where = builder.add(at_c, builder.mul(width, _I64(i)))
            builder.store(total, tile.vector_at(builder.gep(c, [where])), align=4)
        return context.get_dummy_value()

    return types.void(rows, a, types.int64, types.int64, b, types.int64, c, types.int64,
                      types.int64), codegen  # fmt: skip


class _Tile:
    """Prints the loop of `multiply_tile`: one vector of 16 sums per row of A."""

    lanes = 16

    def __init__(self, builder: Any, element: Any) -> None:
        self.builder = builder
        self.vector = ir.VectorType(element, self.lanes)
        letter = "f32" if isinstance(element, ir.FloatType) else "f64"
        kind = ir.FunctionType(self.vector, [self.vector] * 3)
        name = f"llvm.fma.v{self.lanes}{letter}"
        self.fma = cgutils.get_or_insert_function(builder.module, kind, name)

    def vector_at(self, pointer: Any) -> Any:
        """A pointer to a vector's worth of elements."""
        return self.builder.bitcast(pointer, self.vector.as_pointer())

    def spread(self, scalar: Any) -> Any:
        """A vector of one scalar."""
        undefined = ir.Constant(self.vector, ir.Undefined)
        first = self.builder.insert_element(undefined, scalar, ir.IntType(32)(0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(first, undefined, zeros)

    def sums(self, rows: list[Any], k: Any, b: Any, width: Any) -> list[Any]:
        """Runs over k at least once; returns the sums, the builder behind the loop."""
        builder = self.builder
        before = builder.block
        loop, done = (builder.append_basic_block(n) for n in ("tile.loop", "tile.done"))
        builder.branch(loop)
        builder.position_at_end(loop)
        step = builder.phi(_I64)
        step.add_incoming(_I64(0), before)
        totals = [builder.phi(self.vector) for _ in rows]
        column = builder.gep(b, [builder.mul(step, width)])
        values = builder.load(self.vector_at(column), align=4)
        following = builder.add(step, _I64(1))
        step.add_incoming(following, loop)
        added: list[Any] = []
        for row, total in zip(rows, totals, strict=True):
            scalar = self.spread(builder.load(builder.gep(row, [step])))
            added.append(builder.call(self.fma, [scalar, values, total]))
            total.add_incoming(ir.Constant(self.vector, [0.0] * self.lanes), before)
            total.add_incoming(added[-1], loop)
        builder.cbranch(builder.icmp_signed("<", following, k), loop, done)
        builder.position_at_end(done)
        return added


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
