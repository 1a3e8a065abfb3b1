"""`fold-constants`: compute what is known before the program runs."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, i8, i16, i32
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter

from irkit.context import weights_of
from irkit.dialects.constants import SMALL, constant, constant_array
from irkit.dialects.dist import CollectiveOp
from irkit.dialects.graph import CastOp
from irkit.dialects.graph.base import GraphOp, product
from irkit.dialects.graph.semantics import evaluate
from irkit.dialects.precision import contracts
from irkit.dialects.types import is_half, tensor_type, ui8
from irkit.remarks import applied, missed
from irkit.weights import Array, WeightStore

RULE = "FoldConstant"


def _operands(op: GraphOp, weights: WeightStore) -> list[Array] | None:
    arrays: list[Array] = []
    for operand in op.operands:
        array = constant_array(operand, weights)
        if array is None:
            return None
        arrays.append(array)
    return arrays


# Weights of 8 and 16 bits stay so; biases, scales and their like may be what arithmetic takes.
_WIDENED = 4096


def _is_narrow(op: CastOp) -> bool:
    """Whether what is cast should stay narrow: factors of products, or many 16-bit floats."""
    have, count = tensor_type(op.x).element_type, product(tensor_type(op.x).get_shape())
    if have in (i8, i16, ui8) and op.to == i32:
        return count > SMALL
    if not is_half(have):
        return False
    matrix = len(tensor_type(op.x).get_shape()) > 1
    factor = matrix and all(contracts(use.operation) for use in op.y.uses)
    return count > (SMALL if factor else _WIDENED)


def _grows(op: GraphOp) -> bool:
    """Whether the results are more to store than the operands."""
    if isinstance(op, CastOp) and _is_narrow(op):
        return True
    read, written = (
        sum(product(tensor_type(v).get_shape()) for v in values)
        for values in (op.operands, op.results)
    )
    return written > max(SMALL, read)


def _fold(op: GraphOp, weights: WeightStore) -> None:
    if isinstance(op, CollectiveOp):
        return missed(op, RULE, "other ranks take part")
    operands = _operands(op, weights)
    if operands is None:
        return missed(op, RULE, "an operand is no constant")
    if _grows(op):
        return missed(op, RULE, "the results are larger than the operands")
    applied(op, RULE)
    results = evaluate(op, operands)
    sources = list(dict.fromkeys(v.owner for v in op.operands))
    constants = [constant(a, weights) for a in results]
    PatternRewriter(op).replace(op, constants, [c.result for c in constants])
    for source in sources:
        if isinstance(source, Operation) and not any(r.uses for r in source.results):
            source.detach()
            source.erase()


@dataclass(frozen=True)
class FoldConstants(ModulePass):
    """Replace graph ops on constants by their results, computed by the graph interpreter's rules.

    An op whose results would be larger than its operands (an expansion) stays. Numeric risk: the
    results are NumPy's; a target's own `exp` or matrix product may differ in the last bits.

    ```mlir
    %a = arith.constant dense<[1.0, 2.0]> : tensor<2xf32>
    %b = graph.add %a, %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    ```
    becomes
    ```mlir
    %b = arith.constant dense<[2.0, 4.0]> : tensor<2xf32>
    ```
    """

    name = "fold-constants"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        weights = weights_of(ctx)
        # Operands come before their users, so one walk folds whole chains.
        for inner in list(op.walk()):
            if isinstance(inner, GraphOp):
                _fold(inner, weights)
