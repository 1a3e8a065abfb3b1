"""com.microsoft's Attention and MultiHeadAttention against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import irkit
from irkit.errors import InvalidInputError, UnsupportedError

BATCH, HEADS, STEPS, SIZE, PAST = 2, 3, 5, 4, 6
WIDTH = HEADS * SIZE


def session(proto_bytes: bytes) -> Any:
    """ONNX Runtime, whose results have many types."""
    return onnxruntime.InferenceSession(proto_bytes)


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def model(
    op: str, given: dict[str, Any], constants: dict[str, Any], slots: str, outputs: str,
    **attributes: Any,
) -> Any:  # fmt: skip
    """One node; `slots` names its inputs, "_" for one that is left out."""
    inputs = ["" if s == "_" else s for s in slots.split()]
    node = helper.make_node(
        op, inputs, outputs.split(), domain="com.microsoft", num_heads=HEADS, **attributes
    )
    declared = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for n, a in given.items()
    ]
    made = helper.make_graph(
        [node], "g", declared,
        [helper.make_tensor_value_info(n, 1, None) for n in outputs.split()],
        [numpy_helper.from_array(a, n) for n, a in constants.items()],
    )  # fmt: skip
    domains = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(made, opset_imports=domains, ir_version=10)


def judged(proto: Any, given: dict[str, Any], unpacked: Any = None) -> None:
    """Against ONNX Runtime; where that has no kernel, by a model and inputs that mean the same."""
    program = irkit.compile(proto, "cpu")
    found: Any = program(*given.values())
    got: Any = found if len(proto.graph.output) > 1 else (found,)
    same, inputs = unpacked or (proto, given)
    want = session(same.SerializeToString()).run(None, inputs)
    assert "graph.attention" in program.ir("graph")
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=5e-6)


SEEN = np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], np.int32)


@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("mask", ["none", "raw", "lengths", "added", "both"])
def test_attention(mask: str, unidirectional: int) -> None:
    given = {"x": normal(BATCH, STEPS, WIDTH)}
    constants = {"w": normal(WIDTH, 3 * WIDTH, seed=1) / 3, "b": normal(3 * WIDTH, seed=2)}
    slots = "x w b"
    if mask in ("raw", "both"):
        given["m"] = SEEN
    if mask == "lengths":
        given["m"] = np.array([4, 2], np.int32)
    if "m" in given:
        slots += " m"
    if mask in ("added", "both"):
        given["a"] = normal(1, HEADS, STEPS, STEPS, seed=3)
        slots = f"x w b {'m' if 'm' in given else '_'} _ a"
    judged(model("Attention", given, constants, slots, "y", unidirectional=unidirectional), given)


def test_attention_of_other_widths_and_a_past() -> None:
    given = {"x": normal(BATCH, STEPS, WIDTH), "p": normal(2, BATCH, HEADS, PAST, SIZE, seed=5)}
    constants = {"w": normal(WIDTH, 3 * WIDTH, seed=1) / 3, "b": normal(3 * WIDTH, seed=2)}
    judged(model("Attention", given, constants, "x w b _ p", "y now", unidirectional=1), given)
    given = {"x": normal(BATCH, STEPS, WIDTH)}
    sizes = [WIDTH, WIDTH, 2 * WIDTH]
    constants = {"w": normal(WIDTH, 4 * WIDTH, seed=1) / 3, "b": normal(4 * WIDTH, seed=2)}
    proto = model("Attention", given, constants, "x w b", "y", qkv_hidden_sizes=sizes, scale=0.3)
    judged(proto, given)


def test_a_mask_of_ends_and_begins() -> None:
    """Of one dimension, and twice as long as the batch."""
    given = {"x": normal(BATCH, STEPS, WIDTH), "m": np.array([4, 5, 1, 0], np.int32)}
    constants = {"w": normal(WIDTH, 3 * WIDTH, seed=1) / 3, "b": normal(3 * WIDTH, seed=2)}
    judged(model("Attention", given, constants, "x w b m", "y"), given)
    given["m"] = np.array([1, 2, 3], np.int32)
    with pytest.raises(
        UnsupportedError, match="the end of each of 2 sequences, or ends and begins"
    ):
        irkit.compile(model("Attention", given, constants, "x w b m", "y"), "cpu")


@pytest.mark.parametrize("past", [0, 2])
def test_a_lone_row_sees_every_key(past: int) -> None:
    """ONNX Runtime has no causal mask of one row, though there are more keys than those of its past."""
    given: dict[str, Any] = {"q": normal(BATCH, 1, WIDTH)}
    given |= {n: normal(BATCH, PAST, WIDTH, seed=s) for s, n in ((1, "k"), (2, "v"))}
    slots, outputs = "q k v", "y"
    if past:
        given |= {n: normal(BATCH, HEADS, past, SIZE, seed=s) for s, n in ((7, "pk"), (8, "pv"))}
        slots, outputs = "q k v _ _ _ pk pv", "y nk nv"
    judged(model("MultiHeadAttention", given, {}, slots, outputs, unidirectional=1), given)


def test_a_past_of_no_steps_is_given_as_constants() -> None:
    given, slots = operands("cross")
    none = np.zeros((BATCH, HEADS, 0, SIZE), np.float32)
    every = {**given, "pk": none, "pv": none}
    proto = model("MultiHeadAttention", every, {}, f"{slots} _ _ _ pk pv", "y nk nv")
    with pytest.raises(UnsupportedError, match=r"give an empty one as constants={'pk': array}"):
        irkit.compile(proto, "cpu")
    proto.graph.input[3].type.tensor_type.shape.dim[2].dim_param = "past"
    with pytest.raises(InvalidInputError, match=r"sizes of 1 or more .* constants={'pk': array}"):
        irkit.compile(proto, "cpu", shapes={"pk": none.shape})
    program = irkit.compile(proto, "cpu", constants={"pk": none, "pv": none})
    found: Any = program(*given.values())
    for a, b in zip(found, session(proto.SerializeToString()).run(None, every), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=5e-6)


def test_a_filter_value_without_a_mask() -> None:
    given, slots = operands("self")
    judged(model("MultiHeadAttention", given, {}, slots, "y", mask_filter_value=-5.0), given)


def operands(layout: str) -> tuple[dict[str, Any], str]:
    q = normal(BATCH, STEPS, WIDTH)
    if layout == "packed":
        return {"q": normal(BATCH, STEPS, HEADS, 3, SIZE)}, "q"
    if layout == "packed keys":
        return {"q": q, "k": normal(BATCH, PAST, HEADS, 2, SIZE, seed=1)}, "q k"
    if layout == "heads":
        k, v = (normal(BATCH, HEADS, PAST, SIZE, seed=s) for s in (1, 2))
        return {"q": q, "k": k, "v": v}, "q k v"
    steps = STEPS if layout == "self" else PAST
    k, v = (normal(BATCH, steps, WIDTH, seed=s) for s in (1, 2))
    return {"q": q, "k": k, "v": v}, "q k v"


@pytest.mark.parametrize("layout", ["packed", "packed keys", "heads", "self", "cross"])
def test_multi_head_attention(layout: str) -> None:
    given, slots = operands(layout)
    same, apart = None, dict(given)
    if layout.startswith("packed"):
        packed = apart.pop(slots.split()[-1])
        parts = (
            packed[:, :, :, n].reshape(*packed.shape[:2], WIDTH) for n in range(packed.shape[3])
        )
        apart |= dict(zip("qkv"[-packed.shape[3] :], parts, strict=True))
        same = model("MultiHeadAttention", apart, {}, "q k v", "y", scale=0.4), apart
    judged(model("MultiHeadAttention", given, {}, slots, "y", scale=0.4), given, same)


def test_multi_head_attention_with_bias_padding_and_a_past() -> None:
    given, slots = operands("self")
    constants = {"b": normal(3 * WIDTH, seed=4)}
    given["m"] = SEEN
    given["a"] = normal(BATCH, 1, STEPS, STEPS, seed=6)
    judged(model("MultiHeadAttention", given, constants, f"{slots} b m a", "y"), given)
    given, slots = operands("self")
    given |= {n: normal(BATCH, HEADS, PAST, SIZE, seed=s) for s, n in ((7, "pk"), (8, "pv"))}
    proto = model(
        "MultiHeadAttention", given, {}, f"{slots} _ _ _ pk pv", "y nk nv", unidirectional=1
    )
    judged(proto, given)


@pytest.mark.parametrize(
    ("steps", "unidirectional", "have"), [(1, 0, 4), (3, 0, 2), (3, 1, 3), (1, 1, 0)]
)
def test_multi_head_attention_in_buffers(steps: int, unidirectional: int, have: int) -> None:
    """What lies behind the new steps in a buffer is left open."""
    given: dict[str, Any] = {n: normal(BATCH, steps, WIDTH, seed=s) for s, n in enumerate("qkv")}
    given |= {n: normal(BATCH, HEADS, PAST, SIZE, seed=s) for s, n in ((7, "pk"), (8, "pv"))}
    given["n"] = np.array([have], np.int32)
    proto = model(
        "MultiHeadAttention",
        given,
        {},
        "q k v _ _ _ pk pv n",
        "y nk nv",
        unidirectional=unidirectional,
    )
    program = irkit.compile(proto, "cpu")
    got = program(*given.values())
    want = session(proto.SerializeToString()).run(None, given)
    np.testing.assert_allclose(got[0], want[0], rtol=2e-6, atol=5e-6)
    for a, b in zip(got[1:], want[1:], strict=True):
        np.testing.assert_array_equal(a[:, :, : have + steps], b[:, :, : have + steps])
    given["n"] += PAST
    assert np.isnan(program(*given.values())[0]).all()


def test_what_is_refused() -> None:
    given, slots = operands("self")
    wrong = {k: v[..., : WIDTH - 1] for k, v in given.items()}
    with pytest.raises(UnsupportedError, match="num_heads = 3"):
        irkit.compile(model("MultiHeadAttention", wrong, {}, slots, "y"), "cpu")
    with pytest.raises(UnsupportedError, match="scores are not computed apart"):
        irkit.compile(model("MultiHeadAttention", given, {}, slots, "y a b c"), "cpu")
    kept = {n: normal(BATCH, HEADS, PAST, SIZE) for n in ("pk", "pv")}
    beams = {"n": np.array([2], np.int32), "c": np.zeros((BATCH, 1, PAST), np.int32)}
    proto = model(
        "MultiHeadAttention", given | kept | beams, {}, f"{slots} _ _ _ pk pv n c", "y nk nv"
    )
    with pytest.raises(UnsupportedError, match="cache_indirection"):
        irkit.compile(proto, "cpu")
