"""The registry of vDevices: what the scheduler may assume about a machine."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from typing import Final

from irkit.errors import UnsupportedError
from irkit.processors import usable_cores
from irkit.schedule.gpus import gpu_vdevice, table
from irkit.schedule.model import VDevice
from irkit.schedule.rates import cpu_rates, default_rates

_CPU_NAME: Final = re.compile(r"cpu([1-9][0-9]{0,3})")


def _test4() -> VDevice:
    """Four vEUs: small enough to try every interleaving of a small program."""
    return VDevice(
        name="test4",
        kind="test",
        veus=4,
        threads=1,
        shared_bytes=64 * 1024,
        wait_ns=100.0,
        rates=default_rates("test4"),
    )


def _cpu(name: str, veus: int) -> VDevice:
    """One vEU per core."""
    return VDevice(
        name=name,
        kind="cpu",
        veus=veus,
        threads=1,
        shared_bytes=0,
        wait_ns=200.0,
        rates=cpu_rates(),
    )


_REGISTRY: Final[dict[str, Callable[[], VDevice]]] = {
    "cpu": lambda: _cpu("cpu", usable_cores()),
    "test4": _test4,
}
"""Devices that are no GPUs of the table, and what was added."""


def register_device(name: str, make: VDevice | Callable[[], VDevice]) -> None:
    """Make `name` known to `device`; a callable is evaluated at each look-up.

    Raises ValueError when the name is taken.
    """
    if name in _REGISTRY or name in table() or _CPU_NAME.fullmatch(name):
        raise ValueError(f"device '{name}' is already registered")
    _REGISTRY[name] = (lambda: make) if isinstance(make, VDevice) else make


def device_names() -> list[str]:
    """The registered names and those of GPUs, sorted; `cpuN` stands for a CPU with N vEUs."""
    return [*sorted({*_REGISTRY, *table()}), "cpuN"]


def device(name: str) -> VDevice:
    """The vDevice called `name`: a GPU of the table (`irkit/schedule/gpus.json`), "cpu2", a CPU with two
    vEUs, "cpu", which has the cores at hand, or one that was registered.

    Raises UnsupportedError, with the nearest known name and the list, when there is none.
    """
    if name in _REGISTRY:
        return _REGISTRY[name]()
    if match := _CPU_NAME.fullmatch(name):
        return _cpu(name, int(match.group(1)))
    if name in table():
        return gpu_vdevice(table()[name])
    near = difflib.get_close_matches(_plain(name), device_names(), n=1, cutoff=0.4)
    hint = f"; did you mean '{near[0]}'? Known" if near else "; known"
    known = ", ".join(device_names())
    raise UnsupportedError(f"unknown device '{name}'{hint}: {known}")


def _plain(name: str) -> str:
    """As the table would write it: "NVIDIA GeForce RTX 4090" is "rtx4090"."""
    plain = re.sub(r"nvidia|geforce|generation|\s|_", "", name.lower())
    return plain.replace("blackwell", "")
