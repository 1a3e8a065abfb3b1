"""What is not stored of a sparse matrix between steps is missing to XGBoost, and a 0 to all others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from sklearn import (
    compose,
    ensemble,
    feature_selection,
    linear_model,
    multioutput,
    neighbors,
    preprocessing,
    tree,
)
from sklearn import pipeline as pipelines
from sklearn.feature_extraction import text

from irkit.errors import InvalidInputError, UnsupportedError
from irkit.frontends import import_model
from tests.conformance.interpreted import compare, interpreted, same

pytestmark = pytest.mark.filterwarnings("ignore")
make: Any = pipelines
ROWS = 200


def rows() -> tuple[Any, Any]:
    """Two columns of numbers, of which a third is 0, and two of categories."""
    generator = np.random.default_rng(0)
    numbers = generator.normal(size=(ROWS, 2))
    numbers[generator.random(numbers.shape) < 0.3] = 0
    x = np.concatenate([numbers, generator.integers(0, 4, (ROWS, 2))], axis=1)
    return x, (x[:, 0] + x[:, 2] + generator.normal(size=ROWS) > 1.5).astype(int)


def xgboost(**more: Any) -> Any:
    return xgb.XGBClassifier(**{"n_estimators": 8, "n_jobs": 1} | more)


def apart(threshold: float = 1.0, **more: Any) -> Any:
    """Numbers as they are beside categories one-hot, sparse where the threshold says so."""
    parts: Any = [("e", preprocessing.OneHotEncoder(), [2, 3]), ("s", "passthrough", [0, 1])]
    return compose.ColumnTransformer(parts, sparse_threshold=threshold, **more)


def union(*parts: Any, **more: Any) -> Any:
    return make.FeatureUnion([(str(n), part) for n, part in enumerate(parts)], **more)


MODELS: dict[str, Callable[[], Any]] = {
    "bins": lambda: make.make_pipeline(preprocessing.KBinsDiscretizer(3), xgboost()),
    "chain": lambda: make.make_pipeline(
        apart(), multioutput.RegressorChain(xgb.XGBRegressor(n_estimators=3, n_jobs=1))
    ),
    "columns": lambda: make.make_pipeline(apart(), xgboost()),
    "columns_missing": lambda: make.make_pipeline(apart(), xgboost(missing=1.0)),
    "dense": lambda: make.make_pipeline(apart(threshold=0.0), xgboost()),
    "embedded": lambda: make.make_pipeline(
        ensemble.RandomTreesEmbedding(4, random_state=0), xgboost()
    ),
    "lightgbm": lambda: make.make_pipeline(
        apart(), lgb.LGBMClassifier(n_estimators=4, verbose=-1, n_jobs=1)
    ),
    "one_hot": lambda: make.make_pipeline(preprocessing.OneHotEncoder(), xgboost()),
    "one_hot_dense": lambda: make.make_pipeline(
        preprocessing.OneHotEncoder(sparse_output=False), xgboost()
    ),
    "scaled": lambda: make.make_pipeline(
        apart(), preprocessing.StandardScaler(with_mean=False), preprocessing.MaxAbsScaler(),
        feature_selection.VarianceThreshold(), xgboost(),
    ),
    "stack": lambda: make.make_pipeline(
        apart(),
        ensemble.StackingClassifier(
            [("x", xgboost(n_estimators=2)), ("l", linear_model.LogisticRegression())],
            xgboost(n_estimators=3), cv=2, passthrough=True,
        ),
    ),
    "union": lambda: make.make_pipeline(
        union(preprocessing.StandardScaler(), preprocessing.KBinsDiscretizer(3)), xgboost()
    ),
    "union_weighed": lambda: make.make_pipeline(
        union(
            preprocessing.StandardScaler(), preprocessing.KBinsDiscretizer(3),
            transformer_weights={"1": 2.0},
        ),
        xgboost(),
    ),
    "vote": lambda: make.make_pipeline(
        apart(),
        ensemble.VotingClassifier(
            [("x", xgboost()), ("l", linear_model.LogisticRegression())], voting="soft"
        ),
    ),
    "votes_of_pipelines": lambda: ensemble.VotingClassifier(
        [
            ("x", make.make_pipeline(apart(), xgboost())),
            ("d", make.make_pipeline(preprocessing.StandardScaler(), xgboost())),
        ],
        voting="soft",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_what_xgboost_is_given(name: str) -> None:
    x, y = rows()
    several = np.stack([y, x[:, 0] * y], axis=1)
    model = MODELS[name]().fit(x, several if name == "chain" else y)
    compare(interpreted(model), model, x)


def test_zeros_that_may_be_stored() -> None:
    """A 0 of what is scaled by 0 is stored; distances to neighbours may be 0."""
    x, y = rows()
    for steps in (
        (union(preprocessing.OneHotEncoder(), "passthrough", transformer_weights={"0": 0.0}),),
        (neighbors.KNeighborsTransformer(n_neighbors=3),),
        (preprocessing.SplineTransformer(3, sparse_output=True),),
    ):
        model = make.make_pipeline(*steps, xgboost()).fit(x, y)
        with pytest.raises(UnsupportedError, match="XGBoost behind steps of which a sparse matrix"):
            import_model(model)
        if isinstance(steps[0], neighbors.KNeighborsTransformer):
            continue  # of rows that are equally near, which is open
        others = make.make_pipeline(*steps, linear_model.LogisticRegression()).fit(x, y)
        compare(interpreted(others), others, x)


@pytest.mark.parametrize(
    "make_last",
    [
        lambda: tree.DecisionTreeClassifier(max_depth=3),
        lambda: ensemble.ExtraTreesRegressor(3, random_state=0),
        lambda: ensemble.BaggingClassifier(n_estimators=3, random_state=0),
        lambda: ensemble.StackingClassifier([("f", ensemble.RandomForestClassifier(3))], cv=2),
    ],
)
def test_trees_take_no_gaps_in_sparse_matrices(make_last: Any) -> None:
    """Of the same dense rows they do."""
    x, y = rows()
    given = x.copy()
    given[3, 0] = np.nan
    dense = make.make_pipeline(apart(0.0), make_last()).fit(x, y)
    compare(interpreted(dense), dense, given)
    model = make.make_pipeline(apart(), make_last()).fit(x, y)
    program = interpreted(model)
    with pytest.raises(ValueError, match="NaN"):
        model.predict(given)
    with pytest.raises(InvalidInputError, match="row 3: NaN"):
        program.predict(given)
    compare(program, model, x)


def test_an_isolation_forest_compares_gaps_in_sparse_matrices() -> None:
    """And does not ask where what is missing goes."""
    x, _ = rows()
    given = x.copy()
    given[::3, 0] = np.nan
    for threshold in (0.0, 1.0):
        forest = ensemble.IsolationForest(n_estimators=9, random_state=0)
        model = make.make_pipeline(apart(threshold), forest).fit(x)
        compare(interpreted(model), model, given)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "scaler",
    [
        preprocessing.StandardScaler(with_mean=False),
        preprocessing.MaxAbsScaler(),
        preprocessing.RobustScaler(with_centering=False),
        preprocessing.Normalizer("l1"),
        preprocessing.Normalizer("l2"),
        preprocessing.Normalizer("max"),
    ],
    ids=str,
)
def test_scaled_sparse_matrices_have_scikit_learns_bits(scaler: Any, dtype: Any) -> None:
    """Of dense rows it computes in another order; a tree's threshold may stand where both are."""
    words = list("abcdefg")
    generator = np.random.default_rng(0)
    given = [" ".join(generator.choice(words, generator.integers(0, 14))) for _ in range(300)]
    counter = text.CountVectorizer(dtype=dtype, token_pattern=r"\w")
    model = make.make_pipeline(counter, scaler).fit(given)
    same(interpreted(model).transform(given), model.transform(given))
