"""Models that ONNX Runtime's quantiser wrote, of both its forms: the program gives ONNX Runtime's numbers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import onnxruntime.quantization as quantisation
import pytest
from onnx import helper, numpy_helper

import irkit
from irkit.context import IrkitContext
from irkit.driver.compiler.artifacts import build_artifact
from irkit.driver.compiler.models import read_model
from irkit.driver.pipelines.lowering import run_level
from irkit.driver.registry import register_dialects
from irkit.interp.graph import run_graph

RUNTIME: Any = onnxruntime
QUANTISER: Any = quantisation
RNG = np.random.default_rng(5)
SHAPES = {"mlp": (8, 40), "cnn": (1, 3, 16, 16)}
FORMS = {
    "plain": {},
    "channels": {"per_channel": True},
    "signed": {"activation": "QInt8", "weight": "QInt8"},
    "unsigned": {"activation": "QUInt8", "weight": "QUInt8"},
}


class Calibration(QUANTISER.CalibrationDataReader):
    """Eight random inputs."""

    def __init__(self, shape):
        self.left = [{"x": RNG.standard_normal(shape).astype(np.float32)} for _ in range(8)]

    def get_next(self):
        return self.left.pop() if self.left else None


def weights(*shape):
    scale = np.sqrt(np.prod(shape[1:]))
    return (RNG.standard_normal(shape) / scale).astype(np.float32)


def mlp():
    made = {"w": weights(64, 40), "b": weights(64), "v": weights(10, 64), "c": weights(10)}
    return made, [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"], transB=1),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "v", "c"], ["y"], transB=1),
    ]


def cnn():
    made = {"a": weights(16, 3, 3, 3), "aa": weights(16), "b": weights(16, 16, 3, 3)}
    made |= {"bb": weights(16), "c": weights(16, 1, 3, 3), "d": weights(16, 10)}
    pads = {"pads": [1, 1, 1, 1]}
    return made, [
        helper.make_node("Conv", ["x", "a", "aa"], ["c1"], **pads),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "b", "bb"], ["c2"], **pads),
        helper.make_node("Add", ["c2", "r1"], ["s"]),
        helper.make_node("Relu", ["s"], ["r2"]),
        helper.make_node("MaxPool", ["r2"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p", "c"], ["c3"], group=16, **pads),
        helper.make_node("GlobalAveragePool", ["c3"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("MatMul", ["f", "d"], ["y"]),
    ]


NETWORKS = {"mlp": mlp, "cnn": cnn}


def plain(name):
    made, nodes = NETWORKS[name]()
    shape = SHAPES[name]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", 1, shape)],
        [helper.make_tensor_value_info("y", 1, (shape[0], 10))],
        [numpy_helper.from_array(v, n) for n, v in made.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def quantised(folder: Path, name: str, form: str, how: str) -> onnx.ModelProto:
    options: dict[str, Any] = dict(FORMS[how])
    kinds = {k: options.pop(k, None) for k in ("activation", "weight")}
    options |= {f"{k}_type": getattr(QUANTISER.QuantType, v) for k, v in kinds.items() if v}
    onnx.save(plain(name), folder / "plain.onnx")
    QUANTISER.quantize_static(
        folder / "plain.onnx", folder / "quantised.onnx", Calibration(SHAPES[name]),
        quant_format=getattr(QUANTISER.QuantFormat, form), **options,
    )  # fmt: skip
    return onnx.load(folder / "quantised.onnx")


def runtime(proto, x):
    session = RUNTIME.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {"x": x})[0]


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("form", ["QDQ", "QOperator"])
@pytest.mark.parametrize("how", FORMS)
def test_static(tmp_path: Path, name: str, form: str, how: str):
    proto = quantised(tmp_path, name, form, how)
    x = RNG.standard_normal(SHAPES[name]).astype(np.float32)
    imported = read_model(proto, "float32")
    context = IrkitContext(weights=imported.weights)
    register_dialects(context)
    run_level(context, imported.module, "graph", "cpu1")
    (at_graph,) = run_graph(imported.module, imported.weights, [x])
    np.testing.assert_array_equal(at_graph, runtime(proto, x))
    if how == "channels":
        (got,) = irkit.compile(proto, device="cpu1").run([x])
        np.testing.assert_array_equal(got, at_graph)


def test_dynamic(tmp_path: Path):
    """Scales are found as the program runs."""
    onnx.save(plain("mlp"), tmp_path / "plain.onnx")
    kind = QUANTISER.QuantType.QUInt8
    QUANTISER.quantize_dynamic(tmp_path / "plain.onnx", tmp_path / "q.onnx", weight_type=kind)
    proto = onnx.load(tmp_path / "q.onnx")
    x = RNG.standard_normal(SHAPES["mlp"]).astype(np.float32)
    (got,) = irkit.compile(proto, device="cpu1").run([x])
    np.testing.assert_allclose(got, runtime(proto, x), rtol=1e-5, atol=1e-5)


def test_all_products_are_of_integers(tmp_path: Path):
    """No GPU is needed to compile for one."""
    proto = quantised(tmp_path, "cnn", "QDQ", "channels")
    artifact = build_artifact(read_model(proto, "float32"), "h200", cache=False)
    text = artifact.ir["graph"].splitlines()
    products = [t for t in text if "graph.conv " in t or "graph.matmul " in t]
    assert len(products) == 4
    assert all(t.rstrip().endswith("xi32>") for t in products)
    assert artifact.cubin[:4] == b"\x7fELF"


def test_bytes_are_what_lies_between(tmp_path: Path):
    """Images before the grouped convolution are in memory in no other way, nor is what is added or pooled."""
    proto = quantised(tmp_path, "cnn", "QDQ", "plain")
    artifact = build_artifact(read_model(proto, "float32"), "cpu1", cache=False)
    launches = re.findall(r"task\.launch.*-> \(?(.*)", artifact.ir["schedule"])
    images = [t for line in launches for t in re.findall(r"tensor<1x\d+x16x16x(\w+)>", line)]
    assert len(images) >= 3
    assert set(images) <= {"i8", "ui8"}
