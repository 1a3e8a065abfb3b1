"""Matrix products of packed terms (`te.pack`) on tensor cores, by warp groups (`wgmma`).

C[m, c] = sum_k A[m, k] * B[k, c]. Terms lie in memory as the tensor cores read them, so one thread copies
whole tiles (`cp.async.bulk`), STAGES ahead, and no thread touches a term. Two warp groups compute 64 rows and
WN columns each, and wait for tiles alone, not for each other. A stage is filled again when all warps have
read it. Where one group could have the whole tile, each of the SLICES groups has its sums of every second
stage, and these meet at the end (sliced-K in CUTLASS): what they wait for is half as much. Of few tiles each
may be shared by the blocks of a cluster too, as in `product_boxes.py`.

Where products are of float32's parts, sums of a stage leave the tensor cores, which truncate, and are added
in float32 while others are computed, those of the first parts by themselves (`cuda_wgmma` says why); where
parts overflow, cancel to NaN or are too small to be kept, the element is summed once more from the operands
as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from xdsl.dialects.builtin import Float32Type

from irkit.dialects.packed_terms import FORMATS
from irkit.dialects.precision import Precision, precision_of
from irkit.dialects.product_memory import matrix_of_b
from irkit.dialects.products import Product, as_product
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, is_half, tensor_type
from irkit.rkernels.cuda import product_packed_blocks
from irkit.rkernels.cuda.pack import KINDS
from irkit.rkernels.cuda.product import fits, product_of, reach
from irkit.rkernels.cuda.product_boxes import met, rounds
from irkit.rkernels.cuda.product_mma import SPLIT, TF32, THREADS_PER_BLOCK
from irkit.rkernels.cuda.product_wgmma import TOGETHER, sets
from irkit.rkernels.packed_operands import packed_operands, packing_of
from irkit.rkernels.product_grids import cut_largest
from irkit.rkernels.rkernel import Parameters, RKernel
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
}
_LARGEST_FRESH = 128
"""Columns of a warp group whose sums of a stage, added in float32, need twice as many registers again."""
_NARROW = 64
"""Columns of a warp group whose products of a stage are soon over: more stages are at work at once."""
_FEWEST_STAGES = 4
"""Stages of a block, of those that share a tile."""
_LONG, _ANY = 32, 1 << 20
"""Stages whose sums meet before those of others do: where registers hold two sets."""
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
        packing = packing_of(product)
        if packing is None or operands[0].precision.data != packing.value:
            return False
        if bool(operands[1].terms.value.data) != matrix_of_b(product):
            return False
        # Each group of each of the blocks that share a tile has some stages.
        stages = math.ceil(product.extent(product.k) / FORMATS[packing].width)
        if stages < _FEWEST_STAGES * (tile.get("BLOCKS", 1) - 1):
            return False
        return tile["WN"] <= _LARGEST_FRESH or not _fresh(product)

    return legal


def _packing(root: Root) -> Precision:
    packing = packing_of(product_of(root))
    assert packing is not None
    return packing


def _fresh(product: Product) -> bool:
    """Whether the tensor cores' own sums are not exact enough."""
    asked = precision_of(product.op)
    halves = is_half(tensor_type(product.op.inputs[product.a]).element_type)
    return asked is Precision.FLOAT32 or (halves and packing_of(product) is not asked)


def parameters_of(tile: Mapping[str, int], root: Root) -> Parameters:
    form, across = FORMATS[packing := _packing(root)], product_of(root).transposed
    row = form.row_bytes // 4
    stage = form.parts * (tile["BM"] + tile["BN"]) * row
    return {
        "KIND": KINDS[packing],
        **tile,
        "SLICES": _slices(tile),
        # Words of all sums as they leave, row by row or column by column.
        "SUMS": tile["BN"] * (tile["BM"] + 4) if across else tile["BM"] * (tile["BN"] + 8),
        "BK": form.width,
        "ROW": row,
        "PARTS": form.parts,
        "STAGE": stage,
        "STAGES": min(_MOST_STAGES, _STAGED_BYTES // (4 * stage)),
        "FRESH": int(_fresh(product_of(root))),
        "SETS": sets(tile["WN"], form.width),
        "AHEAD": 1 if tile["WN"] > _NARROW else 3,
        "LONG": _LONG if tile["WN"] <= _NARROW else _ANY,
        "TOGETHER": TOGETHER,
    }


def _slices(tile: Mapping[str, int]) -> int:
    """How many warp groups compute the same sums."""
    return THREADS_PER_BLOCK // 128 * 64 * tile["WN"] // (tile["BM"] * tile["BN"])


def _scratch(root: Root, tile: Parameters) -> int:
    """Barriers, and all stages or all sums behind them."""
    sums = _slices(tile) * tile["BM"] * (tile["BN"] + 8)
    staged = max(tile["STAGES"] * tile["STAGE"], sums)
    return 4 * (4 * tile["STAGES"] + 256 + staged)


def _sides(tile: Mapping[str, int], part: Part) -> tuple[int, int]:
    """Tiles of the largest part, down and across, which start at multiples of eight."""
    product = product_of(part.root)
    high, wide = (reach(part, dims, 8) for dims in (product.m, product.columns))
    return math.ceil(high / tile["BM"]), math.ceil(wide / tile["BN"])


def _tiles(tile: Mapping[str, int], part: Part) -> float:
    return float(math.prod(_sides(tile, part)))


def _squarely(tile: Mapping[str, int], part: Part) -> float:
    """Of as many tiles in squares fewer terms are new, which are looked at and come from far."""
    down, across = _sides(tile, part)
    return down * across + (down + across) / 1024


# A multiply-add of a warp group, in those of one warp in TF32: six products of parts, or one. And what a
# block of terms takes beside, waited for and begun, in barriers.
_EFFORT = {SPLIT: (1.95, 11.5), TF32: (0.47, 7.5)}
_SIXTEEN_BITS = (0.34, 7.5)
# What a tile of parts' sums takes behind another one.
_AGAIN = 4.0


def _work(tile: Mapping[str, int]):
    """Blocks one after another, each behind a few barriers."""

    def counted(part: Part) -> Work:
        packing = _packing(part.root)
        width, count = FORMATS[packing].width, _tiles(tile, part)
        shared = tile.get("BLOCKS", 1)
        blocks = count * math.ceil(math.ceil(part.terms / width) / shared)
        effort, barriers = _EFFORT.get(KINDS[packing], _SIXTEEN_BITS)
        products = work(mma=blocks * tile["BM"] * tile["BN"] * width * effort)
        # Sums leave by way of shared memory, and those of parts are looked at: the next tile waits for that.
        again = _AGAIN * (count - 1) if packing is Precision.FLOAT32 else 0
        slices, area = _slices(tile), tile["BM"] * tile["BN"]
        ends = work(tile=again + count * (0.5 + slices * area / 16384 + met(area, shared)))
        waits = work(barrier=barriers * blocks / slices)
        one = ends + waits + products + part.store * (part.elements / shared)
        return one * rounds(part, shared)

    return counted


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
        grid=cut_largest(partial(_squarely, tile)),
        work=_work(tile),
    )
    for name, tile in _TILES.items()
]
