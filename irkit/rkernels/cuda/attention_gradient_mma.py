"""Gradients of attention on tensor cores, by `mma.sync`: weights and slopes never leave registers.

A block has BM outer rows and, one after another, blocks of BN inner ones, which are copied asynchronously
while those before are multiplied. Each of its warps has 16 of its rows; KG groups of warps share the inner
rows, so that few outer rows are work for all, and their sums meet at the end. What is summed is as in
`attention_gradient.py`; but where all inner rows are one block (ONCE), all weights of a query and their
cotangents are known before anything is multiplied by them, so that one sum is made instead of two. After
T. Dao, FlashAttention-2, arXiv:2307.08691.

KIND says what the tensor cores multiply (`irkit.runtime.intrinsics.cuda_mma`). EXACT, which factors in parts
are, gives float32's own precision. A part of a factor below 2^-113 loses up to 2^-136: a score with an outer
row below 2^100 does not notice, nor does a slope, which is lifted by 2^24: plain float32 would round it by
as much. Where another factor is that small, and where parts overflow or cancel to NaN, rows are computed once
more without tensor cores, so they come out as the plain rKernels have them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

from xdsl.dialects.builtin import Float32Type
from xdsl.ir import SSAValue

from irkit.dialects.precision import Precision, precision_of
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.rkernels.cuda.product_mma import EFFORT, SPLIT, TF32, THREADS_PER_BLOCK
from irkit.rkernels.cuda.product_mma import KINDS as PRODUCT_KINDS
from irkit.rkernels.families.attention import cut_rows
from irkit.rkernels.families.attention_gradient import Sides, met, score
from irkit.rkernels.families.attention_rows import in_words, rows_of
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

_TILES: dict[str, Mapping[str, int]] = {
    # Outer rows of a block and of a warp, inner rows of a block at a time, groups of warps that share these.
    "16x64": {"BM": 16, "WM": 16, "BN": 64, "KG": 8},
    "32x64": {"BM": 32, "WM": 16, "BN": 64, "KG": 4},
    "64x32": {"BM": 64, "WM": 16, "BN": 32, "KG": 2},
    "64x64": {"BM": 64, "WM": 16, "BN": 64, "KG": 2},
    "128x32": {"BM": 128, "WM": 16, "BN": 32, "KG": 1},
}
_LARGEST = 256
"""Elements of a query or a value: tiles of more do not fit."""
_MOST_SUMS, _MOST_OF_FEW, _FEW = 80, 144, 16
"""Registers of a thread that hold sums, scores and slopes; and where a warp has few inner rows, so many, at
a time and factors are not split."""
_KINDS = {**PRODUCT_KINDS, Precision.F16: TF32}
"""Slopes are often too small for float16: TF32 has as many digits, and float32's range."""


def _kind(root: Root) -> int:
    return _KINDS[precision_of(root.op)]


def _up(n: int) -> int:
    return -(-n // 16) * 16


def _once(sides: Sides, tile: Mapping[str, int]) -> bool:
    return sides.others <= tile["BN"]


def _second(sides: Sides, tile: Mapping[str, int]) -> int:
    """Width of the second sums; none where the weights of a query are all known."""
    return 0 if _once(sides, tile) and not sides.of_keys else _up(sides.second)


def _legal(tile: Mapping[str, int]) -> Callable[[Root], bool]:
    """float32 unless plain products are asked for, sizes that are known, and sums that fit the registers."""

    def legal(root: Root) -> bool:
        sides = Sides.of(root)
        if DYNAMIC in root.parallel or precision_of(root.op) not in _KINDS:
            return False
        if not isinstance(tensor_type(sides.op.y).element_type, Float32Type):
            return False
        if min(sides.others, sides.columns) < 1 or max(sides.size, sides.columns) > _LARGEST:
            return False
        inner = tile["BN"] // tile["KG"]
        if _kind(root) not in (SPLIT, TF32) and inner < 16:
            return False
        sums = tile["WM"] * (_up(sides.size) + _second(sides, tile) + 2 * inner) // 32
        roomy = _kind(root) != SPLIT and inner <= _FEW
        return sums <= (_MOST_OF_FEW if roomy else _MOST_SUMS)

    return legal


def parameters_of(tile: Mapping[str, int], root: Root) -> Parameters:
    """Rows of 16 elements, four words more against bank conflicts; where what lies in shared memory."""
    sides = Sides.of(root)
    kind, once = _kind(root), _once(sides, tile)
    depth, width, second = _up(sides.size), _up(sides.columns), _second(sides, tile)
    of_x, of_xx = depth + 4, width + 4
    outer, sums = tile["BM"] * (of_x + of_xx), tile["BN"] * (of_x + of_xx)
    stage = sums + 2 * tile["BN"] * sides.of_keys
    stages, inner = 2 - once, tile["BN"] // tile["KG"]
    warps, masks = tile["BM"] // tile["WM"] * tile["KG"], outer + stages * stage
    ends = masks
    if sides.op.mask is not None:
        ends += warps * tile["WM"] * (inner + 8)
    met_sums = tile["KG"] * tile["BM"] * (depth + 8 + (second and second + 8))
    row = 2 * sides.size + sides.columns + sides.second
    return {
        **tile,
        "WN": inner,
        "KIND": kind,
        "EXACT": int(kind == SPLIT),
        "ONCE": int(once),
        "DEPTH": depth,
        "WIDTH": width,
        "SECOND_WIDTH": second,
        "X_ROW": of_x,
        "XX_ROW": of_xx,
        "OTHER": tile["BM"] * of_x,
        "INNER": outer,
        "STAGE": stage,
        "STAGES": stages,
        "SUMS": sums,
        "MASKS": masks,
        "ROWS_OF_WARP": row,
        "STORED": sides.sizes[-1],
        "STATS": max(ends, met_sums, warps * row),
        "KNOWN": 3 * tile["KG"] * tile["BM"],
    }


def scratch(root: Root, p: Parameters) -> int:
    """Rows, stages and masks; or sums; or single rows; and what groups of warps tell of each row."""
    return 4 * (p["STATS"] + (3 * p["KG"] + 4) * p["BM"])


def grid_of(tile: Mapping[str, int]) -> Callable[[Root, int], list[int]]:
    """Where rows meet more and more inner ones, several parts a vEU: what is done first takes another."""

    def grid(root: Root, tasks: int) -> list[int]:
        sides = Sides.of(root)
        finer = 1 if sides.op.diagonal is None or _once(sides, tile) else 3
        return cut_rows(
            sides.lead,
            sides.sizes[-2],
            finer * tasks,
            lambda lead, part: lead * math.ceil(part / tile["BM"]),
        )

    return grid


def copied(sides: Sides) -> set[SSAValue]:
    """Operands that are copied from memory as they are."""
    return {v for v, r in zip(sides.op.operands, rows_of(sides.op, 4), strict=False) if in_words(r)}


def _work(tile: Mapping[str, int]) -> Callable[[Part], Work]:
    """Fragments read and multiplied, block after block, behind copies that overlap with them."""

    def counted(part: Part) -> Work:
        sides, p = Sides.of(part.root), parameters_of(tile, part.root)
        lead, count, others = met(part)
        tiles = lead * math.ceil(count / p["BM"])
        blocks = tiles * math.ceil(others / p["BN"])
        pairs, width = p["BM"] * p["BN"], p["DEPTH"] + p["WIDTH"]
        # Inner rows as each of the warps reads them, for scores and for sums, and outer ones.
        words = p["BM"] // p["WM"] * p["BN"] * (width + p["DEPTH"] + p["SECOND_WIDTH"])
        words += p["KG"] * p["BM"] * width
        each = work(
            mma=EFFORT[p["KIND"]] * pairs * (width + p["DEPTH"] + p["SECOND_WIDTH"]),
            fragment=words if p["EXACT"] else words / 4,
            barrier=1 + 2 * p["ONCE"],
            stage=p["BN"] / 128,
        )
        each += (score(part) + work(op=8)) * pairs
        known = copied(sides)
        for n, (_, value, _) in enumerate(sides.operands[2:]):
            if value not in known:
                # Elements of an inner block are read by all threads, in turns.
                elements = p["BN"] * (p["WIDTH"] if n else p["DEPTH"])
                each += part.load(value) * elements + work(round=elements / THREADS_PER_BLOCK / 2)
        ends = part.store * (lead * count * sides.sizes[-1])
        ends += (
            work(op=4.0 * p["KG"] * p["BM"] * (p["DEPTH"] + p["SECOND_WIDTH"]), barrier=6) * tiles
        )
        return each * blocks + work(tile=tiles) + ends

    return counted


RKERNELS = [
    RKernel(
        "attention_gradient",
        f"mma{name}",
        "cuda",
        "irkit.rkernels.cuda.attention_gradient_blocks",
        "attention_gradient_mma",
        legal=_legal(tile),
        work=_work(tile),
        reassociates=True,
        scratch_bytes=scratch,
        threads=THREADS_PER_BLOCK,
        parameters=partial(parameters_of, tile),
        vectors=("X", "XX", "Y", "YY"),
        streams=True,
        stores_again=True,
        halves=True,
        grid=grid_of(tile),
    )
    for name, tile in _TILES.items()
]
