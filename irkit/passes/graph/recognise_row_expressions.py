"""`recognise-row-expressions`: statements that normalise rows, softmax and layer norm, as one op."""

from __future__ import annotations

import math
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import BoolAttr, FloatAttr, IntegerAttr, ModuleOp, f64, i64
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from irkit.dialects import graph
from irkit.dialects.types import is_float, tensor_type
from irkit.expressions.syntax import Apply, Expr, Name, Number, Read
from irkit.rewriting import Rule, rewrite


class Apart(Exception):
    """Why statements are not the normalisation that is looked for."""


@dataclass(frozen=True)
class _Rows:
    """A statement over a whole tensor of rows: its value, and what its reads are, by element (`each`) or by
    row, as (tensor, whether by element)."""

    op: graph.ExpressionOp
    value: Expr
    reads: dict[Read, tuple[SSAValue, bool]]

    def of(self, expr: Expr, each: bool) -> SSAValue:
        """The tensor that is read so. Raises Apart."""
        found = self.reads.get(expr) if isinstance(expr, Read) else None
        if found is None or found[1] is not each:
            raise Apart(f"'{self.op.text.data}' reads other elements")
        return found[0]


def _statement(value: SSAValue, operator: str) -> _Rows:
    """The statement that gives a value, by element of a row or, with an operator, by row. Raises Apart."""
    op = value.owner
    if not isinstance(op, graph.ExpressionOp):
        raise Apart("an operand is no statement")
    if op.schedule is not None and not op.schedule.schedule.by_rule:
        raise Apart("a statement has a schedule of its own")
    step = op.step
    statement, loops = step.statement, step.domain.loops
    names = [loop.name for loop in loops]
    if statement.operator != operator or not statement.fresh or step.domain.checked:
        raise Apart(f"'{op.text.data}' is another statement")
    if len(step.domain.reduced) != bool(operator) or any(loop.low for loop in loops):
        raise Apart(f"'{op.text.data}' runs over parts of rows")
    values = dict(zip(step.operands, op.operands, strict=True))
    found: dict[Read, tuple[SSAValue, bool]] = {}
    for read in _reads(statement.value):
        written = [e.name if isinstance(e, Name) else "" for e in read.indices]
        tensor, each = values[read.tensor], written == names
        sizes = [loop.size for loop in loops][: len(written)]
        if not each and written != names[:-1]:
            raise Apart(f"'{op.text.data}' reads other elements")
        if sizes != list(tensor_type(tensor).get_shape()):
            raise Apart(f"'{op.text.data}' reads parts of rows")
        found[read] = (tensor, each)
    return _Rows(op, statement.value, found)


def _reads(expr: Expr) -> list[Read]:
    if isinstance(expr, Read):
        return [expr]
    return [r for a in expr.arguments for r in _reads(a)] if isinstance(expr, Apply) else []


def _pair(expr: Expr, function: str) -> tuple[Expr, Expr]:
    """The two arguments of a function. Raises Apart."""
    if isinstance(expr, Apply) and expr.function == function and len(expr.arguments) == 2:
        return expr.arguments[0], expr.arguments[1]
    raise Apart(f"no '{function}' of two values")


def _only(expr: Expr, function: str) -> Expr:
    if isinstance(expr, Apply) and expr.function == function and len(expr.arguments) == 1:
        return expr.arguments[0]
    raise Apart(f"no '{function}'")


def _read_by(value: SSAValue, *users: Operation) -> None:
    """Nothing else reads a value. Raises Apart."""
    if any(use.operation not in users for use in value.uses):
        raise Apart("something else reads what is computed on the way")


def _mean(expr: Expr, rows: _Rows) -> SSAValue:
    """What is divided by the length of a row. Raises Apart."""
    total, count = _pair(expr, "/")
    length = tensor_type(rows.op.results[0]).get_shape()[-1]
    if not isinstance(count, Number) or count.value != length:
        raise Apart("a sum is not divided by the length of a row")
    return rows.of(total, each=False)


def softmax(last: _Rows) -> SSAValue:
    """What `last` is the softmax of. Raises Apart."""
    top, bottom = _pair(last.value, "/")
    e, s = last.of(top, each=True), last.of(bottom, each=False)
    total, raised = _statement(s, "+"), _statement(e, "")
    if total.of(total.value, each=True) is not e:
        raise Apart("the sum is of something else")
    left, right = _pair(_only(raised.value, "exp"), "-")
    x, m = raised.of(left, each=True), raised.of(right, each=False)
    largest = _statement(m, "max")
    if largest.of(largest.value, each=True) is not x:
        raise Apart("what is taken away is another row's largest")
    _read_by(e, last.op, total.op)
    _read_by(s, last.op)
    return x


def layer_norm(last: _Rows) -> tuple[SSAValue, float]:
    """What `last` is the normalisation of, and what is added to the variance. Raises Apart."""
    top, bottom = _pair(last.value, "/")
    d, (first, other) = last.of(top, each=True), _pair(_only(bottom, "sqrt"), "+")
    spread, added = (other, first) if isinstance(first, Number) else (first, other)
    if not isinstance(added, Number) or not (math.isfinite(added.value) and added.value >= 0):
        raise Apart("what is added to the variance is no number")
    v = _mean(spread, last)
    squares, minus = _statement(v, "+"), _statement(d, "")
    a, b = _pair(squares.value, "*")
    if squares.of(a, each=True) is not d or squares.of(b, each=True) is not d:
        raise Apart("the squares are of something else")
    left, right = _pair(minus.value, "-")
    x = minus.of(left, each=True)
    total = _statement(_mean(right, minus), "+")
    if total.of(total.value, each=True) is not x:
        raise Apart("what is taken away is another row's mean")
    _read_by(d, last.op, squares.op)
    _read_by(v, last.op)
    return x, float(added.value)


@dataclass
class Recognise(Rule):
    """e / sum(e) with e = exp(x - max(x)) = softmax(x); d / sqrt(mean(d * d) + c) with d = x - mean(x) =
    layer_norm(x)"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.ExpressionOp, rewriter: PatternRewriter, /):
        element = tensor_type(op.results[0]).element_type
        if not is_float(element) or len(op.operands) != 2:
            return self.no_match(op, "it is no quotient of floats")
        try:
            made = self._softmax(op)
        except Apart as reason:
            try:
                made = self._layer_norm(op)
            except Apart as other:
                return self.no_match(op, "no softmax: {}; no layer norm: {}", reason, other)
        rewriter.replace(op, [made], [made.results[0]])

    def _softmax(self, op: graph.ExpressionOp) -> graph.SoftmaxOp:
        x = softmax(_statement(op.results[0], ""))
        axis = len(tensor_type(x).get_shape()) - 1
        return graph.SoftmaxOp.make([x], {"axis": IntegerAttr(axis, i64)})

    def _layer_norm(self, op: graph.ExpressionOp) -> graph.LayerNormOp:
        x, added = layer_norm(_statement(op.results[0], ""))
        props = {"epsilon": FloatAttr(added, f64), "centred": BoolAttr.from_bool(True)}
        return graph.LayerNormOp.make([x], props)


@dataclass(frozen=True)
class RecogniseRowExpressions(ModulePass):
    """Make the statements of a softmax, or of a layer normalisation, along the last index one op, which one
    rOperator computes row by row.

    Nothing else may read what is computed on the way, but for the largest elements and the means, and no
    statement has steps of its own. Where they are left to irkit's rule (`rule`), this is it: between them
    values stay in registers or in the nearest cache.

    Numeric risk: sums are in another order, and a quotient may be a product with a reciprocal.

    ```mlir
    %m = graph.expression %x {text = "M(i) max=! X(i, k)"}
    %e = graph.expression %x, %m {text = "E(i, k) = exp(X(i, k) - M(i))"}
    %s = graph.expression %e {text = "S(i) +=! E(i, k)"}
    %y = graph.expression %e, %s {text = "O(i, k) = E(i, k) / S(i)"}
    ```
    becomes
    ```mlir
    %y = graph.softmax %x {axis = 1 : i64}
    ```
    """

    name = "recognise-row-expressions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, [Recognise()])
