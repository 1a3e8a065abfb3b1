"""Products that read one large matrix, in one pass over it."""

# pyright: basic

from __future__ import annotations

import numpy as np
import pytest

import irkit

RNG = np.random.default_rng(3)
CASES = {
    "chained": (lambda a, x, r: (a @ x) @ a, 1),
    "kept": (lambda a, x, r: ((a @ x) @ a, a @ x, (a @ x).sum()), 1),
    "apart": (lambda a, x, r: (r @ a, a @ x), 1),
    "transposed": (lambda a, x, r: (a.T @ r, a @ x * 2), 1),
    "transposed and chained": (lambda a, x, r: a.T @ (a @ x), 1),
    "read between": (lambda a, x, r: (a @ x + 1, r @ a), 1),
    "summed between": (lambda a, x, r: ((r @ a) * 2 + x, (a @ x).sum() - r), 1),
    "needed between": (lambda a, x, r: ((z := a @ x), (r + z.sum()) @ a), 0),
    "another shape kept": (lambda a, x, r: ((z := (a @ x).reshape(1, -1)) @ a, z + 1, z.sum()), 1),
    "of the whole": (lambda a, x, r: ((a @ x) / np.linalg.norm(a @ x)) @ a, 0),
    "the other way": (lambda a, x, r: a @ (r @ a), 0),
}


@pytest.mark.parametrize("name", CASES)
def test_products_of_one_matrix(name):
    function, loops = CASES[name]
    a, x, r = RNG.random((1103, 2000)), RNG.random(2000), RNG.random(1103)
    f = irkit.jit(target="cpu")(function)
    got, want = f(a, x, r), function(a, x, r)
    assert f.ir("graph").count("scf.for") == loops
    several = got if isinstance(got, tuple) else (got,)
    for one, wanted in zip(several, want if isinstance(want, tuple) else (want,), strict=True):
        np.testing.assert_allclose(one, wanted, 1e-12)
