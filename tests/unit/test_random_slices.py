"""Random loops over slices that grow, shrink and move, held against NumPy."""

# pyright: basic
from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest

from irkit.errors import UnsupportedError
from tests.unit.jitted import interpreted

SLICES = [
    ("{0}:i", ":i-{0}"),
    (":i+{0}", ":i+{0}"),
    ("i+{0}:", "i:n-{0}"),
    (":n-i-{0}", "{0}:n-i"),
    ("n-i-{0}:", "n-i-{0}:"),
    ("i-1:", "i-1:"),
]
"""Pairs that are of one length in most rounds."""
STATEMENTS = [
    "x[S] += 0.5*y[T]",
    "x[S] = np.where(y[S] > 0.5, x[S], y[S])",
    "x[i] = x[S].sum()*0.1 + y[T].sum()",
    "y[i] = 0.1*(a[i, S] @ a[S, i])",
    "a[S, U] *= 0.5",
    "a[S, U] -= 0.1*np.outer(x[S], y[U])",
    "a[S, i] = x[S]",
    "y[S] = a[i, S]",
    "x[S] = y[U]",
    "x[S] -= 0.1*(a[S, U] @ y[U])",
    "t = x[S]*2; y[T] = t",
    "a[:, S] += 0.01*x[:, None]",
    "z = a[S, U].sum(axis=1); x[S] = 0.1*z",
    "x[S][...] = 0.25",
    "v = a[S].T; y[0] += v[i].sum()",
    "y[i] += x[S].max()",
    "y[i] = y[S].mean()",
    "x, y = y, x",
    "a[S, S] = a[S, S].T.copy()",
    "a[i, S], a[S, i] = a[S, i].copy(), a[i, S].copy()",
    "q = x[S].copy(); x[S] = q*q.shape[0]/n",
]


def statement(r):
    own, alike = (text.format(r.choice([0, 0, 1, 2])) for text in r.choice(SLICES))
    other = r.choice(SLICES)[0].format(r.choice([0, 1]))
    slices = {"S": own, "T": alike, "U": other}
    return re.sub(r"(?<!\.)\b[STU]\b", lambda m: slices[m[0]], r.choice(STATEMENTS))


def program(seed):
    """A function of two vectors and a matrix, and its text."""
    r = random.Random(seed)
    n, low = r.randrange(9, 13), r.choice([0, 0, 1, 1, 2])
    rounds = f"range({low}, {r.choice([n, n - 1, n - 2])})"
    rounds = rounds if r.random() < 0.7 else f"range({n} - 1, {low} - 1, -1)"
    body = "\n        ".join(statement(r) for _ in range(r.choice([1, 2, 3])))
    text = f"def f(x, y, a, n={n}):\n    for i in {rounds}:\n        {body}\n    return x, y, a\n"
    scope = {"np": np}
    exec(compile(text, f"<seed {seed}>", "exec"), scope)
    g = np.random.default_rng(seed)
    return scope["f"], text, (g.random(n), g.random(n), g.random((n, n)))


def outcome(function, arrays) -> Any:
    """What it returns and leaves in its arguments, or the error of what has no meaning."""
    with np.errstate(all="ignore"):
        try:
            return [*function(*arrays), *arrays]
        except (ValueError, IndexError) as error:
            return error


@pytest.mark.filterwarnings("ignore:Mean of empty slice")
@pytest.mark.parametrize("begin", range(0, 80, 20))
def test_random_loops_over_slices(begin):
    kept = 0
    for seed in range(begin, begin + 20):
        function, text, arrays = program(seed)
        want = outcome(function, [a.copy() for a in arrays])
        traced = interpreted(function)
        try:
            got = outcome(traced, [a.copy() for a in arrays])
        except UnsupportedError:
            continue
        assert isinstance(got, Exception) == isinstance(want, Exception), text
        if not isinstance(want, Exception):
            kept += traced.ir().count("scf.for")
            for g, w in zip(got, want, strict=True):
                np.testing.assert_allclose(g, w, 1e-9, 1e-9, err_msg=text)
    assert kept > 5
