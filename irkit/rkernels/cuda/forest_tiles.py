"""Tree ensembles for tens to thousands of rows: lanes of a warp are rows, warps share out the trees.

A tile of 32 rows lies in shared memory, with the feature as the slow index. The lanes of a warp walk the same
tree: near its root they read the same nodes, which is one access for all of them, and each reads its own bank
of the tile. A thread walks TOGETHER trees side by side, so that a load of one does not wait for those of the
others. Of CHUNK trees at once each row's leaves go to shared memory, and are added in tree order from BASE,
so that the sums are exact, while other warps walk the next trees: there are two such buffers.

Where a row is long and its walks are short, SKEW turns the rows of a feature by its number, so that to lay
the tile out costs no more than its bytes.
"""

import math

from xdsl.ir import SSAValue

from irkit.dialects import te
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.rkernels.families.forest import columns, visits, walked
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

THREADS_PER_BLOCK, TILE = 256, 32
_TOGETHER, _CHUNK = 4, 32
# Turns of a warp's loop that a bank conflict of all lanes takes, over those of a few.
_CONFLICT = 12
# What a node costs, over one in shared memory.
_LOADS: dict[type, float] = {
    te.ForestOp: 6,
    te.HeapForestOp: 1.26,
    te.PackedForestOp: 2,
    te.PerfectForestOp: 2.5,
}


def _size(value: SSAValue) -> int:
    """Bytes of one element."""
    return numpy_dtype(tensor_type(value).element_type).itemsize


def _tile_bytes(root: Root, parameters: Parameters) -> int:
    """A tile of rows, and twice what the trees of a chunk say: a leaf's value, or its number."""
    op = walked(root)
    features = tensor_type(op.x).get_shape()[1]
    said = max(4, _size(op.value))
    return TILE * (features * _size(op.x) + 2 * parameters["CHUNK"] * said)


def _parameters(root: Root) -> Parameters:
    """Rows are skewed where to lay them out straight would cost more than the walks; a warp adds up its SHARE
    of the columns."""
    op = walked(root)
    features = tensor_type(op.x).get_shape()[1]
    skew = int(_CONFLICT * features > visits(root)[0])
    share = math.ceil(columns(root) / (THREADS_PER_BLOCK // TILE))
    return {"TOGETHER": _TOGETHER, "CHUNK": _CHUNK, "SKEW": skew, "SHARE": share}


def forest_tiles(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    thread = thread_index()
    lane, warp = thread & 31, thread >> 5
    table = shared_like(X, scratch)
    said = scratch + FEATURES * 32 * itemsize(X)
    votes = shared_like(VALUE, said)
    chosen = shared_i32(said)
    acc = cuda.local.array(SHARE, FLOAT)
    nodes = cuda.local.array(TOGETHER, int32)
    terms = cuda.local.array(TOGETHER, FLOAT)
    for tile in range(r0, r1, 32):
        count = min(32, r1 - tile)
        cuda.syncthreads()
        element = thread
        while element < count * FEATURES:
            row, feature = divide(element, FEATURES)
            table[feature * 32 + ((row + feature * SKEW) & 31)] = X[tile * FEATURES + element]
            element += THREADS
        for share in range(SHARE):
            acc[share] = BASE[min(warp + share * (THREADS // 32), COLUMNS - 1)]
        cuda.syncthreads()
        half = 0
        for first in range(0, TREES, CHUNK):
            trees = min(CHUNK, TREES - first)
            if lane < count:
                for group in range(warp * TOGETHER, trees, THREADS // 32 * TOGETHER):
                    for i in range(TOGETHER):
                        nodes[i] = ROOT[first + min(group + i, trees - 1)]
                    moving = True
                    while moving:
                        moving = False
                        for i in range(TOGETHER):
                            node = nodes[i]
                            feature, threshold, nan_left, near, far = NODE(OPERANDS, node)
                            turned = mad32(feature, int32(SKEW), int32(lane)) & int32(31)
                            x = table[mad32(feature, int32(32), turned)]
                            # A leaf names itself as its children.
                            nodes[i] = near if GO_LEFT(x, threshold, nan_left) else far
                            moving = moving | (nodes[i] != node)
                    for i in range(TOGETHER):
                        if group + i < trees:
                            place = half + (group + i) * 32 + lane
                            if WIDTH == 1:
                                votes[place] = VALUE[nodes[i]]
                            else:
                                chosen[place] = nodes[i]
            cuda.syncthreads()
            if lane < count:
                for share in range(SHARE):
                    c = warp + share * (THREADS // 32)
                    total = acc[share]
                    for group in range(0, trees, TOGETHER):
                        for i in range(TOGETHER):
                            place = half + min(group + i, trees - 1) * 32 + lane
                            if WIDTH == 1:
                                terms[i] = votes[place]
                            else:
                                terms[i] = VALUE[int64(chosen[place]) * WIDTH + min(c, WIDTH - 1)]
                        for i in range(TOGETHER):
                            tree = min(group + i, trees - 1)
                            mine = WIDTH > 1 or COLUMNS == 1 or c == OUTPUT[first + tree]
                            if mine and c < COLUMNS and group + i < trees:
                                total += terms[i]
                    acc[share] = total
            half = CHUNK * 32 - half
        if lane < count:
            for share in range(SHARE):
                c = warp + share * (THREADS // 32)
                if c < COLUMNS:
                    STORE(OPERANDS, tile + lane, c, acc[share])


def perfect_forest_tiles(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    thread = thread_index()
    lane, warp = thread & 31, thread >> 5
    table = shared_like(X, scratch)
    said = scratch + FEATURES * 32 * itemsize(X)
    votes = shared_like(VALUE, said)
    chosen = shared_i32(said)
    acc = cuda.local.array(SHARE, FLOAT)
    nodes = cuda.local.array(TOGETHER, int32)
    onward = cuda.local.array(TOGETHER, int32)
    terms = cuda.local.array(TOGETHER, FLOAT)
    for tile in range(r0, r1, 32):
        count = min(32, r1 - tile)
        cuda.syncthreads()
        element = thread
        while element < count * FEATURES:
            row, feature = divide(element, FEATURES)
            table[feature * 32 + ((row + feature * SKEW) & 31)] = X[tile * FEATURES + element]
            element += THREADS
        for share in range(SHARE):
            acc[share] = BASE[min(warp + share * (THREADS // 32), COLUMNS - 1)]
        cuda.syncthreads()
        half = 0
        for first in range(0, TREES, CHUNK):
            trees = min(CHUNK, TREES - first)
            if lane < count:
                for group in range(warp * TOGETHER, trees, THREADS // 32 * TOGETHER):
                    for i in range(TOGETHER):
                        nodes[i] = (first + min(group + i, trees - 1)) * SPAN + FIRST
                        # The children of a tree's node n are 2 n + 1 and 2 n + 2.
                        onward[i] = 1 - nodes[i]
                    for level in range(DEPTH):
                        for i in range(TOGETHER):
                            node = nodes[i]
                            feature, threshold, nan_left = LEVEL_NODE(OPERANDS, node)
                            turned = mad32(feature, int32(SKEW), int32(lane)) & int32(31)
                            x = table[mad32(feature, int32(32), turned)]
                            left = GO_LEFT(x, threshold, nan_left)
                            right = int32(0) if left else int32(1)
                            nodes[i] = add32(mad32(node, int32(2), onward[i]), right)
                    for i in range(TOGETHER):
                        if group + i < trees:
                            leaf = ((first + group + i) << DEPTH) + nodes[i] + onward[i] - 1 - NODES
                            place = half + (group + i) * 32 + lane
                            if WIDTH == 1:
                                votes[place] = VALUE[leaf]
                            else:
                                chosen[place] = leaf
            cuda.syncthreads()
            if lane < count:
                for share in range(SHARE):
                    c = warp + share * (THREADS // 32)
                    total = acc[share]
                    for group in range(0, trees, TOGETHER):
                        for i in range(TOGETHER):
                            place = half + min(group + i, trees - 1) * 32 + lane
                            if WIDTH == 1:
                                terms[i] = votes[place]
                            else:
                                terms[i] = VALUE[int64(chosen[place]) * WIDTH + min(c, WIDTH - 1)]
                        for i in range(TOGETHER):
                            tree = min(group + i, trees - 1)
                            mine = WIDTH > 1 or COLUMNS == 1 or c == OUTPUT[first + tree]
                            if mine and c < COLUMNS and group + i < trees:
                                total += terms[i]
                    acc[share] = total
            half = CHUNK * 32 - half
        if lane < count:
            for share in range(SHARE):
                c = warp + share * (THREADS // 32)
                if c < COLUMNS:
                    STORE(OPERANDS, tile + lane, c, acc[share])


def _work(part: Part) -> Work:
    """Warps wait for one node after another, and each row's leaves are added one by one.

    A linked node is five loads, one of a perfect tree three, a packed one is one; near the root the lanes of
    a warp share them.
    """
    op = walked(part.root)
    nodes, leaves = visits(part.root)
    trees, features = tensor_type(op.output).get_shape()[0], tensor_type(op.x).get_shape()[1]
    chunks = math.ceil(trees / _CHUNK)
    turns = math.ceil(trees / (part.threads / TILE * _TOGETHER)) * op.depth.value.data
    waits = 1.1 * turns + 2.3 * chunks + 0.035 * trees
    # A part of the waits is of all warps, the rest of some, while others walk.
    once = work(chain=3 * waits, round=0.65 * waits)
    a_node = _LOADS[type(op)]
    each = work(node=a_node * nodes, leaf=10 * trees + leaves, pack=5 * features) * part.rows
    return once + each + part.store * part.elements


RKERNELS = [
    RKernel(
        family,
        "tiles",
        "cuda",
        __name__,
        f"{template}_tiles",
        work=_work,
        scratch_bytes=_tile_bytes,
        threads=THREADS_PER_BLOCK,
        parameters=_parameters,
        choices={"SKEW": (0, 1), "CHUNK": range(8, 65, 8)},
        rows_at_once=TILE,
    )
    for family, template in (
        ("forest", "forest"),
        ("packed_forest", "forest"),
        ("heap_forest", "perfect_forest"),
        ("perfect_forest", "perfect_forest"),
    )
]
