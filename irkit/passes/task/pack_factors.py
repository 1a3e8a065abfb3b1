"""`pack-factors`: constant factors of products laid out in blocks of columns when the program is built."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    Float32Type,
    Float64Type,
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
from irkit.dialects.products import PACKED_ROWS, packed_layout, used_loops
from irkit.dialects.roperator_root import Root
from irkit.dialects.task import LaunchOp, ROperatorOp
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.errors import UnsupportedError
from irkit.passes.gpu import device_of
from irkit.passes.task.launch_constants import LaidOut, launches_of
from irkit.passes.task.pack_filters import packed_filters
from irkit.passes.task.partition_rtasks import Partition
from irkit.remarks import applied, missed
from irkit.rkernels.legality import root_of
from irkit.weights import Array

RULE = "PackFactor"


@dataclass(frozen=True)
class Factor:
    """Input `number` of a contraction: an operand in memory that has one loop of its own, the columns, which
    is the last of the result.

    `batch` and `terms` are the loops that the other operand has too. Its dimensions are those of the batch,
    then the columns and the terms, in this order where `by_k`, or the other way about.
    """

    op: linalg.GenericOp
    number: int
    argument: BlockArgument
    batch: tuple[int, ...]
    columns: int
    terms: tuple[int, ...]
    by_k: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the factor laid out: batch×blocks×terms×16."""
        sizes = tensor_type(self.argument).get_shape()
        lead = len(self.batch)
        own, terms = (sizes[lead], sizes[lead + 1 :]) if self.by_k else (sizes[-1], sizes[lead:-1])
        return (*sizes[:lead], math.ceil(own / PACKED_ROWS), *terms, PACKED_ROWS)


def factor_of(op: ROperatorOp) -> Factor | str:
    """The factor that could be laid out in blocks, or why there is none."""
    try:
        root = root_of(op)
    except UnsupportedError as error:
        return str(error)
    if root.family != "gemm" or len(root.chain) != 1:
        return "it is no product of matrices"
    if schedule_on(root.op) is not None:
        return "it is to be run by a schedule"
    # Its plans for ranges of rows are by several rKernels, which read a factor as it lies.
    if DYNAMIC in root.parallel:
        return "how many rows it has is not known"
    (product,) = root.chain
    if not isinstance(tensor_type(product.results[0]).element_type, Float32Type | Float64Type):
        return "its sums are not of f32 or f64"
    found = [f for number in (0, 1) if (f := _factor(root, product, number)) is not None]
    return found[0] if found else "no factor lies as terms and columns, and is read by it alone"


def _factor(root: Root, product: linalg.GenericOp, number: int) -> Factor | None:
    value, amap = product.inputs[number], maps(product)[number]
    if not isinstance(value, BlockArgument) or len(list(value.uses)) != 1:
        return None
    last, loops = len(root.parallel) - 1, [loop_of(e) for e in amap.results]
    others = used_loops(maps(product)[1 - number])
    terms = tuple(range(len(root.parallel), len(root.parallel) + len(root.reduction)))
    batch = tuple(d for d in range(last) if d in loops)
    # A matrix times a vector has no rows that a block could be read once for.
    rows = [d for d in range(last) if d not in loops]
    if last in others or not rows or {*batch, *terms} - others:
        return None
    ways = {True: (*batch, last, *terms), False: (*batch, *terms, last)}
    found = [by_k for by_k, order in ways.items() if loops == list(order)]
    return Factor(product, number, value, batch, last, terms, found[0]) if found else None


def read_blocks(op: ROperatorOp, factor: Factor) -> None:
    """Have an rOperator read a factor in blocks."""
    indexing = list(maps(factor.op))
    layout = packed_layout(factor.batch, factor.columns, factor.terms)
    indexing[factor.number] = AffineMap(indexing[factor.number].num_dims, 0, tuple(layout))
    kind = TensorType(tensor_type(factor.argument).element_type, factor.shape)
    factor.op.indexing_maps = ArrayAttr(map(AffineMapAttr, indexing))
    Rewriter.replace_value_with_new_type(factor.argument, kind)
    outputs = op.function_type.outputs.data
    op.function_type = FunctionType.from_lists(op.body.block.arg_types, outputs)


def in_blocks(array: Array, batch: int, by_k: bool) -> Array:
    """A factor of `batch` loops, columns and terms (terms and columns where not `by_k`) in blocks of 16
    columns, term by term, filled up by zeros."""
    return packed_filters(array if by_k else np.moveaxis(array, -1, batch), batch)


@dataclass(frozen=True)
class PackFactors(ModulePass):
    """Lay out constant factors of products in blocks of 16 columns, term by term, where `device` is a CPU.

    A vector of such a block is multiplied with one number for all 16 columns: no lanes are joined behind, and
    no part of the factor is copied in every call, as kernels that take operands as they lie do. Zeros fill
    the last block. Done where the estimated time is less than that of the product as it is; with `always`, of
    all products of a constant and more than one row. No value changes.

    ```mlir
    %w = arith.constant dense_resource<w> : tensor<40x256xf32>
    %y = task.launch @gemm_0(%x, %w)
    ```
    becomes
    ```mlir
    %b = arith.constant dense_resource<b> : tensor<3x256x16xf32>
    %y = task.launch @gemm_0(%x, %b)
    ```
    """

    name = "pack-factors"
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
            now, then = partition.fastest_ns(roperator.clone()), blocks_ns(partition, roperator)
            if then >= now and not self.always:
                missed(roperator, RULE, "an estimated {:.0f} ns, and {:.0f} as it is", then, now)
                continue
            applied(roperator, RULE, "an estimated {:.0f} ns, not {:.0f}", then, now)
            _lay_out(roperator, factor, launches, constants)


def _lay_out(
    op: ROperatorOp, factor: Factor, launches: Sequence[LaunchOp], constants: LaidOut
) -> None:
    batch, by_k = len(factor.batch), factor.by_k
    read_blocks(op, factor)
    for launch in launches:
        number, how = factor.argument.index, ("blocks", batch, by_k)
        constants.give(launch, number, how, lambda a: in_blocks(a, batch, by_k))


def blocks_ns(partition: Partition, op: ROperatorOp) -> float:
    """The estimated time of an rOperator whose factor, if it has one, is laid out in blocks, in ns; infinite
    where no rKernel can read it so."""
    laid_out = op.clone()
    factor = factor_of(laid_out)
    if isinstance(factor, str):
        return math.inf
    read_blocks(laid_out, factor)
    try:
        return partition.fastest_ns(laid_out)
    except UnsupportedError:
        return math.inf
