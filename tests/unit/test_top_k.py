"""`graph.top_k` compiled for a CPU, by either rKernel."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import irkit

Rows = NDArray[Any]


ELEMENTS = {"float32": "f32", "float64": "f64", "int8": "i8", "int64": "i64", "uint16": "ui16"}


def compiled(dtype: str, shape: tuple[int, ...], axis: int, k: int, largest: bool) -> Any:
    """A program of one top_k, for any number of rows."""
    sizes = [*shape]
    sizes[axis - 1] = k
    taken, found = ("x".join(map(str, ("?", *given))) for given in (shape, sizes))
    x, y = (f"tensor<{size}x{ELEMENTS[dtype]}>" for size in (taken, found))
    text = f"""
    func.func @main(%x: {x}) -> ({y}, tensor<{found}xi64>) {{
      %y, %i = graph.top_k %x {{k = {k} : i64, axis = {axis} : i64, largest = {str(largest).lower()}}}
        : ({x}) -> ({y}, tensor<{found}xi64>)
      func.return %y, %i : {y}, tensor<{found}xi64>
    }}"""
    return irkit.compile(irkit.parse(text), "cpu", mode="serial")


def wanted(x: Rows, axis: int, k: int, largest: bool) -> Rows:
    """Places in order: NaN is larger than all else, of equals the first comes first."""
    moved = np.moveaxis(x, axis, -1)
    found = np.empty((*moved.shape[:-1], k), np.int64)
    for at in np.ndindex(moved.shape[:-1]):
        row = moved[at].tolist()
        sign = -1 if largest else 1
        keys = [(sign * (v != v), 0 if v != v else sign * v, n) for n, v in enumerate(row)]
        found[at] = [n for _, _, n in sorted(keys)][:k]
    return np.moveaxis(found, -1, axis)


@pytest.mark.parametrize("seed", range(8))
def test_random_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtype = str(rng.choice(["float32", "float64", "int8", "int64", "uint16"]))
    shape = tuple(int(n) for n in rng.integers(1, 40, rng.integers(1, 3)))
    axis = int(rng.integers(1, len(shape) + 1))
    k = int(rng.integers(1, shape[axis - 1] + 1))
    largest = bool(seed % 2)
    program = compiled(dtype, shape, axis=axis, k=k, largest=largest)
    for rows in (0, 1, 7):
        x = rng.integers(0, 9, (rows, *shape)).astype(dtype)
        if dtype.startswith("float"):
            x[rng.random(x.shape) < 0.2] = np.nan
            x[rng.random(x.shape) < 0.1] = -np.inf
            x[rng.random(x.shape) < 0.2] = -0.0
        values, indices = program(x)
        order = wanted(x, axis, k, largest)
        np.testing.assert_array_equal(indices, order)
        np.testing.assert_array_equal(values, np.take_along_axis(x, order, axis))


@pytest.mark.parametrize(("k", "variant"), [(3, "insert"), (400, "merge")])
def test_few_are_kept_in_order_and_many_are_sorted(k: int, variant: str) -> None:
    program = compiled("float64", (500,), axis=1, k=k, largest=False)
    assert re.findall(r"top_k\.(\w+)", program.ir("schedule")) == [variant]
    x = np.random.default_rng(k).integers(0, 90, (20, 500)).astype(np.float64)
    np.testing.assert_array_equal(program(x)[1], np.argsort(x, 1, kind="stable")[:, :k])


def test_long_rows_are_sorted_in_time() -> None:
    """Each element before all others would take hours."""
    program = compiled("float32", (1 << 19,), axis=1, k=1 << 19, largest=True)
    assert re.findall(r"top_k\.(\w+)", program.ir("schedule")) == ["merge"]
    x = np.random.default_rng(0).integers(0, 1 << 16, (1, 1 << 19)).astype(np.float32)
    np.testing.assert_array_equal(program(x)[1], np.argsort(-x, 1, kind="stable"))
