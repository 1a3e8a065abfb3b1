"""Maps on a CPU of operands that lie along another dimension: by tiles, of all shapes, types and parts."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from test_cuda_turned import ELEMENTS, transposed
from test_cuda_turned import case as moved

import irkit


def rkernels(program: Any) -> list[str]:
    return re.findall(r'rkernel = "([^"]*)"', str(program.ir("schedule")))


def case(seed: int) -> tuple[list[int], list[int]]:
    """A shape and a permutation that moves the last dimension; of some shapes tiles are whole."""
    shape, permutation = moved(seed, 8, (150, 40, 20))
    return [8 * (n // 8) if seed % 5 == 0 else n for n in shape], permutation


@pytest.mark.parametrize("seed", range(24))
def test_random_permutations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    (shape, permutation), kind = case(seed), [*ELEMENTS][seed % 6]
    plus = kind != "bool" and seed % 4 == 1
    x = (5 * rng.standard_normal(shape)).astype(kind)
    y = x.transpose(permutation)
    z = (5 * rng.standard_normal(y.shape)).astype(kind)
    text = transposed(shape, permutation, ELEMENTS[kind], plus)
    # The parts of seven vEUs divide what lies side by side.
    for veus in (1, 3, 7):
        program = irkit.compile(
            irkit.parse(text), "cpu", device=f"cpu{veus}", mode="serial", cache=False
        )
        # Rows of eight are computed together.
        assert y.shape[-1] == 8 or rkernels(program) == ["map.turned"]
        np.testing.assert_array_equal(program(x, z) if plus else program(x), y + z if plus else y)


def test_rows_of_an_open_batch() -> None:
    text = """func.func @main(%x: tensor<?x30x50xf32>) -> tensor<?x50x30xf32> {
      %y = graph.transpose %x {permutation = array<i64: 0, 2, 1>}
        : (tensor<?x30x50xf32>) -> tensor<?x50x30xf32>
      func.return %y : tensor<?x50x30xf32>
    }"""
    program = irkit.compile(irkit.parse(text), "cpu", device="cpu2", cache=False)
    assert rkernels(program) == ["map.turned"]
    for rows in (0, 1, 2, 9):
        x = np.random.default_rng(rows).standard_normal((rows, 30, 50)).astype(np.float32)
        np.testing.assert_array_equal(program(x), x.transpose(0, 2, 1))


@pytest.mark.parametrize(
    ("shape", "permutation"), [([64, 3], [1, 0]), ([5, 64], [1, 0]), ([16, 9, 40], [1, 0, 2])]
)
def test_which_are_not(shape: list[int], permutation: list[int]) -> None:
    """Rows or columns that are few, and rows that stay rows."""
    program = irkit.compile(irkit.parse(transposed(shape, permutation)), "cpu", device="cpu2")
    assert "map.turned" not in rkernels(program)
