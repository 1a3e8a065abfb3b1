"""NMF: rows as sums of the components, by coordinate descent from 0, in turns until they change little.

Each turn takes the components one after another, each of them for all rows. How often it turns hangs on all
rows of the batch together, as in scikit-learn: the loop asks for the sum of their changes, beside that of the
first turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from irkit.dialects.graph import (
    AbsOp,
    AddOp,
    AndOp,
    CastOp,
    CompareOp,
    DivOp,
    MatmulOp,
    MaxOp,
    MinOp,
    ReduceOp,
    SubOp,
    WhereOp,
)
from irkit.frontends.sklearn.importer import Importer, Transformer
from irkit.weights import Array


def _nmf(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    build, components = importer.builder, np.asarray(step.components_)
    least = importer.compare(x, "ge", [[0.0]], "zero")
    importer.require(least, "NMF found a negative value, which it does not accept")
    if importer.dtype(x) != components.dtype:
        never = importer.compare(build(AbsOp, x), "lt", [[0.0]], "zero")
        kinds = f"NMF was fitted on {components.dtype}, and takes no {importer.dtype(x)}"
        importer.require(never, kinds)
        x = importer.cast(x, components.dtype)
    l1, l2 = _penalties(step)
    squares = np.dot(components, components.T)
    squares.flat[:: len(squares) + 1] += l2
    wanted = importer.matmul(x, components.T, "components")
    wanted = importer.sub(wanted, [[l1]], "l1") if l1 else wanted
    zero = importer.mul(wanted, [[0.0]], "none")
    first, change = _turn(importer, zero, wanted, squares)
    one = build.constant(np.array(1), "one")
    some = _number(importer, change, "ne", 0.0)
    goes_on = build(AndOp, some, _goes_on(importer, step, change, change, one))

    def turn(carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        _, number, weights = carried
        after, changed = _turn(importer, weights, wanted, squares)
        count = build(AddOp, number, one)
        return [_goes_on(importer, step, changed, change, count), count, after]

    return build.repeat([goes_on, one, first], 0, turn)[2]


def _goes_on(
    importer: Importer, step: Any, change: SSAValue, first: SSAValue, turns: SSAValue
) -> SSAValue:
    """Whether a turn follows so many, the last of which changed so much."""
    build = importer.builder
    share = build(DivOp, change, first)
    little = build(CastOp, _number(importer, share, "le", float(step.tol)), to=i64)
    much = build(CompareOp, little, build.constant(np.array(0), "zero"), predicate="eq")
    most = build.constant(np.array(int(step.max_iter)), "most")
    return build(AndOp, much, build(CompareOp, turns, most, predicate="lt"))


def _number(importer: Importer, x: SSAValue, predicate: str, number: float) -> SSAValue:
    """How a number of no dimensions compares with another."""
    other = importer.builder.constant(np.array(number, importer.dtype(x)), "number")
    return importer.builder(CompareOp, x, other, predicate=predicate)


def _turn(
    importer: Importer, weights: SSAValue, wanted: SSAValue, squares: Array
) -> tuple[SSAValue, SSAValue]:
    """rows×components after one more turn, and by how much it wanted to change them in all."""
    build, count = importer.builder, len(squares)
    changes: list[SSAValue] = []
    for number in range(count):
        own = importer.columns(weights, [number])
        slope = build(MatmulOp, weights, importer.constant(weights, squares[:, [number]], "hht"))
        slope = build(SubOp, slope, importer.columns(wanted, [number]))
        zero = importer.constant(own, [[0.0]], "zero")
        bounded = build(CompareOp, own, zero, predicate="eq")
        changes.append(build(WhereOp, bounded, build(MinOp, slope, zero), slope))
        if squares[number, number] == 0:
            continue
        moved = build(SubOp, own, importer.div(slope, [[squares[number, number]]], "hessian"))
        here = build.constant(np.arange(count)[None] == number, "component")
        weights = build(WhereOp, here, build(MaxOp, moved, zero), weights)
    sizes = build(AbsOp, importer.concat(changes))
    return weights, build(ReduceOp, sizes, kind="sum", axes=[0, 1], keepdims=False)


def _penalties(step: Any) -> tuple[float, float]:
    """The weights of both norms, of as many features as there are."""
    alpha = float(step.alpha_W) * int(step.n_features_in_)
    return alpha * float(step.l1_ratio), alpha * (1.0 - float(step.l1_ratio))


def _why_not(step: Any) -> list[str]:
    reasons = [f"parameter solver={step.solver!r} (supported: 'cd')"] if step.solver != "cd" else []
    return reasons + (["parameter shuffle=True"] if step.shuffle else [])


TRANSFORMERS: dict[str, Transformer] = {"NMF": Transformer(_nmf, _why_not)}
