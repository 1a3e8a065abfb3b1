"""Reading an ONNX model: from a file or from memory to a checked, self-contained ModelProto."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import index
from pathlib import Path
from typing import Any, NamedTuple

import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto, TensorProto, TensorShapeProto, ValueInfoProto
from onnx.checker import ValidationError
from onnx.external_data_helper import ExternalDataInfo, load_external_data_for_tensor
from onnx.inliner import inline_local_functions
from onnx.shape_inference import InferenceError
from onnx.version_converter import ConvertError, convert_version

from irkit.errors import InvalidInputError, InvalidModelError, UnsupportedError
from irkit.frontends.onnx.leniency import (
    STANDARD,
    drop_dead,
    graphs_of,
    make_plain,
    nodes_of,
    with_types,
)
from irkit.frontends.onnx.string_steps import take_string_steps
from irkit.frontends.onnx.without_weights import without_weights
from irkit.model_info import StringStep

Dimension = TensorShapeProto.Dimension
MAX_RANK = 32
_INVALID = "not a valid ONNX model: "
MIN_OPSET = 7
CONVERTED_OPSET = 9
"""What models older than MIN_OPSET are converted to."""


class Loaded(NamedTuple):
    """A model whose inputs are the program's. Where the host makes some of them of strings: by which steps,
    and what the caller gives (`ModelInfo.string_steps`, `ModelInfo.caller_inputs`)."""

    model: ModelProto
    string_steps: tuple[StringStep, ...]
    caller_inputs: tuple[str, ...]


def load(
    source: ModelProto | str | Path,
    shapes: Mapping[str, Sequence[int]],
    batch: int | None = None,
    known: Collection[str] = (),
) -> Loaded:
    """A copy of the model that passed ONNX's checker and shape inference, all data inside.

    `shapes` fixes symbolic dimensions of inputs, and gives shapes where there are none; `batch` fixes those
    that are left if they have one name. What is made of strings of inputs, but for those whose values are
    `known`, is the host's, and then an input of the model. Raises
    InvalidModelError for a file that is unreadable, truncated or inconsistent, UnsupportedError for an
    operator-set version out of range, and for a `batch` of which the model has no meaning.
    """
    if isinstance(source, ModelProto):
        model, folder = ModelProto(), None
        model.CopyFrom(source)
    else:
        model, folder = _read(Path(source)), Path(source).parent
    _load_external_data(model, folder)
    _run_check(lambda: make_plain(model))
    with with_types(model):
        _check(model)
    if not model.graph.output:
        raise InvalidModelError("the ONNX model has no outputs")
    _check_opset(model)
    model = _modernised(model)
    _check_numbers(model)
    if model.functions:
        model = inline_local_functions(model, convert_version=True)
    _fix_shapes(model, shapes)
    steps, given = take_string_steps(model, known)
    fixed = [] if batch is None else fix_batch(model, batch)
    _write_defaults(model)
    _infer_shapes(model, fixed)
    drop_dead(model.graph)
    return Loaded(model, steps, given)


def _write_defaults(model: ModelProto) -> None:
    """ONNX's shape inference does not find the default that a function's body refers to."""
    for node in model.graph.node:
        named = node.op_type == "MeanVarianceNormalization" and not node.domain
        if named and all(a.name != "axes" for a in node.attribute):
            node.attribute.append(onnx.helper.make_attribute("axes", [0, 2, 3]))


def _infer_shapes(model: ModelProto, fixed: Sequence[tuple[Dimension, str]] = ()) -> None:
    """ONNX's shape inference. Raises UnsupportedError for a model that is valid, but not with `fixed`."""
    light, _ = without_weights(model)
    infer = onnx.shape_inference.infer_shapes
    try:
        _run_check(lambda: infer(light, check_type=True, strict_mode=True))
    except InvalidModelError as error:
        if not fixed:
            raise
        batch = fixed[0][0].dim_value
        _open(fixed)
        _infer_shapes(model)
        reason = str(error).removeprefix(_INVALID)
        raise UnsupportedError(
            f"this ONNX model has no meaning for a batch of {batch}: {reason}"
        ) from None


def _check(model: ModelProto) -> None:
    """ONNX's own checker, of the model and of each of its large weights by itself."""
    checker: Any = onnx.checker
    light, large = without_weights(model, shapes=False)
    _run_check(lambda: checker.check_model(light))
    for tensor in large:
        _run_check(functools.partial(checker.check_tensor, tensor))


def _run_check(check: Callable[[], object]) -> None:
    """Run one of ONNX's own checks; names that are not UTF-8 and unknown enums are ValueErrors."""
    try:
        check()
    except (ValidationError, InferenceError, ValueError) as error:
        raise InvalidModelError(f"{_INVALID}{_first_line(error)}") from None


def opset_of(model: ModelProto) -> int:
    """Version of the standard operator set."""
    return max((o.version for o in model.opset_import if o.domain in STANDARD), default=0)


def symbols_of(value: ValueInfoProto) -> list[str]:
    """Names of an input's symbolic dimensions, in order. The first without a name has an empty one: it is
    the batch of whichever name; any further is a dimension of its own."""
    dims = enumerate(value.type.tensor_type.shape.dim)
    opened = [(axis, d.dim_param) for axis, d in dims if not d.HasField("dim_value")]
    return [
        name or (f"{value.name}[{axis}]" if number else "")
        for number, (axis, name) in enumerate(opened)
    ]


def fix_batch(model: ModelProto, batch: int) -> list[tuple[Dimension, str]]:
    """Give the inputs' symbolic dimensions a size, in place, where they all have one name. These, and their
    names.

    Raises InvalidInputError where there are none.
    """
    inputs = {v.name for v in model.graph.input} - {t.name for t in model.graph.initializer}
    opened = [v for v in model.graph.input if v.name in inputs and symbols_of(v)]
    if not opened:
        raise InvalidInputError(f"batch = {batch}: no dimension of the model's inputs is symbolic")
    if len({n for v in opened for n in symbols_of(v)} - {""}) > 1:
        return []
    dims = [d for v in opened for d in v.type.tensor_type.shape.dim if not d.HasField("dim_value")]
    fixed = [(dim, dim.dim_param) for dim in dims]
    for dim in dims:
        dim.dim_value = batch
    del model.graph.value_info[:]
    return fixed


def _open(fixed: Sequence[tuple[Dimension, str]]) -> None:
    for dim, name in fixed:
        dim.ClearField("dim_value")
        dim.dim_param = name or "batch"


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines()]
    return next((line for line in lines if line), type(error).__name__)


def _read(path: Path) -> ModelProto:
    try:
        return ModelProto.FromString(path.read_bytes())
    except OSError as error:
        raise InvalidModelError(f"cannot read '{path}': {error.strerror}") from None
    except DecodeError:
        raise InvalidModelError(f"'{path}' is truncated or not an ONNX file") from None


def _external_tensors(model: ModelProto) -> list[TensorProto]:
    tensors = [t for graph in graphs_of(model) for t in graph.initializer]
    tensors += [a.t for node in nodes_of(model) for a in node.attribute if a.HasField("t")]
    return [t for t in tensors if t.data_location == TensorProto.EXTERNAL]


def _load_external_data(model: ModelProto, folder: Path | None) -> None:
    """Read tensors kept in files beside the model; files elsewhere are refused."""
    tensors = _external_tensors(model)
    if not tensors:
        return
    if folder is None:
        raise InvalidModelError(
            f"tensor '{tensors[0].name}' is in an external file: give the model's path"
        )
    root = folder.resolve()
    for tensor in tensors:
        location = ExternalDataInfo(tensor).location
        file = (root / location).resolve()
        if not file.is_relative_to(root):
            raise InvalidModelError(
                f"tensor '{tensor.name}': external data '{location}' is outside the model's folder"
            )
        if not file.is_file():
            raise InvalidModelError(f"tensor '{tensor.name}': no external data file '{location}'")
    try:
        for tensor in tensors:
            load_external_data_for_tensor(tensor, str(folder))
            tensor.data_location = TensorProto.DEFAULT
            del tensor.external_data[:]
    except (OSError, ValueError, ValidationError) as error:
        raise InvalidModelError(f"external data is unreadable: {_first_line(error)}") from None


def _check_opset(model: ModelProto) -> None:
    version, latest = opset_of(model), onnx.defs.onnx_opset_version()
    if version == 0:
        domains = ", ".join(repr(o.domain) for o in model.opset_import)
        raise UnsupportedError(f"operators of the domains {domains} are not supported")
    if not 1 <= version <= latest:
        raise UnsupportedError(f"ONNX operator set {version} is not supported: 1 to {latest} are")


def _modernised(model: ModelProto) -> ModelProto:
    """A model of operator set MIN_OPSET or later, by ONNX's own converter if it is older."""
    version = opset_of(model)
    if version >= MIN_OPSET:
        return model
    single = {t.name for t in model.graph.initializer if math.prod(t.dims) == 1}
    for node in model.graph.node:
        # The converter leaves these as they are, but a slope per channel broadcasts otherwise since.
        if node.op_type == "PRelu" and node.input[1] not in single:
            raise UnsupportedError(
                f"node '{node.name or node.output[0]}' (PRelu): slopes per channel of operator set"
                f" {version}"
            )
    try:
        return convert_version(model, CONVERTED_OPSET)
    except (ConvertError, RuntimeError) as error:
        raise UnsupportedError(
            f"ONNX operator set {version} is converted to {CONVERTED_OPSET}, which failed:"
            f" {_first_line(error)}"
        ) from None


_TERM = rb"[A-Za-z]*(\.\.\.)?[A-Za-z]*"
_EQUATION = re.compile(rb"(?!$)%b(,%b)*(->%b)?" % (_TERM, _TERM, _TERM))


def _check_numbers(model: ModelProto) -> None:
    """What ONNX's shape inference takes as given: it makes as many parts as a Split says, be they
    billions, follows an axis of a LayerNormalization out of the shape, and looks without end for what an
    Einsum's equation does not say."""
    for node in nodes_of(model):
        where = f"node '{node.name}' ({node.op_type})"
        for attribute in node.attribute:
            if attribute.name == "num_outputs" and node.op_type == "Split":
                parts, have = attribute.i, len(node.output)
                if parts != have:
                    raise InvalidModelError(f"{where}: num_outputs = {parts}, but it has {have}")
            if node.op_type == "Einsum" and not _EQUATION.fullmatch(attribute.s.replace(b" ", b"")):
                raise InvalidModelError(f"{where}: {attribute.s!r} is no equation")
            if "ax" in attribute.name and abs(attribute.i) > MAX_RANK:
                raise InvalidModelError(
                    f"{where}: {attribute.name} = {attribute.i}, and no tensor has so many dimensions"
                )


def _fix_shapes(model: ModelProto, shapes: Mapping[str, Sequence[int]]) -> None:
    inputs = {value.name: value for value in model.graph.input}
    for name, shape in shapes.items():
        try:
            sizes = [index(s) for s in shape]
        except TypeError:
            raise InvalidInputError(f"shapes['{name}'] = {shape!r}: expected sizes") from None
        if name not in inputs:
            raise InvalidInputError(
                f"shapes names '{name}'; the model's inputs are {', '.join(map(repr, inputs))}"
            )
        if not inputs[name].type.HasField("tensor_type"):
            raise InvalidInputError(f"shapes names '{name}', which is no tensor")
        if not inputs[name].type.tensor_type.HasField("shape"):
            inputs[name].CopyFrom(_shaped(inputs[name], sizes))
        dims = inputs[name].type.tensor_type.shape.dim
        static = [d.dim_value if d.HasField("dim_value") else None for d in dims]
        if min(sizes, default=1) < 1:
            raise InvalidInputError(
                f"shapes['{name}'] = {tuple(sizes)}: expected sizes of 1 or more (an input without elements"
                f" is given as constants={{'{name}': array}})"
            )
        fits = len(static) == len(sizes)
        if not fits or any(s not in (None, w) for s, w in zip(static, sizes, strict=False)):
            raise InvalidInputError(
                f"shapes['{name}'] = {tuple(sizes)} does not fit the declared shape {static}"
            )
        for dim, size in zip(dims, sizes, strict=True):
            dim.dim_value = size
    # Inferred again from the fixed inputs.
    del model.graph.value_info[:]


def _shaped(value: ValueInfoProto, shape: Sequence[int]) -> ValueInfoProto:
    """The value with a shape of as many dimensions."""
    element = value.type.tensor_type.elem_type
    return onnx.helper.make_tensor_value_info(value.name, element, [None] * len(shape))
