"""What warps do in an attention on tensor cores, for the emulator: its intrinsics, lane by lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from emulated_mma import held_sums, rounded

from irkit.runtime.intrinsics import cuda_mma

_LIFT, _LOG2_E = np.float32(2.0**24), np.float32(1.4426950408889634)
_LOWEST = np.float32(-np.inf)
_TYPES = {cuda_mma.BF16: ml_dtypes.bfloat16, cuda_mma.F16: np.float16}
_OFF = np.uint32(0xFFFFE000)


def power_of_two(x: Any) -> Any:
    """Flushed as on the hardware."""
    found = np.exp2(np.asarray(x, np.float32))
    return np.where(found < np.float32(2.0**-126), np.float32(0), found)[()]


def lowest_rows(count: int) -> tuple[Any, ...]:
    return (_LOWEST,) * count


def scaled_terms(
    least: Any, most: Any, p: Any, place: int, width: int, scale: Any
) -> tuple[Any, Any]:
    own = p[place : place + width] * scale
    p[place : place + width] = own
    twice = own.view(np.uint32) * np.uint32(2)
    return np.minimum((twice - np.uint32(1)).min(), least), np.maximum(twice.max(), most)


def _parts(x: Any) -> tuple[Any, Any]:
    """High and low, as tensor cores are given them; of an infinity the low part is none."""
    x = np.ascontiguousarray(x, np.float32)
    high = ((x.view(np.uint32) + np.uint32(0x1000)) & _OFF).view(np.float32)
    return high, ((x - high).view(np.uint32) & _OFF).view(np.float32)


def _product(left: Any, right: Any, kind: int) -> Any:
    """Row by row of `left` the product with the column of `right`."""
    if kind != cuda_mma.SPLIT:
        return (rounded(left, kind) * rounded(right, kind)).sum(axis=1, dtype=np.float32)
    (a, b), (c, d) = _parts(left), _parts(right)
    return sum(((x * y).sum(axis=1, dtype=np.float32) for x, y in ((b, c), (a, d), (a, c))))


def _row(p: Any, at: int, count: int, kind: int, packed: int) -> Any:
    """`count` elements of one row."""
    if not packed:
        return p[at : at + count]
    return p.view(np.uint16)[2 * at : 2 * at + count].view(_TYPES[kind]).astype(np.float32)


def score_sums(p: Any, q: int, k: int, lane: int, *rest: int) -> tuple[Any, ...]:
    row, rows, columns, terms, kind, packed = rest
    y, x = held_sums(lane, rows, columns)
    left = np.stack([_row(p, q + n * row, terms, kind, packed) for n in y])
    right = np.stack([_row(p, k + n * row, terms, kind, packed) for n in x])
    return tuple(_product(left, right, kind))


_PRODUCTS = ((2, 0), (0, 2), (1, 1), (1, 0), (0, 1), (0, 0))
_BFLOAT16 = ml_dtypes.bfloat16


def _cut(x: Any) -> list[Any]:
    """Three parts; of an infinity the second is none."""
    found: list[Any] = []
    for _ in range(3):
        found.append(x.astype(_BFLOAT16))
        x = x - found[-1].astype(np.float32)
    return found


def cut_terms(
    least: Any, most: Any, p: Any, place: int, target: int, plane: int, scale: Any
) -> tuple[Any, Any]:
    own = p[place : place + 4] * scale
    assert place % 4 == 0
    for n, part in enumerate(_cut(own)):
        p[target + n * plane : target + n * plane + 2] = part.view(np.float32)
    twice = own.view(np.uint32) * np.uint32(2)
    return np.minimum((twice - np.uint32(1)).min(), least), np.maximum(twice.max(), most)


def _products(left: list[Any], right: list[Any]) -> Any:
    """Row by row, of parts."""
    a, b = ([x.astype(np.float32) for x in side] for side in (left, right))
    return sum((a[x] * b[y]).sum(axis=1, dtype=np.float32) for x, y in _PRODUCTS)


def _planes(p: Any, at: Any, count: int, plane: int) -> list[Any]:
    """Rows of each part."""
    return [
        np.stack([_row(p, int(a) + n * plane, count, cuda_mma.BF16, 1) for a in at])
        for n in range(3)
    ]


def part_scores(p: Any, q: int, k: int, lane: int, *rest: int) -> tuple[Any, ...]:
    row, rows, columns, terms, q_plane, k_plane = rest
    y, x = held_sums(lane, rows, columns)
    left = _planes(p, q + y * row, terms, q_plane)
    return tuple(_products(left, _planes(p, k + x * row, terms, k_plane)))


def scores_within(
    scores: Any, lane: int, first: int, cap: int, columns: int, causal: int
) -> tuple[Any, ...]:
    y, x = held_sums(lane, len(scores) * 32 // columns, columns)
    limit = np.minimum(first + y, cap) if causal else np.full(y.shape, cap)
    return tuple(np.where(x < limit, np.array(scores, np.float32), _LOWEST))


def row_store(p: Any, place: int, values: Any, lane: int) -> None:
    for n, value in enumerate(values):
        p[place + lane // 4 + 8 * n] = value


def row_load(p: Any, place: int, count: int, lane: int) -> tuple[Any, ...]:
    return tuple(p[place + lane // 4 + 8 * n] for n in range(count))


def column_load(p: Any, place: int, step: int, count: int) -> tuple[Any, ...]:
    return tuple(p[place + n * step] for n in range(count))


def row_shares(largest: Any, totals: Any, others: Any, theirs: Any) -> tuple[Any, ...]:
    own, other = (np.array(x, np.float32) for x in (largest, others))
    top = np.fmax(own, other)
    shift = np.where(top == _LOWEST, np.float32(0), top)
    own, other = power_of_two(own - shift), power_of_two(other - shift)
    every = own * np.array(totals, np.float32) + other * np.array(theirs, np.float32)
    return tuple(own / every)


def row_scaled(sums: Any, factors: Any, columns: int) -> tuple[Any, ...]:
    y, _ = held_sums(0, 8 * len(factors), columns)
    return tuple(np.array(sums, np.float32) * np.array(factors, np.float32)[y // 8])


def equal_rows(value: Any, count: int) -> tuple[Any, ...]:
    return (np.float32(value),) * count


def row_slopes(
    weights: Any, cotangents: Any, along: Any, factors: Any, columns: int
) -> tuple[Any, ...]:
    y, _ = held_sums(0, 8 * len(along), columns)
    slopes = np.array(weights, np.float32) * np.array(cotangents, np.float32)
    sums = np.array(along, np.float32) * np.array(factors, np.float32)
    np.add.at(sums, y // 8, slopes)
    return tuple(slopes), tuple(sums)


def row_differences(
    weights: Any, cotangents: Any, along: Any, factors: Any, columns: int
) -> tuple[Any, ...]:
    y, _ = held_sums(0, 8 * len(along), columns)
    of_row = [np.array(x, np.float32)[y // 8] for x in (factors, along)]
    scaled = np.array(weights, np.float32) * of_row[0]
    return tuple(scaled * (np.array(cotangents, np.float32) - of_row[1]))


def column_slopes(
    scores: Any, cotangents: Any, p: Any, sums: int, apart: int, lane: int, first: int, cap: int,
    columns: int, causal: int, lifted: int,
) -> tuple[Any, ...]:  # fmt: skip
    y, x = held_sums(lane, len(scores) * 32 // columns, columns)
    seen = (x < cap) & ((x >= first + y) if causal else True)
    left = (np.array(scores, np.float32) - p[sums + x]) * _LOG2_E
    weights = power_of_two(left) * (_LIFT if lifted else np.float32(1))
    slopes = weights * (np.array(cotangents, np.float32) - p[sums + apart + x])
    zero = np.float32(0)
    return tuple(np.where(seen, weights, zero)), tuple(np.where(seen, slopes, zero))


def mma_load(p: Any, place: int, step: int, rows: int, columns: int, lane: int) -> tuple[Any, ...]:
    y, x = held_sums(lane, rows, columns)
    return tuple(p[place + y * step + x])


def names(shuffle: Callable[[Any, Callable[[int], int]], Any], lane_of: Callable[[], int]) -> Any:
    """All by their names in emitted modules; `shuffle` gives what another lane gives."""

    def over_row(values: Any, combine: Any) -> Any:
        for distance in (1, 2):
            others = shuffle(values, lambda lane, d=distance: lane ^ d)
            values = combine(values, others)
        return values

    def online_softmax(
        scores: Any, largest: Any, totals: Any, scale: Any, columns: int, lifted: int
    ) -> tuple[Any, ...]:
        rows = len(largest)
        y, _ = held_sums(lane_of(), 8 * rows, columns)
        of_row, own = y // 8, np.array(scores, np.float32)
        scaled = np.float32(scale) * _LOG2_E
        tops = np.full(rows, _LOWEST)
        np.fmax.at(tops, of_row, own)
        tops = np.fmax(np.array(largest, np.float32), over_row(tops, np.fmax) * scaled)
        shift = np.where(tops == _LOWEST, np.float32(0), tops)
        factors = power_of_two(np.array(largest, np.float32) - shift)
        weights = power_of_two(own * scaled - shift[of_row])
        weights = weights * (_LIFT if lifted == 1 else np.float32(2.0**lifted))
        totals = np.array(totals, np.float32) * factors
        np.add.at(totals, of_row, weights)
        return tuple(weights), tuple(tops), tuple(totals), tuple(factors)

    def known_weights(weights: Any, lane: int, keys: int) -> Any:
        """Those of the lane's rows, which four lanes hold."""
        table = np.zeros((32 * len(weights) // keys, keys), np.float32)
        for d in range(4):
            y, x = held_sums(lane ^ d, len(table), keys)
            table[y, x] = shuffle(weights, lambda lane, d=d: lane ^ d)
        return table

    def part_sums(
        sums: Any, factors: Any, weights: Any, p: Any, values: int, lane: int, *rest: int
    ) -> tuple[Any, ...]:
        row, columns, keys, plane = rest
        table = known_weights(weights, lane, keys)
        y, x = held_sums(lane, len(table), columns)
        scaled = np.array(sums, np.float32) * np.array(factors, np.float32)[y // 8]
        below = _planes(p, values + np.arange(keys) * row, columns, plane)
        left = [part[y] for part in _cut(table)]
        return tuple(scaled + _products(left, [b[:, x].T for b in below]))

    def weighted_sums(
        sums: Any, factors: Any, weights: Any, p: Any, values: int, lane: int, *rest: int
    ) -> tuple[Any, ...]:
        row, columns, keys, kind, packed, parts = rest
        table = known_weights(weights, lane, keys)
        y, x = held_sums(lane, len(table), columns)
        below = np.stack([_row(p, values + j * row, columns, kind, packed) for j in range(keys)])
        of_row = y // 8
        scaled = np.array(sums, np.float32) * np.array(factors, np.float32)[of_row]
        if parts == 1:
            return tuple(scaled + _product(table[y], below[:, x].T, kind))
        left = table[y]
        for _ in range(parts):
            high = left.astype(_TYPES[kind]).astype(np.float32)
            scaled = scaled + (high * below[:, x].T).sum(axis=1, dtype=np.float32)
            left = left - high
        return tuple(scaled)

    return {
        "column_load": column_load,
        "column_slopes": column_slopes,
        "cut_terms": cut_terms,
        "equal_rows": equal_rows,
        "part_scores": part_scores,
        "part_sums": part_sums,
        "lowest_rows": lowest_rows,
        "mma_load": mma_load,
        "online_softmax": online_softmax,
        "power_of_two": power_of_two,
        "row_differences": row_differences,
        "row_load": row_load,
        "row_scaled": row_scaled,
        "row_shares": row_shares,
        "row_slopes": row_slopes,
        "row_store": row_store,
        "row_totals": lambda totals: tuple(over_row(np.array(totals, np.float32), np.add)),
        "scaled_terms": scaled_terms,
        "score_sums": score_sums,
        "scores_within": scores_within,
        "weighted_sums": weighted_sums,
    }
