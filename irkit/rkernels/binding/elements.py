"""Print one element of a tensor value as Numba statements.

Everything light in an rOperator's body (elementwise generics, pads, slices, reshapes, gathers,
concatenations, fills) has elements that are expressions of other elements, which its model
(`irkit/dialects/tensor_ops/`) puts together. An `ElementPrinter` prints them on demand, down to the
rOperator's operands (`p0[...]`) and the root's accumulator.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import (
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

from irkit.dialects.linalg_generic import iterators, maps
from irkit.dialects.tensor_ops.interface import Index
from irkit.dialects.tensor_ops.registry import model_of
from irkit.dialects.tensor_ops.reshape import groups_of_shapes
from irkit.dialects.types import is_float, is_half, numpy_dtype, tensor_type
from irkit.errors import UnsupportedError
from irkit.rkernels.binding.scalars import numba_type, scalar_text
from irkit.rkernels.binding.zeros import ZEROS, beside_zero

# An index and a number; times a number, and another.
_MOVED = re.compile(r"([a-z]\w*) ([+-]) (\d+)")
_STRETCHED = re.compile(r"([a-z]\w*) \* (\d+)(?: \+ (\d+))?")


def literal(value: float | int, element: Attribute) -> str:
    """A typed literal, so that nothing is promoted to float64."""
    if element == i1:
        return str(bool(value))
    if not is_float(element):
        return f"{numba_type(element)}({int(value)})"
    if is_half(element):
        value = float(np.float32(value).astype(numpy_dtype(element)))
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
    # Indices that are others and a number, and the names of these.
    _from: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    _names: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    # Quotients without a remainder, with the divisor, and what was divided.
    _whole: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    # Names of float zeros.
    _zeros: set[str] = field(default_factory=set[str])
    # Operands that lie where a result does, and the pointer of that.
    results: dict[int, str] = field(default_factory=dict[int, str])

    def line(self, text: str) -> None:
        """Append a statement at the current indentation."""
        self.lines.append("    " * self.indent + text)

    def name(self, expression: str) -> str:
        """Bind an expression to a fresh name."""
        if expression.isidentifier() or expression.isdigit():
            return expression
        if (moved := _MOVED.fullmatch(expression)) is not None:
            return self._moved(moved[1], int(moved[2] + moved[3]))
        stretched = _STRETCHED.fullmatch(expression)
        if stretched is not None and (stretched[1], int(stretched[2])) in self._whole:
            return self._moved(self._whole[stretched[1], int(stretched[2])], int(stretched[3] or 0))
        return self._bind(expression)

    def quotient(self, index: str, by: int) -> str:
        """A name for an index over a number that divides it: times that number, it is the index again."""
        if by == 1:
            return index
        found = self._bind(f"{index} // {by}")
        self._whole[found, by] = index
        return found

    def moved_from(self, index: str) -> tuple[str, int]:
        """What an index lies behind, and how far: itself, where that is not known."""
        return self._from.get(index, (index, 0))

    def _moved(self, index: str, by: int) -> str:
        """A name for an index that lies `by` behind another. What was moved before is moved once, so that
        where something is read and where it is written have one text if they are one place."""
        index, before = self._from.get(index, (index, 0))
        by += before
        if by == 0:
            return index
        key = (index, by)
        if key not in self._names:
            self._names[key] = self._bind(f"{index} {'+' if by > 0 else '-'} {abs(by)}")
            self._from[self._names[key]] = key
        return self._names[key]

    def _bind(self, expression: str) -> str:
        fresh = f"v{self._count[0]}"
        self._count[0] += 1
        self.line(f"{fresh} = {expression}")
        if expression in ZEROS:
            self._zeros.add(fresh)
        return fresh

    def variable(self, start: str, element: Attribute) -> str:
        """A fresh name that branches assign to, of this type: of another, Numba would widen them all."""
        return self.name(f"{'bool' if element == i1 else numba_type(element)}({start})")

    def number(self, value: float | int, element: Attribute) -> str:
        """A literal of an element type."""
        return literal(value, element)

    def reshaped(self, index: Index, shape: Sequence[int], to: Sequence[int]) -> Index:
        """The index in a tensor of shape `to` of what is at `index` in one of shape `shape`."""
        found: list[str] = []
        for dims, own in groups_of_shapes(shape, to):
            position = self.name(linear(index[dims], shape[dims]))
            found += [self.name(i) for i in delinearised(position, to[own])]
        return tuple(found)

    def element(self, value: SSAValue, index: Index) -> str:
        """Name of a variable that holds `value[index]`."""
        key = (value, index)
        if key not in self._memo:
            self._memo[key] = self._element(value, index)
        return self._memo[key]

    def remember(self, value: SSAValue, index: Index, text: str) -> None:
        """`value[index]` is known to be `text`."""
        self._memo[(value, index)] = text

    def beside(self, index: Index, dims: Collection[int]) -> Sequence[Index]:
        """The indices of elements that are needed together and lie at one place along `dims`."""
        return [index]

    def branch(self, together: bool = False) -> ElementPrinter:
        """A printer for an indented block: what it binds is not known outside."""
        return ElementPrinter(
            self.known,
            self.lines,
            self.indent + 1,
            dict(self._memo),
            self._count,
            dict(self._from),
            dict(self._names),
            dict(self._whole),
            set(self._zeros),
            self.results,
        )

    def _element(self, value: SSAValue, index: Index) -> str:
        if value in self.known:
            return self.known[value](index)
        if isinstance(value, BlockArgument):
            pointer = self.results.get(value.index, f"p{value.index}")
            return self.name(self.load(pointer, value, index))
        op = value.owner
        assert isinstance(op, Operation)
        model = model_of(op)
        if model is None:
            raise UnsupportedError(f"emission of '{op.name}' inside an rOperator")
        numba_type(tensor_type(value).element_type)
        return model.element(op, self, value, index)

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

    def yielded(self, op: linalg.GenericOp, loops: Index) -> list[str]:
        """The values that an all-parallel generic yields at loop index `loops`."""
        if not all(iterators(op)) or any(a.uses for a in op.body.block.args[len(op.inputs) :]):
            raise UnsupportedError(f"emission of '{op.name}' that reads what it writes")
        arguments = self.inputs(op, loops)
        return self.body(op, arguments, loops)

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
            scope[inner.results[0]] = self.name(self.expression(inner, scope, index))
        if skip is not None:
            return [scope[v] for v in skip.operands if v in scope]
        terminator = op.body.block.last_op
        assert terminator is not None
        return [self.operand(v, scope) for v in terminator.operands]

    def operand(self, value: SSAValue, scope: dict[SSAValue, str]) -> str:
        """A scalar of a body, or one that is computed outside of it."""
        return scope[value] if value in scope else self.scalar(value)

    def scalar(self, value: SSAValue) -> str:
        """A scalar that is a function of constants."""
        op = value.owner
        if not isinstance(op, Operation) or isinstance(op, linalg.IndexOp):
            raise UnsupportedError("a scalar that is no function of constants")
        scope = {v: self.scalar(v) for v in op.operands}
        return self.name(self.expression(op, scope, ()))

    def expression(self, op: Operation, scope: dict[SSAValue, str], index: Index) -> str:
        """One arith or math op as an expression."""
        if isinstance(op, arith.ConstantOp):
            return self._scalar_constant(op)
        if isinstance(op, linalg.IndexOp):
            return index[op.dim.value.data]
        operands = [self.operand(v, scope) for v in op.operands]
        kept = beside_zero(op, operands, self._zeros)
        for number in kept:
            # Named first: in a branch a GPU's compiler would leave it there.
            operands[number] = self.name(f"as_it_is({operands[number]})")
        text = scalar_text(op, operands)
        return f"as_it_is({numba_type(op.results[0].type)}({text}))" if kept else text

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
