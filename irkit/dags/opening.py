"""`irkit.dag`."""

from __future__ import annotations

from typing import cast

from irkit.dags.dag import Dag
from irkit.dags.device import DagDevice
from irkit.dags.mock import MockDevice
from irkit.errors import UnsupportedError
from irkit.schedule.host.planning import STREAMS


def dag(device: str | DagDevice = "cuda", *, eager: bool = False, streams: int = STREAMS) -> Dag:
    """A DAG, to be used in a `with` statement.

    `device` is "cuda", the first GPU, "mock", which needs none, or a device such as
    `MockDevice(seed=1)`. Launches are recorded, for `plan` and `run`; or, with `eager`, started as
    they come. `streams` is how many are used at most. Raises DeviceError where there is no GPU,
    UnsupportedError for another device.
    """
    if not isinstance(cast(object, streams), int) or streams < 1:
        raise UnsupportedError(f"streams={streams!r}: a whole number, at least 1, is needed")
    if not isinstance(device, str) and not hasattr(device, "new_stream"):
        raise UnsupportedError(
            f"device {device!r}: a DAG runs on 'cuda', 'mock' or a device that is given"
        )
    if not isinstance(device, str):
        return Dag(device, eager, streams)
    if device == "mock":
        return Dag(cast(DagDevice, MockDevice()), eager, streams)
    if device == "cuda":
        from irkit.dags.gpu import GpuDevice

        return Dag(GpuDevice(), eager, streams)
    raise UnsupportedError(
        f"device '{device}': a DAG runs on 'cuda', 'mock' or a device that is given"
    )
