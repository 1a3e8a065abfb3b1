# pyright: basic
"""Indices out of range of ONNX's gathers and scatters: an error where ONNX Runtime has one, as far as the
host knows the indices."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import irkit
from irkit.errors import InvalidInputError, UnsupportedError

X = np.arange(12, dtype=np.float32).reshape(4, 3)
ONES = np.ones((2, 3), np.float32)
OPS = {
    "Gather": (lambda bad: [0, bad], None),
    "GatherElements": (lambda bad: [[0, 1, bad]], None),
    "GatherND": (lambda bad: [[0], [bad]], None),
    "ScatterElements": (lambda bad: [[0, 1, bad]], ONES[:1]),
    "ScatterND": (lambda bad: [[0], [bad]], ONES),
}
"""Operators, their indices, and updates if they have some."""


def model(op, indices, updates, known, through=()):
    """Of `op` on X; the indices are an input, that goes through other nodes, or known."""
    values = [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)]
    initial, nodes, name = [], [], "i"
    if known:
        initial = [numpy_helper.from_array(indices, "i")]
    else:
        kind = helper.np_dtype_to_tensor_dtype(indices.dtype)
        values.append(helper.make_tensor_value_info("i", kind, indices.shape))
    for node in through:
        nodes.append(helper.make_node(node[0], [name], [f"{name}i"], **node[1]))
        name += "i"
    names = ["x", name]
    if updates is not None:
        values.append(helper.make_tensor_value_info("u", TensorProto.FLOAT, updates.shape))
        names.append("u")
    nodes.append(helper.make_node(op, names, ["y"]))
    results = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "g", values, results, initial)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def theirs(made, arrays):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        made.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, dict(zip([i.name for i in made.graph.input], arrays, strict=True)))[0]


@pytest.mark.parametrize("op", OPS)
def test_known_indices(op):
    of, updates = OPS[op]
    arrays = [X] if updates is None else [X, updates]
    made = model(op, np.array(of(-4)), updates, known=True)
    np.testing.assert_array_equal(irkit.compile(made, target="cpu")(*arrays), theirs(made, arrays))
    for bad in (4, -5):
        with pytest.raises(UnsupportedError, match=rf"\({op}\): indices: some lie outside"):
            irkit.compile(model(op, np.array(of(bad)), updates, known=True), target="cpu")


def test_known_tuples_of_indices():
    with pytest.raises(UnsupportedError, match=r"some lie outside \[4, 3\]"):
        irkit.compile(model("GatherND", np.array([[0, 3]]), None, known=True), target="cpu")


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
@pytest.mark.parametrize("op", OPS)
def test_indices_that_are_an_input(op, dtype):
    if op in ("GatherND", "ScatterND") and dtype == np.int32:
        pytest.skip("ONNX has int64 alone")
    of, updates = OPS[op]
    indices = np.array(of(-4), dtype)
    made = model(op, indices, updates, known=False)
    compiled = irkit.compile(made, target="cpu")
    for good in (-4, -1, 3):
        arrays = [X, np.array(of(good), dtype), *([] if updates is None else [updates])]
        np.testing.assert_array_equal(compiled(*arrays), theirs(made, arrays))
    for bad in (4, -5):
        arrays[1] = np.array(of(bad), dtype)
        with pytest.raises(Exception, match=r"(?i)out of|invalid ind"):
            theirs(made, arrays)
        with pytest.raises(InvalidInputError, match=rf"'i' has the index {bad}: expected -4 to 3"):
            compiled(*arrays)


def test_an_input_on_its_way(tmp_path):
    """Of words, cast, with a batch; loaded from a file too."""
    through = [("Cast", {"to": TensorProto.INT64}), ("Transpose", {"perm": [1, 0]})]
    made = model("Gather", np.zeros((2, 5), np.int32), None, known=False, through=through)
    program = irkit.compile(made, target="cpu")
    program.save(tmp_path / "words.irkit")
    for found in (program, irkit.load(tmp_path / "words.irkit")):
        indices = np.full((2, 5), 3, np.int32)
        np.testing.assert_array_equal(found(X, indices), theirs(made, [X, indices]))
        indices[1, 2] = 7
        with pytest.raises(InvalidInputError, match="'i' has the index 7: expected -4 to 3"):
            found(X, indices)


def test_an_open_batch_of_words_alone():
    """One input of rows, which else is taken as it is."""
    table = numpy_helper.from_array(X, "t")
    graph = helper.make_graph(
        [helper.make_node("Gather", ["t", "i"], ["y"])], "g",
        [helper.make_tensor_value_info("i", TensorProto.INT64, ["n", 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [table],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    compiled = irkit.compile(made, target="cpu")
    for rows in (1, 3):
        indices = np.full((rows, 2), -4)
        np.testing.assert_array_equal(compiled(indices), theirs(made, [indices]))
        indices[-1, 1] = 4
        with pytest.raises(InvalidInputError, match="has the index 4"):
            compiled(indices)
