"""`hoist-input-terms`: what recurrent cells multiply of their inputs leaves the time loop as one product."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    ModuleOp,
    TensorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from irkit.context import weights_of
from irkit.dialects.constants import constant
from irkit.dialects.functions import is_straight
from irkit.dialects.linalg_generic import is_elementwise
from irkit.dialects.precision import inherit
from irkit.dialects.reassociation import reassociation
from irkit.dialects.types import DYNAMIC, numpy_dtype, tensor_type
from irkit.errors import DeviceError
from irkit.passes.tensor.input_terms import Chains, InputTerm, Part, tail_of, term_of
from irkit.remarks import applied, missed
from irkit.rkernels.legality import target_of
from irkit.schedule.devices import device as find_device
from irkit.weights import WeightStore

RULE = "HoistTerm"

CACHED = 128 << 10
"""Bytes of weights that stay in a core's cache from step to step: read there, sums of one row are as fast as
those of a product of many (LSTM of 64 units: 0.85 µs a cell with its input's term, 0.61 without)."""


class _Hoist:
    """Puts one product before the first of some terms, and parts of it in their places."""

    def __init__(self, terms: Sequence[InputTerm], weights: WeightStore) -> None:
        self.terms, self.weights = terms, weights
        self.at: Operation = terms[0].op
        self.location = self.at.location

    def run(self, source: SSAValue, parts: Sequence[Part]) -> None:
        """Everything, in place: `parts` of the `source` are the inputs of the terms."""
        first, shape = self.terms[0], tensor_type(source).get_shape()
        lead = shape[:-1]
        element = tensor_type(first.op.results[0]).element_type
        columns = first.start.size
        rows = (
            source if DYNAMIC in lead else self._reshaped(source, [range(len(lead)), [len(lead)]])
        )
        w = constant(first.weights.reshape(columns, shape[-1]), self.weights)
        self._insert(w)
        product = self._product(rows, w.result, first)
        units = first.start.shape
        dims = [*lead, *units]
        if DYNAMIC in lead:
            groups = [*([d] for d in range(len(lead))), range(len(lead), len(dims))]
        else:
            groups = [range(len(lead)), range(len(lead), len(dims))]
        whole = self._expanded(product, dims, groups)
        for term, part in zip(self.terms, parts, strict=True):
            self.at, self.location = term.op, term.op.location
            sizes = [*part.sizes, *units]
            given = [self._rows_of(whole) if n == DYNAMIC else n for n in sizes]
            offsets, ones = [*part.offsets, *(0 for _ in units)], [1] * len(sizes)
            result = TensorType(element, sizes)
            cut = self._insert(tensor.ExtractSliceOp(whole, offsets, given, ones, result))
            own = [range(len(lead)), *([len(lead) + d] for d in range(len(units)))]
            y = self._reshaped(cut, own)
            y.name_hint = term.op.results[0].name_hint
            applied(term.op, RULE, "one product of {} steps", len(self.terms))
            Rewriter.replace_op(term.op, [], [y])

    def _product(self, rows: SSAValue, w: SSAValue, like: InputTerm) -> SSAValue:
        """rows @ w.T, from where the terms start."""
        element = tensor_type(like.op.results[0]).element_type
        *lead, _ = tensor_type(rows).get_shape()
        shape = [*lead, like.start.size]
        sizes = [self._rows_of(rows)] if DYNAMIC in shape else []
        empty = self._insert(tensor.EmptyOp(sizes, TensorType(element, shape)))
        loops = [AffineDimExpr(d) for d in range(len(shape) + 1)]
        *outer, n, k = loops
        indices = [[*outer, k], [n, k], [*outer, n]]
        product = linalg.GenericOp(
            [rows, w],
            [self._start(like, empty)],
            like.op.body.clone(),
            ArrayAttr(AffineMapAttr(AffineMap(len(loops), 0, tuple(i))) for i in indices),
            ArrayAttr([*[IteratorTypeAttr.parallel()] * len(shape), IteratorTypeAttr.reduction()]),
            [empty.type],
        )
        inherit(product, like.op)
        return self._insert(product)

    def _start(self, like: InputTerm, empty: SSAValue) -> SSAValue:
        """`empty` with the terms' start in each row."""
        t = tensor_type(empty)
        if not any(like.start.tobytes()):
            zero = self._insert(arith.ConstantOp(FloatAttr(0.0, t.element_type)))  # pyright: ignore
            return self._insert(linalg.FillOp([zero], [empty], [t]))
        start = like.start.reshape(-1).astype(numpy_dtype(t.element_type))
        row = self._insert(constant(np.ascontiguousarray(start), self.weights))
        block = Block(arg_types=[t.element_type, t.element_type])
        block.add_op(linalg.YieldOp(block.args[0]))
        rank = t.get_num_dims()
        last = AffineMap(rank, 0, (AffineDimExpr(rank - 1),))
        copied = linalg.GenericOp(
            [row],
            [empty],
            Region(block),
            ArrayAttr([AffineMapAttr(last), AffineMapAttr(AffineMap.identity(rank))]),
            ArrayAttr([IteratorTypeAttr.parallel()] * rank),
            [t],
        )
        return self._insert(copied)

    def _rows_of(self, value: SSAValue) -> SSAValue:
        """The size of the one open dimension."""
        where = tensor_type(value).get_shape().index(DYNAMIC)
        number = self._insert(arith.ConstantOp(IntegerAttr(where, IndexType())))
        return self._insert(tensor.DimOp(value, number))

    def _reshaped(self, value: SSAValue, groups: Sequence[Iterable[int]]) -> SSAValue:
        """Dimensions joined, group by group."""
        t, dims = tensor_type(value), [list(g) for g in groups]
        if len(dims) == t.get_num_dims():
            return value
        sizes = [_extent([t.get_shape()[d] for d in g]) for g in dims]
        return self._insert(
            tensor.CollapseShapeOp.create(
                operands=[value],
                result_types=[TensorType(t.element_type, sizes)],
                properties={"reassociation": reassociation(dims)},
            )
        )

    def _expanded(
        self, value: SSAValue, shape: Sequence[int], groups: Sequence[Iterable[int]]
    ) -> SSAValue:
        """Dimensions split into groups."""
        t, dims = tensor_type(value), [list(g) for g in groups]
        if len(shape) == t.get_num_dims():
            return value
        sizes = [self._rows_of(value)] if DYNAMIC in shape else []
        result = TensorType(t.element_type, shape)
        return self._insert(
            tensor.ExpandShapeOp(value, sizes, reassociation(dims), list(shape), result)
        )

    def _insert(self, op: Operation) -> SSAValue:
        for inner in op.walk():
            inner.location = self.location  # pyright: ignore[reportAttributeAccessIssue]
        Rewriter.insert_op(op, InsertPoint.before(self.at))
        return op.results[0]

    def joined(self) -> SSAValue:
        """The inputs of the terms end to end."""
        xs = [t.term.x for t in self.terms]
        rows, k = tensor_type(xs[0]).get_shape()
        t = TensorType(tensor_type(xs[0]).element_type, [rows * len(xs), k])
        return self._insert(tensor.ConcatOp(xs, 0, t))


def _extent(sizes: Sequence[int]) -> int:
    return DYNAMIC if DYNAMIC in sizes else math.prod(sizes)


@dataclass(frozen=True)
class Machine:
    """What the terms will run on. `alone`: no two steps run side by side. `wide`: so many do that less work
    is no less time, unless the longest chain is shorter."""

    alone: bool = False
    wide: bool = False


def _machine(name: str) -> Machine:
    """Of a vDevice; without a name, of some cores. Raises DeviceError where there is none of the name."""
    if not name:
        return Machine()
    device = find_device(name)
    return Machine(device.veus == 1, target_of(device) == "cuda")


def _why_apart(
    terms: Sequence[InputTerm], parts: Sequence[Part], chains: Chains, machine: Machine
) -> str | None:
    """Why terms of parts of one tensor stay as they are; None if one product of them loses nothing."""
    source = tensor_type(parts[0].source).get_shape()
    if 2 * sum(p.rows for p in parts) < math.prod(s for s in source[:-1] if s != DYNAMIC):
        return "most of what its input is a part of is in no term"
    if machine.alone:
        return _why_cached(terms[0], machine)
    apart, together = (chains.through(terms, hoisted) for hoisted in (False, True))
    if together > apart:
        return "its input is made step by step: each step would wait for the last one's"
    if together == apart and machine.wide and _is_in_chain(terms[0]):
        return "other cells of the wavefront take as long: no chain of cells would be shorter"
    return _why_cached(terms[0], machine)


def _is_in_chain(term: InputTerm) -> bool:
    """Whether the state's term goes on with the sums; a term that does not is a launch, which is saved."""
    return tail_of(term.op) is not term.op


def _why_cached(term: InputTerm, machine: Machine) -> str | None:
    if machine.wide or term.weights.nbytes > CACHED or not _is_in_chain(term):
        return None
    return "its weights are so few that they stay in the cache from step to step"


def _why_not_joined(terms: Sequence[InputTerm], machine: Machine) -> str | None:
    """Why terms of inputs that are computed one by one stay as they are on one vEU."""
    if len({t.term.x for t in terms}) < 2:
        return "no other step has such a term"
    if DYNAMIC in tensor_type(terms[0].term.x).get_shape():
        return "its input is open in its rows, and made step by step"
    first = terms[0].op
    if not all(_is_before(t.term.x, first) for t in terms):
        return "its input is not there before the first step"
    return _why_cached(terms[0], machine)


def _is_before(value: SSAValue, op: Operation) -> bool:
    owner = value.owner
    return isinstance(owner, Block) or owner.is_before_in_block(op)


def hoist(block: Block, weights: WeightStore, machine: Machine) -> None:
    """Make one product of terms by one constant, in place, where that loses nothing on the machine."""
    found: dict[tuple[object, ...], list[InputTerm]] = {}
    for op in block.ops:
        if not isinstance(op, linalg.GenericOp) or is_elementwise(op):
            continue
        term = term_of(op, weights)
        if isinstance(term, str):
            missed(op, RULE, "{}", term)
        else:
            found.setdefault(term.key, []).append(term)
    for terms in found.values():
        rest = _hoist_parts(terms, Chains(block), weights, machine)
        if machine.alone and rest:
            _hoist_values(rest, weights, machine)


def _hoist_parts(
    terms: Sequence[InputTerm], chains: Chains, weights: WeightStore, machine: Machine
) -> list[InputTerm]:
    """Terms of parts of one tensor; returns those that are left."""
    groups: dict[SSAValue | None, list[InputTerm]] = {}
    for term in terms:
        groups.setdefault(None if term.part is None else term.part.source, []).append(term)
    left = groups.pop(None, [])
    for group in groups.values():
        parts = [t.part for t in group if t.part is not None]
        if len({p.offsets for p in parts}) < 2:
            left += group
        elif (reason := _why_apart(group, parts, chains, machine)) is not None:
            missed(group[0].op, RULE, "{}", reason)
        else:
            _Hoist(group, weights).run(parts[0].source, parts)
    if left and not machine.alone:
        missed(left[0].op, RULE, "no other step has whole rows of the same tensor")
    return left


def _hoist_values(terms: Sequence[InputTerm], weights: WeightStore, machine: Machine) -> None:
    """Terms of inputs that are there one by one."""
    terms = sorted(terms, key=_place)
    if (reason := _why_not_joined(terms, machine)) is not None:
        return missed(terms[0].op, RULE, "{}", reason)
    hoist = _Hoist(terms, weights)
    source = hoist.joined()
    rows = tensor_type(terms[0].term.x).get_shape()[0]
    parts = [Part(source, (n * rows,), (rows,)) for n in range(len(terms))]
    return hoist.run(source, parts)


def _place(term: InputTerm) -> int:
    block = term.op.parent
    assert block is not None
    return block.get_operation_index(term.op)


@dataclass(frozen=True)
class HoistInputTerms(ModulePass):
    """Make the input terms of a recurrent layer's cells one product of all steps.

    Where sums begin with a constant row and x[t] @ w, x[t] whole rows of one tensor and w the same constant
    at each step, all steps' sums are one product before the first step, which reads the weights once: what
    is left in a step begins with a part of it, and waits for the state. So it is with the cells of LSTM,
    GRU and RNN layers, in either direction.

    A product of all steps waits for all of x. Where that would make the longest chain of multiply-adds
    longer, as in a stack of layers, whose cells are a wavefront, the terms stay in their steps; the first
    layer of a stack is hoisted, and a layer behind one in both directions. On a GPU (`device`) the chain
    has to be shorter: a first layer that is no wider than those behind it, whose cells take as long, stays.
    On a vDevice of one vEU, where nothing runs side by side, inputs that are there before the layer's first
    step are put end to end and multiplied at once too. On a CPU, weights of at most 128 KiB, which stay in
    the cache, stay in the steps.

    No numeric risk: each element is the sum of the same terms, in an order that a product never says.

    ```mlir
    %0 = tensor.extract_slice %x[0, 0, 0] [1, 2, 8] [1, 1, 1] : tensor<5x2x8xf32> to tensor<1x2x8xf32>
    %1 = tensor.collapse_shape %0 [[0, 1], [2]] : tensor<1x2x8xf32> into tensor<2x8xf32>
    %2 = linalg.generic {...} ins(%1, %w : tensor<2x8xf32>, tensor<3x4x8xf32>)
        outs(%start : tensor<2x3x4xf32>)
    ... the same of %x[1] and the others
    ```
    becomes
    ```mlir
    %0 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<5x2x8xf32> into tensor<10x8xf32>
    %1 = linalg.generic {...} ins(%0, %w2 : tensor<10x8xf32>, tensor<12x8xf32>)
        outs(%starts : tensor<10x12xf32>)
    %2 = tensor.expand_shape %1 [[0, 1], [2, 3]] : tensor<10x12xf32> into tensor<5x2x3x4xf32>
    %3 = tensor.extract_slice %2[0, 0, 0, 0] [1, 2, 3, 4] [1, 1, 1, 1] : ... to tensor<1x2x3x4xf32>
    %4 = tensor.collapse_shape %3 [[0, 1], [2], [3]] : tensor<1x2x3x4xf32> into tensor<2x3x4xf32>
    ...
    ```
    """

    name = "hoist-input-terms"
    requires: ClassVar[tuple[str, ...]] = ("tensor",)
    produces: ClassVar[str] = "tensor"
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        try:
            machine = _machine(self.device)
        except DeviceError as error:
            raise PassFailedException(str(error)) from None
        weights = weights_of(ctx)
        for function in op.ops:
            if is_straight(function):
                hoist(function.body.block, weights, machine)
