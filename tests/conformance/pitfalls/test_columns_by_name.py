# pyright: basic
"""Columns that are picked by name: of rows without names scikit-learn raises ValueError, as irkit does."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import irkit
from irkit.errors import InvalidInputError

FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)), columns=list("abc"))


def picking(columns, **options):
    return ColumnTransformer([("scaled", StandardScaler(), columns)], **options).fit(FRAME)


@pytest.mark.parametrize("columns", [["a"], ["a", "b"]], ids=str)
@pytest.mark.parametrize("remainder", ["drop", "passthrough"])
def test_rows_without_names_are_refused(columns, remainder):
    model = picking(columns, remainder=remainder)
    compiled = irkit.compile(model, target="cpu")
    np.testing.assert_array_equal(compiled.transform(FRAME), model.transform(FRAME))
    array = FRAME.to_numpy()
    for rows in (array, array.astype(np.float32), array[:1], array.tolist()):
        with pytest.raises(ValueError, match="only supported for dataframes"):
            model.transform(rows)
        for call in (compiled, compiled.transform):
            with pytest.raises(InvalidInputError, match=r"has no names of columns.*a data frame"):
                call(rows)


def test_a_pipeline(tmp_path):
    model = make_pipeline(picking(["c", "a"]), LinearRegression()).fit(FRAME, FRAME.b)
    irkit.compile(model, target="cpu").save(tmp_path / "m.irkit")
    loaded = irkit.load(tmp_path / "m.irkit")
    np.testing.assert_allclose(loaded.predict(FRAME), model.predict(FRAME))
    with pytest.raises(InvalidInputError, match="a data frame, got ndarray"):
        loaded.predict(FRAME.to_numpy())


@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
@pytest.mark.parametrize("columns", [[0, 2], slice(1, 3), [True, False, True]], ids=str)
def test_columns_by_place_are_those_of_an_array_too(columns):
    model = picking(columns)
    compiled = irkit.compile(model, target="cpu")
    array = FRAME.to_numpy()
    np.testing.assert_array_equal(compiled.transform(array), model.transform(array))
