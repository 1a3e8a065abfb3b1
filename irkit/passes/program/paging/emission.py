"""The program of a region in chunks: arrays on the device, copies, calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import affine, arith, memref, scf
from xdsl.dialects.builtin import AffineMapAttr, IndexType, ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from irkit.dialects.bufferization import Array
from irkit.dialects.program.spaces import CUDA, DEVICE, in_device_space
from irkit.dialects.program.views import Affine, StridedView, array_type, row_major, view_type
from irkit.dialects.types import DYNAMIC


class Writer:
    """Appends to a program of arrays, before an op or in a loop there. What is allocated goes to the start of
    the function."""

    def __init__(self, main: FuncOp, before: Operation) -> None:
        self._main, self._before = main, before
        self._block: Block | None = None
        self._location = before.location

    def add(self, op: Operation) -> Operation:
        """Append an op."""
        op.location = self._location
        if self._block is None:
            Rewriter.insert_op(op, InsertPoint.before(self._before))
        else:
            self._block.add_op(op)
        return op

    def alloc(self, array: Array, hint: str | None = None) -> SSAValue:
        """A new array."""
        return self._first(memref.AllocOp((), (), array), hint)

    def device(self, array: Array, hint: str | None = None) -> SSAValue:
        """A new array of the device."""
        return self.alloc(in_device_space(array), hint)

    def _first(self, op: Operation, hint: str | None) -> SSAValue:
        op.location = self._location
        Rewriter.insert_op(op, InsertPoint.at_start(self._main.body.block))
        op.results[0].name_hint = hint
        return op.results[0]

    def view(
        self, buffer: SSAValue, at: Affine, sizes: Sequence[int], strides: Sequence[int]
    ) -> SSAValue:
        """A view of a buffer."""
        view = StridedView(buffer, at, tuple(sizes), tuple(strides))
        if view.is_whole():
            return buffer
        made = memref.ReinterpretCastOp(
            buffer,
            [] if at.is_constant else [self._index(at)],
            [],
            [],
            [at.constant if at.is_constant else DYNAMIC],
            view.sizes,
            view.strides,
            view_type(array_type(buffer).element_type, view),
        )
        return self.add(made).results[0]

    def rows(
        self, buffer: SSAValue, shape: Sequence[int], axis: int, first: Affine, count: int
    ) -> SSAValue:
        """Rows of a buffer under a shape: `count` from `first` on along `axis`."""
        sizes, strides = list(shape), row_major(shape)
        sizes[axis] = count
        return self.view(buffer, Affine().plus(first, strides[axis]), sizes, strides)

    def copy(self, source: SSAValue, target: SSAValue) -> None:
        """Copy an array."""
        self.add(memref.CopyOp(source, target))

    def call(self, name: str, arrays: Sequence[SSAValue], on_device: bool = False) -> None:
        """Call a function of the program."""
        call = CallOp(name, list(arrays), [])
        if on_device:
            call.attributes[DEVICE] = StringAttr(CUDA)
        self.add(call)

    def loop(self, stop: int, step: int, body: Callable[[SSAValue], None]) -> None:
        """A loop that counts from 0."""
        first, end, by = (self._number(n) for n in (0, stop, step))
        block = Block(arg_types=[IndexType()])
        self._block, outer = block, self._block
        body(block.args[0])
        self.add(scf.YieldOp())
        self._block = outer
        self.add(scf.ForOp(first, end, by, [], Region(block)))

    def _number(self, number: int) -> SSAValue:
        return self._first(arith.ConstantOp.from_int_and_width(number, IndexType()), None)

    def _index(self, at: Affine) -> SSAValue:
        total: AffineExpr = AffineConstantExpr(at.constant)
        for d, factor in enumerate(at.factors.values()):
            total = total + AffineDimExpr(d) * factor
        amap = AffineMapAttr(AffineMap(len(at.factors), 0, (total,)))
        return self.add(affine.ApplyOp(list(at.factors), amap)).results[0]


def add_function(module: ModuleOp, function: FuncOp) -> str:
    """Put a function at the start of a module; its name."""
    first = module.body.block.first_op
    assert first is not None
    Rewriter.insert_op(function, InsertPoint.before(first))
    return function.sym_name.data


@dataclass
class Slots:
    """Arrays of the device for one chunk: for rows of arguments, and for rows that are written."""

    rows: list[SSAValue] = field(default_factory=list[SSAValue])
    writes: list[SSAValue] = field(default_factory=list[SSAValue])


def erase_unused(function: FuncOp, kinds: tuple[type[Operation], ...]) -> None:
    """Erase ops of some kinds of which nothing is used."""
    for op in reversed(list(function.walk())):
        if isinstance(op, kinds) and not any(r.uses for r in op.results):
            Rewriter.erase_op(op)
