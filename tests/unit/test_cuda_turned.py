"""Maps on a GPU of operands that lie along another dimension: tiles through shared memory, of all shapes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from emulated_op import roperator, run_by

import irkit
from irkit.rkernels.binding.turned import length_of, turned
from irkit.rkernels.legality import root_of

ELEMENTS = {
    "float32": "f32",
    "float64": "f64",
    "int64": "i64",
    "int16": "i16",
    "uint8": "ui8",
    "bool": "i1",
}


def transposed(
    shape: list[int], permutation: list[int], element: str = "f32", plus: bool = False
) -> str:
    """A transposition, and the sum with something that lies as it does behind it."""
    out = [shape[p] for p in permutation]
    t, u = (f"tensor<{'x'.join(map(str, s))}x{element}>" for s in (shape, out))
    given = ", ".join(map(str, permutation))
    turn = f"%y = graph.transpose %x {{permutation = array<i64: {given}>}} : ({t}) -> {u}"
    if not plus:
        return f"func.func @main(%x: {t}) -> {u} {{ {turn} func.return %y : {u} }}"
    return f"""func.func @main(%x: {t}, %z: {u}) -> {u} {{
      {turn}
      %w = graph.add %y, %z : ({u}, {u}) -> {u}
      func.return %w : {u}
    }}"""


def case(
    seed: int, least: int = 1, most: tuple[int, ...] = (80, 18, 9)
) -> tuple[list[int], list[int]]:
    """A shape and a permutation that moves the last dimension."""
    rng = np.random.default_rng(seed)
    rank = 2 + seed % 3
    shape = [int(n) for n in rng.integers(least, most[rank - 2], rank)]
    permutation = [int(p) for p in rng.permutation(rank)]
    while permutation[-1] == rank - 1:
        permutation = [int(p) for p in rng.permutation(rank)]
    return shape, permutation


@pytest.mark.parametrize("seed", range(18))
def test_random_permutations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    (shape, permutation), kind = case(seed), [*ELEMENTS][seed % 6]
    plus = kind != "bool" and seed % 4 == 1
    x = (5 * rng.standard_normal(shape)).astype(kind)
    y = x.transpose(permutation)
    z = (5 * rng.standard_normal(y.shape)).astype(kind)
    op, order = roperator(transposed(shape, permutation, ELEMENTS[kind], plus))
    want = y + z if plus else y
    arrays: list[Any] = [[x, z][n] for n in order]
    root, rank = root_of(op), len(shape)
    found = turned(root)
    if found is None:
        # Dimensions of one element hide it.
        assert 1 in shape
        return
    grids: list[list[int] | None] = [None, None]
    # Every grid of a map is right, also one that divides what stays whole where it may choose.
    cut = int(rng.integers(0, rank))
    grid = [*y.shape[:cut], int(rng.integers(1, min(y.shape[cut], 5) + 1)), *[1] * (rank - cut - 1)]
    grids += [grid] if np.prod(grid) < 30 else []
    for n, grid in enumerate(grids):
        got = np.full(want.shape, 77, np.uint8 if kind == "bool" else kind)
        run_by(op, "map.turned", arrays, [got], 1 + 2 * n, blocks=1 + n % 2, grid=grid)
        np.testing.assert_array_equal(got.view(want.dtype), want)


@pytest.mark.parametrize("grid", [[5, 3, 1], [5, 6, 1], [5, 4, 2], [5, 1, 3], [2, 1, 1]])
def test_parts_that_divide_what_lies_within(grid: list[int]) -> None:
    x = np.random.default_rng(0).standard_normal((9, 6, 5)).astype(np.float32)
    op, _ = roperator(transposed([9, 6, 5], [2, 1, 0]))
    got = np.full((5, 6, 9), 77, np.float32)
    for blocks in (1, 2):
        run_by(op, "map.turned", [x], [got], blocks=blocks, grid=grid)
        np.testing.assert_array_equal(got, x.transpose())
        got[:] = 77


def test_dimensions_that_stay_neighbours_are_one() -> None:
    op, _ = roperator(transposed([8, 20, 30, 40], [0, 2, 3, 1]))
    root = root_of(op)
    found = turned(root)
    assert found is not None
    assert length_of(root, found) == 30 * 40


@pytest.mark.parametrize(
    ("shape", "permutation", "rkernel"),
    [
        ([800, 1000], [1, 0], "map.turned"),
        ([32, 64, 57, 55], [0, 2, 3, 1], "map.turned"),
        ([32, 57, 55, 64], [0, 3, 1, 2], "map.turned"),
        ([512, 64, 384], [2, 1, 0], "map.turned"),
        # Rows stay rows; a tile of three columns would be empty for the most part.
        ([16, 128, 12, 64], [0, 2, 1, 3], "map.fours"),
        ([8, 224, 224, 3], [0, 3, 1, 2], "map.fetched"),
    ],
)
def test_which_are_turned(shape: list[int], permutation: list[int], rkernel: str) -> None:
    text = transposed(shape, permutation)
    program = irkit.compile(irkit.parse(text), target="cuda", device="h200", cache=False)
    assert re.findall(r'rkernel = "([^"]*)"', str(program.ir("schedule"))) == [rkernel]


def test_rows_of_an_open_batch_are_turned() -> None:
    text = """func.func @main(%x: tensor<?x300x500xf32>) -> tensor<?x500x300xf32> {
      %y = graph.transpose %x {permutation = array<i64: 0, 2, 1>}
        : (tensor<?x300x500xf32>) -> tensor<?x500x300xf32>
      func.return %y : tensor<?x500x300xf32>
    }"""
    program = irkit.compile(irkit.parse(text), target="cuda", device="h200", cache=False)
    assert "map.turned" in str(program.ir("schedule"))
