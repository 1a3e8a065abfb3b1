"""TransformedTargetRegressor: predictions taken back by the inverse of what the targets went through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects.graph import (
    AddOp,
    DivOp,
    ErfOp,
    ExpOp,
    Log1pOp,
    MulOp,
    NegOp,
    PowOp,
    SubOp,
    WhereOp,
)
from irkit.frontends.sklearn.curves import NEAR
from irkit.frontends.sklearn.functions import known_functions, why_no_function
from irkit.frontends.sklearn.importer import Importer, Outputs, Predictor, Values, kind_of
from irkit.frontends.sklearn.interpolation import interpolated
from irkit.frontends.sklearn.outputs import regressor
from irkit.frontends.sklearn.responses import as_columns, outputs_on, value

# Inverses: of rows×outputs, in the dtype that they come in.


def _standard(importer: Importer, step: Any, y: SSAValue) -> SSAValue:
    if step.with_std:
        y = importer.mul(y, step.scale_, "scale")
    return importer.add(y, step.mean_, "mean") if step.with_mean else y


def _min_max(importer: Importer, step: Any, y: SSAValue) -> SSAValue:
    y = importer.update(SubOp, y, step.min_, "min")
    return importer.update(DivOp, y, step.scale_, "scale")


def _max_abs(importer: Importer, step: Any, y: SSAValue) -> SSAValue:
    return importer.update(MulOp, y, step.scale_, "scale")


def _robust(importer: Importer, step: Any, y: SSAValue) -> SSAValue:
    if step.with_scaling:
        y = importer.update(MulOp, y, step.scale_, "scale")
    return importer.update(AddOp, y, step.center_, "center") if step.with_centering else y


def _function(importer: Importer, step: Any, y: SSAValue) -> SSAValue:
    if step.validate:
        name = "the inverse function of TransformedTargetRegressor"
        importer.require_finite(y, name, nan=False, infinite=False)
    inverse = step.inverse_func
    return y if inverse is None else known_functions()[inverse](importer, y)


def _power(importer: Importer, step: Any, y: SSAValue) -> SSAValue:
    if step.standardize:
        y = _standard(importer, step._scaler, y)
    columns = [
        _power_back(importer, step.method, importer.columns(y, [number]), float(exponent))
        for number, exponent in enumerate(step.lambdas_)
    ]
    return importer.concat(columns)


def _power_back(importer: Importer, method: str, y: SSAValue, exponent: float) -> SSAValue:
    if method == "box-cox":
        return _box(importer, y, exponent)
    build, one = importer.builder, importer.constant(y, [[1.0]], "one")
    small = float(np.spacing(1.0))
    above = importer.compare(y, "ge", [[0.0]], "zero")
    up = build(SubOp, _root(importer, y, exponent, abs(exponent) < small), one)
    rest = 2.0 - exponent
    down = build(SubOp, one, _root(importer, build(NegOp, y), rest, abs(rest) <= small))
    return build(WhereOp, above, up, down)


def _box(importer: Importer, y: SSAValue, exponent: float) -> SSAValue:
    """SciPy's `inv_boxcox`: of numbers that no logarithm has it is NaN."""
    if exponent == 0:
        return importer.builder(ExpOp, y)
    logs = importer.builder(Log1pOp, importer.mul(y, [[exponent]], "lambda"))
    return importer.builder(ExpOp, importer.div(logs, [[exponent]], "lambda"))


def _root(importer: Importer, y: SSAValue, exponent: float, plain: bool) -> SSAValue:
    """(exponent y + 1)^(1 / exponent); exp(y) where that is its limit."""
    if plain:
        return importer.builder(ExpOp, y)
    base = importer.add(importer.mul(y, [[exponent]], "lambda"), [[1.0]], "one")
    return importer.builder(PowOp, base, importer.constant(y, [[1.0 / exponent]], "root"))


def _quantile(importer: Importer, step: Any, y: SSAValue) -> SSAValue:
    knots = np.asarray(step.quantiles_)
    normal = step.output_distribution == "normal"
    shares = _normal_shares(importer, y) if normal else y
    columns = [
        interpolated(importer, importer.columns(shares, [k]), step.references_, knots[:, k])
        for k in range(knots.shape[1])
    ]
    found = importer.concat(columns)
    if normal:
        low = importer.compare(importer.add(shares, [[-NEAR]], "near"), "lt", [[0.0]], "low")
        high = importer.compare(importer.add(shares, [[NEAR]], "near"), "gt", [[1.0]], "high")
        found = importer.where(high, found, knots[-1][None], "last")
        found = importer.where(low, found, knots[0][None], "first")
    return importer.cast(found, importer.dtype(y))


def _normal_shares(importer: Importer, y: SSAValue) -> SSAValue:
    """The normal distribution below y, in float64: what is nearer to 0 or 1 than `NEAR` counts as that, so
    that the error function is near enough in the tails too."""
    scaled = importer.mul(importer.cast(y, np.float64), [[np.sqrt(0.5)]], "root")
    return importer.add(
        importer.mul(importer.builder(ErfOp, scaled), [[0.5]], "half"), [[0.5]], "half"
    )


INVERSES: dict[str, Callable[[Importer, Any, SSAValue], SSAValue]] = {
    "FunctionTransformer": _function,
    "MaxAbsScaler": _max_abs,
    "MinMaxScaler": _min_max,
    "PowerTransformer": _power,
    "QuantileTransformer": _quantile,
    "RobustScaler": _robust,
    "StandardScaler": _standard,
}


def _regressor(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    found = as_columns(importer, value(outputs_on(importer, step.regressor_, x), "predict"))
    for part in reversed(_parts(step.transformer_)):
        importer.known[found] = Values(True, True)
        found = INVERSES[kind_of(part)](importer, part, found)
    flat = step._training_dim == 1 and importer.width(found) == 1
    return regressor(importer, found, flat=flat)


def _parts(transformer: Any) -> list[Any]:
    if kind_of(transformer) != "Pipeline":
        return [transformer]
    return [p for _, s in transformer.steps if s not in (None, "passthrough") for p in _parts(s)]


def _why_not(step: Any) -> list[str]:
    return [reason for part in _parts(step.transformer_) for reason in _why_no_inverse(part)]


def _why_no_inverse(part: Any) -> list[str]:
    kind = kind_of(part)
    if kind not in INVERSES:
        return [f"parameter transformer={kind} (supported: {', '.join(INVERSES)})"]
    if kind != "FunctionTransformer" or part.inverse_func is None:
        return []
    if reasons := why_no_function("inverse_func", part.inverse_func):
        return reasons
    return [f"parameter inv_kw_args={part.inv_kw_args!r}"] if part.inv_kw_args else []


def _members(step: Any) -> list[tuple[str, Any]]:
    return [("regressor_", step.regressor_)]


PREDICTORS: dict[str, Predictor] = {
    "TransformedTargetRegressor": Predictor(_regressor, why_not_fitted=_why_not, members=_members)
}
