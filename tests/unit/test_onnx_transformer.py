"""Rotary embeddings and the normalisations of com.microsoft against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import irkit
from irkit.errors import UnsupportedError

MICROSOFT = "com.microsoft"
HEADS, STEPS, MOST = 3, 5, 20


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def model(nodes: list[Any], inputs: dict[str, Any], weights: dict[str, Any], outputs: str) -> Any:
    """A model of inputs whose first dimension is open."""
    declared = [
        helper.make_tensor_value_info(
            n, helper.np_dtype_to_tensor_dtype(a.dtype), ["n", *a.shape[1:]]
        )
        for n, a in inputs.items()
    ]
    made = helper.make_graph(
        nodes,
        "g",
        declared,
        [helper.make_tensor_value_info(n, 1, None) for n in outputs.split()],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in weights.items()],
    )
    domains = [helper.make_opsetid("", 23), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(made, opset_imports=domains, ir_version=10)


def judged(proto: Any, inputs: dict[str, Any]) -> Any:
    """Compiled for an open batch, run, and compared with ONNX Runtime; the program."""
    program = irkit.compile(proto, "cpu")
    got = program(*inputs.values())
    got = got if isinstance(got, tuple) else (got,)
    want = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, inputs)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=5e-6)
    return program


def rotary(size: int, turned: int, domain: str, flat: bool, **attributes: Any) -> tuple[Any, Any]:
    """A model of one rotary embedding and its inputs."""
    batch, pairs = 2, turned // 2
    x = normal(batch, STEPS, HEADS * size) if flat else normal(batch, HEADS, STEPS, size)
    positions = np.random.default_rng(1).integers(0, MOST, (batch, STEPS))
    if flat:
        attributes["num_heads"] = HEADS
    if turned < size:
        attributes |= {"rotary_embedding_dim": turned, "num_heads": HEADS}
    names = ["x", "p", "c", "s"] if domain else ["x", "c", "s", "p"]
    one = helper.make_node("RotaryEmbedding", names, ["y"], domain=domain, **attributes)
    caches = {"c": normal(MOST, pairs, seed=2), "s": normal(MOST, pairs, seed=3)}
    inputs = {"x": x, "p": positions}
    return model([one], inputs, caches, "y"), inputs


@pytest.mark.parametrize("domain", ["", MICROSOFT])
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize(("size", "turned"), [(8, 8), (2, 2), (12, 8)])
def test_rotary_embedding(
    domain: str, flat: bool, interleaved: int, size: int, turned: int
) -> None:
    judged(*rotary(size, turned, domain, flat, interleaved=interleaved))


def test_caches_say_how_many_heads_there_are() -> None:
    x, caches = normal(2, STEPS, HEADS * 8), {n: normal(MOST, 4, seed=2) for n in "cs"}
    one = helper.make_node("RotaryEmbedding", ["x", "p", "c", "s"], ["y"], domain=MICROSOFT)
    inputs = {"x": x, "p": np.arange(2 * STEPS).reshape(2, STEPS)}
    judged(model([one], inputs, caches, "y"), inputs)


def test_rotary_embedding_is_one_roperator_beside_what_is_looked_up() -> None:
    program = judged(*rotary(8, 8, "", False))
    launches = [t for t in program.ir("task").splitlines() if "task.launch" in t]
    assert len(launches) == 3
    assert program.ir("task").count("te.gather") == 2


def test_rotary_embedding_without_positions() -> None:
    inputs = {
        "x": normal(2, HEADS, STEPS, 8), "c": normal(2, STEPS, 4), "s": normal(2, STEPS, 4, seed=3),
    }  # fmt: skip
    one = helper.make_node("RotaryEmbedding", ["x", "c", "s"], ["y"])
    program = judged(model([one], inputs, {}, "y"), inputs)
    assert program.ir("task").count("task.launch") == 1


def test_positions_from_the_first_one_on() -> None:
    x, start = {"x": normal(1, STEPS, 24)}, {"p": np.array([4])}
    caches = {"c": normal(MOST, 4, seed=2), "s": normal(MOST, 4, seed=3)}
    one = helper.make_node(
        "RotaryEmbedding", ["x", "p", "c", "s"], ["y"], domain=MICROSOFT, num_heads=3
    )
    proto = model([one], x, caches | start, "y")
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    judged(proto, x)


SKIPS = {
    "SkipLayerNormalization": ("x r g b", 3, False),
    "SkipLayerNormalization, bias and sum": ("x r g b a", 3, True),
    "SkipSimplifiedLayerNormalization": ("x r g", 3, False),
    "SkipSimplifiedLayerNormalization, bias and sum": ("x r g a", 3, True),
}


@pytest.mark.parametrize("name", SKIPS)
def test_skip_norms(name: str) -> None:
    names, _, whole = SKIPS[name]
    inputs = {"x": normal(2, 7, 48), "r": normal(2, 7, 48, seed=1)}
    weights = {n: normal(48, seed=ord(n)) for n in names.split()[2:]}
    outputs = ["y", "", "", "t"] if whole else ["y"]
    one = helper.make_node(
        name.partition(",")[0], names.split(), outputs, domain=MICROSOFT, epsilon=1e-3
    )
    program = judged(model([one], inputs, weights, "y t" if whole else "y"), inputs)
    assert program.ir("graph").count("graph.layer_norm") == 1
    assert whole or program.ir("task").count("task.launch") == 1


def test_simplified_norm() -> None:
    inputs = {"x": normal(2, 7, 48)}
    one = helper.make_node("SimplifiedLayerNormalization", ["x", "g"], ["y"], axis=-1, epsilon=1e-3)
    program = judged(model([one], inputs, {"g": normal(48)}, "y"), inputs)
    assert program.ir("task").count("task.launch") == 1


@pytest.mark.parametrize(
    ("turned", "attributes", "reason"),
    [
        (6, {}, "caches of 3 pairs: 8 of 8 elements are turned"),
        (10, {"num_heads": 0}, "caches of 5 pairs: 12 of 12 elements are turned"),
        (8, {"num_heads": 5}, "num_heads = 5: it does not divide 24 elements of a step"),
    ],
)
def test_what_is_refused(turned: int, attributes: dict[str, int], reason: str) -> None:
    x = {"x": normal(2, STEPS, 24), "p": np.zeros((2, STEPS), np.int64)}
    caches = {"c": normal(MOST, turned // 2), "s": normal(MOST, turned // 2)}
    given = {"num_heads": 3} | attributes
    one = helper.make_node(
        "RotaryEmbedding", ["x", "p", "c", "s"], ["y"], domain=MICROSOFT, **given
    )
    with pytest.raises(UnsupportedError, match=reason):
        irkit.compile(model([one], x, caches, "y"), "cpu")
