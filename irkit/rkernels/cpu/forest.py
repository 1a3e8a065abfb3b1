"""forest and packed_forest: blocks of rows through one tree after another.

Sums are taken in tree order for each row, so they are those of a row-at-a-time walk to the last bit.
A block of rows shares each tree's nodes while they are in cache: the larger the trees, the larger the blocks.
Several rows, or of one row several trees, walk at once. Or no row walks: of a tree of few leaves all nodes
are asked of all rows of a block, from the lowest up, in vector registers, and each chooses of its children
the one whose leaf its rows come to.
"""

import math

from xdsl.dialects.builtin import f32, f64

from irkit.dialects.roperator_root import Root
from irkit.dialects.types import tensor_type
from irkit.rkernels.families.forest import columns, inner_nodes, most_leaves, visits, walked
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work


def node_walk(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    acc = STACK(BLOCK * COLUMNS)
    node = STACK_INT(BLOCK + TOGETHER)
    walk = STACK_INT(TOGETHER)
    for start in range(r0, r1, BLOCK):
        count = min(BLOCK, r1 - start)
        for i in range(count):
            for c in range(COLUMNS):
                acc[i * COLUMNS + c] = BASE[c]
        if count < FEW:
            for i in range(count):
                at = (start + i) * FEATURES
                for tree in range(0, TREES, BLOCK):
                    trees = min(BLOCK, TREES - tree)
                    for first in range(0, trees, TOGETHER):
                        for t in range(TOGETHER):
                            # Those beyond the last walk its tree once more, and are not asked.
                            walk[t] = ROOT[min(tree + first + t, TREES - 1)]
                        for level in range(DEPTH):
                            moved = False
                            for t in range(TOGETHER):
                                element_by_element()
                                n = walk[t]
                                feature, threshold, nan_left, near, far = NODE(OPERANDS, n)
                                # Both are read: a branch that nobody can foresee costs more.
                                after = (
                                    near if GO_LEFT(X[at + feature], threshold, nan_left) else far
                                )
                                moved |= after != n
                                walk[t] = after
                            if not moved:
                                break
                        for t in range(TOGETHER):
                            node[first + t] = walk[t]
                    for t in range(trees):
                        n = node[t]
                        if WIDTH == 1:
                            acc[i * COLUMNS + OUTPUT[tree + t]] += VALUE[n]
                        else:
                            for c in range(COLUMNS):
                                acc[i * COLUMNS + c] += VALUE[n * COLUMNS + c]
        else:
            missing = False
            for k in range(start * FEATURES, (start + count) * FEATURES):
                missing |= X[k] != X[k]
            for tree in range(TREES):
                for first in range(0, count, TOGETHER):
                    # The last rows may be walked twice.
                    many = min(first, count - TOGETHER)
                    for t in range(TOGETHER):
                        walk[t] = ROOT[tree]
                    for level in range(DEPTH):
                        # They take a step together, so that their loads overlap; a leaf goes to itself.
                        moved = False
                        for t in range(TOGETHER):
                            element_by_element()
                            n = walk[t]
                            feature, threshold, nan_left, near, far = NODE(OPERANDS, n)
                            x = X[(start + many + t) * FEATURES + feature]
                            left = GO_LEFT(x, threshold, nan_left if missing else False)
                            after = near if left else far
                            moved |= after != n
                            walk[t] = after
                        if not moved:
                            break
                    for t in range(TOGETHER):
                        node[many + t] = walk[t]
                for i in range(count):
                    n = node[i]
                    if WIDTH == 1:
                        acc[i * COLUMNS + OUTPUT[tree]] += VALUE[n]
                    else:
                        for c in range(COLUMNS):
                            acc[i * COLUMNS + c] += VALUE[n * COLUMNS + c]
        for i in range(count):
            for c in range(COLUMNS):
                STORE(OPERANDS, start + i, c, acc[i * COLUMNS + c])


def node_questions(task, tasks, rows, scratch, OPERANDS):
    """Every node of BLOCK rows at once: of its children's leaves, each row's by what it is asked."""
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    acc = STACK(BLOCK * COLUMNS)
    # By node, and behind them by leaf: the number of the leaf that each row comes to from there.
    way = uint8p(scratch)
    for leaf in range(LEAVES):
        for i in range(BLOCK):
            way[(LEAVES + leaf) * BLOCK + i] = uint8(leaf)
    # Columns of a block, then the same with -inf, which is left of every threshold, where a value is missing.
    column = INPUTS(scratch + 2 * LEAVES * BLOCK)
    for start in range(r0, r1, BLOCK):
        count = min(BLOCK, r1 - start)
        for i in range(count):
            for c in range(COLUMNS):
                acc[i * COLUMNS + c] = BASE[c]
        missing = int64(0)
        for k in range(start * FEATURES, (start + count) * FEATURES):
            missing |= X[k] != X[k]
        # Rows beyond the last are whatever was there, and are asked for nothing.
        for i in range(count):
            for f in range(FEATURES):
                column[f * BLOCK + i] = X[(start + i) * FEATURES + f]
        if missing:
            missing = int64(FEATURES)
            for k in range(FEATURES * BLOCK):
                x = column[k]
                column[FEATURES * BLOCK + k] = x if x == x else INPUT(-math.inf)
        for tree in range(TREES):
            first = int64(ROOT[tree])
            end = int64(ROOT[tree + 1]) if tree + 1 < TREES else int64(NODES)
            inner = (end - first) // 2
            # A child that is a leaf has its place behind those of all nodes.
            behind = LEAVES - inner
            for n in range(first + inner - 1, first - 1, -1):
                near = LEFT[n] - first
                far = RIGHT[n] - first
                near += behind if near >= inner else 0
                far += behind if far >= inner else 0
                asked = FEATURE[n] + NAN_LEFT[n] * missing
                choose_ways(
                    BLOCK,
                    LT,
                    column,
                    asked * BLOCK,
                    THRESHOLD[n],
                    way,
                    near * BLOCK,
                    far * BLOCK,
                    (n - first) * BLOCK,
                )
            came = (0 if inner > 0 else LEAVES) * BLOCK
            leaf = first + inner
            if WIDTH == 1:
                output = OUTPUT[tree]
                for i in range(count):
                    acc[i * COLUMNS + output] += VALUE[leaf + way[came + i]]
            else:
                for i in range(count):
                    for c in range(COLUMNS):
                        acc[i * COLUMNS + c] += VALUE[(leaf + way[came + i]) * COLUMNS + c]
        for i in range(count):
            for c in range(COLUMNS):
                STORE(OPERANDS, start + i, c, acc[i * COLUMNS + c])


SUMS = 1 << 15
"""Sums of a block of rows that lie on the stack, of 16 rows at least."""
MOST_COLUMNS = 1 << 15
"""So many sums of 16 rows are half of what a thread's stack has."""


def rows_together(root: Root, most: int) -> int:
    """Rows of a block, at most `most`: the more sums a row has, the fewer."""
    return max(16, min(most, SUMS // max(columns(root), 1)))


def fits_stack(root: Root) -> bool:
    """Whether the sums of the smallest block do."""
    return columns(root) <= MOST_COLUMNS


def _work(part: Part) -> Work:
    nodes, leaves = visits(part.root)
    return work(node=part.rows * nodes, leaf=part.rows * leaves) + part.store * part.elements


ASKED_TOGETHER = 64
"""Rows of a block whose ways are the bytes of one large vector register."""
_NUMBERED = 256
"""Leaves that a byte tells apart."""


def _in_order(root: Root) -> bool:
    """Trees of few leaves, columns that a register has lanes for, and sums that fit."""
    leaves = most_leaves(root)
    if leaves is None or leaves > _NUMBERED or columns(root) > SUMS // ASKED_TOGETHER:
        return False
    return tensor_type(root.op.operands[0]).element_type in (f32, f64)


def _block_of_columns(root: Root, p: Parameters) -> int:
    """A byte for each node and leaf of a tree, and the columns twice, of each row of a block."""
    x, leaves = tensor_type(root.op.operands[0]), most_leaves(root)
    assert leaves is not None
    return 2 * p["BLOCK"] * (leaves + x.get_shape()[-1] * x.element_type.compile_time_size)


def _asked(part: Part) -> Work:
    """All nodes of whole blocks: a comparison and a choice among bytes. Columns are read across rows."""
    x = tensor_type(part.root.op.operands[0])
    lanes = x.element_type.compile_time_size / 4
    rows = math.ceil(part.rows / ASKED_TOGETHER) * ASKED_TOGETHER
    asked = work(op=rows * inner_nodes(part.root) * (lanes + 1), stride=rows * x.get_shape()[-1])
    return asked + work(leaf=part.rows * visits(part.root)[1]) + part.store * part.elements


LEAST_ROWS, MOST_ROWS = 128, 4096
ROWS_BYTES = 512 << 10
"""Of a block: they stay in a cache while trees come and go."""


def _walked_together(root: Root) -> int:
    """Rows of a block: as many as a tree has nodes, which memory is then read for about once."""
    op = walked(root)
    x, trees = tensor_type(op.x), max(1, tensor_type(op.output).get_shape()[0])
    nodes = tensor_type(op.operands[1]).get_shape()[0] // trees
    row = max(1, x.get_shape()[1] * x.element_type.compile_time_size)
    wanted = max(1, min(nodes, ROWS_BYTES // row, MOST_ROWS))
    return rows_together(root, max(LEAST_ROWS, 1 << wanted.bit_length() - 1))


def _blocks(family: str) -> RKernel:
    return RKernel(
        family,
        "blocks",
        "cpu",
        __name__,
        "node_walk",
        work=_work,
        legal=fits_stack,
        parameters=lambda root: {"BLOCK": _walked_together(root), "FEW": 16, "TOGETHER": 16},
        choices={"BLOCK": range(16, MOST_ROWS + 1)},
    )


RKERNELS = [
    RKernel(
        "forest",
        "questions",
        "cpu",
        __name__,
        "node_questions",
        work=_asked,
        legal=_in_order,
        parameters={"BLOCK": ASKED_TOGETHER},
        scratch_bytes=_block_of_columns,
    ),
    _blocks("forest"),
    _blocks("packed_forest"),
]
