"""What a `linalg.generic` is: its loops, how it combines, whether it contracts."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    UnrealizedConversionCastOp,
    f32,
    i8,
    i16,
    i32,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from irkit.dialects.types import is_half, tensor_type
from irkit.errors import UnsupportedError

COMBINERS: dict[type[Operation], str] = {
    arith.AddfOp: "add",
    arith.AddiOp: "add",
    arith.MulfOp: "mul",
    arith.MuliOp: "mul",
    arith.MaximumfOp: "max",
    arith.MinimumfOp: "min",
    arith.MaxSIOp: "max",
    arith.MinSIOp: "min",
}


def iterators(op: linalg.GenericOp) -> list[bool]:
    """Per loop dimension: whether it is parallel."""
    return [it.data == IteratorType.PARALLEL for it in op.iterator_types]


def maps(op: linalg.GenericOp) -> list[AffineMap]:
    """Indexing maps of all operands."""
    attr: ArrayAttr[AffineMapAttr] = op.indexing_maps
    return [m.data for m in attr]


def is_elementwise(op: Operation) -> bool:
    """An all-parallel generic."""
    return isinstance(op, linalg.GenericOp) and all(iterators(op))


def loop_sizes(op: linalg.GenericOp) -> list[int]:
    """Extent of each loop dimension, read off the operand that a dimension indexes alone.

    Raises UnsupportedError for a loop that no operand has alone.
    """
    sizes: dict[int, int] = {}
    for operand, amap in zip(op.operands, maps(op), strict=True):
        for expr, size in zip(amap.results, tensor_type(operand).get_shape(), strict=True):
            if isinstance(expr, AffineDimExpr):
                sizes.setdefault(expr.position, size)
    loops = len(op.iterator_types)
    if missing := [d for d in range(loops) if d not in sizes]:
        raise UnsupportedError(f"loop {missing[0]} of '{op.name}', whose extent no operand says")
    return [sizes[d] for d in range(loops)]


def combiner(op: linalg.GenericOp) -> tuple[str, Operation] | None:
    """("add" | "mul" | "max" | "min", the combining op) of a reduction's body, if it has that form."""
    block = op.body.block
    terminator = block.last_op
    assert terminator is not None
    last = terminator.operands[0].owner
    if len(terminator.operands) != 1 or not isinstance(last, Operation):
        return None
    kind = COMBINERS.get(type(last))
    accumulator = block.args[-1]
    if kind is None or accumulator not in last.operands or len(list(accumulator.uses)) != 1:
        return None
    return kind, last


SCALARS = frozenset({*arith.Arith.operations, *math.Math.operations})
"""Ops of bodies that are straight code of scalars, wherever an element stands."""


def of_scalars(op: linalg.GenericOp) -> bool:
    """Whether a body is straight code of scalars, wherever an element stands."""
    return all(type(o) in SCALARS or isinstance(o, linalg.YieldOp) for o in op.body.block.ops)


def is_plain(op: Operation) -> bool:
    """An all-parallel generic of one result, written in the order of its loops, by straight code of scalars."""
    if not isinstance(op, linalg.GenericOp) or not is_elementwise(op) or len(op.results) != 1:
        return False
    identity = AffineMap.identity(len(op.iterator_types))
    return maps(op)[-1] == identity and not op.body.block.args[-1].uses and of_scalars(op)


def widens(op: Operation) -> bool:
    """Whether it only extends floats, 16-bit ones to float32 or these to float64, as they are read."""
    if not isinstance(op, linalg.GenericOp) or not is_elementwise(op) or len(op.inputs) != 1:
        return False
    return all(isinstance(inner, arith.ExtFOp | linalg.YieldOp) for inner in op.body.block.ops)


def is_contraction(op: Operation) -> bool:
    """acc + a * b over some dimensions, of floats, or in i32 of integers of 8 or 16 bits; a factor of floats may
    be one of 16 bits, extended to f32."""
    if not isinstance(op, linalg.GenericOp) or all(iterators(op)) or len(op.inputs) != 2:
        return False
    found = combiner(op)
    if found is None or found[0] != "add":
        return False
    block = op.body.block
    factors = [v for v in found[1].operands if v is not block.args[-1]]
    if len(factors) != 1 or not isinstance(factors[0].owner, arith.MulfOp | arith.MuliOp):
        return False
    if isinstance(factors[0].owner, arith.MuliOp):
        return {_short(v) for v in factors[0].owner.operands} == set(block.args[:2])
    read = {_narrow(v) for v in factors[0].owner.operands}
    return read == set(block.args[:2])


def _short(value: SSAValue) -> SSAValue | None:
    """The integer of 8 or 16 bits that `value` is, as an i32; an unsigned one is a signless one first."""
    op = value.owner
    if not isinstance(op, arith.ExtSIOp | arith.ExtUIOp) or op.result.type != i32:
        return None
    if isinstance(op.input.owner, UnrealizedConversionCastOp):
        return op.input.owner.inputs[0] if op.input.type == i8 else None
    return op.input if op.input.type in (i8, i16) else None


def _narrow(value: SSAValue) -> SSAValue:
    """The 16-bit float that `value` is, as an f32, or itself."""
    op = value.owner
    if not isinstance(op, arith.ExtFOp) or op.result.type != f32 or not is_half(op.input.type):
        return value
    return op.input


def is_projection(amap: AffineMap) -> bool:
    """Whether every index is a loop or a number."""
    return all(isinstance(e, AffineDimExpr | AffineConstantExpr) for e in amap.results)


def continues(first: linalg.GenericOp, second: linalg.GenericOp) -> bool:
    """Whether `second` goes on accumulating into the result of `first`, over the same outputs and in
    the same precision."""
    if second.outputs[0] is not first.results[0] or first.attributes != second.attributes:
        return False
    return is_contraction(first) and is_contraction(second)


@dataclass(frozen=True)
class RowTerm:
    """One term sum_k X[b, k] * W[u, g, k] of a row-wise contraction over loops (b, u, g..., k)."""

    x: SSAValue
    w: SSAValue
    k: int
    group: tuple[int, ...]


def row_term(op: linalg.GenericOp) -> RowTerm | None:
    """`op` as a RowTerm: loops (b, u, g..., k), X read by (b, k), W by (u, g..., k), both pointers."""
    sizes, parallel = loop_sizes(op), iterators(op)
    n = len(sizes)
    if not is_contraction(op) or n < 3 or parallel != [True] * (n - 1) + [False]:
        return None
    b, k = 0, n - 1
    x_dims, w_dims, out_dims = ([loop_of(e) for e in m.results] for m in maps(op))
    inputs = list(op.inputs)
    if w_dims == [b, k] and x_dims == list(range(1, n)):
        x_dims, w_dims, inputs = w_dims, x_dims, inputs[::-1]
    if x_dims != [b, k] or w_dims != list(range(1, n)) or out_dims != list(range(n - 1)):
        return None
    return RowTerm(inputs[0], inputs[1], sizes[k], tuple(sizes[2 : n - 1]))


def loop_of(expr: AffineExpr) -> int:
    """The loop that an indexing expression is; -1 for another expression."""
    return expr.position if isinstance(expr, AffineDimExpr) else -1
