"""What kernels in PTX text share that look at arrays of floats by their bits, in vectors of 16 bytes.

Without their sign, floats are ordered as their bits are as unsigned integers, infinity behind all numbers and
NaN behind infinity.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

THREADS = 256
# A thread should have some elements to look at, and a multiprocessor some warps.
_ELEMENTS, _BLOCKS_PER_MULTIPROCESSOR = 16, 8
AT_ONCE = 4
"""Vectors of 16 bytes that a thread has on their way together: so many bytes hide what memory takes."""
_HEADER = """\
.version 7.8
.target sm_80
.address_size 64
"""
TYPES: dict[str, dict[str, Any]] = {
    "float32": {
        "bits": "b32",
        "unsigned": "u32",
        "shift": 2,
        "widen": "cvt.u64.u32",
        "narrow": "cvt.u32.u64",
        "magnitude": "0x7fffffff",
        "infinity": "0x7f800000",
    },
    "float64": {
        "bits": "b64",
        "unsigned": "u64",
        "shift": 3,
        "widen": "mov.b64",
        "narrow": "mov.b64",
        "magnitude": "0x7fffffffffffffff",
        "infinity": "0x7ff0000000000000",
    },
}
_FORMATS = {"float32": ("<I", "<f"), "float64": ("<Q", "<d")}


def module_of(entry: Callable[..., str]) -> str:
    """A module with an entry for each dtype, of its name and what its instructions are called."""
    return _HEADER + "".join(entry(name, **facts) for name, facts in TYPES.items())


def vectors_of(shift: int) -> list[list[str]]:
    """Registers of the vectors that a thread has on their way, of elements of 2^shift bytes."""
    lanes = 1 << (4 - shift)
    return [[f"%word{v}_{i}" for i in range(lanes)] for v in range(AT_ONCE)]


def blocks_for(count: int, multiprocessors: int) -> int:
    """Blocks of THREADS that look at so many elements."""
    wanted = -(-count // (THREADS * _ELEMENTS))
    return min(wanted, _BLOCKS_PER_MULTIPROCESSOR * multiprocessors)


def bits_of(value: float, dtype: str) -> int:
    """The bits of a number of a dtype."""
    integer, number = _FORMATS[dtype]
    (bits,) = struct.unpack(integer, struct.pack(number, value))
    return int(bits)


def of_bits(bits: int, dtype: str) -> float:
    """The number of a dtype that has these bits."""
    integer, number = _FORMATS[dtype]
    (value,) = struct.unpack(number, struct.pack(integer, bits))
    return float(value)
