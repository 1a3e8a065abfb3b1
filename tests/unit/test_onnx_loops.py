"""Loops of a known number of rounds, with ONNX Runtime as the judge."""

from __future__ import annotations

import time

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_nodes import floats, judged, model, node

from irkit.errors import InvalidModelError, UnsupportedError
from irkit.frontends.onnx import import_onnx

FLOAT, INT, TRUTH = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def body(nodes, inputs, outputs, constants=()):
    """A graph of (name, type, shape) inputs and outputs."""
    given, found = (
        [helper.make_tensor_value_info(n, kind, shape) for n, kind, shape in values]
        for values in (inputs, outputs)
    )
    tensors = [
        helper.make_tensor(n, kind, np.shape(v), np.ravel(v).tolist()) for n, kind, v in constants
    ]
    return helper.make_graph(nodes, "body", given, found, tensors)


def cell(size):
    """A recurrent cell of ONNX nodes: h' = tanh(x + h W), with W and a name of the graph around."""
    nodes = [
        node("MatMul", "h w", "hw"), node("Add", "hw x", "sum"), node("Mul", "sum scale", "scaled"),
        node("Tanh", "scaled", "next"), node("Identity", "next", "out"),
    ]  # fmt: skip
    kind = (FLOAT, [None, size])
    return body(nodes, [("h", *kind), ("x", *kind)], [("next", *kind), ("out", *kind)])


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("back", [0, 1])
def test_a_cell_scanned_along_time(batch, back):
    x = {"h0": floats(2, 4), "xs": floats(2, 5, 4)}
    weights = {"w": floats(4, 4, seed=1), "scale": np.float32(0.5)}
    scan = node(
        "Scan", "h0 xs", "last all", body=cell(4), num_scan_inputs=1, scan_input_axes=[1],
        scan_output_axes=[-2], scan_input_directions=[back], scan_output_directions=[1 - back],
    )  # fmt: skip
    judged(model([scan], x, weights, ("last", "all"), batch=batch), x)


def test_several_inputs_of_a_scan_and_of_one_round():
    kind = (FLOAT, [3])
    nodes = [node("Mul", "a b", "p"), node("Add", "s p", "t"), node("Sub", "p s", "d")]
    inside = body(
        nodes,
        [("s", *kind), ("a", *kind), ("b", *kind)],
        [("t", *kind), ("p", *kind), ("d", *kind)],
    )
    for rounds in (1, 4):
        x = {"s0": floats(3), "as": floats(rounds, 3), "bs": floats(3, rounds, seed=9)}
        scan = node("Scan", "s0 as bs", "s ps ds", body=inside, num_scan_inputs=2,
                    scan_input_axes=[0, 1], scan_output_directions=[0, 1])  # fmt: skip
        judged(model([scan], x, outputs=("s", "ps", "ds")), x)


def counting(condition):
    """y' = y * 2 + i, its squares, and whether to go on."""
    nodes = [
        node("Cast", "i", "number", to=FLOAT), node("Add", "y y", "twice"),
        node("Add", "twice number", "next"), node("Mul", "next next", "square"), *condition,
    ]  # fmt: skip
    inputs = [("i", INT, []), ("go", TRUTH, []), ("y", FLOAT, [3])]
    outputs = [("on", TRUTH, []), ("next", FLOAT, [3]), ("square", FLOAT, [3])]
    return body(nodes, inputs, outputs, [("five", INT, 5)])


@pytest.mark.parametrize(
    ("names", "condition"),
    [
        ("most _ y0", [node("Less", "i five", "on")]),
        ("_ go0 y0", [node("Less", "i five", "on")]),
        ("most go0 y0", [node("Less", "i five", "on")]),
        ("most go0 y0", [node("Identity", "go", "on")]),
        ("few _ y0", [node("Identity", "go", "on")]),
    ],
)
def test_loops_that_end(names, condition):
    x = {"y0": floats(3)}
    weights = {"most": np.array(9), "few": np.array(2), "go0": np.array(True)}
    loop = node("Loop", names, "y squares", body=counting(condition))
    judged(model([loop], x, weights, ("y", "squares")), x)


def test_a_loop_that_does_not_begin_keeps_its_states():
    x, weights = {"y0": floats(3)}, {"most": np.array(0)}
    whole = counting([node("Identity", "go", "on")])
    del whole.output[2:]
    judged(model([node("Loop", "most _ y0", body=whole)], x, weights), x)
    loop = node("Loop", "most _ y0", "y squares", body=counting([node("Identity", "go", "on")]))
    with pytest.raises(UnsupportedError, match="it has no rounds"):
        import_onnx(model([loop], x, weights, ("y", "squares")))


def test_a_loop_in_a_loop():
    inner = counting([node("Identity", "go", "on")])
    inside = [
        node("Loop", "two _ z", "w all", body=inner), node("ReduceSum", "all", "s", keepdims=0),
        node("Add", "w s", "z_out"), node("Identity", "again", "again_out"),
    ]  # fmt: skip
    inputs = [("j", INT, []), ("again", TRUTH, []), ("z", FLOAT, [3])]
    outer = body(inside, inputs, [("again_out", TRUTH, []), ("z_out", FLOAT, [3])])
    x, weights = {"z0": 0.1 * floats(3)}, {"two": np.array(2), "three": np.array(3)}
    judged(model([node("Loop", "three _ z0", body=outer)], x, weights), x)


def test_conditions_and_counts_that_are_computed_are_refused():
    x = {"m": np.array(3), "y0": floats(3)}
    ahead = [node("ReduceSum", "next", "total", keepdims=0), node("Less", "total zero", "on")]
    weights = {"go0": np.array(True), "zero": np.float32(0)}
    loop = node("Loop", "_ go0 y0", "y squares", body=counting(ahead))
    with pytest.raises(UnsupportedError, match="its number of rounds must be known at import"):
        import_onnx(model([loop], {"y0": x["y0"]}, weights, ("y", "squares")))
    loop = node("Loop", "m _ y0", "y squares", body=counting([node("Identity", "go", "on")]))
    proto = model([loop], x, {}, ("y", "squares"))
    with pytest.raises(UnsupportedError, match="input 'm': it must be constant"):
        import_onnx(proto)
    assert import_onnx(proto, constants={"m": np.array(3)}).module is not None


def test_loops_without_end_are_refused():
    x, weights = {"y0": floats(3)}, {"many": np.array(1 << 62), "go0": np.array(True)}
    started = time.perf_counter()
    for names, message in (
        ("many _ y0", "are more than 131072 nodes"),
        ("_ go0 y0", "it has no end: there is no trip count"),
    ):
        whole = counting([node("Identity", "go", "on")])
        del whole.output[2:], whole.node[:4]
        whole.output[1].name = "y"
        with pytest.raises(UnsupportedError, match=message):
            import_onnx(model([node("Loop", names, body=whole)], x, weights))
    # All rounds up to the limit took 14 s.
    assert time.perf_counter() - started < 5


def test_what_bodies_say_is_checked():
    kind = (FLOAT, [4])
    inside = body(
        [helper.make_node("Split", ["x"], ["a", "b"], num_outputs=1 << 30)],
        [("x", *kind)], [("a", *kind)],
    )  # fmt: skip
    x = {"xs": floats(3, 4)}
    scan = node("Scan", "xs", "ys", body=inside, num_scan_inputs=1)
    proto = model([node("Identity", "xs", "ys")], x, outputs=("ys",))
    proto.graph.node[0].CopyFrom(scan)
    with pytest.raises(InvalidModelError, match="num_outputs = 1073741824, but it has 2"):
        import_onnx(proto)
