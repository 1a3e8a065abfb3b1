"""Steps before models of the domain ai.onnx.ml: scalers, imputers, encoders and selections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import numpy_helper
from xdsl.dialects.builtin import f32, f64, i64
from xdsl.ir import SSAValue

from irkit.dialects import graph
from irkit.dialects.types import DYNAMIC, element_type, tensor_type
from irkit.frontends.onnx.handlers.arithmetic import cast, element_of, scalar
from irkit.frontends.onnx.handlers.ml_scores import (
    as_dtype,
    beside,
    check_length,
    is_floating,
    numbers,
)
from irkit.frontends.onnx.node import Handler, Node, Value
from irkit.weights import Array


def _floats(node: Node, index: int = 0) -> SSAValue:
    x = node.operand(index)
    return x if element_of(x) in (f32, f64) else cast(node, x, f32)


def _last(node: Node, x: SSAValue) -> int:
    """How many columns there are."""
    shape = tensor_type(x).get_shape()
    if not shape or shape[-1] == DYNAMIC:
        node.refuse("input 0", "it has no number of columns")
    return shape[-1]


def _row(node: Node, name: str, x: SSAValue, missing: float) -> SSAValue:
    """A number a column, or one for all."""
    found = numbers(node, name)
    if not len(found):
        found = np.array([missing], np.float32)
    if len(found) != 1:
        check_length(node, name, found, _last(node, x))
    return node.tensor(found.astype(as_dtype(x)))


def _scaler(node: Node) -> Sequence[Value]:
    x = _floats(node)
    moved = node.emit(graph.SubOp, x, _row(node, "offset", x, 0))
    return [cast(node, node.emit(graph.MulOp, moved, _row(node, "scale", x, 1)), f32)]


def _binarizer(node: Node) -> Sequence[Value]:
    x = node.operand(0)
    if element_of(x) != f32:
        node.refuse(node.name_of(0), f"of {x.type}: ONNX Runtime takes float32 alone")
    limit = scalar(node, float(node.attribute("threshold", 0.0)), x)
    above = node.emit(graph.CompareOp, x, limit, predicate="gt")
    return [cast(node, above, f32)]


def _imputer(node: Node) -> Sequence[Value]:
    x = node.operand(0)
    kind = "floats" if is_floating(x) else "int64s"
    ours, theirs = (("float", "floats"), ("int64", "int64s"))[kind == "int64s"]
    node.ignore(*(n for n in ("replaced_value_float", "replaced_value_int64") if ours not in n))
    for other in {"imputed_value_floats", "imputed_value_int64s"} - {f"imputed_value_{theirs}"}:
        if len(node.attribute(other, [])):
            node.refuse(other, f"of {x.type}")
    found = numbers(node, f"imputed_value_{theirs}", as_dtype(x).type)
    if len(found) != 1:
        check_length(node, f"imputed_value_{theirs}", found, _last(node, x))
    gap = as_dtype(x).type(node.attribute(f"replaced_value_{ours}", 0))
    if gap != gap:
        missing = node.emit(graph.IsNanOp, x)
    else:
        missing = node.emit(graph.CompareOp, x, scalar(node, gap, x), predicate="eq")
    return [node.emit(graph.WhereOp, missing, node.tensor(found), x)]


def _normalizer(node: Node) -> Sequence[Value]:
    """Rows divided by their size; those of size 0 stay. MAX is the largest number, which may be negative."""
    norm, x = node.attribute("norm", "MAX"), _floats(node)
    axis = tensor_type(x).get_num_dims() - 1
    if norm not in ("MAX", "L1", "L2"):
        node.refuse(f"norm = {norm!r}", "expected MAX, L1 or L2")
    if axis != 1:
        node.refuse(node.name_of(0), f"expected rows and columns, got {x.type}")
    # NaN is larger than nothing.
    lowest = scalar(node, -np.inf, x)
    terms, kind = node.emit(graph.WhereOp, node.emit(graph.IsNanOp, x), lowest, x), "max"
    if norm == "L1":
        terms, kind = node.emit(graph.AbsOp, x), "sum"
    elif norm == "L2":
        terms, kind = node.emit(graph.MulOp, x, x), "sum"
    size = node.emit(graph.ReduceOp, terms, kind=kind, axes=[axis], keepdims=True)
    none = node.emit(graph.CompareOp, size, scalar(node, 0, x), predicate="eq")
    size = node.emit(graph.WhereOp, none, scalar(node, 1, x), size)
    if norm == "L2":
        size = node.emit(graph.SqrtOp, size)
    return [cast(node, node.emit(graph.DivOp, x, size), f32)]


def _feature_vectorizer(node: Node) -> Sequence[Value]:
    parts = [cast(node, node.operand(i), f32) for i in range(len(node.inputs))]
    if any(tensor_type(p).get_num_dims() != 2 for p in parts):
        node.refuse("inputs", "expected rows and columns")
    widths = node.attribute("inputdimensions", [])
    if list(widths) != [_last(node, p) for p in parts]:
        node.refuse(f"inputdimensions = {list(widths)}", "the inputs have other numbers of columns")
    return [beside(node, parts) if len(parts) > 1 else parts[0]]


def _feature_extractor(node: Node) -> Sequence[Value]:
    """Columns by their numbers, along the last axis."""
    x, which = node.operand(0), node.array(1).reshape(-1)
    if not len(which) or not 0 <= which.min() <= which.max() < _last(node, x):
        node.refuse(node.name_of(1), f"it names a column that is none of {_last(node, x)}")
    axis = tensor_type(x).get_num_dims() - 1
    if axis == 0:
        x, axis = node.emit(graph.ReshapeOp, x, shape=[1, _last(node, x)]), 1
    return [node.emit(graph.GatherOp, x, node.tensor(which), axis=axis)]


def _one_hot(node: Node) -> Sequence[Value]:
    if node.attribute("cats_strings", []):
        node.refuse("cats_strings", "categories that are strings")
    known, x = numbers(node, "cats_int64s", np.int64), node.operand(0)
    if not len(known) or len(set(known.tolist())) != len(known):
        node.refuse("cats_int64s", "there are none, or one of them twice")
    if not node.attribute("zeros", 1):
        node.refuse("zeros = 0", "an unknown category would have to be an error")
    # Floats are cut off to integers.
    codes = cast(node, x, i64)
    shape = [*tensor_type(x).get_shape(), 1]
    wide = node.emit(graph.ReshapeOp, codes, shape=shape)
    return [cast(node, node.emit(graph.CompareOp, wide, node.tensor(known), predicate="eq"), f32)]


# LabelEncoder

_KINDS = {"floats": (np.float32, "float", -0.0), "int64s": (np.int64, "int64", -1)}


def _given(node: Node, side: str) -> Array:
    """The keys or the values of a LabelEncoder."""
    if node.has(f"{side}_tensor"):
        return _tensor(node, f"{side}_tensor")
    for kind, (dtype, _, _) in _KINDS.items():
        found = node.attribute(f"{side}_{kind}", [])
        if len(found):
            return np.array(found, dtype)
    node.refuse(f"{side}_strings", "strings (of LabelEncoder, numbers alone are supported)")


def _tensor(node: Node, name: str) -> Array:
    given: Any = node.attribute(name, None)
    found = numpy_helper.to_array(given).reshape(-1)
    if found.dtype.kind not in "fi":
        node.refuse(name, "strings (of LabelEncoder, numbers alone are supported)")
    return found


def _default(node: Node, values: Array) -> Array:
    """What an unknown key becomes, in the values' type."""
    node.ignore("default_float", "default_int64", "default_string")
    if node.has("default_tensor"):
        return _tensor(node, "default_tensor").astype(values.dtype)
    _, name, usual = _KINDS["floats" if values.dtype.kind == "f" else "int64s"]
    return np.array([node.attribute(f"default_{name}", usual)], values.dtype)


def _label_encoder(node: Node) -> Sequence[Value]:
    """The value of the first key that is equal, by position; of none, the default."""
    for old in ("classes_strings", "keys_strings", "values_strings"):
        if node.attribute(old, []):
            node.refuse(old, "strings (of LabelEncoder, numbers alone are supported)")
    x, keys, values = node.operand(0), _given(node, "keys"), _given(node, "values")
    check_length(node, "values", values, len(keys))
    if keys.dtype != as_dtype(x) or (keys != keys).any():
        node.refuse("keys", f"of {keys.dtype} or NaN, and an input of {x.type}")
    if len(set(keys.tolist())) != len(keys):
        node.refuse("keys", "one of them twice")
    wide = node.emit(graph.ReshapeOp, x, shape=[*tensor_type(x).get_shape(), 1])
    equal = node.emit(graph.CompareOp, wide, node.tensor(keys), predicate="eq")
    axis = tensor_type(x).get_num_dims()
    hits = cast(node, equal, element_type(np.int32))
    place = node.emit(graph.ArgmaxOp, hits, axis=axis, keepdims=False)
    found = node.emit(graph.GatherOp, node.tensor(values), place, axis=0)
    known = node.emit(graph.ReduceOp, hits, kind="max", axes=[axis], keepdims=False)
    known = node.emit(graph.CompareOp, known, scalar(node, 0, known), predicate="gt")
    return [node.emit(graph.WhereOp, known, found, node.tensor(_default(node, values)))]


def _of_maps(node: Node) -> Sequence[Value]:
    """What a program, whose inputs and outputs are arrays of numbers, has no room for."""
    node.refuse("", "maps and strings are not supported (export the model with zipmap=False)")


REFUSED: dict[str, Handler] = dict.fromkeys(
    ("CastMap", "CategoryMapper", "DictVectorizer", "ZipMap"), _of_maps
)
HANDLERS: dict[str, Handler] = {
    "ArrayFeatureExtractor": _feature_extractor,
    "Binarizer": _binarizer,
    "FeatureVectorizer": _feature_vectorizer,
    "Imputer": _imputer,
    "LabelEncoder": _label_encoder,
    "Normalizer": _normalizer,
    "OneHotEncoder": _one_hot,
    "Scaler": _scaler,
}
