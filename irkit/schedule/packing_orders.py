"""Orders of preference for the search of packings: which buffers it tries first.

MiniMalloc's three come first. Then orders by area or by area and width, disturbed, in which those come
sooner whose cliques refused more often; and, more often than these, changes of the orders whose searches went
deepest. How deep says how near a search was: what is changed a little keeps what was right of it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from irkit.schedule.box_overlap import Mask

Ints = NDArray[np.int64]
Keys = NDArray[np.float64]

_NOISES = (0.03, 0.1, 0.3, 1.0)
"""Standard deviations of what disturbs an order, in natural logarithms."""

_CHANGES = (0.02, 0.05, 0.2)
"""The same of what changes an order that went deep."""

_WEIGHTS = (0.0, 1.0, 3.0)
"""Of blame in an order."""

_WEAKER = 0.3
"""By how much blame counts less in a change."""

_KEPT = 8
"""Orders that are changed: those that went deepest."""

_SHARE = 0.7
"""Of orders that are changes of others."""


class Orders:
    """Buffers of `sizes` in order after order, each an array of numbers. `went` is told how deep the search
    by the order before went. The same calls have the same answers."""

    def __init__(self, sizes: Ints, cliques: Mask) -> None:
        self._sizes, self._cliques = sizes, cliques
        self._width = cliques.sum(axis=0).astype(np.int64)
        self._area = self._width * sizes
        self._rng = np.random.default_rng(0)
        self._keys: Keys | None = None
        self._deepest: list[tuple[int, Keys]] = []

    def first(self) -> Iterator[Ints]:
        """MiniMalloc's three, by width, area and total."""
        weights = self._cliques @ self._sizes
        total = (self._cliques * weights[:, None]).max(axis=0, initial=0)
        number, area, width = np.arange(len(self._sizes)), self._area, self._width
        for keys in ((total, area, width), (width, area, total), (total, width, area)):
            yield np.lexsort((number, *(-key for key in reversed(keys))))

    def another(self, blame: Keys) -> Ints:
        """One more, `blame` saying how often each clique refused."""
        weight = _WEIGHTS[int(self._rng.integers(len(_WEIGHTS)))]
        blamed = np.log1p((self._cliques * blame[:, None]).max(axis=0, initial=0.0))
        changed = len(self._deepest) >= _KEPT // 2 and self._rng.random() < _SHARE
        if changed:
            _, base = self._deepest[int(self._rng.integers(len(self._deepest)))]
            keys = self._disturbed(base, _CHANGES) + _WEAKER * weight * blamed
        else:
            main = (self._area, self._area * self._width)[int(self._rng.integers(2))]
            keys = self._disturbed(np.log(np.maximum(main, 1)), _NOISES) + weight * blamed
        self._keys = keys
        return np.argsort(-keys, kind="stable")

    def went(self, depth: int) -> None:
        """The search by the order before placed so many buffers, one after another, at most."""
        if self._keys is None:
            return
        self._deepest.append((depth, self._keys))
        self._deepest.sort(key=lambda one: -one[0])
        del self._deepest[_KEPT:]
        self._keys = None

    def _disturbed(self, keys: Keys, noises: tuple[float, ...]) -> Keys:
        noise = noises[int(self._rng.integers(len(noises)))]
        return keys + self._rng.normal(0.0, noise, len(keys))
