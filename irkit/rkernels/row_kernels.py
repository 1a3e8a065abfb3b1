"""What scales rows by sums along them on a GPU: a warp or a block a row, in registers or read anew."""

from __future__ import annotations

import math
from collections.abc import Callable

from irkit.dialects.roperator_root import Root
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.row_fours import (
    BLOCK,
    block_pieces,
    block_waits,
    in_fours,
    in_fours_of_a_block,
    warp_pieces,
    warp_waits,
)
from irkit.rkernels.work import Part, Work, work

_MOST_HELD = 32
"""Elements of a row that a thread keeps in registers."""
SHARED = 2 * 8 * (BLOCK // 32)
"""What each warp found, of two sums."""


def _held(lanes: int) -> Callable[[Root], Parameters]:
    """HELD: elements of a row that a thread keeps."""
    return lambda root: {"HELD": math.ceil(root.parallel[-1] / lanes)}


def _fits(lanes: int) -> Callable[[Root], bool]:
    return lambda root: root.parallel[-1] <= lanes * _MOST_HELD


def _waits(part: Part, rounds: float, lanes: int, barriers: int, sweeps: int) -> Work:
    """`sweeps` readings of a row by `lanes` lanes, `rounds` times, and two sums in registers."""
    chain = (sweeps + 2) * math.ceil(part.width / lanes)
    return work(chain=chain, shuffle=10, barrier=barriers) * rounds


def by_blocks(part: Part) -> float:
    """Threads that have something to do, a row for each block."""
    return part.rows * BLOCK


def _by_warps(part: Part) -> float:
    """The same, a row for each warp."""
    return part.rows * 32


def _by_warps_of_fours(part: Part) -> float:
    """The same, some rows for each warp."""
    return math.ceil(part.rows / warp_pieces(part.root)["ROWS"]) * 32


def row_rkernels(
    family: str,
    module: str,
    stored: Callable[[Root], bool],
    arithmetic: Callable[[Part, int], Work],
    arithmetic_of_fours: Callable[[Part], Work],
) -> list[RKernel]:
    """Five rKernels, whose templates `module` has: FAMILY_fours, _fours_block, _warp, _block and _long.

    `stored` says whether rows lie in memory as they are summed; `arithmetic` is what all elements of a part
    cost that reads each so many times, `arithmetic_of_fours` what they cost four at once.
    """

    def warp_work(part: Part) -> Work:
        rounds = part.rounds(part.rows, part.threads // 32)
        return _waits(part, rounds, 32, 0, 1) + arithmetic(part, 1)

    def block_work(part: Part, sweeps: int = 1) -> Work:
        return _waits(part, part.rows, part.threads, 2, sweeps) + arithmetic(part, sweeps)

    return [
        RKernel(
            family,
            "fours",
            "cuda",
            module,
            f"{family}_fours",
            legal=in_fours(32, stored),
            work=lambda part: warp_waits(part) + arithmetic_of_fours(part),
            parameters=warp_pieces,
            reassociates=True,
            vectors=("SOURCE",),
            spreads=_by_warps_of_fours,
        ),
        RKernel(
            family,
            "fours_block",
            "cuda",
            module,
            f"{family}_fours_block",
            legal=in_fours_of_a_block(stored),
            work=lambda part: block_waits(part) + arithmetic_of_fours(part),
            parameters=block_pieces,
            reassociates=True,
            vectors=("SOURCE",),
            scratch_bytes=SHARED,
            threads=BLOCK,
            spreads=by_blocks,
        ),
        RKernel(
            family,
            "warp",
            "cuda",
            module,
            f"{family}_warp",
            legal=_fits(32),
            work=warp_work,
            parameters=_held(32),
            reassociates=True,
            spreads=_by_warps,
        ),
        RKernel(
            family,
            "block",
            "cuda",
            module,
            f"{family}_block",
            legal=lambda root: root.parallel[-1] >= BLOCK and _fits(BLOCK)(root),
            work=block_work,
            parameters=_held(BLOCK),
            reassociates=True,
            scratch_bytes=SHARED,
            threads=BLOCK,
            spreads=by_blocks,
        ),
        RKernel(
            family,
            "long",
            "cuda",
            module,
            f"{family}_long",
            legal=lambda root: not _fits(BLOCK)(root),
            work=lambda part: block_work(part, 3),
            reassociates=True,
            scratch_bytes=SHARED,
            threads=BLOCK,
            spreads=by_blocks,
        ),
    ]
