"""Probabilities of classes from those of pairs of them, as libsvm has them: its `multiclass_probability`.

Wu, Lin and Weng, "Probability estimates for multi-class classification by pairwise coupling", 2004, their
second method. libsvm iterates until what is left is below 0.005 / classes; here a fixed number of sweeps is
written out, and each row stops where libsvm does. On random pairs of up to 10 classes, and on pairs that
contradict one another, it never needs more than 5.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects.graph import (
    AbsOp,
    AddOp,
    CompareOp,
    ConcatOp,
    DivOp,
    GatherOp,
    MaxOp,
    MinOp,
    MulOp,
    NegOp,
    NotOp,
    ReduceOp,
    SigmoidOp,
    SubOp,
    WhereOp,
)
from irkit.dialects.types import numpy_dtype, tensor_type
from irkit.frontends.module import GraphBuilder

SWEEPS = 6
MOST_CLASSES = 10
_LEAST = 1e-7


def of_pairs(
    build: GraphBuilder, decision: SSAValue, slopes: Any, shifts: Any, classes: int
) -> tuple[SSAValue, SSAValue]:
    """rows×classes, and whether a row has come to its end (rows×1), from rows×pairs of libsvm's decisions."""
    dtype = numpy_dtype(tensor_type(decision).element_type)

    def number(value: Any) -> SSAValue:
        return build.constant(np.atleast_1d(np.asarray(value, dtype)), "pairs")

    line = build(AddOp, build(MulOp, decision, number(slopes)), number(shifts))
    first = build(SigmoidOp, build(NegOp, line))
    first = build(MaxOp, first, number(_LEAST))
    first = build(MinOp, first, number(1 - dtype.type(_LEAST)))
    pairs = build(ConcatOp, first, build(SubOp, number(1), first), axis=1)
    return _Coupling(build, classes, pairs, dtype).solved()


@dataclass
class _Coupling:
    """The iteration over one set of pairs; `pairs` has those of the first class, then of the second."""

    build: GraphBuilder
    classes: int
    pairs: SSAValue
    dtype: np.dtype[Any]

    def _number(self, value: Any) -> SSAValue:
        return self.build.constant(np.atleast_1d(np.asarray(value, self.dtype)), "coupling")

    def _columns(self, x: SSAValue, numbers: Sequence[int]) -> SSAValue:
        which = self.build.constant(np.asarray(numbers, np.int64), "columns")
        return self.build(GatherOp, x, which, axis=1)

    def _reduced(self, kind: str, x: SSAValue) -> SSAValue:
        return self.build(ReduceOp, x, kind=kind, axes=[1], keepdims=True)

    def _rows(self) -> list[SSAValue]:
        """Row t of Q: -r[j][t] r[t][j], and at t the sum of r[j][t]^2."""
        build, order = self.build, list(itertools.combinations(range(self.classes), 2))
        place = {pair: n for n, pair in enumerate(order)}
        place |= {(j, i): n + len(order) for (i, j), n in place.items()}
        found: list[SSAValue] = []
        for t in range(self.classes):
            others = [j for j in range(self.classes) if j != t]
            lost = self._columns(self.pairs, [place[j, t] for j in others])
            won = self._columns(self.pairs, [place[t, j] for j in others])
            square = self._reduced("sum", build(MulOp, lost, lost))
            wide = build(ConcatOp, build(NegOp, build(MulOp, lost, won)), square, axis=1)
            last = self.classes - 1
            found.append(self._columns(wide, [*range(t), last, *range(t, last)]))
        return found

    def solved(self) -> tuple[SSAValue, SSAValue]:
        """rows×classes, and whether a row is done."""
        build, rows = self.build, self._rows()
        start = self._number(np.full((1, self.classes), 1.0 / self.classes))
        # As many rows as there are, of numbers that are compared and not computed with: NaN stays out of it.
        same = build(CompareOp, rows[0], rows[0], predicate="eq")
        p = build(WhereOp, same, start, start)
        for _ in range(SWEEPS):
            done, products, total = self._left(rows, p)
            p = build(WhereOp, done, p, self._sweep(rows, p, products, total))
        done, _, _ = self._left(rows, p)
        return p, done

    def _left(self, rows: list[SSAValue], p: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
        """Whether a row is done (rows×1), Qp and pQp. One of NaN is, as libsvm compares."""
        build = self.build
        products = [self._reduced("sum", build(MulOp, row, p)) for row in rows]
        wide = build(ConcatOp, *products, axis=1)
        total = self._reduced("sum", build(MulOp, p, wide))
        error = self._reduced("max", build(AbsOp, build(SubOp, wide, total)))
        enough = self._number(self.dtype.type(0.005) / self.dtype.type(self.classes))
        left = build(CompareOp, error, enough, predicate="ge")
        return build(NotOp, left), wide, total

    def _sweep(
        self, rows: list[SSAValue], p: SSAValue, products: SSAValue, total: SSAValue
    ) -> SSAValue:
        build = self.build
        for t, row in enumerate(rows):
            own, mine = (self._columns(x, [t]) for x in (row, products))
            diff = build(DivOp, build(SubOp, total, mine), own)
            scale = build(AddOp, diff, self._number(1))
            twice = build(MulOp, mine, self._number(2))
            gain = build(AddOp, build(MulOp, diff, own), twice)
            total = build(AddOp, total, build(MulOp, diff, gain))
            total = build(DivOp, build(DivOp, total, scale), scale)
            products = build(DivOp, build(AddOp, products, build(MulOp, diff, row)), scale)
            at = build(MulOp, diff, self._number(np.eye(self.classes)[t][None]))
            p = build(DivOp, build(AddOp, p, at), scale)
        return p
