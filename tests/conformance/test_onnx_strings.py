"""Strings and maps of ONNX-ML models against ONNX Runtime: labels, categories, inputs and outputs."""

# pyright: basic

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnxruntime")

import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import irkit
from irkit.errors import InvalidInputError, UnsupportedError
from irkit.frontends.onnx import import_onnx
from irkit.runtime.program import CompiledProgram
from tests.conformance.interpreted import Interpreted
from tests.conformance.test_onnx_ml import BOTH, DOMAIN, STUMP, WEIGHTS, X
from tests.conformance.test_onnx_ml import node as made_node

node: Any = made_node

TEXTS = np.array([["red", "old"], ["blue", "new"], ["", "red"], ["zzz", "ünd"]], object)
NUMBERS = np.array([[3, 1], [5, -1], [7, 3], [0, 5]])
STRING, FLOAT = TensorProto.STRING, TensorProto.FLOAT


def model(nodes, outputs, constants=(), version=3, **inputs):
    declared = [
        helper.make_tensor_value_info(
            n, STRING if x.dtype == object else helper.np_dtype_to_tensor_dtype(x.dtype),
            ["n", *x.shape[1:]],
        )
        for n, x in inputs.items()
    ]  # fmt: skip
    results = [helper.make_empty_tensor_value_info(name) for name in outputs.split()]
    weights = [numpy_helper.from_array(array, name) for name, array in constants]
    graph = helper.make_graph(nodes, "g", declared, results, weights)
    opsets = [helper.make_opsetid(DOMAIN, version), helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def judged(proto, inputs):
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    return session.run(None, inputs)


def check(proto, **inputs):
    program = CompiledProgram({"float32": Interpreted(import_onnx(proto))})
    agree(program.run(list(inputs.values())), judged(proto, inputs))


def agree(found, wanted):
    for got, want in zip(found, wanted, strict=True):
        if isinstance(want, list):
            assert [list(row) for row in got] == [list(row) for row in want]
            got, want = ([list(row.values()) for row in rows] for rows in (got, want))
        got, want = np.asarray(got), np.asarray(want)
        assert got.shape == want.shape
        if want.dtype.kind == "f":
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(got, want)


def linear(outputs="label scores", **attributes):
    given = {"coefficients": WEIGHTS, "intercepts": [0.1, -0.2, 0.3]}
    names = {"classlabels_strings": ["few", "some", "many"]}
    return node("LinearClassifier", "x", outputs, **(given | names | attributes))


def test_labels_that_are_strings():
    check(model([linear()], "label scores", x=X), x=X)
    two = linear(coefficients=WEIGHTS[:3], intercepts=[0.1], classlabels_strings=["no", "yes"])
    check(model([two], "label scores", x=X), x=X)
    machine = node(
        "SVMClassifier", "x", "label scores", kernel_type="RBF", kernel_params=[0.5, 0.0, 0.0],
        classlabels_strings=["b", "a"], coefficients=[1.0, -1.0], rho=[0.1],
        support_vectors=WEIGHTS[:6], vectors_per_class=[1, 1],
    )  # fmt: skip
    check(model([machine], "label scores", x=X), x=X)
    weights = {k: v[:2] for k, v in BOTH.items() if k.startswith("class_")}
    weights |= {"class_nodeids": [1, 2], "class_ids": [1, 1], "class_weights": [0.2, 0.8]}
    trees = node(
        "TreeEnsembleClassifier", "x", "label scores", **STUMP, **weights,
        classlabels_strings=["left", "right"],
    )  # fmt: skip
    check(model([trees], "label scores", x=X), x=X)


@pytest.mark.parametrize("labels", ["strings", "int64s"])
def test_maps(labels):
    """As most exporters end classifiers."""
    names = ["few", "some", "many"] if labels == "strings" else [5, 2, 9]
    zipped = node("ZipMap", "scores", "maps", **{f"classlabels_{labels}": names})
    scored = linear(post_transform="SOFTMAX")
    check(model([scored, zipped], "label maps", x=X), x=X)
    check(model([scored, zipped], "maps scores", x=X), x=X)


def test_encoders():
    """Of strings, to strings, and both."""
    keys = ["red", "old", "blue"]
    for made in (
        {"keys_strings": keys, "values_int64s": [7, 8, 9], "default_int64": 3},
        {"keys_strings": keys, "values_floats": [0.5, 1.5, 2.5]},
        {"keys_strings": keys, "values_strings": ["a", "b", "red"], "default_string": "none"},
        {"keys_strings": keys, "values_strings": ["a", "b", "a"]},
    ):
        check(model([node("LabelEncoder", **made)], "y", x=TEXTS), x=TEXTS)
    back = node("LabelEncoder", keys_int64s=[3, 5, 1], values_strings=["three", "five", "one"])
    check(model([back], "y", x=NUMBERS), x=NUMBERS)
    mapper = node("CategoryMapper", cats_strings=keys, cats_int64s=[3, 5, 1], default_int64=77)
    check(model([mapper], "y", x=TEXTS), x=TEXTS)
    check(model([mapper], "y", x=NUMBERS), x=NUMBERS)
    check(model([node("OneHotEncoder", cats_strings=keys, zeros=1)], "y", x=TEXTS), x=TEXTS)
    old = node("LabelEncoder", classes_strings=keys)
    check(model([old], "y", version=1, x=TEXTS), x=TEXTS)
    tensors = {
        "keys_tensor": numpy_helper.from_array(np.array(keys, object)),
        "values_tensor": numpy_helper.from_array(np.array([1.5, 2.5, 3.5], np.float32)),
        "default_tensor": numpy_helper.from_array(np.array([9.0], np.float32)),
    }
    check(model([node("LabelEncoder", **tensors)], "y", version=4, x=TEXTS), x=TEXTS)


def mixed():
    """Columns of strings, moved and told apart, beside numbers, before a classifier."""
    nodes = [
        helper.make_node("Concat", ["colour", "age"], ["both"], axis=1),
        node("ArrayFeatureExtractor", "both which", "moved"),
        node("OneHotEncoder", "moved", "cube", cats_strings=["red", "old"], zeros=1),
        helper.make_node("Reshape", ["cube", "shape"], ["flat"]),
        helper.make_node("Concat", ["flat", "size"], ["x"], axis=1),
        node("LinearClassifier", "x", "label scores", coefficients=WEIGHTS[:5] * 2,
             intercepts=[0.1, -0.2], classlabels_strings=["cheap", "dear"]),
        node("ZipMap", "scores", "maps", classlabels_strings=["cheap", "dear"]),
    ]  # fmt: skip
    given = {"colour": TEXTS[:, :1], "age": TEXTS[:, 1:], "size": X[:4, :1]}
    constants = [("which", np.array([1, 0])), ("shape", np.array([-1, 4]))]
    return model(nodes, "label maps", constants, **given), given


def test_a_pipeline_of_strings(compiled, tmp_path):
    proto, given = mixed()
    check(proto, **given)
    program = compiled(proto, mode="serial")
    program.save(tmp_path / "p")
    for each in (program, irkit.load(tmp_path / "p")):
        agree(each.run(list(given.values())), judged(proto, given))
        first = {name: x[:1] for name, x in given.items()}
        agree(each(*first.values()), judged(proto, first))


def test_what_are_no_strings():
    proto, given = mixed()
    program = CompiledProgram({"float32": Interpreted(import_onnx(proto))})
    _, age, size = given.values()
    with pytest.raises(
        InvalidInputError, match="input 'colour': expected strings, got dtype float"
    ):
        program.run([size, age, size])
    odd = np.array([[None], ["a"], ["b"], ["c"]], object)
    with pytest.raises(InvalidInputError, match="input 'colour': expected strings, got NoneType"):
        program.run([odd, age, size])
    with pytest.raises(InvalidInputError, match="expected 3 inputs"):
        program.run([age, size])


def test_refused():
    for nodes, words in (
        (
            [helper.make_node("Cast", ["x"], ["y"], to=FLOAT)],
            r"\(Cast\): strings are not supported",
        ),
        ([node("OneHotEncoder", cats_int64s=[1])], "it has not what the categories are"),
    ):
        with pytest.raises(UnsupportedError, match=words):
            import_onnx(model(nodes, "y", x=TEXTS))
    for made in ({"classlabels_strings": ["a", "b"]}, {"classlabels_strings": ["a", "a", "b"]}):
        with pytest.raises(UnsupportedError, match="expected 3 labels, none of them twice"):
            import_onnx(model([node("ZipMap", **made)], "y", x=X))
