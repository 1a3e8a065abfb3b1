"""Annotated functions called in parts outside of compiled functions: on frames of pandas too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irkit.annotations.annotation import annotation_of
from irkit.annotations.cuts import resolved, size_of
from irkit.annotations.split_types import SplitType
from irkit.annotations.workers import in_parts as run_parts
from irkit.errors import UnsupportedError
from irkit.processors import usable_cores


def in_parts(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """What an annotated function returns, called in parts by several threads; merged as its annotation says.

    A call that cannot be split (nothing has a size, sizes differ) is made whole. Raises UnsupportedError for
    a function without split types, and what the function raises.
    """
    known = annotation_of(function)
    if known is None or not known.types or known.parameters is None:
        name = getattr(function, "__name__", type(function).__name__)
        raise UnsupportedError(f"'{name}' has no annotation that says how it is split")
    bound = known.bound(args, kwargs)
    types, returns = resolved(known, args, kwargs)
    sizes = {n: size for n, t in types.items() if (size := size_of(known, t, bound[n])) is not None}
    if len(set(sizes.values())) != 1:
        return known.function(*args, **kwargs)
    (units,) = set(sizes.values())
    each = max(1, -(-units // usable_cores()))
    cuts = [(start, min(start + each, units)) for start in range(0, units, each)]
    found: dict[int, Any] = {}

    def part(start: int, stop: int) -> None:
        values = {n: _cut(types.get(n), v, n in sizes, start, stop) for n, v in bound.items()}
        names = (known.parameters or ())[: len(args)]
        rest = {n: v for n, v in values.items() if n not in names}
        found[start] = known.function(*(values[n] for n in names), **rest)

    run_parts(part, cuts)
    return returns.merge([found[start] for start, _ in cuts])


def _cut(split: SplitType | None, value: Any, sized: bool, start: int, stop: int) -> Any:
    return split.split(value, start, stop) if sized and split is not None else value
