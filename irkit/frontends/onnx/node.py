"""One ONNX node as handlers see it: typed attributes, operands, and a way to refuse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from onnx import NodeProto, helper
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from irkit.dialects.graph import ConcatOp
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.batch import BatchDim
from irkit.dialects.graph.semantics import evaluate
from irkit.dialects.types import DYNAMIC, Tensor, numpy_dtype, tensor_type
from irkit.frontends.module import GraphBuilder, attribute
from irkit.frontends.onnx.attribute_values import wrong_value
from irkit.frontends.onnx.extents import mark
from irkit.frontends.onnx.narrow import NarrowValues
from irkit.frontends.onnx.provenance import known_array
from irkit.frontends.onnx.strings import Strings
from irkit.narrow_integers import narrow_of
from irkit.weights import Array

Value = SSAValue | Array
"""What an ONNX name stands for: a tensor of the program, or an array known at import."""


class Refusal(Exception):
    """This node cannot be imported: which parameter, and why."""

    def __init__(self, parameter: str, reason: str) -> None:
        super().__init__(f"{parameter}: {reason}" if parameter else reason)


class NeedsConstant(Refusal):
    """This node needs `value` to be known at import."""

    def __init__(self, parameter: str, value: SSAValue) -> None:
        super().__init__(parameter, "it must be constant")
        self.value = value


@dataclass
class Node:
    """A node of the standard operator set at version `opset`, with its inputs resolved.

    `symbolic` tells which inputs are shape arrays that hold multiples of the unknown batch size, as marks
    (`extents.py`).
    """

    proto: NodeProto
    opset: int
    builder: GraphBuilder
    inputs: Sequence[Value | None]
    symbolic: Sequence[bool]
    strings: Strings = field(default_factory=Strings)
    narrow: NarrowValues = field(default_factory=NarrowValues)
    _attributes: dict[str, Any] = field(init=False)
    _read: set[str] = field(init=False, default_factory=set[str])

    def __post_init__(self) -> None:
        self._attributes = {a.name: helper.get_attribute_value(a) for a in self.proto.attribute}

    def refuse(self, parameter: str, reason: str) -> NoReturn:
        """Give up on this node."""
        raise Refusal(parameter, reason)

    # Attributes

    def attribute(self, name: str, default: Any) -> Any:
        """Attribute `name`; strings as str, lists as list."""
        self._read.add(name)
        value = self._attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def has(self, name: str) -> bool:
        """Whether attribute `name` is given."""
        return name in self._attributes

    def ignore(self, *names: str) -> None:
        """These attributes do not change the result at inference."""
        self._read.update(names)

    def require(self, name: str, value: Any, default: Any = None) -> None:
        """Refuse any value of attribute `name` but `value` (its default unless told)."""
        got = self.attribute(name, value if default is None else default)
        if got != value:
            self.refuse(f"{name} = {got!r}", f"only {value!r} is supported")

    def check_attributes(self) -> None:
        """Refuse attributes that the handler has not looked at."""
        for name in sorted(self._attributes.keys() - self._read):
            self.refuse(name, "this attribute is not supported")

    def check_values(self) -> None:
        """Refuse values that an attribute of this operator does not have."""
        if wrong := wrong_value(self.proto.domain, self.proto.op_type, self._attributes):
            self.refuse(*wrong)

    # Inputs

    def given(self, index: int) -> Value | None:
        """Input `index`, None if left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def name_of(self, index: int) -> str:
        """How messages call an input."""
        return f"input '{self.proto.input[index]}'"

    def operand(self, index: int) -> SSAValue:
        """Input `index` as a tensor of the program."""
        value = self.given(index)
        if value is None:
            self.refuse(f"input {index}", "it is missing")
        return value if isinstance(value, SSAValue) else self.tensor(self.array(index), True)

    def operands(self) -> list[SSAValue]:
        """All inputs as tensors of the program."""
        return [self.operand(i) for i in range(len(self.inputs))]

    def tensor(self, array: Array, unchanging: bool = False) -> SSAValue:
        """A constant of the program; of an array that is `unchanging`, looked at once. Integers of fewer than
        8 bits are bytes. Refuses a dtype that irkit has no type for."""
        if (kind := narrow_of(array.dtype)) is not None:
            array, unchanging = array.astype(kind.wide), False
        try:
            return self.builder.unchanging(array) if unchanging else self.builder.constant(array)
        except KeyError:
            self.refuse(f"dtype {array.dtype}", "irkit has no such element type")

    def shape_array(self, index: int) -> Array:
        """Input `index`, known at import; may hold DYNAMIC."""
        value = self.given(index)
        if value is None:
            self.refuse(f"input {index}", "it is missing")
        if not isinstance(value, SSAValue):
            return value
        array = known_array(value, self.builder.weights)
        if array is None:
            raise NeedsConstant(self.name_of(index), value)
        return array

    def array(self, index: int) -> Array:
        """Input `index`, known at import."""
        array = self.shape_array(index)
        if self.symbolic[index]:
            self.refuse(self.name_of(index), "it depends on the dynamic batch size")
        return array

    def type_of(self, index: int) -> Tensor:
        """Type of input `index` as a tensor of the program."""
        return tensor_type(self.operand(index))

    def sizes(self, index: int) -> list[int]:
        """Shape of input `index`; a dynamic dimension is a mark, which says what multiple of the batch."""
        value = self.operand(index)
        shape, state = list(tensor_type(value).get_shape()), self.builder.batch.of(value)
        if DYNAMIC not in shape:
            return shape
        if not isinstance(state, BatchDim):
            self.refuse(self.name_of(index), "its size hangs on a batch whose rows were mixed")
        return [mark(state.factor) if s == DYNAMIC else s for s in shape]

    def batch_source(self) -> SSAValue:
        """An input of the program that is as long as the batch."""
        for value in self.builder.inputs:
            if isinstance(state := self.builder.batch.of(value), BatchDim) and state.factor == 1:
                return value
        self.refuse("", "it depends on the dynamic batch size")

    def axis(self, value: int, rank: int) -> int:
        """An axis counted from the front."""
        return value + rank if value < 0 else value

    # Results

    def emit(self, op: type[GraphOp], *operands: SSAValue, **props: Any) -> SSAValue:
        """Append an op with one result."""
        return self.emit_all(op, *operands, **props)[0]

    def emit_all(self, op: type[GraphOp], *operands: SSAValue, **props: Any) -> Sequence[SSAValue]:
        """Append an op. Whether it treats each row of a dynamic batch alone is the analysis's to say.

        What has no elements, or comes of what has none, is a constant: a program has no empty tensors.
        Concatenations go without it.
        """
        try:
            if any(0 in tensor_type(v).get_shape() for v in operands):
                return self._evaluated(op, operands, props)
            results = self.builder.ops(op, *operands, **props)
        except VerifyException as error:
            self.refuse("", str(error))
        return results

    def _evaluated(
        self, op: type[GraphOp], operands: Sequence[SSAValue], props: dict[str, Any]
    ) -> Sequence[SSAValue]:
        """The op's results as constants; some operand has no elements."""
        made = op.make(operands, {k: attribute(v) for k, v in props.items()})
        shapes = [tensor_type(r).get_shape() for r in made.results]
        arrays = [known_array(v, self.builder.weights) for v in operands]
        known = [a for a in arrays if a is not None]
        if len(known) == len(arrays):
            return [self.tensor(a) for a in evaluate(made, known)]
        if op is ConcatOp and 0 not in shapes[0]:
            return self._joined([v for v in operands if 0 not in tensor_type(v).get_shape()], props)
        if any(0 not in shape for shape in shapes):
            self.refuse("operands", "empty tensors are not supported")
        dtypes = [numpy_dtype(tensor_type(r).element_type) for r in made.results]
        return [self.tensor(np.empty(s, d)) for s, d in zip(shapes, dtypes, strict=True)]

    def _joined(self, parts: Sequence[SSAValue], props: dict[str, Any]) -> Sequence[SSAValue]:
        """A concatenation of what has elements, such as new keys behind a past of no steps."""
        return self.builder.ops(ConcatOp, *parts, **props) if len(parts) > 1 else parts


Handler = Callable[[Node], Sequence[Value]]
"""Appends a node's ops and returns its outputs, as many as the handler knows."""
