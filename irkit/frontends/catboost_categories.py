"""Rows of a CatBoost model with categories, as columns that `graph.forest` compares.

A row has the hashes of its categories beside its numbers, in float64, which holds both. To its own columns
come statistics by the hash of a combination, and whether it has a category that a split asks for. Statistics
are looked up: a directory says by the first bits of a hash where in the sorted ones to begin, a few halvings
find it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import f32, i64
from xdsl.ir import SSAValue

from irkit.dialects.graph import (
    AddOp,
    CastOp,
    CompareOp,
    ConcatOp,
    GatherOp,
    IsNanOp,
    MulOp,
    OrOp,
    ShiftRightOp,
    WhereOp,
)
from irkit.errors import UnsupportedError
from irkit.frontends.catboost_ctrs import Element, Statistic
from irkit.frontends.catboost_features import Features
from irkit.frontends.module import GraphBuilder
from irkit.weights import Array

_FACTOR = np.array([0x4906BA494954CB65], np.uint64).astype(np.int64)
"""By which CatBoost combines hashes: h, e → factor·(h + factor·e), modulo 2^64."""
_SPARE_BITS = 2
"""More than it takes to tell as many keys apart, so that few begin alike."""
_MOST_BITS = 24
"""Of a hash, that a directory goes by."""
_MOST_ALIKE = 1 << 10
"""Behind each table there is as much memory as a search may look at: hashes are all but evenly spread."""
_MOST_VALUES = (1 << 31) - 1
"""Their places are of 32 bits."""


def wide_rows(builder: GraphBuilder, features: Features) -> SSAValue:
    """rows×columns of float32 that splits compare, of the input's rows×features of float64."""
    x = builder.inputs[0]
    rows = builder(CastOp, x, to=f32)
    parts = [rows]
    if features.statistics:
        sources = _Sources(builder, rows, features.nan_above)
        parts.append(_statistics(builder, sources, features.statistics))
    if features.asked:
        parts.append(builder(CastOp, _equal(builder, x, list(features.asked)), to=f32))
    return builder(ConcatOp, *parts, axis=1) if len(parts) > 1 else rows


def _equal(builder: GraphBuilder, x: SSAValue, pairs: Sequence[tuple[int, int]]) -> SSAValue:
    """Which hashes rows have, of pairs of a column and a hash."""
    columns, hashes = zip(*pairs, strict=True)
    cells = _columns(builder, x, columns)
    return builder(
        CompareOp, cells, builder.constant(np.array(hashes, np.float64), "hashes"), predicate="eq"
    )


def _columns(builder: GraphBuilder, x: SSAValue, columns: Sequence[int]) -> SSAValue:
    return builder(GatherOp, x, builder.constant(np.array(columns, np.int64), "columns"), axis=1)


@dataclass
class _Sources:
    """What combinations are made of, each once, as columns of int64."""

    builder: GraphBuilder
    rows: SSAValue
    """Of float32."""
    nan_above: Array

    def of(self, elements: Sequence[Element]) -> SSAValue:
        """A column for each of the elements, of which no two are equal."""
        kinds = ("category", "above", "equal")
        parts: list[SSAValue] = []
        for kind in kinds:
            if some := [e for e in elements if e.kind == kind]:
                parts.append(self._of_kind(kind, some))
        return self.builder(ConcatOp, *parts, axis=1) if len(parts) > 1 else parts[0]

    def _of_kind(self, kind: str, elements: Sequence[Element]) -> SSAValue:
        builder, x = self.builder, self.builder.inputs[0]
        if kind == "category":
            return builder(CastOp, _columns(builder, x, [e.column for e in elements]), to=i64)
        if kind == "equal":
            pairs = [(e.column, int(e.value)) for e in elements]
            return builder(CastOp, _equal(builder, x, pairs), to=i64)
        cells = _columns(builder, self.rows, [e.column for e in elements])
        borders = builder.constant(np.array([e.value for e in elements], np.float32), "borders")
        above = builder(CompareOp, cells, borders, predicate="gt")
        missing = self.nan_above[[e.column for e in elements]]
        if missing.any():
            gone = builder(IsNanOp, cells)
            gone = builder(MulOp, gone, builder.constant(missing, "nan_above"))
            above = builder(OrOp, above, gone)
        return builder(CastOp, above, to=i64)


def _statistics(
    builder: GraphBuilder, sources: _Sources, statistics: Sequence[Statistic]
) -> SSAValue:
    """A column for each statistic: those of one combination share its hash, those of one table its place."""
    tables: dict[tuple[Any, ...], int] = {}
    combinations: dict[tuple[Element, ...], int] = {}
    table_of: list[int] = []
    for found in statistics:
        combinations.setdefault(found.elements, len(combinations))
        key = (found.elements, found.keys.tobytes())
        table_of.append(tables.setdefault(key, len(tables)))
    first = [table_of.index(number) for number in range(len(tables))]
    hashes = _hashes(builder, sources, list(combinations))
    picked = [combinations[statistics[n].elements] for n in first]
    if picked != [*range(len(combinations))]:
        hashes = _columns(builder, hashes, picked)
    sorted_keys = _SortedKeys.of([statistics[n].keys for n in first])
    places = sorted_keys.places(builder, hashes)
    return _values(builder, sorted_keys, places, statistics, table_of)


def _hashes(
    builder: GraphBuilder, sources: _Sources, combinations: Sequence[tuple[Element, ...]]
) -> SSAValue:
    """rows×combinations of int64."""
    elements = sorted({e for c in combinations for e in c}, key=_rank)
    columns = {e: number for number, e in enumerate(elements)}
    whole = sources.of(elements)
    factor = builder.constant(_FACTOR, "factor")
    parts: list[SSAValue] = []
    order: list[int] = []
    for size in sorted({len(c) for c in combinations}):
        mine = [n for n, c in enumerate(combinations) if len(c) == size]
        order += mine
        made: SSAValue | None = None
        for step in range(size):
            # Factors of a sum of the first, which is 0, come to one.
            cells = _columns(builder, whole, [columns[combinations[n][step]] for n in mine])
            term = builder(MulOp, cells, factor)
            made = builder(MulOp, term if made is None else builder(AddOp, made, term), factor)
        assert made is not None
        parts.append(made)
    hashes = builder(ConcatOp, *parts, axis=1) if len(parts) > 1 else parts[0]
    back = np.argsort(order)
    return (
        hashes if (back == np.arange(len(back))).all() else _columns(builder, hashes, back.tolist())
    )


def _rank(element: Element) -> tuple[int, int, float]:
    return ("category", "above", "equal").index(element.kind), element.column, element.value


@dataclass
class _SortedKeys:
    """Keys of tables, one table behind another. `start`, `end`: of each table, its first key, and the place
    of what it has not, behind its keys and as many more as a search may look at; `shift`, `offset`: what
    makes of a key its place in the directory, which says where to begin; `steps`: halvings."""

    keys: Array
    start: Array
    end: Array
    shift: Array
    directory: Array
    offset: Array
    steps: int

    @staticmethod
    def of(tables: Sequence[Array]) -> _SortedKeys:
        """Of ascending keys of int64. Raises UnsupportedError for more that begin alike than hashes do."""
        bits = [
            min(max(len(keys) - 1, 1).bit_length() + _SPARE_BITS, _MOST_BITS) for keys in tables
        ]
        shift = np.array([64 - b for b in bits], np.int64)
        buckets = [(k >> s) + (1 << (b - 1)) for k, s, b in zip(tables, shift, bits, strict=True)]
        fullest = max(int(np.bincount(b).max()) if len(b) else 1 for b in buckets)
        if fullest > _MOST_ALIKE:
            raise UnsupportedError(
                f"{fullest} hashes of a table that begin alike, of at most {_MOST_ALIKE}"
            )
        steps = int(fullest - 1).bit_length()
        # Behind all keys of a table, none of which is above it.
        padding = np.full(1 << steps, np.iinfo(np.int64).max)
        sizes = np.array([len(keys) for keys in tables])
        start = np.cumsum([0, *(sizes + len(padding))])[:-1]
        directory = [
            np.searchsorted(k, np.arange(1 << b), side="left") + first
            for k, b, first in zip(buckets, bits, start, strict=True)
        ]
        # The first of a table's places is of the bucket of the least hashes, which are below 0.
        offset = np.cumsum([0, *(1 << b for b in bits)])[:-1] + [1 << (b - 1) for b in bits]
        return _SortedKeys(
            np.concatenate([part for keys in tables for part in (keys, padding)]),
            start,
            start + sizes + len(padding) - 1,
            shift,
            np.concatenate(directory).astype(np.int32),
            offset,
            steps,
        )

    def places(self, builder: GraphBuilder, hashes: SSAValue) -> SSAValue:
        """Where in `keys` each of rows×tables of hashes is; of those that are not there, the table's end."""
        keys = builder.constant(self.keys, "keys")
        bucket = builder(ShiftRightOp, hashes, builder.constant(self.shift, "shift"))
        slot = builder(AddOp, bucket, builder.constant(self.offset, "offset"))
        place = builder(GatherOp, builder.constant(self.directory, "directory"), slot, axis=0)
        for step in reversed(range(self.steps)):
            further = builder(
                AddOp, place, builder.constant(np.array([1 << step], np.int32), "step")
            )
            key = builder(GatherOp, keys, further, axis=0)
            below = builder(CompareOp, key, hashes, predicate="le")
            place = builder(WhereOp, below, further, place)
        same = builder(CompareOp, builder(GatherOp, keys, place, axis=0), hashes, predicate="eq")
        return builder(WhereOp, same, place, builder.constant(self.end.astype(np.int32), "end"))

    def spread(self, table: int, values: Array, other: np.float32) -> Array:
        """Values by the places from the table's start to its end."""
        count, width = len(values), int(self.end[table] - self.start[table]) + 1
        made = np.full(width, other)
        made[:count] = values
        # The largest hash of all is what padding looks like: the search ends before the last of these.
        if count and self.keys[self.start[table] + count - 1] == np.iinfo(np.int64).max:
            made[count:-1] = values[-1]
        return made


def _values(
    builder: GraphBuilder, keys: _SortedKeys, places: SSAValue, statistics: Sequence[Statistic],
    table_of: Sequence[int],
) -> SSAValue:  # fmt: skip
    """Values of statistics at the places in their tables: those of one place lie side by side."""
    tables: Array = np.array(table_of)
    beside: Array = np.zeros(len(statistics), np.int64)
    parts: list[Array] = []
    width: Array = np.bincount(tables)
    first: Array = np.zeros(len(keys.start), np.int64)
    for table in range(len(keys.start)):
        mine = np.flatnonzero(tables == table)
        beside[mine], first[table] = np.arange(len(mine)), sum(part.size for part in parts)
        some = [statistics[n] for n in mine.tolist()]
        spread = [keys.spread(table, found.values, found.other) for found in some]
        parts.append(np.stack(spread, axis=1).reshape(-1))
    if [*table_of] != [*range(len(keys.start))]:
        places = _columns(builder, places, table_of)
    if first[-1] + parts[-1].size > _MOST_VALUES:
        raise UnsupportedError(
            f"statistics of {first[-1] + parts[-1].size} values, of at most {_MOST_VALUES}"
        )
    start = (first - keys.start * width)[tables] + beside
    index = builder(MulOp, places, builder.constant(width[tables].astype(np.int32), "width"))
    index = builder(AddOp, index, builder.constant(start.astype(np.int32), "statistic"))
    return builder(GatherOp, builder.constant(np.concatenate(parts), "values"), index, axis=0)
