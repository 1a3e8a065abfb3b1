"""Products of tiles in shared memory, unrolled: each thread keeps its sums in registers, as a tuple.

And index arithmetic in 32 bits, which Numba's own operators would widen: a GPU has no 64-bit units.
Arguments marked *literal* must be constants in the source text.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.cuda import SHARED, asm, to_shared

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic

I32, I64 = ir.IntType(32), ir.IntType(64)


@intrinsic
def add32(typing_context: Any, a: Any, b: Any) -> Any:
    """a + b, which must fit 32 bits."""
    kind = types.int32

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.add(args[0], args[1])

    return kind(kind, kind), generate


@intrinsic
def mad32(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, which must fit 32 bits."""
    kind = types.int32

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.add(builder.mul(args[0], args[1]), args[2])

    return kind(kind, kind, kind), generate


@intrinsic
def divide32(typing_context: Any, dividend: Any, divisor: Any) -> Any:
    """(quotient, remainder) of numbers in 0 .. 2^31 - 1, with no test for a zero divisor."""
    pair = types.UniTuple(types.int32, 2)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        quotient = builder.udiv(args[0], args[1])
        remainder = builder.sub(args[0], builder.mul(quotient, args[1]))
        return context.make_tuple(builder, pair, [quotient, remainder])

    return pair(types.int32, types.int32), generate


@intrinsic
def within32(typing_context: Any, index: Any, size: Any) -> Any:
    """Whether index lies in 0 .. size - 1: one comparison, since a negative index is a large one."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.icmp_unsigned("<", args[0], args[1])

    return types.boolean(types.int32, types.int32), generate


@intrinsic
def fixed(typing_context: Any, x: Any) -> Any:
    """The int64 x, computed here once: the compiler would compute it anew inside of a loop."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return asm(builder, "mov.b64 $0, $1;", I64, [args[0]], "=l,l")

    return types.int64(types.int64), generate


def _vector(pointer: Any, width: int) -> Any:
    return ir.VectorType(pointer.type.pointee, width).as_pointer(pointer.type.addrspace)


def _load(builder: Any, first: Any, offset: int, count: int) -> list[Any]:
    """`count` elements, a multiple of four, from `offset` on; four are one aligned access."""
    values: list[Any] = []
    for start in range(0, count, 4):
        place = builder.gep(first, [I64(offset + start)])
        four = builder.load(builder.bitcast(place, _vector(place, 4)))
        four.align = 16
        values += [builder.extract_element(four, I32(i)) for i in range(4)]
    return values


@intrinsic
def tile_sums(
    typing_context: Any, sums: Any, pointer: Any, a: Any, b: Any,
    a_step: Any, b_step: Any, height: Any, width: Any, count: Any,
) -> Any:  # fmt: skip
    """sums[i, j] + sum of pointer[a + k * a_step + i] * pointer[b + k * b_step + j] over k < count.

    `sums` is a tuple of height × width elements, row-major. The pointer is to shared memory; all but
    the sums and the positions a and b are literal, and all of them multiples of four.
    """
    given = (a_step, b_step, height, width, count)
    if not all(isinstance(v, types.IntegerLiteral) for v in given):
        return None
    below, beside, rows, columns, terms = (v.literal_value for v in given)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = [builder.extract_value(args[0], i) for i in range(rows * columns)]
        base = to_shared(builder, args[1])
        left, right = (builder.gep(base, [position]) for position in args[2:4])
        for k in range(terms):
            down = _load(builder, left, k * below, rows)
            across = _load(builder, right, k * beside, columns)
            for i in range(rows):
                for j in range(columns):
                    at = i * columns + j
                    values[at] = builder.fma(down[i], across[j], values[at])
        return context.make_tuple(builder, signature.return_type, values)

    return sums(sums, pointer, types.uint64, types.uint64, *given), generate


@intrinsic
def tile_scaled(
    typing_context: Any, sums: Any, pointer: Any, position: Any, height: Any, width: Any
) -> Any:
    """sums[i, j] * pointer[position + i]: rows scaled each by its own factor, which is in shared memory.

    `sums` is a tuple of height × width elements, row-major; height, a literal, and position are multiples
    of four.
    """
    if not all(isinstance(v, types.IntegerLiteral) for v in (height, width)):
        return None
    rows, columns = height.literal_value, width.literal_value

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first = builder.gep(to_shared(builder, args[1]), [args[2]])
        scales = _load(builder, first, 0, rows)
        values = [
            builder.fmul(builder.extract_value(args[0], i * columns + j), scales[i])
            for i in range(rows)
            for j in range(columns)
        ]
        return context.make_tuple(builder, signature.return_type, values)

    return sums(sums, pointer, types.uint64, height, width), generate


@intrinsic
def tile_store(
    typing_context: Any, pointer: Any, position: Any, step: Any, sums: Any, width: Any
) -> Any:
    """pointer[position + i * step + j] = sums[i, j], to shared memory; rows of `width` elements.

    `step` and `width` are literal, and like `position` multiples of four.
    """
    if not all(isinstance(v, types.IntegerLiteral) for v in (step, width)):
        return None
    below, columns = step.literal_value, width.literal_value

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first = builder.gep(to_shared(builder, args[0]), [args[1]])
        for start in range(0, sums.count, 4):
            row, column = divmod(start, columns)
            place = builder.gep(first, [I64(row * below + column)])
            kind = ir.VectorType(place.type.pointee, 4)
            four = ir.Constant(kind, ir.Undefined)
            for i in range(4):
                value = builder.extract_value(args[3], start + i)
                four = builder.insert_element(four, value, I32(i))
            builder.store(four, builder.bitcast(place, kind.as_pointer(SHARED))).align = 16
        return context.get_dummy_value()

    return types.void(pointer, types.uint64, step, sums, width), generate
