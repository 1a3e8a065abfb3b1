"""Between `task.vdevice` and the scheduler's VDevice."""

from __future__ import annotations

from typing import Literal, cast

from xdsl.dialects.builtin import (
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    f64,
    i64,
)
from xdsl.ir import Attribute
from xdsl.utils.exceptions import PassFailedException

from irkit.dialects.task import VDeviceOp
from irkit.schedule.model import VDevice

_COUNTS = ("veus", "threads", "shared_bytes")


def vdevice_op(device: VDevice) -> VDeviceOp:
    """The op that describes `device`."""
    properties: dict[str, Attribute] = {
        "sym_name": StringAttr(device.name),
        "kind": StringAttr(device.kind),
    }
    counts = (*_COUNTS, "multiprocessors", "l2_bytes") if device.kind == "cuda" else _COUNTS
    for name in counts:
        properties[name] = IntegerAttr(getattr(device, name), i64)
    if device.kind == "cuda":
        properties["arch"] = StringAttr(device.arch)
    if device.rates_from:
        properties["rates_from"] = StringAttr(device.rates_from)
    properties["wait_ns"] = FloatAttr(float(device.wait_ns), f64)
    properties["rates"] = DictionaryAttr(
        {name: FloatAttr(float(rate), f64) for name, rate in sorted(device.rates.items())}
    )
    return VDeviceOp.create(properties=properties)


def device_of(module: ModuleOp) -> VDevice:
    """The device that the module describes. Raises PassFailedException if there is none."""
    described = next((op for op in module.ops if isinstance(op, VDeviceOp)), None)
    if described is None:
        raise PassFailedException("the module has no task.vdevice: run partition-rtasks first")
    processors, l2_bytes = described.multiprocessors, described.l2_bytes
    arch, rates_from = described.arch, described.rates_from
    return VDevice(
        described.sym_name.data,
        cast("Literal['cpu', 'cuda', 'test']", described.kind.data),
        *(getattr(described, name).value.data for name in (*_COUNTS, "wait_ns")),
        multiprocessors=processors.value.data if processors is not None else 0,
        l2_bytes=l2_bytes.value.data if l2_bytes is not None else 0,
        arch=arch.data if arch is not None else "",
        rates_from=rates_from.data if rates_from is not None else "",
        rates={
            name: rate.value.data
            for name, rate in described.rates.data.items()
            if isinstance(rate, FloatAttr)
        },
    )
