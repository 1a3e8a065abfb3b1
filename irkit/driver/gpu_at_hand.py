"""The vDevice "cuda": the GPU of this machine, as its driver describes it.

Only the driver's rooms may ask the runtime, so the registry of vDevices learns of it here.
"""

from __future__ import annotations

from irkit.errors import DeviceError
from irkit.runtime.cuda import availability
from irkit.schedule import devices
from irkit.schedule.gpus import Gpu, gpu_vdevice, known_as, symbol
from irkit.schedule.model import VDevice

CUDA = "cuda"
"""What the GPU at hand is called where a vDevice is named."""


def gpu_at_hand() -> VDevice:
    """The vDevice of the first CUDA device: that of the table where it is in it, else one of the driver's
    facts, which the registry knows from here on.

    Raises DeviceError where there is none that irkit can use.
    """
    reason = availability.why_not()
    if reason is not None:
        raise DeviceError(f"device '{CUDA}': {reason}")
    found = described()
    known = known_as(found)
    if known is None and found.name not in devices.device_names():
        devices.register_device(found.name, lambda: gpu_vdevice(found))
    return gpu_vdevice(known or found)


def described() -> Gpu:
    """What the driver says of the first CUDA device. Raises DeviceError."""
    from irkit.runtime.cuda.driver import device

    at_hand = device()
    return Gpu(
        symbol(at_hand.name),
        at_hand.architecture.name,
        at_hand.multiprocessors,
        at_hand.l2_bytes,
        at_hand.clock_mhz,
        at_hand.bandwidth_gb_s,
        at_hand.memory_bytes,
        min(at_hand.shared_bytes, at_hand.architecture.shared_bytes),
        (at_hand.name,),
    )


def know_gpu_at_hand() -> None:
    """Let the registry of vDevices know "cuda"; it is looked at when it is first named."""
    if CUDA not in devices.device_names():
        devices.register_device(CUDA, gpu_at_hand)
