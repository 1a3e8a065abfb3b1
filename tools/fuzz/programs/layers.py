"""Steps that are whole layers: recurrences, forests, and rows of CSR matrices."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.graph.recurrent import ACTIVATIONS, LayerOp
from irkit.dialects.types import DYNAMIC, is_float, numpy_dtype
from tools.fuzz.programs.facts import Facts
from tools.fuzz.programs.program import RandomProgram, element_of, shape_of

CELLS = (graph.RnnCellOp, graph.GruCellOp, graph.LstmCellOp)
LAYERS = (graph.RnnOp, graph.GruOp, graph.LstmOp)


def recurrence(p: RandomProgram, x: SSAValue) -> None:
    """A cell on rank 2, a layer on rank 3."""
    shape, known, element = shape_of(x), p.facts[x], element_of(x)
    if len(shape) not in (2, 3) or not is_float(element) or not known.finite or 0 in shape:
        return
    if known.size > 8 or known.error > 1e-4 or DYNAMIC in shape[len(shape) == 2 :]:
        return
    op = p.draw.random.choice(CELLS if len(shape) == 2 else LAYERS)
    batch, inputs = shape[-2:]
    hidden = min(p.draw.random.choice((1, 2, 3)), inputs if batch == DYNAMIC else 3)
    states = [_state(p, x, hidden) for _ in range(op.STATES)]

    def small(*wanted: int) -> SSAValue:
        array = p.draw.rng.standard_normal(wanted).clip(-2, 2) * 0.5
        return p.constant(array.astype(numpy_dtype(element)))

    weights = [
        small(op.GATES * hidden, inputs),
        small(op.GATES * hidden, hidden),
        small(op.BIASES * hidden),
    ]
    if op.STATES == 2 and p.draw.chance(0.3):
        weights.append(small(3 * hidden))
    props: dict[str, object] = {}
    if op in (graph.GruCellOp, graph.GruOp):
        props["linear_before_reset"] = p.draw.chance(0.5)
    if issubclass(op, LayerOp) and p.draw.chance(0.5):
        props["reverse"] = p.draw.chance(0.7)
    if p.draw.chance(0.3):
        names = [n for n in ACTIVATIONS if n != "relu"]
        chosen = p.draw.random.choices(names, k=len(op.USUAL))
        props["activations"] = ArrayAttr([StringAttr(n) for n in chosen])
    steps = shape[0] if len(shape) == 3 else 1
    facts = Facts(-60.0 * steps, 60.0 * steps, 30.0 * steps * known.error, False)
    p.put(op, [x, *states, *weights], facts, terms=10, **props)


def _state(p: RandomProgram, x: SSAValue, hidden: int) -> SSAValue:
    """batch×hidden: a constant, or columns of x where the batch is not known."""
    batch = shape_of(x)[-2]
    if batch != DYNAMIC:
        return p.random_constant(element_of(x), [batch, hidden])
    parts = {"offsets": [0, 0], "sizes": [DYNAMIC, hidden], "strides": [1, 1]}
    cut = p.put(graph.SliceOp, [x], p.facts[x], **parts)
    assert cut is not None
    return cut


def forest(p: RandomProgram, x: SSAValue) -> None:
    """Random trees on exact features."""
    shape, known, element = shape_of(x), p.facts[x], element_of(x)
    if len(shape) != 2 or shape[1] in (0, DYNAMIC) or not known.exact or not is_float(element):
        return
    depth, trees = p.draw.random.randint(0, 4), p.draw.random.randint(1, 4)
    columns = p.draw.random.choice((1, 1, 2, 3))
    width = p.draw.random.choice((1, columns))
    grown = _Trees(p, shape[1], depth, numpy_dtype(element))
    roots = [grown.grow(depth) for _ in range(trees)]
    kind = np.float64 if p.draw.chance(0.5) else np.float32
    count = len(grown.nodes)
    value = p.draw.rng.integers(-4, 5, (count, width)).astype(kind)
    output = p.draw.rng.integers(0, columns, trees) if width == 1 else np.zeros(trees)
    feature, threshold, left, right, nan_left = zip(*grown.nodes, strict=True)
    arrays = [
        np.array(feature, np.int32), np.array(threshold, numpy_dtype(element)),
        np.array(left, np.int32), np.array(right, np.int32), np.array(nan_left, np.bool_), value,
        np.array(roots, np.int32), output.astype(np.int32),
        p.draw.rng.integers(-2, 3, columns).astype(kind),
    ]  # fmt: skip
    strategy = p.draw.random.choice(
        ("auto", "auto", "walk", "gemm", "traversal", "perfect_traversal")
    )
    size = 4.0 * trees + 2.0
    facts = Facts(-size, size)
    constants = [p.constant(a) for a in arrays]
    comparison = p.draw.random.choice(("le", "lt"))
    props = {"comparison": comparison, "depth": max(depth, 1), "strategy": strategy}
    p.put(graph.ForestOp, [x, *constants], facts, **props)


class _Trees:
    """Nodes end to end: feature, threshold, left, right, where NaN goes."""

    def __init__(self, p: RandomProgram, features: int, depth: int, dtype: np.dtype) -> None:
        self.p, self.features, self.dtype = p, features, dtype
        self.nodes: list[tuple[int, float, int, int, bool]] = []

    def grow(self, depth: int) -> int:
        """A random tree of at most this depth; the number of its root."""
        here = len(self.nodes)
        self.nodes.append((0, 0.0, here, here, False))
        if depth and self.p.draw.chance(0.8):
            random = self.p.draw.random
            threshold = random.choice((-1.0, 0.0, 1.0, 2.0, 0.5))
            feature = random.randrange(self.features)
            left, right = self.grow(depth - 1), self.grow(depth - 1)
            self.nodes[here] = (feature, threshold, left, right, random.random() < 0.5)
        return here


def csr(p: RandomProgram, x: SSAValue) -> None:
    """Rows of a random CSR matrix, each scaled by a row of x where that is one column."""
    shape, known, element = shape_of(x), p.facts[x], element_of(x)
    kind = numpy_dtype(element)
    if len(shape) != 2 or shape[1] != 1 or kind.name not in ("float32", "float64"):
        return
    if not known.finite or known.size > 64 or shape[0] in (0, DYNAMIC):
        return
    rows, stored = shape[0], p.draw.random.randint(1, 9)
    columns, width = p.draw.random.randint(1, 5), p.draw.random.choice((1, 2, 5))
    rng = p.draw.rng
    ends = np.sort(rng.integers(0, stored + 1, (2, rows)), axis=0).astype(np.int64)
    arrays = [
        rng.integers(-2, 3, (1, stored)).astype(kind),
        rng.integers(-1, columns + 1, (1, stored)).astype(np.int32),
        *ends,
    ]
    size, error = 2.0 * stored * known.size, 2.0 * stored * known.error
    beside, steps = [x], ["mul x a0"]
    if p.draw.chance(0.5):
        props: dict[str, object] = {"kind": p.draw.random.choice(("sum", "max")), "initial": 0.0}
        op, factor = graph.CsrReduceOp, []
    else:
        op, factor, props = (
            graph.CsrMatmulOp,
            [rng.integers(-2, 3, (columns, width)).astype(kind)],
            {},
        )
        size, error = 2 * size, 2 * error
    constants = [p.constant(a) for a in (*arrays, *factor)]
    attribute = ArrayAttr([StringAttr(text) for text in steps])
    p.put(
        op,
        [*constants, *beside],
        Facts(-size, size, error, False),
        terms=stored,
        steps=attribute,
        **props,
    )


def csr_dense(p: RandomProgram, x: SSAValue) -> None:
    """Rows of a random CSR matrix as dense ones, beside x in nothing but its type."""
    kind = numpy_dtype(element_of(x))
    if kind.name not in ("float32", "float64"):
        return
    rng, columns = p.draw.rng, p.draw.random.randint(1, 7)
    counts = rng.integers(0, columns + 1, p.draw.random.randint(1, 6))
    ends = np.cumsum(counts).astype(np.int64)
    if not ends[-1]:
        return
    arrays = [
        rng.integers(-2, 3, (1, ends[-1])).astype(kind),
        np.concatenate([rng.permutation(columns)[:n] for n in counts])[None].astype(np.int32),
        ends - counts,
        ends,
    ]
    constants = [p.constant(a) for a in arrays]
    p.put(graph.CsrDenseOp, constants, Facts(-2.0, 2.0, 0.0, True), columns=columns, initial=1.0)


STEPS = [recurrence, recurrence, recurrence, forest, forest, csr, csr, csr_dense]
