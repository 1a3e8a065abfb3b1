"""Elements that hang on sums along their rows: a row by a thread, some lanes, a warp or a block, which RANGE
gives whole.

What is read, or takes long, is kept in registers until the sums of the row are known; of rows too long for
that each sweep reads it anew. The sweeps themselves are printed (`irkit/rkernels/binding/row_sweeps.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC
from irkit.rkernels.binding.fours import TOGETHER
from irkit.rkernels.binding.row_sweeps import sweeps_of
from irkit.rkernels.families.rowwise import arithmetic, columns, rows, sums, words_kept
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

BLOCK = 256
_FEWEST = 64
"""Elements of a row that a block is worth."""
_MOST_WORDS = 64
"""Registers for what a thread keeps of its rows."""
_AT_ONCE = 8
"""Fours of all operands that a lane reads at once, where rows are short: so much hides the way to memory."""
_MANY_ROWS = 1024
"""So many rows for each that a warp takes at once leave no multiprocessor without."""
_FEW_LANES = 16
"""That share a row, so that a warp reads rows which lie side by side in memory."""
_ROWS_OF_LANES = 2
"""That these read at once."""


def rowwise_thread(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    r = r0 + THREAD
    while r < r1:
        ROW(OPERANDS, r, r1, 0, scratch)
        r += THREADS


def rowwise_lanes(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    warp, lane = divide(THREAD, 32)
    group, first = divide(lane, LANES)
    # All lanes of a warp stay together, whatever rows there are.
    r = r0 + warp * (32 // LANES * ROWS)
    while r < r1:
        ROW(OPERANDS, r + group * ROWS, r1, first, scratch)
        r += THREADS // 32 * (32 // LANES * ROWS)


def rowwise_warp(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    warp, lane = divide(THREAD, 32)
    r = r0 + warp * ROWS
    while r < r1:
        ROW(OPERANDS, r, r1, lane, scratch)
        r += THREADS // 32 * ROWS


def rowwise_block(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    thread = thread_index()
    r = r0 + RANK
    while r < r1:
        ROW(OPERANDS, r, r1, thread, scratch)
        r += RANKS


def _together(root: Root) -> int:
    return TOGETHER if columns(root) % TOGETHER == 0 else 1


def _thread_pieces(root: Root) -> Parameters:
    together = _together(root)
    return {"LANES": 1, "PIECES": columns(root) // together, "TOGETHER": together, "ROWS": 1}


def _lanes_pieces(root: Root) -> Parameters:
    together = _together(root)
    lanes = 1 << (columns(root) // together - 1).bit_length()
    return {"LANES": lanes, "PIECES": 1, "TOGETHER": together, "ROWS": _ROWS_OF_LANES}


def _warp_pieces(root: Root) -> Parameters:
    together = _together(root)
    pieces = math.ceil(columns(root) / (32 * together))
    count = math.prod(sweeps_of(root).op.rows[:-1]) if DYNAMIC not in root.parallel else _MANY_ROWS
    words = pieces * together * max(1, words_kept(root))
    many = max(1, min(4 * _AT_ONCE // words, count // _MANY_ROWS))
    return {
        "LANES": 32, "PIECES": pieces, "TOGETHER": together, "ROWS": 1 << (many.bit_length() - 1)
    }  # fmt: skip


def _block_pieces(root: Root) -> Parameters:
    together = _together(root)
    pieces = math.ceil(columns(root) / (BLOCK * together))
    return {"LANES": BLOCK, "PIECES": pieces, "TOGETHER": together, "ROWS": 1}


def _long_pieces(root: Root) -> Parameters:
    return {"LANES": BLOCK, "PIECES": 0, "TOGETHER": _together(root), "ROWS": 1}


def _fits(pieces: Callable[[Root], Parameters]) -> Callable[[Root], bool]:
    """Whether what a thread keeps has room in registers."""

    def legal(root: Root) -> bool:
        own = pieces(root)
        return own["PIECES"] * own["TOGETHER"] * max(1, words_kept(root)) <= _MOST_WORDS

    return legal


def _has_lanes(root: Root) -> bool:
    return 1 < _lanes_pieces(root)["LANES"] <= _FEW_LANES


def _is_narrow(root: Root) -> bool:
    """Whether a thread reads a row at once, or neighbours read rows of less than a sector."""
    return columns(root) <= TOGETHER


def _has_block(root: Root) -> bool:
    return columns(root) >= _FEWEST and _fits(_block_pieces)(root)


def _parts(root: Root, parameters: Parameters) -> int:
    """What each warp found, of each sum."""
    return 8 * (BLOCK // 32) * sums(root)


def _waits(part: Part, lanes: int, turns: float, sweeps: int, barriers: int) -> Work:
    """`sweeps` readings of memory by `lanes` lanes, and what they give one another, so many times."""
    count = sums(part.root)
    chain = (sweeps + count) * math.ceil(columns(part.root) / (lanes * _together(part.root)))
    shuffles = 5 * count if lanes > 1 else 0
    return work(chain=chain, shuffle=shuffles, barrier=barriers * count) * turns


def _thread_work(part: Part) -> Work:
    turns = part.rounds(rows(part), part.threads)
    return _waits(part, 1, turns, 1, 0) + arithmetic(part, 1, True)


def _lanes_work(part: Part) -> Work:
    own, count = _lanes_pieces(part.root), sums(part.root)
    turns = part.rounds(rows(part), part.threads // own["LANES"] * own["ROWS"])
    shuffles = (own["LANES"].bit_length() - 1) * count
    waits = work(chain=1 + count, shuffle=shuffles) * turns
    return waits + arithmetic(part, own["TOGETHER"], True)


def _warp_work(part: Part) -> Work:
    many = _warp_pieces(part.root)["ROWS"]
    turns = part.rounds(rows(part), part.threads // 32 * many)
    return _waits(part, 32, turns, 1, 0) + arithmetic(part, _together(part.root), True)


def _block_work(part: Part) -> Work:
    waits = _waits(part, BLOCK, rows(part), 1, 1)
    return waits + arithmetic(part, _together(part.root), True)


def _long_work(part: Part) -> Work:
    waits = _waits(part, BLOCK, rows(part), 1 + sums(part.root), 1)
    return waits + arithmetic(part, _together(part.root), False)


def _by_blocks(part: Part) -> float:
    return rows(part) * BLOCK


def _by_threads(part: Part) -> float:
    return rows(part)


def _by_lanes(part: Part) -> float:
    own = _lanes_pieces(part.root)
    return rows(part) / own["ROWS"] * own["LANES"]


def _by_warps(part: Part) -> float:
    return math.ceil(rows(part) / _warp_pieces(part.root)["ROWS"]) * 32


def _rkernels(family: str) -> list[RKernel]:
    return [
        RKernel(
            family,
            "thread",
            "cuda",
            __name__,
            "rowwise_thread",
            legal=lambda root: _is_narrow(root) and _fits(_thread_pieces)(root),
            work=_thread_work,
            parameters=_thread_pieces,
            aligns=True,
            reassociates=True,
            spreads=_by_threads,
        ),
        RKernel(
            family,
            "lanes",
            "cuda",
            __name__,
            "rowwise_lanes",
            legal=lambda root: _has_lanes(root) and _fits(_lanes_pieces)(root),
            work=_lanes_work,
            parameters=_lanes_pieces,
            aligns=True,
            reassociates=True,
            spreads=_by_lanes,
        ),
        RKernel(
            family,
            "warp",
            "cuda",
            __name__,
            "rowwise_warp",
            legal=_fits(_warp_pieces),
            work=_warp_work,
            parameters=_warp_pieces,
            aligns=True,
            reassociates=True,
            spreads=_by_warps,
        ),
        RKernel(
            family,
            "block",
            "cuda",
            __name__,
            "rowwise_block",
            legal=_has_block,
            work=_block_work,
            parameters=_block_pieces,
            aligns=True,
            reassociates=True,
            scratch_bytes=_parts,
            threads=BLOCK,
            spreads=_by_blocks,
        ),
        RKernel(
            family,
            "long",
            "cuda",
            __name__,
            "rowwise_block",
            legal=lambda root: columns(root) >= _FEWEST,
            work=_long_work,
            parameters=_long_pieces,
            aligns=True,
            reassociates=True,
            scratch_bytes=_parts,
            threads=BLOCK,
            spreads=_by_blocks,
        ),
    ]


RKERNELS = [*_rkernels("rowwise"), *_rkernels("row_sums")]
