"""Rows in memory that threads keep in registers by fours: what softmax and layer normalisation share."""

from __future__ import annotations

import math
from collections.abc import Callable

from irkit.dialects.roperator_root import Root
from irkit.dialects.types import DYNAMIC, numpy_dtype, tensor_type
from irkit.rkernels.rkernel import Parameters
from irkit.rkernels.work import Part, Work, work

BLOCK = 256
_MOST_WORDS = 32
"""Registers of 32 bits for what a thread keeps of a row; as many more are for what is on its way."""
_AT_ONCE = 8
"""Fours of all rows that a lane keeps where rows are short: as much is on its way as hides the way."""
_MANY_ROWS = 1024
"""So many rows for each that a warp takes at once leave no multiprocessor without."""


def in_fours(lanes: int, stored: Callable[[Root], bool]) -> Callable[[Root], bool]:
    """Whether rows are `stored` in memory, in fours that so many lanes can keep."""

    def legal(root: Root) -> bool:
        assert root.value is not None
        columns = root.parallel[-1]
        wide = numpy_dtype(tensor_type(root.value).element_type).itemsize // 4 or 1
        return columns % 4 == 0 and 0 < columns * wide <= lanes * _MOST_WORDS and stored(root)

    return legal


def in_fours_of_a_block(stored: Callable[[Root], bool]) -> Callable[[Root], bool]:
    """The same for a block, each of whose threads has some."""
    fits = in_fours(BLOCK, stored)
    return lambda root: root.parallel[-1] >= 4 * BLOCK and fits(root)


def warp_pieces(root: Root) -> Parameters:
    """PIECES of a row that a lane keeps, and how many ROWS at once."""
    pieces = math.ceil(root.parallel[-1] / 128)
    count = math.prod(root.parallel[:-1]) if DYNAMIC not in root.parallel else _MANY_ROWS
    rows = max(1, min(_AT_ONCE // pieces, count // _MANY_ROWS))
    return {"PIECES": pieces, "ROWS": 1 << (rows.bit_length() - 1)}


def block_pieces(root: Root) -> Parameters:
    """PIECES of a row that a thread keeps."""
    return {"PIECES": math.ceil(root.parallel[-1] / (4 * BLOCK))}


def warp_waits(part: Part) -> Work:
    """What a warp waits for: sums along its rows, and exchanges of one row after another."""
    warps, rows = part.threads // 32, warp_pieces(part.root)["ROWS"]
    turns = part.rounds(part.rows, warps * rows)
    return work(chain=2 * math.ceil(part.width / 32), shuffle=10 * rows) * turns


def block_waits(part: Part) -> Work:
    """The same of a block, of a row."""
    chain = 2 * math.ceil(part.width / part.threads)
    return work(chain=chain, shuffle=10, barrier=2) * part.rows
