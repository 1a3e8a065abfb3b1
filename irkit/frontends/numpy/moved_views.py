"""What a key with indices of loops sees, and by how much that moves with each of them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, cast

from irkit.frontends.numpy.affine import LoopSymbol
from irkit.frontends.numpy.indices import Index
from irkit.frontends.numpy.spots import Spot, Terms, distance
from irkit.weights import Array

Move = tuple[LoopSymbol, int, int]
"""One of `Terms`."""


def seen(layout: Array, keys: tuple[Any, ...]) -> Array:
    """What a key of numbers, slices, None and `...` sees: a view, also where NumPy has a number."""
    if any(k is Ellipsis for k in keys):
        return layout[keys]
    return layout[(*keys, Ellipsis)]


def indices_of(key: Any) -> list[Index]:
    """Indices of loops in a part of a key."""
    parts: tuple[Any, ...] = (key,)
    if isinstance(key, slice):
        parts = limits_of(cast("slice[Any, Any, Any]", key))
    return [p for p in parts if isinstance(p, Index)]


def limits_of(key: slice[Any, Any, Any]) -> tuple[Any, Any, Any]:
    """A slice as three parts of a key."""
    return key.start, key.stop, key.step


def at(key: Any, rounds: dict[LoopSymbol, int]) -> Any:
    """A key in the round at hand, or where symbols have other numbers."""
    if isinstance(key, slice):
        limits = limits_of(cast("slice[Any, Any, Any]", key))
        return slice(*(at(limit, rounds) for limit in limits))
    if not isinstance(key, Index):
        return key
    affine = key.affine
    return affine.constant + sum(c * rounds.get(s, s.now) for s, c in affine.terms)


def terms_of(spot: Spot, keys: tuple[Any, ...], shadow: Array, loops: list[LoopSymbol]) -> Terms:
    """By how much the view moves with each loop. Where it changes otherwise, as a slice does that grows, the
    round stands for itself alone."""
    base, layout = spot.buffer.base, spot.layout
    moves: list[Move] = []
    for symbol in loops:
        last = symbol.last
        if last == symbol.now:
            moves.append((symbol, 0, symbol.now))
            continue
        try:
            end = seen(layout, tuple(at(k, {symbol: last}) for k in keys))
            after = seen(layout, tuple(at(k, {symbol: symbol.now + 1}) for k in keys))
        except IndexError:
            symbol.special = "an index that is out of bounds in some rounds"
            return ()
        each = distance(base, after) - distance(base, shadow)
        straight = distance(base, end) - distance(base, shadow) == each * (last - symbol.now)
        same = end.shape == shadow.shape == after.shape
        if not (same and straight and end.strides == shadow.strides == after.strides):
            symbol.special = "a slice that is of another size, or wraps, in some rounds"
            return ()
        moves.append((symbol, each, symbol.now))
    _check_corners(spot, keys, shadow, moves)
    return tuple(moves)


def _check_corners(spot: Spot, keys: tuple[Any, ...], shadow: Array, moves: Sequence[Move]) -> None:
    """Have rounds stand for themselves alone where, of several loops, the view is another one in the last
    rounds of some than what it is in those of each."""
    base, layout = spot.buffer.base, spot.layout
    moving = [m for m in moves if m[0].last != m[0].now]
    for corner in itertools.product((False, True), repeat=len(moving)):
        ends = {s: s.last for at_end, (s, _, _) in zip(corner, moving, strict=True) if at_end}
        moved = sum(each * (s.last - s.now) for s, each, _ in moving if s in ends)
        try:
            end = seen(layout, tuple(at(k, ends) for k in keys))
        except IndexError:
            same = False
        else:
            same = (end.shape, end.strides) == (shadow.shape, shadow.strides)
            same = same and distance(base, end) - distance(base, shadow) == moved
        if not same:
            for symbol, _, _ in moving:
                symbol.special = symbol.special or "an index that is out of bounds in some rounds"
            return
