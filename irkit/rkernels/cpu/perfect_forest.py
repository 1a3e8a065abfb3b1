"""perfect_forest: trees of one depth, whose children are found by doubling.

Sums are taken in tree order for each row, so they are those of a row-at-a-time walk to the last bit. A block
of rows shares each tree's nodes while they are in cache. Of its topmost levels all nodes are asked of all
rows, column by column, which vector registers do with no look-up, and the answers on the way to each leaf of
these levels are merged from below; further down every row looks up its own nodes. A few rows alone walk
several trees at once, so that their loads overlap.
"""

from xdsl.dialects.builtin import f32, f64

from irkit.dialects import te
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import tensor_type
from irkit.rkernels.cpu.forest import fits_stack, rows_together
from irkit.rkernels.families.forest import visits
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work

DEEPEST_TOP = 5
"""Levels whose nodes are asked of all rows: each further one doubles what is asked."""


def level_walk(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    acc = STACK(BLOCK * COLUMNS)
    node = STACK_INT(BLOCK)
    # The answers of the topmost levels, node by node: whether rows go right, then their way from there.
    way = STACK_BYTES(BLOCK << TOP)
    column = INPUTS(scratch)
    for start in range(r0, r1, BLOCK):
        count = min(BLOCK, r1 - start)
        for i in range(count):
            for c in range(COLUMNS):
                acc[i * COLUMNS + c] = BASE[c]
        missing = 0
        if TOP > 0 and count >= FEW:
            for f in range(FEATURES):
                for i in range(count):
                    x = X[(start + i) * FEATURES + f]
                    column[f * BLOCK + i] = x
                    missing |= x != x
        if count < FEW:
            for i in range(count):
                at = (start + i) * FEATURES
                # Where nothing is missing, a step reads a third less and decides by one comparison.
                missing = 0
                for f in range(FEATURES):
                    missing |= X[at + f] != X[at + f]
                for tree in range(0, TREES, BLOCK):
                    trees = min(BLOCK, TREES - tree)
                    for t in range(trees):
                        node[t] = int32(0)
                    for level in range(DEPTH):
                        for t in range(trees):
                            n = (tree + t) * NODES + node[t]
                            nan_left = NAN_LEFT[n] if missing else uint8(0)
                            left = GO_LEFT(X[at + FEATURE[n]], THRESHOLD[n], nan_left)
                            node[t] = int32(2 * node[t] + 2) - int32(left)
                    # Of one sum no addition waits for memory.
                    total = acc[i]
                    for t in range(trees):
                        leaf = (tree + t) * (NODES + 1) - NODES + node[t]
                        if COLUMNS == 1:
                            total += VALUE[leaf]
                        elif WIDTH == 1:
                            acc[i * COLUMNS + OUTPUT[tree + t]] += VALUE[leaf]
                        else:
                            for c in range(COLUMNS):
                                acc[i * COLUMNS + c] += VALUE[leaf * COLUMNS + c]
                    if COLUMNS == 1:
                        acc[i] = total
        else:
            for tree in range(TREES):
                first = tree * NODES
                if TOP == 0 or missing:
                    for i in range(count):
                        node[i] = int32(0)
                    for level in range(DEPTH):
                        for i in range(count):
                            n = node[i]
                            x = X[(start + i) * FEATURES + FEATURE[first + n]]
                            left = GO_LEFT(x, THRESHOLD[first + n], NAN_LEFT[first + n])
                            node[i] = int32(2 * n + 2) - int32(left)
                else:
                    for n in range((1 << TOP) - 1):
                        threshold = THRESHOLD[first + n]
                        at = FEATURE[first + n] * BLOCK
                        for i in range(BLOCK):
                            left = GO_LEFT(column[at + i], threshold, uint8(0))
                            way[n * BLOCK + i] = uint8(1) - uint8(left)
                    half = uint8(2)
                    end = (1 << TOP) // 2 - 1
                    for level in range(TOP - 1):
                        for n in range(end // 2, end):
                            at = n * BLOCK
                            below = (2 * n + 1) * BLOCK
                            for i in range(BLOCK):
                                right = uint8(0) - way[at + i]
                                far = way[below + BLOCK + i] | half
                                way[at + i] = (way[below + i] & ~right) | (far & right)
                        end = end // 2
                        half = uint8(half + half)
                    for i in range(BLOCK):
                        node[i] = int32((1 << TOP) - 1) + int32(way[i])
                    for level in range(TOP, DEPTH):
                        for i in range(count):
                            n = node[i]
                            x = X[(start + i) * FEATURES + FEATURE[first + n]]
                            left = GO_LEFT(x, THRESHOLD[first + n], uint8(0))
                            node[i] = int32(2 * n + 2) - int32(left)
                leaf = first + tree - NODES
                if WIDTH == 1:
                    output = OUTPUT[tree]
                    for i in range(count):
                        acc[i * COLUMNS + output] += VALUE[leaf + node[i]]
                else:
                    for i in range(count):
                        for c in range(COLUMNS):
                            acc[i * COLUMNS + c] += VALUE[(leaf + node[i]) * COLUMNS + c]
        for i in range(count):
            for c in range(COLUMNS):
                STORE(OPERANDS, start + i, c, acc[i * COLUMNS + c])


def _top(root: Root) -> int:
    op = root.op
    assert isinstance(op, te.PerfectForestOp)
    return min(op.depth.value.data, DEEPEST_TOP)


def _asks(root: Root) -> bool:
    """Columns are floats that a register has lanes for, and sums fit."""
    return fits_stack(root) and tensor_type(root.op.operands[0]).element_type in (f32, f64)


def _scratch(root: Root, p: Parameters) -> int:
    """A block of rows, column by column."""
    x = tensor_type(root.op.operands[0])
    return x.get_shape()[-1] * p["BLOCK"] * x.element_type.compile_time_size


def _levels(part: Part) -> Work:
    nodes, leaves = visits(part.root)
    op = part.root.op
    assert isinstance(op, te.PerfectForestOp)
    top, depth = _top(part.root), op.depth.value.data
    trees, features = nodes // depth, tensor_type(op.x).get_shape()[-1]
    walked = work(node=part.rows * trees * (depth - top), leaf=part.rows * leaves)
    # A comparison and a merge of each of these levels' nodes, in vectors; columns are read across rows.
    asked = work(op=part.rows * trees * (2 << top), stride=part.rows * features)
    return walked + asked + part.store * part.elements


def _blocks(part: Part) -> Work:
    nodes, leaves = visits(part.root)
    return work(node=part.rows * nodes, leaf=part.rows * leaves) + part.store * part.elements


RKERNELS = [
    RKernel(
        "perfect_forest",
        "levels",
        "cpu",
        __name__,
        "level_walk",
        legal=_asks,
        work=_levels,
        parameters=lambda root: {"BLOCK": rows_together(root, 64), "FEW": 8, "TOP": _top(root)},
        choices={"BLOCK": range(1, 129), "FEW": range(1, 65)},
        scratch_bytes=_scratch,
    ),
    RKernel(
        "perfect_forest",
        "blocks",
        "cpu",
        __name__,
        "level_walk",
        work=_blocks,
        legal=fits_stack,
        parameters=lambda root: {"BLOCK": rows_together(root, 64), "FEW": 8, "TOP": 0},
        choices={"BLOCK": range(1, 129), "FEW": range(1, 65)},
    ),
]
