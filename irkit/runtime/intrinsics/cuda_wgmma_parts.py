"""Attention of float32 by warp groups: factors in two float16 parts each, of which three products are taken.

A factor is scaled by a power of two, so that the largest so far is in [2^14, 2^15), or in the next octave,
and cut into x = high + 2^-11 low, each rounded to float16: 22 bits and a sign from 2^-13 on, and below that
off by 2^-36 at most, 2^-50 of the largest. Of the four products low·low is left out, at most 2^-24 of |x y|,
what a float32 product's rounding is. The low part is kept 2^11 times as large as it counts, so that it is
lost as late as this; its products have sums of their own, and they are brought together in float32.

Tensor cores truncate where they add (`cuda_wgmma`): of high·high, whose products have 22 bits, the sums of
one block's terms alone are theirs. Arguments marked *literal* must be constants in the source text.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.cuda import asm, shared_address
from irkit.runtime.intrinsics.cuda_attention import constant, floats, literal, row_of, unpacked
from irkit.runtime.intrinsics.cuda_mma import F16
from irkit.runtime.intrinsics.cuda_wgmma import Stage
from irkit.runtime.intrinsics.cuda_wgmma_terms import Packer
from irkit.runtime.intrinsics.cuda_wgmma_units import cut
from irkit.scaled_rows import LOW

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic

I32, F32 = ir.IntType(32), ir.FloatType()


def _steps(count: int, together: bool) -> list[tuple[int, int, int, int]]:
    """What is multiplied of sixteen terms: part of the left factor, part of the right one, the first of the
    sums that it is added to, and how many these are. Of `count` sums high·high makes, and as many others, the
    products with the left one's high part are one instruction where both parts of the right one lie
    `together`: it is read once. The other product has sums of its own then."""
    if together:
        return [(0, 0, 0, 2 * count), (1, 0, 2 * count, count)]
    return [(0, 0, 0, count), (0, 1, count, count), (1, 0, count, count)]


def _begun(builder: Any, lines: list[str], count: int, given: list[Any], kinds: list[str]) -> Any:
    """Products as a group of their own that make `count` sums."""
    begin, end = (
        "{ .reg .b64 a, b;\nwgmma.fence.sync.aligned;",
        "wgmma.commit_group.sync.aligned; }",
    )
    text = "\n".join([begin, *lines, end])
    made = ir.LiteralStructType([F32] * count)
    return asm(builder, text, made, given, ",".join(["=f"] * count + kinds + ["~{memory}"]))


def _sums(first: int, count: int) -> str:
    return "{" + ", ".join(f"${i}" for i in range(first, first + count)) + "}"


def _tuple(context: Any, builder: Any, values: Any, made: Any) -> Any:
    return context.make_tuple(builder, made, unpacked(builder, values, made.count))


@intrinsic
def part_products(
    typing_context: Any, staged: Any, a: Any, b: Any, columns: Any, terms: Any,
    a_plane: Any, b_plane: Any, a_part: Any, b_part: Any, held: Any,
) -> Any:  # fmt: skip
    """Start the warp group's products of 64 packed rows at staged[a] and `columns` at staged[b].

    What comes back is for `joined_products` alone: columns / 2 sums of high parts, and those of the others.
    Rows have 128 bytes, planes of 64 terms and parts are so many words apart. From `columns` on all are
    literal; `terms` is a multiple of 16. `held`: whether registers hold other scores meanwhile.
    """
    given = (columns, terms, a_plane, b_plane, a_part, b_part, held)
    if not literal(*given):
        return None
    width, depth, below, beside, of_a, of_b, full = (v.literal_value for v in given)
    stage, count = Stage(width, depth, 32, below, beside, True, F16), width // 2
    # Beside those, or of more terms than 64, there is no room for sums of three kinds.
    together = of_b == 32 * width and max(width, depth) <= 64 and not full
    made = floats((3 if together else 2) * count)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        tiles = [
            stage.descriptor(builder, shared_address(builder, args[0], args[i]), by_k=True)
            for i in (1, 2)
        ]
        lines: list[str] = []
        for n, step in enumerate(stage.steps):
            for x, y, first, wide in _steps(count, together):
                left = stage.of_a(step, 0) + x * of_a // 4
                right = stage.of_b(step, 0) + y * of_b // 4
                lines.append(
                    f"add.s64 a, ${made.count}, {left}; add.s64 b, ${made.count + 1}, {right};"
                )
                added = int(n > 0 or (x > 0 and not together))
                lines.append(
                    f"wgmma.mma_async.sync.aligned.m64n{2 * wide}k16.f32.f16.f16 "
                    f"{_sums(first, wide)}, a, b, {added}, 1, 1, 0, 0;"
                )
        found = _begun(builder, lines, made.count, tiles, ["l", "l"])
        return _tuple(context, builder, found, made)

    u64 = types.uint64
    return made(staged, u64, u64, *given), generate


def _arrived(builder: Any, products: Any, count: int) -> list[Any]:
    """The sums of products, waited for: nothing that reads them may be moved before."""
    asm(builder, "wgmma.wait_group.sync.aligned 0;", ir.VoidType(), [], "~{memory}")
    started = unpacked(builder, products, count)
    constraints = ",".join(["=f"] * count + [str(i) for i in range(count)] + ["~{memory}"])
    found = asm(builder, "", ir.LiteralStructType([F32] * count), started, constraints)
    return unpacked(builder, found, count)


def _joined(builder: Any, values: list[Any], count: int) -> list[Any]:
    """`count` sums of high parts and those of the others, together."""
    fma, low = _fma(builder), values[count : 2 * count]
    for first in range(2 * count, len(values), count):
        more = values[first : first + count]
        low = [builder.fadd(x, y) for x, y in zip(low, more, strict=True)]
    return [
        builder.call(fma, [y, constant(1 / LOW), x])
        for x, y in zip(values[:count], low, strict=True)
    ]


def _fma(builder: Any) -> Any:
    name = "llvm.fma.f32"
    known = builder.module.globals.get(name)
    return known or ir.Function(builder.module, ir.FunctionType(F32, [F32] * 3), name)


@intrinsic
def joined_products(typing_context: Any, products: Any, columns: Any) -> Any:
    """Wait for what `part_products` started of so many columns (literal), and its sums."""
    if not literal(columns):
        return None
    made = floats(columns.literal_value // 2)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = _joined(builder, _arrived(builder, args[0], products.count), made.count)
        return context.make_tuple(builder, made, values)

    return made(products, columns), generate


@intrinsic
def least_scores(typing_context: Any, least: Any, scores: Any, scale: Any, columns: Any) -> Any:
    """Row values `least` with the scores, times `scale` > 0 and log2(e), counted in; `columns` is literal."""
    if not literal(columns):
        return None
    across = columns.literal_value // 8

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, name = builder, "llvm.minnum.f32"
        known = b.module.globals.get(name)
        smaller = known or ir.Function(b.module, ir.FunctionType(F32, [F32] * 2), name)
        rows = [constant(float("inf"))] * least.count
        for n, score in enumerate(unpacked(b, args[1], scores.count)):
            row = row_of(n, across)
            rows[row] = b.call(smaller, [rows[row], score])
        scaled = b.fmul(args[2], constant(1.4426950408889634))
        before = unpacked(b, args[0], least.count)
        values = [
            b.call(smaller, [x, b.fmul(y, scaled)]) for x, y in zip(before, rows, strict=True)
        ]
        return context.make_tuple(b, least, values)

    return least(least, scores, types.float32, columns), generate


@intrinsic
def further_apart(typing_context: Any, largest: Any, least: Any, bits: Any) -> Any:
    """Whether any row value of `largest` is more than `bits` (literal) above that of `least`."""
    if not literal(bits):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, found = builder, ir.Constant(ir.IntType(1), 0)
        sides = [unpacked(b, args[i], largest.count) for i in (0, 1)]
        for top, low in zip(*sides, strict=True):
            gap = b.fcmp_ordered(">", b.fsub(top, low), constant(float(bits.literal_value)))
            found = b.or_(found, gap)
        return found

    return types.boolean(largest, least, bits), generate


@intrinsic
def cut_weights(typing_context: Any, weights: Any) -> Any:
    """Weights, as `part_products` leaves scores, as words of high parts, and behind them of the low ones."""
    made = types.UniTuple(types.uint32, weights.count)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = unpacked(builder, args[0], weights.count)
        high, low = cut(Packer(builder, F16), values)
        return context.make_tuple(builder, made, [*high, *low])

    return made(weights), generate


@intrinsic
def weighted_parts(
    typing_context: Any, words: Any, staged: Any, values: Any, columns: Any, part: Any
) -> Any:
    """Start the products of what `cut_weights` has cut and as many packed rows at staged[values].

    What comes back is for `weighted_added` alone. `columns`, 64 at most, are those of rows of 128 bytes,
    whose low parts lie `part` words behind the high ones; both are literal.
    """
    given = (columns, part)
    if not literal(*given):
        return None
    width, behind = (v.literal_value for v in given)
    each, count = words.count // 2, width // 2
    stage, made = Stage(width, 4 * each, 32, 0, behind, False, F16), floats(width)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        tile = stage.descriptor(builder, shared_address(builder, args[1], args[2]), by_k=False)
        lines: list[str] = []
        for n, step in enumerate(stage.steps):
            for x, y, first, wide in _steps(count, False):
                own = _sums(2 * count + x * each + 4 * step, 4)
                right = stage.of_b(step, 0) + y * behind // 4
                lines.append(f"add.s64 b, ${2 * count + 2 * each}, {right};")
                added = int(n > 0 or x > 0)
                lines.append(
                    f"wgmma.mma_async.sync.aligned.m64n{2 * wide}k16.f32.f16.f16 "
                    f"{_sums(first, wide)}, {own}, b, {added}, 1, 1, 1;"
                )
        given = [*unpacked(builder, args[0], words.count), tile]
        kinds = ["r"] * words.count + ["l"]
        return _tuple(context, builder, _begun(builder, lines, 2 * count, given, kinds), made)

    return made(words, staged, types.uint64, *given), generate


@intrinsic
def weighted_added(typing_context: Any, sums: Any, products: Any, factors: Any, scale: Any) -> Any:
    """Wait for what `weighted_parts` started; `sums` times `factors`, with it times `scale`."""
    across = sums.count // 4

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, fma = builder, _fma(builder)
        found = _joined(b, _arrived(b, args[1], products.count), sums.count)
        rows = unpacked(b, args[2], factors.count)
        values = [
            b.call(fma, [new, args[3], b.fmul(old, rows[row_of(n, across)])])
            for n, (new, old) in enumerate(
                zip(found, unpacked(b, args[0], sums.count), strict=True)
            )
        ]
        return context.make_tuple(b, sums, values)

    return sums(sums, products, factors, types.float32), generate


@intrinsic
def still_held(typing_context: Any, mark: Any, words: Any) -> Any:
    """`mark`, changed by the words that products were given: until here they stay in their registers."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, found = builder, args[0]
        own = unpacked(b, args[1], words.count)
        for x, y in zip(own[::2], own[1::2], strict=True):
            text = "lop3.b32 $0, $1, $2, $3, 0x96;"
            found = asm(b, text, I32, [found, x, y], "=r,r,r,r,~{memory}")
        return found

    return types.uint32(types.uint32, words), generate
