"""Attention on all sizes, against float64, and recognised where it is written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import irkit
from irkit.passes.graph.attention_masks import diagonal

AFN = " attributes {irkit.fastmath = #arith.fastmath<afn>}"


def attended(
    q: Any, k: Any, v: Any, mask: Any = None, scale: float = 1.0, causal: int | None = None
) -> Any:
    """The meaning in float64."""
    q, k, v = (a.astype(np.float64) for a in (q, k, v))
    scores = scale * q @ np.swapaxes(k, -1, -2)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if causal is not None:
        scores = np.where(np.tri(*scores.shape[-2:], k=causal, dtype=bool), scores, -np.inf)
    with np.errstate(invalid="ignore"):
        power = np.exp(scores - scores.max(-1, keepdims=True))
        return (power @ v) / power.sum(-1, keepdims=True)


def kind(a: Any) -> str:
    element = {"float32": "f32", "float64": "f64", "bool": "i1"}[a.dtype.name]
    return f"tensor<{'x'.join(map(str, a.shape))}x{element}>"


def program(arrays: list[Any], scale: float, causal: int | None, approximate: bool = True) -> str:
    """A function of one attention."""
    q, k, v = arrays[:3]
    lead = np.broadcast_shapes(*(a.shape[:-2] for a in (q, k, v)))
    y = kind(np.empty((*lead, q.shape[-2], v.shape[-1]), q.dtype))
    names = ["%q", "%k", "%v", "%m"][: len(arrays)]
    arguments = ", ".join(f"{n}: {kind(a)}" for n, a in zip(names, arrays, strict=True))
    limit = "" if causal is None else f", causal = {causal} : i64"
    return f"""func.func @main({arguments}) -> {y}{AFN if approximate else ""} {{
      %y = graph.attention {", ".join(names)} {{scale = {scale!r} : f64{limit}}}
        : ({", ".join(map(kind, arrays))}) -> {y}
      func.return %y : {y}
    }}"""


@pytest.mark.parametrize("seed", range(10))
def test_random_sizes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtype = np.float64 if seed % 5 == 4 else np.float32
    rows, keys = (int(n) for n in rng.integers(1, 201, 2))
    size, columns = (int(n) for n in rng.integers(1, 131, 2))
    batch, heads = (int(n) for n in rng.integers(1, 4, 2))
    shapes = [(batch, heads, rows, size), (batch, 1, keys, size), (batch, heads, keys, columns)]
    arrays: list[Any] = [rng.standard_normal(s).astype(dtype) for s in shapes]
    if seed % 3 == 1:
        arrays.append(rng.standard_normal((rows, keys)).astype(dtype))
    if seed % 3 == 2:
        arrays.append(rng.random((batch, 1, 1, keys)) < 0.7)
    causal = int(rng.integers(-2, 6)) if seed % 2 else None
    scale = size**-0.5
    text = program(arrays, scale, causal, approximate=seed % 4 != 0)
    compiled = irkit.compile(irkit.parse(text), device="cpu2" if seed % 2 else "cpu1")
    assert 'rkernel = "attention.' in compiled.ir("schedule")
    want = attended(*arrays[:3], *(arrays[3:] or [None]), scale, causal)
    got = compiled(*arrays)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-13 if dtype == np.float64 else 5e-6)


def test_scores_that_overflow_and_rows_that_see_nothing() -> None:
    """Large scores are no trouble; NaN and infinite ones make their row NaN, and no other."""
    q = np.array([[1, 0], [300, 0], [np.nan, 0], [np.inf, 0], [0, 1]], np.float32)
    k = np.tile(np.array([[1, 0], [300, 0], [-300, 0]], np.float32), (60, 1))
    v = np.arange(180, dtype=np.float32)[:, None]
    seen = np.ones((5, 180), bool)
    seen[4] = False
    text = program([q, k, v, seen], 1.0, None)
    got = irkit.compile(irkit.parse(text), "cpu")(q, k, v, seen)
    np.testing.assert_array_equal(np.isnan(got[:, 0]), [False, False, True, True, True])
    np.testing.assert_allclose(got[:2, 0], attended(q[:2], k, v)[:, 0], rtol=1e-6)


# Recognition, in the forms of exporters


def model(
    nodes: list[Any], shapes: dict[str, list[int]], constants: dict[str, Any], out: str
) -> Any:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in shapes.items()],
        [helper.make_tensor_value_info(out, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def forms(name: str) -> Any:
    """A model of queries 2×3×7×4 and keys 2×3×7×4, its scores made as an exporter makes them."""
    n = helper.make_node
    hidden = np.where(np.tri(7, dtype=bool), 0, -np.inf).astype(np.float32)
    constants = {
        "half": np.float32(0.5), "root": np.float32(0.5**0.5), "two": np.float32(2), "hidden": hidden,
        "low": np.float32(np.finfo(np.float32).min), "ahead": ~np.tri(7, dtype=bool),
        "bias": np.random.default_rng(1).standard_normal((3, 7, 7)).astype(np.float32),
        "none": np.zeros((7, 1), bool), "flat": np.array([6, 7, 7]), "back": np.array([2, 3, 7, 7]),
    }  # fmt: skip
    transposed = n("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2])
    guarded = [n("Softmax", ["s"], ["r"], axis=-1), n("Where", ["none", "half", "r"], ["p"])]
    ends = [n("Softmax", ["s"], ["p"], axis=-1), n("MatMul", ["p", "v"], ["y"])]
    plain = [transposed, n("MatMul", ["q", "kt"], ["qk"])]
    between = {
        "scaled behind": [*plain, n("Mul", ["qk", "half"], ["s"])],
        "divided": [*plain, n("Div", ["qk", "two"], ["s"])],
        "split": [
            transposed,
            n("Mul", ["q", "root"], ["q2"]), n("Mul", ["root", "kt"], ["k2"]),
            n("MatMul", ["q2", "k2"], ["s"]),
        ],
        "causal": [*plain, n("Mul", ["qk", "half"], ["qs"]), n("Add", ["hidden", "qs"], ["s"])],
        "replaced": [*plain, n("Mul", ["qk", "half"], ["qs"]), n("Where", ["ahead", "low", "qs"], ["s"])],
        "biased": [*plain, n("Mul", ["qk", "half"], ["qs"]), n("Add", ["qs", "bias"], ["s"])],
        "biased and causal": [
            *plain, n("Mul", ["qk", "half"], ["a"]), n("Add", ["a", "bias"], ["b"]),
            n("Add", ["b", "hidden"], ["s"]),
        ],
        "reshaped": [
            *plain, n("Add", ["qk", "bias"], ["a"]), n("Reshape", ["a", "flat"], ["b"]),
            n("Add", ["b", "hidden"], ["c"]), n("Reshape", ["c", "back"], ["s"]),
        ],
    }  # fmt: skip
    between["guarded"] = between["causal"]
    if name == "guarded":
        ends = [*guarded, ends[1]]
    shapes = {name: [2, 3, 7, 4] for name in "qkv"}
    return model([*between[name], *ends], shapes, constants, "y")


FORMS = {
    "scaled behind": (3, False), "divided": (3, False), "split": (3, False), "causal": (3, True),
    "replaced": (3, True), "biased": (4, False), "biased and causal": (4, False), "reshaped": (4, False),
    "guarded": (3, True),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_a_written_out_attention_is_one_op(name: str) -> None:
    import onnxruntime

    onnx_model = forms(name)
    compiled = irkit.compile(onnx_model, "cpu")
    operands, causal = FORMS[name]
    (line,) = [t for t in compiled.ir("graph").splitlines() if "graph.attention" in t]
    assert line.partition("{")[0].count("%") == operands + 1
    assert ("causal = 0" in line) is causal
    assert "graph.softmax" not in compiled.ir("graph")
    arrays = [
        np.random.default_rng(s).standard_normal((2, 3, 7, 4)).astype(np.float32) for s in range(3)
    ]
    session = onnxruntime.InferenceSession(onnx_model.SerializeToString())
    (want,) = session.run(None, dict(zip("qkv", arrays, strict=True)))
    np.testing.assert_allclose(compiled(*arrays), want, rtol=1e-5, atol=1e-6)


def test_what_a_diagonal_is() -> None:
    for rows, keys, k in ((3, 3, 0), (2, 5, 2), (5, 2, 0), (1, 4, 1)):
        assert diagonal(np.tri(rows, keys, k, dtype=bool), (rows, keys)) == k
    assert diagonal(np.tri(3, 3, -1, dtype=bool), (3, 3)) is None
    assert diagonal(np.tri(3, 3, dtype=bool)[::-1], (3, 3)) is None
    assert diagonal(np.ones((1, 3), bool), (3, 3)) is None
