"""`recognise-layer-norm`: mean, squares and root of a normalisation as one op."""

from __future__ import annotations

import math
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import BoolAttr, FloatAttr, ModuleOp, f64
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from irkit.context import weights_of
from irkit.dialects import graph
from irkit.dialects.constants import constant_array
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.types import DYNAMIC, int_array, ints, tensor_type
from irkit.rewriting import Rule, rewrite
from irkit.weights import WeightStore


class Apart(Exception):
    """Why a quotient is no normalisation."""


@dataclass(frozen=True)
class Found:
    """A normalisation of `x` over its dimensions from `first` on."""

    x: SSAValue
    first: int
    epsilon: float
    centred: bool


@dataclass(frozen=True)
class _Mean:
    """The mean of `x` over its dimensions from `first` on, which stay as 1."""

    x: SSAValue
    first: int

    @staticmethod
    def of(value: SSAValue, weights: WeightStore) -> _Mean:
        """What `value` is the mean of. Raises Apart."""
        inner, count = _divided(value, weights)
        op = inner.owner
        if isinstance(op, graph.ReshapeOp):
            op = op.x.owner
        if not isinstance(op, graph.ReduceOp) or op.kind.data != (
            "mean" if count is None else "sum"
        ):
            raise Apart("it divides by the root of no mean")
        axes, shape = sorted(ints(op.axes)), tensor_type(op.x).get_shape()
        first = len(shape) - len(axes)
        if axes != list(range(first, len(shape))) or first == len(shape):
            raise Apart(f"its mean is over dimensions {axes}, which are not the last ones")
        if DYNAMIC in shape[first:]:
            raise Apart("its rows are of no known length")
        if count not in (None, math.prod(shape[first:])):
            raise Apart("it divides a sum by another number than that of its terms")
        if tensor_type(value).get_shape() != (*shape[:first], *(1,) * len(axes)):
            raise Apart("the mean's dimensions are not those of what it is the mean of")
        return _Mean(op.x, first)


def _alone(value: SSAValue, users: set[Operation]) -> bool:
    return all(use.operation in users for use in value.uses)


def _squared(value: SSAValue, weights: WeightStore) -> SSAValue:
    """What `value` is the square of. Raises Apart."""
    op = value.owner
    if isinstance(op, graph.MulOp) and op.lhs is op.rhs:
        return op.lhs
    if isinstance(op, graph.PowOp) and _number(op.rhs, weights) == 2 and op.lhs.type == value.type:
        return op.lhs
    raise Apart("it divides by the root of a mean of no squares")


def _number(value: SSAValue, weights: WeightStore) -> float | None:
    array = constant_array(value, weights)
    return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None


def _divided(value: SSAValue, weights: WeightStore) -> tuple[SSAValue, float | None]:
    """What is divided by a constant of one element to give `value`, and by which; `value` itself else."""
    op = value.owner
    number = _number(op.rhs, weights) if isinstance(op, graph.DivOp) else None
    if number is None or not isinstance(op, graph.DivOp) or op.lhs.type != value.type:
        return value, None
    return op.lhs, number


def _raised(value: SSAValue, weights: WeightStore) -> tuple[SSAValue, float]:
    """A mean and the constant that is added to it. Raises Apart."""
    op = value.owner
    if not isinstance(op, graph.AddOp):
        return value, 0.0
    for mean, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        epsilon = _number(other, weights)
        if epsilon is not None and mean.type == value.type:
            if not (math.isfinite(epsilon) and epsilon >= 0):
                raise Apart(f"{epsilon} is added to the mean of squares")
            return mean, epsilon
    raise Apart("what is added to the mean of squares is no constant of one element")


def found(d: SSAValue, deviation: SSAValue, op: Operation, weights: WeightStore) -> Found:
    """What `op`, d divided by a deviation, is a normalisation of. Raises Apart."""
    sqrt = deviation.owner
    if not isinstance(sqrt, graph.SqrtOp):
        raise Apart("it divides by no square root")
    value, epsilon = _raised(sqrt.x, weights)
    mean = _Mean.of(value, weights)
    if _squared(mean.x, weights) is not d:
        raise Apart("the squares are not those of what is divided")
    if len(list(deviation.uses)) != 1:
        raise Apart("something else reads the root")
    minus, square = d.owner, mean.x.owner
    assert isinstance(square, Operation)
    if (
        isinstance(minus, graph.SubOp)
        and _alone(d, {op, square})
        and _takes_mean(minus, mean, weights)
    ):
        return Found(minus.lhs, mean.first, epsilon, True)
    return Found(d, mean.first, epsilon, False)


def _takes_mean(minus: graph.SubOp, like: _Mean, weights: WeightStore) -> bool:
    """Whether a difference takes the mean away, over the same dimensions."""
    try:
        mean = _Mean.of(minus.rhs, weights)
    except Apart:
        return False
    return mean == _Mean(minus.lhs, like.first) and _alone(minus.rhs, {minus})


def _quotient(op: graph.DivOp | graph.MulOp, weights: WeightStore) -> tuple[SSAValue, SSAValue]:
    """What is divided, and by what: also by way of a reciprocal. Raises Apart."""
    if isinstance(op, graph.DivOp):
        return op.lhs, op.rhs
    for d, inverse in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        over = inverse.owner
        if isinstance(over, graph.DivOp) and _number(over.lhs, weights) == 1:
            if len(list(inverse.uses)) != 1:
                raise Apart("something else reads the reciprocal of the root")
            return d, over.rhs
    raise Apart("it multiplies by no reciprocal")


def _written(norm: Found) -> list[GraphOp]:
    """The ops that give it: rows of several dimensions are made one, and are several again behind."""
    shape = tensor_type(norm.x).get_shape()
    props = {"epsilon": FloatAttr(norm.epsilon, f64), "centred": BoolAttr.from_bool(norm.centred)}
    if norm.first == len(shape) - 1:
        return [graph.LayerNormOp.make([norm.x], props)]
    rows = int_array([*shape[: norm.first], math.prod(shape[norm.first :])])
    flat = graph.ReshapeOp.make([norm.x], {"shape": rows})
    made = graph.LayerNormOp.make([flat.results[0]], props)
    return [flat, made, graph.ReshapeOp.make([made.results[0]], {"shape": int_array(shape)})]


@dataclass
class Recognise(Rule):
    """d / sqrt(mean(d * d) + epsilon) = layer_norm(d); centred where d is x - mean(x)"""

    weights: WeightStore

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.DivOp | graph.MulOp, rewriter: PatternRewriter, /):
        try:
            d, deviation = _quotient(op, self.weights)
            norm = found(d, deviation, op, self.weights)
        except Apart as reason:
            return self.no_match(op, "{}", reason)
        made = _written(norm)
        rewriter.replace(op, made, [made[-1].results[0]])


@dataclass(frozen=True)
class RecogniseLayerNorm(ModulePass):
    """Make the ops of a written-out layer or root mean square normalisation one `graph.layer_norm`.

    What is divided by the root of the mean of its own squares, over the last dimensions, or multiplied by
    that root's reciprocal; a constant may be added before the root is taken. Where it is what is left of x
    without its mean, the normalisation is centred. A mean may be a sum divided by the number of its terms.
    Scale and bias stay, and are fused behind it later. Nothing else may read the root.

    Numeric risk: sums are in another order, and a quotient may be a product with a reciprocal.

    ```mlir
    %0 = graph.reduce %x {kind = "mean", axes = array<i64: 1>, keepdims = true}
    %1 = graph.sub %x, %0
    %2 = graph.mul %1, %1
    %3 = graph.reduce %2 {kind = "mean", axes = array<i64: 1>, keepdims = true}
    %4 = graph.add %3, %epsilon
    %5 = graph.sqrt %4
    %6 = graph.div %1, %5
    ```
    becomes
    ```mlir
    %6 = graph.layer_norm %x {epsilon = 1.0e-5 : f64, centred = true}
    ```
    """

    name = "recognise-layer-norm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, [Recognise(weights_of(ctx))])
