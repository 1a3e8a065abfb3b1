"""Sums over windows of planes in shared memory, a term at a time: each thread keeps its sums as a tuple.

Arguments marked *literal* must be constants in the source text.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.cuda import to_shared

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic

I32, I64 = ir.IntType(32), ir.IntType(64)


@intrinsic
def window_sums(
    typing_context: Any, sums: Any, pointer: Any, filters: Any, columns: Any, shift: Any,
    place: Any, height: Any,
) -> Any:  # fmt: skip
    """sums[i, j] + pointer[filters + i] * pointer[columns[j] + shift + place], for i < height.

    `sums` is a tuple of height × len(columns) elements, row-major. The pointer is to shared memory; `place`
    and `height` are literal, and `filters` and `height` multiples of four.
    """
    if not all(isinstance(v, types.IntegerLiteral) for v in (place, height)):
        return None
    at, rows, width = place.literal_value, height.literal_value, columns.count

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        base = to_shared(builder, args[1])
        kind = ir.VectorType(base.type.pointee, 4).as_pointer(base.type.addrspace)
        across: list[Any] = []
        for j in range(width):
            column = builder.add(builder.extract_value(args[3], j), args[4])
            first = builder.gep(base, [column])
            across.append(builder.load(builder.gep(first, [I64(at)])))
        found: list[Any] = []
        for start in range(0, rows, 4):
            first = builder.gep(base, [args[2]])
            four = builder.load(builder.bitcast(builder.gep(first, [I64(start)]), kind))
            four.align = 16
            for i in range(4):
                down = builder.extract_element(four, I32(i))
                for j in range(width):
                    total = builder.extract_value(args[0], (start + i) * width + j)
                    found.append(builder.fma(down, across[j], total))
        return context.make_tuple(builder, signature.return_type, found)

    places = types.UniTuple(types.uint64, width)
    given = (pointer, types.uint64, places, types.uint64, place, height)
    return sums(sums, *given), generate
