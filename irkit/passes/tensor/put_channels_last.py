"""`put-channels-last`: images with their channels side by side, where tensor cores compute convolutions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, ModuleOp, TensorType, f32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import PassFailedException

from irkit.context import weights_of
from irkit.dialects.constants import constant, constant_array
from irkit.dialects.functions import is_straight
from irkit.dialects.linalg_generic import is_contraction, iterators, maps
from irkit.dialects.precision import Precision, precision_of
from irkit.dialects.products import used_loops
from irkit.dialects.tensor_ops.registry import kind_of
from irkit.dialects.types import DYNAMIC, ints, is_half, tensor_type
from irkit.errors import DeviceError, UnsupportedError
from irkit.passes.tensor.orders import Order, Orders, loops_of, movable, multiple
from irkit.remarks import applied, missed
from irkit.schedule.devices import device as find_device
from irkit.weights import WeightStore

RULE = "PutChannelsLast"
IMAGES = 8
"""Images from which on it is done for float32's own precision; of fewer, pixels of one channel are read as
well."""
FEWEST_CHANNELS = 4
"""A group of fewer channels is no product worth the name."""


@dataclass(frozen=True)
class Convolution:
    """Loops of a contraction over windows: `columns` of the input alone, `shared` by both, `rows` of the
    filters alone; `taps` and `channels` are summed. `x` and `w` are input numbers."""

    op: linalg.GenericOp
    x: int
    w: int
    columns: tuple[int, ...]
    shared: tuple[int, ...]
    rows: tuple[int, ...]
    taps: tuple[int, ...]
    channels: tuple[int, ...]

    @property
    def order(self) -> Order:
        """Of the result: pixels, groups, and the filters of a group."""
        return (*self.columns, *self.shared, *self.rows)

    def order_of(self, number: int) -> Order:
        """Of an input: what is said first lies apart, channels side by side."""
        said = [*self.order, *self.taps, *self.channels]
        indices = maps(self.op)[number].results
        firsts = [min(said.index(d) for d in loops_of(e)) for e in indices]
        return tuple(sorted(range(len(indices)), key=firsts.__getitem__))

    def size(self, number: int, loop: int) -> int:
        """Extent of a loop that indexes a dimension of an input alone."""
        shape = tensor_type(self.op.inputs[number]).get_shape()
        return shape[list(maps(self.op)[number].results).index(AffineDimExpr(loop))]


def convolution(op: Operation) -> Convolution | None:
    """`op` as a convolution of float32 sums; None if it is none."""
    if not isinstance(op, linalg.GenericOp) or not is_contraction(op) or not movable(op):
        return None
    if tensor_type(op.results[0]).element_type != f32:
        return None
    for x, w in ((0, 1), (1, 0)):
        of_x, of_w = maps(op)[x].results, maps(op)[w].results
        alone = [e.position for e in of_w if isinstance(e, AffineDimExpr)]
        windows = [e for e in of_x if not isinstance(e, AffineDimExpr)]
        if len(alone) != len(of_w) or not windows or any(len(loops_of(e)) > 2 for e in windows):
            continue
        rank, loops = sum(iterators(op)), range(len(iterators(op)))
        plain = {e.position for e in of_x if isinstance(e, AffineDimExpr)}
        own, other = used_loops(maps(op)[x]), set(alone)
        found = Convolution(
            op,
            x,
            w,
            tuple(d for d in loops[:rank] if d not in other),
            tuple(d for d in loops[:rank] if d in own and d in other),
            tuple(d for d in loops[:rank] if d not in own),
            tuple(d for d in loops[rank:] if d not in plain),
            tuple(d for d in loops[rank:] if d in plain),
        )
        if found.rows and found.columns and found.channels and set(loops[rank:]) <= other:
            return found
    return None


class _Mover:
    """Makes the ops of a block anew, in program order."""

    def __init__(self, weights: WeightStore) -> None:
        self.weights, self.orders = weights, Orders(weights)

    def move(self, op: Operation) -> None:
        """Make `op` anew, if what it reads was or it is a convolution; else have it read as before."""
        made = self._made(op)
        if made is not None:
            self.orders.moved[op.results[0]] = made
            return
        for number, value in enumerate(op.operands):
            if value in self.orders.moved:
                plain = tuple(range(tensor_type(value).get_num_dims()))
                op.operands[number] = self.orders.wanted(value, plain, op)

    def _made(self, op: Operation) -> tuple[Order, SSAValue] | None:
        found = convolution(op)
        if found is not None:
            return self._convolution(found)
        if not any(v in self.orders.moved for v in op.operands):
            return None
        if isinstance(op, linalg.GenericOp):
            order = self._order(op) if movable(op) else None
            return None if order is None else (order, self.orders.generic(op, order, op))
        if isinstance(op, tensor.PadOp) and not (op.low or op.high):
            order = self.orders.moved[op.source][0]
            return order, self.orders.pad(op, order, op)
        if isinstance(op, tensor.ExtractSliceOp) and not _computed(op):
            order = self.orders.moved[op.source][0]
            return order, self.orders.sliced(op, order, op)
        if isinstance(op, tensor.ConcatOp):
            order = next(o for v in op.inputs if (o := self.orders.order(v)) is not None)
            return order, self.orders.concat(op, order, op)
        if isinstance(op, tensor.ExpandShapeOp):
            return self.orders.expanded(op, op)
        if isinstance(op, tensor.CollapseShapeOp):
            return self.orders.collapsed(op, op)
        return None

    def _order(self, op: linalg.GenericOp) -> Order | None:
        """That of the first input that has all loops of the result, or none of a result that is smaller; else
        that of the input with the most, the others behind those that they stand behind."""
        rank, most = sum(iterators(op)), tuple[int, ...]()
        for value, amap in zip(op.inputs, maps(op), strict=False):
            order = self.orders.order(value)
            if order is None:
                continue
            loops = [d for e in order for d in loops_of(amap.results[e]) if d < rank]
            if len(set(loops)) == rank:
                return tuple(dict.fromkeys(loops))
            if len(set(loops)) > len(most):
                most = tuple(dict.fromkeys(loops))
        return _completed(most, rank)

    def _convolution(self, found: Convolution) -> tuple[Order, SSAValue]:
        op, orders = found.op, self.orders
        x, w = op.inputs[found.x], op.inputs[found.w]
        if orders.order(x) is None:
            x, w = self._filled(found, x, w)
        inputs: list[tuple[Order, SSAValue] | None] = [None, None]
        for number, value in ((found.x, x), (found.w, w)):
            order = found.order_of(number)
            inputs[number] = (order, orders.wanted(value, order, op))
        reduction = (*found.taps, *found.channels)
        applied(op, RULE, "{} columns of {} channels", found.order, found.channels)
        return found.order, orders.generic(op, found.order, op, reduction, inputs)

    def _filled(self, found: Convolution, x: SSAValue, w: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Input and filters with channels of zeros, up to how many are read at once."""
        of_x = tensor_type(x)
        together = 8 if is_half(of_x.element_type) else 4
        (loop,) = found.channels if len(found.channels) == 1 else (None,)
        if loop is None or found.shared:
            return x, w
        channels = found.size(found.x, loop)
        more = multiple(channels, together) - channels
        array = constant_array(w, self.weights)
        if not more or array is None:
            return x, w
        place = [
            list(maps(found.op)[n].results).index(AffineDimExpr(loop)) for n in (found.x, found.w)
        ]
        widths = [(0, more * (d == place[1])) for d in range(array.ndim)]
        filters = constant(np.pad(array, widths), self.weights)
        return self._padded(x, place[0], more, found.op), self.orders.insert(filters, found.op)

    def _padded(self, x: SSAValue, d: int, more: int, before: Operation) -> SSAValue:
        """`x` with zeros at the end of a dimension, together with those that are there."""
        rank = tensor_type(x).get_num_dims()
        source, low, high = x, [0] * rank, [0] * rank
        if isinstance(x.owner, tensor.PadOp) and _pads_zeros(x.owner):
            source, low, high = (
                x.owner.source,
                list(ints(x.owner.static_low)),
                list(ints(x.owner.static_high)),
            )
        high[d] += more
        shape = list(tensor_type(x).get_shape())
        shape[d] += more
        element = tensor_type(x).element_type
        block = Block(arg_types=[IndexType()] * rank)
        assert isinstance(element, AnyFloat)
        zero = arith.ConstantOp(FloatAttr(0.0, element))
        block.add_ops([zero, tensor.YieldOp(zero.result)])
        made = tensor.PadOp(source, [], [], Region(block), low, high, TensorType(element, shape))
        return self.orders.insert(made, before)


def _completed(some: Order, rank: int) -> Order:
    """An order of all loops that has `some` in theirs, each other one behind the one before it."""
    found = list(some)
    for loop in (d for d in range(rank) if d not in some):
        found.insert(found.index(loop - 1) + 1 if loop else 0, loop)
    return tuple(found)


def _computed(op: tensor.ExtractSliceOp) -> bool:
    """Whether where a slice lies is computed, or a dimension goes."""
    ranks = {tensor_type(v).get_num_dims() for v in (op.source, op.result)}
    return bool(op.offsets or op.sizes or op.strides) or len(ranks) > 1


def _pads_zeros(op: tensor.PadOp) -> bool:
    """Whether it pads by the constant 0, by known amounts."""
    terminator = op.region.block.last_op
    value = terminator.operands[0].owner if terminator is not None else None
    if not isinstance(value, arith.ConstantOp) or not isinstance(value.value, FloatAttr):
        return False
    return value.value.value.data == 0 and DYNAMIC not in ints(op.static_low)


def why_not(function: func.FuncOp, images: int) -> str | None:
    """Why the images of a function stay as they are; None if their channels are to lie side by side."""
    found = [c for op in function.walk() if (c := convolution(op)) is not None]
    if not found:
        return "it has no convolution of float32 sums and known sizes"
    if any(precision_of(c.op) is Precision.IEEE for c in found):
        return "its convolutions are plain float32"
    if any(c.shared and c.size(c.x, c.channels[0]) < FEWEST_CHANNELS for c in found):
        return "it has convolutions of groups of few channels"
    halves = any(is_half(tensor_type(c.op.inputs[c.x]).element_type) for c in found)
    rounded = not any(precision_of(c.op).strict for c in found)
    fewest = min(tensor_type(c.op.results[0]).get_shape()[0] for c in found)
    if not halves and not rounded and fewest < images:
        return f"{fewest} images are few"
    return None


@dataclass(frozen=True)
class PutChannelsLast(ModulePass):
    """Lay images out with their channels side by side, where `device` computes convolutions on tensor cores.

    A convolution then reads runs of channels, 16 bytes at once whatever its window and stride, and the
    pixels of all images are the columns of one product. Its filters are laid out the same way, constants
    here; what is elementwise, pools, pads, slices, joins or splits dimensions follows, and what cannot follow
    reads a copy in the old order. Where an input is copied, channels of zeros fill its last 16 bytes. Done
    from `images` images on; for any number where products are of 16-bit floats, which are not read one by
    one, or of a lower precision (`tf32`, `bf16`, `f16`), whose tensor cores wait for what they read; not of
    plain float32 (`ieee`), nor where groups have few channels. No value changes but by the order of sums.

    ```mlir
    %1 = linalg.generic {maps = [(n, o, h, w, c, i, j) -> (n, c, h + i, w + j), ... -> (o, c, i, j),
        ... -> (n, o, h, w)]} ins(%x, %w) outs(%0) {...} -> tensor<16x64x56x56xf32>
    ```
    becomes
    ```mlir
    %1 = linalg.generic {maps = [(n, h, w, o, i, j, c) -> (n, h + i, w + j, c), ... -> (o, i, j, c),
        ... -> (n, h, w, o)]} ins(%x2, %w2) outs(%2) {...} -> tensor<16x56x56x64xf32>
    ```
    """

    name = "put-channels-last"
    requires: ClassVar[tuple[str, ...]] = ("tensor",)
    produces: ClassVar[str] = "tensor"
    device: str = ""
    images: int = IMAGES

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        try:
            device = find_device(self.device) if self.device else None
        except (UnsupportedError, DeviceError) as error:
            raise PassFailedException(str(error)) from None
        if device is None or device.kind != "cuda":
            return
        for function in [f for f in op.ops if is_straight(f)]:
            reason = why_not(function, self.images)
            if reason is not None:
                missed(function, RULE, "{}", reason)
                continue
            mover = _Mover(weights_of(ctx))
            for inner in list(function.body.block.ops):
                mover.move(inner)
            for inner in reversed(list(function.body.block.ops)):
                if kind_of(inner) is not None and not any(r.uses for r in inner.results):
                    Rewriter.erase_op(inner)
