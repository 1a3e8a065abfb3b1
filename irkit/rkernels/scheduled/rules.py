"""Default schedules by rule: tiles from what the machine is, in the manner of Roller (OSDI 2022).

A tile of sums fills the registers: lanes are the index that lies side by side in the result, rows an index
that what the lanes read does not hang on, so that each vector is used by all rows. What the lanes read is
copied for a tile's columns where it lies apart, or where enough rows read the copy again and it fits into a
second-level cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.ir.affine import AffineMap

from irkit.dialects.linalg_generic import combiner, is_contraction, maps
from irkit.dialects.loop import ScheduleAttr
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, numpy_dtype, tensor_type
from irkit.expressions.steps import schedule_of
from irkit.expressions.syntax import ExpressionError
from irkit.rkernels.scheduled.layout import VECTORS, Layout
from irkit.schedule.model import VDevice

_CACHE_BYTES = 1 << 20
"""Of what is copied for a tile's columns."""
_NEAR_BYTES = 1 << 14
"""So little is read again from the nearest cache without a copy."""
_FEW_TILES = 4
"""So many tiles of rows make a copy worth it."""


@dataclass(frozen=True)
class Tile:
    """Rows, and bytes of a row's lanes, that stay in registers together."""

    rows: int
    row_bytes: int


# Of 16 registers of 32 bytes, and of 32 of 64 bytes.
TILES = (Tile(8, 128), Tile(4, 64), Tile(6, 64), Tile(4, 128))


def default_schedules(root: Root, tasks: int, device: VDevice | None = None) -> list[ScheduleAttr]:
    """Schedules of a root in at most `tasks` parts, those for wide registers and for narrow ones first.

    None where no index has lanes side by side: a template is better there.
    """
    if DYNAMIC in root.parallel or not root.parallel or not root.reduction:
        return []
    return list(dict.fromkeys(_schedules(root, tasks)))


def _schedules(root: Root, tasks: int) -> Iterator[ScheduleAttr]:
    for tile in TILES:
        for copied in (True, False):
            found = _Rule(root, tasks, tile).schedule(copied)
            if found is not None:
                yield found


@dataclass(frozen=True)
class _Rule:
    """One tile for one root."""

    root: Root
    tasks: int
    tile: Tile

    @property
    def _names(self) -> list[str]:
        parallel, reduced = len(self.root.parallel), len(self.root.reduction)
        return [*(f"i{d}" for d in range(parallel)), *(f"k{d}" for d in range(reduced))]

    def schedule(self, copied: bool) -> ScheduleAttr | None:
        """The schedule, with what the lanes read copied where that is worth it, if `copied`."""
        op, names = self.root.chain[-1], self._names
        if tensor_type(op.results[0]).element_type not in VECTORS or combiner(op) is None:
            return None
        lane = len(self.root.parallel) - 1
        reads = [_moved(m) for m in maps(op)[: 2 if is_contraction(op) else 1]]
        along = [n for n, moved in enumerate(reads) if lane in moved]
        row = self._row(lane, reads, along)
        parts, cut = self._parts(lane, row)
        least = [s // (parts if d == cut else 1) for d, s in enumerate(self.root.parallel)]
        lanes = self._lanes(least[lane])
        if not along or lanes < 2:
            return None
        operands = ["a", "b"][: len(reads)]
        steps = [f"bind {names[cut]} to veu in {parts}"] if parts > 1 else []
        steps.append(f"split {names[lane]} by {lanes} as jo, ji")
        tail = ["ji"]
        order = [names[d] for d in range(lane) if d != row] + ["jo"]
        if row is not None:
            rows = min(self.tile.rows, least[row])
            steps.append(f"split {names[row]} by {rows} as ro, ri")
            order.append("ro")
            tail = ["ri", "ji"]
        order += [*names[lane + 1 :], *tail]
        steps.append(f"reorder {', '.join(order)}")
        steps += ["unroll ri"] if row is not None else []
        steps.append("vectorize ji")
        head = f"for {', '.join(names)} of {', '.join(operands)}"
        turns = -(-least[row] // self.tile.rows) if row is not None else 1
        wanted = copied and self._copied(lanes, turns)
        return self._legal(head, steps, [operands[n] for n in along if wanted], along)

    def _legal(
        self, head: str, steps: list[str], copies: list[str], along: list[int]
    ) -> ScheduleAttr | None:
        """With as few copies as it can be run with, those that are wanted among them."""
        needed = [*copies]
        for _ in range(3):
            text = "; ".join([head, *steps, *(f"cache {name} at jo" for name in needed)])
            made = ScheduleAttr.of(schedule_of(text))
            try:
                Layout.of(self.root, made)
            except ExpressionError:
                more = [n for n in ("ab"[k] for k in along) if n not in needed]
                if not more:
                    return None
                needed.append(more[0])
            else:
                return made
        return None

    def _row(self, lane: int, reads: list[set[int]], along: list[int]) -> int | None:
        """The index of the tile's rows: the largest that moves what the lanes do not read, and not what they
        read."""
        others = {d for n, moved in enumerate(reads) if n not in along for d in moved}
        taken = {d for n in along for d in reads[n]}
        free = [d for d in range(lane) if d in others and d not in taken]
        return max(free, key=lambda d: self.root.parallel[d], default=None)

    def _parts(self, lane: int, row: int | None) -> tuple[int, int]:
        """Into how many parts which index is cut: one that leaves whole tiles, the first of these."""
        wanted = {d: 1 for d in range(lane)} | {lane: 16}
        if row is not None:
            wanted[row] = self.tile.rows
        sizes = self.root.parallel
        enough = [d for d in range(lane + 1) if sizes[d] >= self.tasks * wanted[d]]
        cut = enough[0] if enough else max(range(lane + 1), key=lambda d: sizes[d])
        return min(self.tasks, sizes[cut]), cut

    def _lanes(self, extent: int) -> int:
        """A power of two, no more than there are."""
        element = tensor_type(self.root.chain[-1].results[0]).element_type
        most = min(extent, self.tile.row_bytes // numpy_dtype(element).itemsize)
        return 1 << (most.bit_length() - 1) if most else 0

    def _copied(self, lanes: int, turns: int) -> bool:
        """Whether a copy is worth it that no step needs."""
        element = tensor_type(self.root.chain[-1].results[0]).element_type
        size = math.prod(self.root.reduction) * lanes * numpy_dtype(element).itemsize
        return turns >= _FEW_TILES and _NEAR_BYTES < size <= _CACHE_BYTES


def _moved(amap: AffineMap) -> set[int]:
    return {d for e in amap.results for d in e.used_dims()}
