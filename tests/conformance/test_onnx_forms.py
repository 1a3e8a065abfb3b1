"""ONNX models of odd but legal form, judged by ONNX Runtime: what it runs is imported or refused by name."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import AttributeProto, ModelProto, TensorProto, ValueInfoProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data

from irkit.errors import InvalidInputError, InvalidModelError, UnsupportedError
from irkit.frontends.onnx import import_onnx
from irkit.interp.graph import run_graph

RUNTIME: Any = onnxruntime
RUNTIME.set_default_logger_severity(4)
FLOAT, BF16, INT64 = TensorProto.FLOAT, TensorProto.BFLOAT16, TensorProto.INT64
FLOAT8 = TensorProto.FLOAT8E5M2
ONES = np.ones((2, 3), np.float32)


def value(name: str, kind: int = FLOAT, shape: Any = (2, 3)) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def untyped(name: str) -> ValueInfoProto:
    return ValueInfoProto(name=name)


def without_element(name: str) -> ValueInfoProto:
    made = value(name)
    made.type.tensor_type.ClearField("elem_type")
    return made


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def weight(name: str, array: Any) -> TensorProto:
    return numpy_helper.from_array(np.asarray(array), name)


TWO = [node("Relu", "x", "a"), node("Neg", "a", "y")]
ADD = [node("Add", "x w", "y")]


def model(
    nodes: Any = TWO, inputs: Any = None, outputs: Any = None, weights: Any = (), **options: Any
) -> ModelProto:
    """y = -relu(x), unless told otherwise. `values`: value_info; `edit`: called with the finished model."""
    edit: Callable[[ModelProto], object] = options.pop("edit", ModelProto.ByteSize)
    operators = options.pop("operators", {"": options.pop("opset", 17)})
    graph = helper.make_graph(
        nodes, "g", inputs or [value("x")], outputs or [value("y")], list(weights),
        value_info=options.pop("values", ()),
    )  # fmt: skip
    made = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid(d, v) for d, v in operators.items()],
        **{"ir_version": 8} | options,
    )
    edit(made)
    return made


def graph_of(nodes: Any, output: ValueInfoProto, weights: Any = ()) -> onnx.GraphProto:
    return helper.make_graph(nodes, "branch", [], [output], list(weights))


def choice(taken: onnx.GraphProto, output: ValueInfoProto | None = None) -> ModelProto:
    other = graph_of([node("Relu", "x", "other")], value("other", FLOAT, None))
    chosen = node("If", "k", "y", then_branch=taken, else_branch=other)
    return model([chosen], outputs=[output or value("y")], weights=[weight("k", True)])


def function(nodes: Any, inputs: str = "p", opset: int = 17, name: str = "F", **more: Any) -> Any:
    operators = [helper.make_opsetid("", opset), helper.make_opsetid("my", 1)]
    return helper.make_function("my", name, inputs.split(), ["q"], nodes, operators, **more)


def with_functions(call: onnx.NodeProto, *functions: Any) -> ModelProto:
    return model([call], functions=list(functions), operators={"": 17, "my": 1})


def slope() -> Any:
    leaky = node("LeakyRelu", "p", "q")
    leaky.attribute.add(name="alpha", ref_attr_name="alpha", type=AttributeProto.FLOAT)
    return function([leaky], attributes=["alpha"])


def forget_name(made: ModelProto) -> None:
    made.graph.ClearField("name")


def repeat_metadata(made: ModelProto) -> None:
    made.metadata_props.add(key="k", value="1")
    made.metadata_props.add(key="k", value="2")


CAST = [node("Cast", "x", "b", to=FLOAT8), node("Cast", "b", "y", to=FLOAT)]
HALF = np.ones((2, 3), ml_dtypes.bfloat16)
RELU_NEG = [node("Relu", "p", "t"), node("Neg", "t", "q")]
CALL = node("F", "x", "y", domain="my")

RUNS: dict[str, ModelProto] = {
    "output without a shape": model(outputs=[value("y", FLOAT, None)]),
    "output without a type": model(outputs=[untyped("y")]),
    "output of unknown sizes": model(outputs=[value("y", FLOAT, ("p", None))]),
    "value without a shape": model(values=[value("a", FLOAT, None)]),
    "value without a type": model(values=[untyped("a")]),
    "value of another shape": model(values=[value("a", FLOAT, (5,))]),
    "value that is nowhere": model(values=[value("zzz", INT64)]),
    "value twice": model(values=[value("a"), value("a")]),
    "branch without a shape": choice(
        graph_of([node("Neg", "x", "t")], value("t", FLOAT, None)), value("y", FLOAT, None)
    ),
    "branch without a type": choice(graph_of([node("Neg", "x", "t")], untyped("t")), untyped("y")),
    "branch that is a weight": choice(graph_of([], value("w"), [weight("w", ONES)])),
    "shapeless and old": model(
        outputs=[value("y", FLOAT, None)], opset=6, ir_version=3
    ),
    "shapeless with a batch": model(
        inputs=[value("x", FLOAT, ("n", 3))], outputs=[value("y", FLOAT, None)]
    ),
    "sizes of -1": model(
        inputs=[value("x", FLOAT, (-1, 3))], outputs=[value("y", FLOAT, (-1, 3))]
    ),
    "scalar": model(inputs=[value("x", FLOAT, ())], outputs=[value("y", FLOAT, ())]),
    "weight of bf16, converted": model(
        [node("Cast", "w", "a", to=FLOAT), node("Add", "x a", "y")], weights=[weight("w", HALF)]
    ),
    "weight of bf16, unused": model(weights=[weight("w", HALF)]),
    "weight of strings, unused": model(
        weights=[weight("w", np.array(["a"], object))]
    ),
    "weight that is an input": model(ADD, [value("x"), value("w")], weights=[weight("w", ONES)]),
    "old weight that is an input": model(
        ADD, [value("x"), value("w")], weights=[weight("w", ONES)], ir_version=3
    ),
    "old weight that is no input": model(ADD, weights=[weight("w", ONES)], ir_version=3),
    "weight that is an output": model(
        outputs=[value("y"), value("w")], weights=[weight("w", ONES)]
    ),
    "input that is an output": model(outputs=[value("y"), value("x")]),
    "nothing but an input": model([], outputs=[value("x")]),
    "output twice": model(outputs=[value("y"), value("y")]),
    "no inputs": model([node("Neg", "w", "y")], [value("w")], weights=[weight("w", ONES)]),
    "unused input": model(inputs=[value("x"), value("z")]),
    "nodes out of order": model(TWO[::-1]),
    "user of a branch out of order": model(
        [
            node("Neg", "u", "y"),
            node("If", "k", "u", then_branch=graph_of([node("Neg", "a", "t")], value("t")),
                 else_branch=graph_of([node("Relu", "a", "e")], value("e"))),
            node("Relu", "x", "a"),
        ],
        weights=[weight("k", True)],
    ),
    "dead node": model([*TWO, node("SequenceEmpty", "", "dead")]),
    "dead node in a branch": choice(
        graph_of([node("Neg", "x", "t"), node("SequenceEmpty", "", "dead")], value("t"))
    ),
    "inputs left out": model([helper.make_node("Clip", ["x", "", ""], ["y"])]),
    "input left out between": model(
        [helper.make_node("Clip", ["x", "", "m"], ["y"])], weights=[weight("m", np.float32(0.1))]
    ),
    "output left out": model([helper.make_node("Dropout", ["x"], ["y", ""])]),
    "domain ai.onnx of a node": model([node("Relu", "x", "y", domain="ai.onnx")]),
    "domain ai.onnx": model(operators={"ai.onnx": 17}),
    "domain by both names": model(operators={"ai.onnx": 17, "": 17}),
    "domain that is not used": model(operators={"": 17, "foo": 1}),
    "graph without a name": model(edit=forget_name),
    "metadata twice": model(edit=repeat_metadata),
    "names beyond ASCII": model(
        [helper.make_node("Relu", ["ü"], ['ö\n"']), helper.make_node("Neg", ['ö\n"'], [" "])],
        [value("ü")],
        [value(" ")],
    ),
    "function": with_functions(CALL, function(RELU_NEG)),
    "function of functions": with_functions(
        node("G", "x", "y", domain="my"),
        function(RELU_NEG),
        function([node("F", "p", "t", domain="my"), node("Neg", "t", "q")], name="G"),
    ),
    "function of another operator set": with_functions(CALL, function(RELU_NEG, opset=16)),
    "function with an attribute": with_functions(
        node("F", "x", "y", domain="my", alpha=0.5), slope()
    ),
    "function of an optional input": with_functions(
        CALL, function([node("Clip", "p low", "q")], inputs="p low")
    ),
}  # fmt: skip

UNSUPPORTED: dict[str, tuple[ModelProto, str]] = {
    "input without a shape": (
        model(inputs=[value("x", FLOAT, None)]),
        "input 'x': it has no shape (give it one with shapes={'x': ...})",
    ),
    "input of unknown sizes": (
        model(inputs=[value("x", FLOAT, (None, None))], outputs=[untyped("y")]),
        "(fix the others with shapes={'x': ...})",
    ),
    "float8 between": (
        model(CAST, outputs=[value("y", FLOAT, None)], opset=21),
        "node 'b' (Cast): to = 19: irkit has no such element type",
    ),
    "foreign operator": (
        model(
            [node("Gelu", "x", "y", domain="com.example")],
            outputs=[untyped("y")],
            operators={"": 17, "com.example": 1},
        ),
        "operator domain 'com.example' is not supported",
    ),
}

INVALID: dict[str, tuple[ModelProto, str]] = {
    "input without a type": (model(inputs=[untyped("x")]), "'type'"),
    "input without an element type": (model(inputs=[without_element("x")]), "'elem_type'"),
    "output without an element type": (model(outputs=[without_element("y")]), "'elem_type'"),
    "output of another type": (model(outputs=[value("y", INT64)]), "elem type differs"),
    "cycle": (
        model([node("Add", "x b", "a"), node("Neg", "a", "b"), node("Neg", "b", "y")]),
        "topologically sorted",
    ),
    "branch out of order": (
        choice(graph_of([node("Neg", "s", "t"), node("Relu", "x", "s")], value("t"))),
        "topologically sorted",
    ),
    "name twice": (
        model([node("Relu", "x", "a"), node("Neg", "x", "a"), node("Neg", "a", "y")]),
        "SSA",
    ),
    "name from nowhere": (model([node("Add", "x q", "y")]), "'q'"),
    "output from nowhere": (model(outputs=[value("z")]), "'z'"),
    "unknown attribute": (model([node("Relu", "x", "y", foo=1)]), "foo"),
    "type that the operator never had": (
        model([node("Relu", "x", "y")], [value("x", BF16)], [value("y", BF16)], opset=12),
        "bfloat16",
    ),
}


def session(made: ModelProto) -> Any:
    return RUNTIME.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])


def check(made: ModelProto, feeds: dict[str, Any], **options: Any) -> None:
    want = session(made).run(None, feeds)
    imported = import_onnx(made, **options)
    found = run_graph(imported.module, imported.weights, [feeds[n] for n in imported.info.inputs])
    for got, wanted in zip(found, want, strict=True):
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("name", RUNS)
def test_runs(name: str) -> None:
    made, rng = RUNS[name], np.random.default_rng(0)
    weights = {t.name for t in made.graph.initializer}
    feeds: dict[str, Any] = {}
    for given in made.graph.input:
        sizes = [d.dim_value if d.dim_value > 0 else 2 for d in given.type.tensor_type.shape.dim]
        if given.name not in weights:
            feeds[given.name] = rng.standard_normal(sizes).astype(np.float32)
    check(made, feeds)


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_unsupported(name: str) -> None:
    made, reason = UNSUPPORTED[name]
    onnx.shape_inference.infer_shapes(made, check_type=True)
    with pytest.raises(UnsupportedError) as caught:
        import_onnx(made)
    assert reason in str(caught.value)


@pytest.mark.parametrize("name", INVALID)
def test_invalid(name: str) -> None:
    made, reason = INVALID[name]
    with pytest.raises(InvalidModelError) as caught:
        import_onnx(made)
    assert reason in str(caught.value)
    with pytest.raises(Exception, match="ONNXRuntimeError"):
        session(made)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (1, 1, 4, 1)])
def test_a_shape_for_a_shapeless_input(shape: tuple[int, ...]) -> None:
    made = model(inputs=[value("x", FLOAT, None)], outputs=[value("y", FLOAT, None)])
    check(made, {"x": np.full(shape, 2, np.float32)}, shapes={"x": shape})


def outside(name: str) -> TensorProto:
    made = weight(name, np.arange(6, dtype=np.float32).reshape(2, 3))
    set_external_data(made, "weights.bin", offset=4, length=24)
    made.ClearField("raw_data")
    return made


CONSTANT = helper.make_node("Constant", [], ["w"], value=outside("w"))
EXTERNAL: dict[str, ModelProto] = {
    "weight": model(ADD, weights=[outside("w")]),
    "constant": model([CONSTANT, *ADD]),
    "weight of a branch": choice(graph_of([node("Add", "x w", "t")], value("t"), [outside("w")])),
    "constant of a branch": choice(graph_of([CONSTANT, node("Add", "x w", "t")], value("t"))),
    "constant of a function": with_functions(CALL, function([CONSTANT, node("Add", "p w", "q")])),
}


@pytest.mark.parametrize("name", EXTERNAL)
def test_external_data(name: str, tmp_path: Path) -> None:
    made = EXTERNAL[name]
    (tmp_path / "weights.bin").write_bytes(b"....%b.." % np.arange(6, dtype=np.float32).tobytes())
    (tmp_path / "model.onnx").write_bytes(made.SerializeToString())
    imported = import_onnx(tmp_path / "model.onnx")
    found = run_graph(imported.module, imported.weights, [ONES])
    np.testing.assert_array_equal(found[0], ONES + np.arange(6).reshape(2, 3))
    with pytest.raises(InvalidModelError, match="tensor 'w' is in an external file"):
        import_onnx(made)


@pytest.mark.parametrize("sizes", [(1, 1, 1, 8), (1, 1, 8, 1), (1, 1, 4, 5)])
def test_cubes_from_one_pixel(sizes: tuple[int, ...]) -> None:
    """Where a side becomes one pixel, pytorch_half_pixel begins at 0."""
    how = {"mode": "cubic", "coordinate_transformation_mode": "pytorch_half_pixel"}
    made = model(
        [helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], **how)],
        [value("x", FLOAT, (1, 1, 3, 3))],
        [untyped("y")],
        [numpy_helper.from_array(np.array(sizes, np.int64), "sizes")],
    )
    x = np.random.default_rng(0).standard_normal((1, 1, 3, 3)).astype(np.float32)
    imported = import_onnx(made)
    (found,) = run_graph(imported.module, imported.weights, [x])
    np.testing.assert_allclose(found, session(made).run(None, {"x": x})[0], atol=1e-6)


@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
def test_celu_keeps_the_shape(shape: tuple[int, ...]) -> None:
    made = model([node("Celu", "x", "y", alpha=0.7)], [value("x", FLOAT, shape)], [untyped("y")])
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32) - 1
    imported = import_onnx(made)
    (found,) = run_graph(imported.module, imported.weights, [np.asarray(x, np.float32)])
    want = session(made).run(None, {"x": np.asarray(x, np.float32)})[0]
    assert found.shape == want.shape == shape
    np.testing.assert_allclose(found, want, rtol=1e-6)


def test_no_outputs() -> None:
    made = model()
    made.graph.ClearField("output")
    with pytest.raises(InvalidModelError, match="no outputs"):
        import_onnx(made)


def test_a_shape_for_what_is_no_tensor() -> None:
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, (2, 3)))
    made = model([node("OptionalGetElement", "x", "y")], [helper.make_value_info("x", kind)])
    with pytest.raises(UnsupportedError, match="input 'x': it must be a tensor"):
        import_onnx(made)
    with pytest.raises(InvalidInputError, match="'x', which is no tensor"):
        import_onnx(made, {"x": (2, 3)})


def test_the_model_is_left_as_it_was() -> None:
    for made in (*RUNS.values(), *(m for m, _ in INVALID.values())):
        before = made.SerializeToString(deterministic=True)
        with suppress(InvalidModelError):
            import_onnx(made)
        assert made.SerializeToString(deterministic=True) == before
