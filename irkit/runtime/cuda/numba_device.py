"""The device that Numba is told it compiles for, where none need be at hand."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from irkit.architectures import ARCHITECTURES
from irkit.runtime.numba_repeats import looked_up_once

Capability = tuple[int, int, str]
_ONE = threading.RLock()
"""Held while Numba is told another device: what is put in place is the whole process's."""
_IMPORTING = threading.RLock()


def of_numba(name: str) -> Any:
    """A module of Numba's for GPUs. One thread at a time imports such: they import one another, and of
    threads that begin with two of them one would see half of a module."""
    with _IMPORTING:
        return import_module(name)


def capability_of(arch: str) -> Capability:
    """An architecture ("sm_90a") as Numba calls it."""
    built = ARCHITECTURES[arch]
    return (*built.capability, built.suffix)


@contextmanager
def compiling_for(cc: Capability) -> Generator[None]:
    """Device functions are compiled for `cc`.

    Numba would ask the driver for the device at hand, which need not exist and whose context is not
    wanted. One thread compiles at a time, as Numba's own lock has it too.
    """
    dispatcher: Any = of_numba("numba.cuda.dispatcher")
    with _ONE:
        asked = dispatcher.get_current_device
        dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=cc)
        try:
            with _registries_looked_up_once():
                yield
        finally:
            dispatcher.get_current_device = asked


@contextmanager
def _registries_looked_up_once() -> Generator[None]:
    """That is a tenth of Numba's time."""
    names = ("numba.core.typing.templates", "numba.cuda.typing.templates")
    found: set[Any] = {of_numba(name)._TemplateTargetHelperMixin for name in names}
    looked_up = {helper: helper._get_target_registry for helper in found}
    for helper, look_up in looked_up.items():
        helper._get_target_registry = looked_up_once(look_up)
    try:
        yield
    finally:
        for helper, look_up in looked_up.items():
            helper._get_target_registry = look_up
