"""NVIDIA GPUs by name: a table of facts, and the vDevice that follows from them.

The table is data, `irkit/schedule/gpus.json`, which names its sources. A GPU at hand that is not in it is
described by what its driver says (`irkit/driver/gpu_at_hand.py`).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

from irkit.architectures import ARCHITECTURES, Architecture
from irkit.dialects.task.rates import RATES
from irkit.schedule.model import VDevice
from irkit.schedule.rates import Rates, default_rates, machine_rates

CALIBRATED: Final = "h200"
"""The GPU whose rates come with irkit, and from which those of others are estimated."""

THREADS: Final = 256
"""Of a block, on every GPU: with 255 registers each, one block fits on a multiprocessor of any."""

WAIT_NS: Final = 750.0
"""From a signal of one block to another's going on: measured on an H200, taken for all."""

_FLOATS: Final = frozenset({"fma", "wide", "dot", "term", "op", "scalar", "divide", "approximate"})
"""Kinds of work that go as the float32 lanes of a multiprocessor; other arithmetic as its clock."""


@dataclass(frozen=True)
class Gpu:
    """Facts of a GPU: `multiprocessors`, `l2_bytes`, `clock_mhz` at its highest, `bandwidth_gb_s` of its
    memory (10⁹ bytes a second) and `memory_bytes` of it. `shared_bytes` is what one block may have.

    `driver_names` are what its driver calls it; they may be those of other GPUs too.
    """

    name: str
    arch: str
    multiprocessors: int
    l2_bytes: int
    clock_mhz: float
    bandwidth_gb_s: float
    memory_bytes: int
    shared_bytes: int
    driver_names: tuple[str, ...] = ()

    @property
    def architecture(self) -> Architecture:
        """Limits and instructions."""
        return ARCHITECTURES[self.arch]


@cache
def table() -> dict[str, Gpu]:
    """Name → GPU, of those that irkit knows."""
    text = resources.files("irkit.schedule").joinpath("gpus.json").read_text("utf-8")
    rows: list[dict[str, Any]] = json.loads(text)["gpus"]
    return {row["name"]: _gpu(row) for row in rows}


def _gpu(row: dict[str, Any]) -> Gpu:
    return Gpu(
        row["name"],
        row["arch"],
        row["multiprocessors"],
        row["l2_mib"] << 20,
        row["clock_mhz"],
        row["bandwidth_gb_s"],
        row["memory_gib"] << 30,
        ARCHITECTURES[row["arch"]].shared_bytes,
        tuple(row["driver_names"]),
    )


def known_as(found: Gpu) -> Gpu | None:
    """The GPU of the table that `found` is, by a driver name and all that decides; None if there is none.

    A part of a GPU (MIG) and one with other multiprocessors than those that are sold is not in the table.
    """
    for gpu in table().values():
        named = set(found.driver_names) & set(gpu.driver_names)
        if named and _deciding(gpu) == _deciding(found):
            return gpu
    return None


def _deciding(gpu: Gpu) -> tuple[str, int, int]:
    return gpu.arch, gpu.multiprocessors, gpu.shared_bytes


def symbol(driver_name: str) -> str:
    """A vDevice's name for a GPU that is not in the table: "NVIDIA A100-SXM4-40GB MIG 1g.5gb" is
    "nvidia-a100-sxm4-40gb-mig-1g-5gb"."""
    return re.sub(r"[^a-z0-9]+", "-", driver_name.lower()).strip("-") or "gpu"


def gpu_vdevice(gpu: Gpu) -> VDevice:
    """A vEU for each multiprocessor, one block of `THREADS` threads.

    Its rates are those measured on this machine, as far as there are any, else those that come with irkit,
    else an estimate (`estimated_rates`), which `rates_from` says.
    """
    given = default_rates(gpu.name) if gpu.name == CALIBRATED else estimated_rates(gpu)
    measured = machine_rates(gpu.name)
    own = gpu.name == CALIBRATED or measured.keys() >= given.keys()
    return VDevice(
        name=gpu.name,
        kind="cuda",
        veus=gpu.multiprocessors,
        threads=THREADS,
        shared_bytes=gpu.shared_bytes,
        wait_ns=WAIT_NS,
        multiprocessors=gpu.multiprocessors,
        rates=given | measured,
        arch=gpu.arch,
        l2_bytes=gpu.l2_bytes,
        rates_from="" if own else CALIBRATED,
    )


def estimated_rates(gpu: Gpu) -> Rates:
    """Rates of a GPU on which nothing was measured, from those of the calibrated one, by the lane of each.

    Arithmetic in floating point takes as much less time as a multiprocessor has more float32 lanes and a
    higher clock; all other arithmetic goes by the clock. A byte takes as much less as a multiprocessor's
    share of the memory's bandwidth is larger. Waits (for loads, at barriers, between lanes) and what is
    serial stay as they are: across these architectures they differ less than the estimate is worth.
    """
    base = table()[CALIBRATED]
    clock = base.clock_mhz / gpu.clock_mhz
    lanes = clock * base.architecture.lanes / gpu.architecture.lanes
    share, own_share = (g.bandwidth_gb_s / g.multiprocessors for g in (base, gpu))
    factors = {"memory": share / own_share, "compute": clock}
    found = {
        name: rate * (lanes if name in _FLOATS else factors.get(RATES[name].lane, 1.0))
        for name, rate in default_rates(CALIBRATED).items()
    }
    return {name: float(f"{rate:.4g}") for name, rate in found.items()}
