"""Matrix products on tensor cores, by warp groups (`wgmma`), of tiles that the copy engine copies.

C[b, m, c] = sum_k A[b, m, k] * B[b, k, c], where both operands lie in memory as matrices of 16-bit floats, or
of float32 that is multiplied in TF32: one thread asks for whole tiles of BK terms (`cp.async.bulk.tensor`),
which the engine rounds and puts where `wgmma` reads them; no other touches a term. All stages of all tiles of
an rTask are one row, of which STAGES are on their way: while sums leave, the next tile's terms arrive. A warp
group computes 64 rows and WN columns, and waits for stages alone: two of them, one of which asks for stages
too, or one, for which the other asks. Each warp's sums leave through a piece of shared memory of its own, so
that no warp waits for another.

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


def product_boxes(task, tasks, rows, scratch, OPERANDS, MAPS):
    b0, b1, m0, m1, l0, l1, c0, c1 = PART(task, tasks, rows)
    thread = thread_index()
    warp, lane = divide(thread, 32)
    warp = same_in_warp(warp)
    group, quarter = divide(warp, 4)
    group_y, group_x = divide(group, BN // WN)
    staged = shared_of(float32(0), scratch)
    # First the barriers, two words each: of stages that are there, then of stages that were read.
    packs = aligned_place(staged, 4 * STAGES)
    left = packs + group_y * (64 * 32)
    right = packs + BM * 32 * PLANES + group_x * (WN * 32)
    if not BY_K:
        right = packs + BM * 32 * PLANES + group_x * WN // 64 * (BK * 32) + group_x * WN % 64 // 2
    own = packs + STAGES * STAGE + warp * (OWN * (WN // PIECE if BLOCKS > 1 else 1))
    # Each of the blocks that share a tile has the products of some stages.
    stages = (K + BK - 1) // BK
    start = stages * RANK // RANKS
    turns = stages * (RANK + 1) // RANKS - start
    k_first = start * BK
    k_last = min(k_first + turns * BK, K)
    # Boxes begin at multiples of 16 bytes.
    c_first = c0 - c0 % (8 - 7 * BY_K)
    across = (c1 - c_first + BN - 1) // BN
    down = (m1 - m0 + BM - 1) // BM
    tiles = (b1 - b0) * down * across
    everything = tiles * turns if VECTOR else 0

    # Which tile a number is: of the batch, its first row and column.
    def tile_at(number):
        above, beside = divide32(number, across)
        b, y = divide32(above, down)
        return b0 + b, m0 + y * BM, c_first + beside * BN

    # Ask for stage n of all, of terms from k on of a tile, which lies where stage n - STAGES was read.
    def fill(n, k, b, m, c):
        stage = divide32(n, STAGES)[1]
        tile = packs + stage * STAGE
        expect(staged, 2 * stage, 4 * STAGE)
        for plane in range(PLANES):
            copy_box(staged, tile + plane * (BM * 32), MAP_A, k + plane * PLANE, m, b, 2 * stage)
        tile += BM * 32 * PLANES
        if BY_K:
            for plane in range(PLANES):
                copy_box(
                    staged, tile + plane * (BN * 32), MAP_B, k + plane * PLANE, c, b, 2 * stage
                )
        else:
            for plane in range((BN + 63) // 64):
                copy_box(staged, tile + plane * (BK * 32), MAP_B, c + plane * 64, k, b, 2 * stage)

    # A warp asks for stages from n on, of terms from k on of a tile, to `last`; returns what is next then.
    def asked(last, n, k, number, b, m, c):
        for one in range(n, last):
            # One lane alone waits: others might find the phase behind the one that they wait for.
            if lane == 0:
                if one >= STAGES:
                    times, stage = divide32(one - STAGES, STAGES)
                    await_phase(staged, 2 * (STAGES + stage), times % 2)
                fill(one, k, b, m, c)
            k += BK
            if k >= k_last:
                k, number = k_first, number + 1
                b, m, c = tile_at(number)
        cuda.syncwarp()
        return max(n, last), k, number, b, m, c

    def read(n):
        cuda.syncwarp()
        if lane == 0:
            arrive(staged, 2 * (STAGES + divide32(n, STAGES)[1]))

    # Products of a stage, begun once it is there: behind `given` sums, or `fresh` ones.
    def begun(n, given, fresh):
        times, stage = divide32(n, STAGES)
        await_phase(staged, 2 * stage, times % 2)
        tile = stage * STAGE
        return group_products(
            given, staged, tile + left, tile + right, WN, BK, 32,
            BM * 32, (BN * BY_K + BK * (1 - BY_K)) * 32, BY_K, KIND, fresh, 0,
        )  # fmt: skip

    # Some columns of the warp's sums go to shared memory, and leave it.
    def put(place, sums, piece):
        if TRANSPOSED:
            store_piece_across(staged, place, 16 + 4, sums, PIECE, piece, lane)
        else:
            store_piece(staged, place, PIECE + 8, sums, PIECE, piece, lane)

    def leave(place, b, y, x):
        # An operand that does not start at a multiple of 16 bytes cannot be copied.
        LEAVE(
            OPERANDS, staged, place, (lane, 32), (16, PIECE), (b, 0, y, x), (m1, c0, c1),
            VECTOR, 1 - VECTOR, FLOAT(0),
        )  # fmt: skip

    if thread == 0:
        for stage in range(STAGES):
            open_barrier(staged, 2 * stage, 1)
            open_barrier(staged, 2 * (STAGES + stage), 4 * GROUPS)
    publish_barriers()
    cuda.syncthreads()
    # Where two groups multiply, the first warp asks for stages too; where one does, a warp of the other.
    n, k, number = 0, k_first, 0
    b, m, c = tile_at(0)
    if warp == 8 - 4 * GROUPS and everything > 0:
        # What others wrote, here or in memory, is for asynchronous copies to see.
        publish_barriers()
        see_map(MAP_A)
        see_map(MAP_B)
        last = everything if GROUPS == 1 and RANKS == 1 else min(STAGES, everything)
        n, k, number, b, m, c = asked(last, n, k, number, b, m, c)
    # All threads of all blocks meet, those too that multiply nothing.
    for tile in range(tiles if GROUPS == 1 and RANKS > 1 and group == 1 else 0):
        if warp == 4:
            last = min((tile + 1) * turns, everything)
            n, k, number, b, m, c = asked(last, n, k, number, b, m, c)
        meet_cluster()
        meet_cluster()
    for tile in range(tiles if GROUPS == 2 or group == 0 else 0):
        sums = zeros_like(staged, WN // 2)
        if VECTOR:
            done = tile * turns
            if FRESH:
                # Two stages at once: while the sums of one are added, the other's are computed.
                for turn in range(done, done + turns - 1, 2):
                    first = begun(turn, sums, 1)
                    second = begun(turn + 1, sums, 1)
                    if GROUPS == 2 and warp == 0:
                        last = min(turn + STAGES, everything)
                        n, k, number, b, m, c = asked(last, n, k, number, b, m, c)
                    sums = group_added(sums, first, 1, 1)
                    read(turn)
                    sums = group_added(sums, second, 1, 0)
                    read(turn + 1)
                if turns % 2:
                    first = begun(done + turns - 1, sums, 1)
                    sums = group_added(sums, first, 1, 0)
                    read(done + turns - 1)
            else:
                # One stage behind the other, the sums in the tensor cores' hands until the last.
                for turn in range(done, done + turns):
                    sums = begun(turn, sums, 0)
                    if GROUPS == 2 and warp == 0 and turn > done + AHEAD:
                        last = min(turn - AHEAD + STAGES, everything)
                        n, k, number, b, m, c = asked(last, n, k, number, b, m, c)
                    await_products(AHEAD)
                    if turn >= done + AHEAD:
                        read(turn - AHEAD)
                sums = group_added(sums, sums, 0, 0)
                for turn in range(done + max(turns - AHEAD, 0), done + turns):
                    read(turn)
            if GROUPS == 2 and warp == 0:
                # The next tile's terms arrive while the sums of this one leave.
                last = min(done + turns + STAGES, everything)
                n, k, number, b, m, c = asked(last, n, k, number, b, m, c)
        at_b, at_m, at_c = tile_at(tile)
        y, x = at_m + group_y * 64 + quarter * 16, at_c + group_x * WN
        if RANKS > 1:
            for piece in range(WN // PIECE):
                put(own + piece * OWN, sums, piece)
            cuda.syncwarp()
            meet_cluster()
            # The blocks' sums of a piece are added up by one of them.
            for piece in range(RANK, WN // PIECE, RANKS):
                add_ranks(staged, own + piece * OWN, OWN, RANKS)
                cuda.syncwarp()
                leave(own + piece * OWN, at_b, y, x + piece * PIECE)
            cuda.syncwarp()
            meet_cluster()
        else:
            for piece in range(WN // PIECE):
                put(own, sums, piece)
                cuda.syncwarp()
                leave(own, at_b, y, x + piece * PIECE)
                cuda.syncwarp()
    cuda.syncthreads()
    if thread == 0:
        for stage in range(2 * STAGES):
            close_barrier(staged, 2 * stage)
    cuda.syncthreads()


TILES: dict[str, Mapping[str, int]] = {
    "128x256": {"BM": 128, "BN": 256, "WN": 256},
    "128x128": {"BM": 128, "BN": 128, "WN": 128},
    "128x64": {"BM": 128, "BN": 64, "WN": 64},
    "64x256": {"BM": 64, "BN": 256, "WN": 256},
    "64x128": {"BM": 64, "BN": 128, "WN": 128},
    "64x64": {"BM": 64, "BN": 64, "WN": 64},
    "64x32": {"BM": 64, "BN": 32, "WN": 32},
}
_NARROW = 64
"""Columns of a warp group whose products of a stage are soon over: more stages are at work at once."""
_PIECE = 32
"""Columns of a warp's sums that leave together."""
_MOST_BYTES = 224 * 1024
_STAGED_BYTES, _FEWEST_STAGES, _MOST_STAGES = 196 * 1024, 4, 16
"""All stages together, and how many there are."""


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
    plane = ROW_BYTES // size
    planes = tile.get("PLANES", 1)
    # Where columns lie side by side, a row of B has 64 of them, used or not.
    columns = tile["BN"] if by_k else max(tile["BN"], 64)
    stage = (tile["BM"] + columns) * 32 * planes
    turns = math.ceil(depth_of(root) / (plane * planes))
    piece, blocks = min(tile["WN"], _PIECE), tile.get("BLOCKS", 1)
    own = max(16 * (piece + 8), piece * (16 + 4))
    sums = own * (tile["WN"] // piece) * tile["BM"] // 16 if blocks > 1 else 0
    fitting = (min(_STAGED_BYTES, _MOST_BYTES - 4 * sums)) // (4 * stage)
    turns = math.ceil(turns / blocks)
    ahead = 1 if tile["WN"] > _NARROW else 2
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
        "GROUPS": tile["BM"] // 64,
        "AHEAD": ahead,
        "PIECE": piece,
        "OWN": own,
        "BLOCKS": blocks,
    }


def _scratch(root: Root, p: Parameters) -> int:
    """Barriers, all stages, and what each warp's sums leave through."""
    own = THREADS_PER_BLOCK // 32 * p["OWN"]
    if p["BLOCKS"] > 1:
        # All that warps which multiply have summed.
        own = p["GROUPS"] * 4 * p["WN"] // p["PIECE"] * p["OWN"]
    staged = p["STAGES"] * p["STAGE"] + own
    return 4 * (4 * p["STAGES"] + ALIGNMENT // 4 + staged)


# A multiply-add of warp groups in 16 bits and in TF32, in those of one warp in TF32.
_EFFORT = {2: 0.35, 4: 0.7}
# Rows of 128 bytes that come to a multiprocessor while one stage is waited for, and what one takes beside.
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
        waits = stages * (p["PLANES"] * rows * crowd / _AT_ONCE + _STAGE)
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
        __name__,
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
    for name in ("64x64_deep", "64x64", "64x128", "128x128")
}
RKERNELS = [
    *(_rkernel(name, tile, "") for name, tile in (TILES | _DEEP).items()),
    *(_rkernel(name, tile, "_words") for name, tile in TILES.items()),
    *(_rkernel(name, tile, "") for name, tile in _SHARED.items()),
    *(_rkernel(name, tile, "_words") for name, tile in _SHARED.items() if "deep" not in name),
]
