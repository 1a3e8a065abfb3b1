"""The quantiles of the normal distribution, as SciPy's `ndtri` computes them, in float64.

Two rational approximations by Moshier (Cephes, `ndtri.c`): of the middle, and of the tails down to exp(-32).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from irkit.dialects.graph import (
    AddOp,
    DivOp,
    LogOp,
    MaxOp,
    MinOp,
    MulOp,
    NegOp,
    SqrtOp,
    SubOp,
    WhereOp,
)
from irkit.frontends.sklearn.importer import Importer

_ROOT = 2.50662827463100050242
"""sqrt(2 pi)"""
_TAIL = 0.13533528323661269189
"""exp(-2), where the tails begin."""
# Coefficients of numerators and denominators, the highest power first.
_MIDDLE = (
    (
        -5.99633501014107895267e1,
        9.80010754185999661536e1,
        -5.66762857469070293439e1,
        1.39312609387279679503e1,
        -1.23916583867381258016e0,
    ),
    (
        1.0,
        1.95448858338141759834e0,
        4.67627912898881538453e0,
        8.63602421390890590575e1,
        -2.25462687854119370527e2,
        2.00260212380060660359e2,
        -8.20372256168333339912e1,
        1.59056225126211695515e1,
        -1.18331621121330003142e0,
    ),
)
_TAILS = (
    (
        4.05544892305962419923e0,
        3.15251094599893866154e1,
        5.71628192246421288162e1,
        4.40805073893200834700e1,
        1.46849561928858024014e1,
        2.18663306850790267539e0,
        -1.40256079171354495875e-1,
        -3.50424626827848203418e-2,
        -8.57456785154685413611e-4,
    ),
    (
        1.0,
        1.57799883256466749731e1,
        4.53907635128879210584e1,
        4.13172038254672030440e1,
        1.50425385692907503408e1,
        2.50464946208309415979e0,
        -1.42182922854787788574e-1,
        -3.80806407691578277194e-2,
        -9.33259480895457427372e-4,
    ),
)
LEAST = 1e-12
"""What is nearer to 0 or 1 is taken for this."""


def normal_quantile(importer: Importer, y: SSAValue) -> SSAValue:
    """Where the standard normal distribution reaches each element of y (rows×columns of float64), between
    `LEAST` and 1 - `LEAST`; NaN of NaN."""
    build = importer.builder
    y = build(MaxOp, y, importer.constant(y, [[LEAST]], "least"))
    y = build(MinOp, y, importer.constant(y, [[1.0 - LEAST]], "most"))
    above = importer.compare(y, "gt", [[1.0 - _TAIL]], "tail")
    turned = build(SubOp, importer.constant(y, [[1.0]], "one"), y)
    near = build(WhereOp, above, turned, y)
    root = build(SqrtOp, importer.mul(build(LogOp, near), [[-2.0]], "two"))
    whole = build(SubOp, root, build(DivOp, build(LogOp, root), root))
    part = build(DivOp, importer.constant(y, [[1.0]], "one"), root)
    less = build(MulOp, part, _polynomial(importer, part, _TAILS[0]))
    tail = build(SubOp, whole, build(DivOp, less, _polynomial(importer, part, _TAILS[1])))
    tail = build(WhereOp, above, tail, build(NegOp, tail))
    within = importer.compare(near, "gt", [[_TAIL]], "tail")
    return build(WhereOp, within, _middle(importer, near), tail)


def _middle(importer: Importer, y: SSAValue) -> SSAValue:
    """About a half."""
    build = importer.builder
    y = importer.sub(y, [[0.5]], "half")
    square = build(MulOp, y, y)
    ratio = build(
        DivOp,
        build(MulOp, square, _polynomial(importer, square, _MIDDLE[0])),
        _polynomial(importer, square, _MIDDLE[1]),
    )
    return importer.mul(build(AddOp, y, build(MulOp, y, ratio)), [[_ROOT]], "root")


def _polynomial(importer: Importer, x: SSAValue, coefficients: Sequence[float]) -> SSAValue:
    """Horner's rule."""
    first, *rest = coefficients
    found = x if first == 1.0 else importer.mul(x, [[first]], "p")
    found = importer.add(found, [[rest[0]]], "p")
    for coefficient in rest[1:]:
        found = importer.add(importer.builder(MulOp, found, x), [[coefficient]], "p")
    return found
