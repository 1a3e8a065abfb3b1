"""How the sums of an attention's rows end: each group of keys has its own largest score and its own total
(cuda_attention.py says what row values are and how sums lie)."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.cuda import SHARED, shared_address
from irkit.runtime.intrinsics.cuda_attention import constant, floats, literal, row_of, unpacked

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic

I32, F32 = ir.IntType(32), ir.FloatType()


def _function(builder: Any, name: str, count: int) -> Any:
    known = builder.module.globals.get(name)
    return known or ir.Function(builder.module, ir.FunctionType(F32, [F32] * count), name)


def _approximate(b: Any, name: str, x: Any) -> Any:
    kind = ir.FunctionType(F32, [F32])
    code = ir.InlineAsm(kind, f"{name}.approx.ftz.f32 $0, $1;", "=f,f", side_effect=False)
    return b.call(code, [x])


@intrinsic
def row_load(typing_context: Any, staged: Any, position: Any, count: Any, lane: Any) -> Any:
    """What `row_store` has stored at staged[position]: `count` (literal) row values."""
    if not literal(count):
        return None
    result = floats(count.literal_value)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b = builder
        row = b.lshr(b.trunc(args[3], I32), I32(2))
        first = b.add(shared_address(b, args[0], args[1]), b.shl(row, I32(2)))
        places = [
            b.inttoptr(b.add(first, I32(32 * n)), F32.as_pointer(SHARED))
            for n in range(result.count)
        ]
        return context.make_tuple(b, result, [b.load(place) for place in places])

    return result(staged, types.uint64, count, types.uint64), generate


@intrinsic
def column_load(typing_context: Any, staged: Any, position: Any, step: Any, count: Any) -> Any:
    """`count` elements of staged, `step` apart, the first at staged[position]; both are literal."""
    if not literal(step, count):
        return None
    result, apart = floats(count.literal_value), step.literal_value

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, first = builder, shared_address(builder, args[0], args[1])
        starts = [b.add(first, I32(4 * n * apart)) for n in range(result.count)]
        values = [b.load(b.inttoptr(s, F32.as_pointer(SHARED))) for s in starts]
        return context.make_tuple(b, result, values)

    return result(staged, types.uint64, step, count), generate


@intrinsic
def row_shares(
    typing_context: Any, largest: Any, totals: Any, others: Any, their_totals: Any
) -> Any:
    """What sums are to be multiplied by, so that they and those of other keys, with `others` their largest
    scores, add up to the result. Off by 2^-21 of it; where no key was seen at all it is NaN."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b = builder
        rows = zip(*(unpacked(b, a, largest.count) for a in args), strict=True)
        return context.make_tuple(b, largest, [_share(b, *row) for row in rows])

    return largest(largest, totals, others, their_totals), generate


def _share(b: Any, own: Any, total: Any, other: Any, their_total: Any) -> Any:
    top = b.call(_function(b, "llvm.maxnum.f32", 2), [own, other])
    none = b.fcmp_ordered("==", top, constant(float("-inf")))
    shift = b.select(none, constant(0.0), top)
    mine, theirs = (_approximate(b, "ex2", b.fsub(x, shift)) for x in (own, other))
    every = b.fadd(b.fmul(mine, total), b.fmul(theirs, their_total))
    return b.fmul(mine, _approximate(b, "rcp", every))


@intrinsic
def row_scaled(typing_context: Any, sums: Any, factors: Any, columns: Any) -> Any:
    """`sums` of `columns` (literal) columns, each times its row's factor."""
    if not literal(columns):
        return None
    across = columns.literal_value // 8

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, scales = builder, unpacked(builder, args[1], factors.count)
        values = unpacked(b, args[0], sums.count)
        scaled = [b.fmul(v, scales[row_of(n, across)]) for n, v in enumerate(values)]
        return context.make_tuple(b, signature.return_type, scaled)

    return sums(sums, factors, columns), generate
