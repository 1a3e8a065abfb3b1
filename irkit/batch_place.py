"""Where the batch stands in an array that a program takes or gives, and how it comes to the front and back.

A compiled program has the batch in front. A model may have it elsewhere (steps × batch × features): the host
moves it. Imports no xDSL, so that saved programs load fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class BatchPlace:
    """Dimension `axis`, of size outer · batch · inner, as in `irkit.dialects.graph.batch.BatchDim`."""

    axis: int
    outer: int = 1
    inner: int = 1

    def to_front(self, array: NDArray[Any]) -> NDArray[Any]:
        """The array of an input, whose dimension is the batch alone, with that dimension first."""
        return np.moveaxis(array, self.axis, 0)

    def back(self, array: NDArray[Any]) -> NDArray[Any]:
        """The array of an output, batch × others, as the model has it, C-contiguous.

        Behind the batch stands what is left of the dimension, outer · inner, unless that is 1.
        """
        rows, *rest = array.shape
        before, behind = rest[: self.axis], rest[self.axis :]
        if self.outer * self.inner != 1:
            del behind[0]
        split = array.reshape(rows, *before, self.outer, self.inner, *behind)
        moved = np.moveaxis(split, 0, len(before) + 1)
        whole = self.outer * rows * self.inner
        return np.ascontiguousarray(moved.reshape(*before, whole, *behind))

    def outside(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of an input as the model has it, of the shape that the program takes."""
        first, *rest = shape
        return (*rest[: self.axis], first, *rest[self.axis :])
