"""Numba intrinsics of products with matrices of 4-bit integers on a CPU (`irkit/dialects/nibbles.py`)."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportUnknownLambdaType=false
# Numba's stubs give an intrinsic the parameters of its typing function, the context included.
# pyright: reportCallIssue=false
from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from irkit.runtime.intrinsics.cpu_products import LANES, Tile, powers

_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_BYTES, _WORDS = ir.VectorType(_I8, LANES), ir.VectorType(_I32, LANES)


@intrinsic(prefer_literal=True)
def add_nibbles(
    typingctx: Any, most: Any, width: Any, centred: Any, rows: Any, terms: Any, x: Any, at_x: Any,
    below_x: Any, packed: Any, at: Any, scales: Any, zeros: Any, at_block: Any, c: Any, at_c: Any,
    anew: Any,
) -> Any:  # fmt: skip
    """C[i, j] += scale[j] * sum over t of X[i, t] * (B[t, j] - zero[j]), `rows` rows i and `width` columns j.

    `terms`, which are even, are those of one block; B's integers are a panel's from byte `at` on, scales and
    zeros begin at `at_block`; without zeros if `centred` is 1. `width`, `centred` and `most`, a power of two
    that is the largest number of rows, are literals. X's rows are `below_x` apart, C's `width`; where `anew`
    is not 0, C are sums of these terms alone.
    """
    if not all(isinstance(n, types.IntegerLiteral) for n in (most, width, centred)):
        return None
    largest, columns, plain = (n.literal_value for n in (most, width, centred))

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (
            _,
            _,
            _,
            rows,
            terms,
            x,
            at_x,
            below_x,
            packed,
            at,
            scales,
            zeros,
            at_block,
            c,
            at_c,
            anew,
        ) = arguments
        tile = _Nibbles(builder, c.type.pointee, columns // LANES)
        fresh = builder.icmp_signed("!=", anew, _I64(0))
        place, panel = builder.gep(c, [at_c]), builder.gep(packed, [at])
        factors = tile.vectors(builder.gep(scales, [at_block]))
        tile.zeros = [] if plain else tile.vectors(builder.gep(zeros, [at_block]))
        pairs = builder.lshr(terms, _I64(1))
        for size, first in powers(builder, largest, rows):
            numbers = [builder.add(first, _I64(i)) for i in range(size)]
            starts = [builder.add(at_x, builder.mul(below_x, n)) for n in numbers]
            sums = tile.of_pairs([builder.gep(x, [s]) for s in starts], pairs, panel)
            before = tile.load(fresh, place, _I64(columns), numbers)
            scaled = [
                [builder.call(tile.fma, [v, f, b]) for v, f, b in zip(*row, strict=True)]
                for row in ((s, factors, b) for s, b in zip(sums, before, strict=True))
            ]
            tile.store(scaled, place, _I64(columns), numbers)
        return context.get_dummy_value()

    integer = types.int64
    return types.void(most, width, centred, integer, integer, x, integer, integer, packed, integer,
                      scales, zeros, integer, c, integer, integer), codegen  # fmt: skip


class _Nibbles(Tile):
    """Prints a loop over pairs of terms; what is taken off the integers, if anything, are vectors `zeros`."""

    zeros: list[Any]

    def vectors(self, pointer: Any) -> list[Any]:
        """A vector of floats for each 16 columns."""
        return [self.builder.load(self.vector_at(pointer, n), align=4) for n in range(self.across)]

    def unpacked(self, line: Any, number: int) -> list[Any]:
        """The two terms of 16 columns of a panel's line, as floats."""
        builder = self.builder
        place = builder.gep(line, [_I64(LANES * number)])
        both = builder.load(builder.bitcast(place, _BYTES.as_pointer()), align=1)
        words = builder.sext(both, _WORDS)
        up, down = (ir.Constant(_WORDS, [bits] * LANES) for bits in (28, 4))
        low = builder.ashr(builder.shl(words, up), up)
        found = [builder.sitofp(v, self.vector) for v in (low, builder.ashr(words, down))]
        return [builder.fsub(v, self.zeros[number]) for v in found] if self.zeros else found

    def of_pairs(self, rows: list[Any], pairs: Any, panel: Any) -> list[list[Any]]:
        """The sums of each row over one pair of terms or more; the builder is left behind the loop.

        A row alone has sums of its own of both terms: each waits for the one before.
        """
        builder, before = self.builder, self.builder.block
        chains = 2 if len(rows) == 1 else 1
        loop, done = (builder.append_basic_block(n) for n in ("pairs.loop", "pairs.done"))
        builder.branch(loop)
        builder.position_at_end(loop)
        step = builder.phi(_I64)
        step.add_incoming(_I64(0), before)
        phis = [
            [[builder.phi(self.vector) for _ in range(chains)] for _ in range(self.across)]
            for _ in rows
        ]
        line = builder.gep(panel, [builder.mul(step, _I64(LANES * self.across))])
        values = [self.unpacked(line, n) for n in range(self.across)]
        zero = ir.Constant(self.vector, [0.0] * LANES)
        added = [[list(column) for column in row] for row in phis]
        for row, totals in zip(rows, added, strict=True):
            for half in (0, 1):
                at = builder.add(builder.mul(step, _I64(2)), _I64(half))
                factor = self.spread(builder.load(builder.gep(row, [at])))
                for total, column in zip(totals, values, strict=True):
                    chain = half % chains
                    total[chain] = builder.call(self.fma, [factor, column[half], total[chain]])
        following = builder.add(step, _I64(1))
        step.add_incoming(following, loop)
        for row, totals in zip(phis, added, strict=True):
            for column, total in zip(row, totals, strict=True):
                for phi, value in zip(column, total, strict=True):
                    phi.add_incoming(zero, before)
                    phi.add_incoming(value, loop)
        builder.cbranch(builder.icmp_signed("<", following, pairs), loop, done)
        builder.position_at_end(done)
        return [[builder.fadd(*t) if chains > 1 else t[0] for t in row] for row in added]
