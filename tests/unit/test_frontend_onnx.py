"""The ONNX front end against ONNX Runtime."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from benchmarks.models import lstm_stack, mlp, small_cnn
from irkit import weights
from irkit.dialects.graph.batch import analyse
from irkit.dialects.types import DYNAMIC, numpy_dtype, tensor_type
from irkit.errors import InvalidInputError, InvalidModelError, OpenBatchError, UnsupportedError
from irkit.frontends.onnx import import_onnx
from irkit.interp.graph import run_graph


def floats(*shape, seed=3):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def model(nodes, inputs, outputs=("y",), weights=None, opset=17, **options):
    """A float32 model; `inputs` maps names to shapes, `weights` names to arrays."""
    declared = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()]
    results = [helper.make_empty_tensor_value_info(n) for n in outputs]
    proto = helper.make_model(
        helper.make_graph(nodes, "g", declared, results),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=8,
        **options,
    )
    proto.graph.initializer.extend(
        numpy_helper.from_array(a, n) for n, a in (weights or {}).items()
    )
    # ONNX wants typed outputs.
    inferred = onnx.shape_inference.infer_shapes(proto)
    for result, known in zip(proto.graph.output, inferred.graph.output, strict=True):
        result.CopyFrom(known)
    return proto


def node(op, inputs, outputs="y", **attributes):
    return helper.make_node(
        op, inputs.split(), outputs.split(), name=f"{op}_{outputs}", **attributes
    )


def arguments(imported):
    return list(next(iter(imported.module.body.block.ops)).body.block.args)


def check(proto, rows=4, tolerance=2e-6, shapes=None, batch=None):
    """Import, run on random inputs, compare with ONNX Runtime."""
    imported = import_onnx(proto, shapes=shapes, batch=batch)
    feeds = {}
    for name, argument in zip(imported.info.inputs, arguments(imported), strict=True):
        kind = tensor_type(argument)
        sizes = [rows if s == DYNAMIC else s for s in kind.get_shape()]
        feeds[name] = floats(*sizes).astype(numpy_dtype(kind.element_type))
    outputs = run_graph(imported.module, imported.weights, list(feeds.values()))
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    wanted = session.run(list(imported.info.outputs), feeds)
    for got, want in zip(outputs, wanted, strict=True):
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=tolerance)
    return imported


def ops_of(imported):
    main = next(iter(imported.module.body.block.ops))
    return [op.name for op in main.body.block.ops]


# Whole networks


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_mlp_with_a_dynamic_batch(rows):
    imported = check(mlp(), rows=rows)
    assert imported.info.kind == "network"
    assert imported.info.inputs == ("x",)
    assert tensor_type(arguments(imported)[0]).get_shape() == (DYNAMIC, 64)


@pytest.mark.parametrize("batch", [None, 1, 3])
def test_small_cnn(batch):
    check(small_cnn(batch))


@pytest.mark.parametrize("batch_first", [False, True])
def test_lstm_stack(batch_first):
    imported = check(lstm_stack(3, 8, 5, 4, batch=2, batch_first=batch_first))
    # The sub-graph that computes the shape of the initial states is gone.
    allowed = {"arith.constant", "graph.lstm", "graph.reshape", "graph.concat", "func.return"}
    assert set(ops_of(imported)) <= allowed | {"graph.transpose"}


def test_shapes_fix_symbolic_dimensions():
    imported = check(mlp(), rows=5, shapes={"x": (5, 64)})
    assert tensor_type(arguments(imported)[0]).get_shape() == (5, 64)


def test_a_path_is_read(tmp_path):
    path = tmp_path / "mlp.onnx"
    onnx.save(mlp(2), path)
    assert str(import_onnx(path).module) == str(import_onnx(str(path)).module)


@pytest.mark.filterwarnings("ignore")
def test_torch_exports():
    torch = pytest.importorskip("torch")
    import io

    network = torch.nn.LSTM(5, 8, num_layers=2)
    file = io.BytesIO()
    torch.onnx.export(network, torch.zeros(4, 1, 5), file, input_names=["x"], dynamo=False)
    check(onnx.load_from_string(file.getvalue()))


# One operator at a time


@pytest.mark.parametrize(
    "op", ["Abs", "Erf", "Exp", "Floor", "Identity", "Neg", "Relu", "Sigmoid", "Tanh"]
)
def test_unary(op):
    check(model([node(op, "x")], {"x": [3, 4]}))


@pytest.mark.parametrize("opset", [9, 17])
def test_slopes(opset):
    check(model([node("LeakyRelu", "x", alpha=0.3)], {"x": [3, 4]}, opset=opset))
    check(
        model([node("PRelu", "x w")], {"x": ["n", 3, 4]}, weights={"w": floats(3, 1)}, opset=opset)
    )


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Max", "Min"])
def test_binary_broadcasts(op):
    check(model([node(op, "x z")], {"x": [3, 4], "z": [2, 1, 4]}))


def test_max_of_three():
    check(model([node("Max", "x w x z")], {"x": [3, 4], "z": [4]}, weights={"w": floats(4)}))


@pytest.mark.parametrize("op", ["Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"])
def test_comparisons_and_where(op):
    nodes = [node(op, "x w", "p"), node("Where", "p x z")]
    check(model(nodes, {"x": [3, 4], "z": [3, 4]}, weights={"w": floats(3, 4)}))


@pytest.mark.parametrize("opset", [9, 17])
def test_clip(opset):
    limits = {"min": -0.5, "max": 0.25}
    if opset == 9:
        check(model([node("Clip", "x", **limits)], {"x": [9]}, opset=9))
    else:
        scalars = {n: np.float32(v) for n, v in limits.items()}
        check(model([node("Clip", "x min max")], {"x": [9]}, weights=scalars))
        only_max = helper.make_node("Clip", ["x", "", "max"], ["y"])
        check(model([only_max], {"x": [9]}, weights={"max": scalars["max"]}))


@pytest.mark.parametrize("opset", [9, 17])
@pytest.mark.parametrize("given", [[], ["min"], ["max"], ["min", "max"]])
def test_clip_without_limits(opset, given):
    """What is not given is the largest finite number: ONNX says so, and cuts infinity off there."""
    limits = {n: np.float32(v) for n, v in (("min", -0.5), ("max", 0.25)) if n in given}
    x = np.array([np.inf, -np.inf, np.nan, 0, -3, 3, 3.4e38], np.float32)
    if opset == 9:
        clip = node("Clip", "x", **{n: float(v) for n, v in limits.items()})
        proto = model([clip], {"x": [7]}, opset=9)
    else:
        operands = ["x", *(n if n in given else "" for n in ("min", "max"))]
        proto = model([helper.make_node("Clip", operands, ["y"])], {"x": [7]}, weights=limits)
    imported = import_onnx(proto)
    (got,) = run_graph(imported.module, imported.weights, [x])
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    np.testing.assert_array_equal(got, session.run(None, {"x": x})[0])


@pytest.mark.parametrize("shape", ["ab", 3, [3, 4.0], None])
def test_shapes_that_are_none_are_named(shape):
    proto = model([node("Relu", "x")], {"x": [3, 4]})
    with pytest.raises(InvalidInputError, match=r"shapes\['x'\] = .*: expected sizes"):
        import_onnx(proto, shapes={"x": shape})


@pytest.mark.parametrize("opset", [7, 11, 13])
@pytest.mark.parametrize("axes", [[2, 0], [1, 0], [3, 1], [0, 3], [0, -1], [-1, -3], [-4, 3]])
def test_axes_of_constants_in_any_order(opset, axes):
    """ONNX's reference takes axes one by one; a constant and a value of the program must have one shape."""
    if opset < 11 and min(axes) < 0:
        pytest.skip("axes below 0 are of operator set 11")
    options = {"axes": axes} if opset < 13 else {}
    names = "" if opset < 13 else " axes"
    nodes = [
        node("Unsqueeze", f"w{names}", "u", **options),
        node("Unsqueeze", f"x{names}", "v", **options),
        node("Add", "u v", "y"),
    ]
    weights = {"w": floats(2, 3), "axes": np.array(axes)}
    check(model(nodes, {"x": [2, 3]}, ("y", "u"), weights=weights, opset=opset))


def test_constants_that_the_reference_does_not_compute():
    """ONNX's reference fails on these: they are graph ops of constants."""
    nodes = [
        node("Pad", "w pads", "p"),
        node("GatherElements", "w i", "g", axis=0),
        node("OneHot", "i depth values", "o"),
        node("Pow", "n m", "q"),
        node("Add", "x p", "y"),
    ]
    weights = {
        "w": floats(4, 3), "pads": np.array([0, -1, 0, 0]), "i": np.array([[1, 3]]),
        "depth": np.array([4]), "values": np.array([2, 5]),
        "n": np.array([1, -1, 5]), "m": np.array([-1, -3, -2]),
    }  # fmt: skip
    check(model(nodes, {"x": [4, 2]}, ("y", "p", "g", "o", "q"), weights=weights))


def test_casts():
    nodes = [node("Cast", "x", "d", to=TensorProto.DOUBLE), node("Exp", "d", "e"),
             node("Cast", "e", "i", to=TensorProto.INT64), node("Cast", "i", to=1)]  # fmt: skip
    check(model(nodes, {"x": [9]}))


@pytest.mark.parametrize("opset", [11, 17])
def test_softmax_axes(opset):
    for axis in (0, 1, 2, -2):
        check(model([node("Softmax", "x", axis=axis)], {"x": [2, 3, 4]}, opset=opset))
    check(model([node("Softmax", "x")], {"x": [2, 3, 4]}, opset=opset))
    check(model([node("Softmax", "x", axis=1)], {"x": ["n", 3, 4]}, opset=opset))


def test_gemm_options():
    gemm = node("Gemm", "x w b", transA=1, transB=1, alpha=0.5, beta=2.0)
    weights = {"w": floats(4, 3), "b": floats(5, 1)}
    check(model([gemm], {"x": [3, 5]}, weights=weights))
    check(model([node("Gemm", "x w")], {"x": ["n", 4]}, weights=weights))


def test_matmul_of_rank_three():
    check(model([node("MatMul", "x w")], {"x": ["n", 3, 4]}, weights={"w": floats(4, 5)}))


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("op", ["Conv", "MaxPool", "AveragePool"])
def test_auto_pad(op, auto_pad):
    where = {"kernel_shape": [3, 2], "strides": [2, 1], "auto_pad": auto_pad}
    inputs = "x w" if op == "Conv" else "x"
    check(
        model([node(op, inputs, **where)], {"x": [1, 2, 8, 7]}, weights={"w": floats(3, 2, 3, 2)})
    )


def test_grouped_and_dilated_convolution():
    conv = node("Conv", "x w b", group=2, dilations=[2, 1], pads=[1, 0, 2, 1], strides=[1, 2])
    weights = {"w": floats(6, 2, 3, 3), "b": floats(6)}
    check(model([conv], {"x": ["n", 4, 9, 8]}, weights=weights))


@pytest.mark.parametrize("size", [6, 7, 8, 9])
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 1, 0]])
def test_ceil_mode_of_max_pool(size, pads):
    where = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": pads, "ceil_mode": 1}
    check(model([node("MaxPool", "x", **where)], {"x": [1, 2, size, size]}))


@pytest.mark.parametrize("opset", [17, 22])
@pytest.mark.parametrize("op", ["AveragePool", "MaxPool"])
def test_windows_behind_the_input_are_none(op, opset):
    """ONNX Runtime drops them at every operator set, ONNX's text since 22."""
    where = {"kernel_shape": [2, 2], "strides": [3, 3], "ceil_mode": 1}
    proto = model([node(op, "x", **where)], {"x": [1, 2, 6, 6]}, opset=opset)
    # As inferred before operator set 22, with those windows.
    declared = proto.graph.output[0].type.tensor_type
    if opset < 22:
        with pytest.raises(InvalidModelError, match=r"output 'y' is declared as \[1, 2, 3, 3\]"):
            import_onnx(proto)
    declared.ClearField("shape")
    check(proto)
    x = floats(1, 2, 6, 6)
    imported = import_onnx(proto)
    (y,) = run_graph(imported.module, imported.weights, [x])
    assert y.shape == (1, 2, 2, 2)


@pytest.mark.parametrize("include", [0, 1])
def test_pooling(include):
    where = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    pool = node("AveragePool", "x", "p", count_include_pad=include, **where)
    nodes = [pool, node("GlobalAveragePool", "p", "a"), node("GlobalMaxPool", "p", "m"),
             node("Sub", "a m")]  # fmt: skip
    check(model(nodes, {"x": ["n", 2, 8, 8]}))


@pytest.mark.parametrize("opset", [11, 12, 13, 18])
@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin"])
def test_reductions(op, opset):
    as_input = opset >= (13 if op == "ReduceSum" else 18)
    weights = {"axes": np.array([-1, 1])}
    reduce = node(op, "x axes") if as_input else node(op, "x", axes=[-1, 1], keepdims=0)
    check(model([reduce], {"x": [2, 3, 4]}, weights=weights, opset=opset))
    check(model([node(op, "x")], {"x": [2, 3, 4]}, opset=opset))


def test_argmax():
    check(model([node("ArgMax", "x", axis=-1, keepdims=0)], {"x": ["n", 4]}))


def test_dropout_is_the_identity():
    check(model([node("Dropout", "x r", "y")], {"x": [9]}, weights={"r": np.float32(0.5)}))
    check(model([node("Dropout", "x", ratio=0.5)], {"x": [9]}, opset=11))


@pytest.mark.parametrize(
    ("have", "want"),
    [
        ([2, 3, 4], [6, -1]),
        ([2, 3, 4], [0, 12]),
        (["n", 3, 4], [-1, 12]),
        (["n", 3, 4], [0, -1]),
        (["n", 3, 4], [0, 0, 2, -1]),
    ],
)
def test_reshape(have, want):
    check(model([node("Reshape", "x s")], {"x": have}, weights={"s": np.array(want)}))


def test_reshape_to_a_computed_batch():
    """x.view(x.size(0), -1) as PyTorch's exporter writes it."""
    nodes = [
        node("Shape", "x", "shape"),
        node("Gather", "shape zero", "n", axis=0),
        node("Unsqueeze", "n axes", "n1"),
        node("Concat", "n1 rest", "s", axis=0),
        node("Reshape", "x s"),
    ]
    weights = {"zero": np.array(0), "axes": np.array([0]), "rest": np.array([-1])}
    imported = check(model(nodes, {"x": ["n", 3, 4]}, weights=weights))
    assert ops_of(imported) == ["graph.reshape", "func.return"]


@pytest.mark.parametrize("opset", [11, 13])
def test_squeeze_and_unsqueeze(opset):
    if opset == 11:
        nodes = [node("Unsqueeze", "x", "u", axes=[1, 3]), node("Squeeze", "u", axes=[1])]
    else:
        nodes = [node("Unsqueeze", "x a", "u"), node("Squeeze", "u b")]
    axes = {"a": np.array([1, -1]), "b": np.array([1])}
    check(model(nodes, {"x": ["n", 3]}, weights=axes, opset=opset))
    check(model([node("Squeeze", "x")], {"x": [1, 3, 1]}, opset=opset))


@pytest.mark.parametrize("index", [1, -1, [0, 2], [[2], [-3]]])
def test_gather_by_constants(index):
    weights = {"i": np.array(index)}
    check(model([node("Gather", "x i", axis=1)], {"x": ["n", 3, 4]}, weights=weights))


def test_slices():
    bounds = {"s": np.array([-1, 1]), "e": np.array([-(2**63), 2**63 - 1]),
              "a": np.array([1, 2]), "t": np.array([-2, 1])}  # fmt: skip
    check(model([node("Slice", "x s e a t")], {"x": ["n", 5, 4]}, weights=bounds))
    old = node("Slice", "x", starts=[0, 1], ends=[2**31 - 1, -1])
    check(model([old], {"x": ["n", 5]}, opset=9))


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_split(opset):
    nodes = [node("Split", "x", "a b", axis=1), node("Sub", "a b")]
    if opset == 18:
        nodes[0].attribute.append(helper.make_attribute("num_outputs", 2))
    check(model(nodes, {"x": ["n", 6]}, opset=opset))


def test_transpose_concat_expand_flatten():
    nodes = [
        node("Transpose", "x", "t", perm=[0, 2, 1]),
        node("Expand", "w s", "e"),
        node("Concat", "t e", "c", axis=-1),
        node("Flatten", "c"),
    ]
    weights = {"w": floats(4, 1), "s": np.array([2, 1, 5])}
    check(model(nodes, {"x": [2, 3, 4]}, weights=weights))
    check(model([node("Flatten", "x", axis=0)], {"x": [2, 3]}))


def test_constants_are_folded():
    nodes = [
        node("Constant", "", "a", value_floats=[1.0, 2.0]),
        node("Mul", "a a", "b"),
        node("Add", "x b"),
    ]
    assert ops_of(check(model(nodes, {"x": ["n", 2]}))) == [
        "arith.constant", "graph.add", "func.return",
    ]  # fmt: skip


def test_lstm_without_bias_and_states():
    lstm = node("LSTM", "x w r", "y h", hidden_size=3)
    weights = {"w": floats(1, 12, 5), "r": floats(1, 12, 3)}
    check(model([lstm], {"x": [4, 2, 5]}, ("y", "h"), weights=weights))


def test_lstm_with_states_from_outside():
    lstm = helper.make_node("LSTM", ["x", "w", "r", "", "", "h0", "c0"], ["y"], hidden_size=3)
    weights = {"w": floats(1, 12, 5), "r": floats(1, 12, 3)}
    inputs = {"x": [4, 2, 5], "h0": [1, 2, 3], "c0": [1, 2, 3]}
    check(model([lstm], inputs, weights=weights))


# Refusals


def missing(proto):
    with pytest.raises(UnsupportedError) as caught:
        import_onnx(proto)
    return caught.value.missing


def test_all_that_is_missing_is_listed():
    nodes = [
        node("NonZero", "x", "a"),
        node("Cast", "a", "b", to=TensorProto.FLOAT),
        node("MaxRoiPool", "z r", "c", pooled_shape=[2, 2]),
        node("MaxPool", "z", "p", kernel_shape=[2, 2], pads=[2, 2, 2, 2]),
        node("Add", "c c"),
    ]
    proto = model(nodes, {"x": [3, 4], "z": [1, 1, 8, 8], "r": [1, 5]}, ("y", "b", "p"), opset=20)
    assert missing(proto) == (
        "node 'NonZero_a' (NonZero): it is supported only where its inputs are constant",
        "node 'MaxRoiPool_c' (MaxRoiPool): this operator is not supported",
        "node 'MaxPool_p' (MaxPool): 'graph.max_pool' expects pads smaller than the window, got [2, 2, 2, 2]",
    )


LSTM_WEIGHTS = {"w": floats(1, 12, 5), "r": floats(1, 12, 3)}


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"clip": 1.0}, "clip: clipping of cells is not supported"),
        ({"input_forget": 1}, "input_forget = 1: only 0 is supported"),
        (
            {"direction": "sideways"},
            "direction = 'sideways': it must be one of forward, reverse, bidirectional",
        ),
        (
            {"activations": ["HardSigmoid", "Tanh", "Tanh"]},
            "activations = ['hardsigmoid']: only relu, sigmoid, softplus, softsign, tanh are supported",
        ),
    ],
)
def test_lstm_options_are_refused(attributes, reason):
    lstm = node("LSTM", "x w r", hidden_size=3, **attributes)
    (line,) = missing(model([lstm], {"x": [4, 2, 5]}, weights=LSTM_WEIGHTS))
    assert line == f"node 'LSTM_y' (LSTM): {reason}"


def test_lstm_needs_static_steps():
    lstm = node("LSTM", "x w r", hidden_size=3)
    (line,) = missing(model([lstm], {"x": ["steps", 2, 5]}, weights=LSTM_WEIGHTS))
    assert "the number of steps must be static" in line


@pytest.mark.parametrize(
    "one",
    [
        node("ReduceSum", "x axes"),
        node("Softmax", "x", axis=0),
        node("Gather", "x axes", axis=0),
        node("Reshape", "x shape"),
        node("Slice", "x axes one"),
        node("Split", "x", "y z", axis=0),
    ],
    ids=lambda n: n.op_type,
)
def test_rows_of_a_dynamic_batch_never_mix_unseen(one):
    """Refused at import, or seen by the analysis; by either road a program for each size."""
    weights = {"axes": np.array([0]), "shape": np.array([2, -1]), "one": np.array([1])}
    proto = model([one], {"x": ["n", 4]}, weights=weights)
    if one.op_type in ("ReduceSum", "Reshape"):
        (mixing,) = analyse(next(iter(check(proto, rows=6).module.ops))).mixing
        assert str(mixing).startswith(f"node '{one.name}' (graph.")
    else:
        with pytest.raises(OpenBatchError) as caught:
            import_onnx(proto)
        (line,) = caught.value.missing
        assert "batch" in line
        assert caught.value.axes == {"x": 0}
    for rows in (2, 6):
        check(proto, batch=rows)


@pytest.mark.parametrize(
    "one",
    [
        node("Transpose", "x"),
        node("Concat", "x x", axis=0),
        node("Flatten", "x", axis=0),
        node("Reshape", "x flat"),
    ],
    ids=lambda n: n.op_type,
)
def test_the_batch_may_be_any_dimension(one):
    proto = model([one], {"x": ["n", 4]}, weights={"flat": np.array([-1])})
    imported = check(proto, rows=5)
    assert not analyse(next(iter(imported.module.ops))).mixing


def test_multiples_of_the_batch_size_are_computed():
    """Sums, products and quotients of sizes are followed; what is none of these is refused."""
    nodes = [
        node("Shape", "x", "s", end=1),
        node("Mul", "s two", "d"),
        node("Add", "d s", "t"),
        node("Concat", "t two", "shape", axis=0),
        node("Reshape", "x shape"),
    ]
    check(model(nodes, {"x": ["n", 6]}, weights={"two": np.array([2])}), rows=4)
    for broken in ("Mod", "Max"):
        nodes[1] = node(broken, "s two", "d")
        (line,) = missing(model(nodes, {"x": ["n", 6]}, weights={"two": np.array([2])}))
        assert line == f"node '{broken}_d' ({broken}): it computes with the dynamic batch size"


def test_two_symbols_are_refused():
    proto = model([node("Relu", "x")], {"x": ["n", "m"]})
    (line,) = missing(proto)
    assert line == (
        "input 'x': its dimension 'm' and 'n' of it are both open, and a program is compiled for any size"
        " of one dimension alone (fix the others with shapes={'x': ...})"
    )
    check(proto, shapes={"x": (2, 3)})
    (line,) = missing(model([node("Mul", "x z")], {"x": ["n", 4], "z": ["m", 4]}))
    assert "its dimension 'm' and 'n' of input 'x' are both open" in line


def test_dimensions_without_a_name_are_the_batch():
    (line,) = missing(model([node("Relu", "x")], {"x": [None, None]}))
    assert "its dimension 'x[1]' and 'x[0]' of it" in line
    imported = check(model([node("Mul", "x z")], {"x": [None, 4], "z": ["n", 4]}))
    assert 'irkit.dims = [["n"], ["n"]]' in str(imported.module)


def test_a_batch_size_fixes_the_symbol():
    proto = mlp()
    assert tensor_type(arguments(import_onnx(proto, batch=5))[0]).get_shape() == (5, 64)
    with pytest.raises(InvalidInputError, match="no dimension of the model's inputs is symbolic"):
        import_onnx(mlp(2), batch=2)


def test_foreign_domains_are_refused():
    foreign = model([node("Relu", "x")], {"x": [3]})
    foreign.opset_import.append(helper.make_opsetid("com.example", 1))
    foreign.graph.node[0].domain = "com.example"
    assert "operator domain 'com.example'" in missing(foreign)[0]


def test_operator_sets_out_of_range():
    proto = model([node("Relu", "x")], {"x": [3]})
    proto.opset_import[0].version = 99
    with pytest.raises(UnsupportedError, match="operator set 99 is not supported: 1 to"):
        import_onnx(proto)


def test_old_operator_sets_are_converted():
    old = node("Add", "x w", broadcast=1, axis=0)
    proto = model([old], {"x": [3, 4]}, weights={"w": floats(3)}, opset=6)
    proto.ir_version = 3
    proto.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [3]))
    x = floats(3, 4)
    imported = import_onnx(proto)
    (y,) = run_graph(imported.module, imported.weights, [x])
    np.testing.assert_array_equal(y, x + floats(3)[:, None])


@pytest.mark.parametrize(
    ("one", "opset", "reason"),
    [
        (node("Tile", "x w w"), 1, "operator set 1 is converted to 9, which failed"),
        (node("PRelu", "x w"), 6, "slopes per channel of operator set 6"),
    ],
)
def test_what_cannot_be_converted_is_refused(one, opset, reason):
    proto = model([node("Relu", "x")], {"x": [2, 2], "w": [2]}, opset=6)
    proto.ir_version, proto.opset_import[0].version = 3, opset
    proto.graph.node[0].CopyFrom(one)
    with pytest.raises(UnsupportedError, match=reason):
        import_onnx(proto)


@pytest.mark.parametrize("shapes", [{"z": (1,)}, {"x": (2, 63)}, {"x": (2,)}, {"x": (0, 64)}])
def test_shapes_that_do_not_fit(shapes):
    with pytest.raises(InvalidInputError, match="shapes"):
        import_onnx(mlp(), shapes=shapes)


# Bad files


def one_line(source):
    with pytest.raises(InvalidModelError) as caught:
        import_onnx(source)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("keep", [0, 10, 1000, -1])
def test_truncated_files(tmp_path, keep):
    path = tmp_path / "cut.onnx"
    path.write_bytes(mlp().SerializeToString()[:keep])
    one_line(path)


def test_files_that_are_not_onnx(tmp_path):
    path = tmp_path / "text.onnx"
    path.write_text("not a model")
    assert "truncated or not an ONNX file" in one_line(path)
    assert "No such file" in one_line(tmp_path / "absent.onnx")


def test_names_that_are_no_text(tmp_path):
    path = tmp_path / "bytes.onnx"
    path.write_bytes(mlp(2).SerializeToString().replace(b"fc0.weight", b"fc0.w\xff\xfeght", 1))
    one_line(path)


def test_initializers_of_another_size():
    proto = mlp(2)
    proto.graph.initializer[1].raw_data += bytes(4)
    assert "'fc0.bias'" in one_line(proto)


def test_constants_that_make_no_sense():
    nodes = [node("Gather", "i i", "g"), node("Reshape", "x g")]
    (line,) = missing(model(nodes, {"x": [3]}, weights={"i": np.array([7])}))
    assert line.startswith("node 'Gather_g' (Gather): indices: some lie outside an axis of 1")
    for one in (node("ConstantOfShape", "n", "big"), node("Range", "z n0 one", "big")):
        weights = {
            "n": np.array([2**40]),
            "n0": np.array(2**40),
            "z": np.array(0),
            "one": np.array(1),
        }
        proto = model([one, node("Cast", "big", to=1)], {"x": [3]}, weights=weights)
        assert "a constant of more than" in missing(proto)[0]


def test_lstm_weights_that_do_not_fit():
    lstm = node("LSTM", "x w r", hidden_size=3)
    weights = {"w": floats(1, 12, 4), "r": floats(1, 12, 3)}
    (line,) = missing(model([lstm], {"x": [4, 2, 5]}, weights=weights))
    assert line.endswith("input 'w': expected shape (1, 12, 5), got (1, 12, 4)")


def test_inconsistent_models():
    proto = mlp(2)
    proto.graph.node[0].input[1] = "nowhere"
    assert "nowhere" in one_line(proto)
    wrong = mlp(2)
    wrong.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 11
    one_line(wrong)


def with_external_data(location):
    proto = model([node("Add", "x w")], {"x": [3]}, weights={"w": floats(3)})
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, "offset": "0", "length": "12"}.items():
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    return proto


def test_external_data(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    for place in (tmp_path, folder):
        (place / "data.bin").write_bytes(floats(3).tobytes())
    path = folder / "m.onnx"
    path.write_bytes(with_external_data("data.bin").SerializeToString())
    imported = import_onnx(path)
    (y,) = run_graph(imported.module, imported.weights, [np.zeros(3, np.float32)])
    np.testing.assert_array_equal(y, floats(3))

    path.write_bytes(with_external_data("../data.bin").SerializeToString())
    assert "outside the model's folder" in one_line(path)
    path.write_bytes(with_external_data("absent.bin").SerializeToString())
    assert "no external data file 'absent.bin'" in one_line(path)
    (folder / "data.bin").write_bytes(b"short")
    path.write_bytes(with_external_data("data.bin").SerializeToString())
    one_line(path)
    assert "give the model's path" in one_line(with_external_data("data.bin"))


def test_a_weight_of_many_nodes_is_looked_at_once(monkeypatch):
    seen = []
    digest = weights.content_digest
    monkeypatch.setattr(weights, "content_digest", lambda a: (seen.append(a.shape), digest(a))[1])
    w, v = floats(32, 32), floats(32, 32, seed=4)
    names = ["x", *(f"h{i}" for i in range(7)), "y"]
    nodes = [
        node("MatMul", f"{a} {'wv'[i % 2]}", b)
        for i, (a, b) in enumerate(itertools.pairwise(names))
    ]
    imported = import_onnx(model(nodes, {"x": (3, 32)}, weights={"w": w, "v": v}))
    assert seen == [(32, 32)] * 2
    x = floats(3, 32, seed=5)
    want = x
    for i in range(8):
        want = want @ (w, v)[i % 2]
    (found,) = run_graph(imported.module, imported.weights, [x])
    np.testing.assert_allclose(found, want, rtol=1e-4)


def test_shape_inference_is_not_given_large_weights(monkeypatch):
    w, shape = floats(32, 640), np.array([6, -1])
    nodes = [node("MatMul", "x w", "h"), node("Reshape", "h shape", "y")]
    given = model(nodes, {"x": (3, 32)}, weights={"w": w, "shape": shape})
    seen, infer = [], onnx.shape_inference.infer_shapes
    monkeypatch.setattr(
        onnx.shape_inference,
        "infer_shapes",
        lambda m, **options: (seen.append(m.ByteSize()), infer(m, **options))[1],
    )
    x = floats(3, 32, seed=5)
    imported = import_onnx(given)
    (found,) = run_graph(imported.module, imported.weights, [x])
    np.testing.assert_allclose(found, (x @ w).reshape(6, -1), rtol=1e-4)
    assert max(seen) < w.nbytes
