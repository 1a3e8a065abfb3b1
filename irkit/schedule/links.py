"""What it costs to reach a device from the host: the link between them, and the host's own memory.

Nanoseconds by name, as rates are; what was measured on a machine is kept beside its rates, in the file
`link-<device>.json`. What was not measured is assumed, by the generation of the link.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from irkit.errors import UnsupportedError
from irkit.schedule.model import VDevice
from irkit.schedule.rates import Rates, machine_file, parse

LINK_RATES: Final[dict[str, str]] = {
    "copy": "a copy begun, and waited for",
    "launch": "a program begun on the device, and seen to have ended",
    "to_device": "a byte copied to the device from pages that may move",
    "to_host": "a byte copied to the host's pages that may move",
    "to_device_pinned": "a byte copied to the device from pages that stay",
    "to_host_pinned": "a byte copied to the host's pages that stay",
    "stream": "a byte of arrays that no cache holds, by one core",
    "stream_all": "the same with all cores at work",
}
"""Name of a rate → what it is the time of."""

_HOST: Final[Rates] = {"stream": 0.05, "stream_all": 0.0125}
_PCIE4: Final[Rates] = {
    "copy": 10_000.0,
    "launch": 8_000.0,
    "to_device": 0.125,
    "to_host": 0.15,
    "to_device_pinned": 0.04,
    "to_host_pinned": 0.04,
}
_PCIE5: Final[Rates] = {
    **_PCIE4,
    "to_device": 0.083,
    "to_host": 0.1,
    "to_device_pinned": 0.02,
    "to_host_pinned": 0.02,
}
_C2C: Final[Rates] = {
    **_PCIE4,
    "to_device": 0.01,
    "to_host": 0.01,
    "to_device_pinned": 0.003,
    "to_host_pinned": 0.004,
}
_SUPERCHIPS: Final = frozenset({"gh200", "gh200-144gb", "gb200"})
_GENERATION_5: Final = frozenset({"sm_90", "sm_90a", "sm_100a", "sm_103a", "sm_120", "sm_120a"})


@dataclass(frozen=True)
class Link:
    """The way to `device` and back. `measured` names what was measured on this machine; the rest is
    assumed."""

    device: str
    rates: Mapping[str, float]
    measured: frozenset[str] = frozenset()
    pinned: bool = False

    def to_device(self, nbytes: float) -> float:
        """Nanoseconds of a copy to the device."""
        return self.rates["copy"] + nbytes * self.rates[self._named("to_device")]

    def to_host(self, nbytes: float) -> float:
        """Nanoseconds of a copy back."""
        return self.rates["copy"] + nbytes * self.rates[self._named("to_host")]

    def _named(self, way: str) -> str:
        return f"{way}_pinned" if self.pinned else way

    @property
    def assumed(self) -> list[str]:
        """Rates that nobody measured here."""
        return sorted(self.rates.keys() - self.measured)


def link_file(device: str) -> str:
    """What the file of a link is called in the folder of rates, as a device would be."""
    return f"link {device}"


def link_to(device: VDevice, pinned: bool = False) -> Link:
    """The link to a GPU, as far as it was measured on this machine, else as such GPUs have it.

    Raises UnsupportedError for a broken file.
    """
    measured = measured_link(device.name)
    return Link(device.name, assumed_link(device) | measured, frozenset(measured), pinned)


def assumed_link(device: VDevice) -> Rates:
    """The rates of a link on which nothing was measured."""
    pcie = _PCIE5 if device.arch in _GENERATION_5 else _PCIE4
    way = _C2C if device.name in _SUPERCHIPS else pcie
    return {**_HOST, **way}


def measured_link(device: str) -> Rates:
    """What was measured of a link on this machine; empty where nothing was."""
    path = machine_file(link_file(device))
    if path is None or not path.is_file():
        return {}
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnsupportedError(f"rates in '{path}': {error}") from None
    return parse(text, str(path), LINK_RATES)
