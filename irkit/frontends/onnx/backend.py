"""irkit as an ONNX backend, as `onnx.backend.base` defines one.

    from irkit.frontends.onnx import backend
    backend.prepare(model, "CPU").run([x])

A model whose shapes or axes are runtime inputs is compiled for the values that `run` is given, once
for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, ValueInfoProto, helper
from onnx.backend.base import (
    Backend,
    BackendRep,
    Device,
    DeviceType,
    namedtupledict,
)

from irkit.errors import ConstantInputError, DeviceError, InvalidInputError
from irkit.frontends.onnx import import_onnx
from irkit.weights import Array

Key = tuple[tuple[str, tuple[int, ...], str, bytes], ...]


class IrkitRep(BackendRep):
    """A model ready to run on one device."""

    def __init__(self, model: ModelProto, target: str, options: Mapping[str, Any]) -> None:
        self.model, self._target, self._options = model, target, dict(options)
        given = {t.name for t in model.graph.initializer}
        self._inputs = [v for v in model.graph.input if v.name not in given]
        self.programs: dict[Key, Any] = {}
        # Which inputs to compile for the values of; more are found at `run`.
        self._constants: tuple[str, ...] = ()
        if all(map(_is_static, self._inputs)):
            try:
                import_onnx(model)
            except ConstantInputError as error:
                self._constants = error.inputs
            else:
                self._program({}, {})

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Outputs by position and by name; `inputs` is a sequence or a mapping of arrays.

        Raises InvalidInputError on arrays the model cannot take, UnsupportedError if the values that
        must be known at import lead to what irkit does not support.
        """
        feeds = self._feeds(inputs)
        program, names = self._specialised(feeds)
        arrays = program.run([feeds[n] for n in names])
        outputs = [v.name for v in self.model.graph.output]
        return namedtupledict("Outputs", outputs)(*arrays)

    def _feeds(self, inputs: Any) -> dict[str, Array]:
        names = [v.name for v in self._inputs]
        if isinstance(inputs, Mapping):
            found = dict(cast(Mapping[str, Any], inputs))
        else:
            given: Sequence[Any] = list(inputs)
            if len(given) != len(names):
                raise InvalidInputError(f"expected {len(names)} inputs, got {len(given)}")
            found = dict(zip(names, given, strict=True))
        if missing := [n for n in names if n not in found]:
            raise InvalidInputError(f"input '{missing[0]}' is missing")
        return {n: np.asarray(found[n]) for n in names}

    def _specialised(self, feeds: Mapping[str, Array]) -> tuple[Any, list[str]]:
        """The program for these arrays, and the inputs that it takes."""
        shapes = {v.name: feeds[v.name].shape for v in self._inputs if not _is_static(v)}
        # An array without elements has one value only.
        empty = {n for n, a in feeds.items() if a.size == 0}
        shapes = {n: s for n, s in shapes.items() if n not in empty}
        while True:
            constants = {n: a for n, a in feeds.items() if n in empty or n in self._constants}
            try:
                program = self._program(shapes, constants)
            except ConstantInputError as error:
                if set(error.inputs) <= set(self._constants):
                    raise
                self._constants += error.inputs
            else:
                return program, [n for n in feeds if n not in constants]

    def _program(self, shapes: Mapping[str, Sequence[int]], constants: Mapping[str, Array]) -> Any:
        key: Key = (
            *((n, tuple(s), "", b"") for n, s in sorted(shapes.items())),
            *((n, a.shape, a.dtype.str, a.tobytes()) for n, a in sorted(constants.items())),
        )
        if key not in self.programs:
            self.programs[key] = self.compiled(shapes, constants)
        return self.programs[key]

    def compiled(self, shapes: Mapping[str, Sequence[int]], constants: Mapping[str, Array]) -> Any:
        """A program with symbolic dimensions and some inputs fixed."""
        import irkit

        return irkit.compile(
            self.model, self._target, shapes=shapes, constants=constants, **self._options
        )


def _is_static(value: ValueInfoProto) -> bool:
    """Whether an input can be compiled for without seeing it: of known, positive sizes, but for the
    first, which may be the batch."""
    declared = value.type.tensor_type
    if not value.type.HasField("tensor_type"):
        return True
    dims = [d.dim_value if d.HasField("dim_value") else None for d in declared.shape.dim]
    return declared.HasField("shape") and None not in dims[1:] and 0 not in dims


class IrkitBackend(Backend):
    """`prepare`, `run_model`, `run_node` and `supports_device` for `onnx.backend.test`."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether models run on "CPU" or "CUDA" here."""
        try:
            return Device(device).type == DeviceType.CPU or _has_gpu()
        except AttributeError:
            return False

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> IrkitRep:
        """Compile `model`; `kwargs` are options of `irkit.compile`.

        Raises UnsupportedError with all that irkit lacks, InvalidModelError, DeviceError.
        """
        if not cls.supports_device(device):
            raise DeviceError(f"device '{device}': expected CPU, or CUDA where there is a GPU")
        target = "cpu" if Device(device).type == DeviceType.CPU else "cuda"
        return IrkitRep(model, target, kwargs)

    @classmethod
    def run_model(
        cls, model: ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any
    ) -> tuple[Any, ...]:
        """Compile and run once."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Run one node on arrays, at `opset_version` (the newest unless told)."""
        opset = int(kwargs.pop("opset_version", onnx.defs.onnx_opset_version()))
        arrays = [np.asarray(x) for x in inputs]
        given = [n for n in node.input if n]
        if len(given) != len(arrays):
            raise InvalidInputError(f"expected {len(given)} inputs, got {len(arrays)}")
        declared = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in zip(given, arrays, strict=True)
        ]
        results = [helper.make_empty_tensor_value_info(n) for n in node.output if n]
        model = helper.make_model(
            helper.make_graph([node], "node", declared, results),
            opset_imports=[helper.make_opsetid(node.domain, opset)],
        )
        # ONNX wants typed outputs.
        inferred = onnx.shape_inference.infer_shapes(model)
        return cls.run_model(inferred, arrays, device, **kwargs)


def _has_gpu() -> bool:
    import irkit

    try:
        irkit.resolve_target("cuda")
    except DeviceError:
        return False
    return True


prepare = IrkitBackend.prepare
run_model = IrkitBackend.run_model
run_node = IrkitBackend.run_node
supports_device = IrkitBackend.supports_device
