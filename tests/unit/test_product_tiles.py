"""How many tiles the largest part of a product takes, where columns are read several at a time."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import irkit
from benchmarks.products import Case
from benchmarks.rtask_times import Prepared
from irkit.dialects.roperator_root import Root
from irkit.rkernels import registry
from irkit.rkernels.legality import root_of
from irkit.rkernels.product_grids import cut_largest
from irkit.rkernels.tilings import Tiling, cut_into_tiles
from irkit.rkernels.work import Part
from irkit.schedule.devices import device


def product(m: int, k: int, n: int) -> Root:
    return of_gemm(Case("test", (m, k), (k, n)).text("float32"))


def of_gemm(text: str) -> Root:
    (op,) = Prepared.of("test", irkit.parse(text), "h200", False).roperators()
    return root_of(op)


@pytest.mark.parametrize("seed", range(4))
def test_the_longest_part_from_where_its_tiles_begin(seed: int) -> None:
    random = np.random.default_rng(seed)
    size, parts, unit = (int(random.integers(*ends)) for ends in ((9, 700), (2, 9), (1, 9)))
    root, tiling = product(16, 8, size), Tiling(16, 1, column_unit=unit)
    starts = [size * n // parts for n in range(parts)]
    ends = [size * (n + 1) // parts for n in range(parts)]
    want = max(e - s + s % unit for s, e in zip(starts, ends, strict=True))
    assert tiling.of_part(Part(root, [1, parts])) == want
    assert tiling.of_part(Part(root, [1, 1])) == size


def test_parts_that_begin_between_fours_are_not_taken_for_one_tile() -> None:
    """32 parts of 1000 columns have up to 32 each, but begin up to three before: two tiles of 32 columns."""
    root = product(128, 4032, 1000)
    for name in ("mma32x32", "mma32x64"):
        rkernel = registry.find("cuda", f"product.{name}")
        assert rkernel.work is not None
        assert rkernel.grid is not None
        grid = rkernel.grid(root, 132)
        stages = rkernel.work(Part(root, grid)).units["stage"]
        width = rkernel.literals(root)["BN"]
        starts = [1000 * n // grid[1] for n in range(grid[1] + 1)]
        pairs = itertools.pairwise(starts)
        tiles = max(math.ceil((e - s // 4 * 4) / width) for s, e in pairs)
        assert stages == 63 * tiles * math.ceil(128 / grid[0] / 32)


@pytest.mark.parametrize("seed", range(4))
def test_the_grid_whose_largest_part_is_the_least(seed: int) -> None:
    """Of all grids, in whatever order they are asked for; of equal ones that of fewest parts."""
    random = np.random.default_rng(seed)
    sizes = [int(n) for n in random.integers(3, 40, 2)]
    root = product(sizes[0], 8, sizes[1])
    height, width = (int(n) for n in random.integers(1, 9, 2))

    def longest(part: Part) -> float:
        down, across = part.sizes
        return math.ceil(down / height) * math.ceil(across / width)

    grid = cut_largest(longest)
    for tasks in random.integers(1, 60, 12):
        cuts = itertools.product(*(range(1, n + 1) for n in sizes))
        ranked = [(longest(Part(root, c)), math.prod(c)) for c in cuts if math.prod(c) <= tasks]
        found = grid(root, int(tasks))
        assert (longest(Part(root, found)), math.prod(found)) == min(ranked)


@pytest.mark.parametrize("seed", range(4))
def test_grids_of_tiles_are_those_of_the_fewest_tiles(seed: int) -> None:
    """Whatever is asked for before: of products of other loops, and of tiles that are like them but for one
    number."""
    random = np.random.default_rng(seed)
    roots = [product(int(m), 8, int(n)) for m, n in random.integers(3, 400, (3, 2))]
    tilings = [
        Tiling(int(random.integers(1, 17)), int(random.integers(1, 17)), 5, 3),
        Tiling(8, 16),
        Tiling(8, 16, row_unit=8),
        Tiling(8, 16, column_unit=8),
    ]
    by_tiles = [(cut_into_tiles(lambda _, t=t: t), cut_largest(t.of_part)) for t in tilings]
    for tasks in random.integers(1, 140, 5):
        for root in roots:
            for grid, plain in by_tiles:
                assert grid(root, int(tasks)) == plain(root, int(tasks))


def test_of_as_many_tiles_those_in_squares_are_fewer() -> None:
    root = product(64, 8, 64)
    assert cut_into_tiles(lambda _: Tiling(8, 8))(root, 4) == [1, 4]
    assert cut_into_tiles(lambda _: Tiling(8, 8, squarely=True))(root, 4) == [2, 2]


def test_terms_side_by_side_are_dear_to_threads_that_read_columns() -> None:
    """Of x @ transpose(w) each thread reads a part of memory of its own; of x @ w all read one."""

    def cost(turned: bool) -> float:
        w, how = ("512x128", "true") if turned else ("128x512", "false")
        root = of_gemm(
            f"""func.func @main(%x: tensor<128x128xf32>, %w: tensor<{w}xf32>) -> tensor<128x512xf32> {{
              %y = graph.gemm %x, %w {{trans_a = false, trans_b = {how}, alpha = 1.0 : f64, beta = 0.0 : f64}}
                : (tensor<128x128xf32>, tensor<{w}xf32>) -> tensor<128x512xf32>
              func.return %y : tensor<128x512xf32>
            }}"""
        )
        rkernel = registry.find("cuda", "product.tile16x32")
        assert rkernel.work is not None
        assert rkernel.grid is not None
        return rkernel.work(Part(root, rkernel.grid(root, 128))).nanoseconds(device("h200"))

    assert cost(True) > 1.5 * cost(False)


def test_rows_in_two_dimensions_are_cut_in_both() -> None:
    """Eight sequences of 64 rows leave no vEU of 128 without a tile of 16 rows."""
    root = of_gemm(
        """func.func @main(%x: tensor<8x64x512xf32>, %w: tensor<512x128xf32>) -> tensor<8x64x128xf32> {
          %y = graph.matmul %x, %w : (tensor<8x64x512xf32>, tensor<512x128xf32>) -> tensor<8x64x128xf32>
          func.return %y : tensor<8x64x128xf32>
        }"""
    )
    rkernel = registry.find("cuda", "product.tile16x32")
    assert rkernel.grid is not None
    assert rkernel.grid(root, 132) == [8, 4, 4]
