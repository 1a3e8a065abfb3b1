"""Transformers of scikit-learn, alone and composed, against scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.feature_selection import (
    RFE,
    GenericUnivariateSelect,
    SelectFromModel,
    SelectKBest,
    SelectPercentile,
    VarianceThreshold,
)
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from irkit.errors import InvalidInputError, UnsupportedError
from irkit.frontends import import_model
from tests.conformance.interpreted import compare, interpreted
from tests.conformance.sklearn_models import data, with_gaps

DTYPES = ("float32", "float64")
NUMERIC: dict[str, Callable[[], Any]] = {
    "binarizer": lambda: Binarizer(threshold=0.01),
    "standard": StandardScaler,
    "min_max": lambda: MinMaxScaler((-2, 5)),
    "min_max_clip": lambda: MinMaxScaler(clip=True),
    "max_abs": MaxAbsScaler,
    "max_abs_clip": lambda: MaxAbsScaler(clip=True),
    "robust": RobustScaler,
    "robust_scaling": lambda: RobustScaler(with_centering=False),
    "robust_center": lambda: RobustScaler(with_scaling=False),
    "best": lambda: SelectKBest(k=3),
    "percentile": lambda: SelectPercentile(percentile=40),
    "univariate": lambda: GenericUnivariateSelect(mode="k_best", param=2),
    "rfe": lambda: RFE(LinearRegression(), n_features_to_select=4),
    "from_model": lambda: SelectFromModel(LinearRegression()),
    "variance": lambda: VarianceThreshold(1e-4),
    "bins": lambda: KBinsDiscretizer(4, encode="ordinal", quantile_method="averaged_inverted_cdf"),
    "bins_one_hot": lambda: KBinsDiscretizer(5, encode="onehot-dense", strategy="uniform"),
    "identity": FunctionTransformer,
    "square": lambda: FunctionTransformer(np.square),
    "absolute": lambda: FunctionTransformer(np.abs, validate=True),
    "polynomial": PolynomialFeatures,
    "interactions": lambda: PolynomialFeatures(3, interaction_only=True, include_bias=False),
    "degrees": lambda: PolynomialFeatures((2, 3)),
}
CLOSE: dict[str, Callable[[], Any]] = {
    "l1": lambda: Normalizer("l1"),
    "l2": Normalizer,
    "max": lambda: Normalizer("max"),
    "pca": lambda: PCA(3),
    "whitened": lambda: PCA(3, whiten=True),
    "incremental": lambda: IncrementalPCA(3),
    "svd": lambda: TruncatedSVD(3, random_state=0),
    "exp": lambda: FunctionTransformer(np.exp),
    "log1p": lambda: FunctionTransformer(np.log1p),
    "tanh": lambda: FunctionTransformer(np.tanh),
}
TAKES_NAN = (
    "standard",
    "min_max",
    "min_max_clip",
    "max_abs",
    "robust",
    "variance",
    "identity",
    "square",
)
EXACT = ("transform", "predict")


def fit(model: Any, x: Any, y: Any = None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(x, y)


def check(model: Any, x: Any, exact: bool = True, rtol: float = 1e-6, atol: float = 1e-6) -> None:
    program = interpreted(model)
    for dtype in DTYPES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compare(program, model, x.astype(dtype), EXACT if exact else (), rtol, atol)


@pytest.mark.parametrize("dataset", ["diabetes", "iris"])
@pytest.mark.parametrize("name", NUMERIC)
def test_has_the_same_bits(name: str, dataset: str) -> None:
    x, y = data(dataset)
    if name in ("best", "rfe", "univariate") and dataset == "iris":
        x = np.concatenate([x, x], axis=1)
    model = fit(NUMERIC[name](), x, y)
    check(model, np.concatenate([x, 3 * x, -x]))


@pytest.mark.parametrize("name", CLOSE)
def test_is_close(name: str) -> None:
    x, y = data("diabetes")
    check(fit(CLOSE[name](), x, y), np.concatenate([x, 0 * x[:1]]), exact=False)


@pytest.mark.parametrize("name", TAKES_NAN)
def test_nan_goes_through(name: str) -> None:
    x, y = data("diabetes")
    check(fit(NUMERIC[name](), x, y), with_gaps(x))


# Missing values

IMPUTERS: dict[str, Callable[[], Any]] = {
    "mean": SimpleImputer,
    "median": lambda: SimpleImputer(strategy="median"),
    "most_frequent": lambda: SimpleImputer(strategy="most_frequent"),
    "constant": lambda: SimpleImputer(strategy="constant", fill_value=7),
    "constant_default": lambda: SimpleImputer(strategy="constant"),
    "indicator": lambda: SimpleImputer(add_indicator=True),
    "keep_empty": lambda: SimpleImputer(keep_empty_features=True, add_indicator=True),
    "marks": lambda: MissingIndicator(error_on_new=False),
    "all_marks": lambda: MissingIndicator(features="all"),
    "sparse_marks": lambda: MissingIndicator(features="all", sparse=True),
}


@pytest.mark.parametrize("name", IMPUTERS)
def test_imputer(name: str) -> None:
    x = with_gaps(data("diabetes")[0])
    x[:, 2], x[:, 5] = np.nan, 0.25
    check(fit(IMPUTERS[name](), x), with_gaps(data("diabetes")[0]))


def test_a_number_that_is_missing() -> None:
    x = np.round(10 * data("diabetes")[0])
    check(fit(SimpleImputer(missing_values=0, add_indicator=True), x), x)


def test_new_missing_values_are_an_error() -> None:
    x = data("diabetes")[0].copy()
    x[:5, 0] = np.nan
    model = fit(MissingIndicator(), x)
    check(model, x)
    program = interpreted(model)
    x[3, 4] = np.nan
    with pytest.raises(ValueError, match="have missing values"):
        model.transform(x)
    with pytest.raises(InvalidInputError, match="row 3: MissingIndicator found missing values"):
        program.transform(x)


# Categories


def categories(kinds: int = 5) -> Any:
    rng = np.random.default_rng(0)
    # Few of the last categories, so that some are infrequent.
    return np.stack([rng.geometric(0.5, 200).clip(1, kinds), 2 * rng.integers(0, 2, 200)], axis=1)


def strange(x: Any) -> Any:
    other = x.astype(np.float64)
    other[::3, 0], other[1::5, 1], other[2::7] = 77, 0.5, -1
    return other


ENCODERS: dict[str, Callable[[], Any]] = {
    "first": lambda: OneHotEncoder(drop="first", handle_unknown="ignore"),
    "if_binary": lambda: OneHotEncoder(drop="if_binary", handle_unknown="ignore"),
    "ignore": lambda: OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    "infrequent": lambda: OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=20),
    "infrequent_ignore": lambda: OneHotEncoder(handle_unknown="ignore", min_frequency=20),
    "infrequent_dropped": lambda: OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=3, drop="first"
    ),
    "given": lambda: OneHotEncoder(
        categories=[[1, 2, 3], [0, 2]], handle_unknown="ignore", dtype=np.float32
    ),
    "ordinal": lambda: OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    "ordinal_nan": lambda: OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=np.nan, dtype=np.float32
    ),
    "ordinal_infrequent": lambda: OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-5, min_frequency=20
    ),
}


@pytest.mark.parametrize("trained", ["int64", "float32", "float64"])
@pytest.mark.parametrize("name", ENCODERS)
def test_encoder(name: str, trained: str) -> None:
    x = categories()
    model = fit(ENCODERS[name](), x.astype(trained))
    check(model, np.concatenate([x, strange(x)]))


@pytest.mark.parametrize("name", ["ignore", "ordinal", "infrequent", "ordinal_infrequent"])
def test_encoder_with_nan(name: str) -> None:
    x = categories().astype(np.float64)
    gaps = np.where(np.random.default_rng(1).random(x.shape) < 0.2, np.nan, x)
    # NaN is a category if training saw it, else unknown.
    check(fit(ENCODERS[name](), gaps), gaps)
    check(fit(ENCODERS[name](), x), gaps)


def test_missing_categories_have_a_code_of_their_own() -> None:
    x = categories().astype(np.float64)
    x[::4, 0] = np.nan
    check(fit(OrdinalEncoder(encoded_missing_value=-9), x), x)


def test_float_categories_are_compared_in_float64() -> None:
    x = np.array([[0.1], [0.5], [0.1], [0.25]])
    check(fit(OneHotEncoder(handle_unknown="ignore"), x), x)


@pytest.mark.parametrize("make", [OneHotEncoder, OrdinalEncoder])
def test_unknown_categories_are_an_error(make: Callable[[], Any]) -> None:
    x = categories()
    model = fit(make(), x)
    check(model, x)
    program, wrong = interpreted(model), x.astype(np.float64)
    wrong[4, 1] = 3.0
    with pytest.raises(ValueError, match="unknown categories"):
        model.transform(wrong)
    with pytest.raises(InvalidInputError, match=r"row 4: .* unknown category"):
        program.transform(wrong)


def test_unknown_categories_that_become_nan() -> None:
    x = categories().astype(np.float64)
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    model = fit(make_pipeline(encoder, LinearRegression()), x, x[:, 0])
    check(model, x, exact=False)
    program = interpreted(model)
    x[2, 0] = 99.0
    with pytest.raises(ValueError, match="contains NaN"):
        model.predict(x)
    with pytest.raises(InvalidInputError, match="row 2: NaN reaches LinearRegression"):
        program.predict(x)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "other objects": (
        lambda: OneHotEncoder().fit(np.array([[b"a"], [b"b"]], object)),
        "categories of type bytes among others in column 0",
    ),
    "whole numbers": (
        lambda: OneHotEncoder(dtype=np.int8).fit([[1], [2]]),
        "parameter dtype=int8",
    ),
    "function": (
        lambda: FunctionTransformer(np.sort).fit([[1.0]]),
        "parameter func=<function sort",
    ),
    "nothing selected": (
        lambda: fit(SelectFromModel(LinearRegression(), threshold=1e9), *data("diabetes")),
        "no output columns",
    ),
    "nothing to fill with": (
        lambda: SimpleImputer(
            missing_values=0, strategy="constant", fill_value=np.nan, keep_empty_features=True
        ).fit([[0.0], [1.0]]),
        "parameter fill_value=nan",
    ),
    "string statistics": (
        lambda: SimpleImputer(strategy="most_frequent").fit(np.array([["a", 1], ["b", 1]], object)),
        "strings among numbers, or objects",
    ),
    "marks of strings": (
        lambda: SimpleImputer(strategy="most_frequent", add_indicator=True).fit(
            np.array([["a"], [np.nan]], object)
        ),
        "parameter add_indicator=True, over strings",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_by_name(case: str) -> None:
    make, reason = REFUSED[case]
    with pytest.raises(UnsupportedError) as caught:
        import_model(make(), "float64")
    assert reason in caught.value.missing[0]


# Compositions


def mixed() -> Any:
    """Measurements with gaps in columns 0 to 2, categories in 3 and 4, and one that means nothing."""
    x = with_gaps(data("diabetes")[0])[:200, :3]
    return np.concatenate([x, categories(), np.arange(200)[:, None]], axis=1)


def columns_apart(**parameters: Any) -> Any:
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    return ColumnTransformer(
        [
            ("numbers", numbers, [0, 2]),
            ("categories", OneHotEncoder(handle_unknown="ignore"), slice(3, 5)),
            ("mask", MinMaxScaler(), [False, True, False, False, False, False]),
            ("none", "drop", [5]),
            ("same", "passthrough", [3]),
            ("empty", StandardScaler(), []),
        ],
        **parameters,
    )


@pytest.mark.parametrize("remainder", ["drop", "passthrough", MaxAbsScaler()], ids=str)
def test_columns_apart(remainder: Any) -> None:
    weights = {"numbers": 0.5, "same": 3.0}
    check(fit(columns_apart(remainder=remainder, transformer_weights=weights), mixed()), mixed())


def test_union() -> None:
    x, y = data("diabetes")
    parts = [("pca", PCA(2)), ("same", "passthrough"), ("none", "drop"), ("best", SelectKBest(k=2))]
    model = fit(FeatureUnion(parts, transformer_weights={"best": 2.0}), x, y)
    check(model, x, exact=False)
    marks = FeatureUnion([("fill", SimpleImputer()), ("marks", MissingIndicator(features="all"))])
    check(fit(marks, with_gaps(x)), with_gaps(x))


def nested(last: Any) -> Any:
    inner = Pipeline([("apart", columns_apart(remainder="passthrough")), ("fill", SimpleImputer())])
    union = FeatureUnion([("inner", inner), ("raw", SimpleImputer(strategy="median"))])
    return Pipeline(
        [("union", union), ("nested", Pipeline([("scale", RobustScaler())])), ("last", last)]
    )


def test_nested_pipelines_before_predictors() -> None:
    x, y = mixed(), data("diabetes")[1][:200]
    labels = np.array(["low", "middle", "high"])[np.digitize(y, [100, 180])]
    check(
        fit(nested(LogisticRegression(max_iter=50)), x, labels),
        x,
        exact=False,
        rtol=1e-5,
        atol=1e-5,
    )
    check(fit(nested(RandomForestClassifier(5, random_state=0)), x, labels), x)
    check(fit(nested(HistGradientBoostingRegressor(max_iter=5)), x, y), x)


def test_infinity_between_steps_is_an_error() -> None:
    x, y = data("diabetes")
    model = fit(make_pipeline(FunctionTransformer(np.log), LinearRegression()), np.abs(x) + 1, y)
    program = interpreted(model)
    check(model, np.abs(x) + 1, exact=False, rtol=1e-4)
    for bad in (0.0, -1.0):
        wrong = np.abs(x) + 1
        wrong[6, 2] = bad
        with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
            model.predict(wrong)
        with pytest.raises(
            InvalidInputError, match="row 6: NaN or infinity reaches LinearRegression"
        ):
            program.predict(wrong)


def test_compiled_pipeline(compiled: Any) -> None:
    x, y = mixed(), data("diabetes")[1][:200]
    model = fit(nested(RandomForestClassifier(5, random_state=0)), x, np.digitize(y, [100, 180]))
    program = compiled(model, mode="serial", dtype="float64")
    compare(program, model, x, exact=("predict", "predict_proba"))


def test_compiled_encoder_refuses_unknown_categories(compiled: Any) -> None:
    x = categories().astype(np.float64)
    model = fit(make_pipeline(OneHotEncoder(sparse_output=False), PolynomialFeatures()), x)
    program = compiled(model, mode="serial", dtype="float64")
    compare(program, model, x, exact=("transform",))
    with pytest.raises(InvalidInputError, match="row 0: OneHotEncoder found an unknown category"):
        program.transform(x[:1] + 0.5)
