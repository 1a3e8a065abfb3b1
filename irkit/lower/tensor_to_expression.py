"""Functions of the tensor level as tensor expressions: what each op computes, a statement or a few each.

What is printed reads back as the same values (`irkit/expressions`); what no index expression says (walks
through trees, layouts for tensor cores, unsigned numbers read as signless ones) is refused.
"""

from __future__ import annotations

import math as numbers
from collections.abc import Callable, Sequence

from xdsl.dialects import arith, math, tensor
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.linalg import ops as linalg_ops
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from irkit.dialects import te
from irkit.dialects.constants import constant_array
from irkit.dialects.linalg_generic import combiner, iterators, loop_sizes, maps
from irkit.dialects.types import DYNAMIC, ints, is_half, is_unsigned, numpy_dtype, tensor_type
from irkit.errors import UnsupportedError
from irkit.lower import attention_to_expression, rows_to_expression
from irkit.weights import WeightStore

_BODY: dict[type[Operation], str] = {
    arith.AddfOp: "({0} + {1})",
    arith.AddiOp: "({0} + {1})",
    arith.SubfOp: "({0} - {1})",
    arith.SubiOp: "({0} - {1})",
    arith.MulfOp: "({0} * {1})",
    arith.MuliOp: "({0} * {1})",
    arith.DivfOp: "({0} / {1})",
    arith.MaximumfOp: "max({0}, {1})",
    arith.MinimumfOp: "min({0}, {1})",
    arith.MaxSIOp: "max({0}, {1})",
    arith.MinSIOp: "min({0}, {1})",
    arith.NegfOp: "(-{0})",
    arith.SelectOp: "({0} ? {1} : {2})",
    # Quotients of whole numbers are rounded towards zero at this level, down in the language.
    arith.DivSIOp: "({0} / {1} + ({0} % {1} != 0 && ({0} < 0) != ({1} < 0) ? 1 : 0))",
    arith.RemSIOp: "({0} % {1} - ({0} % {1} != 0 && ({0} < 0) != ({1} < 0) ? {1} : 0))",
    math.PowFOp: "pow({0}, {1})",
    math.Atan2Op: "atan2({0}, {1})",
    math.CopySignOp: "copysign({0}, {1})",
    math.AbsFOp: "abs({0})",
    math.AbsIOp: "abs({0})",
    math.ExpM1Op: "expm1({0})",
    math.RoundEvenOp: "round({0})",
    **{
        op: f"{op.name.partition('.')[2]}({{0}})"
        for op in (
            *(math.AcosOp, math.AcoshOp, math.AsinOp, math.AsinhOp, math.AtanOp, math.AtanhOp),
            *(math.CbrtOp, math.CeilOp, math.CosOp, math.CoshOp, math.ErfOp, math.ExpOp),
            *(math.Exp2Op, math.FloorOp, math.LogOp, math.Log10Op, math.Log1pOp, math.Log2Op),
            *(math.SinOp, math.SinhOp, math.SqrtOp, math.TanOp, math.TanhOp),
        )
    },
}
_LOGIC: dict[type[Operation], str] = {
    arith.AndIOp: "({0} && {1})",
    arith.OrIOp: "({0} || {1})",
    arith.XOrIOp: "({0} != {1})",
    arith.AddiOp: "({0} != {1})",
}
_CASTS = (
    *(arith.SIToFPOp, arith.ExtFOp, arith.TruncFOp, arith.FPToSIOp, arith.ExtSIOp, arith.TruncIOp),
    arith.IndexCastOp,
)
_FLOAT_SIGNS = {1: "==", 2: ">", 3: ">=", 4: "<", 5: "<=", 13: "!="}
_SIGNS = {0: "==", 1: "!=", 2: "<", 3: "<=", 4: ">", 5: ">="}
_REDUCTIONS = {"add": "+", "mul": "*", "max": "max", "min": "min"}


def refused(op: Operation, reason: str) -> UnsupportedError:
    """An error of an op that no expression says."""
    return UnsupportedError(f"'{op.name}' as a tensor expression: {reason}")


class Printed:
    """The text of a function of straight code. `given`: what its parameters are, in the order of `names`;
    `results`: names of what it returns."""

    def __init__(self, function: FuncOp, weights: WeightStore) -> None:
        """Raises UnsupportedError for an op that has no such text."""
        self.weights = weights
        self.lines: list[str] = []
        self.names: dict[SSAValue, str] = {}
        self.constants: dict[str, SSAValue] = {}
        for argument in function.body.block.args:
            self._name(argument)
        self.results: list[str] = []
        for op in function.body.block.ops:
            if isinstance(op, ReturnOp):
                self.results = [self.names[v] for v in op.operands]
                break
            self._op(op)

    @property
    def text(self) -> str:
        """A statement a line."""
        return "\n".join(self.lines)

    def _name(self, value: SSAValue) -> str:
        return self.names.setdefault(value, f"T{len(self.names)}")

    def _op(self, op: Operation) -> None:
        for value in (*op.operands, *op.results):
            self._check(op, value)
        if isinstance(op, arith.ConstantOp | tensor.EmptyOp):
            if constant_array(op.results[0], self.weights) is not None:
                self.constants[self._name(op.results[0])] = op.results[0]
            return
        rule = _RULES.get(type(op))
        if rule is None:
            raise refused(
                op, NOT_EXPRESSIBLE.get(type(op), "no index expression says what it does")
            )
        rule(self, op)

    def _check(self, op: Operation, value: SSAValue) -> None:
        if not hasattr(value.type, "get_shape"):
            return
        t = tensor_type(value)
        if DYNAMIC in t.get_shape() or 0 in t.get_shape():
            raise refused(op, f"{t} has no known extents, or none")
        if is_unsigned(t.element_type) or is_half(t.element_type):
            raise refused(op, f"elements of {t.element_type} are widened first")

    def statement(
        self,
        result: SSAValue,
        value: str,
        loops: Sequence[str] = (),
        where: str = "",
        sign: str = "=",
    ) -> None:
        """A statement for all elements of a result; `where` has ranges beside its own."""
        shape = tensor_type(result).get_shape()
        indices = list(loops) or places(len(shape))
        ranges = [f"{i} in 0:{s}" for i, s in zip(indices, shape, strict=True)]
        clauses = ", ".join([*ranges, *filter(None, [where])])
        tail = f" where {clauses}" if clauses else ""
        self.lines.append(f"{self._name(result)}({', '.join(indices)}) {sign} {value}{tail}")

    def helper(self, name: str, indices: Sequence[str], value: str, sign: str, ranges: str) -> str:
        """A statement for a tensor that is no value of the function."""
        name = f"{name}{len(self.lines)}"
        self.lines.append(f"{name}({', '.join(indices)}) {sign} {value} where {ranges}")
        return name

    def read(self, value: SSAValue, indices: Sequence[str]) -> str:
        """An element of a value."""
        return f"{self._name(value)}({', '.join(indices)})"


def places(rank: int) -> list[str]:
    """Names of indices."""
    return [f"i{d}" for d in range(rank)]


def affine(expr: AffineExpr) -> str:
    """An affine expression of loops."""
    if isinstance(expr, AffineDimExpr):
        return f"i{expr.position}"
    if isinstance(expr, AffineConstantExpr):
        return str(expr.value)
    signs = {AffineBinaryOpKind.Add: "+", AffineBinaryOpKind.Mul: "*"}
    if isinstance(expr, AffineBinaryOpExpr) and expr.kind in signs:
        return f"({affine(expr.lhs)} {signs[expr.kind]} {affine(expr.rhs)})"
    raise UnsupportedError(f"a map with {expr} as a tensor expression")


def number(op: arith.ConstantOp) -> str:
    """A scalar constant, in its type."""
    value = op.value
    dtype = numpy_dtype(op.result.type)
    if not isinstance(value, FloatAttr | IntegerAttr):
        raise refused(op, f"{value} is no number")
    found = value.value.data
    if dtype.kind == "b":
        return f"({int(bool(found))} == 1)"
    if not numbers.isfinite(found):
        shown = "0.0 / 0.0" if found != found else f"{'-' if found < 0 else ''}1.0 / 0.0"
    else:
        shown = repr(found)
    return f"{dtype}({shown})"


def _rowwise(p: Printed, op: te.RowwiseOp) -> None:
    every = places(len(op.rows))
    ranges = ", ".join(f"{i} in 0:{s}" for i, s in zip(every, op.rows, strict=True))
    known: dict[SSAValue, str] = {
        argument: p.read(value, [affine(e) for e in amap.results])
        for value, argument, amap in zip(op.inputs, op.body.block.args, op.maps, strict=True)
    }
    for inner in op.body.block.ops:
        if isinstance(inner, te.RowReduceOp):
            sign = f"{_REDUCTIONS[inner.kind.data]}=!"
            name = p.helper("Along", every[:-1], known[inner.x], sign, ranges)
            known[inner.y] = f"{name}({', '.join(every[:-1])})"
        elif inner.results:
            known[inner.results[0]] = scalar(inner, known)
    end = op.body.block.last_op
    assert end is not None
    p.statement(op.y, known[end.operands[0]])


def _generic(p: Printed, op: linalg_ops.GenericOp) -> None:
    sizes, parallel, every = loop_sizes(op), iterators(op), maps(op)
    known: dict[SSAValue, str] = {}
    for value, argument, amap in zip(op.operands, op.body.block.args, every, strict=True):
        known[argument] = p.read(value, [affine(e) for e in amap.results])
    found = None if all(parallel) else combiner(op)
    if found is None and not all(parallel):
        raise refused(op, "its body is no one reduction")
    for inner in op.body.block.ops:
        if inner.results and (found is None or inner is not found[1]):
            known[inner.results[0]] = scalar(inner, known)
    where = ", ".join(f"i{d} in 0:{sizes[d]}" for d, own in enumerate(parallel) if not own)
    end = op.body.block.last_op
    assert end is not None
    for number, result in enumerate(op.results):
        loops = [affine(e) for e in every[len(op.inputs) + number].results]
        if found is None:
            p.statement(result, known[end.operands[number]], loops)
            continue
        term = next(v for v in found[1].operands if v is not op.body.block.args[-1])
        p.statement(result, p.read(op.outputs[0], loops), loops)
        p.statement(result, known[term], loops, where, f"{_REDUCTIONS[found[0]]}=")


def scalar(op: Operation, known: dict[SSAValue, str]) -> str:
    """An op of a body."""
    if isinstance(op, linalg_ops.IndexOp):
        return f"i{op.dim.value.data}"
    if isinstance(op, arith.ConstantOp):
        return number(op)
    parts = [known[v] if v in known else _outside(v) for v in op.operands]
    truth = bool(op.operands) and numpy_dtype(op.operands[-1].type).kind == "b"
    if isinstance(op, arith.CmpfOp | arith.CmpiOp):
        signs = _FLOAT_SIGNS if isinstance(op, arith.CmpfOp) else _SIGNS
        sign = signs.get(op.predicate.value.data)
        if isinstance(op, arith.CmpfOp) and op.predicate.value.data == 14:
            return f"({parts[0]} != {parts[0]} || {parts[1]} != {parts[1]})"
        if sign is None:
            raise refused(op, "it compares unsigned or unordered numbers")
        return f"({parts[0]} {sign} {parts[1]})"
    if isinstance(op, _CASTS) or (truth and isinstance(op, arith.UIToFPOp | arith.ExtUIOp)):
        return f"{numpy_dtype(op.results[0].type)}({parts[0]})"
    text = (_LOGIC if truth and not isinstance(op, arith.SelectOp) else _BODY).get(type(op))
    if text is None:
        raise refused(op, "the language has no such function")
    return text.format(*parts)


def _outside(value: SSAValue) -> str:
    if isinstance(value.owner, arith.ConstantOp):
        return number(value.owner)
    raise UnsupportedError(
        "a body that uses a value of the function around it as a tensor expression"
    )


def _fill(p: Printed, op: linalg_ops.FillOp | tensor.SplatOp) -> None:
    p.statement(op.results[0], _outside(op.operands[0]))


def _cast(p: Printed, op: tensor.CastOp) -> None:
    indices = places(tensor_type(op.results[0]).get_num_dims())
    p.statement(op.results[0], p.read(op.source, indices))


def _pad(p: Printed, op: tensor.PadOp) -> None:
    low, shape = ints(op.static_low), tensor_type(op.source).get_shape()
    indices = places(len(shape))
    end = op.region.block.last_op
    assert end is not None
    inside = [f"{i} >= {a} && {i} < {a + s}" for i, a, s in zip(indices, low, shape, strict=True)]
    read = p.read(op.source, [f"{i} - {a}" for i, a in zip(indices, low, strict=True)])
    p.statement(op.results[0], f"{' && '.join(inside)} ? {read} : {_outside(end.operands[0])}")


def _reshape(p: Printed, op: tensor.CollapseShapeOp | tensor.ExpandShapeOp) -> None:
    shape = tensor_type(op.results[0]).get_shape()
    flat = "0"
    for i, s in zip(places(len(shape)), shape, strict=True):
        flat = f"({flat} * {s} + {i})" if flat != "0" else i
    source, step, indices = tensor_type(op.operands[0]).get_shape(), 1, list[str]()
    for d in range(len(source) - 1, -1, -1):
        place = flat if step == 1 else f"{flat} / {step}"
        indices.insert(0, f"{place}" if d == 0 else f"({place}) % {source[d]}")
        step *= source[d]
    p.statement(op.results[0], p.read(op.operands[0], indices))


def _extract(p: Printed, op: tensor.ExtractSliceOp) -> None:
    offsets, steps = ints(op.static_offsets), ints(op.static_strides)
    if len(op.operands) > 1 or len(offsets) != tensor_type(op.results[0]).get_num_dims():
        raise refused(op, "where it reads is not known, or dimensions go")
    read = [f"{a} + {s} * i{d}" for d, (a, s) in enumerate(zip(offsets, steps, strict=True))]
    p.statement(op.results[0], p.read(op.source, read))


def _insert(p: Printed, op: tensor.InsertSliceOp) -> None:
    offsets, steps = ints(op.static_offsets), ints(op.static_strides)
    sizes = tensor_type(op.source).get_shape()
    if len(op.operands) > 2 or len(offsets) != len(sizes) or any(s < 1 for s in steps):
        raise refused(op, "where it writes is not known, or backwards")
    inside: list[str] = []
    for d, (a, s, n) in enumerate(zip(offsets, steps, sizes, strict=True)):
        inside.append(f"i{d} >= {a} && i{d} <= {a + s * (n - 1)} && (i{d} - {a}) % {s} == 0")
    read = [f"(i{d} - {a}) / {s}" for d, (a, s) in enumerate(zip(offsets, steps, strict=True))]
    other = p.read(op.dest, places(len(sizes)))
    p.statement(op.results[0], f"{' && '.join(inside)} ? {p.read(op.source, read)} : {other}")


def _concat(p: Printed, op: tensor.ConcatOp) -> None:
    axis, start = op.dim.value.data, 0
    text = ""
    for n, value in enumerate(op.operands):
        indices = places(tensor_type(op.results[0]).get_num_dims())
        indices[axis] = f"i{axis} - {start}"
        start += tensor_type(value).get_shape()[axis]
        read = p.read(value, indices)
        last = n == len(op.operands) - 1
        text += read if last else f"i{axis} < {start} ? {read} : "
    p.statement(op.results[0], text)


def _gather(p: Printed, op: te.GatherOp) -> None:
    axis = op.axis.value.data
    rank = tensor_type(op.indices).get_num_dims()
    every = places(tensor_type(op.y).get_num_dims())
    picked = p.read(op.indices, every[axis : axis + rank])
    p.statement(op.y, p.read(op.data, [*every[:axis], picked, *every[axis + rank :]]))


def _gather_elements(p: Printed, op: te.GatherElementsOp) -> None:
    every = places(tensor_type(op.y).get_num_dims())
    indices = list(every)
    indices[op.axis.value.data] = p.read(op.indices, every)
    p.statement(op.y, p.read(op.data, indices))


_RULES: dict[type[Operation], Callable[..., None]] = {
    linalg_ops.GenericOp: _generic,
    linalg_ops.FillOp: _fill,
    te.RowwiseOp: _rowwise,
    tensor.PadOp: _pad,
    tensor.CollapseShapeOp: _reshape,
    tensor.ExpandShapeOp: _reshape,
    tensor.ExtractSliceOp: _extract,
    tensor.InsertSliceOp: _insert,
    tensor.ConcatOp: _concat,
    te.GatherOp: _gather,
    te.GatherElementsOp: _gather_elements,
    tensor.SplatOp: _fill,
    tensor.CastOp: _cast,
    **attention_to_expression.RULES,
    **rows_to_expression.RULES,
}

_WALK = "how many nodes a row meets in a tree hangs on the row"
_STORED = "how many elements a row has is known when it is read"
NOT_EXPRESSIBLE: dict[type[Operation], str] = {
    te.CsrDenseOp: _STORED,
    te.CsrMatmulOp: _STORED,
    te.CsrReduceOp: _STORED,
    te.ForestOp: _WALK,
    te.GemvtOp: "parts of its rows may have different numbers of them",
    te.HeapForestOp: _WALK,
    te.NibbleMatmulOp: "two integers of its matrix are one byte",
    te.PackedForestOp: _WALK,
    te.PerfectForestOp: _WALK,
    te.PackOp: "it is a layout of a factor for tensor cores, in 16-bit terms",
    te.PrepackedOp: "it is a layout of a factor for tensor cores, in 16-bit terms",
    tensor.DimOp: "extents are known in the language",
    tensor.EmptyOp: "its elements have no value",
}
"""Ops that no expression says, and why."""
