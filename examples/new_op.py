"""A graph op of one's own: what it means, and how it is computed. Nothing in irkit changes.

    python examples/new_op.py

`mine.softsign` is x / (1 + |x|). It gets a meaning in NumPy, which the interpreter runs and every
compiled program is compared with, and a tensor-level form, from which all else follows: fusion with its
neighbours, scheduling, CPU and GPU code.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, TensorType
from xdsl.ir import Dialect, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, result_def

import irkit
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.inference import Props
from irkit.dialects.types import Tensor, tensor_type
from irkit.extending import add_dialect
from irkit.lower.graph_to_tensor.builder import Scalars, TensorBuilder


@irdl_op_definition
class SoftsignOp(GraphOp):
    """x / (1 + |x|), element by element.

    ```mlir
    %y = mine.softsign %x : (tensor<4xf32>) -> tensor<4xf32>
    ```
    """

    name = "mine.softsign"
    x = operand_def(TensorType)
    y = result_def(TensorType)
    assembly_format = "$x attr-dict `:` functional-type($x, $y)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        return [operands[0]]


def meaning(op: SoftsignOp, x: np.ndarray) -> np.ndarray:
    """In NumPy, in the op's element type."""
    return x / (x.dtype.type(1) + np.abs(x))


def lowering(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    """As one elementwise `linalg.generic`."""
    assert isinstance(op, SoftsignOp)
    t = tensor_type(op.y)

    def body(s: Scalars, elements: Sequence[SSAValue]) -> SSAValue:
        (x,) = elements
        one = s(arith.ConstantOp(FloatAttr(1.0, t.element_type)))
        return s(arith.DivfOp(x, s(arith.AddfOp(one, s(math.AbsFOp(x))))))

    return [b.elementwise(t.get_shape(), t.element_type, [op.x], body)]


MINE = Dialect("mine", [SoftsignOp], [])

MODULE = """
func.func @main(%x: tensor<?x8xf32>, %w: tensor<8x4xf32>) -> tensor<?x4xf32> {
  %0 = graph.matmul %x, %w : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  %1 = mine.softsign %0 : (tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %1 : tensor<?x4xf32>
}
"""


def register() -> None:
    """Make the op known; `irkit-opt --load-plugin=examples/new_op.py` calls this too."""
    add_dialect(MINE, {SoftsignOp: meaning}, {SoftsignOp: lowering})


def main() -> int:
    """Compile a module that has the op, and compare; 1 if it computes something else."""
    register()
    module = irkit.parse(MODULE)
    program = irkit.compile(module, target="cpu")
    rng = np.random.default_rng(0)
    x = rng.standard_normal((5, 8), dtype=np.float32)
    w = rng.standard_normal((8, 4), dtype=np.float32)
    z = x @ w
    off = float(np.abs(program(x, w) - z / (1 + np.abs(z))).max())
    (kernel,) = program.report()["roperators"].values()
    print(f"one rOperator from {kernel['from']}; largest difference {off:.1e}")
    return 0 if off < 1e-5 else 1


if __name__ == "__main__":
    sys.exit(main())
