"""Functions in vector registers: as exact as they say, and the C library's at every edge."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numba import njit

import irkit
from irkit.errors import UnsupportedError
from irkit.lower.task_to_numba.targets import TARGETS
from irkit.rkernels.approximations import APPROXIMATE
from irkit.runtime.intrinsics import cpu_approximations, cpu_bits, cuda_approximations
from irkit.runtime.intrinsics.cpu_approximations import ULP
from irkit.runtime.intrinsics.cpu_trigonometry64 import two_over_pi_words

# A prime: 2^32 / STEP patterns of bits, over all exponents and both signs.
STEP = 4099
EDGES = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    -2.0,
    3.0,
    math.inf,
    -math.inf,
    math.nan,
    1e10,
    -1e10,
)
_ERF = np.frompyfunc(math.erf, 1, 1)
EXACT = {
    "acos": np.arccos,
    "asin": np.arcsin,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "cos": np.cos,
    "cosh": np.cosh,
    "erf": lambda x: _ERF(x).astype(x.dtype),
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log10": np.log10,
    "log2": np.log2,
    "log1p": np.log1p,
    "pow": np.power,
    "sin": np.sin,
    "sinh": np.sinh,
    "tanh": np.tanh,
}
# Of two operands.
PAIRS = ("pow", "atan2")
# The long double of x86, which judges float64.
EXTENDED = np.finfo(np.longdouble).nmant >= 63


def looped(name: str) -> Any:
    function = getattr(cpu_approximations, name)
    if name.startswith(PAIRS):

        @njit(error_model="numpy")
        def powers(x: Any, y: Any, out: Any) -> None:
            for i in range(x.size):
                out[i] = function(x[i], y[i])

        return powers

    @njit(error_model="numpy")
    def all_of(x: Any, out: Any) -> None:
        for i in range(x.size):
            out[i] = function(x[i])

    return all_of


def compared(name: str, *inputs: Any) -> float:
    """The largest error in units of the last place; what is not finite must be equal, and so must signs."""
    got = np.empty_like(inputs[0])
    looped(name)(*inputs, got)
    return error_of(name, got, *inputs)


def error_of(name: str, got: Any, *inputs: Any) -> float:
    """The largest error of `got`."""
    kind = inputs[0].dtype
    wide = np.float64 if kind == np.float32 else np.longdouble
    with np.errstate(all="ignore"):
        exact = EXACT[name.partition("_")[0]](*(x.astype(wide) for x in inputs))
        rounded = exact.astype(kind)
        finite = np.isfinite(rounded)
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        assert same[~finite].all(), [x[~finite & ~same][:3] for x in inputs]
        signed = ~np.isnan(rounded) & (np.signbit(got) != np.signbit(rounded))
        assert not signed.any(), [x[signed][:3] for x in inputs]
        # A unit of the exact value's binade: that of the rounded one may be twice as large.
        info = np.finfo(kind)
        binade = np.floor(np.log2(np.maximum(np.abs(exact), wide(info.smallest_subnormal))))
        unit = np.exp2(np.maximum(binade, wide(info.minexp)) - info.nmant)
        error = np.abs(got.astype(wide) - exact) / unit
    return float(error[finite].max())


def patterns() -> Any:
    bits = np.arange(0, 2**32, STEP, dtype=np.uint64).astype(np.uint32)
    return np.concatenate([bits.view(np.float32), np.array(EDGES, np.float32)])


@pytest.mark.parametrize("name", [n for n in ULP if n.endswith("32") and not n.startswith(PAIRS)])
def test_float32_over_all_exponents(name: str) -> None:
    assert compared(name, patterns()) <= ULP[name]


@pytest.mark.parametrize("features", [{}, {"avx512f": True}])
def test_exponentials_of_any_processor(features: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_bits.llvm, "get_host_cpu_features", lambda: features)
    # As it is compiled anew, for those features.
    function = njit(cpu_approximations.exp_float32.py_func, error_model="numpy")

    @njit(error_model="numpy")
    def all_of(x: Any, out: Any) -> None:
        for i in range(x.size):
            out[i] = function(x[i])

    x = np.concatenate([patterns(), np.linspace(-105, 90, 1_000_003, dtype=np.float32)])
    got = np.empty_like(x)
    all_of(x, got)
    assert error_of("exp_float32", got, x) <= ULP["exp_float32"]


@pytest.mark.parametrize("name", ["tanh_float32", "erf_float32"])
def test_what_ends_at_one_is_never_above(name: str) -> None:
    x = np.linspace(-12, 12, 2_000_003, dtype=np.float32)
    got = np.empty_like(x)
    looped(name)(x, got)
    assert np.abs(got).max() == 1
    assert (got == -got[::-1]).all()
    assert error_of(name, got[::7], x[::7]) <= ULP[name]


@pytest.mark.skipif(not EXTENDED, reason="needs a long double of more than 53 bits")
@pytest.mark.parametrize("name", [n for n in ULP if n.endswith("64") and not n.startswith(PAIRS)])
def test_float64_over_all_exponents(name: str) -> None:
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2**64, 60_000, dtype=np.uint64)
    ordinary = [rng.standard_normal(30_000) * scale for scale in (1e-3, 1.0, 30.0, 400.0)]
    x = np.concatenate([bits.view(np.float64), *ordinary, np.array([*EDGES, 5e-324, -5e-324])])
    assert compared(name, x) <= ULP[name]


@pytest.mark.skipif(not EXTENDED, reason="needs a long double of more than 53 bits")
def test_angles_of_points() -> None:
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2**64, (2, 60_000), dtype=np.uint64).view(np.float64)
    near = rng.standard_normal((2, 60_000))
    grid = np.stack([a.ravel() for a in np.meshgrid([*EDGES, 5e-324, -5e-324], EDGES)])
    y, x = (np.ascontiguousarray(a) for a in np.concatenate([bits, near, grid], axis=1))
    assert compared("atan2_float64", y, x) <= ULP["atan2_float64"]


def test_angles_of_points_of_float32() -> None:
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 2**32, (2, 300_000), dtype=np.uint32).view(np.float32)
    near = rng.standard_normal((2, 600_000)).astype(np.float32)
    grid = np.stack([a.ravel() for a in np.meshgrid([*EDGES, 1e-45, -1e-45], EDGES)])
    parts = [bits, near, grid.astype(np.float32)]
    y, x = (np.ascontiguousarray(a) for a in np.concatenate(parts, axis=1))
    assert compared("atan2_float32", y, x) <= ULP["atan2_float32"]


# The float64 that is nearest to a multiple of pi/2, as J.-M. Muller lists it, and others near one.
NEAREST = (6381956970095103.0 * 2.0**797, 5319372648326541.0 * 2.0**155, math.pi, 1e22, 2.0**1023)


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_multiples_of_half_pi(name: str) -> None:
    """Against the same function of exact fractions: of Taylor's series after an exact reduction."""
    x = np.array([*NEAREST, *(n * math.pi / 2 for n in range(1, 400, 7))])
    got = np.empty_like(x)
    looped(f"{name}_float64")(x, got)
    exact = [_exact(name, v) for v in x.tolist()]
    rounded = np.array([float(e) for e in exact])
    error = np.array(
        [float(abs(Fraction(g) - e)) for g, e in zip(got.tolist(), exact, strict=True)]
    )
    assert (error <= np.spacing(np.abs(rounded)) + 2.0**-100).all()


def _exact(name: str, x: float) -> Fraction:
    """The sine or cosine of x to 200 bits and more."""
    bits = "".join(f"{word:064b}" for word in two_over_pi_words())
    turn = 4 / Fraction(int(bits, 2), 1 << len(bits) - 128)
    angle = Fraction(x) % turn + (turn / 4 if name == "cos" else 0)
    angle -= round(angle / turn) * turn
    term = total = angle
    for n in range(1, 60):
        term *= -angle * angle / ((2 * n) * (2 * n + 1))
        term = Fraction(round(term * 2**400), 2**400)
        total += term
    return total


def test_powers() -> None:
    rng = np.random.default_rng(2)
    any_x, any_y = rng.integers(0, 2**32, (2, 200_000), dtype=np.uint64).astype(np.uint32)
    near_one = (1 + rng.standard_normal(100_000) * 1e-3).astype(np.float32)
    large = (rng.standard_normal(100_000) * 1e4).astype(np.float32)
    base = (rng.standard_normal(100_000) * 10).astype(np.float32)
    whole = rng.integers(-9, 10, 100_000).astype(np.float32)
    edges = np.array([*EDGES, 1e-45, -1e-45, 3e38, 2.0**24, 2.0**25 + 4, -3.0], np.float32)
    grid_x, grid_y = (a.ravel() for a in np.meshgrid(edges, edges))
    x = np.concatenate([any_x.view(np.float32), near_one, base, grid_x])
    y = np.concatenate([any_y.view(np.float32), large, whole, grid_y])
    assert compared("pow_float32", x, y) <= ULP["pow_float32"]


def test_every_name_is_known_everywhere() -> None:
    names = set(APPROXIMATE.values())
    assert names == set(ULP)
    assert all(hasattr(cuda_approximations, name) for name in names)
    for target in ("cpu", "cuda"):
        header = _header(target)
        assert all(f"{name}," in header for name in names), target


def _header(target: Any) -> str:
    class Empty:
        device, kernels, appends, veus = "test", (), (), 1

    printed: Any = TARGETS[target]
    return printed.header(Empty())


def network(op: str, **attributes: Any) -> Any:
    onnx = pytest.importorskip("onnx")
    ports = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["N", 33]) for n in "xy"]
    node = onnx.helper.make_node(op, ["x"], ["y"], **attributes)
    graph = onnx.helper.make_graph([node], "g", ports[:1], ports[1:])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)])


@pytest.mark.parametrize(
    ("op", "inside"),
    [("Tanh", "tanh_float32"), ("Erf", "erf_float32"), ("Sigmoid", "exp_float32")],
)
def test_networks_may_approximate(op: str, inside: str) -> None:
    program = irkit.compile(network(op), "cpu")
    strict = irkit.compile(network(op), "cpu", fastmath=())
    assert f"= {inside}(" in program.source
    assert f"= {inside}(" not in strict.source
    x = np.linspace(-9, 9, 7 * 33, dtype=np.float32).reshape(7, 33)
    np.testing.assert_allclose(program(x), strict(x), rtol=1e-6, atol=1e-30)


def test_scikit_learns_models_may_as_numpy_does_and_lightgbms_may_not() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    lightgbm = pytest.importorskip("lightgbm")
    x = np.random.default_rng(0).standard_normal((50, 3))
    model = linear_model.LogisticRegression().fit(x, x[:, 0] > 0)
    assert "= exp_float64(" in irkit.compile(model, "cpu").source
    assert "= exp_float64(" not in irkit.compile(model, "cpu", fastmath=()).source
    model = lightgbm.LGBMClassifier(n_estimators=2, verbose=-1).fit(x, x[:, 0] > 0)
    assert "= exp_float64(" not in irkit.compile(model, "cpu").source
    assert "= exp_float64(" in irkit.compile(model, "cpu", fastmath={"afn"}).source


@pytest.mark.parametrize("flags", [{"fast"}, "afn", ["afn", "nnan"], 5, True, [1, "afn"]])
def test_unknown_flags_are_named(flags: Any) -> None:
    with pytest.raises(UnsupportedError, match="expected a collection of flags among afn"):
        irkit.compile(network("Tanh"), "cpu", fastmath=flags)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"batch": "x"}, "batch='x': expected a number of rows"),
        ({"batch": True}, "batch=True: expected a number of rows"),
        ({"device": 5}, "device=5: expected a name or a vDevice"),
        ({"state": 3}, "state=3: expected a mapping"),
        ({"shapes": 3}, "shapes=3: expected a mapping"),
        ({"constants": "x"}, "constants='x': expected a mapping"),
        ({"initial_state": 4}, "initial_state=4: expected a mapping"),
    ],
)
def test_arguments_of_another_kind_are_named(given: Any, words: str) -> None:
    with pytest.raises(UnsupportedError, match=words):
        irkit.compile(network("Tanh"), "cpu", **given)
