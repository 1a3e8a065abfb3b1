"""Probabilities of classes from those of pairs of them, as libsvm has them: its `multiclass_probability`.

Wu, Lin and Weng, "Probability estimates for multi-class classification by pairwise coupling", 2004, their
second method. libsvm iterates until what is left is below 0.005 / classes; here a fixed number of sweeps is
written out, each row stops where libsvm does, and a row that would need more is an error. On random
pairs of up to 10 classes it never needs more than 4.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects.graph import (
    AbsOp,
    AddOp,
    DivOp,
    MaxOp,
    MinOp,
    MulOp,
    NegOp,
    SigmoidOp,
    SubOp,
    WhereOp,
)
from irkit.frontends.sklearn.importer import Importer

SWEEPS = 6
MOST_CLASSES = 10
_LEAST = 1e-7


def of_pairs(importer: Importer, step: Any, decision: SSAValue) -> SSAValue:
    """rows×classes, from rows×pairs of libsvm's decisions."""
    line = importer.mul(decision, np.asarray(step._probA), "probA")
    line = importer.add(line, np.asarray(step._probB), "probB")
    first = importer.builder(SigmoidOp, importer.builder(NegOp, line))
    first = importer.builder(MaxOp, first, importer.constant(first, [_LEAST], "least"))
    first = importer.builder(MinOp, first, importer.constant(first, [1 - _LEAST], "most"))
    second = importer.builder(SubOp, importer.constant(first, [1.0], "one"), first)
    return _Coupling(importer, len(step.classes_), importer.concat([first, second])).solved()


@dataclass
class _Coupling:
    """The iteration over one set of pairs; `pairs` has those of the first class, then of the second."""

    importer: Importer
    classes: int
    pairs: SSAValue

    def _pick(self, numbers: list[int]) -> SSAValue:
        return self.importer.columns(self.pairs, numbers)

    def _rows(self) -> list[SSAValue]:
        """Row t of Q: -r[j][t] r[t][j], and at t the sum of r[j][t]^2."""
        order = list(itertools.combinations(range(self.classes), 2))
        place = {pair: n for n, pair in enumerate(order)}
        place |= {(j, i): n + len(order) for (i, j), n in place.items()}
        found: list[SSAValue] = []
        for t in range(self.classes):
            others = [j for j in range(self.classes) if j != t]
            lost, won = (
                self._pick([place[p] for p in pairs])
                for pairs in ([(j, t) for j in others], [(t, j) for j in others])
            )
            build = self.importer.builder
            square = self.importer.reduce("sum", build(MulOp, lost, lost))
            cross = build(NegOp, build(MulOp, lost, won))
            wide = self.importer.concat([cross, square])
            found.append(
                self.importer.columns(
                    wide, [*range(t), self.classes - 1, *range(t, self.classes - 1)]
                )
            )
        return found

    def solved(self) -> SSAValue:
        """rows×classes"""
        importer, build = self.importer, self.importer.builder
        rows = self._rows()
        start = importer.mul(rows[0], [0.0], "zero")
        p = importer.add(start, np.full(self.classes, 1.0 / self.classes), "start")
        for _ in range(SWEEPS):
            done, products, total = self._left(rows, p)
            p = build(WhereOp, done, p, self._sweep(rows, p, products, total))
        done, _, _ = self._left(rows, p)
        importer.require(done, f"probabilities of pairs that do not meet in {SWEEPS} sweeps")
        return p

    def _left(self, rows: list[SSAValue], p: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
        """Whether a row is done (rows×1), Qp and pQp."""
        importer, build = self.importer, self.importer.builder
        products = importer.concat([importer.reduce("sum", build(MulOp, row, p)) for row in rows])
        total = importer.reduce("sum", build(MulOp, p, products))
        error = importer.reduce("max", build(AbsOp, build(SubOp, products, total)))
        return importer.compare(error, "lt", [0.005 / self.classes], "eps"), products, total

    def _sweep(
        self, rows: list[SSAValue], p: SSAValue, products: SSAValue, total: SSAValue
    ) -> SSAValue:
        importer, build = self.importer, self.importer.builder
        for t, row in enumerate(rows):
            own, mine = (importer.columns(x, [t]) for x in (row, products))
            diff = build(DivOp, build(SubOp, total, mine), own)
            scale = importer.add(diff, [1.0], "one")
            gain = build(AddOp, build(MulOp, diff, own), importer.mul(mine, [2.0], "two"))
            total = build(AddOp, total, build(MulOp, diff, gain))
            total = build(DivOp, build(DivOp, total, scale), scale)
            products = build(DivOp, build(AddOp, products, build(MulOp, diff, row)), scale)
            at = importer.mul(diff, np.eye(self.classes)[t][None], "unit")
            p = build(DivOp, build(AddOp, p, at), scale)
        return p
