"""Upstream's `bufferization` dialect where arrays have strides.

xDSL 0.74 holds the tensor of `to_tensor` and `materialize_in_destination` to an array without a layout.
Upstream, and these, hold it to the array's shape and element type.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects import bufferization as upstream
from xdsl.dialects.builtin import MemRefType, TensorType, UnitAttr
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    opt_result_def,
    result_def,
)
from xdsl.utils.exceptions import VerifyException

from irkit.dialects.types import Tensor

Array = MemRefType[Attribute]


def tensor_of_array(array: Array) -> Tensor:
    """The type of what an array holds."""
    return TensorType(array.element_type, array.get_shape())


def _check(op: Operation, array: Attribute, held: Attribute) -> None:
    expected = tensor_of_array(cast(Array, array)) if isinstance(array, MemRefType) else array
    if expected != held:
        raise VerifyException(f"'{op.name}': expected {expected}, what {array} holds, got {held}")


@irdl_op_definition
class ToTensorOp(IRDLOperation):
    """What an array holds now."""

    name = "bufferization.to_tensor"
    memref = operand_def(MemRefType)
    tensor = result_def(TensorType)
    writable = opt_prop_def(UnitAttr)
    restrict = opt_prop_def(UnitAttr)
    assembly_format = (
        "$memref (`restrict` $restrict^)? (`writable` $writable^)? attr-dict `:` "
        "type($memref) `to` type($tensor)"
    )

    def __init__(self, memref: SSAValue) -> None:
        array = cast(Array, memref.type)
        super().__init__(operands=[memref], result_types=[tensor_of_array(array)])

    def verify_(self) -> None:
        _check(self, self.memref.type, self.tensor.type)


@irdl_op_definition
class MaterializeInDestinationOp(IRDLOperation):
    """Write a tensor to an array, or to another tensor, of which it then is the value."""

    name = "bufferization.materialize_in_destination"
    source = operand_def(TensorType)
    dest = operand_def(MemRefType | TensorType)
    result = opt_result_def(TensorType)
    restrict = opt_prop_def(UnitAttr)
    writable = opt_prop_def(UnitAttr)
    assembly_format = (
        "$source `in` (`restrict` $restrict^)? (`writable` $writable^)? $dest attr-dict `:` "
        "functional-type(operands, results)"
    )

    def __init__(self, source: SSAValue, dest: SSAValue) -> None:
        super().__init__(
            operands=[source, dest],
            result_types=[None],
            properties={"writable": UnitAttr()},
        )

    def verify_(self) -> None:
        _check(self, self.dest.type, self.source.type)
        to_array = isinstance(self.dest.type, MemRefType)
        if to_array != (self.result is None) or to_array != (self.writable is not None):
            raise VerifyException(
                f"'{self.name}': an array is written with 'writable' and no result, a tensor the other way round"
            )


_OWN: list[type[Operation]] = [ToTensorOp, MaterializeInDestinationOp]
_NAMES = {op.name for op in _OWN}

Bufferization = Dialect(
    "bufferization",
    [op for op in upstream.Bufferization.operations if op.name not in _NAMES] + _OWN,
    list(upstream.Bufferization.attributes),
)
