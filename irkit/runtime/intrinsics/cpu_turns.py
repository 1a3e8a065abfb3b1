"""Numba intrinsics that copy runs of rows side by side: rows become columns, in vector registers."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_I1, _I32, _I64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)


@intrinsic(prefer_literal=True)
def turn_runs(
    typingctx: Any, rows: Any, lanes: Any, width: Any, panel: Any, at: Any, source: Any, begins: Any,
    lows: Any, highs: Any, count: Any,
) -> Any:  # fmt: skip
    """`panel[at + e * width + i] = source[begins[i] + e]` for `rows` rows i and e < `count` <= `lanes`.

    Zero stands where e is below `lows[i]` or not below `highs[i]`, and nothing is read there. The literals
    `rows` and `lanes` are powers of two; rows are no more than lanes, and no more than `width`.
    """
    if not all(isinstance(n, types.IntegerLiteral) for n in (rows, lanes, width)):
        return None
    side, long, below = (n.literal_value for n in (rows, lanes, width))

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, _, _, panel, at, source, begins, lows, highs, count = arguments
        runs: list[Any] = []
        for i in range(side):
            begin, low, high = (
                builder.load(builder.gep(p, [_I64(i)])) for p in (begins, lows, highs)
            )
            runs.append(_masked(builder, builder.gep(source, [begin]), low, high, long))
        columns = _interleaved(builder, runs)
        first, align = builder.gep(panel, [at]), context.get_abi_sizeof(panel.type.pointee)
        for e in range(long):
            with builder.if_then(builder.icmp_signed("<", _I64(e), count)):
                _store_column(builder, columns, e, side, first, below, align)
        return context.get_dummy_value()

    integer = types.int64
    return types.void(rows, lanes, width, panel, integer, source, begins, lows, highs,
                      integer), codegen  # fmt: skip


@intrinsic(prefer_literal=True)
def turn_whole_runs(
    typingctx: Any, rows: Any, lanes: Any, width: Any, panel: Any, at: Any, source: Any, starts: Any,
    offset: Any,
) -> Any:  # fmt: skip
    """`turn_runs` of `lanes` elements, none of them outside, that begin `offset` behind `starts[i]`."""
    if not all(isinstance(n, types.IntegerLiteral) for n in (rows, lanes, width)):
        return None
    side, long, below = (n.literal_value for n in (rows, lanes, width))

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, _, _, panel, at, source, starts, offset = arguments
        align = context.get_abi_sizeof(panel.type.pointee)
        vector = ir.VectorType(source.type.pointee, long).as_pointer()
        runs: list[Any] = []
        for i in range(side):
            begin = builder.add(builder.load(builder.gep(starts, [_I64(i)])), offset)
            place = builder.bitcast(builder.gep(source, [begin]), vector)
            runs.append(builder.load(place, align=align))
        columns = _interleaved(builder, runs)
        for e in range(long):
            _store_column(builder, columns, e, side, builder.gep(panel, [at]), below, align)
        return context.get_dummy_value()

    integer = types.int64
    return types.void(rows, lanes, width, panel, integer, source, starts, integer), codegen


@intrinsic(prefer_literal=True)
def expect_runs(typingctx: Any, rows: Any, source: Any, starts: Any, offset: Any) -> Any:
    """Fetch what `offset` is behind the starts of the `rows` runs behind these, if all are as far apart as
    the first two. `rows` is a literal of at least 2; runs that end soon are none that a processor finds."""
    if not isinstance(rows, types.IntegerLiteral):
        return None
    side = rows.literal_value

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, source, starts, offset = arguments
        first, second = (builder.load(builder.gep(starts, [_I64(i)])) for i in (0, 1))
        step = builder.sub(second, first)
        begin = builder.add(builder.add(first, offset), builder.mul(step, _I64(side)))
        letter = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [letter, _I32, _I32, _I32])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        for i in range(side):
            place = builder.gep(source, [builder.add(begin, builder.mul(step, _I64(i)))])
            # To read, into the first cache, data.
            builder.call(prefetch, [builder.bitcast(place, letter), _I32(0), _I32(3), _I32(1)])
        return context.get_dummy_value()

    return types.void(rows, source, starts, types.int64), codegen


def _store_column(
    builder: Any, columns: list[Any], e: int, side: int, panel: Any, below: int, align: int
) -> None:
    """Element `e` of all runs, that of run i at `panel[e * below + i]`."""
    long = columns[0].type.count
    column = _part(builder, columns[e * side // long], e * side % long, side)
    place = builder.gep(panel, [_I64(e * below)])
    builder.store(column, builder.bitcast(place, column.type.as_pointer()), align=align)


def _masked(builder: Any, pointer: Any, low: Any, high: Any, lanes: int) -> Any:
    """Elements `low` to `high` from `pointer` on, zeros in other lanes."""
    numbers = ir.Constant(ir.VectorType(_I64, lanes), list(range(lanes)))
    inside = builder.and_(
        builder.icmp_signed(">=", numbers, _spread(builder, low, lanes)),
        builder.icmp_signed("<", numbers, _spread(builder, high, lanes)),
    )
    element = pointer.type.pointee
    vector = ir.VectorType(element, lanes)
    letter = "f32" if isinstance(element, ir.FloatType) else "f64"
    where = builder.bitcast(pointer, vector.as_pointer())
    kind = ir.FunctionType(vector, [where.type, _I32, ir.VectorType(_I1, lanes), vector])
    name = f"llvm.masked.load.v{lanes}{letter}.p0"
    load = cgutils.get_or_insert_function(builder.module, kind, name)
    align = 4 if letter == "f32" else 8
    return builder.call(load, [where, _I32(align), inside, ir.Constant(vector, [0.0] * lanes)])


def _spread(builder: Any, scalar: Any, lanes: int) -> Any:
    undefined = ir.Constant(ir.VectorType(scalar.type, lanes), ir.Undefined)
    first = builder.insert_element(undefined, scalar, _I32(0))
    return builder.shuffle_vector(
        first, undefined, ir.Constant(ir.VectorType(_I32, lanes), [0] * lanes)
    )


def _interleaved(builder: Any, rows: Sequence[Any]) -> list[Any]:
    """The first elements of all rows, then the second ones, and so on, as vectors of a row's length."""
    if len(rows) == 1:
        return [*rows]
    even, odd = _interleaved(builder, rows[0::2]), _interleaved(builder, rows[1::2])
    lanes = rows[0].type.count
    found: list[Any] = []
    for a, b in zip(even, odd, strict=True):
        for first in (0, lanes // 2):
            order = [n for i in range(first, first + lanes // 2) for n in (i, lanes + i)]
            mask = ir.Constant(ir.VectorType(_I32, lanes), order)
            found.append(builder.shuffle_vector(a, b, mask))
    return found


def _part(builder: Any, vector: Any, first: int, count: int) -> Any:
    """`count` elements of a vector."""
    if count == vector.type.count:
        return vector
    mask = ir.Constant(ir.VectorType(_I32, count), list(range(first, first + count)))
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), mask)
