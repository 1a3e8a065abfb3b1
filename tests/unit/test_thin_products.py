"""Many rows by few columns: float32 rows are widened where they are read, and B is turned over once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import irkit

LINEAR: Any = LinearRegression


@pytest.mark.parametrize("columns", [1, 3, 4, 5])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_are_those_of_float64(dtype: str, columns: int):
    rng = np.random.default_rng(columns)
    model = LINEAR().fit(rng.normal(size=(90, 37)), rng.normal(size=(90, columns)))
    program = irkit.compile(model, "cpu", dtype=dtype)
    x = rng.normal(size=(70, 37)).astype(dtype)
    for rows in (1, 2, 7, 70):
        part = x[:rows]
        want = model.predict(part.astype(np.float64))
        np.testing.assert_allclose(program.predict(part), want, rtol=1e-12, atol=1e-12)


def test_rows_of_float32_are_not_written_out_widened():
    rng = np.random.default_rng(0)
    model = LINEAR().fit(rng.normal(size=(90, 20)), rng.normal(size=(90, 3)))
    program = irkit.compile(model, "cpu", dtype="float32")
    text = program.ir("schedule")
    assert 'rkernel = "gemm.thin"' in text
    assert "task.roperator @map" not in text
