"""Attention on tensor cores, by `mma.sync`: scores and weights never leave registers.

A block has BM queries and, one after another, blocks of BN keys and values, which are copied asynchronously
while those before are multiplied; where all keys are in one block, values arrive while scores are computed.
Each of its warps has WM queries; KG groups of warps share the keys, so that few queries are work for all, and
their sums meet at the end. After T. Dao, FlashAttention-2, arXiv:2307.08691, and for few
queries T. Dao and others, "Flash-Decoding for long-context inference", 2023.

KIND says what the tensor cores multiply (`irkit.runtime.intrinsics.cuda_mma`), PACKED whether operands lie in
memory as 16-bit floats, PARTS into how many of these a weight is then split. SPLIT, and more than one part,
give float32's own precision; with CUT a block cuts its factors into bfloat16 parts once, as they arrive.
Where parts overflow, cancel to NaN or are too small to be kept, the row is computed once more without tensor
cores, so it comes out as the plain rKernels have it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type

from irkit.dialects.precision import Precision, precision_of
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.rkernels.cuda.product_mma import BF16, F16, KINDS, SPLIT, TF32, THREADS_PER_BLOCK
from irkit.rkernels.families.attention import Loops, cut, score, seen, tile_blocks
from irkit.rkernels.families.attention_rows import rows_of
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

_TILES: dict[str, Mapping[str, int]] = {
    # Queries of a block and of a warp, keys of a block at a time, groups of warps that share these.
    "16x64": {"BM": 16, "WM": 16, "BN": 64, "KG": 8},
    "16x128": {"BM": 16, "WM": 16, "BN": 128, "KG": 8},
    "32x64": {"BM": 32, "WM": 16, "BN": 64, "KG": 4},
    "64x64": {"BM": 64, "WM": 16, "BN": 64, "KG": 2},
    "128x32": {"BM": 128, "WM": 16, "BN": 32, "KG": 1},
    "128x64": {"BM": 128, "WM": 16, "BN": 64, "KG": 1},
    "128x64_wide": {"BM": 128, "WM": 32, "BN": 64, "KG": 2},
    "256x32": {"BM": 256, "WM": 32, "BN": 32, "KG": 1},
    "256x64": {"BM": 256, "WM": 32, "BN": 64, "KG": 1},
}
_PART_TILES: dict[str, Mapping[str, int]] = {
    f"{name}_parts": {**_TILES[name], "CUT": 1}
    for name in ("16x128", "32x64", "64x64", "128x32", "128x64", "128x64_wide", "256x32")
}
"""Those whose factors are cut into parts once, by the block, and not by each warp that reads them."""
_LARGEST = 256
"""Elements of a query or a value: tiles of more do not fit."""
_ROOM = 54 << 10
"""Words of shared memory that two blocks of parts may take; else one is filled while nobody reads it."""
_MOST_SUMS, _MOST_SCORES = 128, 96
"""Registers of a thread that hold sums of values, and these and the scores where weights are split."""
_TYPES = {BF16: BFloat16Type, F16: Float16Type}
_EFFORT = {SPLIT: 3.0, TF32: 1.0, BF16: 0.5, F16: 0.5}
_PART_EFFORT = 2.2
"""What a multiply-add takes, in those of TF32; in parts of half the width."""
_CUT = 3.3
"""What an element takes that is cut once, in words that are read."""


def packed_kind(root: Root) -> tuple[int, int] | None:
    """(kind, parts of a weight) of operands that lie in memory as 16-bit floats, in eights; else None."""
    op = Loops.of(root).op
    rows = [r for r in rows_of(op) if r is not None and r.together == 8]
    kind = next((k for k, t in _TYPES.items() if all(isinstance(r.element, t) for r in rows)), None)
    if len(rows) < 3 or kind is None or op.factor <= 0:
        return None
    precision = precision_of(op)
    if kind == BF16:
        return BF16, 1 if precision is Precision.BF16 else 3
    # What float16 parts of a weight leave out is more than float32 would.
    return None if precision.strict else (F16, 1)


def _kind(root: Root) -> tuple[int, int]:
    """(kind, parts of a weight)."""
    return packed_kind(root) or (KINDS[precision_of(root.op)], 1)


def _can_be_cut(root: Root, keys: int) -> bool:
    """Whether factors are float32 in memory that is read in fours, and wanted in parts."""
    rows = [r for r in rows_of(Loops.of(root).op) if r is not None and r.together >= 4]
    in_memory = len(rows) == 3 and all(isinstance(r.element, Float32Type) for r in rows)
    return in_memory and _kind(root)[0] == SPLIT and keys >= 16


def _up(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple


def _legal(tile: Mapping[str, int]) -> Callable[[Root], bool]:
    """float32 unless plain products are asked for, sizes that are known, and sums that fit the registers."""

    def legal(root: Root) -> bool:
        loops = Loops.of(root)
        # A last part of fewer keys cannot be copied as the others are.
        if DYNAMIC in root.parallel or loops.ragged:
            return False
        if precision_of(root.op) not in KINDS:
            return False
        if not isinstance(tensor_type(loops.op.y).element_type, Float32Type):
            return False
        if max(loops.size, loops.columns) > _LARGEST:
            return False
        kind, parts = _kind(root)
        keys = tile["BN"] // tile["KG"]
        if kind in (BF16, F16) and keys < 16:
            return False
        if "CUT" in tile and not _can_be_cut(root, keys):
            return False
        sums = tile["WM"] * _up(loops.columns, 16) // 32
        split = kind == SPLIT or parts > 1
        return sums <= _MOST_SUMS and (not split or sums + tile["WM"] * keys // 32 <= _MOST_SCORES)

    return legal


def parameters_of(tile: Mapping[str, int], root: Root) -> Parameters:
    """Tiles of 16 elements, in rows of four words more against bank conflicts."""
    loops, packed = Loops.of(root), packed_kind(root)
    kind, parts = _kind(root)
    elements, is_cut = 1 if packed is None else 2, tile.get("CUT", 0)
    depth, width = _up(loops.size, 16), _up(loops.columns, 16)
    of_k, of_v = (n // max(elements, 1 + is_cut) + 4 for n in (depth, width))
    stage = tile["BN"] * (of_k + of_v)
    stages, keys = 2, tile["BN"] // tile["KG"]
    # Of parts: three planes of queries, two blocks of keys and values if they fit, and what is copied.
    packs, raw = 3 * tile["BM"] * of_k, tile["BN"] * (depth + width)
    buffers = 2 if packs + 6 * stage + raw <= _ROOM else 1
    room = max(buffers * 3 * stage, tile["BM"] * depth)
    masks = packs + room + raw if is_cut else tile["BM"] * of_k + stages * stage
    warps = tile["BM"] // tile["WM"] * tile["KG"]
    ends = masks
    if loops.op.mask is not None:
        ends += warps * tile["WM"] * (keys + 8)
    sums, rows = tile["KG"] * tile["BM"] * (width + 8), warps * (loops.size + loops.columns)
    return {
        **tile,
        "CUT": is_cut,
        "PACKS": packs,
        "PACK": 3 * stage,
        "BUFFERS": buffers,
        "RAW": packs + room,
        "LEAST": 26 if is_cut else 14,
        "MOST": 217 if is_cut else 227,
        "WN": keys,
        "KIND": kind,
        "PACKED": elements - 1,
        "ELEMENTS": elements,
        "PARTS": parts,
        "EXACT": int(kind == SPLIT or parts > 1),
        "DEPTH": depth,
        "WIDTH": width,
        "K_ROW": of_k,
        "V_ROW": of_v,
        "STAGE": stage,
        "STAGES": stages,
        "ONCE": int(not is_cut and loops.keys <= tile["BN"]),
        "MASKS": masks,
        "STATS": max(ends, sums, rows),
    }


def scratch(root: Root, p: Parameters) -> int:
    """Queries, stages and masks; or sums; or rows; and what groups of keys tell of each row."""
    return 4 * (p["STATS"] + (2 * p["KG"] + 1) * p["BM"])


def grid_of(tile: Mapping[str, int]) -> Callable[[Root, int], list[int]]:
    """Where rows see more and more keys, several parts a vEU: what is done with the first takes another."""

    def grid(root: Root, tasks: int) -> list[int]:
        finer = 1 if Loops.of(root).op.diagonal is None else 3
        return cut(root, finer * tasks, lambda lead, part: lead * math.ceil(part / tile["BM"]))

    return grid


def _work(tile: Mapping[str, int]) -> Callable[[Part], Work]:
    """Fragments read and multiplied, block after block, behind copies that overlap with them."""

    def counted(part: Part) -> Work:
        p = parameters_of(tile, part.root)
        lead, count, _ = seen(part)
        tiles = lead * math.ceil(count / p["BM"])
        blocks = lead * sum(tile_blocks(part, p["BM"], p["BN"]))
        pairs = p["BM"] * p["BN"]
        # Queries and keys, and values, as each of the warps reads them.
        words = p["BM"] // p["WM"] * p["BN"] * (p["DEPTH"] + p["WIDTH"])
        words += p["KG"] * p["BM"] * p["DEPTH"]
        effort, read = _EFFORT[p["KIND"]], words / (4 * p["ELEMENTS"])
        if p["KIND"] == SPLIT:
            # Each word is split by each warp that reads it; or once, into three that are half as wide.
            read = words
            if p["CUT"]:
                read = 0.375 * words + _CUT * p["BN"] * (p["DEPTH"] + p["WIDTH"])
            effort = _PART_EFFORT if p["CUT"] else effort
        each = work(
            mma=effort * pairs * (p["DEPTH"] + p["PARTS"] * p["WIDTH"]),
            fragment=read,
            barrier=3 - p["BUFFERS"] if p["CUT"] else 1,
            stage=p["BN"] / 128,
        )
        each += score(part) * pairs
        loops = Loops.of(part.root)
        fused = part.fused(loops.op.key) * loops.size + part.fused(loops.op.value) * loops.columns
        if not p["PACKED"]:
            each += fused * p["BN"]
        ends = part.store * (lead * count * loops.columns)
        return each * blocks + work(tile=tiles * (1 + p["BM"] * p["WIDTH"] / 16384)) + ends

    return counted


RKERNELS = [
    RKernel(
        "attention",
        f"mma{name}",
        "cuda",
        "irkit.rkernels.cuda.attention_blocks",
        "attention_mma",
        legal=_legal(tile),
        work=_work(tile),
        reassociates=True,
        scratch_bytes=scratch,
        threads=THREADS_PER_BLOCK,
        parameters=partial(parameters_of, tile),
        vectors=("QUERY", "KEY", "VALUE"),
        streams=True,
        stores_again=True,
        halves=True,
        grid=grid_of(tile),
    )
    for name, tile in {**_TILES, **_PART_TILES}.items()
]
