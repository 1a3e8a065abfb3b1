# pyright: basic
"""Rows so far away that distances overflow: scikit-learn raises ValueError, and so does irkit."""

import numpy as np
import pytest
from sklearn.manifold import Isomap

import irkit
from irkit.errors import InvalidInputError


@pytest.mark.parametrize(("p", "size"), [(1, 1e160), (2, 1e300), (10, 1e100), (10, 1e300)])
def test_distances_that_overflow_are_refused(p, size):
    x = np.random.default_rng(0).normal(size=(60, 3))
    model = Isomap(n_neighbors=5, p=p).fit(x)
    compiled = irkit.compile(model, target="cpu")
    # Roundings of distances are large in components that are small.
    rows = x[:4].copy()
    np.testing.assert_allclose(compiled.transform(rows), model.transform(rows), atol=1e-12)
    rows[1] = size
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="too large for dtype"):
        model.transform(rows)
    with pytest.raises(
        InvalidInputError, match="row 1: NaN or infinity reaches the kernel of Isomap"
    ):
        compiled.transform(rows)
