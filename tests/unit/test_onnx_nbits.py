"""Weights of 2, 4 and 8 bits in blocks, as ONNX Runtime's quantiser writes them, judged by it.

Tolerance: both compute in float32, where they multiply scales differs: results agree to 2e-6 of the sum of
the terms' magnitudes, those of float16 to one unit of it.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.capi import _pybind_state

import irkit
from irkit.errors import InvalidInputError, UnsupportedError
from irkit.frontends.onnx import import_onnx
from irkit.interp.graph import run_graph

NATIVE: Any = _pybind_state
RUNTIME: Any = onnxruntime
OPSETS = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
KINDS = {"float32": np.float32, "float16": np.float16}


def model(nodes: Any, x: Any, weights: dict[str, Any], batch: bool = False) -> Any:
    """An input 'x', an output 'y', and initializers; arrays of ml_dtypes are ONNX's narrow integers."""
    shape = ["n", *x.shape[1:]] if batch else x.shape
    declared = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(x.dtype), shape)
    known = [numpy_helper.from_array(a, n) for n, a in weights.items()]
    graph = helper.make_graph(nodes, "g", [declared], [onnx.ValueInfoProto(name="y")], known)
    return helper.make_model(graph, opset_imports=OPSETS, ir_version=10)


def judged(proto: Any, x: Any) -> Any:
    """What ONNX Runtime computes; the model is given its result's type. Its optimiser would make products
    with 4 bits of what is dequantised, whose activations are of 8 bits."""
    options = RUNTIME.SessionOptions()
    options.graph_optimization_level = RUNTIME.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = RUNTIME.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    (want,) = session.run(None, {"x": x})
    declared = proto.graph.input[0].type.tensor_type.shape.dim
    shape = [None, *want.shape[1:]] if declared[0].dim_param else want.shape
    kind = helper.np_dtype_to_tensor_dtype(want.dtype)
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", kind, shape))
    return want


def quantised(w: Any, bits: int, block: int, symmetric: bool) -> dict[str, Any]:
    """ONNX Runtime's own quantiser, of K×N floats: packed bytes, scales, zero points if there are any."""
    depth, columns = w.shape
    blocks = -(-depth // block)
    packed = np.zeros((columns, blocks, block * bits // 8), np.uint8)
    scales = np.zeros((columns, blocks), w.dtype)
    zeros = np.zeros((columns, -(-blocks * bits // 8)), np.uint8)
    whole = np.pad(w, ((0, blocks * block - depth), (0, 0)))
    quantise = getattr(NATIVE, f"quantize_matmul_{bits}bits")
    quantise(packed, whole, scales, zeros, block, columns, depth, symmetric)
    return {"b": packed, "s": scales, **({} if symmetric else {"z": zeros})}


def product(x: Any, weights: dict[str, Any], **how: Any) -> Any:
    """One MatMulNBits; weights by their places, "" where one is left out."""
    names = ["x", *(n if n in weights else "" for n in "bszgc")]
    node = helper.make_node("MatMulNBits", names, ["y"], domain="com.microsoft", **how)
    return model([node], x, weights)


def drawn(rng: Any, kind: str, *shape: int) -> Any:
    return rng.standard_normal(shape).astype(KINDS[kind])


def close(got: Any, want: Any, magnitude: Any) -> None:
    """To 2e-6 of the terms' magnitudes, and a unit of float16 where results are."""
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    unit = 2.0**-10 if want.dtype == np.float16 else 0
    allowed = 2e-6 * magnitude + unit * np.abs(want.astype(np.float64)) + 1e-7
    assert (np.abs(got.astype(np.float64) - want.astype(np.float64)) <= allowed).all()


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(1, 150), st.integers(1, 19),
    st.sampled_from([2, 4, 8]), st.sampled_from([16, 32, 64]), st.booleans(), st.booleans(),
    st.sampled_from(list(KINDS)), st.sampled_from([0, 1, 4]), st.integers(0, 999),
)  # fmt: skip
def test_products(
    lead: Any, depth: int, columns: int, bits: int, block: int, symmetric: bool, biased: bool,
    kind: str, level: int, seed: int,
):  # fmt: skip
    """Of any shape; ONNX Runtime is never asked for a level of accuracy that is less than float32."""
    rng = np.random.default_rng(seed)
    x, w = drawn(rng, kind, *lead, depth), drawn(rng, kind, depth, columns)
    weights = quantised(w, bits, block, symmetric)
    if biased:
        weights["c"] = drawn(rng, kind, columns)
    how = {"K": depth, "N": columns, "bits": bits, "block_size": block}
    want = judged(product(x, weights, **how), x)
    proto = product(x, weights, **how, accuracy_level=level)
    imported = import_onnx(proto)
    (got,) = run_graph(imported.module, imported.weights, [x])
    close(got, want, np.abs(x.astype(float)) @ np.abs(w.astype(float)) * 2 + 4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("symmetric", [True, False])
def test_compiled_products_of_any_batch(kind: str, bits: int, symmetric: bool):
    """No rows, one, and several, of a depth that is no multiple of the block."""
    rng = np.random.default_rng(bits)
    w = drawn(rng, kind, 75, 33)
    weights = quantised(w, bits, 32, symmetric)
    names = ["x", *weights]
    how: dict[str, Any] = {"K": 75, "N": 33, "bits": bits, "block_size": 32}
    node = helper.make_node("MatMulNBits", names, ["y"], domain="com.microsoft", **how)
    x = drawn(rng, kind, 5, 75)
    proto = model([node], x, weights, batch=True)
    want = judged(proto, x)
    program = irkit.compile(proto, device="cpu1")
    for rows in (0, 1, 5):
        (got,) = program.run([x[:rows]])
        close(got, want[:rows], np.abs(x[:rows].astype(float)) @ np.abs(w.astype(float)) * 2 + 4)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("zeros", ["none", "floats"])
def test_groups_and_zero_points_of_floats(padded: bool, zeros: str):
    """The groups of GPTQ stand in no order. Of the last eight terms of 16, ONNX Runtime (1.32) takes those of
    the first eight, so here they are the same; zero points in bytes it leaves out beside them."""
    rng = np.random.default_rng(5)
    x, w = drawn(rng, "float32", 3, 70), drawn(rng, "float32", 70, 9)
    weights = quantised(w, 4, 16, zeros == "none")
    groups = np.repeat(rng.integers(0, 5, (5, 1, 8)), 2, axis=1).reshape(-1).astype(np.int32)
    weights["g"] = groups if padded else groups[:70]
    if zeros == "floats":
        weights["z"] = rng.uniform(0, 15, (9, 5)).astype(np.float32)
    proto = product(x, weights, K=70, N=9, bits=4, block_size=16)
    want = judged(proto, x)
    close(irkit.compile(proto, device="cpu1").run([x])[0], want, 200.0)


def test_groups_of_each_term():
    """As the operator's text has it."""
    rng = np.random.default_rng(5)
    x = drawn(rng, "float32", 3, 64)
    weights = quantised(drawn(rng, "float32", 64, 9), 8, 16, False)
    groups = weights["g"] = rng.integers(0, 4, 64).astype(np.int32)
    proto = product(x, weights, K=64, N=9, bits=8, block_size=16)
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", 1, (3, 9)))
    integers, zeros = (weights[n].reshape(9, -1).astype(np.float32) for n in "bz")
    w = (integers - zeros[:, groups]) * weights["s"][:, groups]
    close(irkit.compile(proto, device="cpu1").run([x])[0], x @ w.T, 100.0)


def test_scales_and_zero_points_in_one_dimension():
    rng = np.random.default_rng(6)
    x, w = drawn(rng, "float32", 2, 64), drawn(rng, "float32", 64, 5)
    weights = quantised(w, 4, 32, False)
    flat = {"b": weights["b"], **{n: weights[n].reshape(-1) for n in "sz"}}
    proto = product(x, flat, K=64, N=5, bits=4, block_size=32)
    close(irkit.compile(proto, device="cpu1").run([x])[0], judged(proto, x), 100.0)


WRONG: dict[str, tuple[dict[str, int], dict[str, Any], str]] = {
    "bits": ({"bits": 3}, {}, "bits = 3: only 2, 4 and 8"),
    "block": ({"block_size": 24}, {}, "block_size = 24: a power of 2"),
    "small block": ({"block_size": 8}, {}, "block_size = 8: a power of 2"),
    "depth": ({"K": 0}, {}, "K = 0: 1 or more"),
    "rows": ({"K": 60}, {}, "rows of K = 60 elements are needed"),
    "bytes": ({}, {"b": np.zeros((5, 2, 8), np.uint8)}, r"a shape of \[5, 2, 16\] is needed"),
    "integers": ({}, {"b": np.zeros((5, 2, 16), np.int8)}, "bytes are needed"),
    "scales": ({}, {"s": np.zeros((5, 3), np.float32)}, r"a shape of \[5, 2\] is needed"),
    "zero points": ({}, {"z": np.zeros((5, 2), np.uint8)}, r"a shape of \[5, 1\] is needed"),
    "their type": ({}, {"z": np.zeros((5, 2), np.float16)}, "beside scales of another type"),
    "few groups": ({}, {"g": np.zeros(63, np.int32)}, "64 elements are needed"),
    "groups": ({}, {"g": np.full(64, 2, np.int32)}, "some groups are not among the 2"),
    "bias": ({}, {"c": np.zeros(4, np.float32)}, "N = 5 elements are needed"),
    "an attribute": ({"weight_prepacked": 1}, {}, "weight_prepacked: this attribute"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_products_are_named(name: str):
    how, changed, message = WRONG[name]
    rng = np.random.default_rng(7)
    weights = quantised(drawn(rng, "float32", 64, 5), 4, 32, False) | changed
    x = drawn(rng, "float32", 2, 64)
    proto = product(x, weights, **{"K": 64, "N": 5, "bits": 4, "block_size": 32, **how})
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", 1, None))
    with pytest.raises(UnsupportedError, match=message):
        import_onnx(proto)


# Rows of tables


def table(kind: str, shape: tuple[int, ...], along: int, block: int, rng: Any) -> dict[str, Any]:
    """Integers of `kind`, scales and zero points; of bytes packed along the last axis."""
    blocks = tuple(-(-n // block) if d == along else n for d, n in enumerate(shape))
    scales = rng.uniform(0.01, 1, blocks).astype(np.float32)
    if kind in ("int4", "uint4"):
        low = -8 if kind == "int4" else 0
        data, zeros = (
            rng.integers(low, low + 16, s).astype(getattr(ml_dtypes, kind)) for s in (shape, blocks)
        )
        return {"d": data, "s": scales, "z": zeros}
    bits = int(kind.removeprefix("bytes"))
    each = 8 // bits
    data = rng.integers(0, 256, (*shape[:-1], shape[-1] // each)).astype(np.uint8)
    zeros = rng.integers(0, 256, (*blocks[:-1], -(-blocks[-1] // each))).astype(np.uint8)
    return {"d": data, "s": scales, "z": zeros}


def gathered(x: Any, weights: dict[str, Any], batch: bool = False, **how: Any) -> Any:
    names = ["d", "x", "s", *(["z"] if "z" in weights else [])]
    node = helper.make_node("GatherBlockQuantized", names, ["y"], domain="com.microsoft", **how)
    return model([node], x, weights, batch)


@pytest.mark.parametrize("axes", [(0, 1), (0, 2), (1, 2), (1, 0), (2, 1), (1, 1), (2, 2), (-3, -1)])
@pytest.mark.parametrize("kind", ["int4", "uint4"])
@pytest.mark.parametrize("centred", [True, False])
def test_rows_of_narrow_tables(axes: tuple[int, int], kind: str, centred: bool):
    rng = np.random.default_rng(8)
    weights = table(kind, (6, 35, 33), axes[1] % 3, 16, rng)
    if not centred:
        del weights["z"]
    x = rng.integers(-6, 6, (3, 4)).astype(np.int64)
    proto = gathered(x, weights, gather_axis=axes[0], quantize_axis=axes[1], block_size=16)
    want = judged(proto, x)
    np.testing.assert_array_equal(irkit.compile(proto, device="cpu1").run([x])[0], want)


@pytest.mark.parametrize("kind", ["bytes2", "bytes4", "bytes8"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("centred", [True, False])
def test_rows_of_tables_of_bytes(kind: str, dtype: str, centred: bool):
    """Any batch of them; what lies in memory is as packed as in the file."""
    rng = np.random.default_rng(9)
    weights = table(kind, (50, 72), 1, 16, rng)
    weights["s"] = weights["s"].astype(dtype)
    if not centred:
        del weights["z"]
    x = rng.integers(-50, 50, (7, 3)).astype(np.int32)
    how = {"gather_axis": 0, "quantize_axis": 1, "block_size": 16, "bits": int(kind[5:])}
    proto = gathered(x, weights, batch=True, **how)
    want = judged(proto, x)
    program = irkit.compile(proto, device="cpu1")
    assert f"tensor<50x{weights['d'].shape[1]}x" in program.ir("task")
    for rows in (1, 7):
        np.testing.assert_array_equal(program.run([x[:rows]])[0], want[:rows])
    with pytest.raises(InvalidInputError, match="has the index 50"):
        program.run([np.full((1, 3), 50, np.int32)])


@pytest.mark.parametrize(
    ("kind", "how", "message"),
    [
        ("int4", {"bits": 8}, "elements of int4 with bits = 8"),
        ("bytes4", {"gather_axis": 1, "quantize_axis": 0}, "of bytes they are the first"),
        ("bytes4", {"quantize_axis": 2}, "no axes of 2 dimensions"),
        ("bytes4", {"block_size": 32}, "a shape of"),
    ],
)
def test_wrong_tables_are_named(kind: str, how: dict[str, Any], message: str):
    rng = np.random.default_rng(10)
    weights = table(kind, (5, 64), 1, 16, rng)
    x = np.zeros(3, np.int64)
    proto = gathered(x, weights, False, **{"quantize_axis": 1, "block_size": 16, **how})
    proto.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", 1, None))
    with pytest.raises(UnsupportedError, match=message):
        import_onnx(proto)


# ONNX's own types


def dequantised(kind: str, x: Any, weights: dict[str, Any], **how: Any) -> Any:
    """x times what `weights` are, a constant of K×N."""
    names = ["d", "s", *(["z"] if "z" in weights else [])]
    nodes = [
        helper.make_node("DequantizeLinear", names, ["w"], **how),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    return model(nodes, x, weights)


@pytest.mark.parametrize("kind", ["int4", "uint4", "int8", "uint8"])
@pytest.mark.parametrize("where", ["tensor", "axis 0", "axis 1", "blocks of 0", "blocks of 1"])
@pytest.mark.parametrize("centred", [True, False])
def test_products_with_dequantised_weights(kind: str, where: str, centred: bool):
    """Per tensor, per axis and in blocks, of which the last is shorter."""
    rng: Any = np.random.default_rng(11)
    dtype: Any = np.dtype(getattr(ml_dtypes, kind, None) or kind)
    low, high = ml_dtypes.iinfo(dtype).min, ml_dtypes.iinfo(dtype).max
    shapes: dict[str, Any] = {
        "tensor": ((), {}),
        "axis 0": ((35,), {"axis": 0}),
        "axis 1": ((21,), {"axis": 1}),
        "blocks of 0": ((3, 21), {"axis": 0, "block_size": 16}),
        "blocks of 1": ((35, 2), {"axis": 1, "block_size": 16}),
    }
    shape, how = shapes[where]
    weights: dict[str, Any] = {
        "d": rng.integers(low, high + 1, (35, 21)).astype(dtype),
        "s": np.asarray(rng.uniform(0.01, 1, shape), np.float32),
        "z": np.asarray(rng.integers(low, high + 1, shape), dtype),
    }
    if not centred:
        del weights["z"]
    x = drawn(rng, "float32", 4, 35)
    proto = dequantised(kind, x, weights, **how)
    want = judged(proto, x)
    close(irkit.compile(proto, device="cpu1").run([x])[0], want, 3000.0)


@pytest.mark.parametrize("kind", ["int4", "uint4"])
@pytest.mark.parametrize("odd", [False, True])
def test_quantised_activations(kind: str, odd: bool):
    """QuantizeLinear to 4 bits and back, by the least and the greatest of its integers and ties."""
    rng = np.random.default_rng(12)
    dtype = getattr(ml_dtypes, kind)
    shape = (3, 7) if odd else (4, 16)
    x = rng.uniform(-12, 20, shape).astype(np.float32)
    x.reshape(-1)[:6] = np.inf, -np.inf, 0.25, 0.75, -0.25, -0.0
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    proto = model(nodes, x, {"s": np.asarray(0.5, np.float32), "z": np.asarray(3, dtype)})
    want = judged(proto, x)
    np.testing.assert_array_equal(irkit.compile(proto, device="cpu1").run([x])[0], want)


def narrow_model(nodes: Any, given: Any, made: int, shape: Any = (3, 5)) -> Any:
    declared = helper.make_tensor_value_info("x", given, shape)
    result = helper.make_tensor_value_info("y", made, None)
    opsets = [helper.make_opsetid("", 25)]
    return helper.make_model(
        helper.make_graph(nodes, "g", [declared], [result]), opset_imports=opsets, ir_version=13
    )


@pytest.mark.parametrize("given_name", ["INT4", "UINT4", "INT2", "UINT2", "FLOAT", "INT8", "BOOL"])
@pytest.mark.parametrize(
    "made_name", ["INT4", "UINT4", "INT2", "UINT2", "FLOAT16", "INT8", "UINT8"]
)
def test_casts(given_name: str, made_name: str):
    """Their low bits, whatever is cast; arrays are ml_dtypes' on both sides."""
    given_code, made_code = (
        TensorProto.DataType.Value(given_name),
        TensorProto.DataType.Value(made_name),
    )
    given_type, made = (
        np.dtype(helper.tensor_dtype_to_np_dtype(c)) for c in (given_code, made_code)
    )
    x = (np.arange(15).reshape(3, 5) - 7).astype(np.float32).astype(np.int8).astype(given_type)
    node = helper.make_node("Cast", ["x"], ["y"], to=made_code)
    (got,) = irkit.compile(narrow_model([node], given_code, made_code), device="cpu1").run([x])
    want = x.astype(np.int64 if given_name != "FLOAT" else np.float32).astype(np.int64).astype(made)
    assert got.dtype == made
    np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))


def test_narrow_values_are_moved_and_nothing_else(tmp_path: Any):
    x = np.arange(-8, 7).reshape(3, 5).astype(ml_dtypes.int4)
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]),
        helper.make_node("Flatten", ["t"], ["y"], axis=0),
    ]
    program = irkit.compile(narrow_model(nodes, TensorProto.INT4, TensorProto.INT4), device="cpu1")
    program.save(tmp_path / "moved")
    for ready in (program, irkit.load(tmp_path / "moved")):
        (got,) = ready.run([x])
        assert got.dtype == ml_dtypes.int4
        np.testing.assert_array_equal(got, x.T.reshape(1, 15))
        with pytest.raises(InvalidInputError, match="input 'x': expected int4, got dtype int8"):
            ready.run([x.astype(np.int8)])
    again = [helper.make_node("Pad", ["x", "p"], ["y"])]
    proto = narrow_model(again, TensorProto.INT4, TensorProto.INT4)
    proto.graph.initializer.append(numpy_helper.from_array(np.array([0, 1, 0, 1]), "p"))
    with pytest.raises(UnsupportedError, match="elements of int4 are not supported here"):
        import_onnx(proto)
