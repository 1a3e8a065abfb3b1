"""Polynomials from the second degree on."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import pytest
from sklearn.preprocessing import PolynomialFeatures

from tests.conformance.interpreted import compare, interpreted
from tests.conformance.sklearn_models import data


@pytest.mark.parametrize("degree", [(2, 3), (0, 2), (3, 3), 3])
@pytest.mark.parametrize("interaction", [True, False])
def test_degrees(degree: object, interaction: bool) -> None:
    x = data("iris")[0]
    model = PolynomialFeatures(degree, interaction_only=interaction).fit(x)
    compare(interpreted(model), model, x, exact=["transform"])
