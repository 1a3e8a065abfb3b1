"""Networks as PyTorch's exporters lay them out, with an open batch, judged by ONNX Runtime at several sizes.

Shapes computed from Shape, Gather and Concat, the class token of a ViT, windows of a Swin transformer,
sequences with the batch behind the steps, states of as many rows as the batch.
"""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_nodes import floats, node

from irkit.context import IrkitContext
from irkit.driver.compiler.artifacts import build_artifact
from irkit.driver.compiler.batch import read_for_batch
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.errors import InvalidModelError, OpenBatchError, UnsupportedError
from irkit.frontends.module import ImportedModel
from irkit.interp import run_module

INT = np.int64


def exported(nodes, shape, weights, kind=TensorProto.FLOAT):
    """A model of one input `x`, whose batch is the dimension given as a string, and one output `y`."""
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in weights.items()],
    )
    graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


NUMBERS = {f"i{k}": np.array(k, INT) for k in range(3)} | {
    f"v{k}": np.array([k], INT) for k in range(-1, 17)
}


def batch_of(value, axis, name):
    """Nodes that read the size of one axis as an array of one."""
    return [
        node("Shape", value, f"{name}_s"),
        node("Gather", f"{name}_s i{axis}", f"{name}_g", axis=0),
        node("Unsqueeze", f"{name}_g v0", name),
    ]


def attention(x, y, prefix, batch, heads, width, steps):
    """Self-attention over (batch, steps, width), reshaped by a computed shape; `batch` is its first size."""
    p = prefix
    return [
        node("MatMul", f"{x} w_qkv", f"{p}_m"),
        node("Concat", f"{batch} v{steps} v3 v{heads} v{width // heads}", f"{p}_shape", axis=0),
        node("Reshape", f"{p}_m {p}_shape", f"{p}_r"),
        node("Transpose", f"{p}_r", f"{p}_t", perm=[2, 0, 3, 1, 4]),
        *(node("Gather", f"{p}_t i{k}", f"{p}_{n}", axis=0) for k, n in enumerate("qkv")),
        node("Transpose", f"{p}_k", f"{p}_kt", perm=[0, 1, 3, 2]),
        node("MatMul", f"{p}_q {p}_kt", f"{p}_a"),
        node("Softmax", f"{p}_a", f"{p}_p", axis=-1),
        node("MatMul", f"{p}_p {p}_v", f"{p}_c"),
        node("Transpose", f"{p}_c", f"{p}_ct", perm=[0, 2, 1, 3]),
        node("Concat", f"{batch} v{steps} v{width}", f"{p}_back", axis=0),
        node("Reshape", f"{p}_ct {p}_back", y),
    ]


def vit():
    """Patches, a class token of as many rows as the batch (Where, Equal, Expand, as exported), attention."""
    weights = {
        **NUMBERS, "w_p": floats(4, 3, 2, 2), "token": floats(1, 1, 4, seed=1),
        "w_qkv": floats(4, 12, seed=2), "minus": np.array(-1, INT), "three": np.array([3], INT),
    }  # fmt: skip
    nodes = [
        node("Conv", "x w_p", "patches", strides=[2, 2]),
        *batch_of("patches", 0, "b"),
        node("Concat", "b v4 v-1", "flat", axis=0),
        node("Reshape", "patches flat", "rows"),
        node("Transpose", "rows", "tokens", perm=[0, 2, 1]),
        node("Concat", "b v-1 v-1", "want", axis=0),
        node("ConstantOfShape", "three", "ones", value=numpy_helper.from_array(np.array([1], INT))),
        node("Mul", "ones minus", "minuses"),
        node("Equal", "want minuses", "free"),
        node("Where", "free ones want", "size"),
        node("Expand", "token size", "cls"),
        node("Concat", "cls tokens", "all", axis=1),
        *attention("all", "attended", "a", "b", 2, 4, 5),
        node("Gather", "attended i0", "y", axis=1),
    ]
    return exported(nodes, ["batch", 3, 4, 4], weights)


def swin():
    """Windows of an image in the dimension of the batch, a mask for each window, and back."""
    weights = {
        **NUMBERS, "w_qkv": floats(4, 12), "mask": floats(4, 1, 4, 4, seed=3), "windows": np.array(4, INT),
    }  # fmt: skip
    nodes = [
        *batch_of("x", 0, "b"),
        node("Concat", "b v2 v2 v2 v2 v4", "split", axis=0),
        node("Reshape", "x split", "six"),
        node("Transpose", "six", "near", perm=[0, 1, 3, 2, 4, 5]),
        node("Concat", "v-1 v4 v4", "as_windows", axis=0),
        node("Reshape", "near as_windows", "w"),
        *batch_of("w", 0, "bw"),
        *attention("w", "attended", "a", "bw", 2, 4, 4),
        node("Div", "bw windows", "images"),
        node("Concat", "images v4 v1 v4 v4", "as_images", axis=0),
        node("Reshape", "attended as_images", "each"),
        node("Add", "each mask", "masked"),
        node("Reshape", "masked as_windows", "again"),
        node("Concat", "images v2 v2 v2 v2 v4", "six_again", axis=0),
        node("Reshape", "again six_again", "pieces"),
        node("Transpose", "pieces", "y", perm=[0, 1, 3, 2, 4, 5]),
    ]
    return exported(nodes, ["batch", 4, 4, 4], weights)


def encoder():
    """Steps first, as `nn.MultiheadAttention` has them: heads folded into the batch, steps × batch flat."""
    weights = {
        **NUMBERS, "w_q": floats(4, 4), "w_k": floats(4, 4, seed=1), "w_v": floats(4, 4, seed=2),
        "w_o": floats(4, 4, seed=3), "bias": floats(4, seed=4), "two": np.array([2], INT),
        "scale": floats(4), "shift": floats(4, seed=7),
    }  # fmt: skip
    folded = [
        one
        for n in "qkv"
        for one in (
            node("MatMul", f"x w_{n}", f"{n}_m"),
            node("Reshape", f"{n}_m heads", f"{n}_r"),
            node("Transpose", f"{n}_r", n, perm=[1, 0, 2]),
        )
    ]
    nodes = [
        *batch_of("x", 1, "b"),
        node("Mul", "b two", "bh"),
        node("Concat", "v5 bh v2", "heads", axis=0),
        *folded,
        node("Transpose", "k", "kt", perm=[0, 2, 1]),
        node("MatMul", "q kt", "scores"),
        node("Softmax", "scores", "weights", axis=-1),
        node("MatMul", "weights v", "c"),
        node("Transpose", "c", "ct", perm=[1, 0, 2]),
        node("Mul", "b v5", "rows"),
        node("Concat", "rows v4", "flat", axis=0),
        node("Reshape", "ct flat", "f"),
        node("Gemm", "f w_o bias", "o", transB=1),
        node("Concat", "v5 b v4", "back", axis=0),
        node("Reshape", "o back", "attended"),
        node("Add", "x attended", "sum"),
        node("LayerNormalization", "sum scale shift", "y", axis=-1),
    ]
    return exported(nodes, [5, "batch", 4], weights)


def lstm():
    """The batch behind the steps, both directions, states of zeros made for as many rows as come."""
    weights = {
        **NUMBERS,
        "w": floats(2, 12, 4),
        "r": floats(2, 12, 3, seed=1),
        "b0": floats(2, 24, seed=2),
    }
    nodes = [
        *batch_of("x", 1, "b"),
        node("Concat", "v2 b v3", "state", axis=0),
        node("ConstantOfShape", "state", "zeros"),
        node("Expand", "zeros state", "h0"),
        node("LSTM", "x w r b0 _ h0 zeros", "hs", hidden_size=3, direction="bidirectional"),
        node("Transpose", "hs", "ht", perm=[0, 2, 1, 3]),
        node("Concat", "v5 b v6", "back", axis=0),
        node("Reshape", "ht back", "y"),
    ]
    return exported(nodes, [5, "batch", 4], weights)


def gpt():
    """Numbers of words looked up, positions for as many rows, the last word's scores."""
    weights = {
        **NUMBERS, "words": floats(9, 4), "places": floats(5, 4, seed=1), "w_qkv": floats(4, 12, seed=2),
        "order": np.arange(5, dtype=INT).reshape(1, 5),
    }  # fmt: skip
    nodes = [
        *batch_of("x", 0, "b"),
        node("Concat", "b v5", "positions", axis=0),
        node("Expand", "order positions", "at"),
        node("Gather", "words x", "w", axis=0),
        node("Gather", "places at", "p", axis=0),
        node("Add", "w p", "h"),
        *attention("h", "y", "a", "b", 2, 4, 5),
    ]
    return exported(nodes, ["batch", 5], weights, TensorProto.INT64)


EXPORTS = {"vit": vit, "swin": swin, "encoder": encoder, "lstm": lstm, "gpt": gpt}


def input_of(proto, rows):
    declared = proto.graph.input[0].type.tensor_type
    shape = [d.dim_value if d.HasField("dim_value") else rows for d in declared.shape.dim]
    x = floats(*shape, seed=rows)
    return np.abs(x * 3).astype(INT) if declared.elem_type == TensorProto.INT64 else x


@pytest.mark.parametrize("name", EXPORTS)
@pytest.mark.parametrize("device", ["test4", "h200"])
def test_one_program_for_every_size(name, device):
    """At the graph level, and as scheduled for a CPU and for a GPU."""
    proto = EXPORTS[name]()
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    imported = read_for_batch(proto, "float32", None, {})
    assert isinstance(imported, ImportedModel)
    ctx = IrkitContext(weights=imported.weights)
    register_dialects(ctx)
    for levels in ((), ("graph",), ("tensor", "task", "schedule")):
        for level in levels:
            run_level(ctx, imported.module, level, device)
        for rows in (1, 2, 7):
            x = input_of(proto, rows)
            (want,) = session.run(None, {"x": x})
            (got,) = run_module(imported.module, imported.weights, [x])
            assert (got.dtype, got.shape) == (want.dtype, want.shape)
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert "irkit.dims" in str(imported.module)


def test_a_model_of_one_batch_size():
    """That a model is valid for four rows alone makes it no invalid model."""
    four = exported([node("MatMul", "c x")], ["batch", 3], {"c": floats(5, 4)})
    with pytest.raises(OpenBatchError, match=r"expects b with 4 rows \(columns of a\), got [?]"):
        read_for_batch(four, "float32", None, {})
    with pytest.raises(UnsupportedError, match=r"no meaning for a batch of 2: .*MatMul"):
        read_for_batch(four, "float32", 2, {})
    assert read_for_batch(four, "float32", 4, {}).info.inputs == ("x",)
    broken = exported([node("MatMul", "c d")], ["batch", 3], {"c": floats(5, 4), "d": floats(3, 3)})
    with pytest.raises(InvalidModelError, match=r"not a valid ONNX model: .*MatMul"):
        read_for_batch(broken, "float32", 2, {})


def test_a_cubin_of_an_open_batch():
    """No GPU is needed to compile for one."""
    pytest.importorskip("numba_cuda")
    imported = read_for_batch(encoder(), "float32", None, {})
    assert isinstance(imported, ImportedModel)
    artifact = build_artifact(imported, "cuda", cache=False)
    assert artifact.cubin[:4] == b"\x7fELF"
    assert '"input_batch": [[1, 1, 1]]' in artifact.info
