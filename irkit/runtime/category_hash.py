"""CatBoost's hash of a category: the low 32 bits of CityHash64, of its first version, of the category's text.

Pike and Alakuijala's function as of 2010 (util/digest/city.cpp of CatBoost); later versions differ. All
arithmetic is modulo 2^64, words are little-endian.
"""

from __future__ import annotations

_ALL = (1 << 64) - 1
_K0, _K1, _K2, _K3 = (
    0xC3A5C85C97CB3127,
    0xB492B66FBE98F273,
    0x9AE16A3B2F90404F,
    0xC949D7C7509E6557,
)
_PAIR = 0x9DDFEA08EB382D69
"""By which two words are mixed into one."""


def category_hash(text: bytes) -> int:
    """The hash of a category, as the signed number that CatBoost compares and combines."""
    low = city_hash(text) & 0xFFFFFFFF
    return low - (1 << 32) if low >> 31 else low


def city_hash(text: bytes) -> int:
    """CityHash64 of the first version, 0 to 2^64 - 1."""
    if len(text) <= 16:
        return _up_to_16(text)
    if len(text) <= 32:
        return _up_to_32(text)
    return _up_to_64(text) if len(text) <= 64 else _longer(text)


def _word(text: bytes, at: int, size: int = 8) -> int:
    """The number that `size` bytes are; `at` below 0 counts from the end."""
    at += len(text) if at < 0 else 0
    return int.from_bytes(text[at : at + size], "little")


def _rotated(word: int, right: int) -> int:
    word &= _ALL
    return word >> right | word << (64 - right) & _ALL


def _mixed(word: int) -> int:
    word &= _ALL
    return word ^ word >> 47


def _of_pair(u: int, v: int) -> int:
    v &= _ALL
    a = _mixed((u & _ALL ^ v) * _PAIR)
    return _mixed((v ^ a) * _PAIR) * _PAIR & _ALL


def _up_to_16(text: bytes) -> int:
    size = len(text)
    if size > 8:
        last = _word(text, -8)
        return _of_pair(_word(text, 0), _rotated(last + size, size)) ^ last
    if size >= 4:
        return _of_pair(size + (_word(text, 0, 4) << 3), _word(text, -4, 4))
    if not size:
        return _K2
    y, z = text[0] + (text[size >> 1] << 8), size + (text[-1] << 2)
    return _mixed(y * _K2 & _ALL ^ z * _K3 & _ALL) * _K2 & _ALL


def _up_to_32(text: bytes) -> int:
    a, b = _word(text, 0) * _K1, _word(text, 8)
    c, d = _word(text, -8) * _K2, _word(text, -16) * _K0
    return _of_pair(
        _rotated(a - b, 43) + _rotated(c, 30) + d, a + _rotated(b ^ _K3, 20) - c + len(text)
    )


def _up_to_64(text: bytes) -> int:
    first = _of_half(text, 0, _word(text, 0) + (len(text) + _word(text, -16)) * _K0, 24)
    second = _of_half(text, -32, _word(text, 16) + _word(text, -32), -8)
    r = _mixed((first[0] + second[1]) * _K2 + (second[0] + first[1]) * _K0)
    return _mixed(r * _K0 + first[1]) * _K2 & _ALL


def _of_half(text: bytes, at: int, a: int, last: int) -> tuple[int, int]:
    """Two words of the two that follow the one at `at`, of one to begin with and of the one at `last`."""
    z = _word(text, last)
    b, c = _rotated(a + z, 52), _rotated(a, 37)
    a += _word(text, at + 8)
    c += _rotated(a, 7)
    a += _word(text, at + 16)
    return a + z, b + _rotated(a, 31) + c


def _of_32(text: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    """Two words of four and of two to begin with."""
    a += _word(text, at)
    last = _word(text, at + 24)
    b = _rotated(b + a + last, 21)
    c = a
    a += _word(text, at + 8) + _word(text, at + 16)
    b += _rotated(a, 44)
    return a + last & _ALL, b + c & _ALL


def _longer(text: bytes) -> int:
    size = len(text)
    # The end first, then pieces of 64 bytes, of which the last may overlap it.
    x, y, z = _word(text, 0), _word(text, -16) ^ _K1, _word(text, -56) ^ _K0
    v = _of_32(text, size - 64, size, y)
    w = _of_32(text, size - 32, size * _K1, _K0)
    z += _mixed(v[1]) * _K1
    x, y = _rotated(z + x, 39) * _K1, _rotated(y, 33) * _K1
    for at in range(0, (size - 1) & ~63, 64):
        x = _rotated(x + y + v[0] + _word(text, at + 16), 37) * _K1 & _ALL
        y = _rotated(y + v[1] + _word(text, at + 48), 42) * _K1 & _ALL
        x, y = x ^ w[1], y ^ v[0]
        z = _rotated(z & _ALL ^ w[0], 33)
        v = _of_32(text, at, v[1] * _K1, x + w[0])
        w = _of_32(text, at + 32, z + w[1], y)
        x, z = z, x
    return _of_pair(_of_pair(v[0], w[0]) + _mixed(y) * _K1 + z, _of_pair(v[1], w[1]) + x)
