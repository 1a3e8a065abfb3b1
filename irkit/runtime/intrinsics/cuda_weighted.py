"""Products of weights in registers and values in shared memory, by warp groups (`wgmma`).

What a warp group holds of 64 rows of scores (`cuda_wgmma.group_products`) lies in registers as its tensor
cores read a left factor, once two neighbours are rounded into a word. PTX ISA, "Asynchronous Warpgroup Level
Matrix Multiply-Accumulate": register fragments of A and of D.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.cuda import asm, shared_address
from irkit.runtime.intrinsics.cuda_attention import literal, unpacked
from irkit.runtime.intrinsics.cuda_wgmma import SHAPES, Stage
from irkit.runtime.intrinsics.cuda_wgmma_terms import Packer

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic

F32 = ir.FloatType()


def _text(stage: Stage, count: int) -> str:
    """All products as a group of their own, in $0 ... of `count` sums; behind them four words of weights for
    each sixteen terms, and the descriptor of the values."""
    sums = ", ".join(f"${i}" for i in range(count))
    name, steps = SHAPES[stage.kind], stage.steps
    shape = f"m64n{stage.columns}k16.f32.{name}.{name}"
    lines = ["{ .reg .b64 b;", "wgmma.fence.sync.aligned;"]
    for step in steps:
        words = ", ".join(f"${count + 4 * step + i}" for i in range(4))
        lines.append(f"add.s64 b, ${count + 4 * len(steps)}, {stage.of_b(step, 0)};")
        lines.append(
            f"wgmma.mma_async.sync.aligned.{shape} {{{sums}}}, {{{words}}}, b, 1, 1, 1, 1;"
        )
    return "\n".join([*lines, "wgmma.commit_group.sync.aligned; }"])


@intrinsic
def settled(typing_context: Any, values: Any) -> Any:
    """A tuple of float32 that is computed here, and not where it is used."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        count = values.count
        constraints = ",".join(["=f"] * count + [str(i) for i in range(count)] + ["~{memory}"])
        kind = ir.LiteralStructType([F32] * count)
        made = asm(builder, "", kind, unpacked(builder, args[0], count), constraints)
        found = [builder.extract_value(made, i) for i in range(count)]
        return context.make_tuple(builder, signature.return_type, found)

    return values(values), generate


@intrinsic
def packed_weights(typing_context: Any, weights: Any, kind: Any) -> Any:
    """Weights rounded to `kind` (literal, BF16 or F16), two a word, for `weighted_products`."""
    if not literal(kind):
        return None
    made = types.UniTuple(types.uint32, weights.count // 2)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        packer = Packer(builder, kind.literal_value)
        words = packer.pairs(unpacked(builder, args[0], weights.count))
        return context.make_tuple(builder, made, words)

    return made(weights, kind), generate


@intrinsic
def weighted_products(
    typing_context: Any, sums: Any, words: Any, staged: Any, values: Any,
    columns: Any, keys: Any, plane: Any, kind: Any,
) -> Any:  # fmt: skip
    """Start `sums`, and the warp group's weights times `keys` packed rows at staged[values].

    What comes back is for `group_added` alone. Rows hold 64 of the `columns` each, in planes `plane` words
    apart; `words` are what `packed_weights` makes of weights that lie as `group_products` of `keys` columns
    leaves them. From `columns` on all are literal: `columns` is a multiple of 8, `keys` of 16, `kind` BF16 or
    F16.
    """
    given = (columns, keys, plane, kind)
    if not literal(*given):
        return None
    width, count, apart, how = (v.literal_value for v in given)
    stage = Stage(width, count, 32, 0, apart, False, how)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, found = builder, unpacked(builder, args[0], sums.count)
        held = unpacked(b, args[1], words.count)
        tile = stage.descriptor(b, shared_address(b, args[2], args[3]), by_k=False)
        tied = [str(i) for i in range(len(found))]
        constraints = ",".join(["=f"] * len(found) + ["r"] * len(held) + ["l", *tied, "~{memory}"])
        result = ir.LiteralStructType([F32] * len(found))
        made = asm(b, _text(stage, len(found)), result, [*held, tile, *found], constraints)
        added = [b.extract_value(made, i) for i in range(len(found))]
        return context.make_tuple(b, signature.return_type, added)

    return sums(sums, words, staged, types.uint64, *given), generate
