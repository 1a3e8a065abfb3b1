"""Attention of 16-bit floats on tensor cores, by warp groups (`wgmma`).

Two warp groups have 64 queries each and, one after another, blocks of BN keys and values; the last queries,
if they are few, both have, and every second block. Blocks are copied asynchronously, to the rows that `wgmma`
reads, into SLOTS that are used again and again: barriers of each say when it is filled and when it was read,
so that nothing waits for the whole block. Scores leave the tensor cores in registers, become weights there,
and go back from them: only queries, keys and values are in shared memory. While a group computes the weights
of some keys, tensor cores multiply its last ones by values, or work for the other group: the groups take
turns.
After T. Dao, FlashAttention-2, arXiv:2307.08691, and J. Shah and others, FlashAttention-3, arXiv:2407.08608.

Weights are rounded to the operands' type, so precision must allow it: what asks for more is for
`attention_mma.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

from xdsl.dialects.builtin import Float32Type

from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.rkernels.cuda.attention_mma import packed_kind
from irkit.rkernels.cuda.product_mma import THREADS_PER_BLOCK
from irkit.rkernels.cuda.product_wgmma import ALIGNMENT
from irkit.rkernels.families.attention import Loops, cut, score, seen
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

TILES: dict[str, Mapping[str, int]] = {
    "128x64": {"BM": 128, "BN": 64},
    "128x128": {"BM": 128, "BN": 128},
    "128x192": {"BM": 128, "BN": 192},
}
_LARGEST = 128
"""Elements of a query or a value: the sums of more do not fit the registers."""
_MOST_COLUMNS = 256
"""Of scores and of sums together, which a group holds in registers."""
_PLANE = 64
"""Elements of a row of 128 bytes."""
_SLOTS, _ROOM = 5, 216 << 10
"""Tiles of keys and values that are there or on their way, and bytes for them."""
_TURN, _ENDS = 50, 400
"""What a turn takes beside its keys, and a tile beside its turns, in keys."""
_EFFORT, _LATENCY = 0.076, 205
"""A multiply-add in those of one warp in TF32, and the keys that a turn takes as long as beside its own."""
_SOFTMAX, _BARRIERS = 1.8, 4.2
"""A score in exponentials, and what a turn takes beside in barriers."""


def _up(n: int) -> int:
    return -(-n // _PLANE) * _PLANE


def _legal(tile: Mapping[str, int]) -> Callable[[Root], bool]:
    """Operands that lie in memory as 16-bit floats, and weights that may be rounded as they are."""

    def legal(root: Root) -> bool:
        loops = Loops.of(root)
        if DYNAMIC in root.parallel or loops.op.count is not None:
            return False
        if max(loops.size, loops.columns) > _LARGEST:
            return False
        if tile["BN"] + _up(loops.columns) > _MOST_COLUMNS:
            return False
        if not isinstance(tensor_type(loops.op.y).element_type, Float32Type):
            return False
        found = packed_kind(root)
        return found is not None and found[1] == 1

    return legal


def parameters_of(tile: Mapping[str, int], root: Root) -> Parameters:
    """Rows of 128 bytes, in planes of them."""
    loops, found = Loops.of(root), packed_kind(root)
    assert found is not None
    depth, width = _up(loops.size), _up(loops.columns)
    queries, slot = tile["BM"] * depth // 2, tile["BN"] * max(depth, width) // 2
    masks = 0
    if loops.op.mask is not None:
        masks = THREADS_PER_BLOCK // 32 * 16 * (tile["BN"] + 8)
    # Where both groups take turns, they have two blocks of keys at a time.
    splits = int(4 * (queries + 2 * _SLOTS * slot + masks) <= _ROOM)
    slots = _SLOTS * (1 + splits)
    rows = THREADS_PER_BLOCK // 32 * (loops.size + loops.columns)
    return {
        **tile,
        "KIND": found[0],
        "DEPTH": depth,
        "WIDTH": width,
        "QUERIES": queries,
        "APART": THREADS_PER_BLOCK // width,
        "SLOT": slot,
        "SLOTS": slots,
        "SPLITS": splits,
        "MASKS": queries + slots * slot,
        "STATS": max(queries + slots * slot + masks, tile["BM"] * (width + 8), rows),
    }


def _scratch(root: Root, p: Parameters) -> int:
    """Barriers; queries, slots and masks, or sums, or rows; and what groups of keys tell of each row."""
    return 4 * (4 * p["SLOTS"] + ALIGNMENT // 4 + p["STATS"] + 2 * p["BM"])


def _turns(p: Parameters, rows: float, keys: float) -> tuple[int, int]:
    """Turns of so many rows that see so many keys, and tiles: the groups share a last one of few rows."""
    tiles, blocks = math.ceil(rows / p["BM"]), math.ceil(keys / p["BN"])
    few = int(p["SPLITS"] and rows - (tiles - 1) * p["BM"] <= p["BM"] // 2)
    return (tiles - few) * blocks + few * math.ceil(blocks / 2), tiles


def grid_of(tile: Mapping[str, int]) -> Callable[[Root, int], list[int]]:
    """Where rows see more and more keys, up to three parts a vEU: what is done with the first takes another,
    and all take their share, or the longest one its time."""

    def grid(root: Root, tasks: int) -> list[int]:
        p, loops = parameters_of(tile, root), Loops.of(root)
        rows, diagonal = loops.sizes[-2], loops.op.diagonal
        most = loops.keys if diagonal is None else max(min(rows + diagonal, loops.keys), 1)

        def takes(height: int, keys: float) -> float:
            turns, tiles = _turns(p, height, keys)
            return turns * (p["BN"] + _TURN) + tiles * _ENDS

        def makespan(lead: int, height: int) -> float:
            longest = takes(height, most)
            if diagonal is None:
                return lead * longest
            first = max(min(height + diagonal, most), 1)
            parts = math.prod(loops.lead) / lead * math.ceil(rows / height)
            return lead * max(longest, parts / tasks * takes(height, (first + most) / 2))

        return cut(root, tasks if diagonal is None else 3 * tasks, makespan)

    return grid


def _work(tile: Mapping[str, int]) -> Callable[[Part], Work]:
    """Turns one after another, each behind a few waits; the sums leave by way of shared memory."""

    def counted(part: Part) -> Work:
        p = parameters_of(tile, part.root)
        lead, rows, keys = seen(part)
        turns, tiles = _turns(p, rows, keys)
        products = p["BM"] * (p["BN"] + _LATENCY) * (p["DEPTH"] + p["WIDTH"])
        each = work(mma=_EFFORT * products, barrier=_BARRIERS)
        each += score(part) * (_SOFTMAX * p["BM"] * p["BN"])
        each = each * turns + work(tile=tiles * (1 + p["BM"] * p["WIDTH"] / 16384))
        return each * lead + part.store * (lead * rows * Loops.of(part.root).columns)

    return counted


RKERNELS = [
    RKernel(
        "attention",
        f"wgmma{name}",
        "cuda",
        "irkit.rkernels.cuda.attention_groups",
        "attention_wgmma",
        legal=_legal(tile),
        wgmma=True,
        work=_work(tile),
        reassociates=True,
        scratch_bytes=_scratch,
        threads=THREADS_PER_BLOCK,
        parameters=partial(parameters_of, tile),
        vectors=("QUERY", "KEY", "VALUE"),
        streams=True,
        halves=True,
        grid=grid_of(tile),
    )
    for name, tile in TILES.items()
]
