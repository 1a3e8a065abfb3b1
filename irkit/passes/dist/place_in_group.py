"""`place-in-group`: a function of any group as that of one rank of a group of a known size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern
from xdsl.utils.exceptions import PassFailedException

from irkit.context import weights_of
from irkit.dialects.constants import constant
from irkit.dialects.dist import AllReduceOp, CollectiveOp, RankOp, SizeOp
from irkit.dialects.dist.semantics import check_ranks
from irkit.dialects.graph import DivOp
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.errors import InvalidInputError
from irkit.rewriting import Rule, rewrite
from irkit.weights import WeightStore


@dataclass
class NumberOfGroup(Rule):
    """rank() = its number, size() = how many there are"""

    rank: int
    size: int
    weights: WeightStore

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: CollectiveOp, rewriter: PatternRewriter, /):
        if not isinstance(op, RankOp | SizeOp):
            return self.no_match(op, "it is of values")
        number = self.rank if isinstance(op, RankOp) else self.size
        rewriter.replace(op, [constant(np.array(number, np.int64), self.weights)])


@dataclass
class MeanOfSum(Rule):
    """mean(x) = sum(x) / size"""

    size: int
    weights: WeightStore

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AllReduceOp, rewriter: PatternRewriter, /):
        if op.kind.data != "mean":
            return self.no_match(op, "it is a {}", op.kind.data)
        total = AllReduceOp.make([op.x], {"kind": StringAttr("sum")})
        dtype = numpy_dtype(tensor_type(op.x).element_type)
        count = constant(np.array(self.size, dtype), self.weights)
        mean = DivOp.make([total.y, count.results[0]])
        rewriter.replace(op, [total, count, mean])


@dataclass(frozen=True)
class PlaceInGroup(ModulePass):
    """Make of a function of any group that of rank `rank` of `size` ranks.

    Ranks and sizes are numbers, and means sums that are divided, which engines need not know of. An op of
    another number of ranks is refused. Exact.

    ```mlir
    %n = dist.size : tensor<i64>
    %y = dist.all_reduce %x {kind = "mean"} : (tensor<8xf32>) -> tensor<8xf32>
    ```
    becomes, with `{rank=0 size=2}`,
    ```mlir
    %n = arith.constant dense<2> : tensor<i64>
    %s = dist.all_reduce %x {kind = "sum"} : (tensor<8xf32>) -> tensor<8xf32>
    %two = arith.constant dense<2.0> : tensor<f32>
    %y = graph.div %s, %two : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    ```
    """

    name = "place-in-group"
    rank: int = 0
    size: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not 0 <= self.rank < self.size:
            raise PassFailedException(
                f"argument 'rank' of pass '{self.name}': expected 0 to {self.size - 1}, got {self.rank}"
            )
        for inner in op.walk():
            if isinstance(inner, CollectiveOp):
                _check(inner, self.size)
        weights = weights_of(ctx)
        rules = [NumberOfGroup(self.rank, self.size, weights), MeanOfSum(self.size, weights)]
        rewrite(op, rules)


def _check(op: CollectiveOp, size: int) -> None:
    try:
        check_ranks(op, size)
    except InvalidInputError as error:
        raise PassFailedException(str(error)) from None
