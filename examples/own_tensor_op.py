"""A tensor-level op of one's own: what no `linalg.generic` can say, fused like any other.

    python examples/own_tensor_op.py

`mine.bucketize` counts, for each number, the edges that are not above it. As comparisons with all edges
that would be a reduction; as an op it is a binary search. On the graph level it gets a meaning and a
lowering, as in `examples/new_op.py`. Below, `mine_te.bucketize` has a *model*, of the interface of
`irkit/dialects/tensor_ops/interface.py`: of which kind it is, its meaning in NumPy, what a part of it reads,
the text of one element, and when it may stand behind a root. From that follow fusion, the boxes that
schedules are proved on, CPU and GPU code, and the interpreter.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import TensorType, i64
from xdsl.ir import Dialect, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, result_def

import irkit
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.inference import InferredOp, Props, check_rank, fail, same_element
from irkit.dialects.tensor_ops.interface import (
    Box,
    ElementText,
    Extents,
    Index,
    Interpreter,
    Kind,
    TensorOpModel,
)
from irkit.dialects.types import Tensor, tensor, tensor_type
from irkit.extending import add_dialect, add_tensor_op
from irkit.lower.graph_to_tensor.builder import TensorBuilder


class BucketizeBase(InferredOp):
    """What the op is at both levels: x of any shape, ascending edges, numbers of edges."""

    x = operand_def(TensorType)
    edges = operand_def(TensorType)
    y = result_def(TensorType)
    assembly_format = "$x `,` $edges attr-dict `:` functional-type(operands, results)"

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        x, edges = operands
        same_element(cls, operands)
        check_rank(cls, "edges", edges, 1)
        if edges.get_shape()[0] < 1:
            raise fail(cls, "edges, as many as are known", edges)
        return [tensor(i64, x.get_shape())]


@irdl_op_definition
class BucketizeOp(BucketizeBase, GraphOp):
    """How many of the ascending `edges` are not above each element; all of them for NaN.

    ```mlir
    %y = mine.bucketize %x, %edges : (tensor<?x8xf32>, tensor<3xf32>) -> tensor<?x8xi64>
    ```
    """

    name = "mine.bucketize"


@irdl_op_definition
class TensorBucketizeOp(BucketizeBase):
    """`mine.bucketize`, by binary search."""

    name = "mine_te.bucketize"


def meaning(op: BucketizeBase, x: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """In NumPy, step by step as below: edges that do not ascend have a meaning too."""
    found = np.zeros(x.shape, np.int64)
    for bit in reversed(range(len(edges).bit_length())):
        more = found + (1 << bit)
        below = ~(x < edges[np.minimum(more, len(edges)) - 1])
        found = np.where((more <= len(edges)) & below, more, found)
    return found


class Bucketize(TensorOpModel[TensorBucketizeOp]):
    """Its elements are expressions of an element of x and of some edges."""

    def kind(self, op: TensorBucketizeOp) -> Kind:
        return Kind.LIGHT

    def evaluate(
        self, op: TensorBucketizeOp, operands: list[np.ndarray], interpreter: Interpreter
    ) -> Sequence[np.ndarray]:
        return [meaning(op, *operands)]

    def operand_boxes(
        self, op: TensorBucketizeOp, needed: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        return [needed[0], extents.whole(op.edges)]

    def result_boxes(
        self, op: TensorBucketizeOp, known: Sequence[Box | None], extents: Extents
    ) -> Sequence[Box | None]:
        return [known[0]]

    def why_no_epilogue(self, op: TensorBucketizeOp, producer: Operation) -> str | None:
        return "it searches among the root's results" if op.edges.owner is producer else None

    def element(
        self, op: TensorBucketizeOp, printer: ElementText, result: SSAValue, index: Index
    ) -> str:
        """Binary search without a branch: one bit of the answer after another, the highest first."""
        (edges,) = tensor_type(op.edges).get_shape()
        x, found = printer.element(op.x, index), printer.name(printer.number(0, i64))
        for bit in reversed(range(edges.bit_length())):
            more = printer.name(f"{found} + {1 << bit}")
            edge = printer.element(op.edges, (printer.name(f"min({more}, {edges}) - 1"),))
            found = printer.name(f"{more} if {more} <= {edges} and not {x} < {edge} else {found}")
        return found


def lowering(b: TensorBuilder, op: GraphOp) -> list[SSAValue]:
    """To the op of the tensor level."""
    return [b.insert(TensorBucketizeOp.make(op.operands))]


MODULE = """
func.func @main(%x: tensor<?x8xf32>, %w: tensor<8x4xf32>, %edges: tensor<31xf32>) -> tensor<?x4xf32> {
  %0 = graph.matmul %x, %w : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  %1 = mine.bucketize %0, %edges : (tensor<?x4xf32>, tensor<31xf32>) -> tensor<?x4xi64>
  %2 = graph.cast %1 {to = f32} : (tensor<?x4xi64>) -> tensor<?x4xf32>
  %3 = graph.mul %2, %2 : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
  func.return %3 : tensor<?x4xf32>
}
"""


def register() -> None:
    """Make both ops known; `irkit-opt --load-plugin=examples/own_tensor_op.py` calls this too."""
    mine = Dialect("mine", [BucketizeOp], [])
    add_dialect(mine, {BucketizeOp: meaning}, {BucketizeOp: lowering})
    add_tensor_op(TensorBucketizeOp, Bucketize())


def main() -> int:
    """Compile a module that has the op, and compare; 1 if it is not fused or computes something else."""
    register()
    program = irkit.compile(irkit.parse(MODULE), target="cpu")
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((50, 8), (8, 4)))
    edges = np.sort(rng.integers(-40, 40, 31)).astype(np.float32)
    x[0] = np.nan
    want = np.searchsorted(edges, x @ w, side="right").astype(np.float32) ** 2
    same = np.array_equal(program(x, w, edges), want)
    kernels = [op["from"] for op in program.report()["roperators"].values()]
    print(f"rOperators from {kernels}; {'equal' if same else 'other'} values")
    return 0 if same and len(kernels) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
