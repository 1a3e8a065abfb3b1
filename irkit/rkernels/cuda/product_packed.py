"""Matrix products of packed terms (`te.pack`) on tensor cores, by warp groups (`wgmma`).

C[m, c] = sum_k A[m, k] * B[k, c]. Terms lie in memory as the tensor cores read them, so single threads copy
whole tiles (`cp.async.bulk`), STAGES ahead, and no thread touches a term. Two warp groups compute 64 rows and
WN columns each, and wait for tiles alone, not for each other. A stage is filled again when all warps have
read it: by warps that computed it, or, where one group computes all, by the other. Where one group could have
the whole tile, each of the SLICES groups has its sums of every second stage, and these meet at the end
(sliced-K in CUTLASS): what they wait for is half as much. Of few tiles each may be shared by the blocks of a
cluster too, as in `product_boxes.py`.

float32 has three bfloat16 parts, or two float16 ones of rows that are scaled (`irkit/scaled_rows.py`): half
as many products then. Where products are of parts, sums of a stage leave the tensor cores, which truncate,
and are added in float32 while others are computed, those of the first parts by themselves (`cuda_wgmma` says
why); where parts overflow, cancel to NaN or are too small to be kept, or a sum is below the bounds of its row
and column, the element is summed once more from the operands as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from xdsl.dialects.builtin import Float32Type

from irkit.dialects.packed_terms import FORMATS, SCALED
from irkit.dialects.precision import Precision, precision_of
from irkit.dialects.product_memory import matrix_of_b
from irkit.dialects.products import Product, as_product
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, is_half, tensor_type
from irkit.rkernels.cuda import product_packed_blocks
from irkit.rkernels.cuda.pack import KINDS
from irkit.rkernels.cuda.product import fits, product_of
from irkit.rkernels.cuda.product_boxes import met, rounds
from irkit.rkernels.cuda.product_mma import SCALED_PARTS, SPLIT, TF32, THREADS_PER_BLOCK
from irkit.rkernels.cuda.product_wgmma import TOGETHER, sets
from irkit.rkernels.packed_operands import packed_operands, packings_of
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.tilings import Tiling, cut_into_tiles
from irkit.rkernels.work import Part, Work, work

_TILES: dict[str, Mapping[str, int]] = {
    "128x256": {"BM": 128, "BN": 256, "WN": 256},
    "128x128": {"BM": 128, "BN": 128, "WN": 128},
    "128x64": {"BM": 128, "BN": 64, "WN": 64},
    "64x128": {"BM": 64, "BN": 128, "WN": 64},
    "64x64": {"BM": 64, "BN": 64, "WN": 32},
    "64x32": {"BM": 64, "BN": 32, "WN": 16},
    # Of a few tiles: both warp groups compute one, each from half of the stages.
    "64x64_sliced": {"BM": 64, "BN": 64, "WN": 64},
    "64x32_sliced": {"BM": 64, "BN": 32, "WN": 32},
    # Of fewer still: blocks of a cluster share one.
    "64x64_by2": {"BM": 64, "BN": 64, "WN": 64, "BLOCKS": 2},
    "64x64_by4": {"BM": 64, "BN": 64, "WN": 64, "BLOCKS": 4},
    "64x32_by2": {"BM": 64, "BN": 32, "WN": 32, "BLOCKS": 2},
    # Larger ones read less of what tiles beside one another have in common.
    "64x128_by2": {"BM": 64, "BN": 128, "WN": 64, "BLOCKS": 2},
    "64x128_by4": {"BM": 64, "BN": 128, "WN": 64, "BLOCKS": 4},
    # One group multiplies, the other asks for terms as soon as there is room.
    "64x128_fed": {"BM": 64, "BN": 128, "WN": 128, "FED": 1},
}
_LARGEST_FRESH = 128
"""Columns of a warp group whose sums of a stage, added in float32, need twice as many registers again."""
SMALL, CROSS = 1, 3
"""The products of parts but the first, as `cuda_wgmma` names them."""
_NARROW = 64
"""Columns of a warp group whose products of a stage are soon over: more stages are at work at once."""
_FEWEST_STAGES = 4
"""Stages of a block, of those that share a tile."""
_FEW_STAGES = 4
"""Stages of a warp group of which each is to be filled as soon as it can be."""
_LONG, _ANY = 32, 1 << 20
"""Stages whose sums meet before those of others do: where registers hold two sets."""
_MOST_SETS = 2
"""Sums of high parts beside one another."""
_STAGED_BYTES, _MOST_STAGES = 196 * 1024, 16
"""All stages together, and how many there are at most."""


def _legal(tile: Mapping[str, int]):
    """Products of matrices whose terms are packed for the precision that is asked for."""

    def legal(root: Root) -> bool:
        product = as_product(root)
        if DYNAMIC in root.parallel or product is None or not fits(product):
            return False
        operands, element = (
            packed_operands(product),
            tensor_type(product.op.results[0]).element_type,
        )
        if operands is None or not isinstance(element, Float32Type):
            return False
        packing = operands[0].precision.data
        if packing not in packings_of(product):
            return False
        if bool(operands[1].terms.value.data) != matrix_of_b(product):
            return False
        # Each group of each of the blocks that share a tile has some stages.
        stages = math.ceil(product.extent(product.k) / FORMATS[packing].width)
        if stages < _FEWEST_STAGES * (tile.get("BLOCKS", 1) - 1):
            return False
        return tile["WN"] <= _LARGEST_FRESH or not _fresh(product)

    return legal


def _packing(root: Root) -> str:
    """What both operands are packed as."""
    operands = packed_operands(product_of(root))
    assert operands is not None
    return operands[0].precision.data


def _kind(packing: str) -> int:
    return SCALED_PARTS if packing == SCALED else KINDS[Precision(packing)]


def _fresh(product: Product) -> bool:
    """Whether the tensor cores' own sums are not exact enough."""
    asked, operands = precision_of(product.op), packed_operands(product)
    assert operands is not None
    halves = is_half(tensor_type(product.op.inputs[product.a]).element_type)
    return asked is Precision.FLOAT32 or (halves and operands[0].precision.data != asked.value)


def parameters_of(tile: Mapping[str, int], root: Root) -> Parameters:
    form, across = FORMATS[packing := _packing(root)], product_of(root).transposed
    row = form.row_bytes // 4
    stage = form.parts * (tile["BM"] + tile["BN"]) * row
    stages = min(_MOST_STAGES, _STAGED_BYTES // (4 * stage))
    return {
        "KIND": _kind(packing),
        "PARTED": int(form.parts > 1),
        "SCALED": form.headers,
        **tile,
        "FED": _fed(tile),
        "SLICES": _slices(tile),
        # Threads that compute the sums of a stage.
        "SHARING": THREADS_PER_BLOCK // _slices(tile) // (1 + _fed(tile)),
        # Words of all sums as they leave, row by row or column by column.
        "SUMS": tile["BN"] * (tile["BM"] + 4) if across else tile["BM"] * (tile["BN"] + 8),
        "BK": form.width,
        "ROW": row,
        "PARTS": form.parts,
        "STAGE": stage,
        "STAGES": stages,
        "HEADERS": _staged(tile, stages * stage),
        "REST": CROSS if packing == SCALED else SMALL,
        "FRESH": int(_fresh(product_of(root))),
        "SETS": min(sets(tile["WN"], form.width), _MOST_SETS if form.headers else form.width),
        "AHEAD": 1 if tile["WN"] > _NARROW else 3,
        "LONG": _LONG if tile["WN"] <= _NARROW else _ANY,
        "ANY": _ANY,
        "TOGETHER": TOGETHER,
        "SOON": int(_fed(tile) or stages // _slices(tile) <= _FEW_STAGES),
    }


def _fed(tile: Mapping[str, int]) -> int:
    """Warp groups that multiply nothing."""
    return tile.get("FED", 0)


def _slices(tile: Mapping[str, int]) -> int:
    """How many warp groups compute the same sums."""
    groups = THREADS_PER_BLOCK // 128 - _fed(tile)
    return groups * 64 * tile["WN"] // (tile["BM"] * tile["BN"])


def _scratch(root: Root, tile: Parameters) -> int:
    """Barriers, and all stages or all sums behind them; then headers of rows and columns."""
    staged = _staged(tile, tile["STAGES"] * tile["STAGE"])
    headers = 2 * tile["SCALED"] * (tile["BM"] + tile["BN"])
    return 4 * (4 * tile["STAGES"] + 256 + staged + headers)


def _staged(tile: Mapping[str, int], stages: int) -> int:
    """Words of all stages or of all sums."""
    return max(stages, _slices(tile) * tile["BM"] * (tile["BN"] + 8))


def _tiling(tile: Mapping[str, int], root: Root) -> Tiling:
    """Tiles start at multiples of eight. Of as many in squares fewer terms are new, which are looked at and
    come from far."""
    return Tiling(tile["BM"], tile["BN"], 8, 8, squarely=True)


# A multiply-add of a warp group, in those of one warp in TF32: six products of parts, or one. And what a
# block of terms takes beside, waited for and begun, in barriers.
_EFFORT = {SPLIT: (1.95, 11.5), TF32: (0.47, 7.5)}
_SIXTEEN_BITS = (0.34, 7.5)
# What a block of scaled terms takes by the row of either operand, in stages: they come from far, and many ask
# for them; and the share of it that is left where few do. So many products of rows take as long as a row.
_ROW_OF_STAGE, _MANY, _FEW, _AREA = 0.0095, 128, 0.25, 54
# What a tile of parts' sums takes behind another one.
_AGAIN = 4.0


def _work(tile: Mapping[str, int]):
    """Blocks one after another, each behind a few barriers."""

    def counted(part: Part) -> Work:
        packing, count = _packing(part.root), _tiling(tile, part.root).of_part(part)
        shared = tile.get("BLOCKS", 1)
        form = FORMATS[packing]
        blocks = count * math.ceil(math.ceil(part.terms / form.width) / shared)
        # Sums leave by way of shared memory, and those of parts are looked at: the next tile waits for that.
        again = _AGAIN * (count - 1) if form.parts > 1 else 0
        slices, area = _slices(tile), tile["BM"] * tile["BN"]
        ends = work(tile=again + count * (0.5 + slices * area / 16384 + met(area, shared)))
        one = ends + _of_blocks(tile, part, blocks) + part.store * (part.elements / shared)
        return one * rounds(part, shared)

    return counted


def _of_blocks(tile: Mapping[str, int], part: Part, blocks: float) -> Work:
    """Of so many blocks of terms."""
    packing, rows = _packing(part.root), tile["BM"] + tile["BN"]
    if packing == SCALED:
        crowd = math.prod(part.grid) * tile.get("BLOCKS", 1) / _MANY
        # Warp groups that have few columns each read as many rows for them.
        narrow = 1.0 if _slices(tile) > 1 else math.sqrt(max(_NARROW / tile["WN"], 1.0))
        each = _ROW_OF_STAGE * narrow * min(max(crowd, _FEW), 1.0)
        # Of large tiles products take longer than terms.
        return work(stage=blocks * max(rows, tile["BM"] * tile["BN"] / _AREA) * each)
    effort, barriers = _EFFORT.get(_kind(packing), _SIXTEEN_BITS)
    products = work(mma=blocks * tile["BM"] * tile["BN"] * FORMATS[packing].width * effort)
    return products + work(barrier=barriers * blocks / _slices(tile))


RKERNELS = [
    RKernel(
        "product",
        f"packed{name}",
        "cuda",
        product_packed_blocks.__name__,
        "product_packed",
        legal=_legal(tile),
        wgmma=True,
        reassociates=True,
        scratch_bytes=_scratch,
        threads=THREADS_PER_BLOCK,
        parameters=partial(parameters_of, tile),
        vectors=("PACKED_A", "PACKED_B"),
        streams=True,
        halves=True,
        clustered="BLOCKS" in tile,
        grid=cut_into_tiles(partial(_tiling, tile)),
        work=_work(tile),
    )
    for name, tile in _TILES.items()
]
