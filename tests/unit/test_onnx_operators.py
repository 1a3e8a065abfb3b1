"""What ONNX's own node tests leave out: dynamic batches, indices that repeat, refusals by name."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from irkit.errors import InvalidInputError, UnsupportedError
from irkit.frontends.onnx import import_onnx
from irkit.interp.graph import run_graph

RNG = np.random.default_rng(5)
KINDS = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64}


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def model(op, arrays, weights=(), outputs=1, batch=True, opset=20, **attributes):
    """One node on inputs `arrays`, whose first dimension is the batch, then constants."""
    names = [f"x{i}" for i in range(len(arrays))]
    inputs = [
        helper.make_tensor_value_info(
            n, KINDS[a.dtype], ["n", *a.shape[1:]] if batch else list(a.shape)
        )
        for n, a in zip(names, arrays, strict=True)
    ]
    known = ["" if w is None else f"w{i}" for i, w in enumerate(weights)]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, [*names, *known], results, **attributes)
    initializers = [numpy_helper.from_array(w, n) for n, w in zip(known, weights, strict=True) if n]
    graph = helper.make_graph(
        [node], "g", inputs, [helper.make_empty_tensor_value_info(r) for r in results], initializers
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    inferred = onnx.shape_inference.infer_shapes(proto)
    for result, better in zip(proto.graph.output, inferred.graph.output, strict=True):
        result.CopyFrom(better)
    return proto


def check(op, arrays, weights=(), **options):
    """The importer's module in the interpreter against ONNX Runtime."""
    proto = model(op, arrays, weights, **options)
    imported = import_onnx(proto)
    got = run_graph(imported.module, imported.weights, arrays)
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    want = session.run(None, {f"x{i}": a for i, a in enumerate(arrays)})
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=2e-6, atol=2e-6)


def refused(op, arrays, weights=(), **options):
    with pytest.raises(UnsupportedError) as info:
        import_onnx(model(op, arrays, weights, **options))
    return str(info.value)


INT = np.int64
X = floats(3, 4, 5)


@pytest.mark.parametrize(
    ("op", "weights", "attributes"),
    [
        ("Tile", [np.array([1, 2, 3], INT)], {}),
        ("Pad", [np.array([0, 1, 2, 0, 0, 1], INT), np.float32(2.5)], {}),
        ("Pad", [np.array([0, 1, 2, 0, 3, 1], INT)], {"mode": "reflect"}),
        ("Pad", [np.array([0, 1, 7, 0, 3, 9], INT)], {"mode": "edge"}),
        ("Pad", [np.array([0, -1, 2, 0, 0, -3], INT)], {}),
        ("Pad", [np.array([0, -1, 2, 0, 5, -1], INT)], {"mode": "wrap"}),
        ("Pad", [np.array([0, 3, -2, 0, -1, 1], INT)], {"mode": "wrap"}),
        ("Trilu", [np.array(1, INT)], {"upper": 0}),
        ("CumSum", [np.array(2, INT)], {}),
        ("Softplus", [], {}),
        ("Elu", [], {"alpha": 0.5}),
        ("Selu", [], {}),
        ("HardSwish", [], {}),
        ("Mish", [], {}),
        ("Gelu", [], {"approximate": "tanh"}),
        ("Sign", [], {}),
        ("Clip", [np.float32(-0.5), None], {}),
        ("IsInf", [], {}),
        ("Resize", [None, np.array([1, 2, 1.5], np.float32)], {"mode": "linear"}),
    ],
)
def test_a_dynamic_batch(op, weights, attributes):
    check(op, [X], weights, **attributes)


def resized(sizes, *batch):
    """Resize to a shape whose leading numbers are those of the input: x has three dimensions, y as many."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "kept"], ["leading"]),
        helper.make_node("Concat", ["leading", "sizes"], ["all"], axis=0),
        helper.make_node("Resize", ["x", "", "", "all"], ["y"], mode="linear"),
    ]
    weights = {"kept": np.array(batch, INT), "sizes": np.array(sizes, INT)}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4, 5])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * 3)],
        [numpy_helper.from_array(a, n) for n, a in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def test_sizes_behind_the_batch():
    """As exporters write it: all of the shape, of which the batch stays as it is."""
    proto = resized([7, 3], 0)
    imported = import_onnx(proto)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    for n in (1, 4):
        x = floats(n, 4, 5)
        (got,) = run_graph(imported.module, imported.weights, [x])
        np.testing.assert_allclose(got, session.run(None, {"x": x})[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("sizes", "batch"), [([3], (0, 0)), ([3], (1, 0)), ([2, 7, 3], ())])
def test_the_batch_stays_as_it_is(sizes, batch):
    with pytest.raises(UnsupportedError, match="dynamic batch"):
        import_onnx(resized(sizes, *batch))


def test_softplus_does_not_overflow():
    check("Softplus", [np.array([[-200, -20, -1, 0, 1, 20, 200, np.inf]], np.float32)])


def test_indices_of_rows():
    data, indices = floats(3, 6), np.array([[0, -1], [5, -6], [2, 2]], INT)
    check("GatherElements", [data, indices], axis=1)


def test_negative_indices_at_run_time():
    weights = floats(7, 2)
    indices = np.array([[0, -1, 6], [-7, 3, 2]], INT)
    proto = model("Gather", [indices], [weights])
    # The table comes first.
    proto.graph.node[0].input[:] = ["w0", "x0"]
    result = helper.make_tensor_value_info("y0", TensorProto.FLOAT, ["n", 3, 2])
    proto.graph.output[0].CopyFrom(result)
    imported = import_onnx(proto)
    (got,) = run_graph(imported.module, imported.weights, [indices])
    np.testing.assert_array_equal(got, weights[indices])


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_updates_that_meet_are_taken_in_order(reduction):
    data, updates = floats(6), floats(5)
    indices = np.array([2, 2, -1, 2, 5], INT)
    proto = model("ScatterElements", [data], [indices, updates], batch=False, reduction=reduction)
    imported = import_onnx(proto)
    (got,) = run_graph(imported.module, imported.weights, [data])
    want, combine = (
        data.copy(),
        {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum},
    )
    for at, new in zip(indices, updates, strict=True):
        want[at] = new if reduction == "none" else combine[reduction](want[at], new)
    np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize(
    ("op", "weights", "attributes", "words"),
    [
        ("Tile", [np.array([2, 1, 1], INT)], {}, "it mixes the rows of a dynamic batch"),
        ("Tile", [np.array([1, 0, 1], INT)], {}, "empty tensors are not supported"),
        ("Pad", [np.array([1, 0, 0, 0, 0, 0], INT)], {}, "pads of axis 0"),
        ("Pad", [np.array([0, -4, 0, 0, 0, 0], INT)], {}, "nothing is left"),
        ("Pad", [np.array([0, -4, 0, 0, 2, 0], INT)], {"mode": "wrap"}, "nothing is left"),
        ("Gather", [np.array([4], INT)], {"axis": 1}, "some lie outside an axis of 4"),
        ("ScatterND", [np.array([[0]], INT), floats(1, 4, 5)], {}, "fix the batch size"),
        ("Mod", [floats(5)], {"fmod": 1}, "remainder of floating-point numbers"),
        ("Clip", [floats(2)], {}, "it must be one number"),
        ("Cast", [], {"to": TensorProto.STRING}, "irkit has no such element type"),
        ("Resize", [None, np.array([2, 1, 1], np.float32)], {}, "it resizes the dynamic batch"),
        (
            "Resize",
            [np.array([1, 1, 2], np.float32)],
            {"opset": 10, "mode": "cubic"},
            "mode = 'cubic': operator set 11 is the first that has it",
        ),
        ("NonZero", [], {}, "only where its inputs are constant"),
    ],
)
def test_refusals_are_named(op, weights, attributes, words):
    assert words in refused(op, [X], weights, **attributes)


COMBINED = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def placed(reduction, data, places, updates):
    """One update after another."""
    want = data.copy()
    for at, new in zip(places, updates, strict=True):
        want[at] = new if reduction == "none" else COMBINED[reduction](want[at], new)
    return want


@pytest.mark.parametrize("reduction", ["none", *COMBINED])
@pytest.mark.parametrize("axis", [0, 1])
def test_updates_at_computed_places(axis, reduction):
    data, indices, updates = floats(4, 5), np.array([[1, -1, 1], [1, 0, -4]], INT), floats(2, 3)
    inputs = [data, indices, updates]
    proto = model("ScatterElements", inputs, batch=False, axis=axis, reduction=reduction)
    imported = import_onnx(proto)
    (got,) = run_graph(imported.module, imported.weights, inputs)
    places = [(n, k) if axis else (k, c) for (n, c), k in np.ndenumerate(indices)]
    want = placed(reduction, data, places, updates.ravel())
    np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("reduction", ["none", *COMBINED])
def test_slices_at_computed_places(reduction):
    data, updates = floats(3, 4, 2), floats(5, 2)
    indices = np.array([[0, 1], [2, -1], [0, 1], [-3, -3], [2, 3]], INT)
    inputs = [data, indices, updates]
    imported = import_onnx(model("ScatterND", inputs, batch=False, reduction=reduction))
    (got,) = run_graph(imported.module, imported.weights, inputs)
    want = placed(reduction, data, [tuple(i) for i in indices], updates)
    np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("reduction", COMBINED)
def test_more_updates_than_rounds(reduction):
    data, updates = floats(3), floats(70)
    indices = np.array([2] * 69 + [0], INT)
    proto = model("ScatterElements", [data], [indices, updates], batch=False, reduction=reduction)
    imported = import_onnx(proto)
    (got,) = run_graph(imported.module, imported.weights, [data])
    np.testing.assert_allclose(got, placed(reduction, data, indices, updates), rtol=1e-5)
    # What nothing comes to keeps its bits.
    assert got[1].tobytes() == data[1].tobytes()


def branches(condition):
    """If with a constant condition: then x + 1, else x * 2."""
    one, two = (numpy_helper.from_array(np.float32(v), n) for v, n in ((1, "one"), (2, "two")))
    out = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3]) for n in ("t", "e", "y")]
    then = helper.make_graph(
        [helper.make_node("Add", ["x", "one"], ["t"])], "t", [], out[:1], [one]
    )
    other = helper.make_graph(
        [helper.make_node("Mul", ["x", "two"], ["e"])], "e", [], out[1:2], [two]
    )
    node = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])
    c = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    known = [] if condition is None else [numpy_helper.from_array(np.array(condition), "c")]
    graph = helper.make_graph([node], "g", [x] if known else [x, c], out[2:], known)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


@pytest.mark.parametrize("condition", [True, False])
def test_a_known_condition_takes_its_branch(condition):
    x = floats(3)
    imported = import_onnx(branches(condition))
    (got,) = run_graph(imported.module, imported.weights, [x])
    np.testing.assert_allclose(got, x + 1 if condition else x * 2)


def test_an_unknown_condition_must_be_constant():
    with pytest.raises(UnsupportedError, match="give the values of 'c'"):
        import_onnx(branches(None))


def test_elements_of_another_kind_are_refused_by_name():
    proto = model("Identity", [X])
    proto.graph.input[0].type.tensor_type.elem_type = TensorProto.COMPLEX64
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.COMPLEX64
    with pytest.raises(UnsupportedError, match="input 'x0': element type COMPLEX64"):
        import_onnx(proto)


def test_shapes_are_for_onnx_only():
    import irkit

    with pytest.raises(UnsupportedError, match="for ONNX models only"):
        irkit.compile(object(), target="cpu", constants={"x": X})
    with pytest.raises(InvalidInputError, match="no input of the model"):
        irkit.compile(model("Relu", [X]), target="cpu", constants={"z": X})
