"""What a program is compiled for: a target, the vDevice that is planned for, and by which policy."""

from __future__ import annotations

from irkit.driver.gpu_at_hand import CUDA, know_gpu_at_hand
from irkit.driver.registry import all_passes
from irkit.errors import DeviceError, UnsupportedError
from irkit.schedule import devices
from irkit.schedule.gpus import CALIBRATED
from irkit.schedule.model import VDevice

TARGETS = ("auto", "cpu", "cuda")
DEVICES = {"cpu": "cpu", "cuda": CUDA}
"""Target → the vDevice that is planned for where none is named: the processor or the GPU at hand."""


def resolve_target(target: str) -> str:
    """ "cpu" or "cuda". Raises DeviceError for a target that is unknown or absent."""
    _check_target(target)
    if target == "cpu":
        return "cpu"
    from irkit.runtime.cuda import availability

    reason = availability.why_not()
    if reason is None:
        return "cuda"
    if target == "cuda":
        raise DeviceError(f"target 'cuda': {reason}")
    return "cpu"


def usual_device(target: str) -> str:
    """The name of the vDevice that code for a target is made for where none is named; without a GPU at
    hand, that of "cuda" is the GPU that irkit's rates were measured on."""
    from irkit.runtime.cuda import availability

    if target == "cuda" and availability.why_not() is not None:
        return CALIBRATED
    return DEVICES[target]


def target_of(device: VDevice) -> str:
    """The target whose programs run on `device`: tests' devices are emulated on a CPU."""
    return "cuda" if device.kind == "cuda" else "cpu"


def planned_device(target: str = "auto", device: str | VDevice | None = None) -> VDevice:
    """The vDevice to plan for: `device`, by name or as it is, or the usual one of `target`.

    A named device need not be there, so that programs can be compiled for another machine; "cuda" is the GPU
    at hand. Raises DeviceError where target and device disagree or what is asked for is absent,
    UnsupportedError for an unknown device, or for one that has the name of another.
    """
    know_gpu_at_hand()
    if device is None:
        return devices.device(DEVICES[resolve_target(target)])
    _check_target(target)
    found = devices.device(device) if isinstance(device, str) else _known(device)
    if target not in ("auto", target_of(found)):
        raise DeviceError(
            f"device '{found.name}' is for target '{target_of(found)}', not for target '{target}'"
        )
    return found


def _known(device: VDevice) -> VDevice:
    """`device`, which the registry knows from here on: modules name their device."""
    try:
        same = devices.device(device.name)
    except UnsupportedError:
        devices.register_device(device.name, device)
        return device
    if same != device:
        raise UnsupportedError(f"device '{device.name}': there is another one of this name")
    return device


def _check_target(target: str) -> None:
    if target not in TARGETS:
        raise DeviceError(f"target '{target}': expected {', '.join(TARGETS)}")


def check_policy(policy: str) -> None:
    """Raises UnsupportedError unless there is a pass `schedule-<policy>`."""
    prefix = "schedule-"
    known = [name.removeprefix(prefix) for name in all_passes() if name.startswith(prefix)]
    if policy not in known:
        raise UnsupportedError(f"policy '{policy}': expected {', '.join(sorted(known))}")
