"""Is there a CUDA device that irkit can use? Imports nothing of CUDA until asked."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from irkit.architectures import why_no_code


def why_not() -> str | None:
    """None if a device is there and irkit makes code for it, else the reason in a few words."""
    try:
        driver: Any = import_module("cuda.bindings.driver")
    except ImportError:
        return "the CUDA bindings are not installed: pip install 'irkit[cuda]'"
    try:
        (status,) = driver.cuInit(0)
    except RuntimeError as error:
        return f"no CUDA driver: {error}"
    if status != driver.CUresult.CUDA_SUCCESS:
        return f"no usable CUDA device ({status.name})"
    status, count = driver.cuDeviceGetCount()
    if status != driver.CUresult.CUDA_SUCCESS or count == 0:
        return "no CUDA device"
    return _why_no_code(driver)


def _why_no_code(driver: Any) -> str | None:
    """Why the first device is none that irkit makes code for."""
    _, handle = driver.cuDeviceGet(0)
    _, name = driver.cuDeviceGetName(96, handle)
    kind: Any = driver.CUdevice_attribute
    version = "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_"
    numbers = (getattr(kind, version + part) for part in ("MAJOR", "MINOR"))
    major, minor = (int(driver.cuDeviceGetAttribute(n, handle)[1]) for n in numbers)
    return why_no_code(name.split(b"\0")[0].decode(), (major, minor))
