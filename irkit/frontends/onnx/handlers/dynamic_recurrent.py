"""com.microsoft's DynamicQuantizeLSTM: an LSTM whose weights are integers.

The input as a whole, and the hidden state at each step, are brought to uint8 by their own least and largest
elements; sums of products are exact integers, and all else is of floats. ONNX Runtime does so with the rows
that one of its threads has at a time, so that its results hang on how many there are, and in reverse on which
sequences end where; here it is all rows of a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.graph.recurrent import activation_names
from irkit.dialects.types import tensor_type
from irkit.frontends.onnx.handlers.arithmetic import cast
from irkit.frontends.onnx.handlers.dynamic_products import scaled_product, taken_dynamically
from irkit.frontends.onnx.handlers.quantisation import has_zero_point
from irkit.frontends.onnx.handlers.recurrent import Recurrence
from irkit.frontends.onnx.node import Handler, Node, Value

FUNCTIONS = {"relu": graph.ReluOp, "sigmoid": graph.SigmoidOp, "tanh": graph.TanhOp}


class DynamicLstm(Recurrence):
    """Imports one node. Its inputs are an LSTM's, with weights inputs × gates, then scales and zero points:
    one of each direction, or one of each column."""

    def _units(self) -> int:
        return self.node.type_of(2).get_shape()[1]

    @cached_property
    def _quantised_x(self) -> tuple[SSAValue, SSAValue]:
        """The input and its scale. What lies behind the end of the longest sequence counts for nothing."""
        node, x, lengths = self.node, self.x, self._lengths()
        if lengths is not None:
            longest = node.emit(graph.ReduceOp, lengths, kind="max", axes=[0, 1], keepdims=False)
            steps = np.arange(self.steps, dtype=self._length_dtype()).reshape(-1, 1, 1)
            read = node.emit(graph.CompareOp, longest, node.tensor(steps), predicate="gt")
            x = node.emit(graph.WhereOp, read, x, node.tensor(np.zeros((), self.dtype)))
        return taken_dynamically(node, x)

    def _weights(self, index: int, scale: int, d: int) -> tuple[SSAValue, SSAValue]:
        """Input `index` of one direction, centred, and its scale; the zero point is the input behind that."""
        weights = cast(self.node, self._of_direction(index, 0, d), i32)
        if has_zero_point(self.node, scale + 1):
            zero = cast(self.node, self._of_direction(scale + 1, 0, d), i32)
            weights = self.node.emit(graph.SubOp, weights, zero)
        return weights, self._of_direction(scale, 0, d)

    def _parameters(self) -> list[list[SSAValue]]:
        """Of each direction: what the input adds to gates, recurrent weights, their scale, and peepholes."""
        node, count, gates = self.node, len(self.directions), 4 * self.hidden
        if self.batch_first:
            node.refuse("layout = 1", "only steps before the batch are supported")
        self._check_shape(1, (count, self.inputs, gates))
        self._check_shape(2, (count, self.hidden, gates))
        if node.given(3) is not None:
            self._check_shape(3, (count, 2 * gates))
        if node.given(7) is not None:
            self._check_shape(7, (count, 3 * self.hidden))
        found: list[list[SSAValue]] = []
        for d in range(count):
            total = scaled_product(node, self._quantised_x, self._weights(1, 8, d), self._bias(d))
            parameters = [total, *self._weights(2, 10, d)]
            if node.given(7) is not None:
                parameters.append(self._of_direction(7, 0, d))
            found.append(parameters)
        return found

    def _layer(
        self, d: int, states: list[SSAValue], parameters: list[SSAValue], lengths: SSAValue | None
    ) -> tuple[SSAValue, list[SSAValue]]:
        return self._cells(d, states, parameters, lengths)

    def _functions(self, d: int) -> list[type[graph.ReluOp | graph.SigmoidOp | graph.TanhOp]]:
        """Those of gates, of what comes in, and of what goes out."""
        asked = self.props[d].get("activations")
        names = self.kind.layer.USUAL if asked is None else activation_names(asked)
        if unknown := sorted(set(names) - set(FUNCTIONS)):
            known = ", ".join(FUNCTIONS)
            self.node.refuse(f"activations = {unknown}", f"only {known} are supported")
        return [FUNCTIONS[name] for name in names]

    def _part(self, x: SSAValue, number: int) -> SSAValue:
        """What of the last dimension belongs to one gate, of i, o, f and g."""
        rows = tensor_type(x).get_shape()[:-1]
        return self.node.emit(
            graph.SliceOp,
            x,
            offsets=[0] * len(rows) + [number * self.hidden],
            sizes=[*rows, self.hidden],
            strides=[1] * (len(rows) + 1),
        )

    def _step(
        self, d: int, number: int, states: list[SSAValue], parameters: list[SSAValue]
    ) -> list[SSAValue]:
        node, (h, c) = self.node, states
        of_x, weights, scale, *peepholes = parameters
        opens, coming, going = self._functions(d)
        total = scaled_product(
            node, taken_dynamically(node, h), (weights, scale), self._picked(of_x, 0, number)
        )

        def looked(gate: int, cell: SSAValue) -> SSAValue:
            """Columns of one gate, and what its peephole sees of the cell."""
            x = self._part(total, gate)
            if not peepholes:
                return x
            seen = node.emit(graph.MulOp, self._part(peepholes[0], gate), cell)
            return node.emit(graph.AddOp, x, seen)

        i, f = (node.emit(opens, looked(n, c)) for n in (0, 2))
        new = node.emit(graph.MulOp, i, node.emit(coming, self._part(total, 3)))
        c = node.emit(graph.AddOp, node.emit(graph.MulOp, f, c), new)
        o = node.emit(opens, looked(1, c))
        return [node.emit(graph.MulOp, o, node.emit(going, c)), c]


def _dynamic_lstm(node: Node) -> Sequence[Value]:
    return DynamicLstm(node).run()


MICROSOFT: dict[str, Handler] = {"DynamicQuantizeLSTM": _dynamic_lstm}
