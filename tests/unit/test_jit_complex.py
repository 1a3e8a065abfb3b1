"""Functions of complex arrays beside NumPy: bits of arithmetic, special values, views, loops, refusals."""

from __future__ import annotations

import random

import numpy as np
import pytest

import irkit
from irkit.errors import UnsupportedError
from tests.unit.jitted import check, compare, interpreted

RNG = np.random.default_rng(0)
TABLE = RNG.standard_normal(5) + 1j * RNG.standard_normal(5)


def numbers(*shape, dtype=np.complex128, wide=0.0):
    made = RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)
    return (made * 10 ** RNG.uniform(-wide, wide, shape)).astype(dtype)


def fuses():
    """Whether NumPy's products have the multiply-add of this processor."""
    x = np.full(8, complex(1 + 2.0**-30, 1 + 2.0**-31))
    return bool((x * x).real[0] != x.real[0] * x.real[0] - x.imag[0] * x.imag[0])


EDGES = [0.0, -0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan, 1e-310, 1e300, -1e300, 3e-200]
EDGE = np.array([complex(a, b) for a in EDGES for b in EDGES])
EXACT = ("negative", "conjugate", "rint", "reciprocal", "isnan", "isinf", "isfinite", "logical_not")
FUSED = ("square", "absolute")
FUNCTIONS = ("exp", "log", "sqrt", "sin", "cos", "sinh", "cosh")


def applied(ufunc):
    def function(z):
        return ufunc(z)

    return function


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", [*EXACT, *FUSED])
def test_functions_that_have_numpys_bits(name, dtype):
    ufunc = getattr(np, name)
    with np.errstate(all="ignore"):
        arrays = (EDGE.astype(dtype), numbers(300, dtype=dtype, wide=15.0), numbers(7, dtype=dtype))
        for z in arrays:
            tolerance = 0.0 if name in EXACT or fuses() else 4 * float(np.finfo(dtype).eps)
            check(applied(ufunc), z, tolerance=tolerance)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_within_a_few_units_of_the_larger_part(name, dtype):
    ufunc, z = getattr(np, name), numbers(2000, dtype=dtype)
    z = np.concatenate([z, z[:50].real + 0j, 1j * z[:50].real, z / abs(z)]).astype(dtype)
    want, got = ufunc(z), interpreted(applied(ufunc))(z)
    away = np.maximum(abs(want.real - got.real), abs(want.imag - got.imag))
    size = np.maximum(abs(want.real), abs(want.imag))
    assert got.dtype == want.dtype
    assert (away <= 4 * np.finfo(dtype).eps * size).all()


def test_roots_and_logarithms_at_the_edges():
    for name in ("sqrt", "log"):
        with np.errstate(all="ignore"):
            want = getattr(np, name)(EDGE)
        got = interpreted(applied(getattr(np, name)))(EDGE)
        np.testing.assert_allclose(got.real, want.real, rtol=1e-15)
        np.testing.assert_allclose(got.imag, want.imag, rtol=1e-15)
        zeros = (want.imag == 0) & (got.imag == 0)
        np.testing.assert_array_equal(np.signbit(got.imag[zeros]), np.signbit(want.imag[zeros]))


def pairwise(x, y):
    return x + y, x - y, x / y, x == y, x != y, x < y, x <= y, x > y, x >= y


def products(x, y):
    return x * y, x * 2, 1j * x, x**2, np.float32(3) * x


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_arithmetic_has_numpys_bits(dtype):
    with np.errstate(all="ignore"):
        x, y = (v.astype(dtype) for v in np.broadcast_arrays(EDGE[:, None], EDGE[None, :]))
        check(pairwise, x, y)
        check(pairwise, numbers(500, dtype=dtype, wide=12.0), numbers(500, dtype=dtype, wide=12.0))
        exact = 0.0 if fuses() else 4 * float(np.finfo(dtype).eps)
        for x, y in ((numbers(998, dtype=dtype), numbers(998, dtype=dtype)),):
            check(products, x, y, tolerance=exact)
            check(products, x[::2], y[1::2], tolerance=exact)


def of_numbers(z):
    a, b = z[0], z[1]
    return a * b, a / b, a**2, a**5, a**-2, a.real * b.imag, abs(a), a.conjugate(), z[2] * 2j, -a


def powers(z):
    return z**0, z**1, z**3, z**4, z**7, z**-1, z**-3


def test_numbers_and_powers():
    check(of_numbers, numbers(3), tolerance=1e-15)
    check(powers, numbers(40), tolerance=1e-13)


def parts(z, w):
    z[1:] += w[:-1]
    w.real[::2] = 3
    w.imag *= 2
    z.real = w.imag
    return z, z.T, z.real, w.imag[::-1], z[2], z.conj(), np.angle(z), np.real(w), np.imag(z)


def moved(z, x):
    a = np.concatenate([z, x, z[::-1]])
    b = np.where(x > 0, z, x)
    c = np.zeros((2, len(z)), complex)
    c[0], c[1, 1:] = z, x[1:]
    d = np.array([z[1], 2.0, 1j])
    e = z[[2, 0, 0]]
    c[:, [1, 2]] = 7j
    c[c.real > 1] *= 2
    return a, b, c, d, e, np.roll(z, 2), np.pad(z, 1), np.round(z, 1), z.astype(np.complex64), c.T


def reduced(z):
    return (
        z.sum(), z.mean(), z.sum(axis=0), np.var(z), np.std(z, axis=1), z.any(), z.all(),
        np.count_nonzero(z), np.trace(z),
    )  # fmt: skip


def multiplied(a, b, v):
    return (
        a @ b,
        a @ v,
        np.dot(a, b),
        np.vdot(v, v),
        np.inner(v, v),
        np.outer(v, v),
        np.vecdot(v, v),
    )


def with_out(x, y, z):
    np.add(x, y, out=z)
    np.multiply(z, x, out=z)
    np.multiply(z, 2j, out=z, where=x > 0)
    return np.add(x, y, dtype=complex), x + 1j * y, complex(1, 2) * x


def captured(z):
    return z + TABLE, TABLE[1] * z[0]


def test_views_parts_and_movement():
    for z, w in (
        (numbers(6), numbers(6)),
        (numbers(6, 4), np.asfortranarray(numbers(6, 4))),
        (numbers(12, 4)[::2], numbers(6, 8)[::-1, ::2]),
        (numbers(6, dtype=np.complex64), numbers(6, dtype=np.complex64)),
    ):
        check(parts, z, w, tolerance=1e-6 if z.dtype == np.complex64 else 0.0)
    check(moved, numbers(5), RNG.standard_normal(5))
    check(captured, numbers(5), tolerance=1e-15)


def test_sums_and_products():
    check(reduced, numbers(6, 5), tolerance=1e-14)
    check(multiplied, numbers(4, 4), numbers(4, 4), numbers(4), tolerance=1e-14)
    check(with_out, RNG.standard_normal(5), RNG.standard_normal(5), numbers(5), tolerance=1e-15)


def test_an_argument_beside_its_own_parts():
    def shared(z, re, im):
        z += 1
        re *= 2
        im[1:] = re[:-1]
        return z * 2

    for jit in (interpreted, irkit.jit(target="cpu")):
        theirs, ours = numbers(7), None
        ours = theirs.copy()
        want = shared(theirs, theirs.real, theirs.imag)
        got = jit(shared)(ours, ours.real, ours.imag)
        compare(got, want, 0.0, "result")
        compare(ours, theirs, 0.0, "argument")


def test_what_is_returned_is_the_callers():
    def same(z, x):
        return z, z[1:], z.T, z.real

    z = numbers(4, 3)
    twin = interpreted(same)
    found = twin(z, z)
    assert found[0] is z
    for view in found[1:]:
        assert np.shares_memory(view, z)
    # Pairs of floats in the place of complex numbers are another pattern.
    floats = RNG.standard_normal((4, 3, 2))
    assert twin(floats, floats)[0] is floats


def escapes(c, limit, rounds):
    z, n = np.zeros_like(c), np.zeros(c.shape, np.int64)
    for k in range(rounds):
        inside = np.abs(z) < limit
        n[inside] = k
        z[inside] = z[inside] ** 2 + c[inside]
    return z, n


def split_steps(psi, kick, turn):
    for _ in range(9):
        psi *= kick
        psi[1:-1] += turn * (psi[2:] - 2 * psi[1:-1] + psi[:-2])
        psi[0], psi[-1] = psi[1], psi[-2].conjugate()
    return (psi.real**2 + psi.imag**2).sum()


def handed_on(z):
    a, b = z.copy(), z * 0
    for k in range(11):
        a, b = b + k * z, a * 0.5j
        a[k % 3] = b[k % 4]
    return a, b


@pytest.mark.parametrize("jit", [interpreted, irkit.jit(target="cpu")], ids=["interpreted", "cpu"])
def test_loops(jit):
    exact = 0.0 if fuses() else 1e-9
    x, y = np.linspace(-2, 0.5, 31), np.linspace(-1, 1, 23)
    twin = check(escapes, x + 1j * y[:, None], 2.0, 40, tolerance=exact, jit=jit)
    assert "loop kept" in twin.explain()
    args = numbers(12) / 4, np.exp(1j * np.arange(12.0)), np.array(0.1 + 0.2j)
    check(split_steps, *args, tolerance=1e-13, jit=jit)
    check(handed_on, numbers(5), tolerance=1e-15, jit=jit)


# No views that NumPy walks backwards: its products and magnitudes of those have other last places.
STEPS = [
    "a = a + b", "a = b - a", "a = a * b", "a = b / (a * 0.01 + 3)", "b[1:] = a[:-1]", "b += x",
    "a.real = b.imag", "b.imag[::2] -= x[::2]", "a = np.where(x > 0.3, a, b)", "a = np.roll(np.conj(b), 2)",
    "b[a.real > 0] = 2j", "b = a.copy()", "a, b = b, a", "a[::2] *= 1j", "x = np.abs(a)", "x = b.real + x",
    "b = x + 0.5j * x", "a = a**2 * 0.1", "a[2] = b[1] * b[3]", "b = np.concatenate([a[2:], b[:2]])",
    "b[[0, 3]] = a[[1, 1]]", "a = a / (np.abs(a) + 1)",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed):
    draw = random.Random(seed)
    steps = [draw.choice(STEPS) for _ in range(draw.randint(3, 9))]
    lines = [f"    {s}" for s in steps]
    if draw.random() < 0.4:
        lines = [f"    for k in range({draw.choice((3, 8))}):", *(f"    {x}" for x in lines)]
    text = "\n".join(["def f(a, b, x):", *lines, "    return a, b, x"])
    scope = {"np": np}
    exec(compile(text, f"<{seed}>", "exec"), scope)
    kind = draw.choice((np.complex64, np.complex128))
    rng = np.random.default_rng(seed)

    def drawn():
        z = (rng.standard_normal(6) + 1j * rng.standard_normal(6)).astype(kind)
        return draw.choice((z, np.repeat(z, 2)[::2]))

    x = rng.standard_normal(6).astype(kind(0).real.dtype)
    exact = 0.0 if fuses() else 1e-4
    with np.errstate(all="ignore"):
        check(scope["f"], drawn(), drawn(), x, tolerance=exact)


def test_empty_arrays_and_arrays_of_no_dimensions():
    def both(z, w):
        w *= 2
        return z * 2, z.sum(), w + 1, z.real, w.imag

    check(both, np.zeros((0, 3), complex), np.array(1 + 2j))


def largest(z):
    return z.max()


def cubic_root(z):
    return z ** (1 / 3)


def to_an_unknown_power(z):
    return z ** z[0].real


def tangent(z):
    return np.tan(z)


def ordered(z):
    return np.sort(z)


def product_of_all(z):
    return np.multiply.reduce(z)


def rows_of(z):
    return np.einsum("i,i->", z, z)


def halves(z):
    return z.astype(np.clongdouble)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (largest, "ndarray.max of complex numbers"),
        (cubic_root, "complex numbers to a power that is not a known whole number"),
        (to_an_unknown_power, "complex numbers to a power that is not a known whole number"),
        (tangent, "np.tan of complex numbers"),
        (ordered, "numpy.sort of complex numbers"),
        (product_of_all, "complex numbers"),
        (rows_of, "numpy.einsum of complex numbers"),
        (halves, "arrays of dtype complex256"),
    ],
)
def test_what_is_not_done_is_named(function, words):
    z = numbers(4)
    kept = z.copy()
    with pytest.raises(UnsupportedError) as found:
        interpreted(function)(z)
    message = str(found.value)
    line = function.__code__.co_firstlineno + 1
    assert f"{__file__}:{line}" in message
    assert words in message, message
    np.testing.assert_array_equal(z, kept)


def written_in_place(z):
    np.put(z, [0, 3], [1j, 2])
    return z + 1


def transformed_in_a_loop(z):
    for n in range(30):
        z = np.fft.ifft(np.fft.fft(z) * np.exp(-0.01 * n))
    return z


def rows_by_a_loop(z):
    out = np.zeros((40, 4), np.complex64)
    for n in range(40):
        out[n] = np.fft.fft(z[n % 6, ::2]) * n
    return out


@pytest.mark.parametrize(
    "function",
    [
        lambda z: np.fft.fft(z),
        lambda z: np.abs(np.fft.rfft(z.real * 2, axis=0)) ** 2,
        lambda z: (np.fft.fft2(z)[::2], z * 2),
        lambda z: np.fft.fft(z.astype(np.complex64)[:, ::2].T),
        lambda z: np.linalg.solve(z[:, :6], z[:, 6]),
        lambda z: np.linalg.det(z[:, :6]),
        lambda z: np.convolve(z[0].real, np.exp(1j * z[1].imag)),
        written_in_place,
        transformed_in_a_loop,
        rows_by_a_loop,
    ],
)
def test_tasks_of_the_host_take_and_return_complex_numbers(function):
    z = numbers(48).reshape(6, 8)
    check(function, z, tolerance=1e-5, jit=irkit.jit(target="cpu"))


def test_complex_arrays_that_overlap_are_not_written_by_a_task():
    from irkit.annotations import ArrayType

    def moved(source, out):
        out[...] = source

    known = irkit.annotate(
        moved, writes=["out"], result=lambda source, out: ArrayType((), out.dtype)
    )
    function = irkit.jit(target="cpu")(lambda z: known(z[:4], z[2:6]))
    with pytest.raises(UnsupportedError, match="overlaps another"):
        function(numbers(8))
