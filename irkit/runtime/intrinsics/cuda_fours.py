"""Four elements of a row at once, between global memory and registers.

`wide` (literal) is 1 where the address is a multiple of 16, or of the four's size; else they are four
accesses.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.cuda_half import narrow
from irkit.runtime.intrinsics.cuda_lanes import alignment, literals_of, load_vector
from irkit.runtime.intrinsics.half_conversions import HALF, I16

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic

I32, I64 = ir.IntType(32), ir.IntType(64)


def store_vector(builder: Any, first: Any, values: Any) -> None:
    """Four elements from `first` on, whose address is a multiple of their size, or of 16; floats are rounded
    where it points to 16-bit floats."""
    element = first.type.pointee
    half = element in (HALF, I16)
    kind = ir.VectorType(element, 4)
    four = ir.Constant(kind, ir.Undefined)
    for i, value in enumerate(values):
        found = narrow(builder, value, element) if half else value
        four = builder.insert_element(four, found, I32(i))
    builder.store(four, builder.bitcast(first, kind.as_pointer())).align = alignment(element)


@intrinsic
def load_four(typing_context: Any, pointer: Any, index: Any, wide: Any) -> Any:
    """pointer[index : index + 4], a tuple."""
    given = literals_of(wide)
    if given is None or not isinstance(pointer, types.CPointer):
        return None
    result = types.UniTuple(pointer.dtype, 4)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first = builder.gep(args[0], [args[1]])
        if given[0]:
            values = load_vector(builder, first, 4)
        else:
            places = [builder.gep(first, [I64(i)]) for i in range(4)]
            values = [value for place in places for value in load_vector(builder, place, 1)]
        return context.make_tuple(builder, result, values)

    return result(pointer, types.uint64, wide), generate


@intrinsic
def store_four(
    typing_context: Any, pointer: Any, index: Any, a: Any, b: Any, c: Any, d: Any, wide: Any
) -> Any:
    """pointer[index : index + 4] = a, b, c, d."""
    given = literals_of(wide)
    if given is None or not isinstance(pointer, types.CPointer):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first = builder.gep(args[0], [args[1]])
        if given[0]:
            store_vector(builder, first, args[2:6])
            return context.get_dummy_value()
        element = first.type.pointee
        for i, value in enumerate(args[2:6]):
            found = narrow(builder, value, element) if element in (HALF, I16) else value
            builder.store(found, builder.gep(first, [I64(i)]))
        return context.get_dummy_value()

    kind = pointer.dtype
    return types.void(pointer, types.uint64, kind, kind, kind, kind, wide), generate


@intrinsic
def store4(typing_context: Any, pointer: Any, index: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """pointer[index : index + 4] = a, b, c, d: one access, whose address is a multiple of its size."""
    if not isinstance(pointer, types.CPointer):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        store_vector(builder, builder.gep(args[0], [args[1]]), args[2:6])
        return context.get_dummy_value()

    kind = pointer.dtype
    return types.void(pointer, types.uint64, kind, kind, kind, kind), generate
