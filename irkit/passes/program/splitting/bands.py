"""What a chunk needs of a value: rows from and to where, as its place goes on."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Band:
    """Unit i of the result needs the rows scale * i + low to scale * i + high along dimension `axis`.

    A row that is a row of the result: `Band(axis)`. Of windows `high - low` is the halo, of a dimension into
    which others were folded `scale` is how many they are.
    """

    axis: int
    scale: int = 1
    low: int = 0
    high: int = 0

    def first(self, unit: int) -> int:
        """The first row that the units from `unit` on need."""
        return self.scale * unit + self.low

    def count(self, units: int) -> int:
        """How many rows so many units in a row need."""
        return self.scale * (units - 1) + self.high - self.low + 1

    @property
    def halo(self) -> int:
        """Rows that neighbouring chunks both need."""
        return max(self.high - self.low + 1 - self.scale, 0)

    def at(self, axis: int) -> Band:
        """The same rows of another dimension."""
        return replace(self, axis=axis)

    def hull(self, other: Band) -> Band | None:
        """What holds both; None where they go on at different paces, or along different dimensions."""
        if (self.axis, self.scale) != (other.axis, other.scale):
            return None
        return replace(self, low=min(self.low, other.low), high=max(self.high, other.high))


class Unsplittable(Exception):
    """A chunk of an op's result needs more than a chunk of its operands."""
