"""Tree ensembles. Sums run in tree order from BASE in every variant, so that they are exact.

`perfect_forest_staged` keeps a tile of rows and a group of trees in shared memory: rows with the feature as
the slow index, so that the lanes of a warp, which are neighbouring rows, never meet in a bank; nodes
packed as {feature, threshold}. It serves many rows. `perfect_forest_trees` gives every thread one tree
of one row and adds the leaves up afterwards: for few rows. `perfect_forest_direct`, and `forest_rows` of
linked and of packed trees, read everything from where it is: for rows too long for shared memory, and for
trees too deep to pad.

Node i of a perfect tree sits in slot i + 1 of 2^DEPTH: the children of slot s are 2s and 2s + 1.
"""

import math

from xdsl.ir import SSAValue

from irkit.dialects import te
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.rkernels.families.forest import AnyForest, visits, walked
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

THREADS_PER_BLOCK = 256
_FIRST_LEVEL = 192 << 10
"""Bytes of the cache of a multiprocessor, or less where shared memory takes some of them."""


def _size(value: SSAValue) -> int:
    """Bytes of one element."""
    return numpy_dtype(tensor_type(value).element_type).itemsize


def _staged_bytes(root: Root, parameters: Parameters) -> int:
    """A tile of rows, and a group of trees: packed nodes, and leaves where a leaf is one value."""
    assert isinstance(root.op, te.PerfectForestOp)
    item, features = _size(root.op.x), tensor_type(root.op.x).get_shape()[1]
    one_value = tensor_type(root.op.value).get_shape()[-1] == 1
    leaf = _size(root.op.value) if one_value else 0
    slots = parameters["GROUP"] << root.op.depth.value.data
    rows = THREADS_PER_BLOCK * parameters["ROWS_PER_THREAD"]
    return -(-(rows * features * item + slots * (2 * item + leaf)) // 16) * 16


def _trees_bytes(root: Root, parameters: Parameters) -> int:
    """What each tree says about each row of a tile: a leaf's value, or its number."""
    op = walked(root)
    trees = tensor_type(op.output).get_shape()[0]
    return parameters["TILE"] * trees * max(4, _size(op.value))


def forest_rows(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    acc = cuda.local.array(COLUMNS, FLOAT)
    for r in range(r0 + thread_index(), r1, THREADS):
        for c in range(COLUMNS):
            acc[c] = BASE[c]
        for tree in range(TREES):
            node = ROOT[tree]
            moving = True
            while moving:
                feature, threshold, nan_left, near, far = NODE(OPERANDS, node)
                left = GO_LEFT(X[r * FEATURES + feature], threshold, nan_left)
                after = near if left else far
                # A leaf names itself as its children.
                moving = after != node
                node = after
            if WIDTH == 1:
                value = VALUE[node]
                for c in range(COLUMNS):
                    if COLUMNS == 1 or c == OUTPUT[tree]:
                        acc[c] += value
            else:
                for c in range(COLUMNS):
                    acc[c] += VALUE[node * WIDTH + c]
        for c in range(COLUMNS):
            STORE(OPERANDS, r, c, acc[c])


def perfect_forest_staged(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    thread = thread_index()
    table = shared_like(X, scratch)
    used = scratch + FEATURES * (THREADS * ROWS_PER_THREAD) * itemsize(X)
    nodes = shared_like(X, used)
    leaves = shared_like(VALUE, used + (GROUP << DEPTH) * 2 * itemsize(X))
    acc = cuda.local.array((ROWS_PER_THREAD, COLUMNS), FLOAT)
    slot = cuda.local.array(ROWS_PER_THREAD, uint32)
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
        for group in range(0, TREES, GROUP):
            trees = min(GROUP, TREES - group)
            if group > 0:
                cuda.syncthreads()
            element = thread
            while element < trees * NODES:
                tree, node = divide(element, NODES)
                place = group * NODES + element
                word = uint32(FEATURE[place] * (THREADS * ROWS_PER_THREAD) * 2 + NAN_LEFT[place])
                node_store(nodes, (tree << DEPTH) + node + 1, word, THRESHOLD[place])
                element += THREADS
            if WIDTH == 1:
                element = thread
                while element < trees << DEPTH:
                    leaves[element] = VALUE[(group << DEPTH) + element]
                    element += THREADS
            cuda.syncthreads()
            if thread < count:
                for tree in range(trees):
                    for i in range(ROWS_PER_THREAD):
                        slot[i] = uint32(1)
                    for level in range(DEPTH):
                        for i in range(ROWS_PER_THREAD):
                            word, threshold = node_load(nodes, (tree << DEPTH) + slot[i])
                            x = table[(word >> 1) + thread + i * THREADS]
                            left = GO_LEFT(x, threshold, word & 1)
                            slot[i] = slot[i] * 2 + (uint32(0) if left else uint32(1))
                    for i in range(ROWS_PER_THREAD):
                        leaf = int64(slot[i]) - (1 << DEPTH)
                        if WIDTH == 1:
                            value = leaves[(tree << DEPTH) + leaf]
                            for c in range(COLUMNS):
                                if COLUMNS == 1 or c == OUTPUT[group + tree]:
                                    acc[i, c] += value
                        else:
                            first = (((group + tree) << DEPTH) + leaf) * WIDTH
                            for c in range(COLUMNS):
                                acc[i, c] += VALUE[first + c]
        for i in range(ROWS_PER_THREAD):
            if thread + i * THREADS < count:
                for c in range(COLUMNS):
                    STORE(OPERANDS, tile + thread + i * THREADS, c, acc[i, c])
        tile += THREADS * ROWS_PER_THREAD


def perfect_forest_trees(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    thread = thread_index()
    votes = shared_like(VALUE, scratch)
    chosen = shared_i32(scratch)
    for tile in range(r0, r1, TILE):
        count = min(TILE, r1 - tile)
        pair = thread
        while pair < count * TREES:
            row, tree = divide(pair, TREES)
            place = tree * SPAN + FIRST
            # The children of a tree's node n are 2 n + 1 and 2 n + 2.
            onward = 1 - place
            for level in range(DEPTH):
                feature, threshold, nan_left = LEVEL_NODE(OPERANDS, place)
                left = GO_LEFT(X[(tile + row) * FEATURES + feature], threshold, nan_left)
                place = 2 * place + onward + (0 if left else 1)
            leaf = (tree << DEPTH) + place + onward - 1 - NODES
            if WIDTH == 1:
                votes[pair] = VALUE[leaf]
            else:
                chosen[pair] = leaf
            pair += THREADS
        cuda.syncthreads()
        element = thread
        while element < count * COLUMNS:
            row, c = divide(element, COLUMNS)
            acc = BASE[c]
            for tree in range(TREES):
                if WIDTH == 1:
                    if COLUMNS == 1 or c == OUTPUT[tree]:
                        acc += votes[row * TREES + tree]
                else:
                    acc += VALUE[chosen[row * TREES + tree] * WIDTH + c]
            STORE(OPERANDS, tile + row, c, acc)
            element += THREADS
        cuda.syncthreads()


def perfect_forest_direct(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    acc = cuda.local.array(COLUMNS, FLOAT)
    for r in range(r0 + thread_index(), r1, THREADS):
        for c in range(COLUMNS):
            acc[c] = BASE[c]
        for tree in range(TREES):
            place = tree * SPAN + FIRST
            # The children of a tree's node n are 2 n + 1 and 2 n + 2.
            onward = 1 - place
            for level in range(DEPTH):
                feature, threshold, nan_left = LEVEL_NODE(OPERANDS, place)
                left = GO_LEFT(X[r * FEATURES + feature], threshold, nan_left)
                place = 2 * place + onward + (0 if left else 1)
            leaf = (tree << DEPTH) + place + onward - 1 - NODES
            if WIDTH == 1:
                value = VALUE[leaf]
                for c in range(COLUMNS):
                    if COLUMNS == 1 or c == OUTPUT[tree]:
                        acc[c] += value
            else:
                for c in range(COLUMNS):
                    acc[c] += VALUE[leaf * WIDTH + c]
        for c in range(COLUMNS):
            STORE(OPERANDS, r, c, acc[c])


def _rows_work(part: Part) -> Work:
    """Every node is two loads, one after the other, from where they are."""
    nodes, leaves = visits(part.root)
    rounds = part.rounds(part.rows, part.threads)
    waits = work(chain=2 * nodes + leaves) * rounds
    each = work(node=4 * nodes, leaf=leaves) * part.rows
    return waits + each + part.store * part.elements


def _staged_work(parameters: Parameters):
    """Rows and trees go to shared memory first."""

    def counted(part: Part) -> Work:
        op = part.root.op
        assert isinstance(op, te.PerfectForestOp)
        nodes, leaves = visits(part.root)
        trees, slots = tensor_type(op.output).get_shape()[0], 1 << op.depth.value.data
        tile = THREADS_PER_BLOCK * parameters["ROWS_PER_THREAD"]
        tiles = part.rounds(part.rows, tile)
        groups = math.ceil(trees / parameters["GROUP"])
        staged = min(part.rows, tile) * tensor_type(op.x).get_shape()[1]
        # All wait while a group's nodes are written.
        written = work(row=0.14 * trees * slots, barrier=2 * groups, chain=nodes + leaves)
        once = work(pack=staged, round=2 * groups)
        # Of several tiles one is written while another block of the multiprocessor walks.
        waits = written * (0.5 + 0.5 * tiles)
        each = work(node=nodes, leaf=leaves) * part.rows
        return waits + once * tiles + each + part.store * part.elements

    return counted


def _trees_work(part: Part) -> Work:
    """A row's trees side by side, then its leaves one after another; blocks of other rows go on meanwhile."""
    op = walked(part.root)
    nodes, leaves = visits(part.root)
    trees, features = tensor_type(op.output).get_shape()[0], tensor_type(op.x).get_shape()[1]
    rounds = part.rounds(trees, part.threads)
    # Two loads a level, from the second-level cache; sums wait for nothing but those before them.
    once = work(chain=9.5 * rounds * op.depth.value.data + 0.3 * trees, barrier=2)
    each = work(node=_scattered(op) * nodes, leaf=leaves, pack=12 * features) * part.rows
    return once + each + part.store * part.elements


def _scattered(op: AnyForest) -> float:
    """Nodes that a multiprocessor visits, all in shared memory, while it visits one that lies anywhere: the
    first-level cache holds a share of them."""
    heap = isinstance(op, te.HeapForestOp)
    arrays = [op.nodes] if heap else op.operands[1:4]
    nodes = sum(math.prod(tensor_type(v).get_shape()) * _size(v) for v in arrays)
    near, far = (4, 3) if heap else (5, 22)
    return near + far * max(0.0, 1 - _FIRST_LEVEL / nodes)


def _staged(variant: str, parameters: Parameters) -> RKernel:
    return RKernel(
        "perfect_forest",
        variant,
        "cuda",
        __name__,
        "perfect_forest_staged",
        work=_staged_work(parameters),
        scratch_bytes=_staged_bytes,
        threads=THREADS_PER_BLOCK,
        parameters=parameters,
    )


_TREES = {"TILE": 8}
_LEVELLED = ("heap_forest", "perfect_forest")
RKERNELS = [
    RKernel("forest", "rows", "cuda", __name__, "forest_rows", work=_rows_work),
    RKernel("packed_forest", "rows", "cuda", __name__, "forest_rows", work=_rows_work),
    _staged("staged", {"GROUP": 8, "ROWS_PER_THREAD": 2}),
    _staged("staged_wide", {"GROUP": 1, "ROWS_PER_THREAD": 1}),
    *(
        RKernel(
            family,
            "trees",
            "cuda",
            __name__,
            "perfect_forest_trees",
            work=_trees_work,
            scratch_bytes=_trees_bytes,
            parameters=_TREES,
            choices={"TILE": range(1, 33)},
        )
        for family in _LEVELLED
    ),
    *(
        RKernel(family, "direct", "cuda", __name__, "perfect_forest_direct", work=_rows_work)
        for family in _LEVELLED
    ),
]
