"""LSTM, GRU and RNN against ONNX Runtime, at the graph level and as cells."""

from __future__ import annotations

import io

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from onnx_nodes import floats, judged, lowered, model, node, run

import irkit
from irkit.driver.compiler.artifacts import build_artifact
from irkit.errors import UnsupportedError
from irkit.frontends.onnx import import_onnx
from irkit.interp.graph import run_graph

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
STEPS, BATCH, INPUTS, HIDDEN = 4, 3, 5, 2


def layer(op, direction="forward", states=True, bias=True, lengths=None, peepholes=False,
          outside=(), **attributes):  # fmt: skip
    """(model, inputs) of one node with random weights; `outside` names weights that are inputs."""
    count = 2 if direction == "bidirectional" else 1
    gates = GATES[op] * HIDDEN
    weights = {"w": floats(count, gates, INPUTS, seed=1), "r": floats(count, gates, HIDDEN, seed=2)}
    if bias:
        weights["b"] = floats(count, 2 * gates, seed=4)
    if lengths is not None:
        weights["l"] = np.array(lengths, np.int32)
    if states:
        weights |= {
            n: floats(count, BATCH, HIDDEN, seed=5) for n in ("h", "c")[: 2 if op == "LSTM" else 1]
        }
    if peepholes:
        weights["p"] = floats(count, 3 * HIDDEN, seed=6)
    order = ["w", "r", "b", "l", "h", "c", "p"]
    names = ["x", *(n if n in weights else "_" for n in order)]
    while names[-1] == "_":
        names.pop()
    outputs = ("y", "yh", "yc") if op == "LSTM" else ("y", "yh")
    one = node(op, " ".join(names), " ".join(outputs), hidden_size=HIDDEN, direction=direction,
               **attributes)  # fmt: skip
    inputs = {"x": floats(STEPS, BATCH, INPUTS)} | {n: weights.pop(n) for n in outside}
    return model([one], inputs, weights, outputs), inputs


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    st.sampled_from(sorted(GATES)),
    st.sampled_from(["forward", "reverse", "bidirectional"]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, [4, 4, 4], [4, 2, 1]]),
    st.booleans(),
)
def test_layers(op, direction, states, bias, lengths, before_reset):
    options = {"linear_before_reset": int(before_reset)} if op == "GRU" else {}
    judged(*layer(op, direction, states, bias, lengths, **options))


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_peepholes(direction):
    judged(*layer("LSTM", direction, peepholes=True))


@pytest.mark.parametrize("op", sorted(GATES))
def test_weights_from_outside(op):
    judged(*layer(op, outside=("w", "r", "b", "h")))


def test_lengths_from_outside():
    judged(*layer("LSTM", lengths=[1, 3, 4], outside=("l",)))


@pytest.mark.parametrize(
    ("op", "activations"),
    [
        ("RNN", ["Relu"]),
        ("RNN", ["Softsign"]),
        ("GRU", ["Sigmoid", "Softsign"]),
        ("LSTM", ["Softsign", "Relu", "Tanh"]),
        ("LSTM", ["Sigmoid", "Softplus", "Softplus"]),
    ],
)
def test_functions(op, activations):
    judged(*layer(op, activations=activations))


def batch_first(op, rows, direction="bidirectional"):
    """The model of a dynamic batch, its input, and what the same layer gives with steps first."""
    proto, inputs = layer(op, direction, states=False)
    x = floats(rows, STEPS, INPUTS)
    inputs["x"] = np.ascontiguousarray(x.swapaxes(0, 1))
    steps_first = proto.graph.input[0].type.tensor_type.shape.dim
    steps_first[1].dim_value = rows
    del proto.graph.output[:]
    names = ["y", "yh"]
    proto.graph.output.extend(helper.make_tensor_value_info(n, 1, [None] * r)
                              for n, r in zip(names, (4, 3), strict=True))  # fmt: skip
    y, yh = judged(proto, inputs)
    proto.graph.node[0].attribute.append(helper.make_attribute("layout", 1))
    steps_first[0].dim_param, steps_first[1].dim_value = "n", STEPS
    return proto, x, [y.transpose(2, 0, 1, 3), yh.swapaxes(0, 1)]


@pytest.mark.parametrize("op", sorted(GATES))
def test_batch_first(op):
    proto, x, wanted = batch_first(op, 3)
    for got, want in zip(run(proto, {"x": x}), wanted, strict=True):
        np.testing.assert_allclose(got, want, atol=2e-6)
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 3
    for got, want in zip(run(proto, {"x": x}), wanted, strict=True):
        np.testing.assert_allclose(got, want, atol=2e-6)


@pytest.mark.parametrize("op", sorted(GATES))
def test_a_dynamic_batch_compiled(op):
    proto, x, wanted = batch_first(op, 5, "forward")
    program = irkit.compile(proto, target="cpu")
    for rows in (1, 5):
        for got, want in zip(program(x[:rows]), wanted, strict=True):
            np.testing.assert_allclose(got, want[:rows], atol=2e-6)


@pytest.mark.parametrize("before_reset", [0, 1])
def test_gru_compiled(before_reset):
    proto, inputs = layer("GRU", "bidirectional", linear_before_reset=before_reset)
    wanted = judged(proto, inputs)
    for got, want in zip(irkit.compile(proto, target="cpu")(inputs["x"]), wanted, strict=True):
        np.testing.assert_allclose(got, want, atol=2e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layer_of", ["GRU", "LSTM", "RNN"])
def test_torch_exports_of_both_directions(layer_of):
    torch = pytest.importorskip("torch")
    network = getattr(torch.nn, layer_of)(5, 4, num_layers=2, bidirectional=True).eval()
    file = io.BytesIO()
    x = floats(3, 1, 5)
    torch.onnx.export(network, torch.from_numpy(x), file, input_names=["x"], dynamo=False)
    judged(onnx.load_from_string(file.getvalue()), {"x": x})


def test_cells_compile_for_a_gpu():
    """Both GRU's chains and an LSTM's, over a dynamic batch: no GPU is needed to compile."""
    pytest.importorskip("numba_cuda")
    weights = {"w": floats(1, 12, 5), "r": floats(1, 12, 3), "v": floats(1, 9, 5),
               "s": floats(1, 9, 3)}  # fmt: skip
    nodes = [
        node("LSTM", "x w r", "_ h", hidden_size=3, layout=1),
        node("GRU", "x v s", "_ i", hidden_size=3, layout=1, linear_before_reset=1),
        node("GRU", "x v s", "_ j", hidden_size=3, layout=1),
        node("Add", "h i", "k"),
        node("Add", "k j"),
    ]
    proto = model(nodes, {"x": floats(2, 1, 5)}, weights, batch=True)
    artifact = build_artifact(import_onnx(proto), "cuda", cache=False)
    assert artifact.cubin is not None
    assert artifact.cubin[:4] == b"\x7fELF"


def test_softplus_of_large_numbers():
    proto, inputs = layer("RNN", activations=["Softplus"], states=False, bias=False)
    inputs["x"] *= 1000
    (y, _) = run(proto, inputs)
    assert np.isfinite(y).all()


def test_reverse_layers_unroll_from_the_end():
    proto, inputs = layer("GRU", "reverse")
    imported = import_onnx(proto)
    wanted = run_graph(imported.module, imported.weights, list(inputs.values()))
    cells = str(imported.module).count("graph.gru ")
    assert cells == 1
    lowered(imported)
    assert "graph." not in str(imported.module)
    assert len(wanted) == 2


@pytest.mark.parametrize(
    ("op", "attributes", "reason"),
    [
        ("GRU", {"clip": 1.0}, "clip: clipping of cells is not supported"),
        ("LSTM", {"input_forget": 1}, "input_forget = 1: only 0 is supported"),
        ("RNN", {"activations": ["Elu"]}, r"activations = \['elu'\]: only relu, sigmoid"),
        ("GRU", {"activations": ["Tanh"]}, r"activations = \['tanh'\]: 2 a direction are needed"),
    ],
)
def test_refusals(op, attributes, reason):
    proto, _ = layer(op, **attributes)
    with pytest.raises(UnsupportedError, match=reason):
        import_onnx(proto)


def test_shapes_are_checked():
    proto, _ = layer("GRU", outside=("h",))
    proto.graph.input[1].type.tensor_type.shape.dim[1].dim_value = 7
    with pytest.raises(UnsupportedError, match=r"'h': expected shape \(1, 3, 2\), got \(1, 7, 2\)"):
        import_onnx(proto)


def test_a_node_is_named_by_the_first_output_that_it_has():
    made, _ = layer("GRU", clip=1.0)
    made.graph.node[0].output[0] = ""
    made.graph.output.pop(0)
    with pytest.raises(UnsupportedError, match=r"node 'yh' \(GRU\)"):
        import_onnx(made)
