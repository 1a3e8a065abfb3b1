"""Matrix products on tensor cores, by warp groups (`wgmma`), of tiles that the copy engine copies.

C[b, m, c] = sum_k A[b, m, k] * B[b, k, c], where both operands lie in memory as matrices of 16-bit floats, or
of float32 that is multiplied in TF32: single threads ask for whole tiles of BK terms
(`cp.async.bulk.tensor`), which the engine rounds and puts where `wgmma` reads them; no other touches a term.
All stages of all tiles of an rTask are one row, of which STAGES are on their way: while sums leave, the next
tile's terms arrive. A warp group computes 64 rows and WN columns, and waits for stages alone: two of them,
one of which asks for stages too, or one, which may compute twice as many rows, for which each warp of the
other asks for some stages. Each warp's sums leave through a piece of shared memory of its own, so that no
warp waits for another.

Of few tiles each may be shared by the blocks of a cluster, where an rTask runs alone: a block has the
products of some stages, and adds up all blocks' sums of some columns, block by block, which then leave.

After V. Thakkar and others, CUTLASS (its persistent kernels for Hopper, github.com/NVIDIA/cutlass). Products
of 16-bit floats are exact; where sums are to be float32's own, those of a stage leave the tensor cores, which
truncate, and are added in float32.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from irkit.dialects.product_memory import matrices_of_b, run_of_b
from irkit.dialects.roperator_root import Root
from irkit.rkernels.boxes import LARGEST, ROW_BYTES
from irkit.rkernels.cuda import product_boxes_blocks
from irkit.rkernels.cuda import product_wgmma_halves as halves
from irkit.rkernels.cuda import product_wgmma_words as words
from irkit.rkernels.cuda.product import product_of
from irkit.rkernels.cuda.product_boxes_maps import (
    bytes_of,
    depth_of,
    map_of_a,
    map_of_b,
    steps_fit,
)
from irkit.rkernels.cuda.product_mma import TF32, THREADS_PER_BLOCK
from irkit.rkernels.cuda.product_wgmma import ALIGNMENT
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.tilings import cut_into_tiles
from irkit.rkernels.work import Part, Work, work

TILES: dict[str, Mapping[str, int]] = {
    "128x256": {"BM": 128, "BN": 256, "WN": 256},
    "128x128": {"BM": 128, "BN": 128, "WN": 128},
    "128x64": {"BM": 128, "BN": 64, "WN": 64},
    "64x256": {"BM": 64, "BN": 256, "WN": 256},
    "64x128": {"BM": 64, "BN": 128, "WN": 128},
    "64x64": {"BM": 64, "BN": 64, "WN": 64},
    "64x32": {"BM": 64, "BN": 32, "WN": 32},
    # Of few tiles: one group computes all rows, for which the other asks.
    "128x64_fed": {"BM": 128, "BN": 64, "WN": 64, "HIGH": 2},
    "128x128_fed": {"BM": 128, "BN": 128, "WN": 128, "HIGH": 2},
}
_NARROW = 64
"""Columns of a warp group whose products of a stage are soon over: more stages are at work at once."""
_ASKERS = 4
"""Warps that ask for stages where they have nothing else to do."""
_PIECE = 32
"""Columns of a warp's sums that leave together."""
_MOST_BYTES = 224 * 1024
_STAGED_BYTES, _FEWEST_STAGES, _MOST_STAGES, _ENOUGH_STAGES = 196 * 1024, 4, 16, 6
"""All stages together, how many there are, and how many are enough."""


def _legal(tile: Mapping[str, int], taken):
    """What `product.wgmma*_halves`, or `_words`, takes, where B lies in memory as matrices."""

    def legal(root: Root) -> bool:
        if not taken(root) or matrices_of_b(product_of(root)) is None:
            return False
        # Each of the blocks that share a tile has a stage at least.
        stage = ROW_BYTES // bytes_of(root) * tile.get("PLANES", 1)
        if math.ceil(depth_of(root) / stage) < tile.get("BLOCKS", 1):
            return False
        return depth_of(root) >= _FEWEST and steps_fit(root)

    return legal


_FEWEST = 16
"""Terms, fewer of which are no work for the copy engine."""


def parameters_of(tile: Mapping[str, int], root: Root) -> Parameters:
    """Rows of 128 bytes, in planes of them; as many stages as fit."""
    product, run = product_of(root), run_of_b(product_of(root))
    size, by_k = bytes_of(root), run is not None and run.by_k
    asked = {"KIND": TF32, "FRESH": 0} if size == 4 else halves.asked(root)
    if size == 2 and tile.get("BLOCKS", 1) > 1 and tile["WN"] * _high(tile) <= _NARROW:
        # Few sums are added while others are computed: more exact than was asked for, and sooner there.
        asked = {**asked, "FRESH": 1}
    plane = ROW_BYTES // size
    planes = tile.get("PLANES", 1)
    # Where columns lie side by side, a row of B has 64 of them, used or not.
    columns = tile["BN"] if by_k else max(tile["BN"], 64)
    stage = (tile["BM"] + columns) * 32 * planes
    turns = math.ceil(depth_of(root) / (plane * planes))
    piece, blocks = min(tile["WN"], _PIECE), tile.get("BLOCKS", 1)
    own = max(16 * (piece + 8), piece * (16 + 4))
    # Where few stages would be left beside all sums of a tile, these lie over the stages.
    sums = own * (tile["WN"] // piece) * tile["BM"] // 16 if blocks > 1 else 0
    fitting = min(_STAGED_BYTES, _MOST_BYTES - 4 * sums) // (4 * stage)
    over = int(fitting < _ENOUGH_STAGES and blocks > 1)
    if over:
        fitting = _STAGED_BYTES // (4 * stage)
    turns = math.ceil(turns / blocks)
    ahead = 1 if tile["WN"] * _high(tile) > _NARROW else 2
    groups = tile["BM"] // 64 // _high(tile)
    return {
        **asked,
        "BM": tile["BM"],
        "BN": tile["BN"],
        "WN": tile["WN"],
        "BK": plane * planes,
        "PLANE": plane,
        "PLANES": planes,
        "STAGE": stage,
        # Some are filled while those before them are at work.
        "STAGES": max(min(_MOST_STAGES, fitting, turns), _FEWEST_STAGES),
        "HIGH": _high(tile),
        "GROUPS": groups,
        "ASKERS": _ASKERS if groups == 1 else 1,
        "AHEAD": ahead,
        "PIECE": piece,
        "OWN": own,
        "OVER": over,
        "BLOCKS": blocks,
    }


def _high(tile: Mapping[str, int]) -> int:
    """How many times 64 rows a warp group computes."""
    return tile.get("HIGH", 1)


def _scratch(root: Root, p: Parameters) -> int:
    """Barriers, all stages, and what each warp's sums leave through."""
    own = THREADS_PER_BLOCK // 32 * p["OWN"]
    if p["BLOCKS"] > 1 and not p["OVER"]:
        own = max(own, p["BM"] // 16 * p["WN"] // p["PIECE"] * p["OWN"])
    staged = p["STAGES"] * p["STAGE"] + own
    return 4 * (4 * p["STAGES"] + ALIGNMENT // 4 + staged)


# A multiply-add of warp groups in 16 bits and in TF32, in those of one warp in TF32.
_EFFORT = {2: 0.35, 4: 0.7}
# Rows of 128 bytes that come to a multiprocessor while one stage is waited for, and what one takes beside, if
# who multiplies asks for it.
_AT_ONCE, _STAGE = 250, 0.1
# What two warp groups of few columns take longer, in such rows.
_SHORT = 80
# Where few multiprocessors ask, each is given more; from so many rTasks on all share what there is.
_FEW, _MANY = 0.7, 128


# Elements of a shared tile whose sums its blocks add up in the time of its end.
_MEETING = 3200
# How many blocks run at once, by how many a cluster has: some are left where multiprocessors that are near
# each other are no multiple of four (measured on an H200: 26 to 31 clusters of four).
_SEATS = {1: 132, 2: 132, 4: 112}


def met(area: int, blocks: int) -> float:
    """What the blocks of a cluster take to add up their sums of a shared tile, in ends of tiles."""
    return area / _MEETING if blocks > 1 else 0.0


def rounds(part: Part, blocks: int) -> float:
    """How many times as long rTasks take of which each is shared by so many blocks: clusters beyond those
    that there is room for come later."""
    tasks = math.prod(part.grid)
    return math.ceil(tasks * blocks / _SEATS[blocks]) / math.ceil(tasks / _SEATS[1])


def _work(tile: Mapping[str, int]):
    """Stages that arrive one after another, or products that overlap with them, if these take longer."""

    def counted(part: Part) -> Work:
        p = parameters_of(tile, part.root)
        count, blocks = halves.tiles(tile, part), p["BLOCKS"]
        stages = count * math.ceil(part.terms / p["BK"] / blocks)
        products = stages * p["BK"] * tile["BM"] * tile["BN"]
        asking = math.prod(part.grid) * blocks
        crowd = min(max(asking / _MANY, _FEW), 1.0)
        rows = halves.by_rows(part, tile["BM"], p["STAGE"] // 32 // p["PLANES"] - tile["BM"])
        if p["GROUPS"] > 1 and tile["WN"] <= _NARROW:
            rows += _SHORT
        beside = _STAGE * (p["GROUPS"] - 1)
        waits = stages * (p["PLANES"] * rows * crowd / _AT_ONCE + beside)
        area = tile["BM"] * tile["BN"]
        ends = work(tile=count * (1 + met(area, blocks) + area / 24576))
        multiplied = work(stage=waits, mma=products * _EFFORT[bytes_of(part.root)])
        one = ends + multiplied + part.store * (part.elements / blocks)
        return one * rounds(part, blocks)

    return counted


def _rkernel(name: str, tile: Mapping[str, int], of: str) -> RKernel:
    taken = words.legal if of else halves.legal(tile)
    assert tile["BN"] <= LARGEST
    return RKernel(
        "product",
        f"boxes{name}{of}",
        "cuda",
        product_boxes_blocks.__name__,
        "product_boxes",
        legal=_legal(tile, taken),
        wgmma=True,
        reassociates=True,
        scratch_bytes=_scratch,
        threads=THREADS_PER_BLOCK,
        parameters=partial(parameters_of, tile),
        vectors=("A", "B"),
        streams=True,
        clustered=True,
        halves=not of,
        grid=cut_into_tiles(partial(halves.tiling, tile)),
        work=_work(tile),
        maps={"MAP_A": map_of_a, "MAP_B": map_of_b},
    )


_DEEP = {f"{name}_deep": {**TILES[name], "PLANES": 2} for name in ("64x64", "64x32", "128x64")}
# Few tiles, each of which two blocks of a cluster share: of four, not all clusters run at once.
_SHARED = {
    f"{name}_by2": {**(TILES | _DEEP)[name], "BLOCKS": 2}
    for name in ("64x64_deep", "64x64", "64x128", "128x64_fed", "128x128_fed")
}
RKERNELS = [
    *(_rkernel(name, tile, "") for name, tile in (TILES | _DEEP).items()),
    *(_rkernel(name, tile, "_words") for name, tile in TILES.items()),
    *(_rkernel(name, tile, "") for name, tile in _SHARED.items()),
    *(_rkernel(name, tile, "_words") for name, tile in _SHARED.items() if "deep" not in name),
]
