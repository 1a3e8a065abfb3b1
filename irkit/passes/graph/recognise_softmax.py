"""`recognise-softmax`: differences from the largest, exponentials and their quotients as one op."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, f32, f64, i64
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from irkit.dialects import graph
from irkit.dialects.types import DYNAMIC, ints, tensor_type
from irkit.passes.gpu import gpu_of
from irkit.rewriting import Rule, rewrite


class Apart(Exception):
    """Why a quotient is no softmax."""


def _reduced(value: SSAValue, kind: str) -> tuple[SSAValue, int]:
    """What `value` is the sum or maximum of, along which dimension, which stays as 1. Raises Apart."""
    op = value.owner
    if isinstance(op, graph.ReshapeOp):
        op = op.x.owner
    if not isinstance(op, graph.ReduceOp) or op.kind.data != kind:
        raise Apart(f"there is no {kind} where one is looked for")
    axes, shape = ints(op.axes), tensor_type(op.x).get_shape()
    if len(axes) != 1:
        raise Apart(f"its {kind} is not along one dimension")
    (axis,) = axes
    if shape[axis] in (0, DYNAMIC):
        raise Apart("its rows are of no known length, or of none")
    if tensor_type(value).get_shape() != (*shape[:axis], 1, *shape[axis + 1 :]):
        raise Apart(f"the {kind}'s dimensions are not those of what it is the {kind} of")
    return op.x, axis


def _read_by(value: SSAValue, users: set[Operation | None], what: str) -> None:
    if any(use.operation not in users for use in value.uses):
        raise Apart(f"something else reads the {what}")


def softmax(op: graph.DivOp) -> tuple[SSAValue, int]:
    """What a quotient is the softmax of, and along which dimension. Raises Apart."""
    power = op.lhs.owner
    if not isinstance(power, graph.ExpOp):
        raise Apart("it divides no exponentials")
    summed, axis = _reduced(op.rhs, "sum")
    if summed is not op.lhs:
        raise Apart("it does not divide by the sum of what it divides")
    total = op.rhs.owner
    inner = total.x.owner if isinstance(total, graph.ReshapeOp) else total
    assert isinstance(inner, Operation)
    _read_by(op.lhs, {op, inner}, "exponentials")
    _read_by(op.rhs, {op}, "sum")
    minus = power.x.owner
    if not isinstance(minus, graph.SubOp) or minus.lhs.type != minus.results[0].type:
        raise Apart("its exponents are not what is left of a tensor without its largest elements")
    x, along = _reduced(minus.rhs, "max")
    if x is not minus.lhs or along != axis:
        raise Apart("it does not take away the largest elements of the same rows")
    _read_by(minus.results[0], {power}, "differences")
    return x, axis


def _of_rows(x: SSAValue, axis: int) -> bool:
    t = tensor_type(x)
    return axis == t.get_num_dims() - 1 and t.element_type in (f32, f64)


@dataclass
class RecogniseQuotient(Rule):
    """e / sum(e) with e = exp(x - max(x)) = softmax(x)"""

    rows: bool

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.DivOp, rewriter: PatternRewriter, /):
        try:
            x, axis = softmax(op)
            if self.rows and not _of_rows(x, axis):
                raise Apart("it is not one of rows of float32 or float64")
        except Apart as reason:
            return self.no_match(op, "{}", reason)
        made = graph.SoftmaxOp.make([x], {"axis": IntegerAttr(axis, i64)})
        rewriter.replace(op, [made], [made.y])


@dataclass(frozen=True)
class RecogniseSoftmax(ModulePass):
    """Make the ops of a written-out softmax along one dimension one `graph.softmax`.

    The largest element of each row is taken away, as is done everywhere lest exponentials overflow; the
    exponentials are divided by their sum. Nothing else may read the differences, the exponentials or the sum.
    It runs before a function is differentiated too: the derivative of a softmax hangs on its result alone.
    `device` is the vDevice that is planned for: for a GPU they stay, as elements and sums along rows become
    one op there (`fuse-rows`). With `rows` also those stay that are not along the last dimension, or not of
    float32 or float64.

    Numeric risk: sums are in another order, and a quotient may be a product with a reciprocal.

    ```mlir
    %0 = graph.reduce %x {kind = "max", axes = array<i64: 1>, keepdims = true}
    %1 = graph.sub %x, %0
    %2 = graph.exp %1
    %3 = graph.reduce %2 {kind = "sum", axes = array<i64: 1>, keepdims = true}
    %4 = graph.div %2, %3
    ```
    becomes
    ```mlir
    %4 = graph.softmax %x {axis = 1 : i64}
    ```
    """

    name = "recognise-softmax"
    device: str = ""
    rows: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if gpu_of(self.device) is None:
            rewrite(op, [RecogniseQuotient(self.rows)])
