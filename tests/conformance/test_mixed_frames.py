"""ColumnTransformers and FeatureUnions over data frames of many types: what random frames have found."""

# pyright: basic, reportArgumentType=false, reportCallIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import (
    cluster,
    cross_decomposition,
    decomposition,
    ensemble,
    impute,
    kernel_approximation,
    linear_model,
    mixture,
    naive_bayes,
    preprocessing,
)
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectKBest
from sklearn.pipeline import FeatureUnion, make_pipeline

import irkit
from irkit.errors import InvalidInputError, UnsupportedError
from irkit.frontends.sklearn import import_sklearn
from irkit.model_info import ModelInfo
from tests.conformance.interpreted import compare, interpreted, same

pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(0)
ROWS = 40
X = RNG.normal(size=(ROWS, 4))
GAPS = np.where(RNG.random((ROWS, 4)) < 0.4, np.nan, X)
Y = (X[:, 0] > 0).astype(int)
BOTH = np.stack([X[:, 0], X[:, 1]], axis=1)
FRAME = pd.DataFrame(X, columns=list("abcd"))

BEHIND_MARKS = [
    preprocessing.StandardScaler(),
    preprocessing.MinMaxScaler(),
    preprocessing.Normalizer(),
    preprocessing.Binarizer(),
    preprocessing.PowerTransformer(),
    preprocessing.QuantileTransformer(n_quantiles=5),
    preprocessing.PolynomialFeatures(),
    preprocessing.SplineTransformer(n_knots=3),
    preprocessing.OneHotEncoder(sparse_output=False),
    preprocessing.FunctionTransformer(),
    impute.SimpleImputer(),
    decomposition.FastICA(random_state=0),
    decomposition.NMF(2, max_iter=20, init="nndsvda"),
    kernel_approximation.Nystroem(n_components=5, random_state=0),
    SelectKBest(k=2),
    cross_decomposition.PLSRegression(),
    cross_decomposition.CCA(),
    cluster.KMeans(3, random_state=0),
    mixture.GaussianMixture(random_state=0),
    naive_bayes.CategoricalNB(),
    linear_model.LassoLarsCV(cv=3),
    linear_model.LogisticRegression(),
    ensemble.RandomForestClassifier(3, random_state=0),
    ensemble.HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=3),
]


@pytest.mark.parametrize("step", BEHIND_MARKS, ids=lambda s: type(s).__name__)
def test_behind_marks_of_what_is_missing(step: Any) -> None:
    """Alone they are booleans, of which scikit-learn makes float64 where a step computes."""
    y = BOTH if isinstance(step, cross_decomposition.PLSRegression | cross_decomposition.CCA) else Y
    model = make_pipeline(impute.MissingIndicator(features="all"), step).fit(GAPS, y)
    program = interpreted(model)
    narrow = isinstance(step, linear_model.LassoLarsCV)
    compare(program, model, GAPS, rtol=1e-5 if narrow else 1e-7, atol=1e-7)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (preprocessing.FunctionTransformer(np.exp), "FunctionTransformer of exp over booleans"),
        (kernel_approximation.AdditiveChi2Sampler(), "AdditiveChi2Sampler of booleans"),
    ],
)
def test_what_computes_in_booleans_is_refused(step: Any, words: str) -> None:
    model = make_pipeline(impute.MissingIndicator(features="all"), step).fit(GAPS)
    with pytest.raises(UnsupportedError, match=words):
        interpreted(model)


def _picks(*columns: str) -> ColumnTransformer:
    return ColumnTransformer([("some", preprocessing.StandardScaler(), list(columns))])


def test_unions_of_columns_picked_by_name() -> None:
    model = FeatureUnion([("one", _picks("a")), ("two", make_pipeline(_picks("c", "a")))])
    program = interpreted(model.fit(FRAME))
    for frame in (FRAME, FRAME[list("dcba")], FRAME.assign(more="x"), FRAME[["c", "a"]]):
        same(program.transform(frame), model.transform(frame), 1e-12)
    with pytest.raises(InvalidInputError, match="lacks columns 'c'"):
        program.transform(FRAME[["a", "b"]])


@pytest.mark.parametrize(
    "other", [preprocessing.StandardScaler(), "passthrough", make_pipeline("passthrough")]
)
def test_unions_of_which_one_goes_by_places(other: Any) -> None:
    model = FeatureUnion([("one", _picks("a")), ("two", other)]).fit(FRAME)
    program = interpreted(model)
    same(program.transform(FRAME), model.transform(FRAME), 1e-12)
    with pytest.raises(InvalidInputError, match="in another order"):
        program.transform(FRAME[list("dcba")])


NULLABLE = {
    "Float64": pd.Series(np.where(np.isnan(GAPS[:, 0]), None, GAPS[:, 0]), dtype="Float64"),
    "Float32": pd.Series(np.where(np.isnan(GAPS[:, 1]), None, GAPS[:, 1]), dtype="Float32"),
    "Int64": pd.Series([1, 2, None, 3] * 10, dtype="Int64"),
    "boolean": pd.Series([True, False, None, True] * 10, dtype="boolean"),
}


@pytest.mark.parametrize("names", [[n] for n in NULLABLE] + [list(NULLABLE)], ids=str)
def test_columns_with_masks(names: list[str]) -> None:
    """scikit-learn makes float64 of them, of Float32 too, and NaN of what is masked."""
    frame = pd.DataFrame({n: NULLABLE[n] for n in names})
    parts = [("some", make_pipeline(impute.SimpleImputer(), preprocessing.StandardScaler()), names)]
    for model in (ColumnTransformer(parts), preprocessing.StandardScaler()):
        program = interpreted(model.fit(frame))
        same(program.transform(frame), model.transform(frame), 1e-12)
        same(program.transform(frame[3:5]), model.transform(frame[3:5]), 1e-12)


WORDS = ["a", pd.NA, "b", None, "zz", np.nan, "a"]


@pytest.mark.parametrize("dtype", [object, "string", "str", "category"])
@pytest.mark.parametrize("strategy", ["constant", "most_frequent"])
def test_na_of_pandas_in_columns_of_strings(dtype: Any, strategy: str) -> None:
    """`missing_values=pd.NA` is all that pandas takes for missing, None and NaN too."""
    frame = pd.DataFrame({"x": X[:7, 0], "w": pd.Series(WORDS, dtype=object).astype(dtype)})
    fill = impute.SimpleImputer(missing_values=pd.NA, strategy=strategy, fill_value="q")
    code = preprocessing.OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    parts = [("w", make_pipeline(fill, code), ["w"]), ("x", "passthrough", ["x"])]
    model = ColumnTransformer(parts).fit(frame[:4])
    program = interpreted(model)
    same(program.transform(frame), model.transform(frame))
    places = ColumnTransformer([("w", make_pipeline(fill, code), [1])]).fit(
        frame[:4].to_numpy(object)
    )
    rows = frame.to_numpy(object)
    same(interpreted(places).transform(rows), places.transform(rows))
    info = import_sklearn(model).info
    assert info.na_words == (1,)
    assert ModelInfo.from_json(info.to_json()) == info


def test_na_of_pandas_where_it_is_not_missing() -> None:
    """scikit-learn's encoders refuse it, and so do its imputers of NaN."""
    frame = pd.DataFrame({"w": ["a", "b", "a", np.nan]})
    fill = impute.SimpleImputer(strategy="most_frequent")
    model = ColumnTransformer([("w", make_pipeline(fill, preprocessing.OrdinalEncoder()), ["w"])])
    program = interpreted(model.fit(frame))
    with pytest.raises(InvalidInputError, match="column 'w': NAType is neither a string"):
        program.transform(pd.DataFrame({"w": pd.Series(["a", pd.NA], dtype="string")}))


FILL = impute.SimpleImputer(strategy="most_frequent")
WORD_FRAME = pd.DataFrame({"w": ["a", np.nan, "b", "a"], "v": list("xyxx"), "n": [1.0, 2, 3, 4]})
KINDS = preprocessing.OneHotEncoder(sparse_output=False)


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(FILL),
        ColumnTransformer([("f", FILL, ["w"])]),
        ColumnTransformer([("f", FILL, ["w"]), ("n", "passthrough", ["n"])]),
        ColumnTransformer([("v", KINDS, ["v"]), ("n", "drop", ["n"])], remainder=FILL),
        ColumnTransformer([("u", FeatureUnion([("f", FILL), ("k", KINDS)]), ["w", "v"])]),
        make_pipeline(ColumnTransformer([("f", FILL, ["w"])]), preprocessing.FunctionTransformer()),
    ],
)
def test_strings_that_nobody_encodes_are_refused(model: Any) -> None:
    """A program has numbers of them, and would give these."""
    only = isinstance(getattr(model, "steps", [(0, 0)])[0][1], impute.SimpleImputer)
    model.fit(WORD_FRAME[["w"]] if only else WORD_FRAME)
    with pytest.raises(UnsupportedError, match="columns of strings that are no categories"):
        interpreted(model)


@pytest.mark.parametrize(
    "parts",
    [
        [("f", FILL, ["v", "w"])],
        [("f", FILL, ["w"]), ("v", "passthrough", ["v"])],
        [("u", FeatureUnion([("f", FILL), ("g", FILL)]), ["v", "w"])],
    ],
)
def test_strings_that_are_encoded_later(parts: Any) -> None:
    model = make_pipeline(ColumnTransformer(parts), KINDS).fit(WORD_FRAME)
    program = interpreted(model)
    same(program.transform(WORD_FRAME), model.transform(WORD_FRAME))
    with pytest.raises(InvalidInputError, match="unknown category"):
        program.transform(WORD_FRAME.assign(v="q"))


def test_weights_of_strings_are_refused() -> None:
    parts = [("f", FILL, ["w"]), ("k", KINDS, ["v"])]
    model = ColumnTransformer(parts).fit(WORD_FRAME)
    model.transformer_weights = {"f": 2.0}
    with pytest.raises(UnsupportedError, match="column 0 by transformer_weights of f"):
        interpreted(model)


def test_weights_of_marks() -> None:
    """Booleans times a number are numbers."""
    parts = [("m", impute.MissingIndicator(features="all"), [0, 1]), ("x", "passthrough", [2])]
    model = ColumnTransformer(parts, transformer_weights={"m": 2.5}).fit(GAPS)
    same(interpreted(model).transform(GAPS), model.transform(GAPS))


def test_floats_that_are_categories() -> None:
    """They are float64 to scikit-learn, whatever floats they are."""
    narrow = pd.DataFrame({"c": np.array([0.1, 0.7, 0.1, 1.3], np.float32)}).astype("category")
    model = preprocessing.StandardScaler().fit(narrow)
    same(interpreted(model).transform(narrow), model.transform(narrow), 1e-14)


def test_na_of_pandas_over_numbers() -> None:
    frame = pd.DataFrame({"i": NULLABLE["Int64"], "f": GAPS[:, 0]})
    model = impute.SimpleImputer(missing_values=pd.NA, add_indicator=True).fit(frame)
    same(interpreted(model).transform(frame), model.transform(frame), 1e-12)


def test_compiled() -> None:
    """All of the above in one program."""
    frame = pd.DataFrame({**NULLABLE, "w": pd.Series(["a", None, "b", "c"] * 10, dtype="string")})
    fill = impute.SimpleImputer(missing_values=pd.NA, strategy="constant", fill_value="?")
    numbers = list(NULLABLE)
    marks = make_pipeline(impute.MissingIndicator(features="all"), preprocessing.MaxAbsScaler())
    parts = [
        ("w", make_pipeline(fill, preprocessing.OneHotEncoder()), ["w"]),
        ("n", FeatureUnion([("m", marks), ("f", impute.SimpleImputer())]), numbers),
    ]
    model = make_pipeline(
        ColumnTransformer(parts), ensemble.RandomForestClassifier(3, random_state=0)
    )
    program = irkit.compile(model.fit(frame, Y), target="cpu", mode="serial", dtype="float64")
    given = frame[["w", *reversed(numbers)]]
    same(program.predict_proba(given), model.predict_proba(given))
