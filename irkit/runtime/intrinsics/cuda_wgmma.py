"""Products of tiles by warp groups (`wgmma`, compute capability 9.0 alone).

Four warps multiply 64 rows by up to 256 columns, both read by the tensor cores from shared memory, while
their threads do something else. Tiles lie there packed: row by row, 64 or 128 bytes of terms each, and the
16-byte chunks of a row in the order that the hardware's swizzle of that width gives. Layouts, descriptors and
the accumulators' lanes: PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate". Arguments marked
*literal* must be constants in the source text.

float32 products come from six products of bfloat16 parts, x = high + middle + low, of which the three least
are left out (Henry, Tang and Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For
Higher-Precision Computations", 2019): all of a float32's 24 bits, and its range. A tensor core truncates
where it adds, always towards zero: what that leaves out of one product adds up over a network's layers. So
the sums of a few terms leave it at once and are added in float32, and those of the first parts, which are
the result but for a 256th, stay by themselves: of 16 bits a product, they are mostly exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from irkit.runtime.intrinsics.cuda import asm, shared_address
from irkit.runtime.intrinsics.cuda_mma import BF16, F16, SCALED, SPLIT, TF32
from irkit.scaled_rows import LOW as LOW_PARTS

ir: Any = import_module("llvmlite.ir")
types: Any = import_module("numba.cuda").types
intrinsic: Any = import_module("numba.cuda.extending").intrinsic

I32, I64, F32 = ir.IntType(32), ir.IntType(64), ir.FloatType()

WHOLE, SMALL, LARGE, CROSS = range(4)
PRODUCTS = {
    WHOLE: ((0, 0),),
    SMALL: ((2, 0), (0, 2), (1, 1), (1, 0), (0, 1)),
    LARGE: ((0, 0),),
    CROSS: ((1, 0), (0, 1)),
}
"""Parts of A and B that are multiplied, the least first: of factors that are whole, and of split ones,
`CROSS` of those in two parts."""

SHAPES = {SPLIT: "bf16", TF32: "tf32", BF16: "bf16", F16: "f16", SCALED: "f16"}


@intrinsic
def publish_tiles(typing_context: Any) -> Any:
    """What this thread has packed is for the tensor cores to see, once all threads have met."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        asm(builder, "fence.proxy.async.shared::cta;", ir.VoidType(), [], "~{memory}")
        return context.get_dummy_value()

    return types.void(), generate


@dataclass(frozen=True)
class Stage:
    """The products of one stage: 64 rows by `columns`, `terms` terms of `kind`.

    Tiles are planes of rows of `row_words` words, one for each part, or for each `2 * row_words` terms, `a`
    and `b` words apart. Not `by_k`, rows of B hold 64 columns each, a plane all terms of them.
    """

    columns: int
    terms: int
    row_words: int
    a: int
    b: int
    by_k: bool
    kind: int
    parts: int = WHOLE

    @property
    def steps(self) -> range:
        """What one instruction takes: 32 bytes of a row."""
        return range(self.terms // (8 if self.kind == TF32 else 16))

    def of_a(self, step: int, part: int) -> int:
        """Units of 16 bytes from the start of A's tile to a step's terms."""
        plane, within = divmod(step, self.row_words // 8)
        return (plane + part) * self.a // 4 + 2 * within

    def of_b(self, step: int, part: int) -> int:
        """The same of B's."""
        if not self.by_k:
            return step * 16 * self.row_words // 4
        plane, within = divmod(step, self.row_words // 8)
        return (plane + part) * self.b // 4 + 2 * within

    def descriptor(self, b: Any, address: Any, by_k: bool) -> Any:
        """Of a tile: its address and, between groups of 8 rows and between planes, the distance."""
        swizzle = {32: 1, 16: 2}[self.row_words]
        planes = 1 if by_k else 4 * self.b >> 4
        facts = swizzle << 62 | (8 * 4 * self.row_words >> 4) << 32 | planes << 16
        where = b.zext(b.lshr(b.and_(address, I32(0x3FFFF)), I32(4)), I64)
        return b.or_(where, I64(facts))

    def text(self, count: int, fresh: int) -> str:
        """All products as a group of their own, added to $0 ... of `count` sums, or making them: then `fresh`
        times as many, each for as many steps. The descriptors come behind."""
        chains = max(fresh, 1)
        each, behind, name = len(self.steps) // chains, count * chains, SHAPES[self.kind]
        shape = f"m64n{self.columns}k{8 if self.kind == TF32 else 16}.f32.{name}.{name}"
        # Neither operand is negated; those of 16 bits say too whether terms come first.
        last = "1, 1" if self.kind == TF32 else f"1, 1, 0, {int(not self.by_k)}"
        lines = ["{ .reg .b64 a, b;", "wgmma.fence.sync.aligned;"]
        for step in self.steps:
            first = step // each * count
            sums = ", ".join(f"${i}" for i in range(first, first + count))
            for n, (x, y) in enumerate(PRODUCTS[self.parts]):
                a, b = self.of_a(step, x), self.of_b(step, y)
                added = int(not fresh or step % each > 0 or n > 0)
                lines.append(f"add.s64 a, ${behind}, {a}; add.s64 b, ${behind + 1}, {b};")
                lines.append(
                    f"wgmma.mma_async.sync.aligned.{shape} {{{sums}}}, a, b, {added}, {last};"
                )
        return "\n".join([*lines, "wgmma.commit_group.sync.aligned; }"])


@intrinsic
def group_products(
    typing_context: Any, sums: Any, staged: Any, a: Any, b: Any, columns: Any, terms: Any,
    row_words: Any, a_plane: Any, b_plane: Any, by_k: Any, kind: Any, fresh: Any, parts: Any,
) -> Any:  # fmt: skip
    """Start the warp group's products of 64 packed rows at staged[a] and `columns` columns at staged[b].

    What comes back is for `group_added` alone, or for more products: `sums` with them, or if `fresh` they
    alone, in as many sets, each of its share of the terms. A lane holds columns / 2 sums, as `mma_store`
    takes them of 16 rows a warp. All arguments but the first four are literal and as `Stage` has them;
    `parts` is a key of `PRODUCTS`.
    """
    given = (columns, terms, row_words, a_plane, b_plane, by_k, kind, fresh, parts)
    if not all(isinstance(v, types.IntegerLiteral) for v in given):
        return None
    width, depth, row, below, beside, runs, how, anew, which = (v.literal_value for v in given)
    stage, count = Stage(width, depth, row, below, beside, bool(runs), how, which), width // 2
    made = types.UniTuple(types.float32, count * max(anew, 1))

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        tiles = [
            stage.descriptor(builder, shared_address(builder, args[1], args[2]), by_k=True),
            stage.descriptor(builder, shared_address(builder, args[1], args[3]), stage.by_k),
        ]
        held = [] if anew else [builder.extract_value(args[0], i) for i in range(count)]
        tied = [str(i) for i in range(len(held))]
        constraints = ",".join(["=f"] * made.count + ["l", "l", *tied, "~{memory}"])
        kind = ir.LiteralStructType([F32] * made.count)
        found = asm(builder, stage.text(count, anew), kind, [*tiles, *held], constraints)
        values = [builder.extract_value(found, i) for i in range(made.count)]
        return context.make_tuple(builder, made, values)

    u64 = types.uint64
    return made(sums, staged, u64, u64, *given), generate


@intrinsic
def same_in_warp(typing_context: Any, value: Any) -> Any:
    """That of the warp's first lane, of 32 bits: all lanes have the same, and the assembler knows it. What is
    computed of it takes registers of the whole warp, in which descriptors of `wgmma` must be."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        text, narrow = "shfl.sync.idx.b32 $0, $1, 0, 31, -1;", builder.trunc(args[0], I32)
        return builder.zext(asm(builder, text, I32, [narrow], "=r,r"), I64)

    return types.int64(types.int64), generate


@intrinsic
def await_products(typing_context: Any, left: Any) -> Any:
    """Wait until `left` (literal) of what `group_products` started are still at work, the sums untouched."""
    if not isinstance(left, types.IntegerLiteral):
        return None
    text = f"wgmma.wait_group.sync.aligned {left.literal_value};"

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        asm(builder, text, ir.VoidType(), [], "~{memory}")
        return context.get_dummy_value()

    return types.void(left), generate


@intrinsic
def group_added(typing_context: Any, sums: Any, products: Any, fresh: Any, left: Any) -> Any:
    """Wait for what `group_products` started, but for the `left` last of it; the sums with it, or it alone
    where it had them before. `fresh`, whether it had not, and `left` are literal."""
    if not all(isinstance(v, types.IntegerLiteral) for v in (fresh, left)):
        return None
    anew = fresh.literal_value

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        started = [builder.extract_value(args[1], i) for i in range(products.count)]
        values = arrived(builder, started, left.literal_value)
        # Sets meet each other before the sums, whose roundings are the largest.
        while len(values) > sums.count:
            half = len(values) // 2
            values = [builder.fadd(x, y) for x, y in zip(values[:half], values[half:], strict=True)]
        if anew:
            given = [builder.extract_value(args[0], i) for i in range(sums.count)]
            values = [builder.fadd(x, y) for x, y in zip(given, values, strict=True)]
        return context.make_tuple(builder, signature.return_type, values)

    return sums(sums, products, fresh, left), generate


@intrinsic
def group_added_low(typing_context: Any, sums: Any, products: Any) -> Any:
    """Wait for all that `group_products` started of `CROSS` parts, kept larger; the sums with it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        started = [builder.extract_value(args[1], i) for i in range(products.count)]
        given = [builder.extract_value(args[0], i) for i in range(sums.count)]
        share = ir.Constant(F32, 1 / LOW_PARTS)
        values = [
            builder.fadd(x, builder.fmul(y, share))
            for x, y in zip(given, arrived(builder, started, 0), strict=True)
        ]
        return context.make_tuple(builder, signature.return_type, values)

    return sums(sums, products), generate


def arrived(builder: Any, started: list[Any], left: int) -> list[Any]:
    """What was started, waited for but for the `left` last of it."""
    text = f"wgmma.wait_group.sync.aligned {left};"
    asm(builder, text, ir.VoidType(), [], "~{memory}")
    count = len(started)
    # Nothing that reads them may be moved before the wait.
    constraints = ",".join(["=f"] * count + [str(i) for i in range(count)] + ["~{memory}"])
    found = asm(builder, "", ir.LiteralStructType([F32] * count), started, constraints)
    return [builder.extract_value(found, i) for i in range(count)]
