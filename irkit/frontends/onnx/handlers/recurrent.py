"""LSTM, GRU and RNN: one layer a direction, or cells where sequences differ in length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.graph.recurrent import ACTIVATIONS, CellOp, LayerOp
from irkit.dialects.types import DYNAMIC, numpy_dtype, tensor_type
from irkit.frontends.onnx.node import Handler, Node, Value

DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
"""By `direction`: for each direction whether it is the reverse one."""


@dataclass(frozen=True)
class Kind:
    """A kind of layer: its ops, and which inputs are its states."""

    layer: type[LayerOp]
    cell: type[CellOp]
    states: tuple[int, ...]


KINDS = {
    "GRU": Kind(graph.GruOp, graph.GruCellOp, (5,)),
    "LSTM": Kind(graph.LstmOp, graph.LstmCellOp, (5, 6)),
    "RNN": Kind(graph.RnnOp, graph.RnnCellOp, (5,)),
}


class Recurrence:
    """Imports one node."""

    def __init__(self, node: Node) -> None:
        self.node, self.kind = node, KINDS[node.proto.op_type.removeprefix("DynamicQuantize")]
        name = node.attribute("direction", "forward")
        if name not in DIRECTIONS:
            node.refuse(f"direction = {name!r}", f"it must be one of {', '.join(DIRECTIONS)}")
        self.directions = DIRECTIONS[name]
        self.batch_first = bool(node.attribute("layout", 0))
        self.x = node.operand(0)
        t = tensor_type(self.x)
        if t.get_num_dims() != 3:
            node.refuse("X", "it must have three dimensions")
        leading = t.get_shape()[:2]
        self.batch, self.steps = leading if self.batch_first else leading[::-1]
        if self.steps == DYNAMIC:
            node.refuse("X", "the number of steps must be static (fix it with shapes)")
        self.inputs = t.get_shape()[2]
        self.dtype = numpy_dtype(t.element_type)
        self.hidden = self._units()
        if node.attribute("hidden_size", self.hidden) != self.hidden:
            node.refuse("hidden_size", f"the recurrent weights are for {self.hidden}")
        self._refuse_options()
        self.props = self._props()

    def _refuse_options(self) -> None:
        node = self.node
        if node.has("clip"):
            node.refuse("clip", "clipping of cells is not supported")
        if self.kind is KINDS["LSTM"]:
            node.require("input_forget", 0)

    def _units(self) -> int:
        """How many units a state has, by the recurrent weights."""
        return self.node.type_of(2).get_shape()[-1]

    # Functions

    def _props(self) -> list[dict[str, Any]]:
        """Properties of each direction's op."""
        node, usual = self.node, self.kind.layer.USUAL
        names = [a.decode().lower() for a in node.attribute("activations", [])]
        names = names or [*usual] * len(self.directions)
        if len(names) != len(usual) * len(self.directions):
            node.refuse(f"activations = {names}", f"{len(usual)} a direction are needed")
        if unknown := sorted(set(names) - set(ACTIVATIONS)):
            node.refuse(f"activations = {unknown}", f"only {', '.join(ACTIVATIONS)} are supported")
        node.ignore("activation_alpha", "activation_beta")  # the supported ones have none
        found: list[dict[str, Any]] = []
        for d in range(len(self.directions)):
            own = tuple(names[d * len(usual) : (d + 1) * len(usual)])
            props: dict[str, Any] = {}
            if own != usual:
                props["activations"] = ArrayAttr([StringAttr(n) for n in own])
            if node.proto.op_type == "GRU":
                props["linear_before_reset"] = bool(node.attribute("linear_before_reset", 0))
            found.append(props)
        return found

    # Weights

    def _parameters(self) -> list[list[SSAValue]]:
        """w, r, b and peepholes of each direction."""
        count, gates = len(self.directions), self.kind.layer.GATES
        wanted = {1: (count, gates * self.hidden, self.inputs),
                  2: (count, gates * self.hidden, self.hidden),
                  3: (count, 2 * gates * self.hidden),
                  7: (count, 3 * self.hidden)}  # fmt: skip
        for index, shape in wanted.items():
            if self.node.given(index) is not None:
                self._check_shape(index, shape)
        found: list[list[SSAValue]] = []
        for d in range(count):
            parameters = [self._of_direction(1, 0, d), self._of_direction(2, 0, d), self._bias(d)]
            if self.node.given(7) is not None:
                parameters.append(self._of_direction(7, 0, d))
            found.append(parameters)
        return found

    def _of_direction(self, index: int, axis: int, d: int) -> SSAValue:
        """Input `index` of one direction, without the axis of directions."""
        if isinstance(self.node.given(index), np.ndarray):
            array = np.take(self.node.array(index), d, axis=axis)
            return self.node.tensor(np.ascontiguousarray(array))
        return self._picked(self.node.operand(index), axis, d)

    def _bias(self, d: int) -> SSAValue:
        """Biases of inputs and states summed, but those of a GRU's hidden gate one by one."""
        node, units = self.node, self.kind.layer.GATES * self.hidden
        summed = units - self.hidden if node.proto.op_type == "GRU" else units
        given = node.given(3)
        if given is None or isinstance(given, np.ndarray):
            both = np.zeros(2 * units, self.dtype) if given is None else node.array(3)[d]
            of_input, of_state = np.split(both, 2)
            first = of_input[:summed] + of_state[:summed]
            return node.tensor(np.concatenate([first, of_input[summed:], of_state[summed:]]))
        both = self._of_direction(3, 0, d)

        def part(start: int, size: int) -> SSAValue:
            return node.emit(graph.SliceOp, both, offsets=[start], sizes=[size], strides=[1])

        total = node.emit(graph.AddOp, part(0, summed), part(units, summed))
        if summed == units:
            return total
        rest = [part(at + summed, self.hidden) for at in (0, units)]
        return node.emit(graph.ConcatOp, total, *rest, axis=0)

    def _check_shape(self, index: int, shape: tuple[int, ...]) -> None:
        if (got := self.node.type_of(index).get_shape()) != shape:
            self.node.refuse(self.node.name_of(index), f"expected shape {shape}, got {got}")

    # States

    def _initial(self, index: int) -> list[SSAValue]:
        """A state of each direction as batch×hidden; zeros if left out."""
        node, count, shape = self.node, len(self.directions), (self.batch, self.hidden)
        given = node.given(index)
        if given is None:
            if self.batch == DYNAMIC:
                return [self._zeros()] * count
            return [node.tensor(np.zeros(shape, self.dtype))] * count
        axis = 1 if self.batch_first else 0
        whole = (self.batch, count, self.hidden) if axis else (count, *shape)
        self._check_shape(index, whole)
        return [self._of_direction(index, axis, d) for d in range(count)]

    def _zeros(self) -> SSAValue:
        """Zeros with as many rows as the dynamic batch: nothing of x but its rows."""
        row = self._picked(self.x, 1 if self.batch_first else 0, 0)
        first = self.node.emit(
            graph.SliceOp, row, offsets=[0, 0], sizes=[DYNAMIC, 1], strides=[1, 1]
        )
        nothing = self.node.emit(graph.CompareOp, first, first, predicate="eq")
        zero = self.node.tensor(np.zeros((1, self.hidden), self.dtype))
        return self.node.emit(graph.WhereOp, nothing, zero, zero)

    def _picked(self, value: SSAValue, axis: int, number: int) -> SSAValue:
        """Element `number` of one axis, which goes."""
        shape = list(tensor_type(value).get_shape())
        rest = shape[:axis] + shape[axis + 1 :]
        if shape[axis] == 1:
            return self.node.emit(graph.ReshapeOp, value, shape=rest)
        offsets = [number if d == axis else 0 for d in range(len(shape))]
        sizes = [1 if d == axis else s for d, s in enumerate(shape)]
        one = self.node.emit(
            graph.SliceOp, value, offsets=offsets, sizes=sizes, strides=[1] * len(shape)
        )
        return self.node.emit(graph.ReshapeOp, one, shape=rest)

    # Layers

    def run(self) -> list[SSAValue]:
        """Y, Y_h and, of an LSTM, Y_c."""
        initial = [self._initial(i) for i in self.kind.states]
        lengths = self._lengths()
        alone = lengths is not None or self.batch == DYNAMIC
        ys: list[SSAValue] = []
        lasts: list[list[SSAValue]] = []
        for d, parameters in enumerate(self._parameters()):
            states = [s[d] for s in initial]
            make = self._cells if alone else self._layer
            y, last = make(d, states, parameters, lengths)
            ys.append(y)
            lasts.append(last)
        return [self._stacked(ys, 2 if self.batch_first else 1)] + [
            self._stacked([last[n] for last in lasts], 1 if self.batch_first else 0)
            for n in range(len(initial))
        ]

    def _stacked(self, values: Sequence[SSAValue], axis: int) -> SSAValue:
        """One value a direction, side by side along a new axis."""
        shape = list(tensor_type(values[0]).get_shape())
        shape.insert(axis, 1)
        parts = [self.node.emit(graph.ReshapeOp, v, shape=shape) for v in values]
        return parts[0] if len(parts) == 1 else self.node.emit(graph.ConcatOp, *parts, axis=axis)

    def _layer(
        self, d: int, states: list[SSAValue], parameters: list[SSAValue], lengths: SSAValue | None
    ) -> tuple[SSAValue, list[SSAValue]]:
        """One op for all steps."""
        swap = [1, 0, 2]
        x = self.x
        if self.batch_first:
            x = self.node.emit(graph.TransposeOp, x, permutation=swap)
        props = dict(self.props[d])
        if self.directions[d]:
            props["reverse"] = True
        y, *last = self.node.emit_all(self.kind.layer, x, *states, *parameters, **props)
        if self.batch_first:
            y = self.node.emit(graph.TransposeOp, y, permutation=swap)
        return y, last

    # Cells, where the batch is dynamic or sequences differ in length

    def _lengths(self) -> SSAValue | None:
        """Steps of each sequence as batch×1; None if all are full."""
        node, given = self.node, self.node.given(4)
        if given is None or (isinstance(given, np.ndarray) and (given == self.steps).all()):
            return None
        if tensor_type(node.operand(4)).get_shape() != (self.batch,):
            node.refuse("sequence_lens", f"{self.batch} of them are needed")
        return node.emit(graph.ReshapeOp, node.operand(4), shape=[self.batch, 1])

    def _cells(
        self, d: int, states: list[SSAValue], parameters: list[SSAValue], lengths: SSAValue | None
    ) -> tuple[SSAValue, list[SSAValue]]:
        """One op a step. Behind its end a sequence keeps its states, and its outputs are zero."""
        zero = self.node.tensor(np.zeros((), self.dtype))
        outputs: dict[int, SSAValue] = {}
        order = range(self.steps)
        for number in reversed(order) if self.directions[d] else order:
            after = self._step(d, number, states, parameters)
            outputs[number] = after[0]
            if lengths is not None:
                step = self.node.tensor(np.array(number, self._length_dtype()))
                runs = self.node.emit(graph.CompareOp, lengths, step, predicate="gt")
                pairs = zip(after, states, strict=True)
                after = [self.node.emit(graph.WhereOp, runs, n, s) for n, s in pairs]
                outputs[number] = self.node.emit(graph.WhereOp, runs, after[0], zero)
            states = after
        shape = list(tensor_type(states[0]).get_shape())
        axis = 1 if self.batch_first else 0
        shape.insert(axis, 1)
        rows = [self.node.emit(graph.ReshapeOp, outputs[n], shape=shape) for n in order]
        return self.node.emit(graph.ConcatOp, *rows, axis=axis), states

    def _step(
        self, d: int, number: int, states: list[SSAValue], parameters: list[SSAValue]
    ) -> list[SSAValue]:
        """The states behind step `number`."""
        x = self._picked(self.x, 1 if self.batch_first else 0, number)
        return list(self.node.emit_all(self.kind.cell, x, *states, *parameters, **self.props[d]))

    def _length_dtype(self) -> np.dtype[Any]:
        return numpy_dtype(self.node.type_of(4).element_type)


def _recurrent(node: Node) -> Sequence[Value]:
    return Recurrence(node).run()


HANDLERS: dict[str, Handler] = dict.fromkeys(KINDS, _recurrent)
