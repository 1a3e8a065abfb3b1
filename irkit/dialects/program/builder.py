"""Build programs of arrays: what a front end that traces NumPy code emits."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects import affine, arith, memref, scf
from xdsl.dialects import tensor as tensor_ops
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    IndexType,
    LocationAttr,
    ModuleOp,
    StringAttr,
    UnknownLoc,
    i1,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from irkit.dialects.bufferization import Array as ArrayType
from irkit.dialects.bufferization import MaterializeInDestinationOp, ToTensorOp
from irkit.dialects.constants import constant
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.program.call import CallOp
from irkit.dialects.program.views import (
    Affine,
    StridedView,
    array_type,
    buffer_type,
    view_of,
    view_type,
)
from irkit.dialects.properties import attribute
from irkit.dialects.types import DYNAMIC, tensor
from irkit.weights import Array, WeightStore


@dataclass(frozen=True)
class BuiltProgram:
    """A module at the program level with `func.func @main`, the weights it names, and the functions of the
    host that it calls."""

    module: ModuleOp
    weights: WeightStore
    functions: Mapping[str, Callable[..., object]] = field(
        default_factory=dict[str, Callable[..., object]]
    )


class ProgramBuilder:
    """Builds `@main` op by op; what is built goes where the innermost open loop is.

    b = ProgramBuilder([("x", buffer_type(f64, (8, 4)))])
    row = b.view(b.buffers[0], 4, (4,), (1,))
    b.write(b(AddOp, b.read(row), b.constant(np.ones(4))), row)
    with b.loop(0, 8) as i:
        cell = b.view(b.buffers[0], b.affine(0, {i: 4}), (), ())
        ...
    b.finish([("y", row)])
    """

    def __init__(self, buffers: Sequence[tuple[str, ArrayType]]) -> None:
        """`buffers`: names and types (`buffer_type`) of the arguments."""
        self.weights = WeightStore()
        self.names = tuple(name for name, _ in buffers)
        self._block = self._main = Block(arg_types=[t for _, t in buffers])
        for argument, name in zip(self._main.args, self.names, strict=True):
            argument.name_hint = name if name.isascii() and name.isidentifier() else None
        self._constants: dict[Attribute, SSAValue] = {}
        self._views: dict[SSAValue, StridedView] = {}
        self.location: LocationAttr = UnknownLoc()
        """That of the ops that follow."""

    @property
    def buffers(self) -> Sequence[SSAValue]:
        """The function's arguments."""
        return self._main.args

    def alloc(self, element: Attribute, shape: Sequence[int]) -> SSAValue:
        """A new buffer; what it holds is not known before it is written."""
        made = memref.AllocOp((), (), buffer_type(element, shape))
        return self._insert(made).results[0]

    def view(
        self,
        buffer: SSAValue,
        offset: int | Affine,
        sizes: Sequence[int],
        strides: Sequence[int],
    ) -> SSAValue:
        """A view of a buffer, in elements. That of a buffer as it lies is the buffer."""
        at = Affine(offset) if isinstance(offset, int) else offset
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
        result = self._insert(made).results[0]
        self._views[result] = view
        return result

    def affine(self, constant: int, factors: dict[SSAValue, int]) -> Affine:
        """`constant` + the sum of factors[i] * i over variables that `loop` gave."""
        return Affine(constant, {v: f for v, f in factors.items() if f})

    def described(self, array: SSAValue) -> StridedView:
        """What `view` made an array of: buffer, offset, sizes, strides."""
        return self._views.get(array) or view_of(array)

    def read(self, array: SSAValue) -> SSAValue:
        """What an array, a view or a buffer, holds now."""
        return self._insert(ToTensorOp(array)).results[0]

    def write(self, value: SSAValue, array: SSAValue) -> None:
        """Write a tensor of an array's own shape and elements to it."""
        self._insert(MaterializeInDestinationOp(value, array))

    def constant(self, array: Array, hint: str = "w") -> SSAValue:
        """A constant tensor; equal arrays share one op, at the start of the function."""
        made = constant(np.asarray(array), self.weights, hint)
        known = self._constants.get(made.value)
        if known is None:
            self._insert_first(made)
            known = self._constants[made.value] = made.result
        return known

    def ops(self, op: type[GraphOp], *operands: SSAValue, **props: Any) -> Sequence[SSAValue]:
        """Append a graph op; returns its results. Raises VerifyException on operands it does not take."""
        return self._insert(op.make(operands, {k: attribute(v) for k, v in props.items()})).results

    def __call__(self, op: type[GraphOp], *operands: SSAValue, **props: Any) -> SSAValue:
        """Append a graph op with one result; returns it."""
        return self.ops(op, *operands, **props)[0]

    def call(
        self,
        function: str,
        arrays: Sequence[SSAValue],
        reads: Sequence[int] | None = None,
        writes: Sequence[int] | None = None,
    ) -> None:
        """Call a function of the host; `reads` and `writes` as in `program.call`."""
        self._insert(CallOp(function, arrays, reads, writes))

    @contextmanager
    def loop(self, start: int, stop: int, step: int = 1) -> Generator[SSAValue]:
        """What is built inside is run for each number of `range(start, stop, step)`, which is given as an
        index; a step is positive."""
        first, end, by = (self._number(n) for n in (start, stop, step))
        body = Block(arg_types=[IndexType()])
        self._insert(scf.ForOp(first, end, by, [], Region(body)))
        with self._inside(body):
            yield body.args[0]
        body.add_op(scf.YieldOp())

    @contextmanager
    def while_loop(self, condition: SSAValue) -> Generator[None]:
        """What is built inside is run as long as `condition`, an array of one boolean of no dimensions,
        holds: it is read before each time."""
        before, after = Block(), Block()
        self._insert(scf.WhileOp([], [], Region(before), Region(after)))
        with self._inside(before):
            held = self._insert(tensor_ops.ExtractOp(self.read(condition), [], i1))
        before.add_op(scf.ConditionOp(held.results[0]))
        with self._inside(after):
            yield
        after.add_op(scf.YieldOp())

    def number_of(self, variable: SSAValue) -> SSAValue:
        """An induction variable as a tensor of one int64 of no dimensions."""
        cast = self._insert(arith.IndexCastOp(variable, i64)).results[0]
        made = tensor_ops.FromElementsOp(cast, result_type=tensor(i64, ()))
        return self._insert(made).results[0]

    def finish(self, results: Sequence[tuple[str, SSAValue]]) -> BuiltProgram:
        """Close the function over the arrays that it returns, by name, and verify the module."""
        self._insert(ReturnOp(*(v for _, v in results)))
        types = [v.type for _, v in results]
        main = FuncOp("main", (list(self._main.arg_types), types), Region(self._main))
        main.attributes["irkit.inputs"] = ArrayAttr([StringAttr(n) for n in self.names])
        main.attributes["irkit.outputs"] = ArrayAttr([StringAttr(n) for n, _ in results])
        module = ModuleOp([main])
        module.verify()
        return BuiltProgram(module, self.weights)

    def _index(self, at: Affine) -> SSAValue:
        expr: AffineExpr = AffineConstantExpr(at.constant)
        for d, factor in enumerate(at.factors.values()):
            expr = expr + AffineDimExpr(d) * factor
        amap = AffineMapAttr(AffineMap(len(at.factors), 0, (expr,)))
        return self._insert(affine.ApplyOp(list(at.factors), amap)).results[0]

    def _number(self, number: int) -> SSAValue:
        made = ConstantOp.from_int_and_width(number, IndexType())
        if made.value not in self._constants:
            self._insert_first(made)
            self._constants[made.value] = made.result
        return self._constants[made.value]

    def _insert(self, op: Operation) -> Operation:
        op.location = self.location
        self._block.add_op(op)
        return op

    def _insert_first(self, op: Operation) -> None:
        first = self._main.first_op
        if first is None:
            self._main.add_op(op)
        else:
            self._main.insert_op_before(op, first)

    @contextmanager
    def _inside(self, block: Block) -> Generator[None]:
        outer, self._block = self._block, block
        try:
            yield
        finally:
            self._block = outer
