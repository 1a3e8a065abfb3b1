"""The `te` dialect: tensor computations that upstream `linalg` and `tensor` have no op for.

Like `linalg` on tensors, they say what each element is, not how it is computed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import (
    BoolAttr,
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    f32,
    i64,
)
from xdsl.ir import Dialect
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def

from irkit.dialects.attention_base import AttentionBase
from irkit.dialects.attention_gradient import AttentionKeyGradientOp, AttentionQueryGradientOp
from irkit.dialects.csr_base import CsrDenseBase, CsrMatmulBase, CsrReduceBase
from irkit.dialects.forest_base import ForestBase
from irkit.dialects.gather_base import GatherBase, GatherElementsBase
from irkit.dialects.gemvt import GemvtOp
from irkit.dialects.heap_forest import HeapForestOp
from irkit.dialects.inference import InferredOp, Props, check_axis, check_rank, fail
from irkit.dialects.layer_norm_base import LayerNormBase
from irkit.dialects.nibbles import NibbleMatmulOp
from irkit.dialects.packed_forest import PackedForestOp
from irkit.dialects.packed_terms import FORMATS
from irkit.dialects.perfect_forest import PerfectForestOp
from irkit.dialects.rowwise import RowReduceOp, RowwiseOp, YieldOp
from irkit.dialects.scatter_base import ScatterAddBase
from irkit.dialects.types import DYNAMIC, Tensor, ints, is_float, is_half, tensor, tensor_type


@irdl_op_definition
class ArgmaxOp(InferredOp):
    """Index of the first largest element along the last axis, which goes.

    ```mlir
    %y = te.argmax %x : (tensor<?x10xf64>) -> tensor<?xi64>
    ```
    """

    name = "te.argmax"
    x = operand_def(TensorType)
    y = result_def(TensorType)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        (x,) = operands
        check_axis(cls, x.get_num_dims() - 1, x)
        return [tensor(i64, x.get_shape()[:-1])]


@irdl_op_definition
class AttentionOp(AttentionBase):
    """`graph.attention`; dimension d of the result is dimension permutation[d] of what that gives.

    The last one stays where it is. Without a `permutation` all do. `fastmath`: `afn` lets exp be approximated,
    as on `math.exp`.

    ```mlir
    %y = te.attention %q, %k, %v {scale = 1.25e-1 : f64, causal = 0 : i64,
        permutation = array<i64: 0, 2, 1, 3>, fastmath = #arith.fastmath<afn>}
      : (tensor<?x8x10x64xf32>, tensor<?x8x10x64xf32>, tensor<?x8x10x64xf32>) -> tensor<?x10x8x64xf32>
    ```
    """

    name = "te.attention"
    permutation = opt_prop_def(DenseArrayBase[IntegerType])
    fastmath = opt_prop_def(FastMathFlagsAttr)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        (y,) = super().infer(operands, props)
        if "permutation" not in props:
            return [y]
        order, last = ints(props["permutation"]), y.get_num_dims() - 1
        if sorted(order) != list(range(last + 1)) or order[-1] != last:
            raise fail(cls, f"a permutation of {last + 1} dimensions that ends in {last}", order)
        return [tensor(y.element_type, [y.get_shape()[d] for d in order])]

    @property
    def order(self) -> list[int]:
        """The permutation, spelt out."""
        rank = len(tensor_type(self.y).get_shape())
        return ints(self.permutation) if self.permutation is not None else list(range(rank))


@irdl_op_definition
class CsrDenseOp(CsrDenseBase):
    """`graph.csr_dense`.

    ```mlir
    %y = te.csr_dense %data, %indices, %starts, %ends {columns = 30 : i64, initial = 0.0 : f64}
      : (tensor<1x?xf32>, tensor<1x?xi32>, tensor<?xi64>, tensor<?xi64>) -> tensor<?x30xf32>
    ```
    """

    name = "te.csr_dense"


@irdl_op_definition
class CsrMatmulOp(CsrMatmulBase):
    """`graph.csr_matmul`.

    ```mlir
    %y = te.csr_matmul %data, %indices, %starts, %ends, %w {steps = []}
      : (tensor<1x?xf64>, tensor<1x?xi32>, tensor<?xi64>, tensor<?xi64>, tensor<30x4xf64>) -> tensor<?x4xf64>
    ```
    """

    name = "te.csr_matmul"


@irdl_op_definition
class CsrReduceOp(CsrReduceBase):
    """`graph.csr_reduce`.

    ```mlir
    %y = te.csr_reduce %data, %indices, %starts, %ends {kind = "max", initial = 0.0 : f64, steps = ["abs x"]}
      : (tensor<1x?xf64>, tensor<1x?xi32>, tensor<?xi64>, tensor<?xi64>) -> tensor<?x1xf64>
    ```
    """

    name = "te.csr_reduce"


@irdl_op_definition
class ForestOp(ForestBase):
    """`graph.forest`, walked node by node.

    With `leaves` the trees lie one behind another, each its root, the other inner nodes, children behind their
    parents, then its leaves, at most so many; thresholds are numbers, and for `lt` none is -inf.

    ```mlir
    %y = te.forest %x, %feature, %threshold, %left, %right, %nan_left, %value, %root, %output, %base
        {comparison = "le", depth = 2 : i64, strategy = "walk"}
      : (tensor<?x4xf32>, tensor<10xi32>, tensor<10xf32>, tensor<10xi32>, tensor<10xi32>, tensor<10xi1>,
         tensor<10x3xf64>, tensor<2xi32>, tensor<2xi32>, tensor<3xf64>) -> tensor<?x3xf64>
    ```
    """

    name = "te.forest"
    leaves = opt_prop_def(IntegerAttr[IntegerType])


@irdl_op_definition
class GatherOp(GatherBase):
    """Slices of `data` along `axis` picked by `indices`.

    ```mlir
    %y = te.gather %data, %indices {axis = 1 : i64}
      : (tensor<?x64xf32>, tensor<10xi64>) -> tensor<?x10xf32>
    ```
    """

    name = "te.gather"


@irdl_op_definition
class GatherElementsOp(GatherElementsBase):
    """Element picked along `axis` at each position of `indices`.

    ```mlir
    %y = te.gather_elements %data, %indices {axis = 1 : i64}
      : (tensor<?x64xf32>, tensor<?x10xi64>) -> tensor<?x10xf32>
    ```
    """

    name = "te.gather_elements"


@irdl_op_definition
class LayerNormOp(LayerNormBase):
    """`graph.layer_norm`: each row along the last axis by its own statistics.

    ```mlir
    %y = te.layer_norm %x {epsilon = 1.0e-5 : f64, centred = true} : (tensor<?x10xf32>) -> tensor<?x10xf32>
    ```
    """

    name = "te.layer_norm"


@irdl_op_definition
class PackOp(InferredOp):
    """A matrix laid out for tensor cores, in parts or rounded as products of a `precision` need it; `scaled` are
    float32 in two float16 parts, each row multiplied by a power of two.

    The elements of `x`, whatever its shape, are in order of memory those of a matrix of rows×depth if `terms` is
    1, of depth×rows if it is 0: `depth` is how many terms the products have. `irkit/dialects/packed_terms.py`
    says what the result's blocks×parts×groups×8×width are.

    ```mlir
    %p = te.pack %x {precision = "float32", terms = 1 : i64, depth = 40 : i64}
      : (tensor<4x25x40xf32>) -> tensor<2x3x13x8x32xbf16>
    ```
    """

    name = "te.pack"
    x = operand_def(TensorType)
    precision = prop_def(StringAttr)
    terms = prop_def(IntegerAttr[IntegerType])
    depth = prop_def(IntegerAttr[IntegerType])
    y = result_def(TensorType)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        (x,) = operands
        precision, terms, depth = props["precision"], props["terms"], props["depth"]
        assert isinstance(precision, StringAttr)
        assert isinstance(terms, IntegerAttr)
        assert isinstance(depth, IntegerAttr)
        if precision.data not in FORMATS:
            raise fail(cls, f"a precision of {', '.join(FORMATS)}", precision.data)
        if terms.value.data not in (0, 1):
            raise fail(cls, "terms of dimension 0 or 1", terms.value.data)
        if DYNAMIC in x.get_shape() or not (x.element_type == f32 or is_half(x.element_type)):
            raise fail(cls, "a matrix of f32, f16 or bf16 whose size is known", x)
        size, elements, form = depth.value.data, math.prod(x.get_shape()), FORMATS[precision.data]
        if size < 1 or elements % size:
            raise fail(cls, f"rows of depth {size}", x)
        return [tensor(form.element, form.shape(elements // size, size))]

    @property
    def by_k(self) -> bool:
        """Whether the terms of a row lie side by side in `x`."""
        return self.terms.value.data == 1

    @property
    def matrix(self) -> tuple[int, int]:
        """Rows and columns of the matrix that `x` is."""
        size = self.depth.value.data
        rows = math.prod(tensor_type(self.x).get_shape()) // size
        return (rows, size) if self.by_k else (size, rows)


@irdl_op_definition
class PrepackedOp(InferredOp):
    """`x`, of which `packed` is what `te.pack` makes, for what can read it so: nothing else is said here.

    `precision`, `terms` and `depth` are those of the `te.pack`.

    ```mlir
    %y = te.prepacked %x, %p {precision = "float32", terms = 1 : i64, depth = 40 : i64}
      : (tensor<4x25x40xf32>, tensor<2x3x13x8x32xbf16>) -> tensor<4x25x40xf32>
    ```
    """

    name = "te.prepacked"
    x = operand_def(TensorType)
    packed = operand_def(TensorType)
    precision = prop_def(StringAttr)
    terms = prop_def(IntegerAttr[IntegerType])
    depth = prop_def(IntegerAttr[IntegerType])
    y = result_def(TensorType)
    assembly_format = "$x `,` $packed attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        x, given = operands
        (want,) = PackOp.infer([x], props)
        if given != want:
            raise fail(cls, f"packed terms of type {want}", given)
        return [x]


@irdl_op_definition
class ScatterAddOp(ScatterAddBase):
    """`graph.scatter_add` of rows: `x` and `updates` have two dimensions, `indices` one.

    ```mlir
    %y = te.scatter_add %x, %indices, %updates
      : (tensor<50x64xf32>, tensor<128xi64>, tensor<128x64xf32>) -> tensor<50x64xf32>
    ```
    """

    name = "te.scatter_add"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        for name, t, rank in zip(("x", "indices"), operands, (2, 1), strict=False):
            check_rank(cls, name, t, rank)
        return super().infer(operands, props)


@irdl_op_definition
class SoftmaxOp(InferredOp):
    """exp(x - max) / sum(exp(x - max)) along the last axis.

    `fastmath`: `afn` lets exp be approximated, as on `math.exp`.

    ```mlir
    %y = te.softmax %x {fastmath = #arith.fastmath<afn>} : (tensor<?x10xf32>) -> tensor<?x10xf32>
    ```
    """

    name = "te.softmax"
    x = operand_def(TensorType)
    fastmath = opt_prop_def(FastMathFlagsAttr)
    y = result_def(TensorType)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        (x,) = operands
        check_axis(cls, x.get_num_dims() - 1, x)
        if not is_float(x.element_type):
            raise fail(cls, "a floating-point operand", x)
        return [x]


@irdl_op_definition
class TopKOp(InferredOp):
    """Where the k largest (or smallest) elements along the last axis are, in order, as `graph.top_k` has it.

    Of equal elements, and of NaNs, the one with the lower index comes first; a NaN is larger than all else.

    ```mlir
    %i = te.top_k %x {k = 3 : i64, largest = true} : (tensor<?x10xf32>) -> tensor<?x3xi64>
    ```
    """

    name = "te.top_k"
    x = operand_def(TensorType)
    k = prop_def(IntegerAttr[IntegerType])
    largest = prop_def(BoolAttr)
    indices = result_def(TensorType)
    assembly_format = "$x attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        (x,) = operands
        check_axis(cls, x.get_num_dims() - 1, x)
        shape, k = x.get_shape(), props["k"]
        assert isinstance(k, IntegerAttr)
        if not 0 < k.value.data <= shape[-1]:
            raise fail(cls, f"0 < k <= {shape[-1]}", f"k = {k.value.data}")
        return [tensor(i64, (*shape[:-1], k.value.data))]


Te = Dialect(
    "te",
    [
        ArgmaxOp,
        AttentionKeyGradientOp,
        AttentionOp,
        AttentionQueryGradientOp,
        CsrDenseOp,
        CsrMatmulOp,
        CsrReduceOp,
        ForestOp,
        GatherElementsOp,
        GatherOp,
        GemvtOp,
        HeapForestOp,
        LayerNormOp,
        NibbleMatmulOp,
        PackOp,
        PackedForestOp,
        PerfectForestOp,
        PrepackedOp,
        RowReduceOp,
        RowwiseOp,
        ScatterAddOp,
        SoftmaxOp,
        TopKOp,
        YieldOp,
    ],
)
