"""Every graph op on every element type that it takes, on values that are easy to get wrong.

A case is one op on concrete operands, and how far levels may differ on it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from ml_dtypes import finfo
from xdsl.dialects.builtin import ArrayAttr, StringAttr

from irkit.bfloat16 import is_floating
from irkit.dialects import graph
from irkit.dialects.element_sets import ALL
from irkit.dialects.graph.base import GraphOp
from irkit.dialects.graph.elementwise import BinaryOp, UnaryOp
from irkit.dialects.graph.logic import PREDICATES
from irkit.dialects.types import element_type, numpy_dtype

DTYPES = tuple(
    np.dtype(name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "bfloat16"),
    )
)
ROUNDED = frozenset(
    {
        *(graph.AcosOp, graph.AcoshOp, graph.AsinOp, graph.AsinhOp, graph.AtanOp, graph.AtanhOp),
        *(graph.Atan2Op, graph.CbrtOp, graph.Exp2Op, graph.Expm1Op, graph.Log10Op, graph.Log2Op),
        *(graph.CosOp, graph.CoshOp, graph.ErfOp, graph.ExpOp, graph.Log1pOp, graph.LogOp),
        *(graph.PowOp, graph.SigmoidOp, graph.SinOp, graph.SinhOp, graph.TanOp, graph.TanhOp),
        *(graph.LpPoolOp, graph.LrnOp, graph.SoftmaxOp),
    }
)
"""Ops of functions that processors and libraries round each in their own way."""
SUMS = frozenset(
    {
        *(graph.AttentionKeyGradientOp, graph.AttentionOp, graph.AttentionQueryGradientOp),
        *(graph.CsrMatmulOp, graph.CsrReduceOp),
        graph.ExpressionOp,
        graph.LayerNormOp,
        *(graph.GemmOp, graph.MatmulOp, graph.ConvOp, graph.ConvTransposeOp, graph.CumSumOp),
        *(graph.GruOp, graph.GruCellOp, graph.LstmOp, graph.LstmCellOp, graph.RnnOp),
        graph.RnnCellOp,
    }
)
"""Ops whose sums of floats have no fixed order."""


@dataclass(frozen=True)
class Case:
    """`op` on `arrays`; those numbered in `constants` are part of the program."""

    name: str
    op: type[GraphOp]
    arrays: tuple[np.ndarray, ...]
    props: dict[str, Any] = field(default_factory=dict)
    constants: tuple[int, ...] = ()

    def check(self, got: np.ndarray, want: np.ndarray) -> None:
        """Raises AssertionError where `got` is no right result, `want` being one."""
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        if not is_floating(want.dtype):
            np.testing.assert_array_equal(got, want)
            return
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        if self.op in SUMS:
            known = [a.astype(np.float64) for a in self.arrays]
            size = max((np.abs(a[np.isfinite(a)]).max(initial=1) for a in known), default=1)
            unit = float(finfo(want.dtype).eps)
            got, want = (a.astype(np.float64) for a in (got, want))
            np.testing.assert_allclose(got, want, rtol=64 * unit, atol=64 * unit * size)
            # Running sums alone say which of them are -0.0.
            nothing = (got == 0) & (want == 0)
            if self.op is graph.CumSumOp:
                np.testing.assert_array_equal(np.signbit(got[nothing]), np.signbit(want[nothing]))
            return
        np.testing.assert_array_equal(np.signbit(got[got == got]), np.signbit(want[want == want]))
        if self.op in ROUNDED:
            close_in_ulps(got, want, 6)
        else:
            # As float64: NumPy takes no NaN of bfloat16 for one.
            np.testing.assert_array_equal(got.astype(np.float64), want.astype(np.float64))


def close_in_ulps(got: np.ndarray, want: np.ndarray, ulps: int) -> None:
    """Finite numbers lie within `ulps` representable ones of each other; of one sign."""
    kind = np.dtype(f"int{want.dtype.itemsize * 8}")
    known = ~np.isnan(want)
    apart = got[known].view(kind).astype(object) - want[known].view(kind).astype(object)
    assert all(abs(d) <= ulps for d in apart), (got[known], want[known])


def pool(dtype: np.dtype) -> np.ndarray:
    """Values of a type that are easy to get wrong."""
    if dtype.kind == "b":
        return np.array([False, True])
    if is_floating(dtype):
        f = finfo(dtype)
        with np.errstate(over="ignore"):
            return np.array(
                [
                    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.7, -3.7, 2.0, 3.0, -3.0),
                    *(np.nan, np.inf, -np.inf, f.max, -f.max, f.tiny, f.smallest_subnormal),
                    *(-f.smallest_subnormal, 1 + f.eps, 100.0, 300.0, -300.0, 2.0**31, -(2.0**31)),
                    *(2.0**32, 2.0**63, -(2.0**63), 2.0**64, 1e19, 1e30),
                ]
            ).astype(dtype)
    limits, width = np.iinfo(dtype), dtype.itemsize * 8
    values = [0, 1, 2, 3, 7, width - 1, width, width + 1, 100, limits.max // 2 + 1]
    values += [limits.max - 1, limits.max]
    if limits.min < 0:
        values += [-1, -2, -3, -7, -100, limits.min + 1, limits.min]
    return np.array(values, dtype)


def drawn(dtype: np.dtype, *shape: int, calm: bool = False, seed: int = 0) -> np.ndarray:
    """Values of the pool, mixed; with `calm`, none whose sums depend on their order."""
    values = pool(dtype)
    if calm and is_floating(dtype):
        values = np.array([0.0, -0.0, 1.5, -2.25, 0.75, 3.0, -1.0, 0.125], dtype)
    return np.random.default_rng(seed).choice(values, shape)


def zeros(dtype: np.dtype, *shape: int) -> np.ndarray:
    """Zeros, of both signs where there are two."""
    values = np.array([0.0, -0.0] if is_floating(dtype) else [0], dtype)
    return np.random.default_rng(4).choice(values, shape)


def wild(dtype: np.dtype, *shape: int) -> np.ndarray:
    """As `drawn(calm=True)`, with an infinity and a NaN among floats."""
    x = drawn(dtype, *shape, calm=True, seed=5)
    if is_floating(dtype):
        x.reshape(-1)[[1, -1]] = np.inf, np.nan
    return x


Make = Callable[[type[GraphOp], np.dtype], Iterator[Case]]


def unary(op: type[GraphOp], dtype: np.dtype) -> Iterator[Case]:
    """All values."""
    yield Case("all", op, (pool(dtype),))
    yield Case("scalar", op, (pool(dtype)[:1].reshape(()),))


def binary(op: type[GraphOp], dtype: np.dtype, **props: Any) -> Iterator[Case]:
    """All pairs of values; then each of some constants on either side."""
    x = pool(dtype)
    yield Case("pairs", op, (x[:, None], x), props)
    picked = x[:: max(1, len(x) // 6)]
    for value in picked:
        yield Case(f"by {value}", op, (x, np.array(value)), props, (1,))
    yield Case(f"of {picked[-1]}", op, (np.array(picked[-1]), x), props, (0,))
    yield Case("constants", op, (x, x[::-1].copy()), props, (0, 1))


def casts(op: type[GraphOp], dtype: np.dtype) -> Iterator[Case]:
    """To every type."""
    for to in DTYPES:
        yield Case(f"to {to}", op, (pool(dtype),), {"to": element_type(to)})


def clips(op: type[GraphOp], dtype: np.dtype) -> Iterator[Case]:
    """Usual limits, a single point, limits in the wrong order, a limit that is infinite once rounded."""
    for low, high in ((-1.0, 1.0), (0.0, 6.0), (0.0, 0.0), (5.0, -5.0), (-1e300, 1e300)):
        yield Case(f"{low} to {high}", op, (pool(dtype),), {"min": low, "max": high})


def compares(op: type[GraphOp], dtype: np.dtype) -> Iterator[Case]:
    """Every predicate."""
    for predicate in PREDICATES:
        yield Case(predicate, op, (pool(dtype)[:, None], pool(dtype)), {"predicate": predicate})


def wheres(op: type[GraphOp], dtype: np.dtype) -> Iterator[Case]:
    """Conditions that are broadcast."""
    chosen = np.array([[True], [False]])
    yield Case("rows", op, (chosen, pool(dtype), pool(dtype)[::-1].copy()))


def fused(op: type[GraphOp], dtype: np.dtype) -> Iterator[Case]:
    """All triples of some values; sums that a rounded product would lose; constants."""
    x = pool(dtype)[:12]
    yield Case("triples", op, (x[:, None, None], x[:, None], x))
    near = np.nextafter(np.ones(4, dtype), dtype.type(2))
    yield Case("close", op, (near, near, -near * near))
    yield Case("constants", op, (x, x[::-1].copy(), x), {}, (1, 2))


def reductions(op: type[GraphOp], dtype: np.dtype) -> Iterator[Case]:
    """Every kind over one, several, all and no axes, over few and over many elements."""
    for kind in ("sum", "mean", "max", "min", "prod"):
        for axes, keep in (([1], False), ([0, 2], True), ([0, 1, 2], False), ([], False)):
            x = drawn(dtype, 3, 4, 5, seed=len(axes))
            yield Case(f"{kind} {axes}", op, (x,), {"kind": kind, "axes": axes, "keepdims": keep})
        props = {"kind": kind, "axes": [0], "keepdims": False}
        yield Case(f"{kind} many", op, (drawn(dtype, 400, 2, seed=3),), props)
        yield Case(f"{kind} zeros", op, (zeros(dtype, 6, 8),), props)
        yield Case(f"{kind} one", op, (drawn(dtype, 1, 9, seed=6),), props)


def argmaxes(op: type[GraphOp], dtype: np.dtype) -> Iterator[Case]:
    """Ties, NaN, and an axis of one."""
    for axis, shape in ((0, (5, 7)), (1, (6, 12)), (1, (4, 1))):
        props = {"axis": axis, "keepdims": axis == 0}
        yield Case(f"{shape} {axis}", op, (drawn(dtype, *shape),), props)


def running_sums(op: type[GraphOp], dtype: np.dtype) -> Iterator[Case]:
    """Every way, and axes of one and two."""
    for number in range(4):
        props = {"axis": 1, "exclusive": bool(number & 1), "reverse": bool(number & 2)}
        yield Case(f"way {number}", op, (drawn(dtype, 3, 6, calm=True),), props)
        yield Case(f"short {number}", op, (drawn(dtype, 8, 2, calm=True),), props)
        yield Case(f"one {number}", op, (drawn(dtype, 8, 1, calm=True),), props)


def orders(op: type[GraphOp], dtype: np.dtype) -> Iterator[Case]:
    """Largest and smallest, ties and NaN among them."""
    for largest in (True, False):
        props = {"k": 4, "axis": 1, "largest": largest}
        yield Case(f"largest {largest}", op, (drawn(dtype, 5, 9),), props)


def windows(op: type[GraphOp], dtype: np.dtype) -> Iterator[Case]:
    """One to three dimensions, padded, dilated, and rounded up."""
    rounded_up = {"kernel_shape": [2], "strides": [2], "pads": [1, 0], "ceil_mode": True}
    plane = {"kernel_shape": [2, 2], "strides": [1, 1], "pads": [1, 0, 0, 1]}
    cube = {"kernel_shape": [2, 1, 2], "strides": [1, 1, 1], "pads": [0] * 6}
    spread = {"kernel_shape": [2], "strides": [1], "pads": [1, 1], "dilations": [2]}
    for name, shape, where in (
        ("up", (1, 2, 8), rounded_up), ("plane", (2, 1, 4, 5), plane),
        ("cube", (1, 1, 2, 3, 3), cube), ("spread", (1, 2, 6), spread),
    ):  # fmt: skip
        for more in WINDOWS.get(op, ({},)):
            yield Case(f"{name} {more}", op, (drawn(dtype, *shape, seed=2),), {**where, **more})


WINDOWS: dict[type[GraphOp], tuple[dict[str, Any], ...]] = {
    graph.AveragePoolOp: ({"count_include_pad": True}, {"count_include_pad": False}),
    graph.LpPoolOp: ({"p": 1}, {"p": 2}, {"p": 3}),
    graph.MaxPoolIndicesOp: ({"column_major": True}, {"column_major": False}),
}


def global_pools(op: type[GraphOp], dtype: np.dtype) -> Iterator[Case]:
    """One and two dimensions."""
    yield Case("line", op, (drawn(dtype, 2, 3, 4),))
    yield Case("plane", op, (drawn(dtype, 2, 3, 4, 2),))


def gemms(op: type[GraphOp], dtype: np.dtype) -> Iterator[Case]:
    """Transposed and scaled, with and without what is added."""
    a, w, c = wild(dtype, 3, 4), drawn(dtype, 4, 5, calm=True), drawn(dtype, 5, calm=True)
    plain = {"trans_a": False, "trans_b": False, "alpha": 1.0, "beta": 1.0}
    yield Case("plain", op, (a, w), plain)
    yield Case("added", op, (a, w, c), {**plain, "alpha": 2.0, "beta": 3.0})
    yield Case("weights", op, (a, w.T.copy(), c), {**plain, "trans_b": True, "alpha": 3.0}, (1, 2))


def products(op: type[GraphOp], dtype: np.dtype) -> Iterator[Case]:
    """Plain, with weights, and broadcast."""
    a, w = wild(dtype, 2, 3, 4), drawn(dtype, 4, 5, calm=True)
    yield Case("plain", op, (a, w))
    yield Case("weights", op, (a, w), {}, (1,))


def convolutions(op: type[GraphOp], dtype: np.dtype) -> Iterator[Case]:
    """In groups, padded, and with a bias."""
    where = {"strides": [1], "pads": [1, 0], "dilations": [1], "group": 1}
    more = {"output_padding": [0]} if op is graph.ConvTransposeOp else {}
    x, w = wild(dtype, 1, 2, 6), drawn(dtype, 2, 2, 3, calm=True)
    yield Case("plain", op, (x, w), {**where, **more})
    yield Case("bias", op, (x, w, drawn(dtype, 2, calm=True)), {**where, **more}, (1, 2))
    grouped = {**where, **more, "group": 2, "strides": [2]}
    yield Case("groups", op, (x, drawn(dtype, 2, 1, 3, calm=True)), grouped)


def normal(dtype: np.dtype, *shape: int, seed: int = 0) -> np.ndarray:
    """Numbers around 0."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def batch_norms(op: type[GraphOp], dtype: np.dtype) -> Iterator[Case]:
    """Variances of zero and below, infinite and NaN inputs."""
    x = drawn(dtype, 2, 3, 5)
    variance = np.array([0.5, 0.0, -1.0], dtype)
    scale, bias, mean = (normal(dtype, 3, seed=s) for s in range(3))
    yield Case("images", op, (x, scale, bias, mean, variance), {"epsilon": 1e-3})


def lrns(op: type[GraphOp], dtype: np.dtype) -> Iterator[Case]:
    """Odd and even sizes."""
    for size in (2, 3):
        props = {"size": size, "alpha": 0.5, "beta": 0.75, "bias": 1.0}
        yield Case(f"{size}", op, (drawn(dtype, 1, 4, 6),), props)


def softmaxes(op: type[GraphOp], dtype: np.dtype) -> Iterator[Case]:
    """Each axis; rows of infinities and of NaN among others."""
    for axis in (0, 1):
        yield Case(f"{axis}", op, (drawn(dtype, 6, 3, seed=axis),), {"axis": axis})
        yield Case(f"calm {axis}", op, (drawn(dtype, 6, 3, calm=True),), {"axis": axis})


def layer_norms(op: type[GraphOp], dtype: np.dtype) -> Iterator[Case]:
    """Centred and not; rows of infinities and of NaN among others."""
    for centred in (True, False):
        props = {"epsilon": 1e-3, "centred": centred}
        yield Case(f"centred {centred}", op, (drawn(dtype, 6, 3),), props)
        yield Case(f"calm, centred {centred}", op, (drawn(dtype, 6, 9, calm=True),), props)


def expressions(op: type[GraphOp], dtype: np.dtype) -> Iterator[Case]:
    """Elements moved, padded and picked; of numbers products, extremes, quotients of whole ones."""
    x, places = drawn(dtype, 3, 4), np.array([[2, 0], [1, 1]])
    yield Case("moved", op, (x,), {"text": "O(j, i) = X(2 - i, j)"})
    yield Case("picked", op, (x, places), {"text": "O(i, j) = X(I(i, j), 2 * j) where j in 0:2"})
    padded = "O(i, j) = j >= 1 && j < 5 ? X(i, j - 1) : X(i, 0) where j in 0:6"
    yield Case("padded", op, (x,), {"text": padded})
    if dtype.kind == "b":
        return
    a, w = wild(dtype, 3, 4), drawn(dtype, 4, 5, calm=True)
    yield Case("product", op, (a, w), {"text": "C(m, n) +=! A(m, k) * B(k, n)"})
    windows = "O(i, o) +=! X(i, j + k) * W(k, o) where k in 1:3"
    yield Case("windows", op, (drawn(dtype, 3, 4, calm=True), w), {"text": windows})
    yield Case("largest", op, (x,), {"text": "O(i) max=! X(i, j)"})
    yield Case("least", op, (x,), {"text": "O(j) min=! X(i, j)"})
    if dtype.kind in "iu":
        whole = "O(i, j) = X(i, j) / Y(j) + X(i, j) % Y(j)"
        yield Case("quotient", op, (x, drawn(dtype, 4, seed=1)), {"text": whole})


def attentions(op: type[GraphOp], dtype: np.dtype) -> Iterator[Case]:
    """Masks of either kind, rows that see no key, heads that share keys."""
    q, k, v = normal(dtype, 2, 2, 5, 3), normal(dtype, 2, 1, 4, 3), normal(dtype, 2, 1, 4, 2)
    yield Case("shared", op, (q, k, v), {"scale": 0.5})
    yield Case("causal", op, (q, k, v), {"scale": 1.5, "causal": -1})
    seen = np.random.default_rng(1).random((5, 4)) < 0.6
    seen[2] = False
    yield Case("seen", op, (q, k, v, seen), {"scale": -0.5, "causal": 1})
    added = normal(dtype, 2, 1, 1, 4)
    added[0, ..., 1:] = -np.inf
    yield Case("added", op, (q, k, v, added), {"scale": 0.25})


def attention_gradients(op: type[GraphOp], dtype: np.dtype) -> Iterator[Case]:
    """Masks of either kind, heads that share keys."""
    arrays = [normal(dtype, 2, 2, 5, 3), normal(dtype, 2, 1, 4, 3), normal(dtype, 2, 1, 4, 2)]
    arrays.append(normal(dtype, 2, 2, 5, 2, seed=3))
    if op is graph.AttentionKeyGradientOp:
        # Sums of so many weights that none of them is large.
        sums = normal(dtype, 2, 2, 5, 5, seed=4)
        sums[..., 3] = 4
        arrays.append(sums)
    yield Case("shared", op, arrays, {"scale": 0.5})
    yield Case("causal", op, arrays, {"scale": 1.5, "causal": 1})
    seen = np.random.default_rng(1).random((5, 4)) < 0.6
    seen[:, 1] = True
    yield Case("seen", op, (*arrays, seen), {"scale": -0.5, "causal": 1})
    yield Case("added", op, (*arrays, normal(dtype, 2, 1, 1, 4)), {"scale": 0.25})


def cells(op: type[GraphOp], dtype: np.dtype) -> Iterator[Case]:
    """Cells and layers, of usual gates."""
    layer = op in (graph.LstmOp, graph.GruOp, graph.RnnOp)
    gates, biases, states = op.GATES, op.BIASES, op.STATES  # pyright: ignore
    x = normal(dtype, 2, 3, 4) if layer else normal(dtype, 3, 4)
    state = [normal(dtype, 3, 2, seed=s) for s in range(states)]
    weights = (normal(dtype, gates * 2, 4), normal(dtype, gates * 2, 2), normal(dtype, biases * 2))
    props = {"linear_before_reset": True} if op in (graph.GruOp, graph.GruCellOp) else {}
    first = 1 + states
    arrays = (x, *state, *weights)
    yield Case("usual", op, arrays, props, (first, first + 1, first + 2))


def forests(op: type[GraphOp], dtype: np.dtype) -> Iterator[Case]:
    """Two stumps: thresholds that are met exactly, NaN to either side."""
    x = drawn(dtype, 24, 2)
    i32 = np.int32
    arrays = (
        x, np.array([0, 0, 0, 1, 0, 0], i32), np.array([1.0, 0, 0, 0.0, 0, 0], dtype),
        np.array([1, 1, 2, 4, 4, 5], i32), np.array([2, 1, 2, 5, 4, 5], i32),
        np.array([True, False, False, False, False, False]),
        np.array([[0], [1], [2], [0], [10], [20]], dtype), np.array([0, 3], i32),
        np.array([0, 0], i32), np.array([0.5], dtype),
    )  # fmt: skip
    for comparison in ("le", "lt"):
        props = {"comparison": comparison, "depth": 1, "strategy": "walk"}
        yield Case(comparison, op, arrays, props, tuple(range(1, len(arrays))))


def texts(*steps: str) -> ArrayAttr[StringAttr]:
    """Strings as a property."""
    return ArrayAttr([StringAttr(step) for step in steps])


def csr(op: type[GraphOp], dtype: np.dtype) -> Iterator[Case]:
    """Columns in any order and twice, a row without elements, and places that lie outside."""
    i64 = np.int64
    data, indices = wild(dtype, 1, 7), np.array([[3, 0, 0, 5, -1, 2, 4]], np.int32)
    starts, ends = np.array([0, 3, 3, 5, -2], i64), np.array([3, 3, 5, 9, 1], i64)
    per_column, per_row = drawn(dtype, 5, calm=True), drawn(dtype, 5, 1, calm=True) + dtype.type(4)
    rows = (data, indices, starts, ends)
    if op is graph.CsrMatmulOp:
        wide, narrow = (drawn(dtype, 5, n, calm=True) for n in (3, 1))
        yield Case("plain", op, (*rows, wide), {"steps": texts()})
        yield Case("column", op, (*rows, narrow), {"steps": texts()}, (4,))
        steps = texts("mul x a0", "div s0 a1")
        yield Case("steps", op, (*rows, wide, per_column, per_row), {"steps": steps}, (4, 5))
        return
    if op is graph.CsrDenseOp:
        places = (data, np.array([[3, 0, 1, 5, -1, 2, 4]], np.int32), starts, ends)
        for start in (0.0, float("nan"), float("-inf")):
            yield Case(f"of {start}", op, places, {"columns": 7, "initial": start})
        return
    calm = (drawn(dtype, 1, 7, calm=True), indices, starts, ends)
    for kind, start in (("sum", 0.0), ("max", -100.0), ("min", 100.0)):
        props = {"kind": kind, "initial": start}
        yield Case(kind, op, calm, {**props, "steps": texts()})
    shared = {"kind": "sum", "initial": 0.0}
    mask = np.array([True, False, True, True, False])
    steps = texts("lt x a0", f"{element_type(dtype)}_of s0", "where a1 s1 a0")
    yield Case(
        "truths", op, (*calm, np.array([0.5], dtype), mask), {**shared, "steps": steps}, (5,)
    )


def nibbles(op: type[GraphOp], dtype: np.dtype) -> Iterator[Case]:
    """Two panels of columns, the last block and the last panel not whole, and any bytes."""
    packed = np.arange(2 * 5 * 64, dtype=np.uint32).reshape(2, 5, 64).astype(np.uint8)
    scales, zeros = (drawn(np.dtype(np.float32), 2, 3, 64, calm=True) for _ in range(2))
    props = {"block": 4, "columns": 70}
    for name, x in (("rows", wild(dtype, 3, 10)), ("leading", wild(dtype, 2, 1, 10))):
        yield Case(f"{name} centred", op, (x, packed, scales), props, (1, 2))
        yield Case(name, op, (x, packed, scales, zeros), props, (1, 2, 3))


def shapes(op: type[GraphOp], dtype: np.dtype) -> Iterator[Case]:
    """Ops that move elements: one case each."""
    x = drawn(dtype, 3, 4)
    rows, some = np.array([2, 0, 0, -1, 9], np.int64), np.array([[0, 9], [2, 3], [-5, 0]], np.int32)
    made: dict[type[GraphOp], tuple[tuple[np.ndarray, ...], dict[str, Any]]] = {
        graph.ConcatOp: ((x, x[:, :2].copy()), {"axis": 1}),
        graph.ExpandOp: ((x[:, :1].copy(),), {"shape": [2, 3, 4]}),
        graph.GatherOp: ((x, rows), {"axis": 0}),
        graph.GatherElementsOp: ((x, some), {"axis": 1}),
        graph.PadOp: ((x,), {"low": [1, 0], "high": [0, 2], "value": 1.0}),
        graph.ReshapeOp: ((x,), {"shape": [2, 6]}),
        graph.ScatterAddOp: ((x, some, drawn(dtype, 3, 2, 4)), {}),
        graph.SliceOp: ((x,), {"offsets": [2, 1], "sizes": [3, 2], "strides": [-1, 2]}),
        graph.TransposeOp: ((x,), {"permutation": [1, 0]}),
    }
    arrays, props = made[op]
    yield Case("one", op, arrays, props)


MAKERS: dict[type[GraphOp], Make] = {
    graph.CastOp: casts,
    graph.ClipOp: clips,
    graph.CompareOp: compares,
    graph.FmaOp: fused,
    graph.WhereOp: wheres,
    graph.ReduceOp: reductions,
    graph.ArgmaxOp: argmaxes,
    graph.CumSumOp: running_sums,
    graph.TopKOp: orders,
    graph.GlobalAveragePoolOp: global_pools,
    graph.GemmOp: gemms,
    graph.MatmulOp: products,
    graph.NibbleMatmulOp: nibbles,
    graph.BatchNormOp: batch_norms,
    graph.LrnOp: lrns,
    graph.AttentionKeyGradientOp: attention_gradients,
    graph.AttentionOp: attentions,
    graph.AttentionQueryGradientOp: attention_gradients,
    graph.ExpressionOp: expressions,
    graph.LayerNormOp: layer_norms,
    graph.SoftmaxOp: softmaxes,
    graph.ForestOp: forests,
    **dict.fromkeys((graph.CsrDenseOp, graph.CsrMatmulOp, graph.CsrReduceOp), csr),
    **dict.fromkeys((graph.ConvOp, graph.ConvTransposeOp), convolutions),
    **dict.fromkeys(
        (graph.AveragePoolOp, graph.LpPoolOp, graph.MaxPoolOp, graph.MaxPoolIndicesOp), windows
    ),
    **dict.fromkeys(
        (
            *(graph.LstmOp, graph.GruOp, graph.RnnOp),
            *(graph.LstmCellOp, graph.GruCellOp, graph.RnnCellOp),
        ),
        cells,
    ),
    **dict.fromkeys(
        (
            *(graph.ConcatOp, graph.ExpandOp, graph.GatherOp, graph.GatherElementsOp),
            *(graph.PadOp, graph.ReshapeOp, graph.ScatterAddOp, graph.SliceOp, graph.TransposeOp),
        ),
        shapes,
    ),
}


def ops() -> list[type[GraphOp]]:
    """Every op of the dialect."""
    return [op for op in graph.Graph.operations if issubclass(op, GraphOp)]


def takes(op: type[GraphOp], dtype: np.dtype) -> bool:
    """Whether the op's data may be of this type: what it takes last, but for indices and nodes."""
    known = op.ELEMENTS[-1] if op is graph.WhereOp else op.ELEMENTS[0]
    return element_type(dtype) in known


def cases(dtype: np.dtype) -> list[Case]:
    """All cases of one element type."""
    found: list[Case] = []
    for op in ops():
        if not takes(op, dtype):
            continue
        make = MAKERS.get(op)
        if make is None:
            make = unary if issubclass(op, UnaryOp) else binary
            assert issubclass(op, UnaryOp | BinaryOp), f"no cases of {op.name}"
        found += [
            Case(f"{op.name} {case.name}", op, case.arrays, case.props, case.constants)
            for case in make(op, dtype)
        ]
    return found


def sampled(dtype: np.dtype, share: int, of: int) -> list[Case]:
    """One of `of` parts of the cases of a type, which all have about the same size."""
    return [
        case for case in cases(dtype) if zlib.crc32(f"{case.name} {dtype}".encode()) % of == share
    ]


def admitted() -> list[np.dtype]:
    """The NumPy types of all element types, once each."""
    return sorted({numpy_dtype(t) for t in ALL.types}, key=DTYPES.index)
