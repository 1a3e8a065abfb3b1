"""Collective ops: every rank of a group runs the same function, on values of its own.

Each rank reaches every op, in one order; what an op gives hangs on the operands of all ranks. Ranks are
numbered from 0. That there is nothing else between them is what makes the ops pure: one whose result nobody
reads is left out on all ranks alike, and two of equal operands are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, IntegerType, StringAttr, TensorType, i64
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from irkit.dialects.element_sets import NUMBERS, Elements
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.inference import Props, fail, with_shape
from irkit.dialects.types import DYNAMIC, Tensor, is_float, tensor

KINDS = ("sum", "mean", "max", "min")


class CollectiveOp(GraphOp):
    """An op that all ranks of a group do together."""


def _number(props: Props, name: str) -> int:
    given = props[name]
    assert isinstance(given, IntegerAttr)
    return int(given.value.data)


@irdl_op_definition
class AllReduceOp(CollectiveOp):
    """Sum, mean, max or min over all ranks, element by element; every rank has the same result, bit for bit.

    In which order a sum is taken is the engine's: it may differ from that of another number of ranks by
    rounding. A mean is the sum divided by the number of ranks, of floats only.

    ```mlir
    %y = dist.all_reduce %x {kind = "sum"} : (tensor<8xf32>) -> tensor<8xf32>
    ```
    """

    name = "dist.all_reduce"
    ELEMENTS: ClassVar[tuple[Elements, ...]] = (NUMBERS,)
    x = operand_def(TensorType)
    kind = prop_def(StringAttr)
    y = result_def(TensorType)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        (x,) = operands
        kind = props["kind"]
        assert isinstance(kind, StringAttr)
        if kind.data not in KINDS:
            raise fail(cls, f"a kind among {', '.join(KINDS)}", f"'{kind.data}'")
        if kind.data == "mean" and not is_float(x.element_type):
            raise fail(cls, "a mean of floats", x)
        return [x]


@irdl_op_definition
class AllGatherOp(CollectiveOp):
    """The operands of all `size` ranks, one behind another along a new first dimension.

    ```mlir
    %y = dist.all_gather %x {size = 2 : i64} : (tensor<8xf32>) -> tensor<2x8xf32>
    ```
    """

    name = "dist.all_gather"
    x = operand_def(TensorType)
    size = prop_def(IntegerAttr[IntegerType])
    y = result_def(TensorType)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        (x,) = operands
        size = _number(props, "size")
        if size < 1:
            raise fail(cls, "one rank or more", size)
        if DYNAMIC in x.get_shape():
            raise fail(cls, "static extents, which are those of every rank", x)
        return [with_shape(x, [size, *x.get_shape()])]


@irdl_op_definition
class BroadcastOp(CollectiveOp):
    """The operand of rank `root`, on every rank.

    ```mlir
    %y = dist.broadcast %x {root = 0 : i64} : (tensor<8xf32>) -> tensor<8xf32>
    ```
    """

    name = "dist.broadcast"
    x = operand_def(TensorType)
    root = prop_def(IntegerAttr[IntegerType])
    y = result_def(TensorType)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        if _number(props, "root") < 0:
            raise fail(cls, "a root from 0", _number(props, "root"))
        return list(operands)


@irdl_op_definition
class RankOp(CollectiveOp):
    """The number of the rank that asks, from 0.

    ```mlir
    func.func @main() -> tensor<i64> {
      %r = dist.rank : tensor<i64>
      func.return %r : tensor<i64>
    }
    ```
    """

    name = "dist.rank"
    y = result_def(TensorType)
    assembly_format = "attr-dict `:` type($y)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        return [tensor(i64, ())]


@irdl_op_definition
class SizeOp(CollectiveOp):
    """How many ranks there are.

    ```mlir
    func.func @main() -> tensor<i64> {
      %n = dist.size : tensor<i64>
      func.return %n : tensor<i64>
    }
    ```
    """

    name = "dist.size"
    y = result_def(TensorType)
    assembly_format = "attr-dict `:` type($y)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        return [tensor(i64, ())]


OPS: list[type[CollectiveOp]] = [AllGatherOp, AllReduceOp, BroadcastOp, RankOp, SizeOp]
