"""Complex arrays of the caller as a program sees them: their real and imaginary parts, side by side in a last
dimension. Both are the caller's memory."""

from __future__ import annotations

import numpy as np

from irkit.driver.programs.memory import Memory
from irkit.frontends.numpy.records import complex_of, parts_of
from irkit.weights import Array


def as_pairs(array: Array) -> Array:
    """The parts of complex numbers; other arrays as they are."""
    if array.dtype.kind != "c":
        return array
    real, _ = parts_of(array)
    strides = (*real.strides, real.itemsize)
    return np.lib.stride_tricks.as_strided(real, (*real.shape, 2), strides)


def as_complex(real: Array) -> Array:
    """Complex numbers, of their real parts, behind each of which its imaginary part lies."""
    if real.size == 0:
        return np.empty(real.shape, complex_of(real.dtype))
    found = real.__array_interface__
    kind = complex_of(real.dtype)
    interface = {k: found[k] for k in ("data", "shape", "version")}
    return np.asarray(Memory({**interface, "typestr": kind.str, "strides": real.strides}, real))
