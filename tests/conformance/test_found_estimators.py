"""What random models of scikit-learn have found (`python -m tools.fuzz sklearn`)."""

# pyright: basic

from __future__ import annotations

import numpy as np
import pytest

from irkit.errors import InvalidInputError, InvalidModelError, UnsupportedError
from tests.conformance.interpreted import compare, interpreted, same

pytest.importorskip("sklearn")

from scipy import sparse
from sklearn import (
    cluster,
    cross_decomposition,
    decomposition,
    ensemble,
    kernel_ridge,
    linear_model,
    mixture,
    model_selection,
    multioutput,
    naive_bayes,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    svm,
)
from sklearn.compose import ColumnTransformer
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.kernel_approximation import AdditiveChi2Sampler, Nystroem

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 4))
Y = np.stack([X[:, 0], X[:, 1] ** 2], axis=1)
LABELS = np.where(X[:, 0] > 0, "yes", "no")


@pytest.mark.parametrize(
    "member",
    [
        linear_model.Ridge(),
        multioutput.MultiOutputRegressor(svm.SVR()),
        neighbors.KNeighborsRegressor(3),
        cross_decomposition.PLSRegression(),
    ],
)
def test_bags_of_several_targets(member):
    model = ensemble.BaggingRegressor(member, 3, random_state=0).fit(X, Y)
    same(interpreted(model).predict(X), model.predict(X), 1e-9, 1e-12)


HALVES_KEPT = [
    preprocessing.StandardScaler(),
    pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression()),
    ColumnTransformer([("same", "passthrough", [0, 1])]),
    preprocessing.PolynomialFeatures(),
    mixture.GaussianMixture(),
    cross_decomposition.PLSRegression(),
    ensemble.VotingClassifier(
        [("one", pipeline.make_pipeline(preprocessing.MaxAbsScaler(), svm.SVC()))]
    ),
]


@pytest.mark.parametrize("model", HALVES_KEPT, ids=lambda m: type(m).__name__)
def test_halves_that_the_library_computes_in(model):
    """It would answer in float16, and to its rounding."""
    y = Y if isinstance(model, cross_decomposition.PLSRegression) else LABELS
    program = interpreted(model.fit(X, y))
    with pytest.raises(InvalidInputError, match="float16, in which the model would compute"):
        program.run([X.astype(np.float16)])


@pytest.mark.parametrize(
    "model", [linear_model.LogisticRegression(), ensemble.RandomForestClassifier(3), svm.SVC()]
)
def test_halves_that_the_library_converts(model):
    program = interpreted(model.fit(X, LABELS))
    rows = X.astype(np.float16)
    same(program.predict(rows), model.predict(rows))


EXP = preprocessing.FunctionTransformer(np.exp)


@pytest.mark.parametrize(
    ("model", "dtype", "is_taken"),
    [
        (preprocessing.FunctionTransformer(np.log1p), "int64", True),
        (preprocessing.FunctionTransformer(np.log1p), "int8", False),
        (preprocessing.FunctionTransformer(np.reciprocal), "int64", False),
        (preprocessing.FunctionTransformer(np.square), "uint8", False),
        (pipeline.make_pipeline(EXP, linear_model.Ridge()), "int16", False),
        (AdditiveChi2Sampler(), "int32", False),
        (preprocessing.StandardScaler(), "int8", True),
    ],
)  # fmt: skip
def test_integers_that_the_library_computes_in(model, dtype, is_taken):
    rows = (np.abs(X) * 3 + 1).astype(dtype)
    program = interpreted(model.fit(np.abs(X), Y[:, 0]))
    if not is_taken:
        with pytest.raises(InvalidInputError, match=f"{dtype}, in which the model would compute"):
            program.run([rows])
        return
    same(program.transform(rows), model.transform(rows), 1e-12)


def test_integer_columns_of_a_frame():
    """A frame of floats and small integers is one array of floats, and not to scikit-learn."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": np.abs(X[:, 0]), "b": np.arange(40)})
    parts = [("a", "passthrough", ["a"]), ("b", preprocessing.FunctionTransformer(np.log1p), ["b"])]
    model = ColumnTransformer(parts).fit(frame)
    program = interpreted(model)
    same(program.transform(frame), model.transform(frame), 1e-12)
    with pytest.raises(InvalidInputError, match="column 'b' has dtype int8"):
        program.transform(frame.astype({"b": "int8"}))


NO_PROGRAMS = [
    (neighbors.RadiusNeighborsClassifier(radius=None), "radius=None"),
    (neighbors.RadiusNeighborsTransformer(radius=None), "radius=None"),
    (
        model_selection.FixedThresholdClassifier(linear_model.LogisticRegression(), pos_label=True),
        "pos_label=True, which is none of the classes",
    ),
]


@pytest.mark.parametrize(("model", "words"), NO_PROGRAMS)
def test_parameters_without_meaning(model, words):
    with pytest.raises(UnsupportedError, match=words):
        interpreted(model.fit(X, LABELS))


@pytest.mark.parametrize(
    "model",
    [
        decomposition.KernelPCA(2, kernel="rbf"),
        Nystroem(n_components=5),
        kernel_ridge.KernelRidge(),
        cluster.AffinityPropagation(random_state=0),
    ],
    ids=lambda m: type(m).__name__,
)
def test_what_was_fitted_on_sparse_rows(model):
    rows = sparse.csr_matrix(np.where(X < 0, 0, X))
    model.fit(rows, Y[:, 0])
    compare(interpreted(model), model, rows, prepare=lambda given: given)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", ["MultinomialNB", "ComplementNB", "BernoulliNB"])
def test_weights_without_end(kind):
    model = getattr(naive_bayes, kind)(alpha=0.0)
    rows = np.array([[1.0, 0, 2], [0, 3, 0], [2, 0, 1], [0, 1, 0]])
    with pytest.raises(UnsupportedError, match="columns that a class never has"):
        interpreted(model.fit(rows, [0, 1, 0, 1]))


@pytest.mark.parametrize("kind", [cluster.KMeans, cluster.MiniBatchKMeans, cluster.BisectingKMeans])
def test_means_of_rows_far_away(kind):
    """Which mean is nearest is known of rows beside which all means are alike."""
    model = kind(3, random_state=0).fit(X)
    rows = np.where(np.arange(4) == np.arange(40)[:, None] % 4, 1e20, X)
    same(interpreted(model).predict(rows), model.predict(rows))


def test_counts_below_zero():
    from sklearn.feature_extraction.text import TfidfTransformer

    model = TfidfTransformer(sublinear_tf=True).fit(np.abs(X))
    with np.errstate(invalid="ignore"), pytest.raises(InvalidInputError, match="NaN or infinity"):
        interpreted(model).transform(X)


def test_a_label_alone_is_no_longer_than_it_is():
    model = DummyClassifier(strategy="most_frequent").fit(X, np.where(X[:, 0] > 9, "maybe", "no"))
    same(interpreted(model).predict(X), model.predict(X))


@pytest.mark.parametrize("shape", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("fitted", ["float32", "float64"])
@pytest.mark.parametrize("asked", ["float32", "float64"])
def test_mixtures_of_narrow_rows(shape, fitted, asked):
    model = mixture.GaussianMixture(2, covariance_type=shape, random_state=0)
    rows, near = X.astype(asked), 1e-4 if asked == "float32" else 1e-6
    program = interpreted(model.fit(X.astype(fitted)))
    for method in ("predict", "predict_proba", "score_samples"):
        same(getattr(program, method)(rows), getattr(model, method)(rows), near, near)


@pytest.mark.parametrize("fitted", ["float32", "float64"])
@pytest.mark.parametrize("asked", ["float32", "float64"])
def test_outliers_among_narrow_rows(fitted, asked):
    model = neighbors.LocalOutlierFactor(5, novelty=True).fit(X.astype(fitted))
    rows = (X * 1.1).astype(asked)
    for method in ("decision_function", "score_samples", "predict"):
        want = getattr(model, method)(rows)
        near = 1e-5 if "float32" in (fitted, asked) else 1e-9
        same(getattr(interpreted(model), method)(rows), want, near, near)


def test_shares_of_several_margins_keep_their_type():
    """Of two classes they are float64, of more what the margins are."""
    for classes in (2, 3):
        codes = np.digitize(X[:, 0], [0.0, 0.7][: classes - 1])
        model = linear_model.SGDClassifier(loss="modified_huber", random_state=0)
        model.fit(X.astype(np.float32), codes)
        rows = X.astype(np.float32)
        same(interpreted(model).predict_proba(rows), model.predict_proba(rows), 1e-5, 1e-6)


def test_steps_that_do_not_follow_one_another():
    """`fit_transform` gives half as many columns as `transform`: scikit-learn's own pipeline fails."""
    codes = decomposition.DictionaryLearning(3, split_sign=True, random_state=0, max_iter=5)
    model = pipeline.make_pipeline(codes, preprocessing.SplineTransformer(n_knots=2)).fit(X)
    with pytest.raises(ValueError, match="6 features, but SplineTransformer is expecting 3"):
        model.transform(X)
    with pytest.raises(InvalidModelError, match="fitted on 3 columns, and is given 6"):
        interpreted(model)


def test_discriminants_of_float32_are_float64():
    """The priors that are added are."""
    labels = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
    model = QuadraticDiscriminantAnalysis().fit(X.astype(np.float32), labels)
    compare(interpreted(model), model, X.astype(np.float32), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "labels", [np.array(["a", "bbb"], object), np.array([1, 2], object), np.array([0.5, 1], "f4")]
)
def test_labels_of_processes_are_one_of_two_scalars(labels):
    model = GaussianProcessClassifier().fit(X, labels[(X[:, 0] > 0).astype(int)])
    same(interpreted(model).predict(X), model.predict(X))


@pytest.mark.parametrize(
    "model",
    [
        linear_model.Ridge(),
        naive_bayes.GaussianNB(),
        linear_model.LogisticRegression(),
        neural_network.MLPRegressor(hidden_layer_sizes=(3,), tol=9.0),
    ],
)
def test_halves_that_are_multiplied_with_float32_are_refused(model):
    """scikit-learn answers in float32; what was fitted in float64 makes them float64."""
    labels = (X[:, 0] > 0).astype(int)
    halves = X.astype(np.float16)
    wide = model.fit(X, labels)
    same(interpreted(wide).predict(halves), wide.predict(halves), 1e-6, 1e-6)
    narrow = model.fit(X.astype(np.float32), labels)
    with pytest.raises(InvalidInputError, match="dtype float16"):
        interpreted(narrow).predict(halves)
