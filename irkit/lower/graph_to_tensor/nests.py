"""Builds loop nests at the tensor level: constants, destinations, `linalg.generic`.

A dimension of a loop nest is an integer; an operand is indexed by a tuple with one entry per
dimension of the operand: a loop number, `ZERO` for a dimension of size 1, or an affine expression.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    AffineMapAttr,
    IndexType,
    NameLoc,
    StringAttr,
    UnknownLoc,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint

from irkit.context import resource_name
from irkit.dialects.constants import constant, constant_array
from irkit.dialects.csr_base import is_stored_length
from irkit.dialects.precision import inherit
from irkit.dialects.types import (
    DYNAMIC,
    Tensor,
    is_float,
    is_unsigned,
    numpy_dtype,
    signless,
    tensor_type,
)
from irkit.dialects.types import tensor as make_type
from irkit.errors import UnsupportedError
from irkit.lower.graph_to_tensor.scalars import Scalars, lowest, scalar_constant
from irkit.weights import Array, WeightStore

ZERO = AffineConstantExpr(0)
Index = Sequence[int | AffineExpr]
Body = Callable[["Scalars", Sequence[SSAValue]], Sequence[SSAValue]]


def affine_map(loops: int, index: Index) -> AffineMap:
    """The map from `loops` loop dimensions to an operand's index."""
    return AffineMap(loops, 0, tuple(AffineDimExpr(i) if isinstance(i, int) else i for i in index))


def broadcast_index(t: Tensor, shape: Sequence[int], first: int = 0) -> list[int | AffineExpr]:
    """How a loop nest over `shape`, whose first loop is number `first`, reads an operand of type `t`
    that broadcasts to it by NumPy's rules."""
    skip = len(shape) - t.get_num_dims()
    return [
        ZERO if size == 1 and shape[skip + d] != 1 else first + skip + d
        for d, size in enumerate(t.get_shape())
    ]


class NestBuilder:
    """Inserts ops before one op of a function's only block, in program order."""

    def __init__(self, block: Block, weights: WeightStore) -> None:
        self.weights = weights
        self._block = block
        self.location: Attribute = UnknownLoc()
        self._source: Operation | None = None
        self._builder = Builder(InsertPoint.at_start(block))
        self._constants: dict[str, SSAValue] = {}
        self._packed: dict[tuple[object, object], SSAValue] = {}
        self._indices: dict[int, SSAValue] = {}
        self._batch: SSAValue | None = None

    def move_before(self, op: Operation) -> None:
        """Insert what follows before `op`, with its location under its name."""
        self._builder.insertion_point = InsertPoint.before(op)
        self.location = NameLoc(StringAttr(op.name), op.location)
        self._source = op

    def insert(self, op: Operation) -> SSAValue:
        """Insert `op`; returns its first result."""
        for inner in op.walk():
            inner.location = self.location  # pyright: ignore[reportAttributeAccessIssue]
        return self._builder.insert(op).results[0]

    # Constants

    def array(self, value: SSAValue) -> Array | None:
        """The array of a constant tensor, else None."""
        return constant_array(value, self.weights)

    def constant(self, array: Array, hint: str = "w") -> SSAValue:
        """A weight; equal arrays under one hint share one op."""
        op = constant(array, self.weights, hint)
        name = str(op.value)
        if name not in self._constants:
            self._constants[name] = self.insert(op)
        return self._constants[name]

    def packed(
        self, value: SSAValue, key: object, pack: Callable[[Array], Array]
    ) -> SSAValue | None:
        """The constant `pack(array of value)`, made once per `key`; None if `value` is no constant."""
        name = resource_name(value) or value
        if (name, key) not in self._packed:
            array = self.array(value)
            if array is None:
                return None
            self._packed[name, key] = self.constant(pack(array), self.hint(value))
        return self._packed[name, key]

    def hint(self, value: SSAValue) -> str:
        """What the name of a constant's array starts with."""
        name = resource_name(value)
        return "w" if name is None else name.rpartition("_")[0] or name

    # Destinations

    def index(self, value: int) -> SSAValue:
        """`arith.constant value : index`."""
        if value not in self._indices:
            self._indices[value] = self.insert(scalar_constant(value, IndexType()))
        return self._indices[value]

    def batch(self, values: Sequence[SSAValue]) -> SSAValue:
        """The size of dynamic dimensions, which are all the batch: read off the function's first
        argument that has it, or else off `values`."""
        if self._batch is None:
            for value in [*self._block.args, *values]:
                shape = tensor_type(value).get_shape()
                if DYNAMIC in shape and not is_stored_length(shape):
                    d = self.index(shape.index(DYNAMIC))
                    self._batch = self.insert(tensor.DimOp(value, d))
                    return self._batch
            raise UnsupportedError("a dynamic dimension that no operand has")
        return self._batch

    def sizes(self, shape: Sequence[int], values: Sequence[SSAValue]) -> list[SSAValue]:
        """One `tensor.dim` per dynamic dimension of `shape`, taken from `values`."""
        return [self.batch(values) for s in shape if s == DYNAMIC]

    def empty(
        self, shape: Sequence[int], element: Attribute, values: Sequence[SSAValue]
    ) -> SSAValue:
        """`tensor.empty`; a dynamic dimension is sized as in `values`."""
        return self.insert(tensor.EmptyOp(self.sizes(shape, values), make_type(element, shape)))

    def fill(
        self,
        value: float,
        shape: Sequence[int],
        element: Attribute,
        values: Sequence[SSAValue],
    ) -> SSAValue:
        """A tensor of one value, by `linalg.fill`."""
        if is_unsigned(element):
            return self.map(
                shape, [element], [], lambda s, _: [s.constant(value, element)], values
            )[0]
        scalar = self.insert(scalar_constant(value, element))
        empty = self.empty(shape, element, values)
        return self.insert(linalg.FillOp([scalar], [empty]))

    # Loop nests

    def generic(
        self,
        inputs: Sequence[tuple[SSAValue, Index]],
        outputs: Sequence[tuple[SSAValue, Index]],
        parallel: int,
        reduction: int,
        body: Body,
    ) -> list[SSAValue]:
        """A `linalg.generic` with `parallel` parallel loops, then `reduction` reduction loops.

        `body` gets one scalar per input and output and returns one per output; unsigned integers are
        signless in it.
        """
        operands = [*inputs, *outputs]
        elements = [tensor_type(v).element_type for v, _ in operands]
        block = Block(arg_types=elements)
        scalars = Scalars(block)
        arguments = [scalars.as_type(a, signless(a.type)) for a in block.args]
        results = body(scalars, arguments)
        wanted = elements[len(inputs) :]
        yielded = [scalars.as_type(v, e) for v, e in zip(results, wanted, strict=True)]
        block.add_op(linalg.YieldOp(*yielded))
        loops = parallel + reduction
        iterators = [IteratorTypeAttr.parallel()] * parallel
        iterators += [IteratorTypeAttr.reduction()] * reduction
        op = linalg.GenericOp(
            [v for v, _ in inputs],
            [v for v, _ in outputs],
            Region(block),
            [AffineMapAttr(affine_map(loops, index)) for _, index in operands],
            iterators,
            [v.type for v, _ in outputs],
        )
        self.insert(op)
        return list(op.results)

    def map(
        self,
        shape: Sequence[int],
        elements: Sequence[Attribute],
        inputs: Sequence[tuple[SSAValue, Index]],
        body: Body,
        like: Sequence[SSAValue] = (),
    ) -> list[SSAValue]:
        """An elementwise `linalg.generic` over `shape`, with one fresh result per element type.

        Inputs of one constant element become constants in the body. A dynamic dimension is sized as
        in `like`, or else as in the inputs. `body` gets one scalar per input.
        """
        values = [*like, *(v for v, _ in inputs)]
        scalars = [self._single(v) for v, _ in inputs]
        kept = [pair for pair, s in zip(inputs, scalars, strict=True) if s is None]
        every = list(range(len(shape)))
        outputs = [(self.empty(shape, e, values), every) for e in elements]

        def whole(s: Scalars, arguments: Sequence[SSAValue]) -> Sequence[SSAValue]:
            rest = iter(arguments)
            return body(
                s,
                [
                    next(rest) if n is None else s.constant(n, tensor_type(v).element_type)
                    for n, (v, _) in zip(scalars, inputs, strict=True)
                ],
            )

        return self.generic(kept, outputs, len(shape), 0, whole)

    def _single(self, value: SSAValue) -> float | None:
        array = self.array(value)
        if array is None or array.size != 1:
            return None
        return array.reshape(()).item()

    def elementwise(
        self,
        shape: Sequence[int],
        element: Attribute,
        inputs: Sequence[SSAValue],
        body: Callable[[Scalars, Sequence[SSAValue]], SSAValue],
    ) -> SSAValue:
        """An elementwise generic of inputs that broadcast to `shape`; `body(scalars, inputs)`."""
        pairs = [(v, broadcast_index(tensor_type(v), shape)) for v in inputs]
        return self.map(shape, [element], pairs, lambda s, args: [body(s, args)])[0]

    def broadcast(
        self, value: SSAValue, index: Index, shape: Sequence[int], like: Sequence[SSAValue]
    ) -> SSAValue:
        """A copy of `value` over the loops `shape`, read at `index`."""
        element = tensor_type(value).element_type
        return self.map(shape, [element], [(value, index)], lambda _, args: args, [*like, value])[0]

    def bits(
        self, value: SSAValue, to: Attribute | None = None, *, ordered: bool = False
    ) -> SSAValue:
        """Unsigned integers as signless ones of the same bits, or as `to` back again; others stay.

        With `ordered` the highest bit is turned round, so that signed comparison is the unsigned one.
        """
        t = tensor_type(value)
        if not is_unsigned(to or t.element_type):
            return value
        plain = signless(t.element_type)
        sign = lowest(plain) if ordered else 0
        dtype = numpy_dtype(plain).type
        known = to or self.packed(value, ("bits", sign), lambda a: a.view(dtype) ^ dtype(sign))
        if isinstance(known, SSAValue):
            return known
        return self.elementwise(
            t.get_shape(), to or plain, [value], lambda s, v: s.turned(v[0], sign)
        )

    def contract(
        self,
        a: tuple[SSAValue, Index],
        b: tuple[SSAValue, Index],
        init: tuple[SSAValue, Index],
        reduction: int,
    ) -> SSAValue:
        """`init` plus the sum of a * b over the last `reduction` loops, in the precision of the op that is
        lowered."""
        element = tensor_type(init[0]).element_type
        if is_unsigned(element):
            x, w, start = ((self.bits(v), index) for v, index in (a, b, init))
            return self.bits(self.contract(x, w, start, reduction), element)

        def body(s: Scalars, args: Sequence[SSAValue]) -> Sequence[SSAValue]:
            x, y, acc = args
            if is_float(element):
                x, y = (v if v.type == element else s(arith.ExtFOp(v, element)) for v in (x, y))
                return [s(arith.AddfOp(acc, s(arith.MulfOp(x, y))))]
            x, y = (
                v if v.type == element else s.extended(v, is_unsigned(tensor_type(t).element_type))
                for v, (t, _) in ((x, a), (y, b))
            )
            return [s(arith.AddiOp(acc, s(arith.MuliOp(x, y))))]

        total = self.generic([a, b], [init], len(init[1]), reduction, body)[0]
        if self._source is not None and isinstance(total.owner, Operation):
            inherit(total.owner, self._source)
        return total
