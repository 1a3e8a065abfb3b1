"""Models of a few ONNX nodes, judged by ONNX Runtime and run at the graph and the tensor level."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from irkit.context import IrkitContext
from irkit.frontends.onnx import import_onnx
from irkit.interp.graph import run_graph
from irkit.interp.tensor import run_tensor
from irkit.lower.graph_to_tensor.convert import ConvertGraphToTensor
from irkit.passes.graph.unroll_recurrence import UnrollRecurrence


def node(op, inputs, outputs="y", **attributes):
    """A node; what is left out is called `_`."""
    before, behind = (["" if n == "_" else n for n in t.split()] for t in (inputs, outputs))
    return helper.make_node(op, before, behind, **attributes)


def model(nodes, inputs, weights=None, outputs=("y",), opset=18, batch=False):
    """A model of array inputs (their first dimension symbolic with `batch`) and constant weights."""
    declared = []
    for name, array in inputs.items():
        shape = ["n", *array.shape[1:]] if batch else list(array.shape)
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        declared.append(helper.make_tensor_value_info(name, kind, shape))
    constants = [numpy_helper.from_array(np.asarray(a), n) for n, a in (weights or {}).items()]
    results = [helper.make_empty_tensor_value_info(n) for n in outputs]
    graph = helper.make_graph(nodes, "g", declared, results, constants)
    opsets = [helper.make_opsetid("", opset)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    inferred = onnx.shape_inference.infer_shapes(proto)
    for result, known in zip(proto.graph.output, inferred.graph.output, strict=True):
        # ONNX infers nothing of some operators that functions define.
        shaped = known.type.tensor_type.HasField("shape")
        result.CopyFrom(known if shaped else helper.make_tensor_value_info(known.name, kind, shape))
    return proto


def lowered(imported):
    """The module at tensor level, in place."""
    context = IrkitContext(weights=imported.weights)
    UnrollRecurrence().apply(context, imported.module)
    ConvertGraphToTensor().apply(context, imported.module)
    imported.module.verify()
    return imported.module


def run(proto, inputs):
    """Outputs at the graph level, which the tensor level must agree with."""
    arrays = list(inputs.values())
    imported = import_onnx(proto)
    at_graph = run_graph(imported.module, imported.weights, arrays)
    at_tensor = run_tensor(lowered(imported), imported.weights, arrays)
    for got, want in zip(at_tensor, at_graph, strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5)
    return at_graph


def judged(proto, inputs, tolerance=2e-5):
    """Run `proto` and compare with ONNX Runtime."""
    outputs = run(proto, inputs)
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    for got, want in zip(outputs, session.run(None, inputs), strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
    return outputs


def floats(*shape, seed=3, dtype=np.float32):
    """Normal random numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)
