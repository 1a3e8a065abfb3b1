"""What a mask picks from an array, summed up: of how many elements is not known, one number is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irkit

RNG = np.random.default_rng(3)
ARRAYS = {
    "float64": RNG.standard_normal((7, 9)),
    "float32": RNG.standard_normal((5, 3)).astype(np.float32),
    "NaN": np.where(RNG.random((4, 4)) > 0.9, np.nan, RNG.random((4, 4))),
    "int8": RNG.integers(-100, 100, (6, 5)).astype(np.int8),
    "uint16": RNG.integers(0, 9, (3, 2, 4)).astype(np.uint16),
    "infinite": np.array([[-np.inf, -np.inf], [-np.inf, 1.0]]),
}


def summary(a: Any) -> Any:
    """By masks of all axes, of the first, and of a copy that is computed with."""
    m = a < 1
    rows = m.any(axis=tuple(range(1, a.ndim)))
    picked = a[m] + a[m]
    return (
        *(a[m].max(), a[m].min(), np.max(a[rows]), np.min(a[rows]), picked.max()),
        *(a[m].size, a[rows].size, a[m].sum() / a[m].size),
    )


@pytest.mark.parametrize("name", ARRAYS)
def test_the_largest_the_least_and_how_many(name: str) -> None:
    a = ARRAYS[name]
    got, want = irkit.jit(target="cpu")(summary)(a), summary(a)
    for ours, theirs in zip(got, want, strict=True):
        assert type(ours) is type(theirs)
        np.testing.assert_allclose(ours, theirs, 1e-6)


def test_that_nothing_picked_has_no_largest() -> None:
    def largest(a: Any) -> Any:
        return a[a > 1].max()

    compiled = irkit.jit(target="cpu")(largest)
    assert compiled(np.array([0.5, 2.0, 3.0])) == 3.0
    with pytest.raises(ValueError, match="zero-size array to reduction operation maximum") as found:
        compiled(np.zeros(3))
    assert __file__ in str(found.value)


def test_einsum_takes_diagonals() -> None:
    def traces(a: Any, c: Any) -> Any:
        return (
            *(np.einsum("ii", a), np.einsum("ii->i", a), np.einsum("iij->j", c)),
            *(np.einsum("iij,j->i", c, c[0, 0]), np.einsum("iii", c[:, :, :3])),
        )

    def uneven(c: Any) -> Any:
        return np.einsum("jii", c)

    a, c = RNG.random((3, 3)), RNG.random((3, 3, 5))
    for ours, theirs in zip(irkit.jit(target="cpu")(traces)(a, c), traces(a, c), strict=True):
        np.testing.assert_allclose(ours, theirs, 1e-12)
    with pytest.raises(ValueError, match="index 'i' is of 3 and 5"):
        irkit.jit(target="cpu")(uneven)(c)


def squared(a: Any) -> Any:
    """What was picked is written through `out=`, and through another name."""
    z = a[a > 0.5]
    np.multiply(z, z, z)
    same = z
    same += 1
    inside = z > 1.5
    np.logical_not(inside, out=inside)
    return z.sum(), z.max(), inside.sum()


def halved(a: Any) -> Any:
    """The array itself is not: what was picked is a copy."""
    m = a > 0.5
    z = a[m]
    z /= 2
    kept = a.sum()
    a[m] = z
    return kept


@pytest.mark.parametrize("function", [squared, halved])
def test_what_was_picked_is_written_in_place(function: Any) -> None:
    ours = np.random.default_rng(1).random((20, 5))
    theirs = ours.copy()
    np.testing.assert_allclose(irkit.jit(target="cpu")(function)(ours), function(theirs), 1e-12)
    np.testing.assert_allclose(ours, theirs, 1e-12)


def test_that_what_was_picked_keeps_its_dtype() -> None:
    def scaled(a: Any) -> Any:
        z = a[a > 2]
        z *= 2.5
        return z.sum()

    with pytest.raises(TypeError, match="Cannot cast ufunc 'multiply' output"):
        irkit.jit(target="cpu")(scaled)(np.arange(6))


def test_that_numpys_protocols_are_no_part_of_the_message() -> None:
    def counted(a: Any) -> Any:
        return np.asarray(a[a > 2]).sum()

    with pytest.raises(irkit.UnsupportedError, match=r"how many elements a mask picks") as found:
        irkit.jit(target="cpu")(counted)(np.arange(6.0))
    assert "__array" not in str(found.value)
