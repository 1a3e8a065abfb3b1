"""`quantise-products`: products of dequantised tensors in integers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32, i16, i32
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from irkit.context import weights_of
from irkit.dialects import graph
from irkit.dialects.constants import constant
from irkit.dialects.graph.base import GraphOp, product
from irkit.dialects.types import int_array, tensor_type
from irkit.passes.graph.byte_products import ByteProduct, NoBytes, centred
from irkit.passes.graph.quantised_values import (
    KnownValues,
    Quantised,
    is_centred_byte,
    quantised,
)
from irkit.rewriting import Rule, rewrite
from irkit.weights import Array

_LARGEST = 2**31 - 1
# What two float32 products of the same scales may be apart.
_SAME = 1e-6


class Apart(Exception):
    """Why a product stays one of floats."""


def _factor(value: SSAValue, known: KnownValues) -> Quantised:
    """Raises Apart."""
    found = quantised(value, known)
    if found is None:
        raise Apart("an operand is no dequantised tensor of known scale")
    if not is_centred_byte(found.integers, known):
        raise Apart("an operand is not of 8-bit integers")
    return found


def _outer(scale: Array, rank: int, axis: int, behind: int) -> Array:
    """A factor's scale, which may differ along `axis` of its `rank` dimensions alone, with `behind`
    dimensions behind that axis in the result. Raises Apart."""
    if scale.size == 1:
        return scale.reshape(())
    shape = (1,) * (rank - scale.ndim) + scale.shape
    if product(shape) != shape[axis]:
        raise Apart("a scale differs along what is summed over")
    return scale.reshape(-1, *(1,) * behind)


def _check_sums(terms: int, bias: Array | None = None) -> None:
    """Raises Apart where a sum of int32 might wrap, which one of floats does not."""
    most = 0 if bias is None else int(np.abs(bias.astype(np.int64)).max(initial=0))
    if terms * 255 * 255 + most > _LARGEST:
        raise Apart("a sum of so many products might not fit 32 bits")


@dataclass
class _Products(Rule):
    """What rules of the three products share."""

    known: KnownValues

    def replace(self, op: GraphOp, rewriter: PatternRewriter) -> None:
        """Raises nothing: what does not apply is a remark."""
        try:
            made = self._made(op)
        except Apart as reason:
            return self.no_match(op, "{}", reason)
        rewriter.replace(op, made, [made[-1].results[0]])

    def _made(self, op: GraphOp) -> list[Operation]:
        """Raises Apart."""
        raise NotImplementedError

    def bias(self, value: SSAValue | None, scale: Array) -> SSAValue | None:
        """The bias in integers of the product's scale; None where it is to be added behind."""
        found = None if value is None else quantised(value, self.known)
        if found is None:
            return None
        own, mine = found.scale.reshape(-1), scale.reshape(-1)
        if own.size not in (1, mine.size) and mine.size != 1:
            return None
        return found.integers if np.allclose(own, mine, rtol=_SAME, atol=0) else None

    def scaled(self, total: GraphOp, scale: Array, bias: SSAValue | None) -> list[Operation]:
        """The result: the sum times the scale, and a bias that is no part of the sum."""
        cast = graph.CastOp.make([total.results[0]], {"to": f32})
        factor = constant(np.asarray(scale, np.float32), self.known.weights)
        result = graph.MulOp.make([cast.y, factor.result])
        made: list[Operation] = [total, cast, factor, result]
        return made if bias is None else [*made, graph.AddOp.make([result.y, bias])]


@dataclass
class ConvOfQuantised(_Products):
    """conv(s·x, t·w, s·t·b) = s·t · conv(x, w, b), x, w and b of integers"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.ConvOp, rewriter: PatternRewriter, /):
        return self.replace(op, rewriter)

    def _made(self, op: GraphOp) -> list[Operation]:
        assert isinstance(op, graph.ConvOp)
        x, w = (_factor(v, self.known) for v in (op.x, op.w))
        shape = tensor_type(op.w).get_shape()
        if x.scale.size != 1:
            raise Apart("a scale differs along what is summed over")
        scale = x.scale.reshape(()) * _outer(w.scale, len(shape), 0, len(shape) - 2)
        bias = self.bias(op.b, scale)
        numbers = None if bias is None else self.known.of(bias)
        if numbers is None:
            bias = None
        _check_sums(product(shape[1:]), numbers)
        operands = [x.integers, w.integers, *([] if bias is None else [bias])]
        made: list[Operation] = []
        behind = op.b if bias is None else None
        if behind is not None:
            shaped = (tensor_type(behind).get_shape()[0], *(1,) * (len(shape) - 2))
            made = [graph.ReshapeOp.make([behind], {"shape": int_array(shaped)})]
            behind = made[0].results[0]
        return made + self.scaled(graph.ConvOp.make(operands, op.properties), scale, behind)


@dataclass
class GemmOfQuantised(_Products):
    """gemm(s·a, t·b, s·t·c) = s·t · gemm(a, b, c), a, b and c of integers"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.GemmOp, rewriter: PatternRewriter, /):
        return self.replace(op, rewriter)

    def _made(self, op: GraphOp) -> list[Operation]:
        assert isinstance(op, graph.GemmOp)
        if (op.alpha.value.data, op.beta.value.data) != (1, 1):
            raise Apart("alpha or beta is not 1")
        a, b = (_factor(v, self.known) for v in (op.a, op.b))
        rows, columns = int(bool(op.trans_a.value.data)), int(not op.trans_b.value.data)
        scale = _outer(a.scale, 2, rows, 1) * _outer(b.scale, 2, columns, 0)
        bias = self.bias(op.c, scale)
        numbers = None if bias is None else self.known.of(bias)
        if numbers is None:
            bias = None
        _check_sums(tensor_type(op.a).get_shape()[1 - rows], numbers)
        operands = [a.integers, b.integers, *([] if bias is None else [bias])]
        behind = op.c if bias is None else None
        return self.scaled(graph.GemmOp.make(operands, op.properties), scale, behind)


@dataclass
class MatmulOfQuantised(_Products):
    """matmul(s·a, t·b) = s·t · matmul(a, b), a and b of integers"""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.MatmulOp, rewriter: PatternRewriter, /):
        return self.replace(op, rewriter)

    def _made(self, op: GraphOp) -> list[Operation]:
        assert isinstance(op, graph.MatmulOp)
        a, b = (_factor(v, self.known) for v in (op.a, op.b))
        ranks = [tensor_type(v).get_num_dims() for v in (op.a, op.b)]
        first = _outer(a.scale, ranks[0], ranks[0] - 2, 1)
        scale = first * _outer(b.scale, ranks[1], ranks[1] - 1, 0)
        _check_sums(tensor_type(op.a).get_shape()[-1])
        return self.scaled(graph.MatmulOp.make([a.integers, b.integers]), scale, None)


@dataclass
class QuotientOfScaled(Rule):
    """(s · sum) / t = (s / t) · sum, in front of a rounding"""

    known: KnownValues

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.DivOp, rewriter: PatternRewriter, /):
        if not all(isinstance(use.operation, graph.RoundOp) for use in op.y.uses):
            return self.no_match(op, "the quotient is not only rounded")
        found = quantised(op.lhs, self.known)
        if found is None or not _is_product(found.integers.owner):
            return self.no_match(op, "what is divided is no scaled product of integers")
        by = self.known.of(op.rhs)
        if by is None or op.lhs.type != op.y.type:
            return self.no_match(op, "the divisor is no constant")
        cast = graph.CastOp.make([found.integers], {"to": f32})
        factor = constant(np.asarray(found.scale / by, np.float32), self.known.weights)
        rewriter.replace(op, [cast, factor, graph.MulOp.make([cast.y, factor.result])])


@dataclass
class FactorsOfBytes(Rule):
    """product(a - s, b - t) = product(a, b) less corrections, a and b of bytes; or both by way of i16"""

    known: KnownValues

    @op_type_rewrite_pattern
    def match_and_rewrite(
        self, op: graph.ConvOp | graph.GemmOp | graph.MatmulOp, rewriter: PatternRewriter, /
    ):
        if tensor_type(op.y).element_type != i32:
            return self.no_match(op, "it is no product in i32")
        if not all(is_centred_byte(v, self.known) for v in op.operands[:2]):
            return self.no_match(op, "an operand is not of 8-bit integers")
        if not any(isinstance(v.owner, graph.SubOp) for v in op.operands[:2]):
            return self.no_match(op, "its factors are bytes as they lie")
        try:
            return rewriter.replace(
                op, made := ByteProduct(self.known).of(op), [made[-1].results[0]]
            )
        except NoBytes as reason:
            self.no_match(op, "{}", reason)
        made: list[Operation] = []
        for value in op.operands[:2]:
            made.append(graph.CastOp.make([value], {"to": i16}))
            made.append(graph.CastOp.make([made[-1].results[0]], {"to": i32}))
        factors = [made[1].results[0], made[3].results[0]]
        product = type(op).make([*factors, *op.operands[2:]], op.properties)
        rewriter.replace(op, [*made, product], [product.results[0]])


@dataclass
class LargestOfQuantised(Rule):
    """max_pool(s·(x - z)) = s·(max_pool(x) - z), x of bytes: the order of numbers is that of bytes"""

    known: KnownValues

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: graph.MaxPoolOp, rewriter: PatternRewriter, /):
        found = quantised(op.x, self.known)
        if found is None or not is_centred_byte(found.integers, self.known):
            return self.no_match(op, "what it reads is no dequantised tensor of bytes")
        value = centred(found.integers)
        zeros = 1 if value.zero is None else product(tensor_type(value.zero).get_shape())
        if found.scale.size != 1 or not found.scale.min() > 0 or zeros != 1:
            return self.no_match(op, "its scale or zero point is not one for all elements")
        if any(d != 1 for d in op.windows().dilations):
            return self.no_match(op, "a window may see nothing but padding")
        pool = graph.MaxPoolOp.make([value.data], op.properties)
        made: list[Operation] = [pool, graph.CastOp.make([pool.y], {"to": i32})]
        if value.zero is not None:
            made.append(graph.SubOp.make([made[-1].results[0], value.zero]))
        made.append(graph.CastOp.make([made[-1].results[0]], {"to": f32}))
        factor = constant(found.scale, self.known.weights)
        result = graph.MulOp.make([made[-1].results[0], factor.result])
        rewriter.replace(op, [*made, factor, result], [result.y])


def _is_product(op: object) -> bool:
    return isinstance(op, graph.ConvOp | graph.GemmOp | graph.MatmulOp)


@dataclass(frozen=True)
class QuantiseProducts(ModulePass):
    """Compute products, Gemms and convolutions of dequantised tensors in integers.

    Both operands are 8-bit integers less a zero point, of one scale or one for each row of the first and
    each column (output channel) of the second, and the scales are known. A bias that is quantised by the
    product of the scales is added in integers, another one behind. Only where no sum can leave 32 bits. Where
    the result is quantised at once, one factor takes it from the sum's scale to the result's, as in
    QLinearConv. So ONNX Runtime computes what its quantiser wrote; what it leaves in floats (a product with
    nothing quantised behind it, say) is computed in integers here too.

    Any product in i32 of bytes less zero points is one of the bytes themselves, which is what lies in
    memory, with sums of the factors times the zero points taken off behind it, in its bias where those are
    constant; what pads an image is its zero point. Where there is no such form (filters in groups, or not
    constant, with zero points of their own), factors are i16 on their way. Run it before constants are
    folded.

    The largest of dequantised numbers is that of their bytes, dequantised.

    Numeric risk: sums are exact, and the scale is applied once, behind them. Results are as near to what the
    ONNX text says as those of floats are, or nearer, and where they are quantised may be the other neighbour.

    ```mlir
    %0 = graph.mul %x, %s
    %1 = graph.mul %w, %t
    %y = graph.matmul %0, %1
    ```
    becomes, where %x and %w are 8-bit integers, cast to i32 and on to f32 (%a and %b being what was cast),
    ```mlir
    %0 = graph.matmul %a, %b
    %1 = graph.cast %0 {to = f32}
    %y = graph.mul %1, %st
    ```
    """

    name = "quantise-products"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        known = KnownValues(weights_of(ctx))
        products = [ConvOfQuantised(known), GemmOfQuantised(known), MatmulOfQuantised(known)]
        rewrite(op, [*products, QuotientOfScaled(known), LargestOfQuantised(known)])
        rewrite(op, [FactorsOfBytes(known)])
