"""Sums and largest numbers of all threads of a warp or a block, which each of them gets; tests of its own."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.cuda import divide, thread_index
from irkit.runtime.intrinsics.cuda_lanes import shuffled

ir: Any = import_module("llvmlite.ir")
cuda: Any = import_module("numba.cuda")
types: Any = cuda.types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic

I32 = ir.IntType(32)


def _over_the_warp(builder: Any, value: Any, combine: Any, lanes: int = 32) -> Any:
    while lanes > 1:
        lanes //= 2
        value = combine(value, shuffled(builder, value, lanes))
    return value


@intrinsic
def warp_sum(typing_context: Any, x: Any) -> Any:
    """The sum of a float32 or float64 of each lane. All lanes of the warp must call it."""
    if not isinstance(x, types.Float):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _over_the_warp(builder, args[0], builder.fadd)

    return x(x), generate


@intrinsic
def warp_largest(typing_context: Any, x: Any) -> Any:
    """The largest number of a float32 or float64 of each lane; a NaN is none. All lanes must call it."""
    if not isinstance(x, types.Float):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = args[0].type
        of_two = ir.FunctionType(kind, [kind, kind])
        function = builder.module.declare_intrinsic("llvm.maxnum", [kind], of_two)

        def larger(a: Any, b: Any) -> Any:
            return builder.call(function, [a, b])

        return _over_the_warp(builder, args[0], larger)

    return x(x), generate


def _larger(sign: str) -> Any:
    """Prints the one of two numbers that is so of the other; NaN where either is."""

    def of_two(builder: Any, a: Any, b: Any) -> Any:
        beyond = builder.fcmp_ordered(sign, a, b)
        nan = builder.fcmp_unordered("uno", a, a)
        return builder.select(builder.or_(beyond, nan), a, b)

    return of_two


def _extreme(sign: str, says: str) -> Any:
    of_two = _larger(sign)

    @intrinsic
    def found(typing_context: Any, x: Any) -> Any:
        if not isinstance(x, types.Float):
            return None

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _over_the_warp(builder, args[0], partial(of_two, builder))

        return x(x), generate

    found.__doc__ = says
    return found


def _of_lanes(of_two: Any, says: str) -> Any:
    @intrinsic
    def found(typing_context: Any, x: Any, lanes: Any) -> Any:
        if not isinstance(x, types.Float) or not isinstance(lanes, types.IntegerLiteral):
            return None
        count = lanes.literal_value

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _over_the_warp(builder, args[0], partial(of_two, builder), count)

        return x(x, lanes), generate

    found.__doc__ = (
        f"{says} of groups of `lanes` (literal, a power of two) lanes that lie side by side."
    )
    return found


def _sum(builder: Any, a: Any, b: Any) -> Any:
    return builder.fadd(a, b)


lanes_sum = _of_lanes(_sum, "Sums")
lanes_maximum = _of_lanes(_larger(">"), "The largest, NaN where one is,")
lanes_minimum = _of_lanes(_larger("<"), "The smallest, NaN where one is,")

warp_maximum = _extreme(
    ">", "The largest float32 or float64 of all lanes, NaN where one is. All lanes must call it."
)
warp_minimum = _extreme(
    "<", "The smallest float32 or float64 of all lanes, NaN where one is. All lanes must call it."
)


@cuda.jit(device=True)
def block_sum(x: Any, parts: Any, warps: Any) -> Any:
    """The sum over all threads of a block of so many `warps`, which leave theirs in `parts` (shared).

    There is one barrier: what `parts` held must have been read before by all, and what it holds is to be
    read by all before it is written again.
    """
    warp, lane = divide(thread_index(), 32)
    x = warp_sum(x)
    if lane == 0:
        parts[warp] = x
    cuda.syncthreads()
    total = parts[0]
    for w in range(1, warps):
        total += parts[w]
    return total


@cuda.jit(device=True)
def block_largest(x: Any, parts: Any, warps: Any) -> Any:
    """The largest number of all threads of a block, as `block_sum` has their sum."""
    warp, lane = divide(thread_index(), 32)
    x = warp_largest(x)
    if lane == 0:
        parts[warp] = x
    cuda.syncthreads()
    for w in range(warps):
        x = max(x, parts[w])
    return x


@cuda.jit(device=True)
def block_maximum(x: Any, parts: Any, warps: Any) -> Any:
    """The largest number of all threads of a block, NaN where one is, as `block_sum` has their sum."""
    warp, lane = divide(thread_index(), 32)
    x = warp_maximum(x)
    if lane == 0:
        parts[warp] = x
    cuda.syncthreads()
    for w in range(warps):
        other = parts[w]
        x = x if x > other or x != x else other
    return x


@cuda.jit(device=True)
def block_minimum(x: Any, parts: Any, warps: Any) -> Any:
    """The smallest number of all threads of a block, NaN where one is, as `block_sum` has their sum."""
    warp, lane = divide(thread_index(), 32)
    x = warp_minimum(x)
    if lane == 0:
        parts[warp] = x
    cuda.syncthreads()
    for w in range(warps):
        other = parts[w]
        x = x if x < other or x != x else other
    return x


@intrinsic
def any_unsure(typing_context: Any, sums: Any, least: Any) -> Any:
    """1 where one of this thread's sums (float32) is below `least` in size, infinite or NaN; else 0."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        # Sizes of floats are in order as their bits are.
        b, found, low = builder, I32(0), builder.bitcast(args[1], I32)
        width = b.sub(I32(0x7F800000), low)
        for i in range(sums.count):
            size = b.and_(b.bitcast(b.extract_value(args[0], i), I32), I32(0x7FFFFFFF))
            outside = b.icmp_unsigned(">=", b.sub(size, low), width)
            found = b.select(outside, I32(1), found)
        return found

    return types.int32(sums, types.float32), generate
