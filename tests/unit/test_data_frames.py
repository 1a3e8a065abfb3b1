"""Data frames: columns by name, checked as scikit-learn checks them. No data frame library is needed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from irkit.errors import InvalidInputError
from irkit.frontends.sklearn import import_sklearn
from irkit.model_info import ModelInfo
from irkit.runtime.data_frames import fitted_columns, is_data_frame
from tests.conformance.interpreted import interpreted

X = np.random.default_rng(0).normal(size=(30, 3))
NAMES = ("age", "size", "kind")


class Frame:
    """What irkit asks of a data frame."""

    def __init__(self, **columns: Any) -> None:
        self._columns = columns
        self.columns = list(columns)

    def __getitem__(self, name: str) -> Any:
        return self._columns[name]

    def to_numpy(self) -> Any:
        raise AssertionError("columns are read one by one")


def frame(*names: str, x: Any = X) -> Frame:
    """The columns of x, which go by NAMES, in the order of `names`."""
    return Frame(**{n: x[:, NAMES.index(n)] for n in names})


def named(model: Any, x: Any = X) -> Any:
    """A model fitted on an array, with the names it would have from a data frame."""
    model.fit(x, x[:, 0])
    first = model.steps[0][1] if hasattr(model, "steps") else model
    first.feature_names_in_ = np.array(NAMES, object)
    return model


def refused(model: Any, given: Frame, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        interpreted(model).predict(given)


def apart() -> Any:
    parts = [("a", StandardScaler(), [0]), ("c", OneHotEncoder(handle_unknown="ignore"), [2])]
    return make_pipeline(ColumnTransformer(parts), LinearRegression())


def test_columns_in_order() -> None:
    model = named(make_pipeline(StandardScaler(), LinearRegression()))
    found = interpreted(model).predict(frame(*NAMES))
    np.testing.assert_array_equal(found, interpreted(model).predict(X))


def test_columns_that_do_not_fit() -> None:
    model = named(make_pipeline(StandardScaler(), LinearRegression()))
    refused(model, frame("age", "kind"), "lacks columns 'size'")
    refused(model, frame("size", "age", "kind"), "another order: expected 'age', 'size', 'kind'")
    refused(model, Frame(**frame(*NAMES)._columns, more=X[:, 0]), "has columns 'more'")


def test_a_column_transformer_picks_by_name() -> None:
    x = np.concatenate([X[:, :2], np.arange(30)[:, None] % 3], axis=1)
    model = named(apart(), x)
    info = import_sklearn(model).info
    assert (info.columns, info.by_name, info.unused) == (NAMES, True, ("size",))
    assert ModelInfo.from_json(info.to_json()) == info
    want = model.predict(x)
    program = interpreted(model)
    for given in (frame("kind", "size", "age", x=x), frame("kind", "age", x=x)):
        np.testing.assert_allclose(program.predict(given), want, rtol=1e-12)
    # What the model never looks at may be anything.
    strings = Frame(words=np.full(30, "a"), **frame("age", "kind", x=x)._columns, size=["x"] * 30)
    np.testing.assert_allclose(program.predict(strings), want, rtol=1e-12)
    whole = Frame(age=x[:, 0], kind=x[:, 2].astype(np.int64))
    np.testing.assert_allclose(program.predict(whole), want, rtol=1e-12)
    refused(model, frame("age", "size"), "lacks columns 'kind'")
    narrow = Frame(age=x[:, 0].astype(np.float32), kind=x[:, 2])
    np.testing.assert_allclose(program.predict(narrow), want, rtol=1e-5)


def test_types_of_columns() -> None:
    model = named(MinMaxScaler())
    program = interpreted(model)
    mixed = Frame(age=np.arange(30), size=np.arange(30) > 3, kind=X[:, 2].astype(np.float32))
    stacked = np.stack([np.asarray(mixed[n], np.float64) for n in NAMES], axis=1)
    want = stacked * model.scale_ + model.min_
    np.testing.assert_array_equal(program.transform(mixed), want)
    words = Frame(age=X[:, 0], size=np.full(30, "a"), kind=X[:, 2])
    with pytest.raises(InvalidInputError, match="column 'size': expected numbers, got dtype <U1"):
        program.transform(words)


def test_a_model_fitted_on_arrays_takes_columns_by_place() -> None:
    model = make_pipeline(StandardScaler(), LinearRegression()).fit(X, X[:, 0])
    found = interpreted(model).predict(Frame(b=X[:, 0], a=X[:, 1], c=X[:, 2]))
    np.testing.assert_array_equal(found, interpreted(model).predict(X))


def test_two_columns_of_one_name() -> None:
    twice = frame(*NAMES)
    twice.columns = ["age", "age", "size", "kind"]
    info = ModelInfo("regressor", ("x",), ("y",))
    assert is_data_frame(twice)
    assert not is_data_frame(X)
    with pytest.raises(InvalidInputError, match="several columns of one name"):
        fitted_columns(info, twice)


class Whole(Frame):
    """A frame that also gives all its columns at once, and says of which types they are."""

    @property
    def dtypes(self) -> list[Any]:
        return [c.dtype for c in self._columns.values()]

    def to_numpy(self) -> Any:
        return np.stack(list(self._columns.values()), axis=1)


class Counted(Whole):
    """Whose columns nobody may ask for one by one."""

    def __getitem__(self, name: str) -> Any:
        raise AssertionError("columns are read at once")


def info(**more: Any) -> ModelInfo:
    return ModelInfo("regressor", ("x",), ("y",), **({"columns": NAMES} | more))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("by_name", [True, False])
def test_a_frame_of_one_type_is_read_at_once(dtype: Any, by_name: bool) -> None:
    x = X.astype(dtype)
    columns = {n: x[:, k] for k, n in enumerate(NAMES)}
    for facts in (info(by_name=by_name), info(by_name=by_name, columns=None)):
        found = fitted_columns(facts, Counted(**columns))
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, fitted_columns(facts, Frame(**columns)))


@pytest.mark.parametrize(
    ("columns", "more"),
    [
        ({"size": X[:, 1], "age": X[:, 0], "kind": X[:, 2]}, {"by_name": True}),
        ({"age": X[:, 0], "size": X[:, 1].astype("f4"), "kind": X[:, 2]}, {}),
        ({"age": X[:, 0], "size": np.arange(30), "kind": X[:, 2]}, {}),
        ({"age": X[:, 0], "size": X[:, 1], "kind": X[:, 0] * np.nan}, {"unused": ("kind",)}),
        ({"age": X[:, 0], "size": X[:, 1], "kind": X[:, 2], "z": X[:, 0]}, {"by_name": True}),
    ],
)
def test_other_frames_are_read_column_by_column(columns: Any, more: Any) -> None:
    facts = info(**more)
    found = fitted_columns(facts, Whole(**columns))
    np.testing.assert_array_equal(found, fitted_columns(facts, Frame(**columns)))
    with pytest.raises(AssertionError, match="at once"):
        fitted_columns(facts, Counted(**columns))


def test_whole_frames_that_do_not_fit_are_refused_as_others() -> None:
    for columns, words in (
        ({"size": X[:, 1], "age": X[:, 0], "kind": X[:, 2]}, "in another order"),
        ({"age": X[:, 0], "size": X[:, 1]}, "lacks columns 'kind'"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            fitted_columns(info(), Whole(**columns))
