"""map.turned: elementwise work on an operand that lies along another dimension: transpositions, and what is
fused with them.

A tile of it is turned in vector registers into memory that stays in the first cache, and then read as the
result lies: of either side whole cache lines are touched, each once (blocked transposition; see Lam, Rothberg
and Wolf, The Cache Performance and Optimizations of Blocked Algorithms, 1991).
"""

import math
from typing import Final

from irkit.dialects.roperator_root import Root
from irkit.dialects.types import is_half, numpy_dtype, tensor_type
from irkit.rkernels.binding.turned import length_of, turned
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work


def map_turned(task, tasks, rows, scratch, OPERANDS):
    """Rows that lie side by side in the operand are LENGTH, of each INNER, of each group; of them an rTask
    may have any part. A tile is of DEPTH such rows and WIDTH columns, turned by squares of SIDE."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    tile = TILES(scratch)
    places = stack_int64(SIDE)
    for run in range(r0 // (LENGTH * INNER) * INNER, ((r1 - 1) // (LENGTH * INNER) + 1) * INNER):
        first = run // INNER * LENGTH * INNER + run % INNER
        begin = max(0, (r0 - first + INNER - 1) // INNER)
        end = min(LENGTH, (r1 - first + INNER - 1) // INNER)
        for top in range(begin, end, DEPTH):
            row, down = first + top * INNER, min(DEPTH, end - top)
            deep = down // SIDE * SIDE
            for left in range(j0, j1, WIDTH):
                across = min(WIDTH, j1 - left)
                wide = across // SIDE * SIDE
                for c in range(0, wide, SIDE):
                    for i in range(SIDE):
                        places[i] = PLACE(OPERANDS, row, left + c + i)
                    for t in range(0, deep, SIDE):
                        turn_whole_runs(SIDE, SIDE, WIDTH, tile, t * WIDTH + c, SOURCE, places, t)
                for c in range(across):
                    place = PLACE(OPERANDS, row, left + c)
                    for t in range(deep if c < wide else 0, down):
                        tile[t * WIDTH + c] = SOURCE[place + t]
                for t in range(down):
                    for c in range(across):
                        STORE_TILE(OPERANDS, row + t * INNER, left + c, tile[t * WIDTH + c])


_DEPTH: Final = 32
"""Rows of a tile."""
_RUN: Final = 512
"""Bytes of a tile's row: all of it takes half of a small first cache."""
_VECTOR: Final = 64
"""Bytes of a row of a square."""
_SHORTEST: Final = 8
"""Rows that lie side by side, and columns, from which on a tile is worth it."""


def _is_turned(root: Root) -> bool:
    """An operand lies along rows that are many."""
    found = turned(root)
    if found is None or is_half(tensor_type(found.operand).element_type):
        return False
    return min(length_of(root, found), root.parallel[-1]) >= _SHORTEST


def _bytes(root: Root) -> int:
    found = turned(root)
    assert found is not None
    return numpy_dtype(tensor_type(found.operand).element_type).itemsize


def _parameters(root: Root) -> Parameters:
    size = _bytes(root)
    return {"DEPTH": _DEPTH, "WIDTH": _RUN // size, "SIDE": min(16, _VECTOR // size)}


def _scratch(root: Root, parameters: Parameters) -> int:
    return parameters["DEPTH"] * parameters["WIDTH"] * _bytes(root)


def _work(part: Part) -> Work:
    """Each element is copied; what then is read of the operand lies side by side."""
    found = turned(part.root)
    assert found is not None
    units = dict(part.store.units)
    units["stride"] = units.get("stride", 1.0) - 1.0
    length = math.prod(part.sizes[found.first : found.last + 1])
    tiles = part.rounds(length, _DEPTH) * part.rounds(part.width, _RUN // _bytes(part.root))
    rows = work(row=2 * part.rows * part.rounds(part.width, _RUN // _bytes(part.root)))
    return (
        (Work(units) + work(pack=1)) * part.elements + rows + work(tile=tiles * part.rows / length)
    )


RKERNELS = [
    RKernel(
        "map",
        "turned",
        "cpu",
        __name__,
        "map_turned",
        legal=_is_turned,
        work=_work,
        parameters=_parameters,
        scratch_bytes=_scratch,
    ),
]
