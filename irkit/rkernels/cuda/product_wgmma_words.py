"""Products and convolutions of float32 in TF32 by warp groups (`wgmma`), from tiles as they lie in memory.

The template of `product_wgmma_halves.py`: terms that lie side by side are copied straight to the rows that
`wgmma` reads, 32 of them in a row. The thread that copied a chunk rounds it where it is, while the tensor
cores, which would cut it off, multiply the stage before.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from xdsl.dialects.builtin import Float32Type

from irkit.dialects.precision import Precision, precision_of
from irkit.dialects.product_memory import run_of_b
from irkit.dialects.products import as_product
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, tensor_type
from irkit.rkernels.cuda import product_wgmma_halves as halves
from irkit.rkernels.cuda.product import fits
from irkit.rkernels.cuda.product_mma import TF32, THREADS_PER_BLOCK, ends, tiles, tiling
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.tilings import cut_into_tiles
from irkit.rkernels.work import Part, Work, work


def legal(root: Root) -> bool:
    """Products of float32 in TF32 whose terms are read in fours; sizes that are known."""
    product = as_product(root)
    if DYNAMIC in root.parallel or product is None or not fits(product):
        return False
    run = run_of_b(product)
    if precision_of(root.op) is not Precision.TF32 or run is None or not (run.by_k and run.fours):
        return False
    types = [tensor_type(v).element_type for v in (*product.op.inputs, product.op.results[0])]
    plain = all(isinstance(t, Float32Type) for t in types)
    return plain and product.extent(product.k) % 4 == 0 and product.extent(product.m) >= 8


def parameters_of(tile: Mapping[str, int], root: Root) -> Parameters:
    stage = (tile["BM"] + tile["BN"]) * tile["BK"]
    own = {"KIND": TF32, **tile, "STAGE": stage, "EACH": 4, "FRESH": 0}
    return own | halves.apart(root, own)


# A multiply-add of a warp group in TF32, in those of one warp, and what rounding a term takes.
_EFFORT, _ROUNDING = 0.75, 0.6
# Rows and columns whose terms arrive, and are rounded, while one stage is waited for.
_AT_ONCE = 120


def _work(tile: Mapping[str, int]):
    """Stages that arrive one after another and are rounded, behind products that overlap with them."""

    def counted(part: Part) -> Work:
        count = tiles(tile, part)
        stages = count * -(-part.terms // tile["BK"])
        rounding = stages * (tile["BM"] + tile["BN"]) * tile["BK"] * _ROUNDING
        products = stages * tile["BM"] * tile["BN"] * tile["BK"] * _EFFORT
        waits = work(stage=stages * (tile["BM"] + tile["BN"]) / _AT_ONCE)
        multiplied = work(fragment=rounding, mma=products)
        leaving = ends(tile, part, count) * halves.ahead(parameters_of(tile, part.root))
        return leaving + waits + multiplied + part.store * part.elements

    return counted


_TILES: dict[str, Mapping[str, int]] = {
    name: {**tile, "BK": 32, "STAGES": min(tile["STAGES"], 8)}
    for name, tile in halves.TILES.items()
}

RKERNELS = [
    RKernel(
        "product",
        f"wgmma{name}_words",
        "cuda",
        halves.__name__,
        "product_wgmma_halves",
        legal=legal,
        wgmma=True,
        reassociates=True,
        scratch_bytes=halves.scratch,
        threads=THREADS_PER_BLOCK,
        parameters=partial(parameters_of, tile),
        vectors=("A", "B"),
        streams=True,
        grid=cut_into_tiles(partial(tiling, tile)),
        work=_work(tile),
    )
    for name, tile in _TILES.items()
]
