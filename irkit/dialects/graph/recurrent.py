"""Recurrent layers and their cells. Gate order is ONNX's: input, output, forget, cell."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.irdl import irdl_op_definition, operand_def, result_def

from irkit.dialects.graph.base import GraphOp, Props, check_rank, fail, same_element, with_shape
from irkit.dialects.types import Tensor


def _check_weights(op: type[GraphOp], inputs: int, hidden: int, w: Tensor, r: Tensor, b: Tensor):
    for what, t, shape in (
        ("w", w, (4 * hidden, inputs)),
        ("r", r, (4 * hidden, hidden)),
        ("b", b, (4 * hidden,)),
    ):
        if t.get_shape() != shape:
            raise fail(op, f"{what} of shape {'x'.join(map(str, shape))}", t)


@irdl_op_definition
class LstmCellOp(GraphOp):
    """One step of an LSTM: i, o, f, g = w @ x + r @ h + b; c' = sigmoid(f) * c + sigmoid(i) * tanh(g);
    h' = sigmoid(o) * tanh(c'). x is batch×inputs, h and c are batch×hidden, w is 4·hidden×inputs,
    r is 4·hidden×hidden, b is 4·hidden (both of ONNX's biases, summed).

    ```mlir
    %h1, %c1 = graph.lstm_cell %x, %h, %c, %w, %r, %b
      : (tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<16x8xf32>, tensor<16x4xf32>,
         tensor<16xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>)
    ```
    """

    name = "graph.lstm_cell"
    x = operand_def(TensorType)
    h = operand_def(TensorType)
    c = operand_def(TensorType)
    w = operand_def(TensorType)
    r = operand_def(TensorType)
    b = operand_def(TensorType)
    h_next = result_def(TensorType)
    c_next = result_def(TensorType)
    assembly_format = (
        "$x `,` $h `,` $c `,` $w `,` $r `,` $b attr-dict `:` functional-type(operands, results)"
    )

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        x, h, c, w, r, b = operands
        same_element(cls, operands)
        check_rank(cls, "x", x, 2)
        check_rank(cls, "h", h, 2)
        if h != c or h.get_shape()[0] != x.get_shape()[0]:
            raise fail(cls, f"h and c of one type with {x.get_shape()[0]} rows", f"{h} and {c}")
        _check_weights(cls, x.get_shape()[1], h.get_shape()[1], w, r, b)
        return [h, c]


@irdl_op_definition
class LstmOp(GraphOp):
    """A one-directional LSTM layer over steps×batch×inputs (ONNX LSTM, forward, default activations).

    Returns every h (steps×batch×hidden), the last h and the last c (batch×hidden).
    Weights as in `graph.lstm_cell`.

    ```mlir
    %y, %hn, %cn = graph.lstm %x, %h, %c, %w, %r, %b
      : (tensor<5x1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<16x8xf32>, tensor<16x4xf32>,
         tensor<16xf32>) -> (tensor<5x1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>)
    ```
    """

    name = "graph.lstm"
    x = operand_def(TensorType)
    h = operand_def(TensorType)
    c = operand_def(TensorType)
    w = operand_def(TensorType)
    r = operand_def(TensorType)
    b = operand_def(TensorType)
    y = result_def(TensorType)
    h_last = result_def(TensorType)
    c_last = result_def(TensorType)
    assembly_format = (
        "$x `,` $h `,` $c `,` $w `,` $r `,` $b attr-dict `:` functional-type(operands, results)"
    )

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        x, h, c, w, r, b = operands
        same_element(cls, operands)
        check_rank(cls, "x", x, 3)
        check_rank(cls, "h", h, 2)
        steps, batch, inputs = x.get_shape()
        if h != c or h.get_shape()[0] != batch:
            raise fail(cls, f"h and c of one type with {batch} rows", f"{h} and {c}")
        _check_weights(cls, inputs, h.get_shape()[1], w, r, b)
        return [with_shape(x, (steps, *h.get_shape())), h, c]


OPS: list[type[GraphOp]] = [LstmCellOp, LstmOp]
