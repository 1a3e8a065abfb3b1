"""The masks of a written-out attention: gathered from the softmax back to the product, then put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.ir import Attribute, SSAValue

from irkit.dialects import graph
from irkit.dialects.constants import constant_array
from irkit.dialects.types import DYNAMIC, int_array, is_float, numpy_dtype, tensor_type
from irkit.weights import Array, WeightStore

HIDDEN = -1e30
"""A score of this or less beside one that is seen has a weight of 0 in float32: exp underflows below -104."""

Emit = Callable[..., SSAValue]
"""Appends an op: its class, operands, properties by name."""


@dataclass(frozen=True)
class _Mask:
    """Floats that are added to scores, or of i1 which of them are seen; `level`: of which shape they are."""

    value: SSAValue
    level: int
    hidden: float = -np.inf
    seen: bool = True


@dataclass
class Masks:
    """`shapes`: of the scores, that of the softmax first, one more for each reshape before it."""

    weights: WeightStore
    shapes: list[Sequence[int]]
    found: list[_Mask] = field(default_factory=list[_Mask])

    def add(self, value: SSAValue) -> None:
        """Scores have `value` added."""
        self.found.append(_Mask(value, len(self.shapes) - 1))

    def choose(self, condition: SSAValue, hidden: float, seen: bool) -> str | None:
        """Scores are `hidden` where the condition is not `seen`; says why that is no mask."""
        if not hidden <= HIDDEN:
            return f"scores of hidden keys are {hidden}: that may leave them some weight"
        self.found.append(_Mask(condition, len(self.shapes) - 1, hidden, seen))
        return None

    def reshape(self, before: Sequence[int]) -> str | None:
        """What follows has scores of the shape `before`; says why masks of it cannot be moved."""
        if DYNAMIC in before or DYNAMIC in self.shapes[-1]:
            return "a reshape of scores with an open batch"
        self.shapes.append(before)
        return None

    # All together

    def built(self, emit: Emit, element: Attribute) -> tuple[SSAValue | None, int | None]:
        """One mask, of i1 or of `element`, and the number `causal`; None for each that there is not."""
        known = [(m, a) for m in self.found if (a := self._array(m)) is not None]
        added = [a for _, a in known if a.dtype != bool]
        seen = [a for _, a in known if a.dtype == bool]
        total = sum(added[1:], added[0]) if added else None
        if total is not None and (choice := _as_choice(total)) is not None:
            total, seen = None, [*seen, choice]
        both = np.logical_and.reduce(np.broadcast_arrays(*seen)) if seen else None
        causal = None if both is None else diagonal(both, self.shapes[0][-2:])
        if causal is not None or (both is not None and both.all()):
            both = None
        if causal is not None and causal >= self.shapes[0][-1] - 1:
            causal = None  # The first row sees all keys, and so do the others.
        floats = [] if total is None else [self._constant(emit, total, element)]
        bools = [] if both is None else [self._constant(emit, both, None)]
        for mask in self.found:
            if constant_array(mask.value, self.weights) is None:
                value = self._emitted(emit, mask, element)
                (floats if is_float(tensor_type(value).element_type) else bools).append(value)
        return self._joined(emit, floats, bools), causal

    def _joined(
        self, emit: Emit, floats: Sequence[SSAValue], bools: Sequence[SSAValue]
    ) -> SSAValue | None:
        added = floats[0] if floats else None
        for other in floats[1:]:
            assert added is not None
            added = emit(graph.AddOp, [added, other])
        seen = bools[0] if bools else None
        for other in bools[1:]:
            assert seen is not None
            seen = emit(graph.AndOp, [seen, other])
        if added is None or seen is None:
            return added if seen is None else seen
        lowest = np.array(-np.inf, numpy_dtype(tensor_type(added).element_type))
        return emit(graph.WhereOp, [seen, added, emit(lowest)])

    def _constant(self, emit: Emit, array: Array, element: Attribute | None) -> SSAValue:
        """A constant without the leading dimensions along which nothing changes."""
        for axis in range(array.ndim - 2):
            first = array.take([0], axis)
            if array.shape[axis] > 1 and _equal(array, first):
                array = first
        while array.ndim > 2 and array.shape[0] == 1:
            array = array[0]
        return emit(array if element is None else array.astype(numpy_dtype(element)))

    def _array(self, mask: _Mask) -> Array | None:
        """A constant mask in the shape of the softmax: floats to add, or which scores are seen."""
        array = constant_array(mask.value, self.weights)
        if array is None:
            return None
        array = array.reshape((1,) * (2 - array.ndim) + array.shape)
        for level in range(mask.level, 0, -1):
            array = _array_moved(array, self.shapes[level], self.shapes[level - 1])
        if array.dtype != bool:
            return array
        seen = array if mask.seen else ~array
        return seen if np.isinf(mask.hidden) else np.where(seen, 0.0, mask.hidden)

    def _emitted(self, emit: Emit, mask: _Mask, element: Attribute) -> SSAValue:
        value = mask.value
        for level in range(mask.level, 0, -1):
            value = _moved(emit, value, self.shapes[level], self.shapes[level - 1])
        have = tensor_type(value).element_type
        if is_float(have):
            return value if have == element else emit(graph.CastOp, [value], to=element)
        kind = numpy_dtype(element).type
        if not np.isinf(mask.hidden):
            pair = [emit(np.array(n, kind)) for n in (0.0, mask.hidden)]
            return emit(graph.WhereOp, [value, *(pair if mask.seen else reversed(pair))])
        return value if mask.seen else emit(graph.NotOp, [value])


def _equal(array: Array, other: Array) -> bool:
    return bool((array == other).all())


def _as_choice(added: Array) -> Array | None:
    """Which scores are seen, if all that is added is 0 or hides a score; None if it is not so simple, or a
    row that sees nothing hangs on how well it is hidden."""
    hidden = added <= HIDDEN
    if not (hidden | (added == 0)).all():
        return None
    none_seen = hidden.all(axis=-1, keepdims=True)
    if (none_seen & ~np.isneginf(added)).any():
        return None
    return ~hidden


def diagonal(seen: Array, scores: Sequence[int]) -> int | None:
    """k if row i sees the keys 0 to i + k, for some k; None if it is not so."""
    rows, keys = seen.shape[-2:]
    if (rows, keys) != tuple(scores):
        return None
    k = int(seen.reshape(-1, rows, keys)[0, 0].sum()) - 1
    return k if k >= 0 and _equal(seen, np.tri(rows, keys, k, dtype=bool)) else None


def _array_moved(array: Array, before: Sequence[int], after: Sequence[int]) -> Array:
    """A mask of scores of one shape as one of scores reshaped, whose last two dimensions stay."""
    last = array.shape[-2:]
    if all(s == 1 for s in array.shape[:-2]):
        return array.reshape(last)
    return np.broadcast_to(array, (*before[:-2], *last)).reshape((*after[:-2], *last))


def _moved(emit: Emit, value: SSAValue, before: Sequence[int], after: Sequence[int]) -> SSAValue:
    """`_array_moved` of what is computed."""
    shape = tensor_type(value).get_shape()
    last = (1, 1, *shape)[-2:]
    if all(s == 1 for s in shape[:-2]):
        return emit(graph.ReshapeOp, [value], shape=int_array(last))
    full = (*before[:-2], *last)
    value = emit(graph.ExpandOp, [value], shape=int_array(full))
    return emit(graph.ReshapeOp, [value], shape=int_array((*after[:-2], *last)))
