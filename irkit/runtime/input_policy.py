"""What a program takes: one set of rules for arrays on the host and on a device.

Number, dtype, shape, layout, values without meaning, rows. What the host can mend without changing a value is
mended there (lists, casts that the model's own library makes, copies in another order); an array on a device
is taken as it is or refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from irkit.bfloat16 import dtype_of, is_floating
from irkit.errors import InvalidInputError
from irkit.model_info import ModelInfo
from irkit.runtime.column_limits import ColumnLimits
from irkit.runtime.host_arrays import as_array, refuse_own_types
from irkit.runtime.value_checks import ValueCheck
from irkit.schedule.tables import Port
from irkit.weights import Array

PIECE = 1 << 15
"""Elements that a core's cache keeps while they are looked at again."""
# Devices read several elements at once.
DEVICE_ALIGNMENT = 16


class Extent(NamedTuple):
    """The largest magnitude of an array's elements that are numbers, 0 if there are none; is any NaN?"""

    largest: float
    nan: bool


class DeviceFacts(NamedTuple):
    """What an array on a device says of itself.

    `strides` in bytes, None if it is C-contiguous. `producer`: the handle of the stream after whose work the
    array is whole (1 is the default stream), None if nothing has to be waited for.
    """

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    strides: tuple[int, ...] | None
    producer: int | None = None


class InputPolicy:
    """The rules of one program. All methods raise InvalidInputError."""

    def __init__(self, ports: Sequence[Port], info: ModelInfo | None = None) -> None:
        self.ports = tuple(ports)
        self._info = info if info is not None else ModelInfo("network", (), ())
        self.dtypes = [dtype_of(p.dtype) for p in self.ports]
        self._limits = (
            ColumnLimits(self._info.limits, self.dtypes[0])
            if self._info.limits and self.ports
            else None
        )
        self.any_value = self._info.allow_nan and self._info.allow_infinity and self._limits is None
        self._extents = [self._info.indexed.get(p.name) for p in self.ports]
        self.any_index = not any(self._extents)
        self._checks = [self._check_of(dtype) for dtype in self.dtypes]

    @property
    def _nan_counts(self) -> bool:
        limits = self._limits
        return not self._info.allow_nan or (limits is not None and not limits.nan)

    def check_count(self, inputs: Sequence[Any]) -> None:
        """Whether there is a value for each input."""
        if len(inputs) != len(self.ports):
            names = ", ".join(p.name for p in self.ports)
            raise InvalidInputError(
                f"expected {len(self.ports)} inputs ({names}), got {len(inputs)}"
            )

    def rows(self, shapes: Iterable[tuple[int, ...]]) -> int:
        """The batch that inputs of these shapes make; 1 where there is none."""
        sizes = {
            shape[0]
            for shape, port in zip(shapes, self.ports, strict=True)
            if port.shape[:1] == (-1,)
        }
        if not sizes:
            return 1
        if len(sizes) > 1:
            raise InvalidInputError(f"inputs disagree on the number of rows: {sorted(sizes)}")
        (rows,) = sizes
        if rows == 0 and self._info.kind != "network" and not self._info.allow_empty:
            # As the libraries that such models come from.
            raise InvalidInputError("expected 1 or more rows, got 0")
        return rows

    def host_array(self, number: int, value: Any) -> Array:
        """`value` as an array that the program can take."""
        port = self.ports[number]
        if type(value) is not np.ndarray:
            value = as_array(port.name, value, self.dtypes[number])
        array: Array = value
        if array.dtype != self.dtypes[number]:
            if (rounded := self._rounded(number, array)) is not None:
                return rounded
            array = self._cast(port, array)
        _check_shape(port, array.shape)
        if not (array.flags.c_contiguous and array.flags.aligned):
            # A copy in another order changes no value.
            array = (
                np.ascontiguousarray(array) if array.flags.aligned else np.array(array, order="C")
            )
        if not self.any_index:
            self._check_indices(number, array)
        if self.restricts(number) and not self._surely_taken(number, array):
            self.check_extent(number, extent_of(array, self._nan_counts), lambda: array)
        return array

    def _check_indices(self, number: int, array: Array) -> None:
        """Whether indices are within what they index."""
        extent = self._extents[number]
        if extent is None or not array.size:
            return
        least, most = int(array.min()), int(array.max())
        if least < -extent or most >= extent:
            name, odd = self.ports[number].name, most if most >= extent else least
            raise InvalidInputError(
                f"input '{name}' has the index {odd}: expected {-extent} to {extent - 1}"
            )

    def _rounded(self, number: int, array: Array) -> Array | None:
        """Rows of float64 as the library rounds them to float32, and checked, in one pass; None of what is
        anything else, or may be refused."""
        check, flags = self._checks[number], array.flags
        if check is None or array.dtype != np.float64 or self.dtypes[number] != np.float32:
            return None
        if array.ndim != 2 or not (
            flags.c_contiguous and flags.aligned and self.converts("float64")
        ):
            return None
        _check_shape(self.ports[number], array.shape)
        made = np.empty(array.shape, np.float32)
        return made if check.narrowed(array, made) else None

    def _surely_taken(self, number: int, array: Array) -> bool:
        """Whether all values are such as the model takes, in one pass; of columns with limits of their own,
        whether they are within the least."""
        check = self.value_check(number)
        return check is not None and check.holds(array)

    def value_check(self, number: int) -> ValueCheck | None:
        """What holds only of values that the input may have; None where there is no such check."""
        return self._checks[number]

    def _check_of(self, dtype: np.dtype[Any]) -> ValueCheck | None:
        if dtype.name not in ("float32", "float64"):
            return None
        info, limits = self._info, self._limits
        bounds = [info.largest, limits and limits.largest]
        bounds += [] if info.allow_infinity else [float(np.finfo(dtype).max)]
        return ValueCheck(
            dtype, min((b for b in bounds if b is not None), default=np.inf), not self._nan_counts
        )

    def check_device_array(self, number: int, facts: DeviceFacts) -> None:
        """Whether the program can take an array on a device, but for its values."""
        port = self.ports[number]
        if facts.dtype != self.dtypes[number]:
            raise InvalidInputError(
                f"input '{port.name}': expected dtype {port.dtype}, got {facts.dtype}"
            )
        _check_shape(port, facts.shape)
        if facts.strides is not None and not _contiguous(facts):
            raise InvalidInputError(f"input '{port.name}': expected a C-contiguous array")
        if facts.address % DEVICE_ALIGNMENT:
            raise InvalidInputError(
                f"input '{port.name}': expected an address that is a multiple of {DEVICE_ALIGNMENT}, "
                "as a view has not"
            )

    def restricts(self, number: int) -> bool:
        """Whether there are values that the input must not have."""
        return not self.any_value and is_floating(self.dtypes[number])

    def check_extent(self, number: int, extent: Extent, whole: Callable[[], Array]) -> None:
        """Whether the model has a meaning for values of such an extent; `whole` gives them all, on the host,
        where the extent alone does not say."""
        name, info = self.ports[number].name, self._info
        if info.largest is not None and info.largest < extent.largest < np.inf:
            raise InvalidInputError(
                f"input '{name}' has a value of size {extent.largest:g}, which overflows inside the model: "
                f"expected at most {info.largest:g}"
            )
        if extent.nan and not info.allow_nan:
            raise InvalidInputError(f"input '{name}' has NaN, for which the model has no meaning")
        if extent.largest == np.inf and not info.allow_infinity:
            raise InvalidInputError(f"input '{name}' has infinity, which the model does not accept")
        limits = self._limits
        if limits is not None and (extent.largest > limits.largest or extent.nan > limits.nan):
            limits.check(whole())

    def converts(self, name: str) -> bool:
        """Whether the source library itself converts arrays of a dtype of this name."""
        return name in self._info.casts and name not in self._info.own_types

    def _cast(self, port: Port, array: Array) -> Array:
        """The conversions that the source library itself makes, and lossless ones."""
        name, casts = array.dtype.name, self._info.casts
        refuse_own_types(self._info, f"input '{port.name}'", array.dtype)
        whole = array.dtype.kind in "iub" and bool(casts)
        if array.dtype.kind in "fiub" and (
            whole or name in casts or np.can_cast(array.dtype, port.dtype, "safe")
        ):
            with np.errstate(over="ignore"):
                return array.astype(port.dtype)
        accepted = ", ".join(dict.fromkeys((port.dtype, *self._info.casts)))
        raise InvalidInputError(
            f"input '{port.name}': expected dtype {accepted}, got {array.dtype}"
        )


def extent_of(array: Array, nan_counts: bool = True) -> Extent:
    """The extent of an array of floats on the host, C-contiguous: one pass over it. Whether there is NaN is
    looked at only if it counts."""
    flat, largest, nan = array.reshape(-1), 0.0, False
    for start in range(0, flat.size, PIECE):
        piece = flat[start : start + PIECE]
        size = _size(np.maximum, np.minimum, piece) if nan_counts else np.nan
        if np.isnan(size):
            # NaN says nothing of the others' size.
            nan = nan_counts
            size = _size(np.fmax, np.fmin, piece)
        # Where there is no number it is NaN still.
        largest = size if size > largest else largest
    return Extent(largest, nan)


def _size(larger: np.ufunc, smaller: np.ufunc, array: Array) -> float:
    return max(float(larger.reduce(array)), -float(smaller.reduce(array)))


def _check_shape(port: Port, shape: tuple[int, ...]) -> None:
    want = port.shape
    if shape == want or (want[:1] == (-1,) and shape[1:] == want[1:] and shape):
        return
    if len(shape) != len(want) or any(s not in (-1, n) for s, n in zip(want, shape, strict=True)):
        wanted = "x".join("rows" if s == -1 else str(s) for s in want) or "scalar"
        have = "x".join(map(str, shape)) or "scalar"
        raise InvalidInputError(f"input '{port.name}': expected shape {wanted}, got {have}")


def _contiguous(facts: DeviceFacts) -> bool:
    assert facts.strides is not None
    expected = facts.dtype.itemsize
    if 0 in facts.shape:
        return True
    for size, stride in zip(reversed(facts.shape), reversed(facts.strides), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True
