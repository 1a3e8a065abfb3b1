"""`np.r_`, `np.c_`, `np.mgrid` and `np.ogrid`, which are objects that are indexed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from irkit.frontends.numpy.indices import Index


class Joined:
    """`np.r_` or `np.c_`: NumPy's own Python, traced."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def __getitem__(self, key: Any) -> Any:
        from irkit.frontends.numpy.globals import traced_function

        return traced_function(cast(Any, type(self._own)).__getitem__)(self._own, key)

    def __len__(self) -> int:
        return len(self._own)


class Grid:
    """`np.mgrid` or `np.ogrid`: arrays that are made now, of numbers that are known. `lifted` makes arrays of
    the trace of them."""

    def __init__(self, own: Any, lifted: Callable[[Any], Any]) -> None:
        self._own, self._lifted = own, lifted

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):
            return self._lifted(self._own[tuple(map(_known, cast("tuple[Any, ...]", key)))])
        return self._lifted(self._own[_known(key)])


def _known(key: Any) -> Any:
    if not isinstance(key, slice):
        return key
    given = cast("slice[Any, Any, Any]", key)
    return slice(*map(_number, (given.start, given.stop, given.step)))


def _number(limit: Any) -> Any:
    """A loop's index as the number of this round."""
    return limit.special("a grid of a loop's index") if isinstance(limit, Index) else limit


def stand_in(found: Any, lifted: Callable[[Any], Any]) -> Any:
    """What stands for one of them; all else as it is."""
    if found is np.r_ or found is np.c_:
        return Joined(found)
    return Grid(found, lifted) if found is np.mgrid or found is np.ogrid else found
