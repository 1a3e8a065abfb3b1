"""Into how many parts irkit's rule cuts a sum, each of which another vEU takes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from irkit.schedule.model import VDevice

_SIDE = 64
"""Rows and columns of a block's tile that reads its operands seldom enough."""
_LEAST = {"cuda": 256, "cpu": 4096}
"""Terms of a part at least: what it saves is more than what a second step costs."""
_SUMS = 128
"""So many sums of a vEU of a CPU fill its registers, and hide how long each takes."""
_FOUR = 4


def parts_by_rule(
    shape: Sequence[int], sizes: Mapping[str, int], product: bool, device: VDevice
) -> dict[str, int]:
    """Parts of the longest of the indices of `sizes`, where results of `shape` leave vEUs without work."""
    if not sizes:
        return {}
    name = max(sizes, key=lambda n: sizes[n])
    most = sizes[name] // _LEAST["cuda" if device.kind == "cuda" else "cpu"]
    wanted = min(device.veus // max(_units(shape, product, device), 1), most)
    # Four terms are read at once where parts begin at a multiple of four.
    counts = [n for n in range(2, wanted + 1) if sizes[name] % (_FOUR * n) == 0]
    return {name: counts[-1]} if counts else {}


def _units(shape: Sequence[int], product: bool, device: VDevice) -> int:
    """How many vEUs have work, of that which keeps one busy."""
    if device.kind != "cuda":
        return math.prod(shape) // _SUMS
    if not product or len(shape) < 2:
        return math.prod(shape)
    batch = math.prod(shape[:-2])
    return batch * math.prod(-(-size // _SIDE) for size in shape[-2:])
