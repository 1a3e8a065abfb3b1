"""What a part of a program costs on a device, before anything is compiled: its work at the device's
calibrated rates, over its vEUs, with what starts and ends it."""

from __future__ import annotations

from dataclasses import dataclass

from irkit.rkernels.work import Work
from irkit.schedule.links import Link
from irkit.schedule.model import VDevice

CACHED = 16 << 20
"""Bytes that a CPU's caches may hold: beyond them its memory is streamed."""

_GRAIN = {"cpu": 4096, "test": 4096, "cuda": 1024}
"""Elements that are worth a vEU of their own."""


@dataclass(frozen=True)
class Amount:
    """What a part of a program does: `work` over all `elements`, and `nbytes` read and written. `rounds`: how
    often it waits for all of itself, in a loop once a round."""

    work: Work
    elements: float
    nbytes: float
    rounds: float = 1.0


def nanoseconds(amount: Amount, device: VDevice, link: Link) -> float:
    """The time of a part on a device, its arrays being there. Raises UnsupportedError where the device has
    no rate for something."""
    most = max(1, min(device.veus, int(amount.elements // _GRAIN.get(device.kind, 4096)) or 1))
    if device.kind == "cuda":
        return _together(amount, device, most, _on_gpu(amount, device, most))
    choices = {1, most, *(n for n in (2, 4, 8, 16, 32, 64) if n < most)}
    return min(_on_cpu(amount, device, link, n) for n in choices)


def _on_gpu(amount: Amount, device: VDevice, veus: int) -> float:
    return amount.nbytes * device.rate("byte") / veus


def _on_cpu(amount: Amount, device: VDevice, link: Link, veus: int) -> float:
    memory = amount.nbytes * device.rate("byte") / veus
    if amount.nbytes > CACHED:
        stream, floor = link.rates["stream"], link.rates["stream_all"]
        memory = max(memory, amount.nbytes * max(stream / veus, floor))
    wake = device.rates.get("wake", 0.0) * (veus - 1)
    return wake + _together(amount, device, veus, memory)


def _together(amount: Amount, device: VDevice, veus: int, memory: float) -> float:
    """Arithmetic and memory overlap; each round begins and is waited for."""
    begun = device.rates.get("start", 0.0) + device.wait_ns
    return amount.rounds * begun + max(amount.work.nanoseconds(device) / veus, memory)
