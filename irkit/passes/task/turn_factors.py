"""`turn-factors`: constant factors of products laid out row by row of terms, where that is read faster."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    FunctionType,
    ModuleOp,
    TensorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import BlockArgument
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irkit.context import weights_of
from irkit.dialects.linalg_generic import loop_of, maps
from irkit.dialects.loop import schedule_on
from irkit.dialects.task import ROperatorOp
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.errors import UnsupportedError
from irkit.passes.gpu import device_of
from irkit.passes.task.launch_constants import LaidOut, launches_of
from irkit.passes.task.partition_rtasks import Partition
from irkit.remarks import applied, missed
from irkit.rkernels.legality import root_of

RULE = "TurnFactor"
ENOUGH = 0.9
"""Of the time of a product as it is, what it may take with its factor turned: estimates are not better."""


@dataclass(frozen=True)
class Factor:
    """Input `number` of a contraction: an operand in memory, terms × columns."""

    op: linalg.GenericOp
    number: int
    argument: BlockArgument


def factor_of(op: ROperatorOp) -> Factor | str:
    """The factor that could be turned, or why there is none."""
    try:
        root = root_of(op)
    except UnsupportedError as error:
        return str(error)
    if root.family != "gemm" or len(root.chain) != 1 or len(root.reduction) != 1:
        return "it is no product of matrices"
    if schedule_on(root.op) is not None:
        return "it is to be run by a schedule"
    if DYNAMIC in root.parallel:
        return "how many rows it has is not known"
    (product,) = root.chain
    terms, columns = len(root.parallel), len(root.parallel) - 1
    for number, (value, amap) in enumerate(zip(product.inputs, maps(product), strict=False)):
        if [loop_of(e) for e in amap.results] != [terms, columns]:
            continue
        if isinstance(value, BlockArgument) and len(list(value.uses)) == 1:
            return Factor(product, number, value)
    return "no factor lies as terms × columns, and is read by it alone"


def read_turned(op: ROperatorOp, factor: Factor) -> None:
    """Have an rOperator read a factor as columns × terms."""
    indexing = list(maps(factor.op))
    read = indexing[factor.number]
    indexing[factor.number] = AffineMap(read.num_dims, read.num_symbols, read.results[::-1])
    factor.op.indexing_maps = ArrayAttr(map(AffineMapAttr, indexing))
    kind = tensor_type(factor.argument)
    turned = TensorType(kind.element_type, kind.get_shape()[::-1])
    Rewriter.replace_value_with_new_type(factor.argument, turned)
    outputs = op.function_type.outputs.data
    op.function_type = FunctionType.from_lists(op.body.block.arg_types, outputs)


@dataclass(frozen=True)
class TurnFactors(ModulePass):
    """Lay out constant factors of products as columns × terms, where `device` is a CPU.

    Of few rows a product is as fast as its factor is read: once, and in the order in which it lies. So it is
    where each column's terms lie side by side, which are summed for several rows at once; of a factor that is
    terms × columns most kernels make a copy first, in every call. Done where the estimated time is less than
    that of the product as it is; with `always`, of all products of a constant. No value changes.

    ```mlir
    %w = arith.constant dense_resource<w> : tensor<256x1024xf32>
    %y = task.launch @gemm_0(%x, %w)
    ```
    becomes
    ```mlir
    %t = arith.constant dense_resource<t> : tensor<1024x256xf32>
    %y = task.launch @gemm_0(%x, %t)
    ```
    """

    name = "turn-factors"
    requires: ClassVar[tuple[str, ...]] = ("task",)
    produces: ClassVar[str] = "task"
    device: str = "cpu"
    always: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        device = device_of(self.device)
        if device.kind == "cuda":
            return
        partition, constants = Partition(op, device), LaidOut(weights_of(ctx))
        for roperator in [o for o in op.ops if isinstance(o, ROperatorOp)]:
            factor = factor_of(roperator)
            if isinstance(factor, str):
                missed(roperator, RULE, "{}", factor)
                continue
            launches, number = launches_of(op, roperator), factor.argument.index
            if not all(constants.is_known(launch, number) for launch in launches):
                missed(roperator, RULE, "its factor is not known")
                continue
            now, then = partition.fastest_ns(roperator.clone()), _turned_ns(partition, roperator)
            if then == math.inf:
                missed(roperator, RULE, "no rKernel reads its factor turned")
                continue
            if then > ENOUGH * now and not self.always:
                missed(roperator, RULE, "an estimated {:.0f} ns, and {:.0f} as it is", then, now)
                continue
            applied(roperator, RULE, "an estimated {:.0f} ns, not {:.0f}", then, now)
            read_turned(roperator, factor)
            for launch in launches:
                constants.give(launch, number, "turned", lambda a: np.ascontiguousarray(a.T))


def _turned_ns(partition: Partition, op: ROperatorOp) -> float:
    """The estimated time of an rOperator that reads its factor turned, in ns; infinite where none can."""
    turned = op.clone()
    factor = factor_of(turned)
    assert isinstance(factor, Factor)
    read_turned(turned, factor)
    try:
        return partition.fastest_ns(turned)
    except UnsupportedError:
        return math.inf
