"""Whether an array may be written while a function is traced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irkit.frontends.numpy.places import refused

if TYPE_CHECKING:
    from irkit.frontends.numpy.arrays import TracedArray


def check_writeable(array: TracedArray, message: str) -> None:
    """Raise NumPy's ValueError for an array that cannot be written, and UnsupportedError for one whose
    elements share memory: what stands there in the end would hang on their order."""
    if array.flags.writeable:
        return
    if array.spot.buffer.repeats:
        raise refused(
            "an argument is written, or a view, whose elements share memory: write a copy of it"
        )
    raise ValueError(message)
