"""`pack-filters`: the filters of convolutions laid out side by side when the program is built."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    Float32Type,
    FunctionType,
    ModuleOp,
    TensorType,
)
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from irkit.context import weights_of
from irkit.dialects.linalg_generic import maps
from irkit.dialects.products import PACKED_ROWS, Product, as_product, packed_layout
from irkit.dialects.task import ROperatorOp
from irkit.dialects.types import tensor_type
from irkit.errors import UnsupportedError
from irkit.passes.gpu import device_of
from irkit.passes.task.launch_constants import LaidOut, launches_of
from irkit.passes.task.partition_rtasks import Partition
from irkit.remarks import applied, missed
from irkit.rkernels.legality import root_of
from irkit.weights import Array

RULE = "PackFilters"


def packed_filters(filters: Array, batch: int) -> Array:
    """Filters of `batch` loops, rows and terms in blocks of 16 rows, term by term, filled up by zeros."""
    lead, (rows, *terms) = filters.shape[:batch], filters.shape[batch:]
    blocks = math.ceil(rows / PACKED_ROWS)
    flat = filters.reshape(*lead, rows, math.prod(terms))
    whole = np.zeros((*lead, blocks * PACKED_ROWS, flat.shape[-1]), filters.dtype)
    whole[..., :rows, :] = flat
    turned = whole.reshape(*lead, blocks, PACKED_ROWS, -1).swapaxes(-1, -2)
    return np.ascontiguousarray(turned).reshape(*lead, blocks, *terms, PACKED_ROWS)


def _packed_type(product: Product) -> TensorType:
    shape = tensor_type(product.in_place).get_shape()
    rank = len(product.batch)
    lead, (rows, *terms) = shape[:rank], shape[rank:]
    blocks = math.ceil(rows / PACKED_ROWS)
    return TensorType(
        tensor_type(product.in_place).element_type, [*lead, blocks, *terms, PACKED_ROWS]
    )


def packable(op: ROperatorOp) -> Product | str:
    """The product whose filters could be packed, or why they cannot be."""
    try:
        root = root_of(op)
    except UnsupportedError as error:
        return str(error)
    product = as_product(root) if root.family == "conv" else None
    if product is None or len(product.m) != 1:
        return "it is no convolution of filters in memory"
    if not isinstance(tensor_type(product.in_place).element_type, Float32Type):
        return "its filters are not of f32"
    if len(list(product.in_place.uses)) != 1:
        return "something else reads its filters too"
    return product


def read_packed(op: ROperatorOp, product: Product) -> None:
    """Have an rOperator read packed filters."""
    generic, argument = product.op, product.in_place
    indexing = list(maps(generic))
    layout = packed_layout(product.batch, product.m[0], product.k)
    indexing[product.a] = AffineMap(len(product.sizes), 0, tuple(layout))
    generic.indexing_maps = ArrayAttr([AffineMapAttr(m) for m in indexing])
    Rewriter.replace_value_with_new_type(argument, _packed_type(product))
    outputs = op.function_type.outputs.data
    op.function_type = FunctionType.from_lists(op.body.block.arg_types, outputs)


@dataclass(frozen=True)
class PackFilters(ModulePass):
    """Lay out the filters of convolutions as vectors of 16 of them read them, where `device` is a CPU.

    Filters that are constants are packed here, in blocks of 16 rows whose elements of a term lie side by
    side; zeros fill the last block. Done where the estimated time is less than that of the convolution as it
    is. No value changes.

    ```mlir
    %w = arith.constant dense_resource<w> : tensor<40x24x3x3xf32>
    %y = task.launch @conv_0(%x, %w)
    ```
    becomes
    ```mlir
    %p = arith.constant dense_resource<p> : tensor<3x24x3x3x16xf32>
    %y = task.launch @conv_0(%x, %p)
    ```
    """

    name = "pack-filters"
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
            product = packable(roperator)
            if isinstance(product, str):
                missed(roperator, RULE, "{}", product)
                continue
            launches = launches_of(op, roperator)
            number, batch = product.in_place.index, len(product.batch)
            if not all(constants.is_known(launch, number) for launch in launches):
                missed(roperator, RULE, "its filters are not known")
                continue
            gain = 0.0 if self.always else _gain(partition, roperator)
            if gain <= 0 and not self.always:
                missed(roperator, RULE, "an estimated {:.0f} ns more", 0.0 - gain)
                continue
            applied(roperator, RULE, "an estimated {:.0f} ns less", gain)
            read_packed(roperator, product)
            for launch in launches:
                constants.give(launch, number, batch, partial(packed_filters, batch=batch))


def _gain(partition: Partition, op: ROperatorOp) -> float:
    """What a launch of an rOperator would take less, in ns, by estimate."""
    turned = op.clone()
    product = packable(turned)
    assert isinstance(product, Product)
    read_packed(turned, product)
    return partition.fastest_ns(op.clone()) - partition.fastest_ns(turned)
