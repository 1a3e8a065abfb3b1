"""Products whose left factor warp groups hold in registers (`wgmma`), as it lies in memory.

What is held are columns, be they B's or, as columns of its transposed, A's rows: each element is read once,
from however it lies, and no thread puts it anywhere. They are the rows of the tensor cores' products; what
is shared, in shared memory, has rows too, which are their columns. A lane has terms of two columns, eight
apart; register fragments of a left factor: PTX ISA, "Asynchronous Warpgroup Level Matrix
Multiply-Accumulate". Tiles of float32 have rows of 128 bytes, whose chunks of 16 lie in the order that the
copy engine's swizzle of that width gives. `cuda_wgmma` says what parts are. Arguments marked *literal* must
be constants in the source text.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.cuda import SHARED, asm, shared_address
from irkit.runtime.intrinsics.cuda_attention import literal, unpacked
from irkit.runtime.intrinsics.cuda_bulk import counted_magnitudes
from irkit.runtime.intrinsics.cuda_mma import SPLIT, TF32
from irkit.runtime.intrinsics.cuda_wgmma import Stage
from irkit.runtime.intrinsics.cuda_wgmma_terms import Packer

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic

I32, F32 = ir.IntType(32), ir.FloatType()

PARTS = 3
"""Of a float32 that is split."""


def _shared(b: Any, address: Any, kind: Any) -> Any:
    return b.load(b.inttoptr(address, kind.as_pointer(SHARED)))


def _along(b: Any, tile: Any, column: Any, quad: Any, kind: int) -> list[Any]:
    """Words of 32 terms that lie side by side: of columns `column` and eight behind."""
    turned, first = b.and_(column, I32(7)), b.add(tile, b.shl(column, I32(7)))
    if kind == TF32:
        first = b.add(first, b.add(b.shl(turned, I32(4)), b.shl(quad, I32(2))))
        places = [(b.xor(first, I32(16 * n)), half) for n in range(8) for half in (0, 1)]
        return [_shared(b, b.add(place, I32(1024 * half)), I32) for place, half in places]
    # Two neighbours are read at once.
    chunk = b.xor(turned, b.lshr(quad, I32(1)))
    first = b.add(first, b.add(b.shl(chunk, I32(4)), b.shl(b.and_(quad, I32(1)), I32(3))))
    words: list[Any] = []
    for n, half in ((n, half) for n in range(0, 8, 2) for half in (0, 1)):
        place = b.add(b.xor(first, I32(16 * n)), I32(1024 * half))
        two = _shared(b, place, ir.VectorType(I32, 2))
        two.align = 8
        words += [b.extract_element(two, I32(e)) for e in (0, 1)]
    return words


def _across(b: Any, tile: Any, column: Any, quad: Any, kind: int, rows: int) -> list[Any]:
    """The same of columns that lie side by side, 32 a row, in planes of `rows` terms."""
    # The lane's first term: of two that are neighbours, or of two four apart.
    term = quad if kind == TF32 else b.shl(quad, I32(1))
    chunk = b.xor(b.and_(b.lshr(column, I32(2)), I32(7)), term)
    plane = b.mul(b.lshr(column, I32(5)), I32(128 * rows))
    first = b.add(b.add(tile, plane), b.shl(term, I32(7)))
    first = b.add(first, b.shl(chunk, I32(4)))
    first = b.add(first, b.shl(b.and_(column, I32(3)), I32(2)))
    if kind == TF32:
        order = [(512 * n, 32 * half ^ 64 * (n % 2)) for n in range(8) for half in (0, 1)]
    else:
        pairs = [(half, e) for half in (0, 1) for e in (0, 1)]
        order = [(1024 * n + 128 * e, 32 * half ^ 16 * e) for n in range(4) for half, e in pairs]
    starts = {turn: b.xor(first, I32(turn)) for _, turn in order}
    return [_shared(b, b.add(starts[turn], I32(far)), I32) for far, turn in order]


@intrinsic
def column_terms(
    typing_context: Any, staged: Any, tile: Any, column: Any, quad: Any, by_k: Any, kind: Any,
    terms: Any, rows: Any,
) -> Any:  # fmt: skip
    """`terms` (32, 64) terms of two columns, `column`, whose number has no bit 8, and eight behind, as a lane
    holds them.

    `quad`: which of the four lanes of these columns it is. They start at staged[tile], in planes of `rows`
    rows of 128 bytes that start at multiples of 1024 bytes: `by_k`, a row is 32 terms of a column, else a
    term of 32 columns. What comes back are words for `column_products`, in TF32, or else for what cuts them.
    All but the first four are literal, `kind` SPLIT or TF32.
    """
    given = (by_k, kind, terms, rows)
    if not literal(*given):
        return None
    side, how, depth, high = (v.literal_value for v in given)
    made = types.UniTuple(types.uint32, depth // 2)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, words = builder, list[Any]()
        place = shared_address(b, args[0], args[1])
        column, quad = (b.trunc(a, I32) for a in args[2:4])
        for n in range(depth // 32):
            if side:
                words += _along(b, b.add(place, I32(128 * n * high)), column, quad, how)
            else:
                words += _across(b, b.add(place, I32(4096 * n)), column, quad, how, high)
        return context.make_tuple(b, made, words)

    u64 = types.uint64
    return made(staged, u64, u64, u64, *given), generate


def settled(builder: Any, words: list[Any]) -> list[Any]:
    """Words that are computed here, and not where they are used."""
    count = len(words)
    constraints = ["=r"] * count + [str(i) for i in range(count)] + ["~{memory}"]
    kind = ir.LiteralStructType([I32] * count)
    return unpacked(builder, asm(builder, "", kind, words, ",".join(constraints)), count)


@intrinsic
def cut_columns(typing_context: Any, least: Any, most: Any, words: Any) -> Any:
    """What `column_terms` has read, in three bfloat16 parts, for `taken_over`; behind them (`least`, `most`)
    with the magnitudes of the first parts counted in, as `cuda_bulk.packed_magnitudes` has them."""
    u32 = types.uint32
    made = types.UniTuple(u32, words.count // 2 * PARTS + 2)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        packer, found = Packer(builder, SPLIT), list[Any]()
        held, (low, top) = unpacked(builder, args[2], words.count), args[:2]
        for first in range(0, len(held), 8):
            parts = packer.parts(held[first : first + 8])
            low, top = counted_magnitudes(builder, low, top, parts[0])
            found += [w for part in parts for w in part]
        return context.make_tuple(builder, made, settled(builder, [*found, low, top]))

    return made(u32, u32, words), generate


@intrinsic
def taken_over(typing_context: Any, words: Any, behind: Any) -> Any:
    """What was cut while products were at work, but for what is `behind` (literal) words from the end, in
    registers of its own, for products: where they are given what is computed meanwhile, the assembler may let
    none begin before the one before it has ended."""
    if not literal(behind):
        return None
    made = types.UniTuple(types.uint32, words.count - behind.literal_value)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        held = unpacked(builder, args[0], made.count)
        moved = [asm(builder, "mov.b32 $0, $1;", I32, [w], "=r,r") for w in held]
        return context.make_tuple(builder, made, moved)

    return made(words, behind), generate


def begun(
    context: Any, builder: Any, lines: list[str], made: Any, given: tuple[Any, ...], tied: list[Any]
) -> Any:
    """Products as a group of their own, whose sums come first in the text, behind those of `tied` if any;
    then, of `given`, the left factor's words and the right one's descriptor."""
    words, tile = given
    text = "\n".join(
        [
            "{ .reg .b64 b;",
            "wgmma.fence.sync.aligned;",
            *lines,
            "wgmma.commit_group.sync.aligned; }",
        ]
    )
    own = [str(i) for i in range(len(tied))]
    constraints = ["=f"] * made.count + ["r"] * len(words) + ["l", *own, "~{memory}"]
    kind = ir.LiteralStructType([F32] * made.count)
    found = asm(builder, text, kind, [*words, tile, *tied], ",".join(constraints))
    return context.make_tuple(builder, made, unpacked(builder, found, made.count))


def names(first: int, count: int) -> str:
    """Of registers, as `begun` numbers them."""
    return "{" + ", ".join(f"${i}" for i in range(first, first + count)) + "}"


def _tile(builder: Any, stage: Stage, staged: Any, place: Any) -> Any:
    return stage.descriptor(builder, shared_address(builder, staged, place), by_k=True)


@intrinsic
def column_products(
    typing_context: Any, sums: Any, words: Any, staged: Any, place: Any, rows: Any
) -> Any:
    """Start `sums`, and the products in TF32 of 32 terms of the warp group's 64 columns, which are `words`,
    and of `rows` (literal) rows of 128 bytes at staged[place].

    What comes back is for `group_added` alone, or for more products. A lane has rows / 2 sums, of which
    `mma_store_across` makes columns of rows. `words` must stay as they are until then (`still_held`).
    """
    if not literal(rows):
        return None
    stage = Stage(rows.literal_value, 32, 32, 0, 0, True, TF32)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        tile, held = _tile(builder, stage, *args[2:4]), unpacked(builder, args[1], words.count)
        lines: list[str] = []
        for step in stage.steps:
            own = names(sums.count + 4 * step, 4)
            lines.append(f"add.s64 b, ${sums.count + words.count}, {stage.of_b(step, 0)};")
            lines.append(
                f"wgmma.mma_async.sync.aligned.m64n{stage.columns}k8.f32.tf32.tf32 "
                f"{names(0, sums.count)}, {own}, b, 1, 1, 1;"
            )
        given = unpacked(builder, args[0], sums.count)
        return begun(context, builder, lines, sums, (held, tile), given)

    return sums(sums, words, staged, types.uint64, rows), generate


_FIRST = ((0, 0),)
_OTHERS = ((2, 0), (1, 0), (0, 1))
"""Parts of columns and of rows that are multiplied, the least first: of rows a part and, beside first ones,
the one behind it."""


def _of_parts(
    context: Any,
    builder: Any,
    args: Any,
    rows: int,
    parts: Sequence[tuple[int, int]],
    made: Any,
    given: list[Any],
) -> Any:
    """Products of parts; args: words, staged, place. Fresh ones where none are given."""
    words, staged, place = args
    stage = Stage(rows, 32, 16, 0, 16 * rows, True, SPLIT)
    held = unpacked(builder, words, 8 * PARTS)
    lines: list[str] = []
    for step, (n, (x, y)) in ((s, pair) for s in stage.steps for pair in enumerate(parts)):
        own = names(made.count + 4 * (PARTS * step + x), 4)
        added = int(bool(given) or step > 0 or n > 0)
        lines.append(f"add.s64 b, ${made.count + len(held)}, {stage.of_b(step, y)};")
        lines.append(
            f"wgmma.mma_async.sync.aligned.m64n{2 * made.count}k16.f32.bf16.bf16 "
            f"{names(0, made.count)}, {own}, b, {added}, 1, 1, 0;"
        )
    tile = _tile(builder, stage, staged, place)
    return begun(context, builder, lines, made, (held, tile), given)


@intrinsic
def first_products(typing_context: Any, words: Any, staged: Any, place: Any, rows: Any) -> Any:
    """Start the products of first parts of 32 terms of the warp group's 64 columns, which are `words`, and
    of `rows` (literal) packed rows of 64 bytes at staged[place].

    What comes back is for `group_added` alone: rows / 2 sums, of which `mma_store_across` makes columns of
    rows. `words` must stay as they are until then (`still_held`).
    """
    if not literal(rows):
        return None
    high = rows.literal_value
    made = types.UniTuple(types.float32, high // 2)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _of_parts(context, builder, args[:3], high, _FIRST, made, [])

    return made(words, staged, types.uint64, rows), generate


@intrinsic
def other_products(
    typing_context: Any, sums: Any, words: Any, staged: Any, place: Any, rows: Any
) -> Any:
    """Start `sums`, and the products of the parts that `first_products` leaves, of rows whose parts lie one
    behind another.

    Sums are twice as many: two parts of rows are multiplied by one instruction, for which the left factor is
    read once; third parts of columns are so multiplied by second ones of rows too.
    """
    if not literal(rows):
        return None
    high = rows.literal_value

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        given = unpacked(builder, args[0], sums.count)
        return _of_parts(context, builder, args[1:4], high, _OTHERS, sums, given)

    return sums(sums, words, staged, types.uint64, rows), generate
