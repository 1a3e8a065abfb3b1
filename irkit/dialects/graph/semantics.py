"""The NumPy meaning of each graph op: a table from op class to a small function.

`evaluate` is the only way in; the interpreter and the constant folder both use it. Every rule
computes in the op's element type. Sums run in index order, so that a sequential loop over the
same elements gives the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from irkit.dialects import graph
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.types import DYNAMIC, ints, numpy_dtype, tensor_type
from irkit.errors import InvalidInputError
from irkit.weights import Array

Rule = Callable[..., Array | tuple[Array, ...]]


def evaluate(op: GraphOp, operands: Sequence[Array]) -> list[Array]:
    """The results of `op` on arrays of its operands' types.

    A dynamic dimension takes the array's size. Raises InvalidInputError where a value has no
    meaning (a gather index outside its axis).
    """
    with np.errstate(all="ignore"):
        results = SEMANTICS[type(op)](op, *operands)
    if not isinstance(results, tuple):
        results = (results,)
    return [
        np.asarray(array, dtype=numpy_dtype(tensor_type(result).element_type))
        for array, result in zip(results, op.results, strict=True)
    ]


# Elementwise


def _unary(function: Callable[[Array], Array]) -> Rule:
    def rule(op: GraphOp, x: Array) -> Array:
        return function(x)

    return rule


def _binary(function: Callable[[Array, Array], Array]) -> Rule:
    def rule(op: GraphOp, lhs: Array, rhs: Array) -> Array:
        return function(lhs, rhs)

    return rule


def _divide(lhs: Array, rhs: Array) -> Array:
    if lhs.dtype.kind == "f":
        return lhs / rhs
    # NumPy's // rounds down; integers here truncate towards zero.
    quotient = np.abs(lhs) // np.abs(rhs)
    return np.where((lhs < 0) != (rhs < 0), -quotient, quotient)


def _erf(x: Array) -> Array:
    flat = [math.erf(v) for v in x.ravel().tolist()]
    return np.array(flat, dtype=np.float64).reshape(x.shape).astype(x.dtype)


def _relu(x: Array) -> Array:
    return np.maximum(x, x.dtype.type(0))


def _sigmoid(x: Array) -> Array:
    one = x.dtype.type(1)
    return one / (one + np.exp(-x))


def _cast(op: graph.CastOp, x: Array) -> Array:
    return x.astype(numpy_dtype(op.to))


def _clip(op: graph.ClipOp, x: Array) -> Array:
    low, high = (x.dtype.type(limit.value.data) for limit in (op.min, op.max))
    return np.minimum(np.maximum(x, low), high)


_PREDICATES: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _compare(op: graph.CompareOp, lhs: Array, rhs: Array) -> Array:
    return _PREDICATES[op.predicate.data](lhs, rhs)


def _where(op: graph.WhereOp, condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition, x, y)


# Linear


def _gemm(op: graph.GemmOp, a: Array, b: Array, c: Array | None = None) -> Array:
    a = a.T if op.trans_a.value.data else a
    b = b.T if op.trans_b.value.data else b
    y = a.dtype.type(op.alpha.value.data) * (a @ b)
    return y if c is None else y + c.dtype.type(op.beta.value.data) * c


def _matmul(op: graph.MatmulOp, a: Array, b: Array) -> Array:
    return a @ b


# Windows


def _windows(
    x: Array, kernel: Sequence[int], strides: Sequence[int], pads: Sequence[int], fill: float,
    dilations: Sequence[int] = (1, 1),
) -> Array:  # fmt: skip
    """batch x channels x out_height x out_width x kernel_height x kernel_width, padded by `fill`."""
    top, left, bottom, right = pads
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)
    extent = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
    views = sliding_window_view(x, extent, axis=(2, 3))
    return views[:, :, :: strides[0], :: strides[1], :: dilations[0], :: dilations[1]]


def _conv(op: graph.ConvOp, x: Array, w: Array, b: Array | None = None) -> Array:
    group = op.group.value.data
    outputs, channels, *kernel = w.shape
    views = _windows(x, kernel, ints(op.strides), ints(op.pads), 0.0, ints(op.dilations))
    batch, _, height, width = views.shape[:4]
    # Per group: (outputs x taps) @ (taps x positions).
    taps = channels * kernel[0] * kernel[1]
    patches = views.reshape(batch, group, channels, height, width, *kernel)
    patches = patches.transpose(0, 1, 2, 5, 6, 3, 4).reshape(batch, group, taps, height * width)
    y = w.reshape(group, outputs // group, taps) @ patches
    y = y.reshape(batch, outputs, height, width)
    return y if b is None else y + b.reshape(-1, 1, 1)


def _pool_windows(op: graph.AveragePoolOp | graph.MaxPoolOp, x: Array, fill: float) -> Array:
    return _windows(x, ints(op.kernel_shape), ints(op.strides), ints(op.pads), fill)


def _max_pool(op: graph.MaxPoolOp, x: Array) -> Array:
    return _pool_windows(op, x, -np.inf).max(axis=(4, 5))


def _average_pool(op: graph.AveragePoolOp, x: Array) -> Array:
    total = _fold(np.add, _pool_windows(op, x, 0.0), (4, 5))
    if op.count_include_pad.value.data:
        return total / x.dtype.type(math.prod(ints(op.kernel_shape)))
    inside = np.ones((1, 1, *x.shape[2:]), dtype=x.dtype)
    return total / _pool_windows(op, inside, 0.0).sum(axis=(4, 5), dtype=x.dtype)


def _global_average_pool(op: graph.GlobalAveragePoolOp, x: Array) -> Array:
    mean = _fold(np.add, x, (2, 3)) / x.dtype.type(math.prod(x.shape[2:]))
    return mean[:, :, None, None]


# Normalisation and reduction


def _batch_norm(
    op: graph.BatchNormOp, x: Array, scale: Array, bias: Array, mean: Array, variance: Array
) -> Array:
    shape = (-1, *(1,) * (x.ndim - 2))
    deviation = np.sqrt(variance + variance.dtype.type(op.epsilon.value.data))
    y = (x - mean.reshape(shape)) / deviation.reshape(shape)
    return y * scale.reshape(shape) + bias.reshape(shape)


def _softmax(op: graph.SoftmaxOp, x: Array) -> Array:
    axis = op.axis.value.data
    power = np.exp(x - x.max(axis=axis, keepdims=True))
    return power / np.expand_dims(_fold(np.add, power, (axis,)), axis)


def _fold(function: np.ufunc, x: Array, axes: Sequence[int]) -> Array:
    """Left fold of `function` over `axes` in row-major order; those axes must not be empty."""
    axes = sorted(axes)
    if not axes:
        return x
    kept = [s for d, s in enumerate(x.shape) if d not in axes]
    rows = np.moveaxis(x, axes, range(len(axes)))
    rows = rows.reshape(math.prod(x.shape[d] for d in axes), *kept)
    if len(rows) > math.prod(kept):
        # `reduce` adds pairwise; `accumulate` goes in order.
        return function.accumulate(rows, axis=0, dtype=x.dtype)[-1]
    total = rows[0]
    for row in rows[1:]:
        total = function(total, row)
    return total


_FOLDS: dict[str, np.ufunc] = {
    "sum": np.add,
    "mean": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "prod": np.multiply,
}


def _reduce(op: graph.ReduceOp, x: Array) -> Array:
    axes, kind = ints(op.axes), op.kind.data
    y = _fold(_FOLDS[kind], x, axes)
    if kind == "mean":
        y = _divide(y, x.dtype.type(math.prod(x.shape[d] for d in axes)))
    return np.expand_dims(y, tuple(axes)) if op.keepdims.value.data else y


def _argmax(op: graph.ArgmaxOp, x: Array) -> Array:
    return x.argmax(axis=op.axis.value.data, keepdims=bool(op.keepdims.value.data))


# Shape


def _concat(op: graph.ConcatOp, *inputs: Array) -> Array:
    return np.concatenate(inputs, axis=op.axis.value.data)


def _concrete(shape: Sequence[int], x: Array) -> list[int]:
    """`shape` with a leading dynamic dimension taken from `x`."""
    return [x.shape[0] if s == DYNAMIC else s for s in shape]


def _expand(op: graph.ExpandOp, x: Array) -> Array:
    return np.broadcast_to(x, _concrete(ints(op.shape), x))


def _check_indices(
    op: graph.GatherOp | graph.GatherElementsOp, data: Array, indices: Array
) -> None:
    size = data.shape[op.axis.value.data]
    if indices.size and (indices.min() < 0 or indices.max() >= size):
        raise InvalidInputError(
            f"'{op.name}' expects indices in [0, {size}), got {indices.min()} to {indices.max()}"
        )


def _gather(op: graph.GatherOp, data: Array, indices: Array) -> Array:
    _check_indices(op, data, indices)
    return np.take(data, indices, axis=op.axis.value.data)


def _gather_elements(op: graph.GatherElementsOp, data: Array, indices: Array) -> Array:
    _check_indices(op, data, indices)
    return np.take_along_axis(data, indices.astype(np.int64), axis=op.axis.value.data)


def _reshape(op: graph.ReshapeOp, x: Array) -> Array:
    return x.reshape(_concrete(ints(op.shape), x))


def _slice(op: graph.SliceOp, x: Array) -> Array:
    for axis, (start, size, step) in enumerate(
        zip(ints(op.offsets), ints(op.sizes), ints(op.strides), strict=True)
    ):
        if size != DYNAMIC:
            x = np.take(x, start + step * np.arange(size), axis=axis)
    return x


def _transpose(op: graph.TransposeOp, x: Array) -> Array:
    return x.transpose(ints(op.permutation))


# Recurrence


def _cell(x: Array, h: Array, c: Array, w: Array, r: Array, b: Array) -> tuple[Array, Array]:
    i, o, f, g = np.split(x @ w.T + h @ r.T + b, 4, axis=1)
    c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
    return _sigmoid(o) * np.tanh(c), c


def _lstm_cell(op: graph.LstmCellOp, *operands: Array) -> tuple[Array, ...]:
    return _cell(*operands)


def _lstm(
    op: graph.LstmOp, x: Array, h: Array, c: Array, w: Array, r: Array, b: Array
) -> tuple[Array, ...]:
    y = np.empty((len(x), *h.shape), dtype=x.dtype)
    for step, row in enumerate(x):
        h, c = _cell(row, h, c, w, r, b)
        y[step] = h
    return y, h, c


# Forests


def _forest(
    op: graph.ForestOp, x: Array, feature: Array, threshold: Array, left: Array, right: Array,
    nan_left: Array, value: Array, root: Array, output: Array, base: Array,
) -> Array:  # fmt: skip
    compare = _PREDICATES[op.comparison.data]
    rows = np.arange(len(x))
    total = np.tile(base, (len(x), 1))
    # A leaf may carry any feature number; it goes back to itself whatever is compared.
    feature = np.where(left == right, 0, feature)
    for start, column in zip(root, output, strict=True):
        node = np.full(len(x), start)
        for _ in range(op.depth.value.data):
            cell = x[rows, feature[node]]
            goes_left = compare(cell, threshold[node]) | (np.isnan(cell) & nan_left[node])
            node = np.where(goes_left, left[node], right[node])
        if value.shape[1] == 1:
            total[:, column] += value[node, 0]
        else:
            total += value[node]
    return total


SEMANTICS: dict[type[GraphOp], Rule] = {
    graph.AbsOp: _unary(np.abs),
    graph.AddOp: _binary(np.add),
    graph.AndOp: _binary(np.logical_and),
    graph.ArgmaxOp: _argmax,
    graph.AveragePoolOp: _average_pool,
    graph.BatchNormOp: _batch_norm,
    graph.CastOp: _cast,
    graph.ClipOp: _clip,
    graph.CompareOp: _compare,
    graph.ConcatOp: _concat,
    graph.ConvOp: _conv,
    graph.DivOp: _binary(_divide),
    graph.ErfOp: _unary(_erf),
    graph.ExpOp: _unary(np.exp),
    graph.ExpandOp: _expand,
    graph.FloorOp: _unary(np.floor),
    graph.ForestOp: _forest,
    graph.GatherElementsOp: _gather_elements,
    graph.GatherOp: _gather,
    graph.GemmOp: _gemm,
    graph.GlobalAveragePoolOp: _global_average_pool,
    graph.IsNanOp: _unary(np.isnan),
    graph.LogOp: _unary(np.log),
    graph.LstmCellOp: _lstm_cell,
    graph.LstmOp: _lstm,
    graph.MatmulOp: _matmul,
    graph.MaxOp: _binary(np.maximum),
    graph.MaxPoolOp: _max_pool,
    graph.MinOp: _binary(np.minimum),
    graph.MulOp: _binary(np.multiply),
    graph.NegOp: _unary(np.negative),
    graph.OrOp: _binary(np.logical_or),
    graph.PowOp: _binary(np.power),
    graph.ReduceOp: _reduce,
    graph.ReluOp: _unary(_relu),
    graph.ReshapeOp: _reshape,
    graph.SigmoidOp: _unary(_sigmoid),
    graph.SliceOp: _slice,
    graph.SoftmaxOp: _softmax,
    graph.SqrtOp: _unary(np.sqrt),
    graph.SubOp: _binary(np.subtract),
    graph.TanhOp: _unary(np.tanh),
    graph.TransposeOp: _transpose,
    graph.WhereOp: _where,
}
"""Every op of the dialect has its rule here; a test holds the two lists together."""
