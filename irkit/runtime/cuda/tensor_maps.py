"""Tensor maps on the device: what its copy engine knows of arrays that it copies boxes of.

They lie behind a table of bases, whose last entry says where. Rows of a box are 128 bytes, and their 16-byte
chunks lie in shared memory in the order of the hardware's swizzle of that width, which `wgmma` reads; what is
outside of an array is zero.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from irkit.runtime.cuda.driver import api, call
from irkit.schedule.tables import MAP_BYTES, Table, TensorMap

_ALIGNMENT = 64
_WORDS = MAP_BYTES // 8
_ELEMENTS = {
    "bfloat16": "BFLOAT16",
    "float16": "FLOAT16",
    "float32": "FLOAT32",
    "tfloat32": "TFLOAT32",
}
_UNIT = 16
"""Bytes: arrays start at multiples of it, or their operands are read without a map."""


def room(bases: int, maps: Sequence[TensorMap]) -> int:
    """Words of a table of so many bases, and of the maps behind it."""
    return _first(bases) + _WORDS * len(maps) if maps else bases


def _first(bases: int) -> int:
    """The word of the first map."""
    return -(-8 * bases // _ALIGNMENT) * _ALIGNMENT // 8


def put(table: Table, bases: int, maps: Sequence[TensorMap], address: int) -> None:
    """Fill in the maps of a table that is to lie at `address`, and whose bases but the last are known.

    Raises DeviceError where the driver refuses one.
    """
    first = _first(bases)
    table[bases - 1] = address + 8 * first
    for number, one in enumerate(maps):
        at = first + _WORDS * number
        table[at : at + _WORDS] = encoded(one, int(table[one.base]) + one.offset)


def encoded(one: TensorMap, address: int) -> Table:
    """The words of a map of an array at `address`; zeros where its rKernel reads it without.

    Raises DeviceError where the driver refuses it.
    """
    if address % _UNIT or not address:
        return np.zeros(_WORDS, np.int64)
    driver = api()
    made = call(
        "cuTensorMapEncodeTiled",
        getattr(driver.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{_ELEMENTS[one.element]}"),
        len(one.sizes),
        address,
        [driver.cuuint64_t(n) for n in one.sizes],
        [driver.cuuint64_t(n) for n in one.steps],
        [driver.cuuint32_t(n) for n in one.box],
        [driver.cuuint32_t(1)] * len(one.sizes),
        driver.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        driver.CUtensorMapSwizzle.CU_TENSOR_MAP_SWIZZLE_128B,
        driver.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        driver.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
    )
    return np.frombuffer(ctypes.string_at(int(made.getPtr()), MAP_BYTES), np.int64)
