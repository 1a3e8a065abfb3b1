"""Steps before models of the domain ai.onnx.ml: scalers, imputers, encoders and selections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, numpy_helper
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
    known, x = numbers(node, "cats_int64s", np.int64), node.operand(0)
    texts = node.attribute("cats_strings", [])
    if (x in node.strings.values) != bool(texts):
        node.refuse(node.name_of(0), "it has not what the categories are, strings or numbers")
    known = node.strings.codes(texts) if texts else known
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
    if texts := node.attribute(f"{side}_strings", []):
        return node.strings.codes(texts)
    for kind, (dtype, _, _) in _KINDS.items():
        found = node.attribute(f"{side}_{kind}", [])
        if len(found):
            return np.array(found, dtype)
    node.refuse(side, "there are none")


def _are_strings(node: Node, side: str) -> bool:
    """Whether the keys or the values of a LabelEncoder are strings."""
    if not node.has(f"{side}_tensor"):
        return bool(node.attribute(f"{side}_strings", []))
    given: Any = node.attribute(f"{side}_tensor", None)
    return given.data_type == TensorProto.STRING


def _tensor(node: Node, name: str) -> Array:
    given: Any = node.attribute(name, None)
    found = numpy_helper.to_array(given).reshape(-1)
    if found.dtype.kind in "fi":
        return found
    if given.data_type != TensorProto.STRING:
        node.refuse(name, f"of {found.dtype}")
    return node.strings.codes(found.tolist())


def _default(node: Node, values: Array) -> Array:
    """What an unknown key becomes, in the values' type."""
    node.ignore("default_float", "default_int64", "default_string")
    if _are_strings(node, "values") and not node.has("default_tensor"):
        return node.strings.codes([node.attribute("default_string", "_Unused")])
    if node.has("default_tensor"):
        return _tensor(node, "default_tensor").astype(values.dtype)
    _, name, usual = _KINDS["floats" if values.dtype.kind == "f" else "int64s"]
    return np.array([node.attribute(f"default_{name}", usual)], values.dtype)


def _label_encoder(node: Node) -> Sequence[Value]:
    """The value of the first key that is equal, by position; of none, the default."""
    if node.has("classes_strings"):
        return _old_label_encoder(node)
    x, keys, values = node.operand(0), _given(node, "keys"), _given(node, "values")
    check_length(node, "values", values, len(keys))
    if _are_strings(node, "keys") != (x in node.strings.values):
        node.refuse("keys", "strings, and an input of numbers, or the other way round")
    if keys.dtype != as_dtype(x) or (keys != keys).any():
        node.refuse("keys", f"of {keys.dtype} or NaN, and an input of {x.type}")
    if len(set(keys.tolist())) != len(keys):
        node.refuse("keys", "one of them twice")
    found = _looked_up(node, x, keys, values, _default(node, values))
    return [node.strings.mark(found) if _are_strings(node, "values") else found]


def _looked_up(node: Node, x: SSAValue, keys: Array, values: Array, default: Array) -> SSAValue:
    """The value of the key that each element is; of none, the default."""
    wide = node.emit(graph.ReshapeOp, x, shape=[*tensor_type(x).get_shape(), 1])
    equal = node.emit(graph.CompareOp, wide, node.tensor(keys), predicate="eq")
    axis = tensor_type(x).get_num_dims()
    hits = cast(node, equal, element_type(np.int32))
    place = node.emit(graph.ArgmaxOp, hits, axis=axis, keepdims=False)
    found = node.emit(graph.GatherOp, node.tensor(values), place, axis=0)
    known = node.emit(graph.ReduceOp, hits, kind="max", axes=[axis], keepdims=False)
    known = node.emit(graph.CompareOp, known, scalar(node, 0, known), predicate="gt")
    return node.emit(graph.WhereOp, known, found, node.tensor(default))


def _mapped(node: Node, texts: Sequence[Any], whole: Array) -> Sequence[Value]:
    """Strings as integers, or integers as strings, whichever the input has not."""
    x, codes = node.operand(0), node.strings.codes(texts)
    check_length(node, "categories", codes, len(whole))
    if len({*codes.tolist()}) != len(codes) or len({*whole.tolist()}) != len(whole):
        node.refuse("categories", "one of them twice")
    missing = np.array([node.attribute("default_int64", -1)], np.int64)
    other = node.strings.codes([node.attribute("default_string", "_Unused")])
    if x in node.strings.values:
        return [_looked_up(node, x, codes, whole, missing)]
    if element_of(x) != i64:
        node.refuse(node.name_of(0), f"of {x.type}: expected strings or int64")
    return [node.strings.mark(_looked_up(node, x, whole, codes, other))]


def _old_label_encoder(node: Node) -> Sequence[Value]:
    """Of the first version of its domain: strings and their places."""
    texts = node.attribute("classes_strings", [])
    return _mapped(node, texts, np.arange(len(texts)))


def _category_mapper(node: Node) -> Sequence[Value]:
    texts = node.attribute("cats_strings", [])
    return _mapped(node, texts, numbers(node, "cats_int64s", np.int64))


def _zip_map(node: Node) -> Sequence[Value]:
    """Columns that are a map a row to the caller, by labels."""
    x, whole = node.operand(0), numbers(node, "classlabels_int64s", np.int64)
    texts = [t.decode() for t in node.attribute("classlabels_strings", [])]
    labels: tuple[Any, ...] = tuple(texts or whole.tolist())
    if element_of(x) != f32 or tensor_type(x).get_num_dims() != 2:
        node.refuse(node.name_of(0), f"of {x.type}: expected rows and columns of float32")
    if not labels or len(labels) != _last(node, x) or len(set(labels)) != len(labels):
        node.refuse("classlabels", f"expected {_last(node, x)} labels, none of them twice")
    made = node.emit(graph.ReshapeOp, x, shape=list(tensor_type(x).get_shape()))
    node.strings.maps[made] = labels
    return [made]


def _of_maps(node: Node) -> Sequence[Value]:
    """What a program, whose inputs are arrays, has no room for."""
    node.refuse("", "inputs that are maps are not supported")


REFUSED: dict[str, Handler] = dict.fromkeys(("CastMap", "DictVectorizer"), _of_maps)
HANDLERS: dict[str, Handler] = {
    "ArrayFeatureExtractor": _feature_extractor,
    "Binarizer": _binarizer,
    "CategoryMapper": _category_mapper,
    "FeatureVectorizer": _feature_vectorizer,
    "Imputer": _imputer,
    "LabelEncoder": _label_encoder,
    "Normalizer": _normalizer,
    "OneHotEncoder": _one_hot,
    "Scaler": _scaler,
    "ZipMap": _zip_map,
}
