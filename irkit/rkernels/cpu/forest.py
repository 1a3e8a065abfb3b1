"""forest: blocks of rows through one tree after another.

Sums are taken in tree order for each row, so they are those of a row-at-a-time walk to the last bit.
A block of rows shares each tree's nodes while they are in cache, and several rows walk at once.
"""

from irkit.dialects.roperator_root import Root
from irkit.rkernels.families.forest import columns, visits
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.work import Part, Work, work


def node_walk(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    acc = STACK(BLOCK * COLUMNS)
    node = STACK_INT(BLOCK + TOGETHER)
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
                    # Those beyond the last walk its tree once more, and are not asked.
                    for t in range(trees + TOGETHER):
                        node[t] = ROOT[min(tree + t, TREES - 1)]
                    for first in range(0, trees, TOGETHER):
                        moved = True
                        while moved:
                            moved = False
                            for t in range(first, first + TOGETHER):
                                n = node[t]
                                left = GO_LEFT(X[at + FEATURE[n]], THRESHOLD[n], NAN_LEFT[n])
                                # Both are read: a branch that nobody can foresee costs more.
                                near, far = LEFT[n], RIGHT[n]
                                after = near if left else far
                                moved |= after != n
                                node[t] = after
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
                for i in range(count):
                    node[i] = ROOT[tree]
                for first in range(0, count, TOGETHER):
                    # The last rows may be walked twice.
                    many = min(first, count - TOGETHER)
                    moved = True
                    while moved:
                        # They take a step together, so that their loads overlap; a leaf goes to itself.
                        moved = False
                        for i in range(many, many + TOGETHER):
                            n = node[i]
                            x = X[(start + i) * FEATURES + FEATURE[n]]
                            left = GO_LEFT(x, THRESHOLD[n], NAN_LEFT[n] if missing else uint8(0))
                            # Both are read: a branch that nobody can foresee costs more.
                            near, far = LEFT[n], RIGHT[n]
                            after = near if left else far
                            moved |= after != n
                            node[i] = after
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


RKERNELS = [
    RKernel(
        "forest",
        "blocks",
        "cpu",
        __name__,
        "node_walk",
        work=_work,
        legal=fits_stack,
        parameters=lambda root: {"BLOCK": rows_together(root, 128), "FEW": 16, "TOGETHER": 16},
        choices={"BLOCK": range(16, 257)},
    ),
]
