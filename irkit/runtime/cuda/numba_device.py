"""The device that Numba is told it compiles for, where none need be at hand."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from irkit.architectures import ARCHITECTURES

Capability = tuple[int, int, str]


def capability_of(arch: str) -> Capability:
    """An architecture ("sm_90a") as Numba calls it."""
    built = ARCHITECTURES[arch]
    return (*built.capability, built.suffix)


@contextmanager
def compiling_for(cc: Capability) -> Generator[None]:
    """Device functions are compiled for `cc`.

    Numba would ask the driver for the device at hand, which need not exist and whose context is not
    wanted.
    """
    dispatcher: Any = import_module("numba.cuda.dispatcher")
    asked = dispatcher.get_current_device
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=cc)
    try:
        yield
    finally:
        dispatcher.get_current_device = asked
