"""NumPy's functions as graph ops give NumPy's results, on values that are easy to get wrong."""

from __future__ import annotations

import numpy as np
import pytest
from semantics_cases import pool

from irkit.dialects import graph
from irkit.dialects.types import tensor_of
from irkit.driver.compiler.artifacts import build_artifact
from irkit.errors import UnsupportedError
from irkit.frontends.array_ops import SPECIAL, UFUNCS, Ops, einstein, moving, products, reductions
from irkit.frontends.module import GraphBuilder
from irkit.interp import run_module
from irkit.model_info import ModelInfo
from irkit.runtime.program import Variant

DTYPES = tuple(
    map(np.dtype, ("bool", "int8", "int32", "int64", "uint8", "uint64", "float32", "float64"))
)
WITHIN_ULPS = {
    **dict.fromkeys(
        ("arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "cbrt"), 4
    ),
    **dict.fromkeys(
        ("cos", "cosh", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "sin"), 4
    ),
    **dict.fromkeys(("sinh", "tan", "tanh", "power", "float_power", "hypot"), 4),
    **dict.fromkeys(("logaddexp", "logaddexp2"), 16),
}
"""Functions that are not rounded alike everywhere."""
# A zero of either sign: NumPy leaves open which.
EITHER_ZERO = {"maximum", "minimum", "fmax", "fmin"}


def built(arrays, make):
    """A module of `make(ops, *inputs)`'s results."""
    b = GraphBuilder([(f"x{n}", tensor_of(a)) for n, a in enumerate(arrays)])
    results = make(Ops(b.ops, b.constant), *b.inputs)
    outputs = [(f"y{n}", y) for n, y in enumerate(results)]
    return b.finish(outputs, ModelInfo("network", b.names, tuple(n for n, _ in outputs)))


def computed(arrays, make):
    """What the graph interpreter makes of them."""
    model = built(arrays, make)
    return run_module(model.module, model.weights, list(arrays))


def one(make, *arrays):
    """The single result of `make(ops, *inputs)`."""
    (y,) = computed(arrays, lambda o, *v: [make(o, *v)])
    return y


def loops(name, dtype):
    """The operand types of NumPy's loop for operands of `dtype`, or None."""
    ufunc = getattr(np, name)
    try:
        types = ufunc.resolve_dtypes((dtype,) * ufunc.nin + (None,) * ufunc.nout)
    except TypeError:
        return None
    known = {*map(str, DTYPES)}
    return None if {*map(str, types)} - known else types[: ufunc.nin]


def operands_of(name, dtype):
    """Pairs, or all values."""
    x = pool(dtype)
    if name == "reciprocal" and dtype.kind in "iu":
        # Of zero NumPy gives what the processor makes of an infinity.
        x = x[x != 0]
    if getattr(np, name).nin == 1:
        return (x,)
    x, y = (a.ravel() for a in np.meshgrid(x, x))
    if name in ("power", "left_shift", "right_shift") and dtype.kind == "i":
        # NumPy raises for some.
        x, y = x[y >= 0], y[y >= 0]
    return x, y


def check(name, got, want):
    """As exact as the function is."""
    assert (got.dtype, got.shape) == (want.dtype, want.shape), name
    if want.dtype.kind != "f":
        np.testing.assert_array_equal(got, want, err_msg=name)
        return
    ulps = WITHIN_ULPS.get(name, 0)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want), err_msg=name)
    known = ~np.isnan(want)
    if ulps:
        with np.errstate(all="ignore"):
            apart = np.abs(got[known].astype(np.longdouble) - want[known].astype(np.longdouble))
            near = apart <= ulps * np.spacing(np.abs(want[known]))
        assert (near | (got[known] == want[known])).all(), name
    else:
        np.testing.assert_array_equal(got, want, err_msg=name)
    if name not in EITHER_ZERO:
        np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(want[known]), err_msg=name)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_ufuncs(dtype):
    names, inputs, taken = [], [], []
    for name in UFUNCS:
        types = loops(name, dtype)
        if types is None:
            continue
        operands = [
            a.astype(t) for a, t in zip(operands_of(name, dtype), types, strict=True)
        ]  # fmt: skip
        names.append(name)
        taken.append((len(inputs), len(operands)))
        inputs += operands
    assert len(names) > 10

    def make(o, *v):
        found = []
        for name, (first, count) in zip(names, taken, strict=True):
            made = UFUNCS[name](o, *v[first : first + count])
            found += made if isinstance(made, tuple) else [made]
        return found

    got = iter(computed(inputs, make))
    for name, (first, count) in zip(names, taken, strict=True):
        with np.errstate(all="ignore"):
            made = getattr(np, name)(*inputs[first : first + count])
        for want in made if isinstance(made, tuple) else [made]:
            check(name, next(got), want)


def test_compiled_ufuncs():
    """Those that are compositions, of float64: as the interpreter has them."""
    names = [
        "floor_divide",
        "remainder",
        "hypot",
        "sign",
        "trunc",
        "fmax",
        "fmin",
        "signbit",
        "isfinite",
    ]
    x, y = operands_of("fmax", np.dtype(np.float64))
    model = built((x, y), lambda o, a, b: [
        UFUNCS[n](o, *((a, b) if getattr(np, n).nin == 2 else (a,))) for n in names
    ])  # fmt: skip
    want = run_module(model.module, model.weights, [x, y])
    artifact = build_artifact(model, "cpu", cache=False)
    for name, got, expected in zip(
        names, Variant(artifact, "serial").run([x, y]), want, strict=True
    ):
        check(name, got, expected)


def test_special_functions():
    special = pytest.importorskip("scipy.special")
    x = np.linspace(-9, 9, 1001)
    got = computed([x], lambda o, v: [f(o, v) for f in SPECIAL.values()])
    for name, y in zip(SPECIAL, got, strict=True):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(y, getattr(special, name)(x), rtol=1e-14, err_msg=name)


def test_every_ufunc_has_a_meaning_or_a_reason():
    ufuncs = {
        n for n in dir(np) if isinstance(getattr(np, n), np.ufunc) and getattr(np, n).__name__ == n
    }
    without = {
        # Bits and representations, which no graph op has.
        *("frexp", "ldexp", "nextafter", "spacing", "bitwise_count"),
        # Whole numbers by loops of unknown length.
        *("gcd", "lcm"),
        # Products of arrays, in products.py, and what is no array of numbers.
        *("matmul", "vecdot", "matvec", "vecmat", "isnat"),
    }
    assert ufuncs - {*UFUNCS} <= without
    assert {*UFUNCS} <= {n for n in dir(np) if isinstance(getattr(np, n), np.ufunc)}


@pytest.mark.parametrize("name", list(reductions.REDUCTIONS))
@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != np.int8], ids=str)
def test_reductions(name, dtype):
    x = np.random.default_rng(0).choice(pool(dtype)[:9], (3, 4, 5))
    if name in ("mean", "std", "var") and dtype.kind != "f":
        x = x.astype(np.float64)
    if name in ("sum", "prod") and dtype.kind != "f":
        x = x.astype(np.int64)
    if name == "ptp" and dtype.kind == "b":
        return
    for axes in ((0,), (1, 2), (0, 1, 2)):
        for keep in (False, True):
            got = one(lambda o, v, a=axes, k=keep: reductions.REDUCTIONS[name](o, v, a, k), x)
            more = {} if name == "ptp" else {"dtype": x.dtype} if name in ("sum", "prod") else {}
            want = np.asarray(getattr(np, name)(x, axis=axes, keepdims=keep, **more))
            assert got.shape == want.shape
            np.testing.assert_allclose(
                got, want, rtol=1e-5 if dtype == np.float32 else 1e-12, atol=1e-6
            )


def test_degrees_of_freedom():
    x = np.random.default_rng(1).standard_normal((6, 7))
    got = one(lambda o, v: reductions.variance(o, v, [0], ddof=1), x)
    np.testing.assert_allclose(got, x.var(axis=0, ddof=1), rtol=1e-13)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != np.bool_], ids=str)
def test_orders(dtype):
    x = np.random.default_rng(2).choice(pool(dtype), (5, 11))
    got = computed([x], lambda o, v: [
        reductions.argmin(o, v, 1), reductions.argmax(o, v, 0), reductions.sort(o, v, 1),
        reductions.argsort(o, v, 0),
    ])  # fmt: skip
    want = x.argmin(1), x.argmax(0), np.sort(x, 1), np.argsort(x, 0, kind="stable")
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w)


def test_running_sums_and_products():
    x = np.random.default_rng(3).integers(-4, 5, (4, 9))
    for y in (x, x.astype(np.float64)):
        got = computed([y], lambda o, v: [
            reductions.cumsum(o, v, 1), reductions.cumprod(o, v, 0), reductions.cumprod(o, v, 1),
        ])  # fmt: skip
        for g, w in zip(got, (y.cumsum(1), y.cumprod(0), y.cumprod(1)), strict=True):
            np.testing.assert_array_equal(g, w)


def test_what_moves():
    x = np.arange(35.0).reshape(5, 7)
    made = {
        "flip": (lambda o, v: moving.flip(o, v, [0, 1]), np.flip(x)),
        "flip one": (lambda o, v: moving.flip(o, v, [1]), x[:, ::-1]),
        "roll": (lambda o, v: moving.roll(o, v, -3, 1), np.roll(x, -3, 1)),
        "roll all": (lambda o, v: moving.roll(o, v, 9), np.roll(x, 9)),
        "roll none": (lambda o, v: moving.roll(o, v, 10, 0), x),
        "repeat": (lambda o, v: moving.repeat(o, v, 3, 0), np.repeat(x, 3, 0)),
        "tile": (lambda o, v: moving.tile(o, v, [2, 1, 3]), np.tile(x, (2, 1, 3))),
        "tile short": (lambda o, v: moving.tile(o, v, [2]), np.tile(x, 2)),
        **{
            f"{name} {k}": (lambda o, v, f=f, k=k: f(o, v, k), getattr(np, name)(x, k))
            for name, f in (
                ("triu", moving.triu),
                ("tril", moving.tril),
                ("diagonal", moving.diagonal),
            )
            for k in (-5, -3, -1, 0, 1, 4, 6)
        },
        "trace": (lambda o, v: moving.trace(o, v, 1), np.asarray(np.trace(x, 1))),
    }
    got = computed([x], lambda o, v: [make(o, v) for make, _ in made.values()])
    for name, g, (_, want) in zip(made, got, made.values(), strict=True):
        np.testing.assert_array_equal(g, want, err_msg=name)


@pytest.mark.parametrize("count", [1, 4, 12])
def test_indices(count):
    rng = np.random.default_rng(count)
    x, indices = rng.standard_normal((6, 3)), rng.integers(-6, 6, count)
    values = rng.standard_normal((count, 3))
    written, scalar = x.copy(), x.copy()
    for n, i in enumerate(indices):
        written[i] = values[n]
    scalar[indices] = 7.0
    got = computed([x, indices, values], lambda o, v, i, w: [
        moving.take(o, v, i, 0), moving.put(o, v, i, w),
        moving.put(o, v, i, o.like(7.0, v)), moving.bincount(o, i, 6),
    ])  # fmt: skip
    inside = indices[indices >= 0]
    want = x[indices], written, scalar, np.bincount(inside, minlength=6)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w)
    along = rng.integers(-3, 3, (6, 2))
    got = one(lambda o, v, i: moving.take_along_axis(o, v, i, 1), x, along)
    np.testing.assert_array_equal(got, np.take_along_axis(x, along % 3, 1))


@pytest.mark.parametrize("dtype", ["bool", "int32", "float64"])
@pytest.mark.parametrize(
    ("a", "b"), [((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)),
                 ((3,), (5, 3, 4)), ((5, 2, 3), (3,))],
)  # fmt: skip
def test_products(dtype, a, b):
    rng = np.random.default_rng(4)
    x, y = (rng.integers(0, 3, s).astype(dtype) for s in (a, b))
    np.testing.assert_array_equal(one(products.matmul, x, y), x @ y)
    np.testing.assert_array_equal(one(products.dot, x, y), np.dot(x, y))
    if dtype != "bool":
        np.testing.assert_array_equal(one(products.outer, x, y), np.outer(x, y))


def test_tensor_products():
    rng = np.random.default_rng(5)
    x, y = (
        rng.integers(-9, 9, (2, 3, 4)).astype(float),
        rng.integers(-9, 9, (4, 3, 5)).astype(float),
    )
    np.testing.assert_array_equal(
        one(lambda o, a, b: products.tensordot(o, a, b, [1, 2], [1, 0]), x, y),
        np.tensordot(x, y, ([1, 2], [1, 0])),
    )
    np.testing.assert_array_equal(one(products.inner, x, x), np.inner(x, x))


@pytest.mark.parametrize(
    "text",
    ["ij,jk->ik", "ij,jk->ki", "bij,bjk->bik", "ij,ij->", "ij->ji", "ij->", "i,j->ij", "ij,kj,j->ik",
     "bij,jk,kl->bl", "ab,cd->abcd", "bi,bi->b", "ijk,lj->li", "ij,ij->ij", "ij,j", "ba", "iml->lm",
     "imm->im", "mim,mi->i", "lmm,l", "...ij,...jk->...ik", "i...,ij...->j...", "...,...", "b...ij->...b",
     "a..., a ->...a", "i...i->...", "bm,bm,bj->mj"],
)  # fmt: skip
def test_einsum(text):
    rng = np.random.default_rng(6)
    inputs = text.replace(" ", "").partition("->")[0].split(",")
    sizes = dict(zip("abcdijklm", (2, 3, 4, 2, 3, 5, 4, 2, 3), strict=True)) | {"#": 3}
    arrays = [
        rng.integers(-5, 5, [sizes[c] for c in i.replace("...", "#")]).astype(float) for i in inputs
    ]
    for kind in (float, np.int32):
        given = [x.astype(kind) for x in arrays]
        got = one(lambda o, *v: einstein.einsum(o, text, v), *given)
        np.testing.assert_array_equal(got, np.einsum(text, *given))


@pytest.mark.parametrize(
    ("text", "shapes"),
    [("ij,ij->ij", [(1, 4), (3, 4)]), ("ij,jk->ik", [(2, 1), (5, 3)]),
     ("...i,...i->...", [(2, 1, 4), (3, 4)]), ("...,ij...->...i", [(5,), (2, 3, 1)])],
)  # fmt: skip
def test_einsum_broadcasts(text, shapes):
    rng = np.random.default_rng(7)
    arrays = [rng.integers(-5, 5, shape).astype(float) for shape in shapes]
    got = one(lambda o, *v: einstein.einsum(o, text, v), *arrays)
    np.testing.assert_array_equal(got, np.einsum(text, *arrays))


def test_einsum_of_booleans_says_whether_any_pair_is_true():
    x, y = np.eye(3) > 0, np.arange(9).reshape(3, 3) > 6
    for text in ("ij,jk->ik", "ij,ij->ij", "ij->i"):
        given = [x, y][: text.count(",") + 1]
        got = one(lambda o, *v, text=text: einstein.einsum(o, text, v), *given)
        np.testing.assert_array_equal(got, np.einsum(text, *given))


@pytest.mark.parametrize(
    ("text", "words"),
    [("ij->k", "'k' is in no operand"), ("ij->ii", "a dimension twice"),
     ("ij,jk->ik", "of 2 operands, not of 1"),
     ("ijk->i", "does not fit an operand of 2"), ("i->i", "does not fit an operand of 2"),
     ("ii->i", "'i' is of 3 and 4"), ("i1->i", "not made of letters"), ("i....j->i", "not made of")],
)  # fmt: skip
def test_sums_that_are_none(text, words):
    x = np.zeros((3, 4))
    with pytest.raises(ValueError, match=words):
        one(lambda o, v: einstein.einsum(o, text, [v]), x)


def test_open_extents_are_refused():
    from irkit.dialects.types import DYNAMIC, element_type, tensor

    b = GraphBuilder([("x", tensor(element_type(np.dtype(float)), (DYNAMIC, 3)))])
    o = Ops(b.ops, b.constant)
    with pytest.raises(UnsupportedError, match="its extents must be known"):
        moving.roll(o, b.inputs[0], 1, 1)
    assert o(graph.AbsOp, b.inputs[0]) is not None
