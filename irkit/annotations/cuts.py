"""How a call is made in parts: the split types of its annotation, resolved for its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from irkit.annotations.annotation import Annotation
from irkit.annotations.results import Returned, Same
from irkit.annotations.split_types import (
    ArraySplit,
    Broadcast,
    Elementwise,
    Generic,
    RowSplit,
    SplitType,
    extents,
)
from irkit.annotations.structures import ArrayType, Slot, unpacked
from irkit.errors import UnsupportedError


@dataclass(frozen=True)
class Cut:
    """A call of `units`: `inputs` says of each input array how it is split, `output` of what is returned."""

    units: int
    inputs: tuple[SplitType, ...]
    output: SplitType

    def of(self, number: int) -> SplitType:
        """Of an input, or of the result, which follows them."""
        return self.inputs[number] if number < len(self.inputs) else self.output


def resolved(
    annotation: Annotation, args: Any, kwargs: Any
) -> tuple[dict[str, SplitType], SplitType]:
    """The split types of a call with these arguments, by parameter, and that of the result: of types that are
    left open, what the arguments are."""
    values = annotation.bound(args, kwargs)
    rule = annotation.types
    given = dict(rule(*args, **kwargs) if callable(rule) else rule)
    returns = given.pop("return", annotation.returns or Broadcast())
    given = {n: t for n, t in given.items() if n in values}
    rank = max(
        (len(extents(values[n])) for n in given),
        default=0,
    )
    open_types: dict[str, SplitType] = {}

    def settled(split: SplitType, value: Any) -> SplitType:
        match split:
            case Elementwise():
                return split.of_rank(rank)
            case Generic():
                own = RowSplit() if hasattr(value, "iloc") else ArraySplit(0)
                return open_types.setdefault(split.name, own)
            case ArraySplit():
                return split.of_rank(len(extents(value)))
            case _:
                return split

    types = {n: settled(t, values[n]) for n, t in given.items()}
    return types, settled(returns, None) if isinstance(returns, Elementwise | Generic) else returns


def cut_of(
    annotation: Annotation,
    arguments: Any,
    inputs: Sequence[ArrayType],
    returned: Returned,
    writes: Sequence[int],
) -> Cut | None:
    """How a call with these arguments is made in parts; None where it cannot be: nothing is said of how it is
    split, extents differ, what it writes is not split, or what it returns is not one array that is."""
    if not annotation.types:
        return None
    args, kwargs = arguments
    bound = annotation.bound(args, kwargs)
    values = unpacked(bound, lambda slot: inputs[slot.number])
    whole, named = unpacked(arguments, lambda slot: inputs[slot.number])
    types, returns = resolved(annotation, whole, named)
    found: list[SplitType] = [Broadcast()] * len(inputs)
    sizes: set[int] = set()
    for name, split in types.items():
        slot = bound[name]
        size = size_of(annotation, split, values[name]) if isinstance(slot, Slot) else None
        if not isinstance(slot, Slot) or size is None:
            continue
        if found[slot.number] not in (Broadcast(), split):
            return None
        found[slot.number] = split
        sizes.add(size)
    if len(sizes) != 1 or any(found[n] == Broadcast() for n in writes):
        return None
    (units,) = sizes
    output = _output(annotation, returned, returns, units, found)
    return None if output is None else Cut(units, tuple(found), output)


def _output(
    annotation: Annotation,
    returned: Returned,
    returns: SplitType,
    units: int,
    inputs: Sequence[SplitType],
) -> SplitType | None:
    """How the result is split; None where it is not."""
    place = returned.structure
    if place is None:
        return Broadcast()
    if isinstance(place, Same):
        return Broadcast() if inputs[place.number] != Broadcast() else None
    if not isinstance(place, Slot) or place.kind != "array":
        return None
    made = returned.types[place.number]
    split = returns.of_rank(len(made.shape)) if isinstance(returns, ArraySplit) else returns
    return split if size_of(annotation, split, made) == units else None


def size_of(annotation: Annotation, split: SplitType, value: Any) -> int | None:
    """How many units a split type says that a value has. Raises UnsupportedError for what is no number."""
    size: Any = split.size(value)
    size = cast(Any, size.item() if isinstance(size, np.generic) else size)
    if size is None:
        return None
    if isinstance(size, int) and size >= 0:
        return size
    raise UnsupportedError(
        f"'{annotation.name}': {type(split).__name__}.size gives {size!r}: "
        "expected a whole number from 0, or None"
    )
