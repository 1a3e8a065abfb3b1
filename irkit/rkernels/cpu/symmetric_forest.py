"""perfect_forest of symmetric trees: all nodes of a level ask one thing, so that no row looks a node up.

Dorogush, Ershov, Gulin, CatBoost: gradient boosting with categorical features support (2018). The answers
of a row are the bits of its leaf's number. Columns of a block of rows are compared in vector registers, level
by level, and leaves are then added tree by tree for each row: sums are those of a walk, to the last bit. Of a
few rows alone several trees are asked at once, so that loads overlap.
"""

from irkit.dialects import te
from irkit.dialects.roperator_root import Root
from irkit.dialects.types import tensor_type
from irkit.rkernels.cpu.forest import fits_stack, rows_together
from irkit.rkernels.families.forest import visits
from irkit.rkernels.rkernel import Parameters, RKernel
from irkit.rkernels.work import Part, Work, work


def symmetric_walk(task, tasks, rows, scratch, OPERANDS):
    r0, r1, j0, j1 = RANGE(task, tasks, rows)
    acc = STACK(BLOCK * COLUMNS)
    leaf = STACK_INT(BLOCK)
    column = INPUTS(scratch)
    for start in range(r0, r1, BLOCK):
        count = min(BLOCK, r1 - start)
        for i in range(count):
            for c in range(COLUMNS):
                acc[i * COLUMNS + c] = BASE[c]
        missing = 0
        if count >= FEW:
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
                        leaf[t] = int32(0)
                    for level in range(DEPTH):
                        for t in range(trees):
                            n = (tree + t) * NODES + (1 << level) - 1
                            nan_left = NAN_LEFT[n] if missing else uint8(0)
                            left = GO_LEFT(X[at + FEATURE[n]], THRESHOLD[n], nan_left)
                            leaf[t] = int32(2 * leaf[t] + 1) - int32(left)
                    # Of one sum no addition waits for memory.
                    total = acc[i]
                    for t in range(trees):
                        n = (tree + t) * (NODES + 1) + leaf[t]
                        if COLUMNS == 1:
                            total += VALUE[n]
                        elif WIDTH == 1:
                            acc[i * COLUMNS + OUTPUT[tree + t]] += VALUE[n]
                        else:
                            for c in range(COLUMNS):
                                acc[i * COLUMNS + c] += VALUE[n * COLUMNS + c]
                    if COLUMNS == 1:
                        acc[i] = total
        else:
            for tree in range(TREES):
                for i in range(BLOCK):
                    leaf[i] = int32(0)
                for level in range(DEPTH):
                    n = tree * NODES + (1 << level) - 1
                    threshold = THRESHOLD[n]
                    nan_left = NAN_LEFT[n]
                    at = FEATURE[n] * BLOCK
                    # Rows beyond the last are whatever was there, and are asked for nothing.
                    if missing:
                        for i in range(BLOCK):
                            left = GO_LEFT(column[at + i], threshold, nan_left)
                            leaf[i] = int32(2 * leaf[i] + 1) - int32(left)
                    else:
                        for i in range(BLOCK):
                            left = GO_LEFT(column[at + i], threshold, uint8(0))
                            leaf[i] = int32(2 * leaf[i] + 1) - int32(left)
                first = tree * (NODES + 1)
                if WIDTH == 1:
                    output = OUTPUT[tree]
                    for i in range(count):
                        acc[i * COLUMNS + output] += VALUE[first + leaf[i]]
                else:
                    for i in range(count):
                        for c in range(COLUMNS):
                            acc[i * COLUMNS + c] += VALUE[(first + leaf[i]) * COLUMNS + c]
        for i in range(count):
            for c in range(COLUMNS):
                STORE(OPERANDS, start + i, c, acc[i * COLUMNS + c])


def _symmetric(root: Root) -> bool:
    op = root.op
    assert isinstance(op, te.PerfectForestOp)
    return op.symmetric is not None and fits_stack(root)


def _columns(root: Root, p: Parameters) -> int:
    """A block of rows, column by column."""
    x = tensor_type(root.op.operands[0])
    return x.get_shape()[-1] * p["BLOCK"] * x.element_type.compile_time_size


def _asked(part: Part) -> Work:
    """A comparison and a bit of each level, in vectors; columns are read across rows, leaves one by one."""
    levels, leaves = visits(part.root)
    features = tensor_type(part.root.op.operands[0]).get_shape()[-1]
    asked = work(op=part.rows * levels * 2, stride=part.rows * features)
    return asked + work(leaf=part.rows * leaves) + part.store * part.elements


RKERNELS = [
    RKernel(
        "perfect_forest",
        "symmetric",
        "cpu",
        __name__,
        "symmetric_walk",
        legal=_symmetric,
        work=_asked,
        parameters=lambda root: {"BLOCK": rows_together(root, 128), "FEW": 8},
        choices={"BLOCK": range(16, 513), "FEW": range(1, 65)},
        scratch_bytes=_columns,
    ),
]
