"""Matrix products with one large factor on tensor cores, by warp groups (`wgmma`) that hold it in registers.

C[b, m, c] = sum_k A[b, m, k] * B[b, k, c] of float32, where one factor, weights say, is large, and the other
has few rows or columns: each element of the large one is read once, by the copy engine
(`cp.async.bulk.tensor`), and goes from where it lands to the registers of the lane that multiplies it,
however it lies in memory. It is the left factor of the tensor cores' products, 64 rows of A or columns of B
a warp group; two groups have 128 of them, or each every second stage of 64. The small factor is in shared
memory: rounded to TF32 by the engine or, of products in float32's own precision, in packed parts
(`te.pack`), which a lane multiplies by the parts that it cuts itself: three of bfloat16, or two of float16,
scaled row by row where they are packed and stage by stage where they are cut. `cuda_wgmma` and
`cuda_wgmma_scaled` have the parts, `product_packed.py` how their sums meet and what is done where parts do
not hold a factor.

Of few tiles each may be shared by the blocks of a cluster, as in `product_boxes.py`; what one of them is in
doubt about it gives as NaN, and that is summed anew.

The left factor from registers: V. Thakkar and others, CUTLASS (its mixed-input products for Hopper,
github.com/NVIDIA/cutlass).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from xdsl.dialects.builtin import Float32Type

from irkit.dialects import te
from irkit.dialects.packed_terms import FORMATS, SCALED
from irkit.dialects.precision import precision_of
from irkit.dialects.product_memory import matrices_of_b, run_of_b
from irkit.dialects.products import as_product
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.rkernels.boxes import Boxed
from irkit.rkernels.cuda import product_boxes_maps as boxes
from irkit.rkernels.cuda import product_held_blocks
from irkit.rkernels.cuda.product import fits, product_of, run_of
from irkit.rkernels.cuda.product_boxes import met, rounds
from irkit.rkernels.cuda.product_mma import KINDS, SPLIT, TF32, THREADS_PER_BLOCK
from irkit.rkernels.cuda.product_wgmma import ALIGNMENT, TOGETHER
from irkit.rkernels.packed_operands import packed_alone
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.tilings import Tiling, cut_into_tiles
from irkit.rkernels.work import Part, Work, work

_SIZES = (
    (16, 64, 1), (32, 64, 1), (32, 64, 2), (64, 64, 1), (64, 64, 2), (64, 64, 4), (64, 128, 1),
    (64, 128, 2), (128, 64, 2), (128, 128, 1), (128, 128, 2),
)  # fmt: skip
"""How much of a tile is shared, how much of it held, and the blocks that it is shared by."""
_TERMS = 32
"""Of a stage: 128 bytes; of scaled parts there are as many as of a packed row."""
_MOST_BYTES, _MOST_STAGES = 208 * 1024, 12
_FEWEST_STAGES = 3
"""Of a group: one is at work, the next is in registers, and the one before is filled again."""
_MOST_SPLIT = 64
"""Rows, or columns, of parts whose sums leave registers for two stages of what is held."""
_WARPS = THREADS_PER_BLOCK // 32


def _name(tile: Mapping[str, int]) -> str:
    """Rows and columns of a tile, its held side named."""
    shared, held, blocks = tile["SHARED"], tile["HELD"], tile["BLOCKS"]
    sides = f"rows{held}x{shared}" if tile["ROWS"] else f"columns{shared}x{held}"
    return f"held_{sides}{f'_by{blocks}' if blocks > 1 else ''}"


TILES: dict[str, Mapping[str, int]] = {
    _name(tile): tile
    for rows in (0, 1)
    for shared, held, blocks in _SIZES
    for tile in ({"ROWS": rows, "SHARED": shared, "HELD": held, "BLOCKS": blocks},)
}


def _legal(tile: Mapping[str, int]):
    """Products of float32 with matrices that the copy engine can take, in TF32, or in float32's own precision
    where the shared side alone is packed."""

    def legal(root: Root) -> bool:
        product = as_product(root)
        if DYNAMIC in root.parallel or product is None or not fits(product):
            return False
        run = run_of_b(product)
        types = [tensor_type(v).element_type for v in (*product.op.inputs, product.op.results[0])]
        if run is None or not run.fours or not all(isinstance(t, Float32Type) for t in types):
            return False
        packed, kind = packed_alone(product), KINDS.get(precision_of(root.op))
        if kind == SPLIT:
            wanted = product.b if tile["ROWS"] else product.a
            if packed != wanted or tile["SHARED"] > _MOST_SPLIT:
                return False
        elif kind != TF32 or packed is not None or (tile["ROWS"] and not run.by_k):
            return False
        # Each of the groups, or of the blocks, that share a tile has a stage at least.
        stages = math.ceil(boxes.depth_of(root) / _stage_of(root))
        if stages < tile["BLOCKS"] * _slices(tile) or matrices_of_b(product) is None:
            return False
        return boxes.steps_fit(root)

    return legal


def _packing(root: Root) -> str:
    """How what is shared is there, by name in `FORMATS`."""
    product = product_of(root)
    number = packed_alone(product)
    if number is None:
        return precision_of(root.op).value
    owner = product.op.inputs[number].owner
    assert isinstance(owner, te.PrepackedOp)
    return owner.precision.data


def _stage_of(root: Root) -> int:
    """Terms of a stage."""
    return FORMATS[SCALED].width if _packing(root) == SCALED else _TERMS


def _slices(tile: Mapping[str, int]) -> int:
    """How many warp groups hold the same."""
    return _WARPS // 4 * 64 // tile["HELD"]


def _by_terms(tile: Mapping[str, int], root: Root) -> bool:
    """Whether the terms of what is held lie side by side."""
    run = run_of_b(product_of(root))
    return bool(tile["ROWS"]) or (run is not None and run.by_k)


def parameters_of(tile: Mapping[str, int], root: Root) -> Parameters:
    form, slices, terms = FORMATS[_packing(root)], _slices(tile), _stage_of(root)
    row = form.row_bytes // 4
    stage = terms * tile["HELD"] + form.parts * row * tile["SHARED"]
    turns = math.ceil(math.ceil(boxes.depth_of(root) / terms) / tile["BLOCKS"])
    # Lines of sums are C's rows or, where these lie apart, its columns.
    transposed = product_of(root).transposed
    across = tile["ROWS"] == int(transposed)
    lines, along = (tile["SHARED"], tile["HELD"]) if across else (tile["HELD"], tile["SHARED"])
    pitch = along + (4 if transposed else 8)
    stages = max(min(_MOST_STAGES, _MOST_BYTES // (4 * stage), turns), _FEWEST_STAGES * slices)
    sums = lines * pitch
    return {
        "KIND": KINDS[precision_of(root.op)],
        "SCALED": form.headers,
        **tile,
        "BY_TERMS": int(_by_terms(tile, root)),
        "SLICES": slices,
        "TEAM": THREADS_PER_BLOCK // slices,
        "BK": terms,
        "PLANE": _TERMS,
        "STAGE": stage,
        # Some are filled while those before them are at work.
        "STAGES": stages,
        "HEADERS": max(stages * stage, slices * sums),
        "ROW": row,
        "PARTS": form.parts,
        "ACROSS": int(across),
        "LINES": lines,
        "PITCH": pitch,
        "SUMS": sums,
        "TOGETHER": TOGETHER,
    }


def _scratch(root: Root, p: Parameters) -> int:
    """Barriers, and all stages or all sums behind them; then the headers of what is shared."""
    headers = 2 * p["SCALED"] * p["SHARED"]
    barriers = 4 * p["STAGES"] * (1 + p["SCALED"])
    return 4 * (barriers + ALIGNMENT // 4 + p["HEADERS"] + headers)


def _map(root: Root, p: Parameters, of_a: bool, count: int) -> Boxed:
    """Of an operand, `count` rows or columns a box, where they do not lie side by side."""
    side = {**p, "KIND": TF32, "BM": count, "BN": count}
    if of_a:
        return boxes.map_of_a(root, side)
    found, run = boxes.map_of_b(root, side), run_of_b(product_of(root))
    assert run is not None
    return found if run.by_k else replace(found, box=(32, p["BK"], 1))


def map_of_held(root: Root, p: Parameters) -> Boxed:
    """As it is where its terms are cut into parts, else rounded on its way."""
    found = _map(root, p, bool(p["ROWS"]), p["HELD"])
    return replace(found, element="float32") if p["KIND"] == SPLIT else found


def map_of_shared(root: Root, p: Parameters) -> Boxed:
    """Rows, or columns, of terms; of parts, which are packed, no box is copied."""
    return _map(root, p, not p["ROWS"], p["SHARED"])


# Rows of 128 bytes that come to a multiprocessor while one stage is waited for, and what one takes beside.
_AT_ONCE, _STAGE = 288, 0.45
# What a stage takes whose terms are cut, in stages that are waited for, more by what is shared, and more
# where many ask for that.
_CUT, _SHARED, _ASKED = 1.5, 0.0113, 0.19
# The same of scaled parts, whose stages are twice as long, whatever is shared.
_CUT_SCALED = 3.4
# The share of either that is left where few multiprocessors ask for terms; from so many blocks on all share
# what there is.
_FEW, _MANY = 0.5, 128


def _tiling(tile: Mapping[str, int], root: Root) -> Tiling:
    """What is packed begins at a multiple of eight, columns that are not at one of four."""
    run = run_of(root)
    rows, columns = tile["HELD"], tile["SHARED"]
    if not tile["ROWS"]:
        rows, columns = columns, rows
    eights = KINDS[precision_of(root.op)] == SPLIT
    fours = 1 if run is not None and run.by_k else 4
    row_unit = 8 if eights and not tile["ROWS"] else 1
    return Tiling(rows, columns, row_unit, 8 if eights and tile["ROWS"] else fours)


def _work(tile: Mapping[str, int]):
    """Stages that a warp group waits for, and cuts, one after another."""

    def counted(part: Part) -> Work:
        blocks, area = tile["BLOCKS"], tile["SHARED"] * tile["HELD"]
        count, slices = _tiling(tile, part.root).of_part(part), _slices(tile)
        own = count * math.ceil(part.terms / _stage_of(part.root) / blocks / slices)
        crowd = min(max(math.prod(part.grid) * blocks / _MANY, _FEW), 1.0)
        each = _STAGE + slices * (tile["SHARED"] + tile["HELD"]) * crowd / _AT_ONCE
        if KINDS[precision_of(part.root.op)] == SPLIT:
            # Groups that hold the same each ask for all that is shared.
            asked = _ASKED * crowd if slices > 1 else 0.0
            scaled = _packing(part.root) == SCALED
            each = _CUT_SCALED if scaled else _CUT + _SHARED * tile["SHARED"]
            each *= 1 + asked
        ends = work(tile=count * (1 + met(area, blocks) + area / 24576))
        one = ends + work(stage=own * each) + part.store * (part.elements / blocks)
        return one * rounds(part, blocks)

    return counted


RKERNELS = [
    RKernel(
        "product",
        name,
        "cuda",
        product_held_blocks.__name__,
        "product_held",
        legal=_legal(tile),
        wgmma=True,
        reassociates=True,
        scratch_bytes=_scratch,
        threads=THREADS_PER_BLOCK,
        parameters=partial(parameters_of, tile),
        vectors=("A", "B", "PACKED_A", "PACKED_B"),
        streams=True,
        halves=True,
        clustered=tile["BLOCKS"] > 1,
        grid=cut_into_tiles(partial(_tiling, tile)),
        work=_work(tile),
        maps={"MAP_HELD": map_of_held, "MAP_SHARED": map_of_shared},
    )
    for name, tile in TILES.items()
]
