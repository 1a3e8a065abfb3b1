"""`hoist-from-loops`: what is the same in each turn, and products of rows that a loop takes one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.tensor import ExtractSliceOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern
from xdsl.rewriter import InsertPoint

from irkit.dialects.graph import GemmOp, MatmulOp, ReshapeOp
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.loop_places import moves, trips_of
from irkit.dialects.precision import inherit
from irkit.dialects.properties import attribute
from irkit.dialects.segments import segment_of
from irkit.dialects.types import DYNAMIC, int_array, ints, tensor, tensor_type
from irkit.errors import UnsupportedError
from irkit.passes.graph.hoist_input_products import why_not_gemm
from irkit.rewriting import Rule, rewrite

MOST: Final = 1 << 26
"""Elements of the product of a whole array: where it has more, each turn computes its own."""


@dataclass(frozen=True)
class Turn:
    """A product of rows that a turn takes of an array with a matrix: `part` is these rows, and `column`
    whether the product is of the matrix with one row as a column."""

    loop: scf.ForOp
    part: ExtractSliceOp
    column: bool = False


def turn_of(op: MatmulOp | GemmOp) -> Turn | str:
    """`op` as a product of rows that a turn takes, or why it is none."""
    loop = op.parent_op()
    if not isinstance(loop, scf.ForOp):
        return "it stands in no loop"
    if any(DYNAMIC in _shape(v) for v in op.operands):
        return "an extent is open"
    if len(_shape(op.operands[1])) != 2:
        return "its second operand is no matrix"
    if isinstance(op, GemmOp) and (reason := why_not_gemm(op)) is not None:
        return reason
    if all(_is_outside(v, loop) for v in op.operands[1:]):
        found = _part(op.operands[0], loop)
        return Turn(loop, found) if isinstance(found, ExtractSliceOp) else found
    plain = isinstance(op, MatmulOp) and len(_shape(op.operands[0])) == 2
    if plain and _shape(op.operands[1])[1] == 1 and _is_outside(op.operands[0], loop):
        found = _part(op.operands[1], loop, column=True)
        return Turn(loop, found, column=True) if isinstance(found, ExtractSliceOp) else found
    return "it has no factor that is the same in each turn"


def _part(value: SSAValue, loop: scf.ForOp, *, column: bool = False) -> ExtractSliceOp | str:
    """The rows of an array that a factor is, or why it is none."""
    length = _shape(value)[0 if column else -1]
    while isinstance(value.owner, ReshapeOp) and value.owner.parent is loop.body.block:
        value = value.owner.x
    part = value.owner
    if not isinstance(part, ExtractSliceOp) or part.parent is not loop.body.block:
        return "its factor is no part of an array"
    whole, sizes = _shape(part.source), ints(part.static_sizes)
    if not moves(part) or not _is_outside(part.source, loop) or DYNAMIC in whole:
        return (
            "what its factor is a part of is made in the loop, or the part is the same in each turn"
        )
    if isinstance(part.source.owner, ConstantOp):
        return "what its factor is a part of is constant"
    if part.sizes or part.strides or set(ints(part.static_strides)) != {1}:
        return "the part has a step, or moving extents"
    if {whole[-1], sizes[-1]} != {length} or ints(part.static_offsets)[-1] != 0:
        return "the part has not all of each row"
    try:
        turns = trips_of(loop).count
    except UnsupportedError:
        return "the loop's bounds are not known"
    if turns < 2 or 2 * turns * prod(sizes[:-1]) < prod(whole[:-1]):
        return "most of what it is a part of is in no product"
    return part


def _shape(value: SSAValue) -> tuple[int, ...]:
    return tensor_type(value).get_shape()


def _is_outside(value: SSAValue, loop: scf.ForOp) -> bool:
    """Whether a value is made before a loop, or is a constant."""
    if isinstance(value.owner, ConstantOp):
        return True
    block: Block | None = value.owner if isinstance(value.owner, Block) else value.owner.parent
    while block is not None and block is not loop.body.block:
        outer = block.parent_op()
        block = None if outer is None else outer.parent
    return block is None


class HoistInvariant(Rule):
    """for n: y = f(w[0:4]) @ y  ->  v = w[0:4]; for n: y = f(v) @ y"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: GraphOp, rewriter: PatternRewriter, /):
        loop = op.parent_op()
        if not isinstance(loop, scf.ForOp):
            return self.no_match(op, "it stands in no loop")
        if not op.name.startswith("graph."):
            return self.no_match(op, "it is no op of values alone")
        read = [v for v in op.operands if not isinstance(v.owner, ConstantOp)]
        if not read or not all(_is_outside(v, loop) for v in op.operands):
            return self.no_match(op, "it reads what the loop computes, or constants alone")
        if any(DYNAMIC in _shape(v) for v in (*op.operands, *op.results)):
            return self.no_match(op, "an extent is open")
        grows = sum(prod(_shape(v)) for v in op.results) > sum(prod(_shape(v)) for v in read)
        if grows and not op.CONTRACTS:
            return self.no_match(op, "it has more elements than what it reads")
        own = [v.owner for v in op.operands if isinstance(v.owner, ConstantOp)]
        copies: dict[SSAValue, ConstantOp] = {
            c.result: c.clone() for c in own if c.parent is op.parent
        }
        rewriter.insert(list(copies.values()), InsertPoint.before(loop))
        op.detach()
        for n, value in enumerate(op.operands):
            if value in copies:
                op.operands[n] = copies[value].result
        rewriter.insert(op, InsertPoint.before(loop))


class HoistRowProducts(Rule):
    """for n: y = f(x[n] @ w)  ->  p = x @ w; for n: y = f(p[n])"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: MatmulOp | GemmOp, rewriter: PatternRewriter, /):
        if segment_of(op.location) is not None:
            return self.no_match(op, "it is in a segment, of which little is to be kept")
        turn = turn_of(op)
        if isinstance(turn, str):
            return self.no_match(op, "{}", turn)
        part = turn.part
        *lead, inputs = _shape(part.source)
        rows, outputs = prod(lead), _shape(op.y)[0 if turn.column else -1]
        if rows * outputs > MOST:
            return self.no_match(op, "all turns together have {} elements", rows * outputs)
        before: list[GraphOp] = [_reshape(part.source, [rows, inputs])]
        before.append(_product(op, before[0].results[0], turn))
        inherit(before[1], op)
        before.append(_reshape(before[1].results[0], [*lead, outputs]))
        whole = before[2].results[0]
        sizes = [*ints(part.static_sizes)[:-1], outputs]
        own = ExtractSliceOp.build(
            operands=[whole, list(part.offsets), [], []],
            properties={
                "static_offsets": part.static_offsets,
                "static_sizes": int_array(sizes),
                "static_strides": part.static_strides,
            },
            result_types=[tensor(tensor_type(whole).element_type, sizes)],
        )
        inside: list[Operation] = [own, _reshape(own.results[0], _shape(op.y))]
        for made in (*before, *inside):
            made.location = op.location
        rewriter.insert(before, InsertPoint.before(turn.loop))
        inside[1].results[0].name_hint = op.y.name_hint
        rewriter.replace(op, inside)


def _product(op: MatmulOp | GemmOp, rows: SSAValue, turn: Turn) -> GraphOp:
    """All rows times the matrix, as the op has it."""
    if not turn.column:
        return type(op).make([rows, *op.operands[1:]], dict(op.properties))
    flags = {"trans_a": False, "trans_b": True, "alpha": 1.0, "beta": 0.0}
    return GemmOp.make([rows, op.operands[0]], {k: attribute(v) for k, v in flags.items()})


def _reshape(x: SSAValue, shape: Sequence[int]) -> ReshapeOp:
    return ReshapeOp.make([x], {"shape": int_array(shape)})


@dataclass(frozen=True)
class HoistFromLoops(ModulePass):
    """Compute what each turn of a loop computes alike once, before the loop, where that has no more elements
    than what it is of; and make products by one matrix of rows that a loop takes of an array, turn by turn,
    one product before the loop, of all rows of the array. In the turn stand the rows of that.

    So the input half of a recurrence is computed before its first step; what is left in a step waits for the
    state. The rows are `tensor.extract_slice` at a place that moves with the loop, of all of the array's last
    dimension, the matrix the second operand of `graph.matmul` or, with an added row or none, `graph.gemm`;
    or the first one, where a row is its column. An array most of whose rows no turn takes stays, as does a
    product of more than 2^26 elements, and one in a segment that a user named, of which little is to be kept.

    No numeric risk: each element is the sum of the same terms, in an order that a product never says.

    ```mlir
    %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%h = %s) -> (tensor<1x8xf64>) {
      %x = tensor.extract_slice %a[%i, 0] [1, 4] [1, 1] : tensor<9x4xf64> to tensor<1x4xf64>
      %p = graph.matmul %x, %w : (tensor<1x4xf64>, tensor<4x8xf64>) -> tensor<1x8xf64>
      %q = graph.add %p, %h : (tensor<1x8xf64>, tensor<1x8xf64>) -> tensor<1x8xf64>
      scf.yield %q : tensor<1x8xf64>
    }
    ```
    becomes
    ```mlir
    %0 = graph.matmul %a, %w : (tensor<9x4xf64>, tensor<4x8xf64>) -> tensor<9x8xf64>
    %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%h = %s) -> (tensor<1x8xf64>) {
      %p = tensor.extract_slice %0[%i, 0] [1, 8] [1, 1] : tensor<9x8xf64> to tensor<1x8xf64>
      %q = graph.add %p, %h : (tensor<1x8xf64>, tensor<1x8xf64>) -> tensor<1x8xf64>
      scf.yield %q : tensor<1x8xf64>
    }
    ```
    """

    name = "hoist-from-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if any(isinstance(inner, scf.ForOp) for inner in op.walk()):
            rewrite(op, [HoistInvariant(), HoistRowProducts()])
