"""Programs of what CSR matrices have stored: answers equal scikit-learn's on the same matrix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import (
    compose,
    decomposition,
    ensemble,
    feature_selection,
    linear_model,
    naive_bayes,
    preprocessing,
    svm,
    tree,
)
from sklearn import pipeline as pipelines
from sklearn.feature_extraction import text

import irkit
from irkit.driver.compiler.csr import csr_model
from irkit.errors import InvalidInputError, UnsupportedError
from irkit.frontends import import_model
from irkit.row_forms import RowForm
from irkit.runtime.csr_rows import CsrPrograms
from irkit.runtime.program import CompiledProgram
from tests.conformance.interpreted import METHODS, Interpreted, interpreted, same

pytestmark = pytest.mark.filterwarnings("ignore")
pipe: Any = vars(pipelines)["make_pipeline"]
scalers: Any = preprocessing
union: Any = pipelines.FeatureUnion
sparse: Any = scipy.sparse
words: Any = text
CHI2: Any = vars(feature_selection)["chi2"]
WIDTH = 40
MODELS: dict[str, Callable[[], Any]] = {
    "bernoulli": lambda: naive_bayes.BernoulliNB(binarize=0.3),
    "binarized": lambda: pipe(preprocessing.Binarizer(threshold=0.3), naive_bayes.BernoulliNB()),
    "complement": naive_bayes.ComplementNB,
    "elastic": lambda: linear_model.ElasticNet(alpha=0.01),
    "linear_svc": lambda: svm.LinearSVC(random_state=0),
    "logistic": lambda: linear_model.LogisticRegression(max_iter=20),
    "l1_norms": lambda: pipe(preprocessing.Normalizer("l1"), linear_model.RidgeClassifier()),
    "l2_norms": lambda: pipe(preprocessing.Normalizer(), linear_model.LogisticRegression()),
    "largest": lambda: pipe(preprocessing.Normalizer("max"), naive_bayes.MultinomialNB()),
    "max_abs": lambda: pipe(preprocessing.MaxAbsScaler(), linear_model.LogisticRegression()),
    "multinomial": naive_bayes.MultinomialNB,
    "perceptron": lambda: linear_model.Perceptron(random_state=0),
    "projected": lambda: pipe(decomposition.TruncatedSVD(3, random_state=0), linear_model.Ridge()),
    "ridge": linear_model.Ridge,
    "scaled": lambda: pipe(
        preprocessing.StandardScaler(with_mean=False), linear_model.LogisticRegression()
    ),
    "selected": lambda: pipe(
        preprocessing.MaxAbsScaler(),
        feature_selection.SelectKBest(CHI2, k=20),
        linear_model.SGDClassifier(loss="log_loss", random_state=0),
    ),
    "tfidf": lambda: pipe(words.TfidfTransformer(), linear_model.LogisticRegression()),
    "tfidf_l1": lambda: pipe(words.TfidfTransformer(norm="l1"), svm.LinearSVC(random_state=0)),
    "variance": lambda: pipe(feature_selection.VarianceThreshold(0.05), linear_model.Ridge()),
}


def rows(count: int = 90, seed: int = 0) -> Any:
    """Rows of numbers of 0 or more: empty ones, written zeros, columns in no order."""
    generator = np.random.default_rng(seed)
    made: Any = sparse.random_array(
        (count, WIDTH), density=0.15, format="csr", random_state=generator
    )
    made.data = np.ceil(4 * made.data) / 4
    made.data[::11] = 0.0
    for start, end in zip(made.indptr[:-1], made.indptr[1:], strict=True):
        order = start + generator.permutation(end - start)
        made.indices[start:end], made.data[start:end] = made.indices[order], made.data[order]
    made.has_sorted_indices = False
    return sparse.vstack([made[:3], sparse.csr_array((2, WIDTH)), made[3:]]).tocsr()


def twice(seed: int = 5) -> Any:
    """Rows of which some columns are stored more than once."""
    generator = np.random.default_rng(seed)
    counts = generator.integers(0, 9, 20)
    ends = np.concatenate([[0], np.cumsum(counts)])
    indices = generator.integers(0, WIDTH // 4, ends[-1])
    data = generator.integers(0, 8, ends[-1]) / 4
    return sparse.csr_array((data, indices, ends), shape=(20, WIDTH))


def targets(x: Any) -> Any:
    """Three classes that hang on the rows."""
    weight = np.linspace(-1, 1, x.shape[1])
    return np.digitize(np.asarray(x @ weight).ravel(), [-0.3, 0.3])


def by_storage(model: Any) -> CompiledProgram:
    """A program for both dtypes whose sparse rows the interpreter computes by what is stored; it has no
    other way."""
    dense = Interpreted(import_model(model, "float64"))
    stored = {
        dtype: Interpreted(csr_model(import_model(model, dtype, rows=RowForm(sparse=True))))
        for dtype in ("float64", "float32")
    }
    return CompiledProgram({"float64": dense}, csr=CsrPrograms(stored))


def agree(program: Any, model: Any, x: Any, tolerance: float) -> None:
    for method in METHODS:
        if method in program.methods:
            found, want = getattr(program, method)(x), getattr(model, method)(x)
            same(found, want, tolerance, tolerance)


@pytest.mark.parametrize("name", MODELS)
def test_answers(name: str) -> None:
    x = rows()
    model = MODELS[name]().fit(x, targets(x))
    program = by_storage(model)
    # What is stored twice is changed twice by scikit-learn, but where it looks for the largest.
    for given_rows in (x, x[:1], x[3:5], x[7:40:3], twice(), (4 * x).astype(np.int64), x > 0):
        agree(program, model, given_rows, 1e-9)
    agree(program, model, x.astype(np.float32), 1e-5)


@pytest.mark.parametrize("name", ["tfidf", "selected", "largest", "binarized"])
def test_compiled(name: str, tmp_path: Path) -> None:
    x = rows()
    model = MODELS[name]().fit(x, targets(x))
    program = irkit.compile(model, "cpu")
    agree(program, model, x, 1e-9)
    agree(program, model, twice(), 1e-9)
    agree(program, model, x.toarray(), 1e-9)
    assert program.report()["sparse_rows"] == "by the elements that are stored"
    with pytest.raises(InvalidInputError, match="expected 1 or more rows, got 0"):
        program.predict(x[:0])
    program.save(tmp_path / "model.irkit")
    loaded = irkit.load(tmp_path / "model.irkit")
    assert loaded.report()["sparse_rows"] == "by the elements that are stored"
    agree(loaded, model, x, 1e-9)
    agree(loaded, model, x[:1].astype(np.float32), 1e-5)
    agree(loaded, model, x.toarray(), 1e-9)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_matrix(data: st.DataObject) -> None:
    """Any columns in any order and any number of times, any indices' type, rows that are empty."""
    counts = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=8))
    total = sum(counts)
    columns = data.draw(st.lists(st.integers(0, WIDTH - 1), min_size=total, max_size=total))
    values = data.draw(
        st.lists(
            st.floats(0, 100, width=32).map(lambda v: v if v > 1e-3 else 0.0),
            min_size=total,
            max_size=total,
        )
    )
    kind = data.draw(st.sampled_from([np.int32, np.int64]))
    ends = np.concatenate([[0], np.cumsum(counts)])
    x = sparse.csr_array(
        (np.array(values), np.array(columns, int), ends), shape=(len(counts), WIDTH)
    )
    x.indices, x.indptr = x.indices.astype(kind), x.indptr.astype(kind)
    for name in ("tfidf", "l1_norms", "selected"):
        model, program = _fitted(name)
        agree(program, model, x, 1e-8)


_FITTED: dict[str, tuple[Any, CompiledProgram]] = {}


def _fitted(name: str) -> tuple[Any, CompiledProgram]:
    if name not in _FITTED:
        x = rows()
        model = MODELS[name]().fit(x, targets(x))
        _FITTED[name] = model, by_storage(model)
    return _FITTED[name]


def test_other_formats() -> None:
    x = rows()
    model, program = _fitted("tfidf")
    for other in (x.tocsc(), x.tocoo(), x.tolil(), x.todok(), x.tobsr(), x.todia()):
        agree(program, model, other, 1e-9)
    # COO adds up what is there twice on its way, as in scikit-learn.
    ones = np.ones(3)
    coo = sparse.coo_array((ones, ([0, 0, 1], [4, 4, 7])), shape=(2, WIDTH))
    model, program = _fitted("binarized")
    agree(program, model, coo, 1e-9)


def test_nan_and_infinity_are_what_they_are_to_scikit_learn() -> None:
    model, program = _fitted("logistic")
    for value in (np.nan, np.inf, -np.inf):
        x = rows()
        x.data[3] = value
        with pytest.raises(ValueError, match="contains"):
            model.predict(x)
        with pytest.raises(InvalidInputError, match=r"NaN|infinity"):
            program.predict(x)
    assert issubclass(InvalidInputError, ValueError)


def test_matrices_that_are_none() -> None:
    _, program = _fitted("logistic")
    x = rows()
    with pytest.raises(InvalidInputError, match="expected shape rowsx40, got 2x39"):
        program.predict(x[:2, :39])
    broken = x[:6].copy()
    broken.indices[0] = 77
    with pytest.raises(InvalidInputError, match="columns that it has not"):
        program.predict(broken)
    for ends in ([0, 3, 2], [0, 1, 99], [-1, 0, 1], [0, 2]):
        bad = sparse.csr_array((2, WIDTH))
        bad.data, bad.indices = np.ones(4), np.zeros(4, np.int32)
        bad.indptr = np.array(ends, np.int32)
        with pytest.raises(InvalidInputError, match="whose indptr is none"):
            program.predict(bad)
    stored: Any = program._csr.of("float64")  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(UnsupportedError, match="rows come as a CSR matrix"):
        stored.run([x.data[None], x.indices[None], x.indptr[:-1], x.indptr[1:]])


def test_what_is_made_dense_says_so() -> None:
    x = rows()
    grown: Any = ensemble.RandomForestClassifier(3, random_state=0)
    model = grown.fit(x, targets(x))
    program = irkit.compile(model, "cpu", dtype="float64")
    same(program.predict_proba(x), model.predict_proba(x))
    assert program.report()["sparse_rows"].startswith("made dense some at a time: ")
    assert "trees look at any column" in program.report()["sparse_rows"]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize(
    "step",
    [
        scalers.MaxAbsScaler(),
        scalers.StandardScaler(with_mean=False),
        scalers.RobustScaler(with_centering=False),
        scalers.Normalizer("max"),
    ],
    ids=lambda s: type(s).__name__,
)
def test_scalers_have_the_bits_that_they_have_of_sparse_rows(step: Any, dtype: str) -> None:
    """scikit-learn multiplies by reciprocals there, of which trees see another last bit."""
    x = 3.7 * rows()
    x.data[1::5] += 0.0137
    x = sparse.csr_matrix(x.astype(dtype))
    single: Any = union([("one", step), ("same", pipe(step, "passthrough"))])
    picked: Any = compose.ColumnTransformer([("some", step, [3, 1, 7])], remainder="passthrough")
    for model in (step, single, picked):
        program: Any = interpreted(model.fit(x))
        same(program.transform(x), model.transform(x))
        if model is not picked:  # of which scikit-learn then has no answer
            same(program.transform(x.toarray()), model.transform(x.toarray()), 1e-6)
    grown: Any = pipe(step, tree.DecisionTreeClassifier(random_state=0)).fit(x, targets(x))
    seen = step.fit(x).transform(x)
    cuts = grown[-1].tree_
    for node in range(cuts.node_count):
        # Thresholds that rows are exactly on.
        if cuts.feature[node] >= 0:
            held = seen[:, [int(cuts.feature[node])]].toarray()
            cuts.threshold[node] = np.median(held[held != 0])
    same(interpreted(grown).predict_proba(x), grown.predict_proba(x))


def test_scalers_of_sparse_rows_are_saved(tmp_path: Path) -> None:
    x = 3.7 * rows()
    model: Any = scalers.MaxAbsScaler().fit(x)
    program = irkit.compile(model, "cpu", dtype="float64", mode="serial")
    same(program.transform(x), model.transform(x))
    assert program.report()["sparse_rows"].endswith("for a program of its own")
    program.save(tmp_path / "model")
    loaded = irkit.load(tmp_path / "model")
    same(loaded.transform(x), model.transform(x))
    same(loaded.transform(x.toarray()), model.transform(x.toarray()))


def test_what_of_sparse_rows_is_otherwise_is_refused_however_deep() -> None:
    x = abs(rows())
    quantiles: Any = scalers.QuantileTransformer(n_quantiles=5)
    model = union([("one", pipe(quantiles))]).fit(x)
    with pytest.raises(UnsupportedError, match=r"QuantileTransformer.* leaves what is absent at 0"):
        interpreted(model).transform(x)
    behind: Any = pipe(decomposition.TruncatedSVD(2, random_state=0), quantiles)
    made = union([("one", behind)]).fit(x)
    same(interpreted(made).transform(x), made.transform(x), 1e-6, 1e-6)


@pytest.mark.parametrize("kind", [svm.SVC, svm.NuSVR, svm.OneClassSVM])
def test_machines_that_were_fitted_on_dense_rows_take_no_others(kind: Any) -> None:
    x = rows()
    model: Any = kind().fit(x.toarray(), targets(x))
    with pytest.raises(ValueError, match="trained on dense data"):
        model.predict(x)
    program: Any = interpreted(model)
    with pytest.raises(UnsupportedError, match="was fitted on dense rows"):
        program.predict(x)
    same(program.predict(x.toarray()), model.predict(x.toarray()), 1e-9)
    fitted = kind().fit(x, targets(x))
    same(interpreted(fitted).predict(x), fitted.predict(x), 1e-9)
