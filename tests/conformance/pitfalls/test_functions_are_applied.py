"""A FunctionTransformer does what its function does, or is refused."""

# pyright: basic, reportAttributeAccessIssue=false, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from irkit.errors import UnsupportedError
from irkit.frontends import import_model
from tests.conformance.interpreted import compare, interpreted
from tests.conformance.sklearn_models import data


def test_log1p() -> None:
    x, y = data("wine")
    model = make_pipeline(FunctionTransformer(np.log1p), Ridge()).fit(x, y)
    compare(interpreted(model), model, x, rtol=1e-12, atol=1e-12)


def test_a_function_of_the_users_own_is_refused() -> None:
    model = FunctionTransformer(lambda x: x + 1).fit(data("wine")[0])
    with pytest.raises(UnsupportedError, match="parameter func=<function"):
        import_model(model, "float64")
