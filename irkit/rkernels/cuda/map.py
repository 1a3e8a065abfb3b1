"""Elementwise work, copies, gathers, transpositions: every element of an rTask's part, one by one."""

import math
from typing import Final

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import f32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Operation

from irkit.dialects import te
from irkit.dialects.roperator_root import Root
from irkit.dialects.task import YieldOp
from irkit.dialects.types import DYNAMIC, ints, is_half, numpy_dtype, tensor_type
from irkit.rkernels.binding.fours import in_vectors
from irkit.rkernels.binding.turned import Turned, bytes_apart, length_of, turned
from irkit.rkernels.family import leading_parts
from irkit.rkernels.fused_work import KINDS, runs_on
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work


def map_elements(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    width = j1 - j0
    count = (r1 - r0) * width
    element, step = THREAD, THREADS
    while element < count:
        r, j = SPLIT(element, width)
        STORE(OPERANDS, r0 + r, j0 + j)
        element += step


def map_fetched(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    width = j1 - j0
    count = (r1 - r0) * width
    element, step = THREAD, THREADS

    def fetched(n):
        r, j = SPLIT(element + n * step, width)
        return FETCH(OPERANDS, r0 + r, j0 + j)

    def stored(n, known):
        r, j = SPLIT(element + n * step, width)
        STORE_FETCHED(OPERANDS, r0 + r, j0 + j, known)

    # What four elements read is on its way together.
    while element + 3 * step < count:
        one, two, three, four = fetched(0), fetched(1), fetched(2), fetched(3)
        stored(0, one)
        stored(1, two)
        stored(2, three)
        stored(3, four)
        element += 4 * step
    while element < count:
        stored(0, fetched(0))
        element += step


def map_fours(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    width = j1 - j0
    count = (r1 - r0) * width
    # A four lies in one row, at a multiple of four, or there is none.
    fours = count >> 2 if (width | j0) % 4 == 0 else 0
    four, step = THREAD, THREADS

    def fetched(n):
        r, j = SPLIT(4 * (four + n * step), width)
        return FETCH_FOUR(OPERANDS, r0 + r, j0 + j)

    def stored(n, known):
        r, j = SPLIT(4 * (four + n * step), width)
        STORE_FOUR(OPERANDS, r0 + r, j0 + j, known)

    if TWO:
        # What two fours read is on its way together.
        while four + step < fours:
            one = fetched(0)
            other = fetched(1)
            stored(0, one)
            stored(1, other)
            four += 2 * step
        if four < fours:
            one = fetched(0)
            stored(0, one)
    else:
        while four < fours:
            one = fetched(0)
            stored(0, one)
            four += step
    element = 4 * fours + THREAD
    while element < count:
        r, j = SPLIT(element, width)
        STORE(OPERANDS, r0 + r, j0 + j)
        element += step


def map_turned(task, tasks, rows, scratch, OPERANDS):
    """Tiles of 32 rows and 64 columns: lanes read along rows, which lie side by side, store along columns."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    warp, lane = divide(thread_index(), 32)
    warps = THREADS // 32
    tile = shared_of(TILED(0), scratch)
    held = cuda.local.array(64 // (THREADS // 32), TILED)
    # Rows are LENGTH that lie side by side, of each INNER, of each group; a part of one group or whole ones.
    first = divide(r0, INNER)[0]
    count = divide(r1 - r0, INNER)[0]
    length = min(count, LENGTH)
    groups = divide(count + LENGTH - 1, LENGTH)[0]
    down = divide(length + 31, 32)[0]
    across = divide(j1 - j0 + 63, 64)[0]
    whole = r0 - first * INNER + r1 - r0 == count * INNER
    turns = groups * INNER * down * across if whole else 0
    turn = RANK
    while turn < turns:
        above, piece = divide(turn, across)
        above, part = divide(above, down)
        group, inner = divide(above, INNER)
        left = j0 + 64 * piece
        top = first + group * LENGTH + 32 * part
        bottom = first + group * LENGTH + length
        # What is not there is read where something is, so that all reads are on their way together.
        r = min(top + lane, bottom - 1) * INNER + inner
        for n in range(64 // (THREADS // 32)):
            held[n] = LOAD_TILE(OPERANDS, r, min(left + warp + n * warps, j1 - 1))
        for n in range(64 // (THREADS // 32)):
            tile[(warp + n * warps) * 33 + lane] = held[n]
        cuda.syncthreads()
        for n in range(32 // (THREADS // 32)):
            row = warp + n * warps
            for half in range(2):
                column = 32 * half + lane
                if top + row < bottom and left + column < j1:
                    r = (top + row) * INNER + inner
                    STORE_TILE(OPERANDS, r, left + column, tile[column * 33 + row])
        cuda.syncthreads()
        turn += RANKS
    # Parts that divide what is INNER: nothing lies side by side.
    width = j1 - j0
    rest = 0 if whole else (r1 - r0) * width
    element = thread_index() + THREADS * RANK
    while element < rest:
        r, j = divide(element, width)
        STORE(OPERANDS, r0 + r, j0 + j)
        element += THREADS * RANKS


AT_ONCE: Final = 4
"""Elements whose operands a thread reads before it stores the first."""
_HEAVY = ("erf", "pow", "function", "sin")
_FREE = (arith.ConstantOp, linalg.FillOp, tensor.DimOp, tensor.EmptyOp, YieldOp)
SIDE_BY_SIDE: Final = 3
"""Blocks that hide memory and long functions from one another; more leave few registers for four elements."""
MANY: Final = 1 << 17
"""Elements from which on each thread of a GPU has several."""


def _many(root: Root) -> bool:
    """Of a batch there may be any number of rows."""
    return DYNAMIC in root.parallel or math.prod(root.parallel) >= MANY


def _in_fours(root: Root) -> bool:
    """Many rows of whole fours, of which all that is read lies side by side, or is one element."""
    if root.body is None or len(root.parallel) < 2 or not _many(root):
        return False
    if DYNAMIC in root.parallel[1:] or root.parallel[-1] % 4:
        return False
    assert root.body.last_op is not None
    if not all(in_vectors(tensor_type(v).element_type) for v in root.body.last_op.operands):
        return False
    return all(_side_by_side(op) for op in root.body.ops if not isinstance(op, _FREE))


def _turn(root: Root) -> Parameters:
    """TWO: whether a turn is of two fours. Registers that eight copies of a function take would leave too few
    threads to wait beside one another."""
    ops = [] if root.body is None else root.body.walk()
    return {"TWO": int(not any(KINDS.get(type(op)) in _HEAVY for op in ops))}


def _side_by_side(op: Operation) -> bool:
    """Whether neighbours of a row are made of neighbours, or of one element: also those of slices that are
    picked whole, as rows of a table are, and of what other dimensions are padded or put together along."""
    if isinstance(op, te.GatherOp):
        return op.axis.value.data < tensor_type(op.data).get_num_dims() - 1
    if isinstance(op, tensor.ConcatOp):
        return op.dim.value.data < tensor_type(op.result).get_num_dims() - 1
    if isinstance(op, tensor.PadOp):
        return ints(op.static_low)[-1:] == ints(op.static_high)[-1:] == [0]
    if isinstance(op, tensor.ExtractSliceOp):
        whole = tensor_type(op.result).get_num_dims() == tensor_type(op.source).get_num_dims()
        return whole and not op.offsets and not op.strides and ints(op.static_strides)[-1:] == [1]
    return isinstance(op, linalg.GenericOp) and runs_on(op)


TILE: Final = (32, 64)
"""Rows and columns of an operand that is read along rows, which a block has in shared memory at once."""
_CACHED: Final = 1 << 20
"""Bytes of sectors that a part reads of which none is read twice."""
_SHORTEST: Final = 16
"""Rows that lie side by side, and columns, from which on a tile is worth it."""


def _is_turned(root: Root) -> bool:
    """Many elements, of which an operand lies along rows."""
    found = turned(root) if _many(root) else None
    return found is not None and min(length_of(root, found), root.parallel[-1]) >= _SHORTEST


def _whole_tiles(root: Root, tasks: int) -> list[int]:
    """Parts of whole tiles, of rows first and then of columns too. What is inside of the loops along which an
    operand lies is not cut."""
    found, grid = turned(root), leading_parts(root, tasks, whole_rows=True)
    if found is None:
        return grid
    grid = [parts if d <= found.last else 1 for d, parts in enumerate(grid)]
    for d in range(found.first, found.last + 1):
        rows = math.prod(root.parallel[d : found.last + 1])
        grid[d] = min(grid[d], math.ceil(rows / TILE[0]))
    if root.parallel[0] != DYNAMIC:
        left = tasks // math.prod(grid)
        grid[-1] = max(1, min(left, math.ceil(root.parallel[-1] / TILE[1])))
    return grid


def _tiles(part: Part) -> float:
    """How many tiles a part has."""
    found = turned(part.root)
    assert found is not None
    length = math.prod(part.sizes[found.first : found.last + 1])
    groups = part.rows / length
    return groups * part.rounds(length, TILE[0]) * part.rounds(part.width, TILE[1])


def _turned_work(part: Part) -> Work:
    # What lies apart in memory does not in shared memory.
    each = Work({kind: n for kind, n in part.store.units.items() if kind != "stride"})
    return (each + work(scalar=2)) * part.elements + work(round=1, barrier=2) * _tiles(part)


def _tile_bytes(root: Root, parameters: Parameters) -> int:
    found = turned(root)
    assert found is not None
    return TILE[1] * (TILE[0] + 1) * numpy_dtype(_tiled(found)).itemsize


def _tiled(found: Turned) -> Attribute:
    """What shared memory has of it: a 16-bit float is one of 32 bits once read."""
    element = tensor_type(found.operand).element_type
    return f32 if is_half(element) else element


def _threads(part: Part) -> float:
    """A thread an element."""
    return part.elements


def _threads_of_fours(part: Part) -> float:
    """A thread a four."""
    return part.elements / 4


def _whole_fours(root: Root, tasks: int) -> list[int]:
    """Rows, and parts of them only where all are alike and begin at a multiple of four."""
    grid = leading_parts(root, tasks, whole_rows=True)
    if root.parallel[0] != DYNAMIC:
        left, fours = tasks // math.prod(grid), root.parallel[-1] // 4
        grid[-1] = next((n for n in range(min(left, fours), 1, -1) if fours % n == 0), 1)
    return grid


def _fours_work(part: Part) -> Work:
    at_once = 1 + _turn(part.root)["TWO"]
    turns, left = divmod(part.rounds(part.elements / 4, part.threads), at_once)
    turns, left = (turns, left) if at_once > 1 else (0, turns)
    return part.store * part.elements + work(round=turns * 1.5 + left)


def _fetched_work(part: Part) -> Work:
    each = part.store
    gathers = each.units.get("gather", 0)
    turns, left = divmod(part.rounds(part.elements, part.threads), AT_ONCE)
    # Three of four are not waited for, but what they read comes behind it.
    waits = turns * (1.5 + gathers * AT_ONCE) + left * (1 + gathers)
    return each * part.elements + work(round=waits) + _sectors(part)


def _sectors(part: Part) -> Work:
    """What comes with elements that lie apart; what a part needs of it later is gone if it needs much."""
    apart = bytes_apart(part.root) * part.elements
    return work(byte=apart if apart > _CACHED else 0)


def _work(part: Part) -> Work:
    each = part.store
    waits = 1 + each.units.get("gather", 0)
    rounds = part.rounds(part.elements, part.threads)
    return each * part.elements + work(round=waits * rounds) + _sectors(part)


# Of those that are estimated alike, the first.
RKERNELS = [
    RKernel(
        "map",
        "turned",
        "cuda",
        __name__,
        "map_turned",
        legal=_is_turned,
        grid=_whole_tiles,
        work=_turned_work,
        scratch_bytes=_tile_bytes,
        spreads=lambda part: _tiles(part) * part.threads,
    ),
    RKernel(
        "map",
        "fours",
        "cuda",
        __name__,
        "map_fours",
        legal=_in_fours,
        grid=_whole_fours,
        parameters=_turn,
        work=_fours_work,
        spreads=_threads_of_fours,
        side_by_side=SIDE_BY_SIDE,
        aligns=True,
    ),
    RKernel(
        "map",
        "fetched",
        "cuda",
        __name__,
        "map_fetched",
        legal=_many,
        work=_fetched_work,
        spreads=_threads,
        side_by_side=SIDE_BY_SIDE,
    ),
    RKernel(
        "map",
        "elements",
        "cuda",
        __name__,
        "map_elements",
        work=_work,
        spreads=_threads,
        side_by_side=SIDE_BY_SIDE,
    ),
]
