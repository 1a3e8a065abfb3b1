"""Documents within ColumnTransformers and FeatureUnions, beside numbers and categories."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import pandas
import pytest
import xgboost as xgb
from numpy.testing import assert_array_equal
from sklearn import (
    compose,
    decomposition,
    ensemble,
    feature_selection,
    impute,
    linear_model,
    model_selection,
    preprocessing,
    tree,
)

import irkit
import irkit.sklearn as serving
from irkit.errors import InvalidInputError, UnsupportedError
from irkit.frontends import import_model
from tests.conformance.interpreted import interpreted
from tests.conformance.test_documents import (
    CHI2,
    check,
    count,
    documents,
    hashing,
    labels,
    make,
    piped,
    tfidf,
    weighed,
)

pytestmark = pytest.mark.filterwarnings("ignore")
ROWS = 60


def frame(seed: int = 0, dtype: Any = np.float64) -> Any:
    """Documents of two kinds, a number that may be missing, two that are not, and a category."""
    generator = np.random.default_rng(seed)
    numbers = generator.normal(size=(ROWS, 3)).astype(dtype)
    numbers[3, 0] = np.nan
    return pandas.DataFrame(
        {
            "title": documents(ROWS, seed + 10),
            "gap": numbers[:, 0],
            "body": documents(ROWS, seed),
            "kind": generator.choice(["a", "b", "c"], ROWS),
            "size": numbers[:, 1],
            "never": ["read"] * ROWS,
            "age": numbers[:, 2],
        }
    )


def columns(*parts: Any, **more: Any) -> Any:
    named = [(str(n), part, which) for n, (part, which) in enumerate(parts)]
    return compose.ColumnTransformer(named, **more)


def one_hot() -> Any:
    return preprocessing.OneHotEncoder(handle_unknown="ignore")


def numbers() -> Any:
    return piped(impute.SimpleImputer(), preprocessing.StandardScaler())


def usual(*more: Any, **parameters: Any) -> Any:
    """What most pipelines over texts begin with."""
    return columns(
        (tfidf(), "body"), (numbers(), ["gap", "size"]), (one_hot(), ["kind"]), *more, **parameters
    )


def logistic() -> Any:
    return linear_model.LogisticRegression()


MODELS: dict[str, Callable[[], Any]] = {
    "calibrated": lambda: piped(
        usual(), linear_model.RidgeClassifier()
    ),
    "char": lambda: piped(
        columns((tfidf(analyzer="char_wb", ngram_range=(1, 2)), "title"), ("passthrough", ["age"])),
        logistic(),
    ),
    "counts": lambda: piped(columns((count(), "body"), (count(binary=True), "title")), logistic()),
    "dense": lambda: piped(usual(sparse_threshold=0), ensemble.HistGradientBoostingClassifier(
        max_iter=4, min_samples_leaf=3)),
    "forest": lambda: piped(usual(), ensemble.RandomForestClassifier(5, random_state=0)),
    "hashes": lambda: piped(
        columns((hashing(), "title"), (hashing(norm=None), "body"), (one_hot(), ["kind"])),
        preprocessing.MaxAbsScaler(), logistic(),
    ),
    "lightgbm": lambda: piped(
        usual(), lgb.LGBMClassifier(n_estimators=4, min_child_samples=3, verbose=-1, n_jobs=1)
    ),
    "nested": lambda: piped(
        columns(
            (columns((tfidf(), "title"), (numbers(), ["gap"])), ["gap", "title"]),
            (piped(make.make_union(count(), tfidf(analyzer="char")), weighed()), "body"),
        ),
        logistic(),
    ),
    "one_column_twice": lambda: piped(
        columns(
            (tfidf(analyzer="char"), "kind"), (one_hot(), ["kind"]), (hashing(), "kind")
        ), logistic()
    ),
    "projected": lambda: piped(
        columns(
            (piped(tfidf(), decomposition.TruncatedSVD(3, random_state=0)), "body"),
            (piped(numbers(), decomposition.PCA(1)), ["gap", "size"]),
        ),
        preprocessing.StandardScaler(), logistic(),
    ),
    "remainder": lambda: piped(
        columns((tfidf(), 0), (piped(hashing(n_features=16)), "body"), (one_hot(), [3]),
                ("drop", ["never", "gap"]), remainder="passthrough"),
        logistic(),
    ),
    "searched": lambda: model_selection.GridSearchCV(
        piped(usual(), logistic()), {"logisticregression__C": [0.5, 2.0]}, cv=2
    ),
    "selected": lambda: piped(
        usual(), feature_selection.SelectPercentile(percentile=30), logistic()
    ),
    "text_alone": lambda: piped(columns((tfidf(), "body")), logistic()),
    "votes": lambda: ensemble.VotingClassifier(
        [("t", piped(columns((tfidf(), "body")), logistic())),
         ("n", piped(columns((numbers(), ["gap", "age"])), tree.DecisionTreeClassifier()))],
        voting="soft",
    ),
    "weights": lambda: piped(usual(transformer_weights={"0": 3.0, "2": 0.5}), logistic()),
    "xgboost": lambda: piped(usual(), xgb.XGBClassifier(n_estimators=4, n_jobs=1)),
    "xgboost_dense": lambda: piped(
        usual(sparse_threshold=0), xgb.XGBClassifier(n_estimators=4, n_jobs=1)
    ),
}  # fmt: skip
TRANSFORMERS: dict[str, Callable[[], Any]] = {
    "columns": usual,
    "narrow": lambda: columns((tfidf(dtype=np.float32), "body"), ("passthrough", ["size"])),
    "union": lambda: make.make_union(tfidf(), hashing(n_features=8), piped(tfidf(), weighed())),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", MODELS)
def test_documents_beside_others(name: str, dtype: Any) -> None:
    """Known and unknown words; frames whose columns stand elsewhere."""
    known, new = frame(dtype=dtype), frame(1, dtype)
    target = labels(known["body"].tolist())
    if name.startswith("xgboost"):
        target = np.unique(target, return_inverse=True)[1]
    model = MODELS[name]().fit(known, target)
    program = interpreted(model)
    rtol = 1e-9 if dtype is np.float64 and not name.startswith("xgboost") else 1e-5
    for given in (known, new, new.iloc[:1]):
        check(program, model, given, rtol)
    if name != "remainder":
        moved: Any = new[["age", "kind", "gap", "body", "size", "title"]]
        check(program, model, moved, rtol)


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_what_transformers_make(name: str) -> None:
    known, new = frame(), frame(1)
    given = (known["body"].tolist(), new["body"].tolist()) if name == "union" else (known, new)
    model = TRANSFORMERS[name]().fit(given[0])
    rtol = 1e-6 if name == "narrow" else 1e-9
    for each in given:
        check(interpreted(model), model, each, rtol)


def test_unions_of_documents() -> None:
    """Of a list, and of what hands documents on to its members."""
    known, new = documents(), documents(25, seed=1)
    target = labels(known)
    both = make.make_union(count(), piped(tfidf(), feature_selection.SelectKBest(CHI2, k=5)))
    vote = ensemble.VotingClassifier(
        [("a", piped(tfidf(), logistic())), ("b", piped(both, logistic()))], voting="soft"
    )
    stack = ensemble.StackingClassifier([("a", piped(count(), logistic()))], logistic(), cv=2)
    models: list[Any] = [piped(both, logistic()), vote, stack]
    for model in [*models, piped(make.make_union(both, hashing()), logistic())]:
        model.fit(known, target)
        for given in (new, new[:1], np.array(new, object), pandas.Series(new)):
            check(interpreted(model), model, given)


def test_rows_of_objects() -> None:
    """Columns by their numbers, where there are no names."""
    known, new = frame().to_numpy(object), frame(1).to_numpy(object)
    model = piped(columns((tfidf(), 2), (numbers(), [1, 4]), (one_hot(), [3])), logistic())
    model.fit(known, labels(known[:, 2].tolist()))
    check(interpreted(model), model, new)
    wrong = new.copy()
    wrong[0, 1] = "seven"
    with pytest.raises(InvalidInputError, match="column 1: expected numbers"):
        interpreted(model).predict(wrong)


def test_compiled_and_saved(compiled: Any, tmp_path: Path) -> None:
    known, new = frame(), frame(1)
    model = piped(usual(), logistic()).fit(known, labels(known["body"].tolist()))
    program = compiled(model, mode="serial", dtype="float64")
    check(program, model, new)
    program.save(tmp_path / "p")
    check(irkit.load(tmp_path / "p"), model, new)


def test_counts_of_several_vectorizers(compiled: Any) -> None:
    """Side by side they are read as they are stored; with other columns between them, made dense."""
    known, new = documents(), documents(25, seed=1)
    model = piped(make.make_union(count(), tfidf(), hashing()), logistic())
    program = compiled(model.fit(known, labels(known)), mode="serial", dtype="float64")
    check(program, model, new)
    assert program.report()["sparse_rows"] == "by the elements that are stored"
    rows = frame()
    mixed = piped(usual(), logistic()).fit(rows, labels(rows["body"].tolist()))
    made = compiled(mixed, mode="serial", dtype="float64")
    assert made.report()["sparse_rows"].startswith("made dense some at a time")


def test_in_an_estimator() -> None:
    """Rows of documents, and frames with some, reach the program as they are."""
    known, new = frame(), frame(1)
    target = labels(known["body"].tolist())
    made = serving.CompiledEstimator(piped(usual(), logistic()), "cpu").fit(known, target)
    assert_array_equal(made.predict_proba(new), made.program_.predict_proba(new))
    assert_array_equal(made.predict(new), made.estimator_.predict(new))
    texts = documents(20, 7)
    alone = serving.CompiledEstimator(piped(tfidf(), logistic()), "cpu").fit(
        known["body"].tolist(), target
    )
    assert_array_equal(alone.predict(texts), alone.estimator_.predict(texts))


def test_refused() -> None:
    known = frame()
    target = labels(known["body"].tolist())

    def tried(*steps: Any) -> Any:
        return import_model(piped(*steps, logistic()).fit(known, target))

    with pytest.raises(UnsupportedError, match="TfidfVectorizer of several columns"):
        import_model(columns((tfidf(), ["body"])).fit(known))
    flat = preprocessing.FunctionTransformer()
    with pytest.raises(UnsupportedError, match="strings that another step makes"):
        tried(columns((piped(flat, count()), "body"), (one_hot(), ["kind"])))
    with pytest.raises(UnsupportedError, match="no categories: column 2 by Func"):
        import_model(columns((tfidf(), "body"), ("passthrough", ["body"])).fit(known))
    with pytest.raises(UnsupportedError, match="CountVectorizer with parameter tokenizer"):
        tried(columns((count(tokenizer=str.split), "body"), ("passthrough", ["age"])))
    with pytest.raises(UnsupportedError, match="parameter dtype=int64, where not the last step"):
        import_model(columns((count(), "body"), ("passthrough", ["age"])).fit(known))
    with pytest.raises(UnsupportedError, match="XGBoost behind steps of which a sparse matrix"):
        import_model(piped(hashing(), xgb.XGBRegressor(n_estimators=2)).fit(
            documents(), np.arange(60)))  # fmt: skip
    both = make.make_union(hashing(norm=None), count(dtype=np.float64))
    with pytest.raises(UnsupportedError, match="TfidfTransformer behind steps of which"):
        import_model(piped(both, weighed(sublinear_tf=True)).fit(documents()))


def test_what_are_no_documents() -> None:
    known = frame()
    model = piped(usual(), logistic()).fit(known, labels(known["body"].tolist()))
    program = interpreted(model)
    missing: Any = known.drop(columns="body")
    with pytest.raises(InvalidInputError, match="lacks columns 'body'"):
        program.predict(missing)
    with pytest.raises(InvalidInputError, match="lacks columns 'gap'"):
        program.predict(known.drop(columns="gap"))
    with pytest.raises(InvalidInputError, match="column 'body': document 1: expected a string"):
        program.predict(known.assign(body=["a", None] * 30))
    with pytest.raises(InvalidInputError, match="column 'body': document 0: expected a string"):
        program.predict(known.assign(body=np.arange(60.0)))
    with pytest.raises(InvalidInputError):
        program.predict(["a document"])
    with pytest.raises(InvalidInputError):
        program.predict(known.iloc[:0])
