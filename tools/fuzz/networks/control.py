"""If, Loop and Scan around small bodies."""

# pyright: basic

from __future__ import annotations

import numpy as np
from onnx import GraphProto, TensorProto, ValueInfoProto, helper

from tools.fuzz.networks.layers import need
from tools.fuzz.networks.network import Network, Value


def _info(name: str, value: Value, shape: tuple[int, ...] | None = None) -> ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(value.dtype))
    return helper.make_tensor_value_info(name, kind, value.shape if shape is None else shape)


def _branch(net: Network, x: Value, tag: str) -> GraphProto:
    ops = [net.rng.choice(("Relu", "Neg", "Tanh", "Abs")) for _ in range(net.rng.randint(1, 3))]
    names = [x.name, *(f"{tag}{n}" for n in range(len(ops)))]
    nodes = [
        helper.make_node(op, [names[n]], [names[n + 1]], name=f"{tag}n{n}")
        for n, op in enumerate(ops)
    ]
    return helper.make_graph(nodes, tag, [], [_info(names[-1], x)])


def branches(net: Network, x: Value) -> Value:
    """One of two branches, chosen by a constant or by data."""
    rng, number = net.rng, len(net.nodes)
    need(x.is_float and x.rank > 0)
    if rng.random() < 0.4:
        chosen = net.constant(np.array(rng.random() < 0.5))
    else:
        total = net.add("ReduceSum", x, keepdims=0)
        chosen = net.add("Greater", total, net.constant(np.array(0, x.dtype)))
    then, otherwise = (_branch(net, x, f"b{number}{t}") for t in "to")
    return net.add("If", chosen, then_branch=then, else_branch=otherwise)


def loop(net: Network, x: Value) -> Value:
    """A Loop of some turns that carries a value and collects another."""
    rng, number = net.rng, len(net.nodes)
    need(x.is_float and x.rank > 0)
    tag = f"l{number}"
    w = net.numbers(x.dtype, x.shape[-1:], 0.5)
    nodes = [
        helper.make_node("Identity", [f"{tag}go"], [f"{tag}on"]),
        helper.make_node("Mul", [f"{tag}in", w.name], [f"{tag}m"]),
        helper.make_node("Tanh", [f"{tag}m"], [f"{tag}out"]),
        helper.make_node("ReduceSum", [f"{tag}out"], [f"{tag}sum"], keepdims=0),
    ]
    go = helper.make_tensor_value_info(f"{tag}go", TensorProto.BOOL, ())
    turn = helper.make_tensor_value_info(f"{tag}i", TensorProto.INT64, ())
    on = helper.make_tensor_value_info(f"{tag}on", TensorProto.BOOL, ())
    body = helper.make_graph(
        nodes,
        tag,
        [turn, go, _info(f"{tag}in", x)],
        [on, _info(f"{tag}out", x), _info(f"{tag}sum", x, ())],
    )
    turns = net.constant(np.array(rng.randint(1, 5), np.int64))
    return rng.choice(
        net.add_all("Loop", turns, net.constant(np.array(True)), x, outputs=2, body=body)[:1]
    )


def scan(net: Network, x: Value) -> Value:
    """A Scan along an axis, forwards or back: running state and what is collected of it."""
    rng, tag = net.rng, f"s{len(net.nodes)}"
    need(x.is_float and x.rank >= 2)
    axis = rng.randint(0, x.rank - 1)
    row = tuple(s for a, s in enumerate(x.shape) if a != axis)
    state = net.numbers(x.dtype, row)
    nodes = [
        helper.make_node(rng.choice(("Add", "Max", "Sub")), [f"{tag}s", f"{tag}x"], [f"{tag}a"]),
        helper.make_node("Tanh", [f"{tag}a"], [f"{tag}t"]),
        helper.make_node("Identity", [f"{tag}t"], [f"{tag}y"]),
    ]
    body = helper.make_graph(
        nodes,
        tag,
        [_info(f"{tag}s", x, row), _info(f"{tag}x", x, row)],
        [_info(f"{tag}t", x, row), _info(f"{tag}y", x, row)],
    )
    found = net.add_all(
        "Scan",
        state,
        x,
        outputs=2,
        body=body,
        num_scan_inputs=1,
        scan_input_axes=[axis],
        scan_input_directions=[rng.choice((0, 1))],
        scan_output_axes=[rng.randint(0, x.rank - 1)],
        scan_output_directions=[rng.choice((0, 1))],
    )
    return rng.choice(found)


CONTROL = (branches, loop, scan)
