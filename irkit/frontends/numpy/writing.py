"""Whether an array may be written while a function is traced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irkit.frontends.numpy.places import refused

if TYPE_CHECKING:
    from irkit.frontends.numpy.arrays import TracedArray


def check_writeable(array: TracedArray, message: str) -> None:
    """Raise NumPy's ValueError for an array that cannot be written, and UnsupportedError for the caller's
    whose elements share memory: what stands there in the end would hang on their order."""
    if array.flags.writeable:
        return
    if array.spot.buffer.repeats:
        raise refused(
            "an argument is written whose elements share memory: give the function a copy"
        )
    raise ValueError(message)
