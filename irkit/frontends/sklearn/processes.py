"""Gaussian processes: kernels of `sklearn.gaussian_process.kernels`, and what is predicted through them.

Distances are sums of squared differences in float64, as SciPy's `cdist` has them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects.graph import (
    AddOp,
    DivOp,
    ErfOp,
    ExpOp,
    MulOp,
    PowOp,
    SinOp,
    SqrtOp,
    SubOp,
)
from irkit.frontends.sklearn import kernels
from irkit.frontends.sklearn.importer import Importer, Outputs, Predictor, kind_of
from irkit.frontends.sklearn.outputs import classifier, regressor, sign_label, two_columns
from irkit.frontends.sklearn.responses import outputs_on
from irkit.weights import Array

Kernel = Callable[[Importer, Any, SSAValue, Array], SSAValue]
"""rows×points of rows×features, in float64."""


def _squared(importer: Importer, x: SSAValue, points: Array) -> SSAValue:
    apart = kernels.differences(importer, x, points)
    return kernels.summed(importer, importer.builder(MulOp, apart, apart))


def _scaled(importer: Importer, kernel: Any, x: SSAValue, points: Array) -> SSAValue:
    """Squared distances in units of the length scales, of which there is one or one a feature."""
    scale = np.broadcast_to(np.asarray(kernel.length_scale, np.float64), points.shape[1:])
    return _squared(importer, importer.div(x, scale, "length_scale"), points / scale)


def _decay(importer: Importer, x: SSAValue, factor: float) -> SSAValue:
    return importer.builder(ExpOp, importer.mul(x, [[factor]], "factor"))


def _rbf(importer: Importer, kernel: Any, x: SSAValue, points: Array) -> SSAValue:
    return _decay(importer, _scaled(importer, kernel, x, points), -0.5)


def _matern(importer: Importer, kernel: Any, x: SSAValue, points: Array) -> SSAValue:
    square, build = _scaled(importer, kernel, x, points), importer.builder
    if kernel.nu == np.inf:
        return _decay(importer, square, -0.5)
    far = build(SqrtOp, square)
    if kernel.nu == 0.5:
        return _decay(importer, far, -1.0)
    root = importer.mul(far, [[np.sqrt(2 * kernel.nu)]], "root")
    slope = importer.add(root, [[1.0]], "one")
    if kernel.nu == 2.5:
        curve = importer.div(build(MulOp, root, root), [[3.0]], "three")
        slope = build(AddOp, slope, curve)
    return build(MulOp, slope, _decay(importer, root, -1.0))


def _rational(importer: Importer, kernel: Any, x: SSAValue, points: Array) -> SSAValue:
    divisor = 2 * kernel.alpha * float(np.squeeze(kernel.length_scale)) ** 2
    ratio = importer.div(_squared(importer, x, points), [[divisor]], "scale")
    base = importer.add(ratio, [[1.0]], "one")
    return importer.builder(PowOp, base, importer.constant(base, [[-kernel.alpha]], "alpha"))


def _periodic(importer: Importer, kernel: Any, x: SSAValue, points: Array) -> SSAValue:
    far = importer.builder(SqrtOp, _squared(importer, x, points))
    angle = importer.div(importer.mul(far, [[np.pi]], "pi"), [[kernel.periodicity]], "period")
    wave = importer.div(importer.builder(SinOp, angle), [[kernel.length_scale]], "length_scale")
    return _decay(importer, importer.builder(MulOp, wave, wave), -2.0)


def _dot(importer: Importer, kernel: Any, x: SSAValue, points: Array) -> SSAValue:
    product = importer.matmul(x, points.T, "points")
    return importer.add(product, [[float(kernel.sigma_0) ** 2]], "sigma_0")


def _constant(importer: Importer, kernel: Any, x: SSAValue, points: Array) -> SSAValue:
    column = importer.full(x, float(kernel.constant_value), np.float64)
    return importer.columns(column, np.zeros(len(points), np.int64))


def _white(importer: Importer, kernel: Any, x: SSAValue, points: Array) -> SSAValue:
    """Noise, which no two different arrays share."""
    return importer.columns(importer.full(x, 0.0, np.float64), np.zeros(len(points), np.int64))


def _pairwise(importer: Importer, kernel: Any, x: SSAValue, points: Array) -> SSAValue:
    found = kernels.Kernel(kernel.metric, float(kernel.gamma))
    return kernels.apply(importer, found, x, points)


def _sum(importer: Importer, kernel: Any, x: SSAValue, points: Array) -> SSAValue:
    parts = [near(importer, k, x, points) for k in (kernel.k1, kernel.k2)]
    return importer.builder(AddOp, *parts)


def _product(importer: Importer, kernel: Any, x: SSAValue, points: Array) -> SSAValue:
    parts = [near(importer, k, x, points) for k in (kernel.k1, kernel.k2)]
    return importer.builder(MulOp, *parts)


def _power(importer: Importer, kernel: Any, x: SSAValue, points: Array) -> SSAValue:
    base, exponent = near(importer, kernel.kernel, x, points), float(kernel.exponent)
    if exponent.is_integer() and exponent >= 1:
        return kernels.whole_power(importer, base, int(exponent))
    return importer.builder(PowOp, base, importer.constant(base, [[exponent]], "exponent"))


KERNELS: dict[str, Kernel] = {
    "ConstantKernel": _constant,
    "DotProduct": _dot,
    "ExpSineSquared": _periodic,
    "Exponentiation": _power,
    "Matern": _matern,
    "PairwiseKernel": _pairwise,
    "Product": _product,
    "RBF": _rbf,
    "RationalQuadratic": _rational,
    "Sum": _sum,
    "WhiteKernel": _white,
}


def near(importer: Importer, kernel: Any, x: SSAValue, points: Array) -> SSAValue:
    """What a kernel gives of rows (float64) and of points (float64), rows×points."""
    return KERNELS[kind_of(kernel)](importer, kernel, x, points)


def _own(importer: Importer, kernel: Any, x: SSAValue) -> SSAValue:
    """What a kernel gives of each row and itself, rows×1."""
    build = importer.builder
    match kind_of(kernel):
        case "Sum":
            return build(AddOp, _own(importer, kernel.k1, x), _own(importer, kernel.k2, x))
        case "Product":
            return build(MulOp, _own(importer, kernel.k1, x), _own(importer, kernel.k2, x))
        case "Exponentiation":
            base = _own(importer, kernel.kernel, x)
            exponent = importer.constant(base, [[float(kernel.exponent)]], "exponent")
            return build(PowOp, base, exponent)
        case "ConstantKernel":
            return importer.full(x, float(kernel.constant_value), np.float64)
        case "WhiteKernel":
            return importer.full(x, float(kernel.noise_level), np.float64)
        case "DotProduct":
            square = kernels.squared_norm(importer, x)
            return importer.add(square, [[float(kernel.sigma_0) ** 2]], "sigma_0")
        case _:
            return importer.full(x, 1.0, np.float64)


def why_not_kernel(kernel: Any) -> list[str]:
    """Reasons that lie in a kernel, or in one that it is made of."""
    kind = kind_of(kernel)
    if kind not in KERNELS:
        return [f"kernel {kind} (supported: {', '.join(KERNELS)})"]
    if kind in ("Sum", "Product"):
        return [*why_not_kernel(kernel.k1), *why_not_kernel(kernel.k2)]
    if kind == "Exponentiation":
        return why_not_kernel(kernel.kernel)
    if kind == "Matern" and kernel.nu not in (0.5, 1.5, 2.5, np.inf):
        return [f"kernel Matern with nu={kernel.nu:g} (supported: 0.5, 1.5, 2.5, inf)"]
    if kind == "RationalQuadratic" and np.size(kernel.length_scale) > 1:
        return ["kernel RationalQuadratic with several length scales"]
    if kind != "PairwiseKernel":
        return []
    if not isinstance(kernel.metric, str) or kernel.metric not in kernels.KERNELS:
        return [f"kernel PairwiseKernel with metric={kernel.metric!r}"]
    given = kernel.pairwise_kernels_kwargs
    return [f"kernel PairwiseKernel with pairwise_kernels_kwargs={given!r}"] if given else []


# Regression


def _wide(importer: Importer, step: Any, x: SSAValue) -> tuple[SSAValue, Array]:
    return importer.cast(x, np.float64), np.asarray(step.X_train_, np.float64)


def _regressor(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    alpha = np.asarray(step.alpha_)
    wide, points = _wide(importer, step, x)
    y = importer.matmul(near(importer, step.kernel_, wide, points), alpha.reshape(len(alpha), -1))
    y = importer.mul(y, np.broadcast_to(step._y_train_std, (importer.width(y),)), "std")
    y = importer.add(y, np.broadcast_to(step._y_train_mean, (importer.width(y),)), "mean")
    return regressor(importer, y, flat=importer.width(y) == 1)


def _why_no_regressor(step: Any) -> list[str]:
    if not hasattr(step, "X_train_"):
        return ["no rows that it was fitted on"]
    return [*_why_no_rows(step.X_train_), *why_not_kernel(step.kernel_)]


def _why_no_rows(rows: Any) -> list[str]:
    return [] if np.asarray(rows).dtype.kind in "fiub" else ["rows that are no numbers"]


# Classification


def _binary(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    """Laplace's approximation: the sign of the latent mean; the sigmoid over the latent normal distribution
    as five error functions (Williams and Barber 1998)."""
    from sklearn.gaussian_process import _gpc

    constants, build = cast(Any, _gpc), importer.builder
    wide, points = _wide(importer, step, x)
    close = near(importer, step.kernel_, wide, points)
    mean = importer.matmul(close, np.reshape(step.y_train_ - step.pi_, (-1, 1)), "residuals")
    roots: Array = np.diag(np.asarray(step.W_sr_))
    solved: Array = np.asarray(np.linalg.solve(np.asarray(step.L_), roots))
    less = kernels.squared_norm(importer, importer.matmul(close, solved.T, "factor"))
    variance = build(SubOp, _own(importer, step.kernel_, wide), less)
    lambdas = np.reshape(constants.LAMBDAS, (1, -1))
    coefficients = np.reshape(constants.COEFS, (-1, 1))
    alpha = build(DivOp, importer.constant(variance, [[0.5]], "half"), variance)
    width = build(SqrtOp, build(DivOp, alpha, importer.add(alpha, lambdas**2, "lambdas")))
    wave = build(ErfOp, build(MulOp, importer.mul(mean, lambdas, "lambdas"), width))
    # sqrt(pi / alpha) / (2 sqrt(2 pi variance)) is 1/2, but for rounding.
    first = build(SqrtOp, build(DivOp, importer.constant(alpha, [[np.pi]], "pi"), alpha))
    last = importer.mul(build(SqrtOp, importer.mul(variance, [[2 * np.pi]], "two_pi")), [[2.0]])
    parts = build(DivOp, build(MulOp, first, wave), last)
    total = importer.matmul(parts, coefficients, "coefficients")
    second = importer.add(total, [[0.5 * float(coefficients.sum())]], "constant")
    label = sign_label(importer, mean, "gt")
    outputs = classifier(step, label, two_columns(importer, second), None, log=False)
    # One of two scalars, as NumPy picks them.
    outputs.labels = np.asarray(list(step.classes_)).dtype.str
    return outputs


def _classifier(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    """The binary one, or one of those of several classes that are made of such."""
    found = outputs_on(importer, step.base_estimator_, x)
    pairs = step.n_classes_ > 2 and step.multi_class == "one_vs_one"
    kept = ("predict",) if pairs else ("predict", "predict_proba")
    methods = {m: n for m, n in found.methods.items() if m in kept}
    values = [(n, v) for n, v in found.values if n in methods.values()]
    return Outputs("classifier", values, methods, found.classes, found.labels)


def _why_no_binary(step: Any) -> list[str]:
    reasons = [*_why_no_rows(step.X_train_), *why_not_kernel(step.kernel_)]
    return reasons or [
        "kernel PairwiseKernel, whose variance is not imported"
        for k in _leaves(step.kernel_)
        if kind_of(k) == "PairwiseKernel"
    ]


def _leaves(kernel: Any) -> list[Any]:
    parts = [getattr(kernel, n) for n in ("k1", "k2", "kernel") if hasattr(kernel, n)]
    return [leaf for part in parts for leaf in _leaves(part)] or [kernel]


def _members(step: Any) -> list[tuple[str, Any]]:
    return [("base_estimator_", step.base_estimator_)]


PREDICTORS: dict[str, Predictor] = {
    "GaussianProcessClassifier": Predictor(_classifier, members=_members),
    "GaussianProcessRegressor": Predictor(_regressor, why_not_fitted=_why_no_regressor),
    "_BinaryGaussianProcessClassifierLaplace": Predictor(_binary, why_not_fitted=_why_no_binary),
}
