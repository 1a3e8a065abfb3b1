"""Random LightGBM and XGBoost models within random estimators of scikit-learn, against their own answers."""

# pyright: basic, reportArgumentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from sklearn import calibration, ensemble, model_selection, multiclass, multioutput
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler

from tests.conformance.interpreted import METHODS, interpreted, same

pytestmark = pytest.mark.filterwarnings("ignore")
ROWS = 90
SEEDS, COMPILED = 120, 3


class Draw:
    """A random model of `classes` (0: it regresses) and rows for it."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.classes = int(self.one_of(0, 2, 3))
        self.columns = int(self.rng.integers(2, 6))
        x = self.rng.normal(size=(ROWS, self.columns)) * self.one_of(0.1, 1, 10)
        x = np.round(x) if self.often(0.3) else x
        y = x[:, 0] + np.abs(x[:, -1]) + self.rng.normal(size=ROWS) * 0.1
        cuts = np.quantile(y, [0.5] if self.classes == 2 else [0.3, 0.7])
        scaled = (y - y.min()) / np.ptp(y) * 0.98 + 0.01
        self.y = np.digitize(y, cuts) if self.classes else scaled
        if self.often(0.3):
            x[self.rng.random(x.shape) < 0.15] = np.nan
        self.x: Any = x

    def one_of(self, *given: Any) -> Any:
        return given[self.rng.integers(len(given))]

    def often(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def some(self, share: float, **more: Any) -> dict[str, Any]:
        return more if self.often(share) else {}

    def lightgbm(self, classes: int) -> Any:
        kind = self.one_of("gbdt", "gbdt", "dart", "rf")
        rf = {"bagging_freq": 1, "bagging_fraction": 0.6} if kind == "rf" else {}
        objective = {
            "objective": self.one_of("regression", "regression_l1", "huber", "poisson", "quantile", "tweedie")
        }  # fmt: skip
        given = {
            "n_estimators": int(self.rng.integers(1, 6)), "num_leaves": int(self.rng.integers(2, 14)),
            "min_child_samples": int(self.rng.integers(1, 9)), "boosting_type": kind,
            **rf,
            **self.some(0.2, extra_trees=True),
            **self.some(0.2, use_missing=False),
            **self.some(0.2, zero_as_missing=True),
            **self.some(0.2, max_bin=9),
            **self.some(0.2, boost_from_average=False),
            **self.some(0.2, learning_rate=1.0),
            **(self.some(0.3, class_weight="balanced") if classes else objective),
            **(self.some(0.3, objective="multiclassova") if classes == 3 else {}),
        }  # fmt: skip
        made = lgb.LGBMClassifier if classes else lgb.LGBMRegressor
        return made(**given, random_state=3, verbose=-1, n_jobs=1)

    def xgboost(self, classes: int, coded: bool) -> Any:
        kind = self.one_of("gbtree", "gbtree", "dart", "gbtree" if coded else "gblinear")
        trees = {
            "max_depth": int(self.rng.integers(1, 5)), "tree_method": self.one_of("hist", "approx"),
            **self.some(0.3, subsample=0.7),
            **self.some(0.2, num_parallel_tree=2),
            **self.some(0.2, missing=1.0),
        }  # fmt: skip
        losses = ["reg:squarederror", "reg:gamma", "reg:tweedie", "count:poisson", "reg:logistic"]
        losses += ["reg:pseudohubererror", "reg:squaredlogerror"]
        binary = self.some(0.4, objective=self.one_of("binary:hinge", "binary:logistic"))
        given = {
            "n_estimators": int(self.rng.integers(1, 6)), "booster": kind, "enable_categorical": coded,
            **({} if kind == "gblinear" else trees),
            **({"rate_drop": 0.4} if kind == "dart" else {}),
            **self.some(0.2, base_score=0.3),
            **({} if classes else {"objective": self.one_of(*losses)}),
            **(binary if classes == 2 else {}),
        }  # fmt: skip
        made = xgb.XGBClassifier if classes else xgb.XGBRegressor
        return made(**given, random_state=3, n_jobs=1)

    def booster(self, coded: bool = False, classes: int | None = None) -> Any:
        found = self.classes if classes is None else classes
        return self.lightgbm(found) if self.often(0.5) else self.xgboost(found, coded)

    def within(self, coded: bool, deep: int = 1) -> Any:
        def inner() -> Any:
            return self.within(coded, 0) if deep and self.often(0.3) else self.booster(coded)

        return (self._classifier if self.classes else self._regressor)(inner, coded)

    def _classifier(self, inner: Any, coded: bool) -> Any:
        two = [("a", inner()), ("b", inner())]
        kinds = [
            lambda: self.booster(coded),
            lambda: ensemble.VotingClassifier(
                two, voting="hard", weights=self.one_of(None, [1, 2])
            ),
            lambda: ensemble.StackingClassifier(two, LogisticRegression(), cv=2),
            lambda: calibration.CalibratedClassifierCV(inner(), cv=2, ensemble=self.often(0.5)),
            lambda: multiclass.OneVsRestClassifier(self.booster(coded, 2)),
            lambda: multiclass.OneVsOneClassifier(self.booster(False, 2)),
            lambda: model_selection.GridSearchCV(
                self.booster(coded), {"n_estimators": [1, 3]}, cv=2
            ),
            lambda: ensemble.BaggingClassifier(inner(), n_estimators=2, random_state=0),
        ]
        return self.one_of(kinds[3], *(kinds[:5] if coded else kinds))()

    def _regressor(self, inner: Any, coded: bool) -> Any:
        two = [("a", inner()), ("b", inner())]
        kinds = [
            lambda: self.booster(coded),
            lambda: ensemble.VotingRegressor(two, weights=self.one_of(None, [1, 2])),
            lambda: ensemble.StackingRegressor(two, Ridge(), cv=2),
            lambda: TransformedTargetRegressor(inner(), func=np.log1p, inverse_func=np.expm1),
            lambda: TransformedTargetRegressor(inner(), transformer=StandardScaler()),
            lambda: ensemble.BaggingRegressor(inner(), n_estimators=2, random_state=0),
            lambda: make_pipeline(self.one_of(SimpleImputer(), MinMaxScaler()), inner()),
        ]
        return self.one_of(*(kinds[:5] if coded else kinds))()

    def several(self) -> Any:
        """Of two outputs, numbers of which are fitted in order where it is a chain."""
        if np.isnan(self.x).any() or self.classes == 3:
            self.x = np.nan_to_num(self.x)
        second = np.roll(self.y, 1)
        self.y = np.stack([self.y, second], axis=1)
        if self.classes != 2:
            plain = (
                multioutput.MultiOutputClassifier
                if self.classes
                else multioutput.MultiOutputRegressor
            )
            return self.one_of(plain, plain if self.classes else multioutput.RegressorChain)(
                self.booster()
            )
        return self.one_of(multioutput.MultiOutputClassifier, multioutput.ClassifierChain)(
            self.booster()
        )

    def frame(self) -> Any:
        """Behind a ColumnTransformer, of a frame with strings."""
        names = [f"c {i}" for i in range(self.columns)]
        self.x = pd.DataFrame(self.x, columns=names)
        self.x["word"] = self.rng.choice(["red", "green", "blue"], ROWS)
        unknown = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
        words = self.one_of(OneHotEncoder(handle_unknown="ignore"), OrdinalEncoder(**unknown))
        first = ColumnTransformer(
            [
                ("n", self.one_of(StandardScaler(), "passthrough"), names[:1]),
                ("w", words, ["word"]),
            ],
            remainder=self.one_of("passthrough", "drop"),
            sparse_threshold=0,
        )
        return make_pipeline(first, self.within(False))

    def categories(self) -> Any:
        self.x = pd.DataFrame(self.x, columns=[f"c {i}" for i in range(self.columns)])
        self.x["kind"] = pd.Categorical(self.rng.choice(["a", "b", "c", "dd"], ROWS))
        self.x["grade"] = pd.Categorical(self.rng.choice([1, 7, 9], ROWS))
        return self.within(True)

    def model(self) -> Any:
        """Fitted, with weights of rows at times where a booster stands alone."""
        made = [lambda: self.within(False), self.several, self.frame, self.categories]
        model = self.one_of(made[0], *made)()
        alone = isinstance(model, lgb.LGBMModel | xgb.XGBModel)
        weights = self.some(0.5, sample_weight=self.rng.uniform(0.1, 2, ROWS)) if alone else {}
        return model.fit(self.x, self.y, **weights)

    def rows(self) -> list[Any]:
        if isinstance(self.x, pd.DataFrame):
            return [self.x, self.x[:1], self.x[::-1]]
        other = np.concatenate([self.x, 3 * self.x[:9], -self.x[:5], np.zeros((1, self.columns))])
        return [other, other[:1], other.astype(np.float32)]


def fitted(seed: int) -> tuple[Any, list[Any]]:
    """A model that its library can fit, and rows: what it refuses is drawn again."""
    for again in range(20):
        drawn = Draw(1000 * again + seed)
        try:
            return drawn.model(), drawn.rows()
        except (ValueError, lgb.basic.LightGBMError):  # XGBoost's are of ValueError
            continue
    raise AssertionError("nothing is fitted")


def agree(program: Any, model: Any, rows: list[Any], rtol: float) -> None:
    for given in rows:
        for method in [m for m in METHODS if m in program.methods]:
            want = getattr(model, method)(given)
            same(getattr(program, method)(given), want, rtol, rtol / 10)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_interpreted(seed: int) -> None:
    model, rows = fitted(seed)
    agree(interpreted(model), model, rows, 1e-4)


@pytest.mark.parametrize("seed", range(SEEDS, SEEDS + COMPILED))
def test_compiled(seed: int, compiled: Any) -> None:
    model, rows = fitted(seed)
    agree(compiled(model, mode="serial"), model, rows, 1e-4)
