"""Whether a vDevice is the machine at hand, so that something can be measured on it."""

from __future__ import annotations

from irkit.driver.gpu_at_hand import gpu_at_hand
from irkit.errors import DeviceError
from irkit.schedule.model import VDevice


def why_elsewhere(device: VDevice) -> str | None:
    """Why nothing can be measured on `device` here; None if it is at hand. Every CPU's vDevice is: its vEUs
    are threads, and its rates are those of this processor."""
    if device.kind == "cpu":
        return None
    if device.kind == "test":
        return f"device '{device.name}' is of tests, and no machine"
    try:
        found = gpu_at_hand()
    except DeviceError as error:
        return str(error)
    if found.name == device.name:
        return None
    return f"device '{device.name}' is not at hand: the GPU here is '{found.name}'"
