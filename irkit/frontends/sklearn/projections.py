"""Projections: what is centred, scaled and multiplied by a matrix, straight or through a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects.graph import (
    AddOp,
    CosOp,
    DivOp,
    LogOp,
    MulOp,
    NegOp,
    ReduceOp,
    SinOp,
    SqrtOp,
    SubOp,
)
from irkit.errors import UnsupportedError
from irkit.frontends.sklearn import kernels
from irkit.frontends.sklearn.importer import Importer, Outputs, Predictor, Transformer
from irkit.frontends.sklearn.outputs import regressor
from irkit.frontends.sklearn.svm import outliers
from irkit.weights import Array


def _wide(importer: Importer, x: SSAValue, *arrays: Any) -> SSAValue:
    return importer.cast(x, np.result_type(importer.dtype(x), *(np.asarray(a) for a in arrays)))


def _times(importer: Importer, x: SSAValue, matrix: Any) -> SSAValue:
    return importer.matmul(_wide(importer, x, matrix), matrix, "matrix")


def _minus(importer: Importer, x: SSAValue, row: Any) -> SSAValue:
    return importer.sub(_wide(importer, x, row), row, "mean")


# Straight


def _independent(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    if step.whiten:
        x = importer.update(SubOp, x, step.mean_, "mean")
    return _times(importer, x, np.asarray(step.components_).T)


def _centred(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    return importer.update(SubOp, x, step._x_mean, "mean")


def _partial(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    x = importer.update(DivOp, _centred(importer, step, x), step._x_std, "std")
    return _times(importer, x, step.x_rotations_)


def _partial_regressor(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    y = _times(importer, _centred(importer, step, x), np.asarray(step.coef_).T)
    row = np.broadcast_to(step.intercept_, (importer.width(y),))
    y = importer.add(_wide(importer, y, row), row, "intercept")
    return regressor(importer, y, flat=bool(step._predict_1d))


def _partial_svd(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    x = importer.sub(importer.cast(x, np.float64), step._x_mean, "mean")
    return _times(importer, importer.div(x, step._x_std, "std"), step.x_weights_)


def _factors(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    weighed: Array = step.components_ / step.noise_variance_
    gram: Array = np.eye(len(weighed)) + weighed @ step.components_.T
    y = _times(importer, _minus(importer, x, step.mean_), weighed.T)
    return _times(importer, y, np.asarray(np.linalg.inv(gram)))


def _sparse_components(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """Ridge regression on components, solved when imported."""
    components = np.asarray(step.components_)
    gram = components @ components.T
    gram[np.diag_indices_from(gram)] += step.ridge_alpha
    y = importer.cast(_minus(importer, x, step.mean_), components.dtype)
    return _times(importer, y, np.linalg.solve(gram, components).T)


def _components(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    matrix = step.components_
    dense = matrix.toarray() if hasattr(matrix, "tocsr") else np.asarray(matrix)
    return _times(importer, x, dense.T)


def _discriminants(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    matrix = np.asarray(step.scalings_)[:, : step._max_components]
    if step.solver == "svd":
        x = _minus(importer, x, step.xbar_)
    return _times(importer, x, matrix)


def _why_no_discriminants(step: Any) -> list[str]:
    return ["parameter solver='lsqr', which does not transform"] if step.solver == "lsqr" else []


def _pooled(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """One column for each cluster of columns."""
    if step.pooling_func is np.mean:
        labels: Array = np.asarray(step.labels_)
        members: Array = np.eye(int(labels.max()) + 1)[labels]
        y = importer.matmul(importer.cast(x, np.float64), members, "clusters")
        return importer.div(y, members.sum(axis=0), "sizes")
    kind = POOLING[step.pooling_func]
    every = [np.flatnonzero(step.labels_ == label) for label in np.unique(step.labels_)]
    parts = [
        importer.builder(ReduceOp, importer.columns(x, c), kind=kind, axes=[1], keepdims=True)
        for c in every
    ]
    return importer.concat(parts)


POOLING: dict[Any, str] = {np.max: "max", np.min: "min", np.sum: "sum"}


def _why_no_pool(step: Any) -> list[str]:
    if step.pooling_func is np.mean or step.pooling_func in POOLING:
        return []
    names = ", ".join(f.__name__ for f in (np.mean, *POOLING))
    return [f"parameter pooling_func={step.pooling_func!r} (supported: NumPy's {names})"]


# Kernels


def _kernel(step: Any, features: int) -> kernels.Kernel:
    """The step's kernel, with scikit-learn's defaults."""
    gamma = getattr(step, "gamma_", None) or step.gamma
    if gamma is None:
        gamma = 1.0 if step.kernel == "chi2" else 1.0 / features
    degree = 3 if step.degree is None else step.degree
    coef0 = 1.0 if step.coef0 is None else step.coef0
    return kernels.Kernel(step.kernel, float(gamma), degree, float(coef0))


def _near(importer: Importer, step: Any, x: SSAValue, points: Any) -> SSAValue:
    if step.kernel == "precomputed":
        return x
    if step.kernel == "additive_chi2" or step.kernel == "chi2":
        message = f"{type(step).__name__} found a number below 0, which its kernel does not take"
        importer.require(importer.compare(x, "ge", [0.0], "zero"), message)
    return kernels.apply(importer, _kernel(step, importer.width(x)), x, kernels.fitted_rows(points))


def _why_no_kernel(step: Any) -> list[str]:
    known = (*kernels.KERNELS, "precomputed")
    reasons = kernels.why_not(step, known)
    parameters = getattr(step, "kernel_params", None)
    return [*reasons, "parameter kernel_params"] if parameters and not reasons else reasons


def _centred_kernel(importer: Importer, step: Any, near: SSAValue) -> SSAValue:
    rows = np.asarray(step.K_fit_rows_)
    mean = importer.div(importer.reduce("sum", near), [float(len(rows))], "rows")
    near = importer.update(SubOp, near, rows, "rows")
    near = importer.builder(SubOp, near, mean)
    return importer.add(near, [float(step.K_fit_all_)], "all")


def kernel_components(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """What a fitted KernelPCA makes of rows."""
    near = _centred_kernel(importer, step._centerer, _near(importer, step, x, step.X_fit_))
    values, vectors = np.asarray(step.eigenvalues_), np.asarray(step.eigenvectors_)
    scaled = np.where(values != 0, vectors / np.sqrt(np.where(values != 0, values, 1)), 0)
    return _times(importer, near, scaled.astype(vectors.dtype))


def _ridge(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    dual = np.asarray(step.dual_coef_)
    near = _near(importer, step, x, step.X_fit_)
    y = _times(importer, near, dual.reshape(len(dual), -1))
    return regressor(importer, y, flat=dual.ndim == 1)


def _sampled(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    near = _near(importer, step, x, step.components_)
    return _times(importer, near, np.asarray(step.normalization_).T)


# Kernels by samples


def _waves(importer: Importer, step: Any, x: SSAValue, factor: float) -> SSAValue:
    y = _times(importer, x, step.random_weights_)
    y = importer.update(AddOp, y, step.random_offset_, "offset")
    return importer.mul(importer.builder(CosOp, y), [factor], "factor")


def _rbf_waves(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    return _waves(importer, step, x, (2.0 / step.n_components) ** 0.5)


def _count_sketch(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    """Sketches of x, one a degree, convolved: the product of their Fourier transforms, whose matrices are
    made when imported. Of a real sketch half of the frequencies say all."""
    size, build = int(step.n_components), importer.builder
    x = importer.mul(x, [float(np.sqrt(step.gamma))], "gamma")
    if step.coef0 != 0:
        one = importer.full(x, float(np.sqrt(step.coef0)), np.float64)
        x = importer.concat([importer.cast(x, np.float64), one])
    x = importer.cast(x, np.float64)
    hashes: Array = np.asarray(step.indexHash_)
    signs: Array = np.asarray(step.bitHash_)
    real: SSAValue | None = None
    imaginary: SSAValue | None = None
    for places, bits in zip(hashes, signs, strict=True):
        waves = np.fft.rfft(np.eye(size)[places] * np.asarray(bits)[:, None], axis=1)
        a, b = _times(importer, x, waves.real), _times(importer, x, waves.imag)
        if real is None or imaginary is None:
            real, imaginary = a, b
            continue
        real, imaginary = (
            build(SubOp, build(MulOp, real, a), build(MulOp, imaginary, b)),
            build(AddOp, build(MulOp, real, b), build(MulOp, imaginary, a)),
        )
    assert real is not None
    assert imaginary is not None
    unit = np.eye(size // 2 + 1)
    back = np.fft.irfft(unit, n=size, axis=1), np.fft.irfft(1j * unit, n=size, axis=1)
    parts = [_times(importer, v, m) for v, m in zip((real, imaginary), back, strict=True)]
    return build(AddOp, *parts)


def _skewed_waves(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    message = "SkewedChi2Sampler found a number not above -skewedness"
    importer.require(importer.compare(x, "gt", [-step.skewedness], "skewedness"), message)
    logs = importer.builder(LogOp, importer.add(x, [step.skewedness], "skewedness"))
    return _waves(importer, step, logs, float(np.sqrt(2.0) / np.sqrt(step.n_components)))


def _chi2_waves(importer: Importer, step: Any, x: SSAValue) -> SSAValue:
    if importer.dtype(x) == np.bool_:
        raise UnsupportedError("AdditiveChi2Sampler of booleans, in which it would compute")
    message = "AdditiveChi2Sampler found a number below 0"
    importer.require(importer.compare(x, "ge", [0.0], "zero"), message)
    interval, build = _interval(step), importer.builder
    zero = importer.compare(x, "eq", [0.0], "zero")
    safe = importer.where(zero, x, [1.0], "one")
    parts = [build(SqrtOp, importer.mul(safe, [interval], "interval"))]
    logs = importer.mul(build(LogOp, safe), [interval], "interval")
    twice = importer.mul(importer.mul(safe, [2.0], "two"), [interval], "interval")
    for number in range(1, step.sample_steps):
        size = importer.div(twice, [float(np.cosh(np.pi * number * interval))], "cosh")
        factor, angle = build(SqrtOp, size), importer.mul(logs, [float(number)], "step")
        parts += [build(MulOp, factor, build(wave, angle)) for wave in (CosOp, SinOp)]
    return importer.concat([importer.where(zero, part, [0.0], "zero") for part in parts])


def _interval(step: Any) -> float:
    known = {1: 0.8, 2: 0.5, 3: 0.4}
    return float(known[step.sample_steps] if step.sample_interval is None else step.sample_interval)


# Outliers


def _envelope(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    """Squared Mahalanobis distances."""
    y = importer.sub(importer.cast(x, np.float64), step.location_, "location")
    far = importer.builder(MulOp, y, _times(importer, y, step.get_precision()))
    score = importer.builder(NegOp, importer.reduce("sum", far))
    offset = float(step.offset_)
    return outliers(importer, importer.sub(score, [offset], "offset"), "ge", offset)


def _one_class(importer: Importer, step: Any, x: SSAValue) -> Outputs:
    offset: Array = np.asarray(step.offset_).reshape(-1)
    y = _times(importer, x, np.asarray(step.coef_).reshape(-1, 1))
    margins = importer.sub(_wide(importer, y, offset), offset, "offset")
    return outliers(importer, margins, "ge", float(offset[0]), np.int32)


Build = Callable[[Importer, Any, SSAValue], SSAValue]
_STRAIGHT: dict[str, Build] = {
    "CCA": _partial,
    "FactorAnalysis": _factors,
    "FastICA": _independent,
    "GaussianRandomProjection": _components,
    "MiniBatchSparsePCA": _sparse_components,
    "NeighborhoodComponentsAnalysis": _components,
    "PLSCanonical": _partial,
    "PolynomialCountSketch": _count_sketch,
    "PLSRegression": _partial,
    "PLSSVD": _partial_svd,
    "RBFSampler": _rbf_waves,
    "AdditiveChi2Sampler": _chi2_waves,
    "SkewedChi2Sampler": _skewed_waves,
    "SparsePCA": _sparse_components,
    "SparseRandomProjection": _components,
}

TRANSFORMERS: dict[str, Transformer] = {
    **{name: Transformer(build) for name, build in _STRAIGHT.items()},
    "FeatureAgglomeration": Transformer(_pooled, _why_no_pool),
    "KernelCenterer": Transformer(_centred_kernel),
    "KernelPCA": Transformer(kernel_components, _why_no_kernel),
    "LinearDiscriminantAnalysis": Transformer(_discriminants, _why_no_discriminants),
    "Nystroem": Transformer(_sampled, _why_no_kernel),
}
PREDICTORS: dict[str, Predictor] = {
    **{n: Predictor(_partial_regressor) for n in ("CCA", "PLSCanonical", "PLSRegression")},
    "EllipticEnvelope": Predictor(_envelope),
    "KernelRidge": Predictor(_ridge, _why_no_kernel),
    "SGDOneClassSVM": Predictor(_one_class),
}
