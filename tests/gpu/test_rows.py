"""Rows and sums along them on a GPU, in every mode, against NumPy.

Skipped where there is no CUDA device.
"""

from __future__ import annotations

import numpy as np
import pytest

import irkit
from irkit.runtime.cuda.availability import why_not
from tests.unit.row_programs import row_program

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
COLUMNS = (3, 17, 64, 100, 128, 300, 1000, 1024, 5000, 10000, 16384)


@pytest.mark.parametrize("number", range(len(COLUMNS) * 2))
def test_random_rows(number: int) -> None:
    kind = "float64" if number % 5 == 4 else "float32"
    columns = COLUMNS[number % len(COLUMNS)]
    program = row_program(number, columns, kind, rows=(700, 9)[number % 2])
    compiled = irkit.compile(irkit.parse(program.text), target="cuda", cache=False)
    for mode in ("per-op", "per-wave", "persistent"):
        compiled._first.executor.mode = mode
        (got,) = compiled.run(program.inputs)
        np.testing.assert_allclose(got, program.want, rtol=1e-4, err_msg=mode)
    names = {r["rkernel"] for r in compiled.report()["roperators"].values()}
    assert any(name.startswith("rowwise.") for name in names), names
