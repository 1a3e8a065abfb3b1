"""`split-attention`: attention of few rows to many keys in two steps, the first in parts of the keys."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp, f64, i1, i64
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern
from xdsl.utils.exceptions import PassFailedException

from irkit.context import weights_of
from irkit.dialects.constants import constant
from irkit.dialects.graph import AndOp, AttentionOp, ReshapeOp, SliceOp, TransposeOp, WhereOp
from irkit.dialects.precision import inherit
from irkit.dialects.types import DYNAMIC, int_array, numpy_dtype, tensor_type
from irkit.errors import DeviceError
from irkit.rewriting import Rule, rewrite
from irkit.rkernels.work import work
from irkit.schedule.devices import device as find_device
from irkit.schedule.model import VDevice
from irkit.weights import WeightStore

Emit = Callable[[Operation], SSAValue]

TILE: Final = 16
"""Rows that share what is read of keys."""
SHORTEST: Final = 64
"""Keys of a part: fewer are less work than to join them."""
WORTH: Final = 0.8
"""The share of the time, by estimate, below which two steps are taken."""
MASKED: Final = 1 << 20
"""Elements of a constant mask that is written out for causal rows."""


def parts_of(op: AttentionOp, device: VDevice) -> int | str:
    """Into how many parts keys are cut, or why they are not.

    A part of the keys takes its share of the time. Joining p parts takes two waits, two starts, and the
    reading of what they give. The number with the least sum is taken, one that divides the keys if that costs
    little.
    """
    query, value = (tensor_type(v).get_shape() for v in (op.query, op.value))
    shape, keys = tensor_type(op.y).get_shape(), value[-2]
    if op.parts is not None:
        return "its keys are cut already"
    if DYNAMIC in (*shape, *query, *value):
        return "its sizes are not all known"
    if op.causal is not None and shape[-2] * keys > MASKED:
        return "a causal mask of that size is not written out"
    heads = math.prod(shape[:-2])
    tasks = heads * math.ceil(shape[-2] / TILE)
    most = min(device.veus // tasks, keys // SHORTEST)
    if most < 2:
        return "each vEU has rows of its own, or keys are few"
    width = query[-1] + value[-1]
    itemsize = numpy_dtype(tensor_type(op.key).element_type).itemsize
    rows = min(shape[-2], TILE)

    def time(parts: int) -> float:
        span = math.ceil(keys / parts)
        each = work(fma=rows * span * width, byte=span * width * itemsize)
        if parts == 1:
            return each.nanoseconds(device)
        joined = work(start=2, byte=2 * parts * rows * (value[-1] + 1) * itemsize)
        return (each + joined).nanoseconds(device) + 2 * device.wait_ns

    found = [p for p in range(2, most + 1) if (p - 1) * math.ceil(keys / p) < keys]
    best = min(found, key=time)
    # Of parts that are all alike nothing lies behind the last key.
    even = min((p for p in found if keys % p == 0), key=time, default=best)
    if time(even) <= 1.1 * time(best):
        best = even
    if time(best) > WORTH * time(1):
        return "to join parts takes as long as they save"
    return best


@dataclass
class SplitKeys(Rule):
    """attention(q, k, v) = attention(1, weights of parts, attentions to parts of k, v)"""

    device: VDevice
    weights: WeightStore

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AttentionOp, rewriter: PatternRewriter, /):
        parts = parts_of(op, self.device)
        if isinstance(parts, str):
            return self.no_match(op, "{}", parts)
        made: list[Operation] = []

        def emit(new: Operation) -> SSAValue:
            made.append(new)
            return new.results[0]

        properties = {k: v for k, v in op.properties.items() if k != "causal"}
        given = [op.query, op.key, op.value, *self._mask(op, emit)]
        apart = AttentionOp.make(given, {**properties, "parts": IntegerAttr(parts, i64)})
        inherit(apart, op)
        rewriter.replace(op, made, [self._joined(op, emit(apart), emit)])

    def _mask(self, op: AttentionOp, emit: Emit) -> list[SSAValue]:
        """The mask, with what is ahead hidden."""
        have = [] if op.mask is None else [op.mask]
        if op.diagonal is None:
            return have
        rows, keys = tensor_type(op.y).get_shape()[-2], tensor_type(op.key).get_shape()[-2]
        seen = emit(constant(np.tri(rows, keys, op.diagonal, dtype=bool), self.weights))
        if op.mask is None:
            return [seen]
        element = tensor_type(op.mask).element_type
        if element == i1:
            return [emit(AndOp.make([op.mask, seen], {}))]
        hidden = emit(constant(np.array(-np.inf, numpy_dtype(element)), self.weights))
        return [emit(WhereOp.make([seen, op.mask, hidden], {}))]

    def _joined(self, op: AttentionOp, apart: SSAValue, emit: Emit) -> SSAValue:
        """The attention of one query for each row, to what the parts give: its scores are their weights."""
        t = tensor_type(apart)
        *lead, parts, rows, width = t.get_shape()
        last = len(lead)
        order = int_array([*range(last), last + 1, last, last + 2])
        turned = emit(TransposeOp.make([apart], {"permutation": order}))

        def columns(begin: int, size: int) -> SSAValue:
            where = {
                "offsets": int_array([*(0 for _ in range(last + 2)), begin]),
                "sizes": int_array([*lead, rows, parts, size]),
                "strides": int_array([1] * (last + 3)),
            }
            return emit(SliceOp.make([turned], where))

        one = np.ones([1] * (last + 3), numpy_dtype(t.element_type))
        operands = [emit(constant(one, self.weights)), columns(width - 1, 1), columns(0, width - 1)]
        y = emit(AttentionOp.make(operands, {"scale": FloatAttr(1.0, f64)}))
        shape = int_array(tensor_type(op.y).get_shape())
        return emit(ReshapeOp.make([y], {"shape": shape}))


@dataclass(frozen=True)
class SplitAttention(ModulePass):
    """Cut the keys of an attention of few rows into parts, each for a vEU, and join what these give.

    A decoder's step has a row for each head, of which some multiprocessors of a GPU, or cores, would read all
    keys while the others wait. Each part gives its own attention and the logarithm of the sum of its
    weights; these are joined in a fixed order by a second, small attention. It is done where it takes
    less time by the rates of the `device`: where vEUs would be idle, and keys are many. After T. Dao et al.,
    Flash-Decoding for long-context inference, 2023.

    Numeric risk: sums are added in another order, the same one in each run.

    ```mlir
    %y = graph.attention %q, %k, %v {scale = 1.0 : f64}
      : (tensor<8x1x64xf32>, tensor<8x4096x64xf32>, tensor<8x4096x64xf32>) -> tensor<8x1x64xf32>
    ```
    becomes
    ```mlir
    %0 = graph.attention %q, %k, %v {scale = 1.0 : f64, parts = 16 : i64} : (...) -> tensor<8x16x1x65xf32>
    %1 = graph.transpose %0 {permutation = array<i64: 0, 2, 1, 3>}
    %2 = graph.slice %1 {...} : (tensor<8x1x16x65xf32>) -> tensor<8x1x16x1xf32>
    %3 = graph.slice %1 {...} : (tensor<8x1x16x65xf32>) -> tensor<8x1x16x64xf32>
    %4 = graph.attention %one, %2, %3 {scale = 1.0 : f64} : (...) -> tensor<8x1x1x64xf32>
    %y = graph.reshape %4 {...} : (tensor<8x1x1x64xf32>) -> tensor<8x1x64xf32>
    ```
    """

    name = "split-attention"
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not self.device:
            return
        try:
            device = find_device(self.device)
        except DeviceError as error:
            raise PassFailedException(str(error)) from None
        rewrite(op, [SplitKeys(device, weights_of(ctx))])
