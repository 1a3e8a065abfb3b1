"""Operators that ONNX Runtime's optimiser makes of several, against ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import irkit
from irkit.errors import UnsupportedError

MICROSOFT = "com.microsoft"
DOMAINS = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def model(op: str, inputs: dict[str, Any], weights: dict[str, Any], **attributes: Any) -> Any:
    """One node; its operands are the inputs, then the weights, of which None is left out."""
    names = [*inputs, *(n if a is not None else "" for n, a in weights.items())]
    node = helper.make_node(op, names, ["y"], domain=MICROSOFT, **attributes)
    declared = [helper.make_tensor_value_info(n, 1, a.shape) for n, a in inputs.items()]
    known = [numpy_helper.from_array(a, n) for n, a in weights.items() if a is not None]
    result = helper.make_tensor_value_info("y", 1, None)
    made = helper.make_graph([node], "g", declared, [result], known)
    return helper.make_model(made, opset_imports=DOMAINS, ir_version=9)


def judged(proto: Any, inputs: dict[str, Any]) -> None:
    """Compiled and run as ONNX Runtime runs it."""
    got = irkit.compile(proto, "cpu")(*inputs.values())
    want: Any = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, inputs)[0]
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=5e-6)


ACTIVATED: list[tuple[str, list[float]]] = [
    ("", []),
    ("Relu", []),
    ("Tanh", []),
    ("Sigmoid", []),
    ("LeakyRelu", [0.3]),
    ("Clip", [-0.5, 1.25]),
    ("HardSigmoid", [0.3, 0.4]),
]


@pytest.mark.parametrize(
    ("activation", "parameters", "more"),
    [(*a, "bz") for a in ACTIVATED] + [("Relu", [], more) for more in ("", "b", "z")],
)
def test_fused_conv(activation: str, parameters: list[float], more: str) -> None:
    inputs = {"x": normal(2, 4, 9, 7)}
    weights = {
        "w": normal(6, 2, 3, 3, seed=1),
        "b": normal(6, seed=2) if "b" in more else None,
        "z": normal(2, 6, 5, 5, seed=3) if "z" in more else None,
    }
    how: dict[str, Any] = {"group": 2, "strides": [2, 1], "pads": [1, 0, 1, 0]}
    if activation:
        how["activation"] = activation
    if parameters:
        how["activation_params"] = parameters
    judged(model("FusedConv", inputs, weights, **how), inputs)


@pytest.mark.parametrize("activation", ["Relu", "LeakyRelu", "Sigmoid", "Elu"])
@pytest.mark.parametrize("turned", [0, 1])
def test_fused_gemm(activation: str, turned: int) -> None:
    inputs = {"x": normal(5, 7) if turned else normal(7, 5)}
    weights = {"w": normal(9, 5, seed=1), "c": normal(9, seed=2)}
    how = {"transA": turned, "transB": 1, "alpha": 0.7, "beta": 0.3, "activation": activation}
    if activation in ("LeakyRelu", "Elu"):
        how["activation_alpha"] = 0.2
    judged(model("FusedGemm", inputs, weights, **how), inputs)


@pytest.mark.parametrize("behind", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("turned", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_fused_matmul(turned: tuple[int, int], behind: tuple[int, int]) -> None:
    rows, inner, columns, batch = 4, 5, 6, (2, 3)

    def factor(shape: tuple[int, int], flip: int, away: int, seed: int) -> Any:
        a, b = reversed(shape) if flip else shape
        return normal(a, *batch, b, seed=seed) if away else normal(*batch, a, b, seed=seed)

    inputs = {
        "a": factor((rows, inner), turned[0], behind[0], 0),
        "b": factor((inner, columns), turned[1], behind[1], 1),
    }
    how = dict(zip(("transA", "transB"), turned, strict=True), alpha=0.25)
    how |= dict(zip(("transBatchA", "transBatchB"), behind, strict=True))
    judged(model("FusedMatMul", inputs, {}, **how), inputs)


@pytest.mark.parametrize("shapes", [((5,), (5, 3)), ((4, 5), (5,)), ((2, 4, 5), (5, 3))])
def test_fused_matmul_of_other_ranks(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    inputs = {"a": normal(*shapes[0]), "b": normal(*shapes[1], seed=1)}
    judged(model("FusedMatMul", inputs, {}, alpha=3.0), inputs)


@pytest.mark.parametrize(
    ("op", "bias", "how"),
    [
        ("Gelu", False, {}),
        ("BiasGelu", True, {}),
        ("FastGelu", False, {}),
        ("FastGelu", True, {}),
        ("QuickGelu", False, {}),
        ("QuickGelu", False, {"alpha": 1.0}),
    ],
)
def test_gelu_and_its_kin(op: str, bias: bool, how: dict[str, float]) -> None:
    inputs = {"x": 3 * normal(3, 5, 8)}
    judged(model(op, inputs, {"b": normal(8, seed=1)} if bias else {}, **how), inputs)


@pytest.mark.parametrize(
    ("op", "how", "why"),
    [
        ("FusedConv", {"activation": "Sqrt"}, "activation = 'Sqrt'"),
        ("FusedConv", {"activation": "Clip"}, "2 parameters"),
        ("QuickGelu", {"beta": 1.0}, "beta: this attribute is not supported"),
    ],
)
def test_what_is_refused(op: str, how: dict[str, Any], why: str) -> None:
    weights = {"w": normal(3, 2, 1, 1)} if op == "FusedConv" else {}
    with pytest.raises(UnsupportedError, match=why):
        irkit.compile(model(op, {"x": normal(1, 2, 3, 3)}, weights, **how), "cpu")


def test_an_optimised_model_of_an_open_batch(tmp_path: Path) -> None:
    """What ONNX Runtime writes of a network: it is the program that the network itself gives."""
    rng = np.random.default_rng(0)
    weights = {"f": rng.standard_normal((8, 3, 3, 3)), "g": rng.standard_normal((8, 32)) / 6}
    nodes = [
        helper.make_node("Conv", ["x", "f"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["q"]),
        helper.make_node("MatMul", ["q", "g"], ["m"]),
        helper.make_node("Sigmoid", ["m"], ["s"]),
        helper.make_node("Mul", ["m", "s"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", 1, ["n", 3, 6, 5])],
        [helper.make_tensor_value_info("y", 1, ["n", 32])],
        [numpy_helper.from_array(a.astype(np.float32), n) for n, a in weights.items()],
    )
    proto = helper.make_model(graph, opset_imports=DOMAINS, ir_version=9)
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    optimised = onnx.load(options.optimized_model_filepath)
    assert {"FusedConv", "QuickGelu"} <= {n.op_type for n in optimised.graph.node}
    program = irkit.compile(optimised, "cpu")
    for n in (1, 4):
        x = normal(n, 3, 6, 5)
        np.testing.assert_allclose(program(x), session.run(None, {"x": x})[0], rtol=2e-6, atol=5e-6)


@pytest.mark.parametrize("count", [1, 3])
def test_layer_normalization_of_an_early_operator_set(count: int) -> None:
    """ONNX Runtime's optimiser writes it into models of operator sets that have none."""
    names = ["y", "mean", "inverse"][:count]
    node = helper.make_node("LayerNormalization", ["x", "s", "b"], names, axis=-1)
    outputs = [helper.make_tensor_value_info(n, 1, None) for n in names]
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", 1, ["n", 5, 8])],
        outputs,
        [numpy_helper.from_array(normal(8, seed=n), name) for n, name in enumerate("sb")],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    inputs = {"x": normal(3, 5, 8, seed=4)}
    want: Any = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, inputs)
    got = irkit.compile(proto, "cpu")(*inputs.values())
    for a, b in zip(got if count > 1 else [got], want, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=5e-6)
