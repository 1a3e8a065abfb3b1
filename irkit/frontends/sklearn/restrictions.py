"""What is refused of estimators that are imported, as data for a page and for users."""

from __future__ import annotations

from collections.abc import Mapping

from irkit.frontends.sklearn.composition import (
    COMPOSITIONS,
    DELEGATES,
    PREDICTORS,
    TRANSFORMERS,
)
from irkit.frontends.sklearn.documents import VECTORIZERS
from irkit.frontends.sklearn.labels import LABEL_ENCODERS

_MACHINE = "kernels that are functions; predict_proba of more than ten classes"
_DOCUMENTS = (
    "behind other steps; functions as parameters; input that is no content; more than "
    "1048576 columns"
)
_KERNEL = "kernels that are functions, kernel_params"
_CATEGORIES = "categories that are neither numbers nor strings"
_NUMBERS = (
    f"{_CATEGORIES}; a dtype other than float32, float64, int32 and int64; integers before steps that "
    "compute in them, and within what ends with a transformer"
)
_APART = (
    "metrics other than Minkowski's, Chebyshev's, canberra, cosine, mahalanobis, seuclidean and "
    "sqeuclidean"
)
_NEAR = f"{_APART}; weights that are functions"
_PROCESS = "Matern with nu other than 0.5, 1.5, 2.5, inf"
_CODES = "transform_algorithm other than 'omp' and 'threshold'; more than 32 atoms a row"
_COEFFICIENTS = "sparse coef_"
_WEIGHTS = "alpha=0 and columns that a class never has"

RESTRICTIONS: Mapping[str, str] = {
    "AdaBoostClassifier": "one class",
    "AdditiveChi2Sampler": "sparse rows that store a 0, or where it is not the first step",
    "AffinityPropagation": "affinity='precomputed'",
    "BernoulliNB": _WEIGHTS,
    "CalibratedClassifierCV": "rows whose margins of several classes look like probabilities, with "
    "method='temperature'",
    "ClassifierChain": "labels that are no numbers, or more than two of them",
    "ComplementNB": _WEIGHTS,
    "CountVectorizer": _DOCUMENTS,
    "DummyClassifier": "strategies that draw at random; several outputs",
    "FeatureAgglomeration": "pooling_func other than NumPy's mean, max, min, sum",
    "DictionaryLearning": _CODES,
    "FixedThresholdClassifier": "a pos_label that is no class",
    "FunctionTransformer": "functions other than those of models.md; kw_args",
    "GaussianProcessClassifier": f"{_PROCESS}; PairwiseKernel",
    "GaussianProcessRegressor": f"{_PROCESS}; one that is not fitted",
    "GradientBoostingClassifier": "init of probabilities in float32",
    "HashingVectorizer": _DOCUMENTS,
    "HistGradientBoostingClassifier": _CATEGORIES,
    "HistGradientBoostingRegressor": _CATEGORIES,
    "IsolationForest": "trained on a single row",
    "Isomap": f"radius; {_APART}",
    "IterativeImputer": "sample_posterior=True; rows of which nothing is there",
    "KBinsDiscretizer": "columns of one bin only",
    "KNNImputer": "metric and weights that are functions",
    "KNeighborsClassifier": _NEAR,
    "KNeighborsRegressor": _NEAR,
    "KNeighborsTransformer": _NEAR,
    "KernelDensity": "atol or rtol above 0; metrics other than Minkowski's and Chebyshev's",
    "KernelPCA": _KERNEL,
    "KernelRidge": _KERNEL,
    "LabelBinarizer": "labels that are neither numbers nor strings; sparse_output; several labels per row",
    "LabelEncoder": "labels that are neither numbers nor strings",
    "LabelPropagation": "kernels that are functions",
    "LabelSpreading": "kernels that are functions",
    "LinearDiscriminantAnalysis": "as a transformer, solver='lsqr'",
    "LocalOutlierFactor": f"novelty=False; {_NEAR}",
    "LocallyLinearEmbedding": "more than 32 neighbours",
    "LogisticRegression": "multi_class='ovr'; sparse coef_",
    "LogisticRegressionCV": "multi_class='ovr'; sparse coef_",
    "MiniBatchDictionaryLearning": _CODES,
    "MultiOutputClassifier": "members of several outputs; labels of several types",
    "MultinomialNB": _WEIGHTS,
    "NMF": "solver='mu'; shuffle=True; sparse rows; programs for a GPU",
    "NuSVC": _MACHINE,
    "NuSVR": _MACHINE,
    "Nystroem": _KERNEL,
    "OneClassSVM": _MACHINE,
    "OneHotEncoder": _NUMBERS,
    "OneVsOneClassifier": "members over pairs of rows",
    "OrdinalEncoder": _NUMBERS,
    "QuantileTransformer": "one quantile; sparse rows",
    "RadiusNeighborsClassifier": f"{_NEAR}; radius=None; several outputs; outlier_label with brute force and "
    "no weights",
    "RadiusNeighborsRegressor": f"{_NEAR}; radius=None",
    "RadiusNeighborsTransformer": f"{_NEAR}; radius=None",
    "SGDClassifier": _COEFFICIENTS,
    "SVC": _MACHINE,
    "SVR": _MACHINE,
    "SimpleImputer": "strings and numbers together; indicators of strings",
    "SparseCoder": _CODES,
    "SplineTransformer": "degree=0, and 1 with extrapolation='linear'",
    "StackingClassifier": "several outputs",
    "TargetEncoder": _CATEGORIES,
    "TfidfTransformer": "sparse rows with sublinear_tf, where it is not the first step",
    "TfidfVectorizer": _DOCUMENTS,
    "TransformedTargetRegressor": "inverse functions and transformers other than those of models.md",
    "VotingClassifier": "negative weights; as a transformer, flatten_transform=False",
}


def supported() -> dict[str, str]:
    """Estimator of scikit-learn's own → what is refused of it."""
    every = {*COMPOSITIONS, *DELEGATES, *LABEL_ENCODERS, *PREDICTORS, *TRANSFORMERS, *VECTORIZERS}
    return {name: RESTRICTIONS.get(name, "") for name in sorted(every) if _own(name)}


def _own(name: str) -> bool:
    """Whether a kind is public, and no other library's."""
    return name[0] != "_" and "." not in name
