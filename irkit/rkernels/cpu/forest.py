"""forest: blocks of rows through one tree after another.

Sums are taken in tree order for each row, so they are those of a row-at-a-time walk to the last bit.
A block of rows shares each tree's nodes while they are in cache, and several rows walk at once.
"""

from irkit.rkernels.families.forest import visits
from irkit.rkernels.rkernel import RKernel
from irkit.rkernels.work import Part, Work, work


def node_walk(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    acc = STACK(BLOCK * COLUMNS)
    node = STACK_INT(BLOCK)
    for start in range(r0, r1, BLOCK):
        count = min(BLOCK, r1 - start)
        for i in range(count):
            for c in range(COLUMNS):
                acc[i * COLUMNS + c] = BASE[c]
        for tree in range(TREES):
            for i in range(count):
                node[i] = ROOT[tree]
            moved = count > 1
            while not moved and LEFT[node[0]] != node[0]:
                # A single row has nobody to overlap with.
                n = node[0]
                left = GO_LEFT(X[start * FEATURES + FEATURE[n]], THRESHOLD[n], NAN_LEFT[n])
                node[0] = LEFT[n] if left else RIGHT[n]
            while moved:
                # All rows take a step together, so that their loads overlap; a leaf goes to itself.
                moved = False
                for i in range(count):
                    n = node[i]
                    x = X[(start + i) * FEATURES + FEATURE[n]]
                    left = GO_LEFT(x, THRESHOLD[n], NAN_LEFT[n])
                    after = LEFT[n] if left else RIGHT[n]
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
        parameters={"BLOCK": 64},
        choices={"BLOCK": range(1, 129)},
    ),
]
