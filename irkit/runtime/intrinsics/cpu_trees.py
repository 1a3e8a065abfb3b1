"""Numba intrinsics of trees on a CPU: a node asked of many rows, in vector registers."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)


@intrinsic(prefer_literal=True)
def choose_ways(
    typingctx: Any, rows: Any, strict: Any, column: Any, at: Any, threshold: Any, way: Any, near: Any,
    far: Any, to: Any,
) -> Any:  # fmt: skip
    """Bytes way[to + i] = way[near + i] where column[at + i] <= threshold, else way[far + i], of rows i.

    `rows`, their number, is a literal, and `strict`, which is 1 for `<`. What is no number is not below.
    """
    if not isinstance(rows, types.IntegerLiteral) or not isinstance(strict, types.IntegerLiteral):
        return None
    count, sign = rows.literal_value, "<" if strict.literal_value else "<="

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, _, values, first, limit, bytes_, left, right, target = arguments
        wide = ir.VectorType(values.type.pointee, count)
        narrow = ir.VectorType(_I8, count)

        def place(pointer: Any, number: Any, vector: Any) -> Any:
            return builder.bitcast(builder.gep(pointer, [number]), vector.as_pointer())

        undefined = ir.Constant(wide, ir.Undefined)
        lane = builder.insert_element(undefined, limit, _I32(0))
        zeros = ir.Constant(ir.VectorType(_I32, count), [0] * count)
        spread = builder.shuffle_vector(lane, undefined, zeros)
        x = builder.load(
            place(values, first, wide), align=values.type.pointee.get_abi_size(context.target_data)
        )
        below = builder.fcmp_ordered(sign, x, spread)
        ways = [builder.load(place(bytes_, n, narrow), align=1) for n in (left, right)]
        builder.store(builder.select(below, *ways), place(bytes_, target, narrow), align=1)
        return context.get_dummy_value()

    integer = types.int64
    element = column.dtype
    return types.void(
        rows, strict, column, integer, element, way, integer, integer, integer
    ), codegen
