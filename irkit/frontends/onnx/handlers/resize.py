"""Resize and Upsample: along each axis, a few gathered neighbours times constant weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.types import DYNAMIC, is_float, numpy_dtype, tensor_type
from irkit.frontends.onnx.extents import factor_of
from irkit.frontends.onnx.handlers.arithmetic import element_of, scalar
from irkit.frontends.onnx.node import Handler, Node, Value
from irkit.weights import Array


@dataclass(frozen=True)
class Axis:
    """One axis: its sizes, its scale, and the part of it that is the region of interest."""

    number: int
    have: int
    want: int
    scale: float
    region: tuple[float, float] = (0.0, 1.0)


@dataclass(frozen=True)
class Taps:
    """Per output element (rows) the neighbours' positions and weights, and whether it lies outside."""

    positions: Array
    weights: Array
    outside: Array


# Output coordinate → input coordinate


def _half_pixel(x: Array, a: Axis) -> Array:
    return (x + 0.5) / a.scale - 0.5


def _symmetric(x: Array, a: Axis) -> Array:
    adjustment = a.want / (a.scale * a.have)
    return a.have / 2 * (1 - adjustment) + (x + 0.5) / a.scale - 0.5


def _pytorch(x: Array, a: Axis) -> Array:
    return _half_pixel(x, a) if a.want != 1 else np.zeros(x.shape)


def _align_corners(x: Array, a: Axis) -> Array:
    length = a.scale * a.have
    return np.zeros(x.shape) if length == 1 else x * (a.have - 1) / (length - 1)


def _asymmetric(x: Array, a: Axis) -> Array:
    return x / a.scale


def _crop(x: Array, a: Axis) -> Array:
    start, end = a.region
    length, span = a.scale * a.have, (end - start) * (a.have - 1)
    inside = np.full(x.shape, span / 2) if length == 1 else x * span / (length - 1)
    return inside + start * (a.have - 1)


_COORDINATES: dict[str, Callable[[Array, Axis], Array]] = {
    "align_corners": _align_corners,
    "asymmetric": _asymmetric,
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _symmetric,
    "pytorch_half_pixel": _pytorch,
    "tf_crop_and_resize": _crop,
}

# Distance from the left neighbour, in (0, 1] → weights

_NEAREST: dict[str, Callable[[float], bool]] = {
    "round_prefer_floor": lambda ratio: ratio > 0.5,
    "round_prefer_ceil": lambda ratio: ratio >= 0.5,
    "floor": lambda ratio: ratio == 1,
    "ceil": lambda ratio: True,
}


def _triangle(distance: Array) -> Array:
    return np.clip(1 - np.abs(distance), 0, 1)


def _cubic(distance: Array, a: float) -> Array:
    x = np.abs(distance)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0.0))


def _weights(node: Node, axis: Axis) -> Callable[[float], Array]:
    """The weights of the neighbours, from the left one's distance."""
    mode = str(node.attribute("mode", "nearest"))
    if mode == "nearest":
        name = str(node.attribute("nearest_mode", "round_prefer_floor"))
        if node.opset < 11:
            name = "floor"
        if name not in _NEAREST:
            node.refuse(f"nearest_mode = {name!r}", "it is not defined")
        right = _NEAREST[name]
        return lambda ratio: np.array([0.0, 1.0] if right(ratio) else [1.0, 0.0])
    if mode not in ("linear", "bilinear", "trilinear", "cubic"):
        node.refuse(f"mode = {mode!r}", "it is not defined")
    if mode == "cubic" and node.opset < 11:
        node.refuse("mode = 'cubic'", "operator set 11 is the first that has it")
    radius = 2 if mode == "cubic" else 1
    a = float(node.attribute("cubic_coeff_a", -0.75))
    smooth = bool(node.attribute("antialias", 0))
    scale = min(axis.scale, 1.0) if smooth else 1.0
    start = math.floor(-radius / scale) + 1

    def weights(ratio: float) -> Array:
        distance = (np.arange(start, 2 - start) - ratio) * scale
        found = _cubic(distance, a) if mode == "cubic" else _triangle(distance)
        return found / found.sum() if smooth else found

    return weights


def _taps(node: Node, axis: Axis) -> Taps:
    name = str(node.attribute("coordinate_transformation_mode", "half_pixel"))
    if node.opset < 11:
        name = "asymmetric"
    if name not in _COORDINATES:
        node.refuse(f"coordinate_transformation_mode = {name!r}", "it is not supported")
    x = _COORDINATES[name](np.arange(axis.want, dtype=np.float64), axis)
    last = axis.have - 1
    outside = (x < 0) | (x > last) if name == "tf_crop_and_resize" else np.zeros(x.shape, np.bool_)
    weights_of = _weights(node, axis)
    exclude = bool(node.attribute("exclude_outside", 0))
    positions: list[Array] = []
    weights: list[Array] = []
    for at in x.tolist():
        row = weights_of(at - math.ceil(at) + 1)
        reach = -(-len(row) // 2)
        start = min(max(math.ceil(at) - len(row) // 2, -reach), axis.have + reach - len(row))
        window = start + np.arange(len(row))
        if exclude:
            row = np.where((window < 0) | (window > last), 0.0, row)
            row = row / row.sum()
        positions.append(np.clip(window, 0, last))
        weights.append(row)
    return Taps(np.array(positions), np.array(weights), outside)


def _resized(node: Node, x: SSAValue, axis: Axis) -> SSAValue:
    """`x` with one axis resized."""
    taps, element = _taps(node, axis), element_of(x)
    single = ((taps.weights == 0) | (taps.weights == 1)).all()
    extrapolation = float(node.attribute("extrapolation_value", 0.0))
    if single:
        picked = (taps.positions * taps.weights).sum(axis=1).astype(np.int64)
        y = node.emit(graph.GatherOp, x, node.tensor(picked), axis=axis.number)
    elif not is_float(element):
        node.refuse("mode", "integers can only be resized by nearest neighbours")
    else:
        y = _weighted(node, x, axis, taps)
    if taps.outside.any():
        mask = node.tensor(_along(taps.outside, x, axis))
        y = node.emit(graph.WhereOp, mask, scalar(node, extrapolation, y), y)
    return y


def _weighted(node: Node, x: SSAValue, axis: Axis, taps: Taps) -> SSAValue:
    dtype = numpy_dtype(element_of(x))
    total: SSAValue | None = None
    for tap in range(taps.weights.shape[1]):
        weights = taps.weights[:, tap]
        if not weights.any():
            continue
        index = node.tensor(taps.positions[:, tap].astype(np.int64))
        term = node.emit(graph.GatherOp, x, index, axis=axis.number)
        factor = node.tensor(_along(weights.astype(dtype), x, axis))
        term = node.emit(graph.MulOp, term, factor)
        total = term if total is None else node.emit(graph.AddOp, total, term)
    assert total is not None
    return total


def _along(values: Array, x: SSAValue, axis: Axis) -> Array:
    """One value per element of the axis, shaped to broadcast with `x`."""
    rank = tensor_type(x).get_num_dims()
    return values.reshape([-1 if d == axis.number else 1 for d in range(rank)])


# Sizes and scales


def _axes(node: Node, shape: Sequence[int]) -> list[Axis]:
    numbers = [node.axis(int(a), len(shape)) for a in node.attribute("axes", range(len(shape)))]
    region = _region(node, len(numbers))
    have = [shape[n] for n in numbers]
    given = node.opset >= 11 and node.given(3) is not None and node.shape_array(3).size
    if given:
        want = _sizes(node, numbers)
        scales = [w / h for w, h in zip(want, have, strict=True)]
        policy = str(node.attribute("keep_aspect_ratio_policy", "stretch"))
        if policy != "stretch":
            scale = (min if policy == "not_larger" else max)(scales)
            scales = [scale] * len(have)
            want = [math.floor(scale * h + 0.5) for h in have]
    else:
        scales = _scales(node)
        want = [h if h == DYNAMIC else math.floor(h * s) for h, s in zip(have, scales, strict=True)]
    return [
        Axis(n, h, w, s, r)
        for n, h, w, s, r in zip(numbers, have, want, scales, region, strict=True)
    ]


def _sizes(node: Node, numbers: Sequence[int]) -> list[int]:
    """Input 3. Exporters write all of a shape, so the batch may be among them where it stays as it is."""
    wanted = [int(s) for s in node.shape_array(3)]
    if not node.symbolic[3]:
        return wanted
    have = node.sizes(0)
    if any(factor_of(w) and w != have[n] for n, w in zip(numbers, wanted, strict=True)):
        node.refuse(node.name_of(3), "it depends on the dynamic batch size")
    return [DYNAMIC if factor_of(w) else w for w in wanted]


def _scales(node: Node) -> list[float]:
    if node.opset < 9:
        return [float(s) for s in node.attribute("scales", [])]
    return [float(s) for s in node.array(1 if node.opset < 11 else 2)]


def _region(node: Node, count: int) -> list[tuple[float, float]]:
    if node.opset < 11 or node.given(1) is None:
        return [(0.0, 1.0)] * count
    if str(node.attribute("coordinate_transformation_mode", "")) != "tf_crop_and_resize":
        return [(0.0, 1.0)] * count
    roi = node.array(1).astype(np.float64)
    return [(float(roi[i]), float(roi[i + count])) for i in range(count)]


def _resize(node: Node) -> Sequence[Value]:
    x = node.operand(0)
    node.ignore(
        "antialias", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside",
        "extrapolation_value", "keep_aspect_ratio_policy", "mode", "nearest_mode",
    )  # fmt: skip
    for axis in _axes(node, tensor_type(x).get_shape()):
        if axis.have == DYNAMIC:
            if axis.scale != 1:
                node.refuse("scales", "it resizes the dynamic batch")
        elif axis.want < 1:
            node.refuse("sizes", "empty tensors are not supported")
        elif (axis.have, axis.scale, axis.region) != (axis.want, 1.0, (0.0, 1.0)):
            x = _resized(node, x, axis)
    return [x]


HANDLERS: dict[str, Handler] = {"Resize": _resize, "Upsample": _resize}
