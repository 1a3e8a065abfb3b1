"""Between `task.vdevice` and the scheduler's VDevice."""

from __future__ import annotations

from typing import Literal, cast

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp, StringAttr, f64, i64
from xdsl.ir import Attribute
from xdsl.utils.exceptions import PassFailedException

from irkit.dialects.task import VDeviceOp
from irkit.schedule.model import VDevice

_COUNTS = ("veus", "threads", "shared_bytes")
_RATES = ("flops_per_ns", "bytes_per_ns", "wait_ns")


def vdevice_op(device: VDevice) -> VDeviceOp:
    """The op that describes `device`."""
    properties: dict[str, Attribute] = {
        "sym_name": StringAttr(device.name),
        "kind": StringAttr(device.kind),
    }
    counts = (*_COUNTS, "multiprocessors") if device.kind == "cuda" else _COUNTS
    for name in counts:
        properties[name] = IntegerAttr(getattr(device, name), i64)
    for name in _RATES:
        properties[name] = FloatAttr(float(getattr(device, name)), f64)
    return VDeviceOp.create(properties=properties)


def device_of(module: ModuleOp) -> VDevice:
    """The device that the module describes. Raises PassFailedException if there is none."""
    described = next((op for op in module.ops if isinstance(op, VDeviceOp)), None)
    if described is None:
        raise PassFailedException("the module has no task.vdevice: run partition-rtasks first")
    processors = described.multiprocessors
    return VDevice(
        described.sym_name.data,
        cast("Literal['cpu', 'cuda', 'test']", described.kind.data),
        *(getattr(described, name).value.data for name in (*_COUNTS, *_RATES)),
        multiprocessors=processors.value.data if processors is not None else 0,
    )
