"""A decoder's step with a cache of keys and values: as operands, and as state that is written in place."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import irkit
from irkit.errors import InvalidModelError, UnsupportedError

HEADS, SIZE, MOST, WIDTH = 2, 8, 7, 16


def n(op: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    before, behind = (["" if i == "_" else i for i in t.split()] for t in (inputs, outputs))
    return helper.make_node(op, before, behind, **attributes)


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def model(nodes: list[Any], inputs: dict[str, Any], outputs: str, weights: dict[str, Any]) -> Any:
    kinds = {"f": TensorProto.FLOAT, "i": TensorProto.INT64}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(k, kinds[a.dtype.kind], a.shape) for k, a in inputs.items()],
        [helper.make_empty_tensor_value_info(o) for o in outputs.split()],
        [numpy_helper.from_array(np.asarray(a), k) for k, a in weights.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)
    for out in made.graph.output:
        kind = TensorProto.INT64 if out.name in ("next", "seen") else TensorProto.FLOAT
        out.CopyFrom(helper.make_tensor_value_info(out.name, kind, None))
    return made


WEIGHTS = {f"w{k}": normal(WIDTH, WIDTH, seed=s) / 4 for s, k in enumerate("qkv")}


def step() -> Any:
    """One token's queries, keys and values; the keys and values join those of the tokens before it."""
    heads = np.array([1, 1, HEADS, SIZE])
    nodes = [
        node
        for k in "qkv"
        for node in (
            n("MatMul", f"x w{k}", f"{k}0"),
            n("Reshape", f"{k}0 heads", f"{k}1"),
            n("Transpose", f"{k}1", k, perm=[0, 2, 1, 3]),
        )
    ]
    nodes += [
        n("TensorScatter", "keys k at", "new_keys"),
        n("TensorScatter", "values v at", "new_values"),
        n("Add", "at one", "next"),
        n("Attention", "q new_keys new_values _ _ _ next", "a"),
        n("Transpose", "a", "t", perm=[0, 2, 1, 3]),
        n("Reshape", "t flat", "y"),
    ]
    cache = np.zeros((1, HEADS, MOST, SIZE), np.float32)
    inputs = {
        "x": normal(1, 1, WIDTH), "keys": cache, "values": cache, "at": np.array([0]),
    }  # fmt: skip
    constants = {"heads": heads, "flat": np.array([1, 1, WIDTH]), "one": np.array([1])}
    return model(nodes, inputs, "y new_keys new_values next", WEIGHTS | constants)


def decoded(x: Any) -> Any:
    """All steps at once, causal, in float64: x is steps × width."""
    q, k, v = ((x @ WEIGHTS[f"w{n}"].astype(np.float64)).reshape(-1, HEADS, SIZE) for n in "qkv")
    scores = np.einsum("ihe,jhe->hij", q, k) / SIZE**0.5
    scores = np.where(np.tri(len(x), dtype=bool), scores, -np.inf)
    power = np.exp(scores - scores.max(-1, keepdims=True))
    weights = power / power.sum(-1, keepdims=True)
    return np.einsum("hij,jhe->ihe", weights, v).reshape(len(x), WIDTH)


@pytest.mark.parametrize("device", ["cpu1", "cpu2"])
def test_a_step_with_its_cache_as_state(device: str) -> None:
    state = {"keys": "new_keys", "values": "new_values", "at": "next"}
    program = irkit.compile(step(), device=device, state=state)
    assert "graph.attention" in program.ir("graph")
    x = normal(MOST, WIDTH, seed=9)
    for _ in range(2):
        got = [np.asarray(program(row.reshape(1, 1, WIDTH))) for row in x]
        np.testing.assert_allclose(
            np.reshape(got, (MOST, WIDTH)), decoded(x.astype(np.float64)), rtol=0, atol=2e-6
        )
        program.state.reset()


def test_the_cache_is_written_in_place() -> None:
    """Both of them, and the number of steps: nothing is copied into state behind what made it."""
    state = {"keys": "new_keys", "values": "new_values", "at": "next"}
    text = irkit.compile(step(), device="cpu1", state=state).ir("schedule")
    assert text.count('space = "state"') == 3
    written = re.findall(r"reads\((?:.*, )?%(\w+)\) writes\(%(\w+)\)", text)
    assert sorted(old for old, new in written if old == new) == ["at", "keys", "values"]
    # What makes queries, keys and values, places and the mask, and the attention: no copies.
    assert text.count(" task.append ") == 10


def test_a_cache_that_grows_is_an_operand() -> None:
    """ONNX's Attention puts old keys before new ones: the caches of two steps are of two sizes."""
    past = normal(1, HEADS, 3, SIZE, seed=1)
    inputs = {
        **{k: normal(1, HEADS, 1, SIZE, seed=s) for s, k in enumerate("qkv")},
        "pk": past, "pv": past + 1,
    }  # fmt: skip
    one = n("Attention", "q k v _ pk pv", "y nk nv", is_causal=1)
    proto = model([one], inputs, "y nk nv", {})
    program = irkit.compile(proto, "cpu")
    assert program.ir("graph").count("graph.attention") == 1
    want = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, inputs)
    for got, other in zip(program(*inputs.values()), want, strict=True):
        np.testing.assert_allclose(got, other, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize(("axis", "count"), [(-2, 1), (-2, 3), (1, 2)])
def test_tensor_scatter(mode: str, axis: int, count: int) -> None:
    shape = [2, 5, 6, 3]
    new = list(shape)
    new[axis] = count
    most = shape[axis] if mode == "circular" else shape[axis] - count + 1
    inputs = {
        "c": normal(*shape), "u": normal(*new, seed=1),
        "i": np.random.default_rng(2).integers(0, most, 2),
    }  # fmt: skip
    proto = model([n("TensorScatter", "c u i", "y", axis=axis, mode=mode)], inputs, "y", {})
    (want,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, inputs)
    np.testing.assert_array_equal(irkit.compile(proto, "cpu")(*inputs.values()), want)


def test_rows_that_see_no_key_are_zero() -> None:
    """The lengths of the batch are known at run time alone."""
    inputs = {
        "q": normal(3, HEADS, 2, SIZE), "k": normal(3, HEADS, MOST, SIZE, seed=1),
        "v": normal(3, HEADS, MOST, SIZE, seed=2), "l": np.array([4, 0, MOST]),
    }  # fmt: skip
    proto = model([n("Attention", "q k v _ _ _ l", "y")], inputs, "y", {})
    program = irkit.compile(proto, "cpu")
    assert program.ir("graph").count("graph.attention") == 1
    got = program(*inputs.values())
    assert not got[1].any()
    (want,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, inputs)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [({"mode": "round"}, "mode = round: only"), ({"axis": 0}, "axis 0 is out of range")],
)
def test_what_is_refused(attributes: dict[str, Any], reason: str) -> None:
    inputs = {"c": normal(2, 5, 6, 3), "u": normal(2, 5, 1, 3), "i": np.array([0, 1])}
    proto = model([n("TensorScatter", "c u i", "y", **attributes)], inputs, "y", {})
    with pytest.raises((UnsupportedError, InvalidModelError), match=reason):
        irkit.compile(proto, "cpu")
