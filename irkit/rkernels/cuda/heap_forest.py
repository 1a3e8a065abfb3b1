"""Perfect trees of 8-byte nodes for many rows: nodes stream through shared memory while rows stay there.

A tile of rows lies in shared memory with the feature as the slow index, so that the lanes of a warp, which
are neighbouring rows, never meet in a bank. Groups of trees are copied into one of two buffers, as they lie,
while the group in the other one is walked: a barrier a group is all that a block waits for. A thread walks
TOGETHER trees of ROWS_PER_THREAD rows side by side, so that a load of one does not wait for those of others.
Where leaves are few bytes they come with their nodes, LEAVES of them at once. Sums run in tree order from
BASE.
"""

import math

from xdsl.ir import SSAValue

from irkit.dialects import te
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.rkernels.families.forest import visits
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

THREADS_PER_BLOCK = 256
_NODE, _COPY = 8, 16
_MOST_BYTES, _MOST_GROUP = 16 << 10, 64
"""Of a buffer, unless one tree takes more; trees of a group."""
_ROOM = 200 << 10
"""Bytes that rows and both buffers may take of a multiprocessor's."""


def _size(value: SSAValue) -> int:
    """Bytes of one element."""
    return numpy_dtype(tensor_type(value).element_type).itemsize


def _op(root: Root) -> te.HeapForestOp:
    assert isinstance(root.op, te.HeapForestOp)
    return root.op


def _tree_bytes(root: Root, leaves: int) -> int:
    """Of a tree's nodes, and of its leaves where these come with them."""
    op = _op(root)
    return (_NODE + (_size(op.value) if leaves else 0)) << op.depth.value.data


def _parameters(root: Root) -> Parameters:
    op = _op(root)
    trees, places, width = tensor_type(op.value).get_shape()
    leaves = _COPY // _size(op.value)
    if width > 1 or places % leaves or _tree_bytes(root, leaves) > _MOST_BYTES // 2:
        leaves = 0
    group = max(1, min(_MOST_GROUP, trees, _MOST_BYTES // _tree_bytes(root, leaves)))
    together = next(n for n in (4, 2, 1) if group >= n)
    rows = next((n for n in (2, 1) if _bytes(root, group, n, leaves) <= _ROOM), 1)
    return {
        "GROUP": group // together * together,
        "TOGETHER": together,
        "ROWS_PER_THREAD": rows,
        "LEAVES": leaves,
    }


def _bytes(root: Root, group: int, rows: int, leaves: int) -> int:
    """A tile of rows, and both buffers."""
    features = tensor_type(_op(root).x).get_shape()[1]
    tile = THREADS_PER_BLOCK * rows * features * 4
    return tile + 2 * group * _tree_bytes(root, leaves)


def _scratch(root: Root, parameters: Parameters) -> int:
    p = parameters
    return _bytes(root, p["GROUP"], p["ROWS_PER_THREAD"], p["LEAVES"])


def _fits(root: Root) -> bool:
    """Whether a tile of rows and two trees are in a block's shared memory; a copy is of 16 bytes."""
    op = root.op
    if not isinstance(op, te.HeapForestOp) or op.depth.value.data < 1:
        return False
    return _scratch(root, _parameters(root)) <= _ROOM


def heap_forest_streamed(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    thread = thread_index()
    table = shared_like(X, scratch)
    buffers = scratch + FEATURES * (THREADS * ROWS_PER_THREAD) * itemsize(X)
    node_bytes = (GROUP << DEPTH) * 8
    buffer_bytes = node_bytes + (((GROUP << DEPTH) * itemsize(VALUE)) if LEAVES else 0)
    acc = cuda.local.array((ROWS_PER_THREAD, COLUMNS), FLOAT)
    slot = cuda.local.array((TOGETHER, ROWS_PER_THREAD), uint32)
    tile = r0
    while tile < r1:
        count = min(THREADS * ROWS_PER_THREAD, r1 - tile)
        cuda.syncthreads()
        element = thread
        while element < count * FEATURES:
            row, feature = divide(element, FEATURES)
            table[feature * (THREADS * ROWS_PER_THREAD) + row] = X[tile * FEATURES + element]
            element += THREADS
        for i in range(ROWS_PER_THREAD):
            for c in range(COLUMNS):
                acc[i, c] = BASE[c]
        half = 0
        # The turn of group g copies it while group g - 1 is walked.
        for group in range(0, TREES + GROUP, GROUP):
            await_copies(0)
            cuda.syncthreads()
            if group < TREES:
                copied = min(GROUP, TREES - group) << DEPTH
                words = shared_like(HEAP, buffers + half * buffer_bytes)
                piece = thread * 4
                while piece < copied * 2:
                    copy_async(words, piece, HEAP, (group << DEPTH) * 2 + piece, 4, True)
                    piece += THREADS * 4
                if LEAVES:
                    leaves = shared_like(VALUE, buffers + half * buffer_bytes + node_bytes)
                    piece = thread * LEAVES
                    while piece < copied:
                        copy_async(leaves, piece, VALUE, (group << DEPTH) + piece, LEAVES, True)
                        piece += THREADS * LEAVES
                commit_copies()
            half = 1 - half
            first = group - GROUP
            if first >= 0 and thread < count:
                trees = min(GROUP, TREES - first)
                nodes = shared_like(X, buffers + half * buffer_bytes)
                leaves = shared_like(VALUE, buffers + half * buffer_bytes + node_bytes)
                for several in range(0, trees, TOGETHER):
                    for t in range(TOGETHER):
                        for i in range(ROWS_PER_THREAD):
                            slot[t, i] = uint32(1)
                    for level in range(DEPTH):
                        for t in range(TOGETHER):
                            tree = min(several + t, trees - 1)
                            for i in range(ROWS_PER_THREAD):
                                word, threshold = node_load(nodes, (tree << DEPTH) + slot[t, i])
                                at = (word & uint32(0x7FFFFFFF)) * (THREADS * ROWS_PER_THREAD)
                                x = table[at + thread + i * THREADS]
                                left = GO_LEFT(x, threshold, word >> uint32(31))
                                slot[t, i] = slot[t, i] * 2 + (uint32(0) if left else uint32(1))
                    for t in range(TOGETHER):
                        if several + t < trees:
                            tree = several + t
                            for i in range(ROWS_PER_THREAD):
                                leaf = int64(slot[t, i]) - (1 << DEPTH)
                                if WIDTH == 1:
                                    if LEAVES:
                                        value = leaves[(tree << DEPTH) + leaf]
                                    else:
                                        value = VALUE[((first + tree) << DEPTH) + leaf]
                                    for c in range(COLUMNS):
                                        if COLUMNS == 1 or c == OUTPUT[first + tree]:
                                            acc[i, c] += value
                                else:
                                    start = (((first + tree) << DEPTH) + leaf) * WIDTH
                                    for c in range(COLUMNS):
                                        acc[i, c] += VALUE[start + c]
        for i in range(ROWS_PER_THREAD):
            if thread + i * THREADS < count:
                for c in range(COLUMNS):
                    STORE(OPERANDS, tile + thread + i * THREADS, c, acc[i, c])
        tile += THREADS * ROWS_PER_THREAD


def _work(part: Part) -> Work:
    """A tile's walks, of as many rows as it has room for if there are several, and the copying of all trees;
    of few rows, nodes one after another."""
    op = _op(part.root)
    parameters = _parameters(part.root)
    nodes, leaves = visits(part.root)
    trees, features = tensor_type(op.output).get_shape()[0], tensor_type(op.x).get_shape()[1]
    tile = THREADS_PER_BLOCK * parameters["ROWS_PER_THREAD"]
    tiles = part.rounds(part.rows, tile)
    groups = math.ceil(trees / parameters["GROUP"])
    copied = trees * _tree_bytes(part.root, parameters["LEAVES"])
    # A thread walks for all of its rows, whether they are there or not.
    walked = min(part.rows * parameters["ROWS_PER_THREAD"], tile) if tiles == 1 else tile * tiles
    together = parameters["TOGETHER"]
    # Of one tile nobody else walks while its loads are under way.
    alone = 1.5 if tiles == 1 else 1.0
    waits = work(barrier=groups, round=alone * (0.04 + 0.15 * together) * nodes / together)
    gathered = leaves if parameters["LEAVES"] else 7 * leaves
    each = work(node=0.8 * nodes, leaf=gathered, pack=4 * features) * walked
    copies = work(pack=0.8 * copied / _NODE)
    return (waits + copies) * tiles + each + part.store * part.elements


RKERNELS = [
    RKernel(
        "heap_forest",
        "streamed",
        "cuda",
        __name__,
        "heap_forest_streamed",
        legal=_fits,
        work=_work,
        scratch_bytes=_scratch,
        threads=THREADS_PER_BLOCK,
        parameters=_parameters,
        choices={
            "GROUP": range(1, _MOST_GROUP + 1),
            "TOGETHER": range(1, 5),
            "ROWS_PER_THREAD": (1, 2, 4),
            "LEAVES": (0,),
        },
        streams=True,
        rows_at_once=THREADS_PER_BLOCK,
    )
]
