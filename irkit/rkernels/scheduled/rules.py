"""Default schedules by rule: tiles from what the machine is, in the manner of Roller (OSDI 2022).

A tile grows level by level. In registers it is rows by vectors: lanes are the index that lies side by side in
the result, of a register's length, rows an index that what the lanes read does not hang on, so that each
vector is used by all rows. It is as large as registers hold, of such a shape that it reads little for each
multiply-add and leaves little over at the ends of the loops. A column of tiles is the next level: what its
lanes read is copied where it lies apart, or where enough rows read the copy again, while it fits into a
second-level cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.ir.affine import AffineMap

from irkit.dialects.linalg_generic import combiner, is_contraction, maps
from irkit.dialects.loop import ScheduleAttr
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, numpy_dtype, tensor_type
from irkit.expressions.steps import schedule_of
from irkit.expressions.syntax import ExpressionError
from irkit.rkernels.scheduled.layout import VECTORS, Layout
from irkit.schedule.model import VDevice

_FEW_TILES = 4
"""So many tiles of rows make a copy worth it."""
_READ = 0.25
"""Multiply-adds in whose time a tile reads one of its vectors or rows."""
_UNDER_WAY = 8
"""Multiply-adds that are under way at once."""
_OFFERED = 2


@dataclass(frozen=True)
class Levels:
    """What a core has: vector registers, of so many bytes, and bytes of its own caches."""

    registers: int
    register_bytes: int
    first_bytes: int = 1 << 15
    second_bytes: int = 1 << 20


NARROW, WIDE = Levels(16, 32), Levels(32, 64)


def levels_of(device: VDevice | None) -> list[Levels]:
    """Of a device; of one that does not say them of all that there are."""
    if device is None or not {"wide", "fma"} <= device.rates.keys():
        return [WIDE, NARROW]
    rates = device.rates
    # Wide tiles are faster where registers are wide.
    return [WIDE] if rates["wide"] < rates["fma"] else [NARROW]


@dataclass(frozen=True)
class Tile:
    """Sums that stay in registers together: rows, each of so many vectors, of so many lanes."""

    rows: int
    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        """Of a row."""
        return self.vectors * self.lanes

    def effort(self, rows: int, columns: int) -> float:
        """What `rows` by `columns` sums take, in multiply-adds of vectors: also those of parts that are no
        whole tiles, and while it reads or waits."""
        tiles = -(-rows // self.rows) * -(-columns // self.columns)
        sums = self.rows * self.vectors
        return tiles * max(sums + _READ * (self.rows + self.vectors), _UNDER_WAY)


def register_tiles(levels: Levels, itemsize: int, rows: int, columns: int) -> list[Tile]:
    """Tiles that fill the registers beside the vectors of a row and one element, the best for `rows` by
    `columns` sums first."""
    lanes = min(levels.register_bytes // itemsize, 1 << (max(columns, 1).bit_length() - 1))
    found: list[Tile] = []
    for vectors in range(1, max(columns // lanes, 1) + 1):
        most = (levels.registers - 1 - vectors) // vectors
        found += [Tile(n, vectors, lanes) for n in range(1, min(most, rows) + 1)]
    return sorted(found, key=lambda t: t.effort(rows, columns))


def default_schedules(root: Root, tasks: int, device: VDevice | None = None) -> list[ScheduleAttr]:
    """Schedules of a root in at most `tasks` parts, the best first.

    None where no index has lanes side by side: a template is better there.
    """
    if DYNAMIC in root.parallel or not root.parallel or not root.reduction:
        return []
    return list(dict.fromkeys(_schedules(root, tasks, levels_of(device))))


def plain_schedule(root: Root, tasks: int) -> ScheduleAttr:
    """The loops as they stand, those of the longest index of the result in at most `tasks` parts: for what
    the rule finds no tiles."""
    parallel, reduced = len(root.parallel), len(root.reduction)
    names = [*(f"i{d}" for d in range(parallel)), *(f"k{d}" for d in range(reduced))]
    op = root.chain[-1]
    operands = ["a", "b"][: 2 if is_contraction(op) else 1]
    cut = max(range(parallel), key=lambda d: root.parallel[d], default=None)
    parts = 1 if cut is None else min(tasks, root.parallel[cut])
    steps = [f"bind i{cut} to veu in {parts}"] if parts > 1 else []
    head = f"for {', '.join(names)} of {', '.join(operands)}"
    return ScheduleAttr.of(schedule_of("; ".join([head, *steps])))


def _schedules(root: Root, tasks: int, levels: Sequence[Levels]) -> Iterator[ScheduleAttr]:
    for level in levels:
        rule = _Rule(root, tasks, level)
        for tile in rule.tiles():
            for copied in (True, False):
                found = rule.schedule(tile, copied)
                if found is not None:
                    yield found


@dataclass(frozen=True)
class _Rule:
    """One root for one machine."""

    root: Root
    tasks: int
    levels: Levels

    @property
    def _names(self) -> list[str]:
        parallel, reduced = len(self.root.parallel), len(self.root.reduction)
        return [*(f"i{d}" for d in range(parallel)), *(f"k{d}" for d in range(reduced))]

    @property
    def _itemsize(self) -> int:
        return numpy_dtype(tensor_type(self.root.chain[-1].results[0]).element_type).itemsize

    @property
    def _lane(self) -> int:
        return len(self.root.parallel) - 1

    @cached_property
    def _reads(self) -> list[set[int]]:
        """The loops that each operand moves with."""
        op = self.root.chain[-1]
        return [_moved(m) for m in maps(op)[: 2 if is_contraction(op) else 1]]

    @cached_property
    def _along(self) -> list[int]:
        """The operands of which lanes read elements side by side."""
        return [n for n, moved in enumerate(self._reads) if self._lane in moved]

    @cached_property
    def _row(self) -> int | None:
        """The index of the tile's rows: the largest that moves what the lanes do not read, and not what they
        read."""
        others = {d for n, moved in enumerate(self._reads) if n not in self._along for d in moved}
        taken = {d for n in self._along for d in self._reads[n]}
        free = [d for d in range(self._lane) if d in others and d not in taken]
        return max(free, key=lambda d: self.root.parallel[d], default=None)

    def tiles(self) -> list[Tile]:
        """Those to look at: the best for the part of a vEU, once its loops are cut."""
        op = self.root.chain[-1]
        if tensor_type(op.results[0]).element_type not in VECTORS or combiner(op) is None:
            return []
        least = self._least
        rows = 1 if self._row is None else least[self._row]
        found = register_tiles(self.levels, self._itemsize, rows, least[self._lane])
        return [t for t in found if t.lanes > 1][:_OFFERED]

    @property
    def _least(self) -> list[int]:
        """Extents of the least part."""
        parts, cut = self._parts
        return [s // (parts if d == cut else 1) for d, s in enumerate(self.root.parallel)]

    def schedule(self, tile: Tile, copied: bool) -> ScheduleAttr | None:
        """The schedule, with what the lanes read copied where that is worth it, if `copied`."""
        if not self._along:
            return None
        names, lane, row, least = self._names, self._lane, self._row, self._least
        parts, cut = self._parts
        operands = ["a", "b"][: len(self._reads)]
        steps = [f"bind {names[cut]} to veu in {parts}"] if parts > 1 else []
        steps.append(f"split {names[lane]} by {tile.columns} as jo, ji")
        tail, written, vector = ["ji"], list[str](), "ji"
        order = [names[d] for d in range(lane) if d != row] + ["jo"]
        if tile.vectors > 1:
            steps.append(f"split ji by {tile.lanes} as jv, jl")
            tail, written, vector = ["jv", "jl"], ["jv"], "jl"
        if row is not None:
            steps.append(f"split {names[row]} by {tile.rows} as ro, ri")
            order.append("ro")
            tail, written = ["ri", *tail], ["ri", *written]
        order += [*names[lane + 1 :], *tail]
        steps.append(f"reorder {', '.join(order)}")
        steps += [*(f"unroll {name}" for name in written), f"vectorize {vector}"]
        head = f"for {', '.join(names)} of {', '.join(operands)}"
        turns = -(-least[row] // tile.rows) if row is not None else 1
        wanted = copied and self._copied(tile, turns)
        return self._legal(head, steps, [operands[n] for n in self._along if wanted], self._along)

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

    @cached_property
    def _parts(self) -> tuple[int, int]:
        """Into how many parts which index is cut: one that leaves whole tiles, the first of these."""
        wanted = {d: 1 for d in range(self._lane)} | {self._lane: 16}
        if self._row is not None:
            wanted[self._row] = 8
        sizes = self.root.parallel
        enough = [d for d in range(self._lane + 1) if sizes[d] >= self.tasks * wanted[d]]
        cut = enough[0] if enough else max(range(self._lane + 1), key=lambda d: sizes[d])
        return min(self.tasks, sizes[cut]), cut

    def _copied(self, tile: Tile, turns: int) -> bool:
        """Whether a copy is worth it that no step needs: read again so often, too much for the nearest cache
        and not for the next."""
        size = math.prod(self.root.reduction) * tile.columns * self._itemsize
        near, far = self.levels.first_bytes // 2, self.levels.second_bytes
        return turns >= _FEW_TILES and near < size <= far


def _moved(amap: AffineMap) -> set[int]:
    return {d for e in amap.results for d in e.used_dims()}
