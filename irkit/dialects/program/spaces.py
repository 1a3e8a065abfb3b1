"""Where the arrays of a program are: memory of the host, or of a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, MemRefType, NoneAttr, StringAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from irkit.dialects.bufferization import Array

DEVICE: Final = "irkit.device"
"""Attribute of a call of a region: where it runs, "cpu" or "cuda"."""
COSTS: Final = "irkit.costs"
"""Attribute of a region's call: nanoseconds on either device, and what moving it would add."""
CPU: Final = "cpu"
CUDA: Final = "cuda"

DEVICE_SPACE: Final = IntegerAttr(1, i64)
"""The memory space of arrays of the device; those of the host have none."""


def on_device(value: SSAValue) -> bool:
    """Whether a value is an array of the device."""
    t = value.type
    return isinstance(t, MemRefType) and cast(Array, t).memory_space == DEVICE_SPACE


def in_device_space(array: Array) -> Array:
    """The type of the same array in the device's memory."""
    return MemRefType(array.element_type, array.get_shape(), array.layout, DEVICE_SPACE)


def is_of_device(function: FuncOp) -> bool:
    """Whether a function is one of arrays of the device, and runs there."""
    first = function.body.first_block
    return first is not None and any(map(on_device, first.args))


def space_fault(space: Attribute) -> str | None:
    """What is wrong with a memory space, if anything is."""
    if isinstance(space, NoneAttr) or space == DEVICE_SPACE:
        return None
    return (
        f"is in memory space {space}: there are the host's, without a number, and the device's, 1"
    )


def device_of_call(op: Operation) -> str:
    """Where a call runs: on the CPU where nothing is said."""
    said = op.attributes.get(DEVICE)
    return said.data if isinstance(said, StringAttr) else CPU


def cpu_cost(op: Operation) -> int | None:
    """What a call is said to take on the CPU, in nanoseconds."""
    return _cost(op, CPU)


def twin_cost(op: Operation) -> int | None:
    """What a call of the host is said to take on the device, in nanoseconds; None where it cannot be there."""
    return _cost(op, CUDA)


def _cost(op: Operation, device: str) -> int | None:
    said = op.attributes.get(COSTS)
    found = said.data.get(device) if isinstance(said, DictionaryAttr) else None
    return found.value.data if isinstance(found, IntegerAttr) else None


def set_cpu_cost(op: Operation, nanoseconds: int) -> None:
    """Say what a call takes on the CPU."""
    set_costs(op, {CPU: nanoseconds})


def set_costs(op: Operation, nanoseconds: Mapping[str, int]) -> None:
    """Say what a call takes, by device."""
    found = {device: IntegerAttr(ns, i64) for device, ns in nanoseconds.items()}
    op.attributes[COSTS] = DictionaryAttr(found)
