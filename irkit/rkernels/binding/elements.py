"""Print one element of a tensor value as Numba statements.

Everything light in an rOperator's body (elementwise generics, pads, slices, reshapes, gathers,
concatenations, fills) has elements that are expressions of other elements. An `ElementPrinter` prints
them on demand, down to the rOperator's operands (`p0[...]`) and the root's accumulator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    i1,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from irkit.dialects import te
from irkit.dialects.roperator_root import iterators, maps
from irkit.dialects.types import DYNAMIC, ints, is_float, tensor_type
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.scalars import numba_type, scalar_text

Index = tuple[str, ...]


def literal(value: float | int, element: Attribute) -> str:
    """A typed literal, so that nothing is promoted to float64."""
    if element == i1:
        return str(bool(value))
    if not is_float(element):
        return f"{numba_type(element)}({int(value)})"
    if math.isnan(value) or math.isinf(value):
        text = "math.nan" if math.isnan(value) else ("math.inf" if value > 0 else "-math.inf")
        return f"{numba_type(element)}({text})"
    return f"{numba_type(element)}({float(value)!r})"


def strides(shape: Sequence[int]) -> list[int]:
    """Row-major strides in elements; the leading dimension may be dynamic."""
    result = [1] * len(shape)
    for d in range(len(shape) - 2, -1, -1):
        result[d] = result[d + 1] * shape[d + 1]
    return result


def linear(index: Sequence[str], shape: Sequence[int]) -> str:
    """Row-major position of `index`."""
    terms = [
        i if s == 1 else f"{i} * {s}"
        for i, s, n in zip(index, strides(shape), shape, strict=True)
        if i != "0" and n != 1
    ]
    return " + ".join(terms) or "0"


def delinearised(position: str, shape: Sequence[int]) -> list[str]:
    """Row-major index of `position`; nothing is assumed of the first extent."""
    if not shape:
        return []
    index: list[str] = []
    for d, stride in enumerate(strides(shape)):
        if shape[d] == 1 and d > 0:
            index.append("0")
            continue
        whole = position if stride == 1 else f"({position}) // {stride}"
        index.append(whole if d == 0 else f"({whole}) % {shape[d]}")
    return index


@dataclass
class ElementPrinter:
    """Collects the statements of one fused function.

    `known` maps values (the root's result) to a function from an index to an expression.
    """

    known: dict[SSAValue, Callable[[Index], str]] = field(
        default_factory=dict[SSAValue, Callable[[Index], str]]
    )
    lines: list[str] = field(default_factory=list[str])
    indent: int = 0
    _memo: dict[tuple[SSAValue, Index], str] = field(
        default_factory=dict[tuple[SSAValue, Index], str]
    )
    _count: list[int] = field(default_factory=lambda: [0])

    def line(self, text: str) -> None:
        """Append a statement at the current indentation."""
        self.lines.append("    " * self.indent + text)

    def name(self, expression: str) -> str:
        """Bind an expression to a fresh name."""
        if expression.isidentifier() or expression.isdigit():
            return expression
        fresh = f"v{self._count[0]}"
        self._count[0] += 1
        self.line(f"{fresh} = {expression}")
        return fresh

    def variable(self, start: str, element: Attribute) -> str:
        """A fresh name that branches assign to, of this type: of another, Numba would widen them all."""
        return self.name(f"{'bool' if element == i1 else numba_type(element)}({start})")

    def element(self, value: SSAValue, index: Index) -> str:
        """Name of a variable that holds `value[index]`."""
        key = (value, index)
        if key not in self._memo:
            self._memo[key] = self._element(value, index)
        return self._memo[key]

    def remember(self, value: SSAValue, index: Index, text: str) -> None:
        """`value[index]` is known to be `text`."""
        self._memo[(value, index)] = text

    def branch(self) -> ElementPrinter:
        """A printer for an indented block: what it binds is not known outside."""
        return ElementPrinter(
            self.known, self.lines, self.indent + 1, dict(self._memo), self._count
        )

    def _element(self, value: SSAValue, index: Index) -> str:
        if value in self.known:
            return self.known[value](index)
        if isinstance(value, BlockArgument):
            return self.name(self.load(f"p{value.index}", value, index))
        op = value.owner
        assert isinstance(op, Operation)
        printer = _ELEMENT.get(type(op))
        if printer is None:
            raise UnsupportedError(f"emission of '{op.name}' inside an rOperator")
        numba_type(tensor_type(value).element_type)
        return printer(self, op, value, index)

    def load(self, pointer: str, value: SSAValue, index: Index) -> str:
        """`pointer[position]`, as a bool for i1."""
        t = tensor_type(value)
        text = f"{pointer}[{linear(index, t.get_shape())}]"
        return f"{text} != 0" if t.element_type == i1 else text

    def affine(self, expr: AffineExpr, index: Index) -> str:
        """An affine expression of loop indices, printed and bound to a name."""
        match expr:
            case AffineDimExpr():
                return index[expr.position]
            case AffineConstantExpr():
                return str(expr.value)
            case AffineBinaryOpExpr():
                lhs, rhs = self.affine(expr.lhs, index), self.affine(expr.rhs, index)
                return self.name(_affine_text(expr.kind, lhs, rhs))
            case _:
                raise UnsupportedError(f"emission of affine expression '{expr}'")

    def generic(self, op: linalg.GenericOp, index: Index) -> list[str]:
        """The values that an all-parallel generic yields at loop index `index`."""
        if not all(iterators(op)) or any(a.uses for a in op.body.block.args[len(op.inputs) :]):
            raise UnsupportedError(f"emission of '{op.name}' that reads what it writes")
        arguments = self.inputs(op, index)
        return self.body(op, arguments, index)

    def inputs(self, op: linalg.GenericOp, index: Index) -> dict[SSAValue, str]:
        """Elements of the inputs at loop index `index`, by body argument; unused ones are left out."""
        block = op.body.block
        found: dict[SSAValue, str] = {}
        for argument, operand, amap in zip(block.args, op.operands, maps(op), strict=True):
            if not argument.uses or argument.index >= len(op.inputs):
                continue
            where = tuple(self.affine(e, index) for e in amap.results)
            found[argument] = self.element(operand, where)
        return found

    def body(
        self,
        op: linalg.GenericOp,
        values: dict[SSAValue, str],
        index: Index,
        skip: Operation | None = None,
    ) -> list[str]:
        """Print the scalar ops of a body (all but `skip`); returns what it yields."""
        scope = dict(values)
        for inner in op.body.block.ops:
            if inner is skip or isinstance(inner, linalg.YieldOp):
                continue
            scope[inner.results[0]] = self.name(self.scalar(inner, scope, index))
        if skip is not None:
            return [scope[v] for v in skip.operands if v in scope]
        terminator = op.body.block.last_op
        assert terminator is not None
        return [self.operand(v, scope) for v in terminator.operands]

    def operand(self, value: SSAValue, scope: dict[SSAValue, str]) -> str:
        """A scalar of a body, or one that is computed outside of it."""
        return scope[value] if value in scope else _scalar_operand(self, value)

    def scalar(self, op: Operation, scope: dict[SSAValue, str], index: Index) -> str:
        """One arith or math op as an expression."""
        if isinstance(op, arith.ConstantOp):
            return self._scalar_constant(op)
        if isinstance(op, linalg.IndexOp):
            return index[op.dim.value.data]
        operands = [self.operand(v, scope) for v in op.operands]
        return scalar_text(op, operands)

    def _scalar_constant(self, op: arith.ConstantOp) -> str:
        value = op.value
        if not isinstance(value, FloatAttr | IntegerAttr):
            raise UnsupportedError(f"emission of scalar constant {value}")
        if isinstance(value.type, IndexType):
            return str(value.value.data)
        return literal(value.value.data, value.type)


def _affine_text(kind: AffineBinaryOpKind, lhs: str, rhs: str) -> str:
    if kind == AffineBinaryOpKind.Add:
        return lhs if rhs == "0" else rhs if lhs == "0" else f"{lhs} + {rhs}"
    if kind == AffineBinaryOpKind.Mul:
        return lhs if rhs == "1" else "0" if "0" in (lhs, rhs) else f"{lhs} * {rhs}"
    symbol = {AffineBinaryOpKind.Mod: "%", AffineBinaryOpKind.FloorDiv: "//"}.get(kind)
    if symbol is None:
        raise UnsupportedError(f"emission of affine '{kind}'")
    return f"{lhs} {symbol} {rhs}"


def _generic(p: ElementPrinter, op: Operation, value: SSAValue, index: Index) -> str:
    assert isinstance(op, linalg.GenericOp)
    number = next(i for i, result in enumerate(op.results) if result is value)
    out = maps(op)[len(op.inputs) + number]
    loop: dict[int, str] = {}
    for expr, i in zip(out.results, index, strict=True):
        if isinstance(expr, AffineDimExpr):
            loop[expr.position] = i
    if len(loop) != out.num_dims or len(index) != out.num_dims:
        raise UnsupportedError(f"emission of '{op.name}' that writes as {out}")
    values = p.generic(op, tuple(loop[d] for d in range(out.num_dims)))
    for result, text in zip(op.results, values, strict=True):
        if maps(op)[len(op.inputs) + list(op.results).index(result)] == out:
            p.remember(result, index, text)
    return values[number]


def _constant(p: ElementPrinter, op: Operation, value: SSAValue, index: Index) -> str:
    assert isinstance(op, arith.ConstantOp)
    attr, t = op.value, value.type
    if isinstance(attr, DenseIntOrFPElementsAttr) and attr.is_splat():
        splat = attr.get_values()[0]
        assert not isinstance(splat, tuple)  # complex numbers have no element type here
        return p.name(literal(splat, tensor_type(value).element_type))
    raise UnsupportedError(f"emission of constant {t} inside an rOperator")


def _fill(p: ElementPrinter, op: Operation, value: SSAValue, index: Index) -> str:
    assert isinstance(op, linalg.FillOp)
    return _scalar_operand(p, op.inputs[0])


def _scalar_operand(p: ElementPrinter, value: SSAValue) -> str:
    op = value.owner
    if not isinstance(op, Operation) or isinstance(op, linalg.IndexOp):
        raise UnsupportedError("a scalar that is no function of constants")
    scope = {v: _scalar_operand(p, v) for v in op.operands}
    return p.name(p.scalar(op, scope, ()))


def _pad(p: ElementPrinter, op: Operation, value: SSAValue, index: Index) -> str:
    assert isinstance(op, tensor.PadOp)
    low, shape = ints(op.static_low), tensor_type(op.source).get_shape()
    if op.low or op.high:
        raise UnsupportedError("emission of a tensor.pad by amounts that are computed")
    high = ints(op.static_high)
    inner, guards = list(index), list[str]()
    for d, (before, after, size) in enumerate(zip(low, high, shape, strict=True)):
        if before:
            inner[d] = p.name(f"{index[d]} - {before}")
        if (before or after) and size == DYNAMIC:
            raise UnsupportedError("emission of a tensor.pad of the batch")
        if before or after:
            guards.append(f"0 <= {inner[d]} < {size}" if before else f"{inner[d]} < {size}")
    terminator = op.region.block.last_op
    assert terminator is not None
    padding = _scalar_operand(p, terminator.operands[0])
    if not guards:
        return p.element(op.source, tuple(inner))
    result = p.variable(padding, tensor_type(value).element_type)
    p.line(f"if {' and '.join(guards)}:")
    branch = p.branch()
    branch.line(f"{result} = {branch.element(op.source, tuple(inner))}")
    return result


def _extract_slice(p: ElementPrinter, op: Operation, value: SSAValue, index: Index) -> str:
    assert isinstance(op, tensor.ExtractSliceOp)
    offsets, steps = ints(op.static_offsets), ints(op.static_strides)
    shape, kept = tensor_type(op.source).get_shape(), list(index)
    if op.offsets or op.strides:
        raise UnsupportedError("emission of a tensor.extract_slice at computed places")
    if len(index) != len(shape):
        raise UnsupportedError("emission of a rank-reducing tensor.extract_slice")
    moved = [
        p.name(_affine_text(AffineBinaryOpKind.Add, f"{i} * {s}" if s != 1 else i, str(o)))
        for i, o, s in zip(kept, offsets, steps, strict=True)
    ]
    return p.element(op.source, tuple(moved))


def _reshape(p: ElementPrinter, op: Operation, value: SSAValue, index: Index) -> str:
    assert isinstance(op, tensor.CollapseShapeOp | tensor.ExpandShapeOp)
    source = op.src
    position = p.name(linear(index, tensor_type(value).get_shape()))
    where = [p.name(i) for i in delinearised(position, tensor_type(source).get_shape())]
    return p.element(source, tuple(where))


def _concat(p: ElementPrinter, op: Operation, value: SSAValue, index: Index) -> str:
    assert isinstance(op, tensor.ConcatOp)
    axis, start = op.dim.value.data, 0
    element = tensor_type(value).element_type
    if tensor_type(value).get_shape()[axis] == DYNAMIC:
        raise UnsupportedError("emission of a tensor.concat along the batch")
    result = p.variable(literal(0, element), element)
    for number, part in enumerate(op.inputs):
        size = tensor_type(part).get_shape()[axis]
        p.line(f"{'el' if number else ''}if {index[axis]} < {start + size}:")
        branch = p.branch()
        inner = list(index)
        inner[axis] = branch.name(f"{index[axis]} - {start}" if start else index[axis])
        branch.line(f"{result} = {branch.element(part, tuple(inner))}")
        start += size
    return result


def _clamped(p: ElementPrinter, picked: str, data: SSAValue, axis: int) -> str:
    """An index from data, kept inside the tensor: one that is not has no meaning, and must not be read."""
    last = tensor_type(data).get_shape()[axis] - 1
    return p.name(f"min(max({picked}, 0), {last})")


def _gather(p: ElementPrinter, op: Operation, value: SSAValue, index: Index) -> str:
    assert isinstance(op, te.GatherOp)
    axis, rank = op.axis.value.data, tensor_type(op.indices).get_num_dims()
    picked = _clamped(p, p.element(op.indices, index[axis : axis + rank]), op.data, axis)
    return p.element(op.data, (*index[:axis], picked, *index[axis + rank :]))


def _gather_elements(p: ElementPrinter, op: Operation, value: SSAValue, index: Index) -> str:
    assert isinstance(op, te.GatherElementsOp)
    axis = op.axis.value.data
    picked = _clamped(p, p.element(op.indices, index), op.data, axis)
    return p.element(op.data, (*index[:axis], picked, *index[axis + 1 :]))


_ELEMENT: dict[type[Operation], Callable[[ElementPrinter, Operation, SSAValue, Index], str]] = {
    linalg.GenericOp: _generic,
    linalg.FillOp: _fill,
    arith.ConstantOp: _constant,
    tensor.PadOp: _pad,
    tensor.ExtractSliceOp: _extract_slice,
    tensor.CollapseShapeOp: _reshape,
    tensor.ExpandShapeOp: _reshape,
    tensor.ConcatOp: _concat,
    te.GatherOp: _gather,
    te.GatherElementsOp: _gather_elements,
}
