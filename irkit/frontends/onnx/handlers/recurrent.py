"""LSTM: one forward direction, default activations, sequence-major layout."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.types import DYNAMIC, numpy_dtype, tensor_type
from irkit.frontends.onnx.node import Handler, Node, Value
from irkit.weights import Array

ACTIVATIONS = ["sigmoid", "tanh", "tanh"]


def _check_options(node: Node, steps: int) -> None:
    node.require("direction", "forward")
    node.require("layout", 0)
    node.require("input_forget", 0)
    if node.has("clip"):
        node.refuse("clip", "clipping of cells is not supported")
    activations = [a.decode().lower() for a in node.attribute("activations", [])]
    if activations not in ([], ACTIVATIONS):
        node.refuse(f"activations = {activations}", "only Sigmoid, Tanh, Tanh are supported")
    node.ignore("activation_alpha", "activation_beta")  # the default activations have none
    if node.given(7) is not None:
        node.refuse("P", "peephole weights are not supported")
    if node.given(4) is not None and (node.array(4) != steps).any():
        node.refuse("sequence_lens", f"only full sequences of {steps} steps are supported")


def _weights(node: Node) -> tuple[Array, Array, Array]:
    """w, r and the sum of both biases; ONNX's leading axis is the direction."""
    w, r = node.array(1), node.array(2)
    hidden = r.shape[-1]
    inputs = node.type_of(0).get_shape()[-1]
    _check_shape(node, 1, w, (1, 4 * hidden, inputs))
    _check_shape(node, 2, r, (1, 4 * hidden, hidden))
    if node.given(3) is None:
        return w[0], r[0], np.zeros_like(r[0, :, 0])
    b = node.array(3)
    _check_shape(node, 3, b, (1, 8 * hidden))
    of_input, of_state = np.split(b[0], 2)
    return w[0], r[0], of_input + of_state


def _check_shape(node: Node, index: int, array: Array, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        node.refuse(node.name_of(index), f"expected shape {shape}, got {array.shape}")


def _state(node: Node, index: int, shape: tuple[int, int]) -> SSAValue:
    """An initial state as batch×hidden; zeros if left out."""
    given = node.given(index)
    if given is None:
        dtype = numpy_dtype(node.type_of(0).element_type)
        return node.tensor(np.zeros(shape, dtype=dtype))
    if isinstance(given, np.ndarray):
        array = node.array(index)
        _check_shape(node, index, array, (1, *shape))
        return node.tensor(array[0])
    return node.emit(graph.ReshapeOp, given, shape=shape)


def _lstm(node: Node) -> Sequence[Value]:
    x = node.operand(0)
    if tensor_type(x).get_num_dims() != 3:
        node.refuse("X", "it must have three dimensions")
    steps, batch, _ = tensor_type(x).get_shape()
    if steps == DYNAMIC:
        node.refuse("X", "the number of steps must be static (fix it with shapes)")
    _check_options(node, steps)
    w, r, b = _weights(node)
    hidden = r.shape[1]
    if node.attribute("hidden_size", hidden) != hidden:
        node.refuse("hidden_size", f"the recurrent weights are for {hidden}")
    h, c = (_state(node, i, (batch, hidden)) for i in (5, 6))
    operands = (x, h, c, *(node.tensor(t) for t in (w, r, b)))
    y, h_last, c_last = node.emit_all(graph.LstmOp, *operands)
    return [
        node.emit(graph.ReshapeOp, y, shape=[steps, 1, batch, hidden]),
        node.emit(graph.ReshapeOp, h_last, shape=[1, batch, hidden]),
        node.emit(graph.ReshapeOp, c_last, shape=[1, batch, hidden]),
    ]


HANDLERS: dict[str, Handler] = {"LSTM": _lstm}
