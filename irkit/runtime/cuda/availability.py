"""Is there a CUDA device that irkit can use? Imports nothing of CUDA until asked."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def why_not() -> str | None:
    """None if a device is there and new enough, else the reason in a few words."""
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
    return None
