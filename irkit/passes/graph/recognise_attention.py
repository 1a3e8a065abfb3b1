"""`recognise-attention`: products, scale, mask and softmax of an attention as one op."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp, bf16, f16, f32, f64, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from irkit.context import weights_of
from irkit.dialects import graph
from irkit.dialects.constants import constant, constant_array
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.precision import Precision, inherit, precision_of, set_precision
from irkit.dialects.types import int_array, is_float, numpy_dtype, tensor_type
from irkit.passes.graph.attention_masks import Masks
from irkit.rewriting import Rule, rewrite
from irkit.weights import Array, WeightStore


class Apart(Exception):
    """Why what stands before a product is no attention."""


def _alone(value: SSAValue, what: str) -> None:
    if len(list(value.uses)) != 1:
        raise Apart(f"something else reads the {what}")


def _keeps_rows(op: graph.ReshapeOp) -> bool:
    have, want = (tensor_type(v).get_shape() for v in (op.x, op.y))
    return min(len(have), len(want)) >= 2 and have[-2:] == want[-2:]


def _widens(op: graph.CastOp) -> bool:
    have, want = (tensor_type(v).element_type for v in (op.x, op.y))
    return is_float(have) and numpy_dtype(have).itemsize <= numpy_dtype(want).itemsize


def _unrounded(value: SSAValue) -> SSAValue:
    """What is rounded to bfloat16 and widened again to give `value`; `value` itself where nothing is."""
    op = value.owner
    if not isinstance(op, graph.CastOp) or tensor_type(op.x).element_type != bf16:
        return value
    narrow = op.x.owner
    if not isinstance(narrow, graph.CastOp) or narrow.x.type != value.type:
        return value
    return narrow.x


def _held_in(value: SSAValue) -> Attribute:
    """The narrowest float that `value` is known to be of."""
    op = value.owner
    while isinstance(op, graph.ReshapeOp | graph.TransposeOp):
        value, op = op.operands[0], op.operands[0].owner
    source = op.x if isinstance(op, graph.CastOp) and _widens(op) else value
    return tensor_type(source).element_type


_ROUNDED: dict[Attribute, Precision] = {bf16: Precision.BF16, f16: Precision.F16}


@dataclass(frozen=True)
class _Guard:
    """Rows of weights are zero where `condition` is `zero`: in ONNX's Attention, those that see no key."""

    condition: SSAValue
    zero: bool

    def over(self, emit: _Builder, y: SSAValue) -> SSAValue:
        """`y` with zeros in the same rows, since weights of zero make a sum of zero."""
        dtype = numpy_dtype(tensor_type(y).element_type)
        zeros = emit(np.zeros((), dtype))
        chosen = (zeros, y) if self.zero else (y, zeros)
        return emit(graph.WhereOp, [self.condition, *chosen])


def _unguarded(value: SSAValue, weights: WeightStore) -> tuple[SSAValue, _Guard | None]:
    """The weights behind a choice between them and zero, row by row. Raises Apart."""
    op = value.owner
    if not isinstance(op, graph.WhereOp):
        return value, None
    condition = constant_array(op.condition, weights)
    if condition is not None and (condition.all() or not condition.any()):
        # Each row is known to see a key: it never chooses otherwise.
        chosen, guard = op.x if condition.all() else op.y, None
    else:
        chosen, guard = _of_rows(op, weights)
    if chosen.type != value.type:
        raise Apart("the weights are a constant")
    _alone(value, "weights")
    return chosen, guard


def _of_rows(op: graph.WhereOp, weights: WeightStore) -> tuple[SSAValue, _Guard]:
    shape = tensor_type(op.condition).get_shape()
    if shape and shape[-1] != 1:
        raise Apart("weights are chosen key by key")
    for zeros, chosen, zero in ((op.x, op.y, True), (op.y, op.x, False)):
        if _number(zeros, weights) == 0:
            return chosen, _Guard(op.condition, zero)
    raise Apart("rows of weights are replaced by what is not zero")


def _softmax_of(value: SSAValue, weights: WeightStore) -> graph.SoftmaxOp:
    """The softmax that gives the weights of a product, through casts and reshapes. Raises Apart."""
    while isinstance(value.owner, graph.CastOp | graph.ReshapeOp):
        op = value.owner
        _alone(value, "weights")
        if isinstance(op, graph.ReshapeOp) and not _keeps_rows(op):
            raise Apart("a reshape of the weights that mixes rows or keys")
        value = op.x
    op = value.owner
    if not isinstance(op, graph.SoftmaxOp):
        raise Apart("its first operand is no softmax")
    if op.axis.value.data != tensor_type(op.y).get_num_dims() - 1:
        raise Apart("the softmax is not along the keys")
    _alone(value, "weights")
    return op


def unscaled(value: SSAValue, weights: WeightStore) -> tuple[SSAValue, float]:
    """What is multiplied or divided by constants of one element to give `value`, and the factor; that the
    product is rounded to bfloat16 is left out with it."""
    factor = 1.0
    while isinstance(_unrounded(value).owner, graph.MulOp | graph.DivOp):
        op = _unrounded(value).owner
        assert isinstance(op, graph.MulOp | graph.DivOp)
        divided = isinstance(op, graph.DivOp)
        pairs = [(op.lhs, op.rhs)] if divided else [(op.lhs, op.rhs), (op.rhs, op.lhs)]
        known = [(x, n) for x, other in pairs if (n := _number(other, weights)) is not None]
        # A factor that is 0, infinite or NaN means more than a factor.
        found = [
            (x, n) for x, n in known if x.type == op.results[0].type and n != 0 and np.isfinite(n)
        ]
        if not found:
            break
        value, number = found[0]
        factor = factor / number if divided else factor * number
    return value, factor


def _number(value: SSAValue, weights: WeightStore) -> float | None:
    array = constant_array(value, weights)
    return float(array.reshape(())) if array is not None and array.size == 1 else None


class _Scores:
    """The scores, followed from the softmax back to the product of queries and keys."""

    def __init__(self, softmax: graph.SoftmaxOp, weights: WeightStore) -> None:
        self.weights, self.scale = weights, 1.0
        self.masks = Masks(weights, [tensor_type(softmax.x).get_shape()])
        self.product = self._follow(softmax.x)

    def _follow(self, value: SSAValue) -> graph.MatmulOp:
        """Raises Apart."""
        while True:
            _alone(value, "scores")
            op = value.owner
            if isinstance(op, graph.MatmulOp):
                return op
            value = self._before(op, value)

    def _before(self, op: object, value: SSAValue) -> SSAValue:
        """What the scores were before an op. Raises Apart."""
        if isinstance(op, graph.MulOp | graph.DivOp):
            return self._scaled(value)
        if isinstance(op, graph.AddOp):
            return self._added(op)
        if isinstance(op, graph.WhereOp):
            return self._chosen(op)
        if isinstance(op, graph.CastOp) and (exact := _unrounded(value)) is not value:
            _alone(op.x, "scores")
            return exact
        if isinstance(op, graph.CastOp) and _widens(op):
            return op.x
        if isinstance(op, graph.ReshapeOp) and _keeps_rows(op):
            self._apart(self.masks.reshape(tensor_type(op.x).get_shape()))
            return op.x
        raise Apart("the scores are no product of queries and keys, scaled and masked")

    def _apart(self, reason: str | None) -> None:
        if reason is not None:
            raise Apart(reason)

    def _scaled(self, value: SSAValue) -> SSAValue:
        x, factor = unscaled(value, self.weights)
        if x is value:
            raise Apart("the scores are multiplied by what is no constant of one element")
        if self._masked_before(x):
            raise Apart("what is scaled is masked already")
        self.scale *= factor
        return x

    def _masked_before(self, value: SSAValue) -> bool:
        while isinstance(value.owner, graph.CastOp | graph.ReshapeOp | graph.MulOp | graph.DivOp):
            value = value.owner.operands[0]
        return isinstance(value.owner, graph.AddOp | graph.WhereOp)

    def _added(self, op: graph.AddOp) -> SSAValue:
        for x, mask in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            if x.type == op.y.type and _leads_to_product(x):
                self.masks.add(mask)
                return x
        raise Apart("a sum without scores")

    def _chosen(self, op: graph.WhereOp) -> SSAValue:
        for x, other, seen in ((op.x, op.y, True), (op.y, op.x, False)):
            hidden = _number(other, self.weights)
            if hidden is not None and x.type == op.z.type:
                self._apart(self.masks.choose(op.condition, hidden, seen))
                return x
        raise Apart("scores are replaced by what is no constant of one element")


_BETWEEN = (graph.MulOp, graph.DivOp, graph.AddOp, graph.WhereOp, graph.CastOp, graph.ReshapeOp)


def _leads_to_product(value: SSAValue) -> bool:
    """Whether a product is behind what may stand between it and the softmax."""
    pending, seen = [value], {value}
    while pending:
        inner = pending.pop()
        op = inner.owner
        if isinstance(op, graph.MatmulOp):
            return True
        if not isinstance(op, _BETWEEN):
            continue
        if len(op.operands) == 1 or any(v.type == inner.type for v in op.operands):
            further = set(op.operands) - seen
            seen |= further
            pending += further
    return False


class _Builder:
    """Emits what replaces a product, in order."""

    def __init__(self, weights: WeightStore) -> None:
        self.weights = weights
        self.made: list[Operation] = []

    def __call__(
        self, what: type[GraphOp] | Array, operands: Sequence[SSAValue] = (), **props: Attribute
    ) -> SSAValue:
        """A constant, or an op's result."""
        op = (
            constant(what, self.weights)
            if isinstance(what, np.ndarray)
            else what.make(operands, props)
        )
        self.made.append(op)
        return op.results[0]

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """`value` in another shape, if it is another."""
        if tuple(shape) == tensor_type(value).get_shape():
            return value
        return self(graph.ReshapeOp, [value], shape=int_array(shape))

    def cast(self, value: SSAValue, element: Attribute) -> SSAValue:
        """`value` of other elements, if they are others."""
        if tensor_type(value).element_type == element:
            return value
        return self(graph.CastOp, [value], to=element)

    def swapped(self, value: SSAValue) -> SSAValue:
        """The last two dimensions exchanged."""
        rank = tensor_type(value).get_num_dims()
        order = int_array([*range(rank - 2), rank - 1, rank - 2])
        return self(graph.TransposeOp, [value], permutation=order)

    def led(self, value: SSAValue, have: Sequence[int], want: Sequence[int]) -> SSAValue:
        """An operand of scores with leading dimensions `have`, reshaped to `want`. Raises Apart."""
        shape = tensor_type(value).get_shape()
        if tuple(have) == tuple(want):
            return self.reshape(value, [*(1,) * (len(want) + 2 - len(shape)), *shape])
        if shape[:-2] != tuple(have):
            raise Apart("an operand that broadcasts to scores which are reshaped")
        return self.reshape(value, [*want, *shape[-2:]])


@dataclass
class Recognise(Rule):
    """matmul(softmax(scale · matmul(q, kᵀ) + mask), v) = attention(q, k, v, mask)"""

    weights: WeightStore

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.MatmulOp, rewriter: PatternRewriter, /):
        try:
            built = self._built(op)
        except Apart as reason:
            return self.no_match(op, "{}", reason)
        rewriter.replace(op, built.made, [built.made[-1].results[0]])

    def _built(self, op: graph.MatmulOp) -> _Builder:
        """The ops that give the same. Raises Apart."""
        behind, guard = _unguarded(op.a, self.weights)
        softmax = _softmax_of(behind, self.weights)
        scores = _Scores(softmax, self.weights)
        if precision_of(scores.product) != precision_of(op):
            raise Apart("its two products are of two precisions")
        query, first = unscaled(scores.product.a, self.weights)
        key, second = unscaled(scores.product.b, self.weights)
        if all(constant_array(v, self.weights) is not None for v in (key, op.b)):
            raise Apart("keys and values are weights")
        emit, element = _Builder(self.weights), tensor_type(softmax.y).element_type
        inner = tensor_type(scores.product.y).get_shape()[:-2]
        lead = tensor_type(softmax.y).get_shape()[:-2]
        outer = tensor_type(op.y).get_shape()[:-2]
        operands = [
            emit.led(query, inner, lead),
            emit.led(emit.swapped(key), inner, lead),
            emit.led(op.b, outer, lead),
        ]
        operands = [emit.cast(v, element) for v in operands]
        mask, causal = scores.masks.built(emit, element)
        props: dict[str, Attribute] = {"scale": FloatAttr(scores.scale * first * second, f64)}
        if causal is not None:
            props["causal"] = IntegerAttr(causal, i64)
        given = operands if mask is None else [*operands, mask]
        y = emit(graph.AttentionOp, given, **props)
        if element == f32:
            inherit(emit.made[-1], op)
            held = {_held_in(v) for v in (behind, query, key, op.b)}
            # Weights are rounded to what all factors are held in, so the products may be of that.
            rounded = _ROUNDED.get(held.pop()) if len(held) == 1 else None
            if rounded is not None and precision_of(op) is Precision.FLOAT32:
                set_precision(emit.made[-1], rounded)
        y = emit.cast(y, tensor_type(op.y).element_type)
        y = emit.reshape(y, tensor_type(op.y).get_shape())
        if guard is not None:
            guard.over(emit, y)
        return emit


@dataclass(frozen=True)
class RecogniseAttention(ModulePass):
    """Make the ops of a written-out attention one `graph.attention`.

    Two products with a softmax between them, as exporters write them: scores scaled behind the product or
    both of its operands before it, by constants; masks added, or put in with a choice; casts to wider floats
    and reshapes of leading dimensions on the way. A constant mask that hides what is ahead becomes
    `causal`. Nothing else may read scores or weights, and keys and values are not both constants. Where rows
    of weights are made zero, those of the result are.

    Numeric risk: sums are in another order, and the scale is applied to the queries. That scaled factors and
    scores are rounded to bfloat16 is left out; where all factors are held in 16-bit floats, weights may be
    rounded to these before they are divided by their sum, and not behind (`irkit.precision`). Added numbers
    of -1e30 or less count as -inf where each row sees a key. What the values of hidden keys are, if NaN or
    infinite, need not show any more.

    ```mlir
    %0 = graph.transpose %k {permutation = array<i64: 0, 2, 1>}
    %1 = graph.matmul %q, %0
    %2 = graph.mul %1, %scale
    %3 = graph.add %2, %mask
    %4 = graph.softmax %3 {axis = 2 : i64}
    %5 = graph.matmul %4, %v
    ```
    becomes
    ```mlir
    %5 = graph.attention %q, %k, %v, %mask {scale = 1.25e-1 : f64}
    ```
    """

    name = "recognise-attention"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, [Recognise(weights_of(ctx))])
