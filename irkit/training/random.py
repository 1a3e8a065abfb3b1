"""Random numbers without state: functions of a key, and of where in an array each number stands.

Numbers come of `graph.threefry`, whose key and counter are operands: the same key gives the same numbers, on
every target, wherever and however often they are computed. Uniform numbers are the same to the bit; normal
ones within what the target's logarithm and cosine round. A key is for one array: `split` and `fold_in` make
others of it. A counter is an element's number, of `fold_in` with the highest bit set.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from irkit.dialects.graph import AddOp, ThreefryOp
from irkit.dialects.graph.semantics.random import threefry
from irkit.errors import UnsupportedError
from irkit.frontends.numpy.arrays import fresh, is_traced, value_of
from irkit.frontends.numpy.indices import Index
from irkit.frontends.numpy.library import LIBRARY
from irkit.frontends.numpy.operands import array_of, operand
from irkit.frontends.numpy.recorder import recorder, tracing
from irkit.training.given import check_count, is_number, is_whole

Shape = int | Sequence[int]
FOLDED = 1 << 63
"""Counters from here on make keys."""


def key(seed: int) -> Any:
    """The key of a seed, from 0 to below 2**64. Raises UnsupportedError for another."""
    if not is_whole(seed) or not 0 <= seed < 1 << 64:
        raise UnsupportedError(
            f"random.key({seed!r}): expected a whole number from 0 to below 2**64"
        )
    return np.array(seed, np.uint64)


def fold_in(key: Any, number: Any) -> Any:
    """Another key, of a key and a whole number from 0 to below 2**63: of a step, of a layer. Raises
    UnsupportedError for another."""
    counter = _folded(number).astype(np.uint64) | np.uint64(FOLDED)
    return _threefry(key, counter)


def _folded(number: Any) -> Any:
    """What is folded in, as an array; of what is computed in a trace the values are not known."""
    if isinstance(number, Index) and number.affine.extent()[0] >= 0:
        # Of a loop, which stays one.
        return fresh(operand(number).value(np.dtype(np.int64)), scalar=True)
    found: Any = number if is_traced(number) else np.asarray(number)
    known = not is_traced(number) and found.dtype.kind in "iu"
    if found.dtype.kind not in "iu" or (known and not ((found >= 0) & (found < FOLDED)).all()):
        said = f"a {found.dtype}" if is_traced(number) else repr(number)
        raise UnsupportedError(
            f"random.fold_in of {said}: expected a whole number from 0 to below 2**63"
        )
    return found


def split(key: Any, count: int = 2) -> tuple[Any, ...]:
    """So many other keys. Raises UnsupportedError for a count that is no whole number of 1 or more."""
    check_count("random.split", count, "keys")
    return tuple(fold_in(key, n) for n in range(count))


def bits(key: Any, shape: Shape) -> Any:
    """64 random bits an element, uint64."""
    return _drawn(key, _extents(shape), 0)


def uniform(key: Any, shape: Shape, dtype: Any = np.float32) -> Any:
    """Numbers from 0 to below 1: multiples of 2**-24 (float32) or 2**-53 (float64)."""
    return _uniform(bits(key, shape), np.dtype(dtype))


def normal(key: Any, shape: Shape, dtype: Any = np.float32) -> Any:
    """Numbers of mean 0 and variance 1, by Box and Muller's method, each of its own two uniform numbers."""
    dtype, extents = np.dtype(dtype), _extents(shape)
    if dtype == np.float32:
        both = _drawn(key, extents, 0)
        first, second = both >> np.uint64(40), (both >> np.uint64(8)) & np.uint64(0xFFFFFF)
        first, second = (_scaled(x, dtype, 24) for x in (first, second))
    else:
        # 64 bits have no two of 53.
        own = math.prod(extents)
        first, second = (_uniform(_drawn(key, extents, n * own), dtype) for n in range(2))
    # 1 - u is from above 0 to 1, and has a logarithm.
    radius = np.sqrt(-2 * np.log(1 - first))
    return radius * np.cos(dtype.type(2 * np.pi) * second)


def bernoulli(key: Any, share: float, shape: Shape) -> Any:
    """Booleans, of which about `share` are true: as many as multiples of 2**-24 are below it."""
    if not is_number(share) or not 0 <= share <= 1:
        raise UnsupportedError(f"random.bernoulli: share {share!r}: expected a number from 0 to 1")
    below = np.int32(math.ceil(share * (1 << 24)))
    return (bits(key, shape) >> np.uint64(40)).astype(np.int32) < below


def dropout(key: Any, x: Any, rate: float) -> Any:
    """`x` with about `rate` of its elements 0, and the others over 1 - `rate`."""
    if not is_number(rate) or not 0 <= rate < 1:
        raise UnsupportedError(
            f"random.dropout: rate {rate!r}: expected a number from 0 to below 1"
        )
    if rate == 0:
        return x.copy()
    kept = bernoulli(key, 1 - rate, x.shape)
    return LIBRARY.where(kept, x * x.dtype.type(1 / (1 - rate)), x.dtype.type(0))


def _extents(shape: Shape) -> tuple[int, ...]:
    return (int(shape),) if is_whole(shape) else tuple(cast("Sequence[int]", shape))


def _uniform(drawn: Any, dtype: np.dtype[Any]) -> Any:
    """Numbers below 1 of the upper bits. Raises UnsupportedError for another dtype than two."""
    kept = {np.dtype(np.float32): 24, np.dtype(np.float64): 53}.get(dtype)
    if kept is None:
        raise UnsupportedError(f"random numbers of {dtype}: expected float32 or float64")
    return _scaled(drawn >> np.uint64(64 - kept), dtype, kept)


def _scaled(whole: Any, dtype: np.dtype[Any], kept: int) -> Any:
    narrow = np.int32 if kept < 32 else np.int64
    return whole.astype(narrow).astype(dtype) * dtype.type(2.0**-kept)


def _threefry(key: Any, counter: Any) -> Any:
    if not is_traced(key) and not is_traced(counter):
        return np.asarray(threefry(_checked(key), counter))
    values = [value_of(array_of(a)) for a in (_checked(key), counter)]
    return fresh(recorder().op(ThreefryOp, *values))


def _checked(key: Any) -> Any:
    """A key. Raises UnsupportedError for what is none."""
    if not hasattr(key, "dtype") or key.dtype != np.uint64 or key.shape != ():
        kind = f"{key.dtype}{list(key.shape)}" if hasattr(key, "dtype") else type(key).__name__
        raise UnsupportedError(f"a key of random numbers is a uint64 of no dimensions, got {kind}")
    return key


def _drawn(key: Any, shape: tuple[int, ...], first: int) -> Any:
    """Bits of an array whose first element has number `first`."""
    lines: list[Any] = [np.array(first, np.uint64)]
    step = 1
    for d in reversed(range(len(shape))):
        line = np.arange(shape[d], dtype=np.uint64) * np.uint64(step)
        lines.append(line.reshape(-1, *[1] * (len(shape) - d - 1)))
        step *= shape[d]
    if not tracing():
        return _threefry(key, np.broadcast_to(sum(lines), shape))
    # A number an element is their sum in the program: no array of all of them is kept.
    r = recorder()
    counter = r.constant(lines[0])
    for line in lines[1:]:
        counter = r.op(AddOp, counter, r.constant(line))
    return fresh(r.op(ThreefryOp, value_of(array_of(_checked(key))), r.expand(counter, shape)))
