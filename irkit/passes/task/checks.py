"""What no schedule can have: refused before any rOperator is formed."""

from __future__ import annotations

import math

from xdsl.dialects import tensor
from xdsl.dialects.builtin import IndexType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

from irkit.dialects.csr_base import is_stored_length
from irkit.dialects.tensor_ops.interface import Kind
from irkit.dialects.tensor_ops.registry import kind_of
from irkit.dialects.types import DYNAMIC, Tensor
from irkit.errors import UnsupportedError

# Addresses of a process have 47 bits.
LARGEST = 2**44


def check_types(main: FuncOp) -> None:
    """Raises UnsupportedError for a value of `main` whose bytes could not be planned or named."""
    for number, t in enumerate(main.function_type.inputs.data):
        if isa(t, Tensor) and is_stored_length(t.get_shape()):
            # It comes from the host, which alone has to know its size.
            continue
        _check_tensor(t, f"input {number} of @{main.sym_name.data}")
    for number, t in enumerate(main.function_type.outputs.data):
        _check_tensor(t, f"output {number} of @{main.sym_name.data}")
    for op in main.body.block.ops:
        # `launch_reader` and `function_meaning` each know what bytes a view names.
        if kind_of(op) is Kind.VIEW and op.dialect_name() != tensor.Tensor.name:
            raise UnsupportedError(f"'{op.name}' as a view: schedules know those of 'tensor' alone")
        for result in op.results:
            if isa(result.type, Tensor):
                _check_tensor(result.type, f"result of '{op.name}'")


def _check_tensor(t: Attribute, what: str) -> None:
    if not isa(t, Tensor):
        raise UnsupportedError(f"{what}: expected a tensor, got {t}")
    shape = t.get_shape()
    if DYNAMIC in shape[1:]:
        raise UnsupportedError(f"{what}: only the leading dimension can be dynamic, got {t}")
    if 0 in shape:
        raise UnsupportedError(f"{what}: a tensor without elements, {t}")
    if isinstance(t.element_type, IndexType):
        raise UnsupportedError(f"{what}: elements of type index have no size in memory")
    if math.prod(s for s in shape if s != DYNAMIC) > LARGEST:
        raise UnsupportedError(f"{what}: {t} has more elements than there are addresses")
