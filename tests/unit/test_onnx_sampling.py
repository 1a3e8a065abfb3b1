"""Sums of Einstein's and samples of images, also of any batch, with ONNX Runtime as the judge."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx_nodes import floats, judged, model, node

from irkit.errors import UnsupportedError
from irkit.frontends.onnx import import_onnx

FEW = settings(max_examples=40, deadline=None, derandomize=True)
TWO, THREE = ("bilinear", "nearest", "bicubic"), ("linear", "nearest")


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
        ("nahi,nahj,naj->nahi", [(2, 3, 4, 5), (2, 3, 4, 6), (2, 3, 6)]),
        ("nca,ncb,nd->ndab", [(2, 3, 4), (2, 3, 5), (2, 6)]),
        ("nhe,nhe->nh", [(3, 2, 4), (3, 2, 4)]),
        ("nhe,nge->ngh", [(3, 2, 4), (3, 5, 4)]),
        ("nct,ncp->nctp", [(2, 3, 4), (2, 3, 5)]),
        ("n...i,n...j->n...ij", [(2, 3, 4), (2, 3, 5)]),
        ("nii->ni", [(2, 3, 3)]),
        ("nij->nji", [(2, 3, 4)]),
        ("nij,nj", [(2, 3, 4), (2, 4)]),
    ],
)
def test_einsum(equation, shapes, batch):
    x = {f"x{n}": floats(*shape, seed=n) for n, shape in enumerate(shapes)}
    if batch and "->" not in equation:
        return
    judged(model([node("Einsum", " ".join(x), equation=equation)], x, batch=batch), x)


@pytest.mark.parametrize(
    "equation", ["ni,ij->nj", "ji,ni->nj", "nik,ij->nkj", "ijk,nij->nik", "ij,nik->nijk"]
)
def test_an_open_batch_beside_constants(equation):
    terms, sizes = equation.partition("->")[0].split(","), {"n": 3, "i": 4, "j": 5, "k": 2}
    arrays = {"x" if "n" in t else "w": floats(*(sizes[c] for c in t)) for t in terms}
    weights = {"w": arrays.pop("w")}
    names = " ".join("x" if "n" in t else "w" for t in terms)
    judged(model([node("Einsum", names, equation=equation)], arrays, weights, batch=True), arrays)


@FEW
@given(
    st.sampled_from(TWO),
    st.sampled_from(["zeros", "border", "reflection"]),
    st.booleans(),
    st.tuples(st.integers(1, 6), st.integers(1, 6)),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.floats(0.3, 4.0),
    st.booleans(),
)
def test_images(mode, padding, corners, extents, wanted, spread, batch):
    # Of one pixel a reflection at its centre is a division by zero in ONNX Runtime.
    if padding == "reflection" and corners and 1 in extents:
        return
    x = {"x": floats(2, 3, *extents), "g": spread * floats(2, *wanted, 2, seed=5)}
    sample = node("GridSample", "x g", mode=mode, padding_mode=padding, align_corners=int(corners))
    judged(model([sample], x, opset=16, batch=batch), x, 1e-4)


@pytest.mark.parametrize("corners", [0, 1])
def test_a_cubic_beyond_the_border(corners):
    """The pixels at the border go on outside; coordinates stay where they are."""
    x = {"x": floats(1, 2, 7, 5), "g": 1.5 * floats(1, 6, 7, 2, seed=5)}
    how = {"mode": "bicubic", "padding_mode": "border", "align_corners": corners}
    judged(model([node("GridSample", "x g", **how)], x, opset=16), x, 1e-5)


@pytest.mark.parametrize("mode", THREE)
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_volumes(mode, padding):
    x = {"x": floats(2, 2, 3, 4, 5), "g": floats(2, 2, 3, 2, 3, seed=5)}
    sample = node("GridSample", "x g", mode=mode, padding_mode=padding)
    judged(model([sample], x, opset=20), x)


def test_integers_and_what_is_no_number():
    x = {"x": np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4), "g": floats(1, 2, 2, 2)}
    x["g"][0, 0, 0, 0], x["g"][0, 1, 1, 1] = np.nan, np.inf
    proto = model([node("GridSample", "x g", mode="nearest", padding_mode="border")], x, opset=20)
    imported = import_onnx(proto)
    assert imported.module is not None
    counts = {**x, "x": x["x"].astype(np.int32)}
    sample = node("GridSample", "x g", mode="linear")
    with pytest.raises(UnsupportedError, match="only mode 'nearest' takes integers"):
        import_onnx(model([sample], counts, opset=20))
