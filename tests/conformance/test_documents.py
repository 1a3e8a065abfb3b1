"""Text pipelines: documents in, scikit-learn's answers out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import pandas
import pytest
import sklearn.feature_extraction
import xgboost as xgb
from sklearn import (
    decomposition,
    ensemble,
    feature_selection,
    linear_model,
    naive_bayes,
    preprocessing,
    svm,
)
from sklearn import pipeline as pipelines

import irkit
from irkit.errors import InvalidInputError, InvalidModelError, UnsupportedError
from irkit.frontends import import_model
from tests.conformance.interpreted import METHODS, interpreted, same

pytestmark = pytest.mark.filterwarnings("ignore")
make: Any = pipelines
text: Any = sklearn.feature_extraction
CHI2: Any = vars(feature_selection)["chi2"]
WORDS = (
    "the",
    "a",
    "Ship",
    "sails",
    "über",
    "Wolken",
    "old",
    "sea-port;",
    "red",
    "42",
    "ships,",
    "rust",
    "7",
)


def documents(count: int = 60, seed: int = 0) -> list[str]:
    """Sentences of known words, some empty, and some of words that no other has."""
    generator = np.random.default_rng(seed)
    made = [" ".join(generator.choice(WORDS, generator.integers(0, 12))) for _ in range(count)]
    made[4], made[7], made[9] = "", "ZZZ yyy xxx", "  !?  "
    return made


def labels(given: list[str]) -> Any:
    """Three classes, by name."""
    return np.array(["few", "some", "many"])[[(len(d) // 9) % 3 for d in given]]


def count(**more: Any) -> Any:
    return text.text.CountVectorizer(**more)


def tfidf(**more: Any) -> Any:
    return text.text.TfidfVectorizer(**more)


def hashing(**more: Any) -> Any:
    return text.text.HashingVectorizer(**{"n_features": 256} | more)


def weighed(**more: Any) -> Any:
    return text.text.TfidfTransformer(**more)


def piped(*steps: Any) -> Any:
    return make.make_pipeline(*steps)


HEADS: dict[str, Callable[[], Any]] = {
    "binary": lambda: count(binary=True),
    "char": lambda: tfidf(analyzer="char", ngram_range=(2, 3)),
    "char_wb": lambda: tfidf(analyzer="char_wb", ngram_range=(1, 2), max_features=90),
    "count": count,
    "few": lambda: tfidf(min_df=2, max_df=0.6, max_features=9),
    "hashing": hashing,
    "hashing_binary": lambda: hashing(binary=True, alternate_sign=False, norm="l1"),
    "hashing_counts": lambda: hashing(norm=None, ngram_range=(1, 2)),
    "narrow": lambda: tfidf(dtype=np.float32),
    "pairs": lambda: tfidf(ngram_range=(1, 2)),
    "plain": lambda: tfidf(use_idf=False, norm=None),
    "spoken": lambda: tfidf(stop_words="english", strip_accents="unicode", lowercase=False),
    "stops": lambda: count(stop_words=["ship", "red"], token_pattern=r"\w+"),
    "sublinear": lambda: tfidf(sublinear_tf=True, norm="l1", smooth_idf=False),
    "vocabulary": lambda: tfidf(vocabulary=["ship", "sea", "red", "über", "never"]),
}
LAST: dict[str, Callable[[], Any]] = {
    "bernoulli": naive_bayes.BernoulliNB,
    "complement": naive_bayes.ComplementNB,
    "forest": lambda: ensemble.RandomForestClassifier(4, random_state=0),
    "lgb": lambda: lgb.LGBMClassifier(n_estimators=3, min_child_samples=3, verbose=-1, n_jobs=1),
    "linear_svc": lambda: svm.LinearSVC(random_state=0),
    "logistic": linear_model.LogisticRegression,
    "multinomial": naive_bayes.MultinomialNB,
    "projected": lambda: piped(
        decomposition.TruncatedSVD(4, random_state=0),
        preprocessing.StandardScaler(),
        linear_model.SGDClassifier(random_state=0),
    ),
    "xgb": lambda: xgb.XGBRegressor(n_estimators=3, n_jobs=1),
    "projected_xgb": lambda: piped(
        decomposition.TruncatedSVD(4, random_state=0),
        xgb.XGBRegressor(n_estimators=3, n_jobs=1),
    ),
    "selected": lambda: piped(
        feature_selection.SelectKBest(CHI2, k=8), linear_model.LogisticRegression()
    ),
    "weighed": lambda: piped(weighed(sublinear_tf=True), linear_model.LogisticRegression()),
}


def check(program: Any, model: Any, given: Any, rtol: float = 1e-9) -> None:
    methods = [m for m in METHODS if m in program._methods]
    assert methods
    for method in methods:
        same(getattr(program, method)(given), getattr(model, method)(given), rtol, rtol)


@pytest.mark.parametrize("name", HEADS)
def test_what_vectorizers_make(name: str) -> None:
    """Alone, and before a linear model; unseen documents and words among those given."""
    known, new = documents(), documents(25, seed=1)
    rtol = 1e-5 if name == "narrow" else 1e-9
    head = HEADS[name]().fit(known)
    for given in (known, new, new[:1], [""]):
        check(interpreted(head), head, given, rtol)
    model = piped(HEADS[name](), linear_model.LogisticRegression()).fit(known, labels(known))
    check(interpreted(model), model, new, rtol)


@pytest.mark.parametrize("name", LAST)
@pytest.mark.parametrize("head", [count, tfidf], ids=["count", "tfidf"])
def test_what_follows(name: str, head: Any) -> None:
    known, new = documents(), documents(25, seed=1)
    target = np.arange(60.0) if name.endswith("xgb") else labels(known)
    # LightGBM takes no sparse integers.
    model = piped(head(dtype=np.float64), LAST[name]()).fit(known, target)
    check(interpreted(model), model, new, 1e-5 if name.endswith("xgb") else 1e-9)


def test_forms_of_documents() -> None:
    known = documents()
    model = piped(tfidf(), linear_model.LogisticRegression()).fit(known, labels(known))
    program = interpreted(model)
    series: Any = pandas.Series(known, index=range(5, 65))
    for given in (known, tuple(known), np.array(known), np.array(known, object), series):
        check(program, model, given)
    check(program, model, [d.encode() for d in known])


def test_counts_as_a_transformer_takes_them() -> None:
    """TfidfTransformer over arrays and sparse rows of counts."""
    head = count().fit(documents())
    x = head.transform(documents(seed=2))
    for step in (weighed(), weighed(norm="l1", smooth_idf=False), weighed(use_idf=False)):
        model = step.fit(x)
        check(interpreted(model), model, x)
        dense: Any = x.toarray().astype(float)
        check(interpreted(model), model, dense)
    logs = weighed(sublinear_tf=True).fit(x)
    dense = x.toarray().astype(float)
    check(interpreted(logs), logs, dense)
    check(interpreted(logs), logs, x)
    later = piped(preprocessing.MaxAbsScaler(), weighed(sublinear_tf=True)).fit(x)
    with pytest.raises(UnsupportedError, match=r"sublinear_tf.* takes a stored 0 for no 0"):
        interpreted(later).transform(x)


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.float32])
@pytest.mark.parametrize(
    "steps",
    [
        [feature_selection.SelectKBest(k=3)],
        [preprocessing.Binarizer(), feature_selection.VarianceThreshold()],
        [preprocessing.FunctionTransformer(np.negative)],
        [preprocessing.FunctionTransformer(np.log1p)],
        [preprocessing.MaxAbsScaler(), feature_selection.SelectKBest(k=3)],
        [make.make_union(feature_selection.SelectKBest(k=3), preprocessing.Binarizer())],
        [make.make_union(feature_selection.SelectKBest(k=3), preprocessing.MaxAbsScaler())],
        [make.make_union("passthrough", preprocessing.FunctionTransformer())],
    ],
)
def test_counts_that_stay_integers(steps: Any, dtype: Any) -> None:
    """Behind what computes nothing, or in integers, they are scikit-learn's own type."""
    known = documents()
    model = make.make_pipeline(count(dtype=dtype), *steps).fit(known, labels(known))
    same(interpreted(model).transform(known), model.transform(known), 1e-6)


def test_compiled_for_float32(compiled: Any) -> None:
    """The type of counts is the vectorizer's, whatever rows of numbers may have."""
    known = documents()
    head = text.text.TfidfVectorizer(dtype=np.float32)
    model = make.make_pipeline(head, linear_model.LogisticRegression()).fit(known, labels(known))
    same(compiled(model).predict_proba(known), model.predict_proba(known), 1e-6)


def test_words_that_no_document_had() -> None:
    """They weigh infinitely much, and nothing where they are not."""
    head = text.text.TfidfVectorizer(
        vocabulary=["the", "unheard"], smooth_idf=False, token_pattern=r"\w+"
    )
    model = make.make_pipeline(head).fit(["the cat", "a dog of the house"])
    given = ["the cat", "nothing"]
    same(interpreted(model).transform(given), model.transform(given), 1e-12)
    with pytest.raises(ValueError, match="infinity"):
        model.transform(["unheard"])
    with pytest.raises(InvalidInputError, match="NaN or infinity reaches normalize"):
        interpreted(model).transform(["unheard"])


@pytest.mark.parametrize("norm", ["l2", "l1", None])
def test_logarithms_of_what_is_stored(norm: Any) -> None:
    """Each stored element has its own; a stored 0, and one in parts, are refused by name."""
    head = count().fit(documents())
    x = head.transform(documents(seed=2)).astype(np.float64)
    logs = weighed(sublinear_tf=True, norm=norm).fit(x)
    made = irkit.compile(logs, "cpu", dtype="float64")
    check(made, logs, x)
    check(made, logs, x.tocoo())
    unsorted = x.copy()
    unsorted.indices, unsorted.data = unsorted.indices.copy(), unsorted.data.copy()
    first, last = unsorted.indptr[:2]
    unsorted.indices[first:last] = unsorted.indices[first:last][::-1]
    unsorted.data[first:last] = unsorted.data[first:last][::-1]
    unsorted.has_sorted_indices = False
    check(made, logs, unsorted)
    zero = x.copy()
    zero.data[3] = 0.0
    with pytest.raises(InvalidInputError, match=r"stores a 0, .* eliminate_zeros\(\)"):
        made.transform(zero)
    parts = type(x)(
        (np.array([1.0, 2.0]), np.array([1, 1]), np.array([0, 2])), shape=(1, x.shape[1])
    )
    with pytest.raises(InvalidInputError, match=r"in parts, .* sum_duplicates\(\)"):
        made.transform(parts)


def test_compiled_and_saved(compiled: Any, tmp_path: Path) -> None:
    known, new = documents(), documents(25, seed=1)
    model = piped(
        tfidf(stop_words=["red"], ngram_range=(1, 2)), linear_model.LogisticRegression()
    ).fit(known, labels(known))
    program = compiled(model, mode="serial", dtype="float64")
    check(program, model, new)
    program.save(tmp_path / "p")
    check(irkit.load(tmp_path / "p"), model, new)


@pytest.mark.parametrize(
    "model",
    [count(), tfidf(), hashing(n_features=32), piped(tfidf(), ensemble.RandomForestClassifier(3))],
    ids=["count", "tfidf", "hashing", "trees"],
)
def test_compiled_where_counts_become_dense(compiled: Any, model: Any) -> None:
    """Of a vectorizer alone, and of trees, no program reads what is stored."""
    known = documents()
    program = compiled(model.fit(known, labels(known)), mode="serial")
    check(program, model, documents(25, seed=1))
    assert program.report()["sparse_rows"].startswith("made dense some at a time")


REFUSED: dict[str, tuple[Any, str]] = {
    "analyzer": (count(analyzer=str.split), "CountVectorizer with parameter analyzer, a function"),
    "tokenizer": (tfidf(tokenizer=str.split), "parameter tokenizer, a function"),
    "preprocessor": (tfidf(preprocessor=str.lower), "parameter preprocessor, a function"),
    "wide": (hashing(n_features=2**21), "2097152 columns .supported: up to 1048576"),
    "bytes": (count(dtype=np.uint8), "parameter dtype=uint8"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    head, reason = REFUSED[name]
    model = piped(head, linear_model.LogisticRegression())
    with pytest.raises(UnsupportedError, match=reason):
        import_model(model.fit(documents(), labels(documents())))


def test_refused_elsewhere() -> None:
    known = documents()
    union = make.make_union(count(), tfidf()).fit(known)
    with pytest.raises(UnsupportedError, match=r"CountVectorizer.*dtype=int64, where not the last"):
        import_model(union)
    with pytest.raises(InvalidModelError, match="TfidfVectorizer is not fitted"):
        import_model(piped(tfidf(), linear_model.LogisticRegression()))


def test_no_documents() -> None:
    known = documents()
    program = interpreted(piped(tfidf(), naive_bayes.MultinomialNB()).fit(known, labels(known)))
    for given, message in (
        ("one text", "expected a list of documents, got str"),
        ([], "expected 1 or more documents, got 0"),
        (["a", None], "document 1: expected a string, got NoneType"),
        (["a", np.nan], "document 1: expected a string, got float"),
        (np.zeros((2, 3)), "expected a list of documents, got ndarray of 2 dimensions"),
        (7, "expected a list of documents, got int"),
        ([b"\xff\xfe\xff"], "a document cannot be decoded"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            program.predict(given)
