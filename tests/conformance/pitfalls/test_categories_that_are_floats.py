"""Categories are compared as they are, and not as whole numbers."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import numpy as np
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from tests.conformance.interpreted import compare, interpreted


def test_halves() -> None:
    x = np.array([[0.5], [0.0], [-0.5], [1.0], [1.5], [0.25], [1e300], [5e-324]])
    one = OneHotEncoder(sparse_output=False, handle_unknown="ignore").fit(x)
    place = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1).fit(x)
    odd = np.concatenate([x, x + 0.125, np.nextafter(x, 2), [[-0.0]]])
    for model in (one, place):
        compare(interpreted(model), model, odd, exact=["transform"])
