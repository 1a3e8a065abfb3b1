"""A copy of what the threads of a block read, in shared memory."""

from __future__ import annotations

import math
from dataclasses import dataclass

from irkit.rkernels.scheduled.layout import Copy


@dataclass(frozen=True)
class SharedCopy(Copy):
    """A copy in shared memory, in `buffers` that are filled by turns. From a turn of its first loop to the
    next are `pitch` elements; behind each run of the last one `padding` are left out."""

    buffers: int = 1
    pitch: int = 1
    padding: int = 0

    @property
    def elements(self) -> int:
        """Of one buffer."""
        return self.axes[0].extent * self.pitch if self.axes else 1

    @property
    def strides(self) -> list[int]:
        """From a turn of each of its loops to the next."""
        return (
            [self.pitch, *(self.run(n + 1) for n in range(1, len(self.axes)))] if self.axes else []
        )

    def run(self, first: int) -> int:
        """Elements of all turns of the loops from the first on."""
        extents = [a.extent for a in self.axes[first:]]
        return math.prod([*extents[:-1], extents[-1] + self.padding]) if extents else 1
