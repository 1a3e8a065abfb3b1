"""The device that a pass is asked to work for."""

from __future__ import annotations

from xdsl.utils.exceptions import PassFailedException

from irkit.errors import DeviceError, UnsupportedError
from irkit.rkernels.legality import target_of
from irkit.schedule.devices import device
from irkit.schedule.model import VDevice


def device_of(name: str) -> VDevice:
    """The device of that name.

    Raises PassFailedException for a name that is unknown, or a device that cannot be planned for.
    """
    try:
        return device(name)
    except (UnsupportedError, DeviceError) as error:
        raise PassFailedException(str(error)) from None


def gpu_of(name: str) -> VDevice | None:
    """The GPU of that name; None of a CPU, and where no name is given.

    Raises PassFailedException for a name that is unknown.
    """
    try:
        found = device(name) if name else None
    except DeviceError as error:
        raise PassFailedException(str(error)) from None
    return None if found is None or target_of(found) == "cpu" else found
