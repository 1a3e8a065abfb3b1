"""Which outputs of a pool have windows without padding: all, or all but those at its edges."""

from __future__ import annotations

import math
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from xdsl.dialects import tensor
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from irkit.dialects.linalg_generic import maps
from irkit.dialects.products import linear_factors
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, ints, tensor_type


@dataclass(frozen=True)
class Rows:
    """Rows whose windows lie inside along one dimension: `low` <= sum of factors[loop] * loop <= `high`."""

    factors: dict[int, int]
    low: int
    high: int


@dataclass(frozen=True)
class PoolWindows:
    """The windows of a pool over `source`, before which `low` elements of padding lie along each dimension.

    Those of columns `first` to `last` (not with it) have no padding in rows for which all of `rows` hold.
    `stride`: how far apart the elements of the source are that neighbouring columns look at. `steps`: how far
    apart those are that one window looks at, by reduction loop. `index`: where its first element is, in the
    padded operand.
    """

    source: SSAValue
    low: tuple[int, ...]
    index: tuple[AffineExpr, ...]
    first: int
    last: int
    rows: tuple[Rows, ...]
    stride: int
    steps: tuple[int, ...]


_found: WeakKeyDictionary[linalg.GenericOp, PoolWindows | None] = WeakKeyDictionary()


def pool_windows(root: Root) -> PoolWindows | None:
    """The windows of a root; None if it is no pool over one operand, or to one number, if that is padded by
    unknown amounts, if windows move otherwise, or if none lies inside."""
    if root.family != "pool" or len(root.chain) != 1:
        return None
    op = root.chain[0]
    if op not in _found:
        _found[op] = _find(root, op)
    return _found[op]


def _find(root: Root, op: linalg.GenericOp) -> PoolWindows | None:
    padded = _padded(op)
    if padded is None or not root.parallel:
        return None
    number, source, lows, highs = padded
    shape = tensor_type(source).get_shape()
    sizes = (*root.parallel, *root.reduction)
    last = len(root.parallel) - 1
    first, end, rows = 0, root.parallel[-1], list[Rows]()
    apart = dict.fromkeys(range(len(sizes)), 0)
    index = maps(op)[number].results
    for d, expr in enumerate(index):
        factors = linear_factors(expr, len(sizes))
        if factors is None or min(factors.values(), default=1) < 1:
            return None
        # Of a dimension's elements, the first one's size is not asked for: it may be the batch.
        step = math.prod(shape[d + 1 :])
        for loop, factor in factors.items():
            apart[loop] += factor * step
        before, after = lows[d], highs[d]
        if not before and not after:
            continue
        moving = {loop: step for loop, step in factors.items() if loop <= last}
        reach = sum(step * (sizes[loop] - 1) for loop, step in factors.items() if loop > last)
        low = before - expr.eval([0] * len(sizes), [])
        high = low + shape[d] - 1 - reach
        if DYNAMIC in (shape[d], *(sizes[m] for m in moving)):
            return None
        if last not in moving:
            rows.append(Rows(moving, low, high))
            continue
        if len(moving) > 1:
            return None
        first = max(first, -(-low // moving[last]))
        end = min(end, high // moving[last] + 1)
    if first >= end:
        return None
    steps = tuple(apart[loop] for loop in range(last + 1, len(sizes)))
    return PoolWindows(source, lows, tuple(index), first, end, tuple(rows), apart[last], steps)


def _padded(
    op: linalg.GenericOp,
) -> tuple[int, SSAValue, tuple[int, ...], tuple[int, ...]] | None:
    """Which input a pool looks at, what is padded there, and by how much before and behind each dimension (by
    nothing what is no pad); None if it looks at several, or sizes are not known."""
    # Beside it there may be an operand for the window's shape, of which no element is read.
    read = [n for n, _ in enumerate(op.inputs) if op.body.block.args[n].uses]
    if len(read) != 1:
        return None
    value = op.inputs[read[0]]
    if DYNAMIC in tensor_type(value).get_shape()[1:]:
        return None
    pad = value.owner
    if not isinstance(pad, tensor.PadOp):
        none = (0,) * len(tensor_type(value).get_shape())
        return read[0], value, none, none
    if pad.low or pad.high:
        return None
    return read[0], pad.source, tuple(ints(pad.static_low)), tuple(ints(pad.static_high))
