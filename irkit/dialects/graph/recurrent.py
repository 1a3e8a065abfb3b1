"""Recurrent layers and their cells.

Gates lie in ONNX's order (LSTM: input, output, forget, cell; GRU: update, reset, hidden), x is
batch×inputs for a cell and steps×batch×inputs for a layer, states are batch×hidden. Weights of n gates:
w is n·hidden×inputs, r is n·hidden×hidden. `activations` names one function per kind of gate where
these are not the usual ones, `reverse` runs a layer from its last step to the first (its outputs stay in
the order of the steps).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    result_def,
)

from irkit.dialects.element_sets import FLOATS, Elements
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.inference import Props, check_rank, fail, same_element, with_shape
from irkit.dialects.types import Tensor, tensor_type

ACTIVATIONS = ("relu", "sigmoid", "softplus", "softsign", "tanh")
"""Functions that a gate may have."""


class RecurrentOp(GraphOp):
    """What all cells and layers share."""

    ELEMENTS: ClassVar[tuple[Elements, ...]] = (FLOATS,)
    CONTRACTS: ClassVar[bool] = True
    USUAL: ClassVar[tuple[str, ...]]
    """The functions of its kinds of gates."""
    GATES: ClassVar[int]
    """Gates of `w` and `r`."""
    BIASES: ClassVar[int]
    """Biases a unit."""
    STATES: ClassVar[int]
    """Tensors that one step hands to the next."""

    x = operand_def(TensorType)
    h = operand_def(TensorType)
    w = operand_def(TensorType)
    r = operand_def(TensorType)
    b = operand_def(TensorType)
    activations = opt_prop_def(ArrayAttr[StringAttr])

    @classmethod
    def check(cls, operands: Sequence[Tensor], props: Props, rank: int) -> None:
        """Operands x, states, w, r, b fit together; x has `rank` dimensions."""
        x, h, *others = operands[: 1 + cls.STATES]
        w, r, b = operands[1 + cls.STATES : 4 + cls.STATES]
        same_element(cls, operands)
        check_rank(cls, "x", x, rank)
        check_rank(cls, "h", h, 2)
        batch, inputs = x.get_shape()[-2:]
        rows, hidden = h.get_shape()
        if rows != batch or any(t != h for t in others):
            names = "h" if cls.STATES == 1 else "h and c of one type"
            shown = " and ".join(str(t) for t in (h, *others))
            raise fail(cls, f"{names} with {batch} rows", shown)
        for what, t, shape in (
            ("w", w, (cls.GATES * hidden, inputs)),
            ("r", r, (cls.GATES * hidden, hidden)),
            ("b", b, (cls.BIASES * hidden,)),
        ):
            if t.get_shape() != shape:
                raise fail(cls, f"{what} of shape {'x'.join(map(str, shape))}", t)
        cls._check_functions(props)

    @classmethod
    def _check_functions(cls, props: Props) -> None:
        given = props.get("activations")
        if given is not None:
            names = activation_names(given)
            if len(names) != len(cls.USUAL) or not set(names) <= set(ACTIVATIONS):
                wanted = f"{len(cls.USUAL)} activations among {', '.join(ACTIVATIONS)}"
                raise fail(cls, wanted, list(names))

    @property
    def functions(self) -> tuple[str, ...]:
        """Name of the function of each kind of gate."""
        return self.USUAL if self.activations is None else activation_names(self.activations)

    @property
    def initial(self) -> list[SSAValue]:
        """The states that the first step reads."""
        return list(self.operands[1 : 1 + self.STATES])

    @property
    def parameters(self) -> list[SSAValue]:
        """Weights and biases."""
        return list(self.operands[1 + self.STATES :])


def activation_names(attribute: Attribute) -> tuple[str, ...]:
    """The strings of an array of strings."""
    names = cast(ArrayAttr[StringAttr], attribute)
    return tuple(a.data for a in names)


class CellOp(RecurrentOp):
    """One step."""

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        cls.check(operands, props, 2)
        return [operands[1]] * cls.STATES


class LayerOp(RecurrentOp):
    """All steps: every h (steps×batch×hidden), then the states behind the last step done."""

    reverse = opt_prop_def(BoolAttr)

    @classmethod
    def infer(cls, operands: Sequence[Tensor], props: Props) -> list[Tensor]:
        cls.check(operands, props, 3)
        x, h = operands[:2]
        steps = with_shape(x, (x.get_shape()[0], *h.get_shape()))
        return [steps, *[h] * cls.STATES]

    @property
    def order(self) -> range:
        """Numbers of the steps, first done first."""
        steps = tensor_type(self.x).get_shape()[0]
        backwards = self.reverse is not None and bool(self.reverse.value.data)
        return range(steps - 1, -1, -1) if backwards else range(steps)


class LstmBase(RecurrentOp):
    """i, o, f, g = w @ x + r @ h + b, of functions (f, g, h) sigmoid, tanh, tanh."""

    USUAL: ClassVar[tuple[str, ...]] = ("sigmoid", "tanh", "tanh")
    GATES: ClassVar[int] = 4
    BIASES: ClassVar[int] = 4
    STATES: ClassVar[int] = 2

    @classmethod
    def check(cls, operands: Sequence[Tensor], props: Props, rank: int) -> None:
        """Peephole weights are 3·hidden: input, output, forget."""
        super().check(operands, props, rank)
        hidden = operands[1].get_shape()[1]
        if len(operands) > 6 and operands[6].get_shape() != (3 * hidden,):
            raise fail(cls, f"p of shape {3 * hidden}", operands[6])


class GruBase(RecurrentOp):
    """z, r and the hidden gate, of functions (f, g) sigmoid, tanh."""

    USUAL: ClassVar[tuple[str, ...]] = ("sigmoid", "tanh")
    GATES: ClassVar[int] = 3
    BIASES: ClassVar[int] = 4
    STATES: ClassVar[int] = 1
    linear_before_reset = prop_def(BoolAttr)


class RnnBase(RecurrentOp):
    """One gate, of function tanh."""

    USUAL: ClassVar[tuple[str, ...]] = ("tanh",)
    GATES: ClassVar[int] = 1
    BIASES: ClassVar[int] = 1
    STATES: ClassVar[int] = 1


_LSTM_FORMAT = (
    "$x `,` $h `,` $c `,` $w `,` $r `,` $b (`,` $p^)? attr-dict "
    "`:` functional-type(operands, results)"
)
_FORMAT = "$x `,` $h `,` $w `,` $r `,` $b attr-dict `:` functional-type(operands, results)"


@irdl_op_definition
class LstmCellOp(CellOp, LstmBase):
    """One step of an LSTM: i, o, f, g = w @ x + r @ h + b; c' = sigmoid(f) * c + sigmoid(i) * tanh(g);
    h' = sigmoid(o) * tanh(c'). x is batch×inputs, h and c are batch×hidden, w is 4·hidden×inputs,
    r is 4·hidden×hidden, b is 4·hidden (both of ONNX's biases, summed). Peephole weights p (3·hidden)
    add p_i * c to i, p_f * c to f and p_o * c' to o.

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
    p = opt_operand_def(TensorType)
    h_next = result_def(TensorType)
    c_next = result_def(TensorType)
    assembly_format = _LSTM_FORMAT


@irdl_op_definition
class LstmOp(LayerOp, LstmBase):
    """A one-directional LSTM layer over steps×batch×inputs (ONNX LSTM).

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
    p = opt_operand_def(TensorType)
    y = result_def(TensorType)
    h_last = result_def(TensorType)
    c_last = result_def(TensorType)
    assembly_format = _LSTM_FORMAT


@irdl_op_definition
class GruCellOp(CellOp, GruBase):
    """One step of a GRU: z and r are sigmoid(w @ x + r @ h + b) of their gates, and h' =
    (1 - z) * n + z * h. n is tanh(w_n @ x + b_x + r_n @ (r * h) + b_h), or with `linear_before_reset`
    tanh(w_n @ x + b_x + r * (r_n @ h + b_h)). b is 4·hidden: of z, of r, b_x, b_h.

    ```mlir
    %h1 = graph.gru_cell %x, %h, %w, %r, %b {linear_before_reset = true}
      : (tensor<1x8xf32>, tensor<1x4xf32>, tensor<12x8xf32>, tensor<12x4xf32>, tensor<16xf32>)
        -> tensor<1x4xf32>
    ```
    """

    name = "graph.gru_cell"
    h_next = result_def(TensorType)
    assembly_format = _FORMAT


@irdl_op_definition
class GruOp(LayerOp, GruBase):
    """A one-directional GRU layer over steps×batch×inputs (ONNX GRU).

    Returns every h (steps×batch×hidden) and the last one. Weights as in `graph.gru_cell`.

    ```mlir
    %y, %hn = graph.gru %x, %h, %w, %r, %b {linear_before_reset = false, reverse = true}
      : (tensor<5x1x8xf32>, tensor<1x4xf32>, tensor<12x8xf32>, tensor<12x4xf32>, tensor<16xf32>)
        -> (tensor<5x1x4xf32>, tensor<1x4xf32>)
    ```
    """

    name = "graph.gru"
    y = result_def(TensorType)
    h_last = result_def(TensorType)
    assembly_format = _FORMAT


@irdl_op_definition
class RnnCellOp(CellOp, RnnBase):
    """One step of a plain recurrent layer: h' = tanh(w @ x + r @ h + b).

    ```mlir
    %h1 = graph.rnn_cell %x, %h, %w, %r, %b {activations = ["relu"]}
      : (tensor<1x8xf32>, tensor<1x4xf32>, tensor<4x8xf32>, tensor<4x4xf32>, tensor<4xf32>)
        -> tensor<1x4xf32>
    ```
    """

    name = "graph.rnn_cell"
    h_next = result_def(TensorType)
    assembly_format = _FORMAT


@irdl_op_definition
class RnnOp(LayerOp, RnnBase):
    """A one-directional plain recurrent layer over steps×batch×inputs (ONNX RNN).

    Returns every h (steps×batch×hidden) and the last one. Weights as in `graph.rnn_cell`.

    ```mlir
    %y, %hn = graph.rnn %x, %h, %w, %r, %b
      : (tensor<5x1x8xf32>, tensor<1x4xf32>, tensor<4x8xf32>, tensor<4x4xf32>, tensor<4xf32>)
        -> (tensor<5x1x4xf32>, tensor<1x4xf32>)
    ```
    """

    name = "graph.rnn"
    y = result_def(TensorType)
    h_last = result_def(TensorType)
    assembly_format = _FORMAT


OPS: list[type[GraphOp]] = [GruCellOp, GruOp, LstmCellOp, LstmOp, RnnCellOp, RnnOp]
