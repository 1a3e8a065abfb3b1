"""Attention of float32 on tensor cores, by warp groups (`wgmma`).

Two warp groups have 64 queries each, or (KG = 2) the same and half of the keys each, and, one after another,
blocks of BN keys and values, copied asynchronously as float32. Warps cut what they have copied into two
float16 parts (`cuda_wgmma_parts` says how exact these are) and into rows that `wgmma` reads: values while the
scores are multiplied, the next keys while the values are. Scores leave the tensor cores in registers, become
weights, are cut there and go back; sums of each block are added in float32. Of many keys, where there are
registers for it, scores are a block ahead, so that weights are computed while the next scores are multiplied.
A group that has no rows of the last tile copies and cuts for the other. Keys and values are scaled by
the largest so far; where a block turns out to have one that is more than twice as large, it is cut once
more, from what was copied. After T. Dao, FlashAttention-2, arXiv:2307.08691.

What may be lost, and how it is noticed. Parts keep what is above 2^-27 of the largest so far as exactly as
float32 products are rounded; anything else is off by 2^-50 of that at most.
- Scores are off by less than 2^-22 then, unless the largest query times the largest key, SIZE and SCALE
  exceeds 2^25: all rows are unsure.
- Results are off by 2^-51 of the largest value if any value is that small, and by KEYS times as much if any
  weight is that much smaller than its row's largest: a result below 2^20 times that is unsure.
- Infinities and NaN end in a result that is not finite: unsure.
A row with anything unsure is computed once more without tensor cores, as the plain rKernels have it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

from xdsl.dialects.builtin import Float32Type

from irkit.dialects.precision import precision_of
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.rkernels.cuda.product_mma import KINDS, SPLIT, THREADS_PER_BLOCK
from irkit.rkernels.families.attention import Loops, cut, score, seen, tile_blocks
from irkit.rkernels.families.attention_rows import rows_of
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

_TILES: dict[str, Mapping[str, int]] = {
    # Queries of a block, keys of a block at a time, groups of warp groups that share these.
    "128x64": {"BM": 128, "BN": 64, "KG": 1},
    "64x64": {"BM": 64, "BN": 64, "KG": 2},
    "64x128": {"BM": 64, "BN": 128, "KG": 2},
}
VARIANTS = {f"wgmma{name}_parts": tile for name, tile in _TILES.items()}
_LARGEST = 128
"""Elements of a query or a value: the sums of more do not fit the registers."""
_MANY = 768
"""Keys from which on scores are computed a block ahead: there is one block of them more to be computed."""
_UNIT = 8 * 36
"""Words that 8 rows of 32 elements take where they are copied to: four of a row against bank conflicts."""


def _up(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple


def _legal(root: Root) -> bool:
    """float32 in memory that is read in fours, wanted as exactly."""
    loops = Loops.of(root)
    if DYNAMIC in root.parallel or loops.op.count is not None:
        return False
    if max(loops.size, loops.columns) > _LARGEST or loops.op.factor <= 0:
        return False
    if not isinstance(tensor_type(loops.op.y).element_type, Float32Type):
        return False
    if KINDS.get(precision_of(root.op)) != SPLIT:
        return False
    rows = [r for r in rows_of(loops.op) if r is not None and r.together >= 4]
    return len(rows) == 3 and all(isinstance(r.element, Float32Type) for r in rows)


def parameters_of(tile: Mapping[str, int], root: Root) -> Parameters:
    """Rows of 128 bytes, in planes of them; of both parts."""
    loops = Loops.of(root)
    depth, wide = _up(loops.size, 64), _up(loops.columns, 64)
    width = _up(loops.columns, 16)
    bm, bn, keys = tile["BM"], tile["BN"], tile["BN"] // tile["KG"]
    copied = [rows * of // 256 * _UNIT for rows, of in ((bm, depth), (bn, depth), (bn, wide))]
    # Queries are copied to where keys and values are cut to.
    room = max(bn * (depth + wide), copied[0])
    masks = bm * depth + room + copied[1] + copied[2] + 3 * THREADS_PER_BLOCK // 32
    warps = THREADS_PER_BLOCK // 32
    ends = masks
    if loops.op.mask is not None:
        ends += warps * 16 * (keys + 8)
    sums, rows = tile["KG"] * bm * (width + 8), warps * (loops.size + loops.columns)
    return {
        **tile,
        "WN": keys,
        "AHEAD": int(tile["KG"] == 1 and depth == 64 and loops.keys >= _MANY),
        "DEPTH": depth,
        "TERMS": _up(loops.size, 16),
        "WIDE": wide,
        "WIDTH": width,
        "LEFT": min(width, 64),
        "RIGHT": max(width - 64, 16),
        "QUERIES": bm * depth,
        "ROOM": room,
        "RAW_K": copied[1],
        "RAW_V": copied[2],
        "MASKS": masks,
        "STATS": max(ends, sums, rows),
    }


def _scratch(root: Root, p: Parameters) -> int:
    """All tiles and masks, or sums, or rows; what groups of keys tell of each row, and a word a thread."""
    return 4 * (256 + p["STATS"] + (2 * p["KG"] + 1) * p["BM"] + THREADS_PER_BLOCK)


_EFFORT, _CUT, _WAITS = 0.75, 1.8, 3.9
"""A multiply-add in those of one warp in TF32; an element that is cut, in fragments' words; what a block of
keys takes beside, in barriers."""
_FEW = 0.75
"""What a tile of half as many rows takes."""
_ENDS = (0.67, 2.67)
"""What queries, and sums that leave, of 64 elements a row take in tiles: however few, and of 128 rows."""


def _tiles(tile: Mapping[str, int], rows: float) -> float:
    """Tiles of so many rows; where one group alone has rows of the last, that is done sooner."""
    whole = math.ceil(rows / tile["BM"])
    few = tile["KG"] == 1 and rows - (whole - 1) * tile["BM"] <= tile["BM"] // 2
    return whole - (1 - _FEW) * few


def grid_of(tile: Mapping[str, int]) -> Callable[[Root, int], list[int]]:
    """Where rows see more and more keys, up to three parts a vEU: what is done with the first takes another,
    and all take their share, or the longest one its time."""

    def grid(root: Root, tasks: int) -> list[int]:
        loops = Loops.of(root)
        rows, diagonal = loops.sizes[-2], loops.op.diagonal
        if diagonal is None:
            return cut(root, tasks, lambda lead, height: lead * _tiles(tile, height))
        most = max(min(rows + diagonal, loops.keys), 1)

        def makespan(lead: int, height: int) -> float:
            first = max(min(height + diagonal, most), 1)
            parts = math.prod(loops.lead) / lead * math.ceil(rows / height)
            return lead * _tiles(tile, height) * max(most, parts / tasks * (first + most) / 2)

        return cut(root, 3 * tasks, makespan)

    return grid


def _work(tile: Mapping[str, int]) -> Callable[[Part], Work]:
    """Blocks of keys one after another, each behind a few barriers."""

    def counted(part: Part) -> Work:
        p = parameters_of(tile, part.root)
        lead, count, _ = seen(part)
        tiles, own = _tiles(tile, count), tile_blocks(part, p["BM"], p["BN"])
        blocks = sum(own) + (tiles - len(own)) * own[-1]
        pairs = p["BM"] * p["BN"]
        each = work(
            mma=_EFFORT * pairs * (p["TERMS"] + p["WIDTH"]),
            fragment=_CUT * p["BN"] * (p["DEPTH"] + p["WIDE"]),
            barrier=_WAITS,
        )
        each += score(part) * pairs
        ends = part.store * (lead * count * Loops.of(part.root).columns)
        around = (_ENDS[0] + _ENDS[1] * p["BM"] / 128) * p["WIDE"] / 64
        return (each * blocks + work(tile=tiles * around)) * lead + ends

    return counted


RKERNELS = [
    RKernel(
        "attention",
        name,
        "cuda",
        "irkit.rkernels.cuda.attention_wgmma_parts",
        "attention_wgmma_parts",
        legal=_legal,
        wgmma=True,
        work=_work(tile),
        reassociates=True,
        scratch_bytes=_scratch,
        threads=THREADS_PER_BLOCK,
        parameters=partial(parameters_of, tile),
        vectors=("QUERY", "KEY", "VALUE"),
        streams=True,
        stores_again=True,
        halves=True,
        grid=grid_of(tile),
    )
    for name, tile in VARIANTS.items()
]
