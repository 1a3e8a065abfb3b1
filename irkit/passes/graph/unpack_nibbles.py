"""`unpack-nibbles`: matrices of 4 bits as float32, where a product is not faster for reading less."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter, op_type_rewrite_pattern

from irkit.context import weights_of
from irkit.dialects.constants import constant, constant_array
from irkit.dialects.graph import MatmulOp, NibbleMatmulOp
from irkit.dialects.nibbles import WIDTH, matrix_of
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.passes.gpu import gpu_of
from irkit.rewriting import Rule, rewrite
from irkit.weights import WeightStore

MOST_ROWS = 64
"""Of more rows a product of floats, which packs both factors, is as fast by measurement."""
FEWEST = 1 << 16
"""Elements of a matrix: of fewer, floats stay in the cache next to a core."""


def why_unpacked(op: NibbleMatmulOp, on_gpu: bool) -> str | None:
    """Why a product is better one of floats; None if it is not."""
    rows = tensor_type(op.x).get_shape()[:-1]
    if on_gpu:
        return "a GPU has no rKernel for it"
    if DYNAMIC in rows:
        return "the number of its rows is open"
    if math.prod(rows) > MOST_ROWS:
        return f"it has more than {MOST_ROWS} rows"
    if op.depth * op.width < FEWEST or op.width < WIDTH:
        return "its matrix is small"
    return None


@dataclass
class UnpackNibbles(Rule):
    """nibble_matmul(x, q, s)  ->  matmul(x, (q - z) * s), the matrix being a constant"""

    weights: WeightStore
    always: bool
    on_gpu: bool = False

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: NibbleMatmulOp, rewriter: PatternRewriter, /):
        if not self.always and why_unpacked(op, self.on_gpu) is None:
            return self.no_match(op, "it is faster in 4 bits")
        arrays = [constant_array(v, self.weights) for v in op.operands[1:]]
        known = [a for a in arrays if a is not None]
        if len(known) != len(arrays):
            return self.no_match(op, "its matrix is not known")
        matrix = constant(np.ascontiguousarray(matrix_of(op, *known)), self.weights)
        rewriter.replace(op, [matrix, MatmulOp.make([op.x, matrix.result])])


def unpack_all(op: ModuleOp, weights: WeightStore) -> None:
    """Make products with matrices that are known products of floats, in place."""
    rewrite(op, [UnpackNibbles(weights, True)])


@dataclass(frozen=True)
class UnpackNibblesPass(ModulePass):
    """Make products with matrices of 4-bit integers products of float32 where those are as fast.

    A product of few rows takes as long as its matrix takes to be read, which in 4 bits is an eighth: on a CPU
    it stays so, of up to 64 rows. On a GPU, of an open number of rows, of many, and of a small matrix it is
    one of floats. `device` is the vDevice that is planned for. `differentiate` unpacks all.

    Numeric risk: none, each element of the matrix is what it was.

    ```mlir
    %y = graph.nibble_matmul %x, %q, %s {block = 32 : i64, columns = 100 : i64}
      : (tensor<?x80xf32>, tensor<2x40x64xui8>, tensor<2x3x64xf32>) -> tensor<?x100xf32>
    ```
    becomes
    ```mlir
    %w = arith.constant dense_resource<w> : tensor<80x100xf32>
    %y = graph.matmul %x, %w : (tensor<?x80xf32>, tensor<80x100xf32>) -> tensor<?x100xf32>
    ```
    """

    name = "unpack-nibbles"
    device: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrite(op, [UnpackNibbles(weights_of(ctx), False, gpu_of(self.device) is not None)])
