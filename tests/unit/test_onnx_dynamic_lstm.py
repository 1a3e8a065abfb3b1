"""What ONNX Runtime's quantiser makes of an LSTM, against ONNX Runtime on one thread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

import irkit
from irkit.errors import UnsupportedError

STEPS, INPUTS, HIDDEN = 5, 4, 6


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def quantised(
    folder: Path, inputs: dict[str, Any], direction: str, peepholes: bool = False, *,
    columns: bool = False, kind: Any = QuantType.QInt8, **attributes: Any,
) -> Any:  # fmt: skip
    """The model that the quantiser writes; `columns`: with a scale of each column of the weights."""
    count = 2 if direction == "bidirectional" else 1
    weights = {
        "w": normal(count, 4 * HIDDEN, INPUTS, seed=1) / 2,
        "r": normal(count, 4 * HIDDEN, HIDDEN, seed=2) / 2,
        "b": normal(count, 8 * HIDDEN, seed=3),
    }
    if peepholes:
        weights["p"] = normal(count, 3 * HIDDEN, seed=4)
    names = [n if n in inputs or n in weights else "" for n in ("x", *"wrb", "n", "h", "c", "p")]
    attributes |= {"hidden_size": HIDDEN, "direction": direction}
    one = helper.make_node("LSTM", names, ["y", "yh", "yc"], **attributes)
    declared = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in inputs.items()
    ]
    results = [helper.make_tensor_value_info(n, 1, None) for n in ("y", "yh", "yc")]
    known = [numpy_helper.from_array(a, n) for n, a in weights.items()]
    made = helper.make_graph([one], "g", declared, results, known)
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(made, opset_imports=opsets, ir_version=9), folder / "float.onnx")
    quantize_dynamic(
        folder / "float.onnx", folder / "bytes.onnx", per_channel=columns, weight_type=kind
    )
    proto = onnx.load(folder / "bytes.onnx")
    assert [n.op_type for n in proto.graph.node] == ["DynamicQuantizeLSTM"]
    return proto


def judged(proto: Any, inputs: dict[str, Any]) -> None:
    # In reverse, ONNX Runtime starts all sequences at one step, and so takes other rows together.
    apart = 2e-3 if "n" in inputs and len(inputs["n"]) > 1 else 1e-4
    options: Any = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session: Any = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    want = session.run(None, inputs)
    got: Any = irkit.compile(proto, "cpu").run([*inputs.values()])
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=apart)


@pytest.mark.parametrize(
    ("direction", "columns", "kind", "given"),
    [
        ("forward", False, QuantType.QInt8, "x"),
        ("reverse", True, QuantType.QUInt8, "xp"),
        ("bidirectional", True, QuantType.QInt8, "xhc"),
        ("bidirectional", False, QuantType.QUInt8, "xn"),
    ],
)
@pytest.mark.parametrize("batch", [1, 3])
def test_lstm(
    batch: int, direction: str, columns: bool, kind: Any, given: str, tmp_path: Path
) -> None:
    count = 2 if direction == "bidirectional" else 1
    inputs = {"x": normal(STEPS, batch, INPUTS)}
    if "n" in given:
        # None is as long as the input, whose end is larger than all before.
        inputs["n"] = np.array([3, 1, 4][:batch], np.int32)
        inputs["x"][-1] *= 50
    if "h" in given:
        inputs |= {n: normal(count, batch, HIDDEN, seed=s) for s, n in ((5, "h"), (6, "c"))}
    proto = quantised(tmp_path, inputs, direction, "p" in given, columns=columns, kind=kind)
    judged(proto, inputs)


def test_what_cannot_be_done_is_named(tmp_path: Path) -> None:
    proto = quantised(
        tmp_path, {"x": normal(STEPS, 1, INPUTS)}, "forward",
        activations=["Sigmoid", "Softsign", "Tanh"],
    )  # fmt: skip
    with pytest.raises(UnsupportedError, match=r"\['softsign'\]: only relu, sigmoid, tanh are"):
        irkit.compile(proto, "cpu")
